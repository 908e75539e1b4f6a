//! A region is closed while a peer works on it, or has died or was stopped there.

use super::*;

/// After `remove` has returned nothing changes any more, however busy the initiator is.
#[test]
fn closing_ends_what_is_under_way() {
    const ROUNDS: usize = 100;
    for memory in [Memory::shared(), Memory::private()] {
        let len = if memory.file.is_some() { 64 } else { 20_000 };
        let p = pair(memory.region(Rights::BOTH));
        let stop = AtomicBool::new(false);
        let done = AtomicU8::new(0);
        std::thread::scope(|scope| {
            let (memory, stop, done, regions) = (&memory, &stop, &done, p.regions.clone());
            let (mut end, to) = (p.end, p.to);
            scope.spawn(move || {
                let mut value = 1u8;
                while !stop.load(Ordering::Relaxed) {
                    value = value.wrapping_add(1).max(2);
                    let mut bytes = vec![value; len];
                    let wrote = match memory.file {
                        Some(_) => write(&mut end, to, &part(0, len), &mut bytes),
                        None => copy(&mut end, to, &part(0, len), &own(&mut bytes), Access::Write),
                    };
                    if wrote {
                        done.store(1, Ordering::Relaxed);
                    } else {
                        // Makes the initiator look the region up again.
                        let _ = end.reach(to, &part(0, 1), Rights::READ, |_| ());
                    }
                }
            });
            let start = Instant::now();
            for _ in 0..ROUNDS {
                while done.swap(0, Ordering::Relaxed) == 0 {
                    assert!(start.elapsed() < PATIENCE, "nothing is written");
                    std::thread::yield_now();
                }
                regions.remove(KEY).unwrap();
                (0..len).for_each(|at| memory.byte(at).store(1, Ordering::Relaxed));
                for _ in 0..20 {
                    assert!((0..len).all(|at| memory.byte(at).load(Ordering::Relaxed) == 1));
                    std::thread::yield_now();
                }
                done.store(0, Ordering::Relaxed);
                regions.add(memory.region(Rights::BOTH), KEY).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        drop(p.target);
        drop(p.dir);
    }
}

/// A peer that died while it was at our memory is not waited for.
#[test]
fn closing_does_not_wait_for_the_dead() {
    let memory = Memory::shared();
    let dir = Dir::new();
    let regions = Arc::new(Regions::new(false, true));
    regions.add(memory.region(Rights::BOTH), KEY).unwrap();
    let mut target = dir.open("target");
    target.publish_regions(&regions, 1);
    let child = Child::run(|| {
        let mut end = dir.open("end");
        let to = end.peer(b"target").unwrap();
        end.reach(to, &part(0, 1), Rights::BOTH, |_| {
            // SAFETY: ends this process as a crash would.
            unsafe { libc::raise(libc::SIGKILL) }
        });
    });
    assert_eq!(child.wait(), -1);
    assert_eq!(target.own.header.mark(0).unwrap().load(Ordering::Relaxed) % 2, 1);
    regions.remove(KEY).unwrap();
}

/// A living peer is waited for.
#[test]
fn closing_waits_for_the_living() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    let (inside, left, closed) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (end, to) = (&mut p.end, p.to);
        let (inside, left, closed) = (&inside, &left, &closed);
        scope.spawn(move || {
            end.reach(to, &part(0, 1), Rights::BOTH, |_| {
                inside.store(true, Ordering::SeqCst);
                // Longer than it takes to ask whether this process lives.
                std::thread::sleep(Duration::from_millis(40));
                assert!(!closed.load(Ordering::SeqCst));
                left.store(true, Ordering::SeqCst);
            })
        });
        while !inside.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        p.regions.remove(KEY).unwrap();
        closed.store(true, Ordering::SeqCst);
        assert!(left.load(Ordering::SeqCst));
    });
}

/// Sets the initiator's mark as if its process was stopped in the middle of an operation, until the returned closure is
/// called.
fn stop_in(p: &Pair, place: u64) -> impl Fn() + Send + Sync + use<> {
    let header = layout::FileHeader::map(p.target.own.file()).unwrap();
    let mark = header.mark(0).unwrap().load(Ordering::SeqCst);
    header.mark(0).unwrap().store(mark + place, Ordering::SeqCst);
    move || header.mark(0).unwrap().store(mark + VISIT, Ordering::SeqCst)
}

fn mark_of(p: &Pair, key: u64) -> u64 {
    let header = layout::FileHeader::map(p.target.own.file()).unwrap();
    mark_in_entry(header.find_entry(key).unwrap().entry)
}

