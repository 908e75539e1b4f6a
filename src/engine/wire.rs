//! Packet headers: the protocol between two engines, whatever transport carries it.
//!
//! All packets have the same fixed-size header. Transports compare `VERSION` when two endpoints connect. Numbers are
//! little-endian. `decode` accepts only packets that exist; each handler checks the fields for itself.

/// To be raised with every change of the headers, or of the window of credit (`Config::window`). Before there was this,
/// transports compared the size of a header, which is 32.
pub const VERSION: u16 = 36;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Packet {
    /// A whole message. Flags say whether `tag` and `data` count; `id` is its number if an answer is wanted (`ACK`).
    Eager = 1,
    /// The first part of a message of `total` bytes; the rest follows as `Segment`s with the same `id`.
    First = 2,
    Segment = 3,
    /// Offers a message of `total` bytes. The body is a `Remote` for `get`, or empty if the receiver can only ask with
    /// `Request`.
    Rendezvous = 4,
    /// The receiver asks for `total` bytes of the offered message `id`, as `Segment`s.
    Request = 5,
    /// The receiver has all of message `id`, or operation `id` is done at the target. With `FAILED`, `data` says why
    /// not.
    Done = 6,
    /// The receiver gives back `total` bytes of credit for `Eager` and `First`. With `WITHHELD`, it keeps some back.
    Credit = 7,
    /// A short write of the body to address `tag` in the region with key `data`. `total` is remote CQ data; without
    /// `DATA` it is how many bytes of the same write come behind this packet, for a transport that carries the whole
    /// write as one. Acknowledged by `Acked`. `id` acknowledges, as `Acked` does: so many of its receiver's oldest
    /// short operations are done.
    Write = 8,
    /// Offers a long write `id` of `total` bytes. The body is a list of `tag` remote pieces, and perhaps a `Remote`;
    /// `data` is remote CQ data. It goes on like an offered message: `Request`, `Segment`, `Done`.
    OfferWrite = 9,
    /// Reads `total` bytes from address `tag` in the region with key `data`. Answered by `Reply`, `Exposed` or a failed
    /// `Done`.
    Read = 10,
    /// Bytes that operation `id` asked for, from offset `total` on; `data` more come behind this packet. The reader
    /// knows how many, so that is for a transport that carries the whole answer as one.
    Reply = 11,
    /// The reader `id` may fetch the bytes itself: the body is a `Remote`. With `ACK` the reader answers `Got` with the
    /// same `tag` and `data`.
    Exposed = 12,
    /// The reader has fetched `total` bytes at address `tag` of the region with key `data`, whose accesses are counted.
    Got = 13,
    /// The oldest `total` unacknowledged short writes and base atomics are done. With `FAILED`, the one after them
    /// failed.
    Acked = 14,
    /// Atomic operation `code` at address `tag` of the region with key `data`; the body is the operand, `total` is
    /// remote CQ data. Acknowledged by `Acked`. With `TAGGED` it works on the buffer of the receive that matches tag
    /// `data`, from offset `tag` on; then `id` is its number and `Done` answers it.
    Atomic = 15,
    /// As `Atomic`, but returns the `total` old bytes. Answered by `Reply`, or a failed `Done`.
    FetchAtomic = 16,
    /// As `FetchAtomic`; `total` bytes to compare with follow the operand in the body.
    CompareAtomic = 17,
}

impl Packet {
    /// Whether it answers an operation of its receiver's. Answers have no order with what their sender asks for: that
    /// may be done before they are read.
    #[inline(always)]
    pub const fn is_answer(self) -> bool {
        use Packet::{Acked, Credit, Done, Exposed, Got, Reply, Request};
        matches!(self, Request | Done | Credit | Got | Acked | Reply | Exposed)
    }
}

/// Bits of `Header::flags`.
pub mod flag {
    /// Goes to the tagged matcher.
    pub const TAGGED: u8 = 1 << 0;
    /// `data` is remote CQ data.
    pub const DATA: u8 = 1 << 1;
    /// The sender waits for `Done` until the message is in the application's memory (FI_DELIVERY_COMPLETE). With
    /// `Write` it waits for `Acked`; without, that may take a while. With `Acked`: further writes there may be refused,
    /// so each is to be waited for.
    pub const ACK: u8 = 1 << 2;
    /// With `Done` and `Acked`: the operation failed; `data` is a refusal code (`pieces`).
    pub const FAILED: u8 = 1 << 3;
    /// With `Credit`: the receiver withholds credit because it keeps too many unexpected messages; offer the next by
    /// `Rendezvous`. With a tagged atomic: it was sent without credit for that reason.
    pub const WITHHELD: u8 = 1 << 4;
    /// The body begins with a list of `tag` remote pieces, instead of one in the header.
    pub const LIST: u8 = 1 << 5;
    /// With `Read`: the reader can fetch the bytes with `get`.
    pub const GET: u8 = 1 << 6;
    /// Goes to the matcher of collective operations.
    pub const COLLECTIVE: u8 = 1 << 7;

    /// Whether these flags may be combined.
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
    /// The sender's number for the message or operation, repeated in all answers to it.
    pub id: u32,
    pub tag: u64,
    pub data: u64,
    /// The length of the message; in `Segment` the offset of the body; else as the packet says.
    pub total: u64,
}

impl Header {
    pub const SIZE: usize = 32;

    /// All other fields are 0.
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

    /// None if there is no such packet.
    #[inline]
    pub fn decode(bytes: &[u8; Header::SIZE]) -> Option<Header> {
        let mut words = [0u64; 4];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(place.try_into().ok()?);
        }
        Header::from_words(words)
    }

    /// As `decode`, from what `words` returned.
    #[inline]
    pub fn from_words([first, tag, data, total]: [u64; Header::SIZE / 8]) -> Option<Header> {
        let packet = match first as u8 {
            1 => Packet::Eager,
            2 => Packet::First,
            3 => Packet::Segment,
            4 => Packet::Rendezvous,
            5 => Packet::Request,
            6 => Packet::Done,
            7 => Packet::Credit,
            8 => Packet::Write,
            9 => Packet::OfferWrite,
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
