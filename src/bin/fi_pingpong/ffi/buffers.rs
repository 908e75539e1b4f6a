//! The memory that messages are sent from and received into. The library reads and writes it while operations are in
//! flight, so nothing here ever lends a reference to it.

use super::object::Object;
use super::{Domain, Facts, op};
use crate::abi::types::*;
use crate::say::{self, Fail};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::rc::Rc;

const PAGE: usize = 4096;
/// Even the smallest receive has room for the last message of a run.
const SMALLEST: usize = 64;
const KEY: u64 = 0xC0DE;

/// One area for each direction, and the room that the library may use inside operations.
pub struct Buffers {
    registration: Option<Object<fid_mr>>,
    memory: NonNull<u8>,
    layout: Layout,
    room: usize,
    pub tx_prefix: usize,
    pub rx_prefix: usize,
    contexts: [UnsafeCell<MaybeUninit<fi_context2>>; 3],
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.registration = None;
        // SAFETY: allocated so, and no operation is left: endpoints keep their buffers alive.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

impl Buffers {
    /// Areas for messages of `size` bytes, registered where the provider wants that.
    pub fn new(domain: &Rc<Domain>, facts: &Facts, size: usize) -> Result<Rc<Buffers>, Fail> {
        let no_memory = || say::failed("alloc", -FI_ENOMEM);
        let room = size
            .max(SMALLEST)
            .checked_add(facts.tx_prefix.max(facts.rx_prefix))
            .and_then(|room| room.checked_next_multiple_of(PAGE))
            .ok_or_else(no_memory)?;
        let layout = room
            .checked_mul(2)
            .and_then(|len| Layout::from_size_align(len, PAGE).ok())
            .ok_or_else(no_memory)?;
        // SAFETY: the length is not 0.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(no_memory)?;
        let mut buffers = Buffers {
            registration: None,
            memory,
            layout,
            room,
            tx_prefix: facts.tx_prefix,
            rx_prefix: facts.rx_prefix,
            contexts: [const { UnsafeCell::new(MaybeUninit::zeroed()) }; 3],
        };
        if facts.mr_local {
            buffers.registration = Some(buffers.register(domain)?);
        }
        Ok(Rc::new(buffers))
    }

    fn register(&self, domain: &Rc<Domain>) -> Result<Object<fid_mr>, Fail> {
        let (raw, fid) = (domain.0.raw(), domain.0.fid());
        let (buf, len) = (self.memory.as_ptr().cast(), self.layout.size());
        // SAFETY: an open domain with its table; the memory outlives the registration.
        Object::open("fi_mr_reg", vec![domain.clone()], |place| unsafe {
            op((*raw).mr, |ops| ops.reg)
                .map(|reg| reg(fid, buf, len, FI_SEND | FI_RECV, 0, KEY, 0, place, ptr::null_mut()))
        })
    }

    pub(super) fn desc(&self) -> *mut c_void {
        // SAFETY: an open registration.
        self.registration
            .as_ref()
            .map_or(ptr::null_mut(), |mr| unsafe { (*mr.raw()).mem_desc })
    }

    /// Where to receive, and how much has room.
    pub(super) fn rx(&self) -> (*mut c_void, usize) {
        (self.memory.as_ptr().cast(), self.room)
    }

    /// Where to send `len` bytes from, prefix included; no more than there is room.
    pub(super) fn tx(&self, len: usize) -> (*mut c_void, usize) {
        // SAFETY: two areas of that room lie one after the other.
        let area = unsafe { self.memory.as_ptr().add(self.room) };
        (area.cast(), len.saturating_add(self.tx_prefix).min(self.room))
    }

    /// Room for the library inside an operation: one for sends, two that receives take in turn.
    pub(super) fn context(&self, which: usize) -> *mut c_void {
        self.contexts
            .get(which)
            .map_or(ptr::null_mut(), |context| context.get().cast())
    }

    /// Fills the message to be sent. No send may be in flight.
    pub fn fill(&self, message: &[u8]) {
        let len = message.len().min(self.room.saturating_sub(self.tx_prefix));
        // SAFETY: that much lies in the area behind the prefix.
        unsafe {
            let area = self.memory.as_ptr().add(self.room + self.tx_prefix);
            ptr::copy_nonoverlapping(message.as_ptr(), area, len);
        }
    }

    /// A copy of the message that was received. No receive may be in flight.
    pub fn received(&self, len: usize) -> Vec<u8> {
        let mut message = vec![0; len.min(self.room.saturating_sub(self.rx_prefix))];
        // SAFETY: that much lies in the area behind the prefix.
        unsafe {
            let area = self.memory.as_ptr().add(self.rx_prefix);
            ptr::copy_nonoverlapping(area, message.as_mut_ptr(), message.len());
        }
        message
    }
}
