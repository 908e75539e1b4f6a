//! TCP between endpoints of one process, on the loopback interface; with children, attackers and the kernel's limits.
//!
//! - `suite`: the suite of all transports. `meeting`: how connections come about and end.
//! - `causes`: what is told first. `blocked`: sockets that are full. `endings`: connections that end at an awkward
//!   moment.
//! - `one_peer`: connections that programs ask for, and how they fail.
//! - `strangers`: whoever means ill, and children of fork. `sleeping`: who sleeps, and what wakes them.
//! - `seldom`: who polls once. `watched`: who is polled only when there is something to do.
//! - `silence`: peers that nothing is heard of, and what is told of them. `secrets`: who must prove one. `shortage`: no
//!   descriptors, and many peers.

mod blocked;
mod causes;
mod endings;
mod meeting;
mod one_peer;
mod secrets;
mod seldom;
mod shortage;
mod silence;
mod sleeping;
mod strangers;
mod suite;
mod watched;

use super::attempt::{Attempt, Way};
use super::*;
use crate::engine::port::{Loss, NotDone, Placement, When};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

fn config() -> Config {
    Config {
        warn: |line| eprintln!("{line}"),
        info: |line| eprintln!("{line}"),
        ..Config::default()
    }
}

fn open_at(place: &str, config: &Config) -> TcpTransport {
    let place: SocketAddr = place.parse().unwrap();
    TcpTransport::open(&address::of(&place), config).unwrap()
}

/// Where an end has just closed. A child that another test forks has its listener until it has run its own handler of
/// fork.
fn open_again_at(place: &str) -> TcpTransport {
    let place: SocketAddr = place.parse().unwrap();
    let mut opened = None;
    until("the port that was closed", || {
        opened = match TcpTransport::open(&address::of(&place), &config()) {
            Err(OpenError::InUse) => None,
            opened => Some(opened.unwrap()),
        };
        opened.is_some()
    });
    opened.unwrap()
}

fn open() -> TcpTransport {
    open_at("127.0.0.1:0", &config())
}

/// What the engine was told, and all packets, kept whole.
#[derive(Default)]
struct Kept {
    packets: Vec<(PeerId, Header, Vec<u8>)>,
    gone: Vec<(PeerId, Loss)>,
    met: Vec<(PeerId, PeerId)>,
    sent: Vec<Token>,
    refuse: bool,
    waiting: std::collections::HashMap<Token, (PeerId, Header)>,
    next: Token,
}

impl Sink for Kept {
    fn met(&mut self, peer: PeerId, source: PeerId) {
        self.met.push((peer, source));
    }

    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        if self.refuse {
            return Placement::Refuse;
        }
        self.next += 1;
        self.waiting.insert(self.next, (from, *header));
        Placement::Keep {
            buffer: vec![0; len],
            token: self.next,
        }
    }

    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        let (from, header) = self.waiting.remove(&token).unwrap();
        self.packets.push((from, header, buffer.unwrap()));
    }

    fn sent(&mut self, token: Token, result: Result<(), crate::engine::op::Error>) {
        assert_eq!(result, Ok(()));
        self.sent.push(token);
    }

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {
        unreachable!("nothing is fetched");
    }

    fn gone(&mut self, peer: PeerId, loss: Loss) {
        self.gone.push((peer, loss));
    }
}

/// Far more than anything here takes, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < PATIENCE, "waited too long: {what}");
    }
}

/// What two ends call each other.
fn numbers(a: &mut TcpTransport, b: &mut TcpTransport) -> (PeerId, PeerId) {
    (a.peer(&b.local_address()).unwrap(), b.peer(&a.local_address()).unwrap())
}

fn is_connected(end: &mut TcpTransport, peer: PeerId) -> bool {
    end.peers.link(peer).is_some()
}

/// Connects two ends, as a first push would.
fn connect(a: &mut TcpTransport, b_of_a: PeerId, b: &mut TcpTransport, a_of_b: PeerId) {
    let mut sinks = [Kept::default(), Kept::default()];
    until("a connection", || {
        if matches!(a.peers.get(b_of_a).unwrap().way, Way::None) && !is_connected(a, b_of_a) {
            a.dial(b_of_a);
        }
        a.poll(&mut sinks[0], 10);
        b.poll(&mut sinks[1], 10);
        is_connected(a, b_of_a) && is_connected(b, a_of_b)
    });
}
