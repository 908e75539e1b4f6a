//! How connections come about and end: both at once, with strangers, with whoever comes again, and by nonsense.

use super::*;
use crate::engine::op::Unreached;
use crate::engine::port::{Loss, NotDone, Placement};
use crate::engine::wire::Packet;
use crate::engine::{Config as EngineConfig, Engine};
use crate::sys::rdma::Sizes;
use crate::transport::verbs::seam::{Connection, QueuePair};
use crate::util::user::Lent;

/// What the engine was told, and all packets.
#[derive(Default)]
pub(super) struct Kept {
    packets: Vec<(PeerId, u32)>,
    pub(super) gone: Vec<(PeerId, Loss)>,
    refuse: bool,
}

impl Sink for Kept {
    fn place(&mut self, from: PeerId, header: &Header, _: usize) -> Placement {
        if self.refuse {
            return Placement::Refuse;
        }
        self.packets.push((from, header.id));
        Placement::Drop
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

    fn gone(&mut self, peer: PeerId, loss: Loss) {
        self.gone.push((peer, loss));
    }
}

pub(super) fn until(what: &str, mut step: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if step() {
            return;
        }
    }
    panic!("waited too long: {what}");
}

fn header(number: u32) -> Header {
    Header::new(Packet::Segment, number)
}

/// Any that begins, whatever the order, and whoever has the smaller address.
#[test]
fn two_that_connect_at_once_have_one_connection() {
    for seed in 0..200 {
        let net = Net::new(seed, Manner::default());
        let mut ends = [0, 1].map(|number| open(&net, number));
        let addresses = ends.each_ref().map(Reliable::local_address);
        let mut kept = [Kept::default(), Kept::default()];
        let mut pushed = [false; 2];
        let mut turn = seed;
        until("both packets", || {
            turn = turn.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (turn >> 40) as usize % 2;
            let to = ends[at].peer(&addresses[1 - at]).unwrap();
            pushed[at] = pushed[at] || ends[at].push(to, &header(7), Body::Empty, None) == Push::Done;
            ends[at].poll(&mut kept[at], 10);
            kept.iter().all(|kept| kept.packets.len() == 1)
        });
        for _ in 0..200 {
            ends.iter_mut().zip(&mut kept).for_each(|(end, kept)| {
                end.poll(kept, 10);
            });
        }
        assert!(
            kept.iter().all(|kept| kept.packets.len() == 1 && kept.gone.is_empty()),
            "seed {seed}"
        );
        let standing = |end: &mut Reliable<NetDevice>| end.peers.all().filter(|peer| peer.link.is_some()).count();
        assert_eq!(ends.each_mut().map(standing), [1, 1], "seed {seed}");
    }
}

/// Vectors keep addresses in a shorter form than endpoints tell them.
#[test]
fn each_form_of_an_address_is_the_same_peer() {
    let net = Net::new(6, Manner::default());
    let mut a = open(&net, 0);
    for text in ["10.0.0.2:7471", "[2001:db8::1]:7471"] {
        let place: SocketAddr = text.parse().unwrap();
        let told = resolve::to_bytes(&place);
        let number = a.peer(&told).unwrap();
        let kept = a.address(number).unwrap().to_vec();
        assert_eq!((a.peer(&kept), address::place(&kept)), (Some(number), Some(place)));
        let zeros = &told[kept.len()..];
        assert!(told.starts_with(&kept) && zeros.iter().all(|byte| *byte == 0));
    }
    assert_eq!(a.peer(&[]), None);
}

/// An endpoint has no connection with itself: a long message goes in packets.
#[test]
fn a_long_message_to_oneself_arrives() {
    let net = Net::new(7, Manner::default());
    let mut engine = Engine::with(open(&net, 0), EngineConfig::default());
    let own = engine.transport().local_address();
    assert_eq!(engine.transport_mut().peer(&own), Some(0));
    for len in [8, config().eager, config().eager + 1, 100_000] {
        let (from, into) = (Lent::new(&[len], 3), Lent::new(&[len], 0));
        let mut done = Vec::new();
        engine.recv(&counts::recv(0, &into), &mut done).unwrap();
        engine.send(&counts::send(0, &from), &mut done).unwrap();
        until("both ends", || {
            engine.progress(&mut done);
            done.len() == 2
        });
        assert!(done.iter().all(|end| end.failure.is_none()));
        assert_eq!(into.bytes(), from.bytes());
    }
}

