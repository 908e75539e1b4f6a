//! Counters: how many operations completed, with success or in error, or how many bytes they moved.
//!
//! Two numbers that endpoints step, and that programs set, read and wait for. Stepping takes no lock; at threading
//! levels where only one thread calls at a time, it is a plain load and store. Called by the shims of fi_cntr and by
//! endpoints.

use super::deferred::due::Due;
use super::errno::{Errno, Result};
use super::progress::{Attached, Progress};
use super::refs::Refs;
use super::wait::bell::Bell;
use super::wait::block::{Stopped, block};
use super::wait::marks::Marks;
use super::wait::set::WaitSet;
use super::wait::{self, Handle, Mark, Wait, Waitable};
use crate::abi::types::{FI_CNTR_EVENTS_BYTES, FI_CNTR_EVENTS_COMP, fi_cntr_events, fi_wait_obj};
use crate::abi::types::{FI_EAVAIL, FI_EBUSY, FI_EINTR, FI_EINVAL, FI_ETIMEDOUT, FI_PEER, FI_WAIT_YIELD};
use crate::util::lock::OptLock;
use crate::util::patience::Patience;
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// struct fi_cntr_attr, and what the domain adds.
#[derive(Clone)]
pub struct CntrAttr {
    pub events: fi_cntr_events,
    pub wait_obj: fi_wait_obj,
    pub wait_set: Option<Arc<WaitSet>>,
    pub flags: u64,
    /// Calls may come from several threads at once.
    pub locked: bool,
}

/// In `heed`: a thread sleeps until the counter changes.
const SLEEPERS: u8 = 1;
/// In `heed`: deferred work waits for a total.
const WORK: u8 = 2;

pub struct Cntr {
    value: AtomicU64,
    errors: AtomicU64,
    /// Who must be notified of a change: SLEEPERS, WORK.
    heed: AtomicU8,
    /// The least total that deferred work waits for, and the flag to set when it is reached.
    awaited: AtomicU64,
    due: OnceLock<Arc<Due>>,
    locked: bool,
    counts_bytes: bool,
    endpoints: Attached,
    wait: Wait,
    flags: AtomicU64,
    /// What the program itself has added to the value, by fi_cntr_set too, which makes no poll set ready. Its lock is
    /// held while such a change is made.
    by_hand: OptLock<u64>,
    /// The numbers that fi_trywait saw last, by thread.
    tried: OptLock<Marks>,
    /// The total that was read last; `patience` counts how often it was the same.
    last_read: AtomicU64,
    patience: Patience,
    refs: Refs,
}

impl Cntr {
    pub fn open(attr: &CntrAttr) -> Result<Arc<Cntr>> {
        let known = matches!(attr.events, FI_CNTR_EVENTS_COMP | FI_CNTR_EVENTS_BYTES);
        if !known || attr.flags & !FI_PEER != 0 {
            return Err(Errno(FI_EINVAL));
        }
        let wait = Wait::open(attr.wait_obj, attr.wait_set.as_ref())?;
        let cntr = Arc::new(Cntr {
            value: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            heed: AtomicU8::new(0),
            awaited: AtomicU64::new(0),
            due: OnceLock::new(),
            locked: attr.locked,
            counts_bytes: attr.events == FI_CNTR_EVENTS_BYTES,
            endpoints: wait::endpoints(&wait, attr.locked),
            wait,
            flags: AtomicU64::new(attr.flags),
            by_hand: OptLock::new(0, attr.locked),
            tried: OptLock::new(Marks::default(), attr.locked),
            last_read: AtomicU64::new(0),
            patience: Patience::default(),
            refs: Refs::default(),
        });
        cntr.wait.join(&(cntr.clone() as Arc<dyn Waitable>));
        Ok(cntr)
    }

    /// Users other than attached endpoints: memory regions, deferred work.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// Whether closing it is -FI_EBUSY.
    pub fn is_busy(&self) -> bool {
        self.endpoints.count() + self.refs.count() > 0
    }

