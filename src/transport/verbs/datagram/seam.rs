//! What an endpoint of datagrams asks of a device. The stand-in of the tests answers too.

use super::Address;
use crate::sys::rdma::{Arrived, Piece, Work};
use std::io;
use std::os::fd::RawFd;

/// Finds ways to addresses.
pub trait Router: Send + Sync + 'static {
    type Way: Send + Sync + 'static;

    /// May wait for an answer of the network.
    fn way(&self, to: &Address) -> io::Result<Self::Way>;
}

/// A queue pair of datagrams with its completion queue. No call waits.
pub trait DatagramLink: Send + 'static {
    type Router: Router;

    /// # Safety
    /// The memory of the pieces is lent until the request has completed; with `inline`, until the call returns. The way
    /// is held until then too.
    unsafe fn post_send(
        &mut self,
        work: &Work,
        pieces: &[Piece],
        way: &<Self::Router as Router>::Way,
        pair: u32,
    ) -> io::Result<()>;

    /// # Safety
    /// The memory of the pieces is lent, to be written, until the receive has completed.
    unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()>;

    /// Takes completions, as many as there is room for.
    fn poll(&mut self, room: &mut [Arrived]) -> io::Result<usize>;

    /// The next completion makes `wake_fd` readable.
    fn notify(&mut self) -> io::Result<()>;

    /// Readable when there is a completion since `notify`.
    fn wake_fd(&self) -> RawFd;

    /// All that is posted comes back.
    fn fail(&mut self) -> io::Result<()>;

    /// After `fail`, when all has come back: it sends and receives again, under the same number.
    fn renew(&mut self) -> io::Result<()>;
}
