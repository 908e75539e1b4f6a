//! A completion queue with its channel, and what the queue pairs hold that tell their completions there.

use super::device::Pd;
use super::errno;
use super::shared::SharedReceives;
use super::types::*;
use super::work::Done;
use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr::{NonNull, null_mut};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// How much the queues of a connection hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub sends: u32,
    pub receives: u32,
    pub send_pieces: u32,
    pub receive_pieces: u32,
    /// Bytes that a request can carry within itself.
    pub inline: u32,
}

impl Sizes {
    /// Makes something of these sizes, with ever fewer bytes within a request: a device may refuse more than it can
    /// carry, and does not say how many that are.
    pub fn with_less_inline<T>(mut self, mut make: impl FnMut(&Sizes) -> io::Result<T>) -> io::Result<T> {
        const LEAST: u32 = 32;
        loop {
            let made = make(&self);
            if made.is_ok() || self.inline == 0 {
                return made;
            }
            let half = self.inline / 2;
            self.inline = if half < LEAST { 0 } else { half };
        }
    }
}

/// A completion queue with its channel, for the requests and receives of one connection or several.
pub struct Queues {
    pub(super) pd: Arc<Pd>,
    cq: NonNull<ibv_cq>,
    channel: NonNull<ibv_comp_channel>,
}

// SAFETY: calls on a completion queue and its channel may come from any thread, by the libraries' README.
unsafe impl Send for Queues {}
// SAFETY: as above.
unsafe impl Sync for Queues {}

impl Queues {
    /// `room`: completions that nobody has looked at yet.
    pub fn open(pd: &Arc<Pd>, room: usize) -> io::Result<Queues> {
        let (device, room) = (
            pd.device(),
            c_int::try_from(room).map_err(|_| io::ErrorKind::InvalidInput)?,
        );
        let calls = device.calls();
        // SAFETY: an open device.
        let channel = unsafe { (calls.ibv_create_comp_channel)(device.context()) };
        let channel = NonNull::new(channel).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: an open device, and a channel of it.
        let cq = unsafe { (calls.ibv_create_cq)(device.context(), room, null_mut(), channel.as_ptr(), 0) };
        let Some(cq) = NonNull::new(cq) else {
            let error = io::Error::last_os_error();
            // SAFETY: made above, and of no use to anybody.
            unsafe { (calls.ibv_destroy_comp_channel)(channel.as_ptr()) };
            return Err(error);
        };
        let pd = pd.clone();
        let queues = Queues { pd, cq, channel };
        do_not_wait(queues.fd())?;
        Ok(queues)
    }

    /// From now on there is room for so many, with those that wait.
    pub fn make_room(&self, room: usize) -> io::Result<()> {
        // SAFETY: open.
        let has = unsafe { self.cq.as_ref() }.cqe;
        let wanted = c_int::try_from(room).map_err(|_| io::ErrorKind::InvalidInput)?;
        if wanted <= has {
            return Ok(());
        }
        // SAFETY: an open queue, which libibverbs locks against those that poll it.
        let failed = unsafe { (self.pd.device().calls().ibv_resize_cq)(self.cq.as_ptr(), wanted) };
        if failed == 0 {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(failed.abs()))
        }
    }

    /// Its address, by which events name it.
    pub(super) fn address(&self) -> usize {
        self.cq.as_ptr() as usize
    }

    /// Becomes readable when there is a completion, once after each `notify`.
    pub fn fd(&self) -> RawFd {
        // SAFETY: open.
        unsafe { self.channel.as_ref() }.fd
    }

    /// Whether a queue pair of these sizes can be made, and how many bytes its requests can carry.
    pub fn try_pair(&self, sizes: &Sizes) -> io::Result<u32> {
        let calls = self.pd.device().calls();
        let mut wanted = pair(self, None, sizes);
        // SAFETY: an open protection domain and queues of its device.
        let qp = unsafe { (calls.ibv_create_qp)(self.pd.raw(), &mut wanted) };
        let qp = NonNull::new(qp).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: made above, and used by nobody.
        unsafe { (calls.ibv_destroy_qp)(qp.as_ptr()) };
        Ok(wanted.cap.max_inline_data)
    }

    /// Takes completions, as many as there is room for.
    pub fn poll(&self, room: &mut [Done]) -> io::Result<usize> {
        self.take(room, Done::of)
    }

    /// The same in another form.
    pub(super) fn take<T>(&self, room: &mut [T], of: fn(&ibv_wc) -> T) -> io::Result<usize> {
        const BATCH: usize = 16;
        // SAFETY: numbers, of which zero is one.
        let mut raw: [ibv_wc; BATCH] = unsafe { zeroed() };
        let most = room.len().min(BATCH) as c_int;
        // SAFETY: the context of an open queue has all calls of its device.
        let poll = unsafe { (*self.cq.as_ref().context).ops.poll_cq }.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: an open queue, and room for `most` completions.
        let found = unsafe { poll(self.cq.as_ptr(), most, raw.as_mut_ptr()) };
        let found = usize::try_from(found).map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        for (place, raw) in room.iter_mut().zip(raw.iter().take(found)) {
            *place = of(raw);
        }
        Ok(found)
    }

    pub(super) fn raw(&self) -> *mut ibv_cq {
        self.cq.as_ptr()
    }

    /// Empties the channel, and has the next completion make `fd` readable.
    pub fn notify(&self) -> io::Result<()> {
        let calls = self.pd.device().calls();
        let (mut cq, mut context): (*mut ibv_cq, *mut c_void) = (null_mut(), null_mut());
        // SAFETY: an open channel that does not wait, and places for two pointers.
        while unsafe { (calls.ibv_get_cq_event)(self.channel.as_ptr(), &mut cq, &mut context) } == 0 {
            // SAFETY: the event that was just taken.
            unsafe { (calls.ibv_ack_cq_events)(cq, 1) };
        }
        // SAFETY: as in `poll`.
        let ask = unsafe { (*self.cq.as_ref().context).ops.req_notify_cq }.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: an open queue.
        errno(unsafe { ask(self.cq.as_ptr(), 0) })
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        let calls = self.pd.device().calls();
        // SAFETY: open, ended here only, and no queue pair uses them: who has one ends it before.
        unsafe {
            (calls.ibv_destroy_cq)(self.cq.as_ptr());
            (calls.ibv_destroy_comp_channel)(self.channel.as_ptr());
        }
    }
}

/// A reliable connected queue pair that tells its completions to `queues`.
pub(super) fn pair(queues: &Queues, receives: Option<&SharedReceives>, sizes: &Sizes) -> ibv_qp_init_attr {
    ibv_qp_init_attr {
        qp_context: null_mut(),
        send_cq: queues.cq.as_ptr(),
        recv_cq: queues.cq.as_ptr(),
        srq: receives.map_or(null_mut(), SharedReceives::raw),
        cap: ibv_qp_cap {
            max_send_wr: sizes.sends,
            max_recv_wr: sizes.receives,
            max_send_sge: sizes.send_pieces,
            max_recv_sge: sizes.receive_pieces,
            max_inline_data: sizes.inline,
        },
        qp_type: IBV_QPT_RC,
        sq_sig_all: 0,
    }
}

pub(super) fn do_not_wait(fd: RawFd) -> io::Result<()> {
    // SAFETY: calls without pointers on an open descriptor.
    let set = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        flags >= 0 && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}
