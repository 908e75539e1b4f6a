//! Whoever connects and is no endpoint: noise, silence, crowds, lies. None of it touches anybody else.

use super::*;
use crate::engine::wire::Packet;
use handshake::{Answer, Hello, Verdict, frame};
use std::io::{Read, Write};
use std::net::TcpStream;

fn stranger(end: &TcpTransport) -> TcpStream {
    let stream = TcpStream::connect(end.place).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    stream
}

/// Polls until the other side of a stream has ended it; returns what it said.
fn last_words(end: &mut TcpTransport, sink: &mut Kept, stream: &mut TcpStream) -> Vec<u8> {
    let (mut said, mut bytes) = (Vec::new(), [0; 100]);
    until("the end of a stranger", || {
        end.poll(sink, 10);
        match stream.read(&mut bytes) {
            Ok(0) => true,
            Ok(came) => {
                said.extend(&bytes[..came]);
                false
            }
            Err(error) => !matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ),
        }
    });
    said
}

/// A stranger who knows the protocol, up to the confirmation, as if it listened at `from`.
fn impostor(end: &mut TcpTransport, sink: &mut Kept, from: SocketAddr, instance: u64) -> (TcpStream, Option<Answer>) {
    let mut stream = stranger(end);
    let answer = answer_to(end, sink, &mut stream, from, instance);
    (stream, answer)
}

/// The same on a connection that was made before.
fn answer_to(
    end: &mut TcpTransport,
    sink: &mut Kept,
    stream: &mut TcpStream,
    from: SocketAddr,
    instance: u64,
) -> Option<Answer> {
    let hello = Hello {
        from: address::of(&from),
        instance,
        context: 0,
        nonce: None,
    };
    stream.write_all(&hello.encode()).unwrap();
    let (mut answer, mut got) = ([0; Answer::SIZE], 0);
    until("an answer", || {
        end.poll(sink, 10);
        got += stream.read(&mut answer[got..]).unwrap_or(0);
        got == Answer::SIZE
    });
    Answer::decode(&answer)
}

fn nobody() -> SocketAddr {
    open().place
}

/// Two connections of one peer, of which the older one's hello comes last: that try was given up when the other began.
#[test]
fn a_hello_that_comes_late_takes_no_newer_ones_place() {
    let (mut end, mut sink) = (open(), Kept::default());
    let from = nobody();
    let mut older = stranger(&end);
    until("a guest", || {
        end.poll(&mut sink, 10);
        end.listener.as_ref().unwrap().guests() == 1
    });
    let (mut newer, answer) = impostor(&mut end, &mut sink, from, 6);
    assert_eq!(answer.map(|answer| answer.verdict), Some(Verdict::Welcome));
    let answer = answer_to(&mut end, &mut sink, &mut older, from, 5);
    assert_eq!(answer.map(|answer| answer.verdict), Some(Verdict::Later));
    newer.write_all(&frame::CONFIRM.to_le_bytes()).unwrap();
    until("a connection", || {
        end.poll(&mut sink, 10);
        !sink.met.is_empty()
    });
}

#[test]
fn noise_is_closed() {
    let (mut end, mut sink) = (open(), Kept::default());
    let foreign = Hello {
        from: address::of(&nobody()),
        instance: 5,
        context: 0,
        nonce: None,
    };
    let mut other_version = foreign.encode();
    other_version[12] = 99;
    let rows: [(&[u8], bool); 4] = [
        (b"GET / HTTP/1.1\r\n\r\n", false),
        (&[0; 500], false),
        (&[255; 64], false),
        (&other_version, true),
    ];
    for (noise, answered) in rows {
        let mut stream = stranger(&end);
        stream.write_all(noise).unwrap();
        let said = last_words(&mut end, &mut sink, &mut stream);
        let answer = said.first_chunk().and_then(Answer::decode).map(|answer| answer.verdict);
        assert_eq!(answer, answered.then_some(Verdict::Foreign));
    }
    assert!(sink.packets.is_empty() && sink.gone.is_empty() && sink.met.is_empty());
}

