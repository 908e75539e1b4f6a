//! Collective operations (fi_collective).
//!
//! `plan` says what each member does, `group` who they are, `run` does it with an endpoint's engine.

pub mod plan;
