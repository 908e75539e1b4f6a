//! Endpoints that are polled only when their mark is set or their descriptor readable: nothing waits for a poll for
//! ever.

use super::one_peer::{caller, next_call, pair, passive};
use super::*;
use crate::engine::wire::Packet;
use crate::util::ready::{Ready, ReadyList};

const PEER: PeerId = 0;

/// Polls as a queue does that has found an endpoint.
struct Reader {
    end: TcpTransport,
    mark: Arc<Ready>,
    list: Arc<ReadyList>,
    sink: Kept,
    polls: usize,
}

impl Reader {
    fn of(mut end: TcpTransport) -> Reader {
        let (mark, list) = (Arc::new(Ready::default()), ReadyList::new(None));
        end.be_watched(&mark);
        mark.join(&list, 1);
        Reader {
            end,
            mark,
            list,
            sink: Kept::default(),
            polls: 0,
        }
    }

    /// Polls if there is a reason to. False: there is none.
    fn read(&mut self, budget: usize) -> bool {
        let outer = Epoll::new().unwrap();
        outer.add(self.end.wake_fd()).unwrap();
        if outer.wait(0).unwrap() == 1 {
            self.mark.set_readable();
        }
        let mut names = Vec::new();
        self.list.take(&mut names);
        if names.is_empty() {
            return false;
        }
        self.end.poll(&mut self.sink, budget);
        self.end.flush();
        self.polls += 1;
        true
    }

    fn settle(&mut self) {
        until("rest", || !self.read(10));
        self.polls = 0;
    }
}

/// Seldom enough that nothing but what is tried here is a reason to poll.
fn quiet() -> Config {
    Config {
        silence: Duration::from_secs(3600),
        ..config()
    }
}

fn readers() -> [Reader; 2] {
    let mut readers = pair(&quiet()).map(Reader::of);
    readers.iter_mut().for_each(Reader::settle);
    readers
}

fn header(id: u32) -> Header {
    Header::new(Packet::Eager, id)
}

fn notice(token: Token) -> Option<Notice> {
    Some(Notice {
        token,
        when: crate::engine::port::When::Released,
    })
}

#[test]
fn an_idle_endpoint_is_not_polled_and_what_comes_is() {
    let [mut a, mut b] = readers();
    assert!(!a.read(10) && !b.read(10));
    for id in 0..100 {
        assert_eq!(a.end.push(PEER, &header(id), Body::Bytes(b"x"), None), Push::Done);
        until("a packet", || {
            b.read(10);
            b.sink.packets.len() as u32 > id
        });
        b.settle();
    }
    assert_eq!(a.polls, 0);
}

/// A budget that was used up, and what the engine refused.
#[test]
fn what_a_poll_leaves_is_gone_on_with() {
    let [mut a, mut b] = readers();
    (0..40).for_each(|id| assert_ne!(a.end.push(PEER, &header(id), Body::Bytes(b"x"), None), Push::Full));
    until("all packets", || {
        b.read(1);
        b.sink.packets.len() == 40
    });
    b.settle();
    b.sink.refuse = true;
    assert_eq!(a.end.push(PEER, &header(40), Body::Bytes(b"x"), None), Push::Done);
    until("a packet", || b.read(10));
    for _ in 0..20 {
        assert!(b.read(10), "it is refused, and comes again");
    }
    b.sink.refuse = false;
    until("the packet", || {
        b.read(10);
        b.sink.packets.len() == 41
    });
}

/// What is gathered leaves, and who waits for that is told, though nothing comes.
#[test]
fn what_a_push_leaves_is_gone_on_with() {
    let [mut a, mut b] = readers();
    for round in 0..50 {
        assert_eq!(a.end.push(PEER, &header(0), Body::Bytes(b"1"), notice(1)), Push::Done);
        assert_eq!(a.end.push(PEER, &header(1), Body::Bytes(b"2"), notice(2)), Push::Later);
        until("a notice", || {
            a.read(10);
            a.sink.sent.len() > round
        });
        until("both packets", || {
            b.read(10);
            b.sink.packets.len() == 2 * (round + 1)
        });
        a.settle();
        b.settle();
    }
}

/// A socket that is full, and has room again.
#[test]
fn room_is_a_reason_to_poll() {
    let [mut a, mut b] = readers();
    let body = vec![7; 200_000];
    let (mut pushed, mut full) = (0, 0);
    until("a full socket", || {
        match a.end.push(PEER, &header(pushed), Body::Bytes(&body), None) {
            Push::Full => full += 1,
            _ => pushed += 1,
        }
        a.end.flush();
        a.read(10);
        full > 3
    });
    until("all packets", || {
        b.read(10);
        a.read(10);
        b.sink.packets.len() as u32 == pushed
    });
    a.settle();
    assert_ne!(a.end.push(PEER, &header(pushed), Body::Bytes(&body), None), Push::Full);
}

/// Peers are looked after now and then, though nothing comes.
#[test]
fn a_deadline_is_a_reason_to_poll() {
    let soon = Config {
        silence: Duration::ZERO,
        ..config()
    };
    let mut readers = pair(&soon).map(Reader::of);
    readers.iter_mut().for_each(Reader::settle);
    for reader in &mut readers {
        for looks in 1..=3 {
            until("a look", || {
                reader.read(10);
                reader.polls >= looks
            });
            let next = reader.end.watch_at.unwrap();
            assert_eq!(reader.end.timed_for, Some(next));
            until("the next deadline", || {
                reader.read(10);
                reader.end.watch_at.unwrap() > next
            });
        }
        assert!(reader.polls < 50, "{} polls", reader.polls);
    }
}

/// From the first call on, whoever asks.
#[test]
fn connections_come_about_and_end() {
    let mut passive = passive(&quiet());
    for by_caller in [true, false] {
        let mut a = Reader::of(caller(&quiet()));
        a.end.call(&passive.local_address(), b"").unwrap();
        a.end.poll(&mut a.sink, 10);
        a.end.flush();
        let call = next_call(&mut passive);
        let mut b = Reader::of(TcpTransport::open_for_call(&mut Some(call), &quiet()).unwrap());
        b.end.accept(b"");
        b.end.poll(&mut b.sink, 10);
        b.end.flush();
        for reader in [&mut a, &mut b] {
            let mut event = None;
            until("a connection", || {
                reader.read(10);
                event = reader.end.event();
                event.is_some()
            });
            assert_eq!(event, Some(Event::Connected { data: Vec::new() }));
        }
        let (left, other) = if by_caller { (&mut a, &mut b) } else { (&mut b, &mut a) };
        left.settle();
        other.settle();
        left.end.shut_down();
        let mut event = None;
        until("the end", || {
            other.read(10);
            event = other.end.event();
            event.is_some()
        });
        assert_eq!(event, Some(Event::Closed));
        other.settle();
    }
}

/// Who is woken for another's sake is not found for ever.
#[test]
fn a_wake_is_over_with_the_next_poll() {
    let [mut a, _b] = readers();
    a.end.wake();
    assert!(a.read(10));
    a.settle();
}
