//! What two ends say before the first packet, and what follows from it: no socket, no clock.
//!
//! Who connects says `Hello`; the other answers `Answer`, with a `Verdict` (between the two, `introduction` has the
//! dialer prove the secret if there is one); if that is a welcome, who connected confirms it with the first word of its
//! stream (`frame::CONFIRM`). Only then is the connection one: until its dialer has confirmed, the acceptor sends
//! nothing on it and ends nothing for it, so a dialer that went away changes nothing.
//!
//! When both connect at once, an end that has said hello and hears the other's keeps its own if its address is the
//! smaller one, and tells the other to wait (`Verdict::Wait`); else it gives its own up and welcomes the other's.
//! Neither says hello while it waits for a confirmation. So of two connections at most one is ever confirmed.
//!
//! A confirmed connection becomes the link when the one before it, of an endpoint that had the same address, has been
//! read to its end. Who says hello until then is told to come again (`Verdict::Later`).
//!
//! An FI_EP_MSG endpoint that connects to a passive one asks for the context `CALL`. Behind its hello stands the data
//! that the program gave fi_connect, and behind `Verdict::Welcome` and `Verdict::Rejected` that of the other side
//! (`program_data`).

use super::address;
use super::secret::{NONCE, Nonce};
use crate::engine::wire;

/// The version of this protocol, and of the engine's beside it.
const VERSION: u16 = 3;
const ENGINE: u16 = wire::VERSION;
/// Reads otherwise on a machine of the other byte order.
const ORDER: u32 = 0x0102_0304;

/// Bytes of a hello before what is not alike in all versions.
const BEGINNING: usize = 16;
/// Room for the longest address before it.
const NONCE_AT: usize = 64;

/// Words of the stream: what it is in the upper byte, a length in the others.
pub(super) mod frame {
    pub(crate) const WORD: usize = 4;
    /// A packet with a body of this length.
    pub(crate) const PACKET: u32 = 0;
    /// The dialer has accepted the welcome.
    pub(crate) const CONFIRM: u32 = 1 << 24;
    /// The sender closes: nothing follows.
    pub(crate) const GOODBYE: u32 = 2 << 24;
    /// So many bytes that mean nothing.
    pub(crate) const PAD: u32 = 3 << 24;
    pub(crate) const KIND: u32 = 0xff << 24;
    pub(crate) const LENGTH: u32 = !KIND;
}

/// What a connection to a passive endpoint asks for instead of a scalable endpoint's context, of which there are fewer.
pub(super) const CALL: u16 = u16::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The dialer's address, as its peers' vectors have it.
    pub from: Vec<u8>,
    /// A number that the dialer's endpoint drew.
    pub instance: u64,
    /// The context that is wanted.
    pub context: u16,
    /// The dialer has a secret, and drew this for the proofs.
    pub nonce: Option<Nonce>,
}

/// Why a hello is no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It speaks another protocol.
    Magic,
    Version(u16, u16),
    ByteOrder,
    Address,
    /// What stands behind the hello of a call is no program's data.
    Data,
    /// It has a secret, and we have none.
    HasSecret,
    NoSecret,
    WrongSecret,
    /// Our system has no random numbers.
    NoRandom,
}

impl Hello {
    pub(super) const SIZE: usize = NONCE_AT + NONCE;
    const MAGIC: [u8; 8] = *b"lfrs-tcp";

    pub(super) fn encode(&self) -> [u8; Hello::SIZE] {
        let mut bytes = [0; Hello::SIZE];
        let secret = [u8::from(self.nonce.is_some())];
        let len = [self.from.len() as u8];
        let fields: [&[u8]; 9] = [
            &Hello::MAGIC,
            &ORDER.to_ne_bytes(),
            &VERSION.to_le_bytes(),
            &ENGINE.to_le_bytes(),
            &self.instance.to_le_bytes(),
            &self.context.to_le_bytes(),
            &secret,
            &len,
            &self.from,
        ];
        let all = fields.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        let place = bytes.iter_mut().skip(NONCE_AT);
        place
            .zip(self.nonce.iter().flatten())
            .for_each(|(place, byte)| *place = *byte);
        bytes
    }

