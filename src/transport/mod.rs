//! What carries packets: implementations of `engine::port`. Knows `engine::port` and `sys`; called by `provider`.

pub mod shm;
