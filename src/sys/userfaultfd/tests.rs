//! On the kernel that runs the tests. Where it has no userfaultfd for us, each says so and is over.

use super::*;
use crate::sys::child::Child;
use crate::sys::thread::Thread;
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, Sender};

const PAGES: usize = 8;

/// A mapping that the test takes apart.
struct Mapping(usize);

impl Mapping {
    fn new(flags: c_int, fd: RawFd) -> Mapping {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { libc::mmap(null_mut(), PAGES * page_size(), rights, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Mapping(at as usize)
    }

    fn private() -> Mapping {
        Mapping::new(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    fn pages(&self, first: usize, count: usize) -> Range<usize> {
        let start = self.0 + first * page_size();
        start..start + count * page_size()
    }
}

fn unmap(memory: &Range<usize>) {
    // SAFETY: pages of a mapping of the test's, which nothing uses.
    assert_eq!(unsafe { libc::munmap(memory.start as *mut _, memory.len()) }, 0);
}

fn opened() -> Option<Userfaultfd> {
    let opened = Userfaultfd::open();
    opened
        .inspect_err(|error| eprintln!("SKIPPED: this kernel gives us no userfaultfd: {error}"))
        .ok()
}

/// A thread that reads and tells a test, until it is dropped.
struct Ear {
    end: std::sync::Arc<EventFd>,
    thread: Option<Thread>,
    heard: Receiver<Gone>,
}

impl Ear {
    fn of(uffd: &Userfaultfd) -> Ear {
        let (reader, end) = (uffd.reader().unwrap(), std::sync::Arc::new(EventFd::new().unwrap()));
        let (tell, heard): (Sender<Gone>, _) = mpsc::channel();
        let stop = end.clone();
        let work = move || {
            while reader.wait(&stop) {
                let mut all = core::array::from_fn::<_, { Reader::ROOM }, _>(|_| None);
                let mut places = all.iter_mut();
                reader.read(|gone| *places.next().unwrap() = Some(gone));
                // Allocates, which the reader of a library must not; here nothing that is watched is an allocator's.
                all.into_iter().flatten().for_each(|gone| tell.send(gone).unwrap());
            }
        };
        let thread = Thread::start("fi_test", work).unwrap();
        Ear {
            end,
            thread: Some(thread),
            heard,
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.end.set();
        self.thread.take().unwrap().join();
    }
}

#[test]
fn what_goes_is_told() {
    let Some(uffd) = opened() else { return };
    let ear = Ear::of(&uffd);
    let mapping = Mapping::private();
    uffd.watch(&mapping.pages(1, 6)).unwrap();
    assert!(uffd.is_settled());
    let gone = |first, count, is_mapped| Gone {
        memory: mapping.pages(first, count),
        is_mapped,
    };
    // SAFETY: pages of a mapping of the test's, which nothing uses.
    let advise = |first, advice| unsafe { libc::madvise(mapping.pages(first, 1).start as *mut _, page_size(), advice) };
    assert_eq!(advise(1, libc::MADV_DONTNEED), 0);
    assert_eq!(ear.heard.recv(), Ok(gone(1, 1, true)));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let over = mapping.pages(2, 1);
    // SAFETY: over a page of the test's, which nothing uses.
    unsafe { libc::mmap(over.start as *mut _, over.len(), libc::PROT_READ, flags, -1, 0) };
    assert_eq!(ear.heard.recv(), Ok(gone(2, 1, false)));
    let (from, elsewhere) = (mapping.pages(3, 1), Mapping::private());
    let (how, to) = (
        libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
        elsewhere.0 as *mut libc::c_void,
    );
    // SAFETY: a page of the test's to a place of the test's.
    let moved = unsafe { libc::mremap(from.start as *mut _, from.len(), from.len(), how, to) };
    assert_eq!(moved, to);
    assert_eq!(ear.heard.recv(), Ok(gone(3, 1, false)));
    // What was not watched is not told, and neither is what is watched no more.
    uffd.unwatch(&mapping.pages(6, 1));
    unmap(&mapping.pages(6, 2));
    unmap(&mapping.pages(4, 2));
    // A page that has moved may be told to have gone from its old place twice.
    let last = ear.heard.iter().find(|heard| *heard != gone(3, 1, false));
    assert_eq!(last, Some(gone(4, 2, false)));
    assert!(uffd.is_settled());
}

/// What a call takes away is unsettled until it was read of, and the call waits as long.
#[test]
fn nothing_is_settled_before_it_was_read_of() {
    let Some(uffd) = opened() else { return };
    let mapping = Mapping::private();
    let pages = mapping.pages(0, PAGES);
    uffd.watch(&pages).unwrap();
    let (reader, never) = (uffd.reader().unwrap(), EventFd::new().unwrap());
    let (tell, told) = mpsc::channel();
    let away = pages.clone();
    let thread = Thread::start("fi_test", move || {
        unmap(&away);
        tell.send(()).unwrap();
    });
    assert!(reader.wait(&never));
    assert!(!uffd.is_settled());
    assert!(told.try_recv().is_err(), "munmap returned before it was read of");
    let mut heard = None;
    reader.read(|gone| heard = Some(gone));
    told.recv().unwrap();
    assert!(uffd.is_settled());
    let is_mapped = false;
    assert_eq!(
        heard,
        Some(Gone {
            memory: pages,
            is_mapped
        })
    );
    thread.unwrap().join();
}

/// Who waits to be read of goes on when nobody can read any more.
#[test]
fn the_end_of_the_reader_lets_all_go() {
    let Some(uffd) = opened() else { return };
    let mapping = Mapping::private();
    let pages = mapping.pages(0, PAGES);
    uffd.watch(&pages).unwrap();
    let (reader, never) = (uffd.reader().unwrap(), EventFd::new().unwrap());
    let thread = Thread::start("fi_test", move || unmap(&pages)).unwrap();
    assert!(reader.wait(&never));
    drop(uffd);
    drop(reader);
    thread.join();
}

#[test]
fn what_is_not_mapped_cannot_be_watched() {
    let Some(uffd) = opened() else { return };
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let of_file = Mapping::new(libc::MAP_PRIVATE, file.as_raw_fd());
    assert!(uffd.watch(&of_file.pages(0, 1)).is_err());
    unmap(&of_file.pages(0, PAGES));
    assert!(uffd.watch(&(0..page_size())).is_err());
    let (mapping, other) = (Mapping::private(), Userfaultfd::open().unwrap());
    uffd.watch(&mapping.pages(0, 1)).unwrap();
    assert!(other.watch(&mapping.pages(0, 1)).is_err());
    drop(uffd);
    unmap(&mapping.pages(0, PAGES));
}

/// A child changes its memory without being read of, while the parent's stays watched.
#[test]
fn children_are_not_watched() {
    let Some(uffd) = opened() else { return };
    let mapping = Mapping::private();
    uffd.watch(&mapping.pages(0, PAGES)).unwrap();
    let child = Child::run(|| unmap(&mapping.pages(0, PAGES)));
    assert_eq!(child.wait(), 0);
    let ear = Ear::of(&uffd);
    unmap(&mapping.pages(0, 1));
    let memory = mapping.pages(0, 1);
    assert_eq!(
        ear.heard.recv(),
        Ok(Gone {
            memory,
            is_mapped: false
        })
    );
}

#[test]
fn memory_is_rounded_to_pages() {
    let page = page_size();
    assert_eq!(pages(&(page..2 * page)), page..2 * page);
    assert_eq!(pages(&(page + 1..page + 2)), page..2 * page);
    assert_eq!(pages(&(page - 1..page + 1)), 0..2 * page);
}
