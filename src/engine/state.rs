//! All that an engine knows except its transport. The rules are in the other files; here is what they work on.

use super::credit;
use super::matching::Matcher;
use super::message::{Landing, Message};
use super::multi::Multi;
use super::op::{Context, Kind};
use super::outgoing::Outgoing;
use super::peer::Peer;
use super::port::{Limits, PeerId, Remote};
use super::receive::Post;
use crate::util::hash::QuickMap;
use crate::util::regions::Regions;
use crate::util::slab::{Id, Slab};
use std::collections::VecDeque;
use std::sync::Arc;

/// What an endpoint may choose about its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How much a peer may send unasked before the receiver must have given credit back. Both ends must have the same:
    /// it is part of the protocol.
    pub window: usize,
    /// How much the endpoint keeps of messages that no receive was posted for, before it withholds credit.
    pub room: usize,
    /// The part of `room` that one peer may fill.
    pub share: usize,
    /// The most unfinished sends to one peer.
    pub sends: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            window: 512 << 10,
            room: 64 << 20,
            share: 32 << 20,
            sends: 1024,
        }
    }
}

/// A message that FI_PEEK with FI_CLAIM put aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub kind: Kind,
    pub held: Id,
}

/// What peers may reach: see `Engine::open`.
#[derive(Debug)]
pub(super) struct Open {
    pub regions: Arc<Regions>,
    pub endpoint: u64,
    pub counted: bool,
}

/// What `get` is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetching {
    /// A message, or a long write of a peer's.
    Message(Id),
    /// A long read of ours, or a write that is copied like one.
    Read(Id),
}

#[derive(Debug)]
pub(super) struct Core {
    /// None: nothing.
    pub open: Option<Open>,
    pub config: Config,
    /// The transport's, cut to what credit and packets can carry.
    pub limits: Limits,
    /// Messages up to this size go in one packet.
    pub small: usize,
    /// By `PeerId`.
    pub peers: Vec<Peer>,
    /// Peers with packets to push.
    pub busy: VecDeque<PeerId>,
    /// Sends that have not ended.
    pub sends: Slab<Outgoing>,
    pub messages: Matcher<Post, Id>,
    pub tagged: Matcher<Post, Id>,
    pub collective: Matcher<Post, Id>,
    /// Messages on their way in, or held.
    pub arrivals: Slab<Message>,
    /// Bodies that the transport was told a place for.
    pub landings: Slab<Landing>,
    /// Messages whose segments are coming, by sender and the sender's number.
    pub streams: QuickMap<(PeerId, u32), Id>,
    /// What is to be fetched from peers' memory.
    pub fetches: VecDeque<Fetching>,
    /// Short operations that were not acknowledged, all peers together.
    pub unacked: usize,
    /// Peers that owe answers to short operations, and polls since they were last looked at (`recall`).
    pub asked: Vec<PeerId>,
    pub asked_polls: u32,
    /// Buffers for the next packets.
    pub spare: Vec<Vec<u8>>,
    /// For bodies put together.
    pub scratch: Vec<u8>,
    pub multis: Slab<Multi>,
    pub claims: QuickMap<Context, Claim>,
    /// What held messages take, all peers together.
    pub kept: usize,
    /// Peers whose credit is withheld.
    pub starved: VecDeque<PeerId>,
    /// Packets that no engine of this version would have sent.
    pub malformed: u64,
}

impl Core {
    pub fn new(limits: Limits, config: Config) -> Core {
        let eager = limits.eager.min(credit::largest(config.window));
        Core {
            open: None,
            config,
            limits: Limits {
                eager,
                can_get: limits.can_get && limits.max_body >= Remote::SIZE,
                ..limits
            },
            small: eager.min(limits.max_body),
            peers: Vec::new(),
            busy: VecDeque::new(),
            sends: Slab::default(),
            messages: Matcher::default(),
            tagged: Matcher::default(),
            collective: Matcher::default(),
            arrivals: Slab::default(),
            landings: Slab::default(),
            streams: QuickMap::default(),
            fetches: VecDeque::new(),
            unacked: 0,
            asked: Vec::new(),
            asked_polls: 0,
            spare: Vec::new(),
            scratch: Vec::new(),
            multis: Slab::default(),
            claims: QuickMap::default(),
            kept: 0,
            starved: VecDeque::new(),
            malformed: 0,
        }
    }

    #[inline]
    pub fn matcher(&mut self, kind: Kind) -> &mut Matcher<Post, Id> {
        match kind {
            Kind::Message => &mut self.messages,
            Kind::Tagged => &mut self.tagged,
            Kind::Collective => &mut self.collective,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Delivery;
    use super::*;
    use std::mem::size_of;

    /// Each is touched by every message or kept in great number: growing one is a decision.
    #[test]
    fn sizes() {
        let sizes = [
            ("Peer", size_of::<Peer>(), 176),
            ("Outgoing", size_of::<Outgoing>(), 184),
            ("Post", size_of::<Post>(), 120),
            ("Message", size_of::<Message>(), 288),
            ("Landing", size_of::<Landing>(), 104),
            ("Delivery", size_of::<Delivery>(), 104),
        ];
        for (name, size, limit) in sizes {
            assert!(size <= limit, "{name}: {size}, not {limit}");
        }
    }
}
