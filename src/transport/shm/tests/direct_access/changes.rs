//! Regions, files and processes that come, change and go while a peer knows them.

use super::*;

/// Regions that are closed, registered again, watched, or bound to another endpoint.
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
        ((|region| region.counted = true) as fn(&mut Registered), false),
        (|region| region.counted = false, true),
        (|region| region.endpoint = Some(4), false),
        (|region| region.endpoint = Some(3), true),
        (|region| region.enabled = false, false),
    ] {
        assert!(p.regions.change(KEY, change));
        let _ = (write(5), write(5));
        assert_eq!(write(6), shown);
    }
}

/// A region that could not be mapped, as its file was too short or descriptors were used up, is tried again later.
#[test]
fn what_was_refused_may_be_given_later() {
    let memory = Memory::shared();
    let file = std::fs::File::from(memory.file.as_ref().unwrap().try_clone().unwrap());
    let mut p = pair(memory.region(Rights::BOTH));
    file.set_len(4096).unwrap();
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    file.set_len(LEN as u64).unwrap();
    let out = p.end.peers.get_mut(p.to).and_then(|peer| peer.out.as_mut()).unwrap();
    out.cache.make_due();
    // The first attempt maps it again, the second uses it.
    let _ = write(&mut p.end, p.to, &part(0, 1), &mut [2]);
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [3]));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 3);
}

/// A peer whose process could not be proved is tried again later.
#[test]
fn a_peer_that_could_not_be_known_is_asked_again() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(p.end.connect_out(p.to).is_ok());
    let out = p.end.peers.get_mut(p.to).and_then(|peer| peer.out.as_mut()).unwrap();
    out.proof.refused();
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let out = p.end.peers.get_mut(p.to).and_then(|peer| peer.out.as_mut()).unwrap();
    assert!(!out.is_known() && !out.is_proved());
    out.proof.retry.make_due();
    out.cache.make_due();
    assert!(out.is_proved());
    let _ = write(&mut p.end, p.to, &part(0, 1), &mut [2]);
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [3]));
}

/// A region whose file was truncated is refused, and raises no SIGBUS.
#[test]
fn memory_that_is_not_there_is_not_touched() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let file = std::fs::File::from(memory.file.as_ref().unwrap().try_clone().unwrap());
    file.set_len(4096).unwrap();
    assert!(!write(&mut p.end, p.to, &part(LEN - 10, 1), &mut [1]));
}

/// Whoever is enabled a second time shows the same table: what an initiator knows of a region that was closed stays
/// over.
#[test]
fn regions_are_published_once() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    p.target.publish_regions(&p.regions, 3);
    p.regions.remove(KEY).unwrap();
    let other = Memory::shared();
    p.regions.add(other.region(Rights::BOTH), KEY + 1).unwrap();
    p.target.publish_regions(&p.regions, 3);
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [2]), "it is closed");
}

/// Who begins to count what peers do is asked for each access from then on.
#[test]
fn hidden_regions_are_not_reached() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    p.target.hide_regions();
    p.target.publish_regions(&p.regions, 3);
    assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [2]));
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
    let most = (0..=ALIVE_CHECK_EVERY).find(|_| !write(&mut end, to, &part(0, 1), &mut [1]));
    assert!(most.is_some());
    assert!(!copy(
        &mut end,
        to,
        &part(0, 20_000),
        &own(&mut vec![0; 20_000]),
        Access::Write
    ));
    assert_eq!(end.push(to, &header(1), Body::Empty, None), Push::Gone);
    let mut kept = Kept::default();
    poll_until(&mut end, &mut kept, |kept| kept.gone == [to]);
    assert_eq!(dir.names(), ["doorbell", "libfabric-rs.end"]);
}

/// A child of fork can use neither side, and takes nothing from its parent.
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
    assert_eq!(p.dir.names(), ["doorbell", "libfabric-rs.end"]);
}

/// A closed region that is never used again is unmapped when peers are checked.
#[test]
fn what_is_closed_is_not_kept() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
    let cache = |end: &ShmTransport| end.peers.get(p.to).unwrap().out.as_ref().unwrap().cache.len();
    p.end.check_peers(&mut Kept::default());
    assert_eq!(cache(&p.end), 1);
    p.regions.remove(KEY).unwrap();
    p.end.check_peers(&mut Kept::default());
    assert_eq!(cache(&p.end), 0);
}
