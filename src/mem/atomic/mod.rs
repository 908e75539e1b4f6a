//! The operations of fi_atomic(3) on memory: every operation on every type.
//!
//! How atomic they are:
//!
//! - A native element (1 to 8 bytes, on x86 also 16, aligned to its size) is changed by one locked instruction or a
//!   compare-and-swap loop. That is atomic against other processes that map the memory, against the program's own
//!   atomics, and between types of one size. Any process may execute these.
//! - Any other element, too large or unaligned, is changed under locks of this process. It is atomic only among
//!   operations of one process, so the process that owns the memory must execute all of them.
//! - The elements of an array are atomic, the array is not.
//!
//! All accesses are sequentially consistent, so operations that a process executes in sequence are seen in that order.
//!
//! - `kinds`: types, operations, forms of call, and which go together.
//! - `element`: the meaning of operations on values, with `complex`, `long_double` and `small` for types Rust lacks.
//! - `word`: atomic instructions on words. `stripes`: the locks. `kernel`: the loops over elements.

mod complex;
mod element;
mod kernel;
mod kinds;
mod long_double;
mod small;
mod stripes;
#[cfg(test)]
mod tests;
mod word;

use core::ptr::{null, null_mut};

use crate::util::user::{UserBuf, UserIov};
use kernel::{Combine, Execute, Job, Native, for_type};
use kinds::valid;
pub use kinds::{AtomicOp, Class, Datatype, Form, Op, SIZE_MAX};

/// Why an operation was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// fi_atomic(3) does not allow this operation with this type or form of call.
    Combination,
    /// The target is not whole elements, or another array has another length.
    Length,
}

/// Which arrays an operation has beside its target.
struct Arrays {
    operand: bool,
    compare: bool,
    result: bool,
}

fn arrays(op: AtomicOp) -> Arrays {
    Arrays {
        operand: op.op() != Op::Read,
        compare: op.form() == Form::Compare,
        result: op.form() != Form::Base,
    }
}

/// Whether elements of this type at this address are native, so that any process that maps them may execute operations
/// on them. Mappings keep alignment, so the address may be any process's. An array is native if its first element is.
pub fn native(datatype: Datatype, addr: usize) -> bool {
    for_type(datatype, Native(addr))
}

/// The number of elements in the target, if the arrays that are needed have its length.
fn count(datatype: Datatype, target: usize, others: [(bool, usize); 3]) -> Result<usize, Invalid> {
    // Sizes are powers of two; a division would cost more than the operation.
    let size = datatype.size();
    let [first, second, third] = others.map(|(needed, len)| !needed || len == target);
    let fits = target & (size - 1) == 0 && first && second && third;
    fits.then_some(target >> size.trailing_zeros()).ok_or(Invalid::Length)
}

/// Executes an operation on the elements of `target`; `result` gets the old values. The arrays that the operation needs
/// must be as long as the target; their alignment does not matter. The others are ignored.
pub fn execute(
    op: AtomicOp,
    target: UserBuf,
    operand: &[u8],
    compare: &[u8],
    result: &mut [u8],
) -> Result<(), Invalid> {
    let (has, datatype) = (arrays(op), op.datatype());
    let lens = [
        (has.operand, operand.len()),
        (has.compare, compare.len()),
        (has.result, result.len()),
    ];
    let job = Job {
        count: count(datatype, target.len(), lens)?,
        target: target.addr() as *mut u8,
        operand: if has.operand { operand.as_ptr() } else { null() },
        compare: if has.compare { compare.as_ptr() } else { null() },
        result: if has.result { result.as_mut_ptr() } else { null_mut() },
    };
    // SAFETY: `count` has checked that all arrays are as long as the target. The slices are valid for their length, and
    // the target is by `UserBuf::new`'s contract.
    for_type(datatype, unsafe { Execute::new(op.op(), job) });
    Ok(())
}

/// As `execute`, with all arrays in application memory and a target that other processes work
/// on too. False, and nothing was done, if the elements are not native.
pub fn execute_shared(op: AtomicOp, target: UserBuf, operand: UserBuf, compare: UserBuf, result: UserBuf) -> bool {
    let (has, datatype) = (arrays(op), op.datatype());
    let lens = [
        (has.operand, operand.len()),
        (has.compare, compare.len()),
        (has.result, result.len()),
    ];
    let Ok(count) = count(datatype, target.len(), lens) else {
        return false;
    };
    let address = |there: bool, array: UserBuf| if there { array.addr() as *mut u8 } else { null_mut() };
    let job = Job {
        count,
        target: target.addr() as *mut u8,
        operand: address(has.operand, operand),
        compare: address(has.compare, compare),
        result: address(has.result, result),
    };
    // SAFETY: `count` has checked that all arrays are as long as the target. All are valid by `UserBuf::new`'s
    // contract.
    for_type(datatype, unsafe { Execute::shared(op.op(), job) })
}

