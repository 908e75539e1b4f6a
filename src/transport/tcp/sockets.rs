//! Sockets as everybody here wants them: never waiting, without delay, watched by the kernel for a silent other side,
//! and not for children of fork.
//!
//! Owns no protocol. Called by `listener`, `dialing`, `passive` and `one_peer`.

use super::config::Config;
use crate::sys::forks::ParentFd;
use crate::sys::{open_files, shared, stream};
use core::mem::MaybeUninit;
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// More than the kernel lets wait, so as many as it does (net.core.somaxconn).
const BACKLOG: i32 = i32::MAX;

fn new(place: &SocketAddr, config: &Config) -> io::Result<Socket> {
    with_more_descriptors(config, || {
        Socket::new(Domain::for_address(*place), Type::STREAM.nonblocking(), None)
    })
}

/// Makes something, again if it has failed for want of descriptors and the process may have more of them.
pub(super) fn with_more_descriptors<T>(config: &Config, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match make() {
        Err(error) if has_raised_limit(&error, config) => make(),
        made => made,
    }
}

/// Whether a call that failed may do better now, because the process may have more descriptors than before.
pub(super) fn has_raised_limit(error: &io::Error, config: &Config) -> bool {
    open_files::has_raised_limit(error, config.info)
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
    at_port_of_range(at, config, |at| {
        let (socket, place) = to_listen_at(at, config)?;
        begin_to_listen(&socket, BACKLOG)?;
        Ok((socket, place))
    })
}

/// A socket that others will be able to connect to, and where.
pub(super) fn to_listen(at: SocketAddr, config: &Config) -> io::Result<(ParentFd, SocketAddr)> {
    at_port_of_range(at, config, |at| to_listen_at(at, config))
}

/// Lets others connect; `backlog` connections may wait, if the kernel lets so many.
pub(super) fn begin_to_listen(socket: &ParentFd, backlog: i32) -> io::Result<()> {
    SockRef::from(socket).listen(backlog)
}

/// Opens a socket at a port of those that may be taken, if the address has none.
fn at_port_of_range(
    at: SocketAddr,
    config: &Config,
    open: impl Fn(SocketAddr) -> io::Result<(ParentFd, SocketAddr)>,
) -> io::Result<(ParentFd, SocketAddr)> {
    match config.ports.filter(|_| at.port() == 0) {
        None => open(at),
        Some((low, high)) => {
            let count = u64::from(high - low) + 1;
            let first = shared::random().unwrap_or(0) % count;
            let ports = (0..count).map(|step| low + ((first + step) % count) as u16);
            let mut last = io::Error::from_raw_os_error(libc::EADDRINUSE);
            for port in ports {
                match open(SocketAddr::new(at.ip(), port)) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => last = error,
                    listens => return listens,
                }
            }
            Err(last)
        }
    }
}

fn to_listen_at(at: SocketAddr, config: &Config) -> io::Result<(ParentFd, SocketAddr)> {
    let socket = new(&at, config)?;
    // The address of an endpoint that has closed can be used again at once.
    socket.set_reuse_address(true)?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    size_buffers(&socket, config)?;
    socket.bind(&SockAddr::from(at))?;
    let place = socket.local_addr()?.as_socket().ok_or(ErrorKind::Unsupported)?;
    Ok((owned(socket), place))
}

/// Begins to connect. `from`: the other side sees this address, with another port. Its scope is that of the interface.
pub(super) fn dial(from: Option<SocketAddr>, to: SocketAddr, config: &Config) -> io::Result<ParentFd> {
    let mut from = from.filter(|from| from.is_ipv4() == to.is_ipv4());
    if let Some(from) = &mut from {
        from.set_port(0);
    }
    let socket = to_connect(from, &to, config)?;
    connect(&socket, to)?;
    Ok(socket)
}

/// A socket to connect with, which the other side sees as `from`, to an address of the family of `like`.
pub(super) fn to_connect(from: Option<SocketAddr>, like: &SocketAddr, config: &Config) -> io::Result<ParentFd> {
    let socket = new(like, config)?;
    prepare(&SockRef::from(&socket), config)?;
    size_buffers(&socket, config)?;
    if let Some(from) = from {
        if from.port() == 0 {
            // The port is chosen when the other side is known, so that each peer can have all of them.
            stream::choose_port_late(socket.as_fd())?;
        } else {
            socket.set_reuse_address(true)?;
        }
        socket.bind(&SockAddr::from(from))?;
    }
    Ok(owned(socket))
}

/// Begins to connect.
pub(super) fn connect(socket: &ParentFd, to: SocketAddr) -> io::Result<()> {
    match SockRef::from(socket).connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

/// A connection that waits to be accepted, and who made it; None: there is none.
pub(super) fn accept(listener: &ParentFd, config: &Config) -> io::Result<Option<(ParentFd, SocketAddr)>> {
    let accept = || SockRef::from(listener).accept();
    let accepted = match accept() {
        Err(error) if has_raised_limit(&error, config) => accept(),
        accepted => accepted,
    };
    match accepted {
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

/// The connection is agreed on: whether the other machine is silent is looked at here (`deadlines`), and no more by the
/// kernel. It goes on asking a machine whose process reads nothing, often enough for that.
pub(super) fn watch_by_ourselves(socket: &ParentFd, config: &Config) {
    let _ = SockRef::from(socket).set_tcp_user_timeout(None);
    let pause = (config.silence / 4).clamp(Duration::from_secs(1), Duration::from_secs(120));
    // Older kernels ask less and less often.
    let _ = stream::set_longest_pause(socket.as_fd(), pause.as_millis() as u32);
}

/// The connection is agreed on. One whose ends are both in this machine shares no link with anybody, so nothing is gained
/// by holding back what is sent, as bbr does, which many systems have for all connections. Every kernel has reno, and lets
/// everybody choose it unless it is told otherwise.
pub(super) fn hurry_within_machine(socket: &ParentFd) {
    let ends = own_place(socket).zip(other_place(socket));
    if ends.is_some_and(|(own, other)| is_within_machine(own.ip(), other.ip())) {
        let _ = SockRef::from(socket).set_tcp_congestion(b"reno");
    }
}

fn is_within_machine(own: IpAddr, other: IpAddr) -> bool {
    own == other || other.is_loopback()
}

/// Why connecting failed, if it did.
pub(super) fn error_of(socket: &ParentFd) -> Option<io::Error> {
    SockRef::from(socket).take_error().unwrap_or_else(Some)
}

/// Whether the other side has ended the connection, and all that it had sent was read.
pub(super) fn is_at_its_end(socket: &ParentFd) -> bool {
    let mut byte = [MaybeUninit::uninit()];
    match SockRef::from(socket).peek(&mut byte) {
        Ok(came) => came == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// The other end of a connection, as it was dialed; None: there is no connection yet.
pub(super) fn other_place(socket: &ParentFd) -> Option<SocketAddr> {
    SockRef::from(socket).peer_addr().ok()?.as_socket()
}

/// Our own end of a connection.
pub(super) fn own_place(socket: &ParentFd) -> Option<SocketAddr> {
    SockRef::from(socket).local_addr().ok()?.as_socket()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_the_machine_is_left_to_the_system() {
        let ip = |text: &str| text.parse().unwrap();
        for (own, other, within) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.9", true),
            ("::1", "::1", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("2001:db8::7", "2001:db8::8", false),
        ] {
            assert_eq!(is_within_machine(ip(own), ip(other)), within, "{own} {other}");
        }
    }
}
