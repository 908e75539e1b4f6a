//! Buffers that hold bytes of unexpected messages, kept for the next ones.
//!
//! A program that receives late has many such messages at once. glibc's allocator gives their pages back to the kernel when
//! they are received, and touching them again takes longer than copying the bytes. Called by `message` and `eager`.

/// The length of every buffer that is kept. Shorter bytes than half of it are left to the allocator, which has no trouble
/// with them, and longer ones, of which there are few.
const LENGTH: usize = 8 << 10;
/// The most that are kept, in all 1 MiB.
const KEPT: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
}

impl Buffers {
    /// A buffer of this length with arbitrary contents.
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        if !is_kept(len) {
            return vec![0; len];
        }
        let mut buffer = self.free.pop().unwrap_or_else(|| Vec::with_capacity(LENGTH));
        buffer.resize(len, 0);
        buffer
    }

    pub(super) fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        if !is_kept(bytes.len()) {
            return bytes.to_vec();
        }
        let mut buffer = self.take(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Whatever is no longer needed, from here or not.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() == LENGTH && self.free.len() < KEPT {
            self.free.push(buffer);
        }
    }
}

fn is_kept(len: usize) -> bool {
    len > LENGTH / 2 && len <= LENGTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_length_that_was_asked_for_and_is_used_again() {
        let mut buffers = Buffers::default();
        for len in [0, 1, LENGTH / 2, LENGTH / 2 + 1, LENGTH - 1, LENGTH, LENGTH + 1] {
            for _ in 0..2 {
                let taken = buffers.take(len);
                assert_eq!(taken.len(), len);
                let at = taken.as_ptr();
                buffers.give_back(taken);
                let again = buffers.copy_of(&vec![7; len]);
                assert_eq!(again, vec![7; len]);
                assert!(!is_kept(len) || again.as_ptr() == at, "{len}");
                buffers.give_back(again);
            }
        }
    }

    #[test]
    fn no_more_are_kept_than_that() {
        let mut buffers = Buffers::default();
        let taken: Vec<_> = (0..KEPT + 9).map(|_| buffers.take(LENGTH)).collect();
        taken.into_iter().for_each(|buffer| buffers.give_back(buffer));
        buffers.give_back(vec![0; 2 * LENGTH]);
        buffers.give_back(Vec::new());
        assert_eq!(buffers.free.len(), KEPT);
    }
}
