//! Bells: how senders tell a receiver which of its many lanes have news.
//!
//! A bit for each lane, in words, and a bit for each of these words, so that a receiver that looks reads little. A
//! sender writes its record and then rings; a receiver takes the bells and then reads the lanes. Whatever was written
//! before a bell was rung is seen by whoever takes it, and no bell stays behind that nobody looks for.
//!
//! This file is the order of loads and stores, over any `BellWords`: those in shared memory (`layout`), and loom's
//! (`model`). Called by `layout`.

/// Rings in a word, and words of them in a word above.
const BITS: usize = 64;

pub(super) trait BellWord {
    /// Whether a bit seems to be set. A hint: it may be late.
    fn looks_set(&self) -> bool;
    fn load(&self) -> u64;
    fn set(&self, bits: u64);
    /// Clears all bits and returns those that were set.
    fn take(&self) -> u64;
}

pub(super) trait BellWords {
    type Word: BellWord;
    /// The bells of a group of lanes.
    fn bells(&self, group: usize) -> &Self::Word;
    /// Which of so many groups have news.
    fn rung(&self, word: usize) -> &Self::Word;
}

/// A lane has news. SYNC POINT bell: the bit of the lane is set first, then that of its word. If the latter is set
/// already, the owner has yet to look at the word.
pub(super) fn ring(words: &impl BellWords, index: usize) {
    let group = index / BITS;
    words.bells(group).set(1 << (index % BITS));
    let (word, bit) = (words.rung(group / BITS), 1 << (group % BITS));
    if word.load() & bit == 0 {
        word.set(bit);
    }
}

/// Whether the bell of one of the first `used` lanes was rung.
pub(super) fn has_rung(words: &impl BellWords, used: usize) -> bool {
    (0..used.div_ceil(BITS * BITS)).any(|word| words.rung(word).looks_set())
}

/// Clears the bells of the first `used` lanes, and adds those whose bells were rung. SYNC POINT bell: the words' bits
/// are cleared first, then those of the lanes.
pub(super) fn take(words: &impl BellWords, used: usize, rung: &mut Vec<usize>) {
    for word in 0..used.div_ceil(BITS * BITS) {
        if !words.rung(word).looks_set() {
            continue;
        }
        for group in bits(words.rung(word).take()).map(|bit| word * BITS + bit) {
            if group < used.div_ceil(BITS) {
                rung.extend(bits(words.bells(group).take()).map(|bit| group * BITS + bit));
            }
        }
    }
}

/// The numbers of the bits that are set.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..BITS).filter(move |bit| word & 1 << bit != 0)
}

/// Tries every order in which senders ring and the receiver takes: `abi-tests/loom/run`. News that no bell tells of
/// keeps the receiver looking for ever, which loom finds.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};

    // Loom knows no order of all sequentially consistent accesses, so the model shows that less is enough.
    impl BellWord for AtomicU64 {
        fn looks_set(&self) -> bool {
            self.load(Ordering::Relaxed) != 0
        }

        fn load(&self) -> u64 {
            self.load(Ordering::Acquire)
        }

        fn set(&self, bits: u64) {
            self.fetch_or(bits, Ordering::AcqRel);
        }

        fn take(&self) -> u64 {
            self.swap(0, Ordering::AcqRel)
        }
    }

    #[derive(Default)]
    struct Model {
        /// Two lanes of one group, and one of another.
        bells: [AtomicU64; 2],
        rung: AtomicU64,
        /// What each lane's sender has written.
        sent: [AtomicU64; 3],
    }

    const RINGS: [usize; 3] = [0, 63, 64];

    impl BellWords for Model {
        type Word = AtomicU64;

        fn bells(&self, group: usize) -> &AtomicU64 {
            &self.bells[group]
        }

        fn rung(&self, _: usize) -> &AtomicU64 {
            &self.rung
        }
    }

    /// As `ring`, the other way round.
    fn ring_word_first(words: &Model, index: usize) {
        words.rung.set(1 << (index / BITS));
        words.bells[index / BITS].set(1 << (index % BITS));
    }

    /// Senders of these lanes write so many records each, and the receiver finds all.
    fn check(senders: &'static [usize], records: u64, ring: fn(&Model, usize)) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Arc::new(Model::default());
            let send = |sender: &usize| {
                let (model, sender) = (model.clone(), *sender);
                loom::thread::spawn(move || {
                    for record in 1..=records {
                        model.sent[sender].store(record, Ordering::Relaxed);
                        ring(&model, RINGS[sender]);
                    }
                })
            };
            let threads: Vec<_> = senders.iter().map(send).collect();
            let (mut seen, mut taken) = ([0; 3], Vec::new());
            while seen.iter().sum::<u64>() < records * senders.len() as u64 {
                if !has_rung(&*model, RINGS[2] + 1) {
                    loom::thread::yield_now();
                    continue;
                }
                take(&*model, RINGS[2] + 1, &mut taken);
                for index in taken.drain(..) {
                    let sender = RINGS
                        .iter()
                        .position(|ring| *ring == index)
                        .expect("a ring that has a sender");
                    seen[sender] = model.sent[sender].load(Ordering::Relaxed);
                }
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn all_news_are_found() {
        check(&[0], 3, |model, index| ring(model, index));
        check(&[0, 1], 2, |model, index| ring(model, index));
        check(&[1, 2], 1, |model, index| ring(model, index));
    }

    #[test]
    #[should_panic(expected = "branches")]
    fn a_bell_that_is_rung_the_other_way_round_is_missed() {
        check(&[0], 1, ring_word_first);
    }
}
