//! Completion queues as programs and endpoints use them.

use super::*;
use crate::abi::types::*;
use crate::api::progress::tests::Worker;
use crate::sys::epoll::Epoll;
use crate::util::user_array::kept;
use core::sync::atomic::{AtomicUsize, Ordering};

const AVAIL: Errno = Errno(FI_EAVAIL as c_int);

fn attr(wait_obj: fi_wait_obj) -> CqAttr {
    CqAttr {
        size: 16,
        flags: 0,
        format: FI_CQ_FORMAT_TAGGED,
        wait_obj,
        wait_cond: FI_CQ_COND_NONE,
        wait_set: None,
        managed: true,
        locked: true,
    }
}

/// A queue for tests, of whatever.
pub(crate) fn open(wait_obj: fi_wait_obj) -> Arc<Cq> {
    Cq::open(&attr(wait_obj)).unwrap()
}

/// Shows what a read put into an array for so many entries, every field of them.
fn each(count: usize, read: impl FnOnce(UserArray) -> Result<usize>, mut show: impl FnMut(&Entry)) -> Result<usize> {
    let (array, entries) = kept(count);
    let filled = read(array)?;
    for ([context, flags, len, buf, data, tag], src) in entries.take(filled) {
        show(&Entry {
            context: context as usize,
            flags,
            len: len as usize,
            buf: buf as usize,
            data,
            tag,
            src,
        });
    }
    Ok(filled)
}

impl Cq {
    /// `read` of up to `count` entries, each of which is shown.
    pub(crate) fn read_each(&self, count: usize, show: impl FnMut(&Entry)) -> Result<usize> {
        each(count, |array| self.read(array), show)
    }

    /// `sread` likewise.
    pub(crate) fn sread_each(
        &self,
        count: usize,
        threshold: usize,
        timeout: c_int,
        show: impl FnMut(&Entry),
    ) -> Result<usize> {
        each(count, |array| self.sread(array, threshold, timeout), show)
    }
}

fn entry(context: usize) -> Entry {
    Entry {
        context,
        ..Entry::default()
    }
}

fn failure(context: usize) -> ErrorEntry {
    ErrorEntry {
        context,
        err: FI_EIO,
        ..ErrorEntry::default()
    }
}

fn contexts(cq: &Cq, count: usize) -> Result<Vec<usize>> {
    let mut seen = Vec::new();
    let read = cq.read_each(count, |entry| seen.push(entry.context))?;
    assert_eq!(read, seen.len());
    Ok(seen)
}

#[test]
fn attributes_are_checked() {
    let good = attr(FI_WAIT_FD);
    let bad = [
        CqAttr {
            format: 5,
            ..good.clone()
        },
        CqAttr {
            flags: 1,
            ..good.clone()
        },
        CqAttr {
            wait_cond: 2,
            ..good.clone()
        },
        CqAttr {
            size: usize::MAX,
            ..good.clone()
        },
        attr(FI_WAIT_SET),
        attr(9),
    ];
    for attr in bad {
        assert_eq!(Cq::open(&attr).err(), Some(INVALID));
    }
    let ignored = CqAttr {
        wait_cond: 2,
        ..attr(FI_WAIT_NONE)
    };
    assert!(Cq::open(&ignored).is_ok());
    let unspec = CqAttr {
        format: FI_CQ_FORMAT_UNSPEC,
        ..good
    };
    assert_eq!(Cq::open(&unspec).map(|cq| cq.format()), Ok(Format::Context));
}

#[test]
fn reading_drives_the_endpoints_when_there_is_nothing() {
    for locked in [true, false] {
        let cq = Cq::open(&CqAttr {
            locked,
            ..attr(FI_WAIT_NONE)
        })
        .unwrap();
        let inner = Arc::downgrade(&cq);
        let endpoint = Worker::new(move || inner.upgrade().unwrap().post(&entry(1)));
        let calls = || endpoint.calls.load(Ordering::SeqCst);
        cq.attach(endpoint.clone());
        endpoint.hand_in(3);
        assert_eq!((cq.read_each(0, |_| ()), calls()), (Ok(0), 1));
        assert_eq!((contexts(&cq, 2), calls()), (Ok(vec![1, 1]), 1));
        assert_eq!((contexts(&cq, 2), calls()), (Ok(vec![1]), 1));
        assert_eq!((contexts(&cq, 2), calls()), (Err(AGAIN), 2));
        assert_eq!((cq.read_each(0, |_| ()), calls()), (Err(AGAIN), 3));
        assert!(cq.is_busy());
        cq.detach(&(endpoint.clone() as Arc<dyn Progress>)).unwrap();
        cq.refs().acquire();
        assert!(cq.is_busy());
        cq.refs().release();
        assert!(!cq.is_busy());
    }
}

