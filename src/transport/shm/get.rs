//! Fetching from a peer's memory through the kernel (process_vm_readv).
//!
//! A process number may mean another process to us than to the peer that told it, when we live in different namespaces.
//! So before the first fetch a word is read at an address that the peer's header tells, and must hold its instance.
//! What the kernel refuses once is not tried again: the engine has the peer send instead.

use super::outbound::Outbound;
use super::peers::Reach;
use crate::engine::port::{Get, Remote};
use crate::sys::process_vm::{self, Range};
use crate::util::user::{IOV_LIMIT, UserIov};

/// A `Remote`, read: instance, process, count, then addresses and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    instance: u64,
    pid: u32,
    count: u32,
    ranges: [Range; IOV_LIMIT],
}

pub fn expose(instance: u64, pid: u32, iov: &UserIov) -> Remote {
    let head = [instance, u64::from(pid) | (iov.parts().len() as u64) << 32];
    let ranges = iov
        .parts()
        .iter()
        .flat_map(|part| [part.addr() as u64, part.len() as u64]);
    let mut bytes = [0; Remote::SIZE];
    for (place, word) in bytes.chunks_exact_mut(8).zip(head.into_iter().chain(ranges)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    Remote { bytes }
}

fn parse(remote: &Remote) -> Name {
    let mut words = [0u64; Remote::SIZE / 8];
    for (word, bytes) in words.iter_mut().zip(remote.bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    let [instance, who, rest @ ..] = words;
    let mut ranges = [Range { addr: 0, len: 0 }; IOV_LIMIT];
    for (range, pair) in ranges.iter_mut().zip(rest.chunks_exact(2)) {
        if let [addr, len] = *pair {
            *range = Range { addr, len };
        }
    }
    Name {
        instance,
        pid: who as u32,
        count: ((who >> 32) as u32).min(IOV_LIMIT as u32),
        ranges,
    }
}

/// Parts of `ranges` that hold `len` bytes from `at` on.
fn cut(ranges: impl Iterator<Item = Range>, at: u64, len: u64) -> ([Range; IOV_LIMIT], usize) {
    let (mut skip, mut left) = (at, len);
    let mut parts = [Range { addr: 0, len: 0 }; IOV_LIMIT];
    let mut count = 0;
    for range in ranges {
        let from = skip.min(range.len);
        skip -= from;
        let take = (range.len - from).min(left);
        left -= take;
        if let Some(part) = parts.get_mut(count).filter(|_| take > 0) {
            *part = Range {
                addr: range.addr.wrapping_add(from),
                len: take,
            };
            count += 1;
        }
    }
    (parts, count)
}

/// Reads the peer's instance out of its memory.
pub fn probe(out: &Outbound) -> Reach {
    let mut found = 0u64;
    let local = [Range {
        addr: (&raw mut found) as u64,
        len: 8,
    }];
    let remote = [Range {
        addr: out.probe(),
        len: 8,
    }];
    let Ok(pid) = i32::try_from(out.pid()) else {
        return Reach::Never;
    };
    // SAFETY: `found` is ours, and its eight bytes are the only ones named.
    match unsafe { process_vm::read(pid, &remote, &local) } {
        Ok(8) if found == out.instance() => Reach::Works,
        _ => Reach::Never,
    }
}

/// Whether the peer's memory can be read, now.
pub fn is_reached(out: &Outbound) -> bool {
    probe(out) == Reach::Works
}

/// Fetches; `instance` and `pid` are the peer's as its header has them, proven by `probe`.
pub fn get(instance: u64, pid: u32, remote: &Remote, local: &UserIov, at: usize, len: usize) -> Get {
    let name = parse(remote);
    if name.instance != instance || name.pid != pid {
        return Get::Gone;
    }
    let Ok(pid) = i32::try_from(pid) else {
        return Get::Unsupported;
    };
    let theirs = || name.ranges.iter().take(name.count as usize).copied();
    let ours = || {
        local.parts().iter().map(|part| Range {
            addr: part.addr() as u64,
            len: part.len() as u64,
        })
    };
    let total = theirs().fold(0u64, |total, range| total.saturating_add(range.len));
    let end = (local.len() as u64)
        .min(total)
        .min((at as u64).saturating_add(len as u64));
    let mut from = at as u64;
    while from < end {
        let (remote, remotes) = cut(theirs(), from, end - from);
        let (local, locals) = cut(ours(), from, end - from);
        let (remote, local) = (
            remote.get(..remotes).unwrap_or_default(),
            local.get(..locals).unwrap_or_default(),
        );
        // SAFETY: the operation's memory is valid until it has ended, as promised to `UserBuf`.
        match unsafe { process_vm::read(pid, remote, local) } {
            Ok(0) => return Get::Unsupported,
            Ok(copied) => from += copied as u64,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Get::Gone,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return Get::Unsupported,
        }
    }
    Get::Done
}

/// The other way: bytes of ours written into a peer's memory, both named as in a `Remote`.
pub struct Put {
    theirs: Name,
    ours: Name,
    pid: i32,
}

impl Put {
    /// None unless the names are of these endpoints, told by instance and process.
    pub fn new(remote: &Remote, local: &Remote, them: (u64, u32), us: (u64, u32)) -> Option<Put> {
        let (theirs, ours) = (parse(remote), parse(local));
        let right = (theirs.instance, theirs.pid) == them && (ours.instance, ours.pid) == us;
        let pid = i32::try_from(them.1).ok().filter(|_| right)?;
        Some(Put { theirs, ours, pid })
    }

    /// Writes bytes `at` to `at + len`; false if they could not all be written.
    pub fn put(&mut self, at: usize, len: usize) -> bool {
        let ranges = |name: &Name| name.ranges.into_iter().take(name.count as usize);
        let (mut from, end) = (at as u64, (at as u64).saturating_add(len as u64));
        while from < end {
            let (remote, remotes) = cut(ranges(&self.theirs), from, end - from);
            let (local, locals) = cut(ranges(&self.ours), from, end - from);
            let (remote, local) = (
                remote.get(..remotes).unwrap_or_default(),
                local.get(..locals).unwrap_or_default(),
            );
            // SAFETY: the peer named this memory to have it written, and waits for that.
            match unsafe { process_vm::write(self.pid, remote, local) } {
                Ok(0) => return false,
                Ok(copied) => from += copied as u64,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::user::UserBuf;

    fn iov(memory: &mut [u8], cuts: &[usize]) -> UserIov {
        let mut at = 0;
        UserIov::new(cuts.iter().map(|len| {
            // SAFETY: the parts lie within `memory`, which outlives the iov in every test.
            let part = unsafe { UserBuf::new(memory[at..at + len].as_mut_ptr(), *len) };
            at += len;
            part
        }))
        .unwrap()
    }

    #[test]
    fn pieces_meet_pieces() {
        let pid = std::process::id();
        let mut from: Vec<u8> = (0..200).collect();
        for (theirs, ours, at, len, expected) in [
            (&[200][..], &[200][..], 0, 200, 0..200),
            (&[10, 90, 100], &[50, 0, 1, 149], 0, 200, 0..200),
            (&[10, 90, 100], &[50, 50], 7, 1000, 7..100),
            (&[3, 3, 3, 3], &[200], 2, 9, 2..11),
            (&[10], &[10], 10, 5, 0..0),
            (&[10], &[10], 500, 5, 0..0),
        ] {
            let remote = expose(5, pid, &iov(&mut from, theirs));
            let mut to = [255u8; 200];
            let local = iov(&mut to, ours);
            assert_eq!(get(5, pid, &remote, &local, at, len), Get::Done);
            for (place, byte) in to.iter().enumerate() {
                let wanted = if expected.contains(&place) { place as u8 } else { 255 };
                assert_eq!(*byte, wanted, "{theirs:?} {ours:?} {at} {place}");
            }
        }
    }

    #[test]
    fn names_that_cannot_be_fetch_nothing() {
        let pid = std::process::id();
        let mut to = [0u8; 16];
        let local = iov(&mut to, &[16]);
        let mut good = expose(5, pid, &local);
        assert_eq!(get(6, pid, &good, &local, 0, 16), Get::Gone);
        assert_eq!(get(5, pid ^ 1, &good, &local, 0, 16), Get::Gone);
        good.bytes[16..24].copy_from_slice(&8u64.to_le_bytes());
        assert_eq!(get(5, pid, &good, &local, 0, 16), Get::Unsupported);
        let wild = Remote {
            bytes: [255; Remote::SIZE],
        };
        assert_eq!(get(u64::MAX, u32::MAX, &wild, &local, 0, 16), Get::Unsupported);
    }
}
