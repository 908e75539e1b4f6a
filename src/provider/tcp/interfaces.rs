//! One offer for each address of this machine's interfaces, fastest first.
//!
//! The fabric is the subnet, the domain the interface. A query that names a source, or a destination that the kernel
//! reaches from one interface only, is answered with that interface. Called by `mod`.

use super::nic::nic;
use super::{Tcp, TcpRxm, choice, settings};
use crate::abi::types::*;
use crate::api::av::uri;
use crate::api::errno::{Errno, Result};
use crate::api::info::address::{format_of, of_interface};
use crate::api::info::model::{Info, NicAttr};
use crate::api::info::query::Query;
use crate::provider::on_engine::OnEngine;
use crate::sys::interfaces::{self, Interface};
use crate::sys::resolve::{from_bytes, to_bytes};
use crate::sys::{card, errno};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Once;

/// Each as a socket address and, behind them all, as a string. Those of FI_PROTO_SOCK_TCP are connected endpoints, as
/// in the C library.
pub(super) fn offers(protocol: u32) -> Vec<Info> {
    // Some cards lack what is read of them, which is no error of fi_getinfo's.
    let _errno = errno::keep();
    let all = usable();
    if all.is_empty() && settings::get().interface.is_none() {
        let name = if protocol == FI_PROTO_RXM {
            TcpRxm::WHOLE_NAME
        } else {
            Tcp::WHOLE_NAME
        };
        log!(by name; Info, Fabric, "refused no interface is up with an IP address that can be used");
    }
    let offers = |strings| all.iter().map(move |interface| offer(interface, protocol, strings));
    offers(false).chain(offers(true)).collect()
}

/// The cards of these, for a provider that goes by tcp.
pub(super) fn nics() -> Vec<NicAttr> {
    let _errno = errno::keep();
    usable().iter().filter_map(card_of).collect()
}

/// The address of an endpoint that was given none.
pub(super) fn usual(format: u32) -> Option<SocketAddr> {
    let mut all = usable().into_iter().map(|interface| interface.address);
    all.find(|address| format != FI_SOCKADDR_IN6 || address.is_ipv6())
}

/// The address by which others reach what listens at all addresses of this family.
pub(super) fn reachable(everywhere: SocketAddr) -> SocketAddr {
    let mut all = usable().into_iter().map(|interface| interface.address);
    let Some(mut first) = all.find(|address| address.is_ipv4() == everywhere.is_ipv4()) else {
        return everywhere;
    };
    first.set_port(everywhere.port());
    first
}

/// Which of these addresses comes first, of those that may be used.
pub(super) fn best_of(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let mut all = usable().into_iter().map(|interface| interface.address);
    all.find(|address| addresses.iter().any(|one| one.ip() == address.ip()))
}

/// Where an endpoint is, for the log.
pub(super) fn told(place: Option<SocketAddr>) -> String {
    let Some(place) = place else { return "no address".into() };
    let _errno = errno::keep();
    let all = interfaces::list().unwrap_or_default();
    match all.iter().find(|one| one.address.ip() == place.ip()) {
        Some(one) => format!("{place} on {}; FI_TCP_IFACE chooses another interface", one.name),
        None => format!("{place} on every interface that has such addresses"),
    }
}

/// Those that may be used, best first.
fn usable() -> Vec<Interface> {
    // Some have no speed to read, which is no error of fi_getinfo's.
    let _errno = errno::keep();
    let wanted = settings::get().interface;
    let mut usable = interfaces::list().unwrap_or_default();
    if let Some(name) = wanted
        .as_ref()
        .filter(|name| !usable.iter().any(|one| one.name == **name))
    {
        tell_missing(name, &usable);
    }
    let wanted = wanted.as_deref();
    usable.retain(|one| {
        let why = choice::left_out(one, wanted);
        if let Some(why) = &why {
            log!(by super::NAME; Info, Fabric, "leaves out {} {}: {why}", one.name, one.address.ip());
        }
        why.is_none()
    });
    let rate = |one: Interface| {
        let speed = card::speed(&one.name).unwrap_or(0);
        (one, speed)
    };
    let mut rated: Vec<choice::Rated> = usable.into_iter().map(rate).collect();
    choice::sort(&mut rated);
    if let Some((first, _)) = rated.first() {
        log!(by super::NAME; Info, Fabric, "takes {} {}: {}",
            first.name, first.address.ip(), choice::why_first(&rated, wanted));
    }
    let usable: Vec<Interface> = rated.into_iter().map(|(one, _)| one).collect();
    log!(by super::NAME; Info, Fabric, "interfaces, fastest first, FI_TCP_IFACE chooses one: {}", listed(&usable));
    usable
}

