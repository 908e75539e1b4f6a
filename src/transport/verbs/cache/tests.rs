//! The cache over a stand-in monitor, which a test tells what goes; and over the kernel's.

use super::*;
use crate::sys::child::Child;
use crate::sys::shared::page_size;
use crate::sys::userfaultfd::Gone;
use crate::util::user::Lent;
use core::sync::atomic::AtomicBool;
use std::collections::HashMap;
use std::os::fd::RawFd;

/// A device that remembers of each key which memory it is for, and the first eight bytes of that when it was
/// registered.
#[derive(Clone, Default)]
struct TestNic(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    last: u32,
    now: HashMap<u32, (UserBuf, u64)>,
    /// There is room for so many bytes; 0: any number.
    room: usize,
}

struct TestRegistration(TestNic, u32);

impl TestNic {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }

    /// How many registrations there are, and have been.
    fn counts(&self) -> (usize, u32) {
        let known = self.known();
        (known.now.len(), known.last)
    }
}

impl Nic for TestNic {
    fn register(&self, memory: &UserBuf, _: Access) -> io::Result<Box<dyn Registration>> {
        let mut known = self.known();
        let used: usize = known.now.values().map(|(memory, _)| memory.len()).sum();
        if known.room != 0 && used + memory.len() > known.room {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let mut first = [0; 8];
        memory.read(&mut first);
        known.last += 1;
        let key = known.last;
        known.now.insert(key, (*memory, u64::from_ne_bytes(first)));
        Ok(Box::new(TestRegistration(self.clone(), key)))
    }
}

impl Registration for TestRegistration {
    fn local_key(&self) -> u32 {
        self.1
    }

    fn remote_key(&self) -> u32 {
        self.1 + 1000
    }
}

impl Drop for TestRegistration {
    fn drop(&mut self) {
        self.0.known().now.remove(&self.1);
    }
}

/// Sees all that a test tells.
#[derive(Default)]
pub struct TestMonitor {
    pub recent: Recent,
    unsettled: AtomicBool,
    blind: AtomicBool,
    watched: Mutex<Vec<Range<usize>>>,
    /// Of watches that ended, whether the memory was still what it was.
    ended: Mutex<Vec<bool>>,
}

impl Monitor for TestMonitor {
    fn watch(&self, pages: &Range<usize>) -> bool {
        assert_eq!((pages.start % page_size(), pages.end % page_size()), (0, 0));
        self.watched.lock().unwrap().push(pages.clone());
        let blind = self.blind.load(Ordering::Relaxed);
        if blind {
            self.watched.lock().unwrap().pop();
        }
        !blind
    }

    fn unwatch(&self, pages: &Range<usize>, is_mapped: bool) {
        let mut watched = self.watched.lock().unwrap();
        let at = watched.iter().position(|watched| watched == pages);
        watched.swap_remove(at.expect("what is watched"));
        self.ended.lock().unwrap().push(is_mapped);
    }

    fn is_settled(&self) -> bool {
        !self.unsettled.load(Ordering::Relaxed)
    }

    fn recent(&self) -> &Recent {
        &self.recent
    }
}

pub const ANY: Most = Most {
    count: usize::MAX,
    bytes: usize::MAX,
};

const READ: Access = Access {
    local_write: false,
    remote_read: true,
    remote_write: false,
};

const WRITE: Access = Access {
    local_write: true,
    remote_read: false,
    remote_write: false,
};

struct Bed {
    nic: TestNic,
    monitor: Arc<TestMonitor>,
    cache: Cache,
}

impl Bed {
    fn new(most: Most) -> Bed {
        let (nic, monitor) = (TestNic::default(), Arc::new(TestMonitor::default()));
        let cache = Cache::new(Box::new(nic.clone()), monitor.clone(), most);
        Bed { nic, monitor, cache }
    }

    /// The key of a transfer that is over at once.
    fn key(&self, memory: &UserBuf, access: Access) -> u32 {
        self.cache.register(memory, access).unwrap().local_key()
    }

