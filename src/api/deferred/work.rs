//! One piece of deferred work: when it is started, what is done, and where its completion goes.
//!
//! Knows endpoints as `AnyEndpoint` only. Called by `deferred` and by the shims.

use crate::abi::types::{FI_CLAIM, FI_COMPLETION, FI_DISCARD, FI_EINVAL, FI_ENOSYS, FI_INJECT, FI_PEEK, FI_TRIGGER};
use crate::api::cntr::Cntr;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::{Flags, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::engine::op::Context;
use crate::util::user::UserIov;
use std::sync::Arc;

/// A counter in use, which cannot be closed meanwhile.
pub struct Held(Arc<Cntr>);

impl Held {
    pub fn new(cntr: &Arc<Cntr>) -> Held {
        cntr.refs().acquire();
        Held(cntr.clone())
    }

    pub fn cntr(&self) -> &Arc<Cntr> {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.refs().release();
    }
}

/// A call of an endpoint, with its body, to be made later.
#[derive(Clone)]
pub enum Call {
    Send(SendCall, UserIov),
    Recv(RecvCall, UserIov),
    Rma(RmaCall),
    Atomic(Box<AtomicCall>),
}

impl Call {
    pub fn is_recv(&self) -> bool {
        matches!(self, Call::Recv(..))
    }

    pub fn flags(&self) -> Flags {
        match self {
            Call::Send(call, _) => call.flags,
            Call::Recv(call, _) => call.flags,
            Call::Rma(call) => call.flags,
            Call::Atomic(call) => call.flags,
        }
    }

    pub fn context(&self) -> Context {
        match self {
            Call::Send(call, _) => call.context,
            Call::Recv(call, _) => call.context,
            Call::Rma(call) => call.context,
            Call::Atomic(call) => call.context,
        }
    }

    /// The same with other flags and another context.
    fn with(&self, flags: Flags, context: Context) -> Call {
        match self {
            Call::Send(call, body) => Call::Send(
                SendCall {
                    flags,
                    context,
                    ..*call
                },
                *body,
            ),
            Call::Recv(call, body) => Call::Recv(
                RecvCall {
                    flags,
                    context,
                    ..*call
                },
                *body,
            ),
            Call::Rma(call) => Call::Rma(RmaCall {
                flags,
                context,
                ..*call
            }),
            Call::Atomic(call) => Call::Atomic(Box::new(AtomicCall {
                flags,
                context,
                ..**call
            })),
        }
    }
}

/// What deferred calls are made on: an endpoint of any kind.
pub trait AnyEndpoint: Send + Sync {
    fn begin(&self, call: &Call) -> Result<()>;
    /// Reports a call that never began, to this counter too.
    fn fail(&self, call: &Call, error: Errno, counted: Option<&Arc<Cntr>>);
    /// The number that tells endpoints apart.
    fn key(&self) -> usize;
}

/// An endpoint as deferred work knows it.
pub struct On(pub Arc<dyn EndpointOps>);

impl AnyEndpoint for On {
    fn begin(&self, call: &Call) -> Result<()> {
        let begun = match call {
            Call::Send(call, body) => self.0.send(call, body),
            Call::Recv(call, body) => self.0.recv(call, body),
            Call::Rma(call) => self.0.rma(call),
            Call::Atomic(call) => self.0.atomic(call),
        };
        begun.map_err(|why| match why {
            NotBegun::Refused(error) => error,
            // Cannot be: `ordinary` and `owned` take FI_TRIGGER away.
            NotBegun::Triggered => Errno(FI_EINVAL),
        })
    }

    fn fail(&self, call: &Call, error: Errno, counted: Option<&Arc<Cntr>>) {
        self.0.lock_state().report_not_begun(call, error, counted);
    }

    fn key(&self) -> usize {
        key_of(&*self.0)
    }
}

/// The number of an endpoint; its aliases have the same.
pub fn key_of(endpoint: &dyn EndpointOps) -> usize {
    Arc::as_ptr(&endpoint.as_progress()).cast::<()>().addr()
}

/// Where an operation's completion goes.
pub enum Ending {
    /// To the endpoint's queue and counter, as if the program had just called.
    Ordinary,
    /// To this counter.
    Counted(Option<Held>),
}

/// What FI_OP_CNTR_SET and FI_OP_CNTR_ADD do to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Set(u64),
    Add(u64),
}

pub enum Action {
    Operation {
        endpoint: Box<dyn AnyEndpoint>,
        call: Box<Call>,
        ending: Ending,
    },
    Count {
        cntr: Held,
        change: Change,
    },
}

pub struct Work {
    pub trigger: Held,
    pub threshold: u64,
    /// What it is cancelled by: the address of its struct fi_deferred_work, or its context with FI_TRIGGER.
    pub name: usize,
    pub action: Action,
}

impl Work {
    pub fn is_due(&self) -> bool {
        self.trigger.cntr().total() >= self.threshold
    }

    /// The counters that it waits for or steps.
    pub fn counters(&self) -> impl Iterator<Item = &Arc<Cntr>> {
        let other = match &self.action {
            Action::Operation {
                ending: Ending::Counted(cntr),
                ..
            } => cntr.as_ref(),
            Action::Operation { .. } => None,
            Action::Count { cntr, .. } => Some(cntr),
        };
        [Some(&self.trigger), other].into_iter().flatten().map(Held::cntr)
    }

    pub fn is_on(&self, key: usize) -> bool {
        matches!(&self.action, Action::Operation { endpoint, .. } if endpoint.key() == key)
    }

    /// The operation, if it is one with FI_TRIGGER.
    pub fn triggered(&self) -> Option<&Call> {
        match &self.action {
            Action::Operation {
                call,
                ending: Ending::Ordinary,
                ..
            } => Some(call),
            _ => None,
        }
    }

    /// Reports work that was refused for good when it was started, to where its completion would have gone.
    pub fn fail(&self, error: Errno) {
        let Action::Operation { endpoint, call, ending } = &self.action else {
            return;
        };
        match ending {
            Ending::Ordinary => endpoint.fail(call, error, None),
            Ending::Counted(counted) if wants_entry(call) => {
                endpoint.fail(call, error, counted.as_ref().map(Held::cntr));
            }
            Ending::Counted(counted) => counted.iter().for_each(|held| held.cntr().fail()),
        }
    }
}

/// Refuses flags that deferred operations cannot have: FI_INJECT, as the buffer cannot be given back at once
/// (-FI_EINVAL), and FI_PEEK (-FI_ENOSYS).
pub fn check_flags(flags: u64, receives: bool) -> Result<()> {
    if flags & FI_INJECT != 0 {
        return Err(Errno(FI_EINVAL));
    }
    if receives && flags & (FI_PEEK | FI_CLAIM | FI_DISCARD) != 0 {
        return Err(Errno(FI_ENOSYS));
    }
    Ok(())
}

/// The call to make when the threshold is reached: the same, with these flags and without FI_TRIGGER.
pub fn ordinary(call: &Call, flags: u64) -> Call {
    call.with(Flags::Call(flags & !FI_TRIGGER), call.context())
}

/// The same for a call whose completion comes back to `landed`, by a number.
pub fn owned(call: &Call, number: Context) -> Call {
    let flags = match call.flags() {
        Flags::Call(flags) => flags,
        _ => 0,
    };
    call.with(Flags::Own(flags & !(FI_TRIGGER | FI_COMPLETION)), number)
}

/// Whether the program asked for an entry in the endpoint's queue (FI_COMPLETION).
pub fn wants_entry(call: &Call) -> bool {
    matches!(call.flags(), Flags::Call(flags) if flags & FI_COMPLETION != 0)
}
