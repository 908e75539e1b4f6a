//! System calls that the standard library lacks: a TCP connection from a port of one's choice.

use core::mem::MaybeUninit;
use libc::{AF_INET, AF_INET6, c_int, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Connects, from the port `from` unless that is 0.
pub fn connect_from(from: u16, to: &SocketAddr) -> io::Result<TcpStream> {
    if from == 0 {
        return TcpStream::connect(to);
    }
    let (family, any) = match to {
        SocketAddr::V4(_) => (AF_INET, IpAddr::from(Ipv4Addr::UNSPECIFIED)),
        SocketAddr::V6(_) => (AF_INET6, IpAddr::from(Ipv6Addr::UNSPECIFIED)),
    };
    // SAFETY: plain numbers; the descriptor that comes back is ours. So are the addresses, of the length that is told.
    unsafe {
        let socket = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        checked(socket)?;
        let socket = OwnedFd::from_raw_fd(socket);
        let (address, len) = c_address(&SocketAddr::new(any, from));
        checked(libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            len as socklen_t,
        ))?;
        let (address, len) = c_address(to);
        checked(libc::connect(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            len as socklen_t,
        ))?;
        Ok(TcpStream::from(socket))
    }
}

fn checked(ret: c_int) -> io::Result<()> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A socket address as C has it, and its length.
pub fn c_address(address: &SocketAddr) -> (sockaddr_storage, usize) {
    // SAFETY: zeroes are a storage.
    let mut storage = unsafe { MaybeUninit::<sockaddr_storage>::zeroed().assume_init() };
    let place = &raw mut storage;
    // SAFETY: a storage has room and alignment for every kind of address.
    unsafe {
        match address {
            SocketAddr::V4(v4) => {
                let place = &mut *place.cast::<sockaddr_in>();
                place.sin_family = AF_INET as u16;
                place.sin_port = v4.port().to_be();
                place.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                (storage, size_of::<sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                let place = &mut *place.cast::<sockaddr_in6>();
                place.sin6_family = AF_INET6 as u16;
                place.sin6_port = v6.port().to_be();
                place.sin6_flowinfo = v6.flowinfo();
                place.sin6_addr.s6_addr = v6.ip().octets();
                place.sin6_scope_id = v6.scope_id();
                (storage, size_of::<sockaddr_in6>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_connection_comes_from_the_port_that_was_asked() {
        for host in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let Ok(listener) = TcpListener::bind((host, 0)) else {
                assert!(host.is_ipv6(), "no IPv4 here");
                continue;
            };
            // A port that was free a moment ago: somebody else may have been quicker.
            let attempt = |_| {
                let port = TcpListener::bind((host, 0)).and_then(|l| l.local_addr()).ok()?.port();
                Some((port, connect_from(port, &listener.local_addr().unwrap()).ok()?))
            };
            let (port, stream) = (0..50).find_map(attempt).unwrap();
            assert_eq!(stream.local_addr().unwrap().port(), port);
            assert_eq!(listener.accept().unwrap().1.port(), port);
        }
    }
}
