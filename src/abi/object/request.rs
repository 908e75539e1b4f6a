//! Requests to connect, as programs hold them: fi_info::handle of an FI_CONNREQ event, until fi_endpoint or fi_reject
//! takes the request, or its passive endpoint is closed. An fi_endpoint that fails leaves it, to be tried again or
//! rejected.
//!
//! A handle is looked up by its address and never followed, as a program may name one that is gone. fi_dupinfo and
//! fi_freeinfo leave it alone, by fi_getinfo(3). Called by `pep`, which adds and rejects, and by `connected`.

use super::head;
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::sys::lock::{Guard, Held, Lock};
use core::any::Any;
use core::ptr::null_mut;
use std::collections::{HashMap, VecDeque};

static OPS: fi_ops = lacking::FID;

/// Handles that are gone stay in memory for a while, so that a program that uses one again does not name another's.
const REMEMBERED: usize = 1024;

#[derive(Default)]
struct Requests {
    open: HashMap<usize, Open>,
    spent: VecDeque<Handle>,
}

struct Open {
    /// The passive endpoint that it came to.
    pep: usize,
    /// None: an endpoint is being made of it.
    request: Option<Box<dyn Any + Send>>,
    handle: Handle,
}

/// The fid that programs see. Nothing is done with it but to compare its address.
struct Handle(Box<fid>);

// SAFETY: its pointers are to constants and NULL.
unsafe impl Send for Handle {}

static REQUESTS: Lock<Option<Requests>> = Lock::new(None);

/// For fork, which waits for it.
pub static LOCK: &dyn Held = &REQUESTS;

fn requests() -> Guard<'static, Option<Requests>> {
    REQUESTS.lock()
}

/// Gives a request a handle.
pub(super) fn add(pep: usize, request: impl Any + Send) -> usize {
    let handle = Handle(Box::new(head(FI_CLASS_CONNREQ, null_mut(), &OPS)));
    let address = (&raw const *handle.0) as usize;
    let request: Box<dyn Any + Send> = Box::new(request);
    let open = Open {
        pep,
        request: Some(request),
        handle,
    };
    requests().get_or_insert_default().open.insert(address, open);
    address
}

/// Takes the request behind a handle. -FI_EINVAL: there is none, or it is another provider's. `pep`: the passive
/// endpoint that it must have come to, if that matters.
pub(super) fn take<R: 'static>(handle: usize, pep: Option<usize>) -> Result<R> {
    let mut guard = requests();
    let requests = guard.get_or_insert_default();
    let request = requests.lend(handle, pep)?;
    requests.remove(handle);
    Ok(request)
}

/// Has `answer` make something of the request behind a handle, as `take`. What it leaves of an error is behind the
/// handle again.
pub(super) fn answer<R: Send + 'static, T>(
    handle: usize,
    answer: impl FnOnce(&mut Option<R>) -> Result<T>,
) -> Result<T> {
    let mut request = Some(requests().get_or_insert_default().lend(handle, None)?);
    let answered = answer(&mut request);
    let mut guard = requests();
    let requests = guard.get_or_insert_default();
    match (requests.open.get_mut(&handle), request.take_if(|_| answered.is_err())) {
        (Some(open), Some(left)) => open.request = Some(Box::new(left)),
        (Some(_), None) => requests.remove(handle),
        // Its passive endpoint was closed meanwhile. To refuse it takes a while.
        (None, left) => {
            drop(guard);
            drop(left);
        }
    }
    answered
}

/// Refuses what is left of a passive endpoint that is closed.
pub(super) fn drop_all(pep: usize) {
    let mut guard = requests();
    let requests = guard.get_or_insert_default();
    let of_it = |(at, open): (&usize, &Open)| (open.pep == pep).then_some(*at);
    let handles: Vec<usize> = requests.open.iter().filter_map(of_it).collect();
    let gone: Vec<Open> = handles.iter().filter_map(|at| requests.open.remove(at)).collect();
    let mut dropped = Vec::new();
    for open in gone {
        requests.spend(open.handle);
        dropped.extend(open.request);
    }
    // Each tells its other side, which takes a while.
    drop(guard);
}

impl Requests {
    /// Takes a request and keeps its handle.
    fn lend<R: 'static>(&mut self, handle: usize, pep: Option<usize>) -> Result<R> {
        let open = self
            .open
            .get_mut(&handle)
            .filter(|open| pep.is_none_or(|pep| pep == open.pep));
        let request = open.and_then(|open| open.request.take_if(|request| request.is::<R>()));
        let request = request.and_then(|request| request.downcast().ok());
        request.map(|request| *request).ok_or(Errno(FI_EINVAL))
    }

    fn remove(&mut self, handle: usize) {
        if let Some(open) = self.open.remove(&handle) {
            self.spend(open.handle);
        }
    }

    fn spend(&mut self, handle: Handle) {
        self.spent.push_back(handle);
        if self.spent.len() > REMEMBERED {
            self.spent.pop_front();
        }
    }
}
