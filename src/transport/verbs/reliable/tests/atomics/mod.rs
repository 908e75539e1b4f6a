//! Endpoints whose devices do the atomics too: the suite over them, their order, errors and ends, atomics on one's own
//! memory. `story`: generated runs in which connections break.

mod story;

use super::*;
use crate::engine::op::{Access, *};
use crate::engine::port::{Get, Local, Loss, NotDone};
use crate::engine::{Config as Settings, Engine};
use crate::mem::atomic::{Datatype, Op};
use crate::transport::tests::suite::until;
use crate::util::regions::{Region, Rights};
use crate::util::user::Lent;

type Whole = Reliable<NetDevice<true, true>>;

const KEY: u64 = 77;

fn whole(net: &Net, number: PeerId, atomics: bool, warn: fn(&str)) -> Whole {
    let device = net.open_one(&format!("10.0.0.{}:7471", number + 1));
    let memory = device.registrations();
    let mut end = Reliable::new(device, &Config { warn, ..config() }).unwrap();
    end.set_memory(DomainMemory {
        regions: Some(memory),
        atomics,
        ..DomainMemory::default()
    });
    end
}

fn regions_of(memory: &Lent, rights: Rights) -> Arc<Regions> {
    let regions = Arc::new(Regions::new(false, false));
    let region = Region {
        memory: memory.iov(),
        rights,
        base: 0,
        enabled: true,
        endpoint: None,
        counted: false,
    };
    assert_eq!(regions.add(region, KEY), Some(KEY));
    regions
}

/// Some that have met, each with a region of its own. Each knows all by their places in the list, and so itself.
fn wholes<const N: usize>(net: &Net, memory: &[Lent; N]) -> [Whole; N] {
    let mut ends: [Whole; N] = core::array::from_fn(|number| whole(net, number as PeerId, true, config().warn));
    for (end, memory) in ends.iter_mut().zip(memory) {
        end.publish_regions(&regions_of(memory, Rights::BOTH), 0);
    }
    meet(&mut ends);
    ends
}

impl Pair for Whole {
    fn pair() -> Ends<Whole> {
        let net = Net::new(5, Manner::default());
        let [a, b] = wholes(&net, &[0, 0].map(|_| Lent::new(&[8], 0)));
        Ends {
            a,
            b,
            b_of_a: 1,
            a_of_b: 0,
            keep: Box::new(()),
        }
    }
}

crate::transport::tests::suite::tests!(Whole:
    bodies_of_every_length_arrive_in_order,
    both_ways_at_once,
    the_end_of_a_peer_is_noticed,
    engines_exchange_messages,
    engines_notice_the_end_of_a_peer,
    engines_reach_each_others_memory,
    engines_keep_short_operations_and_messages_in_order,
    engines_write_with_remote_data,
    engines_work_in_pieces_and_in_many_operations_at_once,
    engines_execute_the_cards_atomics_and_no_other,
);

/// Records how operations end.
#[derive(Default)]
struct Ended {
    tokens: Vec<(Token, Result<(), NotDone>)>,
    lost: Vec<(PeerId, Loss)>,
}

impl Sink for Ended {
    fn place(&mut self, _: PeerId, _: &Header, _: usize) -> crate::engine::port::Placement {
        unreachable!("no packet was sent")
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        self.tokens.push((token, result));
    }

    fn gone(&mut self, peer: PeerId, loss: Loss) {
        self.lost.push((peer, loss));
    }
}

fn polls<const N: usize>(ends: &mut [Whole; N], heard: &mut Ended) {
    for _ in 0..200 {
        let mut nobody = Ended::default();
        for (number, end) in ends.iter_mut().enumerate() {
            end.poll(if number == 0 { &mut *heard } else { &mut nobody }, 10);
        }
    }
}

fn word(at: u64, key: u64) -> RemotePart {
    RemotePart { addr: at, len: 8, key }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap())
}

fn fetch_add(end: &mut Whole, to: PeerId, part: RemotePart, more: u64, result: &UserIov, token: Token) -> Get {
    let amo = Amo {
        op: AtomicOp::new(Form::Fetch, Op::Sum, Datatype::Uint64).unwrap(),
        part,
        operand: &more.to_ne_bytes(),
        compare: &[],
        result,
    };
    end.amo(to, &amo, token)
}

/// Has the first of them add to a word until that is begun.
fn begin<const N: usize>(ends: &mut [Whole; N], to: PeerId, part: RemotePart, result: &UserIov, heard: &mut Ended) {
    let token = 9;
    until("a connection", || {
        match fetch_add(&mut ends[0], to, part, 5, result, token) {
            Get::Full => {
                polls(ends, heard);
                false
            }
            begun => {
                assert_eq!(begun, Get::Later);
                true
            }
        }
    });
}

