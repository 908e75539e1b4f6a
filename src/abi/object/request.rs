//! Requests to connect, as programs hold them: fi_info::handle of an FI_CONNREQ event, until fi_endpoint or fi_reject
//! takes the request, or its passive endpoint is closed.
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
    request: Box<dyn Any + Send>,
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
    let request = Box::new(request);
    let open = Open { pep, request, handle };
    requests().get_or_insert_default().open.insert(address, open);
    address
}

/// Takes the request behind a handle. -FI_EINVAL: there is none, or it is another provider's. `pep`: the passive endpoint
/// that it must have come to, if that matters.
pub(super) fn take<R: 'static>(handle: usize, pep: Option<usize>) -> Result<R> {
    let mut guard = requests();
    let requests = guard.get_or_insert_default();
    let fits = |open: &Open| open.request.is::<R>() && pep.is_none_or(|pep| pep == open.pep);
    if !requests.open.get(&handle).is_some_and(fits) {
        return Err(Errno(FI_EINVAL));
    }
    let open = requests.open.remove(&handle).ok_or(Errno(FI_EINVAL))?;
    requests.spend(open.handle);
    open.request
        .downcast()
        .map(|request| *request)
        .map_err(|_| Errno(FI_EINVAL))
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
        dropped.push(open.request);
    }
    // Each tells its other side, which takes a while.
    drop(guard);
}

impl Requests {
    fn spend(&mut self, handle: Handle) {
        self.spent.push_back(handle);
        if self.spent.len() > REMEMBERED {
            self.spent.pop_front();
        }
    }
}
