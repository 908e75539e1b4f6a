//! Packets through byte streams, socket pairs, of which no call moves more than a few bytes.
//!
//! It shows that the seam fits streams: the header is known before the body; a body is moved as it comes, over many
//! polls, into receives and leased regions; packets are written as there is room, from the application's memory; what
//! is refused stays in the socket; connections break and others follow. `link` is one connection.

mod link;
mod tests;

use crate::engine::op::{Error, Unreached};
use crate::engine::port::{
    Body, Contact, Exposed, ExposedName, Get, Limits, Loss, Notice, PeerId, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::user::UserIov;
use link::{Came, Die, Link};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// What precedes a body in the stream: its length, and the packet's header.
const PREFIX: usize = 4 + Header::SIZE;

/// Knows who lives, and has the sockets that their owners have not accepted: for whom, from whom.
#[derive(Default)]
struct Switchboard {
    dead: Vec<PeerId>,
    calls: VecDeque<(PeerId, PeerId, UnixStream)>,
}

/// An endpoint. The number of a peer is its place among the endpoints of one switchboard.
pub struct Stream {
    board: Rc<RefCell<Switchboard>>,
    me: PeerId,
    links: Vec<Link>,
    /// Peers whose death was told.
    told: Vec<PeerId>,
    /// Peers to which nothing can be sent from here, though they may send.
    out_of_reach: Vec<PeerId>,
    /// Of those it is said at first that they will be reached.
    has_hope: bool,
    die: Die,
    /// The last poll left something to read.
    more: bool,
}

impl Stream {
    pub fn connected(nodes: PeerId, seed: u64) -> Vec<Stream> {
        let board = Rc::<RefCell<Switchboard>>::default();
        let stream = |me: PeerId| Stream {
            board: board.clone(),
            me,
            links: (0..nodes).map(|_| Link::default()).collect(),
            told: Vec::new(),
            out_of_reach: Vec::new(),
            has_hope: false,
            die: Die(seed ^ u64::from(me)),
            more: false,
        };
        (0..nodes).map(stream).collect()
    }

    /// From now on nothing can be sent to this peer, which may send all the same.
    pub fn cannot_reach(&mut self, peer: PeerId) {
        self.out_of_reach.push(peer);
    }

    /// It can again.
    pub fn can_reach(&mut self, peer: PeerId) {
        self.out_of_reach.retain(|other| *other != peer);
    }

    /// Peers that cannot be reached are found to be so only after some pushes.
    pub fn be_hopeful(&mut self) {
        self.has_hope = true;
    }

    /// Nothing is under way here that goes on by itself.
    pub fn is_quiet(&self) -> bool {
        let board = self.board.borrow();
        !self.more && self.links.iter().all(Link::is_quiet) && board.calls.iter().all(|(to, ..)| *to != self.me)
    }

    /// The endpoint ends as if its process had died.
    pub fn die(&mut self) {
        self.links.iter_mut().for_each(Link::hang_up);
        let mut board = self.board.borrow_mut();
        board.calls.retain(|(to, _, socket)| {
            let stays = *to != self.me;
            if !stays {
                link::shut(socket);
            }
            stays
        });
        board.dead.push(self.me);
    }

    /// The connection to a peer breaks: what was not read is lost here; the peer may still read what it has.
    pub fn break_off(&mut self, peer: PeerId) {
        if self.links[peer as usize].is_up() {
            self.links[peer as usize].hang_up();
        }
    }

    fn is_dead(&self, peer: PeerId) -> bool {
        self.board.borrow().dead.contains(&peer)
    }

    /// Where a connection waits that a peer has made.
    fn call(&self, from: PeerId) -> Option<usize> {
        let calls = &self.board.borrow().calls;
        calls.iter().position(|(to, by, _)| (*to, *by) == (self.me, from))
    }

    /// Takes a connection that a peer has made, if one waits.
    fn accept(&mut self, from: PeerId) -> bool {
        let call = self.call(from);
        let call = call.and_then(|call| self.board.borrow_mut().calls.remove(call));
        let Some((_, _, socket)) = call else {
            return false;
        };
        let again = socket.try_clone().expect("a second handle");
        self.links[from as usize].connect(socket, again);
        true
    }

    fn dial(&mut self, to: PeerId) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        if to == self.me {
            return self.links[to as usize].connect(ours, theirs);
        }
        let again = ours.try_clone().expect("a second handle");
        self.links[to as usize].connect(ours, again);
        self.board.borrow_mut().calls.push_back((to, self.me, theirs));
    }

    /// Tells the engine of the end of a connection. Only after that is there another.
    fn tell_end<S: Sink>(&mut self, peer: PeerId, sink: &mut S) {
        self.links[peer as usize] = Link::default();
        if !self.is_dead(peer) || self.call(peer).is_some() {
            sink.gone(peer, Loss::Broken);
        } else if !self.told.contains(&peer) {
            self.told.push(peer);
            sink.gone(peer, Loss::Died);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.die();
    }
}

impl Transport for Stream {
    const PUSHES_LATER: bool = true;

    fn limits(&self) -> Limits {
        Limits {
            max_body: 1000,
            eager: 5000,
            eager_if_fetched: 5000,
            can_get: false,
            gets_at_once: 0,
            guaranteed_body: 1000,
            sync_placement: false,
            max_write: 0,
            max_in_writes: 0,
            max_short_read: usize::MAX,
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        Some(PeerId::from_le_bytes(address.try_into().ok()?))
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        if self.out_of_reach.contains(&to) {
            return match self.has_hope && self.die.roll(4) > 0 {
                true => Push::Full,
                false => Push::Unreachable(Unreached::Nobody),
            };
        }
        let (dead, called) = (self.is_dead(to), self.call(to).is_some());
        let Some(link) = self.links.get_mut(to as usize) else {
            return Push::Unreachable(Unreached::Nobody);
        };
        if dead {
            // One that was not connected would not hear of its end.
            link.over |= !link.is_up() && !called;
            return Push::Gone;
        }
        if link.over {
            return Push::Full;
        }
        if !link.is_up() && !self.accept(to) {
            self.dial(to);
        }
        self.links[to as usize].push(header, body, notice, &mut self.die)
    }

    fn connect(&mut self, to: PeerId) -> Contact {
        match self.out_of_reach.contains(&to) {
            true if self.has_hope => Contact::Soon,
            true => Contact::NoWay,
            false => Contact::Made,
        }
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        self.break_off(peer);
        true
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let mut calls = 1 + self.die.roll(40);
        let (mut done, nodes) = (0, self.links.len() as u64);
        let first = self.die.roll(nodes);
        self.more = false;
        for peer in (0..nodes).map(|n| ((n + first) % nodes) as PeerId) {
            if !self.links[peer as usize].is_up() && !self.links[peer as usize].over {
                self.accept(peer);
            }
            let why = if self.is_dead(peer) {
                Error::PeerGone
            } else {
                Error::Broken
            };
            let link = &mut self.links[peer as usize];
            link.write_on(sink, why, &mut self.die);
            while !link.over {
                if done == budget {
                    self.more = true;
                    break;
                }
                match link.read_on(peer, sink, &mut calls, &mut self.die) {
                    Came::Packet => done += 1,
                    Came::End => link.over = true,
                    Came::Enough => {
                        self.more = true;
                        break;
                    }
                    Came::Nothing => break,
                }
            }
            if link.over {
                self.tell_end(peer, sink);
            }
        }
        done
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}
