//! Counters alone: their numbers, their waits, and what wakes them.

use super::*;
use crate::abi::types::*;
use crate::api::progress::tests::Worker;
use crate::sys::epoll::Epoll;

fn open(events: fi_cntr_events, wait_obj: fi_wait_obj, locked: bool) -> Arc<Cntr> {
    let attr = CntrAttr {
        events,
        wait_obj,
        wait_set: None,
        flags: 0,
        locked,
    };
    Cntr::open(&attr).unwrap()
}

#[test]
fn attributes_are_checked() {
    let good = CntrAttr {
        events: FI_CNTR_EVENTS_COMP,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
        flags: 0,
        locked: true,
    };
    let bad = [
        CntrAttr {
            events: 2,
            ..good.clone()
        },
        CntrAttr {
            flags: 1,
            ..good.clone()
        },
        CntrAttr {
            wait_obj: 7,
            ..good.clone()
        },
        CntrAttr {
            wait_obj: FI_WAIT_SET,
            ..good.clone()
        },
    ];
    assert!(Cntr::open(&good).is_ok());
    for attr in bad {
        assert_eq!(Cntr::open(&attr).err(), Some(Errno(FI_EINVAL)));
    }
}

#[test]
fn numbers_go_as_the_page_says() {
    for locked in [true, false] {
        for (events, expected) in [(FI_CNTR_EVENTS_COMP, 2), (FI_CNTR_EVENTS_BYTES, 130)] {
            let cntr = open(events, FI_WAIT_NONE, locked);
            cntr.complete(100);
            cntr.complete(30);
            cntr.fail();
            assert_eq!((cntr.read(), cntr.read_errors()), (expected, 1));
            cntr.add(5);
            cntr.add_errors(7);
            assert_eq!((cntr.read(), cntr.read_errors()), (expected + 5, 8));
            cntr.set(u64::MAX);
            cntr.set_errors(3);
            assert_eq!((cntr.read(), cntr.read_errors()), (u64::MAX, 3));
            cntr.add(2);
            assert_eq!(cntr.read(), 1);
        }
    }
}

#[test]
fn waits_end_as_they_must() {
    for object in [
        FI_WAIT_UNSPEC,
        FI_WAIT_FD,
        FI_WAIT_POLLFD,
        FI_WAIT_MUTEX_COND,
        FI_WAIT_YIELD,
        FI_WAIT_NONE,
    ] {
        let cntr = open(FI_CNTR_EVENTS_COMP, object, true);
        cntr.set(3);
        assert_eq!((cntr.wait(3, -1), cntr.wait(2, 0)), (Ok(()), Ok(())));
        assert_eq!(cntr.wait(4, 0), Err(Errno(FI_ETIMEDOUT)));
        assert_eq!(cntr.wait(4, 5), Err(Errno(FI_ETIMEDOUT)));
        cntr.add_errors(1);
        assert_eq!(cntr.wait(4, 5), Err(Errno(FI_ETIMEDOUT)), "an error from before");
    }
}

#[test]
fn every_change_wakes_every_waiter_that_it_concerns() {
    for object in [FI_WAIT_FD, FI_WAIT_YIELD] {
        let cntr = open(FI_CNTR_EVENTS_COMP, object, true);
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (1..=200)
                .step_by(50)
                .map(|first| {
                    let cntr = &cntr;
                    scope.spawn(move || (first..=200).map(|n| cntr.wait(n, -1)).all(|answer| answer == Ok(())))
                })
                .collect();
            for _ in 0..200 {
                cntr.complete(0);
                std::thread::yield_now();
            }
            assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        });
    }
}

#[test]
fn an_error_wakes_waiters() {
    let cntr = open(FI_CNTR_EVENTS_COMP, FI_WAIT_FD, true);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| cntr.wait(1, -1));
        while cntr.heed.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        cntr.fail();
        assert_eq!(waiter.join().unwrap(), Err(Errno(FI_EAVAIL as c_int)));
    });
}

#[test]
fn work_of_a_sleeping_endpoint_is_done_by_the_waiter() {
    let cntr = open(FI_CNTR_EVENTS_COMP, FI_WAIT_FD, true);
    let inner = Arc::downgrade(&cntr);
    let endpoint = Worker::new(move || inner.upgrade().unwrap().complete(0));
    cntr.attach(endpoint.clone());
    assert!(cntr.is_busy());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| (1..=100).all(|n| cntr.wait(n, -1) == Ok(())));
        for _ in 0..100 {
            endpoint.hand_in(1);
            std::thread::yield_now();
        }
        assert!(waiter.join().unwrap());
    });
    assert_eq!(cntr.detach(&(endpoint as Arc<dyn Progress>)), Ok(()));
    assert!(!cntr.is_busy());
}

#[test]
fn trywait_tells_of_every_change_once() {
    let cntr = open(FI_CNTR_EVENTS_COMP, FI_WAIT_FD, true);
    let Ok(Handle::Fd(fd)) = cntr.handle() else {
        panic!("no descriptor")
    };
    let epoll = Epoll::new().unwrap();
    epoll.add(fd).unwrap();
    let readable = || epoll.wait(0).unwrap() == 1;
    assert_eq!((cntr.trywait(), readable()), (Ok(()), false));
    cntr.complete(0);
    assert!(readable());
    assert_eq!(cntr.trywait(), Err(Errno(FI_EAGAIN)));
    assert_eq!((cntr.trywait(), readable()), (Ok(()), false));
    cntr.fail();
    assert!(readable());
    assert_eq!((cntr.trywait(), cntr.trywait()), (Err(Errno(FI_EAGAIN)), Ok(())));
    cntr.add(1);
    assert!(readable(), "it may have reached a threshold");
    assert_eq!((cntr.trywait(), cntr.trywait()), (Err(Errno(FI_EAGAIN)), Ok(())));
    assert!(!readable());
}

/// Whoever has read an old value and then tries to wait is told of the change, though another thread was told of it.
#[test]
fn trywait_tells_every_thread_of_a_change() {
    let cntr = open(FI_CNTR_EVENTS_COMP, FI_WAIT_FD, true);
    let elsewhere = |count| {
        let tries = || (0..count).map(|_| cntr.trywait()).collect::<Vec<_>>();
        std::thread::scope(|scope| scope.spawn(tries).join().unwrap())
    };
    let again = Err(Errno(FI_EAGAIN));
    assert_eq!((cntr.trywait(), cntr.read()), (Ok(()), 0));
    cntr.complete(0);
    assert_eq!(elsewhere(2), [again, Ok(())]);
    assert_eq!((cntr.trywait(), cntr.trywait()), (again, Ok(())));
    assert_eq!(elsewhere(2), [again, Ok(())]);
}

#[test]
fn flags_are_kept() {
    let cntr = open(FI_CNTR_EVENTS_COMP, FI_WAIT_NONE, true);
    assert_eq!((cntr.ops_flags(), cntr.wait_obj()), (0, Ok(FI_WAIT_NONE)));
    cntr.set_ops_flags(5);
    assert_eq!(cntr.ops_flags(), 5);
}
