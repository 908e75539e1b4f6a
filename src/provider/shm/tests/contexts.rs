//! Tests of endpoints with several contexts, or one that is shared, over shared memory in one process.

use super::*;
use crate::api::av::string::StringAddr;
use crate::api::av::{Av, AvAttr, Insert};
use crate::api::cq::{self, Cq, Entry};
use crate::api::domain::{Domain, Fabric};
use crate::api::endpoint::scalable::{Context, Direction, Scalable};
use crate::api::endpoint::shared_rx::{SharedRx, SharedRxEndpoint};
use crate::api::endpoint::stx::Stx;
use crate::api::endpoint::{Endpoint, EndpointOps};
use crate::api::messaging::{Flags, Messaging, RecvCall, SendCall};
use crate::engine::op::{MessageKind, OperationOf};
use crate::util::user::Lent;
use std::sync::Arc;

const BITS: u32 = 4;

pub(super) struct Bed {
    pub(super) domain: Arc<Domain>,
    pub(super) av: Arc<Av>,
    info: Info,
}

impl Bed {
    pub(super) fn new() -> Bed {
        let hints = Info {
            caps: FI_MSG
                | FI_TAGGED
                | FI_RMA
                | FI_ATOMIC
                | FI_SOURCE
                | FI_DIRECTED_RECV
                | FI_NAMED_RX_CTX
                | FI_MULTI_RECV,
            ..Info::default()
        };
        let query = Query {
            version: LIBRARY_VERSION,
            node: None,
            service: None,
            flags: 0,
            hints: Some(&hints),
            found: None,
            raw: None,
        };
        let mut info = Shm.getinfo(&query).unwrap().remove(0).info;
        // Without hints these are all there are.
        info.tx.as_mut().unwrap().op_flags = 0;
        info.rx.as_mut().unwrap().op_flags = 0;
        let domain = Domain::open(&Fabric::new("any", 0), &info).ok().unwrap();
        let attr = AvAttr {
            rx_ctx_bits: BITS as i32,
            ..AvAttr::default()
        };
        let av = Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &domain.av)
            .ok()
            .unwrap();
        Bed { domain, av, info }
    }

    pub(super) fn with(&self, tx: usize, rx: usize) -> Info {
        let mut info = self.info.clone();
        let ep = info.ep.as_mut().unwrap();
        (ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (tx, rx);
        info
    }

    pub(super) fn insert(&self, name: Vec<u8>) -> u64 {
        let mut fi_addr = [0];
        let request = Insert {
            fi_addr: Some(&mut fi_addr),
            ..Insert::default()
        };
        assert_eq!(self.av.insert(&name, 1, request), Ok(1));
        fi_addr[0]
    }

    /// Binds and enables; the queue hears of both directions.
    fn ready(&self, endpoint: &impl EndpointOps, flags: u64) -> Arc<Cq> {
        let cq = cq::tests::open(FI_WAIT_NONE);
        endpoint.bind_av(&self.av).unwrap();
        endpoint.bind_cq(&cq, flags).unwrap();
        endpoint.enable().unwrap();
        cq
    }

    pub(super) fn plain(&self) -> (Arc<Endpoint<ShmTransport>>, Arc<Cq>, u64) {
        let endpoint = Endpoint::new(
            &self.domain,
            &self.info,
            Shm::open(&Arc::default(), &self.info).unwrap(),
        );
        let cq = self.ready(&endpoint, FI_TRANSMIT | FI_RECV);
        let name = self.insert(endpoint.local_address());
        (endpoint, cq, name)
    }

    pub(super) fn scalable(&self, tx: usize, rx: usize) -> (Arc<Scalable<ShmTransport>>, u64) {
        let info = self.with(tx, rx);
        let first = Shm::open(&Arc::default(), &info).unwrap();
        let whole = Scalable::open(
            &self.domain,
            &info,
            first,
            Box::new(|address| Shm::open_context(&Arc::default(), address)),
        )
        .ok()
        .unwrap();
        let name = self.insert(whole.local_address());
        (whole, name)
    }

    pub(super) fn context(
        &self,
        whole: &Arc<Scalable<ShmTransport>>,
        direction: Direction,
        at: usize,
    ) -> (Ctx, Arc<Cq>) {
        let context = whole.context(direction, at).ok().unwrap();
        let flags = match direction {
            Direction::Transmit => FI_TRANSMIT,
            Direction::Receive => FI_RECV,
        };
        let cq = self.ready(&context, flags);
        (context, cq)
    }

    pub(super) fn pool(&self) -> Arc<SharedRx<ShmTransport>> {
        let rx = RxAttr {
            caps: self.info.caps,
            ..self.info.rx.clone().unwrap()
        };
        SharedRx::open(&self.domain, &rx, Shm::limits(), Shm::limits())
    }

    pub(super) fn member(
        &self,
        pool: &Arc<SharedRx<ShmTransport>>,
    ) -> (Arc<SharedRxEndpoint<ShmTransport>>, Arc<Cq>, u64) {
        let info = self.with(1, FI_SHARED_CONTEXT);
        let member = SharedRxEndpoint::new(&self.domain, &info, Shm::open(&Arc::default(), &info).unwrap());
        let name = self.insert(member.local_address());
        member.bind_srx(pool).unwrap();
        let cq = self.ready(&member, FI_TRANSMIT | FI_RECV);
        (member, cq, name)
    }
}

