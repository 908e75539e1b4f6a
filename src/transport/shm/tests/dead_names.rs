//! Addresses whose owner has died: who gets them, and when.

use super::*;
use endpoint_file::{NAP, Removal, TRIES, remove_if_dead};
use std::os::fd::AsFd;

/// If many open one address at once, of which a dead owner left a file, exactly one gets it.
#[test]
fn one_of_many_gets_a_dead_name() {
    let dir = Dir::new();
    for _ in 0..20 {
        Child::run(|| {
            let _kept = dir.open("name");
            // SAFETY: ends this process as a crash would.
            unsafe { libc::raise(libc::SIGKILL) };
        })
        .wait();
        let config = dir.config();
        let open = || ShmTransport::open("name", &config);
        let got: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(got.iter().filter(|open| open.is_ok()).count(), 1);
        assert!(got.iter().all(|open| matches!(open, Ok(_) | Err(OpenError::InUse))));
        assert_eq!(dir.names(), ["doorbell", "libfabric-rs.name"]);
    }
}

/// What still has the memory of a killed process has its lock, too, as a peer's copy that the kernel has not ended. The
/// address is free in a moment, so whoever wants it waits, where that of a living owner is refused at once.
#[test]
fn whoever_has_ended_is_waited_for_while_its_lock_is_held() {
    let dir = Dir::new();
    let path = name::endpoint_file(&dir.0, b"name");
    let child = Child::run(|| {
        let _kept = dir.open("name");
        std::thread::sleep(Duration::from_secs(100));
    });
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(remove_if_dead(&path), Removal::Alive);
    child.kill();
    let (held, _) = shared::open_own(&path).unwrap();
    assert!(shared::try_lock(held.as_fd(), layout::LOCK_LIFE).unwrap());
    assert_eq!(remove_if_dead(&path), Removal::Ending);

    let start = Instant::now();
    let opened = ShmTransport::open("name", &dir.config());
    assert!(matches!(opened, Err(OpenError::InUse)));
    assert!(start.elapsed() >= NAP * TRIES, "{:?}", start.elapsed());
    // Said and not left to the descriptor's end, since children that other tests fork beside this one may have it too.
    shared::unlock(held.as_fd(), layout::LOCK_LIFE).unwrap();
    assert_eq!(remove_if_dead(&path), Removal::Removed);
    dir.open("name");
}
