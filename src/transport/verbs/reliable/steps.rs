//! What a read or write of a peer's memory is made of: each request moves bytes between one piece of theirs and one of
//! ours.
//!
//! Numbers only. Called by `fetch` for long messages and by `one_sided` for regions.

use crate::engine::op::RemotePart;
use crate::engine::port::Remote;
use crate::util::user::{UserBuf, UserIov};

/// The most bytes of one request: less than any device can do, which is 2^31.
const LONGEST: usize = 1 << 30;

/// A piece of a peer's memory, as its device knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Theirs {
    pub addr: u64,
    pub len: u64,
    pub key: u32,
}

impl Theirs {
    pub(super) const SIZE: usize = 20;

    /// As part of a `Remote`.
    pub(super) fn encode(&self) -> [u8; Theirs::SIZE] {
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

    /// The pieces of memory that a peer has exposed. None: it says nonsense.
    pub(super) fn of_remote(remote: &Remote) -> Option<Vec<Theirs>> {
        remote.bytes().chunks(Theirs::SIZE).map(Theirs::decode).collect()
    }

    /// The pieces of registered memory. None: a key that is no device's.
    pub(super) fn of_regions(parts: &[RemotePart]) -> Option<Vec<Theirs>> {
        let theirs = |part: &RemotePart| {
            Some(Theirs {
                addr: part.addr,
                len: part.len as u64,
                key: u32::try_from(part.key).ok()?,
            })
        };
        parts.iter().map(theirs).collect()
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub remote: (u64, u32),
    pub ours: UserBuf,
    /// Of which piece of our memory that is a part; empty ones are not counted.
    pub piece: usize,
}

/// The requests that move all of `local` from or to what lies behind the first `skip` bytes of theirs. None: theirs is
/// shorter.
pub(super) fn steps(theirs: &[Theirs], skip: usize, local: &UserIov) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut ours = (0..).zip(local.parts().iter().filter(|part| !part.is_empty()).copied());
    let (mut piece, mut place) = (0, UserBuf::default());
    let mut skip = skip as u64;
    for theirs in theirs {
        let before = skip.min(theirs.len);
        skip -= before;
        let (mut addr, mut left) = (theirs.addr.checked_add(before)?, theirs.len - before);
        while left > 0 {
            if place.is_empty() {
                match ours.next() {
                    Some(next) => (piece, place) = next,
                    None => return Some(steps),
                }
            }
            let now = place.len().min(LONGEST).min(usize::try_from(left).unwrap_or(LONGEST));
            steps.push(Step {
                remote: (addr, theirs.key),
                ours: place.part(0, now),
                piece,
            });
            place = place.part(now, usize::MAX);
            addr = addr.checked_add(now as u64)?;
            left -= now as u64;
        }
    }
    (place.is_empty() && ours.next().is_none()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::user::Lent;

    fn pieces(lens: &[u64]) -> Vec<Theirs> {
        let pieces = (1u32..).zip(lens).map(|(key, len)| Theirs {
            addr: u64::from(key) * 1_000_000,
            len: *len,
            key,
        });
        pieces.collect()
    }

    /// All bytes, once, from where they are to where they belong, whatever the pieces.
    #[test]
    fn each_byte_is_moved_once() {
        let (theirs, total) = ([10u64, 0, 7, 30], 47);
        for cuts in [&[47][..], &[1, 46], &[0, 20, 27], &[10, 7, 20, 10]] {
            let local = Lent::new(cuts, 0).iov();
            for (at, len) in [(0, total), (3, 30), (10, 7), (17, 30), (46, 1), (5, 0)] {
                let local = local.part(at, len);
                let pieces_of_ours: Vec<UserBuf> =
                    local.parts().iter().filter(|part| !part.is_empty()).copied().collect();
                let mut place = 0;
                for step in steps(&pieces(&theirs), at, &local).unwrap() {
                    let (base, key) = step.remote;
                    let first: u64 = theirs[..key as usize - 1].iter().sum();
                    assert_eq!(first + base - u64::from(key) * 1_000_000, (at + place) as u64);
                    assert_eq!(step.ours.addr(), local.address(place));
                    let within = step.ours.addr() - pieces_of_ours[step.piece].addr();
                    assert!(within + step.ours.len() <= pieces_of_ours[step.piece].len());
                    place += step.ours.len();
                }
                assert_eq!(place, len, "{cuts:?} {at} {len}");
            }
            assert_eq!(steps(&pieces(&theirs[..3]), 0, &local.part(0, 18)), None);
            assert_eq!(steps(&pieces(&[u64::MAX, 3]), 0, &local.part(0, 0)), Some(Vec::new()));
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
        assert_eq!(Theirs::of_remote(&remote), Some(vec![theirs]));
        assert_eq!(steps(&[theirs], 0, &Lent::new(&[10], 0).iov()), None);
        assert_eq!(Theirs::of_remote(&Remote::new(&[1; 7]).unwrap()), None);
    }

    #[test]
    fn a_device_has_no_long_keys() {
        let part = |key| RemotePart { addr: 5, len: 6, key };
        let theirs = Theirs {
            addr: 5,
            len: 6,
            key: 7,
        };
        assert_eq!(Theirs::of_regions(&[part(7)]), Some(vec![theirs]));
        assert_eq!(Theirs::of_regions(&[part(7), part(1 << 32)]), None);
    }
}