pub(super) type Ctx = Context<ShmTransport>;

pub(super) fn send(from: &impl Messaging, dest: u64, tag: u64, text: &[u8]) {
    let memory = Lent::new(&[text.len()], 0);
    memory.set(text);
    let call = SendCall {
        kind: MessageKind::Tagged,
        dest,
        tag,
        data: None,
        flags: Flags::Endpoint,
        context: 7,
    };
    assert_eq!(from.send(&call, &memory.iov()), Ok(()));
}

pub(super) fn recv(to: &impl Messaging, source: u64, tag: u64, context: usize, flags: Flags, room: usize) -> Lent {
    let memory = Lent::new(&[room], 0);
    let call = RecvCall {
        kind: MessageKind::Tagged,
        source,
        tag,
        ignore: 0,
        flags,
        context,
    };
    assert_eq!(to.recv(&call, &memory.iov()), Ok(()));
    memory
}

/// Entries of a queue until there are so many, driving others too.
pub(super) fn entries(cq: &Arc<Cq>, count: usize, others: &[&Arc<Cq>]) -> Vec<Entry> {
    let mut found = Vec::new();
    for _ in 0..1_000_000 {
        if found.len() >= count {
            return found;
        }
        let _ = cq.read_each(1, |entry| found.push(*entry));
        others.iter().for_each(|other| {
            let _ = other.read_each(0, |_| {});
        });
    }
    let error = cq.read_error(|error| format!("{error:?}"));
    panic!("{error:?} {found:?}: {} of {count} entries came", found.len());
}

fn silent(cq: &Arc<Cq>) {
    for _ in 0..1000 {
        assert_eq!(cq.read_each(1, |_| {}), Err(Errno(FI_EAGAIN)));
    }
}

fn at(name: u64, context: u64) -> u64 {
    context << (64 - BITS) | name
}

/// tx_attr.size and rx_attr.size, larger than by default: nothing within them is refused, whoever else does nothing.
#[test]
fn an_endpoint_takes_as_much_as_its_sizes_say() {
    const SIZE: usize = 1500;
    let mut bed = Bed::new();
    bed.info.tx.as_mut().unwrap().size = SIZE;
    bed.info.rx.as_mut().unwrap().size = SIZE;
    let (a, a_cq, _) = bed.plain();
    let (b, b_cq, b_name) = bed.plain();
    // Each waits for its receive, so stays under way.
    let text = vec![5; 100_000];
    let memory = Lent::new(&[text.len()], 0);
    memory.set(&text);
    let call = |tag| SendCall {
        kind: MessageKind::Tagged,
        dest: b_name,
        tag,
        data: None,
        flags: Flags::Endpoint,
        context: 7,
    };
    for tag in 0..SIZE {
        assert_eq!(a.send(&call(tag as u64), &memory.iov()), Ok(()), "send {tag}");
    }
    assert_eq!((a.tx_size_left(), a.rx_size_left()), (Ok(0), Ok(SIZE)));
    let into: Vec<Lent> = (0..SIZE)
        .map(|tag| recv(&b, FI_ADDR_UNSPEC, tag as u64, tag, Flags::Endpoint, 8))
        .collect();
    assert_eq!(into.len(), SIZE);
    for _ in 0..SIZE {
        // Too little room: an error each, but every one of them.
        let mut error = Err(Errno(FI_EAGAIN));
        while error.is_err() {
            let _ = (a_cq.read_each(0, |_| {}), b_cq.read_each(0, |_| {}));
            error = b_cq.read_error(|error| error.err);
        }
        assert_eq!(error, Ok(FI_ETRUNC as i32));
    }
    entries(&a_cq, SIZE, &[&b_cq]);
}

