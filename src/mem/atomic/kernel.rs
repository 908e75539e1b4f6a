//! The loops over elements, written once for all types and operations.

use super::complex::Complex;
use super::element::Element;
use super::kinds::{Datatype, Op};
use super::long_double::LongDouble;
use super::small::{Brain, E4m3, E5m2, Half, Small};
use super::stripes;
use super::word::Word;

/// One operation's memory: `count` elements in each array, of any alignment. A null array is not there: what is read from
/// it is zero, what is written to it is dropped.
#[derive(Clone, Copy)]
pub struct Job {
    pub target: *mut u8,
    pub operand: *const u8,
    pub compare: *const u8,
    pub result: *mut u8,
    pub count: usize,
}

impl Job {
    /// Hands `work` the address, operand and compare operand of each element; what it gives back is the result.
    ///
    /// # Safety
    /// All arrays that are there have `count` elements of the size of `W`. Operand and result may be the same.
    #[inline(always)]
    pub unsafe fn each<W: Word>(&self, work: impl Fn(*mut W, W, W) -> W) {
        let read = |array: *const W, index: usize| match array.is_null() {
            true => W::default(),
            // SAFETY: `index` is below the count that the caller promised.
            false => unsafe { array.add(index).read_unaligned() },
        };
        let [operand, compare] = [self.operand, self.compare].map(|array| array.cast::<W>());
        let result = self.result.cast::<W>();
        for index in 0..self.count {
            // SAFETY: as above.
            let at = unsafe { self.target.cast::<W>().add(index) };
            let old = work(at, read(operand, index), read(compare, index));
            if !result.is_null() {
                // SAFETY: as above.
                unsafe { result.add(index).write_unaligned(old) };
            }
        }
    }
}

/// Something that is done for one type of element.
pub trait ForType {
    type Output;
    fn run<E: Element>(self) -> Self::Output;
}

/// The only place where a type's number becomes a type.
#[inline]
pub fn for_type<T: ForType>(datatype: Datatype, task: T) -> T::Output {
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
pub struct Execute {
    op: Op,
    job: Job,
    /// Not if our locks are needed, which other processes do not have.
    shared: bool,
}

impl Execute {
    /// # Safety
    /// As `Job::each` for the type it is run for; the target is writable unless `op` is `Read`.
    pub unsafe fn new(op: Op, job: Job) -> Execute {
        Execute { op, job, shared: false }
    }

    /// For memory that other processes work on too: runs only what the processor does at once.
    ///
    /// # Safety
    /// As `new`.
    pub unsafe fn shared(op: Op, job: Job) -> Execute {
        Execute { op, job, shared: true }
    }
}

impl ForType for Execute {
    /// Whether it was done.
    type Output = bool;

    // Apart, so that the small types do not pay for the registers and the stack that the large ones need.
    #[inline(never)]
    fn run<E: Element>(self) -> bool {
        let Execute { op, job, shared } = self;
        let step = |old, operand, compare| {
            let [old, operand, compare] = [old, operand, compare].map(E::from_word);
            E::step(op, old, operand, compare).map(E::word)
        };
        // SAFETY: `new` has the promise of `each`. Elements lie one size apart, so one that is native makes all native.
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

/// Whether the processor does elements of the type at this address at once.
pub struct Native(pub usize);

impl ForType for Native {
    type Output = bool;

    fn run<E: Element>(self) -> bool {
        E::Word::native(self.0)
    }
}

/// Runs an operation on memory that nobody else touches meanwhile.
pub struct Combine<'a> {
    pub op: Op,
    pub dst: &'a mut [u8],
    pub src: &'a [u8],
}

impl ForType for Combine<'_> {
    type Output = ();

    fn run<E: Element>(self) {
        // One loop for each operation, so that the compiler knows it inside and can take several elements at a time.
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
            // SAFETY: both slices have `count` words, of any alignment.
            unsafe {
                let [old, operand] =
                    [dst.cast_const(), src].map(|array| E::from_word(array.add(index).read_unaligned()));
                let new = step(old, operand).unwrap_or(old);
                dst.add(index).write_unaligned(new.word());
            }
        }
    }
}
