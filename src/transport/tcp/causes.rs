//! News that waits until what its sender did before, on other connections, has been read there.
//!
//! A program that sends on one connection and then closes another, or confirms one and then asks for the next, may be
//! sure of the order at the other side. Each socket tells of its own bytes only, but all of them are there. So the end
//! of a connection, and a new call, are told a few polls after they were seen. Endpoints that are driven by the same
//! queue are polled in turns, so each has read its socket by then. Called by `mod` for `one_peer`, and by `passive`.

/// Polls in which an endpoint finds out that its socket has news, looks who has them, and reads.
const POLLS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    polls: u32,
}

impl Waiting {
    /// Asked once in a poll.
    pub(super) fn is_over(&mut self) -> bool {
        self.polls += 1;
        self.polls > POLLS
    }
}
