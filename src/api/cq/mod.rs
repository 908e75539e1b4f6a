//! Completion queues: completions in order, for the program to read or to wait for.
//!
//! A queue knows the endpoints attached to it as `Progress` only; they post, it drives them when it is read empty. No
//! lock is held while an endpoint is called. Called by the shims of fi_cq and by endpoints.
//!
//! - `entry`: what a queue holds, and the C layouts; `queue`: the ring of entries.

pub mod entry;
mod queue;

use super::errno::{self, Errno, Result};
use super::progress::{Attached, Progress};
use super::refs::Refs;
use super::wait::block::{Stopped, block};
use super::wait::set::WaitSet;
use super::wait::{self, Handle, Mark, Wait, Waitable};
use crate::abi::types::{FI_AFFINITY, FI_EAGAIN, FI_EAVAIL, FI_EBUSY, FI_EINVAL, FI_ENOSYS, FI_PEER};
use crate::abi::types::{FI_CQ_COND_NONE, FI_CQ_COND_THRESHOLD, FI_WAIT_NONE};
use crate::abi::types::{fi_cq_format, fi_cq_wait_cond, fi_wait_obj};
use crate::util::lock::OptLock;
use crate::util::patience::Patience;
use crate::util::user_array::UserArray;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub use entry::{Entry, ErrorEntry, Format, error_size};
use queue::{NOBODY, Queue, Taken};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The size of a queue for which the program names none.
const DEFAULT_SIZE: usize = 1024;

/// After so many reads that found entries, one drives the endpoints too. Driving costs about as much as reading.
const MOST_UNDRIVEN: u32 = 64;

/// A larger size is taken as a mistake.
const MAX_SIZE: usize = 1 << 31;

const AGAIN: Errno = Errno(FI_EAGAIN);
const INVALID: Errno = Errno(FI_EINVAL);

/// struct fi_cq_attr, and what the domain adds.
#[derive(Clone)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: fi_cq_format,
    pub wait_obj: fi_wait_obj,
    pub wait_cond: fi_cq_wait_cond,
    pub wait_set: Option<Arc<WaitSet>>,
    /// FI_RM_ENABLED: entries beyond the queue's size are kept; else they are an overrun.
    pub managed: bool,
    /// Several threads may call at once.
    pub locked: bool,
}

pub struct Cq {
    queue: OptLock<Queue>,
    /// Whether the queue has something: lets a poll of an empty queue skip the lock. Written under the lock only.
    filled: AtomicBool,
    /// Whether a read lends its array to the queue. Where several threads may call, that would take two more atomic
    /// instructions in each empty poll.
    lends: bool,
    /// Reads in a row that found entries and drove no endpoint.
    undriven: AtomicU32,
    endpoints: Attached,
    wait: Wait,
    signals: Mutex<Signals>,
    format: Format,
    by_threshold: bool,
    patience: Patience,
    refs: Refs,
}

/// fi_cq_signal and the threads that wait. Has its own lock, as signals come from other threads at any threading level.
#[derive(Default)]
struct Signals {
    count: u64,
    waiting: usize,
    /// A signal came while no thread waited: the next wait returns at once.
    kept: bool,
}

impl Cq {
    pub fn open(attr: &CqAttr) -> Result<Arc<Cq>> {
        let format = Format::of(attr.format).ok_or(INVALID)?;
        let known_condition = matches!(attr.wait_cond, FI_CQ_COND_NONE | FI_CQ_COND_THRESHOLD);
        if attr.flags & !(FI_AFFINITY | FI_PEER) != 0 || (attr.wait_obj != FI_WAIT_NONE && !known_condition) {
            return Err(INVALID);
        }
        let size = if attr.size == 0 { DEFAULT_SIZE } else { attr.size };
        if size > MAX_SIZE {
            return Err(INVALID);
        }
        let wait = Wait::open(attr.wait_obj, attr.wait_set.as_ref())?;
        let cq = Arc::new(Cq {
            queue: OptLock::new(Queue::new(size.next_power_of_two(), attr.managed), attr.locked),
            filled: AtomicBool::new(false),
            lends: !attr.locked,
            undriven: AtomicU32::new(0),
            endpoints: wait::endpoints(&wait, attr.locked),
            wait,
            signals: Mutex::default(),
            format,
            by_threshold: attr.wait_cond == FI_CQ_COND_THRESHOLD,
            patience: Patience::default(),
            refs: Refs::default(),
        });
        cq.wait.join(&(cq.clone() as Arc<dyn Waitable>));
        Ok(cq)
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Users other than attached endpoints.
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

    /// Has reading drive this endpoint. Once for each binding.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) {
        self.endpoints.attach(endpoint);
    }

