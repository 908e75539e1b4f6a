//! Wait sets: several queues and counters waited for together (fi_wait_open, fi_wait; FI_WAIT_SET).
//!
//! The members share the set's bell. The set's references to them are weak: a member leaves by being closed. Knows
//! members as `Waitable` only. Called by the shims, and by `Wait` on behalf of the members.

use super::bell::Bell;
use super::block::{Stopped, block};
use super::{Handle, Mark, Wait, Waitable};
use crate::abi::types::{FI_EINTR, FI_EINVAL, FI_ETIMEDOUT, FI_WAIT_NONE, FI_WAIT_SET, fi_wait_obj};
use crate::api::errno::{Errno, Result};
use crate::api::refs::Refs;
use core::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub struct WaitSet {
    wait: Wait,
    bell: Arc<Bell>,
    members: Mutex<Vec<WaitSetMember>>,
    refs: Refs,
}

struct WaitSetMember {
    object: Weak<dyn Waitable>,
    mark: Mark,
}

impl WaitSet {
    /// fi_wait_open: UNSPEC, FD, POLLFD, MUTEX_COND or YIELD, and no flags.
    pub fn open(object: fi_wait_obj, flags: u64) -> Result<Arc<WaitSet>> {
        if flags != 0 || matches!(object, FI_WAIT_NONE | FI_WAIT_SET) {
            return Err(Errno(FI_EINVAL));
        }
        let wait = Wait::open(object, None)?;
        let bell = wait.bell().cloned().ok_or(Errno(FI_EINVAL))?;
        Ok(Arc::new(WaitSet {
            wait,
            bell,
            members: Mutex::default(),
            refs: Refs::default(),
        }))
    }

    /// How many open objects use the set; closing it is then -FI_EBUSY.
    pub fn refs(&self) -> usize {
        self.refs.count()
    }

    /// fi_wait: 0 when something may be read, -FI_ETIMEDOUT, or -FI_EINTR.
    pub fn wait(&self, timeout: c_int) -> Result<()> {
        let look = |rung: bool| (self.look() || rung).then_some(());
        block(&self.bell, timeout, look, || self.announce()).map_err(|stopped| match stopped {
            Stopped::TimedOut => Errno(FI_ETIMEDOUT),
            Stopped::Interrupted => Errno(FI_EINTR),
            Stopped::Failed(errno) => errno,
        })
    }

    /// fi_trywait.
    pub fn trywait(&self) -> Result<()> {
        self.wait.trywait(|| self.look(), || self.announce())
    }

    /// FI_GETWAITOBJ.
    pub fn object(&self) -> Result<fi_wait_obj> {
        self.wait.object()
    }

    /// FI_GETWAIT.
    pub fn handle(&self) -> Result<Handle> {
        self.wait.handle()
    }

    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    pub(super) fn acquire(&self) {
        self.refs.acquire();
    }

    /// Takes a closed member out, though another thread may still be looking at it.
    pub(super) fn leave(&self, object: &dyn Waitable) {
        self.members()
            .retain(|member| !core::ptr::addr_eq(member.object.as_ptr(), object));
        self.refs.release();
    }

    /// Releases the set for a member that was dropped without being closed.
    pub(super) fn release(&self) {
        self.refs.release();
        self.members().retain(|member| member.object.strong_count() > 0);
    }

    pub(super) fn join(&self, object: &Arc<dyn Waitable>) {
        self.members().push(WaitSetMember {
            object: Arc::downgrade(object),
            mark: Mark::default(),
        });
        // Wakes sleepers, so that they announce their sleep to the new member too.
        self.bell.raise();
    }

    /// Drives all members, then says whether one has something to read.
    fn look(&self) -> bool {
        self.each(|object, _| {
            object.progress();
            true
        });
        let mut any = false;
        self.each(|object, mark| {
            any |= object.ready(mark);
            true
        });
        any
    }

    fn announce(&self) -> bool {
        let mut all = true;
        self.each(|object, mark| {
            all = object.announce(mark);
            all
        });
        all
    }

