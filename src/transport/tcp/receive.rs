//! The stream of one peer taken apart: packets are given to the engine as they come, in any pieces.
//!
//! A packet that lies whole in what was read is offered where it lies. A longer body goes on from the socket straight
//! to where the engine wants it. What the engine refuses stays here. Every word is checked before anything is done with
//! it; nothing is allocated by a peer's word but a body that the engine asked for, of at most `MAX_BODY` bytes. Knows
//! no connection. Called by `link`.

use super::config::MAX_BODY;
use super::handshake::frame;
use super::send_buffer::{PAGE, PREFIX};
use crate::engine::port::{PeerId, Placement, Sink, Token};
use crate::engine::wire::Header;
use crate::sys::forks::ParentFd;
use crate::sys::stream::{self, First, Part};
use crate::util::regions::Lease;
use crate::util::user::UserIov;
use std::io;
use std::os::fd::AsFd;

/// From this much of a body on, little is read behind it, so that the next body goes to its place as well.
const LONG: usize = 16 << 10;
const BEHIND_LONG: usize = 4 << 10;

/// If no more than this is left of a body, the socket is read once more though it was just empty. The loopback
/// interface carries pieces of this size.
const LAST_PIECE: usize = 64 << 10;

/// Why no more is delivered of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing whole is left.
    Empty,
    Budget,
    Refused,
    Goodbye,
    /// The peer does not keep to the protocol.
    Bad(&'static str),
}

/// What is read of any peer goes here, but for the rest of long bodies. It begins at a page, as what the kernel has of
/// a peer mostly does: so they are copied quickly (`send_buffer::TOO_NEAR`).
pub(super) struct Buffer {
    bytes: Vec<u8>,
    begin: usize,
}

impl Buffer {
    const LEN: usize = 64 << 10;

    pub(super) fn new() -> Buffer {
        let bytes = vec![0; Buffer::LEN + PAGE];
        let begin = PAGE - bytes.as_ptr().addr() % PAGE;
        Buffer { bytes, begin }
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let behind = self.bytes.get_mut(self.begin..).unwrap_or_default();
        behind.get_mut(..Buffer::LEN).unwrap_or_default()
    }
}

enum Target {
    Into {
        iov: UserIov,
        at: usize,
        token: Token,
    },
    /// Part of a region; false: it was closed before all was in place.
    Leased {
        lease: Lease,
        token: Token,
        holds: bool,
    },
    Keep {
        buffer: Vec<u8>,
        token: Token,
    },
    Drop,
    /// No packet's body: it stands before one, and means nothing.
    Pad,
}

impl Target {
    /// None: the engine refuses it.
    fn of(placement: Placement) -> Option<Target> {
        match placement {
            Placement::Into { iov, at, token } => Some(Target::Into { iov, at, token }),
            Placement::Leased { lease, token } => Some(Target::Leased {
                lease,
                token,
                holds: true,
            }),
            Placement::Keep { buffer, token } => Some(Target::Keep { buffer, token }),
            Placement::Drop => Some(Target::Drop),
            Placement::Refuse => None,
        }
    }
}

/// A body of which a part has come.
struct Arriving {
    target: Target,
    done: usize,
    len: usize,
}

impl Arriving {
    fn left(&self) -> usize {
        self.len - self.done
    }

    /// Takes the next bytes; says how many were the body's.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let bytes = bytes.get(..self.left()).unwrap_or(bytes);
        match &mut self.target {
            Target::Into { iov, at, .. } => {
                iov.write(at.saturating_add(self.done), bytes);
            }
            Target::Leased { lease, holds, .. } => *holds = *holds && lease.write(self.done, bytes),
            Target::Keep { buffer, .. } => {
                let place = buffer.get_mut(self.done..).and_then(|rest| rest.get_mut(..bytes.len()));
                if let Some(place) = place {
                    place.copy_from_slice(bytes);
                }
            }
            Target::Drop | Target::Pad => {}
        }
        self.done += bytes.len();
        bytes.len()
    }

    fn end<S: Sink>(self, sink: &mut S) {
        match self.target {
            Target::Into { token, .. } => sink.placed(token, None),
            Target::Leased { token, holds: true, .. } => sink.placed(token, None),
            Target::Leased { token, .. } => sink.cut(token),
            Target::Keep { buffer, token } => sink.placed(token, Some(buffer)),
            Target::Drop | Target::Pad => {}
        }
    }
}

/// What stands before a body, which has this length, and what follows. No header: the body is a pad. `Stop::Empty`: it
/// has not come whole.
fn take_prefix(bytes: &[u8]) -> Result<(Option<Header>, usize, &[u8]), Stop> {
    let (word, after) = bytes.split_first_chunk().ok_or(Stop::Empty)?;
    let word = u32::from_le_bytes(*word);
    let is_pad = match word & frame::KIND {
        frame::PACKET => false,
        frame::PAD => true,
        frame::GOODBYE => return Err(Stop::Goodbye),
        _ => return Err(Stop::Bad("an unknown word")),
    };
    let len = (word & frame::LENGTH) as usize;
    if len > MAX_BODY {
        return Err(Stop::Bad("a packet that is too long"));
    }
    if is_pad {
        return Ok((None, len, after));
    }
    let (header, after) = after.split_first_chunk().ok_or(Stop::Empty)?;
    let header = Header::decode(header).ok_or(Stop::Bad("an unknown packet"))?;
    Ok((Some(header), len, after))
}

#[derive(Default)]
pub(super) struct Input {
    /// Bytes that were read and not delivered: the beginning of a packet, or what the engine refused.
    held: Vec<u8>,
    /// With a body, nothing is held.
    body: Option<Arriving>,
}

