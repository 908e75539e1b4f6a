//! The part of the suite that works on a peer's memory: reads, writes and atomics between two engines.

use super::engines::{Side, sides};
use super::{Pair, bytes, until};
use crate::engine::Config;
use crate::engine::op::*;
use crate::engine::port::*;
use crate::mem::atomic::{Datatype, Op};
use crate::util::regions::{Region, Regions, Rights};
use crate::util::user::{Lent, UserIov};
use std::sync::Arc;

pub(super) const KEY: u64 = 7;

pub(super) fn region(memory: &Lent, rights: Rights, counted: bool) -> Region {
    Region {
        memory: memory.iov(),
        rights,
        base: 0,
        enabled: true,
        endpoint: None,
        counted,
    }
}

/// Opens memory of one side to the other.
pub(super) fn open<T: Transport>(side: &mut Side<T>, memory: &Lent, rights: Rights) {
    open_to(side, &Arc::new(Regions::new(false, false)), memory, rights);
}

pub(super) fn open_to<T: Transport>(side: &mut Side<T>, regions: &Arc<Regions>, memory: &Lent, rights: Rights) {
    // What a card does is not counted.
    let counted = !side.engine.transport().one_sided().copies;
    assert_eq!(regions.add(region(memory, rights, counted), KEY), Some(KEY));
    side.engine.expose_regions(regions.clone(), 0, false);
}

pub(super) fn rma<T: Transport>(side: &mut Side<T>, access: Access, local: &Lent, addr: u64, context: usize) {
    let op = one_piece(side, access, local, addr, context);
    begin(side, &op);
}

pub(super) fn one_piece<T: Transport>(side: &Side<T>, access: Access, local: &Lent, addr: u64, context: usize) -> Rma {
    let len = local.iov().len();
    Rma {
        access,
        to: side.peer,
        local: local.iov(),
        remote: RemoteIov::one(RemotePart { addr, len, key: KEY }),
        data: None,
        inject: false,
        level: CompletionLevel::Delivery,
        fence: false,
        context,
        tell: Tell::Queue,
    }
}

pub(super) fn begin<T: Transport>(side: &mut Side<T>, rma: &Rma) {
    let began = side.engine.rma(rma, &mut side.ends);
    assert_eq!(began, Ok(()));
}

/// fi_fetch_atomic of FI_SUM on one FI_UINT64.
fn add<T: Transport>(side: &mut Side<T>, operand: &Lent, result: &Lent, context: usize) {
    let atomic = on_word(side, Form::Fetch, Op::Sum, [operand, result], context);
    let began = side.engine.atomic(&atomic, &mut side.ends);
    assert_eq!(began, Ok(()));
}

/// An atomic on the first FI_UINT64 of the peer's memory.
pub(super) fn on_word<T: Transport>(side: &Side<T>, form: Form, op: Op, buffers: [&Lent; 2], context: usize) -> Atomic {
    let part = RemotePart {
        addr: 0,
        len: 8,
        key: KEY,
    };
    let [operand, result] = buffers.map(Lent::iov);
    Atomic {
        op: AtomicOp::new(form, op, Datatype::Uint64).expect("an operation that there is"),
        to: side.peer,
        target: AtomicTarget::Memory(RemoteIov::one(part)),
        len: 8,
        operand,
        compare: UserIov::default(),
        result: if form == Form::Base { UserIov::default() } else { result },
        data: None,
        inject: false,
        fence: false,
        context,
        tell: Tell::Queue,
    }
}

pub(super) fn ends<T: Transport>(side: &Side<T>) -> Vec<(CompletedOp, usize, usize, Option<Error>)> {
    let row = |end: &Completion| (end.op, end.context, end.len, end.failure.map(|failure| failure.error));
    side.ends.iter().map(row).collect()
}

