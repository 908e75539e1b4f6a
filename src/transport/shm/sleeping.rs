//! Sleeping until a message comes, at no cost to senders that find nobody asleep.
//!
//! The owner says in its attention word that it sleeps, and then looks whether anything came. Senders write, and then
//! look whether it sleeps. One of the two must see the other, which needs a barrier on both sides; the sleeper has the
//! kernel run the senders' one (membarrier), so that their path has none. Where the kernel does not, senders fence.
//! What wakes is the endpoint's `doorbell`, a real descriptor to poll.

use super::ShmTransport;
use super::attention;
use super::outbound::Outbound;
use crate::sys::barrier;
use core::sync::atomic::{Ordering, fence};
use std::os::fd::RawFd;

impl ShmTransport {
    /// Readable when there may be something to poll, after `arm` said true. Never read it: `disarm` does.
    pub fn wake_fd(&self) -> RawFd {
        self.own.bell.fd()
    }

    /// Makes it readable, as a peer would.
    pub fn wake(&self) {
        self.own.bell.ring_own();
    }

    /// Announces sleep. False when there is something to poll already; then nothing is announced.
    pub fn arm(&mut self) -> bool {
        let quiet = self.announce();
        if !quiet {
            attention::awake(self.own.header.attention(), self.sleeps);
        }
        quiet
    }

    /// The same where several threads may sleep on the descriptor: empties it first, and announces in any case, so that
    /// it is readable or an announcement stands as long as one of them sleeps.
    pub fn arm_among_others(&mut self) -> bool {
        if self.own.is_ours() {
            self.own.bell.drain();
        }
        self.announce()
    }

    fn announce(&mut self) -> bool {
        if !self.own.is_ours() {
            return true;
        }
        let header = &self.own.header;
        attention::announce(header.attention(), &mut self.sleeps, || {
            // The senders' half is their own fence, or this call.
            if header.wants_fence() || !barrier::everywhere() {
                fence(Ordering::SeqCst);
            }
        });
        self.look_at_peers();
        let room = self.has_room_for_the_starved();
        // Nobody rings when the end of a large message has been written; it does not take long. And who could not be
        // rung sleeps until he is.
        let quiet = self.pending_copies.is_empty()
            && self.peers.ended.is_empty()
            && self.rung.is_empty()
            && !self.own.bell.has_unrung();
        quiet && !room && !self.inbox.would_find(&self.own.header)
    }

    /// Peers that died do not wake anybody: a sleeper that comes by now and then looks.
    fn look_at_peers(&mut self) {
        if self.check_is_due() {
            self.check_some();
            self.inbox.retry(&mut self.rung);
        }
        if !self.peers.ended.is_empty() || !self.rung.is_empty() {
            self.polls_to_housekeeping = 1;
        }
    }

    /// Asks every peer whose ring was full to wake us when it is not. True when one has room by now, or is gone.
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
        // The receivers' half is this call, or their own fence (`lane::FENCED`).
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

    /// Ends a sleep that `arm` announced, whatever ended it.
    pub fn disarm(&mut self) {
        if self.own.is_ours() {
            attention::awake(self.own.header.attention(), self.sleeps);
            self.own.bell.drain();
        }
    }
}
