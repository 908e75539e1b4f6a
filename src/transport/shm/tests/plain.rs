//! What works when nobody dies.

use super::*;
use crate::engine::port::Around;
use crate::util::user::UserBuf;
use std::os::fd::RawFd;

#[test]
fn a_transport_may_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<ShmTransport>();
}

#[test]
fn packets_arrive_once_whole_in_order() {
    let dir = Dir::new();
    let (mut a, mut b) = (dir.open("fi_shm://a"), dir.open("b"));
    let to_b = a.peer(b"b\0").unwrap();
    assert_eq!(a.peer(b"b"), Some(to_b));
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    for id in 0..20_000 {
        let body = body(id);
        while a.push(to_b, &header(id), Body::Bytes(&body), None) != Push::Done {
            b.poll(&mut at_b, 7);
        }
    }
    poll_until(&mut b, &mut at_b, |kept| kept.packets.len() == 20_000);
    for (id, packet) in at_b.packets.iter().enumerate() {
        assert_whole(packet, id as u32);
    }
    // And back, to the number from which the packets came.
    let from = at_b.packets[0].0;
    assert_eq!(b.address(from), Some(&b"fi_shm://a"[..]));
    push_all(&mut b, from, 0..10, &mut at_b);
    poll_until(&mut a, &mut at_a, |kept| kept.packets.len() == 10);
    assert_eq!(at_a.packets[9].0, to_b);
}

/// What the receiver has measured its sender knows. A later sender in the same lane begins anew.
#[test]
fn a_sender_learns_whether_copies_are_quick() {
    let dir = Dir::new();
    let (mut b, mut at_b) = (dir.open("b"), Kept::default());
    let copied = |b: &mut ShmTransport, time| {
        let inbound = b.inbox.get_mut(1).unwrap();
        inbound.lane.filling().store(1, Ordering::Relaxed);
        inbound.speeds.copied(&inbound.lane, 4096, time);
    };
    // A neighbour keeps the memory of the lane from being released.
    let mut neighbour = dir.open("neighbour");
    let neighbours_b = neighbour.peer(b"b").unwrap();
    push_all(&mut neighbour, neighbours_b, 0..1, &mut at_b);
    let (quicker, quick) = (Duration::from_nanos(400), Duration::from_nanos(700));
    let slow = Duration::from_secs(1);
    for sender in 1..=2 {
        let mut a = dir.open("a");
        let to_b = a.peer(b"b").unwrap();
        push_all(&mut a, to_b, 0..1, &mut at_b);
        poll_until(&mut b, &mut at_b, |kept| kept.packets.len() == 1 + sender);
        assert!(a.is_sooner_sent(to_b, 8 << 10, Around::default()), "nothing is known");
        copied(&mut b, slow);
        copied(&mut b, slow);
        let tried = (0..640).filter(|_| a.is_sooner_sent(to_b, 8 << 10, Around::default()));
        assert_eq!(tried.count(), 4, "one in 64, and then fewer");
        copied(&mut b, quick);
        assert!((0..100).all(|_| a.is_sooner_sent(to_b, 8 << 10, Around::default())));
        assert!(
            !a.is_sooner_sent(to_b, 32 << 10, Around::default()),
            "which the kernel does better"
        );
        copied(&mut b, quicker);
        let sent = (0..640).filter(|_| a.is_sooner_sent(to_b, 32 << 10, Around::default()));
        assert_eq!(sent.count(), 636, "offers show whether the peer sends too");
        let crossing = Around {
            crossing: true,
            ..Around::default()
        };
        assert!(!a.is_sooner_sent(to_b, 32 << 10, crossing), "while the peer sends too");
        assert!(a.is_sooner_sent(to_b, 16 << 10, crossing));
        a.poll(&mut Kept::default(), 1);
        assert!(a.is_sooner_sent(to_b, 16 << 10, Around::default()));
        assert!(
            !a.is_sooner_sent(to_b, 32 << 10, Around::default()),
            "alone, it is no quicker"
        );
        copied(&mut b, slow);
        copied(&mut b, slow);
        assert!(!a.is_sooner_sent(to_b, 8 << 10, Around::default()));
        drop(a);
        poll_until(&mut b, &mut at_b, |kept| kept.gone.len() == sender);
    }
}

