//! Endpoints whose devices work on registered memory: the suite over them, and what they do that others don't.

use super::*;
use crate::engine::op::{Access as Way, Error, RemotePart};
use crate::engine::port::{Local, Loss, NotDone, Placement};
use crate::util::regions::{Region, Rights};
use crate::util::user::Lent;

type Opened = Reliable<NetDevice<true>>;

fn opened(net: &Net, number: PeerId) -> Opened {
    let device = net.open_one(&format!("10.0.0.{}:7471", number + 1));
    let memory = device.registrations();
    let mut end = Reliable::new(device, &config()).unwrap();
    end.set_memory(DomainMemory {
        regions: Some(memory),
        ..DomainMemory::default()
    });
    end
}

/// Two that have met, each with these regions of its own.
fn pair(net: &Net, regions: [&Arc<Regions>; 2]) -> [Opened; 2] {
    let mut ends = [0, 1].map(|number| opened(net, number));
    for (end, regions) in ends.iter_mut().zip(regions) {
        end.publish_regions(regions, 0);
    }
    meet(&mut ends);
    ends
}

fn no_regions() -> Arc<Regions> {
    Arc::new(Regions::new(false, false))
}

impl Pair for Opened {
    fn pair() -> Ends<Opened> {
        let net = Net::new(5, Manner::default());
        let [a, b] = pair(&net, [&no_regions(), &no_regions()]);
        let (b_of_a, a_of_b) = (1, 0);
        Ends {
            a,
            b,
            b_of_a,
            a_of_b,
            keep: Box::new(()),
        }
    }
}

crate::transport::tests::suite::tests!(Opened:
    bodies_of_every_length_arrive_in_order,
    a_full_lane_loses_nothing,
    both_ways_at_once,
    memory_is_used_until_that_is_told,
    memory_is_fetched_where_that_is_offered,
    the_end_of_a_peer_is_noticed,
    engines_exchange_messages,
    engines_notice_the_end_of_a_peer,
    engines_reach_each_others_memory,
    engines_keep_short_operations_and_messages_in_order,
    engines_write_with_remote_data,
    engines_work_in_pieces_and_in_many_operations_at_once,
    engines_execute_the_cards_atomics_and_no_other,
);

const KEY: u64 = 77;

fn region(memory: &Lent) -> Arc<Regions> {
    let regions = no_regions();
    let region = Region {
        memory: memory.iov(),
        rights: Rights::BOTH,
        base: 0,
        enabled: true,
        endpoint: None,
        counted: false,
    };
    assert_eq!(regions.add(region, KEY), Some(KEY));
    regions
}

/// Records how copies end.
#[derive(Default)]
struct Ended {
    tokens: Vec<(Token, Result<(), NotDone>)>,
    written: Vec<(usize, u64)>,
    lost: Vec<Loss>,
}

impl Sink for Ended {
    fn place(&mut self, _: PeerId, _: &Header, _: usize) -> Placement {
        unreachable!("no packet was sent")
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        self.tokens.push((token, result));
    }

    fn written(&mut self, _: PeerId, len: usize, data: u64) {
        self.written.push((len, data));
    }

    fn gone(&mut self, _: PeerId, loss: Loss) {
        self.lost.push(loss);
    }
}

fn part(addr: u64, len: usize, key: u64) -> [RemotePart; 1] {
    [RemotePart { addr, len, key }]
}

fn copy<'a>(access: Way, parts: &'a [RemotePart], local: Local<'a>) -> CopyOp<'a> {
    CopyOp {
        access,
        parts,
        local,
        data: None,
    }
}

fn polls(ends: &mut [Opened; 2], heard: &mut [Ended; 2]) {
    for _ in 0..200 {
        for (end, heard) in ends.iter_mut().zip(heard.iter_mut()) {
            end.poll(heard, 10);
        }
    }
}

/// A write is posted behind a read of the same memory, which devices may carry out in any order if they are not told.
#[test]
fn a_write_does_not_overtake_a_read() {
    for seed in 0..20 {
        let (memory, into) = (Lent::new(&[100], 1), Lent::new(&[100], 0));
        let net = Net::new(seed, Manner::default());
        let mut ends = pair(&net, [&no_regions(), &region(&memory)]);
        let (into_iov, bytes) = (into.iov(), [2; 100]);
        let parts = part(0, 100, KEY);
        let read = copy(Way::Read, &parts, Local::User(&into_iov));
        assert_eq!(ends[0].copy(1, &read, 5), Get::Later);
        let write = copy(Way::Write, &parts, Local::Bytes(&bytes));
        assert_eq!(ends[0].copy(1, &write, 6), Get::Later);
        let mut heard = <[Ended; 2]>::default();
        polls(&mut ends, &mut heard);
        assert_eq!(heard[0].tokens, [(5, Ok(())), (6, Ok(()))]);
        assert_eq!(
            (into.bytes(), memory.bytes()),
            (vec![1; 100], vec![2; 100]),
            "seed {seed}"
        );
    }
}

/// What the program has registered is known to the device; everything else is registered for as long as it takes.
#[test]
fn registered_memory_is_not_registered_again() {
    let (memory, ours) = (Lent::new(&[4000], 0), Lent::new(&[4000], 3));
    let net = Net::new(1, Manner::default());
    let mut ends = pair(&net, [&no_regions(), &region(&memory)]);
    let iov = ours.iov();
    let parts = part(0, 4000, KEY);
    let write = copy(Way::Write, &parts, Local::User(&iov));
    polls(&mut ends, &mut Default::default());
    let before = net.registered();
    let cost = |ends: &mut [Opened; 2], token| {
        let before = net.counts().registrations;
        assert_eq!(ends[0].copy(1, &write, token), Get::Later);
        let mut heard = <[Ended; 2]>::default();
        polls(ends, &mut heard);
        assert_eq!(heard[0].tokens, [(token, Ok(()))]);
        net.counts().registrations - before
    };
    assert_eq!(cost(&mut ends, 1), 1);
    assert_eq!(net.registered(), before, "what was registered for the write");
    let known = ends[0].memory().regions.as_ref().unwrap().clone();
    let (number, _) = known.register(&iov.only().unwrap(), Access::default()).unwrap();
    assert_eq!(cost(&mut ends, 2), 0);
    known.deregister(number);
    assert_eq!(cost(&mut ends, 3), 1);
    assert_eq!(memory.bytes(), ours.bytes());
}

