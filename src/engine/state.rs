//! All state of an engine except its transport. The other files of this folder hold the rules that change it.

use super::buffers::Buffers;
use super::credit;
use super::exposure::Asked;
use super::matching::Matcher;
use super::message::{Landing, Message};
use super::multi::Multi;
use super::offer::MatchedOffer;
use super::op::{Context, Error, MessageKind};
use super::outgoing::Outgoing;
use super::peer::Peer;
use super::port::{Limits, OneSided, PeerId, Remote};
use super::read_at_hand::AtHand;
use super::receive::PostedRecv;
use crate::util::hash::QuickMap;
use crate::util::regions::Regions;
use crate::util::slab::{Id, Slab};
use crate::util::user::UserIov;
use std::collections::VecDeque;
use std::sync::Arc;

/// What an endpoint may choose about its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Credit of each peer: bytes of eager messages it may send before the receiver returns credit. Part of the
    /// protocol, so both ends must have the same value.
    pub window: usize,
    /// Bytes of unexpected messages that the endpoint keeps before it withholds credit.
    pub room: usize,
    /// The part of `room` that one peer may fill.
    pub share: usize,
    /// The most operations in flight to one peer.
    pub in_flight: usize,
    /// Nobody here counts what peers do, and no operation of ours need be counted by its target: the transport may do
    /// them by itself (`port::OneSided`).
    pub one_sided: bool,
    /// Reads need not keep their order (FI_ORDER_RAR, FI_ORDER_RMA_RAR).
    pub reads_pass: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            window: credit::window(512 << 10),
            room: 64 << 20,
            share: 32 << 20,
            in_flight: 1024,
            one_sided: true,
            reads_pass: false,
        }
    }
}

/// An unexpected message that FI_PEEK | FI_CLAIM reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub kind: MessageKind,
    pub unexpected: Id,
    /// Why the message did not come completely.
    pub lost: Option<Error>,
}

/// The regions that peers may access: see `Engine::expose_regions`.
#[derive(Debug)]
pub(super) struct ExposedRegions {
    pub regions: Arc<Regions>,
    pub endpoint: u64,
    pub counted: bool,
}

/// The operation that a transport's `get` or `copy` belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GetOwner {
    /// A message from a peer, or a peer's long write: a name in `Core::arrivals`.
    Message(Id),
    /// A long read or a copy of ours: a name in `Core::outgoing`.
    Read(Id),
}

/// A call of the transport that is to be made, as `Core` does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Get(GetOwner),
    Unexpose(PeerId, u64),
}

#[derive(Debug)]
pub(super) struct Core {
    /// None: peers may access no memory.
    pub exposed_regions: Option<ExposedRegions>,
    pub config: Config,
    /// The transport's, reduced to what credit and packet size allow: those that every peer bears.
    pub limits: Limits,
    /// The same for far peers (`Transport::is_far`).
    pub far_limits: Limits,
    /// The longest message that goes in one packet to every peer, near or far, and is never better offered.
    pub small_to_all: usize,
    /// By `PeerId`.
    pub peers: Vec<Peer>,
    /// Peers with packets to push.
    pub busy: VecDeque<PeerId>,
    /// Outgoing operations in flight.
    pub outgoing: Slab<Outgoing>,
    pub messages: Matcher<PostedRecv, Id>,
    pub tagged: Matcher<PostedRecv, Id>,
    pub collective: Matcher<PostedRecv, Id>,
    /// The memory of posted receives of several pieces.
    pub posted_pieces: Slab<UserIov>,
    /// Messages that are arriving or unexpected.
    pub arrivals: Slab<Message>,
    /// Fetched when the poll is over: see `offer`. Empty between two calls of the engine.
    pub matched_offers: VecDeque<MatchedOffer>,
    pub at_hand: AtHand,
    /// Bodies that the transport is moving to their place.
    pub landings: Slab<Landing>,
    /// Messages whose segments are arriving, by sender and the sender's number.
    pub streams: QuickMap<(PeerId, u32), Id>,
    pub calls: VecDeque<Call>,
    /// What the transport made of the memory of operations in `outgoing`, where that matters after the push: by name.
    pub exposures: QuickMap<u64, Asked>,
    /// What the transport does in its peers' memory by itself at this endpoint.
    pub one_sided: OneSided,
    /// Unacknowledged short operations of all peers.
    pub unacked: usize,
    /// Peers whose acknowledgements were put off, as they do not wait for them.
    pub acks_later: Vec<PeerId>,
    /// Polls in a row that have found nothing while acknowledgements were put off.
    pub idle_polls: u32,
    /// All polls since the first of those acknowledgements was put off.
    pub polls_with_acks: u32,
    /// Peers with writes that the transport has gathered, and that are reported when they have left.
    pub gathered: Vec<PeerId>,
    /// Peers that owe answers to short operations, and polls since the last check of them (`recall`).
    pub awaiting_answers: Vec<PeerId>,
    pub polls_since_check: u32,
    pub buffers: Buffers,
    /// For bodies that are assembled from several parts.
    pub scratch: Vec<u8>,
    pub multis: Slab<Multi>,
    pub claims: QuickMap<Context, Claim>,
    /// Memory of the unexpected messages of all peers.
    pub kept: usize,
    /// Peers from which credit is withheld.
    pub starved: VecDeque<PeerId>,
    /// Packets that violated the protocol.
    pub malformed: u64,
    /// Peers that sent them, of whose operations the transport may still have something.
    pub newly_shunned: Vec<PeerId>,
}