#[test]
fn whoever_floods_leaves_others_their_turn() {
    const POLLS: usize = 30;
    const BUDGET: usize = 8;
    let dir = Dir::new();
    let (mut b, mut at_b) = (dir.open("b"), Kept::default());
    let mut senders = ["x", "y", "z"].map(|name| dir.open(name));
    let mut flood = || {
        for sender in &mut senders {
            let to_b = sender.peer(b"b").unwrap();
            while sender.push(to_b, &header(0), Body::Empty, None) == Push::Done {}
        }
    };
    let from = |kept: &Kept, peer| kept.packets.iter().filter(|packet| packet.0 == peer).count();
    flood();
    poll_until(&mut b, &mut at_b, |kept| (0..3).all(|peer| from(kept, peer) > 0));
    at_b.packets.clear();
    for _ in 0..POLLS {
        flood();
        b.poll(&mut at_b, BUDGET);
    }
    for peer in 0..3 {
        let heard = from(&at_b, peer);
        assert!(heard >= POLLS * BUDGET / 6, "{heard} packets of {peer}");
    }
}

#[test]
fn an_endpoint_reaches_itself() {
    let dir = Dir::new();
    let mut own = dir.open("me");
    let me = own.peer(b"me").unwrap();
    let mut kept = Kept::default();
    push_all(&mut own, me, 0..3, &mut kept);
    poll_until(&mut own, &mut kept, |kept| kept.packets.len() == 3);
    assert_eq!(kept.packets[2].0, me);
    own.check_peers(&mut kept);
    assert!(kept.gone.is_empty());
}

#[test]
fn user_memory_goes_straight_through() {
    struct Into(UserIov);
    impl Sink for Into {
        fn place(&mut self, _: PeerId, _: &Header, _: usize) -> Placement {
            Placement::Into {
                iov: self.0,
                at: 3,
                token: 1,
            }
        }
        fn placed(&mut self, _: Token, buffer: Option<Vec<u8>>) {
            assert_eq!(buffer, None);
        }
        fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}
        fn gone(&mut self, _: PeerId, _: Loss) {}
    }
    let dir = Dir::new();
    let (mut a, mut b) = (dir.open("a"), dir.open("b"));
    let to_b = a.peer(b"b").unwrap();
    let (mut from, mut to) = ([0u8; 100], [0u8; 60]);
    from.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    // SAFETY: both arrays outlive the transports' use of them.
    let iov = |bytes: &mut [u8]| UserIov::one(unsafe { UserBuf::new(bytes.as_mut_ptr(), bytes.len()) });
    let source = iov(&mut from);
    let sent = Body::User {
        iov: &source,
        at: 10,
        len: 80,
    };
    assert_eq!(a.push(to_b, &header(1), sent, None), Push::Done);
    let mut sink = Into(iov(&mut to));
    while b.poll(&mut sink, 8) == 0 {}
    assert!(to[..3].iter().all(|byte| *byte == 0));
    assert!(to[3..].iter().copied().eq(10..67));
}

#[test]
fn what_is_refused_stays_and_fills_the_ring() {
    let dir = Dir::new();
    let (mut a, mut b) = (dir.open("a"), dir.open("b"));
    let to_b = a.peer(b"b").unwrap();
    let mut kept = Kept {
        refuse: true,
        ..Kept::default()
    };
    let mut sent = 0;
    while a.push(to_b, &header(sent), Body::Bytes(&body(sent)), None) == Push::Done {
        sent += 1;
        b.poll(&mut kept, 8);
    }
    assert!(sent > 20 && kept.packets.is_empty());
    // Refused packets are no reason to stay awake.
    assert!(b.arm());
    b.disarm();
    kept.refuse = false;
    poll_until(&mut b, &mut kept, |kept| kept.packets.len() == sent as usize);
    assert_eq!(a.push(to_b, &header(sent), Body::Empty, None), Push::Done);
}

#[test]
fn nobody_there() {
    let dir = Dir::new();
    let mut a = dir.open("a");
    let nobody = a.peer(b"nobody").unwrap();
    assert_eq!(
        a.push(nobody, &header(0), Body::Empty, None),
        Push::Unreachable(Unreached::Nobody)
    );
    assert_eq!(
        a.push(77, &header(0), Body::Empty, None),
        Push::Unreachable(Unreached::Nobody)
    );
    assert_eq!(a.peer(b""), None);
    assert_eq!(a.peer(&[b'x'; 257]), None);
    let mut b = dir.open("nobody");
    assert_eq!(a.push(nobody, &header(0), Body::Empty, None), Push::Done);
    let mut kept = Kept::default();
    poll_until(&mut b, &mut kept, |kept| kept.packets.len() == 1);
}

