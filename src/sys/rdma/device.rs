//! The RDMA devices of this machine, their protection domains, and memory that is registered with them.

use super::calls::{Calls, calls};
use super::types::*;
use super::{errno, told};
use core::ffi::c_int;
use core::mem::zeroed;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// An open device. librdmacm opens each once and never closes it, so this is valid for ever.
#[derive(Clone, Copy)]
pub struct Device {
    calls: &'static Calls,
    context: NonNull<ibv_context>,
}

// SAFETY: calls on a context may come from any thread, by ibv_open_device(3) and the libraries' README.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.context == other.context
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    InfiniBand,
    Iwarp,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    InfiniBand,
    Ethernet,
    Unknown,
}

/// What a device tells of itself (ibv_query_device).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub firmware: String,
    pub vendor_id: u32,
    pub part_id: u32,
    pub version: u32,
    pub queue_pairs: usize,
    pub completion_queues: usize,
    /// Entries of one completion queue.
    pub completions: usize,
    /// Requests of one queue.
    pub requests: usize,
    /// Pieces of one request.
    pub pieces: usize,
    pub shared_queues: usize,
    /// Receives that queue pairs can share.
    pub shared_receives: usize,
    pub regions: usize,
    /// It changes eight bytes of a peer's memory at once (FetchAdd, CompareSwap).
    pub atomics: bool,
    pub ports: u8,
}

/// What a port tells of itself (ibv_query_port).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// None: neither up nor on the way there.
    pub up: Option<bool>,
    pub mtu: usize,
    pub max_message: usize,
    pub link: LinkLayer,
    /// Bits a second.
    pub speed: u64,
    /// Its address within a subnet of InfiniBand; 0 on Ethernet.
    pub lid: u16,
    /// The service level by which the subnet's manager is reached.
    pub service_level: u8,
}

/// All devices of this machine. The error says what is missing.
pub fn devices() -> Result<Vec<Device>, String> {
    if !super::any() {
        return Err("the kernel has no RDMA device (/sys/class/infiniband)".into());
    }
    let calls = calls()?;
    let mut count: c_int = 0;
    // SAFETY: a place for the count; the call gives a list of its own.
    let list = unsafe { (calls.rdma_get_devices)(&mut count) };
    if list.is_null() {
        return Err(format!(
            "librdmacm finds no RDMA device: {}",
            io::Error::last_os_error()
        ));
    }
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the list has `count` contexts that stay open for ever, by rdma_get_devices(3).
    let contexts = unsafe { core::slice::from_raw_parts(list, count) };
    let open = contexts.iter().filter_map(|context| NonNull::new(*context));
    let found = open.map(|context| Device { calls, context }).collect();
    // SAFETY: the list is the call's, and freed once.
    unsafe { (calls.rdma_free_devices)(list) };
    Ok(found)
}

impl Device {
    /// # Safety
    /// A context that librdmacm gave out.
    pub(super) unsafe fn of(calls: &'static Calls, context: *mut ibv_context) -> Option<Device> {
        NonNull::new(context).map(|context| Device { calls, context })
    }

    pub(super) fn calls(&self) -> &'static Calls {
        self.calls
    }

    pub(super) fn context(&self) -> *mut ibv_context {
        self.context.as_ptr()
    }

    fn device(&self) -> &ibv_device {
        // SAFETY: an open context names its device, and neither ends.
        unsafe { &*self.context.as_ref().device }
    }

    pub fn name(&self) -> String {
        text(&self.device().name)
    }

    pub fn transport(&self) -> Transport {
        match self.device().transport_type {
            IBV_TRANSPORT_IB => Transport::InfiniBand,
            IBV_TRANSPORT_IWARP => Transport::Iwarp,
            _ => Transport::Other,
        }
    }

    pub fn attributes(&self) -> io::Result<Attributes> {
        // SAFETY: numbers and bytes, of which zero is one.
        let mut raw: ibv_device_attr = unsafe { zeroed() };
        // SAFETY: an open context, and a struct for the call to fill.
        errno(unsafe { (self.calls.ibv_query_device)(self.context(), &mut raw) })?;
        Ok(Attributes {
            firmware: text(&raw.fw_ver),
            vendor_id: raw.vendor_id,
            part_id: raw.vendor_part_id,
            version: raw.hw_ver,
            queue_pairs: count(raw.max_qp),
            completion_queues: count(raw.max_cq),
            completions: count(raw.max_cqe),
            requests: count(raw.max_qp_wr),
            pieces: count(raw.max_sge),
            shared_queues: count(raw.max_srq),
            shared_receives: count(raw.max_srq_wr),
            regions: count(raw.max_mr),
            atomics: raw.atomic_cap != IBV_ATOMIC_NONE,
            ports: raw.phys_port_cnt,
        })
    }

    /// `number`: from 1 on.
    pub fn port(&self, number: u8) -> io::Result<Port> {
        // SAFETY: numbers, of which zero is one.
        let mut raw: ibv_port_attr = unsafe { zeroed() };
        // SAFETY: an open context, and a struct for the call to fill, of which it may leave the end as it is.
        errno(unsafe { (self.calls.ibv_query_port)(self.context(), number, &mut raw) })?;
        Ok(Port {
            up: match raw.state {
                IBV_PORT_ACTIVE => Some(true),
                IBV_PORT_DOWN..=IBV_PORT_ARMED => Some(false),
                _ => None,
            },
            mtu: mtu(raw.active_mtu),
            max_message: raw.max_msg_sz as usize,
            link: match c_int::from(raw.link_layer) {
                IBV_LINK_LAYER_UNSPECIFIED | IBV_LINK_LAYER_INFINIBAND => LinkLayer::InfiniBand,
                IBV_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
                _ => LinkLayer::Unknown,
            },
            speed: speed(raw.active_speed, raw.active_width),
            lid: raw.lid,
            service_level: raw.sm_sl,
        })
    }

    /// An entry of a port's table of GIDs.
    pub fn gid(&self, port: u8, index: usize) -> io::Result<[u8; 16]> {
        let mut gid: ibv_gid = [0; 16];
        let index = c_int::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: an open context, and 16 bytes for the call to fill.
        told(unsafe { (self.calls.ibv_query_gid)(self.context(), port, index, &mut gid) })?;
        Ok(gid)
    }

    /// An entry of a port's table of partition keys, in network order.
    pub fn partition_key(&self, port: u8, index: usize) -> io::Result<u16> {
        let mut key = 0;
        let index = c_int::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: an open context, and a number for the call to fill.
        told(unsafe { (self.calls.ibv_query_pkey)(self.context(), port, index, &mut key) })?;
        Ok(key)
    }

    pub fn protection_domain(&self) -> io::Result<Arc<Pd>> {
        // SAFETY: an open context.
        let pd = unsafe { (self.calls.ibv_alloc_pd)(self.context()) };
        let pd = NonNull::new(pd).ok_or_else(io::Error::last_os_error)?;
        let mut pd = Pd {
            device: *self,
            pd,
            atomics: false,
        };
        pd.atomics = self.attributes()?.atomics;
        Ok(Arc::new(pd))
    }
}

