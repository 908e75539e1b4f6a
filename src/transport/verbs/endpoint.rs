//! One endpoint: what it has posted, and what has become of that.
//!
//! A queue pair ends the requests of each direction in the order in which they were posted, so two queues know all.

use super::connection::{Happened, Stage};
use super::listener::requests;
use super::memory::{Registrations, Remembered, Use};
use super::seam::Link;
use super::sends::{MARK_ROOM, Sends};
use super::shared::SharedPool;
use crate::engine::op::{self, Access, CompletedOp, Completion, Context, Error, MessageKind, Refused, Tell, Unreached};
use crate::sys::rdma::{Done, DoneKind, Failure, Piece, Sizes};
use crate::util::user::{IOV_LIMIT, UserIov};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Config {
    pub sizes: Sizes,
    /// The address that it connects from, if it matters.
    pub from: Option<SocketAddr>,
    /// See `Link::set_retry_timer`.
    pub retry_timer: u8,
    /// The device has atomics.
    pub atomics: bool,
    pub warn: fn(&str),
}

pub struct VerbsEndpoint<L: Link> {
    pub(super) link: L,
    pub(super) config: Config,
    pub(super) stage: Stage,
    pub(super) happened: VecDeque<Happened>,
    /// What is heard when all that was posted has come back.
    pub(super) last_word: Option<Happened>,
    /// For the other side, until there is a way to it.
    pub(super) data: Vec<u8>,
    memory: Arc<Registrations>,
    remembered: Remembered,
    pub(super) sends: Sends,
    receives: VecDeque<Posted>,
    /// Instead of receives of its own.
    shared: Option<Arc<SharedPool<L::Receives>>>,
    /// Receives that wait for the queue pair, the last of `receives`.
    early: Vec<UserIov>,
    /// Those of them that the device did not take.
    lost: Vec<Posted>,
    has_pair: bool,
    /// The device is gone: what is posted does not come back.
    pub(super) expects_nothing: bool,
    /// Bytes that a request can carry within itself.
    pub(super) inline: usize,
    next_id: u64,
    /// Completions that were found on the way to sleep.
    found: VecDeque<Done>,
    polls: u32,
    /// `requests`, when it last looked at what has become of the connection.
    requests: u32,
}

/// A request or receive that has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub id: u64,
    pub op: CompletedOp,
    pub context: Context,
    pub tell: Tell,
    pub len: usize,
}

/// While a connection stands, every how manieth poll looks whether it still does, which is a system call.
const LOOK_EVERY: u32 = 64;

pub(super) const BATCH: usize = 16;

pub(super) const NOTHING: Done = Done {
    id: 0,
    kind: DoneKind::Other,
    failure: None,
    len: 0,
    data: None,
    pair: 0,
};

impl<L: Link> VerbsEndpoint<L> {
    pub fn new(link: L, memory: Arc<Registrations>, config: Config) -> VerbsEndpoint<L> {
        VerbsEndpoint {
            link,
            config,
            stage: Stage::Fresh,
            happened: VecDeque::new(),
            last_word: None,
            data: Vec::new(),
            memory,
            remembered: Remembered::default(),
            sends: Sends::default(),
            receives: VecDeque::new(),
            shared: None,
            early: Vec::new(),
            lost: Vec::new(),
            has_pair: false,
            expects_nothing: false,
            inline: 0,
            next_id: 0,
            found: VecDeque::new(),
            polls: 0,
            requests: requests(),
        }
    }

    /// Receives from now on what is posted there. Before it connects.
    pub fn share(&mut self, pool: &Arc<SharedPool<L::Receives>>) -> io::Result<()> {
        if self.has_pair || self.stage != Stage::Fresh || self.shared.is_some() || !self.receives.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // All of them may be taken by this connection before anybody looks.
        let room = (self.config.sizes.sends + MARK_ROOM) as usize + pool.room();
        self.link.make_room(room)?;
        self.link.share(pool.receives());
        self.shared = Some(pool.clone());
        Ok(())
    }

