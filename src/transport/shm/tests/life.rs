//! Endpoints that die, close, or come back under their name.

use super::*;
use crate::sys::open_files;

/// Sends to `to` until the process is killed.
fn chatter(dir: &Dir, address: &str, to: &str) {
    let mut end = dir.open(address);
    let to = end.peer(to.as_bytes()).unwrap();
    let mut kept = Kept::default();
    for id in 0.. {
        push_all(&mut end, to, id..id + 1, &mut kept);
    }
}

/// A sender that is killed at any moment leaves whole packets only, is reported within a second, and its address can be
/// used again.
#[test]
fn killed_senders_are_noticed_and_replaced() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let mut pause = 0x2545_f491_u64;
    for life in 1..=40 {
        let child = Child::run(|| chatter(&dir, "there", "here"));
        let mut kept = Kept::default();
        // From the first microsecond to long after it began to send.
        pause = pause.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let until = Instant::now() + Duration::from_micros((pause >> 33) % 20_000);
        while Instant::now() < until {
            end.poll(&mut kept, 16);
        }
        child.kill();
        let killed = Instant::now();
        let known = end.peer(b"there").unwrap();
        if end.peers.get(known).unwrap().instance != 0 || end.own.header.used() > 0 {
            // A sender that may have claimed a ring, or none, is waited for as long as a report takes; one whose
            // packets came must be reported, however long that takes.
            let over = |kept: &Kept| kept.packets.is_empty() && killed.elapsed() > Duration::from_millis(1000);
            poll_until(&mut end, &mut kept, |kept| !kept.gone.is_empty() || over(kept));
        }
        for (id, packet) in kept.packets.iter().enumerate() {
            assert_whole(packet, id as u32);
        }
        assert!(
            kept.packets.is_empty() || kept.gone == [known],
            "life {life}: {:?}",
            kept.gone
        );
        // Nobody is there, though it may take one more poll to find out.
        while matches!(end.push(known, &header(0), Body::Empty, None), Push::Done | Push::Full) {
            end.poll(&mut kept, 16);
            assert!(killed.elapsed() < PATIENCE, "life {life}");
        }
    }
    drop(end);
    sweep::sweep(&dir.0);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

/// A receiver that is killed while its ring is full is reported, and its address can be used again.
#[test]
fn killed_receivers_are_noticed_and_replaced() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let to = end.peer(b"there").unwrap();
    for life in 0..10 {
        let child = Child::run(|| {
            let mut there = dir.open("there");
            let mut kept = Kept::default();
            poll_until(&mut there, &mut kept, |kept| kept.packets.len() >= 100);
            std::thread::sleep(Duration::from_secs(100));
        });
        let mut kept = Kept::default();
        let start = Instant::now();
        let mut sent = 0;
        // Until the ring is full, as the receiver no longer polls.
        loop {
            match end.push(to, &header(sent), Body::Bytes(&body(sent)), None) {
                Push::Done => sent += 1,
                Push::Full if sent > 100 => break,
                Push::Full | Push::Unreachable(_) | Push::TooLong | Push::NoMemory => std::thread::yield_now(),
                Push::Later | Push::Gone => panic!("life {life} after {sent}"),
            }
            assert!(start.elapsed() < PATIENCE);
        }
        child.kill();
        poll_until(&mut end, &mut kept, |kept| kept.gone == [to]);
        assert_eq!(
            end.push(to, &header(0), Body::Empty, None),
            Push::Unreachable(Unreached::Nobody)
        );
    }
}

