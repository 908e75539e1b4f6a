//! The steps of a try to connect over TCP. What is done in each stands in `dialing` (we connect) and `arrivals` (they
//! do).

use super::introduction::Introduction;
use super::link::Link;
use crate::sys::forks::ParentFd;
use crate::transport::connecting;

pub(super) type Peers = connecting::Peers<Link, Attempt>;
pub(super) type Way = connecting::Way<Attempt>;

pub(super) enum Attempt {
    /// Our own connection.
    Dialing {
        socket: ParentFd,
        /// None: the kernel has not connected yet, so nothing was said.
        said: Option<Box<SaidHello>>,
    },
    /// The peer's, which we welcomed and it has not confirmed.
    Welcomed {
        socket: ParentFd,
        /// The number of its arrival.
        arrival: u64,
        instance: u64,
        until: u64,
        word: [u8; 4],
        got: usize,
    },
    /// Agreed on; it becomes the link when the one before it has come to its end.
    Agreed { socket: ParentFd, instance: u64 },
}

pub(super) struct SaidHello {
    /// The address that our hello said.
    pub from: Vec<u8>,
    pub introduction: Introduction,
}
