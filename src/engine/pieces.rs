//! Lists of remote pieces in packets, and the lookup from addresses and keys to memory of registered regions.
//!
//! Memory that was looked up must not be kept beyond one call of the engine, as a region may be closed between two
//! calls; a lease may.

use super::op::{Error, RemoteIov, RemotePart};
use super::peer::Malformed;
use super::port::{ExposedName, PeerId};
use super::state::Core;
use super::wire::{Header, flag};
use crate::util::regions::{Denied, Lease, Rights};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};

impl Header {
    /// The one piece of memory that a request without a list names.
    #[inline(always)]
    pub(super) fn piece(&self, len: usize) -> RemotePart {
        RemotePart {
            addr: self.tag,
            len,
            key: self.data,
        }
    }
}

/// Bytes of a piece in a list: address, length and key.
const PIECE: usize = 24;
/// Bytes of the longest list.
pub(super) const LIST: usize = IOV_LIMIT * PIECE;

/// Memory of regions that was looked up for one access, in order.
#[derive(Debug, Default)]
pub(super) struct RegionMemory {
    parts: [UserIov; IOV_LIMIT],
    count: usize,
    /// The first remote piece whose accesses are counted, or else the first of all.
    pub part: RemotePart,
    /// Whether accesses to any of it are counted, and so must be reported.
    pub counted: bool,
}

impl RegionMemory {
    pub(super) fn parts(&self) -> &[UserIov] {
        self.parts.get(..self.count).unwrap_or_default()
    }

    /// The name by which a peer to which this is exposed may ask for help with the copy.
    pub(super) fn name(&self) -> ExposedName {
        match self.parts() {
            [_] => ExposedName::Region(self.part),
            _ => ExposedName::Nothing,
        }
    }

    /// All of it as one buffer, if it has no more pieces than a buffer may have.
    pub(super) fn one(&self) -> Option<UserIov> {
        match self.parts() {
            [part] => Some(*part),
            parts => UserIov::new(parts.iter().flat_map(|part| part.parts()).copied()),
        }
    }

    pub(super) fn write(&self, mut bytes: &[u8]) {
        for part in self.parts() {
            let (now, rest) = bytes.split_at(part.len().min(bytes.len()));
            part.write(0, now);
            bytes = rest;
        }
    }

    pub(super) fn read(&self, mut bytes: &mut [u8]) {
        for part in self.parts() {
            let len = part.len().min(bytes.len());
            let (now, rest) = bytes.split_at_mut(len);
            part.read(0, now);
            bytes = rest;
        }
    }
}

