//! One endpoint: what it has posted, and what has become of that.

use super::address::sender_gid;
use super::peers::Peers;
use super::seam::{DatagramLink, Router};
use super::ways::{Held, Ways};
use super::{Address, PREFIX};
use crate::engine::op::{self, CompletedOp, Completion, CompletionLevel, Context, Error, MessageKind, Refused, Tell};
use crate::engine::port::PeerId;
use crate::sys::rdma::{Arrived, Done, DoneKind, Failure, Opcode, Piece, Sizes, Work};
use crate::transport::verbs::endpoint::{BATCH, NOTHING, error};
use crate::transport::verbs::memory::{Registrations, Remembered, Use};
use crate::util::user::{IOV_LIMIT, UserIov};
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct DatagramConfig {
    /// `inline`: as the queue pair answered.
    pub sizes: Sizes,
    /// The longest datagram.
    pub most: usize,
    /// Completions of receives say where the datagram came from.
    pub sourced: bool,
    pub warn: fn(&str),
}

type WayOf<L> = <<L as DatagramLink>::Router as Router>::Way;

pub struct DatagramEndpoint<L: DatagramLink> {
    /// Before `sends`: once its queue pair is gone, nothing goes their ways.
    link: L,
    address: [u8; Address::SIZE],
    config: DatagramConfig,
    memory: Arc<Registrations>,
    remembered: Remembered,
    ways: Arc<Ways<L::Router>>,
    peers: Peers<WayOf<L>>,
    sends: VecDeque<Sent<WayOf<L>>>,
    receives: VecDeque<Posted>,
    state: State,
    next_id: u64,
    /// Completions that were found on the way to sleep.
    found: VecDeque<Arrived>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Works,
    /// A request failed, and the device may do none after it: all that is posted comes back, then it works again.
    Failing,
    /// The device does not let it work again.
    Broken,
}

/// A send that has not completed.
struct Sent<W> {
    posted: Posted,
    /// Kept until then.
    _way: Arc<Held<W>>,
}

#[derive(Clone, Copy, Debug)]
struct Posted {
    id: u64,
    op: CompletedOp,
    context: Context,
    tell: Tell,
    body: UserIov,
}

const NO_ARRIVAL: Arrived = Arrived {
    done: NOTHING,
    sender: 0,
    has_header: false,
};

impl<L: DatagramLink> DatagramEndpoint<L> {
    /// `address`: of the queue pair that the link is to.
    pub fn new(
        link: L,
        address: &Address,
        ways: Arc<Ways<L::Router>>,
        memory: Arc<Registrations>,
        config: DatagramConfig,
    ) -> DatagramEndpoint<L> {
        DatagramEndpoint {
            link,
            address: address.to_bytes(),
            config,
            memory,
            remembered: Remembered::default(),
            ways,
            peers: Peers::new(),
            sends: VecDeque::new(),
            receives: VecDeque::new(),
            state: State::Works,
            next_id: 0,
            found: VecDeque::new(),
        }
    }

    pub fn local_address(&self) -> &[u8] {
        &self.address
    }

    /// Sends in flight, and posted receives.
    pub fn unfinished(&self) -> (usize, usize) {
        (self.sends.len(), self.receives.len())
    }