fn text(chars: &[core::ffi::c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map(|char| *char as u8)
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn count(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// Of enum ibv_mtu, which counts powers of two.
pub(super) fn mtu(code: c_int) -> usize {
    match code {
        1..=5 => 128 << code,
        _ => 0,
    }
}

/// Bits a second of a lane times lanes, from the codes of active_speed and active_width.
pub(super) fn speed(lane: u8, width: u8) -> u64 {
    const MEGA: u64 = 1_000_000;
    let lane = match lane {
        1 => 2_500 * MEGA,
        2 => 5_000 * MEGA,
        4 | 8 => 10_000 * MEGA,
        16 => 14_000 * MEGA,
        32 => 25_000 * MEGA,
        64 => 50_000 * MEGA,
        128 => 100_000 * MEGA,
        _ => 0,
    };
    let lanes = match width {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => 0,
    };
    lane * lanes
}

/// A protection domain: the memory and queue pairs that may be used together.
pub struct Pd {
    device: Device,
    pd: NonNull<ibv_pd>,
    /// The device has them.
    atomics: bool,
}

impl PartialEq for Pd {
    fn eq(&self, other: &Pd) -> bool {
        self.pd == other.pd
    }
}

// SAFETY: calls on a protection domain may come from any thread.
unsafe impl Send for Pd {}
// SAFETY: as above.
unsafe impl Sync for Pd {}

/// What a device may do to registered memory besides reading it for its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub local_write: bool,
    pub remote_read: bool,
    /// By atomics too, if the device has them.
    pub remote_write: bool,
}

impl Pd {
    pub fn device(&self) -> Device {
        self.device
    }

    pub(super) fn raw(&self) -> *mut ibv_pd {
        self.pd.as_ptr()
    }

    /// Registers memory.
    ///
    /// # Safety
    /// `len` bytes at `addr` are the caller's, and others may write them if `access` says so, as long as the
    /// registration lives.
    pub unsafe fn register(self: &Arc<Self>, addr: usize, len: usize, access: Access) -> io::Result<Memory> {
        // A peer's writing needs the right to write here.
        let flag = |wanted: bool, flag: c_int| if wanted { flag } else { 0 };
        // By iWARP the answer to a read is a write of the peer's.
        let reads_as_writes = access.local_write && self.device.transport() == Transport::Iwarp;
        let flags = flag(access.local_write || access.remote_write, IBV_ACCESS_LOCAL_WRITE)
            | flag(access.remote_read, IBV_ACCESS_REMOTE_READ)
            | flag(access.remote_write || reads_as_writes, IBV_ACCESS_REMOTE_WRITE)
            | flag(access.remote_write && self.atomics, IBV_ACCESS_REMOTE_ATOMIC);
        // SAFETY: a protection domain that is open, and memory by the caller's promise.
        let mr = unsafe { (self.device.calls.ibv_reg_mr)(self.raw(), addr as *mut _, len, flags) };
        let mr = NonNull::new(mr).ok_or_else(io::Error::last_os_error)?;
        Ok(Memory { pd: self.clone(), mr })
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: open, and nothing uses it, as all that does holds it.
        unsafe { (self.device.calls.ibv_dealloc_pd)(self.raw()) };
    }
}

/// Registered memory. Dropped, no device touches it any more.
pub struct Memory {
    pd: Arc<Pd>,
    mr: NonNull<ibv_mr>,
}

// SAFETY: a registration may be looked at and ended by any thread.
unsafe impl Send for Memory {}
// SAFETY: as above; its keys never change.
unsafe impl Sync for Memory {}

impl Memory {
    /// What work requests of this process name it by.
    pub fn local_key(&self) -> u32 {
        // SAFETY: registered.
        unsafe { self.mr.as_ref() }.lkey
    }

    /// What peers name it by.
    pub fn remote_key(&self) -> u32 {
        // SAFETY: registered.
        unsafe { self.mr.as_ref() }.rkey
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: registered, and ended here only.
        unsafe { (self.pd.device.calls.ibv_dereg_mr)(self.mr.as_ptr()) };
    }
}
