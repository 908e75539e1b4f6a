//! Addresses that are strings (FI_ADDR_STR): `scheme://name`, or `fi_ns://node:service`.

use super::kind::{AddressKind, Layout};
use crate::abi::types::{FI_ADDR_STR, FI_EINVAL};
use crate::api::errno::{Errno, Result};
use std::borrow::Cow;

const NS_PREFIX: &str = "fi_ns://";

/// Names of endpoints on this node. Two are the same when they differ only in what stands before the `://`.
pub struct StringAddr {
    /// What a node becomes an address with, `fi_shm` for one: the provider's.
    scheme: &'static str,
}

impl StringAddr {
    /// The longest name, its NUL included.
    pub const LONGEST: usize = 256;

    pub const fn of(scheme: &'static str) -> StringAddr {
        StringAddr { scheme }
    }
}

/// The text of a string address: what stands before its NUL.
pub fn text(address: &[u8]) -> &[u8] {
    let end = address.iter().position(|byte| *byte == 0).unwrap_or(address.len());
    address.get(..end).unwrap_or_default()
}

/// Whether an address is text at all. The bytes of a pointer mostly are not.
pub fn is_text(address: &[u8]) -> bool {
    core::str::from_utf8(text(address)).is_ok_and(|text| !text.contains(char::is_control))
}

/// The name in a string address, without the scheme.
pub fn name(address: &[u8]) -> &[u8] {
    const SIGN: &[u8] = b"://";
    let text = text(address);
    let sign = text.windows(SIGN.len()).position(|three| three == SIGN);
    sign.and_then(|at| text.get(at + SIGN.len()..)).unwrap_or(text)
}

impl AddressKind for StringAddr {
    fn format(&self) -> u32 {
        FI_ADDR_STR
    }

    fn layout(&self) -> Layout {
        Layout::Strings
    }

    fn longest(&self) -> usize {
        Self::LONGEST
    }

    fn check(&self, address: &[u8]) -> Result<()> {
        // Room for the NUL is counted even where it is missing: it is kept with one.
        if name(address).is_empty() || text(address).len() >= Self::LONGEST {
            return Err(Errno(FI_EINVAL));
        }
        Ok(())
    }

    /// With its NUL, even when it came without.
    fn kept<'a>(&self, address: &'a [u8]) -> Cow<'a, [u8]> {
        if address.last() == Some(&0) {
            address.into()
        } else {
            [address, &[0]].concat().into()
        }
    }

    fn key<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        name(address)
    }

    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>> {
        let text = match (node, service) {
            (Some(node), None) if node.contains("://") => node.to_owned(),
            (Some(node), _) if node.contains("://") => return Err(Errno(FI_EINVAL)),
            (Some(node), Some(service)) => format!("{NS_PREFIX}{node}:{service}"),
            (None, Some(service)) => format!("{NS_PREFIX}{service}"),
            (Some(node), None) => format!("{}://{node}", self.scheme),
            (None, None) => return Err(Errno(FI_EINVAL)),
        };
        let mut address = text.into_bytes();
        address.push(0);
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_as_getinfo_makes_them() {
        let rows = [
            (Some("n0"), Some("5000"), Some("fi_ns://n0:5000")),
            (None, Some("5000"), Some("fi_ns://5000")),
            (Some("n0"), None, Some("fi_shm://n0")),
            (Some("fi_shm://77:0:1"), None, Some("fi_shm://77:0:1")),
            (Some("fi_ns://a:b"), None, Some("fi_ns://a:b")),
            (Some("fi_shm://77"), Some("5000"), None),
            (None, None, None),
        ];
        for (node, service, expected) in rows {
            let made = StringAddr::of("fi_shm").resolve(node, service);
            let expected = expected
                .map(|text| [text.as_bytes(), &[0]].concat())
                .ok_or(Errno(FI_EINVAL));
            assert_eq!(made, expected, "{node:?} {service:?}");
        }
    }

    #[test]
    fn a_name_is_the_same_under_any_scheme() {
        let rows: [(&[u8], &[u8]); 7] = [
            (b"fi_shm://7:0\0", b"7:0"),
            (b"fi_ns://7:0\0junk", b"7:0"),
            (b"7:0", b"7:0"),
            (b"a://b://c\0", b"b://c"),
            (b"x:/y\0", b"x:/y"),
            (b"fi_shm://\0", b""),
            (b"", b""),
        ];
        for (address, expected) in rows {
            assert_eq!(StringAddr::of("fi_shm").key(address), expected);
            assert_eq!(StringAddr::of("fi_shm").check(address).is_ok(), !expected.is_empty());
        }
    }

    #[test]
    fn pointers_are_no_text() {
        assert!(is_text("fi_shm://7:0\0".as_bytes()) && is_text("näme".as_bytes()));
        for pointer in [0x7fff_1234_5678_u64, 0x55d3_9a31_c2a0, 0x7f41_4243_4445] {
            assert!(!is_text(&pointer.to_ne_bytes()), "{pointer:x}");
        }
    }

    #[test]
    fn a_name_of_256_bytes_fits_with_its_nul() {
        let address = |len: usize| [&vec![b'x'; len - 1][..], &[0]].concat();
        assert_eq!(StringAddr::of("fi_shm").check(&address(256)), Ok(()));
        assert_eq!(StringAddr::of("fi_shm").check(&address(257)), Err(Errno(FI_EINVAL)));
        assert_eq!(StringAddr::of("fi_shm").check(&vec![b'x'; 256]), Err(Errno(FI_EINVAL)));
    }
}
