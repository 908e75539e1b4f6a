//! Packet headers: what two engines say to each other, whatever carries it.
//!
//! One header of fixed size for all packets, versioned by the transport when two endpoints first meet. Numbers are
//! little-endian. A header that arrived is checked by `decode` before anyone looks at it.

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Packet {
    /// A whole message. `tag`, `data` by flags; `id` names it if an answer is asked for.
    Eager = 1,
    /// The first part of a message of `total` bytes; the rest follows as `Segment` with the same `id`.
    First = 2,
    Segment = 3,
    /// A message of `total` bytes that the receiver may fetch; the body is a `Remote`, or empty: only to be asked for.
    Rendezvous = 4,
    /// The receiver of rendezvous `id` asks for the bytes to be sent.
    Send = 5,
    /// Message `id` is done at the receiver: fetched, or delivered as asked.
    Done = 6,
    /// The receiver gives back `total` bytes of credit for `Eager` and `First`. With `WITHHELD`, it keeps some back.
    Credit = 7,
    /// The body goes to remote address `tag` in region `data`; `total` is remote CQ data. Answered by `Acked`.
    Write = 8,
    /// A long write, named `id`, of `total` bytes: the body is a list of `tag` pieces, and perhaps a `Remote`; `data`
    /// is remote CQ data. From here on it is a message whose receive is a region: `Send`, `Segment`, `Done`.
    Offer = 9,
    /// Wants `total` bytes from remote address `tag` in region `data`. Answered by `Reply`, `Exposed` or `Done`.
    Read = 10,
    /// What operation `id` asked for, from byte `total` on.
    Reply = 11,
    /// What operation `id` asked for may be fetched: the body is a `Remote`. With `ACK`, `Got` is to follow, with the
    /// same `tag` and `data`.
    Exposed = 12,
    /// `total` bytes at remote address `tag` in region `data` have been fetched.
    Got = 13,
    /// The next `total` writes and atomics that have no number are done. With `FAILED`, the one after them is not.
    Acked = 14,
    /// An atomic operation, `code`, at remote address `tag` in region `data`; the body is the operand. `total` is
    /// remote CQ data. Answered by `Acked`. With `TAGGED`, it works on the buffer of the receive that tag `data` meets, from
    /// byte `tag` on; then it has a number, and is answered by `Done`.
    Atomic = 15,
    /// The same, but the `total` bytes as they were before are wanted: `Reply` or `Done`.
    FetchAtomic = 16,
    /// The same, with a second operand of `total` bytes behind the first.
    CompareAtomic = 17,
}

/// Bits of `Header::flags`.
pub mod flag {
    /// Goes to the tagged matcher.
    pub const TAGGED: u8 = 1 << 0;
    /// `data` is remote CQ data.
    pub const DATA: u8 = 1 << 1;
    /// The sender waits for `Done` when the application's memory has the message.
    pub const ACK: u8 = 1 << 2;
    /// With `Done` and `Acked`: it could not be done; `data` says why.
    pub const FAILED: u8 = 1 << 3;
    /// With `Credit`: the receiver has more messages than it wants to keep; offer the next by `Rendezvous`. With a
    /// tagged atomic: sent without credit because of that.
    pub const WITHHELD: u8 = 1 << 4;
    /// The body begins with a list of `tag` remote pieces, instead of one in the header.
    pub const LIST: u8 = 1 << 5;
    /// With `Read`: the reader can fetch the bytes itself.
    pub const GET: u8 = 1 << 6;
    /// Goes to the matcher of collective operations.
    pub const COLLECTIVE: u8 = 1 << 7;

    /// Whether they may stand together.
    #[inline]
    pub fn fit(flags: u8) -> bool {
        flags & (TAGGED | COLLECTIVE) != TAGGED | COLLECTIVE
    }
}

/// The header of every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub packet: Packet,
    pub flags: u8,
    /// Of an atomic: fi_op in the low byte, fi_datatype in the high one.
    pub code: u16,
    /// The sender's number for this message, told back in `Send` and `Done`.
    pub id: u32,
    pub tag: u64,
    pub data: u64,
    /// Length of the whole message; in `Segment`, where in the message its body starts; in `Send`, how much is wanted.
    pub total: u64,
}

impl Header {
    pub const SIZE: usize = 32;

    /// All else 0.
    pub const fn new(packet: Packet, id: u32) -> Header {
        Header {
            packet,
            flags: 0,
            code: 0,
            id,
            tag: 0,
            data: 0,
            total: 0,
        }
    }

    /// The header as four words, for transports between processes of one machine.
    #[inline]
    pub fn words(&self) -> [u64; Header::SIZE / 8] {
        let first = u64::from(self.packet as u8) | u64::from(self.flags) << 8 | u64::from(self.code) << 16;
        [first | u64::from(self.id) << 32, self.tag, self.data, self.total]
    }

    #[inline]
    pub fn encode(&self) -> [u8; Header::SIZE] {
        let mut bytes = [0; Header::SIZE];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// None for a header that no engine of this version writes.
    #[inline]
    pub fn decode(bytes: &[u8; Header::SIZE]) -> Option<Header> {
        let mut words = [0u64; 4];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(place.try_into().ok()?);
        }
        Header::from_words(words)
    }

    /// As `decode`, of what `words` gave.
    #[inline]
    pub fn from_words([first, tag, data, total]: [u64; Header::SIZE / 8]) -> Option<Header> {
        let packet = match first as u8 {
            1 => Packet::Eager,
            2 => Packet::First,
            3 => Packet::Segment,
            4 => Packet::Rendezvous,
            5 => Packet::Send,
            6 => Packet::Done,
            7 => Packet::Credit,
            8 => Packet::Write,
            9 => Packet::Offer,
            10 => Packet::Read,
            11 => Packet::Reply,
            12 => Packet::Exposed,
            13 => Packet::Got,
            14 => Packet::Acked,
            15 => Packet::Atomic,
            16 => Packet::FetchAtomic,
            17 => Packet::CompareAtomic,
            _ => return None,
        };
        Some(Header {
            packet,
            flags: (first >> 8) as u8,
            code: (first >> 16) as u16,
            id: (first >> 32) as u32,
            tag,
            data,
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_these_bytes() {
        let header = Header {
            packet: Packet::Rendezvous,
            flags: flag::TAGGED | flag::DATA,
            code: 0x0605,
            id: 0x0403_0201,
            tag: 0x1817_1615_1413_1211,
            data: 0x2827_2625_2423_2221,
            total: 0x3837_3635_3433_3231,
        };
        let bytes = [
            4, 3, 5, 6, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
            0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
        ];
        assert_eq!(header.encode(), bytes);
        assert_eq!(Header::decode(&bytes), Some(header));
    }

    #[test]
    fn unknown_packets_are_refused() {
        for kind in (0..=255u8).filter(|kind| !(1..=17).contains(kind)) {
            let mut bytes = [0; Header::SIZE];
            bytes[0] = kind;
            assert_eq!(Header::decode(&bytes), None);
        }
    }
}
