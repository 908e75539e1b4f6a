//! How a data call becomes a request: its arrays are opened, the endpoint is asked, and C is told what came of it.
//!
//! Shared by the op tables `messaging`, `rma`, `atomic` and `collective`, which know what the calls mean.

use super::{deferred, endpoint};
use crate::abi::types::*;
use crate::api::deferred::work::Call;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::{NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::ffi::c_void;
use core::slice;
use libc::{iovec, ssize_t};

/// The context of an inject call, which no completion carries, and a buffer that a call does not have.
pub const NULL: *mut c_void = core::ptr::null_mut();

/// A data call as `api` takes it.
pub trait Request {
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<(), NotBegun>;
    /// The call in the form in which it waits for a counter.
    fn keep(self) -> Call;
}

impl Request for (SendCall, UserIov) {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<(), NotBegun> {
        endpoint.send(&self.0, &self.1)
    }
    fn keep(self) -> Call {
        Call::Send(self.0, self.1)
    }
}

impl Request for (RecvCall, UserIov) {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<(), NotBegun> {
        endpoint.recv(&self.0, &self.1)
    }
    fn keep(self) -> Call {
        Call::Recv(self.0, self.1)
    }
}

impl Request for RmaCall {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<(), NotBegun> {
        endpoint.rma(self)
    }
    fn keep(self) -> Call {
        Call::Rma(self)
    }
}

impl Request for AtomicCall {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<(), NotBegun> {
        endpoint.atomic(self)
    }
    fn keep(self) -> Call {
        Call::Atomic(Box::new(self))
    }
}

/// What the arguments of a C call come to: a request, or the error that they are.
pub trait Post {
    /// Puts it to the endpoint, and answers what C is told.
    ///
    /// # Safety
    /// `ep` is a live endpoint of this kind, and the buffers are the operation's until it has ended.
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t;
}

impl<R: Request> Post for R {
    #[inline(always)]
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t {
        // SAFETY: the caller passes a live endpoint of this kind; the request's context is as FI_TRIGGER asks for.
        unsafe {
            let endpoint = endpoint::of::<V>(ep.cast());
            match self.ask(endpoint) {
                Ok(()) => 0,
                Err(why) => deferred::not_begun(endpoint, why, &mut Some(self)),
            }
        }
    }
}

impl<P: Post> Post for Result<P> {
    #[inline(always)]
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t {
        match self {
            // SAFETY: the same contract.
            Ok(request) => unsafe { request.post::<V>(ep) },
            Err(error) => error.code() as ssize_t,
        }
    }
}

/// The memory of a call that names one buffer.
///
/// # Safety
/// `len` bytes at `buf` are the operation's until it has ended.
#[inline(always)]
pub unsafe fn one(buf: *const c_void, len: usize) -> UserIov {
    // SAFETY: the caller lends the buffer to the operation.
    UserIov::one(unsafe { UserBuf::new(buf.cast_mut().cast(), len) })
}

/// The memory of a call that names an array of pieces.
///
/// # Safety
/// `iov` has `count` pieces, each the operation's until it has ended.
#[inline]
pub unsafe fn many(iov: *const iovec, count: usize) -> Result<UserIov> {
    // SAFETY: the caller's array has as many pieces as it says.
    let pieces = unsafe { elements(iov, count)? }.iter();
    // SAFETY: the caller lends the pieces to the operation.
    UserIov::new(pieces.map(|piece| unsafe { UserBuf::new(piece.iov_base.cast(), piece.iov_len) }))
        .ok_or(Errno(FI_EINVAL))
}

/// The memory of a call that names pieces of elements, whose bytes `len` knows.
///
/// # Safety
/// As `many`.
pub unsafe fn counted(ioc: *const fi_ioc, count: usize, len: impl Fn(usize) -> Result<usize>) -> Result<UserIov> {
    let mut pieces = [UserBuf::default(); IOV_LIMIT];
    // SAFETY: the caller's array has as many pieces as it says.
    for (place, piece) in pieces.iter_mut().zip(unsafe { elements(ioc, count)? }) {
        // SAFETY: the caller lends the pieces to the operation.
        *place = unsafe { UserBuf::new(piece.addr.cast(), len(piece.count)?) };
    }
    UserIov::new(pieces.into_iter().take(count)).ok_or(Errno(FI_EINVAL))
}

/// An array that a program passes, of no more elements than an operation may have.
///
/// # Safety
/// `array` is NULL or has `count` elements, if they are no more than an operation may have.
#[inline]
pub unsafe fn elements<'a, T>(array: *const T, count: usize) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        1..=IOV_LIMIT if !array.is_null() => {
            // SAFETY: the caller's array has as many elements as it says.
            Ok(unsafe { slice::from_raw_parts(array, count) })
        }
        _ => Err(Errno(FI_EINVAL)),
    }
}