    /// Sends in flight, and posted receives.
    pub fn unfinished(&self) -> (usize, usize) {
        (self.sends.len(), self.receives.len())
    }

    /// Makes the queue pair, and posts the receives that were waiting for it.
    pub(super) fn open_pair(&mut self) -> io::Result<()> {
        let sizes = Sizes {
            sends: self.config.sizes.sends.saturating_add(MARK_ROOM),
            ..self.config.sizes
        };
        self.inline = self.link.make_pair(&sizes)?.inline as usize;
        self.has_pair = true;
        let early = core::mem::take(&mut self.early);
        let first = self.receives.len() - early.len();
        for (at, body) in early.iter().enumerate() {
            let id = self.receives[first + at].id;
            if let Err(why) = self.post_receive(id, body) {
                self.lost.extend(self.receives.drain(first + at..));
                return Err(io::Error::other(format!("a receive that was posted before: {why:?}")));
            }
        }
        Ok(())
    }

    /// Greater than all before; odd for receives.
    pub(super) fn new_id(&mut self, receives: bool) -> u64 {
        self.next_id += 1;
        self.next_id << 1 | u64::from(receives)
    }

    pub fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        if recv.kind != MessageKind::Untagged || recv.multi.is_some() || self.shared.is_some() {
            return Err(Refused::Unsupported);
        }
        if self.receives.len() >= self.config.sizes.receives as usize {
            return Err(Refused::Again);
        }
        let id = self.new_id(true);
        if self.has_pair {
            self.post_receive(id, &recv.body)?;
        } else {
            // What is wrong with it is told now.
            self.pieces(&recv.body, self.config.sizes.receive_pieces, Use::Writes)?;
            self.early.push(recv.body);
        }
        self.receives.push_back(Posted {
            id,
            op: CompletedOp::Recv,
            context: recv.context,
            tell: recv.tell,
            len: recv.body.len(),
        });
        Ok(())
    }

    fn post_receive(&mut self, id: u64, body: &UserIov) -> Result<(), Refused> {
        let (pieces, count) = self.pieces(body, self.config.sizes.receive_pieces, Use::Writes)?;
        // SAFETY: as in `start`.
        let posted = unsafe { self.link.post_receive(id, &pieces[..count]) };
        posted.map_err(|error| self.not_posted(&error))
    }

    pub(super) fn not_posted(&self, error: &io::Error) -> Refused {
        if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EAGAIN)) {
            return Refused::Again; // the queue is full
        }
        (self.config.warn)(&format!("the device takes no request: {error}"));
        Refused::Invalid
    }

    pub(super) fn pieces(
        &mut self,
        body: &UserIov,
        most: u32,
        purpose: Use,
    ) -> Result<([Piece; IOV_LIMIT], usize), Refused> {
        self.memory
            .pieces(body, most, purpose, &mut self.remembered, self.config.warn)
    }

    /// Reports what has completed, and moves the connection on.
    pub fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        self.ring();
        self.polls = self.polls.wrapping_add(1);
        let stands = matches!(self.stage, Stage::Connected | Stage::Over);
        // Before the completions: what the other side sent before its end is taken first.
        let requests = requests();
        if !stands || self.polls % LOOK_EVERY == 0 || requests != self.requests {
            self.requests = requests;
            self.look();
        }
        while let Some(done) = self.found.pop_front() {
            self.completed(&done, report);
        }
        let mut room = [NOTHING; BATCH];
        while self.has_pair {
            let Ok(count) = self.link.poll(&mut room) else {
                (self.config.warn)("the completion queue is broken");
                self.has_pair = false;
                self.end(Some(Happened::Closed));
                break;
            };
            room.iter().take(count).for_each(|done| self.completed(done, report));
            if count < BATCH {
                break;
            }
        }
        self.report_lost(report);
        if self.stage == Stage::Ending {
            self.finish(report);
        }
    }

    /// A device flushes all that was posted to a queue pair in error. What never came to one is ended here.
    fn finish(&mut self, report: &mut dyn FnMut(Completion)) {
        let ended = |posted: Posted| posted.completion(&NOTHING, Some(Error::PeerGone));
        self.lost.drain(..).for_each(|posted| report(ended(posted)));
        if !self.has_pair || self.expects_nothing {
            self.early.clear();
            self.sends.take_all().for_each(|posted| report(ended(posted)));
            self.receives.drain(..).for_each(|posted| report(ended(posted)));
        }
        if self.sends.end_is_unknown() {
            self.sends.take_all().for_each(|posted| report(ended(posted)));
        }
        if self.sends.is_empty() && self.receives.is_empty() {
            self.stage = Stage::Over;
            self.happened.extend(self.last_word.take());
        }
    }

    fn completed(&mut self, done: &Done, report: &mut dyn FnMut(Completion)) {
        let queue = match (done.id & 1, &self.shared) {
            (0, _) => self.sends.posted(),
            (_, None) => &mut self.receives,
            (_, Some(pool)) => {
                if let Some(posted) = pool.take(done.id) {
                    report(posted.completion(done, done.failure.map(error)));
                }
                return self.judge(done);
            }
        };
        // Those before it have ended well without being told.
        while let Some(posted) = queue.front().copied().filter(|posted| posted.id <= done.id) {
            queue.pop_front();
            match done.failure {
                Some(failure) if posted.id == done.id => report(posted.completion(done, Some(error(failure)))),
                _ => report(posted.completion(done, None)),
            }
        }
        self.judge(done);
    }

    /// A failed operation ends the connection. One that is flushed while it stands says that the device has ended it.
    fn judge(&mut self, done: &Done) {
        let Some(failure) = done.failure.filter(|_| self.stage == Stage::Connected) else {
            return;
        };
        (self.config.warn)(&format!("an operation failed, which ends the connection: {failure:?}"));
        self.end(Some(Happened::Closed));
    }

    /// Before a sleep: what comes from now on makes `wake_fd` readable. False: there is something to do.
    pub fn arm(&mut self) -> bool {
        self.ring();
        if self.sends.has_lost() || !self.found.is_empty() || !self.happened.is_empty() || self.link.notify().is_err() {
            return false;
        }
        let mut room = [NOTHING; BATCH];
        let count = self.link.poll(&mut room).unwrap_or(0);
        self.found.extend(&room[..count]);
        let news = self.look();
        count == 0 && !news && self.stage != Stage::Ending
    }

    pub fn wake_fd(&self) -> RawFd {
        self.link.wake_fd()
    }
}

