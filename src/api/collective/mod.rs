//! Collective operations (fi_collective), over the messages of any endpoint.
//!
//! Nothing here blocks: a collective goes on whenever its endpoint makes progress. Knows no queue. Called by
//! `api::endpoint::collective`, which offers it to `abi` as `Collectives`.
//!
//! - `plan`: what each member does for an operation, as a list of steps;
//! - `group`: who the members are, and how their messages are told from others';
//! - `request`: what a call may ask for;
//! - `run`: carries plans out with an endpoint's engine.

pub mod group;
pub mod plan;
pub mod request;
pub mod run;

use crate::abi::types::fi_addr_t;
use crate::api::av_set::AvSet;
use crate::api::errno::Result;
use crate::engine::op::Context;
use crate::util::user::UserIov;
use request::Asked;
use std::sync::Arc;

/// A collective call.
#[derive(Clone, Copy, Debug)]
pub struct CollectiveCall {
    pub asked: Asked,
    /// The address of a group.
    pub coll_addr: fi_addr_t,
    /// None: as many elements as the buffers have.
    pub count: Option<usize>,
    /// The source buffer; may be longer than the operation needs.
    pub input: UserIov,
    pub result: UserIov,
    pub flags: u64,
    pub context: Context,
}

/// fi_join_collective.
pub struct JoinCall {
    /// The new group's address, from `group::new_address`.
    pub address: fi_addr_t,
    /// The new group's fid, for FI_JOIN_COMPLETE.
    pub fid: usize,
    pub set: Arc<AvSet>,
    /// The address of a set or group; FI_ADDR_NOTAVAIL: the program has agreed on the members by itself.
    pub coll_addr: fi_addr_t,
    pub context: Context,
}

/// An endpoint that takes part in collectives.
pub trait Collectives: Send + Sync {
    fn collective(&self, call: &CollectiveCall) -> Result<()>;
    /// Begins to join. FI_JOIN_COMPLETE or an error goes to the endpoint's event queue.
    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()>;
    /// fi_close of a group: drops it and the unread events of its fid. -FI_EBUSY while an operation of it goes on.
    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()>;
}
