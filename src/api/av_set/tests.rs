//! Sets as fi_av_set(3) begins and changes them, one row or test for each rule. Their operations against the same on
//! plain lists, with members that proptest makes up.

use super::*;
use crate::api::av::{AvAttr, Domain, Insert, StringAddr};
use proptest::prelude::*;

/// A vector with `count` addresses, of which those in `gone` were removed.
fn vector(av_type: fi_av_type, count: usize, gone: &[u64]) -> Arc<Av> {
    let attr = AvAttr {
        av_type,
        ..AvAttr::default()
    };
    let av = Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &Domain::default()).unwrap();
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
        (7, none, none, 0, FI_UNIVERSE, b"", Ok(&[0, 1, 2, 5, 6, 7, 8, 9])),
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
