//! What a transport does to have a connection: the one peer of an FI_EP_MSG endpoint.
//!
//! The transport talks to the other side; here is what the application is told of it, and which calls it may make when.
//! `Endpoint` and `SharedRxEndpoint` have one each if they were opened as FI_EP_MSG; the passive side is `api::passive`.

use crate::api::errno::{Errno, Result};
use crate::engine::port::PeerId;

/// The number of a connected transport's only peer, from the beginning: receives are posted before there is a connection.
pub const PEER: PeerId = 0;

/// A transport with one peer, at the other end of a connection. None of the calls waits. `Transport::poll` moves the
/// connection on; the engine calls it whether or not the connection stands, and asks for events after each.
pub trait Connects {
    /// fi_connect: begins to connect to the passive endpoint at `address`, which gets `data`, at most
    /// `Connected::DATA_SIZE` bytes. An error: the address makes no sense. Whatever else fails is told as an event.
    fn connect(&mut self, address: &[u8], data: &[u8]) -> Result<()>;

    /// fi_accept, for a transport that was made of a request: the other side gets `data`. A transport that is dropped
    /// without this refuses the request.
    fn accept(&mut self, data: &[u8]) -> Result<()>;

    /// fi_shutdown: ends the connection, or the attempt. What was pushed still arrives. The next poll calls `Sink::gone`
    /// for `PEER`; no event follows. Dropping the transport ends the connection too.
    fn shutdown(&mut self);

    /// What has become of the connection. `Failed` and `Closed` come after the poll that has delivered all that the peer
    /// sent and called `Sink::gone` for `PEER`, and are the last.
    fn event(&mut self) -> Option<ConnectionEvent>;

    /// The peer's address, as fi_getpeer tells it. None: there is no connection.
    fn peer_address(&self) -> Option<Vec<u8>>;
}

/// What happens to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It stands: packets may be pushed. On the side that connected, `data` is what the other gave fi_accept; on the side
    /// that accepted it is empty.
    Connected { data: Vec<u8> },
    /// It never stood. `data`: what the other side gave fi_reject, with FI_ECONNREFUSED.
    Failed { error: Errno, data: Vec<u8> },
    /// The other side has ended it, or it broke.
    Closed,
}
