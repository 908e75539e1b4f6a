//! Which members of a set a read drives, and when it looks at the descriptors of all: `Marked` without endpoints and
//! epoll, so that loom can try it (`model`).
//!
//! A read takes the list of marks before it drives anybody, so that a mark which is set meanwhile is on the list again.
//! A reader looks at the descriptors before it sleeps, as its last read may have driven a few without a look. What
//! became readable before that rings no more for a program that polls for edges.

use crate::util::mutex::{Mutex, lock};
use crate::util::ready::{ReadyList, Wake};
use core::mem::take;
use std::sync::Arc;

/// So many that were found lately are driven in each read. When there are more, all are looked for.
const RECENT: usize = 2;

/// For so many reads.
pub(super) const COOL: u64 = 2000;

/// Reads from one look to the next while some are driven without.
pub(super) const LOOK: u64 = 8;

pub(super) struct Schedule {
    /// Names of members that are marked.
    pub list: Arc<ReadyList>,
    turns: Mutex<Turns>,
}

/// Who is driven in the next read.
#[derive(Default)]
struct Turns {
    reads: u64,
    /// Names of those that were found lately, and until which read that counts.
    recent: Vec<(u64, u64)>,
    /// More were found lately than are driven in each read: until then all are looked for.
    crowded_until: u64,
    /// Somebody was about to sleep, who may have been woken by a descriptor, and then need not read twice to find out
    /// by which.
    slept: bool,
    /// The memory of the names that are taken from the list.
    names: Vec<u64>,
}

/// What came of driving a member.
pub(super) struct Turn {
    /// It has a descriptor, so polling may find what its mark does not tell.
    pub may_be_polled: bool,
    /// It must be driven again.
    pub more: bool,
}

impl Turns {
    /// Begins a read. Whether it looks for those that have something to do.
    fn begin(&mut self) -> bool {
        self.reads += 1;
        let now = self.reads;
        self.recent.retain(|(_, until)| *until > now);
        take(&mut self.slept) || self.recent.is_empty() || self.reads % LOOK == 0
    }

    /// This one was found.
    fn note(&mut self, name: u64) {
        let until = self.reads + COOL;
        if self.reads < self.crowded_until {
            return;
        }
        if let Some(known) = self.recent.iter_mut().find(|known| known.0 == name) {
            known.1 = until;
        } else if self.recent.len() < RECENT {
            self.recent.push((name, until));
        } else {
            self.recent.clear();
            self.crowded_until = until;
        }
    }
}

impl Schedule {
    pub(super) fn new(wake: Option<Wake>) -> Schedule {
        Schedule {
            list: ReadyList::new(wake),
            turns: Mutex::default(),
        }
    }

    /// A read. `look` marks those whose descriptors are readable, `drive` drives the member of a name; None: it has
    /// left. No lock is held meanwhile. Of two readers at once one may forget who was found lately, which costs a look.
    pub(super) fn read(&self, look: impl FnOnce(), mut drive: impl FnMut(u64) -> Option<Turn>) {
        let mut turns = take(&mut *lock(&self.turns));
        if turns.begin() {
            look();
        }
        let mut names = take(&mut turns.names);
        self.list.take(&mut names);
        let found = names.len();
        for (name, _) in &turns.recent {
            if !names.contains(name) {
                names.push(*name);
            }
        }
        for (at, name) in names.drain(..).enumerate() {
            let Some(turn) = drive(name) else {
                turns.recent.retain(|recent| recent.0 != name);
                continue;
            };
            if at < found && turn.may_be_polled {
                turns.note(name);
            }
            if turn.more {
                self.list.add(name);
            }
        }
        turns.names = names;
        let mut kept = lock(&self.turns);
        turns.slept |= kept.slept;
        *kept = turns;
    }

    /// A reader is going to sleep, until a mark is set or a descriptor becomes readable. False: somebody has something
    /// to do already.
    pub(super) fn arm(&self, look: impl FnOnce()) -> bool {
        lock(&self.turns).slept = true;
        look();
        self.list.arm()
    }
}

/// Tries every order in which peers and readers come: `abi-tests/loom/run`. A reader that sleeps past something that
/// has come is a deadlock, which loom finds.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Notify;
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// The member that was found lately: while it is, reads do not look for others.
    const RECENT: u64 = 0;
    /// The member for which something comes.
    const AWAITED: u64 = 1;
    const READERS: usize = 2;

    /// A completion queue with two endpoints, and its readers.
    struct Queue {
        schedule: Schedule,
        /// `Attached::driving`
        driving: Mutex<()>,
        /// The awaited member's descriptor.
        readable: AtomicBool,
        completions: AtomicUsize,
        /// What each reader sleeps on: woken when the descriptor becomes readable, as by an edge-triggered poll.
        sleeps: Arc<[Notify; READERS]>,
    }

    impl Queue {
        /// One in whose reads the other member has been found.
        fn new() -> Arc<Queue> {
            let sleeps = Arc::new([Notify::new(), Notify::new()]);
            let woken = sleeps.clone();
            let queue = Queue {
                schedule: Schedule::new(Some(Box::new(move || woken.iter().for_each(Notify::notify)))),
                driving: Mutex::default(),
                readable: AtomicBool::new(false),
                completions: AtomicUsize::new(0),
                sleeps,
            };
            queue.schedule.list.add(RECENT);
            queue.progress();
            Arc::new(queue)
        }

        /// As a peer.
        fn send(&self) {
            self.readable.store(true, Ordering::Release);
            self.wake();
        }

        fn wake(&self) {
            self.sleeps.iter().for_each(Notify::notify);
        }

        fn look(&self) {
            if self.readable.load(Ordering::Acquire) {
                self.schedule.list.add(AWAITED);
            }
        }

        fn drive(&self, name: u64) -> Option<Turn> {
            if name == AWAITED && self.readable.swap(false, Ordering::AcqRel) {
                self.completions.fetch_add(1, Ordering::Release);
                self.wake();
            }
            Some(Turn {
                may_be_polled: true,
                more: false,
            })
        }

        fn progress(&self) {
            match self.driving.try_lock() {
                Ok(_driving) => self.schedule.read(|| self.look(), |name| self.drive(name)),
                Err(_) => loom::thread::yield_now(),
            }
        }

        /// Reads until there is a completion, and sleeps meanwhile.
        fn await_completion(&self, reader: usize) {
            let is_there = || self.completions.load(Ordering::Acquire) > 0;
            while !is_there() {
                self.progress();
                if !is_there() && self.schedule.arm(|| self.look()) && !is_there() {
                    self.sleeps[reader].wait();
                }
            }
        }
    }

    fn model(other_reader: fn(&Queue)) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2); // with 3 it takes a minute
        builder.check(move || {
            let queue = Queue::new();
            let threads = [Queue::send, other_reader].map(|act| {
                let queue = queue.clone();
                loom::thread::spawn(move || act(&queue))
            });
            queue.await_completion(0);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    /// The one may take what the other left for its own next read.
    #[test]
    fn nobody_sleeps_past_what_came_while_another_reads() {
        model(|queue| (0..2).for_each(|_| queue.progress()));
    }

    #[test]
    fn of_two_who_sleep_both_hear_of_it() {
        model(|queue| queue.await_completion(1));
    }
}
