//! The end of an endpoint: what was sent goes on its way, peers are told, all is closed. Part of `TcpTransport`.
//!
//! The kernel forgets what it has not sent if something comes in for a socket that is closed. So closing waits until the
//! peers' machines have acknowledged all, but not longer than `Config::linger`, and reads meanwhile.

use super::TcpTransport;
use super::link::Link;
use crate::sys::stream::{First, Part};
use crate::sys::{clock, stream};
use socket2::SockRef;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::fd::AsFd;

impl Drop for TcpTransport {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        if let Some(listener) = &self.listener {
            listener.remove_desk(self.context);
        }
        let until = clock::monotonic_ms().saturating_add(self.config.linger.as_millis() as u64);
        self.peers.links().for_each(Link::say_goodbye);
        let leaving = self.one_peer.iter_mut().filter_map(|one| one.leaving.as_deref_mut());
        let mut open: Vec<&mut Link> = self.peers.links().chain(leaving).collect();
        loop {
            open.retain_mut(|link| !has_left(link, &mut self.buffer));
            if open.is_empty() || clock::monotonic_ms() >= until {
                break;
            }
            let _ = self.epoll.wait(1);
        }
        if !open.is_empty() {
            (self.config.info)(&format!(
                "an endpoint is closed before {} peers have taken all that was sent to them",
                open.len()
            ));
        }
    }
}

/// Whether all that was sent has arrived, or never will.
fn has_left(link: &mut Link, buffer: &mut [u8]) -> bool {
    if link.broken || link.end.is_some() {
        return true;
    }
    link.writable();
    link.flush();
    if !link.out.is_empty() {
        return link.broken;
    }
    if !link.said_all {
        link.said_all = true;
        if SockRef::from(&link.socket).shutdown(Shutdown::Write).is_err() {
            return true;
        }
    }
    match stream::receive(link.socket.as_fd(), First::Memory(Part::NONE), buffer) {
        Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            return true;
        }
        _ => {}
    }
    stream::unacknowledged(link.socket.as_fd()).map_or(true, |bytes| bytes == 0)
}
