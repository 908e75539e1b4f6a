//! Groups of endpoints on the smallest transport, in one thread.

use super::*;
use crate::api::collective::request::Asked;
use crate::engine::Engine;
use crate::engine::port::Transport;
use crate::transport::tests::loopback::{Hub, Loopback};
use crate::util::user::Lent;

const GROUP: fi_addr_t = 1 << 63;

struct Node {
    engine: Engine<Loopback>,
    ended: Vec<Completion>,
    runner: Runner,
    finished: Vec<Finished>,
}

impl Hands for (&mut Engine<Loopback>, &mut Vec<Completion>) {
    fn send(&mut self, send: &Send) -> core::result::Result<(), Refused> {
        self.0.send(send, self.1)
    }
    fn recv(&mut self, recv: &Recv) -> core::result::Result<(), Refused> {
        self.0.recv(recv, self.1)
    }
    fn losses(&self, peer: PeerId) -> (u32, Error) {
        self.0.losses(peer)
    }
    fn withdraw(&mut self, context: Context) {
        self.0.withdraw(context, self.1);
    }
}

impl Node {
    /// As an endpoint does.
    fn progress(&mut self) -> usize {
        let came = self.engine.progress(&mut self.ended);
        self.runner.retry();
        self.tell();
        came
    }

    fn tell(&mut self) {
        while !self.ended.is_empty() || self.runner.is_ready() {
            self.ended.drain(..).for_each(|end| self.runner.ended(&end));
            self.runner.advance(&mut (&mut self.engine, &mut self.ended));
            while let Some(finished) = self.runner.finished() {
                self.finished.push(finished);
            }
        }
    }

    fn join(&mut self, address: fi_addr_t, members: &[PeerId], me: PeerId) {
        let digest = members
            .iter()
            .fold(Digest::default(), |digest, peer| digest.number(u64::from(*peer)));
        let membership = Membership {
            owner: 0,
            joiner: 0,
            digest,
            rank: members.iter().position(|peer| *peer == me).unwrap(),
            members: members
                .iter()
                .map(|peer| GroupMember {
                    addr: u64::from(*peer),
                    peer: *peer,
                    source: *peer,
                    losses: self.engine.losses(*peer).0,
                    lost: None,
                })
                .collect(),
            operations: 0,
            agreed: false,
        };
        let awaiting = Awaiting::Join { fid: 1, context: 2 };
        self.runner.join(address, membership, awaiting).unwrap();
        self.tell();
    }

    fn sum(&mut self, address: fi_addr_t, input: &Lent, result: &Lent, context: Context) -> Result<()> {
        self.ask(FI_ALLREDUCE, address, input, result, context)
    }

    fn ask(&mut self, coll: u32, address: fi_addr_t, input: &Lent, result: &Lent, context: Context) -> Result<()> {
        let call = CollectiveCall {
            asked: Asked {
                coll,
                datatype: FI_UINT64,
                op: FI_SUM,
                root_addr: 0,
            },
            coll_addr: address,
            count: None,
            input: input.iov(),
            result: result.iov(),
            flags: 0,
            context,
        };
        let begun = self.runner.collective(0, &call, 8, true);
        self.tell();
        begun
    }

    fn ends(&self) -> Vec<(Context, Option<i32>)> {
        let of = |finished: &Finished| match finished.awaiting {
            Awaiting::Join { context, .. } | Awaiting::Operation { context, .. } => {
                (context, finished.failure.map(|errno| errno.0))
            }
        };
        self.finished.iter().map(of).collect()
    }
}

fn nodes(n: usize) -> Vec<Option<Node>> {
    let hub = Hub::default();
    let open = |index: usize| Loopback::open(&hub, &[index as u8]).unwrap();
    let mut ends: Vec<Loopback> = (0..n).map(open).collect();
    for end in &mut ends {
        for index in 0..n {
            assert_eq!(end.peer(&[index as u8]), Some(index as PeerId));
        }
    }
    let node = |transport| Node {
        engine: Engine::new(transport),
        ended: Vec::new(),
        runner: Runner::default(),
        finished: Vec::new(),
    };
    ends.into_iter().map(|end| Some(node(end))).collect()
}