    fn goes(&self, memory: Range<usize>, is_mapped: bool) {
        self.monitor.recent.tell(Gone { memory, is_mapped });
    }
}

fn memory(len: usize) -> UserBuf {
    Lent::new(&[len], 1).iov().only().unwrap()
}

#[test]
fn memory_is_registered_once_for_what_it_covers() {
    let bed = Bed::new(ANY);
    let whole = memory(10_000);
    let first = bed.cache.register(&whole.part(100, 9000), READ).unwrap();
    assert_eq!((first.local_key(), first.remote_key()), (1, 1001));
    assert_eq!(bed.key(&whole.part(100, 9000), READ), 1, "while it is in use");
    drop(first);
    assert_eq!(bed.key(&whole.part(8000, 1000), READ), 1);
    assert_eq!(bed.key(&whole.part(100, 8), Access::default()), 1, "without any right");
    assert_eq!(bed.key(&whole.part(100, 9000), WRITE), 2);
    assert_eq!(bed.key(&whole.part(100, 9000), WRITE), 2);
    assert_eq!(bed.key(&whole.part(8000, 1101), READ), 3, "a byte more than there is");
    assert_eq!(bed.nic.counts(), (3, 3));
    let Bed { nic, monitor, cache } = bed;
    drop(cache);
    assert_eq!(nic.counts(), (0, 3));
    assert!(monitor.watched.lock().unwrap().is_empty());
    assert_eq!(*monitor.ended.lock().unwrap(), [true; 3]);
}

#[test]
fn what_has_gone_is_not_found() {
    let bed = Bed::new(ANY);
    let (one, other) = (memory(5000), memory(5000));
    let (in_use, end) = (bed.cache.register(&one, READ).unwrap(), one.range().end);
    assert_eq!((bed.key(&other, READ), bed.key(&one, READ)), (2, 1));
    bed.goes(end - 1..end, false);
    assert_eq!(bed.key(&one, READ), 3);
    assert_eq!(bed.nic.counts(), (3, 3), "the transfer goes on");
    drop(in_use);
    assert_eq!((bed.nic.counts(), bed.key(&other, READ)), ((2, 3), 2));
    // Nobody need come back for what has gone.
    bed.goes(other.range(), true);
    bed.cache.settle();
    assert_eq!(bed.nic.counts(), (1, 3));
    assert_eq!(*bed.monitor.ended.lock().unwrap(), [false, true]);
    // Of too much at once nobody knows what it was.
    (0..1000).for_each(|_| bed.goes(0..1, false));
    bed.cache.settle();
    assert_eq!(bed.nic.counts(), (0, 3));
}

#[test]
fn nothing_is_found_or_kept_before_all_is_told() {
    let bed = Bed::new(ANY);
    let (one, other) = (memory(5000), memory(5000));
    assert_eq!(bed.key(&one, READ), 1);
    bed.monitor.unsettled.store(true, Ordering::Relaxed);
    assert_eq!((bed.key(&one, READ), bed.key(&other, READ)), (2, 3));
    assert_eq!(bed.nic.counts(), (1, 3));
    bed.monitor.unsettled.store(false, Ordering::Relaxed);
    assert_eq!((bed.key(&one, READ), bed.key(&other, READ)), (1, 4));
}

#[test]
fn what_cannot_be_watched_is_not_kept() {
    let bed = Bed::new(ANY);
    bed.monitor.blind.store(true, Ordering::Relaxed);
    let one = memory(5000);
    assert_eq!((bed.key(&one, READ), bed.key(&one, READ)), (1, 2));
    assert_eq!(bed.nic.counts(), (0, 2));
}

#[test]
fn what_was_used_least_lately_goes_first() {
    let bed = Bed::new(Most { count: 3, bytes: 1000 });
    let some: Vec<UserBuf> = (0..4).map(|_| memory(300)).collect();
    let keys = |which: &[usize]| {
        let keys = which.iter().map(|number| bed.key(&some[*number], READ));
        keys.collect::<Vec<u32>>()
    };
    assert_eq!(
        keys(&[0, 1, 2, 0, 3]),
        [1, 2, 3, 1, 4],
        "the second goes for the fourth"
    );
    assert_eq!(keys(&[0, 2, 3, 1]), [1, 3, 4, 5], "now the first");
    assert_eq!(keys(&[2, 3, 1]), [3, 4, 5]);
    // As many bytes as there may be take the place of several.
    let long = memory(700);
    assert_eq!((bed.key(&long, READ), bed.nic.counts()), (6, (2, 6)));
    assert_eq!((bed.key(&memory(1001), READ), bed.nic.counts()), (7, (2, 7)));
    assert_eq!((bed.key(&long, READ), keys(&[1])), (6, vec![5]));
    let none = Bed::new(Most { count: 0, ..ANY });
    assert_eq!((none.key(&long, READ), none.nic.counts()), (1, (0, 1)));
}

/// A device may know only so much, and a program's own registrations count too.
#[test]
fn what_is_kept_gives_way() {
    let bed = Bed::new(ANY);
    bed.nic.known().room = 1000;
    assert_eq!((bed.key(&memory(600), READ), bed.key(&memory(500), READ)), (1, 2));
    assert_eq!(bed.nic.counts(), (1, 2));
    let program = bed.cache.direct().register(&memory(700), READ).unwrap();
    assert_eq!((program.local_key(), bed.nic.counts()), (3, (1, 3)));
    let refused = bed.cache.register(&memory(600), READ).map(|_| ());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOMEM));
}