#[test]
fn messages_reach_the_context_that_they_name() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(2, 3);
    let receivers: Vec<(Ctx, Arc<Cq>)> = (0..3).map(|n| bed.context(&whole, Direction::Receive, n)).collect();
    let (other, other_cq, _) = bed.plain();
    let memory: Vec<Lent> = receivers
        .iter()
        .map(|(context, _)| recv(context, FI_ADDR_UNSPEC, 1, 1, Flags::Endpoint, 8))
        .collect();
    for (n, text) in [(2, b"two"), (0, b"not"), (1, b"one")] {
        send(&other, at(name, n), 1, text);
    }
    for ((_, cq), memory) in receivers
        .iter()
        .zip(&memory)
        .zip([b"not", b"one", b"two"])
        .map(|(pair, text)| {
            let ((context, cq), memory) = pair;
            ((context, cq), (memory, text))
        })
    {
        let [end] = entries(cq, 1, &[&other_cq])[..] else {
            panic!()
        };
        assert_eq!((end.len, &memory.0.bytes()[..3]), (3, &memory.1[..]));
        silent(cq);
    }
}

#[test]
fn all_transmit_contexts_are_one_source() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(3, 2);
    let senders: Vec<(Ctx, Arc<Cq>)> = (0..3).map(|n| bed.context(&whole, Direction::Transmit, n)).collect();
    let (other, cq, _) = bed.plain();
    let (third, _third_cq, other_name) = bed.plain();
    let to = bed.insert(other.local_address());
    // One receive asks for the stranger first; the rest ask for the scalable endpoint, by any of its names.
    recv(&other, other_name, 5, 100, Flags::Endpoint, 8);
    let asked: Vec<Lent> = (0..3)
        .map(|n| recv(&other, at(name, n % 2), 5, n as usize, Flags::Endpoint, 8))
        .collect();
    for (n, (context, sender_cq)) in senders.iter().enumerate() {
        send(context, to, 5, &[n as u8]);
        let [end] = entries(&cq, 1, &[sender_cq])[..] else {
            panic!()
        };
        assert_eq!((end.context, end.src), (n, name));
        assert_eq!(asked[n].bytes()[0], n as u8);
    }
    send(&third, to, 5, b"x");
    let [end] = entries(&cq, 1, &[])[..] else { panic!() };
    assert_eq!((end.context, end.src), (100, other_name));
}

#[test]
fn a_scalable_endpoint_is_busy_while_a_context_is_open() {
    let bed = Bed::new();
    let (whole, _) = bed.scalable(1, 2);
    let busy = Err(Errno(FI_EBUSY));
    assert_eq!(whole.context(Direction::Transmit, 1).err(), Some(Errno(FI_EINVAL)));
    let (context, _) = bed.context(&whole, Direction::Receive, 1);
    assert_eq!(whole.context(Direction::Receive, 1).err().map(Err), Some(busy));
    assert_eq!(whole.close(), busy);
    context.close().unwrap();
    assert_eq!(whole.close(), Ok(()));
    drop((context, whole));
    let users = bed.domain.users.count();
    assert_eq!(users, 0);
    let info = bed.with(17, 1);
    let first = Shm::open(&Arc::default(), &info).unwrap();
    assert!(
        Scalable::open(
            &bed.domain,
            &info,
            first,
            Box::new(|address| Shm::open_context(&Arc::default(), address))
        )
        .is_err()
    );
}

