//! A connection that both ends have agreed on: what is sent and received on it.
//!
//! Knows one socket, and nothing of peers, handshakes or time. Called by `mod`, `closing` and `sleeping`.

use super::handshake::frame;
use super::receive::{Input, Stop};
use super::send_buffer::{COPIED, PREFIX, SendBuffer};
use crate::engine::port::{Body, Notice, PeerId, Push, Sink};
use crate::engine::wire::Header;
use crate::sys::forks::ParentFd;
use crate::sys::stream;
use socket2::SockRef;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::AsFd;

/// Reads of one link before others have their turn.
const READS: usize = 4;

/// A link that the peer has given up, but which its machine has not ended, ends when for so long nothing came on it.
const SUPERSEDED_MS: u64 = 2_000;

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer said that it closes.
    Goodbye,
    /// The peer, or its machine, or the network, ended it.
    Cut,
    /// Nothing was heard of the peer's machine.
    Silent,
    /// The peer broke the protocol.
    Bad(&'static str),
}

pub(super) struct Link {
    pub socket: ParentFd,
    pub out: SendBuffer,
    input: Input,
    /// There may be bytes in the socket.
    pub readable: bool,
    /// The other side sends no more: the socket is read to its end.
    pub ending: bool,
    /// The poll after which something was pushed last: what follows before the next one is gathered.
    pushed: u64,
    /// In the transport's lists of links to be read, and to be flushed.
    pub in_active: bool,
    pub in_unsent: bool,
    /// Polls in which nothing came, one after the other.
    pub idle: u32,
    /// Nothing more comes: when all that was read is delivered, the link ends.
    pub end: Option<End>,
    /// Another connection waits to take its place: when it is looked at next whether anything still comes on this one.
    superseded: Option<u64>,
    /// Writing failed, or the peer has given the connection up.
    pub broken: bool,
    /// Nothing was heard of the peer's machine for too long.
    silent: bool,
    /// When something was first seen to wait for the other machine, with nothing heard of it since.
    waits_since: Option<u64>,
    /// Nothing more is written: the kernel says so to the other side.
    pub said_all: bool,
}

impl Link {
    pub(super) fn new(socket: ParentFd) -> Link {
        Link {
            socket,
            out: SendBuffer::default(),
            input: Input::default(),
            readable: true,
            ending: false,
            pushed: 0,
            in_active: false,
            in_unsent: false,
            idle: 0,
            end: None,
            superseded: None,
            broken: false,
            silent: false,
            waits_since: None,
            said_all: false,
        }
    }

    /// The first packet since the last poll leaves at once. Further ones gather if somebody waits for a notice or an
    /// answer, who will poll for it, or if `flush` follows. `poll`: the number of that poll, or 0 if nobody may poll
    /// soon.
    #[inline]
    pub(super) fn push(
        &mut self,
        header: &Header,
        body: &Body<'_>,
        notice: Option<Notice>,
        poll: u64,
        flush_follows: bool,
    ) -> Push {
        // Between the end of a connection and `gone` there is no room.
        if self.broken || self.end.is_some() || !self.out.has_room() {
            return Push::Full;
        }
        let may_wait = notice.is_some() || flush_follows;
        let first = core::mem::replace(&mut self.pushed, poll) != poll || poll == 0;
        let to_tell = Notice::to_tell(notice);
        if body.len() > COPIED {
            match self.push_long(header, body, to_tell) {
                None => return Push::Full,
                Some(true) => return Push::Later,
                Some(false) => {}
            }
        } else {
            self.out.add(header, body);
            if first || !may_wait || self.out.is_much() {
                self.flush();
            }
            // Who is told nothing of its end may never call again, so it must not stay here.
            if !may_wait && self.out.blocked && self.out.take_back(PREFIX + body.len()) {
                return Push::Full;
            }
        }
        let waits = match (to_tell, notice) {
            (Some(notice), _) => self.out.mark(notice.token),
            (None, Some(_)) => !self.out.is_empty(),
            (None, None) => false,
        };
        if waits { Push::Later } else { Push::Done }
    }

    /// Gives the socket a body from where it is. Returns whether the rest of it is lent; None: nothing is taken.
    #[inline]
    fn push_long(&mut self, header: &Header, body: &Body<'_>, to_tell: Option<Notice>) -> Option<bool> {
        if self.out.blocked {
            return None;
        }
        let lent = self.out.send_behind(&self.socket, header, body, to_tell);
        lent.inspect_err(|error| self.fail(error)).ok()
    }

    /// What is gathered leaves as far as there is room.
    #[inline]
    pub(super) fn flush(&mut self) {
        if let Err(error) = self.out.flush(&self.socket) {
            self.fail(&error);
        }
    }

    /// What the peer sent before can still be read. Not every error ends the connection, as EFAULT for memory that is
    /// gone: the peer is told of the end, and ends it.
    #[cold]
    fn fail(&mut self, error: &io::Error) {
        self.silent |= is_silence(error);
        self.write_no_more();
    }

