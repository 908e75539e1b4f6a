//! The application's array that a call fills: entries of some words, and beside each, if it is asked for, one word
//! more.
//!
//! A completion queue has it for the length of a read. The one `unsafe` of its users is at the making: whoever makes a
//! `UserArray` promises that the memory stays valid until the call that it belongs to has returned.

/// Words of the longest entry.
#[cfg(test)]
const MOST_WORDS: usize = 6;

/// What is left of the array. A copy is as good as the original until one of both is filled further.
#[derive(Clone, Copy)]
pub struct UserArray {
    /// Where the next entry goes, and of how many words it is.
    entry: *mut u64,
    words: usize,
    /// Where the word beside it goes; NULL: nowhere.
    beside: *mut u64,
    left: usize,
    filled: usize,
}

// SAFETY: two addresses, whose memory is the call's until it returns, in whichever thread the array is filled.
unsafe impl Send for UserArray {}

impl UserArray {
    /// An array without room.
    pub const EMPTY: UserArray = UserArray {
        entry: core::ptr::null_mut(),
        words: 0,
        beside: core::ptr::null_mut(),
        left: 0,
        filled: 0,
    };

    /// `words`: 1, 3, 5 or 6. `beside` may be NULL.
    ///
    /// # Safety
    /// Until the call returns, `count` entries of so many words can be written at `entry`, and unless that is NULL, as
    /// many words at `beside`. Both are aligned.
    #[inline(always)]
    pub unsafe fn new(entry: *mut u64, words: usize, beside: *mut u64, count: usize) -> UserArray {
        UserArray {
            entry,
            words,
            beside,
            left: count,
            filled: 0,
        }
    }

    /// Entries for which there is room.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Entries that were put.
    #[inline(always)]
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// No more is put.
    #[inline(always)]
    pub fn close(&mut self) {
        self.left = 0;
    }

    /// Puts an entry, and asks `word` only for those that it has. False: there is no room.
    #[inline(always)]
    pub fn put(&mut self, word: impl Fn(usize) -> u64, beside: u64) -> bool {
        if self.left == 0 {
            return false;
        }
        // SAFETY: `new` promised room for one more entry of so many words, and for a word beside it.
        unsafe {
            self.write(0, word(0));
            if self.words >= 3 {
                self.write(1, word(1));
                self.write(2, word(2));
            }
            if self.words >= 5 {
                self.write(3, word(3));
                self.write(4, word(4));
            }
            if self.words >= 6 {
                self.write(5, word(5));
            }
            self.entry = self.entry.add(self.words);
            if !self.beside.is_null() {
                self.beside.write(beside);
                self.beside = self.beside.add(1);
            }
        }
        self.left -= 1;
        self.filled += 1;
        true
    }

    /// Volatile, so that an entry is copied word by word, as it was written a moment ago: a processor that reads two
    /// words at once which were written one after the other waits until both writes have reached its cache.
    ///
    /// # Safety
    /// There is room for one more entry of more than `at` words.
    #[inline(always)]
    unsafe fn write(&self, at: usize, word: u64) {
        // SAFETY: forwarded.
        unsafe { self.entry.add(at).write_volatile(word) };
    }
}

/// An array for tests that must not be `unsafe`. Its memory is never given back.
#[cfg(test)]
pub fn kept(count: usize) -> (UserArray, impl Iterator<Item = ([u64; MOST_WORDS], u64)>) {
    let entries = vec![[0; MOST_WORDS]; count].leak().as_mut_ptr();
    let beside = vec![0; count].leak().as_mut_ptr();
    // SAFETY: leaked memory is valid for ever, and nobody else names it.
    let array = unsafe { UserArray::new(entries.cast(), MOST_WORDS, beside, count) };
    // SAFETY: as above; read one by one when asked for, after the call.
    let read = (0..count).map(move |at| unsafe { (entries.add(at).read(), beside.add(at).read()) });
    (array, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_words_that_were_asked_for() {
        for words in [1, 3, 5, 6] {
            let (mut memory, mut beside) = ([0u64; 13], [0u64; 3]);
            // SAFETY: room for two entries of at most six words.
            let mut array = unsafe { UserArray::new(memory.as_mut_ptr(), words, beside.as_mut_ptr(), 2) };
            let put = [7, 8, 9].map(|beside| array.put(|at| at as u64 + 1, beside));
            assert_eq!((put, array.filled(), array.left()), ([true, true, false], 2, 0));
            let entry = &[1, 2, 3, 4, 5, 6][..words];
            assert_eq!(&memory[..2 * words], [entry, entry].concat());
            assert!(memory[2 * words..].iter().all(|word| *word == 0), "{words}");
            assert_eq!(beside, [7, 8, 0]);
        }
    }

    #[test]
    fn nothing_is_put_without_room() {
        let mut memory = [0u64; 6];
        // SAFETY: room for one entry; no words beside.
        let mut array = unsafe { UserArray::new(memory.as_mut_ptr(), 6, core::ptr::null_mut(), 1) };
        array.close();
        assert!(!array.put(|_| 1, 1) && !UserArray::EMPTY.clone().put(|_| 1, 1));
        assert_eq!(memory, [0; 6]);
    }
}
