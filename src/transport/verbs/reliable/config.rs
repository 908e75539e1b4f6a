//! What a reliable endpoint can be told, and what follows from it.

use crate::engine::port::Limits;
use crate::engine::wire::Header;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of a packet, header and all.
    pub buffer: usize,
    /// Packets that a peer may send before it is told that they were taken.
    pub window: usize,
    /// Receives that the endpoint keeps for all peers together, while that is enough for two each.
    pub receives: usize,
    /// Receives that it may come to have with more peers than that.
    pub most_receives: usize,
    /// Requests of one connection.
    pub sends: usize,
    /// Messages up to this size are sent unasked.
    pub eager: usize,
    /// Bytes that a request is to carry within itself.
    pub inline: usize,
    /// How long a peer that nobody answers for is tried again.
    pub connect_timeout: Duration,
    /// The same of a peer that there was no connection with, whether anybody answers or not, where there is another way
    /// to it. None: there is none.
    pub elsewhere_after: Option<Duration>,
    /// What the endpoint calls itself in its hello; None: a number is drawn.
    pub instance: Option<u64>,
    /// How long closing waits for what was sent.
    pub linger: Duration,
    pub warn: fn(&str),
    pub info: fn(&str),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            buffer: 16 << 10,
            window: 16,
            receives: 4096,
            most_receives: 16 << 10,
            sends: 128,
            eager: 64 << 10,
            inline: 256,
            connect_timeout: Duration::from_secs(3),
            elsewhere_after: None,
            instance: None,
            linger: Duration::from_secs(2),
            warn: |_| {},
            info: |_| {},
        }
    }
}

impl Config {
    pub fn limits(&self) -> Limits {
        let max_body = self.buffer - Header::SIZE;
        Limits {
            max_body,
            eager: self.eager,
            eager_if_fetched: self.eager,
            can_get: true,
            gets_at_once: 0,
            sync_placement: true,
            max_write: 0,
            max_in_writes: 0,
            max_short_read: usize::MAX,
            guaranteed_body: max_body,
        }
    }
}
