//! Joins of the small transports of the test bed: `loopback`, whose packets are there at once, and `stream`.

mod first_packets;

use super::*;
use crate::engine::tests::sim::{Connected, World};
use crate::transport::tests::loopback::{Hub, Loopback};
use crate::transport::tests::stream::Stream;
use crate::transport::tests::suite::{Ends, Pair};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

/// A transport whose addresses are numbers.
trait Numbered: Transport {
    fn address_of(&self, peer: PeerId) -> Option<PeerId>;
}

impl Numbered for Stream {
    fn address_of(&self, peer: PeerId) -> Option<PeerId> {
        Some(peer)
    }
}

impl Numbered for Loopback {
    fn address_of(&self, peer: PeerId) -> Option<PeerId> {
        let bytes = Loopback::address_of(self, peer)?;
        Some(PeerId::from_le_bytes(*bytes.first_chunk()?))
    }
}

/// A node of a machine. An address is two numbers, which machine and which node. The far way has the nodes' numbers,
/// the near one counts them from the last, so that a mix-up is seen. `C` tells apart what is the same but for its
/// tests.
struct Place<N, F, C = ()> {
    machine: PeerId,
    nodes: PeerId,
    ways: PhantomData<(N, F, C)>,
}

trait Case {
    const NEAR_MAY_FAIL: bool = false;
    /// Connections of both ways break.
    const BREAKS: bool = false;

    /// What is wrong with the near way, whose nodes are counted from the last.
    fn spoil(_near: &mut [Stream], _seed: u64) {}
}

impl Case for () {
    const BREAKS: bool = true;
}

fn address(machine: PeerId, node: PeerId) -> Vec<u8> {
    [machine.to_le_bytes(), node.to_le_bytes()].concat()
}

/// The machine and the node in an address.
fn parts(address: &[u8]) -> Option<(PeerId, PeerId)> {
    let (machine, node) = address.split_first_chunk()?;
    Some((
        PeerId::from_le_bytes(*machine),
        PeerId::from_le_bytes(node.try_into().ok()?),
    ))
}

impl<N, F, C> Place<N, F, C> {
    fn backwards(&self, node: PeerId) -> PeerId {
        self.nodes - 1 - node
    }
}

impl<N: Numbered, F: Numbered, C: Case> Naming for Place<N, F, C> {
    type Near = N;
    type Far = F;

    /// It stands still, so that a case goes the same way each time.
    fn now() -> u64 {
        0
    }

    const NEAR_MAY_FAIL: bool = C::NEAR_MAY_FAIL;

    fn near(&self, address: &[u8]) -> Option<Vec<u8>> {
        let (machine, node) = parts(address)?;
        (machine == self.machine).then(|| self.backwards(node).to_le_bytes().to_vec())
    }

    fn far(&self, address: &[u8]) -> Option<Vec<u8>> {
        Some(parts(address)?.1.to_le_bytes().to_vec())
    }

    fn met_near(&self, near: &N, peer: PeerId) -> Option<Vec<u8>> {
        Some(address(self.machine, self.backwards(near.address_of(peer)?)))
    }

    fn met_far(&self, far: &F, peer: PeerId) -> Option<Vec<u8>> {
        let node = far.address_of(peer)?;
        Some(address(alone_or_two(self.nodes)(node), node))
    }

    fn base<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        address
    }
}

/// Two nodes have a machine each; of more, two share one.
fn alone_or_two(nodes: PeerId) -> fn(PeerId) -> PeerId {
    if nodes == 2 { |node| node } else { |node| node / 2 }
}

/// Ends of which the engine's number for each is its own.
fn joins<N: Numbered, F: Numbered, C: Case>(
    machine: fn(PeerId) -> PeerId,
    near: impl IntoIterator<Item = N, IntoIter: DoubleEndedIterator>,
    far: Vec<F>,
) -> Vec<Join<Place<N, F, C>>> {
    let nodes = far.len() as PeerId;
    let ways = (0..).zip(near.into_iter().rev().zip(far));
    let joined = ways.map(|(node, (near, far))| {
        let place = Place {
            machine: machine(node),
            nodes,
            ways: PhantomData,
        };
        let mut join = Join::new(place, Some(near), Some(far));
        for other in 0..nodes {
            assert_eq!(join.peer(&address(machine(other), other)), Some(other));
        }
        join
    });
    joined.collect()
}

