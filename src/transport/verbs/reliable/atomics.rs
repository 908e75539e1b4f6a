//! Atomics on a peer's registered memory by the devices alone, where a domain has chosen those. Part of `Reliable`.
//!
//! A device's atomics and a processor's do not see each other, so all on one memory must be of one kind, which each end
//! says in its hello. An end of the other kind gets none, nor do its own come through: the engine of an endpoint with
//! these executes no others. Whoever differs is named in the log.
//!
//! To the endpoint's own memory they go over a connection to itself (`to_itself`), as they are the device's there too.

use super::Reliable;
use super::link::Move;
use super::one_sided::unreached;
use super::seam::Device;
use super::steps::Theirs;
use crate::engine::op::Error;
use crate::engine::port::{Amo, Get, PeerId, Token};
use crate::sys::rdma::Opcode;
use crate::transport::connecting::address::shown;
use crate::transport::verbs::atomics::{is_aligned, opcode};

fn word(operand: &[u8]) -> u64 {
    operand.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

impl<D: Device> Reliable<D> {
    pub(super) fn execute(&mut self, to: PeerId, amo: &Amo<'_>, token: Token) -> Get {
        let is_own = self.peers.get(to).is_some_and(|peer| peer.is_self);
        if is_own && !self.is_open {
            return Get::Unsupported;
        }
        let to = if is_own { self.number_of_itself() } else { Some(to) };
        let Some(to) = to else {
            return Get::Failed(Error::NoMemory);
        };
        let Some(link) = self.peers.link(to) else {
            return match unreached(self.connect_first(to)) {
                // Nobody tells the engine that the endpoint itself is gone.
                Get::Gone if is_own => Get::Failed(Error::PeerGone),
                answer => answer,
            };
        };
        if !link.has_atomics() {
            return Get::Failed(Error::NoSuchAtomic);
        }
        if !link.is_open() {
            return Get::Unsupported;
        }
        if !is_aligned(amo.part.addr, self.config.warn) {
            return Get::Failed(Error::OutOfRange);
        }
        let Some(theirs) = Theirs::of_regions(&[amo.part]) else {
            return Get::Failed(Error::NoKey);
        };
        match opcode(amo.op, word(amo.operand), word(amo.compare)) {
            Opcode::Write | Opcode::Send => self.write_bytes(to, &theirs, amo.operand, false, token),
            // A device gives what was there before in one piece.
            _ if amo.result.parts().iter().filter(|part| !part.is_empty()).count() != 1 => {
                Get::Failed(Error::OutOfRange)
            }
            Opcode::Read => self.move_memory(to, Move::Read, &theirs, amo.result, false, token),
            opcode => self.move_memory(to, Move::Atomic(opcode), &theirs, amo.result, false, token),
        }
    }

    /// A connection stands: says, once, if its other end has atomics of the other kind.
    pub(super) fn tell_differing(&mut self, with: PeerId) {
        let ours = self.memory.atomics;
        let alike = self.peers.link(with).is_none_or(|link| link.has_atomics() == ours);
        if alike || core::mem::replace(&mut self.told_differing, true) {
            return;
        }
        let (has, lacks) = match ours {
            true => ("this endpoint", "that one"),
            false => ("that endpoint", "this one"),
        };
        let place = self.peers.get(with).and_then(|peer| peer.place());
        (self.config.warn)(&format!(
            "{}: {has} has the device's atomics and {lacks} the library's, so atomics between the two end with an error: \
             set FI_OFI_RXM_DEVICE_ATOMICS alike for all processes, and open their domains alike",
            shown(place)
        ));
    }
}
