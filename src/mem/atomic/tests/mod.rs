//! The kernels held against a second, slower statement of what they mean, and against each other in threads.

mod all;
mod special;
mod threads;
mod values;

use crate::mem::atomic::{self, AtomicOp, Datatype, Form, Invalid, Op};
use crate::util::user::{UserBuf, UserIov};

/// `atomic::execute` of a combination that may not be allowed.
fn execute(
    op: Op,
    datatype: Datatype,
    form: Form,
    target: UserBuf,
    operand: &[u8],
    compare: &[u8],
    result: &mut [u8],
) -> Result<(), Invalid> {
    let op = AtomicOp::new(form, op, datatype).ok_or(Invalid::Combination)?;
    atomic::execute(op, target, operand, compare, result)
}

/// The same of `atomic::execute_iov`.
fn execute_iov(
    op: Op,
    datatype: Datatype,
    form: Form,
    target: &UserIov,
    operand: &UserIov,
    compare: &UserIov,
    result: &UserIov,
) -> Result<(), Invalid> {
    let op = AtomicOp::new(form, op, datatype).ok_or(Invalid::Combination)?;
    atomic::execute_iov(op, target, operand, compare, result)
}

/// Memory at a chosen place relative to a cache line, with guard bytes around it.
pub struct Place {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

const GUARD: u8 = 0xa5;

impl Place {
    pub fn new(offset: usize, bytes: &[u8]) -> Place {
        let mut memory = vec![GUARD; bytes.len() + offset + 256];
        let start = memory.as_ptr().align_offset(64) + 64 + offset;
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        let len = bytes.len();
        Place { memory, start, len }
    }

    pub fn buf(&mut self) -> UserBuf {
        // SAFETY: the bytes are within the vector; tests use the buffer while the place lives.
        unsafe { UserBuf::new(self.memory.as_mut_ptr().add(self.start), self.len) }
    }

    /// The bytes, once it is seen that nothing was written around them.
    pub fn bytes(&self) -> &[u8] {
        let (before, rest) = self.memory.split_at(self.start);
        let (bytes, after) = rest.split_at(self.len);
        assert!(before.iter().chain(after).all(|byte| *byte == GUARD), "written outside");
        bytes
    }
}
