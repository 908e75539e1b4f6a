//! Children of fork: what they must not have of their parent, and the locks that this stands on.

use super::*;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a thread when it is dropped, so that a failed test ends too.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Children that other threads make at any moment do not hold what their parent claimed.
#[test]
fn children_keep_no_claim() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let mut kept = Kept::default();
    let stop = AtomicBool::new(false);
    let fork = || {
        while !stop.load(Ordering::Relaxed) {
            let nap = || std::thread::sleep(Duration::from_millis(10));
            let children = [(); 4].map(|()| Child::run(nap));
            children.iter().for_each(|child| assert_eq!(child.wait(), 0));
        }
    };
    let mut held = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(fork);
        let _stop = Stop(&stop);
        for round in 1..=400 {
            let mut other = dir.open("there");
            let to = other.peer(b"here").unwrap();
            let pushed = other.push(to, &header(round), Body::Empty, None);
            drop(other);
            let locked = |index: &usize| {
                let lock = layout::LOCK_LANES + *index as i64;
                end.own.header.claim(*index).is_some() && shared::is_locked(end.own.file(), lock).unwrap()
            };
            held.extend((0..end.own.header.used()).find(locked).map(|index| (round, index)));
            let start = Instant::now();
            while kept.gone.len() < round as usize && start.elapsed() < PATIENCE {
                end.poll(&mut kept, 64);
            }
            if pushed != Push::Done || !held.is_empty() {
                break;
            }
        }
    });
    assert_eq!(held, []);
    assert_eq!((kept.packets.len(), kept.gone.len()), (400, 400));
}

/// A child removes what the dead left, though a thread of its parent was about that at the fork.
#[test]
fn children_sweep() {
    let [one, other, left] = [(); 3].map(|()| Dir::new());
    let draft = name::unfinished(&left.0, 1);
    let stop = AtomicBool::new(false);
    let sweep_on = || {
        while !stop.load(Ordering::Relaxed) {
            [&one, &other].iter().for_each(|dir| sweep::begin(&dir.0));
        }
    };
    let child = || {
        drop(shared::create(&draft).unwrap());
        sweep::begin(&left.0);
        assert!(!draft.exists());
    };
    let in_vain = std::thread::scope(|scope| {
        scope.spawn(sweep_on);
        let _stop = Stop(&stop);
        (0..200).find(|_| Child::run(child).wait() != 0)
    });
    assert_eq!(in_vain, None, "of 200 children");
}

/// A child of fork neither speaks for its parent nor takes anything from it, nor keeps it alive.
#[test]
fn a_child_of_fork_has_no_endpoint() {
    let dir = Dir::new();
    let mut watcher = dir.open("watcher");
    let (mut tell, mut ask) = UnixStream::pair().unwrap();
    let parent = Child::run(|| {
        let mut end = dir.open("parent");
        let to = end.peer(b"watcher").unwrap();
        assert_eq!(end.push(to, &header(1), Body::Empty, None), Push::Done);
        let child = Child::run(|| {
            let mut kept = Kept::default();
            assert_eq!(end.push(to, &header(2), Body::Empty, None), Push::Gone);
            assert_eq!(end.poll(&mut kept, 8), 0);
            end.check_peers(&mut kept);
            end.arm();
            end.disarm();
            drop(std::mem::replace(&mut end, dir.open("child")));
            // Outlives its parent.
            let mut byte = [0];
            std::io::Read::read_exact(&mut tell, &mut byte).unwrap();
        });
        let _ = child;
        let mut kept = Kept::default();
        poll_until(&mut end, &mut kept, |_| {
            dir.names().contains(&"libfabric-rs.child".to_owned())
        });
        assert!(name::doorbell(&dir.0, end.own.instance).exists());
        assert_eq!(end.push(to, &header(3), Body::Empty, None), Push::Done);
        // SAFETY: ends this process as a crash would.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    let mut kept = Kept::default();
    assert_eq!(parent.wait(), -1);
    poll_until(&mut watcher, &mut kept, |kept| kept.gone.len() == 1);
    let ids: Vec<_> = kept.packets.iter().map(|packet| packet.1.id).collect();
    assert_eq!(ids, [1, 3]);
    std::io::Write::write_all(&mut ask, &[1]).unwrap();
}

/// The kernel's locks do what is built on them: they outlast the descriptor in a mapping, and die with the process.
#[test]
fn a_claim_lives_as_long_as_its_process() {
    let dir = Dir::new();
    let mut end = dir.open("a");
    let (mut tell, mut ask) = UnixStream::pair().unwrap();
    let child = Child::run(|| {
        let mut other = dir.open("b");
        let to = other.peer(b"a").unwrap();
        assert_eq!(other.push(to, &header(1), Body::Empty, None), Push::Done);
        std::io::Write::write_all(&mut ask, &[1]).unwrap();
        std::thread::sleep(Duration::from_secs(100));
    });
    let mut byte = [0];
    std::io::Read::read_exact(&mut tell, &mut byte).unwrap();
    let held = |end: &ShmTransport| shared::is_locked(end.own.file().as_fd(), layout::LOCK_LANES).unwrap();
    assert!(held(&end));
    child.kill();
    assert!(!held(&end));
    let mut kept = Kept::default();
    poll_until(&mut end, &mut kept, |kept| kept.gone.len() == 1);
    assert_eq!(kept.packets.len(), 1);
}
