//! The thread of FI_PROGRESS_AUTO: it does what is handed in, sleeps when nothing is, and ends. The endpoints are
//! `progress::tests::Worker`.

use super::*;
use crate::api::progress::tests::Worker;
use core::sync::atomic::AtomicU64;

/// Work is done though nobody calls, by a thread that then calls `progress` no more.
#[test]
fn work_is_done_and_then_the_thread_sleeps() {
    let driver = Driver::default();
    let done = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let done = done.clone();
            Worker::new(move || {
                done.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    let ids: Vec<u64> = workers
        .iter()
        .map(|worker| driver.attach(worker.clone()).unwrap())
        .collect();
    const ROUNDS: u64 = 200;
    for round in 1..=ROUNDS {
        workers[round as usize % 3].hand_in(1);
        while done.load(Ordering::SeqCst) < round {
            std::thread::yield_now();
        }
    }
    // Each call of `progress` follows a piece of work or a change of the list.
    for worker in &workers {
        assert!(worker.calls.load(Ordering::SeqCst) as u64 <= 2 * (ROUNDS + ids.len() as u64) + 2);
    }
    for id in ids {
        driver.detach(id);
        driver.detach(id);
    }
    assert!(workers.iter().all(|worker| Arc::strong_count(worker) == 1));
}

#[test]
fn it_ends_with_endpoints_and_without() {
    drop(Driver::default());
    let driver = Driver::default();
    let worker = Worker::new(|| ());
    driver.attach(worker.clone()).unwrap();
    drop(driver);
    assert_eq!(Arc::strong_count(&worker), 1);
}
