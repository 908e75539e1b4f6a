//! Connected endpoints on RDMA devices: each is one reliable connected queue pair, and nothing frames what it carries,
//! so that the other side may be any other user of the same device interface, as the C library's provider of this name
//! is.
//!
//! A card does what the engine does elsewhere: it matches receives in the order in which they were posted, and reads
//! and writes registered memory. So there is no `Transport` here; `provider` puts these endpoints behind the direct
//! ones of `api`. Here is the way of a connection (`connection`), what is posted to send (`sends`, `atomics`), what is
//! received and completed (`endpoint`), receives that endpoints share (`shared`), and which memory the device knows
//! (`memory`).
//!
//! `datagram` has endpoints without a connection, each with a queue pair of datagrams. `reliable` is a transport of the
//! engine's, and `cache` has registrations for it; those of programs and these are found by `ranges`.
//!
//! `seam` is all that is asked of the device. `device` answers with `sys::rdma`; in tests a script does, so that each
//! error path can be gone without a card. Knows `engine::op`, `util` and `sys`. Called by `provider`.

mod atomics;
pub mod cache;
mod connection;
pub mod datagram;
mod device;
mod endpoint;
mod listener;
mod memory;
mod ranges;
pub mod reliable;
mod seam;
mod sends;
mod shared;

#[cfg(test)]
mod tests;

pub use atomics::amos;
pub use connection::{DATA_SIZE, Happened};
pub use device::DeviceLink;
pub use endpoint::{Config, VerbsEndpoint};
pub use listener::{Request, VerbsListener, Waiting};
pub use memory::Registrations;
pub use seam::{Completions, Connection, Link, News, Nic, QueuePair, Receives, Registration};
pub use sends::MARK_ROOM;
pub use shared::SharedPool;
