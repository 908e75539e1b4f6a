//! Addresses as text, one form per address format. The numbers stand in memory as the providers lay them out.
//!
//! An address too short for its format, or of a family the format cannot hold, has no text.

use super::{Pointer, Text};
use crate::abi::types::*;
use core::net::{Ipv4Addr, Ipv6Addr};

const AF_INET: u16 = libc::AF_INET as u16;
const AF_INET6: u16 = libc::AF_INET6 as u16;
const AF_IB: u16 = 27;

/// No address needs more bytes than this, except the ones that are strings.
pub const LONGEST: usize = 48;

/// Writes an address that lies at `at`; `bytes` is `None` where the C pointer is NULL.
pub fn add(text: &mut Text, format: u32, at: Pointer, bytes: Option<&[u8]>) {
    match bytes {
        None => write!(text, "(null)"),
        Some(bytes) => text.add_piece(&straddr(format, at, bytes).unwrap_or_default()),
    }
}

/// The text of an address, as fi_av_straddr gives it too.
pub fn straddr(format: u32, at: Pointer, bytes: &[u8]) -> Option<Vec<u8>> {
    let text = match format {
        FI_SOCKADDR => match family(bytes)? {
            AF_INET => sockaddr_in(bytes),
            AF_INET6 => sockaddr_in6(bytes),
            AF_IB => sockaddr_ib(bytes),
            _ => None,
        },
        FI_SOCKADDR_IP => match family(bytes)? {
            AF_INET => sockaddr_in(bytes),
            AF_INET6 => sockaddr_in6(bytes),
            _ => None,
        },
        FI_SOCKADDR_IN => sockaddr_in(bytes),
        FI_SOCKADDR_IN6 => sockaddr_in6(bytes),
        FI_SOCKADDR_IB => sockaddr_ib(bytes),
        FI_ADDR_EFA => efa(bytes),
        FI_ADDR_IB_UD => ib_ud(bytes),
        FI_ADDR_PSMX2 => Some(format!(
            "fi_addr_psmx2://{:x}:{:x}",
            word64(bytes, 0)?,
            word64(bytes, 8)?
        )),
        FI_ADDR_PSMX3 => psmx3(bytes),
        FI_ADDR_OPX => Some(format!("fi_addr_opx://{:016x}", word64(bytes, 0)?)),
        FI_ADDR_CXI => Some(format!("fi_addr_cxi://0x{:08x}", word32(bytes, 0)?)),
        FI_ADDR_MLX => Some(format!("fi_addr_mlx://{at}")),
        FI_ADDR_UCX => Some(format!("fi_addr_ucx://{at}")),
        FI_ADDR_STR => return Some(bytes.iter().copied().take_while(|byte| *byte != 0).collect()),
        _ => None,
    };
    text.map(String::into_bytes)
}

/// struct sockaddr_in: family, port, address. The family is believed over the format, as inet_ntop does.
fn sockaddr_in(bytes: &[u8]) -> Option<String> {
    let ip = ip(family(bytes)?, bytes.get(4..)?)?;
    Some(format!("fi_sockaddr_in://{ip}:{}", port(bytes)?))
}

/// struct sockaddr_in6: family, port, flow, address, scope.
fn sockaddr_in6(bytes: &[u8]) -> Option<String> {
    let ip = ip(family(bytes)?, bytes.get(8..)?)?;
    Some(format!("fi_sockaddr_in6://[{ip}]:{}", port(bytes)?))
}

/// struct sockaddr_ib: family, partition key, flow, GID, service id (port space in the middle), mask, scope.
fn sockaddr_ib(bytes: &[u8]) -> Option<String> {
    let gid = ipv6(bytes.get(8..)?)?;
    let key = u16::from_be(word16(bytes, 2)?);
    let space = (u64::from_be(word64(bytes, 24)?) >> 16) & 0xfff;
    let scope = u64::from_be(word64(bytes, 40)?) & 0xff;
    Some(format!("fi_sockaddr_ib://[{gid}]:0x{key:x}:0x{space:x}:0x{scope:x}"))
}

/// GID, queue pair, connection id.
fn efa(bytes: &[u8]) -> Option<String> {
    Some(format!(
        "fi_addr_efa://[{}]:{}:{}",
        ipv6(bytes)?,
        word16(bytes, 16)?,
        word32(bytes, 20)?
    ))
}

/// GID, queue pair, LID, partition key, service level.
fn ib_ud(bytes: &[u8]) -> Option<String> {
    let (gid, queue) = (ipv6(bytes)?, word32(bytes, 16)?);
    let (lid, key, level) = (word16(bytes, 20)?, word16(bytes, 22)?, bytes.get(26)?);
    Some(format!("fi_addr_ib_ud://{gid}:{queue:x}/{lid:x}/{key:x}/{level:x}"))
}

fn psmx3(bytes: &[u8]) -> Option<String> {
    let [a, b, c, d] = [
        word64(bytes, 0)?,
        word64(bytes, 8)?,
        word64(bytes, 16)?,
        word64(bytes, 24)?,
    ];
    Some(format!("fi_addr_psmx3://{a:x}:{b:x}:{c:x}:{d:x}"))
}

fn ip(family: u16, bytes: &[u8]) -> Option<String> {
    match family {
        AF_INET => bytes
            .first_chunk()
            .map(|octets: &[u8; 4]| Ipv4Addr::from(*octets).to_string()),
        AF_INET6 => ipv6(bytes),
        _ => None,
    }
}

/// As inet_ntop writes it. That differs from Rust in one place: an address of which only the last four bytes are set
/// ends in dots.
fn ipv6(bytes: &[u8]) -> Option<String> {
    let octets: [u8; 16] = *bytes.first_chunk()?;
    let ip = Ipv6Addr::from(octets);
    let tail: [u8; 4] = *octets.last_chunk()?;
    let dotted = octets[..12].iter().all(|byte| *byte == 0) && tail[..2] != [0, 0];
    Some(if dotted {
        format!("::{}", Ipv4Addr::from(tail))
    } else {
        ip.to_string()
    })
}

fn family(bytes: &[u8]) -> Option<u16> {
    word16(bytes, 0)
}

fn port(bytes: &[u8]) -> Option<u16> {
    word16(bytes, 2).map(u16::from_be)
}

fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
