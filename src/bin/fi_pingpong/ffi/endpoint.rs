//! Endpoints: opened, bound, connected, and the operations on messages. And the passive endpoint that listens.

use super::object::{Object, succeeded};
use super::{Buffers, Domain, ETOOSMALL, Events, Fabric, Info, Queue, Vector, op};
use crate::abi::types::*;
use crate::say::{self, Fail};
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::iovec;
use std::rc::Rc;

const TAG: u64 = 1234;

/// Which calls carry the messages: fi_send and its like, or fi_tsend.
#[derive(Clone, Copy, PartialEq)]
pub enum Interface {
    Msg,
    Tagged,
}

/// An endpoint with its buffers. Its posting calls return what the library returned: 0, -FI_EAGAIN or another error.
pub struct Endpoint {
    object: Object<fid_ep>,
    buffers: Rc<Buffers>,
    desc: *mut c_void,
    interface: Interface,
    pub peer: fi_addr_t,
}

impl Endpoint {
    pub fn open(
        domain: &Rc<Domain>,
        info: &Info,
        buffers: &Rc<Buffers>,
        interface: Interface,
    ) -> Result<Endpoint, Fail> {
        let raw = domain.0.raw();
        // SAFETY: an open domain with its table, and an info that lives until the call is over.
        let object = Object::open("fi_endpoint", vec![domain.clone(), buffers.clone()], |place| unsafe {
            op((*raw).ops, |ops| ops.endpoint).map(|open| open(raw, info.raw(), place, ptr::null_mut()))
        })?;
        Ok(Endpoint {
            object,
            desc: buffers.desc(),
            buffers: buffers.clone(),
            interface,
            peer: FI_ADDR_UNSPEC,
        })
    }

    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    pub fn bind_queue(&mut self, queue: &Rc<Queue>, flags: u64) -> Result<(), Fail> {
        self.object.bind("fi_ep_bind", &queue.0, flags)?;
        self.object.need(queue.clone());
        Ok(())
    }

    pub fn bind_vector(&mut self, vector: &Rc<Vector>) -> Result<(), Fail> {
        self.object.bind("fi_ep_bind", &vector.0, 0)?;
        self.object.need(vector.clone());
        Ok(())
    }

    pub fn bind_events(&mut self, events: &Rc<Events>) -> Result<(), Fail> {
        self.object.bind("fi_ep_bind", &events.0, 0)?;
        self.object.need(events.clone());
        Ok(())
    }

    pub fn enable(&self) -> Result<(), Fail> {
        let fid = self.object.fid();
        // SAFETY: an open endpoint with its table; FI_ENABLE takes no argument.
        let ret = unsafe {
            op((*fid).ops, |ops| ops.control).map(|control| control(fid, FI_ENABLE as c_int, ptr::null_mut()))
        };
        succeeded("fi_enable", ret)
    }

    pub fn name(&self) -> Result<Vec<u8>, Fail> {
        // SAFETY: an open endpoint and its own table.
        unsafe { name((*self.object.raw()).cm, self.object.fid()) }
    }

    pub fn connect(&self, address: &[u8]) -> Result<(), Fail> {
        let raw = self.object.raw();
        // SAFETY: an open endpoint with its table; the address lives until the call is over.
        let ret = unsafe {
            op((*raw).cm, |ops| ops.connect).map(|connect| connect(raw, address.as_ptr().cast(), ptr::null(), 0))
        };
        succeeded("fi_connect", ret)
    }

    pub fn accept(&self) -> Result<(), Fail> {
        let raw = self.object.raw();
        // SAFETY: an open endpoint with its table.
        let ret = unsafe { op((*raw).cm, |ops| ops.accept).map(|accept| accept(raw, ptr::null(), 0)) };
        succeeded("fi_accept", ret)
    }

    /// The other side may have done it already, so the answer does not matter.
    pub fn shutdown(&self) {
        let raw = self.object.raw();
        // SAFETY: an open endpoint with its table.
        unsafe { op((*raw).cm, |ops| ops.shutdown).map(|shutdown| shutdown(raw, 0)) };
    }

    /// Posts the receive number `turn` into the whole area.
    #[inline]
    pub fn recv(&self, turn: u64) -> c_int {
        let (raw, (buf, len)) = (self.object.raw(), self.buffers.rx());
        let (desc, from) = (self.desc, FI_ADDR_UNSPEC);
        let context = self.buffers.context(1 + (turn & 1) as usize);
        // SAFETY: an open endpoint with its tables; buffer and context outlive it.
        returned(unsafe {
            match self.interface {
                Interface::Msg => op((*raw).msg, |ops| ops.recv).map(|recv| recv(raw, buf, len, desc, from, context)),
                Interface::Tagged => {
                    op((*raw).tagged, |ops| ops.recv).map(|recv| recv(raw, buf, len, desc, from, TAG, 0, context))
                }
            }
        })
    }

