//! The shared-memory transport, within a process, between processes, and under attack.
//!
//! - `plain`: what works while nobody dies. `suite`: the suite of all transports. `waking`: sleepers.
//! - `dialogue`: two that answer each other.
//! - `direct_access`, `dual_copy`: memory of peers. `lent`: of a region, which the peer lets be fetched.
//! - `life`: endpoints that die or close; `earlier_lives`, `dead_names`: who has their addresses before and after.
//!   `forks`: children of fork. `refused`: what the system refuses.
//! - `hostile`: files with any contents. `forger`: a malicious peer that knows the protocol.
//! - `bench`: timings, which only run when asked for.

mod bench;
mod dead_names;
mod dialogue;
mod direct_access;
mod dual_copy;
mod earlier_lives;
mod forger;
mod forks;
mod hostile;
mod lent;
mod life;
mod plain;
mod refused;
mod streaming;
mod suite;
mod waking;

use super::outbound::Outbound;
use super::*;
use crate::engine::op::Access;
use crate::engine::op::Unreached;
use crate::engine::port::{Loss, NotDone, Placement};
use crate::engine::wire::Packet;
use crate::sys::child::Child;
use crate::sys::shared;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A directory of one test's own, in /dev/shm.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        let dir = PathBuf::from(format!("/dev/shm/lfab-test-{:x}", shared::random().unwrap()));
        std::fs::create_dir(&dir).unwrap();
        Dir(dir)
    }

    fn config(&self) -> Config {
        Config {
            dir: self.0.clone(),
            // Tests of streams ask for them; those of copies are not to depend on how quick this machine is.
            stream: false,
            warn: |line| eprintln!("{line}"),
            ..Config::default()
        }
    }

    fn open(&self, address: &str) -> ShmTransport {
        ShmTransport::open(address, &self.config()).unwrap()
    }

    /// The names of the files. Those of sockets are random, so they are replaced by `doorbell`.
    fn names(&self) -> Vec<String> {
        let called = |name: String| match name::file(name.as_bytes()) {
            name::File::Doorbell(_) => "doorbell".to_owned(),
            _ => name,
        };
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| called(entry.unwrap().file_name().into_string().unwrap()))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sink that keeps all packets.
#[derive(Default)]
struct Kept {
    packets: Vec<(PeerId, Header, Vec<u8>)>,
    gone: Vec<PeerId>,
    refuse: bool,
    /// What has come is answered when the poll is over.
    is_to_answer: bool,
    at: Option<(PeerId, Header)>,
}

impl Sink for Kept {
    /// Of messages in short records every other goes this way.
    fn take_message(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        let takes = !self.refuse && header.packet == Packet::Eager && header.id % 2 == 0;
        if takes {
            self.packets.push((from, *header, body.to_vec()));
        }
        takes
    }

    fn is_to_answer(&self, _: PeerId) -> bool {
        self.is_to_answer
    }

    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        if self.refuse {
            return Placement::Refuse;
        }
        self.at = Some((from, *header));
        Placement::Keep {
            buffer: vec![0; len],
            token: 7,
        }
    }

    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        assert_eq!(token, 7);
        let (from, header) = self.at.take().unwrap();
        self.packets.push((from, header, buffer.unwrap()));
    }

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {
        unreachable!("no get is later");
    }

    fn gone(&mut self, peer: PeerId, _: Loss) {
        self.gone.push(peer);
    }
}

/// As the engine asks for a copy of one piece.
fn copy_op<'a>(part: &'a RemotePart, local: &'a UserIov, access: Access) -> port::CopyOp<'a> {
    port::CopyOp {
        access,
        parts: core::slice::from_ref(part),
        local: Local::User(local),
        data: None,
    }
}

/// The header of packet `id`, with `body` or without one. Of the first two in eight it and the body fit into half a
/// line.
fn header(id: u32) -> Header {
    let is_brief = id % 8 < 2;
    Header {
        packet: Packet::Eager,
        flags: 0,
        code: 0,
        id,
        tag: u64::from(id) << 7,
        data: if is_brief { 0 } else { !u64::from(id) },
        total: if is_brief { 8 } else { 9 },
    }
}

/// The body of packet `id`.
fn body(id: u32) -> Vec<u8> {
    let len = [0, 8, 24, 25, 472, 473, 1000, MAX_BODY][id as usize % 8];
    (0..len).map(|at| (at as u32 ^ id.wrapping_mul(31)) as u8).collect()
}

fn assert_whole(packet: &(PeerId, Header, Vec<u8>), id: u32) {
    assert_eq!(packet.1, header(id));
    assert!(packet.2 == body(id), "the body of {id}");
}

/// When a test gives up: far more than anything here takes, for busy machines.
const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until `done`; fails after `PATIENCE`.
fn poll_until(end: &mut ShmTransport, sink: &mut Kept, mut done: impl FnMut(&Kept) -> bool) {
    let start = Instant::now();
    while !done(sink) {
        end.poll(sink, 64);
        assert!(start.elapsed() < PATIENCE, "nothing comes any more");
        std::hint::spin_loop();
    }
}

/// Pushes packets, and polls while there is no room.
fn push_all(end: &mut ShmTransport, to: PeerId, ids: std::ops::Range<u32>, sink: &mut Kept) {
    for id in ids {
        let body = body(id);
        loop {
            match end.push(to, &header(id), Body::Bytes(&body), None) {
                Push::Done => break,
                Push::Full => {
                    end.poll(sink, 64);
                    std::thread::yield_now();
                }
                other => panic!("{other:?} at {id}"),
            }
        }
    }
}
