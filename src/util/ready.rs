//! Who has something to do: a mark for each, and lists of those that are marked.
//!
//! A reader that drives many takes its list and drives those alone. Whoever finds work sets the mark: who looks at many
//! at once, or a call that leaves something to be done later. A mark may be on several lists, as one endpoint is driven
//! by several queues. No mark is lost: one that is set while its owner is driven puts it on the list again, and one
//! that is set while a reader sleeps wakes the reader. Knows nobody; used by `api::progress`, set by transports too.

use super::mutex::{Mutex, lock};
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashSet;
use std::sync::Arc;

/// What wakes the sleeper of a list.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// The mark of one, and the lists it is on.
#[derive(Default)]
pub struct Ready {
    places: Mutex<Vec<(Arc<ReadyList>, u64)>>,
    readable: AtomicBool,
}

impl Ready {
    /// There is something to do, or may be.
    pub fn set(&self) {
        lock(&self.places).iter().for_each(|(list, name)| list.add(*name));
    }

    /// The same, as its descriptor is readable.
    pub fn set_readable(&self) {
        self.readable.store(true, Ordering::Relaxed);
        self.set();
    }

    /// Whether its descriptor was found readable since the last call. Whoever is driven for the mark sees it, as the
    /// list orders both.
    #[inline]
    pub fn take_readable(&self) -> bool {
        self.readable.load(Ordering::Relaxed) && self.readable.swap(false, Ordering::Relaxed)
    }

    /// From now on a mark puts `name` on this list, beginning with one: there may be work already.
    pub fn join(&self, list: &Arc<ReadyList>, name: u64) {
        lock(&self.places).push((list.clone(), name));
        list.add(name);
    }

    /// Takes one `join` back.
    pub fn leave(&self, list: &Arc<ReadyList>, name: u64) {
        let same = |(other, at): &(Arc<ReadyList>, u64)| Arc::ptr_eq(other, list) && *at == name;
        let mut places = lock(&self.places);
        if let Some(place) = places.iter().position(same) {
            places.swap_remove(place);
        }
    }
}

/// The names of those that are marked, each once.
#[derive(Default)]
pub struct ReadyList {
    state: Mutex<ListState>,
    wake: Option<Wake>,
}

#[derive(Default)]
struct ListState {
    names: Vec<u64>,
    known: HashSet<u64>,
    /// A reader sleeps.
    armed: bool,
}

impl ReadyList {
    pub fn new(wake: Option<Wake>) -> Arc<ReadyList> {
        Arc::new(ReadyList {
            wake,
            ..ReadyList::default()
        })
    }

    /// Puts a name on the list, and wakes a reader that sleeps.
    pub fn add(&self, name: u64) {
        let mut state = lock(&self.state);
        if state.known.insert(name) {
            state.names.push(name);
        }
        let asleep = core::mem::take(&mut state.armed);
        drop(state);
        if let Some(wake) = self.wake.as_ref().filter(|_| asleep) {
            wake();
        }
    }

    /// Takes all names, in the order they were marked in, into an empty `names`.
    pub fn take(&self, names: &mut Vec<u64>) {
        let mut state = lock(&self.state);
        core::mem::swap(&mut state.names, names);
        state.known.clear();
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.state).names.is_empty()
    }

    /// A reader is going to sleep: the next mark wakes it. False: there are marks already.
    pub fn arm(&self) -> bool {
        let mut state = lock(&self.state);
        state.armed = state.names.is_empty();
        state.armed
    }
}

