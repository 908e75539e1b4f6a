//! Endpoints without a connection on RDMA devices: each is one queue pair of datagrams (UD), and nothing frames what it
//! sends. The receiver's memory gets a header of the network's before each datagram, so programs leave room for it
//! (FI_MSG_PREFIX).
//!
//! - `address`: what peers are called, byte for byte as the C library's provider calls them;
//! - `ways`: the device's way to each address that a vector has;
//! - `endpoint`: what is posted and completed; `peers`: the numbers that it knows addresses by;
//! - `seam`: what is asked of the device, `device` answers with `sys::rdma`.
//!
//! A datagram that finds no receive is dropped by the device, and nobody hears of it.

mod address;
mod device;
mod endpoint;
mod peers;
mod seam;
mod ways;

pub use crate::sys::rdma::PREFIX;
pub use address::Address;
pub use device::{DeviceDatagrams, DeviceRouter};
pub use endpoint::{DatagramConfig, DatagramEndpoint};
pub use seam::{DatagramLink, Router};
pub use ways::{Held, Ways};
