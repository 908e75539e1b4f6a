//! What an endpoint has of the network: a device, its memory, and the ends of connections.

use super::{INLINE, Net, Pair, Posted};
use crate::sys::rdma::{self, Access, Done, EventKind, Failure, Opcode, PairMade, Piece, Sizes, Stopped, Work};
use crate::transport::verbs::cache::Cache;
use crate::transport::verbs::cache::tests::{ANY, TestMonitor};
use crate::transport::verbs::memory::Registrations;
use crate::transport::verbs::reliable::seam::{Device, Request};
use crate::transport::verbs::seam::{Completions, Connection, News, Nic, QueuePair, Registration};
use crate::util::regions::{Mirror, Region, Regions};
use crate::util::user::UserBuf;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

#[derive(Clone)]
struct NetNic(Net);

struct Known(Net, u32);

impl Nic for NetNic {
    fn register(&self, memory: &UserBuf, access: Access) -> io::Result<Box<dyn Registration>> {
        let mut state = self.0.state();
        let failing = state.manner.failing;
        // Buffers for packets, and words, are there.
        let ours = access.remote_write || memory.len() % super::super::config().buffer == 0;
        if state.roll(16) < failing && !ours {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        state.counts.registrations += 1;
        state.keys += 1;
        let key = state.keys;
        state.memory.insert(key, (*memory, access));
        Ok(Box::new(Known(self.0.clone(), key)))
    }
}

impl Registration for Known {
    fn local_key(&self) -> u32 {
        self.1
    }

    fn remote_key(&self) -> u32 {
        self.1
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.0.state().memory.remove(&self.1);
    }
}

/// `OPEN`: of endpoints whose devices work on each other's registered memory. `ATOMICS`: and do the atomics there.
pub struct NetDevice<const OPEN: bool = false, const ATOMICS: bool = false> {
    nic: NetNic,
    net: Net,
    pub me: usize,
    place: SocketAddr,
    tables: Vec<Arc<KeyTable>>,
}

/// The keys of a card, where programs choose them.
struct KeyTable {
    net: Net,
    card: usize,
}

impl Mirror for KeyTable {
    fn show(&self, key: u64, region: &Region) {
        let key = (self.card, key as u32);
        self.net.state().regions.insert(key, region.clone());
    }

    fn hide(&self, key: u64) {
        self.net.state().regions.remove(&(self.card, key as u32));
    }

