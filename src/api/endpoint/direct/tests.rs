//! Two endpoints on a stand-in card: it matches the receives of a connection in the order they were posted in.

use super::*;
use crate::api::av::StringAddr;
use crate::api::cq::{Cq, CqAttr};
use crate::api::domain::Fabric;
use crate::api::endpoint::connection::{Connection, ConnectionEvent, accept, connect, peer_address, shutdown};
use crate::api::eq::{Eq, EqAttr};
use crate::api::info::model::{DomainAttr, EpAttr};
use crate::api::messaging::Flags;
use crate::engine::op::{Access, Error, Failure, MessageKind, RemoteIov, RemotePart};
use crate::util::user::Lent;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// The receives of each end, the memory it opened, and what has completed there.
#[derive(Default)]
struct Wire {
    receives: [VecDeque<op::Recv>; 2],
    completed: [Vec<Completion>; 2],
    events: [VecDeque<ConnectionEvent>; 2],
    over: bool,
    /// The memory that peers may reach.
    opened: Option<UserIov>,
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

    fn send(&mut self, send: &op::Send) -> Result<(), Refused> {
        let mut wire = self.wire();
        let Some(recv) = wire.receives[1 - self.me].pop_front() else {
            return Err(Refused::Again); // the receiver is not ready
        };
        let mut bytes = vec![0; send.body.len()];
        send.body.read(0, &mut bytes);
        recv.body.write(0, &bytes);
        wire.completed[1 - self.me].push(completion(CompletedOp::Recv, recv.context, bytes.len()));
        wire.completed[self.me].push(completion(CompletedOp::Send, send.context, bytes.len()));
        Ok(())
    }

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        self.wire().receives[self.me].push_back(*recv);
        Ok(())
    }

    fn rma(&mut self, rma: &op::Rma) -> Result<(), Refused> {
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

    fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        let completed = core::mem::take(&mut self.wire().completed[self.me]);
        completed.into_iter().for_each(report);
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

fn receive(end: &End, into: &Lent, context: Context) -> Result<(), NotBegun> {
    let call = RecvCall {
        kind: MessageKind::Untagged,
        source: FI_ADDR_UNSPEC,
        tag: 0,
        ignore: 0,
        flags: Flags::Endpoint,
        context,
    };
    end.recv(&call, &into.iov())
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
        if cq.read(1, |entry| last = Some((entry.context, entry.len, 0))) == Err(Errno(FI_EAVAIL as i32)) {
            let _ = cq.read_error(|error| last = Some((error.context, error.len, error.err)));
        }
        found.extend(last);
    }
    found.sort_unstable();
    found
}

#[test]
fn a_card_matches_and_completes_and_the_objects_do_the_rest() {
    let info = Info {
        caps: FI_MSG | FI_RMA,
        ep: Some(EpAttr {
            ep_type: FI_EP_MSG,
            max_msg_size: 1 << 20,
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
    let cq = Cq::open(&CqAttr {
        size: 100,
        flags: 0,
        format: FI_CQ_FORMAT_TAGGED,
        wait_obj: FI_WAIT_NONE,
        wait_cond: FI_CQ_COND_NONE,
        wait_set: None,
        managed: true,
        locked: true,
    });
    let cq = cq.ok().unwrap();
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
    let [a, b] = &ends;
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
    assert_eq!(completions(&cq), [(2, 8, 0), (3, 8, 0)]);
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
    assert_eq!(completions(&cq), [(4, 4, 0)]);
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
    assert_eq!(completions(&cq), [(6, 0, FI_ECANCELED)]);
    assert_eq!(a.send(&call(1), &iov(sent)), Err(Errno(FI_ENOTCONN).into()));
    assert_eq!(receive(b, &into, 7), Err(Errno(FI_ENOTCONN).into()));
    assert!(domain.close().is_err());
    ends.iter().for_each(|end| end.close().unwrap());
    drop(ends);
    assert_eq!((domain.close(), cq.close(), eq.close()), (Ok(()), Ok(()), Ok(())));
}
