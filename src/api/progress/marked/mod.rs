//! Endpoints that are driven when they have something to do: a read costs as much with a thousand of them as with one.
//!
//! What has come is found by one look at an epoll instance over the descriptors of all; a mark tells of the rest. Those
//! that were found lately are driven in each read, and then looked for now and then only, so that who talks with one
//! peer pays no more than without the others. Called by `Attached` and by the thread of FI_PROGRESS_AUTO, to which the
//! whole set is one endpoint.
//!
//! Nothing is lost: a descriptor is readable until its endpoint has seen to it, and a mark is taken off the list before
//! its endpoint is driven, so that one which is set meanwhile puts it back.

mod schedule;

use super::{Progress, Watch};
use crate::api::wait::bell::Bell;
use crate::sys::epoll::{Epoll, Events};
use crate::sys::forks::Process;
use crate::util::mutex::{Mutex, lock};
use crate::util::ready::Wake;
use schedule::{Schedule, Turn};
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

pub(in crate::api) struct Marked {
    schedule: Schedule,
    epoll: Epoll,
    /// A child of fork shares the epoll instance with its parent, and leaves it alone.
    process: Process,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    by_name: HashMap<u64, Member>,
    /// Names by the endpoints' addresses.
    names: HashMap<usize, u64>,
    last_name: u64,
}

struct Member {
    endpoint: Arc<dyn Progress>,
    watch: Watch,
    /// How often it was attached.
    times: usize,
}

fn address(endpoint: &Arc<dyn Progress>) -> usize {
    Arc::as_ptr(endpoint).cast::<()>() as usize
}

impl Marked {
    /// `bell`: what is rung for a mark while somebody sleeps.
    pub(super) fn new(bell: Option<Arc<Bell>>) -> io::Result<Marked> {
        Marked::waking(bell.map(|bell| Box::new(move || bell.raise()) as Wake))
    }

    /// `wake`: what is done for a mark while somebody sleeps.
    pub(in crate::api) fn waking(wake: Option<Wake>) -> io::Result<Marked> {
        Ok(Marked {
            schedule: Schedule::new(wake),
            epoll: Epoll::new()?,
            process: Process::this(),
            members: Mutex::default(),
        })
    }

    /// Readable when one of them has something to do that its mark does not tell.
    pub(in crate::api) fn fd(&self) -> RawFd {
        self.epoll.fd()
    }

    /// False: it cannot be looked for, as there are no descriptors or no memory.
    pub(in crate::api) fn add(&self, endpoint: &Arc<dyn Progress>, watch: &Watch) -> bool {
        let mut members = lock(&self.members);
        let members = &mut *members;
        let at = address(endpoint);
        if let Some(known) = members.names.get(&at).and_then(|name| members.by_name.get_mut(name)) {
            known.times += 1;
            return true;
        }
        members.last_name += 1;
        let name = members.last_name;
        if watch
            .fd
            .is_some_and(|fd| !self.process.is_this() || self.epoll.add_with_key(fd, name).is_err())
        {
            return false;
        }
        watch.mark.join(&self.schedule.list, name);
        members.names.insert(at, name);
        let member = Member {
            endpoint: endpoint.clone(),
            watch: watch.clone(),
            times: 1,
        };
        members.by_name.insert(name, member);
        true
    }

    /// Takes one `add` back, before the endpoint closes its descriptor. False: it is no member.
    pub(in crate::api) fn remove(&self, endpoint: &Arc<dyn Progress>) -> bool {
        let mut members = lock(&self.members);
        let Some(name) = members.names.get(&address(endpoint)).copied() else {
            return false;
        };
        let Some(member) = members.by_name.get_mut(&name) else {
            return false;
        };
        member.times -= 1;
        if member.times > 0 {
            return true;
        }
        member.watch.mark.leave(&self.schedule.list, name);
        if let Some(fd) = member.watch.fd.filter(|_| self.process.is_this()) {
            let _ = self.epoll.remove(fd);
        }
        members.names.remove(&address(endpoint));
        let gone = members.by_name.remove(&name);
        drop(members);
        drop(gone); // perhaps the last reference to an endpoint
        true
    }

    /// Marks those whose descriptors are readable, as many as there is room for: the others come in the next look.
    fn look(&self) {
        let mut events = Events::new();
        self.epoll.look(&mut events);
        for event in events.iter() {
            let mark = lock(&self.members)
                .by_name
                .get(&event.key)
                .map(|member| member.watch.mark.clone());
            if let Some(mark) = mark {
                mark.set_readable();
            }
        }
    }

    /// Drives the member of this name.
    fn drive(&self, name: u64) -> Option<Turn> {
        let members = lock(&self.members);
        let member = members.by_name.get(&name)?;
        let (endpoint, may_be_polled) = (member.endpoint.clone(), member.watch.fd.is_some());
        drop(members);
        let more = endpoint.turn();
        Some(Turn { may_be_polled, more })
    }

    /// Nothing can be looked for in a child of fork.
    #[cold]
    fn drive_all(&self) {
        let all: Vec<_> = lock(&self.members)
            .by_name
            .values()
            .map(|member| member.endpoint.clone())
            .collect();
        all.iter().for_each(|endpoint| endpoint.progress());
    }
}

impl Progress for Marked {
    /// Drives each that is marked once. One that is marked meanwhile comes in the next read. No lock is held while an
    /// endpoint is driven.
    fn progress(&self) {
        if !self.process.is_this() {
            return self.drive_all();
        }
        self.schedule.read(|| self.look(), |name| self.drive(name));
    }

    fn arm(&self) -> bool {
        self.schedule.arm(|| {
            if self.process.is_this() {
                self.look();
            }
        })
    }

    /// Marks ring the bell themselves. None: another thread is woken by the endpoints.
    fn wake_fd(&self) -> Option<RawFd> {
        let members = lock(&self.members);
        let endpoints: Vec<_> = members.by_name.values().map(|member| member.endpoint.clone()).collect();
        drop(members);
        let mut endpoints = endpoints.iter();
        endpoints
            .any(|endpoint| endpoint.wake_fd().is_some())
            .then(|| self.epoll.fd())
    }
}

#[cfg(test)]
mod tests;
