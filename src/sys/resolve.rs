//! Names of hosts and services resolved into socket addresses, and socket addresses as the bytes that C programs hold.
//! Called by `api`.

use core::ffi::{CStr, c_int};
use core::ptr;
use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};

const V4_LEN: usize = size_of::<libc::sockaddr_in>();
const V6_LEN: usize = size_of::<libc::sockaddr_in6>();

/// The first address that getaddrinfo finds. `family` is AF_UNSPEC, AF_INET or AF_INET6, `flags` are AI_*.
pub fn lookup(node: Option<&str>, service: Option<&str>, family: c_int, flags: c_int) -> io::Result<SocketAddr> {
    let (node, service) = (
        node.map(CString::new).transpose()?,
        service.map(CString::new).transpose()?,
    );
    let as_ptr = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
    let want = libc::addrinfo {
        ai_flags: flags,
        ai_family: family,
        ai_socktype: libc::SOCK_STREAM,
        ai_protocol: 0,
        ai_addrlen: 0,
        ai_addr: ptr::null_mut(),
        ai_canonname: ptr::null_mut(),
        ai_next: ptr::null_mut(),
    };
    let mut found = AddrInfo(ptr::null_mut());
    // SAFETY: both names are NULL or end in NUL and live through the call; `want` is a whole addrinfo with NULLs where
    // the page asks for them; `found` takes the list, which its drop frees.
    let failed = unsafe { libc::getaddrinfo(as_ptr(&node), as_ptr(&service), &want, &mut found.0) };
    if failed != 0 {
        return Err(io::Error::other(error_text(failed)));
    }
    found.first().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
}

fn error_text(code: c_int) -> String {
    // SAFETY: gai_strerror answers any number with a constant string.
    unsafe { CStr::from_ptr(libc::gai_strerror(code)) }
        .to_string_lossy()
        .into_owned()
}

/// Owns the list that getaddrinfo made.
struct AddrInfo(*mut libc::addrinfo);

impl AddrInfo {
    fn first(&self) -> Option<SocketAddr> {
        // SAFETY: the list is ours until the drop; it is NULL or points to a whole addrinfo.
        let entry = unsafe { self.0.as_ref() }?;
        if entry.ai_addr.is_null() {
            return None;
        }
        // SAFETY: ai_addr points to ai_addrlen bytes that belong to the list.
        let bytes = unsafe { core::slice::from_raw_parts(entry.ai_addr.cast::<u8>(), entry.ai_addrlen as usize) };
        from_bytes(bytes)
    }
}

impl Drop for AddrInfo {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: got from getaddrinfo, freed once.
            unsafe { libc::freeaddrinfo(self.0) }
        }
    }
}

/// The address, without a port, from which the kernel would send to `dest`. No packet is sent.
pub fn source_for(dest: &SocketAddr) -> io::Result<SocketAddr> {
    let any: SocketAddr = match dest {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(dest)?;
    let mut source = socket.local_addr()?;
    source.set_port(0);
    Ok(source)
}

/// A sockaddr_in or sockaddr_in6. Longer input is fine: programs pass a whole sockaddr_storage.
pub fn from_bytes(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(field(bytes, 0)?);
    let port = u16::from_be_bytes(field(bytes, 2)?);
    match c_int::from(family) {
        libc::AF_INET if bytes.len() >= V4_LEN => {
            let ip = Ipv4Addr::from(field::<4>(bytes, 4)?);
            Some(SocketAddrV4::new(ip, port).into())
        }
        libc::AF_INET6 if bytes.len() >= V6_LEN => {
            let flow = u32::from_be_bytes(field(bytes, 4)?);
            let ip = Ipv6Addr::from(field::<16>(bytes, 8)?);
            let scope = u32::from_ne_bytes(field(bytes, 24)?);
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
        _ => None,
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The bytes of a sockaddr_in or sockaddr_in6.
pub fn to_bytes(addr: &SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(V6_LEN);
    match addr {
        SocketAddr::V4(v4) => {
            bytes.extend((libc::AF_INET as u16).to_ne_bytes());
            bytes.extend(v4.port().to_be_bytes());
            bytes.extend(v4.ip().octets());
            bytes.resize(V4_LEN, 0);
        }
        SocketAddr::V6(v6) => {
            bytes.extend((libc::AF_INET6 as u16).to_ne_bytes());
            bytes.extend(v6.port().to_be_bytes());
            bytes.extend(v6.flowinfo().to_be_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_resolve_without_a_network() {
        let numeric = libc::AI_NUMERICHOST | libc::AI_NUMERICSERV;
        let rows = [
            // (node, service, family, flags, expected)
            (
                Some("127.0.0.1"),
                Some("7471"),
                libc::AF_UNSPEC,
                numeric,
                Some("127.0.0.1:7471"),
            ),
            (Some("::1"), Some("7471"), libc::AF_UNSPEC, numeric, Some("[::1]:7471")),
            (Some("::1"), None, libc::AF_INET6, numeric, Some("[::1]:0")),
            (Some("::1"), None, libc::AF_INET, numeric, None),
            (Some("10.1.2.3"), None, libc::AF_INET6, numeric, None),
            (
                None,
                Some("99"),
                libc::AF_INET,
                numeric | libc::AI_PASSIVE,
                Some("0.0.0.0:99"),
            ),
            (None, Some("99"), libc::AF_INET, numeric, Some("127.0.0.1:99")),
            (Some("no.such.host.invalid"), None, libc::AF_UNSPEC, numeric, None),
            (None, None, libc::AF_UNSPEC, numeric, None),
            (Some("a\0b"), None, libc::AF_UNSPEC, numeric, None),
        ];
        for (node, service, family, flags, expected) in rows {
            let found = lookup(node, service, family, flags).ok().map(|addr| addr.to_string());
            assert_eq!(found.as_deref(), expected, "{node:?} {service:?}");
        }
    }

    #[test]
    fn bytes_and_back() {
        for text in [
            "10.1.2.3:7471",
            "0.0.0.0:0",
            "[::]:1",
            "[2001:db8::6:12]:65535",
            "[fe80::1%7]:80",
        ] {
            let addr: SocketAddr = text.parse().unwrap();
            let bytes = to_bytes(&addr);
            assert_eq!(bytes.len(), if addr.is_ipv4() { V4_LEN } else { V6_LEN });
            assert_eq!(from_bytes(&bytes), Some(addr), "{text}");
            assert_eq!(from_bytes(&bytes[..bytes.len() - 1]), None, "{text}");
        }
        assert_eq!(to_bytes(&"1.2.3.4:258".parse().unwrap())[2..8], [1, 2, 1, 2, 3, 4]);
        for bytes in [&[][..], &[2], &[0; 128], &[255; 128]] {
            assert_eq!(from_bytes(bytes), None);
        }
    }

    #[test]
    fn loopback_is_reached_from_loopback() {
        let dest: SocketAddr = "127.0.0.1:9".parse().unwrap();
        assert_eq!(source_for(&dest).unwrap().to_string(), "127.0.0.1:0");
    }
}
