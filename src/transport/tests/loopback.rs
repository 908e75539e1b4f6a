//! The smallest transport: endpoints of one process, joined by queues. A new transport can begin as a copy of it.
//!
//! Knows `engine::port` only. Endpoints on one `Hub` find each other by address; an endpoint that is dropped has gone.

#![forbid(unsafe_code)]

use crate::engine::op::Unreached;
use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Loss, Notice, PeerId, Placement, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::user::UserIov;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most packets in flight from one endpoint to another.
const DEPTH: usize = 64;

pub const LIMITS: Limits = Limits {
    max_body: 4096,
    eager: 16384,
    eager_if_fetched: 16384,
    can_get: false,
    gets_at_once: 0,
    guaranteed_body: 4096,
    sync_placement: true,
    max_write: 0,
    max_in_writes: 0,
    max_short_read: usize::MAX,
};

type Packet = (Header, Vec<u8>);

#[derive(Debug, Default)]
struct Lanes {
    /// The number of each address, of open and of closed endpoints.
    numbers: HashMap<Vec<u8>, PeerId>,
    open: Vec<bool>,
    packets: HashMap<(PeerId, PeerId), VecDeque<Packet>>,
}

/// What the endpoints that can reach each other share.
#[derive(Clone, Debug, Default)]
pub struct Hub(Arc<Mutex<Lanes>>);

impl Hub {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Loopback {
    hub: Hub,
    me: PeerId,
    address: Vec<u8>,
    /// Peers that were reported as gone.
    gone: Vec<PeerId>,
}

impl Loopback {
    /// None if an endpoint has, or had, this address.
    pub fn open(hub: &Hub, address: &[u8]) -> Option<Loopback> {
        let mut lanes = hub.lanes();
        if lanes.numbers.contains_key(address) {
            return None;
        }
        let me = lanes.open.len() as PeerId;
        lanes.numbers.insert(address.to_vec(), me);
        lanes.open.push(true);
        let hub = hub.clone();
        Some(Loopback {
            hub,
            me,
            address: address.to_vec(),
            gone: Vec::new(),
        })
    }

    pub fn address(&self) -> &[u8] {
        &self.address
    }

    pub fn address_of(&self, peer: PeerId) -> Option<Vec<u8>> {
        let lanes = self.hub.lanes();
        let mut numbers = lanes.numbers.iter();
        numbers
            .find(|(_, number)| **number == peer)
            .map(|(address, _)| address.clone())
    }

    /// Whether a packet lies here that was not delivered.
    pub fn has_news(&self) -> bool {
        let lanes = self.hub.lanes();
        lanes
            .packets
            .iter()
            .any(|((_, to), packets)| *to == self.me && !packets.is_empty())
    }

    fn is_open(&self, peer: PeerId) -> Option<bool> {
        self.hub.lanes().open.get(peer as usize).copied()
    }

    fn next(&self, from: PeerId) -> Option<Packet> {
        self.hub.lanes().packets.get_mut(&(from, self.me))?.pop_front()
    }

    /// Delivers one packet. False: there is none, or the engine refused it.
    fn deliver<S: Sink>(&self, from: PeerId, sink: &mut S) -> bool {
        let Some((header, body)) = self.next(from) else {
            return false;
        };
        match sink.place(from, &header, body.len()) {
            Placement::Into { iov, at, token } => {
                iov.write(at, &body);
                sink.placed(token, None);
            }
            Placement::Keep { mut buffer, token } => {
                buffer.copy_from_slice(&body);
                sink.placed(token, Some(buffer));
            }
            Placement::Leased { lease, token } => {
                if lease.write(0, &body) {
                    sink.placed(token, None);
                } else {
                    sink.cut(token);
                }
            }
            Placement::Drop => {}
            Placement::Refuse => {
                let mut lanes = self.hub.lanes();
                let lane = lanes.packets.entry((from, self.me)).or_default();
                lane.push_front((header, body));
                return false;
            }
        }
        true
    }
}

impl Loopback {
    /// Nothing reaches it any more, and peers are told.
    fn close(&mut self) {
        let mut lanes = self.hub.lanes();
        if let Some(open) = lanes.open.get_mut(self.me as usize) {
            *open = false;
        }
        lanes.packets.retain(|(_, to), _| *to != self.me);
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.close();
    }
}

impl Transport for Loopback {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.hub.lanes().numbers.get(address).copied()
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        match self.is_open(to) {
            Some(true) => {}
            Some(false) => return Push::Gone,
            None => return Push::Unreachable(Unreached::Nobody),
        }
        let mut lanes = self.hub.lanes();
        let lane = lanes.packets.entry((self.me, to)).or_default();
        if lane.len() >= DEPTH {
            return Push::Full;
        }
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => {
                iov.read(at, &mut bytes);
            }
        }
        lane.push_back((*header, bytes));
        Push::Done
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let mut done = 0;
        let peers = self.hub.lanes().open.len() as PeerId;
        for from in 0..peers {
            while done < budget && self.deliver(from, sink) {
                done += 1;
            }
            // All that a peer sent is delivered before its end is reported.
            let over = done < budget && self.is_open(from) == Some(false);
            if over && !self.gone.contains(&from) {
                self.gone.push(from);
                sink.gone(from, Loss::Died);
            }
        }
        done
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::sim::{Connected, World};
    use crate::transport::tests::suite::{Ends, Pair};
    use std::cell::RefCell;
    use std::rc::Rc;

    impl Pair for Loopback {
        fn pair() -> Ends<Loopback> {
            let hub = Hub::default();
            let mut ends = [b"a", b"b"].map(|name| Loopback::open(&hub, name).expect("a fresh hub"));
            let [b_of_a, a_of_b] = [ends[0].peer(b"b").unwrap(), ends[1].peer(b"a").unwrap()];
            let [a, b] = ends;
            Ends {
                a,
                b,
                b_of_a,
                a_of_b,
                keep: Box::new(()),
            }
        }
    }

    impl Connected for Loopback {
        fn connected(nodes: PeerId, _: &Rc<RefCell<World>>) -> Vec<Loopback> {
            let hub = Hub::default();
            let open = |node: PeerId| Loopback::open(&hub, &node.to_le_bytes()).expect("a fresh hub");
            (0..nodes).map(open).collect()
        }

        fn is_quiet(&self) -> bool {
            !self.has_news()
        }

        fn die(&mut self) {
            self.close();
        }
    }

    crate::transport::tests::suite::tests!(Loopback);
    crate::engine::tests::random::over!(Loopback);
}