/// More silent strangers than there may be: those that came first go, and an endpoint still gets in.
#[test]
fn silent_strangers_are_bounded() {
    let (mut end, mut sink) = (open(), Kept::default());
    let crowd: Vec<TcpStream> = (0..300).map(|_| stranger(&end)).collect();
    let mut b = open();
    let (end_of_b, b_of_end) = numbers(&mut b, &mut end);
    connect(&mut b, end_of_b, &mut end, b_of_end);
    end.poll(&mut sink, 10);
    assert!(
        (200..=256).contains(&end.listener.as_ref().unwrap().guests()),
        "{}",
        end.listener.as_ref().unwrap().guests()
    );
    drop(crowd);
}

#[test]
fn bad_bytes_end_their_connection_and_no_other() {
    let too_long = (config::MAX_BODY as u32 + 1).to_le_bytes();
    let no_packet = [&4u32.to_le_bytes()[..], &[99; 36]].concat();
    let confirmed_again = frame::CONFIRM.to_le_bytes();
    for bad in [&[0xff; 4][..], &too_long, &no_packet, &confirmed_again] {
        let (mut end, mut other, mut sink) = (open(), open(), Kept::default());
        let (other_of_end, end_of_other) = numbers(&mut end, &mut other);
        connect(&mut end, other_of_end, &mut other, end_of_other);
        let from = nobody();
        let (mut stream, answer) = impostor(&mut end, &mut sink, from, 9);
        assert_eq!(answer.unwrap().verdict, Verdict::Welcome);
        let number = end.peer(&address::of(&from)).unwrap();
        let good = Header::new(Packet::Eager, 3);
        let packet = [&0u32.to_le_bytes()[..], &good.encode()].concat();
        stream
            .write_all(&[&frame::CONFIRM.to_le_bytes()[..], &packet, bad].concat())
            .unwrap();
        last_words(&mut end, &mut sink, &mut stream);
        assert_eq!(sink.packets, [(number, good, vec![])]);
        assert_eq!(sink.gone[0], (number, Loss::Broken));
        assert!(is_connected(&mut end, other_of_end));
    }
}

/// Pads of all lengths, before packets and behind the last, in pieces of any length.
#[test]
fn pads_mean_nothing() {
    let pad = |len: usize| [&(frame::PAD | len as u32).to_le_bytes()[..], &vec![0xaa; len]].concat();
    let packet = [&3u32.to_le_bytes()[..], &Header::new(Packet::Eager, 3).encode(), b"abc"].concat();
    let bytes = [pad(0), packet.clone(), pad(59), pad(1), packet, pad(100_000)].concat();
    for piece in [1, 7, 64, 1 << 20] {
        let (mut end, mut sink) = (open(), Kept::default());
        let (mut stream, _) = impostor(&mut end, &mut sink, nobody(), 9);
        stream.write_all(&frame::CONFIRM.to_le_bytes()).unwrap();
        let (short, long) = bytes.split_at(bytes.len() - 100_000);
        for some in short.chunks(piece).chain(long.chunks(piece.max(1000))) {
            stream.write_all(some).unwrap();
            end.poll(&mut sink, 10);
        }
        until("both packets", || {
            end.poll(&mut sink, 10);
            sink.packets.len() == 2
        });
        assert!(sink.packets.iter().all(|(_, _, body)| body == b"abc"));
        assert!(sink.gone.is_empty());
    }
}

/// Half of a pad, and nothing more: its connection ends.
#[test]
fn a_pad_that_never_ends_holds_nobody_up() {
    let (mut end, mut sink) = (open(), Kept::default());
    let (mut stream, _) = impostor(&mut end, &mut sink, nobody(), 9);
    let half = [frame::CONFIRM.to_le_bytes(), (frame::PAD | 1000).to_le_bytes()].concat();
    stream.write_all(&[half, vec![0; 500]].concat()).unwrap();
    drop(stream);
    until("its end", || {
        end.poll(&mut sink, 10);
        sink.gone.len() == 2
    });
    assert!(sink.packets.is_empty());
}

