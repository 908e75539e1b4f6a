//! Passive endpoints: a listener of their own, and the calls that come to it.
//!
//! A call is a connection whose dialer has said a hello for a passive endpoint, with its program's data. Who has not
//! said that is a guest of `listener`, bounded in number and time. Called by `provider`.

use super::address;
use super::causes::Waiting;
use super::config::{Config, OpenError};
use super::handshake::{CALL, Verdict};
use super::listener::{Arrival, Desk, Listener};
use super::sockets;
use crate::sys::epoll::Epoll;
use crate::sys::forks::{ParentFd, Process};
use crate::sys::timerfd::TimerFd;
use crate::sys::{clock, resolve, shared};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// As many calls may wait for their program's answer in any case, whatever backlog it wants in the kernel.
const CALLS: usize = 256;

/// What listens for calls.
pub struct Passive {
    config: Config,
    place: SocketAddr,
    door: Door,
    /// Readable when there is something to serve.
    epoll: Epoll,
    /// Wakes who sleeps for what must be done though nothing comes.
    timer: TimerFd,
    /// What it calls itself towards dialers.
    instance: u64,
    came: VecDeque<Arrival>,
    /// Those are told of soon.
    waiting: Option<Waiting>,
    process: Process,
}

enum Door {
    /// Bound to the address, so that it is known; nobody can connect.
    Closed(ParentFd),
    Open {
        listener: Arc<Listener>,
        desk: Arc<Desk>,
    },
    /// It could not be opened.
    Broken,
}

impl Passive {
    /// At an address of a socket; with port 0 at a port that is free.
    pub fn open(address: &[u8], config: &Config) -> Result<Passive, OpenError> {
        let (socket, place) = bind(address, config)?;
        let system = |error| OpenError::of("epoll", error);
        let epoll = sockets::with_more_descriptors(config, Epoll::new).map_err(system)?;
        let timer = sockets::with_more_descriptors(config, TimerFd::new).map_err(system)?;
        epoll.add(timer.fd()).map_err(system)?;
        Ok(Passive {
            config: config.clone(),
            place,
            door: Door::Closed(socket),
            epoll,
            timer,
            instance: shared::random().map_err(|error| OpenError::of("random numbers", error))?,
            came: VecDeque::new(),
            waiting: None,
            process: Process::this(),
        })
    }

    /// Lets others connect, `backlog` of whom may wait in the kernel. Again: another backlog.
    pub fn listen(&mut self, backlog: usize) -> Result<(), OpenError> {
        let in_kernel = i32::try_from(backlog).unwrap_or(i32::MAX);
        let failed = |error| OpenError::of("listening", error);
        if let Door::Closed(socket) = &self.door {
            sockets::begin_to_listen(socket, in_kernel).map_err(failed)?;
        }
        self.door = match core::mem::replace(&mut self.door, Door::Broken) {
            Door::Closed(socket) => {
                let listener = Listener::over(socket, self.place, &self.config)?;
                let desk = listener.add_desk(CALL, &self.config)?;
                self.epoll.add(listener.fd()).map_err(failed)?;
                Door::Open { listener, desk }
            }
            open => open,
        };
        if let Door::Open { listener, .. } = &self.door {
            listener.calls.most.store(backlog.max(CALLS), Ordering::Relaxed);
            listener.resize(in_kernel).map_err(failed)?;
        }
        Ok(())
    }

    /// The next call that has come. Does whatever work there is.
    pub fn next_call(&mut self) -> Option<Call> {
        let Door::Open { listener, desk } = &self.door else {
            return None;
        };
        if !self.process.is_this() {
            return None;
        }
        if self.came.is_empty() {
            listener.serve(self.instance, &self.config);
            self.came.extend(desk.take());
            self.waiting = (!self.came.is_empty()).then(Waiting::default);
        }
        if self.waiting.as_mut().is_some_and(|waiting| !waiting.is_over()) {
            return None;
        }
        self.waiting = None;
        let arrival = self.came.pop_front()?;
        Some(Call::new(arrival, &listener.calls.waiting))
    }

    pub fn local_address(&self) -> Vec<u8> {
        resolve::to_bytes(&self.place)
    }

    /// Another address, before `listen`.
    pub fn rename(&mut self, address: &[u8]) -> Result<(), OpenError> {
        let (socket, place) = bind(address, &self.config)?;
        (self.door, self.place) = (Door::Closed(socket), place);
        Ok(())
    }

    /// The descriptor that is readable while there is something to do, after `arm` returned true.
    pub fn wake_fd(&self) -> RawFd {
        self.epoll.fd()
    }

    /// Has the timer wake for what must be done at some time. False: that time has come, or calls have.
    pub fn arm(&self) -> bool {
        let Door::Open { listener, .. } = &self.door else {
            return true;
        };
        let deadline = listener.deadline();
        let left = deadline.map(|deadline| deadline.saturating_sub(clock::monotonic_ms()));
        self.timer.set(Duration::from_millis(left.unwrap_or(0)));
        left != Some(0) && self.came.is_empty()
    }
}

fn bind(address: &[u8], config: &Config) -> Result<(ParentFd, SocketAddr), OpenError> {
    let place = address::place(address).ok_or(OpenError::Address)?;
    sockets::to_listen(place, config).map_err(|error| OpenError::of("binding", error))
}

impl Drop for Passive {
    fn drop(&mut self) {
        // Those who have said what they want, and of whom the program has not heard.
        while let Some(call) = self.came.pop_front().map(Call::unheard) {
            call.reject(&[]);
        }
    }
}

/// A connection that somebody asked a passive endpoint for. Dropped, it is rejected without data.
pub struct Call {
    arrival: Option<Arrival>,
    /// How many calls of the passive endpoint have no answer.
    waiting: Arc<AtomicUsize>,
}

impl Call {
    fn new(arrival: Arrival, waiting: &Arc<AtomicUsize>) -> Call {
        waiting.fetch_add(1, Ordering::Relaxed);
        Call {
            arrival: Some(arrival),
            waiting: waiting.clone(),
        }
    }

    fn unheard(arrival: Arrival) -> Call {
        Call::new(arrival, &Arc::default())
    }

    /// Where it came from.
    pub fn peer(&self) -> Vec<u8> {
        let from = self.arrival.as_ref().map(|arrival| resolve::to_bytes(&arrival.from));
        from.unwrap_or_default()
    }

    /// The address that was called.
    pub fn local(&self) -> Option<SocketAddr> {
        sockets::own_place(&self.arrival.as_ref()?.socket)
    }

    /// What the other program gave fi_connect.
    pub fn data(&self) -> Vec<u8> {
        let data = self.arrival.as_ref().map(|arrival| arrival.said.data.clone());
        data.unwrap_or_default()
    }

    /// The connection itself, to be accepted.
    pub(super) fn take(mut self) -> Option<Arrival> {
        self.arrival.take()
    }

    /// Tells the other side that there will be no connection.
    pub fn reject(mut self, data: &[u8]) {
        self.end(data);
    }

    fn end(&mut self, data: &[u8]) {
        // In a child of fork it is the parent's.
        if let Some(arrival) = self.arrival.take().filter(|arrival| arrival.socket.is_ours()) {
            arrival.answer(Verdict::Rejected, 0, data);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end(&[]);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
