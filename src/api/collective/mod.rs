//! Collective operations (fi_collective), over the messages of any endpoint.
//!
//! `plan` says what each member does, `group` who the members are and how their messages are told from others',
//! `request` what a call may ask for, `run` carries plans out with an endpoint's engine. Nothing here blocks: a
//! collective goes on whenever the endpoint makes progress. Called by `api::endpoint`, which offers it to `abi` as
//! `Collectives`.

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
    /// Of a group.
    pub coll_addr: fi_addr_t,
    /// None: as many elements as the buffers have.
    pub count: Option<usize>,
    /// At least as long as the operation needs.
    pub input: UserIov,
    pub result: UserIov,
    pub flags: u64,
    pub context: Context,
}

/// fi_join_collective.
pub struct JoinCall {
    /// The new group's, of `group::new_address`.
    pub address: fi_addr_t,
    /// Its fid, for the event.
    pub fid: usize,
    pub set: Arc<AvSet>,
    /// Of a set or of a group; FI_ADDR_NOTAVAIL: the application has agreed on the members itself.
    pub coll_addr: fi_addr_t,
    pub context: Context,
}

/// An endpoint that takes part in collectives.
pub trait Collectives: Send + Sync {
    fn collective(&self, call: &CollectiveCall) -> Result<()>;
    /// What follows from it is told to the endpoint's event queue.
    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()>;
    /// Forgets a group and what is still to be told of its fid. -FI_EBUSY while an operation of it goes on.
    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()>;
}
