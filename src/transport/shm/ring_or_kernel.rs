//! Whether what the kernel could copy goes better through the ring or by turns: messages that the receiver could fetch,
//! and reads and writes of a peer's private memory.
//!
//! Both sides measure how quick the ring and the dialogue are while they copy (`copy_speed`). Both must work for what
//! goes there, so long operations do only while the peer is seen to poll: where more processes run than processors,
//! waiting for the target, and its copying, costs more than the kernel's copy. Called by `ShmTransport`. The way of a
//! long message is chosen by its receiver (`streaming`).

use super::ShmTransport;
use super::config::{MAX_BODY, MAX_IN_RING, MAX_READ, MAX_WRITE, MAX_WRITTEN};
use super::contest::{Contest, Rival};
use super::copy_speed::{KernelPace, SpeedClass};
use super::dialogue::LONGEST_TURN;
use super::direct_access::RemoteRange;
use super::inbound::Inbound;
use super::outbound::Outbound;
use super::ring::Cells;
use super::trials::Trials;
use crate::engine::op::Access;
use crate::engine::port::{Around, Get, PeerId};
use crate::util::user::UserIov;
use core::sync::atomic::Ordering;
use std::time::Duration;

/// Once the peer was seen to poll, it is not looked at again for so many long operations.
const SEEN_POLLING_FOR: u8 = 16;
/// How often a look reads the peer's count of polls at most: about a microsecond.
const LOOKS: usize = 40;
/// After a look that saw no poll, so many long operations go by the kernel without another.
const LEFT_ALONE: u8 = 64;
/// After operations had to be taken back from the peer, so many that fit a packet go by the kernel, if it could do them
/// as well.
pub(super) const SPARED: u16 = 512;
/// A wait for the peer to read ends after so many looks in a row in which it took nothing: some microseconds.
const LOOKS_IN_VAIN: usize = 160;
/// A wait ends after so many looks in any case, some hundred microseconds, as the peer may write anything.
const LOOKS_AT_MOST: usize = 8192;
/// The longest message for which it pays to keep both sides busy, through the ring or by turns, where the peer sends at
/// the same time, or where nothing else is sent. Near, 16 KiB each way took 2.5 us so and 3.1 by the kernel, 32 KiB 4.5
/// and 4.2; far 4.6 and 4.7, 6.1 and 5.8. One way and alone, 32 KiB take as long either way, and the kernel keeps one
/// side busy only.
const WORTH_BOTH: usize = 16 << 10;
/// The borders of turns (`copy_speed`) are such that one class does for all lengths up to this. Longer ones take less for
/// a byte by a dual copy.
pub(super) const ONE_CLASS_TO: usize = 64 << 10;
/// Between two polls packets ask for so many bytes, then the kernel reads: nobody takes the answers meanwhile, and the
/// peer has room for some of them only. Near, each of 300 reads of 64 KiB took 20 us if all went as packets, 5 us so.
const MOST_ASKED: usize = 256 << 10;
/// After a wait in vain, there is none before so many operations.
const NOT_WAITED: u8 = 64;

/// What the choices for one peer depend on, besides speed.
#[derive(Debug, Default)]
pub(super) struct Choice {
    trials: Trials,
    trials_of_turns: Trials,
    contest: Contest,
    /// How many messages that could be fetched were asked about: by this number `contest` knows two in a row.
    judged: u64,
    /// Of messages in a row some are offered, as only that shows whether the peer sends at the same time.
    trials_of_crossing: Trials,
    trials_of_reads: Trials,
    trials_of_writes: Trials,
    /// What the kernel takes for our writes to the peer's memory.
    pub(super) kernel_writes: KernelPace,
    /// How many long operations still go by the kernel, as the peer was not seen to poll.
    left_alone: u8,
    /// How many operations that fit a packet still go by the kernel, as others were taken back from the peer.
    spared: u16,
    /// How many long operations may still go through the ring without another look, as the peer was seen to poll.
    pub(super) seen_polling: u8,
    /// The number of polls before the last read that went as packets, and how many bytes such reads have asked for since.
    asked: (u64, usize),
    /// How many copies are still taken to cross the peer's: see `dual_copy`.
    pub(super) copies_cross: u8,
    /// How many operations are still not waited for, as the last wait was in vain.
    pub(super) not_waited: u8,
}

