//! What an endpoint can be asked to do with a peer's memory: the traits behind the fi_rma and fi_atomic op tables.
//!
//! As in `messaging`, the shims in `abi::object` fold the C calls into two requests, an endpoint implements them.

use super::errno::{Errno, Result};
use super::messaging::Flags;
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
    /// What each of the buffers must be, in bytes.
    pub len: usize,
    pub operand: UserIov,
    pub compare: UserIov,
    pub result: UserIov,
    pub data: Option<u64>,
    pub flags: Flags,
    pub context: Context,
}

pub trait Rma {
    fn rma(&self, call: &RmaCall) -> Result<()>;
}

pub trait Atomics {
    fn atomic(&self, call: &AtomicCall) -> Result<()>;
}

impl<R: Rma> Rma for std::sync::Arc<R> {
    #[inline(always)]
    fn rma(&self, call: &RmaCall) -> Result<()> {
        (**self).rma(call)
    }
}

impl<A: Atomics> Atomics for std::sync::Arc<A> {
    #[inline(always)]
    fn atomic(&self, call: &AtomicCall) -> Result<()> {
        (**self).atomic(call)
    }
}

/// The most bytes that one atomic operation may carry to its target: one operand, or two.
const ATOMIC_BYTES: usize = 4096;

/// What is done to which type of element: only pairs that there are.
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
    /// -FI_EOPNOTSUPP for what the page does not allow.
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

    /// The most elements that one operation works on.
    pub fn most(&self) -> usize {
        self.most_bytes() / self.size
    }

    /// The most bytes that one operation works on: a number of whole elements of any size.
    #[inline]
    pub fn most_bytes(&self) -> usize {
        if self.form == Form::Compare {
            ATOMIC_BYTES / 2
        } else {
            ATOMIC_BYTES
        }
    }

    /// Bytes of so many elements. More than there may be are -FI_EMSGSIZE.
    #[inline]
    pub fn bytes(&self, count: usize) -> Result<usize> {
        let bytes = count.checked_mul(self.size);
        bytes
            .filter(|bytes| *bytes <= self.most_bytes())
            .ok_or(Errno(FI_EMSGSIZE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::*;

    #[test]
    fn only_what_the_page_allows() {
        let rows = [
            (Form::Base, FI_INT32, FI_SUM, true),
            (Form::Base, FI_INT32, FI_ATOMIC_READ, false),
            (Form::Base, FI_INT32, FI_CSWAP, false),
            (Form::Fetch, FI_INT32, FI_ATOMIC_READ, true),
            (Form::Fetch, FI_DOUBLE, FI_BOR, false),
            (Form::Compare, FI_LONG_DOUBLE, FI_CSWAP_LE, true),
            (Form::Compare, FI_INT32, FI_SUM, false),
            (Form::Base, FI_VOID, FI_SUM, false),
            (Form::Base, FI_INT32, FI_NOOP, false),
            (Form::Base, 9999, FI_SUM, false),
            (Form::Base, FI_INT32, u32::MAX, false),
        ];
        for (form, datatype, op, there) in rows {
            assert_eq!(
                AtomicKind::new(form, datatype, op).is_ok(),
                there,
                "{form:?} {datatype} {op}"
            );
        }
    }

    #[test]
    fn counts_have_a_limit() {
        let kind = AtomicKind::new(Form::Fetch, FI_UINT64, FI_ATOMIC_READ).unwrap();
        assert!(kind.reads);
        assert_eq!((kind.most(), kind.bytes(512)), (512, Ok(4096)));
        let compare = AtomicKind::new(Form::Compare, FI_UINT64, FI_CSWAP).unwrap();
        assert_eq!(compare.most(), 256);
        assert_eq!(kind.bytes(513), Err(Errno(FI_EMSGSIZE)));
        assert_eq!(kind.bytes(usize::MAX), Err(Errno(FI_EMSGSIZE)));
    }
}