    fn settle(&self, _: u64) -> bool {
        true // memory is touched under the lock, after the key was looked up
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl<const OPEN: bool, const ATOMICS: bool> NetDevice<OPEN, ATOMICS> {
    pub(super) fn new(net: &Net, me: usize, place: SocketAddr) -> Self {
        NetDevice {
            nic: NetNic(net.clone()),
            net: net.clone(),
            me,
            place,
            tables: Vec::new(),
        }
    }

    /// The memory of a domain on this device.
    pub fn registrations(&self) -> Arc<Registrations> {
        Arc::new(Registrations::new(Box::new(self.nic.clone())))
    }

    /// A domain that keeps registrations.
    pub fn cache(&self, monitor: &Arc<TestMonitor>) -> Arc<Cache> {
        Arc::new(Cache::new(Box::new(self.nic.clone()), monitor.clone(), ANY))
    }

    pub fn net(&self) -> Net {
        self.net.clone()
    }

    fn new_wire(&self, pair: usize) -> NetWire {
        NetWire {
            net: self.net.clone(),
            pair,
        }
    }
}

impl<const OPEN: bool, const ATOMICS: bool> Device for NetDevice<OPEN, ATOMICS> {
    type Wire = NetWire;

    fn nic(&self) -> &dyn Nic {
        &self.nic
    }

    fn publish(&mut self, regions: &Arc<Regions>, _: u64) {
        let table = Arc::new(KeyTable {
            net: self.net.clone(),
            card: self.me,
        });
        regions.reflect(&table);
        self.tables.push(table);
    }

    fn place(&self) -> SocketAddr {
        self.place
    }

    fn dial(&mut self) -> io::Result<NetWire> {
        let mut state = self.net.state();
        state.pairs.push(Pair {
            card: self.me,
            ..Pair::default()
        });
        let pair = state.pairs.len() - 1;
        drop(state);
        Ok(self.new_wire(pair))
    }

    fn request(&mut self) -> Option<Request<NetWire>> {
        let mut state = self.net.state();
        let pair = state.cards[self.me].requests.pop_front()?;
        let asker = state.pairs[pair].other?;
        let from = state.cards[state.pairs[asker].card].place;
        let mut data = state.pairs[pair].data.clone();
        data.resize(56, 0);
        drop(state);
        Some(Request {
            wire: self.new_wire(pair),
            from: from.map(|from| SocketAddr::new(from.ip(), 1)),
            data,
        })
    }

    fn watch(&mut self, wire: &NetWire, key: u64) -> io::Result<()> {
        let mut state = self.net.state();
        state.pairs[wire.pair].key = Some(key);
        if !state.pairs[wire.pair].news.is_empty() {
            state.cards[self.me].news.push(key);
        }
        Ok(())
    }

    fn look(&mut self, keys: &mut Vec<u64>) {
        keys.append(&mut self.net.state().cards[self.me].news);
    }

    fn trouble(&mut self) -> Option<EventKind> {
        self.net.state().cards[self.me].troubles.pop_front()
    }

    fn make_room(&mut self, completions: usize) -> io::Result<()> {
        let card = &mut self.net.state().cards[self.me];
        card.room = card.room.max(completions);
        Ok(())
    }

    unsafe fn post_receive(&mut self, id: u64, piece: Piece) -> io::Result<()> {
        let mut state = self.net.state();
        let most = state.manner.receives;
        let receives = &mut state.cards[self.me].receives;
        if most > 0 && receives.len() == most {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        receives.push_back((id, piece));
        Ok(())
    }

    fn wake(&self) {}

    fn quieten(&self) {}
}

impl<const OPEN: bool, const ATOMICS: bool> Completions for NetDevice<OPEN, ATOMICS> {
    fn poll(&mut self, room: &mut [Done]) -> io::Result<usize> {
        let mut state = self.net.state();
        state.advance();
        if state.manner.queues_fail {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let done = &mut state.cards[self.me].done;
        let count = done.len().min(room.len());
        for (place, done) in room.iter_mut().zip(done.drain(..count)) {
            *place = done;
        }
        Ok(count)
    }

    fn notify(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wake_fd(&self) -> RawFd {
        -1
    }
}

impl<const OPEN: bool, const ATOMICS: bool> Drop for NetDevice<OPEN, ATOMICS> {
    fn drop(&mut self) {
        let mut state = self.net.state();
        let card = &mut state.cards[self.me];
        card.closed = true;
        for pair in core::mem::take(&mut card.requests) {
            state.reject(pair, &[]);
        }
    }
}

pub struct NetWire {
    net: Net,
    pair: usize,
}

impl Connection for NetWire {
    fn resolve_address(&mut self, _: Option<&SocketAddr>, to: &SocketAddr) -> io::Result<()> {
        let mut state = self.net.state();
        state.pairs[self.pair].to = Some(*to);
        state.tell(self.pair, EventKind::AddressResolved, &[]);
        Ok(())
    }

    fn resolve_route(&mut self) -> io::Result<()> {
        self.net.state().tell(self.pair, EventKind::RouteResolved, &[]);
        Ok(())
    }

    fn connect(&mut self, data: &[u8]) -> io::Result<()> {
        assert!(data.len() <= 56, "more than a request carries");
        let mut state = self.net.state();
        let to = state.pairs[self.pair].to;
        let there = state.cards.iter().rposition(|card| card.place == to && !card.closed);
        let Some(card) = there else {
            state.tell(self.pair, EventKind::NobodyThere, &[]);
            return Ok(());
        };
        let other = state.pairs.len();
        state.pairs.push(Pair {
            card,
            other: Some(self.pair),
            data: data.to_vec(),
            ..Pair::default()
        });
        state.pairs[self.pair].other = Some(other);
        state.cards[card].requests.push_back(other);
        Ok(())
    }

    fn accept(&mut self, data: &[u8]) -> io::Result<()> {
        let mut state = self.net.state();
        let asker = state.pairs[self.pair].other.unwrap();
        if state.pairs[asker].gone {
            state.tell(self.pair, EventKind::Failed, &[]);
            return Ok(());
        }
        for (pair, data) in [(asker, data), (self.pair, &[])] {
            let mut data = data.to_vec();
            data.resize(196, 0);
            state.pairs[pair].connected = true;
            state.tell(pair, EventKind::Established, &data);
        }
        Ok(())
    }

    fn reject(&mut self, data: &[u8]) {
        self.net.state().reject(self.pair, data);
    }

    fn disconnect(&mut self) {
        self.net.state().disconnect(self.pair);
    }

    fn news(&mut self) -> Option<News> {
        self.net.state().pairs[self.pair].news.pop_front()
    }
}

impl QueuePair for NetWire {
    type Connection = NetWire;

    fn connection(&mut self) -> &mut NetWire {
        self
    }

    fn make_pair(&mut self, sizes: &Sizes) -> io::Result<PairMade> {
        let mut state = self.net.state();
        if state.manner.refuses_inline && sizes.inline as usize > INLINE {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        state.pairs[self.pair].sizes = Some(*sizes);
        Ok(PairMade {
            number: self.pair as u32,
            inline: INLINE as u32,
        })
    }

    unsafe fn post_sends(&mut self, requests: &[rdma::Request<'_>]) -> Result<(), Stopped> {
        for rdma::Request { work, pieces } in requests {
            // SAFETY: forwarded.
            unsafe { self.post(work, pieces) };
        }
        Ok(())
    }
}

impl NetWire {
    /// # Safety
    /// As `post_sends`.
    unsafe fn post(&mut self, work: &Work, pieces: &[Piece]) {
        let mut state = self.net.state();
        let sizes = state.pairs[self.pair].sizes.expect("a queue pair");
        let bytes = match work.inline {
            false => Vec::new(),
            true => {
                let len = pieces.iter().map(|piece| piece.len as usize).sum::<usize>();
                assert!(len <= INLINE && matches!(work.opcode, Opcode::Send | Opcode::Write));
                let copy = |piece: &Piece| {
                    // SAFETY: bytes that are lent until this returns, as the caller promised.
                    unsafe { core::slice::from_raw_parts(piece.addr as *const u8, piece.len as usize) }.to_vec()
                };
                pieces.iter().flat_map(copy).collect()
            }
        };
        let pair = &mut state.pairs[self.pair];
        assert!(
            pair.posted.len() < sizes.sends as usize,
            "more requests than there is room for"
        );
        assert!(pieces.len() <= sizes.send_pieces as usize);
        let (id, broken) = (work.id, pair.broken);
        match work.opcode {
            Opcode::Send => state.counts.sends += 1,
            Opcode::Write => state.counts.writes += 1,
            Opcode::Read => state.counts.reads += 1,
            Opcode::FetchAdd(_) | Opcode::CompareSwap { .. } => state.counts.atomics += 1,
        }
        state.counts.inline += usize::from(work.inline);
        if broken {
            state.fail(self.pair, id, Failure::Flushed);
        } else {
            let posted = Posted {
                work: *work,
                pieces: pieces.to_vec(),
                bytes,
                is_done: false,
            };
            state.pairs[self.pair].posted.push_back(posted);
        }
    }
}

impl Drop for NetWire {
    fn drop(&mut self) {
        let mut state = self.net.state();
        state.disconnect(self.pair);
        let Pair { sizes, other, gone, .. } = &state.pairs[self.pair];
        if sizes.is_none() && other.is_some() && !gone {
            state.reject(self.pair, &[]);
        }
        let pair = &mut state.pairs[self.pair];
        pair.gone = true;
        pair.news.clear();
    }
}
