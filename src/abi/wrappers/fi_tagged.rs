//! Inline calls of `rdma/fi_tagged.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_tag_mpi(tag: c_int, payload_id: u8) -> u64 {
        rust { u64::from(payload_id) << 32 | u64::from(tag as u32) }
        c "return ((uint64_t) payload_id << 32) | (uint64_t) (uint32_t) tag;"
    }
    fn fi_trecv(ep: *mut fid_ep, buf: *mut c_void, len: size_t, desc: *mut c_void, src_addr: fi_addr_t, tag: u64, ignore: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).tagged).recv(ep, buf, len, desc, src_addr, tag, ignore, context)
    }
    fn fi_trecvv(ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: size_t, src_addr: fi_addr_t, tag: u64, ignore: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).tagged).recvv(ep, iov, desc, count, src_addr, tag, ignore, context)
    }
    fn fi_trecvmsg(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> ssize_t {
        slot ((*ep).tagged).recvmsg(ep, msg, flags)
    }
    fn fi_tsend(ep: *mut fid_ep, buf: *const c_void, len: size_t, desc: *mut c_void, dest_addr: fi_addr_t, tag: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).tagged).send(ep, buf, len, desc, dest_addr, tag, context)
    }
    fn fi_tsendv(ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: size_t, dest_addr: fi_addr_t, tag: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).tagged).sendv(ep, iov, desc, count, dest_addr, tag, context)
    }
    fn fi_tsendmsg(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> ssize_t {
        slot ((*ep).tagged).sendmsg(ep, msg, flags)
    }
    fn fi_tinject(ep: *mut fid_ep, buf: *const c_void, len: size_t, dest_addr: fi_addr_t, tag: u64) -> ssize_t {
        slot ((*ep).tagged).inject(ep, buf, len, dest_addr, tag)
    }
    fn fi_tsenddata(ep: *mut fid_ep, buf: *const c_void, len: size_t, desc: *mut c_void, data: u64, dest_addr: fi_addr_t, tag: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).tagged).senddata(ep, buf, len, desc, data, dest_addr, tag, context)
    }
    fn fi_tinjectdata(ep: *mut fid_ep, buf: *const c_void, len: size_t, data: u64, dest_addr: fi_addr_t, tag: u64) -> ssize_t {
        slot ((*ep).tagged).injectdata(ep, buf, len, data, dest_addr, tag)
    }
}
