//! Sleeping until a packet comes, at no cost to senders that find nobody asleep.
//!
//! `arm_among_others` announces sleep in the attention word and looks once more for packets (`attention` has the
//! protocol). The barrier on the senders' side is the kernel's (membarrier), so that their path has none; where the
//! kernel offers none, senders fence. The descriptor to sleep on is the endpoint's `doorbell`. Called by `provider` for
//! wait objects.

use super::ShmTransport;
use super::attention;
use super::outbound::Outbound;
use crate::sys::barrier;
use core::sync::atomic::{Ordering, fence};
use std::os::fd::RawFd;

impl ShmTransport {
    /// The descriptor that becomes readable when there may be something to poll, after the endpoint has
    /// announced its sleep. `arm_among_others` drains it.
    pub fn wake_fd(&self) -> RawFd {
        self.own.doorbell.fd()
    }

    /// Makes that descriptor readable, as a peer would.
    pub fn wake(&self) {
        self.own.doorbell.ring_own();
    }

    /// Announces the sleep of one thread alone. False: there is something to poll already, and nothing is announced.
    #[cfg(test)]
    pub fn arm(&mut self) -> bool {
        let quiet = self.announce();
        if !quiet {
            attention::awake(self.own.header.attention(), self.sleeps);
        }
        quiet
    }

    /// Announces the sleep of threads that share the descriptor: it is drained first, and the announcement stands
    /// though there is something to poll (false). So as long as one of them sleeps, the descriptor is readable or
    /// senders know that they have to ring.
    pub fn arm_among_others(&mut self) -> bool {
        if self.own.is_ours() {
            self.own.doorbell.drain();
        }
        self.announce()
    }

    fn announce(&mut self) -> bool {
        if !self.own.is_ours() {
            return true;
        }
        let header = &self.own.header;
        attention::announce(header.attention(), &mut self.sleeps, || {
            // The senders' half of the barrier is this call, or their own fences.
            if header.wants_fence() || !barrier::everywhere() {
                fence(Ordering::SeqCst);
            }
        });
        self.look_at_peers();
        let room = self.has_room_for_the_starved();
        // Stay awake while a helper copies, as it does not ring when it is done, and while a peer is still to be rung,
        // as it sleeps until then.
        let quiet = self.pending_copies.is_empty()
            && self.peers.ended.is_empty()
            && self.rung.is_empty()
            && !self.own.doorbell.has_unrung();
        quiet && !room && !self.inbox.would_find(&self.own.header)
    }

    /// Peers that die wake nobody, so endpoints that sleep check them when they arm.
    fn look_at_peers(&mut self) {
        if self.check_is_due() {
            self.check_some();
            self.inbox.retry(&mut self.rung);
        }
        if !self.peers.ended.is_empty() || !self.rung.is_empty() {
            self.polls_to_housekeeping = 1;
        }
    }

    /// Asks every peer whose ring was full to wake us when there is room. True: one has room by now, or is gone.
    fn has_room_for_the_starved(&mut self) -> bool {
        let before = self.starved.len();
        if before == 0 {
            return false;
        }
        let peers = &mut self.peers;
        let ways = self
            .starved
            .iter()
            .filter_map(|number| peers.get(*number)?.out.as_ref());
        ways.for_each(Outbound::ask_for_room);
        // The receivers' half of the barrier is this call, or their own fences (`lane::FENCED`).
        fence(Ordering::SeqCst);
        barrier::everywhere();
        self.starved.retain(|number| {
            let Some(peer) = peers.get_mut(*number) else {
                return false;
            };
            peer.starved = peer.out.as_mut().is_some_and(Outbound::has_no_room);
            peer.starved
        });
        self.starved.len() < before
    }

    /// Withdraws what `arm` announced, and drains the descriptor.
    #[cfg(test)]
    pub fn disarm(&mut self) {
        if self.own.is_ours() {
            attention::awake(self.own.header.attention(), self.sleeps);
            self.own.doorbell.drain();
        }
    }
}
