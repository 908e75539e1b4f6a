//! A queue pair without a connection, which sends datagrams to any other of its kind, and the ways to peers.
//!
//! The receiver's memory gets a header of `PREFIX` bytes before each datagram.

use super::device::Pd;
use super::errno;
use super::queues::{Queues, Sizes};
use super::types::*;
use super::work::{Done, Opcode, Piece, Work};
use core::ffi::c_int;
use core::mem::zeroed;
use core::ptr::{NonNull, null_mut};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The bytes of the global routing header.
pub const PREFIX: usize = 40;

/// Which queue pairs may talk to each other: a number that users of the device agree on. This one is the C library's.
const KEY: u32 = 0x1111_1111;

/// How many switches and routers a datagram passes at most.
const HOPS: u8 = 64;

/// Where a peer's port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the port here, and which of its GIDs names it.
    pub port: u8,
    pub own_gid: u8,
    /// None: the peer is in the same subnet, and has a LID there.
    pub gid: Option<[u8; 16]>,
    pub lid: u16,
    pub service_level: u8,
}

/// The way to a peer's port: an address handle.
pub struct Way {
    pd: Arc<Pd>,
    ah: NonNull<ibv_ah>,
}

// SAFETY: calls on an address handle may come from any thread.
unsafe impl Send for Way {}
// SAFETY: as above.
unsafe impl Sync for Way {}

impl Way {
    /// On Ethernet this asks the network for the peer's hardware address, which may take a second.
    pub fn open(pd: &Arc<Pd>, to: &Place) -> io::Result<Way> {
        // SAFETY: numbers, of which zero is one.
        let mut wanted: ibv_ah_attr = unsafe { zeroed() };
        wanted.dlid = to.lid;
        wanted.sl = to.service_level;
        wanted.port_num = to.port;
        if let Some(gid) = to.gid {
            wanted.is_global = 1;
            wanted.grh.hop_limit = HOPS;
            wanted.grh.sgid_index = to.own_gid;
            wanted.grh.dgid = [0, 8].map(|at| gid[at..].first_chunk().map_or(0, |half| u64::from_ne_bytes(*half)));
        }
        // SAFETY: an open protection domain, and attributes for the call to read.
        let ah = unsafe { (pd.device().calls().ibv_create_ah)(pd.raw(), &mut wanted) };
        let ah = NonNull::new(ah).ok_or_else(io::Error::last_os_error)?;
        Ok(Way { pd: pd.clone(), ah })
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // SAFETY: open, and ended here only; requests that go this way hold it.
        unsafe { (self.pd.device().calls().ibv_destroy_ah)(self.ah.as_ptr()) };
    }
}

/// A completion, and where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub done: Done,
    /// The number of the sender's queue pair.
    pub sender: u32,
    /// The first `PREFIX` bytes of the receive's memory were written.
    pub has_header: bool,
}

impl Arrived {
    pub(super) fn of(raw: &ibv_wc) -> Arrived {
        Arrived {
            done: Done::of(raw),
            sender: raw.src_qp,
            has_header: raw.wc_flags as i32 & IBV_WC_GRH != 0,
        }
    }
}

/// The queue pair with its completion queue.
pub struct DatagramPair {
    qp: NonNull<ibv_qp>,
    /// Ended after the queue pair, which is in `drop`.
    queues: Queues,
    port: u8,
}

// SAFETY: its owner uses it, one thread at a time.
unsafe impl Send for DatagramPair {}

impl DatagramPair {
    /// Ready to send and receive, and how many bytes a request can carry within itself.
    pub fn open(pd: &Arc<Pd>, port: u8, sizes: &Sizes) -> io::Result<(DatagramPair, u32)> {
        let queues = Queues::open(pd, (sizes.sends + sizes.receives) as usize)?;
        let mut wanted = wanted(&queues, sizes);
        // SAFETY: an open protection domain and queues of its device.
        let qp = unsafe { (pd.device().calls().ibv_create_qp)(pd.raw(), &mut wanted) };
        let qp = NonNull::new(qp).ok_or_else(io::Error::last_os_error)?;
        let mut pair = DatagramPair { qp, queues, port };
        pair.begin()?;
        Ok((pair, wanted.cap.max_inline_data))
    }

    /// What a request of a queue pair of these sizes can carry within itself.
    pub fn inline(pd: &Arc<Pd>, port: u8, sizes: &Sizes) -> io::Result<u32> {
        DatagramPair::open(pd, port, sizes).map(|(_, inline)| inline)
    }

    /// What peers send to.
    pub fn number(&self) -> u32 {
        // SAFETY: open.
        unsafe { self.qp.as_ref() }.qp_num
    }

    fn modify(&mut self, state: c_int, what: c_int, set: impl FnOnce(&mut ibv_qp_attr)) -> io::Result<()> {
        // SAFETY: numbers, of which zero is one.
        let mut wanted: ibv_qp_attr = unsafe { zeroed() };
        wanted.qp_state = state;
        set(&mut wanted);
        let calls = self.queues.pd.device().calls();
        // SAFETY: an open queue pair, and attributes for the call to read.
        errno(unsafe { (calls.ibv_modify_qp)(self.qp.as_ptr(), &mut wanted, IBV_QP_STATE | what) })
    }

