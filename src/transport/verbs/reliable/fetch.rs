//! Long messages: their memory is registered for as long as they take, and read by the device of whoever receives them.
//!
//! Registered anew for each, so that what the device knows is what the application has mapped at that moment. Part of
//! `Reliable`.

use super::Reliable;
use super::link::{Fetch, Purpose};
use super::seam::Device;
use crate::engine::port::{Exposed, ExposedName, Get, PeerId, Remote, Token};
use crate::sys::rdma::{Access, Piece};
use crate::transport::verbs::seam::{Nic, Registration};
use crate::util::user::{UserBuf, UserIov};
use std::collections::HashMap;
use std::io;

/// The longest read of one request: less than any device can do, which is 2^31.
const LONGEST: usize = 1 << 30;

/// Memory that peers may fetch from.
#[derive(Default)]
pub(super) struct Exposures {
    last: u64,
    open: HashMap<u64, Vec<Box<dyn Registration>>>,
}

impl Exposures {
    fn add(&mut self, registrations: Vec<Box<dyn Registration>>) -> u64 {
        self.last += 1;
        self.open.insert(self.last, registrations);
        self.last
    }

    pub(super) fn end(&mut self, id: u64) {
        self.open.remove(&id);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

/// A piece of a peer's memory: what a `Remote` is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Theirs {
    addr: u64,
    len: u64,
    key: u32,
}

impl Theirs {
    const SIZE: usize = 20;

