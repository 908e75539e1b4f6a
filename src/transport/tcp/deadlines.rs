//! What must happen at some time though nothing comes: connections that take too long, pauses that are over, guests that
//! say nothing. Part of `TcpTransport`.
//!
//! Polls look at the clock now and then, and only while something waits; a timer wakes those who sleep.

use super::TcpTransport;
use super::peers::Way;
use crate::engine::port::{PeerId, Sink};
use crate::sys::clock;
use std::io::ErrorKind;
use std::time::Duration;

/// Polls from one look at the clock to the next; a multiple of `active::LOOK`.
pub(super) const TICK: u64 = 64;

impl TcpTransport {
    pub(super) fn tick<S: Sink>(&mut self, sink: &mut S) {
        let guests = self.listener.deadline();
        if self.ways.is_empty() && guests.is_none() {
            return;
        }
        let now = clock::monotonic_ms();
        if guests.is_some_and(|deadline| deadline <= now) {
            self.listener.serve(self.instance, &self.config);
        }
        for number in core::mem::take(&mut self.ways) {
            if let Some(peer) = self.peers.get_mut(number) {
                peer.in_ways = false;
            }
            if self.deadline_of(number).is_some_and(|deadline| deadline <= now) {
                self.overdue(number, sink);
            }
            if self
                .peers
                .get(number)
                .is_some_and(|peer| !matches!(peer.way, Way::None))
            {
                self.note_way(number);
            }
        }
    }

    fn deadline_of(&self, number: PeerId) -> Option<u64> {
        let peer = self.peers.get(number)?;
        match &peer.way {
            // Once it has heard of us, the kernel tells whether its machine lives.
            Way::None | Way::Agreed { .. } | Way::Dialing { said: Some(_), .. } => None,
            Way::Dialing { said: None, .. } => Some(
                peer.tried_at
                    .saturating_add(self.config.connect_timeout.as_millis() as u64),
            ),
            Way::Resting { until } | Way::Welcomed { until, .. } => Some(*until),
        }
    }

    fn overdue<S: Sink>(&mut self, number: PeerId, sink: &mut S) {
        // It may have come meanwhile, unseen.
        self.way_has_news(number, sink);
        let Some(peer) = self.peers.get_mut(number) else { return };
        match &peer.way {
            Way::Dialing { said: None, .. } => self.dial_failed(number, &ErrorKind::TimedOut.into()),
            Way::Welcomed { .. } => peer.way = Way::None,
            Way::Resting { .. } => {
                peer.way = Way::None;
                // Nobody may push to it, but receives may wait for it.
                if peer.was_connected && peer.link.is_none() {
                    self.dial(number);
                }
            }
            Way::None | Way::Agreed { .. } | Way::Dialing { .. } => {}
        }
    }

    /// Before somebody sleeps: the timer wakes in time for the next deadline. False: that is over already.
    pub(super) fn set_timer(&mut self) -> bool {
        let ways = self.ways.iter().filter_map(|number| self.deadline_of(*number));
        let next = ways.chain(self.listener.deadline()).min();
        let now = clock::monotonic_ms();
        self.tick_is_due = next.is_some_and(|next| next <= now);
        match next {
            Some(next) => {
                self.timer.set(Duration::from_millis(next.saturating_sub(now).max(1)));
                self.timed = true;
            }
            None if self.timed => {
                self.timer.set(Duration::ZERO);
                self.timed = false;
            }
            None => {}
        }
        !self.tick_is_due
    }
}
