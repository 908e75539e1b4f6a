//! Copying from and to a peer's memory by the kernel (process_vm_readv, process_vm_writev), where that memory was
//! exposed by name (`Remote`). Regions are copied by `direct_access`.
//!
//! The caller has proved that the process is the peer's (`proof`). If the kernel refuses, the engine has the peer send
//! the bytes instead. Called by `ShmTransport` and `dual_copy`.

use crate::engine::op::RemotePart;
use crate::engine::port::{ExposedName, Get, Remote};
use crate::sys::process_vm::{self, Range};
use crate::util::small_array::{IOV_LIMIT, SmallArray};
use crate::util::user::{UserBuf, UserIov};
use std::io;

/// Pieces of memory that are copied as if they were one.
type Ranges = SmallArray<Range>;

fn ranges_of(iov: &UserIov) -> Ranges {
    let range = |part: &UserBuf| Range {
        addr: part.addr() as u64,
        len: part.len() as u64,
    };
    match iov.only() {
        Some(part) => Ranges::One(range(&part)),
        None => Ranges::new(iov.parts().iter().map(range)).unwrap_or_default(),
    }
}

/// A peer may have written any lengths.
fn length(ranges: &Ranges) -> u64 {
    let lens = ranges.all().iter().map(|range| range.len);
    lens.fold(0, u64::saturating_add)
}

/// What makes up `len` bytes from byte `at` on.
fn part(ranges: &Ranges, at: u64, len: u64) -> Ranges {
    let (mut skip, mut left) = (at, len);
    let mut take = |range: &Range| {
        let from = skip.min(range.len);
        skip -= from;
        let take = (range.len - from).min(left);
        left -= take;
        (take > 0).then_some(Range {
            addr: range.addr.wrapping_add(from),
            len: take,
        })
    };
    match ranges.only() {
        Some(range) => take(&range).map_or(Ranges::None, Ranges::One),
        None => Ranges::new(ranges.all().iter().filter_map(take)).unwrap_or_default(),
    }
}

/// What a `Remote` says. Its words: the instance; kind of name, count of ranges and length of the first; its address;
/// length and address of each further range; the name; for how long. One range without a name fits the line of a
/// record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParsedRemote {
    instance: u64,
    ranges: Ranges,
    named: ExposedName,
    lent: Option<Lent>,
}

/// Memory of a region, which may be closed before a peer has copied: how many had been when it was exposed. It is a
/// peer's to read as long as that has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lent(pub u64);

// Kinds of name. 0 is `ExposedName::Nothing`.
const SENT: u8 = 1;
const REGION: u8 = 2;
/// Beside the kind: the memory is `Lent`.
const LENT: u8 = 0x80;

const WORDS: usize = 1 + 2 * IOV_LIMIT + 2 + 1;
const _: () = assert!(8 * WORDS <= Remote::MAX);
/// Bits of the first length, over which the word has count and kind.
const FIRST_LEN: u32 = 48;

/// None: there is no memory.
pub(super) fn expose(instance: u64, iov: &UserIov, name: ExposedName, lent: Option<Lent>) -> Option<Remote> {
    let (kind, name) = match name {
        ExposedName::Nothing => (0, &[][..]),
        ExposedName::Sent(number) => (SENT, &[number][..]),
        ExposedName::Region(part) => (REGION, &[part.key, part.addr][..]),
    };
    let (first, more) = iov.parts().split_first()?;
    let len = Some(first.len() as u64).filter(|len| len >> FIRST_LEN == 0)?;
    let kind = if lent.is_some() { kind | LENT } else { kind };
    let shape = u64::from_le_bytes([0, 0, 0, 0, 0, 0, iov.parts().len() as u8, kind]);
    let (mut bytes, mut used) = ([0; Remote::MAX], 0);
    let mut write = |word: u64| {
        if let Some(place) = bytes.get_mut(used..used + 8) {
            place.copy_from_slice(&word.to_le_bytes());
            used += 8;
        }
    };
    write(instance);
    write(shape | len);
    write(first.addr() as u64);
    for part in more {
        write(part.len() as u64);
        write(part.addr() as u64);
    }
    name.iter().copied().for_each(&mut write);
    lent.iter().for_each(|lent| write(lent.0));
    Remote::new(bytes.get(..used)?)
}

/// A peer may write anything. What it leaves out is 0.
fn parse(remote: &Remote) -> ParsedRemote {
    let mut words = remote
        .bytes()
        .chunks_exact(8)
        .map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
    let mut next = || words.next().unwrap_or(0);
    let (instance, shape) = (next(), next());
    let [.., count, kind] = shape.to_le_bytes();
    let first_len = shape & ((1 << FIRST_LEN) - 1);
    let mut range = |at: u8| {
        let len = if at == 0 { first_len } else { next() };
        Range { addr: next(), len }
    };
    let ranges = match count {
        1 => Ranges::One(range(0)),
        count => Ranges::new((0..count.min(IOV_LIMIT as u8)).map(range)).unwrap_or_default(),
    };
    let named = match kind & !LENT {
        SENT => ExposedName::Sent(next()),
        REGION => usize::try_from(length(&ranges)).map_or(ExposedName::Nothing, |len| {
            ExposedName::Region(RemotePart {
                key: next(),
                addr: next(),
                len,
            })
        }),
        _ => ExposedName::Nothing,
    };
    ParsedRemote {
        instance,
        ranges,
        named,
        lent: (kind & LENT != 0).then(|| Lent(next())),
    }
}

/// The name by which the owner of this memory looks it up again.
pub(super) fn named(remote: &Remote) -> ExposedName {
    parse(remote).named
}