/// A peer that sends without looking at its credit would take the receives of others.
#[test]
fn no_peer_gets_more_receives_than_it_was_given() {
    let net = Net::new(3, Manner::default());
    let mut ends = [0, 1].map(|number| open(&net, number));
    meet(&mut ends);
    let [mut a, mut b] = ends;
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    at_b.refuse = true;
    let mut sent = 0;
    for _ in 0..1000 {
        sent += u32::from(a.push(1, &header(sent), Body::Empty, None) == Push::Done);
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
    }
    assert_eq!(sent as usize, config().window);
    at_b.refuse = false;
    until("all of a hundred", || {
        if sent < 100 {
            sent += u32::from(a.push(1, &header(sent), Body::Empty, None) == Push::Done);
        }
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        at_b.packets.len() == 100
    });
    assert!(at_b.packets.iter().map(|(_, number)| *number).eq(0..100));
}

/// Credit comes without a sound, so who waits for it does not sleep, nor when it has just come.
#[test]
fn nobody_sleeps_over_credit() {
    let net = Net::new(8, Manner::default());
    let mut ends = [0, 1].map(|number| open(&net, number));
    meet(&mut ends);
    let [mut a, mut b] = ends;
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    let mut settle = |a: &mut Reliable<NetDevice>, b: &mut Reliable<NetDevice>| {
        for _ in 0..200 {
            a.poll(&mut at_a, 10);
            b.poll(&mut at_b, 10);
        }
    };
    for round in 0..10 {
        settle(&mut a, &mut b);
        assert!(a.arm(), "it has all credit, in round {round}");
        while a.push(1, &header(1), Body::Empty, None) == Push::Done {}
        assert!(!a.arm(), "it has none");
        settle(&mut a, &mut b);
        assert!(!a.arm(), "it has some and does not know");
    }
}

/// An endpoint at the address of one that has ended is another one.
#[test]
fn who_comes_again_is_somebody_else() {
    let net = Net::new(4, Manner::default());
    let mut ends = [0, 1].map(|number| open(&net, number));
    meet(&mut ends);
    let [mut a, b] = ends;
    let mut at_a = Kept::default();
    drop(b);
    until("its end", || {
        a.poll(&mut at_a, 10);
        !at_a.gone.is_empty()
    });
    assert_eq!(at_a.gone, [(1, Loss::Died)]);
    let mut b = open(&net, 1);
    let (mut at_b, address) = (Kept::default(), a.local_address());
    assert_eq!(b.peer(&address), Some(0));
    let mut pushed = false;
    until("a packet of the other", || {
        pushed = pushed || b.push(0, &header(9), Body::Empty, None) == Push::Done;
        b.poll(&mut at_b, 10);
        a.poll(&mut at_a, 10);
        !at_a.packets.is_empty()
    });
    assert_eq!((&at_a.packets[..], at_a.gone.len()), (&[(1, 9)][..], 1));
}

/// Three endpoints at one address, one after the other, while nothing is taken of the first.
#[test]
fn what_a_successor_said_arrives_though_another_one_follows() {
    let net = Net::new(4, Manner::default());
    let mut ends = [0, 1].map(|number| open(&net, number));
    meet(&mut ends);
    let [mut a, mut b] = ends;
    let (address, mut at_a) = (a.local_address(), Kept::default());
    at_a.refuse = true;
    for number in 1..=3 {
        let _ = b.peer(&address);
        let mut pushed = Push::Full;
        until("a packet, or a refusal", || {
            b.poll(&mut Kept::default(), 10);
            a.poll(&mut at_a, 10);
            pushed = b.push(0, &header(number), Body::Empty, None);
            pushed != Push::Full
        });
        assert_eq!(pushed == Push::Done, number < 3);
        if number == 2 {
            until("a confirmation that waits", || {
                a.poll(&mut at_a, 10);
                let way = &a.peers.get(1).unwrap().way;
                matches!(way, attempt::Way::Begun(attempt::Attempt::Agreed(_)))
            });
        }
        if number < 3 {
            drop(b);
            b = open(&net, 1);
        }
    }
    at_a.refuse = false;
    until("all packets", || {
        let is_last = at_a.packets.contains(&(1, 3));
        let _ = is_last || b.push(0, &header(3), Body::Empty, None) == Push::Done;
        b.poll(&mut Kept::default(), 10);
        a.poll(&mut at_a, 10);
        is_last
    });
    at_a.packets.dedup();
    assert_eq!(at_a.packets, [(1, 1), (1, 2), (1, 3)]);
    assert_eq!(at_a.gone, [(1, Loss::Died), (1, Loss::Died)]);
}

