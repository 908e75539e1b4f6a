//! Endpoints that die, close, or come back under their name.

use super::*;
use crate::engine::op::{CompletionLevel, MessageKind, Recv, Send, Tell};
use crate::engine::{self, Engine};
use crate::sys::open_files;
use crate::util::user::Lent;
use std::os::fd::AsFd;

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

/// What earlier endpoints of an address sent is not lost if we connect to a later one before we poll; and their ends do
/// not end the later one.
#[test]
fn what_earlier_lives_sent_is_heard_after_we_spoke_to_a_later_one() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let mut kept = Kept::default();
    for ids in [0..40, 40..43] {
        let mut other = dir.open("there");
        let to = other.peer(b"here").unwrap();
        push_all(&mut other, to, ids, &mut Kept::default());
    }
    let killed = Child::run(|| {
        let mut other = dir.open("there");
        let to = other.peer(b"here").unwrap();
        push_all(&mut other, to, 43..45, &mut Kept::default());
        // SAFETY: ends this process as a crash would.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    assert_eq!(killed.wait(), -1);
    let mut last = dir.open("there");
    let there = end.peer(b"there").unwrap();
    push_all(&mut end, there, 0..1, &mut kept);
    let to = last.peer(b"here").unwrap();
    push_all(&mut last, to, 45..47, &mut Kept::default());
    poll_until(&mut end, &mut kept, |kept| {
        kept.packets.len() == 47 && kept.gone.len() == 3
    });
    for (id, packet) in kept.packets.iter().enumerate() {
        assert_whole(packet, id as u32);
        assert_eq!(end.address(packet.0), Some(&b"there"[..]));
        assert_eq!(packet.0 == there, id >= 45);
        assert_eq!(end.peers.source(packet.0), there);
    }
    assert!(!kept.gone.contains(&there));
    // Both directions go on, and nothing can be sent to an earlier endpoint.
    push_all(&mut end, there, 1..2, &mut kept);
    let mut heard = Kept::default();
    poll_until(&mut last, &mut heard, |heard| heard.packets.len() == 2);
    assert_eq!(end.push(kept.gone[0], &header(0), Body::Empty, None), Push::Gone);
    push_all(&mut last, to, 47..48, &mut Kept::default());
    poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 48);
    assert_eq!((kept.packets[47].0, kept.gone.len()), (there, 3));
}

/// A sender that knows an earlier endpoint of an address, and finds a later one when it sends, claims nothing there:
/// giving a ring back would look like the sender's end.
#[test]
fn a_later_life_does_not_hear_what_was_meant_for_an_earlier_one() {
    let dir = Dir::new();
    let (mut end, mut kept) = (dir.open("here"), Kept::default());
    let mut first = dir.open("there");
    let to = first.peer(b"here").unwrap();
    push_all(&mut first, to, 0..1, &mut Kept::default());
    poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 1);
    drop(first);
    let (mut later, mut heard) = (dir.open("there"), Kept::default());
    let to = later.peer(b"here").unwrap();
    push_all(&mut later, to, 1..2, &mut heard);
    let there = end.peer(b"there").unwrap();
    assert_eq!(end.push(there, &header(0), Body::Empty, None), Push::Gone);
    poll_until(&mut end, &mut kept, |kept| kept.packets.len() == 2);
    push_all(&mut end, there, 2..3, &mut kept);
    poll_until(&mut later, &mut heard, |heard| heard.packets.len() == 1);
    assert_eq!((kept.gone, heard.gone), (vec![there], vec![]));
}

