//! Links that came to their end: what the engine is told of their peers, and what takes their place.
//!
//! Called by each poll.

use super::TcpTransport;
use super::attempt::{Attempt, Way};
use super::link::End;
use crate::engine::port::{Loss, PeerId, Sink};
use crate::transport::connecting::{LONG_REST_MS, address};

impl TcpTransport {
    /// Tells the engine of links that came to their end, and of peers that were found dead.
    #[cold]
    pub(super) fn tell_ends<S: Sink>(&mut self, sink: &mut S) {
        for number in core::mem::take(&mut self.peers.ended) {
            let source = self.peers.source(number);
            let died = died(number, source);
            let Some(peer) = self.peers.get_mut(number) else {
                continue;
            };
            if peer.history.take_death() {
                peer.history.expect_another();
                // The loss of its connection has taken the name from it: receives that name it are to end. Who has one
                // peer may never have met it.
                if self.one_peer.is_none() {
                    sink.met(number, source);
                }
                sink.gone(number, died);
                self.look_after(died);
                self.one_peer.iter_mut().for_each(|one| one.has_ended());
            }
            let Some(peer) = self.peers.get_mut(number) else {
                continue;
            };
            let is_over = peer.link.as_ref().is_some_and(|link| link.is_over());
            if is_over && self.one_peer.as_mut().is_some_and(|one| !one.may_end()) {
                self.peers.note_end(number);
                continue;
            }
            let Some(link) = peer.link.take_if(|_| is_over) else {
                continue;
            };
            let replaced =
                matches!(peer.way, Way::Begun(Attempt::Agreed { instance, .. }) if peer.history.is_other(instance));
            let loss = match link.end {
                Some(End::Goodbye) => died,
                _ if replaced || self.one_peer.is_some() => died,
                Some(End::Silent) => Loss::Silent,
                _ => Loss::Broken,
            };
            peer.history.ended(loss);
            if loss == died {
                peer.history.expect_another();
            }
            sink.gone(number, loss);
            self.look_after(loss);
            self.one_peer.iter_mut().for_each(|one| one.has_ended());
            self.after_link(number, link.end, sink);
        }
    }

    /// Of a scalable endpoint one context has ended: the whole is connected with, as if a connection to it had broken,
    /// which finds out whether it is there, and when it ends.
    pub(super) fn look_after(&mut self, loss: Loss) {
        let Loss::OneContext { whole } = loss else { return };
        let Some(peer) = self.peers.get_mut(whole) else { return };
        let is_own = peer.is_self || address::base(&self.own) == &*peer.address;
        if peer.link.is_none() && !is_own {
            peer.history.was_heard_of();
            self.dial_if_idle(whole);
        }
    }

    /// A link is gone: the next one takes its place, or it is found out whether the peer lives.
    fn after_link<S: Sink>(&mut self, number: PeerId, end: Option<End>, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(number) else { return };
        let place = address::shown(peer.place());
        match end {
            Some(End::Bad(what)) => (self.config.warn)(&format!(
                "{place} sent {what}: its connection is closed; does it run the same version of this library?"
            )),
            Some(End::Cut) => (self.config.info)(&format!(
                "the connection with {place} broke off, and is made anew if it still answers"
            )),
            Some(End::Silent) => (self.config.warn)(&format!(
                "nothing was heard of {place} for {:?} (FI_TCP_SILENCE_TIMEOUT): its connection is given up",
                self.config.silence
            )),
            Some(End::Goodbye) | None => {}
        }
        match peer.way {
            Way::Begun(Attempt::Agreed { .. }) => self.settle(number, sink),
            Way::None if peer.history.was_connected() && matches!(end, Some(End::Bad(_))) => {
                self.rest(number, LONG_REST_MS)
            }
            Way::None if peer.history.was_connected() => self.dial(number),
            _ => {}
        }
    }
}

/// The loss of a peer that has ended.
pub(super) fn died(number: PeerId, source: PeerId) -> Loss {
    match source {
        whole if whole != number => Loss::OneContext { whole },
        _ => Loss::Died,
    }
}