/// Writes of many lengths, read back; both sides hear of each.
pub fn engines_reach_each_others_memory<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let Limits { max_body, eager, .. } = sides[0].engine.transport().limits();
    let native = sides[0].engine.transport().one_sided().copies;
    let most = 300_000.max(max_body + 1);
    let memory = Lent::new(&[1000, most], 0);
    open(&mut sides[1], &memory, Rights::BOTH);
    let lens = [0, 1, 8, max_body - 1, max_body, max_body + 1, eager, eager + 1, most];
    for (number, len) in lens.into_iter().enumerate() {
        let [local, back] = [0; 2].map(|_| Lent::new(&[len / 3, len - len / 3], 0));
        local.set(&bytes(number as u32, len));
        for (access, iov) in [(Access::Write, &local), (Access::Read, &back)] {
            rma(&mut sides[0], access, iov, 500, number);
            until("both ends", || {
                sides.iter_mut().for_each(Side::progress);
                sides[0].ends.len() == 1 && (native || sides[1].ends.len() == 1)
            });
            let target = CompletedOp::Target {
                access,
                key: KEY,
                atomic: false,
            };
            assert_eq!(ends(&sides[0]), [(CompletedOp::Rma(access), number, len, None)]);
            let told = [(target, 0, len, None)];
            assert_eq!(ends(&sides[1]), if native { &[][..] } else { &told });
            sides.iter_mut().for_each(|side| side.ends.clear());
        }
        assert_eq!(back.bytes(), bytes(number as u32, len), "length {len}");
        assert_eq!(memory.bytes()[500..500 + len], bytes(number as u32, len));
    }
}

pub fn engines_refuse_what_is_not_open<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let eager = sides[0].engine.transport().limits().eager;
    let memory = Lent::new(&[4 * eager], 5);
    open(&mut sides[1], &memory, Rights::READ);
    for (number, len) in [8, 3 * eager].into_iter().enumerate() {
        let local = Lent::new(&[len], 6);
        rma(&mut sides[0], Access::Write, &local, 0, number);
        rma(&mut sides[0], Access::Read, &local, 4 * eager as u64 - 1, number);
    }
    until("all ends", || {
        sides.iter_mut().for_each(Side::progress);
        sides[0].ends.len() == 4
    });
    let mut found = ends(&sides[0]);
    found.sort_by_key(|(ended, context, ..)| (*context, *ended == CompletedOp::Rma(Access::Read)));
    let (write, read) = (CompletedOp::Rma(Access::Write), CompletedOp::Rma(Access::Read));
    let (rights, range) = (Some(Error::NoRights), Some(Error::OutOfRange));
    let rows = [
        (write, 0, 0, rights),
        (read, 0, 0, range),
        (write, 1, 0, rights),
        (read, 1, 0, range),
    ];
    assert_eq!(found, rows);
    assert_eq!(memory.bytes(), vec![5; 4 * eager]);
    assert_eq!(ends(&sides[1]), []);
}

/// A counter is written, added to, read and written again, and a message says which round that was.
pub fn engines_keep_short_operations_and_messages_in_order<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let memory = Lent::new(&[8], 0);
    open(&mut sides[1], &memory, Rights::BOTH);
    let native = sides[0].engine.transport().one_sided().copies;
    let one = Lent::new(&[8], 0);
    one.set(&1u64.to_le_bytes());
    const ROUNDS: u64 = 200;
    for round in 0..ROUNDS {
        let [set, was, after] = [0; 3].map(|_| Lent::new(&[8], 0));
        set.set(&(round * 1000).to_le_bytes());
        rma(&mut sides[0], Access::Write, &set, 0, 0);
        add(&mut sides[0], &one, &was, 1);
        rma(&mut sides[0], Access::Read, &after, 0, 2);
        let message = Lent::new(&[8], 0);
        sides[1].recv(round, &message);
        sides[0].send(round, &after, CompletionLevel::Transmit).unwrap();
        until("the message", || {
            sides.iter_mut().for_each(Side::progress);
            let came = |end: &Completion| end.op == CompletedOp::Recv;
            let ended = sides[0].ends.len() >= 4;
            ended && sides[1].ends.iter().any(came)
        });
        let word = |lent: &Lent| u64::from_le_bytes(lent.bytes().try_into().unwrap());
        assert_eq!(
            [&was, &after, &memory].map(word),
            [0, 1, 1].map(|add| round * 1000 + add)
        );
        // The target reports the operations on its memory before the message.
        let told: Vec<CompletedOp> = sides[1].ends.iter().map(|end| end.op).collect();
        assert_eq!(
            (told.len(), told.last()),
            (if native { 1 } else { 4 }, Some(&CompletedOp::Recv))
        );
        assert!(sides[0].ends.iter().all(|end| end.failure.is_none()));
        sides.iter_mut().for_each(|side| side.ends.clear());
    }
}