fn settle(nodes: &mut [Option<Node>]) {
    // What one look at a peer that is gone brings is no packet, so some looks without any are no end.
    let mut quiet = 0;
    while quiet < 10 {
        let came: usize = nodes.iter_mut().flatten().map(Node::progress).sum();
        quiet = if came == 0 { quiet + 1 } else { 0 };
    }
}

/// Each joins a group of these members.
fn join(nodes: &mut [Option<Node>], group: u64, members: &[PeerId]) {
    for (me, node) in nodes.iter_mut().flatten().enumerate() {
        node.join(group, members, me as PeerId);
    }
}

/// All have joined one group.
fn joined(n: usize) -> Vec<Option<Node>> {
    let mut nodes = nodes(n);
    let members: Vec<PeerId> = (0..n as PeerId).collect();
    join(&mut nodes, GROUP, &members);
    settle(&mut nodes);
    for node in nodes.iter_mut().flatten() {
        assert_eq!(node.ends(), [(2, None)]);
        node.finished.clear();
    }
    nodes
}

fn numbers(values: &[u64]) -> Lent {
    let lent = Lent::new(&[values.len() * 8], 0);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    lent.set(&bytes);
    lent
}

fn read(lent: &Lent) -> Vec<u64> {
    lent.bytes()
        .chunks(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

#[test]
fn a_join_ends_when_all_have_joined() {
    for n in 1..6 {
        for late in 0..n {
            let mut nodes = nodes(n);
            let members: Vec<PeerId> = (0..n as PeerId).collect();
            for me in (0..n).filter(|me| *me != late) {
                nodes[me].as_mut().unwrap().join(GROUP, &members, me as PeerId);
            }
            settle(&mut nodes);
            assert!(nodes.iter().flatten().all(|node| node.ends().is_empty()));
            for node in nodes.iter_mut().flatten().filter(|node| node.runner.running() > 0) {
                assert_eq!(node.runner.leave(GROUP), Err(Errno(FI_EBUSY)));
                let nothing = numbers(&[]);
                let early = node.sum(GROUP, &nothing, &nothing, 0);
                assert_eq!(early, Err(Errno(FI_EOPBADSTATE as i32)));
            }
            nodes[late].as_mut().unwrap().join(GROUP, &members, late as PeerId);
            settle(&mut nodes);
            for node in nodes.iter_mut().flatten() {
                assert_eq!(node.ends(), [(2, None)]);
                assert_eq!(node.runner.leave(GROUP), Ok(()));
                let nothing = numbers(&[]);
                assert_eq!(node.sum(GROUP, &nothing, &nothing, 0), Err(Errno(FI_EINVAL)));
            }
        }
    }
}

#[test]
fn a_join_waits_for_those_who_are_not_there_yet() {
    let hub = Hub::default();
    // Numbers are given in the order of opening, so the late one's is known.
    let node = |name: &[u8]| Node {
        engine: Engine::new(Loopback::open(&hub, name).unwrap()),
        ended: Vec::new(),
        runner: Runner::default(),
        finished: Vec::new(),
    };
    let mut nodes = vec![Some(node(b"a"))];
    nodes[0].as_mut().unwrap().join(GROUP, &[0, 1], 0);
    settle(&mut nodes);
    let first = nodes[0].as_ref().unwrap();
    assert!(first.ends().is_empty() && first.runner.is_stalled());
    nodes.push(Some(node(b"b")));
    nodes[1].as_mut().unwrap().join(GROUP, &[0, 1], 1);
    settle(&mut nodes);
    for node in nodes.iter().flatten() {
        assert_eq!((node.ends(), node.runner.is_stalled()), (vec![(2, None)], false));
    }
}

#[test]
fn many_at_once_do_not_meet_each_other() {
    for (n, count) in [(1, 3), (2, 1), (3, 100), (5, 10_000)] {
        let mut nodes = joined(n);
        let backwards: Vec<PeerId> = (0..n as PeerId).rev().collect();
        join(&mut nodes, GROUP + 1, &backwards);
        settle(&mut nodes);
        let value = |me: usize, operation: usize, index: usize| (me * 1_000_000 + operation * 100_000 + index) as u64;
        let mut results = Vec::new();
        for (me, node) in nodes.iter_mut().flatten().enumerate() {
            for operation in 0..8 {
                let values: Vec<u64> = (0..count).map(|index| value(me, operation, index)).collect();
                let (input, result) = (numbers(&values), numbers(&vec![0; count]));
                let group = GROUP + operation as u64 % 2;
                node.sum(group, &input, &result, operation).unwrap();
                results.push((operation, result));
            }
        }
        let node = nodes[0].as_mut().unwrap();
        let busy = node.sum(GROUP, &numbers(&[1]), &numbers(&[1]), 9);
        assert_eq!(busy, if n == 1 { Ok(()) } else { Err(Errno(FI_EAGAIN)) });
        settle(&mut nodes);
        for (operation, result) in results {
            let sum = |index| (0..n).map(|me| value(me, operation, index)).sum::<u64>();
            assert_eq!(read(&result), (0..count).map(sum).collect::<Vec<_>>());
        }
        for node in nodes.iter().flatten() {
            assert_eq!(node.engine.leftovers(), [0; 5]);
            assert_eq!((node.runner.running(), node.runner.parts.len()), (0, 0));
        }
    }
}

#[test]
fn a_death_ends_the_operation_everywhere_and_those_that_follow() {
    for n in 2..7 {
        for dead in 0..n {
            for count in [1, 10_000] {
                for coll in [FI_ALLREDUCE, FI_ALLGATHER, FI_ALLTOALL, FI_REDUCE_SCATTER] {
                    let mut nodes = joined(n);
                    let (big, small) = (numbers(&vec![1; count * n]), numbers(&vec![1; count]));
                    let (input, result) = match coll {
                        FI_ALLREDUCE => (small, small),
                        FI_ALLGATHER => (small, big),
                        FI_REDUCE_SCATTER => (big, small),
                        _ => (big, big),
                    };
                    for me in (0..n).filter(|me| *me != dead) {
                        let node = nodes[me].as_mut().unwrap();
                        node.ask(coll, GROUP, &input, &Lent::new(&[result.iov().len()], 0), 7)
                            .unwrap();
                    }
                    settle(&mut nodes);
                    assert!(nodes.iter().flatten().all(|node| node.ends().is_empty()));
                    nodes[dead] = None;
                    settle(&mut nodes);
                    for node in nodes.iter_mut().flatten() {
                        assert_eq!(node.ends(), [(7, Some(FI_EIO))], "{coll} {n} {dead} {count}");
                        assert_eq!(node.runner.parts.len(), 0);
                        node.finished.clear();
                        node.ask(coll, GROUP, &input, &Lent::new(&[result.iov().len()], 0), 8)
                            .unwrap();
                    }
                    settle(&mut nodes);
                    for node in nodes.iter_mut().flatten() {
                        assert_eq!(node.ends(), [(8, Some(FI_EIO))]);
                        assert_eq!(node.runner.leave(GROUP), Ok(()));
                    }
                }
            }
        }
    }
}

#[test]
fn members_that_disagree_on_the_length_are_told() {
    for (one, other) in [(1, 2), (2, 1), (0, 10_000), (10_000, 1)] {
        let mut nodes = joined(2);
        for (node, count) in nodes.iter_mut().flatten().zip([one, other]) {
            let (input, result) = (numbers(&vec![1; count]), numbers(&vec![0; count]));
            node.sum(GROUP, &input, &result, 5).unwrap();
        }
        settle(&mut nodes);
        for node in nodes.iter().flatten() {
            assert_eq!(node.ends(), [(5, Some(FI_ETRUNC as i32))]);
        }
    }
}

#[test]
fn groups_of_the_same_members_are_apart() {
    let mut nodes = joined(3);
    let members = [0, 1, 2];
    join(&mut nodes, GROUP + 1, &members);
    settle(&mut nodes);
    // One has gone ahead in the first group when another begins in the second.
    let (one, result) = (numbers(&[1]), numbers(&[0]));
    nodes[0].as_mut().unwrap().sum(GROUP, &one, &result, 1).unwrap();
    let others: Vec<Lent> = (0..3).map(|_| numbers(&[0])).collect();
    for me in 0..3 {
        let value = numbers(&[10 + me as u64]);
        nodes[me]
            .as_mut()
            .unwrap()
            .sum(GROUP + 1, &value, &others[me], 2)
            .unwrap();
    }
    settle(&mut nodes);
    assert!(others.iter().all(|result| read(result) == [33]));
    assert_eq!(nodes[0].as_ref().unwrap().runner.running(), 1);
}