#[test]
fn closing_is_noticed_at_once_and_loses_nothing() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let mut kept = Kept::default();
    for life in 1..=5 {
        let mut other = dir.open("there");
        let to = other.peer(b"here").unwrap();
        push_all(&mut other, to, 0..3, &mut Kept::default());
        drop(other);
        // The address is free again, and its next owner sends before we have received from the first.
        let mut next = dir.open("there");
        push_all(&mut next, to, 0..0, &mut Kept::default());
        let to = next.peer(b"here").unwrap();
        push_all(&mut next, to, 0..2, &mut Kept::default());
        drop(next);
        poll_until(&mut end, &mut kept, |kept| kept.gone.len() == 2 * life);
        assert_eq!(kept.packets.len(), 5 * life);
        for (packet, id) in kept.packets[5 * (life - 1)..].iter().zip([0, 1, 2, 0, 1]) {
            assert_whole(packet, id);
        }
    }
    // A sender notices that a receiver has closed by its next push, or by the next check.
    let mut other = dir.open("there");
    let to = end.peer(b"there").unwrap();
    push_all(&mut end, to, 0..3, &mut kept);
    other.poll(&mut kept, 0);
    drop(other);
    assert_eq!(end.push(to, &header(0), Body::Empty, None), Push::Gone);
    assert_eq!(end.push(to, &header(0), Body::Empty, None), Push::Gone);
    let before = kept.gone.len();
    poll_until(&mut end, &mut kept, |kept| kept.gone.len() == before + 1);
    assert_eq!(
        end.push(to, &header(0), Body::Empty, None),
        Push::Unreachable(Unreached::Nobody)
    );
}

/// Even if we did not poll before we noticed the end: a reply must not be lost to the end of its sender.
#[test]
fn what_a_closed_peer_sent_comes_before_its_end() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let mut kept = Kept::default();
    let mut other = dir.open("there");
    let (there, here) = (end.peer(b"there").unwrap(), other.peer(b"here").unwrap());
    push_all(&mut end, there, 0..1, &mut kept);
    push_all(&mut other, here, 0..2, &mut Kept::default());
    drop(other);
    assert_eq!(end.push(there, &header(0), Body::Empty, None), Push::Gone);
    poll_until(&mut end, &mut kept, |kept| kept.gone == [there]);
    assert_eq!(kept.packets.len(), 2);
    for (packet, id) in kept.packets.iter().zip(0..) {
        assert_whole(packet, id);
    }
}