    /// From a queue pair that was just made or reset to one that sends and receives.
    fn begin(&mut self) -> io::Result<()> {
        let port = self.port;
        self.modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, |wanted| {
            (wanted.port_num, wanted.qkey) = (port, KEY);
        })?;
        self.modify(IBV_QPS_RTR, 0, |_| {})?;
        self.modify(IBV_QPS_RTS, IBV_QP_SQ_PSN, |wanted| wanted.sq_psn = 0xff_ffff)
    }

    /// All that is posted comes back.
    pub fn fail(&mut self) -> io::Result<()> {
        self.modify(IBV_QPS_ERR, 0, |_| {})
    }

    /// After `fail`, when all has come back: as new, with the same number.
    pub fn renew(&mut self) -> io::Result<()> {
        self.modify(IBV_QPS_RESET, 0, |_| {})?;
        self.begin()
    }

    /// Posts a datagram to a queue pair.
    ///
    /// # Safety
    /// The memory of the pieces is lent until the request has completed; with `inline`, until the call returns. The way
    /// is held until then too.
    pub unsafe fn post_send(&mut self, work: &Work, pieces: &[Piece], way: &Way, pair: u32) -> io::Result<()> {
        let flag = |wanted: bool, flag: c_int| if wanted { flag as u32 } else { 0 };
        let opcode = match (work.opcode, work.data) {
            (Opcode::Send, None) => IBV_WR_SEND,
            (Opcode::Send, Some(_)) => IBV_WR_SEND_WITH_IMM,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        // SAFETY: numbers and pointers, of which zero is one.
        let mut request: ibv_send_wr = unsafe { zeroed() };
        request.wr_id = work.id;
        request.sg_list = pieces.as_ptr().cast_mut().cast();
        request.num_sge = c_int::try_from(pieces.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        request.opcode = opcode;
        request.send_flags = flag(work.signaled, IBV_SEND_SIGNALED)
            | flag(work.inline, IBV_SEND_INLINE)
            | flag(work.fence, IBV_SEND_FENCE);
        request.imm_data = work.data.unwrap_or(0).to_be();
        let to = ibv_ud {
            ah: way.ah.as_ptr(),
            remote_qpn: pair,
            remote_qkey: KEY,
        };
        // SAFETY: the arm of datagrams is another view of the same bytes, and no longer.
        unsafe { (&raw mut request.wr).cast::<ibv_ud>().write(to) };
        let mut bad = null_mut();
        let qp = self.qp.as_ptr();
        // SAFETY: a queue pair's context has all calls of its device.
        let post = unsafe { (*(*qp).context).ops.post_send }.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: an open queue pair and a request whose list is read before the call returns; the rest by the caller's
        // promise.
        errno(unsafe { post(qp, &mut request, &mut bad) })
    }

    /// Posts a receive, whose first `PREFIX` bytes are for the header.
    ///
    /// # Safety
    /// The memory of the pieces is lent, to be written, until the receive has completed.
    pub unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        let mut request = ibv_recv_wr {
            wr_id: id,
            next: null_mut(),
            sg_list: pieces.as_ptr().cast_mut().cast(),
            num_sge: c_int::try_from(pieces.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        };
        let mut bad = null_mut();
        let qp = self.qp.as_ptr();
        // SAFETY: a queue pair's context has all calls of its device.
        let post = unsafe { (*(*qp).context).ops.post_recv }.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: as for `post_send`.
        errno(unsafe { post(qp, &mut request, &mut bad) })
    }

    /// Takes completions, as many as there is room for.
    pub fn poll(&mut self, room: &mut [Arrived]) -> io::Result<usize> {
        self.queues.take(room, Arrived::of)
    }

    /// See `Queues::notify`.
    pub fn notify(&mut self) -> io::Result<()> {
        self.queues.notify()
    }

    /// See `Queues::fd`.
    pub fn fd(&self) -> RawFd {
        self.queues.fd()
    }
}

const _: () = assert!(size_of::<ibv_ud>() <= size_of::<ibv_rdma>() && align_of::<ibv_ud>() <= align_of::<ibv_rdma>());
const _: () = assert!(size_of::<Piece>() == size_of::<ibv_sge>());

impl Drop for DatagramPair {
    fn drop(&mut self) {
        let calls = self.queues.pd.device().calls();
        // SAFETY: open, and ended here only.
        unsafe { (calls.ibv_destroy_qp)(self.qp.as_ptr()) };
    }
}

/// A queue pair of datagrams that tells its completions to `queues`.
fn wanted(queues: &Queues, sizes: &Sizes) -> ibv_qp_init_attr {
    ibv_qp_init_attr {
        qp_context: null_mut(),
        send_cq: queues.raw(),
        recv_cq: queues.raw(),
        srq: null_mut(),
        cap: ibv_qp_cap {
            max_send_wr: sizes.sends,
            max_recv_wr: sizes.receives,
            max_send_sge: sizes.send_pieces,
            max_recv_sge: sizes.receive_pieces,
            max_inline_data: sizes.inline,
        },
        qp_type: IBV_QPT_UD,
        sq_sig_all: 0,
    }
}
