//! The one door from the engine to the kernels of atomic operations, which know what its numbers mean.

use super::op::{Error, Form};
use crate::mem::atomic::{self, Datatype, Kind, Op};
use crate::util::regions::Rights;
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

    /// Whether so many bytes are whole elements. Their sizes are powers of two.
    #[inline]
    pub fn is_whole(self, bytes: usize) -> bool {
        bytes & (self.datatype.size() - 1) == 0
    }

    /// Has no operand and changes nothing: FI_ATOMIC_READ.
    pub fn only_reads(self) -> bool {
        self.op == Op::Read
    }

    /// What it may do to the memory it works on.
    #[inline]
    pub fn rights(self) -> Rights {
        match self.kind {
            Kind::Base => Rights::WRITE,
            Kind::Fetch | Kind::Compare if self.only_reads() => Rights::READ,
            Kind::Fetch | Kind::Compare => Rights::BOTH,
        }
    }

    /// Works on all of `target`, whose pieces hold whole elements; the others are as long, if the operation has them.
    pub fn execute(self, target: &UserIov, operand: &[u8], compare: &[u8], result: &mut [u8]) -> Result<(), Error> {
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

    /// The same with a target in one piece.
    #[inline]
    pub fn execute_piece(
        self,
        target: UserBuf,
        operand: &[u8],
        compare: &[u8],
        result: &mut [u8],
    ) -> Result<(), Error> {
        let done = atomic::execute(self.op, self.datatype, self.kind, target, operand, compare, result);
        done.map_err(|_| Error::NoSuchAtomic)
    }

    /// Works on all of `target`, which other processes work on too. False: that would not be atomic.
    #[inline(always)]
    pub fn execute_shared(self, target: UserBuf, operand: UserBuf, compare: UserBuf, result: UserBuf) -> bool {
        atomic::execute_shared(self.op, self.datatype, self.kind, target, operand, compare, result)
    }

    /// The same with everything in any pieces.
    pub fn execute_shared_pieces(
        self,
        target: &UserIov,
        operand: &UserIov,
        compare: &UserIov,
        result: &UserIov,
    ) -> bool {
        atomic::execute_shared_iov(self.op, self.datatype, self.kind, target, operand, compare, result)
    }
}