/// It has confirmed, sent a packet and ended, and its successor asks; of all that only the request is seen at first.
#[test]
fn what_was_said_before_a_confirmation_was_heard_arrives_though_a_successor_asks() {
    let net = Net::new(4, Manner::default());
    let [mut a, mut b] = [0, 1].map(|number| open(&net, number));
    let [at_a, at_b] = [&a, &b].map(|end| end.local_address());
    let mut kept = Kept::default();
    assert_eq!((a.peer(&at_b), b.peer(&at_a)), (Some(0), Some(0)));
    let has_accepted = |end: &Reliable<NetDevice>| {
        let way = &end.peers.get(0).unwrap().way;
        matches!(way, attempt::Way::Begun(attempt::Attempt::Accepted(_)))
    };
    for number in 1..=2 {
        until("a packet, or a request", || {
            if !has_accepted(&a) {
                a.poll(&mut kept, 10);
            }
            b.poll(&mut Kept::default(), 10);
            let pushed = b.push(0, &header(number), Body::Empty, None);
            pushed == Push::Done || number == 2 && net.has_request(0)
        });
        if number == 1 {
            assert!(has_accepted(&a) && kept.packets.is_empty());
            drop(b);
            b = open(&net, 1);
            assert_eq!(b.peer(&at_a), Some(0));
        }
    }
    net.overlook_news(0);
    until("both packets", || {
        a.poll(&mut kept, 10);
        b.poll(&mut Kept::default(), 10);
        let _ = kept.packets.contains(&(0, 2)) || b.push(0, &header(2), Body::Empty, None) == Push::Done;
        kept.packets.contains(&(0, 2))
    });
    kept.packets.dedup();
    assert_eq!(kept.packets, [(0, 1), (0, 2)]);
}

/// Where another way leads to a peer, one that does not answer is given up in time, and its asker does not sleep until
/// then.
#[test]
fn who_does_not_answer_is_left_for_another_way() {
    let net = Net::new(8, Manner::default());
    let impatient = Config {
        elsewhere_after: Some(Duration::from_millis(1)),
        ..config()
    };
    let (mut a, b) = (
        Reliable::new(net.open("10.0.0.1:7471"), &impatient).unwrap(),
        open(&net, 1),
    );
    let to = a.peer(&b.local_address()).unwrap();
    let mut pushed = a.push(to, &header(1), Body::Empty, None);
    assert!(pushed == Push::Full && !a.arm());
    until("an answer", || {
        a.poll(&mut Kept::default(), 10);
        pushed = a.push(to, &header(1), Body::Empty, None);
        pushed != Push::Full
    });
    assert_eq!(pushed, Push::Unreachable(Unreached::TimedOut));
}

/// Nobody pushes to a peer whose connection broke, but receives may wait for it.
#[test]
fn after_a_pause_a_broken_connection_is_made_anew() {
    let net = Net::new(11, Manner::default());
    let mut ends = [0, 1].map(|number| open(&net, number));
    meet(&mut ends);
    let [mut a, _b] = ends;
    let mut at_a = Kept::default();
    a.break_off(1);
    until("its end", || {
        a.poll(&mut at_a, 10);
        !at_a.gone.is_empty()
    });
    a.rest(1, 0);
    a.poll(&mut at_a, 10);
    let way = &a.peers.get(1).unwrap().way;
    assert!(matches!(way, attempt::Way::Begun(_)));
}

/// Whoever else speaks over librdmacm is refused with a text, and nothing changes.
#[test]
fn strangers_are_refused() {
    let net = Net::new(5, Manner::default());
    let mut a = open(&net, 0);
    let mut stranger = net.open("10.0.0.9:99");
    let mut kept = Kept::default();
    for said in [&[][..], &[1; 56], b"lfrs-rxm", &[b"lfrs-rxm", &[9; 40][..]].concat()] {
        let mut wire = stranger.dial().unwrap();
        wire.resolve_address(Some(&a.place), &a.place).unwrap();
        wire.make_pair(&Sizes {
            sends: 1,
            receives: 1,
            send_pieces: 1,
            receive_pieces: 1,
            inline: 0,
        })
        .unwrap();
        wire.connect(said).unwrap();
        let mut heard = None;
        until("an answer", || {
            a.poll(&mut kept, 10);
            heard = core::iter::from_fn(|| wire.news()).last().or(heard.take());
            matches!(&heard, Some(news) if news.kind == crate::sys::rdma::EventKind::Rejected)
        });
        let verdict = handshake::Verdict::decode(&heard.unwrap().data);
        assert_eq!(verdict, Some(handshake::Verdict::Foreign));
    }
    assert_eq!(a.peers.all().count(), 0);
}

