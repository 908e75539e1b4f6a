//! What two ends say before the first packet, as the private data of a connection: no device, no clock.
//!
//! Who connects says `Hello`; the other accepts with a `Hello` of its own or rejects with a `Verdict`. librdmacm tells
//! the acceptor when the dialer has taken its answer; until then it sends nothing.
//!
//! When both connect at once, an end keeps its own connection if its address is the smaller one, and tells the other to
//! wait (`Verdict::Wait`); else it gives its own up and accepts the other's. So of two connections one comes about.

use crate::engine::wire::{self, Header};

/// The version of this protocol, and of the engine's beside it.
const VERSION: u16 = 2;
const ENGINE: u16 = wire::VERSION;
const MAGIC: [u8; 8] = *b"lfrs-rxm";
/// Reads otherwise on a machine of the other byte order.
const ORDER: u32 = 0x0102_0304;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Where this end listens, at the address that its connections come from.
    pub port: u16,
    /// Packets that the other end may send before any is acknowledged.
    pub window: u16,
    /// The longest packet that this end receives.
    pub longest: u32,
    /// A number that this endpoint drew.
    pub instance: u64,
    /// Where the other end writes how many packets it has taken.
    pub word: (u64, u32),
    /// The other end's device may work on registered memory by itself.
    pub is_open: bool,
    /// Devices do all atomics on this end's registered memory, and its processor does none.
    pub has_atomics: bool,
}

/// Bits of the last byte of a `Hello`.
const OPEN: u8 = 1;
const ATOMICS: u8 = 2;

/// Why a request or answer is none of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    Magic,
    Version,
}

/// Why an end does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It connects by itself.
    Wait = 1,
    /// It has no memory or no room for another connection now.
    Later = 2,
    /// It speaks another protocol, or another version.
    Foreign = 3,
    /// The address that was said is not where the request comes from.
    Impostor = 4,
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = beginning();
        bytes.extend(self.port.to_le_bytes());
        bytes.extend(self.window.to_le_bytes());
        bytes.extend(self.longest.to_le_bytes());
        bytes.extend(self.instance.to_le_bytes());
        bytes.extend(self.word.0.to_le_bytes());
        bytes.extend(self.word.1.to_le_bytes());
        let flag = |is_so: bool, bit: u8| if is_so { bit } else { 0 };
        bytes.push(flag(self.is_open, OPEN) | flag(self.has_atomics, ATOMICS));
        bytes
    }

    /// There may be zeros behind it.
    pub(super) fn decode(bytes: &[u8]) -> Result<Hello, Stranger> {
        let mut rest = bytes;
        check(&mut rest)?;
        let mut decode = || {
            let mut hello = Hello {
                port: take(&mut rest).map(u16::from_le_bytes)?,
                window: take(&mut rest).map(u16::from_le_bytes)?,
                longest: take(&mut rest).map(u32::from_le_bytes)?,
                instance: take(&mut rest).map(u64::from_le_bytes)?,
                word: (
                    take(&mut rest).map(u64::from_le_bytes)?,
                    take(&mut rest).map(u32::from_le_bytes)?,
                ),
                is_open: false,
                has_atomics: false,
            };
            let [flags] = take(&mut rest)?;
            (hello.is_open, hello.has_atomics) = (flags & OPEN != 0, flags & ATOMICS != 0);
            Some(hello)
        };
        let usable = |hello: &Hello| hello.window > 0 && hello.instance != 0 && hello.longest as usize >= Header::SIZE;
        decode().filter(usable).ok_or(Stranger::Version)
    }
}

impl Verdict {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = beginning();
        bytes.push(self as u8);
        bytes
    }

    /// None: whoever refused is none of ours, or nobody was there.
    pub(super) fn decode(bytes: &[u8]) -> Option<Verdict> {
        let mut rest = bytes;
        let known = [Verdict::Wait, Verdict::Later, Verdict::Foreign, Verdict::Impostor];
        match check(&mut rest) {
            Ok(()) => {
                let code = u8::from_le_bytes(take(&mut rest)?);
                known.into_iter().find(|verdict| *verdict as u8 == code)
            }
            Err(Stranger::Version) => Some(Verdict::Foreign),
            Err(Stranger::Magic) => None,
        }
    }
}

fn beginning() -> Vec<u8> {
    let fields: [&[u8]; 4] = [
        &MAGIC,
        &ORDER.to_ne_bytes(),
        &VERSION.to_le_bytes(),
        &ENGINE.to_le_bytes(),
    ];
    fields.concat()
}

fn check(rest: &mut &[u8]) -> Result<(), Stranger> {
    if take(rest) != Some(MAGIC) {
        return Err(Stranger::Magic);
    }
    let order = take(rest).map(u32::from_ne_bytes);
    let versions = (take(rest).map(u16::from_le_bytes), take(rest).map(u16::from_le_bytes));
    if order != Some(ORDER) || versions != (Some(VERSION), Some(ENGINE)) {
        return Err(Stranger::Version);
    }
    Ok(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            port: 7471,
            window: 16,
            longest: 16384,
            instance: 99,
            word: (1 << 40, 7),
            is_open: true,
            has_atomics: false,
        }
    }

    #[test]
    fn a_hello_is_understood_with_zeros_behind_it() {
        for (is_open, has_atomics) in [(true, false), (true, true), (false, true), (false, false)] {
            let hello = Hello {
                is_open,
                has_atomics,
                ..hello()
            };
            let mut bytes = hello.encode();
            assert!(bytes.len() <= 56, "more than a request carries");
            bytes.resize(56, 0);
            assert_eq!(Hello::decode(&bytes), Ok(hello));
        }
    }

    #[test]
    fn strangers_are_told_from_other_versions() {
        let bytes = hello().encode();
        for len in 0..bytes.len() {
            let expected = if len < MAGIC.len() {
                Stranger::Magic
            } else {
                Stranger::Version
            };
            assert_eq!(Hello::decode(&bytes[..len]), Err(expected), "{len} bytes");
        }
        for at in 0..16 {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let expected = if at < MAGIC.len() {
                Stranger::Magic
            } else {
                Stranger::Version
            };
            assert_eq!(Hello::decode(&other), Err(expected), "byte {at}");
            let mut verdict = Verdict::Wait.encode();
            verdict[at] ^= 1;
            let expected = (at >= MAGIC.len()).then_some(Verdict::Foreign);
            assert_eq!(Verdict::decode(&verdict), expected, "byte {at}");
        }
        let nothing = Hello { window: 0, ..hello() };
        assert_eq!(Hello::decode(&nothing.encode()), Err(Stranger::Version));
    }

    #[test]
    fn a_verdict_is_understood() {
        for verdict in [Verdict::Wait, Verdict::Later, Verdict::Foreign, Verdict::Impostor] {
            let mut bytes = verdict.encode();
            bytes.resize(148, 0);
            assert_eq!(Verdict::decode(&bytes), Some(verdict));
        }
        assert_eq!(Verdict::decode(&[]), None);
    }
}
