//! What an endpoint asks of a device: one connection, and registered memory. The stand-in of the tests answers too.

use crate::sys::rdma::{Access, Done, EventKind, PairMade, Piece, Request, Sizes, Stopped};
use crate::util::user::UserBuf;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What has become of a connection, with what the other side sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    pub kind: EventKind,
    pub data: Vec<u8>,
}

/// How a connection is made, and how it ends. No call waits.
pub trait Connection {
    /// The other side's address. `AddressResolved` or `Failed` follows.
    fn resolve_address(&mut self, from: Option<&SocketAddr>, to: &SocketAddr) -> io::Result<()>;

    /// After `AddressResolved`. `RouteResolved` or `Failed` follows.
    fn resolve_route(&mut self) -> io::Result<()>;

    /// After `RouteResolved`. `Established`, `Rejected` or `Failed` follows.
    fn connect(&mut self, data: &[u8]) -> io::Result<()>;

    /// For a request. `Established` or `Failed` follows.
    fn accept(&mut self, data: &[u8]) -> io::Result<()>;

    /// For a request.
    fn reject(&mut self, data: &[u8]);

    /// All that is posted ends; the other side is told.
    fn disconnect(&mut self);

    fn news(&mut self) -> Option<News>;
}

/// The queue pair of a connection. Dropped, the device touches no memory on its account.
pub trait QueuePair: Send + 'static {
    type Connection: Connection;

    fn connection(&mut self) -> &mut Self::Connection;

    /// Makes it: after `AddressResolved`, or for a request.
    fn make_pair(&mut self, sizes: &Sizes) -> io::Result<PairMade>;

    /// Posts requests in this order, with as few doorbells as the device can.
    ///
    /// # Safety
    /// The memory of the pieces is lent until the request has completed; with `inline`, until the call returns.
    unsafe fn post_sends(&mut self, requests: &[Request<'_>]) -> Result<(), Stopped>;
}

/// Where completions are found.
pub trait Completions {
    /// Takes completions, as many as there is room for.
    fn poll(&mut self, room: &mut [Done]) -> io::Result<usize>;

    /// The next completion makes `wake_fd` readable.
    fn notify(&mut self) -> io::Result<()>;

    /// Readable when there are news, or a completion since `notify`.
    fn wake_fd(&self) -> RawFd;
}

/// A queue pair with a completion queue of its own.
pub trait Link: QueuePair + Completions {
    type Receives: Receives;

    /// Before `make_pair`: the queue pair takes its receives from there, and `post_receive` is not for it.
    fn share(&mut self, receives: &Arc<Self::Receives>);

    /// Before the queue pair is made: there are to be so many completions that nobody has looked at.
    fn make_room(&mut self, _completions: usize) -> io::Result<()> {
        Ok(())
    }

    /// How long the peer waits before it tries again where there was no receive.
    fn set_retry_timer(&mut self, code: u8) -> io::Result<()>;

    /// What the device tells by itself of the queue pair, the port or the whole device.
    fn trouble(&mut self) -> Option<EventKind>;

    /// # Safety
    /// The memory of the pieces is lent, to be written, until the receive has completed.
    unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()>;

    fn local_address(&self) -> Option<SocketAddr>;

    fn peer_address(&self) -> Option<SocketAddr>;
}

/// Receives that several queue pairs share. Each completes at the queue pair whose message it took.
pub trait Receives: Send + Sync + 'static {
    /// # Safety
    /// The memory of the pieces is lent, to be written, until the receive has completed, or this and all queue pairs
    /// that share it are gone.
    unsafe fn post(&self, id: u64, pieces: &[Piece]) -> io::Result<()>;
}

/// A device that memory is registered with.
pub trait Nic: Send + Sync + 'static {
    /// The memory may be used by the device, and by peers as `access` says, until the registration is dropped.
    fn register(&self, memory: &UserBuf, access: Access) -> io::Result<Box<dyn Registration>>;
}

/// Dropped, no device touches the memory.
pub trait Registration: Send + Sync {
    fn local_key(&self) -> u32;
    fn remote_key(&self) -> u32;
}
