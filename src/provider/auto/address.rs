//! Addresses of provider `auto`: `fi_auto://NAME-IP-PORT`, all of one length, 48 bytes with the NUL: that is what LCI has
//! room for (MPICH 64, the NCCL plug-in of AWS 56).
//!
//! NAME is a number that the endpoint drew. What stands behind the `://` is its name in shared memory, too, so an
//! endpoint that a process finds there by it is on the same machine, of the same user, and can be reached. IP (an IPv4
//! address is mapped) and PORT are where it listens; zeros: it has no network. All are numbers in digits of six bits
//! (`DIGITS`). One bit of NAME says that an RDMA device listens there, besides tcp. A context of a scalable endpoint has
//! its number behind that, as shared memory writes it. Called by `mod`, `endpoint` and `network`.

use crate::abi::types::FI_EINVAL;
use crate::api::av::string::name;
use crate::api::av::{AddressKind, Layout, StringAddr};
use crate::api::errno::{Errno, Result};
use crate::sys::resolve::from_bytes;
use crate::transport::connecting::address;
use crate::transport::shm;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const SCHEME: &str = "fi_auto";
const PREFIX: &str = "fi_auto://";

/// They may stand in the name of a file.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_~";

/// How many digits each part has.
const NAME: usize = 10;
const IP: usize = 22;
const PORT: usize = 3;

/// How many names there are.
pub(super) const NAMES: u64 = 1 << 56;

/// The bit of those that a device leads to.
const CARD: u64 = NAMES >> 1;

/// What an address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// 0: one is to be drawn. Below `NAMES`.
    pub name: u64,
    pub place: Option<SocketAddr>,
    pub context: usize,
}

impl Address {
    /// Of an address as programs have it, or of the part behind `://`. None: it is none of ours.
    pub(super) fn of(bytes: &[u8]) -> Option<Address> {
        let text = name(bytes);
        let context = shm::context_number(text)?;
        let mut parts = shm::base(text).split(|byte| *byte == b'-');
        let (name, ip, port) = (parts.next()?, parts.next()?, parts.next()?);
        if (name.len(), ip.len(), port.len()) != (NAME, IP, PORT) || parts.next().is_some() {
            return None;
        }
        let name = u64::try_from(number_of(name)?).ok().filter(|name| *name < NAMES)?;
        let ip = Ipv6Addr::from_bits(number_of(ip)?);
        let port = u16::try_from(number_of(port)?).ok()?;
        let somewhere = !ip.is_unspecified() || port != 0;
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        Some(Address {
            name,
            place: somewhere.then(|| SocketAddr::new(ip, port)),
            context,
        })
    }

    /// Without the scheme: how an endpoint is called in shared memory, and how the engine's transport knows it.
    pub(super) fn text(&self) -> Vec<u8> {
        let ip = match self.place.map(|place| place.ip()) {
            Some(IpAddr::V4(ip)) => ip.to_ipv6_mapped(),
            Some(IpAddr::V6(ip)) => ip,
            None => Ipv6Addr::UNSPECIFIED,
        };
        let port = self.place.map_or(0, |place| place.port());
        let parts = [(self.name.into(), NAME), (ip.to_bits(), IP), (port.into(), PORT)];
        let text = parts.map(|(number, digits)| in_digits(number, digits)).join(&b'-');
        shm::context(&text, self.context)
    }

    /// The same, with the bit of its name that says whether a device leads to it.
    pub(super) fn with_card(self, has_card: bool) -> Address {
        let name = self.name & !CARD | if has_card { CARD } else { 0 };
        Address { name, ..self }
    }

    /// Where a device listens. Contexts of a scalable endpoint have none, as a device has one endpoint at a place.
    pub(super) fn card(&self) -> Option<SocketAddr> {
        self.place.filter(|_| self.name & CARD != 0 && self.context == 0)
    }

    /// The endpoint's place in the form that the network's transport knows.
    pub(super) fn network(&self) -> Option<Vec<u8>> {
        let place = address::of(&self.place?);
        Some(address::context(&place, self.context))
    }

    /// The same endpoint, listening at this socket address.
    pub(super) fn listening_at(self, socket: &[u8]) -> Address {
        let place = from_bytes(socket).map(without_scope);
        Address { place, ..self }
    }

    /// The number by which the network's transport tells this endpoint from another at the same place: that of each
    /// context is its own.
    pub(super) fn instance(&self) -> u64 {
        self.name.wrapping_add(spread(self.context))
    }

    /// The same back: whoever calls itself so at this place of the network.
    pub(super) fn met(network: &[u8], instance: u64) -> Option<Address> {
        let context = usize::from(address::context_number(network));
        let name = instance.wrapping_sub(spread(context));
        (name < NAMES).then_some(())?;
        Some(Address {
            name,
            place: Some(without_scope(address::place(address::base(network))?)),
            context,
        })
    }
}

