//! What wakes a sleeping endpoint: a datagram to the socket beside its file.
//!
//! The socket is named after the instance, so whoever has the endpoint's file open knows its name, and no two endpoints
//! ever share one. From it the endpoint also rings others: waking a peer takes one system call and no new descriptor,
//! and a peer that dies meanwhile costs an error. Called by `sleeping`, `outbound` and `housekeeping`.

use super::name;
use crate::sys::datagram::{self, Sent};
use crate::sys::forks::ParentFd;
use crate::sys::home;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct Doorbell {
    socket: ParentFd,
    dir: PathBuf,
    instance: u64,
    /// Instances that could not be rung, for lack of memory or descriptors, and must be rung later.
    unrung: Mutex<Vec<u64>>,
}

impl Doorbell {
    pub(super) fn bind(dir: &Path, instance: u64) -> io::Result<Doorbell> {
        let socket = ParentFd::new(datagram::bind(&name::doorbell(dir, instance))?);
        Ok(Doorbell {
            socket,
            dir: dir.to_owned(),
            instance,
            unrung: Mutex::default(),
        })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }

    /// Makes the socket unreadable.
    pub(super) fn drain(&self) {
        datagram::drain(self.socket.as_fd());
    }

    /// Makes our own socket readable.
    pub(super) fn ring_own(&self) {
        self.ring(self.instance);
    }

    /// Makes an endpoint's socket readable, if the endpoint is alive. Not to be called in a child of fork.
    pub(super) fn ring(&self, instance: u64) {
        if !self.try_ring(instance) {
            self.unrung().push(instance);
        }
    }

    /// Whether there are endpoints that could not be rung yet.
    pub(super) fn has_unrung(&self) -> bool {
        !self.unrung().is_empty()
    }

    pub(super) fn ring_again(&self) {
        self.unrung().retain(|instance| !self.try_ring(*instance));
    }

    fn unrung(&self) -> MutexGuard<'_, Vec<u64>> {
        self.unrung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_ring(&self, instance: u64) -> bool {
        let path = name::doorbell(&self.dir, instance);
        match datagram::send(self.socket.as_fd(), &path) {
            Sent::Done | Sent::Nobody => true,
            Sent::NoMemory => false,
            Sent::Full => ring_by_new_socket(&path),
        }
    }
}

/// Rings from a new socket, because what one socket may have sent without its being received is limited (208 KiB, some
/// 280 datagrams). From a new one, sending is refused only if the receiver's queue is full, which makes it readable
/// too.
#[cold]
fn ring_by_new_socket(path: &Path) -> bool {
    datagram::open().is_ok_and(|socket| datagram::send(socket.as_fd(), path) != Sent::NoMemory)
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        if self.socket.is_ours() {
            let _ = std::fs::remove_file(name::doorbell(&self.dir, self.instance));
            // The socket is the last of an endpoint's files to be removed.
            home::leave(&self.dir);
        }
    }
}