impl Core {
    pub(super) fn new(limits: Limits, far_limits: Limits, config: Config) -> Core {
        let (limits, far_limits) = (reduced(limits, &config), reduced(far_limits, &config));
        Core {
            exposed_regions: None,
            config,
            limits,
            far_limits,
            small_to_all: limits.small().min(limits.eager_if_fetched),
            peers: Vec::new(),
            busy: VecDeque::new(),
            outgoing: Slab::default(),
            messages: Matcher::default(),
            tagged: Matcher::default(),
            collective: Matcher::default(),
            posted_pieces: Slab::default(),
            arrivals: Slab::default(),
            matched_offers: VecDeque::new(),
            at_hand: AtHand::default(),
            landings: Slab::default(),
            streams: QuickMap::default(),
            calls: VecDeque::new(),
            exposures: QuickMap::default(),
            one_sided: OneSided::NONE,
            unacked: 0,
            acks_later: Vec::new(),
            idle_polls: 0,
            polls_with_acks: 0,
            gathered: Vec::new(),
            awaiting_answers: Vec::new(),
            polls_since_check: 0,
            buffers: Buffers::default(),
            scratch: Vec::new(),
            multis: Slab::default(),
            claims: QuickMap::default(),
            kept: 0,
            starved: VecDeque::new(),
            malformed: 0,
            newly_shunned: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn matcher(&mut self, kind: MessageKind) -> &mut Matcher<PostedRecv, Id> {
        match kind {
            MessageKind::Untagged => &mut self.messages,
            MessageKind::Tagged => &mut self.tagged,
            MessageKind::Collective => &mut self.collective,
        }
    }
}

/// What credit and packet size allow of a transport's limits.
fn reduced(limits: Limits, config: &Config) -> Limits {
    let eager = limits.eager.min(credit::largest(config.window));
    let can_get = limits.can_get && limits.max_body >= Remote::MAX;
    Limits {
        eager,
        eager_if_fetched: if can_get {
            limits.eager_if_fetched.min(eager)
        } else {
            eager
        },
        can_get,
        gets_at_once: if can_get { limits.gets_at_once } else { 0 },
        ..limits
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Delivery;
    use super::*;
    use std::mem::size_of;

    /// Every message touches these or there are many of them, so growing one must be deliberate.
    #[test]
    fn sizes() {
        let sizes = [
            ("Peer", size_of::<Peer>(), 184),
            ("Outgoing", size_of::<Outgoing>(), 184),
            ("PostedRecv", size_of::<PostedRecv>(), 40),
            ("Message", size_of::<Message>(), 288),
            ("Landing", size_of::<Landing>(), 104),
            ("Delivery", size_of::<Delivery>(), 104),
        ];
        for (name, size, limit) in sizes {
            assert!(size <= limit, "{name}: {size}, not {limit}");
        }
    }
}
