//! Leave to read a region, which the target gives (`Exposed`) and does not hear of again: it holds until a region is
//! closed.

use super::dual_copy::{GetSink, KEY, LEN, iov, joined, lane, open, part, pattern, region, until_a_helper_stops};
use super::*;
use crate::engine::port::ExposedName;
use crate::transport::shm::dual_copy::{HelperState, helper_word};

/// Leave to read a region ends with it, and with any other, as the reader cannot tell them apart: then the owner is asked
/// for the bytes. Short ones are read alone, long ones together.
#[test]
fn what_was_exposed_of_a_region_is_not_read_when_that_is_closed() {
    for len in [20_000, LEN] {
        let dir = Dir::new();
        let (mut target, mut end, to_end, to) = joined(&dir);
        let (mut memory, mut other) = (pattern(1, LEN), pattern(2, 100));
        let regions = open(&mut target, &mut memory);
        regions.add(region(iov(&mut other)), KEY + 1).unwrap();
        let mut bytes = vec![0; len];
        let (local, theirs) = (iov(&mut bytes), iov(&mut memory[..len]));
        let lend = |target: &mut ShmTransport| {
            let name = ExposedName::Region(part(0, len));
            target.expose(to_end, &theirs, name).unwrap().remote
        };
        let remote = lend(&mut target);
        let mut again = |remote: &Remote| end.get(to, remote, &local, 0, len, Some(9));
        assert_eq!(again(&remote), port::Get::Done);
        assert!(bytes == pattern(1, LEN)[..len]);
        regions.remove(KEY + 1).unwrap();
        assert_eq!(again(&remote), port::Get::Unsupported);
        let remote = lend(&mut target);
        assert_eq!(again(&remote), port::Get::Done);
        regions.remove(KEY).unwrap();
        assert_eq!(again(&remote), port::Get::Unsupported);
    }
}

/// The same for one that was begun before.
#[test]
fn a_read_that_the_owner_helps_with_fails_when_the_region_is_closed() {
    let dir = Dir::new();
    let (mut target, mut end, to_end, to) = joined(&dir);
    let mut memory = pattern(1, LEN);
    let regions = open(&mut target, &mut memory);
    let mut bytes = vec![0; LEN];
    let (local, theirs) = (iov(&mut bytes), iov(&mut memory));
    let name = ExposedName::Region(part(0, LEN));
    let remote = target.expose(to_end, &theirs, name).unwrap().remote;
    let number = until_a_helper_stops(
        (&mut target, to_end),
        (&mut end, to),
        |end| end.get(to, &remote, &local, 0, LEN, Some(9)),
        |target| target.poll(&mut GetSink::showing(&regions), 64),
    );
    regions.remove(KEY).unwrap();
    let mut sink = GetSink::default();
    lane(&target, to_end)
        .helped()
        .store(helper_word(number, HelperState::Failed, 0), Ordering::Release);
    end.poll(&mut sink, 64);
    assert_eq!(sink.ended, [(9, false)]);
}
