//! What is offered of all operations and types, against the words of fi_collective(3); and how much of the buffers each
//! member needs, or why it is refused.

use super::*;
use crate::util::user::Lent;

fn asked(coll: fi_collective_op, datatype: fi_datatype, op: fi_op) -> Asked {
    Asked {
        coll,
        datatype,
        op,
        ..Asked::barrier()
    }
}

#[test]
fn what_is_offered_is_what_the_page_lists() {
    let reducing = [FI_ALLREDUCE, FI_REDUCE_SCATTER, FI_REDUCE];
    for coll in FI_BARRIER..=FI_GATHER + 1 {
        for datatype in (0..=20).chain([FI_VOID]) {
            for op in (0..=20).chain([FI_NOOP]) {
                let float = (FI_FLOAT..=FI_LONG_DOUBLE_COMPLEX).contains(&datatype) || datatype >= FI_FLOAT16;
                let complex = [FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX, FI_LONG_DOUBLE_COMPLEX].contains(&datatype);
                let op_fits = match op {
                    FI_MIN | FI_MAX => !complex,
                    FI_BOR | FI_BAND | FI_BXOR => !float,
                    FI_SUM | FI_PROD | FI_LOR | FI_LAND | FI_LXOR => true,
                    FI_ATOMIC_READ | FI_ATOMIC_WRITE | FI_NOOP => true,
                    _ => false,
                };
                let data = datatype <= FI_FLOAT8_E5M2;
                let offered = coll == FI_BARRIER || coll <= FI_GATHER && data && (op_fits || !reducing.contains(&coll));
                let answer = query(&asked(coll, datatype, op));
                assert_eq!(answer.is_ok(), offered, "{coll} {datatype} {op}");
                assert!(answer.is_ok() || answer == Err(Errno(FI_EOPNOTSUPP)));
            }
        }
    }
    let limits = query(&asked(FI_GATHER, FI_DOUBLE, FI_NOOP)).unwrap();
    assert_eq!((limits.size, limits.count), (8, isize::MAX as usize / 8));
}

#[test]
fn buffers_are_cut_to_what_is_needed_or_refused() {
    let (short, long, none) = (
        Lent::new(&[8], 0).iov(),
        Lent::new(&[40, 24], 0).iov(),
        UserIov::default(),
    );
    let team = Team::new(1, 4);
    let root = |root| Operation::Scatter { root };
    let max = usize::MAX;
    let rows = [
        (Operation::Allreduce, Some(2), short, long, Ok((2, 8, 8))),
        (Operation::Allreduce, None, short, long, Ok((2, 8, 8))),
        (Operation::Allreduce, Some(3), short, long, Err(FI_EINVAL)),
        (Operation::Allgather, Some(2), short, long, Ok((2, 8, 32))),
        (Operation::Alltoall, None, long, long, Ok((4, 64, 64))),
        (root(1), None, long, short, Ok((2, 32, 8))),
        (root(0), Some(2), none, short, Ok((2, 0, 8))),
        (root(1), Some(2), none, short, Err(FI_EINVAL)),
        (root(1), Some(0), none, none, Ok((0, 0, 0))),
        (Operation::Barrier, None, none, none, Ok((0, 0, 0))),
        (Operation::Allreduce, Some(max), short, long, Err(FI_EMSGSIZE)),
        (Operation::Allreduce, Some(max / 16 + 1), short, long, Err(FI_EMSGSIZE)),
        (Operation::Broadcast { root: 0 }, None, none, long, Ok((16, 0, 64))),
    ];
    for (operation, count, input, result, expected) in rows {
        let found = buffers(operation, team, 4, count, &input, &result);
        let found = found.map(|found| (found.count, found.input.len(), found.result.len()));
        assert_eq!(found.map_err(|errno| errno.0), expected, "{operation:?} {count:?}");
    }
}