    /// Sends `len` bytes; a completion follows.
    #[inline]
    pub fn send(&self, len: usize) -> c_int {
        let (raw, (buf, len)) = (self.object.raw(), self.buffers.tx(len));
        let (desc, to, context) = (self.desc, self.peer, self.buffers.context(0));
        // SAFETY: as in `recv`.
        returned(unsafe {
            match self.interface {
                Interface::Msg => op((*raw).msg, |ops| ops.send).map(|send| send(raw, buf, len, desc, to, context)),
                Interface::Tagged => {
                    op((*raw).tagged, |ops| ops.send).map(|send| send(raw, buf, len, desc, to, TAG, context))
                }
            }
        })
    }

    /// Sends `len` bytes that the library has copied on return; no completion follows.
    #[inline]
    pub fn inject(&self, len: usize) -> c_int {
        let (raw, (buf, len)) = (self.object.raw(), self.buffers.tx(len));
        // SAFETY: as in `recv`.
        returned(unsafe {
            match self.interface {
                Interface::Msg => op((*raw).msg, |ops| ops.inject).map(|inject| inject(raw, buf, len, self.peer)),
                Interface::Tagged => {
                    op((*raw).tagged, |ops| ops.inject).map(|inject| inject(raw, buf, len, self.peer, TAG))
                }
            }
        })
    }

    /// Sends `len` bytes with a completion that says they left this side for good.
    pub fn send_last(&self, len: usize) -> c_int {
        let (raw, (buf, len)) = (self.object.raw(), self.buffers.tx(len));
        let (iov, mut desc) = (
            iovec {
                iov_base: buf,
                iov_len: len,
            },
            self.desc,
        );
        let (msg_iov, desc, iov_count) = (&raw const iov, &raw mut desc, 1);
        let (addr, context, data) = (self.peer, self.buffers.context(0), 0);
        // SAFETY: as in `recv`; what describes the message lives until the call is over.
        returned(unsafe {
            match self.interface {
                Interface::Msg => {
                    let message = fi_msg {
                        msg_iov,
                        desc,
                        iov_count,
                        addr,
                        context,
                        data,
                    };
                    op((*raw).msg, |ops| ops.sendmsg).map(|send| send(raw, &message, FI_TRANSMIT_COMPLETE))
                }
                Interface::Tagged => {
                    let (tag, ignore) = (TAG, 0);
                    let message = fi_msg_tagged {
                        msg_iov,
                        desc,
                        iov_count,
                        addr,
                        tag,
                        ignore,
                        context,
                        data,
                    };
                    op((*raw).tagged, |ops| ops.sendmsg).map(|send| send(raw, &message, FI_TRANSMIT_COMPLETE))
                }
            }
        })
    }
}

/// The answer of a data call; None where the table lacks it.
#[inline]
fn returned(ret: Option<isize>) -> c_int {
    ret.map_or(-FI_ENOSYS, |ret| ret as c_int)
}

/// fi_getname, first for the length.
///
/// # Safety
/// `fid` is an open endpoint, passive or not, and `table` NULL or its own.
unsafe fn name(table: *const fi_ops_cm, fid: *mut fid) -> Result<Vec<u8>, Fail> {
    let (mut len, mut bytes) = (0, Vec::new());
    // SAFETY: the caller promises the fid; the buffer has the length that is told.
    unsafe {
        let Some(getname) = op(table, |ops| ops.getname) else {
            return Err(say::failed("fi_getname", -FI_ENOSYS));
        };
        if getname(fid, ptr::null_mut(), &mut len) != -ETOOSMALL || len == 0 {
            return Err(say::error(
                -libc::EMSGSIZE,
                format_args!("fi_getname didn't return length"),
            ));
        }
        bytes.resize(len, 0u8);
        succeeded("fi_getname", Some(getname(fid, bytes.as_mut_ptr().cast(), &mut len)))?;
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// A passive endpoint that listens.
pub struct Passive(Object<fid_pep>);

impl Passive {
    pub fn listen(fabric: &Rc<Fabric>, info: &Info, events: &Rc<Events>) -> Result<Passive, Fail> {
        let raw = fabric.0.raw();
        // SAFETY: an open fabric with its table, and an info that lives until the call is over.
        let object = Object::open("fi_passive_ep", vec![fabric.clone(), events.clone()], |place| unsafe {
            op((*raw).ops, |ops| ops.passive_ep).map(|open| open(raw, info.raw(), place, ptr::null_mut()))
        })?;
        object.bind("fi_pep_bind", &events.0, 0)?;
        let raw: *mut fid_pep = object.raw();
        // SAFETY: an open passive endpoint with its table.
        succeeded("fi_listen", unsafe {
            op((*raw).cm, |ops| ops.listen).map(|listen| listen(raw))
        })?;
        Ok(Passive(object))
    }

    pub fn name(&self) -> Result<Vec<u8>, Fail> {
        // SAFETY: an open passive endpoint and its own table.
        unsafe { name((*self.0.raw()).cm, self.0.fid()) }
    }
}
