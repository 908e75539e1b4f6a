//! What messages cost: requests, completions and registrations, from one engine to another.

use super::net::Counts;
use super::*;
use crate::engine::op::{CompletionLevel, MessageKind, Recv, Send, Tell};
use crate::engine::{Config as EngineConfig, Engine};
use crate::util::user::Lent;

pub fn recv(from: PeerId, memory: &Lent) -> Recv {
    Recv {
        kind: MessageKind::Tagged,
        from: Some(from),
        tag: 1,
        ignore: 0,
        body: memory.iov(),
        multi: None,
        context: 0,
        tell: Tell::Queue,
    }
}

pub fn send(to: PeerId, memory: &Lent) -> Send {
    Send {
        kind: MessageKind::Tagged,
        to,
        tag: 1,
        data: None,
        body: memory.iov(),
        inject: false,
        level: CompletionLevel::Transmit,
        fence: false,
        context: 0,
        tell: Tell::Queue,
    }
}

/// Sends a message, with its receive posted before, and says what that took once all is over.
fn cost(len: usize) -> Counts {
    let net = Net::new(1, Manner::default());
    let usual = Config {
        warn: |line| eprintln!("{line}"),
        ..Config::default()
    };
    let place = |number| net.open(&format!("10.0.0.{number}:1"));
    let mut ends = [1, 2].map(|number| Reliable::new(place(number), &usual).unwrap());
    meet(&mut ends);
    let mut engines = ends.map(|end| Engine::with(end, EngineConfig::default()));
    let (from, into) = (Lent::new(&[len], 3), Lent::new(&[len], 0));
    let mut done = Vec::new();
    let mut message = |done: &mut Vec<_>| {
        engines[1].recv(&recv(0, &into), done).unwrap();
        engines[0].send(&send(1, &from), done).unwrap();
        for _ in 0..1000 {
            engines.iter_mut().for_each(|engine| {
                engine.progress(done);
            });
        }
    };
    // Buffers are made for the first.
    message(&mut done);
    let before = net.counts();
    message(&mut done);
    assert_eq!(done.len(), 4);
    assert_eq!(into.bytes(), from.bytes());
    let after = net.counts();
    Counts {
        sends: after.sends - before.sends,
        inline: after.inline - before.inline,
        reads: after.reads - before.reads,
        writes: after.writes - before.writes,
        completions: after.completions - before.completions,
        registrations: after.registrations - before.registrations,
    }
}

#[test]
fn messages_take_no_more_than_they_must() {
    let one_packet = Counts {
        sends: 1,
        completions: 2,
        ..Counts::default()
    };
    // Within its request, of whose end nobody need hear.
    let short = Counts {
        inline: 1,
        completions: 1,
        ..one_packet
    };
    assert_eq!(cost(8), short);
    assert_eq!(cost(4096), one_packet);
    let long = cost(1 << 20);
    // The offer, the read, and that it is done; each side's memory is registered once.
    assert_eq!((long.sends, long.reads, long.registrations), (2, 1, 2));
    let packets = cost(64 << 10);
    assert_eq!((packets.reads, packets.registrations), (0, 0));
    assert_eq!(packets.sends, 5);
}
