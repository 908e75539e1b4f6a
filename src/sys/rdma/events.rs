//! What devices tell by themselves (asynchronous events): trouble of a queue pair, ports, the end of a device.
//!
//! A device has one descriptor for all events in a process, so whoever looks reads them for everybody. Each endpoint
//! has a `Watch`, which is told what concerns it, and a bell that wakes it then, as the descriptor does not once
//! another has read it. An event is acknowledged at once, as ending its object waits for that.

use super::device::Device;
use super::queues::Queues;
use super::types::*;
use crate::sys::eventfd::EventFd;
use core::ffi::c_int;
use core::mem::zeroed;
use core::sync::atomic::{AtomicU32, Ordering};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What has befallen a queue pair, or all of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It or its completion queue is in error.
    Broken,
    /// Nothing more comes from its device.
    DeviceGone,
    /// A port of its device is down, or active again.
    PortDown,
    PortUp,
}

impl Trouble {
    /// The worst first.
    const ALL: [Trouble; 4] = [Trouble::DeviceGone, Trouble::Broken, Trouble::PortDown, Trouble::PortUp];

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Of one queue pair or completion queue: what was told of it and not asked for yet.
pub struct Watch {
    told: AtomicU32,
    /// Whoever sleeps clears it, and then asks, before.
    bell: Arc<EventFd>,
}

impl Watch {
    fn tell(&self, trouble: Trouble) {
        self.told.fetch_or(trouble.bit(), Ordering::Relaxed);
        self.bell.set();
    }

    /// Each once.
    pub fn take(&self) -> Option<Trouble> {
        let told = self.told.load(Ordering::Relaxed);
        let next = Trouble::ALL.into_iter().find(|trouble| told & trouble.bit() != 0)?;
        self.told.fetch_and(!next.bit(), Ordering::Relaxed);
        Some(next)
    }
}

/// What events concern that are told to one watch: objects of libibverbs, by their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Objects {
    pub context: usize,
    /// 0: no queue pair.
    pub pair: usize,
    pub queue: usize,
}

#[derive(Default)]
pub(super) struct Watches(Vec<(Objects, Weak<Watch>)>);

impl Watches {
    pub(super) fn add(&mut self, objects: Objects, bell: &Arc<EventFd>) -> Arc<Watch> {
        self.0.retain(|(_, watch)| watch.strong_count() > 0);
        let watch = Arc::new(Watch {
            told: AtomicU32::new(0),
            bell: bell.clone(),
        });
        self.0.push((objects, Arc::downgrade(&watch)));
        watch
    }

    /// `element`: the address of the object that the event is about, if it is one.
    pub(super) fn tell(&self, context: usize, event: c_int, element: usize) {
        let trouble = match event {
            IBV_EVENT_CQ_ERR | IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR => Trouble::Broken,
            IBV_EVENT_DEVICE_FATAL => Trouble::DeviceGone,
            IBV_EVENT_PORT_ERR => Trouble::PortDown,
            IBV_EVENT_PORT_ACTIVE => Trouble::PortUp,
            _ => return,
        };
        let concerned = self.0.iter().filter(|(objects, _)| {
            let mine = match event {
                IBV_EVENT_CQ_ERR => objects.queue == element,
                _ if trouble == Trouble::Broken => objects.pair == element,
                _ => true,
            };
            mine && objects.context == context
        });
        concerned
            .filter_map(|(_, watch)| watch.upgrade())
            .for_each(|watch| watch.tell(trouble));
    }
}

fn watches() -> MutexGuard<'static, Watches> {
    static WATCHES: Mutex<Watches> = Mutex::new(Watches(Vec::new()));
    WATCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a queue pair be told of its trouble.
pub(super) fn watch(objects: Objects, bell: &Arc<EventFd>) -> Arc<Watch> {
    watches().add(objects, bell)
}

impl Queues {
    /// What their device tells of them, of its ports and of itself. Not of single queue pairs.
    pub fn watch(&self, bell: &Arc<EventFd>) -> Arc<Watch> {
        let objects = Objects {
            context: self.pd.device().context() as usize,
            pair: 0,
            queue: self.address(),
        };
        watch(objects, bell)
    }
}

impl Device {
    /// Readable while there are events that nobody has read.
    pub fn event_fd(&self) -> RawFd {
        // SAFETY: an open context.
        unsafe { (*self.context()).async_fd }
    }

    /// Reads the events that have come, and tells those whom they concern.
    pub fn look(&self) {
        if !is_readable(self.event_fd()) {
            return;
        }
        // One reader at a time, so that the one that follows the look does not wait.
        let watches = watches();
        while is_readable(self.event_fd()) {
            // SAFETY: numbers and an address, of which zero is one.
            let mut event: ibv_async_event = unsafe { zeroed() };
            // SAFETY: an open context, and a struct for the call to fill.
            if unsafe { (self.calls().ibv_get_async_event)(self.context(), &mut event) } != 0 {
                return;
            }
            watches.tell(self.context() as usize, event.event_type, event.element as usize);
            // SAFETY: the event that was just taken.
            unsafe { (self.calls().ibv_ack_async_event)(&mut event) };
        }
    }
}

/// Asked and not set on the descriptor: others who use the device may want to wait there.
fn is_readable(fd: RawFd) -> bool {
    let mut asked = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one struct for the call to fill.
    unsafe { libc::poll(&mut asked, 1, 0) == 1 && asked.revents & libc::POLLIN != 0 }
}
