//! Packets of an endpoint to itself, which need no connection.

use crate::engine::port::{Body, PeerId, Placement, Push, Sink};
use crate::engine::wire::Header;
use std::collections::VecDeque;

/// The most packets that are queued, and the most bytes of their bodies.
const PACKETS: usize = 256;
const BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct SelfQueue {
    packets: VecDeque<(Header, Vec<u8>)>,
    bytes: usize,
    met: bool,
}

impl SelfQueue {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub fn push(&mut self, header: &Header, body: &Body<'_>) -> Push {
        if self.packets.len() >= PACKETS || self.bytes >= BYTES {
            return Push::Full;
        }
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => {
                iov.read(*at, &mut bytes);
            }
        }
        self.bytes += bytes.len();
        self.packets.push_back((*header, bytes));
        Push::Done
    }

    /// Delivers `budget` packets at most. Returns how many. `number`: the endpoint's own, which the engine met as
    /// `source`.
    #[cold]
    pub fn deliver<S: Sink>(&mut self, number: PeerId, source: PeerId, sink: &mut S, budget: usize) -> usize {
        if !core::mem::replace(&mut self.met, true) {
            sink.met(number, source);
        }
        let mut done = 0;
        while done < budget
            && let Some((header, body)) = self.packets.front()
            && deliver(number, sink, header, body)
        {
            self.bytes -= body.len();
            self.packets.pop_front();
            done += 1;
        }
        done
    }
}

/// False: the engine refused it.
fn deliver<S: Sink>(number: PeerId, sink: &mut S, header: &Header, body: &[u8]) -> bool {
    if sink.take(number, header, body) {
        return true;
    }
    match sink.place(number, header, body.len()) {
        Placement::Into { iov, at, token } => {
            iov.write(at, body);
            sink.placed(token, None);
        }
        Placement::Leased { lease, token } => match lease.write(0, body) {
            true => sink.placed(token, None),
            false => sink.cut(token),
        },
        Placement::Keep { mut buffer, token } => {
            buffer.copy_from_slice(body);
            sink.placed(token, Some(buffer));
        }
        Placement::Drop => {}
        Placement::Refuse => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::port::{Loss, NotDone, Token};
    use crate::engine::wire::Packet;

    #[derive(Default)]
    struct Kept {
        met: Vec<(PeerId, PeerId)>,
        packets: Vec<(u32, usize)>,
        refuse: bool,
    }

    impl Sink for Kept {
        fn place(&mut self, _: PeerId, header: &Header, len: usize) -> Placement {
            if self.refuse {
                return Placement::Refuse;
            }
            self.packets.push((header.id, len));
            Placement::Drop
        }

        fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

        fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

        fn gone(&mut self, _: PeerId, _: Loss) {}

        fn met(&mut self, peer: PeerId, source: PeerId) {
            self.met.push((peer, source));
        }
    }

    fn header(number: u32) -> Header {
        Header::new(Packet::Segment, number)
    }

    #[test]
    fn packets_come_in_order_and_wait_while_they_are_refused() {
        let (mut queue, mut kept) = (SelfQueue::default(), Kept::default());
        for number in 0..5 {
            let bytes = vec![1; number as usize];
            assert_eq!(queue.push(&header(number), &Body::Bytes(&bytes)), Push::Done);
        }
        assert_eq!(queue.deliver(3, 2, &mut kept, 2), 2);
        kept.refuse = true;
        assert_eq!(queue.deliver(3, 2, &mut kept, 9), 0);
        kept.refuse = false;
        assert_eq!(queue.deliver(3, 2, &mut kept, 9), 3);
        assert!(queue.is_empty() && kept.packets.iter().copied().eq((0..5).map(|at| (at, at as usize))));
        assert_eq!(kept.met, [(3, 2)]);
    }

    #[test]
    fn it_is_full_of_packets_or_of_bytes_and_has_room_again() {
        for (len, most) in [(0, PACKETS), (BYTES / 4, 4)] {
            let (mut queue, bytes) = (SelfQueue::default(), vec![0; len]);
            for _ in 0..3 {
                let pushed = (0..=PACKETS as u32)
                    .take_while(|number| queue.push(&header(*number), &Body::Bytes(&bytes)) == Push::Done);
                assert_eq!(pushed.count(), most);
                queue.deliver(0, 0, &mut Kept::default(), usize::MAX);
            }
        }
    }
}