    /// Whether the bytes that have come may be a hello's. The beginning is alike in all versions.
    pub(super) fn begins(bytes: &[u8]) -> Result<(), Stranger> {
        let mut rest = bytes;
        let Some(magic) = take(&mut rest) else { return Ok(()) };
        if magic != Hello::MAGIC {
            return Err(Stranger::Magic);
        }
        let Some(order) = take(&mut rest) else { return Ok(()) };
        if u32::from_ne_bytes(order) != ORDER {
            return Err(Stranger::ByteOrder);
        }
        let mut number = || take(&mut rest).map(u16::from_le_bytes);
        let (Some(version), Some(engine)) = (number(), number()) else {
            return Ok(());
        };
        if (version, engine) == (VERSION, ENGINE) {
            Ok(())
        } else {
            Err(Stranger::Version(version, engine))
        }
    }

    pub(super) fn decode(bytes: &[u8; Hello::SIZE]) -> Result<Hello, Stranger> {
        Hello::begins(bytes)?;
        let mut rest = bytes.get(BEGINNING..NONCE_AT).unwrap_or_default();
        let instance = take(&mut rest).map_or(0, u64::from_le_bytes);
        let context = take(&mut rest).map_or(0, u16::from_le_bytes);
        let [secret, len] = take(&mut rest).unwrap_or([0u8; 2]);
        let nonce = bytes.last_chunk().filter(|_| secret != 0).copied();
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
                nonce,
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
    /// The program at a passive endpoint does not accept the connection.
    Rejected = 7,
    /// The dialer does not prove our secret, or has one and we have none.
    Denied = 8,
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
            7 => Verdict::Rejected,
            8 => Verdict::Denied,
            _ => return None,
        };
        let instance = take(&mut rest).map(u64::from_le_bytes)?;
        Some(Answer { verdict, instance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(from: &str) -> Hello {
        Hello {
            from: address::of(&from.parse().unwrap()),
            instance: 0x0102_0304_0506_0708,
            context: 9,
            nonce: None,
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        for from in ["10.1.2.3:77", "[2001:db8::1%3]:77"] {
            let mut hello = hello(from);
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello.clone()));
            hello.from = address::context(&hello.from, 300);
            hello.nonce = Some([0; NONCE]);
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello.clone()));
            hello.nonce = Some(core::array::from_fn(|at| at as u8));
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
        for verdict in [
            Verdict::Welcome,
            Verdict::Wait,
            Verdict::Yourself,
            Verdict::Later,
            Verdict::Foreign,
            Verdict::Impostor,
            Verdict::Rejected,
            Verdict::Denied,
        ] {
            let answer = Answer { verdict, instance: 7 };
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
    }

    #[test]
    fn nothing_else_is() {
        let good = hello("10.1.2.3:77").encode();
        assert!((0..Hello::SIZE).all(|len| Hello::begins(&good[..len]) == Ok(())));
        assert_eq!(Hello::begins(b"GET / HT"), Err(Stranger::Magic));
        // One of the version before, which is shorter.
        let older = [&good[..12], &[1, 0], &good[14..16]].concat();
        assert_eq!(Hello::begins(&older), Err(Stranger::Version(1, ENGINE)));
        let changed = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            Hello::decode(&bytes)
        };
        assert_eq!(changed(3, b'X'), Err(Stranger::Magic));
        assert_eq!(changed(8, 0x7f), Err(Stranger::ByteOrder));
        assert_eq!(changed(12, 9), Err(Stranger::Version(9, ENGINE)));
        assert_eq!(changed(14, 9), Err(Stranger::Version(VERSION, 9)));
        for (at, byte) in [(27, 0), (27, 7), (27, 9), (27, 255), (28, 99)] {
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
