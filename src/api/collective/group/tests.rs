//! Identities: whatever differs between two groups makes them two, and the tags of one are the same for all members.

use super::*;
use std::collections::HashSet;

#[test]
fn whatever_differs_makes_another_group() {
    let of = |names: &[&[u8]]| names.iter().fold(Digest::default(), |digest, name| digest.bytes(name));
    let groups = [
        of(&[]),
        of(&[b""]),
        of(&[b"a"]),
        of(&[b"a", b"b"]),
        of(&[b"b", b"a"]),
        of(&[b"ab"]),
        of(&[b"ab\0"]),
        of(&[b"abcdefgh", b"i"]),
        of(&[b"abcdefghi"]),
    ];
    assert_eq!(groups.iter().collect::<HashSet<_>>().len(), groups.len());
    assert_eq!(of(&[b"a", b"b"]), of(&[b"a", b"b"]));
}

#[test]
fn tags_of_many_operations_differ_and_are_the_same_everywhere() {
    let group = |identity| Group::new(0, Digest::default().number(identity), 0, Vec::new(), 0);
    let mut tags = HashSet::new();
    for identity in 0..100 {
        let (mut one, mut other) = (group(identity), group(identity));
        for _ in 0..1000 {
            let tag = one.next_tag();
            assert_eq!(tag, other.next_tag());
            assert!(tags.insert(tag));
        }
    }
}