/// A receive from an address matches what an earlier endpoint of it sent, and does not fail when that one ends.
#[test]
fn a_receive_outlives_the_earlier_life_of_whom_it_names() {
    let dir = Dir::new();
    let engine = |name: &str| Engine::with(dir.open(name), engine::Config::default());
    let memory = [Lent::new(&[8], 0), Lent::new(&[8], 0)];
    let send = |engine: &mut Engine<ShmTransport>, to: &[u8], tag| {
        let to = engine.transport_mut().peer(to).unwrap();
        let send = Send {
            kind: MessageKind::Tagged,
            to,
            tag,
            data: None,
            body: UserIov::NONE,
            inject: true,
            level: CompletionLevel::Inject,
            fence: false,
            context: 0,
            tell: Tell::Queue,
        };
        engine.send(&send, &mut Vec::new()).unwrap();
    };
    let mut end = engine("here");
    send(&mut engine("there"), b"here", 0);
    let mut last = engine("there");
    send(&mut end, b"there", 9);
    let there = end.transport_mut().peer(b"there").unwrap();
    let mut ends = Vec::new();
    for (tag, memory) in memory.iter().enumerate() {
        end.recv(&receive(Some(there), tag, memory), &mut ends).unwrap();
    }
    let start = Instant::now();
    while ends.is_empty() || end.transport().peers.has_former(there) {
        end.progress(&mut ends);
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(ends.len(), 1);
    send(&mut last, b"here", 1);
    while ends.len() < 2 {
        end.progress(&mut ends);
        assert!(start.elapsed() < PATIENCE);
    }
    let told: Vec<_> = ends.iter().map(|end| (end.context, end.failure)).collect();
    assert_eq!(told, [(0, None), (1, None)]);
}

/// One context is closed before another has sent anything: what is received from the endpoint ends with that.
/// Its context is its tag.
fn receive(from: Option<PeerId>, tag: usize, memory: &Lent) -> Recv {
    Recv {
        kind: MessageKind::Tagged,
        from,
        tag: tag as u64,
        ignore: 0,
        body: memory.iov(),
        multi: None,
        context: tag,
        tell: Tell::Queue,
    }
}

#[test]
fn receives_outlive_a_context_and_end_with_the_endpoint() {
    let dir = Dir::new();
    let mut end = Engine::with(dir.open("here"), engine::Config::default());
    let whole = dir.open("there");
    let address = String::from_utf8(name::context(b"there", 2)).unwrap();
    let mut context = dir.open(&address);
    let memory = Lent::new(&[8], 0);
    let mut ends: Vec<engine::op::Completion> = Vec::new();
    let there = end.transport_mut().peer(b"there");
    end.recv(&receive(there, 5, &memory), &mut ends).unwrap();
    let to = context.peer(b"here").unwrap();
    assert_eq!(context.push(to, &header(1), Body::Empty, None), Push::Done);
    drop(context);
    let number = end.transport_mut().peer(address.as_bytes()).unwrap();
    let start = Instant::now();
    while end.losses(number).0 == 0 {
        end.progress(&mut ends);
        assert!(start.elapsed() < PATIENCE);
    }
    assert!(ends.is_empty(), "{ends:?}");
    drop(whole);
    while ends.is_empty() {
        end.progress(&mut ends);
        assert!(start.elapsed() < PATIENCE);
    }
    let error = ends[0].failure.map(|failure| failure.error);
    assert_eq!((ends.len(), error), (1, Some(engine::op::Error::PeerGone)));
}

/// The lock of a ring can outlive its sender, in a child that another thread forked during the claim. The order of
/// claims tells which of two endpoints of one address is the earlier one, so the later one is not taken for a leftover.
#[test]
fn a_later_life_is_heard_though_the_lock_of_the_first_is_held() {
    let dir = Dir::new();
    let mut end = dir.open("here");
    let mut kept = Kept::default();
    for id in 0..2 {
        let mut other = dir.open("there");
        let to = other.peer(b"here").unwrap();
        push_all(&mut other, to, id..id + 1, &mut kept);
    }
    // Held as by a child that has the first sender's open file.
    let (held, _) = shared::open_own(&name::endpoint_file(&dir.0, b"here")).unwrap();
    assert!(shared::try_lock(held.as_fd(), layout::LOCK_LANES).unwrap());
    poll_until(&mut end, &mut kept, |kept| kept.gone.len() == 2);
    let ids: Vec<_> = kept.packets.iter().map(|packet| packet.1.id).collect();
    assert_eq!(ids, [0, 1]);
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
