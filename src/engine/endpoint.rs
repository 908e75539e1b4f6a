//! The calls of an endpoint, and the fast path of a message that fits one packet.
//!
//! `Engine` joins a transport with `Core`. `Core` decides what is to be done; it does not know the transport, so it is
//! compiled once. Pushes, polls and gets are made by `Engine`, never by `Core`.
//! Nothing blocks: `progress` must be called while anything is in flight.

use super::credit;
use super::deliver::EngineSink;
use super::op::{
    CompletedOp, Completion, CompletionLevel, Context, Error, Failure, Peek, Recv, Refused, Report, Send, Unreached,
    untold,
};
use super::outgoing::{self, Outgoing};
use super::peer::Detours;
use super::port::{Around, Body, Contact, PeerId, Push, Transport};
use super::state::{Config, Core, ExposedRegions};
use super::wire::Packet;
use crate::util::keep_in_registers;
use crate::util::regions::Regions;
use crate::util::slab::Id;
use std::sync::Arc;

/// The most packets taken from the transport in one poll.
const POLL: usize = 64;
/// After so many such polls a call ends though the program has heard nothing, as a peer may send without pause.
const ROUNDS: u32 = 16;

#[derive(Debug)]
pub struct Engine<T: Transport> {
    pub(super) transport: T,
    pub(super) core: Core,
    /// Some peer still had packets when its turn of `pushing::BURST` was over.
    pub(super) more_to_push: bool,
    /// Polls of this call of `progress` that took `POLL` packets.
    full_polls: u32,
}

/// The completion of a send that was never queued.
#[inline]
fn ended(send: &Send, error: Option<Error>) -> Completion {
    Completion {
        op: CompletedOp::Send,
        kind: send.kind,
        context: send.context,
        tell: send.tell,
        len: if error.is_none() { send.body.len() } else { 0 },
        buf: 0,
        tag: send.tag,
        data: None,
        source: Some(send.to),
        released: false,
        peeked: false,
        failure: error.map(|error| Failure { error, overflow: 0 }),
    }
}

impl<T: Transport> Engine<T> {
    pub fn new(transport: T) -> Engine<T> {
        Engine::with(transport, Config::default())
    }

    pub fn with(transport: T, config: Config) -> Engine<T> {
        let mut core = Core::new(transport.limits(), transport.far_limits(), config);
        if T::ONE_SIDED && config.one_sided {
            core.one_sided = transport.one_sided();
        }
        let mut engine = Engine {
            transport,
            core,
            more_to_push: false,
            full_polls: 0,
        };
        engine.tell_of_order();
        engine
    }

    /// Goes on with another transport, before anything is sent.
    pub fn set_transport(&mut self, transport: T) {
        self.transport = transport;
        self.tell_of_order();
    }

    fn tell_of_order(&mut self) {
        if self.core.config.reads_pass {
            self.transport.let_reads_pass();
        }
    }

    pub fn transport(&self) -> &T {
        &self.transport
    }

    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Starts a send. Its completion may be reported before this returns.
    #[inline(always)]
    pub fn send(&mut self, send: &Send, report: &mut impl Report) -> Result<(), Refused> {
        let len = send.body.len();
        let short = len <= self.core.small_to_all && send.level < CompletionLevel::Delivery && !send.fence;
        let Some(peer) = self.core.peers.get_mut(send.to as usize).filter(|_| short) else {
            return self.send_long(*send, report);
        };
        if !peer.queue.is_empty() || peer.is_off_fast_path() || peer.credit < credit::cost(len) {
            return self.send_long(*send, report);
        }
        let mut notice = None;
        if T::PUSHES_LATER {
            let room =
                (peer.unfinished as usize) < self.core.config.in_flight && self.core.outgoing.len() < Id::SHORT_MAX;
            // FI_INJECT lets nobody keep the memory. To be told when it is transmitted takes an operation.
            if !room || send.inject && send.level == CompletionLevel::Transmit {
                return self.send_long(*send, report);
            }
            notice = (!send.inject).then(|| outgoing::notice(send.level, self.core.outgoing.next_id()));
        }
        let header = outgoing::message(Packet::Eager, send.kind, send.tag, send.data, len);
        let iov = &send.body;
        match self
            .transport
            .push(send.to, &header, Body::User { iov, at: 0, len }, notice)
        {
            Push::Later if T::PUSHES_LATER => {
                self.send_later(*send);
                Ok(())
            }
            Push::Done | Push::Later => {
                peer.credit -= credit::cost(len);
                report.report(ended(send, None));
                Ok(())
            }
            Push::Full | Push::TooLong => self.send_long(*send, report),
            Push::Gone => {
                report.report(ended(send, Some(Error::PeerGone)));
                Ok(())
            }
            Push::Unreachable(why) => Err(Refused::Unreachable(why)),
            Push::NoMemory => Err(Refused::NoMemory),
        }
    }