    /// fi_close. A thread that polls a set may still have a reference to the counter, so its own uses are released
    /// here.
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

    /// Counts an operation of so many bytes that succeeded.
    #[inline]
    pub fn complete(&self, bytes: usize) {
        self.step(&self.value, if self.counts_bytes { bytes as u64 } else { 1 });
    }

    /// Counts a failed operation: one error, also where bytes are counted.
    #[inline]
    pub fn fail(&self) {
        self.step(&self.errors, 1);
    }

    /// fi_cntr_read.
    pub fn read(&self) -> u64 {
        self.look();
        self.value.load(Ordering::SeqCst)
    }

    /// fi_cntr_readerr.
    pub fn read_errors(&self) -> u64 {
        self.look();
        self.errors.load(Ordering::SeqCst)
    }

    /// Drives the endpoints, and yields the processor to them if the reader finds no change again and again.
    #[inline]
    fn look(&self) {
        self.endpoints.progress();
        let total = self.total();
        if total == self.last_read.load(Ordering::Relaxed) {
            self.patience.nothing();
        } else {
            self.last_read.store(total, Ordering::Relaxed);
            self.patience.found();
        }
    }

    /// The value as it is, without driving anything.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::SeqCst)
    }

    /// Successes and errors together, without driving anything: what deferred work waits for.
    pub fn total(&self) -> u64 {
        let errors = self.errors.load(Ordering::SeqCst);
        self.value.load(Ordering::SeqCst).saturating_add(errors)
    }

    /// Has `due` set when this total is reached; None: no work waits. The caller checks the total afterwards.
    pub fn await_total(&self, least: Option<u64>, due: &Arc<Due>) {
        let Some(least) = least else {
            self.heed.fetch_and(!WORK, Ordering::SeqCst);
            return;
        };
        self.due.get_or_init(|| due.clone());
        self.awaited.store(least, Ordering::SeqCst);
        self.heed.fetch_or(WORK, Ordering::SeqCst);
    }

    /// Deferred work adds to the value.
    pub fn advance(&self, by: u64) {
        self.step(&self.value, by);
    }

    /// Deferred work sets the value.
    pub fn assign(&self, value: u64) {
        self.put(&self.value, value);
    }

    /// fi_cntr_add.
    pub fn add(&self, value: u64) {
        let mut by_hand = self.by_hand.lock();
        self.count(&self.value, value);
        *by_hand = by_hand.wrapping_add(value);
        drop(by_hand);
        self.tell();
    }

    /// fi_cntr_adderr. Unlike fi_cntr_add, it makes poll sets ready, as the error of an operation does.
    pub fn add_errors(&self, value: u64) {
        self.step(&self.errors, value);
    }

    /// fi_cntr_set.
    pub fn set(&self, value: u64) {
        let mut by_hand = self.by_hand.lock();
        let before = self.value.swap(value, Ordering::SeqCst);
        *by_hand = by_hand.wrapping_add(value).wrapping_sub(before);
        drop(by_hand);
        self.tell();
    }

    /// fi_cntr_seterr.
    pub fn set_errors(&self, value: u64) {
        self.put(&self.errors, value);
    }

    /// fi_cntr_wait: until the value is at least `threshold`. -FI_EAVAIL: the error value changed; -FI_ETIMEDOUT;
    /// -FI_EINTR: a signal of the system came; -FI_ENOSYS: it is a member of a wait set.
    ///
    /// Not allowed with FI_WAIT_NONE, but some programs do it; then it polls.
    pub fn wait(&self, threshold: u64, timeout: c_int) -> Result<()> {
        let spare;
        let bell = match self.wait.bell() {
            None => {
                spare = Bell::new(FI_WAIT_YIELD)?;
                &spare
            }
            Some(_) => self.wait.blocking()?,
        };
        let errors = self.errors.load(Ordering::SeqCst);
        let answer = || {
            if self.value.load(Ordering::SeqCst) >= threshold {
                return Some(Ok(()));
            }
            (self.errors.load(Ordering::SeqCst) != errors).then_some(Err(Errno(FI_EAVAIL as c_int)))
        };
        let look = |_| {
            self.endpoints.progress();
            answer()
        };
        let announce = || {
            self.heed.fetch_or(SLEEPERS, Ordering::SeqCst);
            answer().is_none() && self.endpoints.arm()
        };
        let answer = block(bell, timeout, look, announce);
        answer.unwrap_or_else(|stopped| {
            Err(match stopped {
                Stopped::TimedOut => Errno(FI_ETIMEDOUT),
                Stopped::Interrupted => Errno(FI_EINTR),
                Stopped::Failed(errno) => errno,
            })
        })
    }

    /// fi_trywait.
    pub fn trywait(&self) -> Result<()> {
        let seen = Cell::new(Mark::default());
        let look = || {
            self.endpoints.progress();
            seen.set(self.now());
            self.tried.lock().replace(seen.get()) != seen.get()
        };
        self.wait.trywait(look, || self.announce(&seen.get()))
    }

    /// FI_GETWAIT.
    pub fn handle(&self) -> Result<Handle> {
        self.wait.handle()
    }

    /// FI_GETWAITOBJ.
    pub fn wait_obj(&self) -> Result<fi_wait_obj> {
        self.wait.object()
    }

    /// FI_GETOPSFLAG.
    pub fn ops_flags(&self) -> u64 {
        self.flags.load(Ordering::Relaxed)
    }

    /// FI_SETOPSFLAG.
    pub fn set_ops_flags(&self, flags: u64) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    #[inline]
    fn step(&self, number: &AtomicU64, by: u64) {
        self.count(number, by);
        self.tell();
    }

    #[inline]
    fn count(&self, number: &AtomicU64, by: u64) {
        if self.locked {
            number.fetch_add(by, Ordering::SeqCst);
        } else {
            number.store(number.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        }
    }

    fn put(&self, number: &AtomicU64, value: u64) {
        number.store(value, Ordering::SeqCst);
        self.tell();
    }

    /// SYNC POINT: a step changes the number, then reads `heed`; a sleeper or deferred work sets `heed`, then reads the
    /// number. All sequentially consistent, so one of the two sees the other.
    #[inline]
    fn tell(&self) {
        if self.heed.load(Ordering::SeqCst) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let has_work = self.heed.load(Ordering::SeqCst) & WORK != 0;
        if has_work && self.total() >= self.awaited.load(Ordering::SeqCst) {
            if let Some(due) = self.due.get() {
                due.set();
            }
        }
        if self.heed.fetch_and(!SLEEPERS, Ordering::SeqCst) & SLEEPERS != 0 {
            self.wait.raise();
        }
    }

    fn now(&self) -> Mark {
        Mark {
            value: self.value.load(Ordering::SeqCst),
            errors: self.errors.load(Ordering::SeqCst),
        }
    }

    /// Whether a number differs from `mark`, whoever changed it: a sleeper may wait for another thread's change.
    fn differs(&self, mark: &Mark) -> bool {
        let now = self.now();
        (now.value, now.errors) != (mark.value, mark.errors)
    }
}

impl Waitable for Cntr {
    fn is_closed(&self) -> bool {
        self.wait.is_closed()
    }

    fn progress(&self) {
        self.endpoints.progress();
    }

    fn ready(&self, mark: &mut Mark) -> bool {
        let changed = self.differs(mark);
        *mark = self.now();
        changed
    }

    fn polled(&self, mark: &mut Mark) -> bool {
        let by_hand = self.by_hand.lock();
        let mut now = self.now();
        now.value = now.value.wrapping_sub(*by_hand);
        core::mem::replace(mark, now) != now
    }

    fn announce(&self, mark: &Mark) -> bool {
        self.heed.fetch_or(SLEEPERS, Ordering::SeqCst);
        !self.differs(mark) && self.endpoints.arm()
    }
}

#[cfg(test)]
mod tests;
