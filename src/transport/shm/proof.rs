//! Whether the process of the number that a peer tells in its file is the peer's, so that the kernel may copy from and to
//! its memory: asked by `direct_access`, `dual_copy` and fetching.
//!
//! A number may mean another process to us than to the peer, when we live in different namespaces; a peer may lie; and a
//! number is used again after its process's death. So first the kernel says that this process has the peer's file mapped
//! where only an owner maps its file (`layout::OWNER_AT`). Then a word of the process's memory must hold the peer's
//! instance, and is read again whenever that was last seen longer ago than `PROOF_MS`: in so short a time no number is
//! used again, as the kernel gives all others out first. What the peer told is read once, so that it stays what was proven.
//!
//! A refusal is not for ever: rights may be given later, and descriptors be free again. It is tried again after a second,
//! and then after twice as long each time.

use super::layout::{Header, OWNER_AT};
use super::outbound::Outbound;
use crate::sys::backing::{self, FileId};
use crate::sys::clock;
use crate::sys::process_vm::{self, Range};

/// For so long a process is known to be the peer's.
const PROOF_MS: u64 = 50;

/// What a peer says of itself.
#[derive(Clone, Copy, Debug)]
pub struct PeerIdentity {
    pub instance: u64,
    pub pid: u32,
    /// Where in its memory its instance is.
    probe: u64,
    /// Where in its memory its file is.
    owner_page: u64,
}

impl PeerIdentity {
    pub fn of(header: &Header) -> PeerIdentity {
        PeerIdentity {
            instance: header.instance(),
            pid: header.pid(),
            probe: header.probe(),
            owner_page: header.owner_page(),
        }
    }
}

/// When something that was refused is worth another try.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retry {
    /// Milliseconds on the clock; 0 when nothing was refused.
    at: u64,
    wait: u64,
}

const FIRST_WAIT_MS: u64 = 1000;
const LAST_WAIT_MS: u64 = 64_000;

impl Retry {
    pub fn was_refused(self) -> bool {
        self.wait != 0
    }

    pub fn is_due(self) -> bool {
        self.wait == 0 || clock::monotonic_ms() >= self.at
    }

    pub fn refused(&mut self) {
        self.wait = (self.wait * 2).clamp(FIRST_WAIT_MS, LAST_WAIT_MS);
        self.at = clock::monotonic_ms().saturating_add(self.wait);
    }

    /// As if the time had come.
    #[cfg(test)]
    pub fn make_due(&mut self) {
        self.at = 0;
    }
}

/// What is known of a peer's process.
#[derive(Debug, Default)]
pub struct Proof {
    /// The kernel has said that it is the peer's.
    known: bool,
    /// When its memory last did.
    proved: Option<u64>,
    pub retry: Retry,
}

impl Proof {
    /// The kernel does not copy from or to this process, though it is the peer's.
    #[cold]
    pub fn refused(&mut self) {
        self.proved = None;
        self.retry.refused();
    }
}

impl Outbound {
    /// Whether the process has the peer's file as an owner has it.
    pub fn is_known(&mut self) -> bool {
        if !self.proof.known && self.proof.retry.is_due() {
            let file = FileId::new(self.file.device, self.file.inode);
            let found = backing::backing(self.identity.pid, self.identity.owner_page, 1)
                .ok()
                .flatten();
            self.proof.known = found.is_some_and(|found| found.file == file && found.offset() == OWNER_AT);
            if !self.proof.known {
                self.proof.refused();
            }
        }
        self.proof.known
    }

    /// Whether the kernel may be told now to copy from or to the process.
    pub fn is_proved(&mut self) -> bool {
        let now = clock::monotonic_ms();
        let recent = |then: u64| now.saturating_sub(then) <= PROOF_MS;
        self.proof.proved.is_some_and(recent) || self.prove(now)
    }

    #[cold]
    fn prove(&mut self, now: u64) -> bool {
        self.proof.proved = None;
        if !self.proof.retry.is_due() || !self.is_known() {
            return false;
        }
        if self.identity.holds_instance() {
            self.proof.proved = Some(now);
            self.proof.retry = Retry::default();
        } else {
            self.proof.refused();
        }
        self.proof.proved.is_some()
    }
}

impl PeerIdentity {
    fn holds_instance(&self) -> bool {
        let mut found = 0u64;
        let local = [Range {
            addr: (&raw mut found) as u64,
            len: 8,
        }];
        let remote = [Range {
            addr: self.probe,
            len: 8,
        }];
        let Ok(pid) = i32::try_from(self.pid) else { return false };
        // SAFETY: `found` is ours, and its eight bytes are the only ones named.
        let read = unsafe { process_vm::read(pid, &remote, &local) };
        read.is_ok_and(|read| read == 8) && found == self.instance
    }
}
