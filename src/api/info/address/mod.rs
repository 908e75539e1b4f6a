//! The addresses of a reply: which end node and service name, what is copied from the hints, what is looked up.
//!
//! For providers whose addresses are socket addresses or strings. A provider with addresses of its own calls
//! `check_request` and does the rest itself. Which interfaces there are is the provider's affair too.

mod found;
mod interface;

pub use found::Found;
pub use interface::of_interface;

use super::addr_format::{includes, is_ip};
use super::model::Info;
use super::query::Query;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::sys::resolve::{self, from_bytes, to_bytes};
use found::Remembering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Any,
    V4,
    V6,
}

/// Which end of a connection an address is for. Without a node, the source is the wildcard address, the destination
/// loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Dest,
}

/// Whether names may be looked up, or only numbers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Resolve,
    Numeric,
}

/// Whom to ask about names and routes. Tests have one that needs no network.
pub trait Resolver {
    fn lookup(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        family: Family,
        end: End,
        names: Names,
    ) -> Option<SocketAddr>;

    /// The address from which a packet to `dest` would leave, port 0.
    fn source_for(&self, dest: &SocketAddr) -> Option<SocketAddr>;
}

/// The machine's own resolver.
pub struct System;

impl Resolver for System {
    fn lookup(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        family: Family,
        end: End,
        names: Names,
    ) -> Option<SocketAddr> {
        let family = match family {
            Family::Any => libc::AF_UNSPEC,
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        };
        let passive = if end == End::Source { libc::AI_PASSIVE } else { 0 };
        let numeric = if names == Names::Numeric {
            libc::AI_NUMERICHOST
        } else {
            0
        };
        resolve::lookup(node, service, family, passive | numeric)
            .inspect_err(|error| log!(Info, Core, "cannot resolve {node:?} {service:?}: {error}"))
            .ok()
    }

    fn source_for(&self, dest: &SocketAddr) -> Option<SocketAddr> {
        resolve::source_for(dest)
            .inspect_err(|error| log!(Info, Core, "no route to {dest}: {error}"))
            .ok()
    }
}

/// Checked first: with FI_SOURCE, node or service must be there.
pub fn check_request(query: &Query) -> Result<()> {
    if query.has_flag(FI_SOURCE) && query.node.is_none() && query.service.is_none() {
        log!(Info, Core, "FI_SOURCE set, but neither node nor service");
        return Err(Errno(FI_EINVAL));
    }
    Ok(())
}

/// Fills in both addresses of a reply as far as the query has them, and makes its address format concrete.
pub fn fill(info: &mut Info, query: &Query, resolver: &dyn Resolver) -> Result<()> {
    check_request(query)?;
    let resolver = &Remembering {
        found: query.found,
        ask: resolver,
    };
    let named = query.node.is_some() || query.service.is_some();
    if query.has_flag(FI_SOURCE) {
        info.src_addr = name_to_addr(info, query, End::Source, resolver)?;
    } else {
        if named {
            info.dest_addr = name_to_addr(info, query, End::Dest, resolver)?;
        }
        copy_hint(info, query, End::Source)?;
    }
    if query.has_flag(FI_SOURCE) || !named {
        copy_hint(info, query, End::Dest)?;
    }
    if info.src_addr.is_none() {
        route(info, resolver);
    }
    Ok(())
}

/// What node and service name, in the format of the info, which becomes concrete.
fn name_to_addr(info: &mut Info, query: &Query, end: End, resolver: &dyn Resolver) -> Result<Option<Vec<u8>>> {
    if info.addr_format == FI_ADDR_STR {
        return Ok(string_addr(query.node));
    }
    if !is_ip(info.addr_format) {
        return Err(Errno(FI_ENOSYS));
    }
    let names = if query.has_flag(FI_NUMERICHOST) {
        Names::Numeric
    } else {
        Names::Resolve
    };
    let found = match query.node.and_then(split_uri) {
        Some(_) if query.service.is_some() => return Err(Errno(FI_EINVAL)),
        Some((scheme, rest)) => parse_uri(scheme, rest),
        None => resolver.lookup(query.node, query.service, wanted_family(info, query), end, names),
    };
    let addr = found.ok_or(Errno(FI_ENODATA))?;
    let format = format_of(&addr);
    let asked = query.hints.map_or(FI_FORMAT_UNSPEC, |hints| hints.addr_format);
    if !includes(info.addr_format, format) || !includes(asked, format) {
        return Err(Errno(FI_ENODATA));
    }
    info.addr_format = format;
    Ok(Some(to_bytes(&addr)))
}

