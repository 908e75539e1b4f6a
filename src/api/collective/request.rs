//! What may be asked of a collective, on safe values: operations, types, flags of sets, lengths.
//!
//! Knows the tables of `mem` and the numbers of the API; no group and no endpoint. Called by the shims, by
//! fi_query_collective and by `run`.

use super::plan::{self, Operation, Rank, Team};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::mem::atomic::{self, Datatype, Op};
use crate::util::user::UserIov;

/// An operation as a call names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub coll: fi_collective_op,
    /// Looked at by operations that move data.
    pub datatype: fi_datatype,
    /// Looked at by operations that reduce.
    pub op: fi_op,
    /// Looked at by operations that have a root.
    pub root_addr: fi_addr_t,
}

/// How two elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combining {
    /// FI_ATOMIC_READ and FI_NOOP change nothing: some member's element is left.
    Keep,
    /// FI_ATOMIC_WRITE: some member's element is written last.
    Replace,
    Apply(Op),
}

/// What a call works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Bytes of an element; 0 for a barrier.
    pub element: usize,
    /// Of operations that reduce.
    pub reduce: Option<(Combining, Datatype)>,
}

impl Asked {
    pub fn barrier() -> Asked {
        Asked {
            coll: FI_BARRIER,
            datatype: FI_VOID,
            op: FI_NOOP,
            root_addr: FI_ADDR_NOTAVAIL,
        }
    }

    fn reduces(&self) -> bool {
        matches!(self.coll, FI_ALLREDUCE | FI_REDUCE_SCATTER | FI_REDUCE)
    }

    /// -FI_EOPNOTSUPP for what there is not.
    pub fn kind(&self) -> Result<Kind> {
        if self.coll == FI_BARRIER {
            return Ok(Kind {
                element: 0,
                reduce: None,
            });
        }
        if self.set_flag().is_none() {
            return Err(Errno(FI_EOPNOTSUPP));
        }
        let datatype = Datatype::from_raw(self.datatype).ok_or(Errno(FI_EOPNOTSUPP))?;
        let reduce = match self.reduces() {
            true => Some((combining(self.op, datatype)?, datatype)),
            false => None,
        };
        Ok(Kind {
            element: datatype.size(),
            reduce,
        })
    }

    /// What a set must have been made for, if it was made for something special.
    pub fn set_flag(&self) -> Option<u64> {
        Some(match self.coll {
            FI_BARRIER => FI_BARRIER_SET,
            FI_BROADCAST => FI_BROADCAST_SET,
            FI_ALLTOALL => FI_ALLTOALL_SET,
            FI_ALLREDUCE => FI_ALLREDUCE_SET,
            FI_ALLGATHER => FI_ALLGATHER_SET,
            FI_REDUCE_SCATTER => FI_REDUCE_SCATTER_SET,
            FI_REDUCE => FI_REDUCE_SET,
            FI_SCATTER => FI_SCATTER_SET,
            FI_GATHER => FI_GATHER_SET,
            _ => return None,
        })
    }

    /// The operation, its root found among the members.
    pub fn operation(&self, rank_of: impl Fn(fi_addr_t) -> Option<Rank>) -> Result<Operation> {
        let root = || rank_of(self.root_addr).ok_or(Errno(FI_EINVAL));
        Ok(match self.coll {
            FI_BARRIER => Operation::Barrier,
            FI_BROADCAST => Operation::Broadcast { root: root()? },
            FI_ALLTOALL => Operation::Alltoall,
            FI_ALLREDUCE => Operation::Allreduce,
            FI_ALLGATHER => Operation::Allgather,
            FI_REDUCE_SCATTER => Operation::ReduceScatter,
            FI_REDUCE => Operation::Reduce { root: root()? },
            FI_SCATTER => Operation::Scatter { root: root()? },
            FI_GATHER => Operation::Gather { root: root()? },
            _ => return Err(Errno(FI_EOPNOTSUPP)),
        })
    }
}

fn combining(op: fi_op, datatype: Datatype) -> Result<Combining> {
    match op {
        FI_ATOMIC_READ | FI_NOOP => Ok(Combining::Keep),
        FI_ATOMIC_WRITE => Ok(Combining::Replace),
        FI_MIN..=FI_BXOR => Op::from_raw(op)
            .filter(|op| atomic::AtomicOp::new(atomic::Form::Base, *op, datatype).is_some())
            .map(Combining::Apply)
            .ok_or(Errno(FI_EOPNOTSUPP)),
        _ => Err(Errno(FI_EOPNOTSUPP)),
    }
}

/// The caller's memory, cut to what an operation needs of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub count: usize,
    pub input: UserIov,
    pub result: UserIov,
}

/// `count` as in `CollectiveCall`. -FI_EMSGSIZE for more than an address space has, -FI_EINVAL for buffers that are not
/// there or are too short.
pub fn buffers(
    operation: Operation,
    team: Team,
    element: usize,
    count: Option<usize>,
    input: &UserIov,
    result: &UserIov,
) -> Result<Buffers> {
    let count = count.unwrap_or_else(|| elements(operation, team, element, input, result));
    let all = count.checked_mul(element).and_then(|len| len.checked_mul(team.size));
    if all.is_none_or(|all| all > isize::MAX as usize) {
        return Err(Errno(FI_EMSGSIZE));
    }
    let (reads, writes) = plan::lengths(operation, team, count * element);
    let cut = |iov: &UserIov, len: usize| {
        let part = iov.part(0, len);
        let there = part.len() == len && (len == 0 || part.parts().iter().all(|piece| piece.addr() != 0));
        there.then_some(part).ok_or(Errno(FI_EINVAL))
    };
    Ok(Buffers {
        count,
        input: cut(input, reads)?,
        result: cut(result, writes)?,
    })
}

/// How many elements the buffers of a call are meant for, counted as `Plan::new` counts them.
fn elements(operation: Operation, team: Team, element: usize, input: &UserIov, result: &UserIov) -> usize {
    let len = match operation {
        Operation::Barrier => 0,
        Operation::Broadcast { .. } | Operation::ReduceScatter | Operation::Scatter { .. } => result.len(),
        Operation::Alltoall => result.len() / team.size,
        Operation::Allreduce | Operation::Allgather | Operation::Reduce { .. } | Operation::Gather { .. } => {
            input.len()
        }
    };
    len.checked_div(element).unwrap_or(0)
}

/// fi_query_collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub count: usize,
    pub size: usize,
    pub max_members: usize,
}

/// What is offered for an operation. -FI_EOPNOTSUPP: nothing.
pub fn query(asked: &Asked) -> Result<Limits> {
    let element = asked.kind()?.element;
    Ok(Limits {
        count: (isize::MAX as usize).checked_div(element).unwrap_or(0),
        size: element,
        max_members: i32::MAX as usize,
    })
}

#[cfg(test)]
mod tests {
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
                    let offered =
                        coll == FI_BARRIER || coll <= FI_GATHER && data && (op_fits || !reducing.contains(&coll));
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
}