/// What peers wait for (credit, acknowledgements) is done by driving, and a queue may never be empty.
#[test]
fn a_queue_that_always_has_entries_drives_now_and_then() {
    let cq = open(FI_WAIT_NONE);
    let endpoint = Worker::new(|| ());
    cq.attach(endpoint.clone());
    let drives = |reads: u32| {
        let before = endpoint.calls.load(Ordering::SeqCst);
        for read in 0..reads {
            cq.post(&entry(read as usize));
            assert_eq!(contexts(&cq, 1), Ok(vec![read as usize]));
        }
        endpoint.calls.load(Ordering::SeqCst) - before
    };
    assert_eq!(drives(MOST_UNDRIVEN - 1), 0);
    assert_eq!(drives(1), 1);
    assert_eq!(drives(10 * MOST_UNDRIVEN), 10);
}

#[test]
fn errors_come_in_their_turn() {
    let cq = open(FI_WAIT_NONE);
    cq.post(&entry(1));
    cq.post_error(failure(2));
    cq.post(&entry(3));
    assert_eq!(cq.read_error(|_| ()), Err(AGAIN));
    assert_eq!(contexts(&cq, 9), Ok(vec![1]));
    assert_eq!((contexts(&cq, 9), contexts(&cq, 1)), (Err(AVAIL), Err(AVAIL)));
    assert_eq!(cq.read_error(|error| error.context), Ok(2));
    assert_eq!((cq.read_error(|_| ()), contexts(&cq, 9)), (Err(AGAIN), Ok(vec![3])));
}

#[test]
fn room_is_told_and_kept_or_overrun() {
    for managed in [true, false] {
        let cq = Cq::open(&CqAttr {
            size: 5,
            managed,
            ..attr(FI_WAIT_NONE)
        })
        .unwrap();
        (0..8).for_each(|n| cq.post(&entry(n)));
        assert_eq!((cq.has_room(0), cq.has_room(1), cq.is_overrun()), (true, false, false));
        cq.post(&entry(8));
        assert_eq!(cq.is_overrun(), !managed);
        assert_eq!(contexts(&cq, 8), Ok((0..8).collect()));
        assert_eq!(contexts(&cq, 8), if managed { Ok(vec![8]) } else { Err(AVAIL) });
        assert_eq!(
            cq.read_error(|error| error.err),
            if managed { Err(AGAIN) } else { Ok(FI_EOVERRUN as c_int) }
        );
    }
}

#[test]
fn what_cannot_wait_says_so() {
    let cq = open(FI_WAIT_NONE);
    let enosys = Errno(FI_ENOSYS);
    assert_eq!(
        (cq.sread_each(1, 1, 0, |_| ()), cq.signal()),
        (Err(enosys), Err(enosys))
    );
    assert_eq!((cq.trywait(), cq.wait_obj()), (Err(INVALID), Ok(FI_WAIT_NONE)));
    assert_eq!(open(FI_WAIT_YIELD).trywait(), Err(AGAIN));
}

#[test]
fn a_wait_ends_by_time_signal_or_error() {
    for object in [
        FI_WAIT_UNSPEC,
        FI_WAIT_FD,
        FI_WAIT_POLLFD,
        FI_WAIT_MUTEX_COND,
        FI_WAIT_YIELD,
    ] {
        let cq = open(object);
        assert_eq!(
            (cq.sread_each(1, 1, 0, |_| ()), cq.sread_each(1, 1, 3, |_| ())),
            (Err(AGAIN), Err(AGAIN))
        );
        cq.signal().unwrap();
        assert_eq!(cq.sread_each(1, 1, -1, |_| ()), Err(AGAIN), "a signal that came before");
        std::thread::scope(|scope| {
            let waiters = [1, 2].map(|_| scope.spawn(|| cq.sread_each(1, 1, -1, |_| ())));
            while cq.signals().waiting < 2 {
                std::thread::yield_now();
            }
            cq.signal().unwrap();
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap(), Err(AGAIN));
            }
            let waiter = scope.spawn(|| cq.sread_each(1, 1, -1, |_| ()));
            cq.post_error(failure(1));
            assert_eq!(waiter.join().unwrap(), Err(AVAIL));
        });
    }
}

