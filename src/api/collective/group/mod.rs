//! Who takes part in a collective, and how its messages are told from those of others.
//!
//! A group's identity is a hash that every member computes by itself: of the members' addresses in their order, of the
//! group or key that it was made from, and of how often this endpoint has joined just those before. So agreeing on a
//! group costs no messages, and groups that share members need no numbers that are free at all of them. Members that
//! disagree on a group get it wrong, as they would with any other way to name it.
//!
//! A message's tag is a hash of the group's identity and of the number of the operation, with the receiver's rank,
//! since members may share one engine; receives name their source. Within an operation the messages from one member to
//! another are matched in order. Knows no engine. Called by `run` and by `api::endpoint::collective`.

use super::plan::Rank;
use crate::abi::types::fi_addr_t;
use crate::engine::port::PeerId;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;

/// Addresses of groups are numbers that neither an address of a vector nor that of a set has.
const GROUP_ADDR: u64 = 1 << 63;

static NEXT_ADDR: AtomicU64 = AtomicU64::new(GROUP_ADDR);

/// The address of a new group; no other group of this process has had it.
pub fn new_address() -> fi_addr_t {
    NEXT_ADDR.fetch_add(1, Ordering::Relaxed)
}

pub fn is_group(addr: fi_addr_t) -> bool {
    addr & GROUP_ADDR != 0
}

/// A hash of what members must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0x243f_6a88_85a3_08d3)
    }
}

impl Digest {
    pub fn number(self, number: u64) -> Digest {
        let mut mixed = (self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Digest(mixed ^ (mixed >> 31))
    }

    pub fn bytes(self, bytes: &[u8]) -> Digest {
        let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let words = bytes.chunks(8).map(word);
        words.fold(self.number(bytes.len() as u64), Digest::number)
    }

    fn get(self) -> u64 {
        self.0
    }
}

/// A member of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupMember {
    pub addr: fi_addr_t,
    /// The peer to send to.
    pub peer: PeerId,
    /// The source that its messages match.
    pub source: PeerId,
    /// How often the peer had been lost when the group was made. If it was again since then, messages of the group may
    /// be missing, so the member is lost, even if it lives.
    pub losses: u32,
    /// The errno for which this group has given the member up.
    pub lost: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    Joining,
    Joined,
    /// The join ended in error.
    Failed,
}

#[derive(Debug)]
pub struct Group {
    /// The endpoint that joined, among those that share the runner.
    pub owner: usize,
    pub state: GroupState,
    pub identity: Digest,
    /// The rank of this endpoint.
    pub rank: Rank,
    pub members: Vec<GroupMember>,
    /// The operations that the group is for (FI_BARRIER_SET ...); 0: all.
    pub operations: u64,
    /// Operations in flight, the join included.
    pub running: usize,
    /// The number of the next operation.
    next: u64,
    ranks: HashMap<fi_addr_t, Rank>,
}

impl Group {
    pub fn new(owner: usize, identity: Digest, rank: Rank, members: Vec<GroupMember>, operations: u64) -> Group {
        Group {
            owner,
            state: GroupState::Joining,
            identity,
            rank,
            ranks: members
                .iter()
                .enumerate()
                .map(|(rank, member)| (member.addr, rank))
                .collect(),
            members,
            operations,
            running: 0,
            next: 0,
        }
    }

    pub fn rank_of(&self, addr: fi_addr_t) -> Option<Rank> {
        self.ranks.get(&addr).copied()
    }

    /// The tag for the messages of the next operation.
    pub fn next_tag(&mut self) -> u64 {
        self.next += 1;
        self.identity.number(self.next).get()
    }
}

#[cfg(test)]
mod tests;