#[test]
fn addresses_are_of_any_kind_and_taken_once() {
    let dir = Dir::new();
    let long = "/".repeat(256);
    for address in ["fi_ns://host:1", &long, "..", "ü", "a b"] {
        let mut open = dir.open(address);
        assert_eq!(open.local_address(), address);
        assert!(matches!(
            ShmTransport::open(address, &dir.config()),
            Err(OpenError::InUse)
        ));
        let me = open.peer(address.as_bytes()).unwrap();
        assert_eq!(open.push(me, &header(0), Body::Empty, None), Push::Done);
    }
    for address in ["", &"x".repeat(257), "a\0b"] {
        assert!(matches!(
            ShmTransport::open(address, &dir.config()),
            Err(OpenError::Address)
        ));
    }
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

/// Whoever polls once and goes on to something else finds what has come, from whomever.
#[test]
fn one_poll_finds_what_has_come() {
    let dir = Dir::new();
    let mut hub = dir.open("hub");
    let mut kept = Kept::default();
    let mut rim: Vec<_> = (0..40).map(|n| dir.open(&format!("rim-{n}"))).collect();
    let mut count = 0;
    for round in 0..4 {
        for end in &mut rim {
            let to = end.peer(b"hub").unwrap();
            assert_eq!(end.push(to, &header(round), Body::Empty, None), Push::Done);
            count += 1;
            hub.poll(&mut kept, 64);
            assert_eq!(kept.packets.len(), count, "round {round}");
        }
    }
}

/// More peers than can have hot rings.
#[test]
fn five_hundred_and_twelve_endpoints() {
    let dir = Dir::new();
    let mut hub = dir.open("hub");
    let mut kept = Kept::default();
    let mut rim: Vec<_> = (0..511).map(|n| dir.open(&format!("rim-{n}"))).collect();
    let memory = |path: PathBuf| std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path).unwrap()) * 512;
    let alone = memory(dir.0.join("libfabric-rs.rim-0"));
    assert!(alone <= 64 << 10, "an endpoint without peers takes {alone} bytes");
    for round in 0..3 {
        for end in &mut rim {
            let to = end.peer(b"hub").unwrap();
            assert_eq!(end.push(to, &header(round), Body::Empty, None), Push::Done);
        }
        poll_until(&mut hub, &mut kept, |kept| {
            kept.packets.len() == 511 * (round as usize + 1)
        });
    }
    let mut seen = vec![0; 511];
    for (from, head, _) in &kept.packets {
        let order = &mut seen[*from as usize];
        assert_eq!(head.id, *order, "peer {from}");
        *order += 1;
    }
    for (n, end) in rim.iter_mut().enumerate() {
        let to = hub.peer(format!("rim-{n}").as_bytes()).unwrap();
        assert_eq!(hub.push(to, &header(n as u32), Body::Empty, None), Push::Done);
        let mut kept = Kept::default();
        poll_until(end, &mut kept, |kept| kept.packets.len() == 1);
        assert_eq!(kept.packets[0].1.id, n as u32);
    }
    // Half of them close: their memory is released, and their rings are used again.
    let before = memory(dir.0.join("libfabric-rs.hub"));
    rim.truncate(255);
    poll_until(&mut hub, &mut kept, |kept| kept.gone.len() == 256);
    let after = memory(dir.0.join("libfabric-rs.hub"));
    assert!(after < before * 6 / 10, "{before} {after}");
    let mut late = dir.open("late");
    let to = late.peer(b"hub").unwrap();
    assert_eq!(late.push(to, &header(5), Body::Empty, None), Push::Done);
    poll_until(&mut hub, &mut kept, |kept| kept.packets.len() == 511 * 3 + 1);
}

/// More senders than a poll reads, each with the next packet as soon as one was taken: all have their turns.
#[test]
fn all_of_many_senders_have_their_turns() {
    const SENDERS: usize = 150;
    let dir = Dir::new();
    let mut hub = dir.open("hub");
    let mut rim: Vec<_> = (0..SENDERS).map(|n| dir.open(&format!("rim-{n}"))).collect();
    let mut send = |n: usize| {
        let to = rim[n].peer(b"hub").unwrap();
        assert_eq!(rim[n].push(to, &header(n as u32), Body::Empty, None), Push::Done);
    };
    (0..SENDERS).for_each(&mut send);
    let mut taken = [0; SENDERS];
    for _ in 0..8000 {
        let mut kept = Kept::default();
        hub.poll(&mut kept, 64);
        for (_, head, _) in kept.packets {
            taken[head.id as usize] += 1;
            send(head.id as usize);
        }
    }
    let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
    assert!(most < &(least * 2), "{least} to {most}");
}

pub(super) fn is_readable(fd: RawFd, timeout_ms: i32) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, as told.
    unsafe { libc::poll(&mut poll, 1, timeout_ms) == 1 }
}

