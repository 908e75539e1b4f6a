//! Waking sleepers that die meanwhile, or are very many, and the sockets that this takes.

use super::*;
use crate::sys::datagram;
use doorbell::Doorbell;
use exclusion::ExclusionWords;
use std::os::fd::{AsFd, RawFd};

/// Sets the soft limit on descriptors.
fn limit_descriptors(most: u64) {
    // SAFETY: rlimit is plain data; all zero is one.
    let mut limit: libc::rlimit = unsafe { core::mem::zeroed() };
    // SAFETY: a whole rlimit, twice.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = most.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
}

/// Peeks, as poll(2) takes no more descriptors than the limit allows.
fn is_readable(fd: RawFd) -> bool {
    let mut byte = [0u8; 1];
    // SAFETY: `byte` takes what is there.
    unsafe { libc::recv(fd, byte.as_mut_ptr().cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT) == 1 }
}

/// Waking needs no free descriptor.
#[test]
fn a_process_out_of_descriptors_wakes_its_peers() {
    let dir = Dir::new();
    let child = Child::run(|| {
        let (mut sleeper, mut end) = (dir.open("sleeper"), dir.open("end"));
        let (mut heard, to) = (Kept::default(), end.peer(b"sleeper").unwrap());
        push_all(&mut end, to, 0..1, &mut Kept::default());
        poll_until(&mut sleeper, &mut heard, |heard| heard.packets.len() == 1);
        limit_descriptors(0);
        assert!(std::fs::File::open("/dev/null").is_err());
        for id in 1..5 {
            assert!(sleeper.arm() && !is_readable(sleeper.wake_fd()));
            push_all(&mut end, to, id..id + 1, &mut Kept::default());
            assert!(is_readable(sleeper.wake_fd()), "message {id}");
            sleeper.disarm();
            assert!(!is_readable(sleeper.wake_fd()));
            poll_until(&mut sleeper, &mut heard, |heard| heard.packets.len() == id as usize + 1);
        }
    });
    assert_eq!(child.wait(), 0);
}

/// The poll that gives back the first lines of the small ring also comes to its end.
#[test]
fn a_sender_that_starves_is_woken_though_it_has_moved_to_a_large_ring() {
    let dir = Dir::new();
    let (mut sender, mut reader) = (dir.open("sender"), dir.open("reader"));
    let (to, mut read) = (sender.peer(b"reader").unwrap(), Kept::default());
    let mut pushed = 0;
    while sender.push(to, &header(7), Body::Bytes(&[7; 64]), None) == Push::Done {
        pushed += 1;
    }
    assert!(sender.arm() && !is_readable(sender.wake_fd()));
    poll_until(&mut reader, &mut read, |read| read.packets.len() == pushed);
    assert!(is_readable(sender.wake_fd()), "all {pushed} were read");
}

/// The engine refuses a packet of whom it does not know yet, and is to be asked again at once. If the sender takes
/// records back just then, the packet lies there unseen, and its sender rings no more.
#[test]
fn nobody_sleeps_on_what_could_not_be_read_again() {
    let dir = Dir::new();
    let (mut sender, mut reader) = (dir.open("sender"), dir.open("reader"));
    let to = sender.peer(b"reader").unwrap();
    assert_eq!(sender.push(to, &header(7), Body::Empty, None), Push::Done);
    let mut read = Kept {
        refuse: true,
        ..Kept::default()
    };
    let is_refused = |reader: &ShmTransport| {
        let lane = reader.inbox.get(0);
        lane.is_some_and(|inbound| inbound.has_refused())
    };
    while !is_refused(&reader) {
        reader.poll(&mut read, 64);
    }
    assert!(reader.arm(), "the engine knows of what it has refused");
    reader.disarm();
    read.refuse = false;
    let lane = sender.peers.get(to).unwrap().out.as_ref().unwrap().lane.rows();
    lane.begin_recalling();
    reader.poll(&mut read, 64);
    assert!(read.packets.is_empty());
    lane.end_recalling();
    assert!(!reader.arm());
    poll_until(&mut reader, &mut read, |read| read.packets.len() == 1);
}

