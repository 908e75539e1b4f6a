//! What an address vector must know of the addresses it keeps: how they lie in an array, which are the same, how a
//! name becomes one. One implementation per address format.

use crate::abi::types::fi_addr_t;
use crate::api::errno::Result;
use crate::api::tostr::{Pointer, address};
use std::borrow::Cow;

/// How the addresses of one fi_av_insert lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One after the other, each with the NUL it ends in, as fi_getname gives them.
    Strings,
    /// This many bytes each.
    Fixed(usize),
    /// Socket addresses, each as long as the family in the first two bytes of the first one says: `sockaddr_len`.
    Family,
}

/// What an address format means to an address vector.
pub trait AddressKind: Send + Sync {
    /// FI_SOCKADDR_IN, FI_ADDR_STR ...
    fn format(&self) -> u32;

    fn layout(&self) -> Layout;

    /// The most bytes an address may have.
    fn longest(&self) -> usize;

    /// Whether a message could be sent there at all.
    fn check(&self, address: &[u8]) -> Result<()>;

    /// What a vector keeps of an address that `check` let pass: the form that the provider's transport knows.
    fn kept<'a>(&self, address: &'a [u8]) -> Cow<'a, [u8]> {
        address.into()
    }

    /// A kept address in the form of the format, as fi_av_lookup and fi_getname give it.
    fn told<'a>(&self, kept: &'a [u8]) -> Cow<'a, [u8]> {
        kept.into()
    }

    /// The part of a kept address by which two are the same.
    fn key<'a>(&self, address: &'a [u8]) -> &'a [u8];

    /// The address that node and service name, as fi_getinfo reads them.
    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>>;

    /// A vector has a kept address that it had not. An error: it is not to have it. May take its time.
    fn inserted(&self, _kept: &[u8]) -> Result<()> {
        Ok(())
    }

    /// It has it no longer, and endpoints have been told. Not called for what a vector has when it is closed.
    fn removed(&self, _kept: &[u8]) {}

    /// As fi_av_straddr writes it.
    fn text(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        address::straddr(self.format(), Pointer(0), bytes)
    }
}

const AF_INET: u16 = libc::AF_INET as u16;
const AF_INET6: u16 = libc::AF_INET6 as u16;

/// The size of a socket address of a family.
pub fn sockaddr_len(family: u16) -> Option<usize> {
    match family {
        AF_INET => Some(size_of::<libc::sockaddr_in>()),
        AF_INET6 => Some(size_of::<libc::sockaddr_in6>()),
        _ => None,
    }
}

pub fn family(address: &[u8]) -> Option<u16> {
    address.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// The addresses of an array, one by one. Ends early when the array does.
pub struct Split<'a> {
    rest: &'a [u8],
    /// None: strings.
    stride: Option<usize>,
}

impl<'a> Split<'a> {
    pub fn new(layout: Layout, array: &'a [u8]) -> Split<'a> {
        let stride = match layout {
            Layout::Strings => None,
            Layout::Fixed(len) => Some(len),
            Layout::Family => Some(family(array).and_then(sockaddr_len).unwrap_or(0)),
        };
        Split { rest: array, stride }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let len = match self.stride {
            Some(len) => len,
            None => self
                .rest
                .iter()
                .position(|byte| *byte == 0)
                .map_or(self.rest.len(), |nul| nul + 1),
        };
        if len == 0 {
            return None;
        }
        let (first, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(first)
    }
}

/// fi_addr_t values of a vector whose receive contexts take the top `rx_ctx_bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    rx_ctx_bits: u32,
}

impl Shape {
    /// More receive contexts than this no endpoint has, and the table's indices must have room beside them.
    pub const MAX_RX_CTX_BITS: u32 = 16;

    pub fn new(rx_ctx_bits: i32) -> Option<Shape> {
        let rx_ctx_bits = u32::try_from(rx_ctx_bits).ok()?;
        (rx_ctx_bits <= Self::MAX_RX_CTX_BITS).then_some(Shape { rx_ctx_bits })
    }

    fn mask(self) -> u64 {
        u64::MAX >> self.rx_ctx_bits
    }

