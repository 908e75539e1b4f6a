//! How long a ring stays on: until all who were there have looked, and for nobody who has left. Children of fork and
//! descriptors that are watched besides.

use super::*;
use crate::sys::child::Child;
use core::sync::atomic::{AtomicU32, Ordering};

fn readable(bell: &Bell) -> bool {
    let epoll = Epoll::new().unwrap();
    epoll.add(bell.fd().unwrap()).unwrap();
    epoll.wait(0).unwrap() == 1
}

#[test]
fn objects_are_known_or_refused() {
    let table = [
        (FI_WAIT_UNSPEC, Ok(FI_WAIT_FD)),
        (FI_WAIT_FD, Ok(FI_WAIT_FD)),
        (FI_WAIT_POLLFD, Ok(FI_WAIT_POLLFD)),
        (FI_WAIT_MUTEX_COND, Ok(FI_WAIT_MUTEX_COND)),
        (FI_WAIT_YIELD, Ok(FI_WAIT_YIELD)),
        (crate::abi::types::FI_WAIT_SET, Err(Errno(FI_EINVAL))),
        (crate::abi::types::FI_WAIT_NONE, Err(Errno(FI_EINVAL))),
        (77, Err(Errno(FI_EINVAL))),
    ];
    for (object, expected) in table {
        assert_eq!(Bell::new(object).map(|bell| bell.object()), expected, "{object}");
    }
}

#[test]
fn a_ring_stays_on_until_everyone_has_looked() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    let (mut one, mut two) = (bell.enter(), bell.enter());
    bell.raise();
    assert!(one.notice() && !one.notice());
    bell.quiet();
    assert!(readable(&bell), "the other has not looked");
    assert_eq!(one.sleep(-1), Ok(Slept::Woken));
    assert!(two.notice());
    bell.quiet();
    assert!(!readable(&bell));
    assert!(!one.notice() && !two.notice());
}

#[test]
fn who_leaves_is_not_waited_for() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    let (one, two) = (bell.enter(), bell.enter());
    bell.raise();
    drop(one);
    bell.quiet();
    assert!(readable(&bell));
    drop(two);
    bell.quiet();
    assert!(!readable(&bell));
}

#[test]
fn who_comes_after_a_ring_has_not_missed_it() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    bell.raise();
    assert!(!bell.enter().notice());
    assert!(readable(&bell), "nobody has made it quiet");
}

/// A thread that polls the descriptor wakes after another one has looked, and must find it readable.
#[test]
fn a_ring_stays_on_until_who_polls_has_called_again() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    bell.begin_poll();
    let rung_at = Instant::now();
    bell.raise();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            bell.quiet();
            // Unless so much time has passed.
            readable(&bell) || rung_at.elapsed() > OWED
        });
        assert!(other.join().unwrap(), "the ring was taken away from who polls");
    });
    bell.quiet();
    assert!(!readable(&bell));
    assert!(bell.state().pollers.is_empty() && bell.state().owed.is_empty());
}

#[test]
fn who_polls_no_more_is_not_waited_for_long() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    std::thread::scope(|scope| scope.spawn(|| bell.begin_poll()).join().unwrap());
    let rung_at = Instant::now();
    bell.raise();
    while readable(&bell) {
        bell.quiet();
    }
    assert!(rung_at.elapsed() > OWED);
    assert!(bell.state().owed.is_empty());
}

/// Rings that come often for another thread make it no longer.
#[test]
fn who_polls_no_more_is_not_waited_for_longer_as_it_rings_again() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    std::thread::scope(|scope| scope.spawn(|| bell.begin_poll()).join().unwrap());
    let begun_at = Instant::now();
    while begun_at.elapsed() < 50 * OWED {
        bell.begin_poll();
        bell.raise();
        bell.quiet();
        if !readable(&bell) {
            return;
        }
    }
    panic!("the ring stays on for a thread that has gone");
}

#[test]
fn a_wound_bell_rings_by_itself() {
    for object in [FI_WAIT_FD, FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND] {
        let bell = Bell::new(object).unwrap();
        bell.wind().unwrap();
        bell.wind().unwrap();
        bell.unwind();
        for _ in 0..2 {
            assert!(!readable(&bell));
            bell.listen();
            assert!(readable(&bell) && bell.fds.as_ref().unwrap().epoll.wait(0).unwrap() == 1);
            bell.quiet();
        }
        let timer = bell.pollfds().1[1];
        assert_eq!(bell.state().timer.as_ref().unwrap().fd(), timer);
        bell.listen();
        bell.unwind();
        assert!(!readable(&bell));
    }
    let yielding = Bell::new(FI_WAIT_YIELD).unwrap();
    assert_eq!(yielding.wind(), Ok(()));
    yielding.unwind();
}

#[test]
fn a_child_leaves_the_bell_alone() {
    let (bell, news) = (Bell::new(FI_WAIT_FD).unwrap(), EventFd::new().unwrap());
    bell.watch(news.fd()).unwrap();
    bell.wind().unwrap();
    let child = Child::run(|| {
        bell.raise();
        bell.unwatch(news.fd());
        bell.unwind();
        assert_eq!((bell.fd(), bell.pollfds().1.len()), (None, 0));
        assert_eq!(bell.enter().sleep(-1), Ok(Slept::Woken));
    });
    assert_eq!(child.wait(), 0);
    // It still rings by itself, can be made quiet, and hears the news.
    bell.listen();
    bell.quiet();
    bell.unwind();
    assert!(!readable(&bell));
    news.set();
    assert!(readable(&bell));
}

#[test]
fn watched_descriptors_are_counted_and_listed() {
    let bell = Bell::new(FI_WAIT_POLLFD).unwrap();
    let news = EventFd::new().unwrap();
    let (start, own) = bell.pollfds();
    assert_eq!(own.len(), 1);
    bell.watch(news.fd()).unwrap();
    bell.watch(news.fd()).unwrap();
    assert_eq!(bell.pollfds(), (start + 1, vec![own[0], news.fd()]));
    news.set();
    assert!(readable(&bell));
    bell.unwatch(news.fd());
    assert!(readable(&bell));
    bell.unwatch(news.fd());
    bell.unwatch(news.fd());
    assert!(!readable(&bell));
    assert_eq!(bell.pollfds(), (start + 2, own));
    assert_eq!(bell.watch(-1), Err(Errno(libc::EBADF)));
}

/// Whoever is left behind though it waits no longer keeps the ring on, so that nobody can sleep.
#[test]
fn who_leaves_while_the_bell_rings_is_not_left_behind() {
    const ROUNDS: u32 = 100_000;
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    let [begun, rung] = [const { AtomicU32::new(0) }; 2];
    let wait_for = |word: &AtomicU32, round: u32| {
        while word.load(Ordering::Acquire) < round {
            std::hint::spin_loop();
        }
    };
    let mut left_behind = 0;
    let linger = |turns: u32| (0..turns).for_each(|_| std::hint::spin_loop());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_for(&begun, round);
                linger(round % 50);
                bell.raise();
                rung.store(round, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            let sleeper = bell.enter();
            begun.store(round, Ordering::Release);
            linger(round / 50 % 50);
            drop(sleeper);
            wait_for(&rung, round);
            let state = bell.state();
            left_behind += usize::from((state.inside, state.behind) != (0, 0));
        }
    });
    assert_eq!(left_behind, 0, "of {ROUNDS} rounds");
}