/// Devices carry out reads and atomics when they like, if they are not told: what is posted behind either waits.
#[test]
fn writes_and_atomics_keep_their_place() {
    for (seed, reads) in (0..20).flat_map(|seed| [(seed, true), (seed, false)]) {
        let memory = [0, 0].map(|_| Lent::new(&[16], 1));
        let net = Net::new(seed, Manner::default());
        let mut ends = wholes(&net, &memory);
        let [read, added, overwritten] = [0; 3].map(|_| Lent::new(&[8], 0));
        let iovs = [&read, &added].map(Lent::iov);
        let parts = [word(8, KEY)];
        let copy = |access, local| CopyOp {
            access,
            parts: &parts,
            local,
            data: None,
        };
        let mut expected = Vec::new();
        if reads {
            let read = copy(Access::Read, Local::User(&iovs[0]));
            assert_eq!(ends[0].copy(1, &read, 1), Get::Later);
            expected.push((1, Ok(())));
        }
        assert_eq!(fetch_add(&mut ends[0], 1, parts[0], 5, &iovs[1], 2), Get::Later);
        let zeros = overwritten.iov();
        let write = copy(Access::Write, Local::User(&zeros));
        assert_eq!(ends[0].copy(1, &write, 3), Get::Later);
        expected.extend([(2, Ok(())), (3, Ok(()))]);
        let mut heard = Ended::default();
        polls(&mut ends, &mut heard);
        assert_eq!(heard.tokens, expected);
        // The read saw what was there before all, so did the atomic; the write came last.
        assert_eq!(read.bytes(), [u8::from(reads); 8], "seed {seed}");
        assert_eq!(added.bytes(), [1; 8], "seed {seed}");
        assert_eq!(memory[1].bytes(), [[1; 8], [0; 8]].concat(), "seed {seed}");
    }
}

/// What the target does not have, and what no device does.
#[test]
fn what_a_device_cannot_do_ends_with_an_error() {
    let memory = [0, 0].map(|_| Lent::new(&[16], 0));
    let net = Net::new(3, Manner::default());
    let mut ends = wholes(&net, &memory);
    let (result, mut heard) = (Lent::new(&[8], 0), Ended::default());
    let (one, two) = (result.iov(), Lent::new(&[4, 4], 0).iov());
    for to in [0, 1] {
        for (part, into, error) in [
            (word(4, KEY), one, Error::OutOfRange),
            (word(0, 1 << 40), one, Error::NoKey),
            (word(0, KEY), two, Error::OutOfRange),
        ] {
            // To itself the endpoint connects first.
            until("an answer", || match fetch_add(&mut ends[0], to, part, 1, &into, 1) {
                Get::Full => {
                    polls(&mut ends, &mut heard);
                    false
                }
                answer => answer == Get::Failed(error),
            });
        }
    }
    assert!(heard.tokens.is_empty() && heard.lost.is_empty());
    assert_eq!(memory.map(|memory| memory.bytes()), [[0; 16], [0; 16]]);
}

/// The device refuses, and with that the connection ends; the next atomic goes over a new one. Of its connection with
/// itself an endpoint's engine hears nothing but what has become of each operation.
#[test]
fn a_key_that_is_not_there_costs_the_connection() {
    for to in [0, 1] {
        let memory = [0, 0].map(|_| Lent::new(&[16], 0));
        let net = Net::new(4, Manner::default());
        let mut ends = wholes(&net, &memory);
        let (result, mut heard) = (Lent::new(&[8], 0).iov(), Ended::default());
        begin(&mut ends, to, word(0, KEY + 1), &result, &mut heard);
        polls(&mut ends, &mut heard);
        assert_eq!(heard.tokens, [(9, Err(NotDone::Failed(Error::NoRights)))]);
        let lost = if to == 0 { vec![] } else { vec![(1, Loss::Broken)] };
        assert_eq!(heard.lost, lost);
        begin(&mut ends, to, word(0, KEY), &result, &mut heard);
        polls(&mut ends, &mut heard);
        assert_eq!(heard.tokens.last(), Some(&(9, Ok(()))));
        assert_eq!(number(&memory[to as usize].bytes()[..8]), 5);
    }
}

/// A connection with oneself that breaks ends what was under way there, each once, and another one is made.
#[test]
fn a_broken_connection_with_oneself_is_told_for_each_operation() {
    let memory = [Lent::new(&[16], 0)];
    let net = Net::new(6, Manner::default());
    let mut ends = wholes(&net, &memory);
    let (result, mut heard) = (Lent::new(&[8], 0).iov(), Ended::default());
    begin(&mut ends, 0, word(0, KEY), &result, &mut heard);
    for token in 10..13 {
        assert_eq!(fetch_add(&mut ends[0], 0, word(0, KEY), 5, &result, token), Get::Later);
    }
    net.break_off(ends[0].place(), ends[0].place());
    polls(&mut ends, &mut heard);
    let broken = Err(NotDone::Failed(Error::Broken));
    assert_eq!(heard.tokens, [9, 10, 11, 12].map(|token| (token, broken)));
    assert!(heard.lost.is_empty());
    begin(&mut ends, 0, word(0, KEY), &result, &mut heard);
    polls(&mut ends, &mut heard);
    assert_eq!(heard.tokens.last(), Some(&(9, Ok(()))));
    assert_eq!(number(&memory[0].bytes()[..8]), 5);
}

