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
        let room = if attr.count == 0 { usize::MAX } else { attr.count };
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
mod tests {
    use super::*;
    use crate::api::av::{AvAttr, Domain, Insert, StringAddr};
    use proptest::prelude::*;

    /// A vector with `count` addresses, of which those in `gone` were removed.
    fn vector(av_type: fi_av_type, count: usize, gone: &[u64]) -> Arc<Av> {
        let attr = AvAttr {
            av_type,
            ..AvAttr::default()
        };
        let av = Av::open(&attr, Arc::new(StringAddr), &Domain::default()).unwrap();
        let names: Vec<u8> = (0..count).flat_map(|at| format!("n{at}\0").into_bytes()).collect();
        assert_eq!(av.insert(&names, count, Insert::default()), Ok(count));
        av.remove(gone, 0).unwrap();
        av
    }

    const EMPTY: AvSetAttr = AvSetAttr {
        count: 0,
        start_addr: FI_ADDR_NOTAVAIL,
        end_addr: FI_ADDR_NOTAVAIL,
        stride: 0,
        comm_key: &[],
        flags: 0,
    };

    fn set_of(av: &Arc<Av>, members: &[u64]) -> Arc<AvSet> {
        let set = AvSet::open(av, &EMPTY, false).unwrap();
        members.iter().for_each(|addr| set.insert(*addr).unwrap());
        set
    }

    #[test]
    fn a_set_begins_as_its_attributes_say() {
        let none = FI_ADDR_NOTAVAIL;
        type Row = (
            usize,
            u64,
            u64,
            u64,
            u64,
            &'static [u8],
            core::result::Result<&'static [u64], i32>,
        );
        let rows: [Row; 18] = [
            // (count, start, end, stride, flags, key, members) of a table 0..10 without 3 and 4
            (0, none, none, 0, 0, b"", Ok(&[])),
            (5, none, none, 0, FI_BARRIER_SET, b"", Ok(&[])),
            (0, 0, 9, 1, 0, b"", Ok(&[0, 1, 2, 5, 6, 7, 8, 9])),
            (0, 1, 9, 2, 0, b"", Ok(&[1, 5, 7, 9])),
            (0, 2, 2, 1, 0, b"", Ok(&[2])),
            (0, 8, u64::MAX - 1, 1, 0, b"", Ok(&[8, 9])),
            (0, 0, 9, u64::MAX, 0, b"", Ok(&[0])),
            (0, 9, 0, 1, 0, b"", Ok(&[])),
            (0, 50, 60, 1, 0, b"", Ok(&[])),
            (4, 1, 9, 2, 0, b"", Ok(&[1, 5, 7, 9])),
            (3, 1, 9, 2, 0, b"", Err(FI_EINVAL)),
            (0, 0, 9, 0, 0, b"", Err(FI_EINVAL)),
            (0, 0, none, 1, 0, b"", Err(FI_EINVAL)),
            (0, none, 9, 1, 0, b"", Err(FI_EINVAL)),
            (0, 0, 9, 1, 0, b"key", Err(FI_EINVAL)),
            (0, none, none, 0, FI_UNIVERSE, b"", Ok(&[0, 1, 2, 5, 6, 7, 8, 9])),
            (7, none, none, 0, FI_UNIVERSE, b"", Err(FI_EINVAL)),
            (0, none, none, 0, 1, b"", Err(FI_EINVAL)),
        ];
        let av = vector(FI_AV_TABLE, 10, &[3, 4]);
        for (count, start_addr, end_addr, stride, flags, comm_key, expected) in rows {
            let attr = AvSetAttr {
                count,
                start_addr,
                end_addr,
                stride,
                comm_key,
                flags,
            };
            let made = AvSet::open(&av, &attr, false)
                .map(|set| set.members())
                .map_err(|errno| errno.0);
            assert_eq!(made, expected.map(<[u64]>::to_vec), "{attr:?}");
        }
        assert!(!av.in_use());
    }

    #[test]
    fn a_map_has_no_ranges() {
        let av = vector(FI_AV_MAP, 3, &[]);
        let range = AvSetAttr {
            start_addr: 0,
            end_addr: 2,
            stride: 1,
            ..EMPTY
        };
        assert_eq!(AvSet::open(&av, &range, false).err(), Some(Errno(FI_EINVAL)));
        let universe = AvSetAttr {
            flags: FI_UNIVERSE,
            ..EMPTY
        };
        assert_eq!(AvSet::open(&av, &universe, false).unwrap().members(), [0, 1, 2]);
    }

