//! Endpoints that had an address one after the other, and contexts of one endpoint: who hears what, and what ends with
//! whom.

use super::*;
use crate::engine::op::{CompletionLevel, MessageKind, Recv, Send, Tell};
use crate::engine::{self, Engine};
use crate::util::user::Lent;
use std::os::fd::AsFd;

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

/// A receive whose context is its tag.
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

/// One context is closed before another has sent anything: what is received from the endpoint ends with that.
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