    fn encode(&self) -> [u8; Theirs::SIZE] {
        let mut bytes = [0; Theirs::SIZE];
        let all = self.addr.to_le_bytes().into_iter().chain(self.len.to_le_bytes());
        let all = all.chain(self.key.to_le_bytes());
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Theirs> {
        let (addr, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        Some(Theirs {
            addr: u64::from_le_bytes(*addr),
            len: u64::from_le_bytes(*len),
            key: u32::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// A request of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    remote: (u64, u32),
    into: UserBuf,
}

/// What a fetch is made of: each request reads one piece of theirs into one of ours. None: theirs is shorter.
fn plan(remote: &Remote, local: &UserIov, at: usize, len: usize) -> Option<Vec<Read>> {
    let mut reads = Vec::new();
    let mut ours = local.slices(at, len).filter(|part| !part.is_empty());
    let mut place = UserBuf::default();
    let mut skip = at as u64;
    for theirs in remote.bytes().chunks(Theirs::SIZE) {
        let theirs = Theirs::decode(theirs)?;
        let before = skip.min(theirs.len);
        skip -= before;
        let (mut addr, mut left) = (theirs.addr.checked_add(before)?, theirs.len - before);
        while left > 0 {
            if place.is_empty() {
                match ours.next() {
                    Some(next) => place = next,
                    None => return Some(reads),
                }
            }
            let now = place.len().min(LONGEST).min(usize::try_from(left).unwrap_or(LONGEST));
            reads.push(Read {
                remote: (addr, theirs.key),
                into: place.part(0, now),
            });
            place = place.part(now, usize::MAX);
            addr = addr.checked_add(now as u64)?;
            left -= now as u64;
        }
    }
    (place.is_empty() && ours.next().is_none()).then_some(reads)
}

fn register(nic: &dyn Nic, iov: &UserIov, access: Access) -> io::Result<Vec<Box<dyn Registration>>> {
    let parts = iov.parts().iter().filter(|part| !part.is_empty());
    parts.map(|part| nic.register(part, access)).collect()
}

impl<D: Device> Reliable<D> {
    pub(super) fn expose_memory(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        // What a region is made of may be closed while it is read. To oneself there is no connection to read by.
        let is_self = self.peers.get(to).is_some_and(|peer| peer.is_self);
        if is_self || !matches!(name, ExposedName::Sent(_)) {
            self.turn_is_due = true;
            return None;
        }
        let access = Access {
            remote_read: true,
            ..Access::default()
        };
        let registrations = match register(self.device.nic(), iov, access) {
            Ok(registrations) => registrations,
            Err(error) => {
                self.tell_memory("a long message, which is sent in packets", &error);
                return None;
            }
        };
        let parts = iov.parts().iter().filter(|part| !part.is_empty());
        let theirs = parts.zip(&registrations).flat_map(|(part, registration)| {
            Theirs {
                addr: part.addr() as u64,
                len: part.len() as u64,
                key: registration.remote_key(),
            }
            .encode()
        });
        let remote = Remote::new(&theirs.collect::<Vec<u8>>())?;
        let id = Some(self.exposures.add(registrations));
        Some(Exposed { remote, id })
    }

    pub(super) fn fetch(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        (at, len): (usize, usize),
        token: Token,
    ) -> Get {
        let Some(peer) = self.peers.get_mut(from) else {
            return Get::Unsupported;
        };
        if peer.history.has_died() {
            return Get::Gone;
        }
        let Some(link) = peer.link.as_deref_mut() else {
            self.dial_if_idle(from);
            return Get::Full;
        };
        let Some(reads) = plan(remote, local, at, len).filter(|reads| reads.len() <= link.room()) else {
            return Get::Unsupported;
        };
        if !link.has_room(reads.len()) {
            return Get::Full;
        }
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        let memory = match register(self.device.nic(), &local.part(at, len), access) {
            Ok(memory) => memory,
            Err(error) => {
                self.tell_memory("a long message, which is sent in packets", &error);
                return Get::Unsupported;
            }
        };
        self.post_reads(from, &reads, local.part(at, len), memory, token)
    }

    fn post_reads(
        &mut self,
        from: PeerId,
        reads: &[Read],
        local: UserIov,
        memory: Vec<Box<dyn Registration>>,
        token: Token,
    ) -> Get {
        let Some(link) = self.peers.link(from) else {
            return Get::Full;
        };
        let parts: Vec<UserBuf> = local.parts().iter().filter(|part| !part.is_empty()).copied().collect();
        let keys: Vec<u32> = memory.iter().map(|registration| registration.local_key()).collect();
        let key = |read: &Read| {
            let mut known = parts.iter().zip(&keys);
            let within = known.find(|(part, _)| {
                let at = read.into.addr().checked_sub(part.addr());
                at.is_some_and(|at| at < part.len())
            });
            within.map_or(0, |(_, key)| *key)
        };
        let mut end = Some(Purpose::Fetch(Fetch { token, _memory: memory }));
        for (number, read) in (1..).zip(reads) {
            let purpose = match end.take_if(|_| number == reads.len()) {
                Some(end) => end,
                None => Purpose::Part,
            };
            let into = Piece {
                addr: read.into.addr() as u64,
                len: read.into.len() as u32,
                key: key(read),
            };
            if !link.read(read.remote, into, purpose) {
                // The connection has ended; the engine is told so.
                self.note_end(from);
                return Get::Later;
            }
        }
        match end {
            Some(_) => Get::Done, // nothing to read
            None => Get::Later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::user::Lent;

    fn remote(lens: &[u64]) -> Remote {
        let parts = (1u32..).zip(lens).map(|(key, len)| Theirs {
            addr: u64::from(key) * 1_000_000,
            len: *len,
            key,
        });
        Remote::new(&parts.flat_map(|part| part.encode()).collect::<Vec<u8>>()).unwrap()
    }

    /// All bytes, once, from where they are to where they belong, whatever the pieces.
    #[test]
    fn each_byte_is_read_once() {
        let (theirs, total) = ([10u64, 0, 7, 30], 47);
        for cuts in [&[47][..], &[1, 46], &[0, 20, 27], &[10, 7, 20, 10]] {
            let local = Lent::new(cuts, 0).iov();
            for (at, len) in [(0, total), (3, 30), (10, 7), (17, 30), (46, 1), (5, 0)] {
                let reads = plan(&remote(&theirs), &local, at, len).unwrap();
                let mut place = at;
                for read in reads {
                    let (base, key) = read.remote;
                    let first: u64 = theirs[..key as usize - 1].iter().sum();
                    assert_eq!(first + base - u64::from(key) * 1_000_000, place as u64);
                    assert_eq!(read.into.addr(), local.address(place));
                    place += read.into.len();
                }
                assert_eq!(place, at + len, "{cuts:?} {at} {len}");
            }
            assert_eq!(plan(&remote(&theirs[..3]), &local, 0, 18), None);
            assert_eq!(plan(&remote(&[u64::MAX, 3]), &local, 0, 0), Some(Vec::new()));
        }
    }

    #[test]
    fn a_peer_cannot_make_addresses_wrap() {
        let theirs = Theirs {
            addr: u64::MAX - 3,
            len: 10,
            key: 1,
        };
        let remote = Remote::new(&theirs.encode()).unwrap();
        assert_eq!(plan(&remote, &Lent::new(&[10], 0).iov(), 0, 10), None);
        let odd = Remote::new(&[1; 7]).unwrap();
        assert_eq!(plan(&odd, &Lent::new(&[1], 0).iov(), 0, 1), None);
    }
}
