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
mod tests {
    use super::*;

    /// Bytes 1, 2, 3 ... with the family in front where the format wants one.
    fn counted(family: u16) -> [u8; LONGEST] {
        let mut bytes: [u8; LONGEST] = core::array::from_fn(|i| i as u8 + 1);
        if family != 0 {
            bytes[..2].copy_from_slice(&family.to_ne_bytes());
        }
        bytes
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn formats_have_the_texts_of_the_c_library() {
        let table = [
            (FI_SOCKADDR, AF_INET, "fi_sockaddr_in://5.6.7.8:772"),
            (
                FI_SOCKADDR,
                AF_INET6,
                "fi_sockaddr_in6://[90a:b0c:d0e:f10:1112:1314:1516:1718]:772",
            ),
            (
                FI_SOCKADDR,
                AF_IB,
                "fi_sockaddr_ib://[90a:b0c:d0e:f10:1112:1314:1516:1718]:0x304:0xd1e:0x30",
            ),
            (FI_SOCKADDR_IP, AF_INET, "fi_sockaddr_in://5.6.7.8:772"),
            (FI_SOCKADDR_IP, AF_IB, ""),
            (
                FI_SOCKADDR_IN,
                AF_INET6,
                "fi_sockaddr_in://506:708:90a:b0c:d0e:f10:1112:1314:772",
            ),
            (FI_SOCKADDR_IN6, AF_INET, "fi_sockaddr_in6://[9.10.11.12]:772"),
            (FI_SOCKADDR_IN6, 1, ""),
            (
                FI_ADDR_EFA,
                0,
                "fi_addr_efa://[102:304:506:708:90a:b0c:d0e:f10]:4625:404166165",
            ),
            (
                FI_ADDR_IB_UD,
                0,
                "fi_addr_ib_ud://102:304:506:708:90a:b0c:d0e:f10:14131211/1615/1817/1b",
            ),
            (FI_ADDR_PSMX2, 0, "fi_addr_psmx2://807060504030201:100f0e0d0c0b0a09"),
            (
                FI_ADDR_PSMX3,
                0,
                "fi_addr_psmx3://807060504030201:100f0e0d0c0b0a09:1817161514131211:201f1e1d1c1b1a19",
            ),
            (FI_ADDR_OPX, 0, "fi_addr_opx://0807060504030201"),
            (FI_ADDR_CXI, 0, "fi_addr_cxi://0x04030201"),
            (FI_ADDR_MLX, 0, "fi_addr_mlx://0x1000"),
            (FI_ADDR_UCX, 0, "fi_addr_ucx://0x1000"),
            (FI_ADDR_PSMX, 0, ""),
            (FI_FORMAT_UNSPEC, AF_INET, ""),
        ];
        for (format, family, expected) in table {
            let text = straddr(format, Pointer(0x1000), &counted(family)).unwrap_or_default();
            assert_eq!(
                String::from_utf8_lossy(&text),
                expected,
                "format {format} family {family}"
            );
        }
    }

    #[test]
    fn short_addresses_have_no_text() {
        let table = [
            (FI_SOCKADDR_IN, AF_INET, 8),
            (FI_SOCKADDR_IN6, AF_INET6, 24),
            (FI_SOCKADDR_IB, AF_IB, 48),
            (FI_ADDR_EFA, 0, 24),
            (FI_ADDR_IB_UD, 0, 27),
            (FI_ADDR_PSMX2, 0, 16),
            (FI_ADDR_PSMX3, 0, 32),
            (FI_ADDR_OPX, 0, 8),
            (FI_ADDR_CXI, 0, 4),
        ];
        for (format, family, need) in table {
            let bytes = counted(family);
            assert!(straddr(format, Pointer(0), &bytes[..need]).is_some(), "format {format}");
            for short in 0..need {
                assert_eq!(
                    straddr(format, Pointer(0), &bytes[..short]),
                    None,
                    "format {format} of {short} bytes"
                );
            }
        }
    }

    #[test]
    fn ipv6_is_written_as_inet_ntop_does() {
        let table: [([u16; 8], &str); 8] = [
            ([0, 0, 0, 0, 0, 0, 0, 0], "::"),
            ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
            ([0, 0, 0, 0, 0, 0, 0x102, 0x304], "::1.2.3.4"),
            ([0, 0, 0, 0, 0, 0, 1, 0], "::0.1.0.0"),
            ([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304], "::ffff:1.2.3.4"),
            ([0, 0, 0, 0, 1, 0, 0, 0], "::1:0:0:0"),
            ([0xfe80, 0, 1, 0, 0, 2, 0, 3], "fe80:0:1::2:0:3"),
            ([1, 0, 2, 3, 4, 5, 6, 7], "1:0:2:3:4:5:6:7"),
        ];
        for (words, expected) in table {
            assert_eq!(ipv6(&Ipv6Addr::from(words).octets()).as_deref(), Some(expected));
        }
    }

    #[test]
    fn string_addresses_end_at_their_nul() {
        assert_eq!(
            straddr(FI_ADDR_STR, Pointer(1), b"fi_shm://7\0\0x"),
            Some(b"fi_shm://7".to_vec())
        );
        assert_eq!(
            straddr(FI_ADDR_STR, Pointer(1), b"no end \xff"),
            Some(b"no end \xff".to_vec())
        );
    }
}
