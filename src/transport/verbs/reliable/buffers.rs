//! Memory of ours that the device knows: buffers for packets, and the words by which two ends count them.

use crate::sys::rdma::{Access, Piece};
use crate::transport::verbs::seam::{Nic, Registration};
use crate::util::user::{Scratch, UserBuf};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;

/// Some memory with its registration, which ends before it.
struct Known {
    registration: Box<dyn Registration>,
    memory: Scratch,
}

impl Known {
    fn new(nic: &dyn Nic, len: usize, access: Access) -> io::Result<Known> {
        let memory = Scratch::new(len).ok_or(io::ErrorKind::OutOfMemory)?;
        let registration = nic.register(&all(&memory), access)?;
        Ok(Known { registration, memory })
    }
}

fn all(memory: &Scratch) -> UserBuf {
    memory.lend().only().unwrap_or_default()
}

/// Buffers of one size, by number. Grows, and never shrinks.
pub(super) struct Buffers {
    size: usize,
    chunks: Vec<Known>,
    access: Access,
}

/// A buffer's number: of its chunk, and within that.
const WITHIN: u32 = 16;

impl Buffers {
    /// None yet.
    pub(super) fn new(size: usize, access: Access) -> Buffers {
        Buffers {
            size,
            chunks: Vec::new(),
            access,
        }
    }

    /// Makes more, and says their numbers.
    pub(super) fn grow(&mut self, nic: &dyn Nic, count: u16) -> io::Result<core::ops::Range<u32>> {
        let first = (self.chunks.len() as u32) << WITHIN;
        let chunk = Known::new(nic, self.size * usize::from(count), self.access)?;
        self.chunks.push(chunk);
        Ok(first..first + u32::from(count))
    }

    fn find(&self, number: u32) -> Option<(&Known, usize)> {
        let chunk = self.chunks.get((number >> WITHIN) as usize)?;
        Some((chunk, (number & ((1 << WITHIN) - 1)) as usize * self.size))
    }

    pub(super) fn memory(&self, number: u32) -> UserBuf {
        let found = self.find(number);
        found.map_or(UserBuf::default(), |(chunk, at)| all(&chunk.memory).part(at, self.size))
    }

    /// The first bytes of a buffer, for a request.
    pub(super) fn piece(&self, number: u32, len: usize) -> Piece {
        let Some((chunk, at)) = self.find(number) else {
            return Piece::default();
        };
        Piece {
            addr: all(&chunk.memory).part(at, len).addr() as u64,
            len: len.min(self.size) as u32,
            key: chunk.registration.local_key(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }
}

/// Two words of a connection: the other end writes to the first how many of our packets it has taken, and the second is
/// where we write the same to it from.
pub(super) struct Words(Known);

const WORD: usize = size_of::<u64>();

impl Words {
    pub(super) fn new(nic: &dyn Nic) -> io::Result<Words> {
        let access = Access {
            local_write: true,
            remote_write: true,
            ..Access::default()
        };
        Known::new(nic, 2 * WORD, access).map(Words)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let word = all(&self.0.memory).part(at * WORD, WORD);
        // SAFETY: eight aligned bytes that live as long as `self`, and that only this function and the device touch.
        unsafe { AtomicU64::from_ptr(word.addr() as *mut u64) }
    }

    /// What the other end wrote.
    pub(super) fn heard(&self) -> u64 {
        self.word(0).load(Ordering::Acquire)
    }

    /// Where the other end writes.
    pub(super) fn remote(&self) -> (u64, u32) {
        let first = all(&self.0.memory).addr() as u64;
        (first, self.0.registration.remote_key())
    }

    /// What is to be written to the other end.
    pub(super) fn say(&self, value: u64) -> Piece {
        self.word(1).store(value, Ordering::Release);
        Piece {
            addr: all(&self.0.memory).part(WORD, WORD).addr() as u64,
            len: WORD as u32,
            key: self.0.registration.local_key(),
        }
    }
}
