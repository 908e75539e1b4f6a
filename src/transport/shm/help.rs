//! Helping a peer that copies from or to our memory (`share`): what it asks for in a record of its ring, and our part of it.
//!
//! We write only to where the peer told us to. Of ours, a message is what our own name (`expose`) tells, and a region is
//! looked up when the request is carried out: we are in a call of the engine then, so it is not closed before we are done.

use super::ShmTransport;
use super::get;
use super::outbound::Outbound;
use super::peers::Reach;
use super::reach::rights;
use super::share::{Cut, End, State, take, told};
use crate::engine::op::{Access, RemotePart};
use crate::engine::port::{Get, PeerId, Remote};
use crate::util::user::UserIov;
use core::sync::atomic::Ordering;

/// A request for help.
#[derive(Debug)]
pub struct Help {
    pub number: u32,
    pub cut: Cut,
    /// The peer's memory.
    pub theirs: Remote,
    pub ours: Asked,
}

/// Our side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A message, as we named it.
    Message(Remote),
    /// What the peer reads or writes of a region.
    Region(RemotePart, Access),
}

/// The lowest byte of a request's header, where packets of the engine have their kind. The next one says what is asked.
const HELP: u8 = 0xff;
const MESSAGE: u8 = 0;
const READ: u8 = 1;
const WRITE: u8 = 2;

/// Header and body of a request. `theirs` is the memory of who asks.
pub fn request(number: u32, cut: &Cut, theirs: &Remote, ours: &Asked) -> ([u64; 4], [u8; 2 * Remote::SIZE]) {
    let mut body = [0; 2 * Remote::SIZE];
    let (first, second) = body.split_at_mut(Remote::SIZE);
    first.copy_from_slice(&theirs.bytes);
    let what = match ours {
        Asked::Message(remote) => {
            second.copy_from_slice(&remote.bytes);
            MESSAGE
        }
        Asked::Region(part, access) => {
            for (place, word) in second.chunks_exact_mut(8).zip([part.key, part.addr, part.len as u64]) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            match access {
                Access::Read => READ,
                Access::Write => WRITE,
            }
        }
    };
    let first = u64::from(HELP) | u64::from(what) << 8 | u64::from(number) << 32;
    let pieces = (cut.piece as u64) << 16 | u64::from(cut.count);
    ([first, cut.at as u64, cut.len as u64, pieces], body)
}

impl Help {
    /// Reads a request; None for what is none.
    pub fn of([first, at, len, pieces]: [u64; 4], body: &[u8]) -> Option<Help> {
        let [kind, what, 0, 0] = (first as u32).to_le_bytes() else {
            return None;
        };
        let (theirs, ours) = body.split_at_checked(Remote::SIZE)?;
        let ours = Remote {
            bytes: ours.try_into().ok()?,
        };
        let ours = match what {
            _ if kind != HELP => return None,
            MESSAGE => Asked::Message(ours),
            READ => Asked::Region(part(&ours)?, Access::Read),
            WRITE => Asked::Region(part(&ours)?, Access::Write),
            _ => return None,
        };
        Some(Help {
            number: (first >> 32) as u32,
            cut: Cut::checked(at, len, pieces >> 16, pieces & 0xffff)?,
            theirs: Remote {
                bytes: theirs.try_into().ok()?,
            },
            ours,
        })
    }
}

fn part(bytes: &Remote) -> Option<RemotePart> {
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let [key, addr, len] = words;
    let len = usize::try_from(len).ok()?;
    Some(RemotePart { addr, len, key })
}

/// How a piece is copied.
enum Way {
    Put(get::Put),
    Get(Remote, UserIov),
}

impl Way {
    fn copy(&mut self, out: &Outbound, at: usize, len: usize) -> bool {
        match self {
            Way::Put(put) => put.put(at, len),
            Way::Get(theirs, ours) => get::get(out.instance(), out.pid(), theirs, ours, at, len) == Get::Done,
        }
    }
}

impl ShmTransport {
    /// Does the part of a large copy that a peer asked for.
    pub(super) fn help(&mut self, to: PeerId, help: &Help) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let Some(out) = &peer.out else { return };
        if peer.reach == Reach::Untried {
            peer.reach = get::probe(out);
        }
        let works = peer.reach == Reach::Works && self.config.fetch;
        let Some(out) = self.peers.get(to).and_then(|peer| peer.out.as_ref()) else {
            return;
        };
        let helped = out.ring().helped();
        let Some(mut way) = self.way_of(out, help).filter(|_| works) else {
            return helped.store(told(help.number, State::Over, 0), Ordering::Release);
        };
        let (mut state, mut done) = (State::Over, 0);
        helped.store(told(help.number, State::Working, 0), Ordering::Release);
        while done < help.cut.count {
            let Some(piece) = take(out.ring().pieces(), help.number, End::Back) else {
                break;
            };
            let (at, len) = help.cut.range(piece);
            if !way.copy(out, at, len) {
                state = State::Failed;
                break;
            }
            done += 1;
            // SYNC POINT helped: what the kernel wrote is seen by whoever sees this.
            helped.store(told(help.number, State::Working, done), Ordering::Release);
        }
        helped.store(told(help.number, state, done), Ordering::Release);
    }

    /// None: it names what is not, or no longer, for this peer.
    fn way_of(&self, out: &Outbound, help: &Help) -> Option<Way> {
        let (us, them) = ((self.own.instance, self.own.pid), (out.instance(), out.pid()));
        let (memory, access) = match &help.ours {
            Asked::Message(ours) => return get::Put::new(&help.theirs, ours, them, us).map(Way::Put),
            Asked::Region(part, access) => (self.region(part, *access)?, *access),
        };
        match access {
            Access::Read => get::Put::new(&help.theirs, &get::expose(us.0, us.1, &memory), them, us).map(Way::Put),
            Access::Write => Some(Way::Get(help.theirs, memory)),
        }
    }

    /// Memory of ours that peers may work on by themselves.
    fn region(&self, part: &RemotePart, access: Access) -> Option<UserIov> {
        let (regions, endpoint) = self.shown.as_ref()?;
        let found = regions
            .find(*endpoint, part.key, part.addr, part.len, rights(access))
            .ok()?;
        (!found.watched).then_some(found.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_as_they_were_made() {
        let theirs = Remote {
            bytes: core::array::from_fn(|at| at as u8),
        };
        let ours = Remote {
            bytes: [7; Remote::SIZE],
        };
        let part = RemotePart {
            addr: u64::MAX - 3,
            len: 70_000,
            key: 1 << 63,
        };
        let cut = Cut::checked(5, 70_000, 4096, 18).unwrap();
        for asked in [
            Asked::Message(ours),
            Asked::Region(part, Access::Read),
            Asked::Region(part, Access::Write),
        ] {
            let (words, body) = request(9, &cut, &theirs, &asked);
            let help = Help::of(words, &body).unwrap();
            assert_eq!((help.number, help.cut, help.theirs, help.ours), (9, cut, theirs, asked));
        }
    }

    #[test]
    fn requests_that_cannot_be_are_refused() {
        let good = [u64::from(HELP), 0, 10, 5 << 16 | 2];
        assert!(Help::of(good, &[0; 160]).is_some());
        assert!(Help::of(good, &[0; 159]).is_none());
        for first in [0, 0x3ff, 0x1_00ff, 0x100_00ff] {
            assert!(Help::of([first, 0, 10, 5 << 16 | 2], &[0; 160]).is_none());
        }
        assert!(Help::of([u64::from(HELP), 0, 10, 5 << 16 | 3], &[0; 160]).is_none());
    }
}