    /// The number of an address; None: there is no way there.
    pub fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        let address = Address::from_bytes(address)?;
        let number = self.peers.number(&address, &self.ways);
        number
            .inspect_err(|error| (self.config.warn)(&format!("there is no way to a peer: {error}")))
            .ok()
    }

    pub fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.peers.address(peer)
    }

    pub fn send(&mut self, send: &op::Send) -> Result<(), Refused> {
        if send.kind != MessageKind::Untagged || send.level == CompletionLevel::Delivery {
            return Err(Refused::Unsupported);
        }
        self.works(self.sends.len(), self.config.sizes.sends)?;
        let inline = send.body.len() <= self.config.sizes.inline as usize;
        if send.body.len() > self.config.most || send.inject && !inline {
            return Err(Refused::TooLong);
        }
        let purpose = if inline { Use::Within } else { Use::Reads };
        // Its address was removed from the vector.
        let held = self.peers.get(send.to).ok_or(Refused::Invalid)?;
        let (pieces, count) = self.pieces(&send.body, self.config.sizes.send_pieces, purpose)?;
        let work = Work {
            id: self.new_id(false),
            opcode: Opcode::Send,
            // A card carries four bytes.
            data: send.data.map(|data| data as u32),
            remote: (0, 0),
            signaled: true,
            inline,
            fence: send.fence,
        };
        // SAFETY: an operation's memory stays the application's until its completion, as whoever made the `UserIov`
        // promised; with FI_INJECT it is inline. `sends` holds the way.
        let posted = unsafe {
            self.link
                .post_send(&work, &pieces[..count], &held.way, held.address.pair)
        };
        posted.map_err(|error| self.not_posted(&error))?;
        self.sends.push_back(Sent {
            posted: Posted {
                id: work.id,
                op: CompletedOp::Send,
                context: send.context,
                tell: send.tell,
                body: send.body,
            },
            _way: held,
        });
        Ok(())
    }

    pub fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        if recv.kind != MessageKind::Untagged || recv.multi.is_some() {
            return Err(Refused::Unsupported);
        }
        self.works(self.receives.len(), self.config.sizes.receives)?;
        if recv.body.len() < PREFIX {
            (self.config.warn)(&format!(
                "a receive of {} bytes: the first {PREFIX} are for the header, as FI_MSG_PREFIX says",
                recv.body.len()
            ));
            return Err(Refused::Invalid);
        }
        let (pieces, count) = self.pieces(&recv.body, self.config.sizes.receive_pieces, Use::Writes)?;
        let id = self.new_id(true);
        // SAFETY: as in `send`.
        let posted = unsafe { self.link.post_receive(id, &pieces[..count]) };
        posted.map_err(|error| self.not_posted(&error))?;
        self.receives.push_back(Posted {
            id,
            op: CompletedOp::Recv,
            context: recv.context,
            tell: recv.tell,
            body: recv.body,
        });
        Ok(())
    }

    /// Whether one more can be posted where so many of so many are.
    fn works(&self, posted: usize, most: u32) -> Result<(), Refused> {
        match self.state {
            State::Broken => Err(Refused::Invalid),
            State::Failing => Err(Refused::Again),
            State::Works if posted >= most as usize => Err(Refused::Again),
            State::Works => Ok(()),
        }
    }

    /// Greater than all before; odd for receives.
    fn new_id(&mut self, receives: bool) -> u64 {
        self.next_id += 1;
        self.next_id << 1 | u64::from(receives)
    }

    fn pieces(&mut self, body: &UserIov, most: u32, purpose: Use) -> Result<([Piece; IOV_LIMIT], usize), Refused> {
        self.memory
            .pieces(body, most, purpose, &mut self.remembered, self.config.warn)
    }

    fn not_posted(&self, error: &std::io::Error) -> Refused {
        if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EAGAIN)) {
            return Refused::Again; // the queue is full
        }
        (self.config.warn)(&format!("the device takes no request: {error}"));
        Refused::Invalid
    }

    /// Reports what has completed.
    pub fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        while let Some(arrived) = self.found.pop_front() {
            self.completed(&arrived, report);
        }
        let mut room = [NO_ARRIVAL; BATCH];
        while self.state != State::Broken {
            let Ok(count) = self.link.poll(&mut room) else {
                self.give_up("the completion queue is broken", report);
                break;
            };
            for arrived in room.iter().take(count) {
                self.completed(arrived, report);
            }
            if count < BATCH {
                break;
            }
        }
        if self.state == State::Failing && self.sends.is_empty() && self.receives.is_empty() {
            self.state = State::Works;
            if let Err(error) = self.link.renew() {
                self.give_up(&format!("the queue pair does not work again: {error}"), report);
            }
        }
    }

    fn completed(&mut self, arrived: &Arrived, report: &mut dyn FnMut(Completion)) {
        let done = &arrived.done;
        // Of each direction they complete in order; those before one have ended well without being told.
        while let Some(posted) = self.next_until(done.id) {
            match done.failure {
                _ if posted.id != done.id => report(posted.completion(&NOTHING, None)),
                Some(failure) => report(posted.completion(done, Some(failure))),
                None => {
                    let source = self.sender(arrived, &posted);
                    let end = posted.completion(done, None);
                    report(Completion { source, ..end });
                }
            }
        }
        if let (Some(failure), State::Works) = (done.failure, self.state) {
            (self.config.warn)(&format!(
                "an operation failed, which ends all others posted: {failure:?}"
            ));
            self.state = State::Failing;
            if let Err(error) = self.link.fail() {
                self.give_up(&format!("the queue pair cannot be emptied: {error}"), report);
            }
        }
    }

    /// Takes the next operation that has ended when this one has.
    fn next_until(&mut self, id: u64) -> Option<Posted> {
        if id & 1 == 0 {
            self.sends.front().filter(|sent| sent.posted.id <= id)?;
            self.sends.pop_front().map(|sent| sent.posted)
        } else {
            self.receives.front().filter(|posted| posted.id <= id)?;
            self.receives.pop_front()
        }
    }

    /// Who sent what a receive got, if a vector has the address and the program wants to know.
    fn sender(&mut self, arrived: &Arrived, posted: &Posted) -> Option<PeerId> {
        if !(self.config.sourced && arrived.has_header && posted.op == CompletedOp::Recv) {
            return None;
        }
        let mut header = [0; PREFIX];
        posted.body.read(0, &mut header);
        self.peers.sender(&(sender_gid(&header)?, arrived.sender), &self.ways)
    }

    /// The device will not end them.
    fn give_up(&mut self, why: &str, report: &mut dyn FnMut(Completion)) {
        (self.config.warn)(why);
        self.state = State::Broken;
        // If it can still be told, it leaves their memory alone.
        let _ = self.link.fail();
        while let Some(posted) = self.next_until(u64::MAX - 1).or_else(|| self.next_until(u64::MAX)) {
            report(posted.completion(&NOTHING, Some(Failure::Flushed)));
        }
    }

    /// Before a sleep: what comes from now on makes `wake_fd` readable. False: there is something to do.
    pub fn arm(&mut self) -> bool {
        if !self.found.is_empty() || self.link.notify().is_err() {
            return false;
        }
        let mut room = [NO_ARRIVAL; BATCH];
        let count = self.link.poll(&mut room).unwrap_or(0);
        self.found.extend(&room[..count]);
        count == 0
    }

    pub fn wake_fd(&self) -> RawFd {
        self.link.wake_fd()
    }
}

impl Posted {
    fn completion(&self, done: &Done, failure: Option<Failure>) -> Completion {
        let received = self.op == CompletedOp::Recv;
        let error = failure.map(|failure| match failure {
            // It was taken back with the one that failed.
            Failure::Flushed => Error::Canceled,
            failure => error(failure),
        });
        Completion {
            op: self.op,
            kind: MessageKind::Untagged,
            context: self.context,
            tell: self.tell,
            len: match error {
                Some(_) => 0,
                None if received => done.len,
                None => self.body.len(),
            },
            buf: 0,
            tag: 0,
            data: done.data.filter(|_| done.kind == DoneKind::Received).map(u64::from),
            source: None,
            released: false,
            peeked: false,
            failure: error.map(|error| op::Failure { error, overflow: 0 }),
        }
    }
}