/// Once: each call of fi_getinfo asks several times.
fn tell_missing(name: &str, all: &[Interface]) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let mut names: Vec<&str> = all.iter().map(|one| &*one.name).collect();
        names.sort_unstable();
        names.dedup();
        log!(by super::NAME; Warn, Fabric,
            "no interface {name} (FI_TCP_IFACE) is up with an address; there are: {}", names.join(" "));
    });
}

fn listed(interfaces: &[Interface]) -> String {
    let each = interfaces
        .iter()
        .map(|one| format!("{} {}", one.name, one.address.ip()));
    each.collect::<Vec<_>>().join(", ")
}

fn offer(interface: &Interface, protocol: u32, strings: bool) -> Info {
    let fabric = format!("{}/{}", subnet(interface), interface.prefix);
    let format = if strings {
        FI_ADDR_STR
    } else {
        format_of(&interface.address)
    };
    let reach = if interface.loopback {
        FI_LOCAL_COMM
    } else {
        FI_LOCAL_COMM | FI_REMOTE_COMM
    };
    let rdm = super::rdm(fabric, interface.name.clone(), format, protocol, reach);
    let mut info = match protocol {
        FI_PROTO_SOCK_TCP => rdm.connected_offer(),
        _ => rdm.offer(),
    };
    info.src_addr = Some(to_bytes(&interface.address));
    info.nic = card_of(interface);
    super::with_auth_keys(info)
}

/// The loopback interface is no card. Sandia OpenSHMEM deals its processes out over all that are.
fn card_of(interface: &Interface) -> Option<NicAttr> {
    (!interface.loopback).then(|| nic(&interface.name))
}

fn subnet(interface: &Interface) -> IpAddr {
    let left = |bits: u32| bits.saturating_sub(interface.prefix);
    match interface.address.ip() {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & u32::MAX.checked_shl(left(32)).unwrap_or(0)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & u128::MAX.checked_shl(left(128)).unwrap_or(0)).into(),
    }
}

/// Source and destination of an answer that was made of an offer. An error: the query wants another interface.
pub(super) fn address(info: &mut Info, query: &Query) -> Result<()> {
    let nothing = Errno(FI_ENODATA);
    let own = info.src_addr.as_deref().and_then(from_bytes).ok_or(nothing)?;
    if info.addr_format != FI_ADDR_STR {
        of_interface(info, query)?;
        listen_everywhere(info, query);
        return Ok(());
    }
    // Those who do not ask for strings would take the same interface for another one.
    let asked = query.hints.filter(|hints| hints.addr_format == FI_ADDR_STR);
    let hints = without_strings(asked.ok_or(nothing)?)?;
    let query = Query {
        hints: Some(&hints),
        ..*query
    };
    info.addr_format = format_of(&own);
    of_interface(info, &query)?;
    listen_everywhere(info, &query);
    info.addr_format = FI_ADDR_STR;
    for address in [&mut info.src_addr, &mut info.dest_addr] {
        *address = address.as_deref().and_then(from_bytes).map(|place| uri::uri(&place));
    }
    Ok(())
}

