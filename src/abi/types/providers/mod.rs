//! The headers that providers include, `rdma/providers/*.h`.

pub mod fi_log;
pub mod fi_peer;
pub mod fi_prov;
