//! Sending to one peer: its file is opened, a lane claimed in it, records are written, and a peer that sleeps is woken.
//!
//! - `claim`: how a lane is claimed.
//! - `growth`: when a larger ring is made.
//!
//! Called by `ShmTransport` for each push and for direct access. Of the engine's headers it knows which are answers,
//! and else only that they are four words.

mod claim;
mod growth;

use super::Config;
use super::access_mark::AccessMark;
use super::ahead;
use super::attention;
use super::copy_speed::{self, Sampler};
use super::dialogue::{Dialogues, RoomWish, Said, is_said, room_needed};
use super::direct_access::RegionCache;
use super::doorbell::Doorbell;
use super::endpoint_file::EndpointFile;
use super::fill;
use super::get;
use super::lane::{self, Lane};
use super::layout::{self, FileHeader};
use super::name;
use super::passing::LastReads;
use super::proof::{PeerIdentity, Proof};
use super::ring::{Cells, Form, Producer, Record, Slot};
use super::ring_or_kernel::Choice;
use super::room_wait::{CreditWait, RoomWait};
use super::wide_rings::{Counted, WideRings};
use crate::engine::port::{Body, Remote};
use crate::engine::wire::{self, Packet};
use crate::sys::shared::Status;
use claim::{claimed_or_warn, open_and_claim};
use core::sync::atomic::{Ordering, compiler_fence, fence};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) producer: Producer,
    pub(super) lane: Lane,
    pub(super) choice: Choice,
    /// Which of our copies into the ring are timed.
    timer: Sampler,
    /// The same for what we say by turns.
    pub(super) timer_of_turns: Sampler,
    pub(super) header: FileHeader,
    /// The peer as its file named it when we connected, and whether that process is known to be the peer's.
    pub(super) identity: PeerIdentity,
    pub(super) proof: Proof,
    /// The peer's file, to recognize it when it is opened again.
    pub(super) file: Status,
    /// The kernel gives one of the two sides no barrier over the other: we fence after each record.
    pub(super) fence: bool,
    pub(super) index: usize,
    pub(super) mark: AccessMark,
    /// The peer's regions that we know for direct access.
    pub(super) cache: RegionCache,
    pub(super) debug: fn(&str),
    /// The lane names it as its claimer until the peer takes the lane back.
    own_instance: u64,
    /// Our own endpoint's, from which the peer's is rung.
    doorbell: Arc<Doorbell>,
    pub(super) path: PathBuf,
    pub(super) warn: fn(&str),
    /// The position at which we went on in the ring in use.
    pub(super) earlier_ring_end: Option<u64>,
    /// When there was no memory for a larger ring last.
    growth_refused_at: Option<u64>,
    /// Those of our endpoint, and this one if it is wide.
    wide_rings: WideRings,
    counted_wide: Option<Counted>,
    /// The record that found no room last: its form, and the length of its body.
    blocked: Option<(Form, usize)>,
    pub(super) room_wait: RoomWait,
    pub(super) credit_wait: CreditWait,
    /// The position behind the last record that direct access must not overtake. It may overtake answers, and requests
    /// for help (`dual_copy`), which change no memory by themselves.
    pub(super) ordered_until: u64,
    pub(super) last_reads: LastReads,
    /// Where the two write by turns, once each has a lane in the other's file.
    pub(super) dialogues: Option<Dialogues>,
    /// Our turns there, which direct access must not overtake either.
    pub(super) said: Said,
    /// The peer's poll counter when it was found not to poll. It is not polling as long as the counter is the same.
    pub(super) idle_since: Option<u64>,
    /// How often our endpoint had been polled at the last push of a message; before the first it is what no count of
    /// polls is.
    pushed_at: u64,
    /// There was no poll between the last two pushes of messages.
    several_in_a_row: bool,
    pub(super) room_wish: RoomWish,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    Full,
    Gone,
    /// It does not fit the small ring, and there is no memory for a large one.
    TooLong,
}

/// Why an address cannot be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectError {
    /// No living endpoint has the address.
    Nobody,
    /// All lanes are taken, or there is no memory for one.
    NoLane,
    /// Another endpoint has the address by now. No lane was claimed in its file: giving one back would look like the
    /// end of a sender.
    OtherInstance,
}

