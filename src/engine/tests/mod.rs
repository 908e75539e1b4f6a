//! Tests of the whole engine, over lanes in memory.
//!
//! - `sim`: the test bed: engines, the lanes between them, a clock that a test moves and a seeded die.
//! - `inside`: what tests see of an engine from inside.
//! - `stories`: plain messages, one feature per test; `stories/flood` credit, `stories/peeks` FI_PEEK, multi-receives
//!   and cancelling, `stories/peer_death` peers that die, are not there or send nonsense.
//! - `random`: generated runs of messages, judged by the matching rules of MPI.
//! - `rma`: reads, writes and atomics, one feature per test, and `rma/random` generated runs of them.

mod inside;
pub(crate) mod random;
pub(crate) mod rma;
pub(crate) mod sim;
mod stories;