#[test]
fn a_context_does_one_thing() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(1, 1);
    let (tx, _) = bed.context(&whole, Direction::Transmit, 0);
    let (rx, _) = bed.context(&whole, Direction::Receive, 0);
    let memory = Lent::new(&[1], 0);
    let send = SendCall {
        kind: MessageKind::Untagged,
        dest: name,
        tag: 0,
        data: None,
        flags: Flags::Endpoint,
        context: 0,
    };
    let recv = RecvCall {
        kind: MessageKind::Untagged,
        source: FI_ADDR_UNSPEC,
        tag: 0,
        ignore: 0,
        flags: Flags::Endpoint,
        context: 0,
    };
    assert_eq!(rx.send(&send, &memory.iov()), Err(Errno(FI_EOPNOTSUPP).into()));
    assert_eq!(tx.recv(&recv, &memory.iov()), Err(Errno(FI_EOPNOTSUPP).into()));
}

#[test]
fn a_shared_transmit_context_is_needed_and_busy() {
    let bed = Bed::new();
    let info = bed.with(FI_SHARED_CONTEXT, 1);
    let endpoint = Endpoint::new(&bed.domain, &info, Shm::open(&Arc::default(), &info).unwrap());
    let stx = Stx::open(&bed.domain);
    endpoint.bind_av(&bed.av).unwrap();
    endpoint
        .bind_cq(&cq::tests::open(FI_WAIT_NONE), FI_TRANSMIT | FI_RECV)
        .unwrap();
    assert_eq!(endpoint.enable(), Err(Errno(FI_EOPBADSTATE as i32)));
    endpoint.bind_stx(&stx).unwrap();
    assert_eq!(endpoint.bind_stx(&stx), Err(Errno(FI_EINVAL)));
    endpoint.enable().unwrap();
    assert_eq!(stx.close(), Err(Errno(FI_EBUSY)));
    endpoint.close().unwrap();
    // An endpoint with a context of its own holds no other one.
    let (plain, ..) = bed.plain();
    assert_eq!((plain.bind_stx(&stx), stx.close()), (Ok(()), Ok(())));
}

#[test]
fn receives_of_a_shared_context_go_to_whoever_gets_a_message() {
    let bed = Bed::new();
    let pool = bed.pool();
    let (a, a_cq, a_name) = bed.member(&pool);
    let early = recv(&pool, FI_ADDR_UNSPEC, 1, 10, Flags::Endpoint, 100_000);
    let (_b, b_cq, b_name) = bed.member(&pool);
    let late = recv(&pool, FI_ADDR_UNSPEC, 1, 11, Flags::Endpoint, 100_000);
    let (other, other_cq, name) = bed.plain();
    let long = vec![b'b'; 100_000];
    send(&other, b_name, 1, &long);
    let [end] = entries(&b_cq, 1, &[&other_cq])[..] else {
        panic!()
    };
    assert_eq!((end.context, end.len, end.src), (10, 100_000, name));
    assert!(early.bytes() == long);
    send(&other, a_name, 1, b"to a");
    let [end] = entries(&a_cq, 1, &[&other_cq])[..] else {
        panic!()
    };
    assert_eq!((end.context, end.src, &late.bytes()[..4]), (11, name, &b"to a"[..]));
    // One that came before its receive is told to the endpoint it came to.
    send(&other, b_name, 2, b"held!");
    entries(&other_cq, 3, &[&a_cq]);
    let held = recv(&pool, FI_ADDR_UNSPEC, 2, 12, Flags::Endpoint, 5);
    assert_eq!(entries(&b_cq, 1, &[&other_cq])[0].context, 12);
    assert_eq!(held.bytes(), b"held!");
    // And an endpoint sends by its own name.
    let answer = recv(&other, a_name, 3, 13, Flags::Endpoint, 1);
    send(&a, name, 3, b"!");
    let got = entries(&other_cq, 1, &[&a_cq]);
    assert_eq!(
        (got[0].context, got[0].src, answer.bytes()),
        (13, a_name, b"!".to_vec())
    );
    silent(&b_cq);
}