/// Tries every order in which markers and readers come: `abi-tests/loom/run`. A reader that sleeps past a mark is a
/// deadlock, which loom finds.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Notify;
    use loom::sync::atomic::AtomicUsize;

    /// Work that is counted before its mark is set.
    #[derive(Default)]
    struct Worker {
        work: AtomicUsize,
        mark: Ready,
    }

    impl Worker {
        fn give(&self) {
            self.work.fetch_add(1, Ordering::Relaxed);
            self.mark.set();
        }
    }

    /// A list, and what its reader sleeps on.
    fn list() -> (Arc<ReadyList>, Arc<Notify>) {
        let bell = Arc::new(Notify::new());
        let rung = bell.clone();
        (ReadyList::new(Some(Box::new(move || rung.notify()))), bell)
    }

    /// Does so much work, and sleeps whenever there is no mark.
    fn read(list: &ReadyList, bell: &Notify, workers: &[Arc<Worker>], wanted: usize) {
        let (mut names, mut done) = (Vec::new(), 0);
        while done < wanted {
            list.take(&mut names);
            for name in names.drain(..) {
                done += workers[name as usize].work.swap(0, Ordering::Relaxed);
            }
            if done < wanted && list.arm() {
                bell.wait();
            }
        }
    }

    fn model(check: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(check);
    }

    #[test]
    fn no_mark_is_slept_past() {
        for each in [[1, 1], [2, 0]] {
            model(move || {
                let (list, bell) = list();
                let workers = [0, 1].map(|_| Arc::new(Worker::default()));
                (0..)
                    .zip(&workers)
                    .for_each(|(name, worker)| worker.mark.join(&list, name));
                let threads = [0, 1].map(|at| {
                    let worker = workers[at].clone();
                    loom::thread::spawn(move || (0..each[at]).for_each(|_| worker.give()))
                });
                read(&list, &bell, &workers, 2);
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        }
    }

    /// Work that came before the mark was on the list is found, too.
    #[test]
    fn a_mark_may_join_late() {
        model(|| {
            let (list, bell) = list();
            let worker = Arc::new(Worker::default());
            let giver = worker.clone();
            let thread = loom::thread::spawn(move || (0..2).for_each(|_| giver.give()));
            worker.mark.join(&list, 0);
            read(&list, &bell, &[worker], 2);
            thread.join().unwrap();
        });
    }

    /// Each list has the mark, whoever takes it from the other.
    #[test]
    fn two_lists_have_it() {
        model(|| {
            let (first, second) = (list(), list());
            let worker = Arc::new(Worker::default());
            worker.mark.join(&first.0, 0);
            worker.mark.join(&second.0, 0);
            let giver = worker.clone();
            let thread = loom::thread::spawn(move || giver.give());
            let mut names = Vec::new();
            first.0.take(&mut names);
            names.clear();
            while worker.work.load(Ordering::Relaxed) == 0 {
                second.0.take(&mut names);
                names.clear();
                if worker.work.load(Ordering::Relaxed) == 0 && second.0.arm() {
                    second.1.wait();
                }
            }
            thread.join().unwrap();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;

    fn taken(list: &ReadyList) -> Vec<u64> {
        let mut names = Vec::new();
        list.take(&mut names);
        names
    }

    #[test]
    fn a_mark_is_on_each_list_once_until_it_is_taken() {
        let (one, two) = (ReadyList::new(None), ReadyList::new(None));
        let mark = Ready::default();
        mark.join(&one, 7);
        mark.join(&two, 8);
        mark.set();
        mark.set();
        assert_eq!((taken(&one), taken(&two)), (vec![7], vec![8]));
        assert!(one.is_empty());
        mark.set();
        assert_eq!(taken(&one), [7]);
        mark.leave(&one, 7);
        mark.set();
        assert_eq!((taken(&one), taken(&two)), (vec![], vec![8]));
    }

    #[test]
    fn a_sleeper_is_woken_once_and_never_past_a_mark() {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = woken.clone();
        let list = ReadyList::new(Some(Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })));
        let mark = Ready::default();
        mark.join(&list, 1);
        assert!(!list.arm(), "there is a mark");
        assert_eq!((taken(&list), list.arm()), (vec![1], true));
        mark.set();
        mark.set();
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        assert!(!list.arm());
    }

    /// Whatever is counted before a mark is seen by whoever takes the mark: nothing is left over.
    #[test]
    fn no_mark_is_lost() {
        const EACH: usize = 20_000;
        let list = ReadyList::new(None);
        let marks: Vec<Ready> = (0..4).map(|_| Ready::default()).collect();
        let work: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        (0..).zip(&marks).for_each(|(name, mark)| mark.join(&list, name));
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (mark, work) in marks.iter().zip(&work) {
                scope.spawn(move || {
                    for _ in 0..EACH {
                        work.fetch_add(1, Ordering::Relaxed);
                        mark.set();
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    while done.load(Ordering::Relaxed) < EACH * 4 {
                        for name in taken(&list) {
                            let found = work[name as usize].swap(0, Ordering::Relaxed);
                            done.fetch_add(found, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(done.load(Ordering::Relaxed), EACH * 4);
    }
}
