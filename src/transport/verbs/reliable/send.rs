//! Sending a packet. Part of `Reliable`.

use super::Reliable;
use super::link::Purpose;
use super::seam::Device;
use crate::engine::op::Unreached;
use crate::engine::port::{Body, PeerId, Push};
use crate::engine::wire::Header;
use crate::sys::clock;
use crate::sys::rdma::Piece;

/// The longest packet that is put together on the stack, to travel within its request.
const SHORT: usize = 512;

/// Buffers for packets that wait until the device has sent them: how many at most, and how many are made at once.
const MOST: usize = 1024;
const SOME: u16 = 32;

impl<D: Device> Reliable<D> {
    #[inline]
    pub(super) fn send_packet(&mut self, to: PeerId, header: &Header, body: &Body<'_>) -> Push {
        let Some(link) = self.peers.link(to) else {
            return self.push_unconnected(to, header, body);
        };
        let len = Header::SIZE + body.len();
        if len > link.longest() {
            return if link.end.is_some() { Push::Full } else { Push::TooLong };
        }
        if !link.has_room(1) || !link.has_credit() {
            return Push::Full;
        }
        let pushed = if len <= link.inline().min(SHORT) {
            let mut bytes = [0; SHORT];
            let piece = short(&mut bytes, header, body);
            link.send(piece, Purpose::Inline)
        } else {
            self.send_from_buffer(to, header, body, len)
        };
        if pushed == Push::Full {
            self.note_end(to);
        }
        pushed
    }

    fn send_from_buffer(&mut self, to: PeerId, header: &Header, body: &Body<'_>, len: usize) -> Push {
        let Some(buffer) = self.free_sends.pop().or_else(|| self.make_sends()) else {
            return Push::Full;
        };
        let memory = self.sends.memory(buffer);
        memory.write(&header.encode());
        let place = memory.part(Header::SIZE, body.len());
        match body {
            Body::Empty => {}
            Body::Bytes(bytes) => drop(place.write(bytes)),
            Body::User { iov, at, len } => place.fill(&iov.part(*at, *len)),
        }
        let piece = self.sends.piece(buffer, len);
        let link = self.peers.link(to);
        let pushed = link.map_or(Push::Full, |link| link.send(piece, Purpose::Buffer(buffer)));
        if pushed != Push::Done {
            self.free_sends.push(buffer);
        }
        pushed
    }

    #[cold]
    pub(super) fn make_sends(&mut self) -> Option<u32> {
        if self.made_sends >= MOST {
            return None;
        }
        match self.sends.grow(self.memory.lasting(&*self.device), SOME) {
            Ok(numbers) => {
                self.made_sends += numbers.len();
                self.free_sends.extend(numbers);
                self.free_sends.pop()
            }
            Err(error) => {
                self.tell_memory("buffers for packets", &error);
                None
            }
        }
    }

    /// Registering memory has failed. Said once.
    #[cold]
    pub(super) fn tell_memory(&mut self, what: &str, error: &std::io::Error) {
        if !core::mem::replace(&mut self.told_memory, true) {
            (self.config.warn)(&format!(
                "the device registers no memory for {what}: {error}; the limit on locked memory may be too low, which \
                 `ulimit -l` shows and `memlock` in /etc/security/limits.conf raises"
            ));
        }
    }

    #[cold]
    fn push_unconnected(&mut self, to: PeerId, header: &Header, body: &Body<'_>) -> Push {
        match self.peers.get(to) {
            Some(peer) if peer.is_self => self.self_queue.push(header, body),
            _ => self.connect_first(to),
        }
    }

    /// Nothing can be done with a peer now: begins to connect, or says what became of it.
    #[cold]
    pub(super) fn connect_first(&mut self, to: PeerId) -> Push {
        let Some(peer) = self.peers.get_mut(to) else {
            return Push::Unreachable(Unreached::Nobody);
        };
        if let Some(answer) = peer.history.answer() {
            return answer;
        }
        self.dial_if_idle(to);
        Push::Full
    }

    /// Begins to connect, unless something is under way.
    pub(super) fn dial_if_idle(&mut self, to: PeerId) {
        if self.peers.is_idle(to, clock::monotonic_ms()) {
            self.dial(to);
        }
    }
}

/// A packet in `room`.
fn short(room: &mut [u8; SHORT], header: &Header, body: &Body<'_>) -> Piece {
    let (first, rest) = room.split_at_mut(Header::SIZE);
    first.copy_from_slice(&header.encode());
    let len = body.len().min(rest.len());
    match body {
        Body::Empty => {}
        Body::Bytes(bytes) => rest.iter_mut().zip(*bytes).for_each(|(place, byte)| *place = *byte),
        Body::User { iov, at, .. } => drop(iov.read(*at, &mut rest[..len])),
    }
    Piece {
        addr: room.as_ptr() as u64,
        len: (Header::SIZE + len) as u32,
        key: 0,
    }
}
