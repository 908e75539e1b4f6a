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
    /// Of operations that move data.
    pub datatype: fi_datatype,
    /// Set for operations that reduce.
    pub op: fi_op,
    /// Of operations that have a root.
    pub root_addr: fi_addr_t,
}

/// How a reduction combines two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combining {
    /// FI_ATOMIC_READ and FI_NOOP change nothing: the result is some member's element.
    Keep,
    /// FI_ATOMIC_WRITE: the result is the element of the member that is combined last.
    Replace,
    Apply(Op),
}

/// What a call's elements are, and how they are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementKind {
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

    /// -FI_EOPNOTSUPP for an unknown operation or type, or a pair that cannot be combined.
    pub fn kind(&self) -> Result<ElementKind> {
        if self.coll == FI_BARRIER {
            return Ok(ElementKind {
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
        Ok(ElementKind {
            element: datatype.size(),
            reduce,
        })
    }

    /// The flag that the set must have been made with, if it was made for certain operations only.
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

    /// The operation, with its root as a rank.
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

/// The caller's buffers, cut to the length that the operation uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub count: usize,
    pub input: UserIov,
    pub result: UserIov,
}

/// `count` as in `CollectiveCall`. -FI_EMSGSIZE: more than an address space; -FI_EINVAL: a buffer is missing or too
/// short.
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

/// The limits of an operation; -FI_EOPNOTSUPP: it is not offered.
pub fn query(asked: &Asked) -> Result<Limits> {
    let element = asked.kind()?.element;
    Ok(Limits {
        count: (isize::MAX as usize).checked_div(element).unwrap_or(0),
        size: element,
        max_members: i32::MAX as usize,
    })
}

#[cfg(test)]
mod tests;