/// The program ends a registration that it need not know to be in use.
#[test]
fn registered_memory_is_held_until_the_transfer_is_over() {
    let (memory, ours) = (Lent::new(&[400], 0), Lent::new(&[400], 3));
    let net = Net::new(2, Manner::default());
    let mut ends = pair(&net, [&no_regions(), &region(&memory)]);
    polls(&mut ends, &mut Default::default());
    let before = net.registered();
    let (known, iov) = (ends[0].memory().regions.as_ref().unwrap().clone(), ours.iov());
    let (number, _) = known.register(&iov.only().unwrap(), Access::default()).unwrap();
    let parts = part(0, 400, KEY);
    let write = copy(Way::Write, &parts, Local::User(&iov));
    assert_eq!(ends[0].copy(1, &write, 1), Get::Later);
    known.deregister(number);
    let mut heard = <[Ended; 2]>::default();
    polls(&mut ends, &mut heard);
    assert_eq!(heard[0].tokens, [(1, Ok(()))]);
    assert_eq!((memory.bytes(), net.registered()), (ours.bytes(), before));
}

/// The target's device refuses, and with that the connection ends; the next operation goes over a new one.
#[test]
fn a_key_that_is_not_there_costs_the_connection() {
    let memory = Lent::new(&[100], 0);
    let net = Net::new(3, Manner::default());
    let mut ends = pair(&net, [&no_regions(), &region(&memory)]);
    let mut heard = <[Ended; 2]>::default();
    let (wrong, right, long) = (part(0, 8, KEY + 1), part(0, 8, KEY), part(0, 8, 1 << 40));
    let write = |parts| copy(Way::Write, parts, Local::Bytes(&[9; 8]));
    assert_eq!(ends[0].copy(1, &write(&long), 1), Get::Failed(Error::NoKey));
    assert_eq!(ends[0].copy(1, &write(&wrong), 2), Get::Later);
    polls(&mut ends, &mut heard);
    assert_eq!(heard[0].tokens, [(2, Err(NotDone::Failed(Error::NoRights)))]);
    assert_eq!(
        heard.each_ref().map(|end| end.lost.clone()),
        [[Loss::Broken], [Loss::Broken]].map(Vec::from)
    );
    while ends[0].copy(1, &write(&right), 3) == Get::Full {
        polls(&mut ends, &mut heard);
    }
    polls(&mut ends, &mut heard);
    assert_eq!(heard[0].tokens.last(), Some(&(3, Ok(()))));
    assert_eq!(memory.bytes()[..9], [9, 9, 9, 9, 9, 9, 9, 9, 0]);
}

/// The engine asks such a peer by packets.
#[test]
fn a_peer_that_has_opened_nothing_is_not_reached() {
    let net = Net::new(3, Manner::default());
    let mut ends = [0, 1].map(|number| opened(&net, number));
    ends[0].publish_regions(&no_regions(), 0);
    meet(&mut ends);
    let parts = part(0, 8, KEY);
    for (from, to) in [(0, 1), (1, 1)] {
        let write = copy(Way::Write, &parts, Local::Bytes(&[9; 8]));
        assert_eq!(ends[from].copy(to, &write, 1), Get::Unsupported, "{from} to {to}");
    }
    let write = copy(Way::Write, &parts, Local::Bytes(&[9; 8]));
    assert_eq!(ends[1].copy(0, &write, 1), Get::Later, "the other way");
}

/// Of data with a write the target hears once, behind the bytes, whatever its length; a note takes credit as packets
/// do.
#[test]
fn a_write_tells_of_its_data() {
    let memory = Lent::new(&[1000], 0);
    let net = Net::new(9, Manner::default());
    let mut ends = pair(&net, [&no_regions(), &region(&memory)]);
    let mut heard = <[Ended; 2]>::default();
    let lens = [0, 8, 300, 1, 0, 500, 9, 64, 65, 0];
    for (token, len) in (0..).zip(lens) {
        let (parts, ours) = (part(0, len, KEY), Lent::new(&[len], token as u8 + 1).iov());
        let write = CopyOp {
            data: Some(token << 40),
            ..copy(Way::Write, &parts, Local::User(&ours))
        };
        loop {
            match ends[0].copy(1, &write, token) {
                Get::Full => polls(&mut ends, &mut heard),
                Get::Done => break assert_eq!(len, 0),
                begun => break assert_eq!(begun, Get::Later),
            }
        }
    }
    polls(&mut ends, &mut heard);
    let begun = (0..100).take_while(|token| {
        let parts = part(0, 8, KEY);
        let write = CopyOp {
            data: Some(1),
            ..copy(Way::Write, &parts, Local::Bytes(&[1; 8]))
        };
        ends[0].copy(1, &write, 100 + token) == Get::Later
    });
    assert_eq!(begun.count(), config().window, "begun without a poll");
    let expected: Vec<_> = (0..).zip(lens).map(|(token, len)| (len, token << 40)).collect();
    assert_eq!(heard[1].written, expected);
    assert_eq!(heard[0].tokens.len(), lens.iter().filter(|len| **len > 0).count());
}
