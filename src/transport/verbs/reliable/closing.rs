//! The end of an endpoint: what was sent arrives, peers are told, all is closed. Part of `Reliable`.

use super::Reliable;
use super::link::{End, Link};
use super::seam::Device;
use crate::engine::port::{Loss, NotDone, PeerId, Placement, Sink, Token};
use crate::engine::wire::Header;
use crate::sys::clock;
use crate::sys::rdma::EventKind;
use crate::transport::verbs::seam::{Connection, QueuePair};

impl<D: Device> Reliable<D> {
    /// Says goodbye behind all that was sent, and waits until peers' devices have acknowledged it, but not longer than
    /// `Config::linger`.
    pub(super) fn close_all(&mut self) {
        let until = clock::monotonic_ms().saturating_add(self.config.linger.as_millis() as u64);
        self.peers.links().for_each(Link::say_goodbye);
        while self.has_unacknowledged() && clock::monotonic_ms() < until {
            self.take_completions(&mut Nobody, usize::MAX);
        }
        for peer in self.peers.all() {
            peer.links().for_each(|link| link.cut(End::Cut));
        }
    }

    fn has_unacknowledged(&mut self) -> bool {
        let mut waits = false;
        for link in self.peers.links() {
            while let Some(news) = link.wire.connection().news() {
                if matches!(news.kind, EventKind::Disconnected | EventKind::Removed) {
                    link.cut(End::Cut);
                }
            }
            waits |= link.end.is_none() && !link.is_idle();
        }
        waits
    }
}

impl<D: Device> Drop for Reliable<D> {
    fn drop(&mut self) {
        if self.device.is_ours() {
            self.close_all();
        }
    }
}

/// The engine has gone: nobody hears what comes now.
struct Nobody;

impl Sink for Nobody {
    fn place(&mut self, _: PeerId, _: &Header, _: usize) -> Placement {
        Placement::Drop
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

    fn gone(&mut self, _: PeerId, _: Loss) {}
}
