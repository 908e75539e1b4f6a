//! Addresses that are socket addresses: FI_SOCKADDR_IN, FI_SOCKADDR_IN6, or either (FI_SOCKADDR, FI_SOCKADDR_IP).

use super::kind::{AddressKind, Layout, family, sockaddr_len};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::addr_format::includes;
use crate::api::info::address::{End, Family, Names, Resolver, System, format_of, parse_uri};
use crate::sys::resolve::{from_bytes, to_bytes};
use std::net::{IpAddr, SocketAddr as Address};

/// Where sin_zero begins. The C library refuses an address with anything in it, so these bytes never tell two apart.
const SIN_ZERO: usize = 8;

/// Addresses of one IP family, or of both.
pub struct SocketAddr {
    format: u32,
    resolver: Box<dyn Resolver + Send + Sync>,
}

impl SocketAddr {
    pub fn new(format: u32) -> SocketAddr {
        Self::with_resolver(format, Box::new(System))
    }

    pub fn with_resolver(format: u32, resolver: Box<dyn Resolver + Send + Sync>) -> SocketAddr {
        SocketAddr { format, resolver }
    }

    fn family(&self) -> Family {
        match self.format {
            FI_SOCKADDR_IN => Family::V4,
            FI_SOCKADDR_IN6 => Family::V6,
            _ => Family::Any,
        }
    }

    fn find(&self, node: Option<&str>, service: Option<&str>) -> Result<Address> {
        if let Some((scheme, rest)) = node.and_then(|node| node.split_once("://")) {
            let found = if service.is_none() {
                parse_uri(scheme, rest)
            } else {
                None
            };
            return found.ok_or(Errno(FI_EINVAL));
        }
        if node.is_none() && service.is_none() {
            return Err(Errno(FI_EINVAL));
        }
        // A number too large for a port would be cut off by getaddrinfo, and name some other port.
        let number = service.and_then(|text| text.parse::<u64>().ok());
        let port = number.map(u16::try_from).transpose().map_err(|_| Errno(FI_EINVAL))?;
        let ip = node.and_then(|node| node.parse::<IpAddr>().ok());
        if let (Some(ip), Some(port)) = (ip, port) {
            return Ok(Address::new(ip, port));
        }
        self.resolver
            .lookup(node, service, self.family(), End::Dest, Names::Resolve)
            .ok_or(Errno(FI_ENODATA))
    }
}

impl AddressKind for SocketAddr {
    fn format(&self) -> u32 {
        self.format
    }

    fn layout(&self) -> Layout {
        match self.format {
            FI_SOCKADDR_IN => Layout::Fixed(size_of::<libc::sockaddr_in>()),
            FI_SOCKADDR_IN6 => Layout::Fixed(size_of::<libc::sockaddr_in6>()),
            _ => Layout::Family,
        }
    }

    fn longest(&self) -> usize {
        size_of::<libc::sockaddr_in6>()
    }

    fn check(&self, address: &[u8]) -> Result<()> {
        let wrong = Err(Errno(FI_EADDRNOTAVAIL));
        let Some(place) = from_bytes(address) else { return wrong };
        if place.port() == 0 || place.ip().is_unspecified() || !includes(self.format, format_of(&place)) {
            return wrong;
        }
        let rest = address
            .get(SIN_ZERO..size_of::<libc::sockaddr_in>())
            .unwrap_or_default();
        if place.is_ipv4() && rest.iter().any(|byte| *byte != 0) {
            return wrong;
        }
        Ok(())
    }

