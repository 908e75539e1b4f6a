//! Reading records and taking them back (`recall`) exclude each other: the words by which the two sides of a ring
//! agree.
//!
//! The receiver says that it reads and then looks whether the sender takes back; the sender says that it takes back and
//! then looks whether the receiver reads. One of the two sees the other, which takes a barrier between the two steps on
//! both sides. As the receiver does this in every poll, only the sender has one: a call of membarrier, which runs it on
//! both sides. Whoever sees the other leaves the ring alone: the receiver until its next poll, the sender until it is
//! asked again.
//!
//! This file is the order of loads and stores, over any `ExclusionWords`: those in shared memory (`lane`), and loom's
//! (`model`). Called by `inbound` and `recall`.

/// The three words, with the orderings that the protocol needs.
pub(super) trait ExclusionWords {
    /// The receiver reads from now on. Relaxed: a barrier follows.
    fn begin_reading(&self);
    /// The receiver has read. Release.
    fn end_reading(&self);
    /// Acquire.
    fn is_reading(&self) -> bool;
    /// The sender takes records back from now on. Relaxed: a barrier follows.
    fn begin_recalling(&self);
    /// The sender has taken records back. Release.
    fn end_recalling(&self);
    /// Acquire.
    fn is_recalling(&self) -> bool;
    /// How far the receiver has read. SYNC POINT seen: release.
    fn set_seen(&self, position: u64);
    /// How far the receiver has read. SYNC POINT seen: acquire.
    fn seen(&self) -> u64;
}

/// Begins to read; until `has_read`, nothing is taken back. False: the sender is taking records back. `over`: the
/// sender is dead, so it will not end that.
#[inline(always)]
pub(super) fn may_read(words: &impl ExclusionWords, over: bool, barrier: impl FnOnce()) -> bool {
    words.begin_reading();
    // SYNC POINT recall.
    barrier();
    if words.is_recalling() && !over {
        words.end_reading();
        return false;
    }
    true
}

/// Ends reading, at this position.
#[inline(always)]
pub(super) fn has_read(words: &impl ExclusionWords, position: u64) {
    // Before the end is said: from `seen` on, the sender may follow with direct access to our memory.
    words.set_seen(position);
    words.end_reading();
}

/// Has `work` take back what was not read when the sender read `seen`. None: the receiver reads, or has read since, or
/// the kernel ran no barrier.
pub(super) fn take_back<R>(
    words: &impl ExclusionWords,
    seen: u64,
    barrier: impl FnOnce() -> bool,
    work: impl FnOnce() -> R,
) -> Option<R> {
    words.begin_recalling();
    // SYNC POINT recall.
    let is_ours = barrier() && !words.is_reading() && words.seen() == seen;
    let done = is_ours.then(work);
    // SYNC POINT recall: what was taken back is out of the ring before the receiver reads again.
    words.end_recalling();
    done
}