    #[test]
    fn members_are_addresses_of_the_vector_once_each() {
        let av = vector(FI_AV_TABLE, 4, &[2]);
        let set = set_of(&av, &[3, 0]);
        for (addr, expected) in [(0, Err(Errno(FI_EINVAL))), (2, Err(Errno(FI_EINVAL))), (1, Ok(()))] {
            assert_eq!(set.insert(addr), expected, "{addr}");
        }
        assert_eq!(set.insert(FI_ADDR_NOTAVAIL), Err(Errno(FI_EINVAL)));
        assert_eq!(set.members(), [3, 0, 1]);
        assert_eq!((set.remove(0), set.remove(0)), (Ok(()), Err(Errno(FI_EINVAL))));
        assert_eq!(set.members(), [3, 1]);
    }

    #[test]
    fn a_full_set_takes_no_more() {
        let av = vector(FI_AV_TABLE, 5, &[]);
        let small = AvSetAttr { count: 2, ..EMPTY };
        let set = AvSet::open(&av, &small, false).unwrap();
        set.insert(0).unwrap();
        assert_eq!(set.union(&set_of(&av, &[0, 1, 2])), Err(Errno(FI_ENOMEM)));
        assert_eq!(set.members(), [0]);
        assert_eq!(set.union(&set_of(&av, &[0, 4])), Ok(()));
        assert_eq!((set.insert(1), set.members()), (Err(Errno(FI_ENOMEM)), vec![0, 4]));
    }

    #[test]
    fn sets_hold_their_vector_and_may_be_held() {
        let av = vector(FI_AV_TABLE, 2, &[]);
        let (one, other) = (set_of(&av, &[0]), set_of(&av, &[0]));
        assert!(one.addr() != other.addr() && !av.contains(one.addr()));
        assert_eq!(av.close(), Err(Errno(FI_EBUSY)));
        let hold = one.hold();
        assert!(one.in_use() && !other.in_use());
        drop(hold);
        assert!(!one.in_use());
        drop((one, other));
        assert_eq!(av.close(), Ok(()));
        let stranger = set_of(&vector(FI_AV_TABLE, 2, &[]), &[1]);
        assert_eq!(set_of(&av, &[0]).union(&stranger), Err(Errno(FI_EINVAL)));
    }

    proptest! {
        #[test]
        fn operations_are_those_of_lists(
            one in prop::sample::subsequence((0..12u64).collect::<Vec<_>>(), 0..12).prop_shuffle(),
            other in prop::sample::subsequence((0..12u64).collect::<Vec<_>>(), 0..12).prop_shuffle(),
        ) {
            let av = vector(FI_AV_TABLE, 12, &[]);
            let source = set_of(&av, &other);
            let apply = |work: fn(&AvSet, &AvSet) -> Result<()>, source: &AvSet| {
                let set = set_of(&av, &one);
                work(&set, source).unwrap();
                set.members()
            };
            let more: Vec<u64> = other.iter().copied().filter(|addr| !one.contains(addr)).collect();
            prop_assert_eq!(apply(AvSet::union, &source), [one.clone(), more].concat());
            let both: Vec<u64> = one.iter().copied().filter(|addr| other.contains(addr)).collect();
            prop_assert_eq!(apply(AvSet::intersect, &source), both);
            let only: Vec<u64> = one.iter().copied().filter(|addr| !other.contains(addr)).collect();
            prop_assert_eq!(apply(AvSet::diff, &source), only);
            prop_assert_eq!(source.members(), other);
            // With itself, and still right afterwards.
            let set = set_of(&av, &one);
            set.union(&set).unwrap();
            set.intersect(&set).unwrap();
            prop_assert_eq!(set.members(), one.clone());
            set.diff(&set).unwrap();
            prop_assert_eq!(set.members(), Vec::<u64>::new());
            one.iter().for_each(|addr| set.insert(*addr).unwrap());
            prop_assert_eq!(set.members(), one);
        }
    }
}