    /// A send that cannot take the fast path is queued, and started if it is the first. Takes the send by value, so
    /// that on the fast path it stays in registers.
    #[cold]
    fn send_long(&mut self, mut send: Send, report: &mut impl Report) -> Result<(), Refused> {
        let send = keep_in_registers(&mut send);
        let len = send.body.len();
        let peer = self.core.peer(send.to);
        if peer.queue.is_empty() {
            peer.held_up = false;
            if len > self.core.limits.eager_if_fetched {
                self.judge(send.to, len);
            }
        }
        self.note_way(send.to);
        if self.offer_at_once(send) {
            return Ok(());
        }
        self.queue(send.to, untold(send.inject, send.tell), || Outgoing::new(send), report)
    }

    /// The longest message or operation that goes to this peer in one packet.
    #[inline(always)]
    pub(super) fn small_to(&self, to: PeerId) -> usize {
        let core = &self.core;
        if T::TWO_WAYS {
            core.limits_to(to).small()
        } else {
            core.limits.small()
        }
    }

    /// A message was pushed: asks the transport how the one that is now the first of the queue goes best, which may
    /// depend on what was pushed before it.
    pub(super) fn judge_first(&mut self, to: PeerId) {
        if let Some(len) = self.core.first_to_judge(to) {
            self.judge(to, len);
        }
    }

    /// Asks the transport whether what waits for room waits for long.
    #[inline]
    pub(super) fn note_hold_up(&mut self, to: PeerId) {
        let peer = self.core.peer(to);
        if !peer.queue.is_empty() {
            peer.held_up = self.transport.is_held_up(to);
        }
    }

    fn judge(&mut self, to: PeerId, len: usize) {
        let peer = self.core.peer(to);
        let around = Around {
            crossing: peer.crossing,
            followed: peer.queue.len() > 1,
        };
        peer.sooner_sent = self.transport.is_sooner_sent(to, len, around);
    }

    /// Notes whether the peer is far. Called before it is decided how something goes there.
    #[inline(always)]
    pub(super) fn note_way(&mut self, to: PeerId) {
        if T::TWO_WAYS {
            self.core.peer(to).far = self.transport.is_far(to);
        }
    }

    /// A message was pushed, and the transport will say when it is done with it. By value, as `send_long`.
    #[cold]
    fn send_later(&mut self, mut send: Send) {
        let send = keep_in_registers(&mut send);
        let peer = self.core.peer(send.to);
        peer.credit = peer.credit.saturating_sub(credit::cost(send.body.len()));
        peer.unfinished += 1;
        self.core.outgoing.insert(Outgoing::all_pushed(send));
    }

