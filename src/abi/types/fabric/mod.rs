//! Plain data of `rdma/fabric.h`. The header has these files in this order.

mod flags;
mod info;
mod object;

pub use flags::*;
pub use info::*;
pub use object::*;
