//! The address of an endpoint (FI_ADDR_IB_UD), and what of it the header of a datagram tells.

use super::PREFIX;
use core::net::{Ipv4Addr, Ipv6Addr};

/// `struct ofi_ib_ud_ep_name` of the C library, which is what both exchange with fi_getname and fi_av_insert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Address {
    /// Of the port, as the network names it.
    pub gid: [u8; 16],
    /// The queue pair.
    pub pair: u32,
    /// Within the subnet; 0 on Ethernet.
    pub lid: u16,
    pub partition: u16,
    /// A number that a program may give; nothing here depends on it.
    pub service: u16,
    pub service_level: u8,
}

/// What a received datagram tells of its sender.
pub(super) type Sender = ([u8; 16], u32);

impl Address {
    pub const SIZE: usize = 32;

    /// The bytes that mean something; the rest are zero.
    pub const TOLD: usize = 27;

    pub fn from_bytes(bytes: &[u8]) -> Option<Address> {
        let short = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Address {
            gid: *bytes.first_chunk()?,
            pair: u32::from_ne_bytes(*bytes.get(16..)?.first_chunk()?),
            lid: short(20)?,
            partition: short(22)?,
            service: short(24)?,
            service_level: *bytes.get(26)?,
        })
    }

    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..16].copy_from_slice(&self.gid);
        bytes[16..20].copy_from_slice(&self.pair.to_ne_bytes());
        bytes[20..22].copy_from_slice(&self.lid.to_ne_bytes());
        bytes[22..24].copy_from_slice(&self.partition.to_ne_bytes());
        bytes[24..26].copy_from_slice(&self.service.to_ne_bytes());
        bytes[26] = self.service_level;
        bytes
    }

    /// Of its text, as fi_av_straddr writes it: `fi_addr_ib_ud://GID:PAIR/LID/PARTITION/LEVEL`, numbers in hexadecimal.
    pub fn from_text(text: &str) -> Option<Address> {
        let (scheme, rest) = text.split_once("://")?;
        let (place, numbers) = rest.split_once('/')?;
        let (gid, pair) = place.rsplit_once(':')?;
        let mut numbers = numbers.split('/');
        let mut number = || u16::from_str_radix(numbers.next()?, 16).ok();
        let address = Address {
            gid: gid.parse::<Ipv6Addr>().ok()?.octets(),
            pair: u32::from_str_radix(pair, 16).ok()?,
            lid: number()?,
            partition: number()?,
            service: 0,
            service_level: u8::try_from(number()?).ok()?,
        };
        (scheme.eq_ignore_ascii_case("fi_addr_ib_ud") && numbers.next().is_none()).then_some(address)
    }

    /// The port is named by its GID: the half that is its own is there.
    pub fn has_gid(&self) -> bool {
        self.gid[8..] != [0; 8]
    }

    /// Whether anything could be sent there.
    pub fn is_place(&self) -> bool {
        self.has_gid() || self.lid != 0
    }

    pub(super) fn sender(&self) -> Sender {
        (self.gid, self.pair)
    }
}

/// The GID that sent a datagram with this header. It is that of InfiniBand or of IPv6, which have the address in one
/// place, or ends with that of IPv4.
pub(super) fn sender_gid(header: &[u8; PREFIX]) -> Option<[u8; 16]> {
    const IPV4: usize = 20;
    if header[0] >> 4 == 6 {
        return header[8..].first_chunk().copied();
    }
    if header[IPV4] != 0x45 {
        return None;
    }
    let from: &[u8; 4] = header[IPV4 + 12..].first_chunk()?;
    Some(Ipv4Addr::from(*from).to_ipv6_mapped().octets())
}