    /// Queues an operation, and starts it if nothing to this peer is queued before it. `untold`: nobody is told of its
    /// end, so the program may never call again, and the operation is refused if it cannot start now.
    pub(super) fn queue(
        &mut self,
        to: PeerId,
        untold: bool,
        make: impl FnOnce() -> Outgoing,
        report: &mut impl Report,
    ) -> Result<(), Refused> {
        let at_once = untold && self.must_start_at_once(to, report)?;
        let most = self.core.config.in_flight;
        let room = self.core.outgoing.len() < Id::SHORT_MAX;
        let peer = self.core.peer(to);
        if peer.detours.has(Detours::SHUNNED) {
            return Err(Refused::Unreachable(Unreached::Nobody));
        }
        if peer.unfinished as usize >= most || !room {
            return Err(Refused::Again);
        }
        peer.unfinished += 1;
        let first = peer.queue.is_empty();
        let id = self.core.outgoing.insert(make());
        self.core.peer(to).queue.push_back(id);
        if first {
            self.push_to(to, report);
        }
        if at_once && self.core.take_back_last(to, id) {
            return Err(Refused::Again);
        }
        Ok(())
    }

    /// Whether an operation of whose end nobody is told must start now or be refused. Err: it cannot start now. False:
    /// the connection has taken long already, and may take longer, so it is queued as any other.
    #[cold]
    fn must_start_at_once(&mut self, to: PeerId, report: &mut impl Report) -> Result<bool, Refused> {
        let is_clear = |engine: &mut Engine<T>| engine.core.peer(to).queue.is_empty();
        let mut contact = self.transport.connect(to);
        if contact == Contact::Soon || contact == Contact::Made && !is_clear(self) {
            self.progress(report);
            contact = self.transport.connect(to);
        }
        match contact {
            Contact::Made | Contact::NoWay if is_clear(self) => Ok(true),
            Contact::Made | Contact::NoWay | Contact::Soon => Err(Refused::Again),
            Contact::Late => Ok(false),
        }
    }

    /// Receives an unexpected message that matches, or posts the receive.
    #[inline(always)]
    pub fn recv(&mut self, recv: &Recv, report: &mut impl Report) -> Result<(), Refused> {
        if self.core.receive(recv, report) {
            self.push_all(report);
        }
        Ok(())
    }

    /// Lets peers access these regions; without this call they access nothing. `endpoint` is the number by which
    /// regions know this endpoint. `counted`: a counter is bound to the endpoint for peers' operations, so each is
    /// reported, whatever the region asks for; then the transport may not let peers access memory directly.
    pub fn expose_regions(&mut self, regions: Arc<Regions>, endpoint: u64, counted: bool) {
        if counted {
            self.transport.hide_regions();
        } else if !T::ONE_SIDED || self.core.one_sided.copies {
            self.transport.publish_regions(&regions, endpoint);
        }
        self.core.exposed_regions = Some(ExposedRegions {
            regions,
            endpoint,
            counted,
        });
    }

    /// A receive with FI_PEEK, FI_CLAIM or FI_DISCARD. Reports whether a message was found.
    #[inline(always)]
    pub fn peek(&mut self, peek: Peek, recv: &Recv, report: &mut impl Report) -> Result<(), Refused> {
        self.peek_off_fast_path(peek, *recv, report)
    }

    #[cold]
    fn peek_off_fast_path(&mut self, peek: Peek, mut recv: Recv, report: &mut impl Report) -> Result<(), Refused> {
        let recv = keep_in_registers(&mut recv);
        // A message that has come is found though no poll has taken it yet: who sees in memory what was written after it
        // knows that it is there.
        for _ in 0..ROUNDS {
            if !self.core.lacks(peek, recv) || self.progress(report) == 0 {
                break;
            }
        }
        if self.core.peek(peek, recv, report)? {
            self.push_all(report);
        }
        Ok(())
    }

    /// Cancels all the application's receives and discards the messages for others, unless a message is being written
    /// into one. Returns whether it did.
    pub fn give_up_receives(&mut self, report: &mut impl Report) -> bool {
        let given_up = self.core.give_up_receives(report);
        self.push_all(report);
        given_up
    }

    /// Cancels a collective's unmatched receive.
    pub fn withdraw(&mut self, context: Context, report: &mut impl Report) {
        self.core.withdraw_own(context, report);
    }

