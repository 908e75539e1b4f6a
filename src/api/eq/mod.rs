//! Event queues: events other than completions of data transfers, in order, for the program to read or to wait for.
//!
//! Events are rare, so a queue always has its lock, whatever the threading level. Errors stand in line with the other
//! events. Called by the shims of fi_eq, and by address vectors, memory regions and endpoints that post.
//!
//! - `event`: what a queue holds, and the C layouts.

pub mod event;

use super::errno::{self, Errno, Result};
use super::progress::{Attached, Progress};
use super::refs::Refs;
use super::wait::block::{Stopped, block};
use super::wait::set::WaitSet;
use super::wait::{self, Handle, Mark, Wait, Waitable};
use crate::abi::types::{FI_AFFINITY, FI_EAGAIN, FI_EAVAIL, FI_EBUSY, FI_EINVAL, FI_ENOMEM, FI_EOVERRUN, FI_ETOOSMALL};
use crate::abi::types::{FI_PEEK, FI_PEER, FI_WRITE, fi_eq_err_entry, fi_wait_obj};
use crate::util::patience::Patience;
use core::ffi::{CStr, c_int};
use event::{ErrorEvent, Event, entry_bytes};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The least number of events that a queue holds before it is overrun. Large, as an asynchronous insertion may report
/// an error for each address at once.
const LIMIT: usize = 1 << 20;

/// struct fi_eq_attr.
#[derive(Clone)]
pub struct EqAttr {
    pub size: usize,
    pub flags: u64,
    pub wait_obj: fi_wait_obj,
    pub wait_set: Option<Arc<WaitSet>>,
}

pub struct Eq {
    state: Mutex<EqState>,
    endpoints: Attached,
    wait: Wait,
    writable: bool,
    patience: Patience,
    refs: Refs,
}

struct EqState {
    events: VecDeque<Waiting>,
    limit: usize,
    overrun: bool,
    /// The error read last: the program may look at its data until it reads the next.
    last: ErrorEvent,
    /// A thread sleeps until an event comes.
    armed: bool,
}

enum Waiting {
    Event(Event),
    Error(ErrorEvent),
}

impl Eq {
    pub fn open(attr: &EqAttr) -> Result<Arc<Eq>> {
        Eq::with_limit(attr, LIMIT)
    }

    fn with_limit(attr: &EqAttr, limit: usize) -> Result<Arc<Eq>> {
        if attr.flags & !(FI_AFFINITY | FI_WRITE | FI_PEER) != 0 {
            return Err(Errno(FI_EINVAL));
        }
        let wait = Wait::open(attr.wait_obj, attr.wait_set.as_ref())?;
        let eq = Arc::new(Eq {
            state: Mutex::new(EqState {
                events: VecDeque::new(),
                limit: attr.size.max(limit),
                overrun: false,
                last: ErrorEvent::default(),
                armed: false,
            }),
            endpoints: wait::endpoints(&wait, true),
            wait,
            writable: attr.flags & FI_WRITE != 0,
            patience: Patience::default(),
            refs: Refs::default(),
        });
        eq.wait.join(&(eq.clone() as Arc<dyn Waitable>));
        Ok(eq)
    }

    /// Objects bound to the queue, besides the endpoints that it drives.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// Whether closing it is -FI_EBUSY.
    pub fn is_busy(&self) -> bool {
        self.endpoints.count() + self.refs.count() > 0
    }

    /// fi_close. A thread that polls a set may still have a reference to the queue, so its own uses are released here.
    pub fn close(&self) -> Result<()> {
        if self.is_busy() {
            return Err(Errno(FI_EBUSY));
        }
        self.wait.close(self);
        Ok(())
    }

