//! Long messages that go through the ring, or do not. The numbers of messages are those of gets.

use super::*;
use crate::engine::port::ExposedName;
use crate::transport::shm::streaming::Way;

const LEN: usize = 256 << 10;

/// A sender and a receiver that have a ring in each other's file, and a message of the sender's.
struct Pair {
    sender: ShmTransport,
    receiver: ShmTransport,
    from: PeerId,
    sent: Vec<u8>,
    into: Vec<u8>,
    remote: Remote,
}

impl Pair {
    fn new(dir: &Dir) -> Pair {
        let open = |name| {
            let stream = true;
            ShmTransport::open(name, &Config { stream, ..dir.config() }).unwrap()
        };
        let (mut sender, mut receiver) = (open("a"), open("b"));
        let (to, from) = (sender.peer(b"b").unwrap(), receiver.peer(b"a").unwrap());
        for (end, peer) in [(&mut sender, to), (&mut receiver, from)] {
            assert_eq!(end.push(peer, &header(1), Body::Empty, None), Push::Done);
        }
        for end in [&mut sender, &mut receiver] {
            poll_until(end, &mut Kept::default(), |kept| !kept.packets.is_empty());
        }
        let mut sent: Vec<u8> = (0..LEN).map(|at| (at / 3) as u8).collect();
        // As memory of a region that has no name by which the sender could help.
        sender.publish_regions(&Arc::new(Regions::new(false, true)), 1);
        let exposed = sender.expose(to, &all_of(&mut sent), ExposedName::Nothing).unwrap();
        Pair {
            sender,
            receiver,
            from,
            sent,
            into: vec![0; LEN],
            remote: exposed.remote,
        }
    }

    /// Copies out of the receiver's ring were so quick of late.
    fn copies_took(&mut self, time: Duration) {
        let lane = self.receiver.peers.get(self.from).unwrap().lane.unwrap();
        let inbound = self.receiver.inbox.get_mut(lane).unwrap();
        inbound.lane.filling().store(1, Ordering::Relaxed);
        (0..2).for_each(|_| inbound.speeds.copied(&inbound.lane, LEN, time));
    }

    fn get(&mut self, number: Token) -> Way {
        let into = all_of(&mut self.into);
        match self.receiver.get(self.from, &self.remote, &into, 0, LEN, Some(number)) {
            port::Get::Unsupported => Way::Ring,
            port::Get::Full => Way::NotYet,
            port::Get::Done => {
                assert!(std::mem::replace(&mut self.into, vec![0; LEN]) == self.sent);
                Way::Kernel
            }
            other => panic!("{other:?}"),
        }
    }

    /// Until it is decided. The sender polls meanwhile, or does not.
    fn decide(&mut self, number: Token, polls: bool) -> Way {
        let start = Instant::now();
        loop {
            match self.get(number) {
                Way::NotYet => assert!(start.elapsed() < PATIENCE, "never decided"),
                way => return way,
            }
            if polls {
                self.sender.poll(&mut Kept::default(), 1);
            }
        }
    }
}

fn all_of(bytes: &mut [u8]) -> UserIov {
    // SAFETY: the memory outlives the calls in every test.
    UserIov::one(unsafe { UserBuf::new(bytes.as_mut_ptr(), bytes.len()) })
}

#[test]
fn long_messages_go_through_the_ring_where_that_is_quick_and_the_sender_polls() {
    let dir = Dir::new();
    let mut pair = Pair::new(&dir);
    pair.copies_took(Duration::ZERO);
    // Where this process was stopped between two looks, the kernel copied.
    assert!((0..1000).any(|number| pair.decide(number, true) == Way::Ring));
    // That it has just polled counts for a moment.
    let mut later = 1000..;
    assert!(later.any(|number| pair.decide(number, false) == Way::Kernel));
    assert_eq!(pair.get(later.next().unwrap()), Way::Kernel, "known not to poll");
    assert!(
        later.any(|number| pair.decide(number, true) == Way::Ring),
        "asked again"
    );
}

#[test]
fn where_copies_are_slow_few_are_tried() {
    let dir = Dir::new();
    let mut pair = Pair::new(&dir);
    pair.copies_took(Duration::from_secs(1));
    let is_tried = |number: &Token| {
        let is_tried = pair.get(*number) == Way::NotYet;
        if is_tried {
            pair.decide(*number, true);
        }
        is_tried
    };
    let tried: Vec<Token> = (0..128).filter(is_tried).collect();
    // Where this process was too slow for the first, 16 more are left alone.
    assert!(tried == [0, 64] || tried == [0, 80], "{tried:?}");
}
