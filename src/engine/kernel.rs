//! Atomic operations as the engine uses them: their numbers in packets, the rights they need, and their execution by
//! the kernels of `mem`.
//!
//! Called by initiators that work directly on the target's memory (`direct`), and by targets (`atomic_target`).

use super::op::{AtomicOp, Error, Form};
use crate::mem::atomic::{self, Op};
use crate::util::regions::Rights;
use crate::util::user::{UserBuf, UserIov};

#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel(pub AtomicOp);

impl Kernel {
    /// From `Header::code`. None for an operation that does not exist.
    pub(super) fn from_code(form: Form, code: u16) -> Option<Kernel> {
        AtomicOp::from_raw(form, u32::from(code & 255), u32::from(code >> 8)).map(Kernel)
    }

    /// Whether so many bytes are whole elements. Their sizes are powers of two.
    #[inline]
    pub(super) fn is_whole(self, bytes: usize) -> bool {
        bytes & (self.0.datatype().size() - 1) == 0
    }

    /// FI_ATOMIC_READ, which has no operand and changes nothing.
    pub(super) fn only_reads(self) -> bool {
        self.0.op() == Op::Read
    }

    /// The rights that it needs on the target's region.
    #[inline]
    pub(super) fn rights(self) -> Rights {
        match self.0.form() {
            Form::Base => Rights::WRITE,
            Form::Fetch | Form::Compare if self.only_reads() => Rights::READ,
            Form::Fetch | Form::Compare => Rights::BOTH,
        }
    }

    /// Executes it on all of `target`, each piece of which is whole elements. The other arrays have the same length, or
    /// are empty if the operation does not use them.
    pub(super) fn execute(
        self,
        target: &UserIov,
        operand: &[u8],
        compare: &[u8],
        result: &mut [u8],
    ) -> Result<(), Error> {
        let mut at = 0;
        for piece in target.parts() {
            let end = at + piece.len();
            let (operand, compare) = (operand.get(at..end), compare.get(at..end));
            let (operand, compare) = (operand.unwrap_or_default(), compare.unwrap_or_default());
            let result = result.get_mut(at..end).unwrap_or_default();
            self.execute_piece(*piece, operand, compare, result)?;
            at = end;
        }
        Ok(())
    }

    /// As `execute`, for a target in one piece.
    #[inline]
    pub(super) fn execute_piece(
        self,
        target: UserBuf,
        operand: &[u8],
        compare: &[u8],
        result: &mut [u8],
    ) -> Result<(), Error> {
        let done = atomic::execute(self.0, target, operand, compare, result);
        done.map_err(|_| Error::NoSuchAtomic)
    }

    /// Executes it on memory that other processes work on too. False, and nothing was done, if that would not be
    /// atomic.
    #[inline(always)]
    pub(super) fn execute_shared(self, target: UserBuf, operand: UserBuf, compare: UserBuf, result: UserBuf) -> bool {
        atomic::execute_shared(self.0, target, operand, compare, result)
    }

    /// As `execute_shared`, for arrays in any number of pieces.
    pub(super) fn execute_shared_pieces(
        self,
        target: &UserIov,
        operand: &UserIov,
        compare: &UserIov,
        result: &UserIov,
    ) -> bool {
        atomic::execute_shared_iov(self.0, target, operand, compare, result)
    }
}

/// The number of an operation in packets (`Header::code`).
pub(super) fn code(op: AtomicOp) -> u16 {
    op.op() as u16 | (op.datatype() as u16) << 8
}
