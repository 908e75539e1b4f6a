//! The one door from the engine to the kernels of atomic operations, which know what its numbers mean.

use super::op::{Error, Form};
use crate::mem::atomic::{self, Datatype, Kind, Op};
use crate::util::user::{UserBuf, UserIov};

/// An operation that there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    kind: Kind,
    op: Op,
    datatype: Datatype,
}

impl Kernel {
    /// As packets number it: fi_op in the low byte, fi_datatype in the high one.
    pub fn new(form: Form, code: u16) -> Option<Kernel> {
        let kind = match form {
            Form::Base => Kind::Base,
            Form::Fetch => Kind::Fetch,
            Form::Compare => Kind::Compare,
        };
        let op = Op::from_raw(u32::from(code & 255))?;
        let datatype = Datatype::from_raw(u32::from(code >> 8))?;
        atomic::valid(kind, op, datatype).then_some(Kernel { kind, op, datatype })
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        self.datatype.size()
    }

    /// Has no operand and changes nothing: FI_ATOMIC_READ.
    pub fn only_reads(self) -> bool {
        self.op == Op::Read
    }

    /// Works on all of `target`, whose pieces hold whole elements; the others are as long, if the operation has them.
    pub fn execute(self, target: &UserIov, operand: &[u8], compare: &[u8], result: &mut [u8]) -> Result<(), Error> {
        let mut at = 0;
        for piece in target.parts() {
            let end = at + piece.len();
            let (operand, compare) = (operand.get(at..end), compare.get(at..end));
            let (operand, compare) = (operand.unwrap_or_default(), compare.unwrap_or_default());
            let result = result.get_mut(at..end).unwrap_or_default();
            let done = atomic::execute(self.op, self.datatype, self.kind, *piece, operand, compare, result);
            done.map_err(|_| Error::NoSuchAtomic)?;
            at = end;
        }
        Ok(())
    }

    /// Works on all of `target`, which other processes work on too, with operands and result in one piece each. False:
    /// that would not be atomic.
    pub fn execute_shared(self, target: UserBuf, operand: &UserIov, compare: &UserIov, result: &UserIov) -> bool {
        let in_pieces = [operand, compare, result].iter().any(|iov| iov.parts().len() > 1);
        if in_pieces || !atomic::native(self.datatype, target.addr()) {
            return false;
        }
        let target = UserIov::one(target);
        atomic::execute_iov(self.op, self.datatype, self.kind, &target, operand, compare, result).is_ok()
    }
}
