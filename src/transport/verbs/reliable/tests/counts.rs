//! What messages cost: requests, completions and registrations, from one engine to another.

use super::net::Counts;
use super::*;
use crate::engine::op::{CompletionLevel, MessageKind, Recv, Send, Tell};
use crate::engine::{Config as EngineConfig, Engine};
use crate::sys::userfaultfd::Gone;
use crate::transport::verbs::cache::tests::TestMonitor;
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

/// Two that send one message again and again, with its receive posted before.
struct Repeat {
    net: Net,
    engines: [Engine<Reliable<NetDevice>>; 2],
    from: Lent,
    into: Lent,
}

impl Repeat {
    /// The first message is over, for which buffers are made. `monitor`: registrations are kept.
    fn new(len: usize, monitor: Option<&Arc<TestMonitor>>) -> Repeat {
        let net = Net::new(1, Manner::default());
        let usual = Config {
            warn: |line| eprintln!("{line}"),
            ..Config::default()
        };
        let place = |number| net.open(&format!("10.0.0.{number}:1"));
        let mut ends = [1, 2].map(|number| Reliable::new(place(number), &usual).unwrap());
        for end in &mut ends {
            end.set_memory(DomainMemory {
                cache: monitor.as_ref().map(|monitor| end.device.cache(monitor)),
                ..DomainMemory::default()
            });
        }
        meet(&mut ends);
        let mut repeat = Repeat {
            net,
            engines: ends.map(|end| Engine::with(end, EngineConfig::default())),
            from: Lent::new(&[len], 3),
            into: Lent::new(&[len], 0),
        };
        repeat.cost();
        repeat
    }

    /// Sends it, and says what that took once all is over.
    fn cost(&mut self) -> Counts {
        let (before, mut done) = (self.net.counts(), Vec::new());
        self.engines[1].recv(&recv(0, &self.into), &mut done).unwrap();
        self.engines[0].send(&send(1, &self.from), &mut done).unwrap();
        for _ in 0..1000 {
            self.engines.iter_mut().for_each(|engine| {
                engine.progress(&mut done);
            });
        }
        assert_eq!(done.len(), 2);
        assert_eq!(self.into.bytes(), self.from.bytes());
        let after = self.net.counts();
        Counts {
            atomics: after.atomics - before.atomics,
            sends: after.sends - before.sends,
            inline: after.inline - before.inline,
            reads: after.reads - before.reads,
            writes: after.writes - before.writes,
            completions: after.completions - before.completions,
            registrations: after.registrations - before.registrations,
        }
    }
}

fn cost(len: usize) -> Counts {
    Repeat::new(len, None).cost()
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

#[test]
fn the_memory_of_long_messages_is_registered_once() {
    let monitor = Arc::new(TestMonitor::default());
    let mut repeat = Repeat::new(1 << 20, Some(&monitor));
    let registered = repeat.net.registered();
    for _ in 0..3 {
        let again = repeat.cost();
        assert_eq!((again.sends, again.reads, again.registrations), (2, 1, 0));
    }
    // Once the memory of one side has gone, that is registered anew.
    for memory in [&repeat.from, &repeat.into].map(|memory| memory.iov().only().unwrap().range()) {
        monitor.recent.tell(Gone {
            memory,
            is_mapped: false,
        });
        assert_eq!((repeat.cost().registrations, repeat.cost().registrations), (1, 0));
    }
    assert_eq!(repeat.net.registered(), registered);
}
