//! Passive endpoints: they listen, and report who wants to connect to an event queue.
//!
//! Provider-independent: `Listener` is the provider's. Knows no C type of an object. Called by `abi::object::pep`.

use crate::api::errno::Result;
use std::os::fd::RawFd;

/// What listens for connections on behalf of a passive endpoint. None of the calls waits.
pub trait Listener: Send + 'static {
    type Request: Request;

    /// fi_listen: from now on requests may come. `backlog`: how many may wait for `next_request`.
    fn listen(&mut self, backlog: usize) -> Result<()>;

    /// The next request that has come with all its data. Called over and over while somebody reads the event queue; does
    /// whatever work there is.
    fn next_request(&mut self) -> Option<Incoming<Self::Request>>;

    /// fi_getname.
    fn local_address(&self) -> Vec<u8>;

    /// fi_setname, before `listen`.
    fn rename(&mut self, address: &[u8]) -> Result<()>;

    /// Becomes readable when `next_request` has something to do. The same from `listen` on.
    fn wake_fd(&self) -> Option<RawFd>;

    /// Drains `wake_fd`. False: there is work, so do not sleep. Nothing to do for a descriptor that stays readable while
    /// there is work, as an epoll set does.
    fn arm(&mut self) -> bool {
        true
    }
}

/// A request to connect, with what the program is told of it.
pub struct Incoming<R> {
    /// The address of the side that connects, and the one that it connected to.
    pub peer: Vec<u8>,
    pub local: Vec<u8>,
    /// What the other side gave fi_connect.
    pub data: Vec<u8>,
    pub request: R,
}

/// A request that was neither accepted nor rejected. Dropped, it is refused without data.
pub trait Request: Send + 'static {
    /// fi_reject. At most `Connected::DATA_SIZE` bytes.
    fn reject(self, data: &[u8]);
}