/// Half of a packet, and nothing more: nobody waits for it.
#[test]
fn a_packet_that_never_ends_holds_nobody_up() {
    let (mut end, mut sink) = (open(), Kept::default());
    let from = nobody();
    let (mut stream, _) = impostor(&mut end, &mut sink, from, 9);
    let header = Header::new(Packet::Eager, 3);
    let half = [
        &frame::CONFIRM.to_le_bytes()[..],
        &1000u32.to_le_bytes(),
        &header.encode(),
        &[7; 500],
    ]
    .concat();
    stream.write_all(&half).unwrap();
    until("half a packet", || {
        end.poll(&mut sink, 10);
        !sink.waiting.is_empty()
    });
    drop(stream);
    until("its end", || {
        end.poll(&mut sink, 10);
        sink.gone.len() == 2
    });
    let number = end.peer(&address::of(&from)).unwrap();
    // The connection broke; whoever was asked whether it lives has refused.
    assert_eq!(sink.gone, [(number, Loss::Broken), (number, Loss::Died)]);
    assert!(sink.packets.is_empty());
}

/// A peer that connects anew has given its connection up, though that does not end.
#[test]
fn a_second_connection_takes_the_place_of_the_first() {
    let (mut end, mut sink) = (open(), Kept::default());
    let from = nobody();
    let mut streams = Vec::new();
    for count in 1..=2 {
        let (mut stream, answer) = impostor(&mut end, &mut sink, from, 9);
        assert_eq!(answer.unwrap().verdict, Verdict::Welcome);
        stream.write_all(&frame::CONFIRM.to_le_bytes()).unwrap();
        until("a connection", || {
            end.poll(&mut sink, 10);
            sink.met.len() == count
        });
        streams.push(stream);
    }
    let number = end.peer(&address::of(&from)).unwrap();
    assert_eq!(sink.gone, [(number, Loss::Broken)]);
}

/// What it sent on the first one may be on its way for longer than a second one takes to be made.
#[test]
fn a_second_connection_waits_for_what_comes_on_the_first() {
    let (mut end, mut sink) = (open(), Kept::default());
    let from = nobody();
    let packet = |id| [&0u32.to_le_bytes()[..], &Header::new(Packet::Eager, id).encode()].concat();
    let mut streams: Vec<TcpStream> = Vec::new();
    for instance in [9, 10] {
        let (mut stream, answer) = impostor(&mut end, &mut sink, from, instance);
        assert_eq!(answer.unwrap().verdict, Verdict::Welcome);
        let said = [&frame::CONFIRM.to_le_bytes()[..], &packet(instance as u32)].concat();
        stream.write_all(&said).unwrap();
        streams.push(stream);
    }
    let number = end.peer(&address::of(&from)).unwrap();
    until("two connections, of which one waits", || {
        end.poll(&mut sink, 10);
        assert_eq!(sink.gone, []);
        let waits = matches!(end.peers.get(number).unwrap().way, Way::Begun(Attempt::Agreed { .. }));
        waits && !end.peers.link(number).unwrap().has_news()
    });
    for _ in 0..3 * deadlines::TICK {
        end.poll(&mut sink, 10);
    }
    let header = Header::new(Packet::Eager, 12);
    let pushed = end.push(number, &header, Body::Empty, None);
    assert_eq!(pushed, Push::Full, "nobody would read it");
    let mut first = streams.remove(0);
    first.write_all(&packet(11)).unwrap();
    drop(first);
    until("all packets", || {
        end.poll(&mut sink, 10);
        sink.packets.len() == 3
    });
    let came: Vec<u32> = sink.packets.iter().map(|(_, header, _)| header.id).collect();
    assert_eq!((came, sink.gone), (vec![9, 11, 10], vec![(number, Loss::Died)]));
    assert_eq!(end.push(number, &header, Body::Empty, None), Push::Done);
}