/// The least class of speed at which so many bytes go through the ring: a copy by the kernel takes a microsecond and 60
/// to 85 ns for each KiB, so a long one takes less for a byte.
fn quick_enough_for(len: usize) -> SpeedClass {
    if len <= MAX_WRITE {
        SpeedClass::BeatsFetchOf16K
    } else if len <= MAX_IN_RING {
        SpeedClass::BeatsFetchOf32K
    } else {
        SpeedClass::BeatsDualCopy
    }
}

impl Choice {
    /// The same for an operation on the peer's memory. A write of 32 KiB takes 4.6 us through the ring, and by the
    /// kernel 3.8 where that keeps its usual pace, 5.7 where it does not.
    fn least_for(&self, access: Access, len: usize) -> SpeedClass {
        match (access, quick_enough_for(len)) {
            (Access::Write, SpeedClass::BeatsFetchOf32K) if !self.kernel_writes.is_slow() => SpeedClass::BeatsDualCopy,
            (_, least) => least,
        }
    }

    /// Whether a read may go as packets, so far as the answers need room in the peer's ring. `polls`: how often our
    /// endpoint has been polled.
    fn has_room_for_answer(&self, len: usize, polls: u64) -> bool {
        let (at, asked) = self.asked;
        at != polls || asked + len <= MOST_ASKED
    }

    fn asks(&mut self, len: usize, polls: u64) {
        let (at, asked) = self.asked;
        self.asked = (polls, if at == polls { asked + len } else { len });
    }

    /// Operations were taken back from the peer, as it polls too seldom.
    pub(super) fn has_taken_back(&mut self) {
        self.spared = SPARED;
    }

    fn is_spared(&mut self) -> bool {
        let is_spared = self.spared > 0;
        self.spared = self.spared.saturating_sub(1);
        is_spared
    }

    /// Whether an operation that may be a turn becomes one. `speed`: that of such turns. That of writes is judged by
    /// turns of messages too, whose answers bring the lines back; a write that is only acknowledged takes longer.
    fn is_turn(&mut self, access: Access, speed: SpeedClass, least: SpeedClass) -> bool {
        match access {
            Access::Read => is_quick_enough(speed, least, &mut self.trials_of_reads),
            Access::Write => is_quick_enough(
                speed,
                least.max(SpeedClass::BeatsFetchOf32K),
                &mut self.trials_of_writes,
            ),
        }
    }

    /// Whether a message that may be a turn, and is answered, becomes one. `is_quick`: what copies take says so.
    fn is_sooner_said(&mut self, len: usize, is_quick: bool) -> bool {
        let guess = if is_quick { Rival::Turn } else { Rival::Fetch };
        self.contest.way_of(self.judged, len, guess) == Rival::Turn
    }
}

/// Whether a way is quick enough, or not known yet, or due for a trial that finds out whether it still is too slow.
fn is_quick_enough(speed: SpeedClass, least: SpeedClass, trials: &mut Trials) -> bool {
    if speed == SpeedClass::Unknown || speed >= least {
        *trials = Trials::default();
        return true;
    }
    trials.is_due()
}

impl ShmTransport {
    /// Whether an operation on a peer's private memory goes better as packets than by the kernel.
    pub(super) fn is_better_sent(&mut self, to: PeerId, access: Access, len: usize) -> bool {
        let most = match access {
            Access::Read => MAX_READ,
            Access::Write => MAX_WRITTEN,
        };
        if len < self.config.bulk || len > most || len > MAX_BODY && !self.config.stream {
            return len < self.config.bulk;
        }
        let polls = self.polls;
        // A read's bytes come through the peer's ring or by its turns, so it is this side that has judged their speed.
        let from = self.inbound_of(to);
        let ours = from.map_or(Default::default(), |from| {
            (from.speeds.of_reads(), from.speeds.of_long_reads())
        });
        self.direct_path(to).is_none_or(|out| {
            let (in_ring, by_turns) = match access {
                Access::Read => ours,
                Access::Write => (out.ring_speed(), out.dialogue_speed()),
            };
            if access == Access::Read && !out.choice.has_room_for_answer(len, polls) {
                return false;
            }
            let least = out.choice.least_for(access, len);
            let may_be_turn = len > MAX_BODY && out.may_be_turn(len, polls);
            let is_turn = may_be_turn && out.choice.is_turn(access, by_turns, least);
            // What may be a turn becomes one if it is sent at all, so the speed of the ring says nothing of it.
            let is_quick = is_turn || !may_be_turn && out.is_worth_a_packet(in_ring, least);
            let is_sent = is_quick
                && match len <= MAX_BODY {
                    true => !out.choice.is_spared(),
                    false => out.is_to_be_waited_for(),
                };
            if is_sent && access == Access::Read {
                out.choice.asks(len, polls);
            }
            is_sent
        })
    }