#[test]
fn a_sleeper_is_woken_by_a_message_and_by_room() {
    let dir = Dir::new();
    let (mut a, mut b) = (dir.open("a"), dir.open("b"));
    let to_b = a.peer(b"b").unwrap();
    let mut kept = Kept::default();
    for round in 0..50 {
        assert!(b.arm());
        assert!(!is_readable(b.wake_fd(), 0));
        assert_eq!(a.push(to_b, &header(0), Body::Empty, None), Push::Done);
        assert!(is_readable(b.wake_fd(), 5000), "{round}");
        b.disarm();
        assert!(!is_readable(b.wake_fd(), 0));
        // A packet that is there already keeps it from sleeping.
        assert!(!b.arm());
        poll_until(&mut b, &mut kept, |kept| kept.packets.len() == 2 * round + 1);
        assert_eq!(a.push(to_b, &header(0), Body::Empty, None), Push::Done);
        assert!(!is_readable(b.wake_fd(), 0), "nobody sleeps");
        poll_until(&mut b, &mut kept, |kept| kept.packets.len() == 2 * round + 2);
    }
    while a.push(to_b, &header(7), Body::Bytes(&body(7)), None) == Push::Done {}
    assert!(a.arm());
    assert!(!is_readable(a.wake_fd(), 0));
    let mut more = Kept::default();
    while b.poll(&mut more, 64) > 0 {}
    b.poll(&mut more, 64);
    assert!(is_readable(a.wake_fd(), 5000));
    a.disarm();
    assert_eq!(a.push(to_b, &header(7), Body::Bytes(&body(7)), None), Push::Done);
}

/// Two threads, each of which sleeps whenever it has nothing to do: one lost wake-up would stop both.
#[test]
fn no_wake_up_is_lost() {
    let dir = Dir::new();
    let ends = [(dir.open("a"), "b"), (dir.open("b"), "a")];
    let threads = ends.map(|(mut end, other)| {
        std::thread::spawn(move || {
            let to = end.peer(other.as_bytes()).unwrap();
            let mut kept = Kept::default();
            if other == "b" {
                push_all(&mut end, to, 0..1, &mut kept);
            }
            let mut seen = 0;
            while seen < 5000 {
                if end.poll(&mut kept, 64) == 0 && end.arm() {
                    assert!(is_readable(end.wake_fd(), 10_000), "{other} {seen}");
                    end.disarm();
                }
                for id in seen..kept.packets.len() as u32 {
                    push_all(&mut end, to, id + 1..id + 2, &mut kept);
                }
                seen = kept.packets.len() as u32;
            }
            end
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn memory_of_a_peer_is_fetched() {
    let dir = Dir::new();
    let (mut a, mut b) = (dir.open("a"), dir.open("b"));
    let (to_a, to_b) = (b.peer(b"a").unwrap(), a.peer(b"b").unwrap());
    let mut from: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
    let mut to = vec![0u8; from.len()];
    // SAFETY: both vectors outlive the calls.
    let iov = |bytes: &mut [u8]| UserIov::one(unsafe { UserBuf::new(bytes.as_mut_ptr(), bytes.len()) });
    let (source, target) = (iov(&mut from), iov(&mut to));
    let remote = a.expose(0, &source, ExposedName::Sent(1)).unwrap().remote;
    assert_eq!(b.get(to_a, &remote, &target, 5, 90_000, Some(0)), port::Get::Done);
    assert!(to[5..90_005] == from[5..90_005] && to[90_005..].iter().all(|byte| *byte == 0));
    // Memory exposed by another instance.
    let mut other = remote;
    let mut bytes = other.bytes().to_vec();
    bytes[0] ^= 1;
    other = Remote::new(&bytes).unwrap();
    assert_eq!(b.get(to_a, &other, &target, 0, 5, Some(0)), port::Get::Gone);
    let config = Config {
        fetch: false,
        ..dir.config()
    };
    let mut c = ShmTransport::open("c", &config).unwrap();
    assert!(!c.limits().can_get);
    let from_c = c.peer(b"a").unwrap();
    assert_eq!(c.get(from_c, &remote, &target, 0, 5, Some(0)), port::Get::Unsupported);
    let _ = to_b;
    // The memory can still be read, but the endpoint is closed.
    drop(a);
    assert_eq!(b.get(to_a, &remote, &target, 0, 5, Some(0)), port::Get::Gone);
    assert_eq!(b.get(to_a, &remote, &target, 0, 90_000, Some(0)), port::Get::Gone);
}
