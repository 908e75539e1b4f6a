//! The state of an endpoint of any kind, under the lock of whatever holds it.

use super::EndpointState;
use crate::api::log::Speaker;
use crate::util::closable::Entered;
use core::ops::{Deref, DerefMut};

pub enum StateGuard<'a> {
    Open(Entered<'a, EndpointState>),
    /// The endpoint is closed.
    Closed(Box<EndpointState>),
}

impl<'a> StateGuard<'a> {
    pub fn of(open: Option<Entered<'a, EndpointState>>, provider: Speaker) -> StateGuard<'a> {
        open.map_or_else(
            || StateGuard::Closed(Box::new(EndpointState::closed(provider))),
            StateGuard::Open,
        )
    }
}

impl Deref for StateGuard<'_> {
    type Target = EndpointState;

    fn deref(&self) -> &EndpointState {
        match self {
            StateGuard::Open(state) => state,
            StateGuard::Closed(state) => state,
        }
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut EndpointState {
        match self {
            StateGuard::Open(state) => state,
            StateGuard::Closed(state) => state,
        }
    }
}