impl Posted {
    pub(super) fn completion(&self, done: &Done, failure: Option<Error>) -> Completion {
        let received = self.op == CompletedOp::Recv;
        // A write with data takes a receive, of which only the context is used.
        let op = match done.kind {
            DoneKind::Written if received => CompletedOp::Target {
                access: Access::Write,
                key: 0,
                atomic: false,
            },
            _ => self.op,
        };
        Completion {
            op,
            kind: MessageKind::Untagged,
            context: self.context,
            tell: self.tell,
            len: match failure {
                Some(_) => 0,
                None if received => done.len,
                None => self.len,
            },
            buf: 0,
            tag: 0,
            data: done.data.filter(|_| received).map(u64::from),
            source: None,
            released: false,
            peeked: false,
            failure: failure.map(|error| op::Failure { error, overflow: 0 }),
        }
    }
}

/// A flush is told as the end of the peer, which programs hear as FI_ECANCELED on a connected endpoint.
pub(super) fn error(failure: Failure) -> Error {
    match failure {
        Failure::Flushed => Error::PeerGone,
        Failure::TooLong => Error::Truncated,
        Failure::NotRegistered => Error::NotRegistered,
        Failure::NoAccess => Error::NoRights,
        Failure::NoAnswer => Error::Unreachable(Unreached::TimedOut),
        Failure::NotReady => Error::Broken,
        Failure::Refused | Failure::Other(_) => Error::Protocol,
    }
}
