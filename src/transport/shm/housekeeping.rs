//! What a poll does only every few times: events of lanes, bells, newly claimed lanes, the slow scan over all lanes,
//! and peers that died.
//!
//! Called by `ShmTransport::poll`; `sleeping` uses its check of who is alive.

use super::ShmTransport;
use super::inbound::LaneEvent;
use super::lane::Lane;
use super::layout::LOCK_LANES;
use super::peers::{Peer, is_alive, living_at};
use super::sweep;
use crate::engine::port::{Loss, PeerId, Sink};
use crate::sys::{clock, shared};
use core::sync::atomic::{Ordering, fence};
use std::io;

/// Polls from one housekeeping to the next, which looks at the bells.
const HOUSEKEEPING_EVERY: u32 = 8;
/// Housekeepings between steps of the slow scan, and lanes in a step.
const SCAN_EVERY: u32 = 8;
const SCAN_STEP: usize = 16;
/// Housekeepings between looks at the clock.
const CLOCK_EVERY: u32 = 32;
/// A quarter of the peers is checked for being alive this often, so each within a second.
const CHECK_EVERY_MS: u64 = 200;
const CHECK_PARTS: usize = 4;

impl ShmTransport {
    #[cold]
    pub(super) fn do_housekeeping<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        self.polls_to_housekeeping = HOUSEKEEPING_EVERY;
        self.housekeepings = self.housekeepings.wrapping_add(1);
        while let Some((index, event)) = self.events.pop() {
            self.handle_event(index, event, sink);
        }
        self.own.header.take_bells(&mut self.rung);
        if self.housekeepings % SCAN_EVERY == 0 {
            self.rung.extend(self.inbox.next_scanned(&self.own.header, SCAN_STEP));
        }
        let is_new = |index: &usize| !self.inbox.knows(*index) && self.own.header.claim(*index).is_some();
        if self.rung.iter().any(is_new) {
            for index in self.inbox.newcomers(&self.own.header) {
                self.take_up(index, sink);
            }
        }
        // A bell and the scan may name the same lane, which is read once.
        self.rung.sort_unstable();
        self.rung.dedup();
        let done = self.read_rung(sink, budget);
        if self.housekeepings % CLOCK_EVERY == 0 {
            self.own.doorbell.ring_again();
            if self.check_is_due() {
                self.peers.ended.append(&mut self.peers.put_off);
                self.check_some();
                self.inbox.retry(&mut self.rung);
            }
        }
        self.report_gone(sink);
        done
    }

    /// Reads the lanes that are named, from the one on that had no turn the last time. If a cold one has none again,
    /// the hot ones, which each poll reads first, have to wait for their turn as well.
    fn read_rung<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let first = self.rung.partition_point(|index| *index <= self.left_out);
        self.rung.rotate_left(first);
        let (mut done, mut left_out) = (0, None);
        while let Some(index) = self.rung.pop() {
            if done >= budget && self.inbox.is_cold_with_news(index) {
                left_out.get_or_insert(index);
            }
            done += self.read_lane(index, sink, budget.saturating_sub(done));
        }
        if let Some(index) = left_out {
            self.left_out = index;
            self.inbox.cool_all(&self.own.header);
        }
        done
    }

    /// Reads one lane, which may be nobody's.
    fn read_lane<S: Sink>(&mut self, index: usize, sink: &mut S, budget: usize) -> usize {
        let (done, event) = self.inbox.read_lane(index, &self.own.header, sink, budget);
        self.handle_event(index, event, sink);
        done
    }

    fn handle_event<S: Sink>(&mut self, index: usize, event: LaneEvent, sink: &mut S) {
        if let Some((peer, help)) = self.inbox.take_help(index) {
            self.help(peer, &help, sink);
        }
        match event {
            LaneEvent::Nothing | LaneEvent::Help => {}
            LaneEvent::Over | LaneEvent::Broken => self.drop_lane(index),
            LaneEvent::Moved => self.follow(index),
            LaneEvent::Starved => {
                let peer = self.inbox.get_mut(index).map(|inbound| inbound.peer);
                if let Some(peer) = peer.and_then(|peer| self.peers.get(peer)) {
                    self.own.doorbell.ring(peer.instance);
                }
            }
        }
    }

    /// Follows a sender into its larger ring.
    fn follow(&mut self, index: usize) {
        if let Err(error) = self.inbox.follow(index, &self.own.header, self.own.file()) {
            self.no_memory(&error);
        }
    }

    fn no_memory(&mut self, error: &io::Error) {
        if !core::mem::replace(&mut self.warned_of_mapping, true) {
            let address = self.own.address();
            (self.config.warn)(&format!(
                "{address}: a peer's ring cannot be mapped ({error}): it is tried again; look at the process's limits \
                 (ulimit -v, vm.max_map_count) and at the room in {}",
                self.config.dir.display()
            ));
        }
    }

    /// Maps a lane that was claimed, or puts it off.
    fn map(&mut self, index: usize) -> Option<Lane> {
        match Lane::of(self.own.lanes(), self.own.file(), index) {
            Ok(lane) => Some(lane),
            Err(error) => {
                self.no_memory(&error);
                self.inbox.put_off(index);
                None
            }
        }
    }

    fn drop_lane(&mut self, index: usize) {
        if let Some(peer) = self.inbox.remove(index, &self.own.header, self.own.file()) {
            self.peers.lane_gone(peer, index);
        }
    }

    /// Takes up a newly claimed lane, unless an older one of the same address is still there.
    fn take_up<S: Sink>(&mut self, index: usize, sink: &mut S) {
        let Some(lane) = self.map(index) else { return };
        let who = lane
            .claimer()
            .and_then(|(instance, address)| Some((instance, self.peers.number(&address)?)));
        let Some((instance, number)) = who.filter(|(instance, _)| *instance != 0) else {
            // Instance or address cannot be: no claimer of ours.
            return self.inbox.free(index, lane, &self.own.header, self.own.file());
        };
        let Some(peer) = self.peers.get(number) else {
            return;
        };
        if peer.instance != 0 && peer.instance != instance {
            if !self.is_later(index, peer) && self.lives(peer) && !self.claimer_lives(index) {
                self.take_up_former(number, instance, index, lane, sink);
            } else {
                self.end(number);
                self.inbox.put_off(index);
            }
            return;
        }
        if peer.ending || peer.lane.is_some() || self.peers.has_former(number) {
            // An older lane of the same sender is emptied first.
            return self.inbox.put_off(index);
        }
        sink.met(number, self.peers.source(number));
        self.peers.met(number, instance, index);
        self.inbox.add(index, lane, number, &self.own.header);
        let out = self.peers.get_mut(number).and_then(|peer| peer.out.as_mut());
        if let (Some(out), Some(inbound)) = (out, self.inbox.get_mut(index)) {
            inbound.open_dialogues(out, self.own.instance);
        }
    }

    /// Takes up the lane of an endpoint that had the address before the one that we are connected to, and is closed:
    /// its messages were accepted, so they are delivered.
    fn take_up_former<S: Sink>(&mut self, of: PeerId, instance: u64, index: usize, lane: Lane, sink: &mut S) {
        let Some(former) = self.peers.former(of).filter(|_| !self.peers.has_former(of)) else {
            return self.inbox.put_off(index); // until the lane of a still earlier endpoint is empty
        };
        let source = self.peers.source(of);
        // The living endpoint is named too, so that a receive for this address does not end with the earlier one.
        sink.met(of, source);
        self.take_up_ending(former, instance, index, lane, sink);
    }

    /// Takes up the lane of a peer that has ended, if we had not seen it yet: what the peer sent comes before its end.
    fn take_up_last<S: Sink>(&mut self, of: PeerId, sink: &mut S) -> bool {
        let Some(instance) = self.peers.get(of).map(|peer| peer.instance).filter(|known| *known != 0) else {
            return false;
        };
        // The peer claimed the lane before it closed or died, which was seen before this.
        fence(Ordering::Acquire);
        for index in self.inbox.newcomers(&self.own.header) {
            let Some(lane) = self.map(index) else { continue };
            let claimer = lane.claimer().filter(|(life, _)| *life == instance);
            if claimer.and_then(|(_, address)| self.peers.number(&address)) == Some(of) {
                self.take_up_ending(of, instance, index, lane, sink);
                return true;
            }
        }
        false
    }

    /// Adds the lane of an endpoint that has ended, to be freed when it is empty.
    fn take_up_ending<S: Sink>(&mut self, number: PeerId, instance: u64, index: usize, lane: Lane, sink: &mut S) {
        sink.met(number, self.peers.source(number));
        self.peers.met(number, instance, index);
        self.inbox.add(index, lane, number, &self.own.header);
        if let Some(inbound) = self.inbox.get_mut(index) {
            inbound.ending = true;
        }
        self.own.header.ring_bell(index);
        self.polls_to_housekeeping = 1;
    }

    /// Whether a lane was claimed after the one that we have of the same address. An address has one owner at a time,
    /// so the older lane's owner is dead, even if its lock is held: a child of its process may hold that still.
    fn is_later(&self, index: usize, peer: &Peer) -> bool {
        let claim = |index| self.own.header.claim(index);
        peer.lane.is_some_and(|known| claim(index) > claim(known))
    }

    fn report_gone<S: Sink>(&mut self, sink: &mut S) {
        while let Some(peer) = self.peers.ended.pop() {
            if self.take_up_last(peer, sink) {
                continue; // it is reported when that lane is empty
            }
            let Some(loss) = self.loss_of(peer) else {
                self.peers.put_off.push(peer);
                continue;
            };
            // The engine may not have met this peer yet, if it never sent anything: receives for its address end too.
            sink.met(peer, self.peers.source(peer));
            self.peers.reset(peer);
            self.pending_copies.retain(|pending| pending.peer != peer);
            sink.gone(peer, loss);
            // Another lane of its address may have waited for this.
            self.inbox.retry(&mut self.rung);
            self.polls_to_housekeeping = 1;
        }
    }

    /// What ends with a peer: one context, if the endpoint that it was of is there, which is looked after from now on
    /// as if it had sent something. None: that cannot be told now, for want of descriptors.
    fn loss_of(&mut self, peer: PeerId) -> Option<Loss> {
        let whole = self.peers.source(peer);
        let known = self.peers.get_mut(whole).filter(|_| whole != peer);
        let Some(known) = known else { return Some(Loss::Died) };
        if known.instance == 0 {
            known.instance = living_at(&self.config.dir, &known.address)?;
        }
        Some(match known.instance {
            0 => Loss::Died,
            _ => Loss::OneContext { whole },
        })
    }

    pub(super) fn check_is_due(&mut self) -> bool {
        let now = clock::monotonic_ms();
        let due = now.saturating_sub(self.last_check) >= CHECK_EVERY_MS;
        if due {
            self.last_check = now;
        }
        due
    }

    /// Whether the claimer of a lane in our file is alive: its claim is a lock.
    fn claimer_lives(&self, index: usize) -> bool {
        shared::is_locked(self.own.file(), LOCK_LANES + index as i64).unwrap_or(true)
    }

    pub(super) fn lives(&self, peer: &Peer) -> bool {
        match peer.lane {
            Some(lane) => self.claimer_lives(lane),
            None => is_alive(&self.config.dir, &peer.address, peer.instance),
        }
    }

    pub(super) fn check_some(&mut self) {
        sweep::go_on();
        for peer in self.peers.next_to_check(self.peers.len().div_ceil(CHECK_PARTS)) {
            self.check(peer);
        }
    }

    fn check(&mut self, number: PeerId) {
        if let Some(out) = self.peers.get_mut(number).and_then(|peer| peer.out.as_mut()) {
            out.forget_closed();
        }
        let Some(peer) = self.peers.get(number) else { return };
        if peer.lane.is_some_and(|lane| self.inbox.take_delivered(lane)) {
            return;
        }
        let closed = peer.out.as_ref().is_some_and(|out| out.is_closed());
        if closed || !self.lives(peer) {
            self.end(number);
        }
    }

    /// A peer is dead. The next poll delivers what it sent and then tells the engine; as its sender cannot, we set
    /// the bell of its lane.
    pub(super) fn end(&mut self, number: PeerId) {
        self.peers.end(number, &mut self.inbox);
        if let Some(lane) = self.peers.get(number).and_then(|peer| peer.lane) {
            self.own.header.ring_bell(lane);
        }
        self.polls_to_housekeeping = 1;
    }

    /// Checks all peers at once, as polls do one after the other.
    #[cfg(test)]
    pub fn check_peers<S: Sink>(&mut self, sink: &mut S) {
        if !self.own.is_ours() {
            return;
        }
        for peer in self.peers.next_to_check(usize::MAX / 2) {
            self.check(peer);
        }
        self.report_gone(sink);
    }
}