impl Input {
    /// Whether there may be something to deliver without reading.
    pub(super) fn holds(&self) -> bool {
        self.held.len() >= PREFIX
    }

    /// Whether little is left to come of a body.
    pub(super) fn is_near_end_of_body(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.left() <= LAST_PIECE)
    }

    /// Delivers what was held back.
    pub(super) fn resume<S: Sink>(&mut self, from: PeerId, sink: &mut S, budget: usize, done: &mut usize) -> Stop {
        if self.held.is_empty() {
            return Stop::Empty;
        }
        let mut held = core::mem::take(&mut self.held);
        let (used, stop) = self.deliver(&held, from, sink, budget, done);
        held.drain(..used);
        self.held = held;
        stop
    }

    /// How many bytes of the body the next read may put where it goes, and how many it may put into a buffer of this
    /// length.
    pub(super) fn room(&mut self, buffer: usize) -> (usize, usize) {
        let first = match &mut self.body {
            None => 0,
            Some(body) => {
                let left = body.left();
                match &mut body.target {
                    Target::Into { iov, at, .. } => left.min(iov.len().saturating_sub(at.saturating_add(body.done))),
                    Target::Leased { lease, holds, .. } => {
                        *holds = *holds && lease.with(|_| ()).is_some();
                        if *holds { left } else { 0 }
                    }
                    Target::Keep { .. } => left,
                    Target::Drop | Target::Pad => 0,
                }
            }
        };
        let rest = if first >= LONG { BEHIND_LONG.min(buffer) } else { buffer };
        (first, rest)
    }

    /// Puts what is held at the beginning of `buffer`; says how much.
    pub(super) fn begin(&mut self, buffer: &mut [u8]) -> usize {
        let len = self.held.len();
        if let Some(place) = buffer.get_mut(..len).filter(|_| len > 0) {
            place.copy_from_slice(&self.held);
            self.held.clear();
        }
        len
    }

    /// Reads the next bytes: `first` of them to where the body goes, as `room` said just now, and then into `rest`.
    pub(super) fn read(&mut self, socket: &ParentFd, first: usize, rest: &mut [u8]) -> io::Result<usize> {
        let socket = socket.as_fd();
        let (done, target) = match &mut self.body {
            Some(body) if first > 0 => (body.done, &mut body.target),
            _ => return stream::receive(socket, First::Memory(Part::NONE), rest),
        };
        fn part(iov: &UserIov, at: usize, len: usize) -> First<'_> {
            First::Memory(Part { iov, at, len })
        }
        match target {
            Target::Into { iov, at, .. } => stream::receive(socket, part(iov, *at + done, first), rest),
            Target::Leased { lease, .. } => {
                let read = lease.with(|memory| stream::receive(socket, part(memory, done, first), rest));
                read.unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into()))
            }
            Target::Keep { buffer, .. } => {
                let place = buffer.get_mut(done..).and_then(|rest| rest.get_mut(..first));
                stream::receive(socket, First::Bytes(place.unwrap_or_default()), rest)
            }
            Target::Drop | Target::Pad => stream::receive(socket, First::Memory(Part::NONE), rest),
        }
    }

    /// `placed` bytes of a body have come where they belong, and then `bytes`. What is not delivered is held.
    pub(super) fn came<S: Sink>(
        &mut self,
        placed: usize,
        bytes: &[u8],
        from: PeerId,
        sink: &mut S,
        budget: usize,
        done: &mut usize,
    ) -> Stop {
        if let Some(body) = self.body.as_mut().filter(|_| placed > 0) {
            body.done += placed;
            self.end_body(sink, done);
        }
        let (used, stop) = self.deliver(bytes, from, sink, budget, done);
        self.held.extend_from_slice(bytes.get(used..).unwrap_or_default());
        stop
    }

    /// Forgets all: nothing of it may be delivered any more.
    pub(super) fn clear(&mut self) {
        *self = Input::default();
    }

    /// Reports a body that is whole.
    fn end_body<S: Sink>(&mut self, sink: &mut S, done: &mut usize) {
        if let Some(body) = self.body.take_if(|body| body.left() == 0) {
            *done += usize::from(!matches!(body.target, Target::Pad));
            body.end(sink);
        }
    }

    /// Says how many bytes were used, and why not more.
    fn deliver<S: Sink>(
        &mut self,
        bytes: &[u8],
        from: PeerId,
        sink: &mut S,
        budget: usize,
        done: &mut usize,
    ) -> (usize, Stop) {
        let mut rest = bytes;
        let stop = loop {
            if let Some(body) = &mut self.body {
                let used = body.take(rest);
                rest = rest.get(used..).unwrap_or_default();
                self.end_body(sink, done);
                if self.body.is_some() {
                    break Stop::Empty;
                }
            }
            let (header, len, after) = match take_prefix(rest) {
                Ok(prefix) => prefix,
                Err(stop) => break stop,
            };
            if *done >= budget {
                break Stop::Budget;
            }
            let Some(header) = header else {
                let target = Target::Pad;
                rest = after;
                self.body = Some(Arriving { target, done: 0, len });
                continue;
            };
            if after.get(..len).is_some_and(|body| sink.take(from, &header, body)) {
                *done += 1;
                rest = after.get(len..).unwrap_or_default();
            } else {
                let Some(target) = Target::of(sink.place(from, &header, len)) else {
                    break Stop::Refused;
                };
                rest = after;
                self.body = Some(Arriving { target, done: 0, len });
            }
        };
        (bytes.len() - rest.len(), stop)
    }
}
