//! What may be set for an endpoint, what limits follow from it for the engine, and why an endpoint cannot be opened.
//!
//! Called by `provider`, which fills `Config` from variables and options.

use super::dialogue::LONGEST_TURN;
use super::name::ADDRESS_MAX;
use super::{lane, layout, ring};
use crate::engine::port::Limits;
use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The most body bytes of a packet. Measured with rings of 64 and 128 KiB: 8 KiB streams fastest (15 GB/s; 2, 4 and 16
/// KiB reach 10 to 12). With smaller packets the receiver copies one out while the sender copies the next one in, but
/// each slows the other down: 16 KiB take 3.4 us in packets of 8 KiB, 3.9 of 4 KiB, 4.1 of 2 KiB.
pub(super) const MAX_BODY: usize = 8 << 10;
/// The longest message that the receiver could fetch and that is sent through the ring all the same, where that is
/// quick.
pub(super) const MAX_IN_RING: usize = 32 << 10;
/// The longest write of registered memory that is one packet. Each packet can be taken back by itself.
pub(super) const MAX_WRITE: usize = 16 << 10;
/// The longest write, and the longest read, that goes in packets where the ring is very quick. Measured there against
/// the kernel's copies: writes of 64 KiB take half the time, of 1 MiB two thirds; reads of 64 KiB two thirds, of 128
/// KiB 0.8, of 256 KiB 1.5, when the target copied all that is read before it sent it, as it does with what does not
/// fit the ring. Where more processes run than processors, reads of 128 KiB took twice as long.
pub(super) const MAX_WRITTEN: usize = 256 << 10;
pub(super) const MAX_READ: usize = 64 << 10;
const _: () = assert!(MAX_BODY <= MAX_WRITE && MAX_WRITE <= ring::longest(lane::LARGE.cells()));

/// What the provider's variables and options set.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the files are; processes that are to meet must agree. The last endpoint that closes removes a directory
    /// made by `sys::home`.
    pub dir: PathBuf,
    /// Whether a peer's memory may be read through the kernel (FI_SHM_DISABLE_CMA).
    pub fetch: bool,
    /// Messages up to this size go through the ring.
    pub eager: usize,
    /// The same where the receiver can fetch them and the ring is not quick (`copy_speed`). Measured where the two
    /// share no cache: 6 KiB take 1.24 us through the ring and 1.5 fetched, 8 KiB 1.66 and 1.54, 16 KiB 3.2 and 2.0, 32
    /// KiB 5.1 and 2.9, as each line of the ring goes from core to core twice.
    pub eager_if_fetched: usize,
    /// Messages from this size on are fetched by a dual copy (FI_SHM_TOGETHER_SIZE). Measured: 32 KiB take 4.4 us so
    /// and 3.9 fetched alone, 48 KiB the same either way. For registered memory see `regions_together`.
    pub together: usize,
    /// Such messages go through the ring instead where that is quicker (`streaming`), and so do operations on
    /// registered memory that are longer than `MAX_BODY`.
    pub stream: bool,
    /// Registered memory that cannot be mapped is read and written by the kernel from this size on. Below, a packet to
    /// its owner is quicker, if the owner polls. From this size to `MAX_READ` and `MAX_WRITTEN` that depends on how
    /// quick the ring is (`ring_or_kernel`).
    pub bulk: usize,
    /// Takes a line for the administrator, each once.
    pub warn: fn(&str),
    /// Takes a line for FI_LOG_LEVEL=debug.
    pub debug: fn(&str),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            dir: PathBuf::from("/dev/shm"),
            fetch: true,
            eager: LONGEST_TURN,
            eager_if_fetched: 7 << 10,
            together: 48 << 10,
            stream: true,
            bulk: 8 << 10,
            warn: |_| {},
            debug: |_| {},
        }
    }
}

impl Config {
    /// Registered memory that cannot be mapped is read and written by a dual copy from this size on: a third more than
    /// for messages, as its initiator alone can begin at once. Measured for reads: 64 KiB take 4.4 us so and 5.9 alone,
    /// 1 MiB 61 and 140.
    pub(super) fn regions_together(&self) -> usize {
        self.together.saturating_add(self.together / 3)
    }

    pub fn limits(&self) -> Limits {
        Limits {
            max_body: MAX_BODY,
            eager: self.eager,
            eager_if_fetched: self.eager_if_fetched,
            can_get: self.fetch,
            gets_at_once: if self.fetch { self.together.saturating_sub(1) } else { 0 },
            guaranteed_body: ring::longest(lane::SMALL.cells()),
            sync_placement: true,
            max_write: MAX_WRITE,
            max_in_writes: MAX_WRITTEN,
            max_short_read: MAX_READ,
        }
    }
}

/// Why an endpoint could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// An address is 1 to 256 bytes, none of them zero.
    Address,
    /// A living endpoint has the address.
    InUse,
    /// The file system is full.
    NoSpace {
        dir: PathBuf,
        needed: usize,
    },
    System(&'static str, io::Error),
}

impl OpenError {
    pub(super) fn from_io(what: &'static str, error: io::Error, dir: &Path) -> OpenError {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => OpenError::NoSpace {
                dir: dir.to_owned(),
                needed: layout::bytes_needed(),
            },
            _ => OpenError::System(what, error),
        }
    }
}

/// An error of `sys::home`, which makes the directory.
impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::from_io("the directory in /dev/shm", error, Path::new("/dev/shm"))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Address => write!(f, "an address has 1 to {} bytes", ADDRESS_MAX),
            OpenError::InUse => write!(f, "the address is in use"),
            OpenError::NoSpace { dir, needed } => {
                let (dir, least, most) = (dir.display(), lane::LANE_BYTES, lane::LARGE_BYTES);
                write!(
                    f,
                    "{dir} is full: an endpoint needs {needed} bytes there, {least} more for each peer that sends to it, \
                     and up to {most} more for each that sends much"
                )
            }
            OpenError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}
