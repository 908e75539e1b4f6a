//! The test bed of transports, of which nothing ships.
//!
//! - `suite`: what every transport must do, as test functions that are generic over the transport.
//! - `loopback`: endpoints of one thread, joined by queues. The smallest transport, and the example for a new one.
//! - `stream`: packets through a byte stream, of which no call moves more than a few bytes.
//! - `queue_pair`: what a network card with reliable connections does to a transport.
//!
//! The last three exist to hold the seam `engine::port` wide enough for transports that differ much from `shm`.

pub mod joined;
pub mod loopback;
pub mod queue_pair;
pub mod stream;
pub mod suite;