    /// Marks the handle of an authorization key, so that no index of an address is taken for one.
    fn key_bit(self) -> u64 {
        self.mask() & !(self.mask() >> 1)
    }

    /// Undoes fi_rx_addr: the table's index, and which receive context. FI_ADDR_UNSPEC has no index of any table.
    pub fn split(self, fi_addr: fi_addr_t) -> (u64, usize) {
        let context = fi_addr.checked_shr(64 - self.rx_ctx_bits).unwrap_or(0);
        (fi_addr & self.mask(), context as usize)
    }

    pub fn index(self, fi_addr: fi_addr_t) -> Option<u32> {
        u32::try_from(fi_addr & self.mask()).ok()
    }

    pub fn key_handle(self, slot: u32) -> fi_addr_t {
        self.key_bit() | u64::from(slot)
    }

    pub fn key_slot(self, handle: fi_addr_t) -> Option<u32> {
        let masked = handle & self.mask();
        (masked & self.key_bit() != 0)
            .then(|| u32::try_from(masked & !self.key_bit()).ok())
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::FI_ADDR_UNSPEC;

    fn pieces(layout: Layout, array: &[u8]) -> Vec<Vec<u8>> {
        Split::new(layout, array).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn arrays_are_cut_into_addresses() {
        let v4 = [&AF_INET.to_ne_bytes()[..], &[7; 14]].concat();
        let v6 = [&AF_INET6.to_ne_bytes()[..], &[7; 26]].concat();
        let odd = [7u8; 16];
        type Row<'a> = (Layout, Vec<u8>, Vec<&'a [u8]>);
        let rows: [Row; 9] = [
            (Layout::Strings, b"a\0bc\0".to_vec(), vec![b"a\0", b"bc\0"]),
            (Layout::Strings, b"a\0\0b".to_vec(), vec![b"a\0", b"\0", b"b"]),
            (Layout::Strings, Vec::new(), vec![]),
            (Layout::Fixed(2), vec![1, 2, 3, 4, 5], vec![&[1, 2], &[3, 4]]),
            (Layout::Fixed(0), vec![1, 2], vec![]),
            (Layout::Family, [&v4[..], &v4].concat(), vec![&v4, &v4]),
            (Layout::Family, [&v6[..], &v6].concat(), vec![&v6, &v6]),
            // The first one's length counts for all.
            (Layout::Family, [&v4[..], &odd].concat(), vec![&v4, &odd]),
            (Layout::Family, odd.to_vec(), vec![]),
        ];
        for (layout, array, expected) in rows {
            assert_eq!(pieces(layout, &array), expected, "{layout:?} {array:?}");
        }
    }

    #[test]
    fn receive_contexts_take_the_top_bits() {
        let rows = [
            // (bits, fi_addr, index, context)
            (0, 5, 5, 0),
            (0, 1 << 63, 1 << 63, 0),
            (4, 5 | 3 << 60, 5, 3),
            (4, 5 | 15 << 60, 5, 15),
            (16, 0xffff << 48, 0, 0xffff),
        ];
        for (bits, fi_addr, index, context) in rows {
            assert_eq!(
                Shape::new(bits).map(|shape| shape.split(fi_addr)),
                Some((index, context))
            );
        }
        for bits in [-1, 17, 64, i32::MAX, i32::MIN] {
            assert_eq!(Shape::new(bits), None);
        }
    }

    #[test]
    fn keys_and_addresses_are_told_apart() {
        for bits in 0..=16 {
            let shape = Shape::new(bits).unwrap();
            for number in [0, 1, 77, u32::MAX] {
                let handle = shape.key_handle(number);
                assert_eq!((shape.key_slot(handle), shape.index(handle)), (Some(number), None));
                let index = u64::from(number);
                assert_eq!((shape.key_slot(index), shape.index(index)), (None, Some(number)));
            }
            assert_eq!(
                (shape.key_slot(FI_ADDR_UNSPEC), shape.index(FI_ADDR_UNSPEC)),
                (None, None)
            );
        }
    }
}
