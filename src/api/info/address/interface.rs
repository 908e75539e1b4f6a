//! The addresses of an answer that was made of an offer for one address of this machine, which stands in it as the
//! source.
//!
//! For providers that offer one info for each address of an interface. Called by `provider`.

use super::{System, fill, format_of};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::sys::resolve::{from_bytes, to_bytes};
use std::net::SocketAddr;

/// Source and destination of an answer. An error: the query wants another interface.
pub fn of_interface(info: &mut Info, query: &Query) -> Result<()> {
    let nothing = Errno(FI_ENODATA);
    let own = info.src_addr.take().as_deref().and_then(from_bytes).ok_or(nothing)?;
    let format = info.addr_format;
    fill(info, query, &System)?;
    let asked = info.src_addr.as_deref().and_then(from_bytes);
    let source = match asked {
        None => own,
        Some(asked) if asked.ip().is_unspecified() => SocketAddr::new(own.ip(), asked.port()),
        Some(asked) if is_of(&own, &asked) => asked,
        Some(asked) => {
            log!(
                Info,
                Fabric,
                "fi_getinfo: {} is not an address of {own}'s interface",
                asked.ip()
            );
            return Err(nothing);
        }
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

/// Whether this is an address of the interface that has `own`. All of 127.0.0.0/8 is this machine's.
fn is_of(own: &SocketAddr, asked: &SocketAddr) -> bool {
    match (own, asked) {
        // Several interfaces may have the same link-local address.
        (SocketAddr::V6(own), SocketAddr::V6(asked)) if own.scope_id() != 0 && asked.scope_id() != 0 => {
            (own.ip(), own.scope_id()) == (asked.ip(), asked.scope_id())
        }
        (SocketAddr::V4(own), SocketAddr::V4(asked)) if own.ip().is_loopback() => asked.ip().is_loopback(),
        _ => own.ip() == asked.ip(),
    }
}