/// A pair with another region, of which the initiator has used the first.
fn used_pair(memory: &Memory) -> Pair {
    let mut p = pair(memory.region(Rights::BOTH));
    p.regions.add(memory.region(Rights::BOTH), KEY + 1).unwrap();
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    p
}

/// A stopped peer keeps the region that it is at from being closed. It delays neither other regions, nor threads that
/// register memory, nor the use of the region.
#[test]
fn a_stopped_peer_holds_up_its_own_region_only() {
    let memory = Memory::shared();
    let mut p = used_pair(&memory);
    let go_on = stop_in(&p, mark_of(&p, KEY));
    // On a busy machine the close may end before the others have run: then it is tried once more.
    let others_go_on = || {
        let closed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (regions, closed) = (p.regions.clone(), &closed);
            let closing = scope.spawn(move || {
                let result = regions.remove(KEY);
                closed.store(true, Ordering::SeqCst);
                result
            });
            let header = layout::FileHeader::map(p.target.own.file()).unwrap();
            while header.find_entry(KEY).is_some() && !closed.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            p.regions.add(memory.region(Rights::BOTH), KEY + 2).unwrap();
            assert_eq!(p.regions.remove(KEY + 2), Ok(()));
            assert!(p.regions.find(3, KEY, BASE, 1, Rights::WRITE).is_ok());
            let while_it_waits = !closed.load(Ordering::SeqCst);
            assert_eq!(closing.join().unwrap(), Err(Busy));
            while_it_waits
        })
    };
    assert!((0..20).any(|_| others_go_on()), "others wait for it");
    assert_eq!(p.regions.remove(KEY + 1), Ok(()));
    go_on();
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [2]) || write(&mut p.end, p.to, &part(0, 1), &mut [2]));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 2);
    assert_eq!(p.regions.remove(KEY), Ok(()));
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [3]));
}

/// A peer that accesses several regions at once is at each of them.
#[test]
fn a_peer_in_several_regions_is_in_each() {
    let p = used_pair(&Memory::shared());
    let go_on = stop_in(&p, IN_SEVERAL);
    for key in [KEY, KEY + 1] {
        assert_eq!(p.regions.remove(key), Err(Busy));
    }
    go_on();
    for key in [KEY, KEY + 1] {
        assert_eq!(p.regions.remove(key), Ok(()));
    }
}

/// An endpoint closes while a peer is stopped at registered memory, for which closing the region still waits.
#[test]
fn an_endpoint_closes_without_a_stopped_peer() {
    let p = used_pair(&Memory::shared());
    let go_on = stop_in(&p, mark_of(&p, KEY));
    drop(p.target);
    assert_eq!(p.regions.remove(KEY), Err(Busy));
    assert_eq!(p.regions.remove(KEY + 1), Ok(()));
    go_on();
    assert_eq!(p.regions.remove(KEY), Ok(()));
}

/// Changing a region does not make it forget the peers that are at it.
#[test]
fn a_changed_region_is_left_before_it_is_closed() {
    let p = used_pair(&Memory::shared());
    let go_on = stop_in(&p, mark_of(&p, KEY));
    assert!(p.regions.change(KEY, |region| region.counted = true));
    assert_eq!(p.regions.remove(KEY), Err(Busy));
    go_on();
    assert_eq!(p.regions.remove(KEY), Ok(()));
}

/// A region that is closed while another thread closes its endpoint still waits for a peer that is at it.
#[test]
fn closing_waits_while_the_endpoint_closes() {
    let memory = Memory::shared();
    let p = pair(memory.region(Rights::BOTH));
    let header = layout::FileHeader::map(p.target.own.file()).unwrap();
    let shown = header.find_entry(KEY).unwrap();
    let (inside, hidden, left) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (mut end, to, target) = (p.end, p.to, p.target);
        let (inside, hidden, left) = (&inside, &hidden, &left);
        scope.spawn(move || {
            end.reach(to, &part(0, 1), Rights::BOTH, |_| {
                inside.store(true, Ordering::SeqCst);
                while header.generation(shown.entry) == shown.generation {
                    std::thread::yield_now();
                }
                hidden.store(true, Ordering::SeqCst);
                // Longer than it takes to close a region that nobody is at.
                std::thread::sleep(Duration::from_millis(40));
                left.store(true, Ordering::SeqCst);
            })
        });
        wait_for(inside);
        scope.spawn(move || drop(target));
        wait_for(hidden);
        p.regions.remove(KEY).unwrap();
        assert!(left.load(Ordering::SeqCst));
    });
}

fn wait_for(flag: &AtomicBool) {
    let start = Instant::now();
    while !flag.load(Ordering::SeqCst) {
        assert!(start.elapsed() < Duration::from_secs(20), "never so");
        std::thread::yield_now();
    }
}