/// Whether it is a region's, and for how long.
pub(super) fn lent(remote: &Remote) -> Option<Lent> {
    let kind = remote.bytes().get(15)?;
    (kind & LENT != 0).then(|| parse(remote).lent)?
}

/// Copies bytes `from` to `end` of what both sides name, by calls that may copy less than they were asked to.
fn copy(
    theirs: &Ranges,
    ours: &Ranges,
    mut from: u64,
    end: u64,
    call: impl Fn(&[Range], &[Range]) -> io::Result<usize>,
) -> Get {
    while from < end {
        let (remote, local) = (part(theirs, from, end - from), part(ours, from, end - from));
        match call(remote.all(), local.all()) {
            Ok(0) => return Get::Unsupported,
            Ok(copied) => from += copied as u64,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Get::Gone,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return Get::Unsupported,
        }
    }
    Get::Done
}

/// Copies bytes `at` to `at + len` of the peer's memory to the same place in ours. `instance` and `pid` are the peer's,
/// and proved.
pub(super) fn get(instance: u64, pid: u32, remote: &Remote, local: &UserIov, at: usize, len: usize) -> Get {
    let name = parse(remote);
    if name.instance != instance {
        return Get::Gone;
    }
    let Ok(pid) = i32::try_from(pid) else {
        return Get::Unsupported;
    };
    let end = (at as u64).saturating_add(len as u64);
    let end = end.min(local.len() as u64).min(length(&name.ranges));
    copy(&name.ranges, &ranges_of(local), at as u64, end, |theirs, ours| {
        // SAFETY: the local memory is valid until the operation has ended, as was promised to `UserBuf::new`.
        unsafe { process_vm::read(pid, theirs, ours) }
    })
}

/// A peer's memory, into which bytes of ours are written.
pub(super) struct PeerWindow {
    name: ParsedRemote,
    pid: i32,
}

impl PeerWindow {
    /// None unless the memory is named as that of this instance. The process is the instance's, and proved.
    pub(super) fn of(remote: &Remote, instance: u64, pid: u32) -> Option<PeerWindow> {
        let name = parse(remote);
        let pid = i32::try_from(pid).ok().filter(|_| name.instance == instance)?;
        Some(PeerWindow { name, pid })
    }

    /// Copies bytes `at` to `at + len` of ours to the same place there. False: not all were copied.
    pub(super) fn put(&self, ours: &UserIov, at: usize, len: usize) -> bool {
        let end = (at as u64).saturating_add(len as u64);
        let put = copy(&self.name.ranges, &ranges_of(ours), at as u64, end, |theirs, ours| {
            // SAFETY: our memory is only read; the peer named its own in a request to have it written, and waits for
            // that.
            unsafe { process_vm::write(self.pid, theirs, ours) }
        });
        put == Get::Done
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Form;
    use super::*;
    use crate::engine::wire::{Header, Packet};
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
            let remote = expose(5, &iov(&mut from, theirs), ExposedName::Nothing, None).unwrap();
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
        let good = expose(5, &local, ExposedName::Nothing, None).unwrap();
        assert_eq!(get(6, pid, &good, &local, 0, 16), Get::Gone);
        let mut bytes = good.bytes().to_vec();
        bytes[16..24].copy_from_slice(&8u64.to_le_bytes());
        let unmapped = Remote::new(&bytes).unwrap();
        assert_eq!(get(5, pid, &unmapped, &local, 0, 16), Get::Unsupported);
        for len in 1..good.bytes().len() {
            let short = Remote::new(&good.bytes()[..len]).unwrap();
            let expected = if len < 8 { Get::Gone } else { Get::Unsupported };
            let got = get(5, pid, &short, &local, 0, 16);
            // Without a length there is nothing to copy.
            assert!(got == expected || len < 16 && got == Get::Done, "{len}: {got:?}");
        }
        assert_eq!(to, [0; 16]);
        let wild = Remote::from([255; Remote::MAX]);
        assert_eq!(get(u64::MAX, u32::MAX, &wild, &local, 0, 16), Get::Unsupported);
    }

    #[test]
    fn a_name_says_how_it_is_looked_up() {
        let mut memory = vec![0; 70];
        for cuts in [&[70][..], &[3, 60, 7], &[0, 1, 68, 1]] {
            let iov = iov(&mut memory, cuts);
            let part = RemotePart {
                key: 1 << 63,
                addr: u64::MAX - 5,
                len: 70,
            };
            for name in [
                ExposedName::Nothing,
                ExposedName::Sent(u64::MAX - 9),
                ExposedName::Region(part),
            ] {
                for lent in [None, Some(Lent(0)), Some(Lent(u64::MAX))] {
                    let remote = expose(5, &iov, name, lent).unwrap();
                    assert_eq!((named(&remote), super::lent(&remote)), (name, lent));
                    assert_eq!(parse(&remote).instance, 5);
                }
            }
        }
        let wild = Remote::from([255; Remote::MAX]);
        assert_eq!(named(&wild), ExposedName::Nothing);
    }

    /// The offer of a message is then as short as one of a few bytes.
    #[test]
    fn one_range_is_near_its_header() {
        let mut memory = vec![0; 70];
        let remote = expose(5, &iov(&mut memory, &[70]), ExposedName::Nothing, None).unwrap();
        let header = Header::new(Packet::Rendezvous, 1).words();
        assert_eq!(Form::of(&header, remote.bytes().len(), true), Form::OneLine);
        assert!(expose(5, &iov(&mut memory, &[]), ExposedName::Nothing, None).is_none());
    }
}
