//! The loops over elements, written once for all types and operations.

use super::complex::Complex;
use super::element::Element;
use super::kinds::{Datatype, Op};
use super::long_double::LongDouble;
use super::small::{Brain, E4m3, E5m2, Half, Small};
use super::stripes;
use super::word::Word;

/// The arrays of one operation, each of `count` elements of any alignment. Reading from a null array gives zero,
/// writing to it does nothing.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub target: *mut u8,
    pub operand: *const u8,
    pub compare: *const u8,
    pub result: *mut u8,
    pub count: usize,
}

impl Job {
    /// Calls `work` with the address, operand and compare operand of each element, and stores what it returns as the
    /// result.
    ///
    /// # Safety All arrays that are not null are valid for `count` elements of the size of `W`. Operand and result may
    /// be the same.
    #[inline(always)]
    pub(super) unsafe fn each<W: Word>(&self, work: impl Fn(*mut W, W, W) -> W) {
        let read = |array: *const W, index: usize| match array.is_null() {
            true => W::default(),
            // SAFETY: `index` is below `count`, for which the caller promises the array to be valid.
            false => unsafe { array.add(index).read_unaligned() },
        };
        let [operand, compare] = [self.operand, self.compare].map(|array| array.cast::<W>());
        let result = self.result.cast::<W>();
        for index in 0..self.count {
            // SAFETY: as in `read`.
            let at = unsafe { self.target.cast::<W>().add(index) };
            let old = work(at, read(operand, index), read(compare, index));
            if !result.is_null() {
                // SAFETY: as in `read`; the result is not null.
                unsafe { result.add(index).write_unaligned(old) };
            }
        }
    }
}

/// Generic code that `for_type` calls with the element's type.
pub(super) trait ForType {
    type Output;
    fn run<E: Element>(self) -> Self::Output;
}

/// Calls `task` with the Rust type of an fi_datatype.
#[inline]
pub(super) fn for_type<T: ForType>(datatype: Datatype, task: T) -> T::Output {
    match datatype {
        Datatype::Int8 => task.run::<i8>(),
        Datatype::Uint8 => task.run::<u8>(),
        Datatype::Int16 => task.run::<i16>(),
        Datatype::Uint16 => task.run::<u16>(),
        Datatype::Int32 => task.run::<i32>(),
        Datatype::Uint32 => task.run::<u32>(),
        Datatype::Int64 => task.run::<i64>(),
        Datatype::Uint64 => task.run::<u64>(),
        Datatype::Int128 => task.run::<i128>(),
        Datatype::Uint128 => task.run::<u128>(),
        Datatype::Float => task.run::<f32>(),
        Datatype::Double => task.run::<f64>(),
        Datatype::LongDouble => task.run::<LongDouble>(),
        Datatype::FloatComplex => task.run::<Complex<f32>>(),
        Datatype::DoubleComplex => task.run::<Complex<f64>>(),
        Datatype::LongDoubleComplex => task.run::<Complex<LongDouble>>(),
        Datatype::Float16 => task.run::<Small<Half>>(),
        Datatype::Bfloat16 => task.run::<Small<Brain>>(),
        Datatype::Float8E4m3 => task.run::<Small<E4m3>>(),
        Datatype::Float8E5m2 => task.run::<Small<E5m2>>(),
    }
}

/// Runs an operation atomically for each element.
pub(super) struct Execute {
    op: Op,
    job: Job,
    /// The target is shared with other processes, which do not have our locks: only native elements may be changed.
    shared: bool,
}

impl Execute {
    /// # Safety
    /// As `Job::each`, for the type that it is run with. The target is writable unless `op` is `Read`.
    pub(super) unsafe fn new(op: Op, job: Job) -> Execute {
        Execute { op, job, shared: false }
    }

    /// For memory that other processes work on too: does nothing unless the elements are native.
    ///
    /// # Safety
    /// As `new`.
    pub(super) unsafe fn shared(op: Op, job: Job) -> Execute {
        Execute { op, job, shared: true }
    }
}

impl ForType for Execute {
    /// Whether it was executed.
    type Output = bool;

    // A function for each type, so that the small types do not pay for the stack and registers of the large ones.
    #[inline(never)]
    fn run<E: Element>(self) -> bool {
        let Execute { op, job, shared } = self;
        let step = |old, operand, compare| {
            let [old, operand, compare] = [old, operand, compare].map(E::from_word);
            E::step(op, old, operand, compare).map(E::word)
        };
        // SAFETY: the caller of `new` or `shared` has promised what `each` needs. All elements are native if the first
        // is, since they lie one element size apart.
        unsafe {
            if !E::Word::native(job.target.addr()) {
                if shared {
                    return false;
                }
                job.each(|at, operand, compare| stripes::update(at, |old| step(old, operand, compare)));
            } else if !E::Word::instruction(op, E::INT, &job) {
                job.each(|at, operand, compare| E::Word::update(at, |old| step(old, operand, compare)));
            }
        }
        true
    }
}

/// Whether elements of the type at this address are native.
pub(super) struct Native(pub usize);

impl ForType for Native {
    type Output = bool;

    fn run<E: Element>(self) -> bool {
        E::Word::native(self.0)
    }
}

/// Runs an operation on memory that nobody else accesses.
pub(super) struct Combine<'a> {
    pub op: Op,
    pub dst: &'a mut [u8],
    pub src: &'a [u8],
}

impl ForType for Combine<'_> {
    type Output = ();

    fn run<E: Element>(self) {
        // One loop for each operation, so that the operation is a constant in it and the compiler can vectorize.
        match self.op {
            Op::Min => self.zip::<E>(|a, b| E::step(Op::Min, a, b, b)),
            Op::Max => self.zip::<E>(|a, b| E::step(Op::Max, a, b, b)),
            Op::Sum => self.zip::<E>(|a, b| E::step(Op::Sum, a, b, b)),
            Op::Diff => self.zip::<E>(|a, b| E::step(Op::Diff, a, b, b)),
            Op::Prod => self.zip::<E>(|a, b| E::step(Op::Prod, a, b, b)),
            Op::Bor => self.zip::<E>(|a, b| E::step(Op::Bor, a, b, b)),
            Op::Band => self.zip::<E>(|a, b| E::step(Op::Band, a, b, b)),
            Op::Bxor => self.zip::<E>(|a, b| E::step(Op::Bxor, a, b, b)),
            Op::Lor => self.zip::<E>(|a, b| E::step(Op::Lor, a, b, b)),
            Op::Land => self.zip::<E>(|a, b| E::step(Op::Land, a, b, b)),
            Op::Lxor => self.zip::<E>(|a, b| E::step(Op::Lxor, a, b, b)),
            op => self.zip::<E>(|a, b| E::step(op, a, b, b)),
        }
    }
}

impl Combine<'_> {
    #[inline(always)]
    fn zip<E: Element>(self, step: impl Fn(E, E) -> Option<E>) {
        let count = self.dst.len().min(self.src.len()) / size_of::<E::Word>();
        let (dst, src) = (
            self.dst.as_mut_ptr().cast::<E::Word>(),
            self.src.as_ptr().cast::<E::Word>(),
        );
        for index in 0..count {
            // SAFETY: both slices have at least `count` words, and the accesses are unaligned ones.
            unsafe {
                let [old, operand] =
                    [dst.cast_const(), src].map(|array| E::from_word(array.add(index).read_unaligned()));
                let new = step(old, operand).unwrap_or(old);
                dst.add(index).write_unaligned(new.word());
            }
        }
    }
}
