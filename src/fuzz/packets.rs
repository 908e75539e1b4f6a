//! What a peer may send, through a whole engine: records, requests for help, ends of copies, in any order and with any
//! contents, while the endpoint sends, receives and works on memory of the peer's.
//!
//! An input is a list of steps, a byte each with what the step needs behind it.

use super::scene::{MAX_BODY, MEMORY, OPEN, PEERS, READ_ONLY, SENT, STEPS, Scene};
use crate::engine::op::Access;
use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Loss, NotDone, Notice, PeerId, Placement, Push, Remote, Sink, Token,
    Transport,
};
use crate::engine::wire::Header;
use crate::util::user::UserIov;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What is on its way to the endpoint.
enum Coming {
    Record(PeerId, Header, Vec<u8>),
    ExposedName(PeerId, ExposedName, Access),
    Finished(bool),
    Gone(PeerId),
}

#[derive(Default)]
struct Wire {
    coming: VecDeque<Coming>,
    /// Gets that are to end.
    later: Vec<(Token, UserIov)>,
    /// Memory that may be named.
    mine: Vec<UserIov>,
    pushed: usize,
    moods: u8,
}

/// A transport that is told what comes.
struct Feed(Rc<RefCell<Wire>>);

impl Feed {
    fn deliver<S: Sink>(&self, sink: &mut S, coming: Coming) -> Option<Coming> {
        match coming {
            Coming::Record(from, header, body) => {
                if sink.take(from, &header, &body) {
                    return None;
                }
                match sink.place(from, &header, body.len()) {
                    Placement::Into { iov, at, token } => {
                        iov.write(at, &body);
                        sink.placed(token, None);
                    }
                    Placement::Keep { mut buffer, token } => {
                        assert_eq!(buffer.len(), body.len());
                        buffer.copy_from_slice(&body);
                        sink.placed(token, Some(buffer));
                    }
                    Placement::Leased { lease, token } => {
                        if lease.write(0, &body) {
                            sink.placed(token, None);
                        } else {
                            sink.cut(token);
                        }
                    }
                    Placement::Drop => {}
                    Placement::Refuse => return Some(Coming::Record(from, header, body)),
                }
            }
            Coming::ExposedName(from, name, access) => {
                if let Some(found) = sink.exposed_memory(from, &name, access) {
                    let wire = self.0.borrow();
                    let inside = |part: &crate::util::user::UserBuf| {
                        let within = |whole: &UserIov| {
                            let at = part.addr().wrapping_sub(whole.address(0));
                            at <= whole.len() && part.len() <= whole.len() - at
                        };
                        part.is_empty() || wire.mine.iter().any(within)
                    };
                    assert!(
                        found.parts().iter().all(inside),
                        "{name:?} is memory that was never shown"
                    );
                }
            }
            Coming::Finished(ok) => {
                let ended = self.0.borrow_mut().later.pop();
                if let Some((token, _)) = ended {
                    sink.finished(token, if ok { Ok(()) } else { Err(NotDone::AskPeer) });
                }
            }
            Coming::Gone(peer) => {
                self.0.borrow_mut().later.clear();
                sink.gone(peer, Loss::Died);
            }
        }
        None
    }
}

impl Transport for Feed {
    fn limits(&self) -> Limits {
        Limits {
            max_body: MAX_BODY,
            eager: 4096,
            eager_if_fetched: 4096,
            can_get: true,
            gets_at_once: 0,
            sync_placement: true,
            max_write: 0,
            max_in_writes: 0,
            max_short_read: usize::MAX,
            guaranteed_body: MAX_BODY,
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        address.first().map(|byte| PeerId::from(*byte) % PEERS)
    }

    fn push(&mut self, _: PeerId, _: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        assert!(body.len() <= MAX_BODY);
        let mut wire = self.0.borrow_mut();
        wire.pushed += 1;
        if wire.moods & 1 != 0 && wire.pushed % 3 == 0 {
            return Push::Full;
        }
        Push::Done
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        for done in 0..budget {
            let Some(coming) = self.0.borrow_mut().coming.pop_front() else {
                return done;
            };
            if let Some(refused) = self.deliver(sink, coming) {
                self.0.borrow_mut().coming.push_front(refused);
                return done;
            }
        }
        budget
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        let remote = Remote::from([0; Remote::MAX]);
        Some(Exposed { remote, id: Some(7) })
    }

    fn get(&mut self, _: PeerId, _: &Remote, local: &UserIov, at: usize, len: usize, token: Option<Token>) -> Get {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= local.len()),
            "{len} bytes into {}",
            local.len()
        );
        let mut wire = self.0.borrow_mut();
        match (wire.moods >> 1 & 3, token) {
            (0, Some(token)) => {
                wire.later.push((token, *local));
                Get::Later
            }
            (1, _) => Get::Unsupported,
            _ => {
                local.write(at, &[0x77; 16]);
                Get::Done
            }
        }
    }
}

impl Scene<'_, Feed> {
    fn record(&mut self) -> Option<Coming> {
        let (from, header, body) = self.packet();
        Some(Coming::Record(from, header?, body))
    }

    fn named(&mut self) -> Coming {
        let from = PeerId::from(self.input.byte()) % PEERS;
        let access = [Access::Read, Access::Write][usize::from(self.input.byte() % 2)];
        let name = match self.input.byte() % 3 {
            0 => ExposedName::Sent(self.input.number() << 32 | self.input.number()),
            1 => ExposedName::Region(self.part()),
            _ => ExposedName::Nothing,
        };
        Coming::ExposedName(from, name, access)
    }

    fn step(&mut self, wire: &RefCell<Wire>) {
        let coming = match self.input.byte() % 24 {
            0..=9 => self.record(),
            10 | 11 => Some(self.named()),
            12 => Some(Coming::Finished(self.input.byte() % 2 == 0)),
            13 => Some(Coming::Gone(PeerId::from(self.input.byte()) % PEERS)),
            14..=16 => {
                self.receive();
                None
            }
            17 | 18 => {
                self.send();
                None
            }
            19 => {
                self.rma();
                None
            }
            20 => {
                self.atomic();
                None
            }
            21 => {
                self.cancel();
                None
            }
            _ => {
                wire.borrow_mut().moods = self.input.byte();
                None
            }
        };
        wire.borrow_mut().coming.extend(coming);
        self.progress();
    }
}

/// Whatever comes, memory stays what it is and an end is an end.
pub fn packets(data: &[u8]) {
    MEMORY.with(|memory| {
        let wire = Rc::new(RefCell::new(Wire::default()));
        wire.borrow_mut().mine = [OPEN, READ_ONLY, SENT].map(|at| memory.iov(at)).to_vec();
        let mut scene = Scene::new(data, memory, Feed(wire.clone()));
        for _ in 0..STEPS {
            if scene.input.0.is_empty() {
                break;
            }
            scene.step(&wire);
        }
        let ends = (0..PEERS).map(Coming::Gone);
        wire.borrow_mut().coming.extend(ends);
        wire.borrow_mut().moods = 0;
        for _ in 0..20 {
            scene.engine.progress(&mut scene.told);
        }
        assert_eq!(scene.engine.in_flight(), 0, "something waits for peers that are gone");
        memory.judge();
    });
}
