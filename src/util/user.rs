//! An application's memory, named but not opened: where a message comes from or goes to.
//!
//! The engine passes these along without looking inside; bytes are copied by the two methods here, which clamp to the
//! buffer, or by a transport that needs the address. The one `unsafe` is at the making: whoever makes a `UserBuf`
//! promises that the memory stays valid until the operation it belongs to has ended.

use super::keep_in_registers;
pub use super::small_array::IOV_LIMIT;
use super::small_array::SmallArray;
use core::ptr::copy_nonoverlapping;
use std::alloc::Layout;

/// As `copy_nonoverlapping`, but 8 to 16 bytes, as short messages have, are copied without a call.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: every access lies within the first `len` bytes; the second of two may overlap the first.
    unsafe {
        if (8..=16).contains(&len) {
            let (first, last) = (from.cast::<u64>(), from.add(len - 8).cast::<u64>());
            let (first, last) = (first.read_unaligned(), last.read_unaligned());
            to.cast::<u64>().write_unaligned(first);
            to.add(len - 8).cast::<u64>().write_unaligned(last);
        } else {
            copy_nonoverlapping(from, to, len);
        }
    }
}

/// One piece of memory of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserBuf {
    addr: usize,
    len: usize,
}

impl UserBuf {
    /// # Safety
    /// `len` bytes at `addr` stay readable, and writable if the operation writes, until the operation has ended.
    pub unsafe fn new(addr: *mut u8, len: usize) -> UserBuf {
        UserBuf {
            addr: addr as usize,
            len,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn addr(&self) -> usize {
        self.addr
    }

    pub fn range(&self) -> core::ops::Range<usize> {
        self.addr..self.addr.saturating_add(self.len)
    }

    /// The part that starts at `at` and has at most `len` bytes.
    #[inline]
    pub fn part(&self, at: usize, len: usize) -> UserBuf {
        let at = at.min(self.len);
        UserBuf {
            addr: self.addr.wrapping_add(at),
            len: len.min(self.len - at),
        }
    }

    /// Copies into the buffer from its start; what does not fit is left out. Says how much was copied.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.len);
        // SAFETY: `new` promised the memory; `fits` is within both. A slice of ours does not overlap it.
        unsafe { copy(bytes.as_ptr(), self.addr as *mut u8, fits) };
        fits
    }

    /// Copies out of the buffer from its start. Says how much was copied.
    #[inline]
    pub fn read(&self, bytes: &mut [u8]) -> usize {
        let fits = bytes.len().min(self.len);
        // SAFETY: as in `write`.
        unsafe { copy(self.addr as *const u8, bytes.as_mut_ptr(), fits) };
        fits
    }
}

impl UserBuf {
    /// Copies in from the start of `from`, as much as there is room for. The two must not overlap.
    #[inline(always)]
    pub fn fill(&self, from: &UserIov) {
        match from.only() {
            // SAFETY: as in `write`.
            Some(part) => unsafe { copy(part.addr as *const u8, self.addr as *mut u8, part.len.min(self.len)) },
            None => copy_pieces(*from, UserIov::one(*self)),
        }
    }

    /// Copies out to the start of `into`, as much as there is room for. The two must not overlap.
    #[inline(always)]
    pub fn pour(&self, into: &UserIov) {
        match into.only() {
            // SAFETY: as in `write`.
            Some(part) => unsafe { copy(self.addr as *const u8, part.addr as *mut u8, part.len.min(self.len)) },
            None => copy_pieces(UserIov::one(*self), *into),
        }
    }
}

/// Takes both by value, so that a caller's operation of one piece need not exist in memory.
#[inline(never)]
fn copy_pieces(mut from: UserIov, mut into: UserIov) {
    keep_in_registers(&mut from).copy_to(keep_in_registers(&mut into));
}

/// The memory of one operation: up to `IOV_LIMIT` pieces, read or written as if they were one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserIov {
    parts: SmallArray<UserBuf>,
    len: usize,
}

impl UserIov {
    /// No memory.
    pub const NONE: UserIov = UserIov {
        parts: SmallArray::None,
        len: 0,
    };

    #[inline(always)]
    pub fn one(part: UserBuf) -> UserIov {
        UserIov {
            parts: SmallArray::One(part),
            len: part.len,
        }
    }

