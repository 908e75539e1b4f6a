//! What all fids have in common, and the objects that only hold others: fabric, domain, address vector.

use super::{Info, op};
use crate::abi::types::*;
use crate::common::object;
use crate::say::{self, Fail};
use core::ffi::{c_int, c_void};
use core::ptr;
use std::any::Any;
use std::rc::Rc;

#[link(name = "fabric")]
unsafe extern "C" {
    fn fi_fabric(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int;
}

/// An open object of this program, which tells of every failure.
pub struct Object<T>(object::Object<T>);

impl<T> Object<T> {
    /// What `call` opens. It gets a place to put the object, and answers 0 or a negative number.
    #[track_caller]
    pub fn open(
        name: &str,
        needs: Vec<Rc<dyn Any>>,
        call: impl FnOnce(*mut *mut T) -> Option<c_int>,
    ) -> Result<Object<T>, Fail> {
        match object::Object::open(needs, call) {
            Ok(object) => Ok(Object(object)),
            Err(error) => Err(say::failed(name, error)),
        }
    }

    #[inline]
    pub fn raw(&self) -> *mut T {
        self.0.raw()
    }

    #[inline]
    pub fn fid(&self) -> *mut fid {
        self.0.fid()
    }

    /// From now on `other` is closed after this one.
    pub fn need(&mut self, other: Rc<dyn Any>) {
        self.0.need(other);
    }

    /// fi_ep_bind and its kin.
    #[track_caller]
    pub fn bind<U>(&self, name: &str, other: &Object<U>, flags: u64) -> Result<(), Fail> {
        succeeded(name, Some(self.0.bind(&other.0, flags)))
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        match self.0.close() {
            None | Some((_, 0)) => {}
            Some((class, ret)) => {
                say::error(ret, format_args!("fi_close ({ret}) fid {class}"));
            }
        }
    }
}

/// The answer of a call through an op table; None where the table lacks it.
#[track_caller]
pub fn succeeded(name: &str, ret: Option<c_int>) -> Result<(), Fail> {
    match ret.unwrap_or(-FI_ENOSYS) {
        0 => Ok(()),
        error => Err(say::failed(name, error)),
    }
}

pub struct Fabric(pub(super) Object<fid_fabric>);

impl Fabric {
    pub fn open(info: &Info) -> Result<Rc<Fabric>, Fail> {
        // SAFETY: the attributes live as long as the info.
        let object = Object::open("fi_fabric", Vec::new(), |place| unsafe {
            Some(fi_fabric(info.fabric_attr(), place, ptr::null_mut()))
        })?;
        Ok(Rc::new(Fabric(object)))
    }
}

pub struct Domain(pub(super) Object<fid_domain>);

impl Domain {
    pub fn open(fabric: &Rc<Fabric>, info: &Info) -> Result<Rc<Domain>, Fail> {
        let raw = fabric.0.raw();
        // SAFETY: an open fabric with its table, and an info that lives until the call is over.
        let object = Object::open("fi_domain", vec![fabric.clone()], |place| unsafe {
            op((*raw).ops, |ops| ops.domain).map(|open| open(raw, info.raw(), place, ptr::null_mut()))
        })?;
        Ok(Rc::new(Domain(object)))
    }
}

/// An address vector.
pub struct Vector(pub(super) Object<fid_av>);

impl Vector {
    pub fn open(domain: &Rc<Domain>, kind: fi_av_type) -> Result<Rc<Vector>, Fail> {
        let mut attr = fi_av_attr {
            r#type: kind,
            rx_ctx_bits: 0,
            count: 0,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        let raw = domain.0.raw();
        // SAFETY: an open domain with its table; the attributes live until the call is over.
        let object = Object::open("fi_av_open", vec![domain.clone()], |place| unsafe {
            op((*raw).ops, |ops| ops.av_open).map(|open| open(raw, &mut attr, place, ptr::null_mut()))
        })?;
        Ok(Rc::new(Vector(object)))
    }

    /// Makes a handle for an address.
    pub fn insert(&self, address: &[u8]) -> Result<fi_addr_t, Fail> {
        let (raw, mut handle) = (self.0.raw(), FI_ADDR_UNSPEC);
        // SAFETY: an open vector with its table; one address is given and one handle written.
        let ret = unsafe {
            op((*raw).ops, |ops| ops.insert)
                .map(|insert| insert(raw, address.as_ptr().cast(), 1, &mut handle, 0, ptr::null_mut()))
        };
        match ret.unwrap_or(-FI_ENOSYS) {
            1 => Ok(handle),
            error if error < 0 => Err(say::failed("fi_av_insert", error)),
            count => Err(say::error(
                -1,
                format_args!("fi_av_insert: number of addresses inserted = {count}; number of addresses given = 1"),
            )),
        }
    }
}
