//! Whether the process whose pid a peer tells in its file is the peer's, so that the kernel may copy from and to its
//! memory. Asked by `direct_access`, `dual_copy` and `ShmTransport::get`.
//!
//! The pid may name another process here than there, if the two live in different pid namespaces; the peer may lie; and
//! a pid is used again after its process is dead. So the kernel is asked whether this process has the peer's file
//! mapped where only the owner maps it (`layout::OWNER_AT`). Then a word of the process's memory must hold the peer's
//! instance. It is read again when that was last seen more than `PROOF_MS` ago: no pid is used again within so short a
//! time, as the kernel gives out all others first. What the peer tells of itself is read once, so that it stays what
//! was proved.
//!
//! A refusal may pass: rights are given later, descriptors become free. The kernel is asked again after a second, and
//! then after twice as long each time.

use super::layout::{FileHeader, OWNER_AT};
use super::outbound::Outbound;
use crate::sys::backing::{self, FileId};
use crate::sys::clock;
use crate::sys::process_vm::{self, Range};

/// For how long a proof holds.
const PROOF_MS: u64 = 50;

/// What a peer's file says of its owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerIdentity {
    pub instance: u64,
    pub pid: u32,
    /// The address in its process at which its instance stands.
    probe: u64,
    /// The address in its process at which it has `OWNER_AT` of its file mapped.
    owner_page: u64,
}

impl PeerIdentity {
    pub(super) fn of(header: &FileHeader) -> PeerIdentity {
        PeerIdentity {
            instance: header.instance(),
            pid: header.pid(),
            probe: header.probe(),
            owner_page: header.owner_page(),
        }
    }
}

/// When to try again what was refused, or was put off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    /// On the monotonic clock, in ms.
    at: u64,
    wait: u64,
}

const FIRST_WAIT_MS: u64 = 1000;
const LAST_WAIT_MS: u64 = 64_000;

impl Retry {
    /// Nothing was tried yet; it is due the next time.
    pub(super) fn put_off() -> Retry {
        Retry { at: 0, wait: 1 }
    }

    /// Whether it is to be tried again.
    pub(super) fn is_pending(self) -> bool {
        self.wait != 0
    }

    pub(super) fn is_due(self) -> bool {
        self.wait == 0 || clock::monotonic_ms() >= self.at
    }

    pub(super) fn refused(&mut self) {
        self.wait = (self.wait * 2).clamp(FIRST_WAIT_MS, LAST_WAIT_MS);
        self.at = clock::monotonic_ms().saturating_add(self.wait);
    }

    /// Makes it due at once.
    #[cfg(test)]
    pub fn make_due(&mut self) {
        self.at = 0;
    }
}

/// What is known of a peer's process.
#[derive(Debug, Default)]
pub(super) struct Proof {
    /// The kernel has said that the process has the peer's file mapped as its owner.
    known: bool,
    /// When the instance was last seen in the process's memory, on the coarse clock.
    proved: Option<u64>,
    pub retry: Retry,
}

impl Proof {
    /// Notes that the kernel refused to copy from or to the process.
    #[cold]
    pub(super) fn refused(&mut self) {
        self.proved = None;
        self.retry.refused();
    }
}

impl Outbound {
    /// Whether the process has the peer's file mapped as its owner.
    pub(super) fn is_known(&mut self) -> bool {
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

    /// Whether the process is the peer's and alive, so that the kernel may be told to copy from or to it.
    pub(super) fn is_proved(&mut self) -> bool {
        let now = clock::coarse_ms();
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
        // SAFETY: the local range is `found`, all of it.
        let read = unsafe { process_vm::read(pid, &remote, &local) };
        read.is_ok_and(|read| read == 8) && found == self.instance
    }
}
