//! The protocol of messages and remote memory, written once for every transport: matching, ordering, flow control, and
//! when each operation completes.
//!
//! Has no `unsafe`, no system call, no clock, no socket and no lock. It is called with operations (`op`), calls its
//! transport (`port`) and reports completions. Knows `util` and the atomic kernels of `mem` only;
//! abi-tests/engine-alone compiles these three alone to hold that line. Called by `api::endpoint`. `state` holds what
//! an engine knows, `peer` what it knows of one peer, `wire` the packet header.
//!
//! A message. `endpoint` pushes one that fits a packet at once (`Eager`) if the peer's queue is empty and `credit`
//! allows; else it is queued per peer (`outgoing`, `outgoing_op`) and pushed in its turn (`next_packet`, `pushing`). Up
//! to `Limits::eager` bytes it goes unasked, as `Eager` or as `First` and `Segment`s (`segment`). Above that, or when
//! the receiver withholds credit, it is offered (`Rendezvous`, `rendezvous`): once it is matched, the receiver fetches
//! it with the transport's `get` and answers `Done`, or asks for segments with `Request`. `offer` does that in short
//! where a fetch is over at once. `exposure` keeps account of the memory that is lent so. At the receiver `deliver` is
//! what the transport calls for each packet. `eager` tries the fast path, straight into a posted receive; else
//! `matching` finds the receive, or a `message` is kept as unexpected until `receive`, `multi` (FI_MULTI_RECV) or
//! `peek` (FI_PEEK, FI_CLAIM) takes it.
//!
//! A read or write (`rma`) is the transport's if it does all of them, as a card does (`native`). Else `direct` offers
//! it to the transport, which may do it without the peer. Else a short write is one `Write` packet, acknowledged by
//! count (`short_op`), and reported before that if it need not be delivered and goes to `known_memory`. A long one is
//! several such packets (`rma_packets`), or an `Offer`, then a message whose receive is a region. A `Read` is answered
//! with the bytes, or with leave to fetch them (`replies`). At the target `rma_fast` does short ones while the packet
//! lies in the transport, but reads that nothing follows are answered when the poll is over (`read_at_hand`);
//! `rma_target` all others; `pieces` turns keys and addresses into memory. `recall` takes short operations back whose
//! target does not poll.
//!
//! An atomic (`atomic`) is always one packet; `atomic_target` checks and executes it with a `kernel` of `mem`.
//! `tagged_atomic`: one on the buffer of a tagged receive, which goes through matching. `peer_death` ends what waits
//! for a peer that is gone, `cancel` what the program takes back.

#![forbid(unsafe_code)]

pub mod endpoint;
pub mod matching;
pub mod op;
pub mod port;
pub mod wire;

mod atomic;
mod atomic_target;
mod buffers;
mod cancel;
mod credit;
mod deliver;
mod direct;
mod eager;
mod exposure;
mod kernel;
mod known_memory;
mod message;
mod multi;
mod native;
mod next_packet;
mod offer;
mod outgoing;
mod outgoing_op;
mod peek;
mod peer;
mod peer_death;
mod pieces;
mod pushing;
mod read_at_hand;
mod recall;
mod receive;
mod rendezvous;
mod replies;
mod rma;
mod rma_fast;
mod rma_packets;
mod rma_peer;
mod rma_target;
mod segment;
mod short_op;
mod state;
mod tagged_atomic;

#[cfg(test)]
pub(crate) mod tests;

pub use endpoint::Engine;
pub use state::Config;
