//! A peer's memory worked on without the peer: what is reached, what is not, and when it ends.

mod closing;
mod recall;

use super::super::board::{AT_SEVERAL, TURN, at_slot};
use super::super::reach::TIRED_AFTER;
use super::*;
use crate::util::regions::{Busy, Region as Registered};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::ffi::CStr;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

const LEN: usize = 300_000;
const KEY: u64 = 77;
/// Remote addresses count from here.
const BASE: u64 = 0x1000;
const NAME: &CStr = c"reached";

/// Mapped memory, and its file if it has one.
struct Memory {
    at: *mut u8,
    file: Option<OwnedFd>,
}

// SAFETY: memory of the process, which tests touch through atomics and copies.
unsafe impl Sync for Memory {}

impl Memory {
    fn map(file: Option<OwnedFd>, flags: i32) -> Memory {
        use std::os::fd::AsRawFd;
        let fd = file.as_ref().map_or(-1, |file| file.as_raw_fd());
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), LEN, access, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Memory { at: at.cast(), file }
    }

    fn shared() -> Memory {
        // SAFETY: a C string; the descriptor is new.
        let file = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC)) };
        std::fs::File::from(file.try_clone().unwrap())
            .set_len(LEN as u64)
            .unwrap();
        Memory::map(Some(file), libc::MAP_SHARED)
    }

    fn private() -> Memory {
        Memory::map(None, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn buf(&self) -> UserBuf {
        // SAFETY: mapped until this is dropped, and tests close what they registered before.
        unsafe { UserBuf::new(self.at, LEN) }
    }

    fn byte(&self, at: usize) -> &AtomicU8 {
        assert!(at < LEN);
        // SAFETY: within the mapping.
        unsafe { AtomicU8::from_ptr(self.at.add(at)) }
    }

    fn region(&self, rights: Rights) -> Registered {
        Registered {
            memory: UserIov::one(self.buf()),
            rights,
            base: BASE,
            enabled: true,
            endpoint: None,
            watched: false,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`.
        unsafe { libc::munmap(self.at.cast(), LEN) };
    }
}

fn own(bytes: &mut [u8]) -> UserIov {
    // SAFETY: the test keeps the bytes until the call that it makes next has returned.
    UserIov::one(unsafe { UserBuf::new(bytes.as_mut_ptr(), bytes.len()) })
}

fn part(at: usize, len: usize) -> RemotePart {
    RemotePart {
        addr: BASE + at as u64,
        len,
        key: KEY,
    }
}

fn write(end: &mut ShmTransport, to: PeerId, part: &RemotePart, bytes: &mut [u8]) -> bool {
    let local = own(bytes);
    end.reach(to, part, Rights::WRITE, |memory| memory.fill(&local))
        .is_some()
}

fn read(end: &mut ShmTransport, to: PeerId, part: &RemotePart, bytes: &mut [u8]) -> bool {
    let local = own(bytes);
    end.reach(to, part, Rights::READ, |memory| memory.pour(&local))
        .is_some()
}

fn copy(end: &mut ShmTransport, to: PeerId, part: &RemotePart, local: &UserIov, access: Access) -> bool {
    end.copy(to, part, local, access, 9) == port::Get::Done
}

/// A target with one region, and an initiator.
struct Pair {
    dir: Dir,
    regions: Arc<Regions>,
    target: ShmTransport,
    end: ShmTransport,
    to: PeerId,
}

fn pair(region: Registered) -> Pair {
    let dir = Dir::new();
    let regions = Arc::new(Regions::new(false, true));
    assert_eq!(regions.add(region, KEY), Some(KEY));
    let (mut target, mut end) = (dir.open("target"), dir.open("end"));
    target.publish_regions(&regions, 3);
    let to = end.peer(b"target").unwrap();
    Pair {
        dir,
        regions,
        target,
        end,
        to,
    }
}

#[test]
fn shared_memory_is_read_and_written_in_place() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    for (at, len) in [
        (0, 1),
        (5, 8),
        (4095, 2),
        (65535, 9),
        (100, 200_000),
        (LEN - 3, 3),
        (LEN, 0),
    ] {
        let mut bytes: Vec<u8> = (0..len).map(|byte| (byte * 7 + at) as u8 | 1).collect();
        assert!(write(&mut p.end, p.to, &part(at, len), &mut bytes), "{at} {len}");
        assert!(
            (0..len).all(|byte| memory.byte(at + byte).load(Ordering::Relaxed) == bytes[byte]),
            "{at} {len}"
        );
        let mut back = vec![0; len];
        assert!(read(&mut p.end, p.to, &part(at, len), &mut back));
        assert!(back == bytes);
    }
}

#[test]
fn private_memory_is_copied_by_the_kernel_if_that_pays() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let mut bytes: Vec<u8> = (0..200_000).map(|at| at as u8).collect();
    assert!(!write(&mut p.end, p.to, &part(0, 8), &mut [1; 8]));
    let least = p.end.config.bulk;
    assert!(!copy(
        &mut p.end,
        p.to,
        &part(0, least - 1),
        &own(&mut bytes[..least - 1]),
        Access::Write
    ));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 0);
    for len in [least, 200_000] {
        let at = LEN - len;
        assert!(copy(
            &mut p.end,
            p.to,
            &part(at, len),
            &own(&mut bytes[..len]),
            Access::Write
        ));
        assert!((0..len).all(|byte| memory.byte(at + byte).load(Ordering::Relaxed) == byte as u8));
        // Ours in pieces.
        let mut back = vec![0; len];
        let (first, second) = back.split_at_mut(len / 3);
        let local = UserIov::new([own(first), own(second)].iter().flat_map(|iov| iov.parts()).copied()).unwrap();
        assert!(copy(&mut p.end, p.to, &part(at, len), &local, Access::Read));
        assert!(back == bytes[..len]);
    }
    p.end.config.fetch = false;
    assert!(!copy(
        &mut p.end,
        p.to,
        &part(0, 200_000),
        &own(&mut bytes),
        Access::Write
    ));
}

/// Each of these is for the target to answer.
#[test]
fn what_is_not_allowed_is_not_done() {
    for memory in [Memory::shared(), Memory::private()] {
        let rows = [
            (Rights::READ, part(0, 20_000), Access::Write),
            (Rights::WRITE, part(0, 20_000), Access::Read),
            (Rights::BOTH, part(LEN - 19_999, 20_000), Access::Write),
            (Rights::BOTH, part(LEN + 1, 20_000), Access::Read),
            (
                Rights::BOTH,
                RemotePart {
                    addr: BASE - 1,
                    ..part(0, 20_000)
                },
                Access::Write,
            ),
            (
                Rights::BOTH,
                RemotePart {
                    addr: u64::MAX,
                    ..part(0, 20_000)
                },
                Access::Write,
            ),
            (
                Rights::BOTH,
                RemotePart {
                    key: KEY + 1,
                    ..part(0, 20_000)
                },
                Access::Read,
            ),
        ];
        for (rights, part, access) in rows {
            let mut p = pair(memory.region(rights));
            let mut bytes = vec![9; 20_000];
            let reached = match access {
                Access::Read => read(&mut p.end, p.to, &part, &mut bytes),
                Access::Write => write(&mut p.end, p.to, &part, &mut bytes),
            };
            assert!(
                !reached && !copy(&mut p.end, p.to, &part, &own(&mut bytes), access),
                "{part:?}"
            );
            assert!(bytes.iter().all(|byte| *byte == 9));
            assert!((0..LEN).all(|at| memory.byte(at).load(Ordering::Relaxed) == 0));
        }
    }
}

/// Where a region was used, it is still used within its bounds and rights only.
#[test]
fn what_was_used_allows_no_more() {
    let memory = Memory::shared();
    let kinds = [Rights::READ, Rights::WRITE, Rights::BOTH];
    for rights in kinds {
        let mut p = pair(memory.region(rights));
        for _ in 0..2 {
            for wanted in kinds {
                let mut reach = |part: RemotePart| p.end.reach(p.to, &part, wanted, |memory| memory.len());
                for (at, len) in [(0, 8), (65_530, 12), (LEN - 8, 8), (100, 0), (LEN, 0), (0, LEN)] {
                    let reached = rights.allow(wanted).then_some(len);
                    assert_eq!(reach(part(at, len)), reached, "{rights:?} {wanted:?} {at} {len}");
                }
                let outside = |back: u64, len| RemotePart {
                    addr: BASE.wrapping_sub(back),
                    ..part(0, len)
                };
                for part in [
                    part(LEN - 8, 9),
                    part(LEN + 1, 0),
                    part(8, usize::MAX),
                    outside(1, 1),
                    outside(1, 0),
                    outside(BASE, 0),
                    outside(BASE + 1, 0),
                ] {
                    assert_eq!(reach(part), None, "{rights:?} {wanted:?} {part:?}");
                }
            }
        }
    }
}

/// Closed, closed and registered again, watched, another endpoint's: as the records say.
#[test]
fn regions_come_and_go() {
    let (memory, other) = (Memory::shared(), Memory::shared());
    let mut p = pair(memory.region(Rights::BOTH));
    let mut write = |value| write(&mut p.end, p.to, &part(9, 1), &mut [value]);
    assert!(write(1));
    p.regions.remove(KEY).unwrap();
    assert!(!write(2) && !write(2));
    p.regions.add(other.region(Rights::BOTH), KEY).unwrap();
    assert!(!write(3), "what was known is forgotten");
    assert!(write(4));
    let value = |memory: &Memory| memory.byte(9).load(Ordering::Relaxed);
    assert_eq!((value(&memory), value(&other)), (1, 4));
    for (change, shown) in [
        ((|region| region.watched = true) as fn(&mut Registered), false),
        (|region| region.watched = false, true),
        (|region| region.endpoint = Some(4), false),
        (|region| region.endpoint = Some(3), true),
        (|region| region.enabled = false, false),
    ] {
        assert!(p.regions.change(KEY, change));
        let _ = (write(5), write(5));
        assert_eq!(write(6), shown);
    }
}

#[test]
fn a_file_of_regions_has_room_for_many() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    let keys = 1000..1000 + layout::MAX_SLOTS as u64;
    for key in keys.clone() {
        assert!(p.regions.add(memory.region(Rights::BOTH), key).is_some());
    }
    let mut write = |key| write(&mut p.end, p.to, &RemotePart { key, ..part(3, 1) }, &mut [1]);
    assert!(write(1000) && write(keys.end - 2) && write(KEY));
    assert!(!write(keys.end - 1), "the table is full");
    p.regions.remove(1000).unwrap();
    assert!(!write(1000));
    p.regions.add(memory.region(Rights::BOTH), 5).unwrap();
    assert!(write(5));
}

/// What was sent before comes before: here by asking the target, who must look first.
#[test]
fn nothing_passes_what_was_sent() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    let mut kept = Kept::default();
    for round in 0..600 {
        assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
        push_all(&mut p.end, p.to, round..round + 1, &mut Kept::default());
        assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [2]));
        assert!(!copy(
            &mut p.end,
            p.to,
            &part(0, 20_000),
            &own(&mut vec![2; 20_000]),
            Access::Write
        ));
        poll_until(&mut p.target, &mut kept, |kept| kept.packets.len() as u32 > round);
        assert_eq!(memory.byte(0).load(Ordering::Relaxed), 1);
    }
}

/// What could not be mapped is tried again, in some time: its file may have been too short, or descriptors used up.
#[test]
fn what_was_refused_may_be_given_later() {
    let memory = Memory::shared();
    let file = std::fs::File::from(memory.file.as_ref().unwrap().try_clone().unwrap());
    let mut p = pair(memory.region(Rights::BOTH));
    file.set_len(4096).unwrap();
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    file.set_len(LEN as u64).unwrap();
    let out = p.end.peers.get_mut(p.to).and_then(|peer| peer.out.as_mut()).unwrap();
    out.views.make_due();
    // It is looked for again by the first and used by the second.
    let _ = write(&mut p.end, p.to, &part(0, 1), &mut [2]);
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [3]));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 3);
}

/// The kernel too is asked again.
#[test]
fn a_peer_that_could_not_be_known_is_asked_again() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(p.end.connect(p.to).is_ok());
    let out = p.end.peers.get_mut(p.to).and_then(|peer| peer.out.as_mut()).unwrap();
    out.proof.refused();
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let out = p.end.peers.get_mut(p.to).and_then(|peer| peer.out.as_mut()).unwrap();
    assert!(!out.is_known() && !out.is_proved());
    out.proof.again.make_due();
    out.views.make_due();
    assert!(out.is_proved());
    let _ = write(&mut p.end, p.to, &part(0, 1), &mut [2]);
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [3]));
}

/// A full file system under the region is no signal.
#[test]
fn memory_that_is_not_there_is_not_touched() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let file = std::fs::File::from(memory.file.as_ref().unwrap().try_clone().unwrap());
    file.set_len(4096).unwrap();
    assert!(!write(&mut p.end, p.to, &part(LEN - 10, 1), &mut [1]));
}

/// The target does nothing but wait for a byte, from before the first operation to after the last.
#[test]
fn a_target_that_does_nothing_is_reached() {
    for (memory, len) in [
        (Memory::shared(), 8),
        (Memory::shared(), 100_000),
        (Memory::private(), 100_000),
    ] {
        let dir = Dir::new();
        let (mut from_parent, mut to_child) = std::io::pipe().unwrap();
        let (mut from_child, mut to_parent) = std::io::pipe().unwrap();
        let child = Child::run(|| {
            let regions = Arc::new(Regions::new(false, true));
            regions.add(memory.region(Rights::BOTH), KEY).unwrap();
            let mut target = dir.open("target");
            target.publish_regions(&regions, 1);
            memory.byte(5).store(5, Ordering::Relaxed);
            to_parent.write_all(&[1]).unwrap();
            let mut byte = [0];
            from_parent.read_exact(&mut byte).unwrap();
            assert!((100..100 + len).all(|at| memory.byte(at).load(Ordering::Relaxed) == 7));
            regions.remove(KEY).unwrap();
            to_parent.write_all(&[2]).unwrap();
            from_parent.read_exact(&mut byte).unwrap();
            assert!((100..100 + len).all(|at| memory.byte(at).load(Ordering::Relaxed) == 7));
        });
        let mut end = dir.open("end");
        let to = end.peer(b"target").unwrap();
        let mut byte = [0];
        from_child.read_exact(&mut byte).unwrap();
        let (mut seven, mut back) = (vec![7; len], vec![0; len]);
        let done = |end: &mut ShmTransport, at: usize, bytes: &mut [u8], access| match access {
            _ if memory.file.is_none() => copy(end, to, &part(at, len), &own(bytes), access),
            Access::Read => read(end, to, &part(at, len), bytes),
            Access::Write => write(end, to, &part(at, len), bytes),
        };
        assert!(done(&mut end, 0, &mut back, Access::Read));
        assert_eq!(back[5], 5);
        assert!(done(&mut end, 100, &mut seven, Access::Write));
        to_child.write_all(&[1]).unwrap();
        from_child.read_exact(&mut byte).unwrap();
        // It is closed now.
        assert!(!done(&mut end, 100, &mut back, Access::Write));
        to_child.write_all(&[1]).unwrap();
        assert_eq!(child.wait(), 0);
    }
}

/// Mapped memory outlives its owner: the initiator finds out by itself, without a poll.
#[test]
fn a_killed_target_is_missed() {
    let memory = Memory::shared();
    let dir = Dir::new();
    let (mut from_child, mut to_parent) = std::io::pipe().unwrap();
    let child = Child::run(|| {
        let regions = Arc::new(Regions::new(false, true));
        regions.add(memory.region(Rights::BOTH), KEY).unwrap();
        let mut target = dir.open("target");
        target.publish_regions(&regions, 1);
        to_parent.write_all(&[1]).unwrap();
        std::thread::sleep(Duration::from_secs(60));
    });
    let mut byte = [0];
    from_child.read_exact(&mut byte).unwrap();
    let mut end = dir.open("end");
    let to = end.peer(b"target").unwrap();
    assert!(write(&mut end, to, &part(0, 1), &mut [1]));
    child.kill();
    let most = (0..=TIRED_AFTER).find(|_| !write(&mut end, to, &part(0, 1), &mut [1]));
    assert!(most.is_some());
    assert!(!copy(
        &mut end,
        to,
        &part(0, 20_000),
        &own(&mut vec![0; 20_000]),
        Access::Write
    ));
    assert_eq!(end.push(to, &header(1), Body::Empty), Push::Gone);
    let mut kept = Kept::default();
    poll_until(&mut end, &mut kept, |kept| kept.gone == [to]);
    assert_eq!(dir.names(), ["bell", "libfabric-rs.end"]);
}

/// A child of fork has neither side of it, and takes nothing from its parent.
#[test]
fn a_child_of_fork_reaches_nothing() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let child = Child::run(|| {
        assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [2]));
        assert!(!copy(
            &mut p.end,
            p.to,
            &part(0, 20_000),
            &own(&mut vec![2; 20_000]),
            Access::Write
        ));
        p.regions.remove(KEY).unwrap();
        p.regions.add(memory.region(Rights::BOTH), KEY + 1);
        drop(std::mem::replace(&mut p.end, p.dir.open("child")));
        drop(std::mem::replace(&mut p.target, p.dir.open("child2")));
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 1);
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [3]));
}

/// When the target's endpoint closes, its regions are no longer reached through it; the file goes.
#[test]
fn a_closed_endpoint_shows_nothing() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let inode = shared::status(memory.file.as_ref().unwrap().as_fd())
            .unwrap()
            .inode
            .to_string();
        maps.lines()
            .filter(|line| line.split_whitespace().nth(4) == Some(&inode))
            .count()
    };
    assert_eq!(mapped(), 2);
    drop(p.target);
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [2]));
    assert_eq!(mapped(), 1);
    p.regions.remove(KEY).unwrap();
    assert_eq!(p.dir.names(), ["bell", "libfabric-rs.end"]);
}

/// What is mapped of a region that was closed goes when peers are looked at, though it is never used again.
#[test]
fn what_is_closed_is_not_kept() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let views = |end: &ShmTransport| end.peers.get(p.to).unwrap().out.as_ref().unwrap().views.len();
    p.end.check_peers(&mut Kept::default());
    assert_eq!(views(&p.end), 1);
    p.regions.remove(KEY).unwrap();
    p.end.check_peers(&mut Kept::default());
    assert_eq!(views(&p.end), 0);
}

/// Several pieces, in regions of their own, are all reached or none.
#[test]
fn several_pieces_are_all_reached_or_none() {
    let (memory, other) = (Memory::shared(), Memory::shared());
    let mut p = pair(memory.region(Rights::BOTH));
    let (second, private, read_only) = (KEY + 1, KEY + 2, KEY + 3);
    let alone = Memory::private();
    p.regions.add(other.region(Rights::BOTH), second);
    p.regions.add(alone.region(Rights::BOTH), private);
    p.regions.add(other.region(Rights::READ), read_only);
    let with = |key, at, len| RemotePart { key, ..part(at, len) };
    let reach = |p: &mut Pair, parts: &[RemotePart], bytes: &[u8]| {
        let done = p
            .end
            .reach_all(p.to, parts, Rights::WRITE, |pieces| pieces.write(0, bytes));
        done.is_some_and(|written| written == bytes.len())
    };
    let all = [
        part(7, 3),
        with(second, 0, 2),
        part(70_000, 4),
        with(second, LEN - 1, 1),
    ];
    assert!(reach(&mut p, &all, b"abcdefghij"));
    let seen = |memory: &Memory, at: usize, len: usize| -> Vec<u8> {
        (at..at + len)
            .map(|at| memory.byte(at).load(Ordering::Relaxed))
            .collect()
    };
    let now = || {
        [
            seen(&memory, 7, 3),
            seen(&other, 0, 2),
            seen(&memory, 70_000, 4),
            seen(&other, LEN - 1, 1),
        ]
        .concat()
    };
    assert_eq!(now(), b"abcdefghij");
    for bad in [
        with(private, 0, 1),
        with(read_only, 0, 1),
        with(second, LEN, 1),
        with(99, 0, 1),
    ] {
        for at in 0..3 {
            let mut parts = all;
            parts[at] = bad;
            assert!(!reach(&mut p, &parts, b"0123456789"), "{bad:?}");
            assert_eq!(now(), b"abcdefghij");
        }
    }
    p.regions.remove(second).unwrap();
    assert!(!reach(&mut p, &all, b"0123456789"));
    assert!(reach(&mut p, &[part(7, 3), part(70_000, 4)], b"0123456"));
    assert_eq!(now(), b"012de3456j");
    // Its key means another region by now.
    p.regions.add(other.region(Rights::BOTH), second);
    assert!(reach(&mut p, &all, b"ABCDEFGHIJ"));
    assert_eq!(now(), b"ABCDEFGHIJ");
}
