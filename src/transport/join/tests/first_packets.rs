//! First packets of several that are met at once.

use super::*;

/// With its first packet somebody else sends one, who is not known either.
struct Crowd {
    heard: Vec<PeerId>,
    next: Option<Join<Place<Loopback, Loopback>>>,
    /// Who has sent: who closes is forgotten.
    sent: Vec<Join<Place<Loopback, Loopback>>>,
}

impl Sink for Crowd {
    fn place(&mut self, from: PeerId, _: &Header, _: usize) -> Placement {
        self.heard.push(from);
        if let Some(mut next) = self.next.take() {
            assert_eq!(push_one(&mut next, 2), Push::Done);
            self.sent.push(next);
        }
        Placement::Drop
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

    fn gone(&mut self, peer: PeerId, _: Loss) {
        panic!("{peer} is there");
    }
}

/// Nothing else would make the listener look again, so what was refused for want of a number must be asked for at once.
#[test]
fn who_is_met_while_another_is_gets_heard_in_the_same_poll() {
    // The other is one that the transport looks at behind the first, near and far.
    for (machine, first) in [(alone_or_two as fn(PeerId) -> fn(PeerId) -> PeerId, 0), (|_| |_| 0, 1)] {
        let mut ends: Vec<Join<Place<Loopback, Loopback>>> = joins(machine(3), loopbacks(3), loopbacks(3));
        let mut listener = ends.pop().unwrap();
        let mut begins = ends.remove(first);
        let mut crowd = Crowd {
            heard: Vec::new(),
            next: ends.pop(),
            sent: Vec::new(),
        };
        assert_eq!(push_one(&mut begins, 2), Push::Done);
        crate::transport::tests::suite::until("who begins", || {
            listener.poll(&mut crowd, 10);
            !crowd.heard.is_empty()
        });
        assert_eq!(crowd.heard, [first as PeerId, 1 - first as PeerId]);
    }
}
