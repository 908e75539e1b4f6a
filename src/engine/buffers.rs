//! Buffers that are used again: for bytes of unexpected messages, and for what is read or atomically changed here for a
//! peer.
//!
//! A program that receives late has many such messages at once, and windows of long reads have as many answers. glibc's
//! allocator gives their pages back to the kernel when they are freed, and touching them again takes longer than
//! copying the bytes. Called by whatever places bytes in the engine's own memory.

use std::collections::VecDeque;

/// The most buffers and bytes that are kept: the oldest go first.
const COUNT: usize = 128;
const BYTES: usize = 4 << 20;
/// What a buffer may have beyond twice what is asked for, so that no short message keeps a long buffer.
const SLACK: usize = 1 << 10;
/// Shorter messages than this are left to the allocator, which is as quick for them.
const SHORT: usize = 2 << 10;
/// A buffer of the right length is looked for among so many that were given back last.
const LOOKED_AT: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: VecDeque<Vec<u8>>,
    /// The capacity of all that are free.
    bytes: usize,
}

impl Buffers {
    /// A buffer of this length with arbitrary contents.
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let Some(mut buffer) = self.find(len) else {
            return vec![0; len];
        };
        buffer.resize(len, 0);
        buffer
    }

    /// A copy of a message's bytes, which is kept until the message is received.
    #[inline]
    pub(super) fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.len() < SHORT {
            return bytes.to_vec();
        }
        let mut buffer = self.find(bytes.len()).unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// The bytes of a message are no longer needed.
    #[inline]
    pub(super) fn give_back_message(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() >= SHORT {
            self.give_back(buffer);
        }
    }

    /// Takes a buffer that is no longer needed, whether or not it came from here.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() == 0 || buffer.capacity() > BYTES {
            return;
        }
        self.bytes += buffer.capacity();
        self.free.push_back(buffer);
        while self.free.len() > COUNT || self.bytes > BYTES {
            self.bytes -= self.free.pop_front().map_or(self.bytes, |oldest| oldest.capacity());
        }
    }

    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.free.len()
    }

    /// The last that was given back is most likely of the right length, and in the cache.
    fn find(&mut self, len: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| (len..=2 * len + SLACK).contains(&buffer.capacity());
        let back = self.free.iter().rev().take(LOOKED_AT).position(fits)?;
        let buffer = self.free.remove(self.free.len() - 1 - back)?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_length_that_was_asked_for_and_is_used_again() {
        let mut buffers = Buffers::default();
        for len in [0, 1, SLACK, 8 << 10, 256 << 10, 64] {
            let taken = buffers.take(len);
            assert_eq!(taken.len(), len);
            let at = taken.as_ptr();
            buffers.give_back(taken);
            let again = buffers.copy_of(&vec![7; len]);
            assert_eq!(again, vec![7; len]);
            assert!(len < SHORT || again.as_ptr() == at, "{len}");
            buffers.give_back(again);
            assert_eq!(buffers.take(len).len(), len);
        }
    }

    #[test]
    fn a_short_message_keeps_no_long_buffer() {
        let mut buffers = Buffers::default();
        buffers.give_back(vec![0; 256 << 10]);
        assert!(buffers.take(100).capacity() <= 2 * 100 + SLACK);
        assert!(buffers.take(200 << 10).capacity() >= 256 << 10);
    }

    #[test]
    fn no_more_are_kept_than_that() {
        let mut buffers = Buffers::default();
        for len in [1, 64 << 10, BYTES, BYTES + 1] {
            (0..2 * COUNT).for_each(|_| buffers.give_back(Vec::with_capacity(len)));
            let kept: usize = buffers.free.iter().map(Vec::capacity).sum();
            assert!(kept == buffers.bytes && kept <= BYTES && buffers.free.len() <= COUNT);
        }
        assert_eq!(buffers.free.len(), 1, "the others are older");
    }
}
