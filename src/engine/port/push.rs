//! What is pushed to a peer, and what becomes of it: the words of `Transport::push`.

use super::super::op::Unreached;
use super::Token;
use crate::util::user::UserIov;

/// A packet's bytes.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    Empty,
    /// A few bytes of the engine's own.
    Bytes(&'a [u8]),
    /// Part of an application's memory. The transport has copied or sent it when `push` returns, unless that is
    /// `Later`.
    User {
        iov: &'a UserIov,
        at: usize,
        len: usize,
    },
}

impl<'a> Body<'a> {
    pub(in super::super) fn of(bytes: &'a [u8]) -> Body<'a> {
        match bytes {
            [] => Body::Empty,
            bytes => Body::Bytes(bytes),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Body::Empty => 0,
            Body::Bytes(bytes) => bytes.len(),
            Body::User { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What the engine waits for, of a packet. But for an answer it wants to be told by `Sink::sent`, if it is not so when
/// `push` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The same for all packets of one operation.
    pub token: Token,
    pub when: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The transport no longer needs the memory of `Body::User`.
    Released,
    /// As well, the packet has left the transport: it goes on its way even if the endpoint is closed now.
    Transmitted,
    /// The peer's answer, for which the engine polls. So the packet may leave with others when it does.
    Answered,
}

impl Notice {
    /// Of a packet that the peer answers. Nobody is told of it, so its token is none.
    pub const ANSWERED: Notice = Notice {
        token: 0,
        when: When::Answered,
    };

    /// The token to tell the engine by; None: the peer's answer tells.
    #[inline]
    pub fn to_tell(notice: Option<Notice>) -> Option<Notice> {
        notice.filter(|notice| notice.when != When::Answered)
    }
}

/// What else is sent when a message is to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The peer has sent its last long message at the same time as we did.
    pub crossing: bool,
    /// More messages to the same peer wait behind this one.
    pub followed: bool,
}

/// The outcome of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Push {
    /// Sent, or copied to be sent: header and body may be reused, and what the `Notice` asks for is so.
    Done,
    /// Taken, but what the `Notice` asks for is not so yet: `Sink::sent` will say. Until then the transport may use the
    /// memory of `Body::User`; the header and `Body::Bytes` were copied. Never without a `Notice`. Where that waits for
    /// an answer: all was copied, and leaves when the transport is flushed.
    Later,
    /// No room towards this peer now: try again after a poll. Also the answer between the end of a connection and
    /// `Sink::gone` with `Loss::Broken` or `Loss::Silent`.
    Full,
    /// The peer is dead and nothing more will reach it. What it sent before is still delivered, followed by
    /// `Sink::gone` unless that was called already.
    Gone,
    /// There is nobody at this peer's address, or no way there.
    Unreachable(Unreached),
    /// The transport has no memory for so long a packet to this peer; one of `Limits::guaranteed_body` bytes would go.
    TooLong,
    /// The transport has no memory to connect to this peer.
    NoMemory,
}