fn loopbacks(nodes: PeerId) -> Vec<Loopback> {
    let hub = Hub::default();
    let open = |node: PeerId| Loopback::open(&hub, &node.to_le_bytes()).expect("a fresh hub");
    (0..nodes).map(open).collect()
}

fn ends<N: Numbered, F: Numbered>(joins: Vec<Join<Place<N, F>>>) -> Ends<Join<Place<N, F>>> {
    let [a, b] = <[_; 2]>::try_from(joins).unwrap_or_else(|_| unreachable!());
    Ends {
        a,
        b,
        b_of_a: 1,
        a_of_b: 0,
        keep: Box::new(()),
    }
}

/// The two of one machine. The far way pushes nothing later, as the suite asks of a join that never does.
mod near {
    use super::*;

    type Near = Join<Place<Loopback, Loopback>>;

    impl Pair for Near {
        fn pair() -> Ends<Near> {
            ends(joins(|_| 0, loopbacks(2), loopbacks(2)))
        }
    }

    crate::transport::tests::suite::tests!(Near);
}

/// Two machines.
mod far {
    use super::*;

    type Far = Join<Place<Loopback, Stream>>;

    impl Pair for Far {
        fn pair() -> Ends<Far> {
            ends(joins(alone_or_two(2), loopbacks(2), Stream::connected(2, 7)))
        }
    }

    crate::transport::tests::suite::tests!(Far);
}

/// Several nodes, of which some are near to each other.
type Joined<C> = Join<Place<Stream, Stream, C>>;

impl<C: Case> Connected for Joined<C> {
    const BREAKS: bool = C::BREAKS;

    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<Joined<C>> {
        let seed = world.borrow_mut().roll(u64::MAX);
        let mut near = Stream::connected(nodes, seed);
        C::spoil(&mut near, seed);
        joins(alone_or_two(nodes), near, Stream::connected(nodes, !seed))
    }

    fn is_quiet(&self) -> bool {
        self.near().unwrap().is_quiet() && self.far().unwrap().is_quiet()
    }

    fn die(&mut self) {
        self.near_mut().unwrap().die();
        self.far_mut().unwrap().die();
    }

    fn break_off(&mut self, peer: PeerId) {
        match self.peers.way(peer) {
            Way::Near(number) => self.near_mut().unwrap().break_off(number),
            Way::Far(number) => self.far_mut().unwrap().break_off(number),
            Way::Begun(_) | Way::Open => {}
        }
    }
}

/// Whom it has heard, and whose end.
#[derive(Default)]
struct Listener {
    heard: Vec<PeerId>,
    gone: Vec<PeerId>,
}

impl Sink for Listener {
    fn place(&mut self, from: PeerId, _: &Header, _: usize) -> Placement {
        self.heard.push(from);
        Placement::Drop
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

    fn gone(&mut self, peer: PeerId, _: Loss) {
        self.gone.push(peer);
    }
}

/// Pushes a packet until there is room, and says what became of it.
fn push_one(end: &mut impl Transport, to: PeerId) -> Push {
    let header = Header::new(crate::engine::wire::Packet::Segment, 1);
    loop {
        match end.push(to, &header, Body::Empty, None) {
            Push::Full => continue,
            pushed => return pushed,
        }
    }
}

mod mixed {
    use super::*;

    type Mixed = Joined<()>;
    crate::engine::tests::random::over!(Mixed);

    /// An endpoint that was near is on this machine: when it is not found there any more, nobody waits for it far away.
    #[test]
    fn who_was_near_is_gone_when_not_near_any_more() {
        let (near, far) = (Stream::connected(4, 1), Stream::connected(4, 2));
        let mut ends: Vec<Mixed> = joins(alone_or_two(4), near, far);
        let end = &mut ends[1];
        assert_eq!(push_one(end, 0), Push::Done);
        assert_eq!((end.peers.way(0), end.peers.reached()), (Way::Near(3), (1, 0)));
        end.near_mut().unwrap().cannot_reach(3);
        end.peers.reopen(0);
        assert_eq!(
            push_one(end, 0),
            Push::Unreachable(crate::engine::op::Unreached::Nobody)
        );
        assert_eq!((end.peers.way(0), end.peers.reached()), (Way::Open, (1, 0)));
    }