impl Outbound {
    /// `known`: the instance that the address is known to have, 0 for any. Warns of what an administrator can mend.
    pub(super) fn connect(
        address: &[u8],
        known: u64,
        own: &EndpointFile,
        config: &Config,
    ) -> Result<Outbound, ConnectError> {
        let path = name::endpoint_file(&config.dir, address);
        let (header, file, claimed) = open_and_claim(&path, address, known, own, config)?;
        let (index, lane, mark) = claimed_or_warn(claimed, &path, config)?;
        Ok(Outbound {
            producer: Producer::of(lane.rows()),
            fence: header.wants_fence() || !own.in_barrier,
            identity: PeerIdentity::of(&header),
            proof: Proof::default(),
            lane,
            choice: Choice::default(),
            timer: Sampler::default(),
            timer_of_turns: Sampler::default(),
            header,
            file,
            index,
            mark,
            cache: RegionCache::default(),
            debug: config.debug,
            own_instance: own.instance,
            doorbell: own.doorbell.clone(),
            path,
            warn: config.warn,
            earlier_ring_end: None,
            growth_refused_at: None,
            wide_rings: own.wide_rings.clone(),
            counted_wide: None,
            blocked: None,
            room_wait: RoomWait::default(),
            credit_wait: CreditWait::default(),
            ordered_until: 0,
            last_reads: LastReads::default(),
            dialogues: None,
            said: Said::default(),
            idle_since: None,
            pushed_at: u64::MAX,
            several_in_a_row: false,
            room_wish: RoomWish::default(),
        })
    }

    pub(super) fn instance(&self) -> u64 {
        self.identity.instance
    }

    pub(super) fn pid(&self) -> u32 {
        self.identity.pid
    }

    /// Writes a packet, as the next turn of a dialogue or one record. `body` is no longer than `MAX_WRITE`. `polls`:
    /// how often our endpoint has been polled.
    #[inline(always)]
    pub(super) fn push(&mut self, header: &wire::Header, body: Body<'_>, polls: u64) -> Written {
        let is_rest = match header.packet {
            Packet::Segment => true,
            Packet::Reply => header.total > 0,
            Packet::Write => self.is_speaking(),
            _ => false,
        };
        // The rest of a message, a write or an answer, or that one was fetched, says nothing of whether we answer each
        // other.
        if !is_rest && header.packet != Packet::Done {
            self.several_in_a_row = self.pushed_at == polls;
            self.pushed_at = polls;
        }
        let len = body.len();
        let is_said = match header.packet {
            // A long message is sent in parts because it is one that may be said (`is_sooner_sent`), whatever was
            // pushed before it. Behind records a turn would be read in a poll of its own.
            Packet::First => self.is_ring_read(),
            _ if is_rest => self.is_speaking(),
            _ => !self.several_in_a_row && is_said(header),
        };
        if is_said && let Some(dialogues) = &self.dialogues {
            let which = dialogues.next();
            let dialogue = dialogues.of(which);
            let (may_say, lacks_room) = (dialogue.may_say(len), dialogue.lacks_room_for(room_needed(header, len)));
            let is_brief = dialogue.is_brief(header, len);
            if lacks_room {
                self.wish_for_room();
            }
            if may_say && let Some(from) = fill::in_one_piece(&body, len) {
                let [first, second, third, fourth] = header.words();
                let body = core::ptr::slice_from_raw_parts(from, len);
                // Two copies of the code, as that for what is all of a turn and short is a third as long.
                // SAFETY: that is where the body lies.
                return unsafe {
                    match is_brief {
                        true => self.say::<true>(which, first, second, third, fourth, body),
                        false => self.say::<false>(which, first, second, third, fourth, body),
                    }
                };
            }
            self.heed_wish_for_room();
        }
        self.write(header.words(), body, !header.packet.is_answer())
    }

    /// Writes a record of this transport's own: a request for help.
    pub(super) fn push_words(&mut self, header: [u64; 4], body: &[u8]) -> Written {
        self.write(header, Body::Bytes(body), false)
    }

    /// Whether the peer was found not to poll and has not polled since.
    pub(super) fn is_not_polling(&mut self) -> bool {
        let Some(then) = self.idle_since else {
            // Without a look at the peer's count: it writes that line in each poll.
            return false;
        };
        let is_idle = self.header.polls().load(Ordering::Relaxed) == then;
        self.idle_since = is_idle.then_some(then);
        is_idle
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.header.attention().load(Ordering::Relaxed) & layout::SLEEPING != 0
    }

    /// `ordered`: direct access must not overtake it.
    #[inline(always)]
    fn write(&mut self, header: [u64; 4], body: Body<'_>, ordered: bool) -> Written {
        // In a dialogue half a line saves nothing, and a longer record that follows it would cost a line more.
        let may_share = self.several_in_a_row || self.producer.is_mid_line();
        // Two copies of the code, because that for a record of one line at most is half as long.
        match Form::of(&header, body.len(), may_share) {
            Form::Lines => self.put::<true>(Form::Lines, header, body, ordered),
            short => self.put::<false>(short, header, body, ordered),
        }
    }