    fn key<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        let len = match family(address) {
            Some(family) if i32::from(family) == libc::AF_INET => SIN_ZERO,
            Some(family) => sockaddr_len(family).unwrap_or(0),
            None => 0,
        };
        address.get(..len).unwrap_or(address)
    }

    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>> {
        let found = self.find(node, service)?;
        if !includes(self.format, format_of(&found)) {
            return Err(Errno(FI_EADDRNOTAVAIL));
        }
        Ok(to_bytes(&found))
    }

    fn text(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        // Any socket address has a text, whichever family the vector is for, as in the C library.
        crate::api::tostr::address::straddr(FI_SOCKADDR, crate::api::tostr::Pointer(0), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows one name and counts on nobody else.
    struct OneName;

    impl Resolver for OneName {
        fn lookup(
            &self,
            node: Option<&str>,
            service: Option<&str>,
            _: Family,
            end: End,
            names: Names,
        ) -> Option<Address> {
            assert_eq!((end, names), (End::Dest, Names::Resolve));
            let ip = (node? == "host").then_some(IpAddr::from([10, 0, 0, 1]))?;
            let port = if service? == "http" { 80 } else { service?.parse().ok()? };
            Some(Address::new(ip, port))
        }

        fn source_for(&self, _: &Address) -> Option<Address> {
            None
        }
    }

    #[test]
    fn names_become_addresses_of_the_family() {
        type Row = (
            u32,
            Option<&'static str>,
            Option<&'static str>,
            core::result::Result<&'static str, i32>,
        );
        let rows: [Row; 14] = [
            (FI_SOCKADDR_IN, Some("10.1.1.1"), Some("5000"), Ok("10.1.1.1:5000")),
            (FI_SOCKADDR_IN, Some("host"), Some("http"), Ok("10.0.0.1:80")),
            (FI_SOCKADDR_IN, Some("host"), Some("65535"), Ok("10.0.0.1:65535")),
            (FI_SOCKADDR_IN, Some("host"), Some("65536"), Err(FI_EINVAL)),
            (FI_SOCKADDR_IN, Some("nohost"), Some("1"), Err(FI_ENODATA)),
            (FI_SOCKADDR_IN, Some("::1"), Some("1"), Err(FI_EADDRNOTAVAIL)),
            (FI_SOCKADDR_IN6, Some("::1"), Some("1"), Ok("[::1]:1")),
            (FI_SOCKADDR_IN6, Some("1.2.3.4"), Some("1"), Err(FI_EADDRNOTAVAIL)),
            (FI_SOCKADDR, Some("::1"), Some("1"), Ok("[::1]:1")),
            (FI_SOCKADDR, Some("fi_sockaddr_in://1.2.3.4:5"), None, Ok("1.2.3.4:5")),
            (
                FI_SOCKADDR,
                Some("fi_sockaddr_in://1.2.3.4:5"),
                Some("5"),
                Err(FI_EINVAL),
            ),
            (FI_SOCKADDR, Some("fi_other://1.2.3.4:5"), None, Err(FI_EINVAL)),
            (FI_SOCKADDR, None, None, Err(FI_EINVAL)),
            (FI_SOCKADDR, Some("host"), None, Err(FI_ENODATA)),
        ];
        for (format, node, service, expected) in rows {
            let kind = SocketAddr::with_resolver(format, Box::new(OneName));
            let found = kind.resolve(node, service).map_err(|errno| errno.0);
            let expected = expected.map(|text| to_bytes(&text.parse().unwrap()));
            assert_eq!(found, expected, "{format} {node:?} {service:?}");
        }
    }

    #[test]
    fn only_places_a_message_can_go_to_are_good() {
        let bytes = |text: &str| to_bytes(&text.parse().unwrap());
        let mut dirty = bytes("1.2.3.4:5");
        dirty[15] = 1;
        let rows = [
            (FI_SOCKADDR_IN, bytes("1.2.3.4:5"), true),
            (FI_SOCKADDR_IN, bytes("1.2.3.4:0"), false),
            (FI_SOCKADDR_IN, bytes("0.0.0.0:5"), false),
            (FI_SOCKADDR_IN, bytes("[::1]:5"), false),
            (FI_SOCKADDR_IN, dirty, false),
            (FI_SOCKADDR_IN, vec![0; 16], false),
            (FI_SOCKADDR_IN, vec![], false),
            (FI_SOCKADDR_IN6, bytes("[::1]:5"), true),
            (FI_SOCKADDR_IN6, bytes("[::]:5"), false),
            (FI_SOCKADDR_IN6, bytes("1.2.3.4:5"), false),
            (FI_SOCKADDR, bytes("[::1]:5"), true),
            (FI_SOCKADDR_IP, bytes("1.2.3.4:5"), true),
        ];
        for (format, address, good) in rows {
            let kind = SocketAddr::with_resolver(format, Box::new(OneName));
            let expected = if good { Ok(()) } else { Err(Errno(FI_EADDRNOTAVAIL)) };
            assert_eq!(kind.check(&address), expected, "{format} {address:?}");
        }
    }

    #[test]
    fn keys_leave_out_what_tells_nothing() {
        let kind = SocketAddr::new(FI_SOCKADDR);
        let v4 = to_bytes(&"1.2.3.4:5".parse().unwrap());
        let v6 = to_bytes(&"[::1]:5".parse().unwrap());
        assert_eq!(kind.key(&v4), &v4[..8]);
        assert_eq!(kind.key(&[&v6[..], &[9; 100]].concat()), &v6[..]);
        assert_eq!(kind.text(&v4).as_deref(), Some(&b"fi_sockaddr_in://1.2.3.4:5"[..]));
        assert_eq!(kind.text(&[0; 16]), None);
    }
}