    /// The socket is still read to its end, which the peer may put there when it sees ours.
    fn write_no_more(&mut self) {
        self.broken = true;
        let _ = SockRef::from(&self.socket).shutdown(Shutdown::Write);
        self.readable = true;
    }

    /// The kernel tells that there is room again.
    pub(super) fn writable(&mut self) {
        self.out.blocked = false;
    }

    /// Whether a poll would deliver something, or find the end.
    pub(super) fn has_news(&self) -> bool {
        self.readable || self.input.holds() || self.end.is_some()
    }

    /// Whether all that was read is delivered, and no more comes.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some() && !self.input.holds()
    }

    /// Delivers about `budget` packets at most. Returns how many.
    pub(super) fn receive<S: Sink>(&mut self, from: PeerId, sink: &mut S, buffer: &mut [u8], budget: usize) -> usize {
        let mut done = 0;
        let mut stop = self.input.resume(from, sink, budget, &mut done);
        for _ in 0..READS {
            if stop != Stop::Empty || self.end.is_some() {
                break;
            }
            let Some(next) = self.read(from, sink, buffer, budget, &mut done) else {
                break;
            };
            stop = next;
            // Copying what was read takes so long that the end of a body has mostly come meanwhile.
            if !self.readable && !self.input.is_near_end_of_body() {
                break;
            }
        }
        match stop {
            Stop::Goodbye => self.finish(End::Goodbye),
            Stop::Bad(what) => self.finish(End::Bad(what)),
            Stop::Empty | Stop::Budget | Stop::Refused => {}
        }
        done
    }

    /// Nothing behind this is delivered.
    fn finish(&mut self, end: End) {
        self.input.clear();
        self.readable = false;
        self.end = Some(end);
    }

    /// Reads once. None: there is nothing.
    #[inline]
    fn read<S: Sink>(
        &mut self,
        from: PeerId,
        sink: &mut S,
        buffer: &mut [u8],
        budget: usize,
        done: &mut usize,
    ) -> Option<Stop> {
        let held = self.input.begin(buffer);
        let (came, first, most) = loop {
            // Asked again each time: a region may be closed by another thread.
            let (first, most) = self.input.room(buffer.len() - held);
            let place = buffer.get_mut(held..held + most).unwrap_or_default();
            match self.input.read(&self.socket, first, place) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                came => break (came, first, most),
            }
        };
        let (came, ended) = match came {
            Ok(came @ 1..) => (came, false),
            Ok(0) => (0, true),
            Err(error) => {
                self.silent |= is_silence(&error);
                (0, error.kind() != ErrorKind::WouldBlock)
            }
        };
        self.readable = came == first + most || self.ending && !ended;
        if ended {
            self.end = Some(if self.silent { End::Silent } else { End::Cut });
        }
        let placed = came.min(first);
        let bytes = buffer.get(..held + came - placed).unwrap_or_default();
        let stop = self.input.came(placed, bytes, from, sink, budget, done);
        (came > 0).then_some(stop)
    }

    /// The peer has given it up, and connects anew. What it sent before is delivered first: its machine may still have
    /// some of that, and ends the connection behind it, unless it is gone.
    pub(super) fn supersede(&mut self, now: u64) {
        self.superseded = Some(now + SUPERSEDED_MS);
        self.write_no_more();
    }

    /// When `end_if_superseded` is to be called.
    pub(super) fn superseded_until(&self) -> Option<u64> {
        self.superseded.filter(|_| self.end.is_none())
    }

    /// Ends one that was given up if nothing more comes.
    pub(super) fn end_if_superseded(&mut self, now: u64) {
        let quiet = match self.has_news() {
            true => 0,
            false => stream::hearing(self.socket.as_fd()).map_or(SUPERSEDED_MS, |hearing| hearing.came_ms),
        };
        match SUPERSEDED_MS.saturating_sub(quiet) {
            0 => self.end = Some(End::Cut),
            left => self.superseded = Some(now + left),
        }
    }

    /// Ends it here and now: nothing of it is delivered, sent or told any more.
    pub(super) fn cut(&mut self) {
        self.out.clear();
        self.finish(End::Cut);
    }

    /// How long something has waited for the other machine to acknowledge it, in milliseconds, as far as it was asked.
    pub(super) fn silent_for(&mut self, now: u64) -> u64 {
        let heard = match stream::hearing(self.socket.as_fd()) {
            Ok(hearing) if hearing.waits => now.saturating_sub(hearing.heard_ms),
            _ => {
                self.waits_since = None;
                return 0;
            }
        };
        let since = self.waits_since.map_or(now, |since| since.max(heard));
        self.waits_since = Some(since);
        now - since
    }

    /// As `cut`, because the other machine is silent.
    pub(super) fn give_up(&mut self) {
        self.out.clear();
        self.finish(End::Silent);
    }

    /// The last word: nothing follows.
    pub(super) fn say_goodbye(&mut self) {
        self.out.end_with(frame::GOODBYE);
        self.flush();
    }
}

/// Whether the kernel has given a connection up; by a message of a router it may know more.
fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
    )
}
