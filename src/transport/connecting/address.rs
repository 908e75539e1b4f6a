//! Addresses of endpoints: what their peers' address vectors find them by, in one form.
//!
//! A sockaddr_in without its zeros (8 bytes) or a whole sockaddr_in6 (28): the part by which `api::av` compares them.
//! A context of a scalable endpoint has two bytes more, its number. Called by transports, and by their providers.

use crate::sys::resolve;
use std::net::SocketAddr;

const V4: usize = 8;
const V4_RAW: usize = size_of::<libc::sockaddr_in>();
const V6: usize = size_of::<libc::sockaddr_in6>();
const CONTEXT: usize = size_of::<u16>();

/// How long an address of this family is without a context.
fn base_len(address: &[u8]) -> Option<usize> {
    match i32::from(u16::from_ne_bytes(*address.first_chunk()?)) {
        libc::AF_INET => Some(V4),
        libc::AF_INET6 => Some(V6),
        _ => None,
    }
}

/// The one form of an address: as an endpoint tells it, as a vector keeps it, or of a context. None: it is none.
pub fn normal(address: &[u8]) -> Option<&[u8]> {
    let base = base_len(address)?;
    let len = if address.len() == base + CONTEXT {
        base + CONTEXT
    } else {
        base
    };
    address.get(..len)
}

/// The address of a socket.
pub fn of(place: &SocketAddr) -> Vec<u8> {
    let raw = resolve::to_bytes(place);
    base(&raw).to_vec()
}

/// Where to connect to.
pub fn place(address: &[u8]) -> Option<SocketAddr> {
    resolve::from_bytes(&raw(address))
}

/// The address that a peer says it has, whose connection came from `seen`. The scope of a link-local one is a number
/// that each machine has for its own interfaces.
pub fn said_by(address: &[u8], seen: &SocketAddr) -> Vec<u8> {
    match (place(address), seen) {
        (Some(SocketAddr::V6(mut said)), SocketAddr::V6(seen))
            if said.ip().is_unicast_link_local() && seen.ip().is_unicast_link_local() =>
        {
            said.set_scope_id(seen.scope_id());
            said.set_flowinfo(0);
            context(&of(&said.into()), context_number(address).into())
        }
        _ => address.to_vec(),
    }
}

/// As a line of the log has it.
pub fn shown(place: Option<SocketAddr>) -> String {
    place.map_or_else(|| "an unknown address".into(), |place| place.to_string())
}

/// Which context of a scalable endpoint: 0 is the endpoint itself.
pub fn context_number(address: &[u8]) -> u16 {
    let number = base_len(address).and_then(|base| address.get(base..));
    match number {
        Some(&[low, high]) => u16::from_le_bytes([low, high]),
        _ => 0,
    }
}

/// The address of a context of the scalable endpoint at `address`; 0 has the endpoint's own.
pub fn context(address: &[u8], index: usize) -> Vec<u8> {
    let mut address = base(address).to_vec();
    if let Ok(index @ 1..) = u16::try_from(index) {
        address.extend(index.to_le_bytes());
    }
    address
}

/// The address of the scalable endpoint of which this is a context.
pub fn base(address: &[u8]) -> &[u8] {
    base_len(address).and_then(|len| address.get(..len)).unwrap_or(address)
}

/// The form that fi_getname tells and fi_av_insert takes: a whole socket address.
pub fn raw(address: &[u8]) -> Vec<u8> {
    let mut raw = base(address).to_vec();
    if raw.len() == V4 {
        raw.resize(V4_RAW, 0);
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_that_of_the_machine_which_hears_of_it() {
        let address = |text: &str| of(&text.parse().unwrap());
        for (said, seen, known) in [
            ("[fe80::1%7]:80", "[fe80::1%3]:1234", "[fe80::1%3]:80"),
            ("[fe80::1%7]:80", "[2001:db8::1]:1234", "[fe80::1%7]:80"),
            ("[2001:db8::1]:80", "[fe80::1%3]:1234", "[2001:db8::1]:80"),
            ("10.1.2.3:80", "10.1.2.4:1234", "10.1.2.3:80"),
        ] {
            let seen = seen.parse().unwrap();
            assert_eq!(said_by(&address(said), &seen), address(known));
            assert_eq!(said_by(&context(&address(said), 9), &seen), context(&address(known), 9));
        }
    }

    #[test]
    fn every_form_is_the_same_address() {
        for text in ["10.1.2.3:7471", "[2001:db8::6:12]:65535", "[fe80::1%7]:80"] {
            let at: SocketAddr = text.parse().unwrap();
            let (told, own) = (resolve::to_bytes(&at), of(&at));
            assert_eq!((normal(&told), normal(&own)), (Some(&own[..]), Some(&own[..])));
            let longer = [&told[..], &[7; 100]].concat();
            assert_eq!((normal(&longer), raw(&own)), (Some(&own[..]), told.clone()));
            assert_eq!((place(&own), context_number(&own)), (Some(at), 0));
            let third = context(&told, 3);
            assert_eq!(normal(&third), Some(&third[..]));
            assert_eq!((base(&third), context_number(&third)), (&own[..], 3));
            assert_eq!((place(&third), context(&third, 0)), (Some(at), own));
        }
        for odd in [&[][..], &[2], &[2, 0, 1, 2, 3], &[0; 28], &[255; 28]] {
            assert_eq!((normal(odd), place(odd), base(odd)), (None, None, odd));
        }
    }
}
