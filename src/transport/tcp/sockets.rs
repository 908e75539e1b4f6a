//! Sockets as everybody here wants them: never waiting, without delay, watched by the kernel for a silent other side, and
//! not for children of fork.
//!
//! Owns no protocol. Called by `listener` and `dialing`.

use super::config::Config;
use crate::sys::forks::ParentFd;
use crate::sys::{open_files, shared, stream};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// As many connections as the kernel lets wait (net.core.somaxconn).
const BACKLOG: i32 = 1 << 16;

fn new(place: &SocketAddr) -> io::Result<Socket> {
    let make = || Socket::new(Domain::for_address(*place), Type::STREAM.nonblocking(), None);
    match make() {
        Err(error) if is_shortage(&error) => {
            open_files::raise_limit();
            make()
        }
        made => made,
    }
}

/// Whether the process or the machine has no descriptors or memory left.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

fn owned(socket: Socket) -> ParentFd {
    ParentFd::new(OwnedFd::from(socket))
}

fn prepare(socket: &SockRef<'_>, config: &Config) -> io::Result<()> {
    let second = Duration::from_secs(1);
    let alive = TcpKeepalive::new()
        .with_time((config.silence / 2).max(second))
        .with_interval((config.silence / 6).max(second))
        .with_retries(3);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&alive)?;
    socket.set_tcp_user_timeout(Some(config.silence))
}

/// Before it listens or connects: what is accepted inherits them.
fn size_buffers(socket: &Socket, config: &Config) -> io::Result<()> {
    if let Some(bytes) = config.kernel_buffer {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

/// A socket that others connect to, and where.
pub(super) fn listen(at: SocketAddr, config: &Config) -> io::Result<(ParentFd, SocketAddr)> {
    match config.ports.filter(|_| at.port() == 0) {
        None => listen_at(at, config),
        Some((low, high)) => {
            let count = u64::from(high - low) + 1;
            let first = shared::random().unwrap_or(0) % count;
            let ports = (0..count).map(|step| low + ((first + step) % count) as u16);
            let mut last = io::Error::from_raw_os_error(libc::EADDRINUSE);
            for port in ports {
                match listen_at(SocketAddr::new(at.ip(), port), config) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => last = error,
                    listens => return listens,
                }
            }
            Err(last)
        }
    }
}

fn listen_at(at: SocketAddr, config: &Config) -> io::Result<(ParentFd, SocketAddr)> {
    let socket = new(&at)?;
    // The address of an endpoint that has closed can be used again at once.
    socket.set_reuse_address(true)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    size_buffers(&socket, config)?;
    socket.bind(&SockAddr::from(at))?;
    socket.listen(BACKLOG)?;
    let place = socket.local_addr()?.as_socket().ok_or(ErrorKind::Unsupported)?;
    Ok((owned(socket), place))
}

/// Begins to connect. `from`: the interface whose address the other side sees.
pub(super) fn dial(from: Option<IpAddr>, to: SocketAddr, config: &Config) -> io::Result<ParentFd> {
    let socket = new(&to)?;
    prepare(&SockRef::from(&socket), config)?;
    size_buffers(&socket, config)?;
    if let Some(ip) = from.filter(|ip| ip.is_ipv4() == to.is_ipv4()) {
        // The port is chosen when the other side is known, so that each peer can have all of them.
        stream::choose_port_late(socket.as_fd())?;
        socket.bind(&SockAddr::from(SocketAddr::new(ip, 0)))?;
    }
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(owned(socket)),
    }
}

/// A connection that waits to be accepted, and who made it; None: there is none.
pub(super) fn accept(listener: &ParentFd, config: &Config) -> io::Result<Option<(ParentFd, SocketAddr)>> {
    match SockRef::from(listener).accept() {
        Ok((socket, from)) => {
            socket.set_nonblocking(true)?;
            prepare(&SockRef::from(&socket), config)?;
            let from = from.as_socket().ok_or(ErrorKind::Unsupported)?;
            Ok(Some((owned(socket), from)))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why connecting failed, if it did.
pub(super) fn error_of(socket: &ParentFd) -> Option<io::Error> {
    SockRef::from(socket).take_error().unwrap_or_else(Some)
}

/// Our own end of a connection.
pub(super) fn own_place(socket: &ParentFd) -> Option<SocketAddr> {
    SockRef::from(socket).local_addr().ok()?.as_socket()
}
