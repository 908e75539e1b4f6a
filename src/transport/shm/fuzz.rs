//! Bodies of the fuzz targets for what other processes write into an endpoint's file. Compiled for tests and fuzzing
//! only; called by `crate::fuzz`.

use super::dual_copy::{Cut, TakeFrom, take_piece};
use super::dual_copy::{HelpRequest, REQUEST_BODY, encode_request};
use super::inbound::{Inbox, LaneEvent};
use super::lane::{CONTROL_BYTES, LARGE, Lane, SMALL, lane_at};
use super::layout::{self, ENTRY_WORDS, FileHeader, MAX_LANES, Owner};
use super::name;
use super::ring::CELL;
use crate::engine::port::{Loss, NotDone, PeerId, Placement, Sink, Token};
use crate::engine::wire;
use crate::sys::shared;
use core::sync::atomic::Ordering;
use std::fs::File;
use std::os::fd::AsFd;

/// A sink that treats bodies in any way a sink may.
struct Taker {
    /// Decides what is done with the next body.
    mood: u8,
    bytes: usize,
}

impl Sink for Taker {
    fn take_message(&mut self, from: PeerId, header: &wire::Header, body: &[u8]) -> bool {
        self.mood % 5 < 2 && self.take(from, header, body)
    }
    fn take(&mut self, _: PeerId, _: &wire::Header, body: &[u8]) -> bool {
        self.bytes += body.iter().map(|byte| usize::from(*byte & 1)).sum::<usize>();
        self.mood % 3 == 0
    }
    fn place(&mut self, _: PeerId, _: &wire::Header, len: usize) -> Placement {
        assert!(len <= super::ring::longest(LARGE.cells()));
        match self.mood % 4 {
            0 => Placement::Drop,
            1 => Placement::Refuse,
            _ => Placement::Keep {
                buffer: vec![0; len],
                token: 1,
            },
        }
    }
    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}
    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}
    fn gone(&mut self, _: PeerId, _: Loss) {}
}

/// An endpoint's file without a name.
struct Scene {
    file: File,
    header: FileHeader,
}

impl Scene {
    fn new() -> Option<Scene> {
        let path = std::env::temp_dir().join(format!("lfab-fuzz-{:x}", shared::random().ok()?));
        let file = shared::create(&path).ok()?;
        let _ = std::fs::remove_file(&path);
        layout::allocate_header(file.as_fd()).ok()?;
        // Up to the end of the lanes. It is sparse, and gets memory where it is touched.
        let file = File::from(file);
        file.set_len(lane_at(MAX_LANES) as u64).ok()?;
        let header = FileHeader::map_own(file.as_fd()).ok()?;
        Some(Scene { file, header })
    }
}

thread_local! {
    static SCENE: Option<Scene> = Scene::new();
}

const CONTROL_WORDS: usize = CONTROL_BYTES / 8;
const ADDRESS: &[u8] = b"fi_shm://1";

/// Words of the header, the region table and a lane, as a peer may write them: no access leaves the file, and
/// impossible words are refused.
pub fn shared_file(data: &[u8]) {
    SCENE.with(|scene| {
        let scene = scene.as_ref().expect("a file of our own");
        let owner = Owner {
            address: ADDRESS,
            instance: 11,
            pid: 1,
            probe: 0,
            fence: false,
        };
        scene.header.init(&owner);
        let lane = Lane::map(scene.file.as_fd(), 0).expect("memory for a ring");
        lane.init(9, b"peer");
        let mut inbox = Inbox::default();
        inbox.add(0, lane, 0, &scene.header);
        let mut taker = Taker { mood: 0, bytes: 0 };
        for step in data.chunks(11) {
            let [kind, low, high, word @ ..] = step else { break };
            let place = usize::from(*low) | usize::from(*high) << 8;
            let value = word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            taker.mood = *low;
            if !written(&scene.header, &inbox, *kind, place, value) {
                break;
            }
            let (_, event) = inbox.read_lane(0, &scene.header, &mut taker, 16);
            if let Some((_, help)) = inbox.take_help(0) {
                assert!(help.cut.at.checked_add(help.cut.len).is_some());
            }
            if event == LaneEvent::Broken || event == LaneEvent::Over {
                break;
            }
            looked_at(&scene.header, &inbox, value);
        }
    });
}

