//! Two endpoints on a stand-in card: it matches the receives of a connection in the order they were posted in.

mod shared;

use super::*;
use crate::api::av::StringAddr;
use crate::api::cntr::{Cntr, CntrAttr};
use crate::api::cq::{self, Cq};
use crate::api::deferred::work::Change;
use crate::api::deferred::{Terms, queue_count};
use crate::api::domain::Fabric;
use crate::api::endpoint::connection::{Connection, ConnectionEvent, accept, connect, peer_address, shutdown};
use crate::api::eq::{Eq, EqAttr};
use crate::api::info::model::{DomainAttr, EpAttr};
use crate::api::messaging::Flags;
use crate::engine::op::{Access, CompletedOp, Context, Error, Failure, MessageKind, RemoteIov, RemotePart};
use crate::util::user::Lent;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// The receives of each end, the memory it opened, and what has completed there.
#[derive(Default)]
struct Wire {
    receives: [VecDeque<op::Recv>; 2],
    completed: [Vec<Completion>; 2],
    events: [VecDeque<ConnectionEvent>; 2],
    /// What came with each send and each operation on memory.
    hints: Vec<PostHint>,
    /// Receives of a shared context, and which ends take them.
    shared: [Option<Arc<Pool>>; 2],
    over: bool,
    /// The memory that peers may reach.
    opened: Option<UserIov>,
}

/// Receives that both ends may take.
#[derive(Default)]
struct Pool(Mutex<VecDeque<op::Recv>>);

impl DirectReceives for Pool {
    fn recv(&self, recv: &op::Recv) -> Result<(), Refused> {
        self.0.lock().unwrap().push_back(*recv);
        Ok(())
    }