#[test]
fn sleepers_get_each_entry_once() {
    const COUNT: usize = 500;
    for object in [
        FI_WAIT_UNSPEC,
        FI_WAIT_FD,
        FI_WAIT_POLLFD,
        FI_WAIT_MUTEX_COND,
        FI_WAIT_YIELD,
    ] {
        let cq = open(object);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let mut context = 0;
                        cq.sread_each(1, 1, -1, |entry| context = entry.context).unwrap();
                        if context == 0 {
                            return;
                        }
                        sum.fetch_add(context, Ordering::SeqCst);
                    }
                });
            }
            for n in (1..=COUNT).chain([0, 0, 0]) {
                cq.post(&entry(n));
                if n % 7 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        assert_eq!(sum.into_inner(), COUNT * (COUNT + 1) / 2);
    }
}

/// Two queues of one endpoint, each with its sleeper, and a third thread that reads by polling: whoever drives the
/// endpoint, the entries reach the sleeper they are for.
#[test]
fn sleepers_on_one_endpoint_do_not_lose_each_others_news() {
    const COUNT: usize = 400;
    let cqs = [open(FI_WAIT_FD), open(FI_WAIT_POLLFD)];
    let turn = AtomicUsize::new(0);
    let inner = cqs.clone().map(|cq| Arc::downgrade(&cq));
    let endpoint = Worker::new(move || {
        let turn = turn.fetch_add(1, Ordering::SeqCst);
        inner[turn % 2].upgrade().unwrap().post(&entry(turn));
    });
    cqs.iter().for_each(|cq| cq.attach(endpoint.clone()));
    std::thread::scope(|scope| {
        for cq in &cqs {
            scope.spawn(|| {
                for _ in 0..COUNT / 2 {
                    assert_eq!(cq.sread_each(1, 1, -1, |_| ()), Ok(1));
                }
            });
        }
        for _ in 0..COUNT {
            endpoint.hand_in(1);
            std::thread::yield_now();
            // Drives the endpoint without taking anything.
            let _ = cqs[0].read_each(0, |_| ());
        }
    });
}

#[test]
fn a_threshold_is_waited_for() {
    let cq = Cq::open(&CqAttr {
        wait_cond: FI_CQ_COND_THRESHOLD,
        ..attr(FI_WAIT_FD)
    })
    .unwrap();
    (0..2).for_each(|n| cq.post(&entry(n)));
    let mut seen = Vec::new();
    assert_eq!(
        cq.sread_each(9, 3, 2, |entry| seen.push(entry.context)),
        Ok(2),
        "time is over: what there is"
    );
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| cq.sread_each(9, 3, -1, |_| ()));
        while cq.queue.lock().wake_at == NOBODY {
            std::thread::yield_now();
        }
        (0..3).for_each(|n| cq.post(&entry(n)));
        assert_eq!(waiter.join().unwrap(), Ok(3));
        let waiter = scope.spawn(|| cq.sread_each(99, 1000, -1, |_| ()));
        (0..16).for_each(|n| cq.post(&entry(n)));
        assert_eq!(waiter.join().unwrap(), Ok(16), "never more than the queue holds");
        let waiter = scope.spawn(|| cq.sread_each(9, 3, -1, |_| ()));
        cq.post(&entry(0));
        cq.post_error(failure(1));
        assert_eq!(waiter.join().unwrap(), Ok(1), "an error behind it");
    });
}

