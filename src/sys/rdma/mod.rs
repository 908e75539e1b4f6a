//! RDMA devices and connections: thin safe wrappers over libibverbs and librdmacm, which are opened when they are
//! wanted.
//!
//! - `types`: their structs, as C lays them out; `calls`: their functions.
//! - `device`: the devices of this machine, what they tell of themselves, protection domains and registered memory.
//! - `id`: a connection identifier of librdmacm with the queue pair of its connection; `queues`: its completion queue;
//!   `shared`: receives that several queue pairs share.
//! - `datagram`: a queue pair without a connection, and the ways to its peers.
//! - `events`: what devices tell by themselves.
//! - `work`: what is posted to a queue pair, and what has become of it.
//!
//! An object holds those that it stands on, so nothing is destroyed that another uses. Knows nothing of libfabric.
//! Called by `transport` and `provider`.

mod calls;
mod datagram;
mod device;
mod events;
mod id;
mod queues;
mod shared;
#[expect(non_camel_case_types, reason = "the names of the C headers")]
mod types;
mod work;

pub use datagram::{Arrived, DatagramPair, PREFIX, Place, Way};
pub use device::{Access, Attributes, Device, LinkLayer, Memory, Pd, Port, Transport, devices};
pub use events::{Trouble, Watch};
pub use id::{Event, EventKind, Id, PairMade};
pub use queues::{Queues, Sizes};
pub use shared::SharedReceives;
pub use work::{Done, DoneKind, Failure, Opcode, Piece, Request, Stopped, Work};

use core::ffi::c_int;
use std::io;

/// The answer of a call that gives 0, or -1 with errno.
fn told(code: c_int) -> io::Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The answer of a call that gives 0 or an errno.
fn errno(code: c_int) -> io::Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(code.abs()))
    }
}

/// Whether the kernel has a device, without opening anything: libibverbs writes to stderr if there is none.
pub fn any() -> bool {
    std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests;
