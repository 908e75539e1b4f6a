//! Bytes through a connected stream socket, gathered from and scattered to an application's memory in one call.
//!
//! Nothing here waits or raises SIGPIPE. The sockets are made elsewhere (socket2): these are the two calls that must
//! name memory which is not Rust's to borrow. Knows nothing of what the bytes mean. Called by `transport`.

use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::mem::zeroed;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Pieces before or behind an application's.
const OWN: usize = 2;
const PIECES: usize = IOV_LIMIT + OWN;

/// Part of an application's memory.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub iov: &'a UserIov,
    pub at: usize,
    pub len: usize,
}

impl Part<'_> {
    pub const NONE: Part<'static> = Part {
        iov: &UserIov::NONE,
        at: 0,
        len: 0,
    };
}

/// Where the first bytes that are received go.
pub enum First<'a> {
    Memory(Part<'a>),
    Bytes(&'a mut [u8]),
}

/// The pieces of one call.
struct Pieces {
    list: [libc::iovec; PIECES],
    count: usize,
}

impl Pieces {
    fn new() -> Pieces {
        let none = libc::iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 0,
        };
        Pieces {
            list: [none; PIECES],
            count: 0,
        }
    }

    fn add(&mut self, addr: usize, len: usize) {
        if let Some(place) = self.list.get_mut(self.count).filter(|_| len > 0) {
            *place = libc::iovec {
                iov_base: addr as *mut libc::c_void,
                iov_len: len,
            };
            self.count += 1;
        }
    }

    fn add_part(&mut self, part: &Part<'_>) {
        let pieces = part.iov.slices(part.at, part.len);
        pieces.for_each(|piece: UserBuf| self.add(piece.addr(), piece.len()));
    }

    fn message(&mut self) -> libc::msghdr {
        // SAFETY: msghdr is plain data, for which all zeros is a message of nothing.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = self.list.as_mut_ptr();
        message.msg_iovlen = self.count as _;
        message
    }
}

fn counted(done: isize) -> io::Result<usize> {
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Sends `head`, `next` and then a part of an application's memory, as much as the socket takes. `WouldBlock`: nothing.
pub fn send(socket: BorrowedFd<'_>, head: &[u8], next: &[u8], part: &Part<'_>) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if part.len == 0 && next.is_empty() {
        // SAFETY: the kernel reads `head`, which lives through the call.
        return counted(unsafe { libc::send(socket.as_raw_fd(), head.as_ptr().cast(), head.len(), flags) });
    }
    let mut pieces = Pieces::new();
    pieces.add(head.as_ptr() as usize, head.len());
    pieces.add(next.as_ptr() as usize, next.len());
    pieces.add_part(part);
    let message = pieces.message();
    // SAFETY: the kernel reads the pieces; the maker of the memory promised it (`UserBuf::new`), the rest is borrowed.
    counted(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) })
}

/// Receives into `first` until that is full, then into `rest`. 0: the other side sends no more. `WouldBlock`: nothing
/// is there.
pub fn receive(socket: BorrowedFd<'_>, first: First<'_>, rest: &mut [u8]) -> io::Result<usize> {
    let mut pieces = Pieces::new();
    match first {
        First::Memory(part) => pieces.add_part(&part),
        First::Bytes(bytes) => pieces.add(bytes.as_mut_ptr() as usize, bytes.len()),
    }
    if pieces.count == 0 {
        let (place, len) = (rest.as_mut_ptr().cast(), rest.len());
        // SAFETY: the kernel fills `rest`, which is borrowed through the call.
        return counted(unsafe { libc::recv(socket.as_raw_fd(), place, len, libc::MSG_DONTWAIT) });
    }
    pieces.add(rest.as_mut_ptr() as usize, rest.len());
    let mut message = pieces.message();
    // SAFETY: the kernel fills the pieces; the maker of the memory promised it (`UserBuf::new`), the rest is borrowed.
    counted(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) })
}

