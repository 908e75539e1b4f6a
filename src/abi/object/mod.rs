//! The objects behind the fids: a C struct that programs see, and behind it the Rust value that does the work.
//!
//! An object is one allocation that begins with the C struct; C holds its address. Op tables are constants, one per
//! type of object and transport, so a C call is one indirect call into a shim that opens its arguments and calls `api`.
//! - What is opened of what: `fabric`; `domain`, `eq`, `wait_set` of it; `av`, `cq`, `cntr`, `mr`, `poll_set` and
//!   `stx` of a domain; `av_set` of a vector. `on_engine` and `connected` open the objects whose type names the
//!   transport.
//! - Endpoints: `endpoint` (aliases and shared receive contexts, too), `scalable`; `mc` is a group that one joined.
//! - Connections: `pep` listens; `request` is what a handle names until it is accepted or rejected.
//! - Their data calls: `messaging`, `rma`, `atomic`, `collective`, written as rows (`op_table`) and put to the endpoint
//!   (`posting`); `deferred` is what FI_TRIGGER and FI_QUEUE_WORK make of them.
//! - Commands of fi_control in common: `wait`, `raw_key`.
//!
//! Knows no protocol and no transport. Called by C only.

pub mod atomic;
pub mod av;
pub mod av_set;
pub mod cntr;
pub mod collective;
pub mod connected;
pub mod cq;
pub mod datagrams;
pub mod deferred;
mod descriptors;
pub mod direct;
pub mod domain;
pub mod endpoint;
pub mod eq;
pub mod fabric;
pub mod mc;
pub mod messaging;
pub mod mr;
pub mod on_engine;
mod op_table;
mod opening;
pub mod pep;
pub mod poll_set;
pub mod posting;
pub mod raw_key;
pub mod request;
pub mod rma;
pub mod scalable;
pub mod stx;
pub mod wait;
pub mod wait_set;

use crate::abi::types::*;
use crate::api::domain::{Domain, Fabric};
use crate::api::errno::{Errno, Result};
use crate::api::refs::Refs;
use crate::sys::forks::Process;
use core::ffi::c_int;
use libc::ssize_t;
use std::sync::Arc;

/// What C holds the address of: a C struct and the value behind it.
#[repr(C)]
pub struct Object<C, T> {
    pub c: C,
    pub value: T,
    process: Process,
}

impl<C, T> Object<C, T> {
    /// Gives the object to C; `take` gets it back.
    pub fn give(c: C, value: T) -> *mut C {
        let process = Process::this();
        Box::into_raw(Box::new(Object { c, value, process })).cast()
    }

    /// # Safety
    /// `c` came from `give` of this very type and was not taken.
    pub unsafe fn value<'a>(c: *const C) -> &'a T {
        // SAFETY: `give` made it an object of this type, whose first field is the C struct.
        unsafe { &(*c.cast::<Object<C, T>>()).value }
    }

    /// # Safety
    /// As `value`, and C does not use it any more.
    pub unsafe fn take(c: *mut C) -> T {
        // SAFETY: `give` got it from a box of this type, and C does not use it any more.
        unsafe { Box::from_raw(c.cast::<Object<C, T>>()) }.value
    }

    /// fi_close: frees the object if `may` allows it. In a child of fork it stays in memory: a thread that the child
    /// does not have may have held any of its locks at the fork, and holds it for ever.
    ///
    /// # Safety
    /// As `take`, unless it is still in use.
    pub unsafe fn close(fid: *mut fid, may: impl FnOnce(&T) -> Result<()>) -> c_int {
        // SAFETY: `give` made it an object of this type, whose C struct begins with the fid.
        unsafe {
            if !(*fid.cast::<Object<C, T>>()).process.is_this() {
                return FI_SUCCESS;
            }
            let result = may(Self::value(fid.cast()));
            if result.is_ok() {
                drop(Self::take(fid.cast()));
            }
            status(result)
        }
    }
}

/// What other objects are opened of, and what may not be closed before them.
pub trait Parent {
    fn users(&self) -> &Refs;
}

impl Parent for Fabric {
    fn users(&self) -> &Refs {
        &self.users
    }
}

impl Parent for Domain {
    fn users(&self) -> &Refs {
        &self.users
    }
}

/// What is behind the fid of an object that keeps its fabric or domain in use until it is closed.
pub struct Child<T, P: Parent> {
    pub value: T,
    pub parent: Arc<P>,
}

impl<T, P: Parent> Child<T, P> {
    pub fn new(value: T, parent: &Arc<P>) -> Child<T, P> {
        parent.users().acquire();
        let parent = parent.clone();
        Child { value, parent }
    }
}

impl<T, P: Parent> Drop for Child<T, P> {
    fn drop(&mut self) {
        self.parent.users().release();
    }
}

/// -FI_EBUSY while somebody uses an object.
pub fn not_if(busy: bool) -> Result<()> {
    if busy { Err(Errno(FI_EBUSY)) } else { Ok(()) }
}

/// A fid of a class with its operations.
pub const fn head(class: u32, context: *mut core::ffi::c_void, ops: &'static fi_ops) -> fid {
    fid {
        fclass: class as usize,
        context,
        ops: (&raw const *ops).cast_mut(),
    }
}

/// The return value of a call that answers 0 or an error.
pub fn status(result: Result<()>) -> c_int {
    match result {
        Ok(()) => FI_SUCCESS,
        Err(error) => error.code(),
    }
}

/// The same for calls that answer ssize_t.
pub fn size_status(result: Result<()>) -> ssize_t {
    status(result) as ssize_t
}