    /// Visits members until one returns false. Not under the lock, as a thread that drives a member may close it.
    fn each(&self, mut visit: impl FnMut(&dyn Waitable, &mut Mark) -> bool) {
        let members: Vec<_> = self
            .members()
            .iter()
            .map(|member| (member.object.upgrade(), member.mark))
            .collect();
        for (object, mut mark) in members {
            let Some(object) = object.filter(|object| !object.is_closed()) else {
                continue;
            };
            let before = mark;
            let go_on = visit(&*object, &mut mark);
            if mark != before {
                self.remember(&object, mark);
            }
            if !go_on {
                break;
            }
        }
    }

    fn remember(&self, object: &Arc<dyn Waitable>, mark: Mark) {
        let of = |member: &&mut WaitSetMember| core::ptr::addr_eq(member.object.as_ptr(), Arc::as_ptr(object));
        if let Some(member) = self.members().iter_mut().find(of) {
            member.mark = mark;
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<WaitSetMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::*;
    use crate::api::cntr::{Cntr, CntrAttr};
    use crate::api::cq::entry::Entry;
    use crate::api::cq::{Cq, CqAttr};
    use crate::api::eq::{Eq, EqAttr};
    use crate::api::progress::tests::Worker;
    use crate::sys::epoll::Epoll;

    fn cq(set: &Arc<WaitSet>) -> Arc<Cq> {
        let attr = CqAttr {
            size: 0,
            flags: 0,
            format: FI_CQ_FORMAT_CONTEXT,
            wait_obj: FI_WAIT_SET,
            wait_cond: FI_CQ_COND_NONE,
            wait_set: Some(set.clone()),
            managed: true,
            locked: true,
        };
        Cq::open(&attr).unwrap()
    }

    fn cntr(set: &Arc<WaitSet>) -> Arc<Cntr> {
        let attr = CntrAttr {
            events: FI_CNTR_EVENTS_COMP,
            wait_obj: FI_WAIT_SET,
            wait_set: Some(set.clone()),
            flags: 0,
            locked: true,
        };
        Cntr::open(&attr).unwrap()
    }

    fn eq(set: &Arc<WaitSet>) -> Arc<Eq> {
        let attr = EqAttr {
            size: 0,
            flags: FI_WRITE,
            wait_obj: FI_WAIT_SET,
            wait_set: Some(set.clone()),
        };
        Eq::open(&attr).unwrap()
    }

    #[test]
    fn attributes_are_checked() {
        let table = [
            (FI_WAIT_UNSPEC, 0, Ok(FI_WAIT_FD)),
            (FI_WAIT_FD, 0, Ok(FI_WAIT_FD)),
            (FI_WAIT_POLLFD, 0, Ok(FI_WAIT_POLLFD)),
            (FI_WAIT_MUTEX_COND, 0, Ok(FI_WAIT_MUTEX_COND)),
            (FI_WAIT_YIELD, 0, Ok(FI_WAIT_YIELD)),
            (FI_WAIT_NONE, 0, Err(Errno(FI_EINVAL))),
            (FI_WAIT_SET, 0, Err(Errno(FI_EINVAL))),
            (FI_WAIT_FD, 1, Err(Errno(FI_EINVAL))),
        ];
        for (object, flags, expected) in table {
            assert_eq!(
                WaitSet::open(object, flags).and_then(|set| set.object()),
                expected,
                "{object} {flags}"
            );
        }
    }

    #[test]
    fn members_come_and_go() {
        let set = WaitSet::open(FI_WAIT_FD, 0).unwrap();
        let (one, two) = (cq(&set), cntr(&set));
        assert_eq!(
            (set.refs(), one.wait_obj(), one.handle()),
            (2, Ok(FI_WAIT_FD), set.handle())
        );
        assert_eq!(one.sread(1, 1, 0, |_| ()), Err(Errno(FI_ENOSYS)));
        assert_eq!(two.wait(0, 0), Err(Errno(FI_ENOSYS)));
        one.post(&Entry::default());
        assert_eq!(set.wait(-1), Ok(()));
        drop(one);
        assert_eq!((set.refs(), set.members().len()), (1, 1));
        assert_eq!(set.wait(0), Err(Errno(FI_ETIMEDOUT)));
        drop(two);
        assert_eq!((set.refs(), set.members().len()), (0, 0));
    }

    /// A thread that looks at the set has a reference for a moment, which must not make the set busy.
    #[test]
    fn a_closed_member_is_none_though_somebody_has_it() {
        let set = WaitSet::open(FI_WAIT_FD, 0).unwrap();
        let (one, two, three) = (cq(&set), cntr(&set), eq(&set));
        one.post(&Entry::default());
        assert_eq!((one.close(), set.refs(), set.members().len()), (Ok(()), 2, 2));
        assert_eq!(set.wait(0), Err(Errno(FI_ETIMEDOUT)));
        assert_eq!((two.close(), three.close(), set.refs()), (Ok(()), Ok(()), 0));
        drop((one, two, three));
        assert_eq!((set.refs(), set.members().len()), (0, 0));
    }

    #[test]
    fn the_descriptor_follows_trywait() {
        let set = WaitSet::open(FI_WAIT_FD, 0).unwrap();
        let (cq, cntr, eq) = (cq(&set), cntr(&set), eq(&set));
        let Ok(Handle::Fd(fd)) = set.handle() else {
            panic!("no descriptor")
        };
        let epoll = Epoll::new().unwrap();
        epoll.add(fd).unwrap();
        let readable = || epoll.wait(0).unwrap() == 1;
        let again = Err(Errno(FI_EAGAIN));
        assert_eq!((set.trywait(), readable()), (Ok(()), false));
        cq.post(&Entry::default());
        assert_eq!((readable(), set.trywait(), cq.trywait()), (true, again, again));
        assert_eq!(cq.read(1, |_| ()), Ok(1));
        assert_eq!((cq.trywait(), readable()), (Ok(()), false));
        cntr.complete(0);
        assert_eq!((readable(), set.trywait()), (true, again));
        assert_eq!((set.trywait(), readable()), (Ok(()), false));
        eq.write(FI_NOTIFY, &[]).unwrap();
        assert_eq!((readable(), set.trywait()), (true, again));
    }

    #[test]
    fn a_sleeper_is_woken_by_any_member() {
        const ROUNDS: usize = 100;
        for object in [FI_WAIT_UNSPEC, FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD] {
            let set = WaitSet::open(object, 0).unwrap();
            let (cq, cntr, eq) = (cq(&set), cntr(&set), eq(&set));
            let inner = Arc::downgrade(&cq);
            let endpoint = Worker::new(move || inner.upgrade().unwrap().post(&Entry::default()));
            cq.attach(endpoint.clone());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut entries, mut events) = (0, 0);
                    while entries < 2 * ROUNDS || events < ROUNDS || cntr.value() < ROUNDS as u64 {
                        assert_eq!(set.wait(-1), Ok(()));
                        while let Ok(read) = cq.read(8, |_| ()) {
                            entries += read;
                        }
                        while eq.read(0, Some(0), |_, _| ()).is_ok() {
                            events += 1;
                        }
                    }
                });
                for _ in 0..ROUNDS {
                    endpoint.hand_in(1);
                    std::thread::yield_now();
                    cntr.complete(0);
                    std::thread::yield_now();
                    eq.write(FI_NOTIFY, &[]).unwrap();
                    cq.post(&Entry::default());
                }
            });
        }
    }

    #[test]
    fn a_signal_wakes_the_set() {
        let set = WaitSet::open(FI_WAIT_FD, 0).unwrap();
        let cq = cq(&set);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| set.wait(-1));
            while !waiter.is_finished() {
                cq.signal().unwrap();
                std::thread::yield_now();
            }
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
    }
}
