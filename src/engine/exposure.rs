//! Memory that peers may fetch from: asked of the transport once for each operation, and given back when that is over.
//!
//! The transport may have to register the memory (`Exposed::id`), so a packet that finds no room keeps what it was
//! given for the next try. Whatever ends the operation puts `Call::Unexpose` in `Core::calls`, as `Core` does not know
//! the transport. Called by `rma_packets` and `rma`, whose packets carry what it answers, and by all that ends
//! operations.

use super::deliver::ANSWERS;
use super::endpoint::Engine;
use super::next_packet::NextPacket;
use super::outgoing::{Holds, LocalBuffer};
use super::port::{Body, Exposed, ExposedName, PeerId, Push, Remote, Transport};
use super::rma_peer::{ExposedRead, ServedRead};
use super::state::{Call, Core};
use super::wire::{Header, flag};
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// What the transport answered when it was asked. Kept while the packet is to be pushed again, and then if it is to be
/// told of the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked(Option<Exposed>);

pub(super) type Exposure = Option<Box<Asked>>;

/// The name by which the transport is told of the end.
fn id(exposure: &Exposure) -> Option<u64> {
    exposure.as_ref()?.0?.id
}

/// What is to be kept after a push of the packet.
fn kept(exposure: Exposure, asked: Asked, push: Push) -> Exposure {
    let needless = matches!(push, Push::Done | Push::Later) && asked.0.is_none_or(|exposed| exposed.id.is_none());
    match exposure {
        _ if needless => None,
        None => Some(Box::new(asked)),
        exposure => exposure,
    }
}

impl<T: Transport> Engine<T> {
    fn ask(&mut self, to: PeerId, exposure: &Exposure, iov: &UserIov, name: ExposedName) -> Asked {
        match exposure {
            Some(asked) => **asked,
            None => Asked(self.transport.expose(to, iov, name)),
        }
    }

    /// Pushes the offer of a message or write, whose `body` begins as it is. The peer may fetch the bytes if the
    /// transport lets it; else it requests them.
    pub(super) fn push_offer(&mut self, to: PeerId, header: &Header, id: Id, body: &mut Vec<u8>) -> Push {
        self.core.peer(to).is_itself = self.transport.is_itself(to);
        let Some(outgoing) = self.core.outgoing.get(id) else {
            return Push::Full;
        };
        let iov = match &outgoing.local {
            LocalBuffer::User(iov) if self.core.limits.can_get && !iov.is_empty() => *iov,
            LocalBuffer::User(_) | LocalBuffer::Copy(_) => {
                return Self::push_out_of_line(&mut self.transport, to, header, Body::of(body));
            }
        };
        let known = self.core.exposures.remove(&id.bits()).map(Box::new);
        let asked = self.ask(to, &known, &iov, ExposedName::Sent(id.bits()));
        if let Some(exposed) = &asked.0 {
            body.extend_from_slice(exposed.remote.bytes());
        }
        let push = Self::push_out_of_line(&mut self.transport, to, header, Body::of(body));
        if let Some(asked) = kept(known, asked, push) {
            self.core.exposures.insert(id.bits(), *asked);
            if let Some(outgoing) = self.core.outgoing.get_mut(id) {
                outgoing.holds.add(Holds::EXPOSURE);
            }
        }
        push
    }

    /// Pushes leave to fetch a peer's long read from `iov`. None: the transport does not give it, so the next packet of
    /// this read has its bytes.
    pub(super) fn push_exposed(
        &mut self,
        to: PeerId,
        packet: &NextPacket,
        iov: &UserIov,
        name: ExposedName,
    ) -> Option<Push> {
        let exposure = self.core.first_served(to)?.exposure.take();
        let asked = self.ask(to, &exposure, iov, name);
        let Some(exposed) = asked.0 else {
            self.core.first_served(to)?.get = false;
            return None;
        };
        // It must be told when the bytes were fetched.
        let flags = if exposed.id.is_some() { flag::ACK } else { 0 };
        let header = Header {
            flags: packet.header.flags | flags,
            ..packet.header
        };
        let push = Self::push_out_of_line(&mut self.transport, to, &header, Body::Bytes(exposed.remote.bytes()));
        if let Some(serve) = self.core.first_served(to) {
            serve.exposure = kept(exposure, asked, push);
        }
        Some(push)
    }

    /// Tells the transport which exposures are over.
    #[cold]
    pub(super) fn end_exposures(&mut self) {
        let transport = &mut self.transport;
        self.core.calls.retain(|call| match call {
            Call::Unexpose(peer, id) => {
                transport.unexpose(*peer, *id);
                false
            }
            Call::Get(_) => true,
        });
    }
}

/// A `Remote` has so many bytes.
pub(super) fn is_remote(len: usize) -> bool {
    (1..=Remote::MAX).contains(&len)
}

impl Core {
    fn first_served(&mut self, to: PeerId) -> Option<&mut ServedRead> {
        self.peers.get_mut(to as usize)?.rma.as_mut()?.served_reads.front_mut()
    }

    /// An operation of ours is over whose memory was exposed.
    #[cold]
    pub(super) fn end_exposure(&mut self, peer: PeerId, operation: Id) {
        let exposed = self.exposures.remove(&operation.bits()).and_then(|asked| asked.0);
        if let Some(id) = exposed.and_then(|exposed| exposed.id) {
            self.calls.push_back(Call::Unexpose(peer, id));
        }
    }

    /// A peer has leave to fetch its long read: it says with `Got` that it has, or asks again.
    pub(super) fn read_exposed(&mut self, peer: PeerId, serve: &ServedRead) {
        let (number, id) = (serve.number, id(&serve.exposure));
        if let Some(id) = id {
            self.peer(peer).rma_mut().exposed_reads.push(ExposedRead { number, id });
        }
    }

    /// Whether a peer may be let fetch another read: it has not kept too many without saying that it has fetched them.
    pub(super) fn may_expose(&self, peer: PeerId) -> bool {
        let rma = self.peers.get(peer as usize).and_then(|peer| peer.rma.as_ref());
        rma.is_none_or(|rma| rma.exposed_reads.len() < ANSWERS)
    }

    /// A peer does not need to fetch that read any more.
    pub(super) fn end_exposed_read(&mut self, peer: PeerId, number: u32) {
        let Some(rma) = self.peers.get_mut(peer as usize).and_then(|peer| peer.rma.as_mut()) else {
            return;
        };
        if let Some(at) = rma.exposed_reads.iter().position(|read| read.number == number) {
            let read = rma.exposed_reads.swap_remove(at);
            self.calls.push_back(Call::Unexpose(peer, read.id));
        }
    }

    /// The peer is gone.
    pub(super) fn end_exposed_reads(
        &mut self,
        peer: PeerId,
        reads: impl IntoIterator<Item = ExposedRead>,
        served: impl IntoIterator<Item = ServedRead>,
    ) {
        let reads = reads.into_iter().map(|read| Call::Unexpose(peer, read.id));
        self.calls.extend(reads);
        for serve in served {
            let id = id(&serve.exposure);
            self.calls.extend(id.map(|id| Call::Unexpose(peer, id)));
        }
    }
}
