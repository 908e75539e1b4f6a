//! Queues, counters and event queues in one set: who is a member, what fi_trywait promises, and who wakes a sleeper.

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
    assert_eq!(one.sread_each(1, 1, 0, |_| ()), Err(Errno(FI_ENOSYS)));
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
    assert_eq!(cq.read_each(1, |_| ()), Ok(1));
    assert_eq!((cq.trywait(), readable()), (Ok(()), false));
    cntr.complete(0);
    assert_eq!((readable(), set.trywait()), (true, again));
    assert_eq!((set.trywait(), readable()), (Ok(()), false));
    eq.write(FI_NOTIFY, &[]).unwrap();
    assert_eq!((readable(), set.trywait()), (true, again));
}

/// Whoever goes to sleep on the set is told of a counter's change, though another thread was told of it.
#[test]
fn trywait_tells_every_thread_of_a_change() {
    let set = WaitSet::open(FI_WAIT_FD, 0).unwrap();
    let cntr = cntr(&set);
    let elsewhere = || {
        let tries = || (set.trywait(), set.wait(0), set.trywait());
        std::thread::scope(|scope| scope.spawn(tries).join().unwrap())
    };
    let again = Err(Errno(FI_EAGAIN));
    assert_eq!(set.trywait(), Ok(()));
    cntr.complete(0);
    assert_eq!(elsewhere(), (again, Err(Errno(FI_ETIMEDOUT)), Ok(())));
    assert_eq!((set.trywait(), set.trywait()), (again, Ok(())));
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
                    while let Ok(read) = cq.read_each(8, |_| ()) {
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