#[test]
fn the_descriptor_follows_trywait() {
    for object in [FI_WAIT_UNSPEC, FI_WAIT_FD] {
        let cq = open(object);
        let Ok(Handle::Fd(fd)) = cq.handle() else {
            panic!("no descriptor")
        };
        let epoll = Epoll::new().unwrap();
        epoll.add(fd).unwrap();
        let readable = || epoll.wait(0).unwrap() == 1;
        let inner = Arc::downgrade(&cq);
        let endpoint = Worker::new(move || inner.upgrade().unwrap().post(&entry(1)));
        cq.attach(endpoint.clone());
        assert_eq!((cq.trywait(), readable()), (Ok(()), false));
        cq.post(&entry(1));
        assert_eq!((readable(), cq.trywait()), (true, Err(AGAIN)));
        assert_eq!(contexts(&cq, 1), Ok(vec![1]));
        assert_eq!((cq.trywait(), readable()), (Ok(()), false));
        endpoint.hand_in(1);
        assert!(readable(), "work for the endpoint wakes too");
        assert_eq!((cq.trywait(), contexts(&cq, 1)), (Err(AGAIN), Ok(vec![1])));
        assert_eq!((cq.trywait(), readable()), (Ok(()), false));
        cq.signal().unwrap();
        assert!(readable());
        cq.detach(&(endpoint as Arc<dyn Progress>)).unwrap();
    }
}

#[test]
fn a_program_sleeping_in_epoll_misses_nothing() {
    const COUNT: usize = 300;
    let cq = open(FI_WAIT_FD);
    let inner = Arc::downgrade(&cq);
    let endpoint = Worker::new(move || inner.upgrade().unwrap().post(&entry(1)));
    cq.attach(endpoint.clone());
    let Ok(Handle::Fd(fd)) = cq.handle() else {
        panic!("no descriptor")
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let epoll = Epoll::new().unwrap();
            epoll.add(fd).unwrap();
            let mut left = 2 * COUNT;
            while left > 0 {
                if cq.trywait() == Ok(()) {
                    epoll.wait(-1).unwrap();
                }
                while let Ok(read) = cq.read_each(4, |_| ()) {
                    left -= read;
                }
            }
        });
        for n in 0..COUNT {
            endpoint.hand_in(1);
            cq.post(&entry(2));
            if n % 3 == 0 {
                std::thread::yield_now();
            }
        }
        reader.join().unwrap();
    });
}

/// cargo test --release api::cq::tests::speed -- --ignored --nocapture
#[test]
#[ignore = "prints times"]
fn speed() {
    let kinds = [
        (false, FI_WAIT_NONE),
        (true, FI_WAIT_NONE),
        (false, FI_WAIT_FD),
        (true, FI_WAIT_FD),
    ];
    for (locked, object) in kinds {
        let cq = Cq::open(&CqAttr {
            size: 1024,
            locked,
            ..attr(object)
        })
        .unwrap();
        let (array, _) = kept(8);
        let one = best(|| {
            cq.post(&entry(core::hint::black_box(1)));
            assert_eq!(cq.read(core::hint::black_box(array)), Ok(1));
        });
        let eight = best(|| {
            (0..8).for_each(|n| cq.post(&entry(core::hint::black_box(n))));
            assert_eq!(cq.read(core::hint::black_box(array)), Ok(8));
        });
        let empty = best(|| assert!(core::hint::black_box(&cq).read(array).is_err()));
        println!(
            "locked {locked} wait {object}: post+read {one:.1} ns, by eight {:.1} ns, empty {empty:.1} ns",
            eight / 8.0
        );
    }
    wake_time();
}

/// Nanoseconds of one round, in the best of many batches: others use the machine too.
fn best(mut round: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 2000;
    let batch = |_| {
        let start = std::time::Instant::now();
        (0..ROUNDS).for_each(|_| round());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    };
    (0..2000).map(batch).fold(f64::MAX, f64::min)
}

/// From a post to the return of a sleeping `sread`.
fn wake_time() {
    const ROUNDS: usize = 200;
    let (ping, pong) = (open(FI_WAIT_FD), open(FI_WAIT_FD));
    let mut least = f64::MAX;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 * ROUNDS {
                ping.sread_each(1, 1, -1, |_| ()).unwrap();
                pong.post(&entry(1));
            }
        });
        for _ in 0..20 {
            let start = std::time::Instant::now();
            for _ in 0..ROUNDS {
                ping.post(&entry(1));
                pong.sread_each(1, 1, -1, |_| ()).unwrap();
            }
            least = least.min(start.elapsed().as_secs_f64() * 1e6 / (2 * ROUNDS) as f64);
        }
    });
    println!("wake-up: {least:.1} us");
}
