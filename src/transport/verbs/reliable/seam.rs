//! What reliable endpoints ask of a device: queues for all connections of an endpoint, and those connections. The stand-in
//! of the tests answers too.
//!
//! Memory is registered by the `Nic` of connected endpoints, and a connection's news are theirs.

use crate::sys::rdma::{Done, Piece, Sizes, Work};
use crate::transport::verbs::seam::{News, Nic};
use crate::util::regions::Regions;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// An endpoint's share of a device: it listens at an address, and has one completion queue and one shared receive queue.
/// No call waits.
pub trait Device: Send + 'static {
    type Wire: Wire;

    fn nic(&self) -> &dyn Nic;

    /// Peers' devices may work on these regions. A device knows them already, by the keys that it gave out itself.
    fn publish(&mut self, _regions: &Arc<Regions>, _endpoint: u64) {}

    /// Where it listens.
    fn place(&self) -> SocketAddr;

    /// A connection that this side is to begin.
    fn dial(&mut self) -> io::Result<Self::Wire>;

    /// The next connection that somebody else has begun.
    fn request(&mut self) -> Option<Request<Self::Wire>>;

    /// From now on `look` tells this key when the connection has news.
    fn watch(&mut self, wire: &Self::Wire, key: u64) -> io::Result<()>;

    /// The keys of connections that have news. Not those of requests, which are asked for.
    fn look(&mut self, keys: &mut Vec<u64>);

    /// Posts a receive to the shared queue.
    ///
    /// # Safety
    /// The memory is lent, to be written, until the receive has completed, or the device and its connections are gone.
    unsafe fn post_receive(&mut self, id: u64, piece: Piece) -> io::Result<()>;

    /// Takes completions of all connections, as many as there is room for.
    fn poll(&mut self, room: &mut [Done]) -> io::Result<usize>;

    /// The next completion makes `wake_fd` readable.
    fn notify(&mut self) -> io::Result<()>;

    /// Readable when there are news, a request, or a completion since `notify`, and after `wake`.
    fn wake_fd(&self) -> RawFd;

    fn wake(&self);

    /// Forgets `wake`.
    fn quieten(&self);
}

/// A connection that somebody else has begun.
pub struct Request<W> {
    pub wire: W,
    pub from: Option<SocketAddr>,
    pub data: Vec<u8>,
}

/// A connection with its queue pair. Dropped, the device touches no memory on its account.
pub trait Wire: Send + 'static {
    /// The other side's address. `AddressResolved` or `Failed` follows.
    fn resolve_address(&mut self, from: &SocketAddr, to: &SocketAddr) -> io::Result<()>;

    /// After `AddressResolved`. `RouteResolved` or `Failed` follows.
    fn resolve_route(&mut self) -> io::Result<()>;

    /// Makes the queue pair on the endpoint's queues: after `AddressResolved`, or for a request.
    fn make_pair(&mut self, sizes: &Sizes) -> io::Result<PairMade>;

    /// After `RouteResolved`. `Established`, `Rejected` or `Failed` follows.
    fn connect(&mut self, data: &[u8]) -> io::Result<()>;

    /// For a request. `Established` or `Failed` follows.
    fn accept(&mut self, data: &[u8]) -> io::Result<()>;

    /// For a request.
    fn reject(&mut self, data: &[u8]);

    /// All that is posted ends; the other side is told.
    fn disconnect(&mut self);

    fn news(&mut self) -> Option<News>;

    /// # Safety
    /// The memory of the pieces is lent until the request has completed; with `inline`, until the call returns.
    unsafe fn post_send(&mut self, work: &Work, pieces: &[Piece]) -> io::Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairMade {
    /// What completions call it.
    pub number: u32,
    /// Bytes that a request can carry within itself.
    pub inline: usize,
}