pub(super) fn write_list(remote: &RemoteIov, into: &mut Vec<u8>) {
    for part in remote.parts() {
        for word in [part.addr, part.len as u64, part.key] {
            into.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// The remote pieces that a packet names, and the rest of its body. `len` is the length if the header names a single
/// piece.
pub(super) fn read_list<'a>(header: &Header, body: &'a [u8], len: usize) -> Result<(RemoteIov, &'a [u8]), Malformed> {
    if header.flags & flag::LIST == 0 {
        let (addr, key) = (header.tag, header.data);
        return Ok((RemoteIov::one(RemotePart { addr, len, key }), body));
    }
    let count = usize::try_from(header.tag).map_err(|_| Malformed)?;
    if count > IOV_LIMIT {
        return Err(Malformed);
    }
    let (list, rest) = body.split_at_checked(count * PIECE).ok_or(Malformed)?;
    let remote = RemoteIov::new(list.chunks_exact(PIECE).map(piece)).ok_or(Malformed)?;
    Ok((remote, rest))
}

fn piece(bytes: &[u8]) -> RemotePart {
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    let [addr, len, key] = words;
    // No region contains this length, so the lookup refuses it.
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    RemotePart { addr, len, key }
}

fn denied(why: Denied) -> Error {
    match why {
        Denied::Key => Error::NoKey,
        Denied::Rights => Error::NoRights,
        Denied::Range => Error::OutOfRange,
    }
}

/// The parts of the pieces that hold `len` bytes from offset `at` on.
fn parts_within(remote: &RemoteIov, at: usize, len: usize) -> impl Iterator<Item = RemotePart> + '_ {
    let (mut skip, mut left) = (at, len);
    let whole = at == 0 && len == remote.len();
    remote.parts().iter().filter_map(move |part| {
        let from = skip.min(part.len);
        skip -= from;
        let take = (part.len - from).min(left);
        left -= take;
        // Access to empty pieces is checked too, when all pieces are looked up.
        (take > 0 || whole).then(|| RemotePart {
            addr: part.addr.wrapping_add(from as u64),
            len: take,
            key: part.key,
        })
    })
}

impl Core {
    /// The memory of one piece, and whether accesses to it are counted.
    #[inline]
    pub(super) fn find_region(&self, part: &RemotePart, wanted: Rights) -> Result<(UserIov, bool), Error> {
        let open = self.exposed_regions.as_ref().ok_or(Error::NoKey)?;
        match open.regions.find(open.endpoint, part.key, part.addr, part.len, wanted) {
            Ok(found) => Ok((found.memory, found.counted || open.counted)),
            Err(why) => Err(denied(why)),
        }
    }

    /// As `find_region`, for a body that comes over several polls.
    pub(super) fn lease_region(&self, part: &RemotePart, wanted: Rights) -> Result<(Lease, bool), Error> {
        let open = self.exposed_regions.as_ref().ok_or(Error::NoKey)?;
        let lease = open.regions.lease(open.endpoint, part.key, part.addr, part.len, wanted);
        let (lease, counted) = lease.map_err(denied)?;
        Ok((lease, counted || open.counted))
    }

    /// As `find_region`, but only for memory in one piece, and without a reason for a refusal.
    #[inline]
    pub(super) fn find_region_in_one_piece(&self, part: &RemotePart, wanted: Rights) -> Option<(UserBuf, bool)> {
        let open = self.exposed_regions.as_ref()?;
        let found = open
            .regions
            .find_one(open.endpoint, part.key, part.addr, part.len, wanted);
        found.map(|(memory, counted)| (memory, counted || open.counted))
    }

    /// The memory of `len` bytes from offset `at` on; or the first piece to which access is denied.
    pub(super) fn find_regions(
        &self,
        remote: &RemoteIov,
        at: usize,
        len: usize,
        wanted: Rights,
    ) -> Result<RegionMemory, (RemotePart, Error)> {
        let mut found = RegionMemory::default();
        let mut any_counted = false;
        for part in parts_within(remote, at, len) {
            let (memory, counted) = self.find_region(&part, wanted).map_err(|error| (part, error))?;
            if found.count == 0 || counted && !any_counted {
                found.part = part;
            }
            any_counted |= counted;
            if let Some(place) = found.parts.get_mut(found.count) {
                *place = memory;
                found.count += 1;
            }
        }
        found.counted = any_counted;
        Ok(found)
    }
}

/// The number of a refusal in packets.
pub(super) fn refusal_code(error: Error) -> u64 {
    match error {
        Error::NoKey => 1,
        Error::NoRights => 2,
        Error::OutOfRange => 3,
        Error::NoSuchAtomic => 4,
        Error::Canceled => 5,
        _ => 0,
    }
}

pub(super) fn refusal_error(code: u64) -> Error {
    match code {
        1 => Error::NoKey,
        2 => Error::NoRights,
        3 => Error::OutOfRange,
        4 => Error::NoSuchAtomic,
        5 => Error::Canceled,
        _ => Error::Protocol,
    }
}

/// The answer that operation `id` failed.
pub(super) fn done_failed(id: u32, error: Error) -> Header {
    Header {
        flags: flag::FAILED,
        data: refusal_code(error),
        ..super::message::done_header(id)
    }
}

/// A denied access.
pub(super) struct Refusal {
    pub from: PeerId,
    pub part: RemotePart,
    pub error: Error,
}