    #[inline(always)]
    fn put<const LINES: bool>(&mut self, form: Form, header: [u64; 4], body: Body<'_>, ordered: bool) -> Written {
        // The compiler leaves out what is for the other forms.
        let form = match form {
            _ if LINES => Form::Lines,
            Form::HalfLine => Form::HalfLine,
            Form::OneLine | Form::Lines => Form::OneLine,
        };
        let len = body.len();
        let slot = loop {
            match self.producer.reserve(self.lane.rows(), form, len) {
                Ok(Some(slot)) => break slot,
                // Only the length is handed over, so that header and body can stay in registers on the way to here.
                Ok(None) => match self.make_room(form, len) {
                    Some(sent) => return sent,
                    None => continue,
                },
                Err(_) => return Written::Gone,
            }
        };
        match fill::in_one_piece(&body, len) {
            Some(from) if form == Form::Lines && len >= fill::LONG => self.fill_long(slot.record, from),
            // SAFETY: the record is this side's, as it was reserved above and is published below.
            _ => fill::fill(unsafe { self.lane.rows().body(slot.record) }, body),
        }
        self.lane.rows().write_header(slot.record, header);
        self.publish(slot, ordered)
    }

    /// Copies a body from one place, and tells the receiver now and then what that took.
    #[cold]
    #[inline(never)]
    fn fill_long(&mut self, record: Record, from: *const u8) {
        let started = self.timer.start(record.len, self.ring_speed());
        // SAFETY: the record is this side's, as it was reserved and is published later. The body is as long, and no
        // memory that may be sent is the ring's.
        unsafe { fill::copy_long(from, self.lane.rows().body(record)) };
        if let Some(started) = started {
            let took = copy_speed::per_byte(record.len, started.elapsed());
            self.lane.filling().store(took, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn publish(&mut self, slot: Slot, ordered: bool) -> Written {
        let rows = self.lane.rows();
        self.producer.publish(rows, slot);
        if ordered {
            self.ordered_until = self.producer.position();
        }
        if slot.record.form != Form::Lines && self.several_in_a_row {
            let next = self.producer.next_lines(rows.size(), ahead::LINES);
            next.for_each(|cell| self.lane.prepare(cell));
        }
        self.announce()
    }

    /// After what was written: has the peer look, if it does not by itself.
    #[inline(always)]
    pub(super) fn announce(&self) -> Written {
        // Whoever sleeps, or no longer polls this lane, has the kernel run our barrier.
        if self.fence {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        if self.lane.hot().load(Ordering::Relaxed) == 0 {
            if self.lane.claimed_by() != self.own_instance {
                return Written::Gone;
            }
            self.header.ring_bell(self.index);
        }
        match self.header.attention().load(Ordering::Relaxed) & (layout::SLEEPING | layout::CLOSED) {
            0 => Written::Done,
            _ => self.wake_peer(),
        }
    }

    /// The peer sleeps and must be woken, or has closed.
    #[cold]
    fn wake_peer(&self) -> Written {
        if attention::wake(self.header.attention(), || self.doorbell.ring(self.instance())) {
            Written::Done
        } else {
            Written::Gone
        }
    }

    /// Whether our endpoint was polled between the last messages, and again since: what we push then may be an answer.
    pub(super) fn may_answer(&self, polls: u64) -> bool {
        !self.several_in_a_row && self.pushed_at != polls
    }

    pub(super) fn is_closed(&self) -> bool {
        self.header.attention().load(Ordering::Relaxed) & layout::CLOSED != 0
    }

    /// Whether what was just copied out of this memory is what the peer exposed: if it is a region's, the peer has closed
    /// none since.
    pub(super) fn is_still_lent(&self, remote: &Remote) -> bool {
        get::lent(remote).is_none_or(|lent| {
            // SYNC POINT lent: the bytes are read before the count.
            fence(Ordering::Acquire);
            self.header.closings().load(Ordering::Relaxed) == lent.0
        })
    }

    /// Asks the receiver to wake us when it gives lines back, if a body found no room. The caller then has the kernel
    /// run a barrier, and calls `has_no_room`.
    pub(super) fn ask_for_room(&self) {
        if self.blocked.is_some() {
            self.lane.sender().fetch_or(lane::STARVED, Ordering::Relaxed);
        }
    }

    /// SYNC POINT starved: either we see here the lines given back, or the receiver sees that we wait. False if no body
    /// waits for room, or there is room.
    pub(super) fn has_no_room(&mut self) -> bool {
        let Some((form, len)) = self.blocked else { return false };
        if matches!(self.producer.reserve(self.lane.rows(), form, len), Ok(None)) && !self.is_closed() {
            return true;
        }
        self.blocked = None;
        false
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        if !self.lane.is_ours() || self.lane.claimed_by() != self.own_instance {
            return;
        }
        self.lane.sender().fetch_or(lane::SENDER_CLOSED, Ordering::Release);
        fence(Ordering::SeqCst);
        self.header.ring_bell(self.index);
        self.wake_peer();
    }
}