#[test]
fn waking_the_dead_does_no_harm() {
    let dir = Dir::new();
    let mut end = dir.open("end");
    let (mut kept, to) = (Kept::default(), end.peer(b"sleeper").unwrap());
    let child = Child::run(|| {
        let mut sleeper = dir.open("sleeper");
        let to = sleeper.peer(b"end").unwrap();
        assert!(sleeper.arm());
        push_all(&mut sleeper, to, 0..1, &mut Kept::default());
        // SAFETY: ends this process as a crash would.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    assert_eq!(child.wait(), -1);
    // A write into a pipe that nobody reads would end this process; tests ignore that signal.
    // SAFETY: no handler is set, so nothing can be called.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    assert_eq!(
        end.push(to, &header(0), Body::Empty, None),
        Push::Unreachable(Unreached::Nobody),
        "it is dead, and its file removed"
    );
    end.own.doorbell.ring(7);
    poll_until(&mut end, &mut kept, |kept| kept.gone.len() == 1);
    assert_eq!(dir.names(), ["doorbell", "libfabric-rs.end"]);
}

/// More sleepers than one socket may have sent to before they have received it.
#[test]
fn more_are_woken_than_a_socket_may_ring() {
    const SLEEPERS: u64 = 900;
    let dir = Dir::new();
    let child = Child::run(|| {
        limit_descriptors(4 * SLEEPERS);
        let end = Doorbell::bind(&dir.0, u64::MAX).unwrap();
        let sleepers: Vec<_> = (0..SLEEPERS).map(|n| Doorbell::bind(&dir.0, n).unwrap()).collect();
        let silent = || sleepers.iter().filter(|bell| !is_readable(bell.fd())).count();
        (0..SLEEPERS).for_each(|n| end.ring(n));
        assert!(silent() == 0 && !end.has_unrung());
        sleepers.iter().for_each(Doorbell::drain);
        assert_eq!(silent(), sleepers.len());
        // Now without descriptors too: those that cannot be rung at once are rung as soon as some of the others woke.
        limit_descriptors(0);
        (0..SLEEPERS).for_each(|n| end.ring(n));
        assert!(silent() > 0 && end.has_unrung());
        let mut woken = vec![false; sleepers.len()];
        let start = Instant::now();
        while woken.contains(&false) {
            for (bell, woken) in sleepers.iter().zip(&mut woken) {
                *woken |= is_readable(bell.fd());
                bell.drain();
            }
            end.ring_again();
            assert!(start.elapsed() < PATIENCE);
        }
        assert!(!end.has_unrung());
    });
    assert_eq!(child.wait(), 0);
}

/// A socket whose endpoint's file was never finished is removed; one whose owner is still making the file is not.
#[test]
fn sockets_of_the_dead_are_swept() {
    let dir = Dir::new();
    let left = |instance| drop(datagram::bind(&name::doorbell(&dir.0, instance)).unwrap());
    let alive = dir.open("alive");
    (1..4).for_each(left);
    let draft = shared::create(&name::unfinished(&dir.0, 3)).unwrap();
    assert!(shared::try_lock(draft.as_fd(), layout::LOCK_LIFE).unwrap());
    sweep::sweep(&dir.0);
    let there = |instance| name::doorbell(&dir.0, instance).exists();
    assert_eq!([1, 2, 3, alive.own.instance].map(there), [false, false, true, true]);
    // Children that other tests fork beside this one may have the descriptor too.
    shared::unlock(draft.as_fd(), layout::LOCK_LIFE).unwrap();
    sweep::sweep(&dir.0);
    sweep::sweep(&dir.0);
    assert_eq!(dir.names(), ["doorbell", "libfabric-rs.alive"]);
}
