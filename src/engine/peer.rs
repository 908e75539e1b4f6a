//! What an engine knows of one peer: packets queued for it, credit both ways, how many operations are in flight.

use super::next_packet::Purpose;
use super::op::{Completion, CompletionLevel, Error, Failure};
use super::outgoing::{Holds, Outgoing, Stage};
use super::port::{Limits, PeerId};
use super::rma_peer::RmaPeer;
use super::state::{Config, Core};
use super::wire::Header;
use crate::engine::op::Report;
use crate::util::slab::Id;
use std::collections::VecDeque;

/// A packet that violates the protocol: its sender is shunned (`Core::shun`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// What closes the fast paths to and from a peer: a set, so that one comparison tells whether they are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Detours(u8);

impl Detours {
    /// The peer violated the protocol: all its packets are dropped.
    pub(super) const SHUNNED: Detours = Detours(1);
    /// `RmaPeer::long_ops`: messages and atomics to the peer wait.
    pub(super) const LONG_OPS: Detours = Detours(2);
    /// `RmaPeer::landing`: the peer's packets wait.
    pub(super) const LANDING: Detours = Detours(4);
    /// `Core::at_hand` are the peer's: they are answered before what follows.
    pub(super) const READS_AT_HAND: Detours = Detours(8);

    #[inline]
    pub(super) fn has(self, which: Detours) -> bool {
        self.0 & which.0 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, which: Detours, whether: bool) {
        self.0 = if whether { self.0 | which.0 } else { self.0 & !which.0 };
    }
}

#[derive(Debug)]
pub(super) struct Peer {
    /// The peer as whose its messages match (`Sink::met`); None: itself.
    pub source: Option<PeerId>,
    /// Credit left for eager messages to this peer.
    pub credit: usize,
    /// Operations whose first packet was not pushed, in order. The first may have been started and have segments left.
    pub queue: VecDeque<Id>,
    /// Offered messages whose bytes the peer requested, and reads to be asked for again.
    pub requested: VecDeque<Id>,
    /// Answers without a body, to be pushed before anything else.
    pub control: VecDeque<Header>,
    /// Operations to this peer that have not completed.
    pub unfinished: u32,
    /// The short name of the message that was offered to it last, which it may have fetched since.
    pub last_offered: u32,
    /// How often this peer was lost, and why the last time.
    pub losses: u32,
    pub last_loss: Error,
    /// It is in `Core::busy`.
    pub busy: bool,
    /// `requested` goes before `queue` next: they take turns.
    pub requested_next: bool,
    /// The peer said that it withholds credit from us.
    pub withholds_credit: bool,
    /// We have told the peer that we withhold credit from it.
    pub told_withholding: bool,
    pub detours: Detours,
    /// The transport had no memory for a long packet: keep to `Limits::guaranteed_body` until the queue is empty.
    pub small_packets_only: bool,
    /// It cannot fetch our memory: it has requested the bytes of a message that it could have fetched, where that would
    /// always have been quicker.
    pub cannot_fetch: bool,
    /// It is this very endpoint (`Transport::is_itself`).
    pub is_itself: bool,
    /// Its last long message came while one of ours was still to be fetched: both send at the same time.
    pub crossing: bool,
    /// `Transport::is_sooner_sent` of the first message in the queue, if that is long enough for it to matter.
    pub sooner_sent: bool,
    /// `Transport::is_held_up`, as it was when packets to it were tried last.
    pub held_up: bool,
    /// The first message in the queue waits for credit, and the transport was told.
    pub awaits_credit: bool,
    /// Messages that lack credit are offered until so many more offers were made (`credit`).
    pub unpaid_offers: u16,
    /// `Transport::is_far`, as it was when something to it was queued last.
    pub far: bool,
    /// A push to it has failed, so the transport will report it gone. Until then it may still answer operations that
    /// were ended with an error although they had arrived.
    pub ending: bool,
    /// It left packets unread without polling: short operations are copied by the kernel (`recall`).
    pub not_polling: bool,
    /// Credit that the peer has left for eager messages to us.
    pub allowed: usize,
    /// Credit to return with the next `Credit` packet.
    pub owed: usize,
    /// Credit that is returned only when its unexpected messages are received.
    pub withheld: usize,
    /// Memory that its unexpected messages take.
    pub kept: usize,
    /// State of RMA and atomics with this peer, made with the first such operation.
    pub rma: Option<Box<RmaPeer>>,
}

impl Peer {
    pub(super) fn new(config: &Config) -> Peer {
        Peer {
            source: None,
            credit: config.window,
            queue: VecDeque::new(),
            requested: VecDeque::new(),
            control: VecDeque::new(),
            unfinished: 0,
            last_offered: 0,
            losses: 0,
            last_loss: Error::PeerGone,
            busy: false,
            requested_next: false,
            withholds_credit: false,
            told_withholding: false,
            detours: Detours::default(),
            small_packets_only: false,
            cannot_fetch: false,
            is_itself: false,
            crossing: false,
            sooner_sent: false,
            held_up: false,
            awaits_credit: false,
            unpaid_offers: 0,
            far: false,
            ending: false,
            not_polling: false,
            allowed: config.window,
            owed: 0,
            withheld: 0,
            kept: 0,
            rma: None,
        }
    }
}

impl Peer {
    /// Whether the fast paths are closed.
    #[inline]
    pub(super) fn is_off_fast_path(&self) -> bool {
        self.detours != Detours::default()
    }

    /// Whether a message that is longer than `Limits::eager_if_fetched` is offered to it to be fetched.
    pub(super) fn is_to_fetch(&self) -> bool {
        !self.cannot_fetch && (!self.sooner_sent || self.held_up)
    }