    /// Has reading drive this endpoint, whose events need its progress. Counts as bound.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) {
        self.endpoints.attach(endpoint);
    }

    /// Takes back one `attach`, before the endpoint closes its descriptor.
    pub fn detach(&self, endpoint: &Arc<dyn Progress>) -> Result<()> {
        self.endpoints.detach(endpoint)
    }

    /// Writes an event about the object `fid` (0: none), with its struct as bytes. -FI_EOVERRUN: the event is lost,
    /// which the program is told.
    pub fn post(&self, event: u32, fid: usize, bytes: &[u8]) -> Result<()> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len()).map_err(|_| Errno(FI_ENOMEM))?;
        copy.extend_from_slice(bytes);
        self.push(Waiting::Event(Event {
            event,
            fid,
            bytes: copy.into_boxed_slice(),
        }))
    }

    /// Reports an event whose struct is `fi_eq_entry`: FI_AV_COMPLETE, FI_MR_COMPLETE, FI_JOIN_COMPLETE.
    pub fn post_entry(&self, event: u32, fid: usize, context: usize, data: u64) -> Result<()> {
        self.post(event, fid, &entry_bytes(fid, context, data))
    }

    /// Reports a failure.
    pub fn post_error(&self, error: ErrorEvent) -> Result<()> {
        self.push(Waiting::Error(error))
    }

    /// fi_eq_write: an event of the program's own. Returns its bytes. -FI_EINVAL: not opened with FI_WRITE.
    pub fn write(&self, event: u32, bytes: &[u8]) -> Result<usize> {
        if !self.writable {
            return Err(Errno(FI_EINVAL));
        }
        self.post(event, 0, bytes).map(|()| bytes.len())
    }

    /// fi_eq_read: passes the next event to `give`, as its number and as many bytes as there is `room` for (None: the
    /// program has no buffer). Returns the number of bytes. FI_PEEK leaves it in the queue. -FI_EAGAIN: there is none;
    /// -FI_EAVAIL: an error is next; -FI_ETOOSMALL: it stays.
    pub fn read(&self, flags: u64, room: Option<usize>, give: impl FnOnce(u32, &[u8])) -> Result<usize> {
        self.endpoints.progress();
        let mut state = self.state();
        let event = match state.events.front() {
            Some(Waiting::Event(event)) => event,
            Some(Waiting::Error(_)) => return Err(Errno(FI_EAVAIL as c_int)),
            None if state.overrun => return Err(Errno(FI_EAVAIL as c_int)),
            None => {
                drop(state);
                self.patience.nothing();
                return Err(Errno(FI_EAGAIN));
            }
        };
        self.patience.found();
        let len = room.map_or(Some(0), |room| event.fits(room));
        let len = len.ok_or(Errno(FI_ETOOSMALL as c_int))?;
        give(event.event, event.bytes.get(..len).unwrap_or_default());
        if flags & FI_PEEK == 0 {
            state.events.pop_front();
        }
        Ok(len)
    }

    /// fi_eq_sread: as `read`, but waits. -FI_EAGAIN: the time is over, or a signal of the system came; -FI_ENOSYS: the
    /// queue was opened with FI_WAIT_NONE.
    pub fn sread(
        &self,
        flags: u64,
        room: Option<usize>,
        timeout: c_int,
        mut give: impl FnMut(u32, &[u8]),
    ) -> Result<usize> {
        let bell = self.wait.blocking()?;
        let look = |_| match self.read(flags, room, &mut give) {
            Err(Errno(FI_EAGAIN)) => None,
            answer => Some(answer),
        };
        let answer = block(bell, timeout, look, || self.announce_any());
        answer.unwrap_or_else(|stopped| match stopped {
            Stopped::TimedOut | Stopped::Interrupted => Err(Errno(FI_EAGAIN)),
            Stopped::Failed(errno) => Err(errno),
        })
    }

    /// fi_eq_readerr: the next event, if it is an error. Its data stays valid until the next call. Returns the size of
    /// the struct.
    pub fn read_error(&self, flags: u64, give: impl FnOnce(&ErrorEvent)) -> Result<usize> {
        let mut state = self.state();
        let peek = flags & FI_PEEK != 0;
        match state.events.front() {
            Some(Waiting::Error(error)) if peek => give(error),
            Some(Waiting::Error(_)) => {
                if let Some(Waiting::Error(error)) = state.events.pop_front() {
                    state.last = error;
                }
                give(&state.last);
            }
            None if state.overrun => {
                state.last = ErrorEvent {
                    err: FI_EOVERRUN as c_int,
                    prov_errno: FI_EOVERRUN as c_int,
                    ..ErrorEvent::default()
                };
                give(&state.last);
            }
            Some(Waiting::Event(_)) | None => return Err(Errno(FI_EAGAIN)),
        }
        Ok(size_of::<fi_eq_err_entry>())
    }

    /// fi_eq_strerror.
    pub fn strerror(&self, prov_errno: c_int) -> &'static CStr {
        errno::text(prov_errno)
    }

    /// Takes out the events of an object that is being closed, for the caller to free what they own.
    pub fn forget(&self, fid: usize) -> Vec<Event> {
        let mut forgotten = Vec::new();
        let mut state = self.state();
        let events = core::mem::take(&mut state.events);
        for waiting in events {
            match waiting {
                Waiting::Event(event) if event.fid == fid && fid != 0 => forgotten.push(event),
                Waiting::Error(error) if error.fid == fid && fid != 0 => {}
                other => state.events.push_back(other),
            }
        }
        forgotten
    }

    /// fi_trywait.
    pub fn trywait(&self) -> Result<()> {
        let look = || {
            self.endpoints.progress();
            self.state().is_ready()
        };
        self.wait.trywait(look, || self.announce_any())
    }

    /// FI_GETWAIT.
    pub fn handle(&self) -> Result<Handle> {
        self.wait.handle()
    }

    /// FI_GETWAITOBJ.
    pub fn wait_obj(&self) -> Result<fi_wait_obj> {
        self.wait.object()
    }

    fn push(&self, waiting: Waiting) -> Result<()> {
        let mut state = self.state();
        if state.overrun || state.events.len() >= state.limit {
            state.overrun = true;
            return Err(Errno(FI_EOVERRUN as c_int));
        }
        state.events.push_back(waiting);
        if core::mem::take(&mut state.armed) {
            self.wait.raise();
        }
        Ok(())
    }

    fn announce_any(&self) -> bool {
        let mut state = self.state();
        if state.is_ready() {
            return false;
        }
        state.armed = true;
        drop(state);
        self.endpoints.arm()
    }

    fn state(&self) -> MutexGuard<'_, EqState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EqState {
    fn is_ready(&self) -> bool {
        !self.events.is_empty() || self.overrun
    }
}

impl Waitable for Eq {
    fn is_closed(&self) -> bool {
        self.wait.is_closed()
    }

    fn progress(&self) {
        self.endpoints.progress();
    }

    fn ready(&self, _: &mut Mark) -> bool {
        self.state().is_ready()
    }

    fn announce(&self, _: &Mark) -> bool {
        self.announce_any()
    }
}

#[cfg(test)]
mod tests;