    /// A peer that was met both ways is lost on one: what then ends on the other was its, and not its successor's.
    #[test]
    fn a_peer_that_was_met_both_ways_is_lost_once() {
        let (near, far) = (Stream::connected(4, 1), Stream::connected(4, 2));
        let mut ends: Vec<Mixed> = joins(alone_or_two(4), near, far);
        let mut listener = Listener::default();
        let mut hear = |ends: &mut [Mixed], heard: usize, gone: &[PeerId]| {
            crate::transport::tests::suite::until("what a peer says", || {
                ends[0].flush();
                ends[0].poll(&mut Listener::default(), 10);
                ends[1].poll(&mut listener, 10);
                listener.heard.len() >= heard && listener.gone.len() >= gone.len()
            });
            assert_eq!((&listener.heard[..], &listener.gone[..]), (&vec![0; heard][..], gone));
            ends[1].peers.numbers(0)
        };
        assert_eq!(push_one(&mut ends[0], 1), Push::Done);
        assert_eq!(push_one(ends[0].far_mut().unwrap(), 1), Push::Done);
        assert_eq!(hear(&mut ends, 2, &[]), (Some(3), Some(0)));
        ends[1].near_mut().unwrap().break_off(3);
        assert_eq!(hear(&mut ends, 2, &[0]), (None, None));
        // The next to come from there.
        let mut again = Push::Full;
        while again != Push::Done {
            ends[0].poll(&mut Listener::default(), 10);
            again = push_one(ends[0].near_mut().unwrap(), 2);
        }
        assert_eq!(hear(&mut ends, 3, &[0]), (Some(3), None));
        ends[1].far_mut().unwrap().break_off(0);
        for _ in 0..1000 {
            hear(&mut ends, 3, &[0]);
        }
        assert!(ends[1].far().unwrap().is_quiet());
    }
}

/// Where a connection with a far peer takes time.
mod slow_far_way {
    use super::*;

    /// The first node of a machine, and its way to the other, when nobody is near there yet nor has answered far away.
    fn alone() -> (Vec<Joined<()>>, Way) {
        let (near, mut far) = (Stream::connected(4, 1), Stream::connected(4, 2));
        far[0].be_hopeful();
        far[0].cannot_reach(1);
        let mut ends: Vec<Joined<()>> = joins(alone_or_two(4), near, far);
        ends[0].near_mut().unwrap().cannot_reach(2);
        let header = Header::new(crate::engine::wire::Packet::Segment, 1);
        assert_eq!(ends[0].push(1, &header, Body::Empty, None), Push::Full);
        assert_eq!(ends[0].connect(1), Contact::Soon);
        let way = ends[0].peers.way(1);
        (ends, way)
    }

    /// An endpoint opens both ways, the far one first: it is reached by the near one.
    #[test]
    fn who_opens_meanwhile_is_reached_near() {
        let (mut ends, way) = alone();
        assert_eq!((way, ends[0].peers.numbers(1)), (Way::Begun(1), (None, Some(1))));
        ends[0].far_mut().unwrap().can_reach(1);
        ends[0].near_mut().unwrap().can_reach(2);
        assert_eq!(push_one(&mut ends[0], 1), Push::Done);
        assert_eq!((ends[0].peers.way(1), ends[0].peers.reached()), (Way::Near(2), (1, 0)));
        // What becomes of the far connection is nothing to the engine.
        assert_eq!(ends[0].peers.numbers(1), (Some(2), None));
        assert!(peers::known(&ends[0].far.as_ref().unwrap().known, 1).is_none());
    }

    /// So is one that opens after it was looked for in vain.
    #[test]
    fn who_opens_later_is_reached_near() {
        let (near, mut far) = (Stream::connected(4, 1), Stream::connected(4, 2));
        far[0].cannot_reach(1);
        let mut ends: Vec<Joined<()>> = joins(alone_or_two(4), near, far);
        ends[0].near_mut().unwrap().cannot_reach(2);
        for _ in 0..2 {
            assert!(matches!(push_one(&mut ends[0], 1), Push::Unreachable(_)));
            assert_eq!((ends[0].peers.way(1), ends[0].peers.reached()), (Way::Open, (0, 0)));
        }
        ends[0].near_mut().unwrap().can_reach(2);
        assert_eq!(push_one(&mut ends[0], 1), Push::Done);
        assert_eq!(ends[0].peers.way(1), Way::Near(2));
    }