/// As `execute`, with all arrays in application memory, each in any number of pieces. An element across two pieces of
/// the target is changed without atomicity.
pub fn execute_iov(
    op: AtomicOp,
    target: &UserIov,
    operand: &UserIov,
    compare: &UserIov,
    result: &UserIov,
) -> Result<(), Invalid> {
    let (has, datatype) = (arrays(op), op.datatype());
    let lens = [
        (has.operand, operand.len()),
        (has.compare, compare.len()),
        (has.result, result.len()),
    ];
    count(datatype, target.len(), lens)?;
    let (len, size) = (target.len(), datatype.size());
    let needed = [
        (true, target),
        (has.operand, operand),
        (has.compare, compare),
        (has.result, result),
    ];
    let mut at = 0;
    while at < len {
        // The longest run of whole elements that lies in one piece of each array.
        let here = needed.map(|(there, iov)| there.then(|| iov.slices(at, len - at).next().unwrap_or_default()));
        let run = here.iter().flatten().map(UserBuf::len).min().unwrap_or(0) & !(size - 1);
        if run == 0 {
            split_element(op.op(), datatype, at, needed);
            at += size;
            continue;
        }
        let [target, operand, compare, result] = here.map(|piece| piece.map_or(0, |piece| piece.addr()));
        let job = Job {
            count: run >> size.trailing_zeros(),
            target: target as *mut u8,
            operand: operand as *const u8,
            compare: compare as *const u8,
            result: result as *mut u8,
        };
        // SAFETY: each piece has at least `run` bytes, valid by `UserBuf::new`'s contract; arrays not needed are null.
        for_type(datatype, unsafe { Execute::new(op.op(), job) });
        at += run;
    }
    Ok(())
}

/// As `execute_shared`, with all arrays in any number of pieces. Each piece must be whole elements, in the target
/// native ones.
pub fn execute_shared_iov(
    op: AtomicOp,
    target: &UserIov,
    operand: &UserIov,
    compare: &UserIov,
    result: &UserIov,
) -> bool {
    let mut pieces = [target, operand, compare, result].into_iter().flat_map(UserIov::parts);
    let datatype = op.datatype();
    let whole = pieces.all(|piece| piece.len() & (datatype.size() - 1) == 0);
    let at_once = |piece: &UserBuf| native(datatype, piece.addr());
    let fits = whole && target.parts().iter().all(at_once);
    fits && execute_iov(op, target, operand, compare, result).is_ok()
}

/// Executes an operation on one element that lies across two pieces of some array, in copies.
fn split_element(op: Op, datatype: Datatype, at: usize, needed: [(bool, &UserIov); 4]) {
    let size = datatype.size();
    let mut copies = [[0; SIZE_MAX]; 4];
    for (copy, (there, iov)) in copies.iter_mut().zip(needed) {
        if there {
            iov.read(at, copy.get_mut(..size).unwrap_or_default());
        }
    }
    let [target, operand, compare, result] = &mut copies;
    let job = Job {
        count: 1,
        target: target.as_mut_ptr(),
        operand: operand.as_ptr(),
        compare: compare.as_ptr(),
        result: result.as_mut_ptr(),
    };
    // SAFETY: each array is one of `copies`, which has room for an element of `SIZE_MAX`.
    for_type(datatype, unsafe { Execute::new(op, job) });
    let [(_, to), _, _, (answered, answer)] = needed;
    if op != Op::Read {
        to.write(at, target.get(..size).unwrap_or_default());
    }
    if answered {
        answer.write(at, result.get(..size).unwrap_or_default());
    }
}

/// As `combine`, on application memory in any number of pieces. The two buffers must not overlap.
pub fn combine_iov(op: Op, datatype: Datatype, dst: &UserIov, src: &UserIov) -> Result<(), Invalid> {
    if !valid(Form::Base, op, datatype) {
        return Err(Invalid::Combination);
    }
    count(datatype, dst.len(), [(true, src.len()), (false, 0), (false, 0)])?;
    let (len, size) = (dst.len(), datatype.size());
    let mut at = 0;
    while at < len {
        let [into, from] = [dst, src].map(|iov| iov.slices(at, len - at).next().unwrap_or_default());
        let run = into.len().min(from.len()) / size * size;
        if run == 0 {
            let nothing = (false, dst);
            split_element(op, datatype, at, [(true, dst), (true, src), nothing, nothing]);
            at += size;
            continue;
        }
        // SAFETY: both pieces have at least `run` bytes, valid by `UserBuf::new`'s contract, and by this function's
        // contract they do not overlap.
        let (dst, src) = unsafe {
            (
                core::slice::from_raw_parts_mut(into.addr() as *mut u8, run),
                core::slice::from_raw_parts(from.addr() as *const u8, run),
            )
        };
        for_type(datatype, Combine { op, dst, src });
        at += run;
    }
    Ok(())
}

/// `dst = dst op src` for each element, in memory that nobody else accesses: without atomics, so that the compiler can
/// vectorize. The operations are those of base calls.
pub fn combine(op: Op, datatype: Datatype, dst: &mut [u8], src: &[u8]) -> Result<(), Invalid> {
    if !valid(Form::Base, op, datatype) {
        return Err(Invalid::Combination);
    }
    count(datatype, dst.len(), [(true, src.len()), (false, 0), (false, 0)])?;
    for_type(datatype, Combine { op, dst, src });
    Ok(())
}
