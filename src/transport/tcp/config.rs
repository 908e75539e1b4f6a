//! What may be set for an endpoint, what limits follow from it for the engine, and why an endpoint cannot be opened.
//!
//! Called by `provider`, which fills `Config` from variables and options.

use super::secret::Secret;
use crate::engine::port::Limits;
use crate::sys::open_files;
use core::fmt;
use std::io;
use std::time::Duration;

/// The most body bytes of a packet. Measured (docs/performance.md): a message of 1 MiB takes 126 us in packets of 256
/// KiB, 115 of 512, 173 of 1 MiB.
pub(super) const MAX_BODY: usize = 512 << 10;

/// Longer reads are not short ones (`Limits::short_read`): without the copy that those may need they are quicker.
const MAX_SHORT_READ: usize = 64 << 10;

/// What the provider's variables and options set.
#[derive(Clone, Debug)]
pub struct Config {
    /// Messages up to this size are sent without asking the receiver.
    pub eager: usize,
    /// How long a peer that refuses, or does not answer, is tried before operations to it fail.
    pub connect_timeout: Duration,
    /// How long a peer's machine may be silent while something waits for it.
    pub silence: Duration,
    /// How long closing an endpoint waits for the kernel to have room for what was sent.
    pub linger: Duration,
    /// The ports that an endpoint without one may take; None: the system's.
    pub ports: Option<(u16, u16)>,
    /// Bytes of the kernel's buffers; None: as the system has it.
    pub kernel_buffer: Option<usize>,
    /// The number by which peers tell this endpoint from another at the same address; None: one is drawn.
    pub instance: Option<u64>,
    /// What peers must prove to have; None: nothing.
    pub secret: Option<Secret>,
    /// Takes a line for the administrator.
    pub warn: fn(&str),
    /// Takes a line for FI_LOG_LEVEL=info.
    pub info: fn(&str),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            eager: 512 << 10,
            connect_timeout: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            ports: None,
            kernel_buffer: None,
            instance: None,
            secret: None,
            warn: |_| {},
            info: |_| {},
        }
    }
}

impl Config {
    pub fn limits(&self) -> Limits {
        Limits {
            max_body: MAX_BODY,
            eager: self.eager.min(MAX_BODY),
            eager_if_fetched: self.eager.min(MAX_BODY),
            can_get: false,
            gets_at_once: 0,
            guaranteed_body: MAX_BODY,
            sync_placement: false,
            max_write: 0,
            max_in_writes: 0,
            max_short_read: MAX_SHORT_READ,
        }
    }
}

/// What to do when two endpoints do not have the same secret.
pub(super) const ONE_SECRET: &str =
    "give all processes of the job the same auth_key, or the same file in FI_TCP_AUTH_KEY_FILE, or none of them";

/// Why an endpoint could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Not a socket address of IPv4 or IPv6.
    Address,
    /// Nothing that can be connected to from the endpoint's own address.
    Destination,
    /// Another socket has the port.
    InUse,
    /// No interface of this machine has the address.
    NotHere,
    /// The process has as many descriptors as it may.
    Descriptors(io::Error),
    System(&'static str, io::Error),
}

impl OpenError {
    pub(super) fn of(what: &'static str, error: io::Error) -> OpenError {
        match error.raw_os_error() {
            Some(libc::EADDRINUSE) => OpenError::InUse,
            Some(libc::EADDRNOTAVAIL) => OpenError::NotHere,
            Some(libc::EMFILE | libc::ENFILE) => OpenError::Descriptors(error),
            _ => OpenError::System(what, error),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Address => write!(f, "not an IPv4 or IPv6 address"),
            OpenError::Destination => write!(
                f,
                "not an address with a port, of the same family as the endpoint's own"
            ),
            OpenError::InUse => write!(f, "the port is in use; port 0 takes one that is free"),
            OpenError::NotHere => {
                write!(
                    f,
                    "no interface of this machine has the address; fi_info -p tcp lists those there are"
                )
            }
            OpenError::Descriptors(error) if error.raw_os_error() == Some(libc::ENFILE) => {
                write!(
                    f,
                    "the machine has as many open files as it may (/proc/sys/fs/file-max)"
                )
            }
            OpenError::Descriptors(_) => write!(
                f,
                "the process may have {} open files (ulimit -n), and has them: each endpoint needs five, and one for \
                 each peer; ulimit -Hn raises that",
                open_files::most()
            ),
            OpenError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}
