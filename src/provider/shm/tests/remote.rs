//! Tests of memory that peers reach through endpoints of every kind, over shared memory in one process.

use super::contexts::{Bed, Ctx, entries};
use super::*;
use crate::api::cq::Cq;
use crate::api::endpoint::EndpointOps;
use crate::api::endpoint::alias::Alias;
use crate::api::endpoint::scalable::Direction;
use crate::api::messaging::Flags;
use crate::api::mr::{Mr, Request};
use crate::api::one_sided::{AtomicCall, AtomicKind, Atomics, Rma, RmaCall};
use crate::engine::op::{Access, AtomicTarget, Form, RemoteIov, RemotePart};
use crate::util::user::{Lent, UserIov};
use std::sync::Arc;

const KEY: u64 = 9;

fn expose(bed: &Bed, memory: &Lent) -> Arc<Mr> {
    let request = Request {
        memory: memory.iov(),
        access: FI_REMOTE_READ | FI_REMOTE_WRITE,
        offset: 0,
        key: KEY,
        flags: 0,
        whole: None,
    };
    Mr::register(&bed.domain, request).ok().unwrap()
}

fn part(addr: u64, len: usize) -> RemoteIov {
    RemoteIov::one(RemotePart { addr, len, key: KEY })
}

fn call(access: Access, dest: u64, local: UserIov, addr: u64) -> RmaCall {
    RmaCall {
        access,
        dest,
        local,
        remote: part(addr, local.len()),
        data: None,
        flags: Flags::Endpoint,
        context: 5,
    }
}

fn add(dest: u64, operand: &Lent, result: &Lent) -> AtomicCall {
    AtomicCall {
        kind: AtomicKind::new(Form::Fetch, FI_UINT64, FI_SUM).unwrap(),
        dest,
        target: AtomicTarget::Memory(part(0, 8)),
        len: 8,
        operand: operand.iov(),
        compare: UserIov::default(),
        result: result.iov(),
        data: None,
        flags: Flags::Endpoint,
        context: 6,
    }
}

/// Writes, adds and reads, and looks at what became of it.
fn works(from: &(impl Rma + Atomics), dest: u64, cq: &Arc<Cq>, others: &[&Arc<Cq>], memory: &Lent) {
    let (local, result) = (Lent::new(&[8], 0), Lent::new(&[8], 0));
    memory.set(&vec![0; memory.bytes().len()]);
    local.set(&7u64.to_ne_bytes());
    from.rma(&call(Access::Write, dest, local.iov(), 0)).unwrap();
    let wrote = entries(cq, 1, others)[0];
    assert_eq!((wrote.context, wrote.flags), (5, FI_RMA | FI_WRITE));
    from.atomic(&add(dest, &local, &result)).unwrap();
    let added = entries(cq, 1, others)[0];
    assert_eq!((added.context, added.flags), (6, FI_ATOMIC | FI_READ));
    assert_eq!(result.bytes(), 7u64.to_ne_bytes());
    from.rma(&call(Access::Read, dest, result.iov(), 0)).unwrap();
    assert_eq!(entries(cq, 1, others)[0].flags, FI_RMA | FI_READ);
    assert_eq!(result.bytes(), 14u64.to_ne_bytes());
    // Long ones go another way.
    let (long, back) = (Lent::new(&[100_000], 3), Lent::new(&[100_000], 0));
    from.rma(&call(Access::Write, dest, long.iov(), 64)).unwrap();
    entries(cq, 1, others);
    from.rma(&call(Access::Read, dest, back.iov(), 64)).unwrap();
    entries(cq, 1, others);
    assert!(back.bytes() == long.bytes());
}

fn memory() -> Lent {
    Lent::new(&[200_000], 0)
}

