//! The descriptors that a program passes with its buffers (fi_mr_desc): shown to the domain's registrar before the
//! operation begins.
//!
//! Only with a provider whose transport says that it wants them: `op_table` asks a constant, so that for others neither
//! the arguments are read nor a branch is left. Why they go to the registrar, and not with the operation, is told in
//! `api::mr::registrar`.

use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::errno::{Errno, Result};
use crate::util::user::IOV_LIMIT;
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use libc::iovec;

/// An fi_ioc is read as an iovec: of its address, and whether it has anything there.
const _: () = assert!(size_of::<fi_ioc>() == size_of::<iovec>() && core::mem::offset_of!(iovec, iov_base) == 0);
const _: () = assert!(core::mem::offset_of!(fi_ioc, count) == core::mem::offset_of!(iovec, iov_len));

/// One buffer, or an array of pieces, with what the program says to it.
#[derive(Clone, Copy)]
pub(super) struct Buffers {
    pub one: *const c_void,
    pub desc: *mut c_void,
    pub array: *const iovec,
    pub count: usize,
    pub descs: *mut *mut c_void,
}

impl Buffers {
    pub(super) const NONE: Buffers = Buffers {
        one: null(),
        desc: null_mut(),
        array: null(),
        count: 0,
        descs: null_mut(),
    };
}

/// The buffers of a call: operand or message, compare operand, result.
pub(super) struct Given {
    /// Bytes or elements in each that is one buffer.
    pub len: usize,
    pub main: Buffers,
    pub compare: Buffers,
    pub result: Buffers,
}

impl Given {
    pub(super) const NONE: Given = Given {
        len: 0,
        main: Buffers::NONE,
        compare: Buffers::NONE,
        result: Buffers::NONE,
    };

    /// -FI_EINVAL if a descriptor is not that of the memory that it is passed with.
    ///
    /// # Safety
    /// Arrays, and those of their descriptors, have as many elements as they say.
    pub(super) unsafe fn lend(&self, domain: &Domain) -> Result<()> {
        for buffers in [&self.main, &self.compare, &self.result] {
            lend(domain, buffers.one, self.len, buffers.desc)?;
            if buffers.array.is_null() || buffers.descs.is_null() || buffers.count > IOV_LIMIT {
                continue; // there are none, or the call will be refused
            }
            for at in 0..buffers.count {
                // SAFETY: both arrays have that many elements, as the caller promises.
                let (piece, desc) = unsafe { (*buffers.array.add(at), *buffers.descs.add(at)) };
                lend(domain, piece.iov_base, piece.iov_len, desc)?;
            }
        }
        Ok(())
    }
}

/// An operation on no bytes may name no memory, or any, whatever descriptor comes with it.
fn lend(domain: &Domain, addr: *const c_void, len: usize, desc: *mut c_void) -> Result<()> {
    let given = !desc.is_null() && !addr.is_null() && len > 0;
    let Some(registrar) = domain.registrar.as_ref().filter(|_| given) else {
        return Ok(());
    };
    if registrar.lend(addr as usize, desc as usize) {
        return Ok(());
    }
    log!(
        by domain.provider;
        Warn,
        Mr,
        "the descriptor {desc:?} is not that of the memory at {addr:?}: pass what fi_mr_desc gives for its region"
    );
    Err(Errno(FI_EINVAL))
}

/// Notes an argument of a call, by its name, if it is a buffer or a descriptor.
macro_rules! note {
    (buf, $given:ident, $value:ident) => {
        $given.main.one = $value
    };
    (into, $given:ident, $value:ident) => {
        $given.main.one = $value
    };
    (desc, $given:ident, $value:ident) => {
        $given.main.desc = $value
    };
    (len, $given:ident, $value:ident) => {
        $given.len = $value
    };
    (iov, $given:ident, $value:ident) => {
        $given.main.array = $value
    };
    (ioc, $given:ident, $value:ident) => {
        $given.main.array = $value.cast()
    };
    (count, $given:ident, $value:ident) => {
        ($given.main.count, $given.len) = ($value, $value)
    };
    (descs, $given:ident, $value:ident) => {
        $given.main.descs = $value
    };
    (compare, $given:ident, $value:ident) => {
        $given.compare.one = $value
    };
    (compare_desc, $given:ident, $value:ident) => {
        $given.compare.desc = $value
    };
    (compare_ioc, $given:ident, $value:ident) => {
        $given.compare.array = $value.cast()
    };
    (compare_count, $given:ident, $value:ident) => {
        $given.compare.count = $value
    };
    (compare_descs, $given:ident, $value:ident) => {
        $given.compare.descs = $value
    };
    (result, $given:ident, $value:ident) => {
        $given.result.one = $value
    };
    (result_desc, $given:ident, $value:ident) => {
        $given.result.desc = $value
    };
    (result_ioc, $given:ident, $value:ident) => {
        $given.result.array = $value.cast_const().cast()
    };
    (result_count, $given:ident, $value:ident) => {
        $given.result.count = $value
    };
    (result_descs, $given:ident, $value:ident) => {
        $given.result.descs = $value
    };
    (msg, $given:ident, $value:ident) => {
        note!(of_msg, $given, $value)
    };
    (msg_tagged, $given:ident, $value:ident) => {
        note!(of_msg, $given, $value)
    };
    (msg_rma, $given:ident, $value:ident) => {
        note!(of_msg, $given, $value)
    };
    (msg_atomic, $given:ident, $value:ident) => {
        note!(of_msg, $given, $value)
    };
    (of_msg, $given:ident, $value:expr) => {
        if let Some(msg) = $value.as_ref() {
            $given.main.array = msg.msg_iov.cast();
            $given.main.count = msg.iov_count;
            $given.main.descs = msg.desc;
        }
    };
    ($other:ident, $given:ident, $value:ident) => {};
}

pub(super) use note;
