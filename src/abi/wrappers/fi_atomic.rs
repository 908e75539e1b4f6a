//! Inline calls of `rdma/fi_atomic.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_atomic(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> ssize_t {
        slot ((*ep).atomic).write(ep, buf, count, desc, dest_addr, addr, key, datatype, op, context)
    }
    fn fi_atomicv(ep: *mut fid_ep, iov: *const fi_ioc, desc: *mut *mut c_void, count: size_t, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> ssize_t {
        slot ((*ep).atomic).writev(ep, iov, desc, count, dest_addr, addr, key, datatype, op, context)
    }
    fn fi_atomicmsg(ep: *mut fid_ep, msg: *const fi_msg_atomic, flags: u64) -> ssize_t {
        slot ((*ep).atomic).writemsg(ep, msg, flags)
    }
    fn fi_inject_atomic(ep: *mut fid_ep, buf: *const c_void, count: size_t, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op) -> ssize_t {
        slot ((*ep).atomic).inject(ep, buf, count, dest_addr, addr, key, datatype, op)
    }
    fn fi_fetch_atomic(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> ssize_t {
        slot ((*ep).atomic).readwrite(ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op, context)
    }
    fn fi_fetch_atomicv(ep: *mut fid_ep, iov: *const fi_ioc, desc: *mut *mut c_void, count: size_t, resultv: *mut fi_ioc, result_desc: *mut *mut c_void, result_count: size_t, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> ssize_t {
        slot ((*ep).atomic).readwritev(ep, iov, desc, count, resultv, result_desc, result_count, dest_addr, addr, key, datatype, op, context)
    }
    fn fi_fetch_atomicmsg(ep: *mut fid_ep, msg: *const fi_msg_atomic, resultv: *mut fi_ioc, result_desc: *mut *mut c_void, result_count: size_t, flags: u64) -> ssize_t {
        slot ((*ep).atomic).readwritemsg(ep, msg, resultv, result_desc, result_count, flags)
    }
    fn fi_compare_atomic(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, compare: *const c_void, compare_desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> ssize_t {
        slot ((*ep).atomic).compwrite(ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr, key, datatype, op, context)
    }
    fn fi_compare_atomicv(ep: *mut fid_ep, iov: *const fi_ioc, desc: *mut *mut c_void, count: size_t, comparev: *const fi_ioc, compare_desc: *mut *mut c_void, compare_count: size_t, resultv: *mut fi_ioc, result_desc: *mut *mut c_void, result_count: size_t, dest_addr: fi_addr_t, addr: u64, key: u64, datatype: fi_datatype, op: fi_op, context: *mut c_void) -> ssize_t {
        slot ((*ep).atomic).compwritev(ep, iov, desc, count, comparev, compare_desc, compare_count, resultv, result_desc, result_count, dest_addr, addr, key, datatype, op, context)
    }
    fn fi_compare_atomicmsg(ep: *mut fid_ep, msg: *const fi_msg_atomic, comparev: *const fi_ioc, compare_desc: *mut *mut c_void, compare_count: size_t, resultv: *mut fi_ioc, result_desc: *mut *mut c_void, result_count: size_t, flags: u64) -> ssize_t {
        slot ((*ep).atomic).compwritemsg(ep, msg, comparev, compare_desc, compare_count, resultv, result_desc, result_count, flags)
    }
    fn fi_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut size_t) -> c_int {
        slot ((*ep).atomic).writevalid(ep, datatype, op, count)
    }
    fn fi_fetch_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut size_t) -> c_int {
        slot ((*ep).atomic).readwritevalid(ep, datatype, op, count)
    }
    fn fi_compare_atomicvalid(ep: *mut fid_ep, datatype: fi_datatype, op: fi_op, count: *mut size_t) -> c_int {
        slot ((*ep).atomic).compwritevalid(ep, datatype, op, count)
    }
    fn fi_query_atomic(domain: *mut fid_domain, datatype: fi_datatype, op: fi_op, attr: *mut fi_atomic_attr, flags: u64) -> c_int {
        checked ((*domain).ops).query_atomic(domain, datatype, op, attr, flags)
    }
}
