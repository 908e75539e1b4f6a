//! Who is woken, who may not sleep, when time is over, and how long a wait looks out first. Looks are closures that
//! count or refuse.

use super::super::look_out::LookOuts;
use super::*;
use crate::abi::types::{FI_WAIT_FD, FI_WAIT_YIELD};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[test]
fn time_runs_out_and_not_before() {
    for (object, timeout) in [(FI_WAIT_FD, 0), (FI_WAIT_FD, 20), (FI_WAIT_YIELD, 20)] {
        let bell = Bell::new(object).unwrap();
        let start = Instant::now();
        let answer: core::result::Result<(), _> = block(&bell, timeout, |_| None, || true);
        assert_eq!(answer, Err(Stopped::TimedOut));
        assert!(start.elapsed() >= Duration::from_millis(timeout as u64));
    }
}

/// Threads that wait for different steps of one number, on one bell: none may be left asleep, whoever takes the
/// ring first.
#[test]
fn waiters_for_different_things_are_all_woken() {
    for object in [FI_WAIT_FD, FI_WAIT_YIELD] {
        let bell = Bell::new(object).unwrap();
        let (number, armed, done) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU32::new(0));
        const STEPS: u64 = 300;
        std::thread::scope(|scope| {
            for offset in 0..3 {
                let (bell, number, armed, done) = (&bell, &number, &armed, &done);
                scope.spawn(move || {
                    for step in 1..=STEPS {
                        let enough = || number.load(Ordering::SeqCst) >= step * 3 + offset;
                        let announce = || {
                            armed.store(true, Ordering::SeqCst);
                            !enough()
                        };
                        assert_eq!(block(bell, -1, |_| enough().then_some(()), announce), Ok(()));
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
            while done.load(Ordering::SeqCst) < 3 {
                if number.load(Ordering::SeqCst) < STEPS * 3 + 2 {
                    number.fetch_add(1, Ordering::SeqCst);
                    if armed.swap(false, Ordering::SeqCst) {
                        bell.raise();
                    }
                }
                std::thread::yield_now();
            }
        });
    }
}

#[test]
fn a_refused_announcement_is_no_sleep() {
    let bell = Bell::new(FI_WAIT_FD).unwrap();
    let mut looks = 0;
    let answer = block(
        &bell,
        -1,
        |_| {
            looks += 1;
            (looks > 40).then_some(looks)
        },
        || false,
    );
    assert_eq!(answer, Ok(41));
    assert_eq!(trywait(&bell, || false, || false), Err(Errno(FI_EAGAIN)));
    assert_eq!(trywait(&bell, || true, || true), Err(Errno(FI_EAGAIN)));
    assert_eq!(trywait(&bell, || false, || true), Ok(()));
}

#[test]
fn a_wait_looks_out_before_it_announces_a_sleep() {
    let announces = |look_outs, last: u32| {
        let mut bell = Bell::new(FI_WAIT_FD).unwrap();
        bell.look_outs = look_outs;
        let (mut looks, mut announced) = (0, false);
        let look = |_| {
            looks += 1;
            (looks == last).then_some(())
        };
        let announce = || {
            announced = true;
            false
        };
        assert_eq!(block(&bell, -1, look, announce), Ok(()));
        announced
    };
    assert!(
        !announces(LookOuts::endless(), 1000),
        "it announces a sleep although it looks out"
    );
    assert!(announces(LookOuts::none(), 2), "it announces none");
}

#[test]
fn only_a_wait_that_looks_in_vain_says_how_long_waits_are() {
    let mut bell = Bell::new(FI_WAIT_FD).unwrap();
    bell.look_outs = LookOuts::endless();
    let in_vain: core::result::Result<(), _> = block(&bell, 0, |_| None, || true);
    assert_eq!(in_vain, Err(Stopped::TimedOut));
    let answer_at = |needed: u32| {
        let mut looks = 0;
        let look = |_| {
            looks += 1;
            (looks == needed).then_some(())
        };
        assert_eq!(block(&bell, -1, look, || false), Ok(()));
    };
    answer_at(1);
    assert!(bell.look_outs.are_endless());
    answer_at(2);
    assert!(!bell.look_outs.are_endless());
}
