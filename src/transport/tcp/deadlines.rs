//! What must happen at some time though nothing comes: connections that take too long, pauses that are over, guests
//! that say nothing, machines that fell silent. Part of `TcpTransport`.
//!
//! Polls look at the clock now and then, and only while something waits; a timer wakes those who sleep.

use super::TcpTransport;
use super::attempt::{Attempt, Way};
use super::closing::tend_left_behind;
use super::config::Config;
use crate::engine::port::{PeerId, Sink};
use crate::sys::clock;
use std::io::ErrorKind;
use std::time::Duration;

/// Polls from one look at the clock to the next; a multiple of `active::LOOK`.
pub(super) const TICK: u64 = 64;

/// How often links are looked at in the time that a machine may be silent.
const WATCHES: u32 = 8;
/// A kernel answers those who ask whether there is room again once in half a second, and they ask once in a second.
const SHORTEST_SILENCE: Duration = Duration::from_secs(2);

impl TcpTransport {
    pub(super) fn tick<S: Sink>(&mut self, sink: &mut S) {
        tend_left_behind();
        let guests = self.deadline_of_guests();
        if self.peers.ways().is_empty() && guests.is_none() && self.watch_at.is_none() {
            return;
        }
        let now = clock::monotonic_ms();
        if self.watch_at.is_some_and(|watch| watch <= now) {
            self.watch(now);
        }
        if guests.is_some_and(|deadline| deadline <= now) {
            self.serve_guests();
        }
        for number in self.peers.take_ways() {
            if self.deadline_of(number).is_some_and(|deadline| deadline <= now) {
                self.overdue(number, now, sink);
            }
            self.peers.note_way(number);
        }
    }

    fn deadline_of_guests(&self) -> Option<u64> {
        self.listener.as_ref()?.deadline()
    }

    /// There is a link to look after.
    pub(super) fn start_watch(&mut self) {
        self.watch_at
            .get_or_insert_with(|| clock::monotonic_ms() + watch_pause(&self.config));
    }

    /// Ends connections to machines that acknowledge nothing. The kernel would do that by itself (TCP_USER_TIMEOUT),
    /// but also to a peer whose machine answers while its process computes and reads nothing.
    fn watch(&mut self, now: u64) {
        let silence = longest_silence(&self.config).as_millis() as u64;
        let (mut any, mut silent) = (false, Vec::new());
        for (number, link) in self.peers.numbered_links() {
            any = true;
            if link.end.is_none() && link.silent_for(now) >= silence {
                link.give_up();
                silent.push(number);
            }
        }
        silent.into_iter().for_each(|number| self.activate(number));
        self.watch_at = any.then(|| now + watch_pause(&self.config));
    }

    fn deadline_of(&self, number: PeerId) -> Option<u64> {
        let peer = self.peers.get(number)?;
        match &peer.way {
            Way::Begun(Attempt::Dialing { said: None, .. }) => {
                let timeout = self.config.connect_timeout.as_millis() as u64;
                Some(peer.history.tried_at().saturating_add(timeout))
            }
            Way::Begun(Attempt::Agreed { .. }) => peer.link.as_ref()?.superseded_until(),
            // Once it has heard of us, the kernel tells whether its machine lives.
            Way::None | Way::Begun(Attempt::Dialing { .. }) => None,
            Way::Resting { until } | Way::Begun(Attempt::Welcomed { until, .. }) => Some(*until),
        }
    }

    fn overdue<S: Sink>(&mut self, number: PeerId, now: u64, sink: &mut S) {
        // It may have come meanwhile, unseen.
        self.way_has_news(number, sink);
        let Some(peer) = self.peers.get_mut(number) else { return };
        if peer.ends_rest(now) {
            return self.dial(number);
        }
        match &peer.way {
            Way::Begun(Attempt::Dialing { said: None, .. }) => self.dial_failed(number, &ErrorKind::TimedOut.into()),
            Way::Begun(Attempt::Welcomed { .. }) => self.unconfirmed(number, ErrorKind::TimedOut),
            Way::Begun(Attempt::Agreed { .. }) => {
                if let Some(link) = &mut peer.link {
                    link.end_if_superseded(now);
                    self.activate(number);
                }
            }
            Way::None | Way::Resting { .. } | Way::Begun(_) => {}
        }
    }

    /// Before somebody sleeps: the timer wakes in time for the next deadline. False: that is over already.
    pub(super) fn set_timer(&mut self) -> bool {
        let next = self.next_deadline();
        self.time(next);
        self.tick_is_due = next.is_some_and(|next| next <= clock::monotonic_ms());
        !self.tick_is_due
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        let ways = self.peers.ways().iter().filter_map(|number| self.deadline_of(*number));
        ways.chain(self.deadline_of_guests()).chain(self.watch_at).min()
    }

    /// The timer wakes for this deadline.
    pub(super) fn time(&mut self, deadline: Option<u64>) {
        if deadline.is_none() && self.timed_for.is_none() {
            return;
        }
        self.timed_for = deadline;
        let left = deadline.map(|deadline| deadline.saturating_sub(clock::monotonic_ms()).max(1));
        self.timer.set(left.map_or(Duration::ZERO, Duration::from_millis));
    }
}

fn longest_silence(config: &Config) -> Duration {
    config.silence.max(SHORTEST_SILENCE)
}

/// In milliseconds.
fn watch_pause(config: &Config) -> u64 {
    (longest_silence(config) / WATCHES).as_millis() as u64
}
