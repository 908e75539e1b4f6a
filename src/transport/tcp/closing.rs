//! The end of an endpoint: what was sent goes on its way, peers are told, all is closed. Part of `TcpTransport`.
//!
//! The kernel forgets what it has not sent if something comes in for a socket that is closed. So closing waits until
//! the peers' machines have acknowledged all, but not longer than `Config::linger`, and reads meanwhile. Sockets that
//! have something for a peer even then stay open behind the endpoint, as whoever was told that it has left was told
//! that it arrives: a peer that one thread closes and reads with takes nothing while it closes.

use super::link::Link;
use super::{TcpTransport, sockets};
use crate::sys::forks::ParentFd;
use crate::sys::lock::{Held, Lock};
use crate::sys::stream::{First, Part};
use crate::sys::{clock, stream};
use core::sync::atomic::{AtomicBool, Ordering};
use socket2::SockRef;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::fd::AsFd;

/// For so long a socket stays open behind its endpoint; and at most so many do.
const BEHIND_MS: u64 = 60_000;
const BEHIND: usize = 256;

/// Of this process: sockets of closed endpoints, and until when they stay.
static LEFT_BEHIND: Lock<Vec<(ParentFd, u64)>> = Lock::new(Vec::new());
static ANY_BEHIND: AtomicBool = AtomicBool::new(false);

/// Held across fork, so that a child can open and close endpoints of its own.
pub static LOCK: &dyn Held = &LEFT_BEHIND;

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
            open.retain_mut(|link| !has_left(link, self.buffer.bytes()));
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
            let leaving = self.one_peer.iter_mut().filter_map(|one| one.leaving.take());
            let links = self.peers.all().filter_map(|peer| peer.link.take()).chain(leaving);
            leave_behind(links.filter(|link| !link.broken && link.end.is_none()));
        }
        tend_left_behind();
    }
}

/// What the kernel has taken goes on its way without the endpoint. What it has not is the application's memory, and
/// ends.
fn leave_behind(links: impl Iterator<Item = Box<Link>>) {
    let until = clock::monotonic_ms() + BEHIND_MS;
    let mut behind = LEFT_BEHIND.lock();
    for link in links {
        let Link { socket, .. } = *link;
        if behind.len() < BEHIND && still_sends(&socket) && SockRef::from(&socket).shutdown(Shutdown::Write).is_ok() {
            behind.push((socket, until));
        }
    }
    ANY_BEHIND.store(!behind.is_empty(), Ordering::Relaxed);
}

/// Closes those that are not needed any more. Called now and then by all endpoints.
pub(super) fn tend_left_behind() {
    if ANY_BEHIND.load(Ordering::Relaxed) {
        let (mut behind, now) = (LEFT_BEHIND.lock(), clock::monotonic_ms());
        behind.retain(|(socket, until)| now < *until && still_sends(socket));
        ANY_BEHIND.store(!behind.is_empty(), Ordering::Relaxed);
    }
}

fn still_sends(socket: &ParentFd) -> bool {
    sockets::error_of(socket).is_none() && stream::unacknowledged(socket.as_fd()).is_ok_and(|bytes| bytes > 0)
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