    /// Whether its state is that of a peer never heard of, so that its number may be reused.
    pub(super) fn is_idle(&self, config: &Config) -> bool {
        let queues = self.queue.len() + self.requested.len() + self.control.len() + self.unfinished as usize;
        let counts = self.owed + self.withheld + self.kept;
        let credit = self.credit == config.window && self.allowed == config.window;
        let marks = self.busy || self.is_off_fast_path() || self.withholds_credit || self.told_withholding;
        queues + counts == 0 && credit && !marks && self.rma.is_none()
    }
}

impl Core {
    #[inline]
    pub(super) fn peer(&mut self, id: PeerId) -> &mut Peer {
        let index = id as usize;
        if index >= self.peers.len() {
            self.add_peers(index);
        }
        &mut self.peers[index]
    }

    #[cold]
    fn add_peers(&mut self, index: usize) {
        let config = self.config;
        self.peers.resize_with(index + 1, || Peer::new(&config));
    }

    /// The source that matching compares for this peer's messages.
    #[inline]
    pub(super) fn source(&self, id: PeerId) -> PeerId {
        let peer = self.peers.get(id as usize);
        peer.and_then(|peer| peer.source).unwrap_or(id)
    }

    /// The limits for packets to this peer.
    #[inline]
    pub(super) fn limits_to(&self, id: PeerId) -> &Limits {
        match self.peers.get(id as usize) {
            Some(peer) if peer.far => &self.far_limits,
            _ => &self.limits,
        }
    }

    /// The most body bytes of a packet to this peer at this time.
    pub(super) fn max_body_to(&self, id: PeerId) -> usize {
        let limits = self.limits_to(id);
        match self.peers.get(id as usize) {
            Some(peer) if peer.small_packets_only => limits.guaranteed_body,
            _ => limits.max_body,
        }
    }

    /// The transport has no memory for a packet that cannot be made smaller: its operation fails.
    #[cold]
    pub(super) fn no_memory(&mut self, to: PeerId, purpose: Purpose, report: &mut impl Report) {
        let Purpose::Start(id) = purpose else {
            return self.unreached(to, Error::NoMemory, report);
        };
        self.peer(to).queue.pop_front();
        let failure = Failure {
            error: Error::NoMemory,
            overflow: 0,
        };
        self.end_outgoing(id, Some(failure), report);
    }

    /// Schedules this peer for pushing, because it has packets to send.
    pub(super) fn wake(&mut self, id: PeerId) {
        let peer = self.peer(id);
        if !peer.busy {
            peer.busy = true;
            self.busy.push_back(id);
        }
    }

    /// Queues an answer without a body.
    pub(super) fn send_control(&mut self, to: PeerId, header: Header) {
        self.peer(to).control.push_back(header);
        self.wake(to);
    }

    /// Whether a fenced operation at the front of the queue must still wait: something outside the queue is in flight.
    pub(super) fn fenced(&self, id: PeerId) -> bool {
        let peer = self.peers.get(id as usize);
        peer.is_some_and(|peer| peer.unfinished as usize > peer.queue.len())
    }

    /// Removes the operation that was queued last, if nothing of it has started.
    pub(super) fn take_back_last(&mut self, to: PeerId, id: Id) -> bool {
        if !self.outgoing.get(id).is_some_and(Outgoing::has_not_begun) {
            return false;
        }
        self.outgoing.remove(id);
        let peer = self.peer(to);
        peer.queue.pop_back();
        peer.unfinished -= 1;
        true
    }

    /// Ends an outgoing operation, successfully or not. It completes when the transport is done with its packets.
    pub(super) fn end_outgoing(&mut self, id: Id, failure: Option<Failure>, report: &mut impl Report) {
        match self.outgoing.get_mut(id) {
            Some(outgoing) if outgoing.held > 0 => outgoing.stage = Stage::Ended(failure.map(|failure| failure.error)),
            _ => self.complete(id, failure, report),
        }
    }

    /// Completes an operation that has ended, if the transport is done with its packets.
    pub(super) fn end_if_let_go(&mut self, id: Id, report: &mut impl Report) {
        if let Some(Outgoing {
            stage: Stage::Ended(error),
            held: 0,
            ..
        }) = self.outgoing.get(id)
        {
            let failure = error.map(|error| Failure { error, overflow: 0 });
            self.complete(id, failure, report);
        }
    }

    /// Completes an outgoing operation of which the transport has nothing.
    pub(super) fn complete(&mut self, id: Id, failure: Option<Failure>, report: &mut impl Report) {
        let Some(outgoing) = self.outgoing.remove(id) else {
            return;
        };
        let peer = self.peer(outgoing.to);
        peer.unfinished = peer.unfinished.saturating_sub(1);
        let waited_for = !peer.queue.is_empty();
        if outgoing.holds != Holds::NOTHING {
            self.release(outgoing.to, id, outgoing.holds);
        }
        if waited_for {
            self.wake(outgoing.to); // a fence or a message may have waited for this one
        }
        report.report(Completion {
            op: outgoing.op.completed_op(),
            kind: outgoing.kind,
            context: outgoing.context,
            tell: outgoing.tell,
            len: if failure.is_none() { outgoing.len } else { 0 },
            buf: 0,
            tag: if outgoing.op.has_tag() { outgoing.tag } else { 0 },
            data: None,
            source: Some(outgoing.to),
            released: false,
            peeked: false,
            failure,
        });
    }

    /// All of a send has been pushed: it completes, unless the target must acknowledge its delivery.
    pub(super) fn sent(&mut self, id: Id, report: &mut impl Report) {
        match self.outgoing.get_mut(id) {
            Some(outgoing) if outgoing.level == CompletionLevel::Delivery => outgoing.stage = Stage::Sent,
            _ => self.end_outgoing(id, None, report),
        }
    }
}
