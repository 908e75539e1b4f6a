//! Memory of the victim's process, with guards around it.

use crate::util::user::{Lent, UserIov};

/// Memory between two guards, which must not change.
pub(super) struct Guarded {
    all: Lent,
    len: usize,
    fill: u8,
}

const GUARD: usize = 4096;

impl Guarded {
    pub(super) fn new(len: usize, fill: u8) -> Guarded {
        let all = Lent::new(&[len + 2 * GUARD], fill);
        Guarded { all, len, fill }
    }

    pub(super) fn iov(&self) -> UserIov {
        self.all.iov().part(GUARD, self.len)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.all.bytes()[GUARD..GUARD + self.len].to_vec()
    }

    pub(super) fn assert_guards(&self) {
        let bytes = self.all.bytes();
        let (before, rest) = bytes.split_at(GUARD);
        let mut guards = before.iter().chain(&rest[self.len..]);
        assert!(guards.all(|byte| *byte == self.fill), "memory around {:#x}", self.fill);
    }

    pub(super) fn assert_whole(&self) {
        assert!(
            self.all.bytes().iter().all(|byte| *byte == self.fill),
            "memory of {:#x}",
            self.fill
        );
    }

    pub(super) fn reset(&self) {
        self.all.set(&vec![self.fill; self.len + 2 * GUARD]);
    }
}
