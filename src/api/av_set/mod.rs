//! Sets of addresses of a vector (fi_av_set), in order: who takes part in a collective operation.
//!
//! Knows the vector it belongs to and holds it. What a collective does with a set is not its business. Called by
//! `abi::object` and by collectives.

use crate::abi::types::*;
use crate::api::av::{Av, Hold};
use crate::api::errno::{Errno, Result};
use crate::api::log::Speaker;
use crate::util::lock::OptLock;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::collections::HashSet;
use std::sync::Arc;

/// struct fi_av_set_attr on safe values.
#[derive(Clone, Debug)]
pub struct AvSetAttr<'a> {
    pub count: usize,
    pub start_addr: fi_addr_t,
    pub end_addr: fi_addr_t,
    pub stride: u64,
    pub comm_key: &'a [u8],
    pub flags: u64,
}

/// The collective operations a set may be made for.
const OPERATIONS: u64 = FI_BARRIER_SET
    | FI_BROADCAST_SET
    | FI_ALLTOALL_SET
    | FI_ALLREDUCE_SET
    | FI_ALLGATHER_SET
    | FI_REDUCE_SCATTER_SET
    | FI_REDUCE_SET
    | FI_SCATTER_SET
    | FI_GATHER_SET;

/// Addresses of sets are numbers that no address of a vector has.
const SET_ADDR: u64 = 1 << 62;

static NEXT_ADDR: AtomicU64 = AtomicU64::new(SET_ADDR);

/// An ordered set of addresses of one vector.
pub struct AvSet {
    av: Hold,
    addr: fi_addr_t,
    flags: u64,
    comm_key: Box<[u8]>,
    members: OptLock<Members>,
    holders: AtomicUsize,
}

struct Members {
    provider: Speaker,
    order: Vec<fi_addr_t>,
    known: HashSet<fi_addr_t>,
    /// The most addresses that the set may have.
    room: usize,
}

impl Members {
    fn append(&mut self, addrs: impl IntoIterator<Item = fi_addr_t>) -> Result<()> {
        let mut fresh: Vec<fi_addr_t> = addrs.into_iter().filter(|addr| !self.known.contains(addr)).collect();
        if fresh.len() > self.room.saturating_sub(self.order.len()) {
            log!(
                by self.provider;
                Info,
                Av,
                "av set is full with {} of {} addresses",
                self.order.len(),
                self.room
            );
            return Err(Errno(FI_ENOMEM));
        }
        self.known.extend(&fresh);
        self.order.append(&mut fresh);
        Ok(())
    }

    fn keep(&mut self, wanted: impl Fn(fi_addr_t) -> bool) {
        self.order.retain(|addr| wanted(*addr));
        self.known.retain(|addr| wanted(*addr));
    }
}

impl AvSet {
    /// `locked`: several threads may call at once.
    pub fn open(av: &Arc<Av>, attr: &AvSetAttr, locked: bool) -> Result<Arc<AvSet>> {
        let first = first_members(av, attr)?;
        let room = match attr.count {
            0 => usize::MAX,
            // The program says how many it expects, and takes all.
            count if attr.flags & FI_UNIVERSE != 0 => count.max(first.len()),
            count => count,
        };
        if first.len() > room {
            log!(by av.provider(); Warn, Av, "av set of {room} is too small for {} addresses", first.len());
            return Err(Errno(FI_EINVAL));
        }
        Ok(Arc::new(AvSet {
            av: av.hold(),
            addr: NEXT_ADDR.fetch_add(1, Ordering::Relaxed),
            flags: attr.flags,
            comm_key: attr.comm_key.into(),
            members: OptLock::new(
                Members {
                    provider: av.provider(),
                    known: first.iter().copied().collect(),
                    order: first,
                    room,
                },
                locked,
            ),
            holders: AtomicUsize::new(0),
        }))
    }

    pub fn av(&self) -> &Arc<Av> {
        self.av.av()
    }

    /// The collective operations that the set was made for; 0: all.
    pub fn operations(&self) -> u64 {
        self.flags & OPERATIONS
    }

    pub fn comm_key(&self) -> &[u8] {
        &self.comm_key
    }