    fn posted(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

struct Card {
    wire: Arc<Mutex<Wire>>,
    me: usize,
}

fn completion(op: CompletedOp, context: Context, len: usize) -> Completion {
    Completion {
        op,
        kind: MessageKind::Untagged,
        context,
        tell: op::Tell::Queue,
        len,
        buf: 0,
        tag: 0,
        data: None,
        source: None,
        released: false,
        peeked: false,
        failure: None,
    }
}

impl Card {
    fn pair() -> [Card; 2] {
        let wire = Arc::default();
        [0, 1].map(|me| Card {
            wire: Arc::clone(&wire),
            me,
        })
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap()
    }

    fn end(&self) {
        let mut wire = self.wire();
        if core::mem::replace(&mut wire.over, true) {
            return;
        }
        wire.events[1 - self.me].push_back(ConnectionEvent::Closed);
        for side in 0..2 {
            let failure = Some(Failure {
                error: Error::PeerGone,
                overflow: 0,
            });
            for recv in core::mem::take(&mut wire.receives[side]) {
                let failed = completion(CompletedOp::Recv, recv.context, 0);
                wire.completed[side].push(Completion { failure, ..failed });
            }
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.end();
    }
}

impl DirectTransport for Card {
    fn local_address(&self) -> Vec<u8> {
        vec![b'a' + self.me as u8, 0]
    }

    fn send(&mut self, send: &op::Send, hint: PostHint) -> Result<(), Refused> {
        let mut wire = self.wire();
        wire.hints.push(hint);
        let pool = wire.shared[1 - self.me].clone();
        let shared = pool.and_then(|pool| pool.0.lock().unwrap().pop_front());
        let Some(recv) = shared.or_else(|| wire.receives[1 - self.me].pop_front()) else {
            return Err(Refused::Again); // the receiver is not ready
        };
        let mut bytes = vec![0; send.body.len()];
        send.body.read(0, &mut bytes);
        recv.body.write(0, &bytes);
        let received = completion(CompletedOp::Recv, recv.context, bytes.len());
        wire.completed[1 - self.me].push(Completion {
            tell: recv.tell,
            ..received
        });
        wire.completed[self.me].push(completion(CompletedOp::Send, send.context, bytes.len()));
        Ok(())
    }

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        self.wire().receives[self.me].push_back(*recv);
        Ok(())
    }

    fn rma(&mut self, rma: &op::Rma, hint: PostHint) -> Result<(), Refused> {
        self.wire().hints.push(hint);
        let part = rma.remote.parts().first().copied().unwrap_or_default();
        let remote = self.wire().opened.expect("memory that was opened");
        let mut bytes = vec![0; part.len];
        let (from, to) = match rma.access {
            Access::Read => (&remote, &rma.local),
            Access::Write => (&rma.local, &remote),
        };
        from.read(0, &mut bytes);
        to.write(0, &bytes);
        let done = completion(CompletedOp::Rma(rma.access), rma.context, bytes.len());
        self.wire().completed[self.me].push(done);
        Ok(())
    }

    fn share(&mut self, receives: &CardReceives) -> Result<()> {
        let pool = receives.any.clone().downcast().map_err(|_| Errno(FI_EINVAL))?;
        self.wire().shared[self.me] = Some(pool);
        Ok(())
    }

    fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        let completed = core::mem::take(&mut self.wire().completed[self.me]);
        completed.into_iter().for_each(report);
    }

    fn unfinished(&self) -> (usize, usize) {
        let wire = self.wire();
        let received = |end: &&Completion| end.op == CompletedOp::Recv;
        let (all, received) = (
            &wire.completed[self.me],
            wire.completed[self.me].iter().filter(received).count(),
        );
        (all.len() - received, received + wire.receives[self.me].len())
    }

    fn connection(&mut self) -> Option<&mut dyn Connects> {
        Some(self)
    }
}

impl Connects for Card {
    fn connect(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn accept(&mut self, data: &[u8]) -> Result<()> {
        let mut wire = self.wire();
        for side in 0..2 {
            let data = if side == self.me { Vec::new() } else { data.to_vec() };
            wire.events[side].push_back(ConnectionEvent::Connected { data });
        }
        Ok(())
    }

    fn shutdown(&mut self) {
        self.end();
    }

    fn event(&mut self) -> Option<ConnectionEvent> {
        self.wire().events[self.me].pop_front()
    }

    fn peer_address(&self) -> Option<Vec<u8>> {
        (!self.wire().over).then(|| vec![b'b' - self.me as u8, 0])
    }
}

type End = Arc<DirectEndpoint<Card>>;

fn call(context: Context) -> SendCall {
    SendCall {
        kind: MessageKind::Untagged,
        dest: 99,
        tag: 0,
        data: None,
        flags: Flags::Endpoint,
        context,
    }
}

fn recv_call(context: Context) -> RecvCall {
    RecvCall {
        kind: MessageKind::Untagged,
        source: FI_ADDR_UNSPEC,
        tag: 0,
        ignore: 0,
        flags: Flags::Endpoint,
        context,
    }
}

fn receive(end: &End, into: &Lent, context: Context) -> Result<(), NotBegun> {
    end.recv(&recv_call(context), &into.iov())
}

fn iov(bytes: &[u8]) -> UserIov {
    let lent = Lent::new(&[bytes.len()], 0);
    lent.set(bytes);
    lent.iov()
}

/// What the queue has: context, length, errno.
fn completions(cq: &Arc<Cq>) -> Vec<(usize, usize, i32)> {
    let mut found = Vec::new();
    for _ in 0..20 {
        let mut last = None;
        if cq.read_each(1, |entry| last = Some((entry.context, entry.len, 0))) == Err(Errno(FI_EAVAIL as i32)) {
            let _ = cq.read_error(|error| last = Some((error.context, error.len, error.err)));
        }
        found.extend(last);
    }
    found.sort_unstable();
    found
}

/// What the objects of a test are: two ends, that complete into one queue, and report to one event queue.
struct Bed {
    domain: Arc<Domain>,
    cq: Arc<Cq>,
    eq: Arc<Eq>,
    wire: Arc<Mutex<Wire>>,
    ends: [End; 2],
}

fn bed() -> Bed {
    bed_with(1)
}

/// `receive_contexts`: 1, or FI_SHARED_CONTEXT.
fn bed_with(receive_contexts: usize) -> Bed {
    let info = Info {
        caps: FI_MSG | FI_RMA | FI_TRIGGER,
        ep: Some(EpAttr {
            ep_type: FI_EP_MSG,
            max_msg_size: 1 << 20,
            rx_ctx_cnt: receive_contexts,
            ..EpAttr::default()
        }),
        domain: Some(DomainAttr {
            threading: FI_THREAD_SAFE,
            ..DomainAttr::default()
        }),
        ..Info::default()
    };
    let fabric = Fabric::new("any", 0);
    let domain = Domain::open(&fabric, &info).ok().unwrap();
    let cq = queue();
    let eq = Eq::open(&EqAttr {
        size: 0,
        flags: 0,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
    });
    let eq = eq.ok().unwrap();
    let mut number = 0;
    let cards = Card::pair();
    let wire = cards[0].wire.clone();
    let ends = cards.map(|card| {
        let end = DirectEndpoint::new(&domain, &info, card);
        number += 1;
        let mut connection = Connection::new(number == 2, 16, Arc::new(StringAddr::of("fi_card")));
        connection.named(number, 0);
        end.with_state(|state| state.be_connected(connection));
        end.bind_cq(&cq, FI_TRANSMIT | FI_RECV).unwrap();
        end.bind_eq(&eq);
        end
    });
    Bed {
        domain,
        cq,
        eq,
        wire,
        ends,
    }
}

fn queue() -> Arc<Cq> {
    cq::tests::open(FI_WAIT_NONE)
}

fn counter() -> Arc<Cntr> {
    let attr = CntrAttr {
        events: FI_CNTR_EVENTS_COMP,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
        flags: 0,
        locked: true,
    };
    Cntr::open(&attr).ok().unwrap()
}

impl Bed {
    fn close(self) {
        assert!(self.domain.close().is_err());
        self.ends.iter().for_each(|end| end.close().unwrap());
        drop(self.ends);
        assert_eq!(
            (self.domain.close(), self.cq.close(), self.eq.close()),
            (Ok(()), Ok(()), Ok(()))
        );
    }
}

#[test]
fn a_card_matches_and_completes_and_the_objects_do_the_rest() {
    let bed = bed();
    let Bed { cq, eq, wire, ends, .. } = &bed;
    let [a, b] = ends;
    assert_eq!(connect(a, b"b\0", b"?"), Ok(()));
    assert_eq!(a.send(&call(1), &iov(b"soon")), Err(Errno(FI_ENOTCONN).into()));
    assert_eq!(accept(b, b"yes"), Ok(()));
    let mut heard = Vec::new();
    while let Ok(len) = eq.read(0, Some(256), |event, bytes| heard.push((event, bytes[0], bytes.len()))) {
        assert!(len > 0);
    }
    heard.sort_unstable();
    assert_eq!(heard, [(FI_CONNECTED, 1, 16 + 3), (FI_CONNECTED, 2, 16)]);
    assert_eq!(peer_address(a), Ok(b"b\0".to_vec()));

    let (into, sent) = (Lent::new(&[8], 0), b"12345678");
    assert_eq!(a.send(&call(1), &iov(sent)), Err(Errno(FI_EAGAIN).into()));
    assert_eq!(receive(b, &into, 2), Ok(()));
    assert_eq!(b.unfinished(), (0, 1));
    assert_eq!(a.send(&call(3), &iov(sent)), Ok(()));
    assert_eq!(completions(cq), [(2, 8, 0), (3, 8, 0)]);
    assert_eq!(into.bytes(), sent);
    assert_eq!((a.unfinished(), b.unfinished()), ((0, 0), (0, 0)));

    let target = Lent::new(&[4], 0);
    wire.lock().unwrap().opened = Some(target.iov());
    let part = RemotePart {
        addr: 0,
        len: 4,
        key: 1,
    };
    let write = RmaCall {
        access: Access::Write,
        dest: 5,
        local: iov(b"abcd"),
        remote: RemoteIov::one(part),
        data: None,
        flags: Flags::Endpoint,
        context: 4,
    };
    assert_eq!(a.rma(&write), Ok(()));
    assert_eq!(a.unfinished(), (1, 0));
    assert_eq!(completions(cq), [(4, 4, 0)]);
    assert_eq!(a.unfinished(), (0, 0));
    assert_eq!(target.bytes(), b"abcd");

    let peek = RecvCall {
        kind: MessageKind::Tagged,
        source: FI_ADDR_UNSPEC,
        tag: 0,
        ignore: 0,
        flags: Flags::Call(FI_PEEK),
        context: 5,
    };
    assert_eq!(b.recv(&peek, &UserIov::default()), Err(Errno(FI_EOPNOTSUPP).into()));

    assert_eq!(receive(b, &into, 6), Ok(()));
    assert_eq!(shutdown(a), Ok(()));
    assert_eq!(completions(cq), [(6, 0, FI_ECANCELED)]);
    assert_eq!(a.send(&call(1), &iov(sent)), Err(Errno(FI_ENOTCONN).into()));
    assert_eq!(receive(b, &into, 7), Err(Errno(FI_ENOTCONN).into()));
    bed.close();
}

/// Whatever makes the endpoint find completions: a counter that they move starts what was deferred until then.
#[test]
fn deferred_work_starts_when_an_operation_completes() {
    let bed = bed();
    let [a, b] = &bed.ends;
    let [sent, received, done] = [(); 3].map(|()| counter());
    a.bind_cntr(&sent, FI_SEND).unwrap();
    b.bind_cntr(&received, FI_RECV).unwrap();
    let defer = |trigger: &Arc<Cntr>, by| {
        let terms = Terms {
            trigger,
            threshold: 1,
            completion: None,
            name: by as usize,
        };
        queue_count(&bed.domain, &done, Change::Add(by), &terms).unwrap();
    };
    defer(&sent, 1);
    defer(&received, 10);
    connect(a, b"b\0", b"?").unwrap();
    accept(b, b"yes").unwrap();
    Progress::progress(&**a);
    let into = Lent::new(&[8], 0);
    receive(b, &into, 2).unwrap();
    a.send(&call(1), &iov(b"12345678")).unwrap();
    assert_eq!(done.value(), 0);
    Progress::progress(&**a);
    assert_eq!((sent.value(), done.value()), (1, 1));
    // The other end's completions are found by a call for its connection.
    assert_eq!((received.value(), done.value()), (0, 1));
    shutdown(b).unwrap();
    assert_eq!((received.value(), done.value()), (1, 11));
    bed.close();
}

/// The answer is the card's, and not that deferred work has no such operation.
#[test]
fn a_card_takes_nothing_back() {
    let bed = bed();
    let [a, b] = &bed.ends;
    connect(a, b"b\0", b"?").unwrap();
    accept(b, b"yes").unwrap();
    let into = Lent::new(&[8], 0);
    receive(b, &into, 7).unwrap();
    let answer = crate::api::deferred::cancel(b, 7);
    assert_eq!(answer, Err(Errno(FI_EOPNOTSUPP)));
    bed.close();
}

/// A card need not tell of what goes to no queue and no counter.
#[test]
fn a_card_hears_whether_anybody_waits() {
    let bed = bed();
    let [a, b] = &bed.ends;
    let sent = counter();
    b.bind_cntr(&sent, FI_SEND).unwrap();
    connect(a, b"b\0", b"?").unwrap();
    accept(b, b"yes").unwrap();
    Progress::progress(&**a);
    let into = Lent::new(&[8], 0);
    let hint = |from: &End, to: &End, flags| {
        receive(to, &into, 1).unwrap();
        let call = SendCall { flags, ..call(2) };
        from.send(&call, &iov(b"12345678")).unwrap();
        bed.wire.lock().unwrap().hints.pop()
    };
    let said = |more, silent| Some(PostHint { more, silent });
    assert_eq!(hint(a, b, Flags::Endpoint), said(false, false));
    assert_eq!(hint(a, b, Flags::Call(FI_MORE)), said(true, false));
    assert_eq!(hint(a, b, Flags::Inject), said(false, true));
    assert_eq!(hint(b, a, Flags::Inject), said(false, false), "a counter counts it");
    assert_eq!(
        hint(a, b, Flags::Own(0)),
        said(false, false),
        "deferred work waits for it"
    );
    shutdown(a).unwrap();
    bed.close();
}
