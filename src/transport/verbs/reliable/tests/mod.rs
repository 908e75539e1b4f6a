//! Reliable endpoints over stand-ins for devices.
//!
//! - `net`: those devices. Here are the suite of all transports and the engine's random stories over them.
//! - `atomics`: devices that do atomics there too.
//! - `meeting`: how connections come about and end. `trouble`: what devices tell by themselves. `counts`: what messages
//!   cost. `one_sided`: devices that work on registered memory.

mod atomics;
mod counts;
mod meeting;
mod net;
mod one_sided;
mod trouble;

use super::*;
use crate::engine::tests::sim::{Connected, World};
use crate::transport::tests::suite::{Ends, Pair};
use net::{Manner, Net, NetDevice};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

fn config() -> Config {
    Config {
        buffer: 512,
        window: 4,
        sends: 12,
        eager: 1500,
        inline: net::INLINE,
        // Who refuses is not there, and does not come.
        connect_timeout: Duration::ZERO,
        warn: |line| eprintln!("{line}"),
        info: |line| eprintln!("{line}"),
        ..Config::default()
    }
}

fn open(net: &Net, number: PeerId) -> Reliable<NetDevice> {
    Reliable::new(net.open(&format!("10.0.0.{}:7471", number + 1)), &config()).unwrap()
}

impl Pair for Reliable<NetDevice> {
    fn pair() -> Ends<Reliable<NetDevice>> {
        let net = Net::new(5, Manner::default());
        let mut ends = [0, 1].map(|number| open(&net, number));
        meet(&mut ends);
        let ([a, b], b_of_a, a_of_b) = (ends, 1, 0);
        Ends {
            a,
            b,
            b_of_a,
            a_of_b,
            keep: Box::new(()),
        }
    }
}

impl Connected for Reliable<NetDevice> {
    const BREAKS: bool = true;
    /// When both make the next connection at once, one may be told to come later.
    const GIVES_UP: bool = true;

    /// All are connected with all, so that who is dead is known to be, and not only not there.
    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<Self> {
        let mut world = world.borrow_mut();
        let manner = Manner {
            failing: world.roll(4),
            ..Manner::default()
        };
        let net = Net::new(world.roll(u64::MAX), Manner::default());
        let mut all: Vec<_> = (0..nodes).map(|number| open(&net, number)).collect();
        let keeps = world.roll(2) == 0;
        for end in all.iter_mut().filter(|_| keeps) {
            end.set_memory(DomainMemory {
                cache: Some(end.device.cache(&Arc::default())),
                ..DomainMemory::default()
            });
        }
        meet(&mut all);
        net.set_manner(manner);
        all
    }

    fn is_quiet(&self) -> bool {
        let idle = self.ready.is_empty() && self.peers.ended.is_empty() && self.self_queue.is_empty();
        let rest = |number: &PeerId| {
            let way = self.peers.get(*number).map(|peer| &peer.way);
            matches!(way, None | Some(attempt::Way::None | attempt::Way::Resting { .. }))
        };
        idle && self.peers.ways().iter().all(rest) && self.device.net().is_quiet(self.device.me)
    }

    fn exposed(&self) -> usize {
        self.exposures.len()
    }

    fn die(&mut self) {
        self.close_all();
        let (place, config) = (self.place, self.config);
        // The device is gone with all its connections; what is left in its place is nowhere.
        let elsewhere = Net::default().open(&place.to_string());
        let mut nothing = Reliable::new(elsewhere, &config).unwrap();
        core::mem::swap(self, &mut nothing);
    }

    fn break_off(&mut self, peer: PeerId) {
        let there = self.peers.get(peer).and_then(|peer| peer.place()).unwrap();
        self.device.net().break_off(self.place, there);
    }
}

/// Gives each the number of its place in the list, and connects all with all.
fn meet<const OPEN: bool, const ATOMICS: bool>(all: &mut [Reliable<NetDevice<OPEN, ATOMICS>>]) {
    let addresses: Vec<_> = all.iter().map(|end| end.local_address()).collect();
    for end in &mut *all {
        for (number, address) in (0..).zip(&addresses) {
            assert_eq!(end.peer(address), Some(number));
            if *address != end.local_address() {
                end.dial_if_idle(number);
            }
        }
    }
    let stands = |end: &Reliable<NetDevice<OPEN, ATOMICS>>| {
        let mut peers = (0..addresses.len() as PeerId).filter_map(|peer| end.peers.get(peer));
        peers.all(|peer| peer.is_self || peer.link.is_some())
    };
    for _ in 0..10_000 {
        for end in &mut *all {
            end.poll(&mut Nobody, 10);
        }
        if all.iter().all(stands) {
            return;
        }
    }
    panic!("they do not meet");
}

/// Hears nothing.
struct Nobody;

impl Sink for Nobody {
    fn place(&mut self, _: PeerId, _: &Header, _: usize) -> crate::engine::port::Placement {
        unreachable!("nothing was sent")
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, _: Token, _: Result<(), crate::engine::port::NotDone>) {}

    fn gone(&mut self, _: PeerId, _: crate::engine::port::Loss) {}
}

crate::transport::tests::suite::tests!(Reliable<NetDevice>);
crate::engine::tests::random::over!(Reliable<NetDevice>);
