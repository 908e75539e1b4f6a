//! Inline calls of `rdma/fi_rma.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_read(ep: *mut fid_ep, buf: *mut c_void, len: size_t, desc: *mut c_void, src_addr: fi_addr_t, addr: u64, key: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).rma).read(ep, buf, len, desc, src_addr, addr, key, context)
    }
    fn fi_readv(ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: size_t, src_addr: fi_addr_t, addr: u64, key: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).rma).readv(ep, iov, desc, count, src_addr, addr, key, context)
    }
    fn fi_readmsg(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> ssize_t {
        slot ((*ep).rma).readmsg(ep, msg, flags)
    }
    fn fi_write(ep: *mut fid_ep, buf: *const c_void, len: size_t, desc: *mut c_void, dest_addr: fi_addr_t, addr: u64, key: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).rma).write(ep, buf, len, desc, dest_addr, addr, key, context)
    }
    fn fi_writev(ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: size_t, dest_addr: fi_addr_t, addr: u64, key: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).rma).writev(ep, iov, desc, count, dest_addr, addr, key, context)
    }
    fn fi_writemsg(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> ssize_t {
        slot ((*ep).rma).writemsg(ep, msg, flags)
    }
    fn fi_inject_write(ep: *mut fid_ep, buf: *const c_void, len: size_t, dest_addr: fi_addr_t, addr: u64, key: u64) -> ssize_t {
        slot ((*ep).rma).inject(ep, buf, len, dest_addr, addr, key)
    }
    fn fi_writedata(ep: *mut fid_ep, buf: *const c_void, len: size_t, desc: *mut c_void, data: u64, dest_addr: fi_addr_t, addr: u64, key: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).rma).writedata(ep, buf, len, desc, data, dest_addr, addr, key, context)
    }
    fn fi_inject_writedata(ep: *mut fid_ep, buf: *const c_void, len: size_t, data: u64, dest_addr: fi_addr_t, addr: u64, key: u64) -> ssize_t {
        slot ((*ep).rma).injectdata(ep, buf, len, data, dest_addr, addr, key)
    }
}
