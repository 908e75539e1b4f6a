//! The attention word: how a sleeper and those who push to it agree that it must be woken.
//!
//! The sleeper announces its sleep and then looks whether anything came; a sender writes a record and then looks
//! whether the receiver sleeps. One of the two must see the other, which takes a barrier between the two steps on both
//! sides. The word counts sleeps above its bits, so that a waker that notes late that it has woken somebody does not
//! end the next sleep.
//!
//! This file is the order of loads and stores, over any `AttentionWord`: the one in shared memory (`layout`), and
//! loom's (`model`). Called by `sleeping` and `outbound`.

use super::layout::{CLOSED, SLEEPING};

const ONE_SLEEP: u64 = 1 << 8;

/// The word. All is relaxed: order comes from the barriers.
pub(super) trait AttentionWord {
    fn load(&self) -> u64;
    fn store(&self, value: u64);
    /// Writes `new` if the word is still `seen`.
    fn replace(&self, seen: u64, new: u64);
}

/// Announces a sleep. SYNC POINT sleep: `barrier` is the sleeper's, and also that of all senders that do not fence.
pub(super) fn announce(word: &impl AttentionWord, sleeps: &mut u64, barrier: impl FnOnce()) {
    *sleeps = sleeps.wrapping_add(ONE_SLEEP);
    word.store(*sleeps | SLEEPING);
    barrier();
}

/// The sleep is over, or did not begin.
#[cfg(any(test, loom))]
pub(super) fn awake(word: &impl AttentionWord, sleeps: u64) {
    word.store(sleeps);
}

/// Wakes the owner if it sleeps. False: it has closed.
pub(super) fn wake(word: &impl AttentionWord, poke: impl FnOnce()) -> bool {
    let seen = word.load();
    if seen & CLOSED != 0 {
        return false;
    }
    if seen & SLEEPING != 0 {
        // Woken first and noted then, so that no wake-up is lost if this process dies in between.
        poke();
        word.replace(seen, seen & !SLEEPING);
    }
    true
}

/// Tries every order in which the steps of a sleeper and its senders can be seen: `abi-tests/loom/run`. A sleeper that
/// nobody wakes is a deadlock, which loom finds.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};
    use loom::sync::{Arc, Notify};

    impl AttentionWord for AtomicU64 {
        fn load(&self) -> u64 {
            self.load(Ordering::Relaxed)
        }
        // Loom orders two values of a word only where it orders the threads. So a successful `replace` is a release,
        // and `store` acquires it; of the real word the order of values alone is enough.
        fn store(&self, value: u64) {
            self.swap(value, Ordering::Acquire);
        }
        fn replace(&self, seen: u64, new: u64) {
            let _ = self.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Where the senders' half of the barrier comes from.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Barrier {
        /// The senders fence after each message.
        Theirs,
        /// The sleeper calls membarrier, which interrupts senders wherever they are.
        Ours,
        /// There is none.
        Missing,
    }

    struct Model {
        attention: AtomicU64,
        /// What each sender has sent, and whether it was asked for a barrier and has had it.
        lanes: [Lane; 2],
        pipe: Notify,
    }

    #[derive(Default)]
    struct Lane {
        sent: AtomicU64,
        asked: AtomicU64,
        done: AtomicU64,
    }

    const ENDED: u64 = u64::MAX;

    impl Lane {
        /// Between two steps of a sender an interrupt may come, with a full barrier.
        fn interrupted(&self) {
            let asked = self.asked.load(Ordering::Acquire);
            if asked > self.done.load(Ordering::Relaxed) {
                fence(Ordering::SeqCst);
                self.done.store(asked, Ordering::Release);
            }
        }

        fn interrupt(&self) {
            let number = self.asked.load(Ordering::Relaxed) + 1;
            fence(Ordering::SeqCst);
            self.asked.store(number, Ordering::Release);
            while self.done.load(Ordering::Acquire) < number {
                loom::thread::yield_now();
            }
            fence(Ordering::SeqCst);
        }
    }

    fn send(model: &Model, lane: &Lane, messages: u64, barrier: Barrier) {
        for number in 1..=messages {
            lane.interrupted();
            lane.sent.store(number, Ordering::Release);
            lane.interrupted();
            if barrier == Barrier::Theirs {
                fence(Ordering::SeqCst);
            }
            if AttentionWord::load(&model.attention) & (SLEEPING | CLOSED) != 0 {
                wake(&model.attention, || model.pipe.notify());
            }
        }
        // After its last message the sender lives on: it answers every interrupt to come.
        fence(Ordering::SeqCst);
        lane.done.store(ENDED, Ordering::Release);
    }

    /// Receives all messages, and sleeps whenever there is none.
    fn check(senders: usize, messages: u64, barrier: Barrier) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(move || {
            let model = Arc::new(Model {
                attention: AtomicU64::new(0),
                lanes: [Lane::default(), Lane::default()],
                pipe: Notify::new(),
            });
            let threads: Vec<_> = (0..senders)
                .map(|at| {
                    let model = model.clone();
                    loom::thread::spawn(move || send(&model, &model.lanes[at], messages, barrier))
                })
                .collect();
            let lanes = &model.lanes[..senders];
            let all = || lanes.iter().map(|lane| lane.sent.load(Ordering::Acquire)).sum::<u64>();
            let (mut sleeps, mut seen) = (0, 0);
            while seen < messages * senders as u64 {
                announce(&model.attention, &mut sleeps, || match barrier {
                    Barrier::Ours => lanes.iter().for_each(Lane::interrupt),
                    Barrier::Theirs | Barrier::Missing => fence(Ordering::SeqCst),
                });
                let now = all();
                if now == seen {
                    model.pipe.wait();
                }
                awake(&model.attention, sleeps);
                seen = all();
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn senders_with_a_fence() {
        check(1, 2, Barrier::Theirs);
        check(2, 1, Barrier::Theirs);
    }

    #[test]
    fn senders_without_a_fence() {
        check(1, 1, Barrier::Ours);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn a_missing_barrier_is_found() {
        check(1, 1, Barrier::Missing);
    }
}