    /// Pushes what is queued, delivers packets that have come, and pushes the answers. Goes on while there may be more and
    /// the program has heard of none: of what peers do to its memory it hears nothing, and would take that for nothing to
    /// do. Returns how many packets came in the last poll.
    #[inline]
    pub fn progress(&mut self, report: &mut impl Report) -> usize {
        self.full_polls = 0;
        loop {
            let came = self.progress_once(report);
            let nothing_is_left = came < POLL && !self.more_to_push;
            if nothing_is_left || self.has_done_enough(report) {
                return came;
            }
        }
    }

    /// A poll took, or pushed, as much as one does: whether the rest is left to the next call.
    #[cold]
    #[inline(never)]
    fn has_done_enough(&mut self, report: &impl Report) -> bool {
        self.full_polls += 1;
        self.full_polls >= ROUNDS || report.has_told()
    }

    #[inline(always)]
    fn progress_once(&mut self, report: &mut impl Report) -> usize {
        if self.busy() {
            self.transport.gather();
            self.push_waiting(report);
        }
        let core = &mut self.core;
        let came = self.transport.poll(&mut EngineSink { core, report }, POLL);
        if !self.core.matched_offers.is_empty() {
            self.fetch_matched_offers(report);
        }
        if !self.core.at_hand.is_nothing() {
            self.answer_reads_at_hand();
        }
        if !self.core.awaiting_answers.is_empty() {
            self.poll_awaited(report);
        }
        if !self.core.acks_later.is_empty() {
            self.core.see_to_acks_later(came);
        }
        self.push_all(report);
        self.transport.flush();
        if T::PUSHES_LATER && !self.core.gathered.is_empty() {
            self.core.have_left(|to| self.transport.holds_back(to), report);
        }
        came
    }

    /// Whether packets or gets are queued, so `progress` has work even if nothing arrives.
    pub fn busy(&self) -> bool {
        !self.core.busy.is_empty() || !self.core.calls.is_empty()
    }

    /// Whether `progress` could push something now. Packets that found the transport full do not count: it tells when
    /// there is room.
    pub fn has_work(&self) -> bool {
        self.more_to_push || !self.core.calls.is_empty() || !self.core.acks_later.is_empty()
    }

    /// Whether any operation or receive is outstanding, or an answer that a peer waits for: it may lack memory, and
    /// nobody tells when there is some again.
    pub fn unfinished(&self) -> bool {
        let posted = self.posted() + self.core.collective.posted_len();
        self.busy() || self.in_flight() + posted + self.core.streams.len() > 0
    }

    /// Posted receives of the application.
    pub fn posted(&self) -> usize {
        self.core.messages.posted_len() + self.core.tagged.posted_len()
    }

    /// Sends, RMA and atomic operations in flight.
    pub fn in_flight(&self) -> usize {
        self.core.outgoing.len() + self.core.unacked
    }

    /// How often this peer was lost, and why the last time. A caller that keeps state about a peer sees by a change
    /// that it is a new instance, or knows nothing of what was under way.
    pub fn losses(&self, peer: PeerId) -> (u32, Error) {
        let known = self.core.peers.get(peer as usize);
        known.map_or((0, Error::PeerGone), |peer| (peer.losses, peer.last_loss))
    }

    /// Frees the numbers of dead peers that neither the engine nor `held` uses, and returns them. It costs time for
    /// each peer ever known, so call it when the transport `is_crowded`.
    #[cold]
    pub fn forget_peers(&mut self, held: impl Fn(PeerId) -> bool) -> Vec<PeerId> {
        let named = self.core.peers_in_use();
        let forgotten = self.transport.forget(&|peer| named.contains(&peer) || held(peer));
        self.core.forget_all(&forgotten);
        forgotten
    }

    /// Packets that violated the protocol.
    pub fn malformed(&self) -> u64 {
        self.core.malformed
    }
}
