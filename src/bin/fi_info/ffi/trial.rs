//! One endpoint, opened as a program would open it and closed at once: only that shows that an offer can be used.
//!
//! Decides nothing. Called by `check::library`.

use super::Info;
use crate::abi::types::*;
use crate::common::object::{Object, op};
use core::ffi::{c_int, c_void};
use core::ptr;
use std::rc::Rc;

#[link(name = "fabric")]
unsafe extern "C" {
    fn fi_fabric(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int;
}

/// The call that failed, and the negative number that it returned.
pub type Failed = (&'static str, c_int);

/// Up to the last call that needs no peer: fi_enable, or fi_endpoint of an endpoint that is to be connected.
pub fn open_endpoint(info: Info) -> Result<(), Failed> {
    let raw = info.raw.as_ptr();
    // SAFETY: the attributes live as long as the info.
    let fabric = Object::open(Vec::new(), |place| unsafe {
        Some(fi_fabric((*raw).fabric_attr, place, ptr::null_mut()))
    });
    let fabric = Rc::new(fabric.map_err(|code| ("fi_fabric", code))?);
    let of = fabric.raw();
    // SAFETY: an open fabric with its table, and an info that lives until the call is over.
    let domain = Object::open(vec![fabric], |place| unsafe {
        op((*of).ops, |ops: &fi_ops_fabric| ops.domain).map(|open| open(of, raw, place, ptr::null_mut()))
    });
    let domain: Rc<Object<fid_domain>> = Rc::new(domain.map_err(|code| ("fi_domain", code))?);
    let of = domain.raw();
    // SAFETY: as for the domain.
    let endpoint = Object::open(vec![domain.clone()], |place| unsafe {
        op((*of).ops, |ops| ops.endpoint).map(|open| open(of, raw, place, ptr::null_mut()))
    });
    let mut endpoint: Object<fid_ep> = endpoint.map_err(|code| ("fi_endpoint", code))?;
    if info.ep().is_some_and(|ep| ep.r#type == FI_EP_MSG) {
        return Ok(());
    }
    bind(&mut endpoint, &domain)?;
    let fid = endpoint.fid();
    // SAFETY: an open endpoint with its table; FI_ENABLE takes no argument.
    let ret = unsafe { op((*fid).ops, |ops| ops.control).map(|call| call(fid, FI_ENABLE as c_int, ptr::null_mut())) };
    succeeded("fi_enable", ret.unwrap_or(-FI_ENOSYS))
}

/// What an endpoint needs before it is enabled: a queue for both directions, and an address vector.
fn bind(endpoint: &mut Object<fid_ep>, domain: &Rc<Object<fid_domain>>) -> Result<(), Failed> {
    let of = domain.raw();
    let mut vector = fi_av_attr {
        r#type: FI_AV_UNSPEC,
        rx_ctx_bits: 0,
        count: 0,
        ep_per_node: 0,
        name: ptr::null(),
        map_addr: ptr::null_mut(),
        flags: 0,
    };
    // SAFETY: an open domain with its table; the attributes live until the call is over, as do those below.
    let vector = Object::open(vec![domain.clone()], |place: *mut *mut fid_av| unsafe {
        op((*of).ops, |ops| ops.av_open).map(|open| open(of, &mut vector, place, ptr::null_mut()))
    });
    let vector = vector.map_err(|code| ("fi_av_open", code))?;
    let mut queue = fi_cq_attr {
        size: 0,
        flags: 0,
        format: FI_CQ_FORMAT_CONTEXT,
        wait_obj: FI_WAIT_NONE,
        signaling_vector: 0,
        wait_cond: FI_CQ_COND_NONE,
        wait_set: ptr::null_mut(),
    };
    // SAFETY: as for the vector.
    let queue = Object::open(vec![domain.clone()], |place: *mut *mut fid_cq| unsafe {
        op((*of).ops, |ops| ops.cq_open).map(|open| open(of, &mut queue, place, ptr::null_mut()))
    });
    let queue = queue.map_err(|code| ("fi_cq_open", code))?;
    succeeded("fi_ep_bind", endpoint.bind(&vector, 0))?;
    succeeded("fi_ep_bind", endpoint.bind(&queue, FI_TRANSMIT | FI_RECV))?;
    endpoint.need(Rc::new(vector));
    endpoint.need(Rc::new(queue));
    Ok(())
}

fn succeeded(call: &'static str, code: c_int) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err((call, code)) }
}
