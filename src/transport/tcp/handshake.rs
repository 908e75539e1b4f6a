//! What two ends say before the first packet, and what follows from it: no socket, no clock.
//!
//! Who connects says `Hello`; the other answers `Answer`, with a `Verdict`; if that is a welcome, who connected confirms
//! it with the first word of its stream (`frame::CONFIRM`). Only then is the connection one: until its dialer has
//! confirmed, the acceptor sends nothing on it and ends nothing for it, so a dialer that went away changes nothing.
//!
//! When both connect at once, an end that has said hello and hears the other's keeps its own if its address is the
//! smaller one, and tells the other to wait (`Verdict::Wait`); else it gives its own up and welcomes the other's.
//! Neither says hello while it waits for a confirmation. So of two connections at most one is ever confirmed.

use super::address;
use crate::engine::wire::Header;

/// The version of this protocol, and of the engine's beside it.
const VERSION: u16 = 1;
const ENGINE: u16 = Header::SIZE as u16;
/// Reads otherwise on a machine of the other byte order.
const ORDER: u32 = 0x0102_0304;

/// Words of the stream: what it is in the upper byte, a length in the others.
pub(super) mod frame {
    pub(crate) const WORD: usize = 4;
    /// A packet with a body of this length.
    pub(crate) const PACKET: u32 = 0;
    /// The dialer has accepted the welcome.
    pub(crate) const CONFIRM: u32 = 1 << 24;
    /// The sender closes: nothing follows.
    pub(crate) const GOODBYE: u32 = 2 << 24;
    pub(crate) const KIND: u32 = 0xff << 24;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The dialer's address, as its peers' vectors have it.
    pub from: Vec<u8>,
    /// A number that the dialer's endpoint drew.
    pub instance: u64,
    /// The context that is wanted.
    pub context: u16,
}

/// Why a hello is no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It speaks another protocol.
    Magic,
    Version(u16, u16),
    ByteOrder,
    Address,
}

impl Hello {
    pub(super) const SIZE: usize = 64;
    const MAGIC: [u8; 8] = *b"lfrs-tcp";

    pub(super) fn encode(&self) -> [u8; Hello::SIZE] {
        let mut bytes = [0; Hello::SIZE];
        let len = [self.from.len() as u8];
        let fields: [&[u8]; 8] = [
            &Hello::MAGIC,
            &ORDER.to_ne_bytes(),
            &VERSION.to_le_bytes(),
            &ENGINE.to_le_bytes(),
            &self.instance.to_le_bytes(),
            &self.context.to_le_bytes(),
            &len,
            &self.from,
        ];
        let all = fields.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; Hello::SIZE]) -> Result<Hello, Stranger> {
        let mut rest = &bytes[..];
        if take(&mut rest) != Some(Hello::MAGIC) {
            return Err(Stranger::Magic);
        }
        if take(&mut rest).map(u32::from_ne_bytes) != Some(ORDER) {
            return Err(Stranger::ByteOrder);
        }
        let mut number = || take(&mut rest).map_or(0, u16::from_le_bytes);
        match (number(), number()) {
            (VERSION, ENGINE) => {}
            (version, engine) => return Err(Stranger::Version(version, engine)),
        }
        let instance = take(&mut rest).map_or(0, u64::from_le_bytes);
        let context = take(&mut rest).map_or(0, u16::from_le_bytes);
        let [len] = take(&mut rest).unwrap_or([0u8; 1]);
        let from = rest.get(..len.into()).and_then(|from| {
            let whole = address::normal(from) == Some(from);
            let usable = address::place(from).is_some_and(|place| place.port() != 0 && !place.ip().is_unspecified());
            (whole && usable).then(|| from.to_vec())
        });
        match from {
            Some(from) if instance != 0 => Ok(Hello {
                from,
                instance,
                context,
            }),
            _ => Err(Stranger::Address),
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Welcome = 1,
    /// The acceptor is connecting to the dialer itself.
    Wait = 2,
    /// The dialer has reached itself.
    Yourself = 3,
    /// Another time: no such context now, or too many that connect.
    Later = 4,
    /// Versions or byte orders differ.
    Foreign = 5,
    /// The address belongs to somebody else.
    Impostor = 6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub verdict: Verdict,
    /// The acceptor's number, as the dialer's in `Hello`.
    pub instance: u64,
}

impl Answer {
    pub(super) const SIZE: usize = 24;
    const MAGIC: [u8; 8] = *b"lfrs-ans";

    pub(super) fn encode(&self) -> [u8; Answer::SIZE] {
        let mut bytes = [0; Answer::SIZE];
        let verdict = [self.verdict as u8, 0, 0, 0, 0, 0, 0, 0];
        let all = [Answer::MAGIC, verdict, self.instance.to_le_bytes()]
            .into_iter()
            .flatten();
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// None: whoever answered is no endpoint.
    pub(super) fn decode(bytes: &[u8; Answer::SIZE]) -> Option<Answer> {
        let mut rest = &bytes[..];
        take(&mut rest).filter(|magic| *magic == Answer::MAGIC)?;
        let verdict = match take::<8>(&mut rest)?[0] {
            1 => Verdict::Welcome,
            2 => Verdict::Wait,
            3 => Verdict::Yourself,
            4 => Verdict::Later,
            5 => Verdict::Foreign,
            6 => Verdict::Impostor,
            _ => return None,
        };
        let instance = take(&mut rest).map(u64::from_le_bytes)?;
        Some(Answer { verdict, instance })
    }
}

/// Whether an end that has said hello keeps its own connection when it hears the other's.
pub(super) fn keeps_own(own: &[u8], other: &[u8]) -> bool {
    own < other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(from: &str) -> Hello {
        Hello {
            from: address::of(&from.parse().unwrap()),
            instance: 0x0102_0304_0506_0708,
            context: 9,
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        for from in ["10.1.2.3:77", "[2001:db8::1%3]:77"] {
            let mut hello = hello(from);
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello.clone()));
            hello.from = address::context(&hello.from, 300);
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
        for verdict in [
            Verdict::Welcome,
            Verdict::Wait,
            Verdict::Yourself,
            Verdict::Later,
            Verdict::Foreign,
            Verdict::Impostor,
        ] {
            let answer = Answer { verdict, instance: 7 };
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
    }

    #[test]
    fn nothing_else_is() {
        let good = hello("10.1.2.3:77").encode();
        let changed = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            Hello::decode(&bytes)
        };
        assert_eq!(changed(3, b'X'), Err(Stranger::Magic));
        assert_eq!(changed(8, 0x7f), Err(Stranger::ByteOrder));
        assert_eq!(changed(12, 9), Err(Stranger::Version(9, ENGINE)));
        assert_eq!(changed(14, 9), Err(Stranger::Version(VERSION, 9)));
        for (at, byte) in [(26, 0), (26, 7), (26, 9), (26, 255), (27, 99)] {
            assert_eq!(changed(at, byte), Err(Stranger::Address), "{at} {byte}");
        }
        for from in ["10.1.2.3:0", "0.0.0.0:77"] {
            assert_eq!(Hello::decode(&hello(from).encode()), Err(Stranger::Address));
        }
        let mut nobody = hello("10.1.2.3:77");
        nobody.instance = 0;
        assert_eq!(Hello::decode(&nobody.encode()), Err(Stranger::Address));
        assert_eq!(Answer::decode(&[0; Answer::SIZE]), None);
        let mut answer = Answer {
            verdict: Verdict::Wait,
            instance: 1,
        }
        .encode();
        answer[8] = 99;
        assert_eq!(Answer::decode(&answer), None);
    }
}
