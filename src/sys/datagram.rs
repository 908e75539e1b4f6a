//! Datagram sockets with a name in the file system: they wake a process that is known by a path only.
//!
//! The kernel finds such a name by its inode, so the two sides need not share a network namespace. A send never waits,
//! never raises SIGPIPE and needs no descriptor but the sender's own. Every datagram is one byte, 0. Called by
//! `transport`.

use core::mem::{offset_of, zeroed};
use core::ptr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Done,
    /// The receiver's queue is full, or too much of what this socket has sent is not received yet. The kernel does not
    /// tell which.
    Full,
    /// The kernel has no memory for it.
    NoMemory,
    /// There is no such name, its owner is dead, or we may not send to it.
    Nobody,
}

/// A socket without a name.
pub fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket with a name, which must be free. Only processes of this user may send to it.
pub fn bind(path: &Path) -> io::Result<OwnedFd> {
    let (address, len) = address(path).ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
    let socket = open()?;
    // `bind` gives the name the mode that the socket has.
    // SAFETY: an open descriptor.
    unsafe { libc::fchmod(socket.as_raw_fd(), 0o600) };
    // SAFETY: an open descriptor, and an address of that length.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if bound != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

/// Sends one datagram, by one system call.
pub fn send(from: BorrowedFd<'_>, to: &Path) -> Sent {
    let Some((address, len)) = address(to) else {
        return Sent::Nobody;
    };
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    loop {
        // SAFETY: one readable byte, and an address of that length.
        let sent = unsafe {
            let byte = [0u8];
            let address = (&raw const address).cast();
            libc::sendto(from.as_raw_fd(), byte.as_ptr().cast(), 1, flags, address, len)
        };
        if sent >= 0 {
            return Sent::Done;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN) => return Sent::Full,
            Some(libc::ENOBUFS | libc::ENOMEM) => return Sent::NoMemory,
            _ => return Sent::Nobody,
        }
    }
}

/// Whether a socket of any process is bound to this name. None: that could not be found out.
pub fn is_bound(path: &Path) -> Option<bool> {
    let (address, len) = address(path)?;
    let socket = open().ok()?;
    // SAFETY: an open descriptor, and an address of that length.
    if unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) } == 0 {
        return Some(true);
    }
    let refused = io::Error::last_os_error().raw_os_error() == Some(libc::ECONNREFUSED);
    refused.then_some(false)
}

/// Receives all datagrams. One system call if there are fewer than sixteen.
pub fn drain(socket: BorrowedFd<'_>) {
    const MOST: usize = 16;
    let mut byte = [0u8; 1];
    let mut place = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: mmsghdr is plain data; all zero is one that receives nothing but the datagram.
    let mut messages: [libc::mmsghdr; MOST] = unsafe { zeroed() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = &raw mut place;
        message.msg_hdr.msg_iovlen = 1;
    }
    // All messages share one byte, as nobody reads them.
    // SAFETY: whole messages, which all write to the one byte.
    while unsafe {
        let (fd, messages) = (socket.as_raw_fd(), messages.as_mut_ptr());
        libc::recvmmsg(fd, messages, MOST as u32, libc::MSG_DONTWAIT as _, ptr::null_mut())
    } == MOST as i32
    {}
}

/// None for a path that is too long for the name of a socket.
fn address(path: &Path) -> Option<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    // SAFETY: sockaddr_un is plain data; all zero is one.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The zero behind the path belongs to it.
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return None;
    }
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    let len = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Some((address, len as libc::socklen_t))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::shared::{self, random};
    use std::os::fd::AsFd;
    use std::path::PathBuf;

    fn name(test: &str) -> PathBuf {
        PathBuf::from(format!("/dev/shm/lfab-test-{test}-{:x}", random().unwrap()))
    }

    fn readable(socket: &OwnedFd) -> bool {
        let mut asked = libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd.
        unsafe { libc::poll(&mut asked, 1, 0) == 1 }
    }

    #[test]
    fn what_is_sent_is_readable_until_drained() {
        let (path, sender) = (name("sent"), open().unwrap());
        assert_eq!(send(sender.as_fd(), &path), Sent::Nobody);
        let socket = bind(&path).unwrap();
        assert_eq!(bind(&path).err().unwrap().raw_os_error(), Some(libc::EADDRINUSE));
        let status = shared::status_of(&path).unwrap();
        assert_eq!((status.kind, status.owner), (libc::S_IFSOCK, shared::own_uid()));
        assert!(!readable(&socket));
        // Far more than its queue takes: full is as good as sent, and never a wait.
        for _ in 0..1000 {
            assert_ne!(send(sender.as_fd(), &path), Sent::Nobody);
        }
        assert!(readable(&socket));
        drain(socket.as_fd());
        assert!(!readable(&socket));
        assert_eq!(send(socket.as_fd(), &path), Sent::Done, "to itself");
        assert!(readable(&socket) && is_bound(&path) == Some(true));
        drop(socket);
        // A child that another test made by fork may have it for a moment longer.
        while is_bound(&path) == Some(true) {
            std::thread::yield_now();
        }
        assert_eq!(
            (send(sender.as_fd(), &path), is_bound(&path)),
            (Sent::Nobody, Some(false))
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(is_bound(&path), None);
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_an_error() {
        let long = PathBuf::from(format!("/dev/shm/{}", "x".repeat(100)));
        assert_eq!(bind(&long).err().unwrap().raw_os_error(), Some(libc::ENAMETOOLONG));
        assert_eq!(send(open().unwrap().as_fd(), &long), Sent::Nobody);
    }
}