    /// None when there are too many pieces, or more bytes than an address space has.
    pub fn new(parts: impl IntoIterator<Item = UserBuf>) -> Option<UserIov> {
        let parts = SmallArray::new(parts)?;
        let len = parts
            .all()
            .iter()
            .try_fold(0usize, |len, part| len.checked_add(part.len))?;
        Some(UserIov { parts, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The piece, if there is only one.
    #[inline(always)]
    pub fn only(&self) -> Option<UserBuf> {
        self.parts.only()
    }

    pub fn parts(&self) -> &[UserBuf] {
        self.parts.all()
    }

    /// The pieces that hold `len` bytes from byte `at` on, clamped to what is there.
    pub fn slices(&self, at: usize, len: usize) -> impl Iterator<Item = UserBuf> + '_ {
        let (mut skip, mut left) = (at, len);
        self.parts().iter().filter_map(move |part| {
            let from = skip.min(part.len);
            skip -= from;
            let piece = part.part(from, left);
            left -= piece.len;
            (piece.len > 0).then_some(piece)
        })
    }

    /// The same memory from byte `at` on, at most `len` bytes of it.
    pub fn part(&self, at: usize, len: usize) -> UserIov {
        UserIov::new(self.slices(at, len)).unwrap_or_default()
    }

    /// The same memory, of which pieces that adjoin are one.
    pub fn joined(&self) -> UserIov {
        let mut joined: Vec<UserBuf> = Vec::with_capacity(IOV_LIMIT);
        for part in self.parts() {
            match joined.last_mut() {
                Some(last) if last.addr.checked_add(last.len) == Some(part.addr) => last.len += part.len,
                _ => joined.push(*part),
            }
        }
        UserIov::new(joined).unwrap_or(*self)
    }

    /// Copies as much of this as `into` has room for; both may be the same memory. Says how much.
    pub fn copy_to(&self, into: &UserIov) -> usize {
        let len = self.len.min(into.len);
        let mut at = 0;
        while at < len {
            let from = self.slices(at, len - at).next().unwrap_or_default();
            let to = into.slices(at, len - at).next().unwrap_or_default();
            let run = from.len.min(to.len);
            if run == 0 {
                break;
            }
            // SAFETY: their makers promised the memory; `run` is within both.
            unsafe { core::ptr::copy(from.addr as *const u8, to.addr as *mut u8, run) };
            at += run;
        }
        at
    }

    /// Where byte `at` lies; for the end of the last piece, just behind it.
    pub fn address(&self, at: usize) -> usize {
        let last = |part: &UserBuf| part.addr.wrapping_add(part.len);
        let here = self.slices(at, 1).next().map(|piece| piece.addr);
        here.or_else(|| self.parts().last().map(last)).unwrap_or(0)
    }

    /// Copies in from byte `at` on. Says how much fitted.
    #[inline(always)]
    pub fn write(&self, at: usize, bytes: &[u8]) -> usize {
        match self.only() {
            Some(part) => part.part(at, bytes.len()).write(bytes),
            None => self.write_pieces(at, bytes),
        }
    }

    /// Takes `self` by value, so that a caller's operation of one piece need not exist in memory.
    #[inline(never)]
    fn write_pieces(mut self, at: usize, bytes: &[u8]) -> usize {
        keep_in_registers(&mut self)
            .slices(at, bytes.len())
            .fold(0, |done, piece| {
                done + piece.write(bytes.get(done..).unwrap_or_default())
            })
    }

    /// Copies out from byte `at` on. Says how much was there.
    #[inline(always)]
    pub fn read(&self, at: usize, bytes: &mut [u8]) -> usize {
        match self.only() {
            Some(part) => part.part(at, bytes.len()).read(bytes),
            None => self.read_pieces(at, bytes),
        }
    }

    /// By value, as `write_pieces`.
    #[inline(never)]
    fn read_pieces(mut self, at: usize, bytes: &mut [u8]) -> usize {
        keep_in_registers(&mut self)
            .slices(at, bytes.len())
            .fold(0, |done, piece| {
                done + piece.read(bytes.get_mut(done..).unwrap_or_default())
            })
    }
}

/// Memory of ours that is lent to operations as if it were the application's: zero at first, aligned for any element.
///
/// Its owner makes the promise that an application makes: it is kept until every operation that it was lent to has
/// ended, or nobody is left to carry them out.
#[derive(Debug)]
pub struct Scratch {
    memory: *mut u8,
    layout: Layout,
}

// SAFETY: an allocation, used only through what `lend` gives out, as an application's memory is.
unsafe impl Send for Scratch {}

impl Scratch {
    const ALIGN: usize = 64;

    /// None when there is not that much memory.
    pub fn new(len: usize) -> Option<Scratch> {
        let layout = Layout::from_size_align(len, Scratch::ALIGN).ok()?;
        let memory = if len == 0 {
            core::ptr::null_mut()
        } else {
            // SAFETY: the layout has a size.
            unsafe { std::alloc::alloc_zeroed(layout) }
        };
        (len == 0 || !memory.is_null()).then_some(Scratch { memory, layout })
    }

    pub fn lend(&self) -> UserIov {
        UserIov::one(UserBuf {
            addr: self.memory as usize,
            len: self.layout.size(),
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: allocated with this layout.
            unsafe { std::alloc::dealloc(self.memory, self.layout) };
        }
    }
}

/// Memory for tests that must not be `unsafe`. It is never given back, so a stray write can be seen but does no harm.
#[cfg(any(test, fuzzing))]
#[derive(Clone, Copy, Debug)]
pub struct Lent(UserIov);

#[cfg(any(test, fuzzing))]
impl Lent {
    /// Pieces of these lengths, filled with one byte.
    pub fn new(cuts: &[usize], fill: u8) -> Lent {
        let pieces = cuts.iter().map(|len| {
            let memory = vec![fill; *len].leak();
            // SAFETY: leaked memory is valid for ever, and nobody else names it.
            unsafe { UserBuf::new(memory.as_mut_ptr(), *len) }
        });
        Lent(UserIov::new(pieces).expect("no more than IOV_LIMIT pieces"))
    }

    pub fn iov(&self) -> UserIov {
        self.0
    }

    pub fn set(&self, bytes: &[u8]) {
        assert_eq!(self.0.write(0, bytes), bytes.len());
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.len()];
        self.0.read(0, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iov(memory: &mut [u8], cuts: &[usize]) -> UserIov {
        let mut at = 0;
        UserIov::new(cuts.iter().map(|len| {
            // SAFETY: the parts are within `memory`, which outlives the iov in every test.
            let part = unsafe { UserBuf::new(memory.as_mut_ptr().add(at), *len) };
            at += len;
            part
        }))
        .unwrap()
    }

    #[test]
    fn pieces_are_read_and_written_as_one() {
        for cuts in [&[10][..], &[3, 7], &[1, 0, 8, 1], &[0, 10]] {
            for at in 0..12 {
                for len in 0..12 {
                    let mut memory = [0u8; 10];
                    let target = iov(&mut memory, cuts);
                    let bytes: Vec<u8> = (1..=len as u8).collect();
                    let fits = len.min(10usize.saturating_sub(at));
                    assert_eq!(target.write(at, &bytes), fits);
                    let mut back = vec![0; len];
                    assert_eq!(target.read(at, &mut back), fits);
                    assert_eq!(back[..fits], bytes[..fits], "{cuts:?} {at} {len}");
                    assert!(memory.iter().take(at).all(|byte| *byte == 0));
                }
            }
        }
    }

    #[test]
    fn a_part_is_the_same_memory() {
        let whole = Lent::new(&[3, 0, 4], 0);
        for at in 0..9 {
            for len in 0..9 {
                let part = whole.iov().part(at, len);
                assert_eq!(part.len(), len.min(7usize.saturating_sub(at)));
                whole.set(b"abcdefg");
                part.write(0, &b"ABCDEFG"[at.min(7)..]);
                let mut expected = b"abcdefg".to_vec();
                expected
                    .iter_mut()
                    .skip(at)
                    .take(len)
                    .for_each(u8::make_ascii_uppercase);
                assert_eq!(whole.bytes(), expected);
            }
        }
        let iov = whole.iov();
        let [first, _, last] = iov.parts() else { panic!() };
        let places = [0, 2, 3, 6, 7, 8].map(|at| whole.iov().address(at));
        let end = last.addr + 4;
        assert_eq!(places, [first.addr, first.addr + 2, last.addr, last.addr + 3, end, end]);
    }

    #[test]
    fn pieces_that_adjoin_are_joined() {
        let mut memory = [0; 40];
        let whole = iov(&mut memory, &[40]);
        assert_eq!(iov(&mut memory, &[5, 0, 30, 5]).joined(), whole);
        let apart = UserIov::new([0, 10].map(|at| whole.part(at, 5).parts()[0])).unwrap();
        assert_eq!((apart.joined(), UserIov::NONE.joined()), (apart, UserIov::NONE));
    }

    #[test]
    fn copies_go_between_any_pieces() {
        for (from, to) in [
            (&[10][..], &[10][..]),
            (&[3, 7], &[1, 0, 9]),
            (&[4, 4], &[12]),
            (&[12], &[2, 5]),
        ] {
            let (from, to) = (Lent::new(from, 0), Lent::new(to, 9));
            let bytes: Vec<u8> = (1..=from.iov().len() as u8).collect();
            from.set(&bytes);
            let fits = from.iov().len().min(to.iov().len());
            assert_eq!(from.iov().copy_to(&to.iov()), fits);
            assert_eq!(to.bytes()[..fits], bytes[..fits]);
            assert!(to.bytes()[fits..].iter().all(|byte| *byte == 9));
        }
        let same = Lent::new(&[8], 0);
        same.set(b"abcdefgh");
        assert_eq!(same.iov().part(0, 6).copy_to(&same.iov().part(2, 6)), 6);
        assert_eq!(same.bytes(), b"ababcdef");
    }

    #[test]
    fn scratch_is_zero_aligned_and_lent() {
        assert!(Scratch::new(usize::MAX).is_none());
        for len in [0, 1, 100, 1 << 20] {
            let scratch = Scratch::new(len).unwrap();
            assert_eq!(scratch.lend().len(), len);
            let mut bytes = vec![1; len];
            assert_eq!(scratch.lend().read(0, &mut bytes), len);
            assert!(bytes.iter().all(|byte| *byte == 0));
            assert_eq!(scratch.lend().address(0) % 64, 0);
        }
    }

    #[test]
    fn too_much_is_refused() {
        let part = UserBuf {
            addr: 1,
            len: usize::MAX,
        };
        assert!(UserIov::new([UserBuf::default(); IOV_LIMIT + 1]).is_none());
        assert!(UserIov::new([part, part]).is_none());
    }
}