#[test]
fn a_directed_receive_of_a_shared_context_takes_its_source_by_any_endpoint() {
    let bed = Bed::new();
    let pool = bed.pool();
    let (_a, a_cq, a_name) = bed.member(&pool);
    let (_b, b_cq, b_name) = bed.member(&pool);
    let (one, _one_cq, one_name) = bed.plain();
    let (two, _two_cq, two_name) = bed.plain();
    for (source, context) in [(two_name, 2), (one_name, 1), (two_name, 4), (one_name, 3)] {
        recv(&pool, source, 9, context, Flags::Endpoint, 4);
    }
    send(&one, a_name, 9, b"1");
    send(&two, b_name, 9, b"2");
    assert_eq!(entries(&a_cq, 1, &[])[0].context, 1);
    assert_eq!(entries(&b_cq, 1, &[])[0].context, 2);
    send(&one, b_name, 9, b"3");
    send(&two, a_name, 9, b"4");
    assert_eq!(entries(&b_cq, 1, &[])[0].context, 3);
    assert_eq!(entries(&a_cq, 1, &[])[0].context, 4);
}

#[test]
fn a_shared_multi_receive_serves_all_and_can_be_cancelled() {
    let bed = Bed::new();
    let pool = bed.pool();
    let (_a, a_cq, a_name) = bed.member(&pool);
    let (_b, b_cq, b_name) = bed.member(&pool);
    let (other, ..) = bed.plain();
    let multi = recv(&pool, FI_ADDR_UNSPEC, 0, 5, Flags::Call(FI_MULTI_RECV), 1000);
    send(&other, a_name, 0, b"aa");
    assert_eq!(entries(&a_cq, 1, &[])[0].buf, multi.iov().address(0));
    send(&other, b_name, 0, b"b");
    assert_eq!(entries(&b_cq, 1, &[])[0].buf, multi.iov().address(2));
    assert_eq!(pool.cancel(OperationOf::Program(6)), Err(Errno(FI_ENOENT)));
    pool.cancel(OperationOf::Program(5)).unwrap();
    let error = |cq: &Arc<Cq>| cq.read_error(|error| (error.context, error.err, error.flags & FI_MULTI_RECV != 0));
    assert_eq!(error(&a_cq), Ok((5, FI_ECANCELED, true)));
    assert!(error(&b_cq).is_err());
}

/// The first that is bound to the context may count its receives only, or have nothing bound yet.
#[test]
fn what_belongs_to_no_endpoint_is_told_to_one_that_has_a_queue() {
    let bed = Bed::new();
    let pool = bed.pool();
    let info = bed.with(1, FI_SHARED_CONTEXT);
    let early = SharedRxEndpoint::new(&bed.domain, &info, Shm::open(&Arc::default(), &info).unwrap());
    early.bind_srx(&pool).unwrap();
    let (_b, b_cq, _) = bed.member(&pool);
    recv(&pool, FI_ADDR_UNSPEC, 0, 5, Flags::Endpoint, 8);
    pool.cancel(OperationOf::Program(5)).unwrap();
    assert_eq!(
        b_cq.read_error(|error| (error.context, error.err)),
        Ok((5, FI_ECANCELED))
    );
    early.close().unwrap();
}

#[test]
fn endpoints_leave_a_shared_context_and_others_go_on() {
    let bed = Bed::new();
    let pool = bed.pool();
    let (a, a_cq, a_name) = bed.member(&pool);
    let (b, b_cq, b_name) = bed.member(&pool);
    let (other, other_cq, other_name) = bed.plain();
    recv(&pool, other_name, 1, 1, Flags::Endpoint, 8);
    recv(&pool, other_name, 1, 2, Flags::Endpoint, 8);
    send(&other, a_name, 1, b"x");
    assert_eq!(entries(&a_cq, 1, &[])[0].context, 1);
    assert_eq!(pool.close(), Err(Errno(FI_EBUSY)));
    a.close().unwrap();
    drop(a);
    assert!(!a_cq.is_busy());
    // The receive stays: its source can still send to the other endpoint.
    send(&other, b_name, 1, b"y");
    assert_eq!(entries(&b_cq, 1, &[&other_cq])[0].context, 2);
    b.close().unwrap();
    assert_eq!(pool.close(), Ok(()));
}