/// Tries every order in which the steps of the two sides can be seen: `abi-tests/loom/run`. Loom fails when both touch
/// a record.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};

    const LAST: u64 = 9;

    #[derive(Default)]
    struct Model {
        reading: AtomicU64,
        recalling: AtomicU64,
        seen: AtomicU64,
        /// How many records there are: one word stands for a ring's control words.
        tail: AtomicU64,
        records: [UnsafeCell<u64>; 3],
        /// One turn of a dialogue: its word, which is 1 when it is there, what it says, and whether it was read.
        word: AtomicU64,
        turn: UnsafeCell<u64>,
        heard: AtomicU64,
    }

    impl ExclusionWords for Model {
        fn begin_reading(&self) {
            self.reading.store(1, Ordering::Relaxed);
        }
        fn end_reading(&self) {
            self.reading.store(0, Ordering::Release);
        }
        fn is_reading(&self) -> bool {
            self.reading.load(Ordering::Acquire) != 0
        }
        fn begin_recalling(&self) {
            self.recalling.store(1, Ordering::Relaxed);
        }
        fn end_recalling(&self) {
            self.recalling.store(0, Ordering::Release);
        }
        fn is_recalling(&self) -> bool {
            self.recalling.load(Ordering::Acquire) != 0
        }
        fn set_seen(&self, position: u64) {
            self.seen.store(position, Ordering::Release);
        }
        fn seen(&self) -> u64 {
            self.seen.load(Ordering::Acquire)
        }
    }

    /// On which side there is a barrier. Both: as with membarrier.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Barrier {
        Both,
        SenderOnly,
        ReceiverOnly,
    }

    fn push(model: &Model, value: u64) {
        let tail = model.tail.load(Ordering::Relaxed);
        // SAFETY: the record at the tail is the sender's; loom proves it.
        model.records[tail as usize].with_mut(|record| unsafe { *record = value });
        model.tail.store(tail + 1, Ordering::Release);
    }

    /// Sends two records, takes back what it may, and sends a last one. Says what was taken back.
    fn send(model: &Model, barrier: Barrier) -> Vec<u64> {
        push(model, 1);
        push(model, 2);
        let seen = model.seen();
        let fenced = || {
            if barrier != Barrier::ReceiverOnly {
                fence(Ordering::SeqCst);
            }
            true
        };
        let taken = take_back(model, seen, fenced, || {
            let taken = (seen..2).map(|at| {
                // SAFETY: the receiver does not read while records are taken back; loom proves it.
                model.records[at as usize].with_mut(|record| unsafe { std::mem::take(&mut *record) })
            });
            let taken = taken.collect();
            model.tail.store(seen, Ordering::Relaxed);
            taken
        });
        push(model, LAST);
        taken.unwrap_or_default()
    }

    /// One poll: reads what is there, if it may.
    fn poll(model: &Model, head: &mut u64, read: &mut Vec<u64>, barrier: Barrier) {
        let fenced = || {
            if barrier != Barrier::SenderOnly {
                fence(Ordering::SeqCst);
            }
        };
        if model.tail.load(Ordering::Acquire) <= *head || !may_read(model, false, fenced) {
            return loom::thread::yield_now();
        }
        while model.tail.load(Ordering::Acquire) > *head {
            // SAFETY: the record was sent, and the sender does not take it back now; loom proves it.
            read.push(model.records[*head as usize].with(|record| unsafe { *record }));
            *head += 1;
        }
        has_read(model, *head);
    }

    fn check(barrier: Barrier) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Arc::new(Model::default());
            let theirs = model.clone();
            let sender = loom::thread::spawn(move || send(&theirs, barrier));
            let (mut head, mut read) = (0, Vec::new());
            while read.last() != Some(&LAST) {
                poll(&model, &mut head, &mut read, barrier);
            }
            let taken = sender.join().unwrap();
            // In order, each once: those that were read, those that were taken back, the last one.
            read.splice(read.len() - 1..read.len() - 1, taken);
            assert_eq!(read, [1, 2, LAST]);
        });
    }

    #[test]
    fn each_is_read_or_taken_back() {
        check(Barrier::Both);
    }

    /// Writes a turn, takes it back if it may, and sends a record. Says whether it was taken back. `looks`: at whether
    /// the turn was read, which `seen` does not tell.
    fn say(model: &Model, looks: bool) -> bool {
        // SAFETY: the turn is the sender's; loom proves it.
        model.turn.with_mut(|turn| unsafe { *turn = 1 });
        model.word.store(1, Ordering::Release);
        let fenced = || {
            fence(Ordering::SeqCst);
            true
        };
        let taken = take_back(model, model.seen(), fenced, || {
            if looks && model.heard.load(Ordering::Acquire) != 0 {
                return false;
            }
            // SAFETY: the receiver does not read while a turn is taken back; loom proves it.
            model.turn.with_mut(|turn| unsafe { *turn = 0 });
            model.word.store(0, Ordering::Relaxed);
            true
        });
        push(model, LAST);
        taken == Some(true)
    }

    /// One poll: reads the turn if it is there, then the ring. Says what was read.
    fn hear(model: &Model) -> Vec<u64> {
        let mut read = Vec::new();
        let is_said = || model.heard.load(Ordering::Relaxed) == 0 && model.word.load(Ordering::Acquire) != 0;
        let has_news = is_said() || model.tail.load(Ordering::Acquire) != 0;
        if !has_news || !may_read(model, false, || fence(Ordering::SeqCst)) {
            loom::thread::yield_now();
            return read;
        }
        if is_said() {
            // SAFETY: the turn was written, and the sender does not take it back now; loom proves it.
            read.push(model.turn.with(|turn| unsafe { *turn }));
            model.heard.store(1, Ordering::Release);
        }
        if model.tail.load(Ordering::Acquire) != 0 {
            // SAFETY: the record was sent, and is never taken back.
            read.push(model.records[0].with(|record| unsafe { *record }));
        }
        has_read(model, 0);
        read
    }

    fn check_turn(looks: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Arc::new(Model::default());
            let theirs = model.clone();
            let sender = loom::thread::spawn(move || say(&theirs, looks));
            let mut read = Vec::new();
            while read.last() != Some(&LAST) {
                read.extend(hear(&model));
            }
            let expected: &[u64] = if sender.join().unwrap() { &[LAST] } else { &[1, LAST] };
            assert_eq!(read, expected);
        });
    }

    #[test]
    fn a_turn_is_read_or_taken_back() {
        check_turn(true);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn a_missing_look_at_what_was_read_is_found() {
        check_turn(false);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_missing_barrier_of_the_receiver_is_found() {
        check(Barrier::SenderOnly);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_missing_barrier_of_the_sender_is_found() {
        check(Barrier::ReceiverOnly);
    }
}