    #[test]
    fn who_is_not_near_then_is_reached_far() {
        let (mut ends, way) = alone();
        assert_eq!(way, Way::Begun(1));
        ends[0].far_mut().unwrap().can_reach(1);
        assert_eq!(push_one(&mut ends[0], 1), Push::Done);
        assert_eq!((ends[0].peers.way(1), ends[0].peers.reached()), (Way::Far(1), (0, 1)));
    }
}

/// Of the two that are near, one does not reach the other the near way: each direction goes its own.
mod one_way {
    use super::*;

    struct OneWay;
    impl Case for OneWay {
        fn spoil(near: &mut [Stream], _: u64) {
            cannot_reach(near, 1, 0);
        }
    }

    type Lopsided = Joined<OneWay>;
    crate::engine::tests::random::over!(Lopsided);
}

/// The same, or neither of the two reaches the other; and that is found out late.
mod misled {
    use super::*;

    struct Late;
    impl Case for Late {
        const NEAR_MAY_FAIL: bool = true;

        fn spoil(near: &mut [Stream], seed: u64) {
            near.iter_mut().for_each(Stream::be_hopeful);
            cannot_reach(near, 1, 0);
            if seed % 2 == 0 {
                cannot_reach(near, 0, 1);
            }
        }
    }

    type Misled = Joined<Late>;
    crate::engine::tests::random::over!(Misled);

    /// Who is not reached does not count as reached the near way, and is asked for there no more.
    #[test]
    fn the_far_way_is_taken_for_good() {
        let mut near = Stream::connected(4, 1);
        Late::spoil(&mut near, 1);
        let mut ends: Vec<Misled> = joins(alone_or_two(4), near, Stream::connected(4, 2));
        let header = Header::new(crate::engine::wire::Packet::Segment, 1);
        let mut push = |to| {
            let mut pushed = Push::Full;
            while pushed == Push::Full {
                pushed = ends[1].push(to, &header, Body::Empty, None);
            }
            (pushed, ends[1].peers.way(to), ends[1].peers.reached())
        };
        assert_eq!(push(0), (Push::Done, Way::Far(0), (0, 1)));
        assert_eq!(push(0), (Push::Done, Way::Far(0), (0, 1)));
        assert_eq!(push(1), (Push::Done, Way::Near(2), (1, 1)));
    }
}

/// Of the join's nodes, by the numbers that they have on the near way.
fn cannot_reach(near: &mut [Stream], from: PeerId, to: PeerId) {
    let last = near.len() as PeerId - 1;
    near[(last - from) as usize].cannot_reach(last - to);
}

/// The near transport tells endpoints apart that had one address, one after the other, and so does the join.
#[test]
fn an_endpoint_that_had_the_address_before_ends_alone() {
    let names = Place::<Loopback, Loopback> {
        machine: 0,
        nodes: 2,
        ways: PhantomData,
    };
    let (mut peers, mut known) = (Peers::default(), Vec::new());
    let there = address(0, 1);
    let peer = peers.number(&names, &there).unwrap();
    peers.choose(&names, peer, Way::Near(5), &mut known);
    let mut formers = Vec::new();
    for number in [6, 7] {
        peers.met_former(&names, &there, number, &mut known);
        let former = peers::known(&known, number).unwrap();
        assert_eq!((former.source, peers.address(former.id)), (peer, Some(&*there)));
        assert_eq!(peers.way(former.id), Way::Near(number));
        // It is lost.
        assert_eq!(peers::unknow(&mut known, number), Some(former.id));
        peers.reopen(former.id);
        formers.push(former.id);
    }
    // One at a time needs one number.
    assert!(formers[0] == formers[1] && formers[0] != peer);
    assert_eq!(peers.way(peer), Way::Near(5));
    assert_eq!(peers.forget(&|id| id == peer), [formers[0]]);
    assert_eq!(peers.number(&names, &there), Some(peer));
    peers.met_former(&names, &there, 6, &mut known);
    assert!(peers::known(&known, 6).is_some_and(|former| former.id != peer));
}