fn wanted_family(info: &Info, query: &Query) -> Family {
    let asked = query.hints.map_or(FI_FORMAT_UNSPEC, |hints| hints.addr_format);
    match (info.addr_format, asked) {
        (FI_SOCKADDR_IN, _) | (_, FI_SOCKADDR_IN) => Family::V4,
        (FI_SOCKADDR_IN6, _) | (_, FI_SOCKADDR_IN6) => Family::V6,
        _ => Family::Any,
    }
}

pub fn format_of(addr: &SocketAddr) -> u32 {
    if addr.is_ipv4() {
        FI_SOCKADDR_IN
    } else {
        FI_SOCKADDR_IN6
    }
}

/// An FI_ADDR_STR: the text of a URI with its NUL. Any other node is for the provider to make a name of.
pub fn string_addr(node: Option<&str>) -> Option<Vec<u8>> {
    let node = node.filter(|node| node.contains("://"))?;
    Some(node.bytes().chain([0]).collect())
}

fn split_uri(node: &str) -> Option<(&str, &str)> {
    node.split_once("://")
}

/// `fi_sockaddr_in://10.31.6.12:7471`, as the man page has it; what follows a slash or question mark is not for us.
pub fn parse_uri(scheme: &str, rest: &str) -> Option<SocketAddr> {
    let any = match scheme.to_ascii_lowercase().as_str() {
        "fi_sockaddr" | "fi_sockaddr_ip" | "fi_sockaddr_in" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "fi_sockaddr_in6" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let place = rest.get(..end)?;
    if let Some(port) = place.strip_prefix(':') {
        return Some(SocketAddr::new(any, port.parse().ok()?));
    }
    let bare = || place.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let addr = place.parse().ok().or_else(|| Some(SocketAddr::new(bare()?, 0)))?;
    // The scheme may be for one family only.
    let fits = match scheme.to_ascii_lowercase().as_str() {
        "fi_sockaddr_in" => addr.is_ipv4(),
        "fi_sockaddr_in6" => addr.is_ipv6(),
        _ => true,
    };
    fits.then_some(addr)
}

/// Takes over an address the application gave, with its format.
fn copy_hint(info: &mut Info, query: &Query, end: End) -> Result<()> {
    let Some(hints) = query.hints else { return Ok(()) };
    let given = match end {
        End::Source => &hints.src_addr,
        End::Dest => &hints.dest_addr,
    };
    let Some(bytes) = given else { return Ok(()) };
    info.addr_format = hint_format(info, hints, bytes)?;
    match end {
        End::Source => info.src_addr = Some(bytes.clone()),
        End::Dest => info.dest_addr = Some(bytes.clone()),
    }
    Ok(())
}

/// The family a socket address says it is of beats the format beside it, which may be a general one or none.
fn hint_format(info: &Info, hints: &Info, bytes: &[u8]) -> Result<u32> {
    let format = if hints.addr_format == FI_FORMAT_UNSPEC {
        info.addr_format
    } else {
        hints.addr_format
    };
    if !is_ip(format) {
        return Ok(format);
    }
    match from_bytes(bytes).map(|addr| format_of(&addr)) {
        Some(concrete) if includes(format, concrete) => Ok(concrete),
        _ => {
            log!(Info, Core, "an address in the hints is not of its format");
            Err(Errno(FI_EINVAL))
        }
    }
}

/// Finds our end of the way to a known destination. That there is none is no error: the provider may know better.
fn route(info: &mut Info, resolver: &dyn Resolver) {
    if !is_ip(info.addr_format) {
        return;
    }
    let dest = info.dest_addr.as_deref().and_then(from_bytes);
    if let Some(source) = dest.and_then(|dest| resolver.source_for(&dest)) {
        info.src_addr = Some(to_bytes(&source));
    }
}

#[cfg(test)]
mod tests;
