//! The sizes that a transport sets, from which the engine chooses how something goes. Read by every file that does.

/// What a transport can do. Asked once, when the endpoint is enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most body bytes in one packet. Below 256, operations on several remote pieces are refused.
    pub max_body: usize,
    /// Messages up to this size are sent eagerly, in one packet or several; longer ones by rendezvous.
    pub eager: usize,
    /// The same where the peer can fetch the message with `get`, if less, and unless it `is_sooner_sent`.
    pub eager_if_fetched: usize,
    /// Whether `get` can work at all; it may still answer `Unsupported` for some peers.
    pub can_get: bool,
    /// Gets up to this size are over when `get` returns, and what is exposed for them never has an `Exposed::id`. 0
    /// where a get is begun, and ends later. If it is not 0, longer ones that have no token are over then, too.
    pub gets_at_once: usize,
    /// The transport moves each body and calls `placed` before the next `place` and before `poll` returns. A registered
    /// region may be closed between two calls of the engine, so any other transport gets regions as
    /// `Placement::Leased`.
    pub sync_placement: bool,
    /// The longest write of one piece of memory that goes in one packet, if that is more than `small`; and the longest
    /// that goes in several of them, 0 also where what is pushed may be gathered. `copy` is asked first.
    pub max_write: usize,
    pub max_in_writes: usize,
    /// The longest read that may be short: see `short_read`.
    pub max_short_read: usize,
    /// Packets with bodies up to this size are never `TooLong`. All packets without application data fit it.
    pub guaranteed_body: usize,
}

impl Limits {
    /// The longest message or operation that goes in one packet.
    #[inline]
    pub fn small(&self) -> usize {
        self.eager.min(self.max_body)
    }

    /// The longest write of one piece of memory that goes in one packet.
    #[inline]
    pub fn short_write(&self) -> usize {
        self.small().max(self.max_write)
    }

    /// The longest that goes in one such packet or several.
    #[inline]
    pub fn in_short_writes(&self) -> usize {
        self.short_write().max(self.max_in_writes)
    }

    /// Whether a write has left when its push is `Done`. Not where writes go in one packet only (tcp): what asks for no
    /// notice may be gathered there until the next flush.
    #[inline]
    pub fn writes_leave_at_once(&self) -> bool {
        self.max_in_writes > 0
    }

    /// The longest read that the target does when its packet comes, so that what comes behind it cannot change the
    /// bytes: it answers out of the memory in the same poll, or copies them. Longer ones are sent from where they are,
    /// and messages and atomics wait for them.
    #[inline]
    pub fn short_read(&self) -> usize {
        self.in_short_writes().min(self.max_short_read)
    }
}
