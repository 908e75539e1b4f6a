//! Which endpoints a read drives, and that nobody sleeps past one with work. A `Clerk` is an endpoint that counts its
//! turns and can be busy, behind a descriptor or a mark. `schedule` tries every order of the threads; here they are
//! real.

use super::schedule::{COOL, LOOK};
use super::*;
use crate::abi::types::FI_WAIT_FD;
use crate::api::progress::Attached;
use crate::api::wait::bell::Slept;
use crate::sys::child::Child;
use crate::sys::eventfd::EventFd;
use crate::util::ready::Ready;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Whose work is handed in behind a descriptor that stays readable until somebody looks at it, or behind a mark.
struct Clerk {
    work: AtomicUsize,
    done: AtomicUsize,
    turns: AtomicUsize,
    /// So many turns find another thread at it.
    busy: AtomicUsize,
    event: EventFd,
    mark: Arc<Ready>,
}

impl Clerk {
    fn new() -> Arc<Clerk> {
        Arc::new(Clerk {
            work: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            turns: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            event: EventFd::new().unwrap(),
            mark: Arc::default(),
        })
    }

    fn watch(&self) -> Watch {
        Watch {
            mark: self.mark.clone(),
            fd: Some(self.event.fd()),
        }
    }

    /// As a peer would.
    fn send(&self) {
        self.work.fetch_add(1, Ordering::SeqCst);
        self.event.set();
    }

    /// As another thread would that leaves something to do.
    fn leave(&self) {
        self.work.fetch_add(1, Ordering::SeqCst);
        self.mark.set();
    }

    fn turns(&self) -> usize {
        self.turns.swap(0, Ordering::SeqCst)
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }
}

impl Progress for Clerk {
    fn progress(&self) {
        self.turn();
    }

    fn turn(&self) -> bool {
        self.turns.fetch_add(1, Ordering::SeqCst);
        if self
            .busy
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |busy| busy.checked_sub(1))
            .is_ok()
        {
            return true;
        }
        if self.mark.take_readable() {
            self.event.clear();
        }
        self.done
            .fetch_add(self.work.swap(0, Ordering::SeqCst), Ordering::SeqCst);
        false
    }

    fn arm(&self) -> bool {
        self.event.clear();
        self.work.load(Ordering::SeqCst) == 0
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.event.fd())
    }

    fn watch(&self) -> Option<Watch> {
        Some(Clerk::watch(self))
    }
}

fn as_progress(clerk: &Arc<Clerk>) -> Arc<dyn Progress> {
    clerk.clone()
}

fn marked(clerks: &[Arc<Clerk>]) -> Marked {
    let marked = Marked::new(None).unwrap();
    for clerk in clerks {
        assert!(marked.add(&as_progress(clerk), &clerk.watch()));
    }
    marked
}

fn clerks(count: usize) -> Vec<Arc<Clerk>> {
    (0..count).map(|_| Clerk::new()).collect()
}

/// Reads until nobody was found for long enough.
fn settle(marked: &Marked, clerks: &[Arc<Clerk>]) {
    (0..=COOL).for_each(|_| marked.progress());
    clerks.iter().for_each(|clerk| clerk.turns.store(0, Ordering::SeqCst));
}

#[test]
fn a_read_drives_those_alone_that_have_something_to_do() {
    let clerks = clerks(100);
    let marked = marked(&clerks);
    settle(&marked, &clerks);
    marked.progress();
    assert!(clerks.iter().all(|clerk| clerk.turns() == 0));
    clerks[7].send();
    clerks[8].leave();
    marked.progress();
    assert_eq!((clerks[7].done(), clerks[8].done()), (1, 1));
    assert_eq!(clerks.iter().map(|clerk| clerk.turns()).sum::<usize>(), 2);
}

/// So that who talks with one peer does not wait for a look.
#[test]
fn who_was_found_lately_is_driven_without_a_look() {
    let clerks = clerks(10);
    let marked = marked(&clerks);
    settle(&marked, &clerks);
    clerks[3].send();
    marked.progress();
    for read in 0..LOOK {
        // Unknown to the kernel.
        clerks[3].work.fetch_add(1, Ordering::SeqCst);
        marked.progress();
        assert_eq!(clerks[3].done() as u64, read + 2);
    }
    // Others are found all the same, by a look now and then.
    clerks[4].send();
    (0..LOOK).for_each(|_| marked.progress());
    assert_eq!(clerks[4].done(), 1);
    // When more were found than are driven so, all are looked for in each read.
    clerks[5].send();
    (0..LOOK).for_each(|_| marked.progress());
    settle_turns(&clerks);
    for clerk in &clerks {
        clerk.send();
        marked.progress();
        assert_eq!(clerk.turns(), 1);
    }
    assert_eq!(clerks.iter().map(|clerk| clerk.turns()).sum::<usize>(), 0);
}

/// A program that waits for an edge of the descriptor would hear no more of it.
#[test]
fn nobody_sleeps_past_what_the_last_read_did_not_look_for() {
    let clerks = clerks(3);
    let marked = marked(&clerks);
    settle(&marked, &clerks);
    clerks[0].send();
    marked.progress();
    clerks[1].send();
    marked.progress();
    assert_eq!((clerks[0].done(), clerks[1].done()), (1, 0), "it did not look");
    assert!(!marked.arm());
    marked.progress();
    assert_eq!(clerks[1].done(), 1);
    assert!(marked.arm());
}

fn settle_turns(clerks: &[Arc<Clerk>]) {
    clerks.iter().for_each(|clerk| clerk.turns.store(0, Ordering::SeqCst));
}