fn in_digits(number: u128, digits: usize) -> Vec<u8> {
    let digit = |place| DIGITS[(number >> (6 * place)) as usize % DIGITS.len()];
    (0..digits).rev().map(digit).collect()
}

/// None: it is no number, or too large a one.
fn number_of(text: &[u8]) -> Option<u128> {
    text.iter().try_fold(0u128, |number, byte| {
        let digit = DIGITS.iter().position(|digit| digit == byte)?;
        (number >> 122 == 0).then_some(number << 6 | digit as u128)
    })
}

fn spread(context: usize) -> u64 {
    (context as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The scope of a link-local address is a number of the machine that knows it.
fn without_scope(place: SocketAddr) -> SocketAddr {
    SocketAddr::new(place.ip(), place.port())
}

/// As programs have it: with the scheme, and the NUL at the end of a C string.
pub(super) fn whole(text: &[u8]) -> Vec<u8> {
    [PREFIX.as_bytes(), text, &[0]].concat()
}

/// These addresses in a vector: strings, of which only whole ones are taken.
pub(super) struct AutoAddr {
    strings: StringAddr,
}

impl Default for AutoAddr {
    fn default() -> AutoAddr {
        AutoAddr {
            strings: StringAddr::of(SCHEME),
        }
    }
}

impl AddressKind for AutoAddr {
    fn format(&self) -> u32 {
        self.strings.format()
    }

    fn layout(&self) -> Layout {
        self.strings.layout()
    }

    fn longest(&self) -> usize {
        self.strings.longest()
    }

    fn check(&self, address: &[u8]) -> Result<()> {
        self.strings.check(address)?;
        Address::of(address).map(drop).ok_or(Errno(FI_EINVAL))
    }

    fn kept<'a>(&self, address: &'a [u8]) -> Cow<'a, [u8]> {
        self.strings.kept(address)
    }

    fn key<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        self.strings.key(address)
    }

    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>> {
        self.strings.resolve(node, service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(name: u64, place: Option<&str>, context: usize) -> Address {
        Address {
            name,
            place: place.map(|place| place.parse().unwrap()),
            context,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let rows = [
            address(1, Some("10.1.2.3:4567"), 0),
            address(NAMES - 1, Some("[2001:db8::1]:65535"), 0),
            address(0, Some("127.0.0.1:0"), 0),
            address(7, Some("0.0.0.0:9"), 0),
            address(7, None, 0),
            address(7, Some("10.1.2.3:4567"), 15),
        ];
        for row in rows {
            let text = row.text();
            assert_eq!(Address::of(&text), Some(row));
            assert_eq!(Address::of(&whole(&text)), Some(row));
            assert_eq!(whole(shm::base(&text)).len(), 48);
        }
    }

    #[test]
    fn whoever_is_met_on_the_network_has_the_address_that_it_tells() {
        for place in ["10.1.2.3:4567", "[2001:db8::1]:65535"] {
            for context in [0, 1, 15] {
                let told = address(77, Some(place), context);
                let network = told.network().unwrap();
                assert_eq!(Address::met(&network, told.instance()), Some(told));
            }
        }
        let numbers = [0, 1, 2].map(|context| address(77, None, context).instance());
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    }

    #[test]
    fn a_bit_of_the_name_tells_of_a_device() {
        let place = Some("10.1.2.3:4567");
        let without = address(NAMES - 1, place, 0).with_card(false);
        let with = without.with_card(true);
        assert_eq!((without.card(), with.card()), (None, with.place));
        assert_eq!(with.with_card(false), without);
        assert_eq!(Address::of(&with.text()), Some(with));
        let nowhere = [address(NAMES - 1, place, 1), address(NAMES - 1, None, 0)];
        assert_eq!(nowhere.map(|address| address.card()), [None, None]);
    }

    #[test]
    fn nothing_else_is_read() {
        let good = String::from_utf8(address(1, Some("10.1.2.3:4567"), 0).text()).unwrap();
        assert!(Address::of(good.as_bytes()).is_some());
        let rows = [
            String::new(),
            good[1..].to_owned(),
            format!("{good}0"),
            good.replace('-', "0"),
            good.replacen('0', "+", 1),
            good.replacen('0', "-", 1),
            good.replacen('0', "4", 1),
            good.replacen("-0", "-4", 1),
            format!("{}~~~", &good[..good.len() - 3]),
            format!("{good}\u{1f}00x1"),
            format!("{good}\u{1f}"),
            "fi_shm://0123456789abcdef:01234567".to_owned(),
        ];
        for row in rows {
            assert_eq!(Address::of(row.as_bytes()), None, "{row}");
        }
    }
}