/// Before a socket is bound to an address without a port: it gets one when it connects, which other sockets may have
/// towards other places.
pub fn choose_port_late(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    let (option, len) = (
        libc::IP_BIND_ADDRESS_NO_PORT,
        size_of::<libc::c_int>() as libc::socklen_t,
    );
    // SAFETY: the option is one int, which lives through the call.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_IP, option, (&raw const on).cast(), len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many bytes, with the mark of the end, the other machine has not acknowledged.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) } {
        0 => Ok(usize::try_from(count).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the kernel knows of the other machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hearing {
    /// Something was sent, data or a probe, and nothing was heard since. A machine that has no room for data says so.
    pub waits: bool,
    /// Milliseconds since anything was acknowledged.
    pub heard_ms: u64,
    /// Milliseconds since data came.
    pub came_ms: u64,
}

/// Only for a socket of TCP.
pub fn hearing(socket: BorrowedFd<'_>) -> io::Result<Hearing> {
    // The beginning of struct tcp_info, in words: the first two are single bytes.
    const WORDS: usize = 15;
    const PROBES: usize = 3;
    const UNACKED: usize = 6;
    const LAST_SENT: usize = 11;
    const LAST_CAME: usize = 13;
    const LAST_ACK: usize = 14;
    let mut info = [0u32; WORDS];
    let mut len = size_of_val(&info) as libc::socklen_t;
    let place = info.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `len` bytes, which is what `info` has.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_TCP, libc::TCP_INFO, place, &mut len) } {
        0 => {
            let probes = info[0].to_ne_bytes()[PROBES];
            Ok(Hearing {
                waits: probes > 0 || info[UNACKED] > 0 && info[LAST_ACK] > info[LAST_SENT],
                heard_ms: info[LAST_ACK].into(),
                came_ms: info[LAST_CAME].into(),
            })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The longest pause between two tries to reach a machine that does not answer; kernels before 6.15 do not know it.
pub fn set_longest_pause(socket: BorrowedFd<'_>, ms: u32) -> io::Result<()> {
    const TCP_RTO_MAX_MS: libc::c_int = 44;
    let value = ms as libc::c_int;
    let (place, len) = ((&raw const value).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the option is one int, which lives through the call.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_TCP, TCP_RTO_MAX_MS, place, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::user::Lent;
    use std::io::ErrorKind;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn pieces_leave_in_order_and_come_where_they_should() {
        let (a, b) = UnixStream::pair().unwrap();
        let from = Lent::new(&[3, 0, 4], 0);
        from.set(b"abcdefg");
        let iov = from.iov();
        let part = Part {
            iov: &iov,
            at: 1,
            len: 5,
        };
        assert_eq!(send(a.as_fd(), b"12", b"345", &part).unwrap(), 10);
        assert_eq!(send(a.as_fd(), b"!", b"", &Part::NONE).unwrap(), 1);
        let into = Lent::new(&[2, 2], 9);
        let (iov, mut rest) = (into.iov(), [0u8; 20]);
        let first = First::Memory(Part {
            iov: &iov,
            at: 1,
            len: 2,
        });
        assert_eq!(receive(b.as_fd(), first, &mut rest[..2]).unwrap(), 4);
        assert_eq!((into.bytes(), &rest[..2]), (vec![9, b'1', b'2', 9], &b"34"[..]));
        let mut first = [0u8; 3];
        assert_eq!(receive(b.as_fd(), First::Bytes(&mut first), &mut rest).unwrap(), 7);
        assert_eq!((&first, &rest[..4]), (b"5bc", &b"def!"[..]));
        let nothing = receive(b.as_fd(), First::Memory(Part::NONE), &mut rest);
        assert_eq!(nothing.unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(a);
        assert_eq!(receive(b.as_fd(), First::Memory(Part::NONE), &mut rest).unwrap(), 0);
        assert_eq!(
            send(b.as_fd(), b"x", b"", &Part::NONE).unwrap_err().kind(),
            ErrorKind::BrokenPipe
        );
    }
}
