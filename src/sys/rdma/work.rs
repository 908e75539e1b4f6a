//! Work requests and their completions, in the form in which callers know them.

use super::types::*;
use core::ffi::c_int;
use core::ptr::null_mut;
use std::io;

/// A piece of registered memory: ibv_sge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub addr: u64,
    pub len: u32,
    pub key: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    Send,
    Write,
    Read,
    /// Adds to the eight bytes there, and gives what was there before.
    FetchAdd(u64),
    /// Writes `swap` there if `compare` was there, and gives what was there before.
    CompareSwap {
        compare: u64,
        swap: u64,
    },
}

/// A request to send, or to write or read a peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Returned in the completion.
    pub id: u64,
    pub opcode: Opcode,
    /// Immediate data, in the order of this machine.
    pub data: Option<u32>,
    /// The peer's address and key.
    pub remote: (u64, u32),
    /// A success is told too.
    pub signaled: bool,
    /// The bytes are copied before the call returns.
    pub inline: bool,
    /// Starts after all reads that were posted before have ended.
    pub fence: bool,
}

/// A request with its memory.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub work: Work,
    pub pieces: &'a [Piece],
}

impl Request<'_> {
    /// As C has it, linked to none. It points to the pieces.
    pub(super) fn raw(&self) -> io::Result<ibv_send_wr> {
        let work = &self.work;
        let opcode = match (work.opcode, work.data) {
            (Opcode::Send, None) => IBV_WR_SEND,
            (Opcode::Send, Some(_)) => IBV_WR_SEND_WITH_IMM,
            (Opcode::Write, None) => IBV_WR_RDMA_WRITE,
            (Opcode::Write, Some(_)) => IBV_WR_RDMA_WRITE_WITH_IMM,
            (Opcode::Read, _) => IBV_WR_RDMA_READ,
            (Opcode::FetchAdd(_), _) => IBV_WR_ATOMIC_FETCH_AND_ADD,
            (Opcode::CompareSwap { .. }, _) => IBV_WR_ATOMIC_CMP_AND_SWP,
        };
        let flag = |wanted: bool, flag: c_int| if wanted { flag as u32 } else { 0 };
        Ok(ibv_send_wr {
            wr_id: work.id,
            next: null_mut(),
            sg_list: self.pieces.as_ptr().cast_mut().cast(),
            num_sge: c_int::try_from(self.pieces.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            opcode,
            send_flags: flag(work.signaled, IBV_SEND_SIGNALED)
                | flag(work.inline, IBV_SEND_INLINE)
                | flag(work.fence, IBV_SEND_FENCE),
            imm_data: work.data.unwrap_or(0).to_be(),
            wr: match work.opcode {
                Opcode::Send | Opcode::Write | Opcode::Read => ibv_rdma {
                    remote_addr: work.remote.0,
                    rkey: work.remote.1,
                    gap: 0,
                    room: [0; 2],
                },
                Opcode::FetchAdd(add) => atomic(work.remote, add, 0),
                Opcode::CompareSwap { compare, swap } => atomic(work.remote, compare, swap),
            },
            qp_type: 0,
            gap: 0,
            rest: [0; 6],
        })
    }
}

/// The arm of atomics, in that of RDMA.
fn atomic((remote_addr, rkey): (u64, u32), compare_add: u64, swap: u64) -> ibv_rdma {
    let arm = ibv_atomic {
        remote_addr,
        compare_add,
        swap,
        rkey,
        gap: 0,
    };
    // SAFETY: both are numbers without gaps, of one size.
    unsafe { core::mem::transmute::<ibv_atomic, ibv_rdma>(arm) }
}

/// A list of requests of which not all were taken: how many were, and why the next was not.
#[derive(Debug)]
pub struct Stopped {
    pub taken: usize,
    pub why: io::Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneKind {
    /// Of a posted receive, by a message.
    Received,
    /// Of a posted receive, by a write with immediate data; the receive's memory was not touched.
    Written,
    /// Any other; a failed one does not say which.
    Other,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The queue pair was in error before its turn came.
    Flushed,
    /// The message was longer than the receive's memory.
    TooLong,
    /// Memory of ours is not registered, or not for this.
    NotRegistered,
    /// The peer refused: its receive was too short, or the request made no sense to it.
    Refused,
    /// The peer's memory is not registered, or not for this.
    NoAccess,
    /// The peer does not answer.
    NoAnswer,
    /// The peer has no receive, and the tries are used up.
    NotReady,
    /// Another status of enum ibv_wc_status.
    Other(i32),
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub id: u64,
    pub kind: DoneKind,
    pub failure: Option<Failure>,
    /// Bytes received or written.
    pub len: usize,
    /// Immediate data, in the order of this machine.
    pub data: Option<u32>,
    /// The number of the queue pair.
    pub pair: u32,
}

impl Done {
    pub(super) fn of(raw: &ibv_wc) -> Done {
        let failure = match raw.status {
            IBV_WC_SUCCESS => None,
            IBV_WC_WR_FLUSH_ERR => Some(Failure::Flushed),
            IBV_WC_LOC_LEN_ERR => Some(Failure::TooLong),
            IBV_WC_LOC_PROT_ERR => Some(Failure::NotRegistered),
            IBV_WC_REM_INV_REQ_ERR => Some(Failure::Refused),
            IBV_WC_REM_ACCESS_ERR => Some(Failure::NoAccess),
            IBV_WC_RETRY_EXC_ERR => Some(Failure::NoAnswer),
            IBV_WC_RNR_RETRY_EXC_ERR => Some(Failure::NotReady),
            other => Some(Failure::Other(other)),
        };
        // Of a failure only number and status mean anything.
        let kind = match raw.opcode {
            _ if failure.is_some() => DoneKind::Other,
            IBV_WC_RECV_RDMA_WITH_IMM => DoneKind::Written,
            IBV_WC_RECV => DoneKind::Received,
            _ => DoneKind::Other,
        };
        let immediate = failure.is_none() && raw.wc_flags as i32 & IBV_WC_WITH_IMM != 0;
        Done {
            id: raw.wr_id,
            kind,
            failure,
            len: if failure.is_none() { raw.byte_len as usize } else { 0 },
            data: immediate.then(|| u32::from_be(raw.imm_data)),
            pair: raw.qp_num,
        }
    }
}
