//! One offer for each address of this machine's interfaces, fastest first, and which of them fit a query.
//!
//! The fabric is the subnet, the domain the interface. A query that names a source, or a destination that the kernel
//! reaches from one interface only, is answered with that interface. No card (fid_nic) is told: programs take infos with
//! different cards for different ways, but one card has several addresses. Called by `mod`.

use super::settings;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::address::{System, fill, format_of};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::sys::errno;
use crate::sys::interfaces::{self, Interface};
use crate::sys::resolve::{from_bytes, to_bytes};
use core::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) fn offers(protocol: u32) -> Vec<Info> {
    usable().iter().map(|interface| offer(interface, protocol)).collect()
}

/// The address of an endpoint that was given none.
pub(super) fn usual(format: u32) -> Option<SocketAddr> {
    let mut all = usable().into_iter().map(|interface| interface.address);
    all.find(|address| format != FI_SOCKADDR_IN6 || address.is_ipv6())
}

/// Those that may be used, best first.
fn usable() -> Vec<Interface> {
    // Some have no speed to read, which is no error of fi_getinfo's.
    let _errno = errno::keep();
    let wanted = settings::get().interface;
    let mut usable = interfaces::list().unwrap_or_default();
    usable.retain(|one| match &wanted {
        Some(name) => one.name == *name,
        // A tunnel leads to one place only.
        None => !one.point_to_point,
    });
    usable.sort_by_cached_key(|one| {
        let speed = interfaces::speed(&one.name).unwrap_or(0);
        (one.loopback, Reverse(speed), one.address.is_ipv6(), one.address.ip())
    });
    usable
}

fn offer(interface: &Interface, protocol: u32) -> Info {
    let fabric = format!("{}/{}", subnet(interface), interface.prefix);
    let format = format_of(&interface.address);
    let reach = if interface.loopback {
        FI_LOCAL_COMM
    } else {
        FI_LOCAL_COMM | FI_REMOTE_COMM
    };
    let mut info = super::rdm(fabric, interface.name.clone(), format, protocol, reach).offer();
    info.src_addr = Some(to_bytes(&interface.address));
    info
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
    let own = info.src_addr.take().as_deref().and_then(from_bytes).ok_or(nothing)?;
    let format = info.addr_format;
    fill(info, query, &System)?;
    let asked = info.src_addr.as_deref().and_then(from_bytes);
    let source = match asked {
        None => own,
        Some(asked) if asked.ip().is_unspecified() => SocketAddr::new(own.ip(), asked.port()),
        // All of 127.0.0.0/8 is this machine's.
        Some(asked)
            if asked.ip() == own.ip() || asked.is_ipv4() && asked.ip().is_loopback() && own.ip().is_loopback() =>
        {
            asked
        }
        Some(_) => return Err(nothing),
    };
    if format_of(&source) != format {
        return Err(nothing);
    }
    let source = match (source, own) {
        // An address without its interface does for programs, but not for the kernel.
        (SocketAddr::V6(mut source), SocketAddr::V6(own)) if source.scope_id() == 0 => {
            source.set_scope_id(own.scope_id());
            source.into()
        }
        (source, _) => source,
    };
    info.src_addr = Some(to_bytes(&source));
    info.addr_format = format;
    Ok(())
}