#[test]
fn who_could_not_be_driven_is_driven_again_until_it_leaves() {
    let clerk = Clerk::new();
    let endpoint = as_progress(&clerk);
    let marked = Marked::new(None).unwrap();
    let mark = clerk.mark.clone();
    clerk.busy.store(2, Ordering::SeqCst);
    assert!(marked.add(&endpoint, &Watch { mark, fd: None }));
    for turns in [1, 1, 1, 0] {
        marked.progress();
        assert_eq!(clerk.turns(), turns);
    }
    assert!(marked.arm(), "nobody has anything to do");
    clerk.mark.set();
    assert!(!marked.arm());
    marked.progress();
    assert!(marked.remove(&endpoint) && !marked.remove(&endpoint));
    clerk.mark.set();
    assert!(marked.arm(), "it has left");
}

#[test]
fn one_that_leaves_while_it_is_marked_is_not_driven_again() {
    let clerks = clerks(5);
    let marked = marked(&clerks);
    settle(&marked, &clerks);
    clerks.iter().for_each(|clerk| clerk.send());
    clerks.iter().for_each(|clerk| clerk.mark.set());
    let gone = as_progress(&clerks[2]);
    assert!(marked.remove(&gone));
    (0..LOOK).for_each(|_| marked.progress());
    assert_eq!(clerks[2].turns(), 0);
    let stay = clerks.iter().enumerate().filter(|(at, _)| *at != 2);
    assert!(stay.map(|(_, clerk)| clerk.done()).eq([1; 4]));
    drop(gone);
    assert_eq!(Arc::strong_count(&clerks[2]), 1);
}

/// A queue drives a few in each read, and more by a look; each is driven and slept on in one way, and leaves with its
/// last use.
#[test]
fn a_few_are_polled_and_more_are_looked_for() {
    let bell = Arc::new(Bell::new(FI_WAIT_FD).unwrap());
    for first_gone in 0..4 {
        let attached = Attached::new(Some(bell.clone()), true);
        let clerks = clerks(4);
        let attach = |at: usize| attached.attach(as_progress(&clerks[at]));
        attach(0);
        attach(1);
        attach(1);
        attached.progress();
        attached.progress();
        assert!([0, 1].iter().all(|at| clerks[*at].turns() == 2), "a few are polled");
        attach(2);
        attach(2);
        attach(3);
        assert_eq!(attached.count(), 6);
        (0..=COOL).for_each(|_| attached.progress());
        settle_turns(&clerks);
        clerks[first_gone].send();
        attached.progress();
        assert!((0..4).all(|at| clerks[at].turns() == usize::from(at == first_gone)));
        for at in (first_gone..4).chain(0..first_gone) {
            let endpoint = as_progress(&clerks[at]);
            (0..[1, 2, 2, 1][at]).for_each(|_| assert_eq!(attached.detach(&endpoint), Ok(())));
            assert!(attached.detach(&endpoint).is_err());
        }
        assert_eq!(attached.count(), 0);
        attached.progress();
        drop(attached);
        assert!(clerks.iter().all(|clerk| Arc::strong_count(clerk) == 1));
    }
}

/// Threads hand in work while one reads and sleeps; now and then its endpoint is busy. All of it is done.
#[test]
fn nothing_is_slept_past() {
    const EACH: usize = 3000;
    /// Far more than it takes, for busy machines.
    const PATIENCE: Duration = Duration::from_secs(60);
    let start = Instant::now();
    let bell = Arc::new(Bell::new(FI_WAIT_FD).unwrap());
    let attached = Attached::new(Some(bell.clone()), true);
    let clerks = clerks(6);
    clerks.iter().for_each(|clerk| attached.attach(as_progress(clerk)));
    let done = || clerks.iter().map(|clerk| clerk.done()).sum::<usize>();
    std::thread::scope(|scope| {
        for clerk in &clerks {
            scope.spawn(move || {
                for round in 0..EACH {
                    if round % 3 == 0 {
                        clerk.leave();
                    } else {
                        clerk.send();
                    }
                    if round % 16 == 0 {
                        clerk.busy.fetch_add(1, Ordering::SeqCst);
                        // Until it was driven, so that the reader sleeps now and then.
                        while clerk.done() <= round {
                            assert!(start.elapsed() < PATIENCE, "it was slept past");
                            std::thread::yield_now();
                        }
                    }
                }
            });
        }
        let mut sleeper = bell.enter();
        while done() < EACH * clerks.len() {
            attached.progress();
            sleeper.notice();
            bell.quiet();
            if !attached.arm() || done() == EACH * clerks.len() {
                continue;
            }
            assert_eq!(sleeper.sleep(PATIENCE.as_millis() as i32).unwrap(), Slept::Woken);
            assert!(start.elapsed() < PATIENCE, "it was slept past");
        }
    });
    clerks
        .iter()
        .for_each(|clerk| attached.detach(&as_progress(clerk)).unwrap());
}

/// A child of fork drives all, and takes nothing away from its parent.
#[test]
fn a_child_leaves_the_parents_descriptors_alone() {
    let clerks = clerks(3);
    let marked = marked(&clerks);
    settle(&marked, &clerks);
    let child = Child::run(|| {
        marked.progress();
        assert!(clerks.iter().all(|clerk| clerk.turns() == 1));
        assert!(marked.remove(&as_progress(&clerks[0])));
    });
    assert_eq!(child.wait(), 0);
    clerks[0].send();
    marked.progress();
    assert_eq!(clerks[0].done(), 1);
}