    /// Takes back one `attach`, before the endpoint closes its descriptor.
    pub fn detach(&self, endpoint: &Arc<dyn Progress>) -> Result<()> {
        self.endpoints.detach(endpoint)
    }

    /// Writes the entry of a success. A full queue keeps it if it is managed, else it is overrun and says so.
    #[inline(always)]
    pub fn post(&self, entry: &Entry) {
        let mut queue = self.queue.lock();
        if !queue.push(entry) {
            return;
        }
        self.filled.store(true, Ordering::Release);
        if queue.is_awaited() {
            self.wake(&mut queue);
        }
    }

    /// Writes an error entry, which is never dropped, and wakes waiters whatever their threshold.
    #[cold]
    pub fn post_error(&self, error: ErrorEntry) {
        let mut queue = self.queue.lock();
        queue.push_error(error);
        self.filled.store(true, Ordering::Release);
        if queue.wake_at != NOBODY {
            self.wake(&mut queue);
        }
    }

    /// Whether `count` more entries fit into the size that the program chose. An endpoint takes no work unless they do.
    #[inline]
    pub fn has_room(&self, count: usize) -> bool {
        self.queue.lock().has_room(count)
    }

    /// Whether the read that drives the endpoint now gets something, or else the next one will.
    pub fn has_told(&self) -> bool {
        self.queue.lock().has_told()
    }

    /// Whether entries were dropped for want of room.
    pub fn is_overrun(&self) -> bool {
        self.queue.lock().is_overrun()
    }

    /// fi_cq_read and fi_cq_readfrom: fills the array with entries, oldest first, and says with how many. -FI_EAGAIN:
    /// there are none; -FI_EAVAIL: an error is next. A read of 0 entries drives the endpoints and says whether there
    /// are any.
    #[inline(always)]
    pub fn read(&self, array: UserArray) -> Result<usize> {
        if array.left() > 0
            && let Some(answer) = self.take(array)
        {
            if self.is_overdue() {
                self.endpoints.progress();
            }
            return answer;
        }
        if let Some(answer) = self.drive(array) {
            self.patience.found();
            return answer;
        }
        self.patience.nothing();
        Err(AGAIN)
    }

    /// fi_cq_sread and fi_cq_sreadfrom. `threshold`: how many entries to wait for, if the queue was opened for that.
    /// -FI_EAGAIN: the time is over, or a signal came.
    pub fn sread(&self, array: UserArray, threshold: usize, timeout: c_int) -> Result<usize> {
        let bell = self.wait.blocking()?;
        let enough = if self.by_threshold { threshold } else { 1 };
        let enough = enough.clamp(1, self.queue.lock().capacity());
        let last_read = || self.read_enough(array, 1).unwrap_or(Err(AGAIN));
        if let Some(answer) = self.read_enough(array, enough) {
            return answer;
        }
        if timeout == 0 {
            return last_read();
        }
        let Some(before) = self.begin_wait() else {
            return last_read();
        };
        let look = |_| match self.read_enough(array, enough) {
            None if self.signals().count != before => Some(Err(AGAIN)),
            answer => answer,
        };
        let answer = block(bell, timeout, look, || self.announce_for(enough));
        self.end_wait();
        match answer {
            Ok(Err(AGAIN)) | Err(Stopped::TimedOut | Stopped::Interrupted) => last_read(),
            Ok(answer) => answer,
            Err(Stopped::Failed(errno)) => Err(errno),
        }
    }

    /// fi_cq_readerr: the next entry, if it is an error. The error's data stays valid until the next call.
    pub fn read_error<R>(&self, give: impl FnOnce(&ErrorEntry) -> R) -> Result<R> {
        self.queue.lock().take_error().map(give).ok_or(AGAIN)
    }

    /// fi_cq_signal: all waits in `sread` return; if there are none, the next one does.
    pub fn signal(&self) -> Result<()> {
        let bell = self.wait.bell().ok_or(Errno(FI_ENOSYS))?;
        let mut signals = self.signals();
        if signals.waiting > 0 {
            signals.count += 1;
        } else {
            signals.kept = true;
        }
        drop(signals);
        bell.raise();
        Ok(())
    }