/// The device touches nothing after that, and keeps nothing of it.
#[test]
fn an_endpoint_closes_with_atomics_in_flight() {
    for to in [0, 1] {
        let memory = [0, 0].map(|_| Lent::new(&[16], 0));
        let net = Net::new(8, Manner::default());
        let mut ends = wholes(&net, &memory);
        let (result, mut heard) = (Lent::new(&[8], 7), Ended::default());
        begin(&mut ends, to, word(0, KEY), &result.iov(), &mut heard);
        let [first, mut second] = ends;
        drop(first);
        let after = (result.bytes(), memory[to as usize].bytes());
        for _ in 0..200 {
            second.poll(&mut heard, 10);
        }
        assert_eq!((result.bytes(), memory[to as usize].bytes()), after);
        drop(second);
        assert_eq!(net.registered(), 0);
    }
}

thread_local! {
    static WARNED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Ends of both kinds exchange everything but atomics, in either direction, and the log names the variable.
#[test]
fn atomics_of_two_kinds_do_not_meet() {
    let warn = |line: &str| WARNED.with_borrow_mut(|all| all.push(line.into()));
    let net = Net::new(2, Manner::default());
    let mut ends = [true, false].map(|atomics| whole(&net, u32::from(!atomics), atomics, warn));
    for end in &mut ends {
        end.publish_regions(&Arc::new(Regions::new(false, false)), 0);
    }
    meet(&mut ends);
    let memory = [0, 0].map(|_| Lent::new(&[8], 1));
    let mut nodes = ends.map(|end| Node::new(Engine::with(end, Settings::default())));
    for (node, memory) in nodes.iter_mut().zip(&memory) {
        node.engine.expose_regions(regions_of(memory, Rights::BOTH), 0, false);
    }
    let result = Lent::new(&[8], 0);
    for (from, to) in [(0, 1), (1, 0)] {
        let node = &mut nodes[from];
        let asked = sum(to, 0, 5, &result, 1);
        assert_eq!(node.engine.atomic(&asked, &mut node.ends), Ok(()));
        let write = Rma {
            access: Access::Write,
            to,
            local: result.iov(),
            remote: RemoteIov::one(word(0, KEY)),
            data: None,
            inject: false,
            level: CompletionLevel::Delivery,
            fence: false,
            context: 2,
            tell: Tell::Queue,
        };
        assert_eq!(node.engine.rma(&write, &mut node.ends), Ok(()));
        until("both ends", || {
            nodes.iter_mut().for_each(Node::progress);
            nodes[from].ends.len() == 2
        });
        let mut told: Vec<_> = nodes[from]
            .ends
            .drain(..)
            .map(|end| (end.context, error(&end)))
            .collect();
        told.sort_by_key(|(context, _)| *context);
        assert_eq!(told, [(1, Some(Error::NoSuchAtomic)), (2, None)], "{from} to {to}");
        assert_eq!(memory[to as usize].bytes(), [0; 8], "the write");
    }
    let warned = WARNED.take();
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(
        warned.iter().all(|line| line.contains("FI_OFI_RXM_DEVICE_ATOMICS")),
        "{warned:?}"
    );
}

struct Node {
    engine: Engine<Whole>,
    ends: Vec<Completion>,
}

impl Node {
    fn new(engine: Engine<Whole>) -> Node {
        Node {
            engine,
            ends: Vec::new(),
        }
    }

    fn progress(&mut self) {
        self.engine.progress(&mut self.ends);
    }
}

fn error(end: &Completion) -> Option<Error> {
    end.failure.map(|failure| failure.error)
}

fn lent(value: u64) -> Lent {
    let lent = Lent::new(&[8], 0);
    lent.set(&value.to_ne_bytes());
    lent
}

/// fi_fetch_atomic of FI_SUM on one FI_UINT64.
fn sum(to: PeerId, at: u64, more: u64, result: &Lent, context: usize) -> Atomic {
    Atomic {
        op: AtomicOp::new(Form::Fetch, Op::Sum, Datatype::Uint64).unwrap(),
        to,
        target: AtomicTarget::Memory(RemoteIov::one(word(at, KEY))),
        len: 8,
        operand: lent(more).iov(),
        compare: UserIov::default(),
        result: result.iov(),
        data: None,
        inject: false,
        fence: false,
        context,
        tell: Tell::Queue,
    }
}
