//! What reliable endpoints ask of a device: queues for all connections of an endpoint. The stand-in of the tests
//! answers too. Connections, their queue pairs, and registered memory are those of `verbs::seam`.

use crate::sys::rdma::{EventKind, Piece};
use crate::transport::verbs::seam::{Completions, Nic, QueuePair};
use crate::util::regions::Regions;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// An endpoint's share of a device: it listens at an address, and has one shared receive queue and one completion
/// queue, whose `wake_fd` tells of requests too. No call waits.
pub trait Device: Completions + Send + 'static {
    type Wire: QueuePair;

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

    /// What the device tells by itself of the endpoint's queues, a port or the whole device, as far as `look` has seen.
    fn trouble(&mut self) -> Option<EventKind>;

    /// There are to be so many completions that nobody has taken.
    fn make_room(&mut self, completions: usize) -> io::Result<()>;

    /// Posts a receive to the shared queue.
    ///
    /// # Safety
    /// The memory is lent, to be written, until the receive has completed, or the device and its connections are gone.
    unsafe fn post_receive(&mut self, id: u64, piece: Piece) -> io::Result<()>;

    /// Makes `wake_fd` readable.
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
