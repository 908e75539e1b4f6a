//! What an engine knows of one peer: what waits to go there, what it may send, how many sends are unfinished.

use super::op::{Completion, CompletionLevel, Error, Failure};
use super::outgoing::Purpose;
use super::port::PeerId;
use super::rma_peer::RmaPeer;
use super::state::{Config, Core};
use super::wire::Header;
use crate::engine::op::Report;
use crate::util::slab::Id;
use std::collections::VecDeque;

/// A peer sent what no engine of this version sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

#[derive(Debug)]
pub(super) struct Peer {
    /// Whom receives name to get its messages; None: itself.
    pub source: Option<PeerId>,
    /// What we may still send unasked.
    pub credit: usize,
    /// Sends whose first packet has not gone, in order; the first may have segments left.
    pub queue: VecDeque<Id>,
    /// Sends that the peer asked the bytes of.
    pub requested: VecDeque<Id>,
    /// Answers of ours that have no body.
    pub control: VecDeque<Header>,
    /// Sends that have not ended.
    pub unfinished: u32,
    /// How often it was gone.
    pub deaths: u32,
    /// Whether it is in `Core::busy`.
    pub busy: bool,
    /// Whose turn it is: `queue` or `answers`.
    pub requested_next: bool,
    /// It said that it withholds credit.
    pub withholds_credit: bool,
    /// It was told that we withhold credit.
    pub told_withholding: bool,
    /// It is shunned, or something long is under way: short ways are for others.
    pub off_fast_path: bool,
    /// Its transport had no memory for a long packet: they are cut short for now.
    pub small_packets_only: bool,
    /// It sent nonsense: nothing it sends is looked at again.
    pub shunned: bool,
    /// It was found not to look for packets.
    pub not_polling: bool,
    /// What it may still send unasked.
    pub allowed: usize,
    /// Credit to give back with the next packet.
    pub owed: usize,
    /// Credit to give back when its messages have been received.
    pub withheld: usize,
    /// What its held messages take.
    pub kept: usize,
    /// Operations on memory.
    pub rma: Option<Box<RmaPeer>>,
}

impl Peer {
    pub fn new(config: &Config) -> Peer {
        Peer {
            source: None,
            credit: config.window,
            queue: VecDeque::new(),
            requested: VecDeque::new(),
            control: VecDeque::new(),
            unfinished: 0,
            deaths: 0,
            busy: false,
            requested_next: false,
            withholds_credit: false,
            told_withholding: false,
            off_fast_path: false,
            small_packets_only: false,
            shunned: false,
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
    /// Whether all that is known of it is what is known of a stranger.
    pub fn is_idle(&self, config: &Config) -> bool {
        let queues = self.queue.len() + self.requested.len() + self.control.len() + self.unfinished as usize;
        let counts = self.owed + self.withheld + self.kept;
        let credit = self.credit == config.window && self.allowed == config.window;
        let marks = self.busy || self.off_fast_path || self.withholds_credit || self.told_withholding;
        queues + counts == 0 && credit && !marks && self.rma.is_none()
    }
}

impl Core {
    #[inline]
    pub fn peer(&mut self, id: PeerId) -> &mut Peer {
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

    /// Whom its messages come from, as matching sees it.
    #[inline]
    pub fn source(&self, id: PeerId) -> PeerId {
        let peer = self.peers.get(id as usize);
        peer.and_then(|peer| peer.source).unwrap_or(id)
    }

    /// The most body bytes of a packet to this peer, now.
    pub fn max_body_to(&self, id: PeerId) -> usize {
        match self.peers.get(id as usize) {
            Some(peer) if peer.small_packets_only => self.limits.guaranteed_body,
            _ => self.limits.max_body,
        }
    }

    /// There is no memory for a packet to this peer that cannot be cut: what it is of ends.
    #[cold]
    pub fn no_memory(&mut self, to: PeerId, purpose: Purpose, report: &mut impl Report) {
        let Purpose::Start(id) = purpose else {
            return self.unreached(to, Error::NoMemory, report);
        };
        self.peer(to).queue.pop_front();
        let failure = Failure {
            error: Error::NoMemory,
            overflow: 0,
        };
        self.end_send(id, Some(failure), report);
    }

    /// There is something to push to this peer.
    pub fn wake(&mut self, id: PeerId) {
        let peer = self.peer(id);
        if !peer.busy {
            peer.busy = true;
            self.busy.push_back(id);
        }
    }

    /// Queues an answer.
    pub fn send_control(&mut self, to: PeerId, header: Header) {
        self.peer(to).control.push_back(header);
        self.wake(to);
    }

    /// Whether a fenced send, next in its peer's queue, must wait for those before it.
    pub fn fenced(&self, id: PeerId) -> bool {
        let peer = self.peers.get(id as usize);
        peer.is_some_and(|peer| peer.unfinished as usize > peer.queue.len())
    }

    /// A send ends, well or not.
    pub fn end_send(&mut self, id: Id, failure: Option<Failure>, report: &mut impl Report) {
        let Some(send) = self.sends.remove(id) else { return };
        let peer = self.peer(send.to);
        peer.unfinished = peer.unfinished.saturating_sub(1);
        if let Some(rma) = peer.rma.as_mut().filter(|_| send.long) {
            rma.long_ops = rma.long_ops.saturating_sub(1);
            peer.update_fast_path();
        }
        if !peer.queue.is_empty() {
            self.wake(send.to); // perhaps a fence was waiting for this
        }
        report.report(Completion {
            op: send.op.completed_op(),
            kind: send.kind,
            context: send.context,
            tell: send.tell,
            len: if failure.is_none() { send.len } else { 0 },
            buf: 0,
            tag: if send.op.has_tag() { send.tag } else { 0 },
            data: None,
            source: Some(send.to),
            released: false,
            peeked: false,
            failure,
        });
    }

    /// All of a send has been pushed: it ends here, unless the target is to say so.
    pub fn sent(&mut self, id: Id, report: &mut impl Report) {
        match self.sends.get_mut(id) {
            Some(send) if send.level == CompletionLevel::Delivery => send.stage = super::outgoing::Stage::Sent,
            _ => self.end_send(id, None, report),
        }
    }
}