#[test]
fn what_the_dead_left_is_swept() {
    let dir = Dir::new();
    let alive = dir.open("alive");
    let child = Child::run(|| {
        let _kept: Vec<_> = (0..5).map(|n| dir.open(&format!("dead-{n}"))).collect();
        // SAFETY: ends this process as a crash would.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    assert_eq!(child.wait(), -1);
    let strange = dir.0.join("libfabric-rs.not-a-region");
    std::fs::create_dir(&strange).unwrap();
    std::fs::write(dir.0.join("somebody-elses"), "x").unwrap();
    assert_eq!(dir.names().len(), 2 + 2 * 5 + 2);
    let _again = dir.open("dead-3");
    sweep::sweep(&dir.0);
    let left = [
        "doorbell",
        "doorbell",
        "libfabric-rs.alive",
        "libfabric-rs.dead-3",
        "libfabric-rs.not-a-region",
        "somebody-elses",
    ];
    assert_eq!(dir.names(), left);
    drop(alive);
}

/// A process looks at a few files at a time, and over time at all, however many there are.
#[test]
fn a_sweep_goes_on_where_it_ended() {
    const DEAD: u64 = 2500;
    let dir = Dir::new();
    let mut alive: Vec<_> = (0..8).map(|n| dir.open(&format!("alive-{n}"))).collect();
    for n in 0..DEAD {
        std::fs::write(name::unfinished(&dir.0, n), "x").unwrap();
        std::fs::set_permissions(
            name::unfinished(&dir.0, n),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
    }
    let child = Child::run(|| {
        let dead = || dir.names().iter().filter(|name| name.contains('~')).count();
        let before = dead();
        let mut end = dir.open("end");
        let opened = before - dead();
        assert!((1..=sweep::AT_OPENING).contains(&opened), "{opened} at once");
        for _ in 0..DEAD as usize / sweep::AT_CHECK {
            end.check_some();
        }
        assert_eq!(dead(), 0);
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(dir.names().len(), 16);
    alive.clear();
    assert_eq!(dir.names(), <[&str; 0]>::default());
}

/// However many come, those who were there before are looked at again.
#[test]
fn deaths_are_noticed_while_others_come() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let child = Child::run(|| {
        let mut other = dir.open("killed");
        let to = other.peer(b"here").unwrap();
        assert_eq!(other.push(to, &header(1), Body::Empty, None), Push::Done);
        // SAFETY: ends this process as a crash would.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    assert_eq!(child.wait(), -1);
    let mut kept = Kept::default();
    poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 1);
    let number = kept.packets[0].0;
    let checks = (0..20).find(|newcomer| {
        end.peer(format!("new-{newcomer}").as_bytes()).unwrap();
        end.check_some();
        end.poll(&mut kept, 64);
        kept.gone == [number]
    });
    assert!(checks.is_some());
}

/// Not what this process lacks: a peer whose file it has no descriptor for lives.
#[test]
fn who_has_no_descriptors_takes_nobody_for_dead() {
    let dir = Dir::new();
    let child = Child::run(|| {
        let (mut end, mut other) = (dir.open("here"), dir.open("other"));
        let to = other.peer(b"here").unwrap();
        assert_eq!(other.push(to, &header(1), Body::Empty, None), Push::Done);
        let mut kept = Kept::default();
        poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 1);
        let back = kept.packets[0].0;
        open_files::set_limits(300, 300);
        let full: Vec<_> = core::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        for peer in [back, end.peer(b"stranger").unwrap()] {
            assert_eq!(end.push(peer, &header(2), Body::Empty, None), Push::NoMemory);
        }
        drop(full);
        // Only answers, which are tried again and again, are not tried at once.
        assert_eq!(end.push(back, &header(3), Body::Empty, None), Push::Done);
    });
    assert_eq!(child.wait(), 0);
    let child = Child::run(|| {
        let (_end, mut other) = (dir.open("here"), dir.open("other"));
        open_files::set_limits(300, 400);
        let _full: Vec<_> = core::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        let to = other.peer(b"here").unwrap();
        assert_eq!(other.push(to, &header(1), Body::Empty, None), Push::Done);
        assert_eq!(open_files::most(), 400);
    });
    assert_eq!(child.wait(), 0);
}

/// Numbers of peers that are gone, and that the engine does not hold, are given to others.
#[test]
fn numbers_of_the_gone_are_used_again() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let (known, unknown) = (end.peer(b"known").unwrap(), end.peer(b"unknown").unwrap());
    let (mut most, mut sweeps) = (0, 0);
    for guest in 0..1500 {
        let name = format!("guest-{guest}");
        let mut other = dir.open(&name);
        let to = other.peer(b"here").unwrap();
        assert_eq!(other.push(to, &header(1), Body::Empty, None), Push::Done);
        let mut kept = Kept::default();
        poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 1);
        let number = end.peer(name.as_bytes()).unwrap();
        assert_eq!(
            (kept.packets[0].0, end.address(number)),
            (number, Some(name.as_bytes()))
        );
        if end.is_crowded() {
            // A living peer keeps its number, even if the engine does not hold it.
            let gone = end.forget(&|peer| peer == known);
            assert!(!gone.contains(&number) && !gone.contains(&known));
            assert!(sweeps > 0 || gone.contains(&unknown));
            sweeps += 1;
        }
        drop(other);
        poll_until(&mut end, &mut kept, |kept| kept.gone == [number]);
        most = most.max(number);
    }
    assert_eq!(end.peer(b"known"), Some(known));
    assert!(most < 600 && sweeps > 2, "{most} {sweeps}");
}

/// More senders than bits in a word of bells, or marks and lanes in a page: all send and close, and then others do.
#[test]
fn many_speak_to_one() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    for round in 0..2 {
        let mut others: Vec<_> = (0..300).map(|at| dir.open(&format!("{round}-{at}"))).collect();
        let mut kept = Kept::default();
        for (id, other) in others.iter_mut().enumerate() {
            let to = other.peer(b"here").unwrap();
            push_all(other, to, id as u32..id as u32 + 1, &mut Kept::default());
        }
        poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 300);
        let mut ids: Vec<u32> = kept.packets.iter().map(|packet| packet.1.id).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..300));
        drop(others);
        poll_until(&mut end, &mut kept, |kept| kept.gone.len() == 300);
    }
    // Rings are used again, and their memory was released: what stays is the header and the marks.
    assert!(end.own.header.used() <= 301, "{}", end.own.header.used());
    let file = std::fs::metadata(name::endpoint_file(&dir.0, b"here")).unwrap();
    let bytes = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
    assert!(bytes <= layout::bytes_needed() as u64 + 8 * 4096, "{bytes}");
}