    /// Has the kernel fetch a message of this peer. Some fetches are timed, as the ring's speed is held against theirs.
    pub(super) fn fetch(&mut self, from: PeerId, len: usize, fetch: impl FnOnce() -> Get) -> Get {
        let mut inbound = self.inbound_of(from);
        let started = inbound.as_mut().and_then(|inbound| inbound.speeds.start_fetch(len));
        let got = fetch();
        if let (Some(inbound), Some(started), Get::Done) = (inbound, started, got) {
            inbound.speeds.fetched(&inbound.lane, len, started.elapsed());
        }
        got
    }

    /// Has the kernel read or write a peer's region, which is timed as fetches are.
    pub(super) fn copy_by_kernel(&mut self, to: PeerId, access: Access, range: &RemoteRange, local: &UserIov) -> Get {
        let len = local.len();
        let started = match access {
            Access::Read => self.inbound_of(to).and_then(|from| from.speeds.start_read(len)),
            Access::Write => self.direct_path(to).and_then(|out| out.choice.kernel_writes.start(len)),
        };
        if !self.direct_path(to).is_some_and(|out| out.copy_all(range, local)) {
            return Get::Unsupported;
        }
        if let Some(started) = started {
            self.copied_by_kernel(to, access, len, started.elapsed());
        }
        Get::Done
    }

    #[cold]
    fn copied_by_kernel(&mut self, to: PeerId, access: Access, len: usize, took: Duration) {
        if access == Access::Write {
            if let Some(out) = self.direct_path(to) {
                out.choice.kernel_writes.took(len, took);
            }
        } else if let Some(from) = self.inbound_of(to) {
            from.speeds.read_by_kernel(len, took);
        }
    }

    fn inbound_of(&mut self, peer: PeerId) -> Option<&mut Inbound> {
        let lane = self.peers.get(peer)?.lane?;
        self.inbox.get_mut(lane)
    }
}

impl Outbound {
    /// Whether a message that the peer could fetch is better sent, by turns or through the ring. `polls`: how often our
    /// endpoint has been polled. Where both send at the same time, both ways keep both busy, and a fetch only one.
    pub(super) fn is_sooner_sent(&mut self, len: usize, polls: u64, around: Around) -> bool {
        self.choice.judged += 1;
        if self.room_wait.has_next_offered() {
            return false;
        }
        if !around.followed && self.is_ring_read() && self.has_room_for_turn(len, MAX_BODY) {
            return self.is_sooner_a_turn(len, around.crossing);
        }
        if len > MAX_IN_RING || around.crossing && len > WORTH_BOTH {
            return false;
        }
        // Longer ones are quicker so only if there are several in a row, which none of the peer's cross.
        let is_alone = !around.followed && self.may_answer(polls);
        if len > WORTH_BOTH && (is_alone || self.choice.trials_of_crossing.is_due()) {
            return false;
        }
        let speed = self.ring_speed();
        self.is_worth_a_packet(speed, quick_enough_for(len))
    }

