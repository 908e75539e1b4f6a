//! The atomic operations of fi_atomic(3) on memory: every type, every operation, for whoever executes them.
//!
//! How atomic they are:
//!
//! - An element whose size the processor does at once (`native`: 1 to 8 bytes, on x86 also 16, at a multiple of its size)
//!   is changed by one locked instruction, or read and replaced by compare-and-swap until nobody came in between. That
//!   holds against other processes that have the memory mapped, against a program's own atomics on it, and between
//!   types of one size. Any process may execute these.
//! - Any other element (too large, or not aligned) is changed under locks of this process. It is atomic only among the
//!   operations that one process executes: let the process that owns the memory do them all.
//! - An array is not atomic, its elements are.
//!
//! All accesses are sequentially consistent, so operations that a process executes one after the other are seen so.
//!
//! Files: `kinds` what there is and what goes together; `element` what operations mean, with `complex`, `long_double` and
//! `small` for the types Rust lacks; `word` what the processor does at once; `stripes` the locks; `kernel` the loops.

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
pub use kinds::{Class, Datatype, Kind, Op, SIZE_MAX, valid};

/// Why an operation was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Kind, operation and type do not go together.
    Combination,
    /// The target is not whole elements, or another array is not as long as the target.
    Length,
}

/// The arrays that an operation has beside its target.
struct Arrays {
    operand: bool,
    compare: bool,
    result: bool,
}

fn arrays(kind: Kind, op: Op) -> Arrays {
    Arrays {
        operand: op != Op::Read,
        compare: kind == Kind::Compare,
        result: kind != Kind::Base,
    }
}

/// Whether the processor does an element of this type at this address at once, so that any process that has it mapped
/// may execute operations on it. A mapping keeps alignment, so it does not matter whose address it is. An array may be
/// judged by its first element.
pub fn native(datatype: Datatype, addr: usize) -> bool {
    for_type(datatype, Native(addr))
}

/// Counts the elements of a target, and holds the lengths of the arrays that are needed against it.
fn count(datatype: Datatype, target: usize, others: [(bool, usize); 3]) -> Result<usize, Invalid> {
    // Sizes are powers of two; a division would cost more than the operation.
    let size = datatype.size();
    let [first, second, third] = others.map(|(needed, len)| !needed || len == target);
    let fits = target & (size - 1) == 0 && first && second && third;
    fits.then_some(target >> size.trailing_zeros()).ok_or(Invalid::Length)
}

/// Executes an operation on the elements of `target`; `result` gets the old values. The arrays that the operation has
/// must be as long as the target, of any alignment; the others are not looked at.
pub fn execute(
    op: Op,
    datatype: Datatype,
    kind: Kind,
    target: UserBuf,
    operand: &[u8],
    compare: &[u8],
    result: &mut [u8],
) -> Result<(), Invalid> {
    if !valid(kind, op, datatype) {
        return Err(Invalid::Combination);
    }
    let has = arrays(kind, op);
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
    // SAFETY: all lengths are that of the target, whose maker promised the memory.
    for_type(datatype, unsafe { Execute::new(op, job) });
    Ok(())
}

/// The same of an operation that is `valid`, on memory that other processes work on too, with all arrays in memory of the
/// application. False: nothing was done, for the processor does not do such an element at once.
pub fn execute_shared(
    op: Op,
    datatype: Datatype,
    kind: Kind,
    target: UserBuf,
    operand: UserBuf,
    compare: UserBuf,
    result: UserBuf,
) -> bool {
    let has = arrays(kind, op);
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
    // SAFETY: all lengths are that of the target; the makers of all promised the memory.
    for_type(datatype, unsafe { Execute::shared(op, job) })
}

/// The same with all arrays in memory of the application, each in any pieces. An element that lies across two pieces
/// of the target is not atomic to anyone.
pub fn execute_iov(
    op: Op,
    datatype: Datatype,
    kind: Kind,
    target: &UserIov,
    operand: &UserIov,
    compare: &UserIov,
    result: &UserIov,
) -> Result<(), Invalid> {
    if !valid(kind, op, datatype) {
        return Err(Invalid::Combination);
    }
    let has = arrays(kind, op);
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
        // The longest run of whole elements that is in one piece everywhere.
        let here = needed.map(|(there, iov)| there.then(|| iov.slices(at, len - at).next().unwrap_or_default()));
        let run = here.iter().flatten().map(UserBuf::len).min().unwrap_or(0) & !(size - 1);
        if run == 0 {
            split_element(op, datatype, at, needed);
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
        // SAFETY: the pieces have `run` bytes, and their makers promised the memory; what is not needed is null.
        for_type(datatype, unsafe { Execute::new(op, job) });
        at += run;
    }
    Ok(())
}

/// `execute_shared` with all arrays in any pieces: those of the target must each be what the processor does at once.
pub fn execute_shared_iov(
    op: Op,
    datatype: Datatype,
    kind: Kind,
    target: &UserIov,
    operand: &UserIov,
    compare: &UserIov,
    result: &UserIov,
) -> bool {
    let mut pieces = [target, operand, compare, result].into_iter().flat_map(UserIov::parts);
    let whole = pieces.all(|piece| piece.len() & (datatype.size() - 1) == 0);
    let at_once = |piece: &UserBuf| native(datatype, piece.addr());
    let fits = whole && target.parts().iter().all(at_once);
    fits && execute_iov(op, datatype, kind, target, operand, compare, result).is_ok()
}

/// One element that is in two pieces somewhere: worked on in copies.
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
    // SAFETY: each copy has room for the largest element.
    for_type(datatype, unsafe { Execute::new(op, job) });
    let [(_, to), _, _, (answered, answer)] = needed;
    if op != Op::Read {
        to.write(at, target.get(..size).unwrap_or_default());
    }
    if answered {
        answer.write(at, result.get(..size).unwrap_or_default());
    }
}

/// `combine` on memory of the application, each in any pieces. The two have nothing in common.
pub fn combine_iov(op: Op, datatype: Datatype, dst: &UserIov, src: &UserIov) -> Result<(), Invalid> {
    if !valid(Kind::Base, op, datatype) {
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
        // SAFETY: the pieces have `run` bytes, their makers promised the memory, and the caller that they are apart.
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

/// `dst = dst op src` for each element, in memory that nobody else touches meanwhile: no atomics, and several elements at
/// a time where the processor can. The operations are those of base calls.
pub fn combine(op: Op, datatype: Datatype, dst: &mut [u8], src: &[u8]) -> Result<(), Invalid> {
    if !valid(Kind::Base, op, datatype) {
        return Err(Invalid::Combination);
    }
    count(datatype, dst.len(), [(true, src.len()), (false, 0), (false, 0)])?;
    for_type(datatype, Combine { op, dst, src });
    Ok(())
}
