//! How a data call becomes a request: the arrays it names are opened, the endpoint is asked, and C is told what came of it.
//!
//! Shared by the op tables `messaging`, `rma`, `atomic` and `collective`, which know what the calls mean.

use super::deferred;
use crate::abi::types::*;
use crate::api::deferred::work::Call;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::{RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::ffi::c_void;
use core::slice;
use libc::{iovec, ssize_t};

/// From the C endpoint to the value that does the work.
pub trait Opened {
    type Value: EndpointOps;
    /// # Safety
    /// `ep` is a live endpoint of this kind.
    unsafe fn open<'a>(ep: *mut fid_ep) -> &'a Self::Value;
}

/// What an endpoint can be asked for.
pub trait Request {
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<()>;
    /// As it is kept when it has to wait for a counter.
    fn keep(self) -> Call;
}

impl Request for (SendCall, UserIov) {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<()> {
        endpoint.send(&self.0, &self.1)
    }
    fn keep(self) -> Call {
        Call::Send(self.0, self.1)
    }
}

impl Request for (RecvCall, UserIov) {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<()> {
        endpoint.recv(&self.0, &self.1)
    }
    fn keep(self) -> Call {
        Call::Recv(self.0, self.1)
    }
}

impl Request for RmaCall {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<()> {
        endpoint.rma(self)
    }
    fn keep(self) -> Call {
        Call::Rma(self)
    }
}

impl Request for AtomicCall {
    #[inline(always)]
    fn ask(&self, endpoint: &impl EndpointOps) -> Result<()> {
        endpoint.atomic(self)
    }
    fn keep(self) -> Call {
        Call::Atomic(Box::new(self))
    }
}

/// # Safety
/// `ep` is a live endpoint of this kind, and the request's buffers are its own until it has ended.
#[inline(always)]
pub unsafe fn post<O: Opened>(ep: *mut fid_ep, request: impl Request) -> ssize_t {
    // SAFETY: by contract.
    unsafe {
        let endpoint = O::open(ep);
        match request.ask(endpoint) {
            Ok(()) => 0,
            Err(error) => deferred::refused(endpoint, error, &mut Some(request)),
        }
    }
}

/// Posts the request, unless its arguments made none.
///
/// # Safety
/// As `post`.
#[inline(always)]
pub unsafe fn try_post<O: Opened>(ep: *mut fid_ep, request: Result<impl Request>) -> ssize_t {
    match request {
        // SAFETY: by contract.
        Ok(request) => unsafe { post::<O>(ep, request) },
        Err(error) => error.code() as ssize_t,
    }
}

/// # Safety
/// `len` bytes at `buf` are the operation's until it has ended.
#[inline(always)]
pub unsafe fn one(buf: *const c_void, len: usize) -> UserIov {
    // SAFETY: by contract.
    UserIov::one(unsafe { UserBuf::new(buf.cast_mut().cast(), len) })
}

/// # Safety
/// `iov` has `count` pieces, each the operation's until it has ended.
#[inline]
pub unsafe fn many(iov: *const iovec, count: usize) -> Result<UserIov> {
    // SAFETY: by contract.
    let pieces = unsafe { elements(iov, count)? }.iter();
    // SAFETY: by contract.
    UserIov::new(pieces.map(|piece| unsafe { UserBuf::new(piece.iov_base.cast(), piece.iov_len) }))
        .ok_or(Errno(FI_EINVAL))
}

/// Pieces of elements, whose bytes `len` knows.
///
/// # Safety
/// As `many`.
pub unsafe fn counted(ioc: *const fi_ioc, count: usize, len: impl Fn(usize) -> Result<usize>) -> Result<UserIov> {
    let mut pieces = [UserBuf::default(); IOV_LIMIT];
    // SAFETY: by contract.
    for (place, piece) in pieces.iter_mut().zip(unsafe { elements(ioc, count)? }) {
        // SAFETY: by contract.
        *place = unsafe { UserBuf::new(piece.addr.cast(), len(piece.count)?) };
    }
    UserIov::new(pieces.into_iter().take(count)).ok_or(Errno(FI_EINVAL))
}

/// An array that a program passes, of no more elements than an operation may have.
///
/// # Safety
/// As many elements are there as it says.
#[inline]
pub unsafe fn elements<'a, T>(array: *const T, count: usize) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        1..=IOV_LIMIT if !array.is_null() => {
            // SAFETY: by contract.
            Ok(unsafe { slice::from_raw_parts(array, count) })
        }
        _ => Err(Errno(FI_EINVAL)),
    }
}
