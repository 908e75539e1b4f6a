//! Completion queues and event queues.

use super::object::Object;
use super::{Domain, EAVAIL, EOTHER, Fabric, Info, op, text};
use crate::abi::types::*;
use crate::say::{self, Fail};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;
use std::rc::Rc;

pub struct Queue(pub(super) Object<fid_cq>);

impl Queue {
    pub fn open(domain: &Rc<Domain>, size: usize) -> Result<Rc<Queue>, Fail> {
        let mut attr = fi_cq_attr {
            size,
            flags: 0,
            format: FI_CQ_FORMAT_CONTEXT,
            wait_obj: FI_WAIT_NONE,
            signaling_vector: 0,
            wait_cond: FI_CQ_COND_NONE,
            wait_set: ptr::null_mut(),
        };
        let raw = domain.0.raw();
        // SAFETY: an open domain with its table; the attributes live until the call is over.
        let object = Object::open("fi_cq_open", vec![domain.clone()], |place| unsafe {
            op((*raw).ops, |ops| ops.cq_open).map(|open| open(raw, &mut attr, place, ptr::null_mut()))
        })?;
        Ok(Rc::new(Queue(object)))
    }

    /// Whether there is a completion; reading the queue also makes progress.
    #[inline]
    pub fn poll(&self) -> Result<bool, Fail> {
        let (raw, mut entry) = (self.0.raw(), MaybeUninit::<fi_cq_entry>::uninit());
        // SAFETY: an open queue with its table, of the format of that entry, which has room for one.
        let ret = unsafe { op((*raw).ops, |ops| ops.read).map(|read| read(raw, entry.as_mut_ptr().cast(), 1)) };
        const AGAIN: isize = -(FI_EAGAIN as isize);
        const ERROR: isize = -(EAVAIL as isize);
        match ret {
            Some(AGAIN | 0) => Ok(false),
            Some(1..) => Ok(true),
            Some(ERROR) => Err(self.error()),
            other => Err(say::failed("fi_cq_read", other.map_or(-FI_ENOSYS, |ret| ret as c_int))),
        }
    }

    /// Reports the error that is in the queue.
    #[cold]
    fn error(&self) -> Fail {
        let raw = self.0.raw();
        // SAFETY: an entry of zeroes is one; the queue is open with its table. The text is the library's, and copied.
        unsafe {
            let mut entry = MaybeUninit::<fi_cq_err_entry>::zeroed().assume_init();
            let ret = op((*raw).ops, |ops| ops.readerr).map(|read| read(raw, &mut entry, 0));
            match ret {
                Some(1..) => {}
                other => return say::failed("fi_cq_readerr", other.map_or(-FI_ENOSYS, |ret| ret as c_int)),
            }
            let say = op((*raw).ops, |ops| ops.strerror);
            let why = say.map_or(ptr::null(), |say| {
                say(raw, entry.prov_errno, entry.err_data, ptr::null_mut(), 0)
            });
            say::error(entry.err.saturating_neg(), format_args!("cq_readerr: {}", text(why)))
        }
    }
}

/// An event queue.
pub struct Events(pub(super) Object<fid_eq>);

/// What an event queue told of a connection.
pub enum Event {
    /// Somebody wants to connect; this is how.
    Request(Info),
    Connected,
    /// The number of any other event.
    Other(u32),
}

impl Events {
    pub fn open(fabric: &Rc<Fabric>) -> Result<Rc<Events>, Fail> {
        let mut attr = fi_eq_attr {
            size: 0,
            flags: 0,
            wait_obj: FI_WAIT_UNSPEC,
            signaling_vector: 0,
            wait_set: ptr::null_mut(),
        };
        let raw = fabric.0.raw();
        // SAFETY: an open fabric with its table; the attributes live until the call is over.
        let object = Object::open("fi_eq_open", vec![fabric.clone()], |place| unsafe {
            op((*raw).ops, |ops| ops.eq_open).map(|open| open(raw, &mut attr, place, ptr::null_mut()))
        })?;
        Ok(Rc::new(Events(object)))
    }

    /// Waits up to `milliseconds` for an event; None when none came.
    pub fn wait(&self, milliseconds: c_int) -> Result<Option<Event>, Fail> {
        let (raw, mut event) = (self.0.raw(), 0);
        let mut entry = fi_eq_cm_entry {
            fid: ptr::null_mut(),
            info: ptr::null_mut(),
            data: [],
        };
        // SAFETY: an open queue with its table; the entry has the length that is told.
        let ret = unsafe {
            op((*raw).ops, |ops| ops.sread).map(|read| {
                let len = size_of::<fi_eq_cm_entry>();
                read(raw, &mut event, (&raw mut entry).cast(), len, milliseconds, 0)
            })
        };
        match ret.map_or(-FI_ENOSYS, |ret| ret as c_int) {
            again if again == 0 || again == -FI_EAGAIN || again == -FI_ETIMEDOUT || again == -FI_EINTR => Ok(None),
            error if error == -EAVAIL => Err(self.error()),
            error if error < 0 => Err(say::failed("fi_eq_sread", error)),
            _ => Ok(Some(match event {
                // SAFETY: with this event comes an info that is ours to free.
                FI_CONNREQ => match unsafe { Info::own(entry.info) } {
                    Some(info) => Event::Request(info),
                    None => return Err(say::failed("fi_eq_sread", -EOTHER)),
                },
                FI_CONNECTED => Event::Connected,
                other => Event::Other(other),
            })),
        }
    }

    /// Reports the error that is in the queue.
    fn error(&self) -> Fail {
        let raw = self.0.raw();
        // SAFETY: as for completion queues.
        unsafe {
            let mut entry = MaybeUninit::<fi_eq_err_entry>::zeroed().assume_init();
            let ret = op((*raw).ops, |ops| ops.readerr).map(|read| read(raw, &mut entry, 0));
            match ret {
                Some(1..) => {}
                other => return say::failed("fi_eq_readerr", other.map_or(-FI_ENOSYS, |ret| ret as c_int)),
            }
            let say = op((*raw).ops, |ops| ops.strerror);
            let why = say.map_or(ptr::null(), |say| {
                say(raw, entry.prov_errno, entry.err_data, ptr::null_mut(), 0)
            });
            say::error(-EAVAIL, format_args!("eq_readerr: {}", text(why)))
        }
    }
}