    /// fi_cq_strerror.
    pub fn strerror(&self, prov_errno: c_int) -> &'static CStr {
        errno::text(prov_errno)
    }

    /// fi_trywait.
    pub fn trywait(&self) -> Result<()> {
        let look = || {
            self.endpoints.progress();
            self.queue.lock().is_ready()
        };
        self.wait.trywait(look, || self.announce_for(1))
    }

    /// FI_GETWAIT.
    pub fn handle(&self) -> Result<Handle> {
        self.wait.handle()
    }

    /// FI_GETWAITOBJ.
    pub fn wait_obj(&self) -> Result<fi_wait_obj> {
        self.wait.object()
    }

    /// Counts a read that found entries, and so drove nothing. Some reads must drive all the same: else a program whose
    /// queue is never empty would return no credit to its peers, nor get any. Two threads at once may lose a count.
    #[inline]
    fn is_overdue(&self) -> bool {
        let reads = self.undriven.load(Ordering::Relaxed) + 1;
        let overdue = reads >= MOST_UNDRIVEN;
        self.undriven.store(if overdue { 0 } else { reads }, Ordering::Relaxed);
        overdue
    }

    /// Drives the endpoints, which write to the array at once if it may be lent; None: nothing has come.
    #[inline(always)]
    fn drive(&self, array: UserArray) -> Option<Result<usize>> {
        if self.lends {
            self.queue.lock().lend(array);
        }
        self.endpoints.progress();
        if self.lends {
            let filled = self.queue.lock().take_back();
            if filled > 0 {
                return Some(Ok(filled));
            }
        }
        self.take(array)
    }

    /// Takes what is in the queue; None: nothing.
    #[inline(always)]
    fn take(&self, mut array: UserArray) -> Option<Result<usize>> {
        // SYNC POINT: meets the release in `post`. Seen late, the entry is read late.
        if !self.filled.load(Ordering::Acquire) {
            return None;
        }
        let mut queue = self.queue.lock();
        let taken = queue.take(
            array.left(),
            #[inline(always)]
            |entry| {
                entry.put(&mut array);
            },
        );
        if queue.restart_if_read() {
            self.filled.store(false, Ordering::Relaxed);
        }
        match taken {
            Taken::Entries(taken) => Some(Ok(taken)),
            Taken::Error => Some(Err(Errno(FI_EAVAIL as c_int))),
            Taken::Empty => None,
        }
    }

    /// Reads if there are `enough` entries or an error; None: not yet.
    fn read_enough(&self, array: UserArray, enough: usize) -> Option<Result<usize>> {
        if enough > 1 && !self.queue.lock().has_enough(enough) {
            self.endpoints.progress();
            if !self.queue.lock().has_enough(enough) {
                return None;
            }
        }
        match self.read(array) {
            Err(AGAIN) => None,
            answer => Some(answer),
        }
    }

    /// Wakes all waiters: each sees for itself whether it has what it waits for.
    #[cold]
    fn wake(&self, queue: &mut Queue) {
        queue.wake_at = NOBODY;
        self.wait.raise();
    }

    fn announce_for(&self, enough: usize) -> bool {
        let mut queue = self.queue.lock();
        if queue.has_enough(enough) {
            return false;
        }
        queue.wake_at = queue.wake_at.min(enough);
        drop(queue);
        self.endpoints.arm()
    }

    /// Begins a wait that a signal may end; None: a kept signal has ended it.
    fn begin_wait(&self) -> Option<u64> {
        let mut signals = self.signals();
        if core::mem::take(&mut signals.kept) {
            return None;
        }
        signals.waiting += 1;
        Some(signals.count)
    }

    fn end_wait(&self) {
        self.signals().waiting -= 1;
    }

    fn signals(&self) -> MutexGuard<'_, Signals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waitable for Cq {
    fn is_closed(&self) -> bool {
        self.wait.is_closed()
    }

    fn progress(&self) {
        self.endpoints.progress();
    }

    fn ready(&self, _: &mut Mark) -> bool {
        self.queue.lock().is_ready()
    }

    fn announce(&self, _: &Mark) -> bool {
        self.announce_for(1)
    }
}

#[cfg(test)]
pub(crate) mod tests;
