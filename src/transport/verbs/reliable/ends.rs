//! How connections end, and what the engine is told of it. Part of `Reliable`.
//!
//! A queue pair in error gives back all that was posted to it. When that, and what came before, has been taken from the
//! completion queue, nothing of the connection is left, and the engine is told; only then another one is made.

use super::Reliable;
use super::attempt::{Attempt, Way};
use super::link::{End, Link, Purpose};
use super::seam::Device;
use super::to_itself::BROKEN;
use crate::engine::port::{Loss, PeerId, Sink};
use crate::sys::clock;
use crate::sys::rdma::EventKind;
use crate::transport::connecting::LONG_REST_MS;
use crate::transport::connecting::address::shown;
use crate::transport::verbs::connection::{PORT_DOWN, PORT_UP};
use crate::transport::verbs::seam::QueuePair;

/// How long a device may take to give back what was posted.
const PATIENCE_MS: u64 = 10_000;

impl<D: Device> Reliable<D> {
    /// Tells the engine of peers that were lost. `drained`: this poll has found the completion queue empty.
    #[cold]
    pub(super) fn tell_ends<S: Sink>(&mut self, sink: &mut S, drained: bool) {
        for number in core::mem::take(&mut self.peers.ended) {
            let Some(peer) = self.peers.get_mut(number) else {
                continue;
            };
            let (polls, silent) = (self.polls, self.is_lost);
            let over = peer.link.as_mut().map(|link| link.is_over(polls, drained, silent));
            if peer.history.take_death() {
                self.tell_gone(number, Loss::Died, sink);
            }
            match over {
                Some(true) => self.end_link(number, sink),
                Some(false) => self.peers.note_end(number),
                None => {}
            }
        }
    }

    fn end_link<S: Sink>(&mut self, number: PeerId, sink: &mut S) {
        self.drop_arrived(number);
        let Some(peer) = self.peers.get_mut(number) else { return };
        let Some(link) = peer.link.take() else { return };
        let replaced = matches!(&peer.way, Way::Begun(Attempt::Agreed(next)) if peer.history.is_other(next.instance()));
        let end = link.end.unwrap_or(End::Cut);
        let loss = match end {
            _ if replaced || link.said_goodbye() => Loss::Died,
            // Whether its machine is silent, or only its queue pair gone, is found out by dialing it.
            End::Cut | End::Bad(_) | End::Abandoned => Loss::Broken,
        };
        peer.history.ended(loss);
        let place = shown(peer.place());
        if self.is_end_of_itself(number) {
            // The device says nothing more of these, and to the engine no peer is lost.
            link.awaited().for_each(|token| sink.finished(token, Err(BROKEN)));
        }
        self.close(*link);
        self.tell_gone(number, loss, sink);
        match end {
            End::Bad(what) => (self.config.warn)(&format!(
                "{place} sent {what}: its connection is closed; does it run the same version of this library?"
            )),
            End::Cut | End::Abandoned if loss == Loss::Broken => (self.config.info)(&format!(
                "the connection with {place} broke off, and is made anew if it still answers"
            )),
            End::Cut | End::Abandoned => {}
        }
        self.after_link(number, end, loss, sink);
    }

    /// The next connection takes its place, or it is found out whether the peer lives.
    fn after_link<S: Sink>(&mut self, number: PeerId, end: End, loss: Loss, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(number) else { return };
        match peer.way {
            Way::Begun(Attempt::Agreed(_)) => self.settle(number, sink),
            Way::None if matches!(end, End::Bad(_)) => self.rest(number, LONG_REST_MS),
            Way::None if loss != Loss::Died => self.dial(number),
            _ => {}
        }
    }

    /// Ends a connection that stood, or that came to nothing.
    pub(super) fn close(&mut self, mut link: Link<D::Wire>) {
        for (buffer, _) in core::mem::take(&mut link.arrived) {
            self.receives_again(buffer);
        }
        self.pairs.remove(&link.number());
        self.spare += link.window();
        let left = link.leave();
        let free = left.filter_map(|purpose| match purpose {
            Purpose::Buffer(buffer) => Some(buffer),
            Purpose::Transfer(transfer) => transfer.buffer,
            Purpose::Inline | Purpose::Part => None,
        });
        let free: Vec<u32> = free.collect();
        // Until then the device may read from its buffers.
        drop(link);
        self.free_sends.extend(free);
    }

    /// The engine does not want to hear of a peer any more. True: the device touches no memory of the application on
    /// its account.
    pub(super) fn abandon_link(&mut self, number: PeerId) -> bool {
        let Some(link) = self.peers.link(number) else {
            return true;
        };
        link.abandon();
        let idle = !link.transfers();
        self.drop_arrived(number);
        self.note_end(number);
        idle
    }

    /// What the device tells by itself.
    #[cold]
    pub(super) fn hear_trouble(&mut self, kind: EventKind) {
        match kind {
            EventKind::Removed => self.lose_all("the device is gone"),
            EventKind::Failed => self.lose_all("the completion queue is broken"),
            EventKind::PortDown => (self.config.warn)(PORT_DOWN),
            EventKind::PortUp => (self.config.warn)(PORT_UP),
            _ => {}
        }
    }

    /// Nothing more comes from the device, which ends all connections.
    #[cold]
    pub(super) fn lose_all(&mut self, why: &str) {
        if !core::mem::replace(&mut self.is_lost, true) {
            (self.config.warn)(&format!("all connections end: {why}"));
        }
        let cut = self.peers.numbered_links().map(|(number, link)| {
            link.cut(End::Cut);
            number
        });
        let cut: Vec<PeerId> = cut.collect();
        cut.into_iter().for_each(|number| self.peers.note_end(number));
    }
}

impl<W: QueuePair> Link<W> {
    /// Nothing of it is left in the completion queue, nor undelivered; or the device will say nothing more. `silent`:
    /// it is known not to.
    fn is_over(&mut self, polls: u64, drained: bool, silent: bool) -> bool {
        let now = clock::monotonic_ms();
        let (seen_in, seen_at) = *self.ended_seen.get_or_insert((polls, now));
        // What came before the end was seen may have come after this poll looked.
        let settled = drained && polls > seen_in && (silent || self.is_idle()) && self.arrived.is_empty();
        settled || now - seen_at > PATIENCE_MS
    }
}
