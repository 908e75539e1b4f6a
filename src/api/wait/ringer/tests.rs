//! A program that waits on the condition itself, against a thread that brings news at any moment: none is missed.

use super::*;
use crate::abi::types::FI_WAIT_MUTEX_COND;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A program that holds the mutex from fi_trywait to its wait is woken by every piece of news.
#[test]
fn every_ring_reaches_who_waits_on_the_condition() {
    const ROUNDS: u32 = 200;
    let bell = Arc::new(Bell::new(FI_WAIT_MUTEX_COND).unwrap());
    let ringer = Ringer::new(bell.clone());
    ringer.handle().unwrap();
    let (news, armed) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                ringer.shared.pair.wait(|| {
                    let there = || news.load(Ordering::SeqCst) >= round;
                    let announce = || {
                        armed.store(true, Ordering::SeqCst);
                        !there()
                    };
                    if super::super::block::trywait(&bell, there, announce).is_err() {
                        return true;
                    }
                    ringer.listen();
                    false
                });
                while news.load(Ordering::SeqCst) < round {
                    std::thread::yield_now();
                }
            }
        });
        for _ in 0..ROUNDS {
            news.fetch_add(1, Ordering::SeqCst);
            if armed.swap(false, Ordering::SeqCst) {
                bell.raise();
            }
            std::thread::yield_now();
        }
    });
}
