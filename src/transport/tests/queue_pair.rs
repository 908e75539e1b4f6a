//! A stand-in for queue pairs: what a network card with reliable connections does to a transport.
//!
//! Packets arrive in the few buffers that the receiver has posted, and a sender finds no room if none is left. A buffer
//! is posted again when its body has been moved, which later polls do, in any order. Gets complete out of band, and
//! need a key that the owner of the memory gave out.

use crate::engine::port::{
    Body, ExposedName, Get, Limits, Loss, Notice, PeerId, Placement, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::regions::Lease;
use crate::util::user::UserIov;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const PEER: PeerId = 0;
const BUFFERS: usize = 4;
const GETS: usize = 2;

/// What both cards have access to.
#[derive(Default)]
struct Fabric {
    cards: [Card; 2],
}

#[derive(Default)]
struct Card {
    closed: bool,
    /// Buffers with a packet, in the order of their completions.
    filled: VecDeque<(Header, Vec<u8>)>,
    /// Buffers that are not posted: with a packet, or with a body that is still to be moved.
    taken: usize,
    exposed: Vec<UserIov>,
}

enum Work {
    Into(UserIov, usize, Token, Vec<u8>),
    Leased(Lease, Token, Vec<u8>),
    Keep(Vec<u8>, Token, Vec<u8>),
    /// A get: their memory, ours, offset, length.
    Get(UserIov, UserIov, usize, usize, Token),
}

pub struct QueuePair {
    fabric: Rc<RefCell<Fabric>>,
    me: usize,
    /// Work that has begun and not completed.
    begun: Vec<Work>,
    turn: usize,
    told: bool,
}

impl QueuePair {
    pub fn pair() -> [QueuePair; 2] {
        let fabric = Rc::new(RefCell::new(Fabric::default()));
        [0, 1].map(|me| QueuePair {
            fabric: fabric.clone(),
            me,
            begun: Vec::new(),
            turn: 0,
            told: false,
        })
    }

    fn card<R>(&self, of: usize, look: impl FnOnce(&mut Card) -> R) -> R {
        look(&mut self.fabric.borrow_mut().cards[of])
    }

    fn peer_closed(&self) -> bool {
        self.card(1 - self.me, |theirs| theirs.closed)
    }

    /// Completes some of the work, out of order.
    fn complete<S: Sink>(&mut self, sink: &mut S) {
        self.turn += 1;
        let ends = if self.turn % 3 == 0 {
            0
        } else {
            self.begun.len().div_ceil(2)
        };
        for _ in 0..ends {
            match self.begun.swap_remove(self.turn % self.begun.len()) {
                Work::Into(iov, at, token, bytes) => {
                    iov.write(at, &bytes);
                    self.post();
                    sink.placed(token, None);
                }
                Work::Leased(lease, token, bytes) => {
                    let whole = lease.write(0, &bytes);
                    self.post();
                    if whole {
                        sink.placed(token, None);
                    } else {
                        sink.cut(token);
                    }
                }
                Work::Keep(mut buffer, token, bytes) => {
                    buffer.copy_from_slice(&bytes);
                    self.post();
                    sink.placed(token, Some(buffer));
                }
                Work::Get(theirs, ours, at, len, token) => {
                    let mut bytes = vec![0; len];
                    let read = theirs.read(at, &mut bytes) == len && ours.write(at, &bytes) == len;
                    sink.finished(token, read);
                }
            }
        }
    }

    /// Posts a buffer again.
    fn post(&self) {
        self.card(self.me, |mine| mine.taken -= 1);
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.card(self.me, |mine| mine.closed = true);
    }
}

impl Transport for QueuePair {
    fn limits(&self) -> Limits {
        Limits {
            max_body: 256,
            eager: 2000,
            can_get: true,
            guaranteed_body: 256,
            sync_placement: false,
        }
    }

    fn peer(&mut self, _: &[u8]) -> Option<PeerId> {
        Some(PEER)
    }

    fn push(&mut self, _: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        if self.peer_closed() {
            return Push::Gone;
        }
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => drop(iov.read(at, &mut bytes)),
        }
        self.card(1 - self.me, |theirs| {
            if theirs.taken == BUFFERS {
                return Push::Full;
            }
            theirs.taken += 1;
            theirs.filled.push_back((*header, bytes));
            Push::Done
        })
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        if self.told {
            return 0;
        }
        self.complete(sink);
        let mut done = 0;
        while done < budget {
            let filled = self.card(self.me, |mine| mine.filled.pop_front());
            let Some((header, bytes)) = filled else { break };
            match sink.place(PEER, &header, bytes.len()) {
                Placement::Into { iov, at, token } => self.begun.push(Work::Into(iov, at, token, bytes)),
                Placement::Leased { lease, token } => self.begun.push(Work::Leased(lease, token, bytes)),
                Placement::Keep { buffer, token } => self.begun.push(Work::Keep(buffer, token, bytes)),
                Placement::Drop => self.post(),
                Placement::Refuse => {
                    self.card(self.me, |mine| mine.filled.push_front((header, bytes)));
                    break;
                }
            }
            done += 1;
        }
        let over = done < budget && self.begun.is_empty() && self.peer_closed();
        if over && self.card(self.me, |mine| mine.filled.is_empty()) {
            self.told = true;
            sink.gone(PEER, Loss::Died);
        }
        done
    }

    fn expose(&self, _: PeerId, iov: &UserIov, _: ExposedName) -> Remote {
        let mut bytes = [0; Remote::SIZE];
        let key = self.card(self.me, |mine| {
            mine.exposed.push(*iov);
            mine.exposed.len()
        });
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        Remote { bytes }
    }

    fn get(&mut self, _: PeerId, remote: &Remote, local: &UserIov, at: usize, len: usize, token: Option<Token>) -> Get {
        if self.peer_closed() {
            return Get::Gone;
        }
        let Some(token) = token else {
            return Get::Unsupported; // a get completes later
        };
        let busy = self.begun.iter().filter(|work| matches!(work, Work::Get(..))).count();
        if busy == GETS {
            return Get::Full;
        }
        let key = usize::from_le_bytes(remote.bytes[..8].try_into().unwrap());
        let theirs = self.card(1 - self.me, |theirs| theirs.exposed.get(key.wrapping_sub(1)).copied());
        // A get with a wrong key fails when it completes.
        let theirs = theirs.unwrap_or_default();
        self.begun.push(Work::Get(theirs, *local, at, len, token));
        Get::Later
    }
}

mod tests {
    use super::*;
    use crate::transport::tests::suite::{Ends, Pair};

    impl Pair for QueuePair {
        fn pair() -> Ends<QueuePair> {
            let [a, b] = QueuePair::pair();
            let (b_of_a, a_of_b) = (PEER, PEER);
            Ends {
                a,
                b,
                b_of_a,
                a_of_b,
                keep: Box::new(()),
            }
        }
    }

    crate::transport::tests::suite::tests!(QueuePair);
}
