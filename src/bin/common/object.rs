//! An open object of `libfabric.so.1`: closed once, and before those that it needs. What C programs do through inline
//! functions is done through its op table.
//!
//! Knows the C types; decides nothing, and says nothing. Called by the programs' own `ffi`.

use crate::abi::types::*;
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::any::Any;
use std::rc::Rc;

/// An open object whose struct begins with a `fid`.
pub struct Object<T> {
    /// NULL: it has been closed.
    raw: *mut T,
    needs: Vec<Rc<dyn Any>>,
}

impl<T> Object<T> {
    /// What `call` opens. It gets a place to put the object, and answers 0 or a negative number; None where there is no
    /// such call.
    pub fn open(needs: Vec<Rc<dyn Any>>, call: impl FnOnce(*mut *mut T) -> Option<c_int>) -> Result<Object<T>, c_int> {
        let mut raw = ptr::null_mut();
        match (call(&mut raw).unwrap_or(-FI_ENOSYS), NonNull::new(raw)) {
            (0, Some(raw)) => Ok(Object {
                raw: raw.as_ptr(),
                needs,
            }),
            (0, None) => Err(-(FI_EOTHER as c_int)),
            (error, _) => Err(error),
        }
    }

    #[inline]
    pub fn raw(&self) -> *mut T {
        self.raw
    }

    #[inline]
    pub fn fid(&self) -> *mut fid {
        self.raw.cast()
    }

    /// From now on `other` is closed after this one.
    pub fn need(&mut self, other: Rc<dyn Any>) {
        self.needs.push(other);
    }

    /// fi_ep_bind and its kin.
    pub fn bind<U>(&self, other: &Object<U>, flags: u64) -> c_int {
        // SAFETY: both are open, and begin with a fid that has an op table.
        let ret = unsafe { op((*self.fid()).ops, |ops| ops.bind).map(|bind| bind(self.fid(), other.fid(), flags)) };
        ret.unwrap_or(-FI_ENOSYS)
    }

    /// fi_close, with the class of what was closed; None: that was done before.
    pub fn close(&mut self) -> Option<(usize, c_int)> {
        let fid = self.fid();
        if fid.is_null() {
            return None;
        }
        self.raw = ptr::null_mut();
        // SAFETY: open until now, begins with a fid, and nobody uses it after this.
        unsafe {
            let class = (*fid).fclass;
            let ret = op((*fid).ops, |ops| ops.close).map(|close| close(fid));
            Some((class, ret.unwrap_or(-FI_ENOSYS)))
        }
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// An entry of an op table, if there is a table and it has it.
///
/// # Safety
/// `table` is NULL or points to an op table.
#[inline]
pub unsafe fn op<T, F>(table: *const T, entry: impl FnOnce(&T) -> Option<F>) -> Option<F> {
    // SAFETY: as the caller promises.
    unsafe { table.as_ref() }.and_then(entry)
}