    /// fi_av_set_addr: the address of the set, for fi_join_collective.
    pub fn addr(&self) -> fi_addr_t {
        self.addr
    }

    pub fn members(&self) -> Vec<fi_addr_t> {
        self.members.lock().order.clone()
    }

    /// fi_av_set_union: appends the addresses that only `source` has. All or none.
    pub fn union(&self, source: &AvSet) -> Result<()> {
        let source = self.of_same_vector(source)?;
        self.members.lock().append(source)
    }

    /// fi_av_set_intersect.
    pub fn intersect(&self, source: &AvSet) -> Result<()> {
        let source: HashSet<fi_addr_t> = self.of_same_vector(source)?.into_iter().collect();
        self.members.lock().keep(|addr| source.contains(&addr));
        Ok(())
    }

    /// fi_av_set_diff.
    pub fn diff(&self, source: &AvSet) -> Result<()> {
        let source: HashSet<fi_addr_t> = self.of_same_vector(source)?.into_iter().collect();
        self.members.lock().keep(|addr| !source.contains(&addr));
        Ok(())
    }

    /// The addresses of `source`, copied so that two sets, which may be the same, are never locked at once.
    fn of_same_vector(&self, source: &AvSet) -> Result<Vec<fi_addr_t>> {
        if !Arc::ptr_eq(self.av(), source.av()) {
            return Err(Errno(FI_EINVAL));
        }
        Ok(source.members())
    }

    /// fi_av_set_insert, at the end. -FI_EINVAL for an address that the vector does not have or the set already has.
    pub fn insert(&self, addr: fi_addr_t) -> Result<()> {
        let is_plain = self.av().split(addr) == (addr, 0);
        if !is_plain || !self.av().contains(addr) {
            return Err(Errno(FI_EINVAL));
        }
        let mut members = self.members.lock();
        if members.known.contains(&addr) {
            return Err(Errno(FI_EINVAL));
        }
        members.append([addr])
    }

    /// fi_av_set_remove. Keeps the order of the others. The address need not be in the vector any more.
    pub fn remove(&self, addr: fi_addr_t) -> Result<()> {
        let mut members = self.members.lock();
        if !members.known.remove(&addr) {
            return Err(Errno(FI_EINVAL));
        }
        members.order.retain(|member| *member != addr);
        Ok(())
    }

    /// Keeps the set from being closed, while a collective group that joined with it is open.
    pub fn hold(self: &Arc<Self>) -> SetHold {
        self.holders.fetch_add(1, Ordering::Relaxed);
        SetHold { set: self.clone() }
    }

    /// Whether closing it is -FI_EBUSY.
    pub fn in_use(&self) -> bool {
        self.holders.load(Ordering::Relaxed) > 0
    }
}

/// A set in use.
pub struct SetHold {
    set: Arc<AvSet>,
}

impl SetHold {
    pub fn set(&self) -> &Arc<AvSet> {
        &self.set
    }
}

impl Drop for SetHold {
    fn drop(&mut self) {
        self.set.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

fn first_members(av: &Av, attr: &AvSetAttr) -> Result<Vec<fi_addr_t>> {
    let invalid = |why: &str| {
        log!(by av.provider(); Warn, Av, "cannot open av set: {why}");
        Err(Errno(FI_EINVAL))
    };
    if attr.flags & !(OPERATIONS | FI_UNIVERSE) != 0 {
        return invalid("unknown flags");
    }
    if attr.flags & FI_UNIVERSE != 0 {
        return Ok(av.members(0, FI_ADDR_NOTAVAIL, 1));
    }
    match (attr.start_addr, attr.end_addr) {
        (FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL) => Ok(Vec::new()),
        (FI_ADDR_NOTAVAIL, _) | (_, FI_ADDR_NOTAVAIL) => invalid("only one of start_addr and end_addr"),
        _ if av.av_type() != FI_AV_TABLE => invalid("a range needs a vector of type FI_AV_TABLE"),
        _ if !attr.comm_key.is_empty() => invalid("a range and a communication key"),
        _ if attr.stride == 0 => invalid("stride is 0"),
        (first, last) => Ok(av.members(first, last, attr.stride)),
    }
}

#[cfg(test)]
mod tests;