#[test]
fn contexts_of_a_scalable_endpoint_reach_and_are_reached() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(2, 2);
    let memory = memory();
    let mr = expose(&bed, &memory);
    let receivers: Vec<(Ctx, Arc<Cq>)> = (0..2).map(|at| bed.context(&whole, Direction::Receive, at)).collect();
    let senders: Vec<(Ctx, Arc<Cq>)> = (0..2).map(|at| bed.context(&whole, Direction::Transmit, at)).collect();
    let (plain, plain_cq, _) = bed.plain();
    let others: Vec<&Arc<Cq>> = receivers.iter().map(|(_, cq)| cq).collect();
    works(&plain, name, &plain_cq, &others, &memory);
    works(&plain, 1 << 60 | name, &plain_cq, &others, &memory);
    for (sender, cq) in &senders {
        works(sender, name, cq, &others, &memory);
    }
    let nothing = call(Access::Read, name, Lent::new(&[1], 0).iov(), 0);
    assert_eq!(receivers[0].0.rma(&nothing), Err(Errno(FI_EOPNOTSUPP).into()));
    assert_eq!(receivers[0].0.number(), whole.number());
    mr.close().unwrap();
}

#[test]
fn endpoints_that_share_their_receives_reach_and_are_reached() {
    let bed = Bed::new();
    let pool = bed.pool();
    let memory = memory();
    let mr = expose(&bed, &memory);
    let (a, a_cq, a_name) = bed.member(&pool);
    let (b, b_cq, b_name) = bed.member(&pool);
    let (plain, plain_cq, plain_name) = bed.plain();
    works(&plain, a_name, &plain_cq, &[&a_cq], &memory);
    works(&plain, b_name, &plain_cq, &[&a_cq], &memory);
    works(&a, plain_name, &a_cq, &[&plain_cq], &memory);
    works(&b, a_name, &b_cq, &[&a_cq], &memory);
    let nothing = call(Access::Read, plain_name, Lent::new(&[1], 0).iov(), 0);
    assert_eq!(pool.rma(&nothing), Err(Errno(FI_EOPNOTSUPP).into()));
    mr.close().unwrap();
    let nothing = call(Access::Read, b_name, Lent::new(&[1], 0).iov(), 0);
    plain.rma(&nothing).unwrap();
    for _ in 0..1_000_000 {
        let _ = b_cq.read_each(0, |_| {});
        if plain_cq.read_each(1, |_| {}) == Err(Errno(FI_EAVAIL as i32)) {
            break;
        }
    }
    let error = plain_cq.read_error(|error| (error.context, error.err));
    assert_eq!(error, Ok((5, FI_EKEYREJECTED)));
}

#[test]
fn an_alias_reaches_with_flags_of_its_own() {
    let bed = Bed::new();
    let memory = memory();
    let mr = expose(&bed, &memory);
    let (plain, cq, name) = bed.plain();
    let alias = Alias::open(&plain, FI_TRANSMIT | FI_DELIVERY_COMPLETE).ok().unwrap();
    works(&alias, name, &cq, &[], &memory);
    mr.close().unwrap();
}

/// A region may be bound to either.
#[test]
fn regions_know_an_alias_as_its_endpoint() {
    let bed = Bed::new();
    let ((plain, ..), (shares, ..)) = (bed.plain(), bed.member(&bed.pool()));
    let number = |of: &dyn EndpointOps| Alias::open(of, FI_TRANSMIT).ok().unwrap().number();
    assert_eq!(number(&plain), plain.number());
    assert_eq!(number(&shares), shares.number());
}

/// FI_INJECT among the flags that hold for calls without any: the buffer is free when the call returns.
#[test]
fn a_default_of_inject_is_kept_to() {
    let bed = Bed::new();
    let memory = memory();
    let mr = expose(&bed, &memory);
    let (plain, cq, name) = bed.plain();
    let alias = Alias::open(&plain, FI_TRANSMIT | FI_INJECT).ok().unwrap();
    let local = Lent::new(&[INJECT_SIZE], 1);
    alias.rma(&call(Access::Write, name, local.iov(), 0)).unwrap();
    local.set(&vec![2; INJECT_SIZE]);
    entries(&cq, 1, &[]);
    let result = Lent::new(&[INJECT_SIZE], 0);
    plain.rma(&call(Access::Read, name, result.iov(), 0)).unwrap();
    entries(&cq, 1, &[]);
    assert!(result.bytes().iter().all(|byte| *byte == 1));
    let long = Lent::new(&[INJECT_SIZE + 1], 1);
    assert_eq!(
        alias.rma(&call(Access::Write, name, long.iov(), 0)),
        Err(Errno(FI_EMSGSIZE).into())
    );
    mr.close().unwrap();
}