/// The peer has seen what it sent leave, and then ended, before its confirmation came; its successor has another way.
#[test]
fn a_second_hello_waits_for_the_first_ones_confirmation() {
    let (mut end, mut sink) = (open(), Kept::default());
    let from = nobody();
    let verdict_for = |end: &mut TcpTransport, sink: &mut Kept, instance| {
        let (stream, answer) = impostor(end, sink, from, instance);
        (stream, answer.unwrap().verdict)
    };
    let (mut first, verdict) = verdict_for(&mut end, &mut sink, 9);
    assert_eq!(verdict, Verdict::Welcome);
    assert_eq!(verdict_for(&mut end, &mut sink, 10).1, Verdict::Later);
    let packet = [&0u32.to_le_bytes()[..], &Header::new(Packet::Eager, 3).encode()].concat();
    first
        .write_all(&[&frame::CONFIRM.to_le_bytes()[..], &packet].concat())
        .unwrap();
    until("a packet", || {
        end.poll(&mut sink, 10);
        !sink.packets.is_empty()
    });
    // Who has ended without a confirmation is in nobody's way.
    let from = nobody();
    let (given_up, _) = impostor(&mut end, &mut sink, from, 9);
    drop(given_up);
    let (_, answer) = impostor(&mut end, &mut sink, from, 10);
    assert_eq!(answer.unwrap().verdict, Verdict::Welcome);
}

/// A hello alone changes nothing for the peer whose name it takes.
#[test]
fn a_hello_without_confirmation_ends_nothing() {
    let (mut end, mut other, mut sink) = (open(), open(), Kept::default());
    let (other_of_end, end_of_other) = numbers(&mut end, &mut other);
    connect(&mut end, other_of_end, &mut other, end_of_other);
    let (stream, answer) = impostor(&mut end, &mut sink, other.place, 9);
    assert_eq!(answer.unwrap().verdict, Verdict::Welcome);
    drop(stream);
    let header = Header::new(Packet::Eager, 3);
    assert_eq!(other.push(end_of_other, &header, Body::Empty, None), Push::Done);
    until("a packet", || {
        end.poll(&mut sink, 10);
        !sink.packets.is_empty()
    });
    assert!(sink.gone.is_empty());
}

/// The sockets are the parent's alone: its end is noticed though a child lives, and a child's end is nothing.
#[test]
fn a_child_of_fork_leaves_the_parents_connections_alone() {
    use crate::sys::child::Child;
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let header = Header::new(Packet::Eager, 3);
    let child = Child::run(|| {
        let mut sink = Kept::default();
        assert_eq!(a.push(b_of_a, &header, Body::Empty, None), Push::Gone);
        assert_eq!(a.poll(&mut sink, 10), 0);
        assert!(a.arm() && sink.gone.is_empty());
        drop(core::mem::replace(&mut a, open()));
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(a.push(b_of_a, &header, Body::Empty, None), Push::Done);
    let mut sink = Kept::default();
    until("a packet", || {
        b.poll(&mut sink, 10);
        !sink.packets.is_empty()
    });
    assert!(sink.gone.is_empty());
}

/// A child can open endpoints of its own, whatever another thread of the parent was doing at the fork.
#[test]
fn a_child_of_fork_finds_the_list_of_listeners_free() {
    use crate::sys::child::Child;
    use core::sync::atomic::AtomicBool;
    static STOP: AtomicBool = AtomicBool::new(false);
    let look = || assert!(Listener::find(&[]).is_none());
    let busy = std::thread::spawn(move || {
        while !STOP.load(Ordering::Relaxed) {
            look();
        }
    });
    let stuck = (0..200).find(|_| Child::run(look).wait() != 0);
    STOP.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    assert_eq!(stuck, None, "a child waited for ever");
}
