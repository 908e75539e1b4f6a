//! The helper of a dual copy: what it is asked in a record of its peer's ring, and its part of the copy.
//!
//! A request never says where the helper's memory is. It names a message to this peer or a piece of a region, which the
//! engine looks up when the request is carried out (`Sink::exposed_memory`); that stays valid, as we are in a call of
//! the engine until we are done. The asker's memory is where the request says, in the process that was proved to be the
//! asker's.

use super::super::ShmTransport;
use super::super::get::{self, PeerWindow};
use super::super::outbound::Outbound;
use super::{Cut, HelperState, TakeFrom, helper_word, take_piece};
use crate::engine::op::{Access, RemotePart};
use crate::engine::port::{ExposedName, Get, PeerId, Remote, Sink};
use crate::util::user::UserIov;
use core::sync::atomic::{Ordering, fence};

/// A request for help, read.
#[derive(Debug)]
pub(crate) struct HelpRequest {
    pub number: u32,
    pub cut: Cut,
    /// The asker's memory.
    pub theirs: Remote,
    pub ours: RequestedMemory,
}

/// The helper's side of the copy, and whether it is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestedMemory {
    pub name: ExposedName,
    pub access: Access,
}

/// The lowest byte of a request's header, where packets of the engine have their kind. The next byte says what is
/// copied.
const HELP: u8 = 0xff;
const MESSAGE: u8 = 0;
const READ: u8 = 1;
const WRITE: u8 = 2;

/// Words of a request that name the helper's side.
const NAME_WORDS: usize = 3;
pub(crate) const REQUEST_BODY: usize = Remote::MAX + 8 * NAME_WORDS;

/// Header and body of a request; `theirs` is the asker's memory. None if the helper's side has no name.
pub(crate) fn encode_request(
    number: u32,
    cut: &Cut,
    theirs: &Remote,
    ours: &RequestedMemory,
) -> Option<([u64; 4], [u8; REQUEST_BODY])> {
    let (what, name) = match (ours.name, ours.access) {
        (ExposedName::Sent(sent), Access::Read) => (MESSAGE, [sent, 0, 0]),
        (ExposedName::Region(part), Access::Read) => (READ, [part.key, part.addr, part.len as u64]),
        (ExposedName::Region(part), Access::Write) => (WRITE, [part.key, part.addr, part.len as u64]),
        (ExposedName::Sent(_), Access::Write) | (ExposedName::Nothing, _) => return None,
    };
    let mut body = [0; REQUEST_BODY];
    let (first, second) = body.split_at_mut(Remote::MAX);
    first.get_mut(..theirs.bytes().len())?.copy_from_slice(theirs.bytes());
    for (place, word) in second.chunks_exact_mut(8).zip(name) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let first = u64::from(HELP) | u64::from(what) << 8 | u64::from(number) << 32;
    let pieces = (cut.piece as u64) << 16 | u64::from(cut.count);
    Some(([first, cut.at as u64, cut.len as u64, pieces], body))
}