    /// The same of a message that would be a turn in any case.
    fn is_sooner_a_turn(&mut self, len: usize, crossing: bool) -> bool {
        let speed = self.dialogue_speed();
        let is_unanswered = self.says_long_elsewhere();
        let crosses = len > WORTH_BOTH && (crossing || is_unanswered);
        // One that is answered briefly goes to lines that the peer has, which the speed does not show; and so does one
        // of two that cross, unless both go by turns.
        if (crosses || len > MAX_IN_RING) && speed != SpeedClass::Unknown && !self.has_lines() {
            return self.choice.trials_of_turns.is_due();
        }
        let least = match crosses || len > ONE_CLASS_TO {
            true => SpeedClass::BeatsFetchOf64K,
            false => SpeedClass::BeatsFetchOf16K,
        };
        let is_quick = is_quick_enough(speed, least, &mut self.choice.trials_of_turns);
        // From one message to the next is a round only if the peer answers in between.
        if crossing || is_unanswered {
            return is_quick;
        }
        self.choice.is_sooner_said(len, is_quick)
    }

    /// Whether what may be a turn can be one, whose longest part is `part`. If only room is lacking, it is asked for.
    fn has_room_for_turn(&mut self, len: usize, part: usize) -> bool {
        if len > LONGEST_TURN {
            return false;
        }
        if self.lacks_room_for(MAX_BODY) {
            self.wish_for_room();
        }
        self.may_say(part)
    }

    /// Whether a read or write of more than `MAX_BODY` bytes may be a turn. If only room is lacking for that, it is
    /// asked for. A read is answered in several parts, a write has several from `MAX_WRITE` on. `polls`: how often our
    /// endpoint has been polled.
    fn may_be_turn(&mut self, len: usize, polls: u64) -> bool {
        self.may_answer(polls) && self.has_room_for_turn(len, len.min(MAX_WRITE))
    }

    /// How quickly bodies go through our ring, as the peer has judged.
    pub(super) fn ring_speed(&self) -> SpeedClass {
        SpeedClass::of(self.lane.ring_speed().load(Ordering::Relaxed))
    }

    /// How quickly bodies go by our turns, as the peer has judged.
    pub(super) fn dialogue_speed(&self) -> SpeedClass {
        SpeedClass::of(self.lane.dialogue_speed().load(Ordering::Relaxed))
    }

    /// Whether bodies come to the peer quickly enough for a packet, or it is time to try one.
    pub(super) fn is_worth_a_packet(&mut self, speed: SpeedClass, least: SpeedClass) -> bool {
        is_quick_enough(speed, least, &mut self.choice.trials)
    }

    /// Whether an operation of more than `MAX_BODY` bytes may wait for the peer, as that was seen to poll of late.
    pub(super) fn is_to_be_waited_for(&mut self) -> bool {
        if self.choice.left_alone > 0 {
            self.choice.left_alone -= 1;
            return false;
        }
        if self.choice.seen_polling == 0 {
            if self.is_asleep() || !self.polls_now() {
                self.choice.left_alone = LEFT_ALONE;
                return false;
            }
            self.choice.seen_polling = SEEN_POLLING_FOR;
        }
        self.choice.seen_polling -= 1;
        true
    }

    /// Waits, for a moment, until the peer has read all that this access must not overtake. An operation that does
    /// not wait has to go through the ring behind that, and so do those after it, if each comes before the peer has
    /// read the last one.
    pub(super) fn wait_until_read(&mut self, access: Access) -> bool {
        if self.choice.not_waited > 0 {
            self.choice.not_waited -= 1;
            return false;
        }
        let is_read = self.watch_reading(access);
        self.choice.not_waited = if is_read { 0 } else { NOT_WAITED };
        is_read
    }

    /// Looks as long as the peer goes on reading.
    #[cold]
    fn watch_reading(&self, access: Access) -> bool {
        let (mut taken, mut in_vain) = (self.lane.rows().taken(), 0);
        for _ in 0..LOOKS_AT_MOST {
            core::hint::spin_loop();
            if self.may_pass(access) {
                return true;
            }
            let now = self.lane.rows().taken();
            in_vain = if now == taken { in_vain + 1 } else { 0 };
            taken = now;
            if in_vain > LOOKS_IN_VAIN {
                return false;
            }
        }
        false
    }

    /// Whether the peer polls while we look.
    #[cold]
    fn polls_now(&self) -> bool {
        let before = self.header.polls().load(Ordering::Relaxed);
        (0..LOOKS).any(|_| {
            core::hint::spin_loop();
            self.header.polls().load(Ordering::Relaxed) != before
        })
    }
}