/// A server that names only its port is reached at all addresses of this machine.
fn listen_everywhere(info: &mut Info, query: &Query) {
    let place = info.src_addr.as_deref().and_then(from_bytes);
    if let (true, false, Some(place)) = (query.has_flag(FI_SOURCE), names_an_address(query), place) {
        let everywhere = match place {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        info.src_addr = Some(to_bytes(&SocketAddr::new(everywhere, place.port())));
    }
}

fn names_an_address(query: &Query) -> bool {
    let ip = |node: &str| match uri::place(node.as_bytes()) {
        Some(place) => Some(place.ip()),
        None => node.parse().ok(),
    };
    query
        .node
        .is_some_and(|node| ip(node).is_none_or(|ip| !ip.is_unspecified()))
}

/// The same wishes with socket addresses.
fn without_strings(hints: &Info) -> Result<Info> {
    let socket = |address: &Option<Vec<u8>>| {
        let place = address.as_deref().map(|text| uri::place(text).ok_or(Errno(FI_EINVAL)));
        Ok(place.transpose()?.map(|place| to_bytes(&place)))
    };
    let addresses = socket(&hints.src_addr).and_then(|source| Ok((source, socket(&hints.dest_addr)?)));
    let (src_addr, dest_addr) = addresses.inspect_err(|_| {
        log!(by super::NAME; Warn, Fabric,
            "fi_getinfo: an address in the hints is not such a string: fi_sockaddr_in://10.0.0.1:7000, \
             fi_sockaddr_in6://[::1]:7000");
    })?;
    Ok(Info {
        addr_format: FI_SOCKADDR,
        src_addr,
        dest_addr,
        ..hints.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::endpoint::EndpointTransport;
    use crate::api::info::samples::empty_query;
    use crate::transport::tcp::TcpTransport;

    /// Where the interface with this address is to listen, or connect from.
    fn source(own: &str, format: u32, flags: u64, node: Option<&str>, service: Option<&str>) -> Result<String> {
        let own: SocketAddr = own.parse().unwrap();
        let mut info = Info {
            addr_format: if format == FI_ADDR_STR { format } else { format_of(&own) },
            src_addr: Some(to_bytes(&own)),
            ..Info::blank()
        };
        let hints = Info {
            addr_format: format,
            ..Info::blank()
        };
        let query = Query {
            flags: flags | FI_NUMERICHOST,
            node,
            service,
            hints: Some(&hints),
            ..empty_query()
        };
        address(&mut info, &query)?;
        let source = info.src_addr.unwrap();
        Ok(super::super::place(&source).unwrap().to_string())
    }

    #[test]
    fn a_server_that_names_only_its_port_listens_everywhere() {
        let (four, six) = ("127.0.0.1:0", "[::1]:0");
        let rows = [
            (four, FI_SOURCE, None, "0.0.0.0:7471"),
            (four, FI_SOURCE, Some("0.0.0.0"), "0.0.0.0:7471"),
            (four, FI_SOURCE, Some("127.0.0.1"), "127.0.0.1:7471"),
            (four, FI_SOURCE, Some("127.0.0.2"), "127.0.0.2:7471"),
            (six, FI_SOURCE, Some("::"), "[::]:7471"),
            (six, FI_SOURCE, Some("::1"), "[::1]:7471"),
            // A client's port is its server's.
            (four, 0, None, "127.0.0.1:0"),
            (four, 0, Some("127.0.0.1"), "127.0.0.1:0"),
        ];
        for (own, flags, node, expected) in rows {
            for format in [FI_FORMAT_UNSPEC, FI_ADDR_STR] {
                let source = source(own, format, flags, node, Some("7471"));
                assert_eq!(source, Ok(expected.into()), "{own} {flags:x} {node:?}, format {format}");
            }
        }
    }

    #[test]
    fn strings_name_only_a_port_too() {
        for (node, expected) in [
            ("fi_sockaddr_in://:7471", "0.0.0.0:7471"),
            ("fi_sockaddr_in://0.0.0.0:7471", "0.0.0.0:7471"),
            ("fi_sockaddr_in://127.0.0.1:7471", "127.0.0.1:7471"),
        ] {
            for format in [FI_FORMAT_UNSPEC, FI_ADDR_STR] {
                let source = source("127.0.0.1:0", format, FI_SOURCE, Some(node), None);
                assert_eq!(source, Ok(expected.into()), "{node}, format {format}");
            }
        }
    }

    /// What fi_getname tells of it is for others.
    #[test]
    fn who_listens_everywhere_tells_an_address_that_leads_to_it() {
        let told = |transport: &TcpTransport| from_bytes(&EndpointTransport::local_address(transport)).unwrap();
        let opened = |place: &str| {
            let place = to_bytes(&place.parse().unwrap());
            super::super::open(&place, None).unwrap()
        };
        let everywhere = opened("0.0.0.0:0");
        let bound = from_bytes(&TcpTransport::local_address(&everywhere)).unwrap();
        let named = told(&everywhere);
        assert!(bound.ip().is_unspecified() && bound.port() != 0);
        assert_eq!(named.port(), bound.port());
        let all = interfaces::list().unwrap();
        assert!(
            all.iter().any(|one| one.address.ip() == named.ip() && named.is_ipv4()),
            "{named}"
        );
        assert_eq!(told(&opened("127.0.0.2:0")).ip(), IpAddr::from([127, 0, 0, 2]));
        // One that calls has the address that its peer sees, which is not known yet.
        let caller = super::super::open_to_call("fi_endpoint", &to_bytes(&"0.0.0.0:0".parse().unwrap()), None).unwrap();
        assert!(told(&caller).ip().is_unspecified());
    }
}
