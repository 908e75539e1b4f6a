//! What an endpoint can be asked to do with a peer's memory: the traits behind the op tables of fi_rma and fi_atomic.
//!
//! As in `messaging`, the shims in `abi::object` reduce the C calls to two requests, endpoints carry them out.

use super::errno::{Errno, Result};
use super::messaging::{Flags, NotBegun};
use crate::abi::types::{FI_EMSGSIZE, FI_EOPNOTSUPP, fi_datatype, fi_op};
use crate::engine::op::{Access, AtomicOp, AtomicTarget, Context, Form, RemoteIov};
use crate::mem::atomic::Op;
use crate::util::user::UserIov;

#[derive(Clone, Copy, Debug)]
pub struct RmaCall {
    pub access: Access,
    /// fi_addr_t of the target.
    pub dest: u64,
    pub local: UserIov,
    pub remote: RemoteIov,
    pub data: Option<u64>,
    pub flags: Flags,
    pub context: Context,
}

#[derive(Clone, Copy, Debug)]
pub struct AtomicCall {
    pub kind: AtomicKind,
    /// fi_addr_t of the target.
    pub dest: u64,
    pub target: AtomicTarget,
    /// The length that each of the buffers must have, in bytes.
    pub len: usize,
    pub operand: UserIov,
    pub compare: UserIov,
    pub result: UserIov,
    pub data: Option<u64>,
    pub flags: Flags,
    pub context: Context,
}

pub trait Rma {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun>;
}

pub trait Atomics {
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun>;
}

impl<R: Rma> Rma for std::sync::Arc<R> {
    #[inline(always)]
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        (**self).rma(call)
    }
}

impl<A: Atomics> Atomics for std::sync::Arc<A> {
    #[inline(always)]
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        (**self).atomic(call)
    }
}

/// The most bytes that one atomic operation may carry to its target: one operand, or two.
const ATOMIC_BYTES: usize = 4096;

/// A valid pair of an atomic operation and an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicKind {
    pub op: AtomicOp,
    pub form: Form,
    /// Bytes of an element.
    pub size: usize,
    /// FI_ATOMIC_READ, which has no operand.
    pub reads: bool,
}

impl AtomicKind {
    /// -FI_EOPNOTSUPP for pairs that fi_atomic(3) does not allow.
    #[inline(always)]
    pub fn new(form: Form, datatype: fi_datatype, op: fi_op) -> Result<AtomicKind> {
        let op = AtomicOp::from_raw(form, op, datatype).ok_or(Errno(FI_EOPNOTSUPP))?;
        Ok(AtomicKind {
            op,
            form,
            size: op.datatype().size(),
            reads: op.op() == Op::Read,
        })
    }

    /// The most elements in one operation.
    pub fn most(&self) -> usize {
        self.most_bytes() / self.size
    }

    /// The most bytes in one operation: a multiple of every element size.
    #[inline]
    pub fn most_bytes(&self) -> usize {
        if self.form == Form::Compare {
            ATOMIC_BYTES / 2
        } else {
            ATOMIC_BYTES
        }
    }

    /// The bytes of `count` elements; -FI_EMSGSIZE for more than an operation may have.
    #[inline]
    pub fn bytes(&self, count: usize) -> Result<usize> {
        let bytes = count.checked_mul(self.size);
        bytes
            .filter(|bytes| *bytes <= self.most_bytes())
            .ok_or(Errno(FI_EMSGSIZE))
    }
}

#[cfg(test)]
mod tests;