const LEN: usize = 64 << 10;

/// A mapping that says which it is in its first eight bytes.
fn map(at: usize, flags: i32, fd: RawFd, which: u64) -> UserBuf {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, at the kernel's choice or over one of the test's that nothing uses.
    let place = unsafe { libc::mmap(at as *mut _, LEN, rights, flags, fd, 0) };
    assert_ne!(place, libc::MAP_FAILED);
    // SAFETY: mapped until the test unmaps it, which names it no more then.
    let memory = unsafe { UserBuf::new(place.cast(), LEN) };
    memory.write(&which.to_ne_bytes());
    memory
}

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

fn unmap(memory: UserBuf) {
    // SAFETY: a mapping of the test's, which nothing uses.
    assert_eq!(unsafe { libc::munmap(memory.addr() as *mut _, LEN) }, 0);
}

/// A monitor of the test's own, so that what other tests do to their memory does not show here.
fn kernel() -> Option<(TestNic, Cache)> {
    let monitor = KernelMonitor::new()
        .inspect_err(|error| eprintln!("SKIPPED: this kernel gives us no userfaultfd: {error}"))
        .ok()?;
    let nic = TestNic::default();
    let cache = Cache::new(Box::new(nic.clone()), Arc::new(monitor), ANY);
    Some((nic, cache))
}

/// What the memory said that the device knows by the key of a transfer.
fn seen(nic: &TestNic, cache: &Cache, memory: &UserBuf) -> u64 {
    let registration = cache.register(memory, READ).unwrap();
    let (known, seen) = nic.known().now[&registration.local_key()];
    assert_eq!(known, *memory);
    seen
}

/// Until what has gone was told, every transfer registers for itself.
fn settle(cache: &Cache) {
    while !cache.store.monitor.is_settled() {
        std::thread::yield_now();
    }
    cache.settle();
}