/// A connection broke: both are told once, and packets go on.
#[test]
fn after_a_break_there_is_another_connection() {
    for seed in 0..100 {
        let net = Net::new(seed, Manner::default());
        let mut ends = [0, 1].map(|number| open(&net, number));
        meet(&mut ends);
        let mut kept = [Kept::default(), Kept::default()];
        ends[seed as usize % 2].break_off(1 - (seed % 2) as PeerId);
        let mut pushed = [false; 2];
        until("both packets", || {
            for (at, (end, kept)) in ends.iter_mut().zip(&mut kept).enumerate() {
                end.poll(kept, 10);
                let told = !kept.gone.is_empty();
                let to = 1 - at as PeerId;
                pushed[at] = pushed[at] || told && end.push(to, &header(1), Body::Empty, None) == Push::Done;
            }
            kept.iter().all(|kept| kept.packets.len() == 1)
        });
        for (kept, other) in kept.iter().zip([1, 0]) {
            assert_eq!(kept.gone, [(other, Loss::Broken)], "seed {seed}");
        }
    }
}

/// An endpoint that is connected with so many others.
fn one_with_many(net: &Net, peers: PeerId, config: &Config) -> Vec<Reliable<NetDevice>> {
    let place = |number| format!("10.0.0.{}:7471", number + 1);
    let mut all: Vec<Reliable<NetDevice>> = (0..=peers)
        .map(|number| Reliable::new(net.open(&place(number)), config).unwrap())
        .collect();
    let addresses: Vec<_> = all.iter().map(Reliable::local_address).collect();
    for (number, address) in (0..).zip(&addresses) {
        assert_eq!(all[0].peer(address), Some(number));
        if number > 0 {
            all[0].dial_if_idle(number);
        }
    }
    until("connections", || {
        for end in &mut all {
            end.poll(&mut Nobody, 10);
        }
        (1..=peers).all(|peer| all[0].peers.link(peer).is_some())
    });
    all
}

/// Peers beyond those that the receives are for have two each, as far as the device holds them.
#[test]
fn there_are_receives_for_late_peers() {
    let net = Net::new(4, Manner::default());
    let few = Config {
        receives: 40,
        most_receives: 70,
        ..config()
    };
    let all = one_with_many(&net, 30, &few);
    assert!((60..=70).contains(&all[0].posted), "{}", all[0].posted);
}

/// Some devices make no queue pair whose requests are to carry more than they can.
#[test]
fn a_device_that_carries_less_is_asked_for_less() {
    let net = Net::new(
        4,
        Manner {
            refuses_inline: true,
            ..Manner::default()
        },
    );
    let much = Config {
        inline: 4 * net::INLINE,
        ..config()
    };
    let mut all = one_with_many(&net, 1, &much);
    let mut kept = Kept::default();
    assert_eq!(all[0].push(1, &header(1), Body::Bytes(&[1; 8]), None), Push::Done);
    until("a packet", || {
        for end in &mut all {
            end.poll(&mut kept, 10);
        }
        !kept.packets.is_empty()
    });
    assert_eq!(net.counts().inline, 1, "a packet of 40 bytes");
}

/// All that was posted to all connections completes at once, as they break, and nobody has taken anything meanwhile.
#[test]
fn there_is_room_for_the_completions_of_all_connections() {
    const PEERS: PeerId = 30;
    let net = Net::new(4, Manner::default());
    let few = Config {
        receives: 200,
        window: 12,
        ..config()
    };
    let mut all = one_with_many(&net, PEERS, &few);
    let long = [7; 200];
    let mut posted = 0;
    for peer in 1..=PEERS {
        while all[0].push(peer, &header(posted), Body::Bytes(&long), None) == Push::Done {
            posted += 1;
        }
    }
    assert!(posted > few.receives as u32, "more than the receives alone would need");
    let places: Vec<_> = all.iter().map(|end| end.place).collect();
    places[1..].iter().for_each(|there| net.break_off(places[0], *there));
    let mut kept = Kept::default();
    until("all ends", || {
        all[0].poll(&mut kept, 10);
        kept.gone.len() >= PEERS as usize
    });
}

/// One poll goes past any number of ends of sends to the packet behind them, which a peek that polls once would miss.
#[test]
fn ends_of_sends_use_up_no_poll() {
    let Ends {
        mut a, mut b, a_of_b, ..
    } = Reliable::<NetDevice>::pair();
    let (net, me) = (a.device.net(), a.device.me);
    until("room", || b.push(a_of_b, &header(7), Body::Empty, None) == Push::Done);
    until("the packet", || {
        b.poll(&mut Nobody, 1);
        net.has_packet(me)
    });
    net.tell_ends_first(me, 1000);
    let mut kept = Kept::default();
    a.poll(&mut kept, 1);
    assert_eq!(kept.packets.iter().map(|packet| packet.1).collect::<Vec<_>>(), [7]);
}
