//! Socket addresses that are strings (FI_ADDR_STR): `fi_sockaddr_in://10.0.0.1:7000`, `fi_sockaddr_in6://[::1]:7000`.
//!
//! A vector keeps them as socket addresses, so its provider's transport never meets a string. The provider calls
//! `place` and `uri` for the addresses of infos and endpoints.

use super::kind::{AddressKind, Layout};
use super::socket::SocketAddr;
use super::string::{StringAddr, text};
use crate::abi::types::{FI_ADDR_STR, FI_EINVAL, FI_SOCKADDR};
use crate::api::errno::{Errno, Result};
use crate::api::info::address::parse_uri;
use crate::sys::resolve::{from_bytes, to_bytes};
use std::borrow::Cow;
use std::net::SocketAddr as Address;

/// The place that a string address names.
pub fn place(address: &[u8]) -> Option<Address> {
    let (scheme, rest) = core::str::from_utf8(text(address)).ok()?.split_once("://")?;
    parse_uri(scheme, rest)
}

/// The string address of a place, with its NUL. A link-local one has its scope, which fi_av_straddr leaves out.
pub fn uri(place: &Address) -> Vec<u8> {
    let scheme = if place.is_ipv4() {
        "fi_sockaddr_in"
    } else {
        "fi_sockaddr_in6"
    };
    format!("{scheme}://{place}\0").into_bytes()
}

/// Addresses of both IP families, as strings.
pub struct SocketUri {
    sockets: SocketAddr,
}

impl Default for SocketUri {
    fn default() -> SocketUri {
        SocketUri {
            sockets: SocketAddr::new(FI_SOCKADDR),
        }
    }
}

impl AddressKind for SocketUri {
    fn format(&self) -> u32 {
        FI_ADDR_STR
    }

    fn layout(&self) -> Layout {
        Layout::Strings
    }

    fn longest(&self) -> usize {
        StringAddr::LONGEST
    }

    fn check(&self, address: &[u8]) -> Result<()> {
        let place = place(address).ok_or(Errno(FI_EINVAL))?;
        self.sockets.check(&to_bytes(&place))
    }

    fn kept<'a>(&self, address: &'a [u8]) -> Cow<'a, [u8]> {
        place(address).map_or_else(|| address.into(), |place| to_bytes(&place).into())
    }

    fn told<'a>(&self, kept: &'a [u8]) -> Cow<'a, [u8]> {
        from_bytes(kept).map_or_else(|| kept.into(), |place| uri(&place).into())
    }

    fn key<'a>(&self, kept: &'a [u8]) -> &'a [u8] {
        self.sockets.key(kept)
    }

    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>> {
        let found = self.sockets.resolve(node, service)?;
        Ok(self.told(&found).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::*;
    use crate::api::av::{Av, AvAttr, Domain, Insert};
    use std::sync::Arc;

    #[test]
    fn a_place_and_its_uri() {
        let rows = [
            ("fi_sockaddr_in://10.0.0.1:7000", Some("10.0.0.1:7000")),
            ("fi_sockaddr_in6://[::1]:7000", Some("[::1]:7000")),
            ("fi_sockaddr_in6://[fe80::1%7]:80", Some("[fe80::1%7]:80")),
            ("fi_sockaddr://10.0.0.1:7000", Some("10.0.0.1:7000")),
            ("fi_sockaddr_in://[::1]:7000", None),
            ("fi_sockaddr_in6://10.0.0.1:7000", None),
            ("fi_sockaddr_in://10.0.0.1:70000", None),
            ("fi_shm://10.0.0.1:7000", None),
            ("10.0.0.1:7000", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let at = place(format!("{text}\0junk").as_bytes());
            assert_eq!(at, expected.map(|expected| expected.parse().unwrap()), "{text}");
            if let Some(at) = at {
                assert_eq!(place(&uri(&at)), Some(at));
            }
        }
        let at = "10.0.0.1:7000".parse().unwrap();
        assert_eq!(uri(&at), b"fi_sockaddr_in://10.0.0.1:7000\0");
        assert_eq!(place(&to_bytes(&at)), None, "the bytes of a socket address are no text");
    }

    #[test]
    fn a_vector_takes_strings_and_is_searched_by_sockets() {
        let av = Av::open(&AvAttr::default(), Arc::new(SocketUri::default()), &Domain::default()).unwrap();
        let array =
            b"fi_sockaddr_in://10.0.0.1:7000\0fi_sockaddr_in6://[::1]:7\0fi_sockaddr_in://10.0.0.1:0\0no address\0";
        let mut addrs = [0; 4];
        let request = Insert {
            fi_addr: Some(&mut addrs),
            ..Insert::default()
        };
        assert_eq!(av.insert(array, 4, request), Ok(2));
        assert_eq!(addrs, [0, 1, FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL]);
        let socket = to_bytes(&"[::1]:7".parse().unwrap());
        assert_eq!((av.find(&socket), av.address(1)), (Some(1), Some(socket)));
        let mut told = [9; 64];
        let len = av.lookup(1, &mut told).unwrap();
        assert_eq!(&told[..len], b"fi_sockaddr_in6://[::1]:7\0");
        assert_eq!(av.insertsvc(Some("127.0.0.1"), Some("80"), Insert::default()), Ok(1));
        let len = av.lookup(2, &mut told).unwrap();
        assert_eq!(&told[..len], b"fi_sockaddr_in://127.0.0.1:80\0");
        // Cut off, and ended nevertheless.
        let mut short = [9; 5];
        assert_eq!((av.lookup(2, &mut short), &short), (Ok(len), b"fi_s\0"));
        let text = av.straddr(b"fi_sockaddr_in6://[::1]:7\0", &mut told).unwrap();
        assert_eq!(&told[..text], b"fi_sockaddr_in6://[::1]:7\0");
    }
}