impl HelpRequest {
    /// Reads a request; None if it is not one.
    pub(crate) fn of([first, at, len, pieces]: [u64; 4], body: &[u8]) -> Option<HelpRequest> {
        let [HELP, what, 0, 0] = (first as u32).to_le_bytes() else {
            return None;
        };
        let (theirs, name) = body.split_at_checked(Remote::MAX)?;
        let name: &[u8; 8 * NAME_WORDS] = name.try_into().ok()?;
        let mut words = [0; NAME_WORDS];
        for (word, bytes) in words.iter_mut().zip(name.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [key, addr, len_of_part] = words;
        let len_of_part = usize::try_from(len_of_part).ok()?;
        let part = RemotePart {
            addr,
            len: len_of_part,
            key,
        };
        let (name, access) = match what {
            MESSAGE => (ExposedName::Sent(key), Access::Read),
            READ => (ExposedName::Region(part), Access::Read),
            WRITE => (ExposedName::Region(part), Access::Write),
            _ => return None,
        };
        Some(HelpRequest {
            number: (first >> 32) as u32,
            cut: Cut::checked(at, len, pieces >> 16, pieces & 0xffff)?,
            theirs: Remote::new(theirs)?,
            ours: RequestedMemory { name, access },
        })
    }
}

/// In which direction pieces are copied, and between what.
enum Direction {
    Put(PeerWindow, UserIov),
    Get(Remote, UserIov),
}

impl Direction {
    fn copy(&self, out: &Outbound, at: usize, len: usize) -> bool {
        match self {
            Direction::Put(theirs, ours) => theirs.put(ours, at, len),
            Direction::Get(theirs, ours) => get::get(out.instance(), out.pid(), theirs, ours, at, len) == Get::Done,
        }
    }
}

impl ShmTransport {
    /// Does what is left of a copy when the request is read, from the back.
    pub(in super::super) fn help<S: Sink>(&mut self, to: PeerId, help: &HelpRequest, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let Some(out) = &mut peer.out else { return };
        let works = self.config.fetch && out.is_proved();
        let out = &*out;
        let helped = out.lane.helped();
        let memory = works
            .then(|| sink.exposed_memory(to, &help.ours.name, help.ours.access))
            .flatten();
        let Some(way) = memory.and_then(|memory| direction_of(out, help, memory)) else {
            return helped.store(helper_word(help.number, HelperState::Over, 0), Ordering::Release);
        };
        let (mut state, mut done) = (HelperState::Over, 0);
        helped.store(helper_word(help.number, HelperState::Working, 0), Ordering::Release);
        let mut next = help.cut.count;
        while let Some(piece) = take_piece(out.lane.pieces(), help.number, TakeFrom::Back) {
            // Each piece once, so that a peer that puts pieces back does not keep us here.
            if piece >= next {
                break;
            }
            next = piece;
            let (at, len) = help.cut.range(piece);
            // SYNC POINT leaving: either we see that the asker closes, or it waits for this piece.
            fence(Ordering::SeqCst);
            if out.is_closed() || !way.copy(out, at, len) {
                state = HelperState::Failed;
                break;
            }
            done += 1;
            // SYNC POINT helped: whoever sees this count sees the bytes that the kernel wrote.
            helped.store(helper_word(help.number, HelperState::Working, done), Ordering::Release);
        }
        helped.store(helper_word(help.number, state, done), Ordering::Release);
    }
}

/// None: the request names another process's memory than the asker's.
fn direction_of(out: &Outbound, help: &HelpRequest, memory: UserIov) -> Option<Direction> {
    match help.ours.access {
        Access::Read => Some(Direction::Put(
            PeerWindow::of(&help.theirs, out.instance(), out.pid())?,
            memory,
        )),
        Access::Write => Some(Direction::Get(help.theirs, memory)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_as_they_were_made() {
        let theirs = Remote::from(core::array::from_fn(|at| at as u8));
        let part = RemotePart {
            addr: u64::MAX - 3,
            len: 70_000,
            key: 1 << 63,
        };
        let cut = Cut::checked(5, 70_000, 4096, 18).unwrap();
        for (name, access, has_one) in [
            (ExposedName::Sent(u64::MAX - 7), Access::Read, true),
            (ExposedName::Region(part), Access::Read, true),
            (ExposedName::Region(part), Access::Write, true),
            (ExposedName::Sent(7), Access::Write, false),
            (ExposedName::Nothing, Access::Read, false),
        ] {
            let asked = RequestedMemory { name, access };
            let Some((words, body)) = encode_request(9, &cut, &theirs, &asked) else {
                assert!(!has_one, "{asked:?}");
                continue;
            };
            let help = HelpRequest::of(words, &body).unwrap();
            assert_eq!((help.number, help.cut, help.theirs, help.ours), (9, cut, theirs, asked));
        }
    }

    #[test]
    fn requests_that_cannot_be_are_refused() {
        let good = [u64::from(HELP), 0, 10, 5 << 16 | 2];
        assert!(HelpRequest::of(good, &[0; REQUEST_BODY]).is_some());
        for len in [0, REQUEST_BODY - 1, REQUEST_BODY + 1] {
            assert!(HelpRequest::of(good, &vec![0; len]).is_none());
        }
        for first in [0, 0x3ff, 0x1_00ff, 0x100_00ff] {
            assert!(HelpRequest::of([first, 0, 10, 5 << 16 | 2], &[0; REQUEST_BODY]).is_none());
        }
        assert!(HelpRequest::of([u64::from(HELP), 0, 10, 5 << 16 | 3], &[0; REQUEST_BODY]).is_none());
    }
}