/// Writes one word. False: the lane is gone.
fn written(header: &FileHeader, inbox: &Inbox, kind: u8, place: usize, value: u64) -> bool {
    let Some(lane) = inbox.lane(0) else { return false };
    let cell = place % SMALL.cells() as usize * (CELL / 8);
    match kind % 7 {
        0 => header.set_word(place, value),
        1 => header
            .entry_word(place % layout::MAX_ENTRIES % 64, place / 64 % ENTRY_WORDS)
            .store(value, Ordering::Relaxed),
        2 => lane.set_word(place % CONTROL_WORDS, value),
        3 => lane.set_word(CONTROL_WORDS + place, value),
        // The control word of a record of the first lap.
        4 => lane.set_word(CONTROL_WORDS + cell, 1 << 20 | 1 << 16 | (value % 300)),
        5 => lane.set_word(CONTROL_WORDS + cell, 1 << 20 | 4 << 16 | (value % 10)),
        _ => lane.set_word(CONTROL_WORDS + cell + 1, value % 300),
    }
    true
}

/// Reads all that an endpoint reads of a peer's file, or of what peers write in its own.
fn looked_at(header: &FileHeader, inbox: &Inbox, value: u64) {
    let _ = header.check(ADDRESS);
    assert!(header.used() <= MAX_LANES && header.entries_used() <= layout::MAX_ENTRIES);
    // Beyond its first page, the table has no memory here.
    header.set_entries_used(header.entries_used().min(64));
    for key in [0, 1, value] {
        if let Some(shown) = header.find_entry(key) {
            assert!(shown.key == key && shown.entry < layout::MAX_ENTRIES && shown.generation % 2 == 1);
        }
    }
    if let Some((_, address)) = inbox.lane(0).and_then(Lane::claimer) {
        assert!((1..=name::ADDRESS_MAX).contains(&address.len()));
        if let Some(address) = name::normal(&address) {
            let path = name::endpoint_file("/dev/shm".as_ref(), address);
            assert_eq!(path.parent(), Some("/dev/shm".as_ref()));
            assert!(path.file_name().is_some_and(|name| name.len() <= 255));
            assert!(name::base(address).len() <= address.len());
        }
    }
    let mut rung = Vec::new();
    header.take_bells(&mut rung);
    assert!(rung.iter().all(|index| *index < MAX_LANES));
    // Not if the file claims that very many lanes are in use, as looking at all of them takes long.
    if header.used() <= 256 {
        let _ = (inbox.newcomers(header), inbox.would_find(header));
    }
    if let Some(lane) = inbox.lane(0) {
        let _ = take_piece(lane.pieces(), value as u32, TakeFrom::Front);
    }
}

/// A request for help with a dual copy is refused, or comes back the same when it is encoded again.
pub fn help(data: &[u8]) {
    let mut words = [0; 4];
    let (head, body) = data.split_at_checked(32).unwrap_or((data, &[]));
    for (word, bytes) in words.iter_mut().zip(head.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    // Makes most inputs nearly a request.
    let mut whole = [0; REQUEST_BODY];
    whole.iter_mut().zip(body).for_each(|(to, from)| *to = *from);
    words[0] = words[0] & !0xffff_00ff | 0xff;
    let Some(help) = HelpRequest::of(words, &whole) else {
        return;
    };
    let Cut { at, len, count, .. } = help.cut;
    let mut next = at;
    for piece in 0..count.min(100) {
        let (from, bytes) = help.cut.range(piece);
        assert!(from == next && bytes > 0 && from + bytes <= at + len);
        next += bytes;
    }
    let (again, body) = encode_request(help.number, &help.cut, &help.theirs, &help.ours).expect("it has a name");
    let twice = HelpRequest::of(again, &body).expect("it was one");
    assert_eq!(
        (twice.number, twice.cut, twice.theirs, twice.ours),
        (help.number, help.cut, help.theirs, help.ours)
    );
}