#[test]
fn the_kernel_tells_what_was_mapped_anew() {
    let Some((nic, cache)) = kernel() else { return };
    let first = map(0, PRIVATE, -1, 1);
    let at = first.addr();
    assert_eq!((seen(&nic, &cache, &first), seen(&nic, &cache, &first)), (1, 1));
    assert_eq!(nic.counts(), (1, 1), "once is enough");
    // Over it.
    let second = map(at, PRIVATE | libc::MAP_FIXED, -1, 2);
    assert_eq!(seen(&nic, &cache, &second), 2, "settled or not");
    settle(&cache);
    let before = nic.counts().1;
    assert_eq!((seen(&nic, &cache, &second), seen(&nic, &cache, &second)), (2, 2));
    assert!(nic.counts().0 == 1 && nic.counts().1 <= before + 1, "kept again");
    // SAFETY: a mapping of the test's, which nothing uses.
    assert_eq!(unsafe { libc::madvise(at as *mut _, LEN, libc::MADV_DONTNEED) }, 0);
    assert_eq!(seen(&nic, &cache, &second), 0);
    settle(&cache);
    assert_eq!(seen(&nic, &cache, &second), 0);
    assert_eq!(nic.counts().0, 1);
    // Its last page alone.
    let last = at + LEN - page_size();
    // SAFETY: as above.
    let emptied = unsafe { libc::madvise(last as *mut _, page_size(), libc::MADV_DONTNEED) };
    assert_eq!(emptied, 0);
    settle(&cache);
    assert_eq!(
        nic.counts().0,
        0,
        "nothing is locked for a program that is done with it"
    );
    unmap(second);
}

/// Of a file, even one without a name, the kernel does not tell all that may become of it.
#[test]
fn memory_of_files_is_not_kept() {
    let Some((nic, cache)) = kernel() else { return };
    // SAFETY: a name that ends; the descriptor stays open until the process ends.
    let fd = unsafe { libc::memfd_create(c"test".as_ptr(), 0) };
    // SAFETY: a descriptor of ours.
    assert_eq!(unsafe { libc::ftruncate(fd, LEN as i64) }, 0);
    for flags in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
        let file = map(0, flags, fd, 7);
        assert_eq!(seen(&nic, &cache, &file), 7);
        assert_eq!(nic.counts().0, 0);
        unmap(file);
    }
}

/// Threads get addresses from the kernel that others have just given back, also while those others have not heard yet
/// that they have.
#[test]
fn no_thread_finds_what_another_has_unmapped() {
    let Some((nic, cache)) = kernel() else { return };
    let work = |thread: u64| {
        for round in 0..300 {
            let which = thread << 32 | (round + 1);
            let memory = map(0, PRIVATE, -1, which);
            assert_eq!(seen(&nic, &cache, &memory), which);
            unmap(memory);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
    settle(&cache);
    assert_eq!(nic.counts().0, 0);
}

/// A child of fork may drop its copy: nobody waits there, and the parent's memory is watched on.
#[test]
fn a_child_leaves_the_parents_alone() {
    let Some((nic, cache)) = kernel() else { return };
    let (memory, mut cache) = (map(0, PRIVATE, -1, 1), Some(cache));
    assert_eq!(seen(&nic, cache.as_ref().unwrap(), &memory), 1);
    let child = Child::run(|| {
        unmap(memory);
        drop(cache.take());
        assert_eq!(nic.counts().0, 1, "what the device knows is the parent's");
    });
    assert_eq!(child.wait(), 0);
    let cache = cache.unwrap();
    unmap(memory);
    settle(&cache);
    assert_eq!(nic.counts().0, 0);
}

/// What two registrations share is watched until both have gone.
#[test]
fn pages_of_two_are_watched_for_both() {
    let Ok(monitor) = KernelMonitor::new() else { return };
    let (memory, page) = (map(0, PRIVATE, -1, 1), page_size());
    let of = |first: usize, end: usize| memory.addr() + first * page..memory.addr() + end * page;
    assert!(monitor.watch(&of(0, 4)) && monitor.watch(&of(2, 6)) && monitor.watch(&of(2, 6)));
    monitor.unwatch(&of(2, 6), true);
    monitor.unwatch(&of(0, 4), true);
    let mut counted = 0;
    let mut count_of = |first: usize| {
        // SAFETY: a page of the test's, which nothing uses.
        unsafe { libc::madvise((memory.addr() + first * page) as *mut _, page, libc::MADV_DONTNEED) };
        while !monitor.is_settled() {
            std::thread::yield_now();
        }
        let new = monitor.recent().count() - counted;
        counted += new;
        new
    };
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(&mut count_of), [0, 0, 1, 1, 1, 1, 0]);
    unmap(memory);
}
