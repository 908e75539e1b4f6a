//! Receives that several queue pairs share (a shared receive queue).

use super::device::Pd;
use super::errno;
use super::types::*;
use super::work::Piece;
use core::ffi::c_int;
use core::ptr::{NonNull, null_mut};
use std::io;
use std::sync::Arc;

pub struct SharedReceives {
    pd: Arc<Pd>,
    srq: NonNull<ibv_srq>,
}

// SAFETY: calls on a shared receive queue may come from any thread.
unsafe impl Send for SharedReceives {}
// SAFETY: as above.
unsafe impl Sync for SharedReceives {}

impl SharedReceives {
    /// Room for so many receives, each of so many pieces.
    pub fn open(pd: &Arc<Pd>, receives: u32, pieces: u32) -> io::Result<SharedReceives> {
        let mut wanted = ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: ibv_srq_attr {
                max_wr: receives,
                max_sge: pieces,
                srq_limit: 0,
            },
        };
        // SAFETY: an open protection domain.
        let srq = unsafe { (pd.device().calls().ibv_create_srq)(pd.raw(), &mut wanted) };
        let srq = NonNull::new(srq).ok_or_else(io::Error::last_os_error)?;
        Ok(SharedReceives { pd: pd.clone(), srq })
    }

    pub(super) fn pd(&self) -> &Pd {
        &self.pd
    }

    pub(super) fn raw(&self) -> *mut ibv_srq {
        self.srq.as_ptr()
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// The memory of the pieces is lent, to be written, until the receive has completed, or this and all identifiers
    /// that share it are gone.
    pub unsafe fn post(&self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        let mut request = ibv_recv_wr {
            wr_id: id,
            next: null_mut(),
            sg_list: pieces.as_ptr().cast_mut().cast(),
            num_sge: c_int::try_from(pieces.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        };
        let mut bad = null_mut();
        // SAFETY: the context of an open queue has all calls of its device.
        let post = unsafe { (*self.srq.as_ref().context).ops.post_srq_recv }.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: an open queue and a request whose list is read before the call returns; the memory by the caller's
        // promise.
        errno(unsafe { post(self.raw(), &mut request, &mut bad) })
    }
}

impl Drop for SharedReceives {
    fn drop(&mut self) {
        // SAFETY: open, ended here only, and no queue pair uses it: an `Id` holds it until it has ended its own.
        unsafe { (self.pd.device().calls().ibv_destroy_srq)(self.raw()) };
    }
}
