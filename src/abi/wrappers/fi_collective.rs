//! Inline calls of `rdma/fi_collective.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_av_set(av: *mut fid_av, attr: *mut fi_av_set_attr, set: *mut *mut fid_av_set, context: *mut c_void) -> c_int {
        checked ((*av).ops).av_set(av, attr, set, context)
    }
    fn fi_av_set_union(dst: *mut fid_av_set, src: *const fid_av_set) -> c_int {
        slot ((*dst).ops).set_union(dst, src)
    }
    fn fi_av_set_intersect(dst: *mut fid_av_set, src: *const fid_av_set) -> c_int {
        slot ((*dst).ops).intersect(dst, src)
    }
    fn fi_av_set_diff(dst: *mut fid_av_set, src: *const fid_av_set) -> c_int {
        slot ((*dst).ops).diff(dst, src)
    }
    fn fi_av_set_insert(set: *mut fid_av_set, addr: fi_addr_t) -> c_int {
        slot ((*set).ops).insert(set, addr)
    }
    fn fi_av_set_remove(set: *mut fid_av_set, addr: fi_addr_t) -> c_int {
        slot ((*set).ops).remove(set, addr)
    }
    fn fi_av_set_addr(set: *mut fid_av_set, coll_addr: *mut fi_addr_t) -> c_int {
        slot ((*set).ops).addr(set, coll_addr)
    }
    fn fi_join_collective(ep: *mut fid_ep, coll_addr: fi_addr_t, set: *const fid_av_set, flags: u64, mc: *mut *mut fid_mc, context: *mut c_void) -> c_int {
        rust {
            let mut addr = fi_collective_addr { set, coll_addr };
            fi_join(ep, (&raw mut addr).cast(), flags | FI_COLLECTIVE, mc, context)
        }
        c r#"
struct fi_collective_addr addr;

addr.set = set;
addr.coll_addr = coll_addr;
return fi_join(ep, &addr, flags | FI_COLLECTIVE, mc, context);
"#
    }
    fn fi_barrier(ep: *mut fid_ep, coll_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).barrier(ep, coll_addr, context)
    }
    fn fi_barrier2(ep: *mut fid_ep, coll_addr: fi_addr_t, flags: u64, context: *mut c_void) -> ssize_t {
        rust {
            if flags == 0 {
                return fi_barrier(ep, coll_addr, context);
            }
            guarded!((*ep).collective, barrier2, (ep, coll_addr, flags, context))
        }
        c r#"
if (!flags)
	return fi_barrier(ep, coll_addr, context);

return FI_CHECK_OP(ep->collective, struct fi_ops_collective, barrier2) ?
	ep->collective->barrier2(ep, coll_addr, flags, context) :
	-FI_ENOSYS;
"#
    }
    fn fi_broadcast(ep: *mut fid_ep, buf: *mut c_void, count: size_t, desc: *mut c_void, coll_addr: fi_addr_t, root_addr: fi_addr_t, datatype: fi_datatype, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).broadcast(ep, buf, count, desc, coll_addr, root_addr, datatype, flags, context)
    }
    fn fi_alltoall(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, datatype: fi_datatype, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).alltoall(ep, buf, count, desc, result, result_desc, coll_addr, datatype, flags, context)
    }
    fn fi_allreduce(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, datatype: fi_datatype, op: fi_op, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).allreduce(ep, buf, count, desc, result, result_desc, coll_addr, datatype, op, flags, context)
    }
    fn fi_allgather(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, datatype: fi_datatype, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).allgather(ep, buf, count, desc, result, result_desc, coll_addr, datatype, flags, context)
    }
    fn fi_reduce_scatter(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, datatype: fi_datatype, op: fi_op, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).reduce_scatter(ep, buf, count, desc, result, result_desc, coll_addr, datatype, op, flags, context)
    }
    fn fi_reduce(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, root_addr: fi_addr_t, datatype: fi_datatype, op: fi_op, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).reduce(ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, op, flags, context)
    }
    fn fi_scatter(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, root_addr: fi_addr_t, datatype: fi_datatype, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).scatter(ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags, context)
    }
    fn fi_gather(ep: *mut fid_ep, buf: *const c_void, count: size_t, desc: *mut c_void, result: *mut c_void, result_desc: *mut c_void, coll_addr: fi_addr_t, root_addr: fi_addr_t, datatype: fi_datatype, flags: u64, context: *mut c_void) -> ssize_t {
        slot ((*ep).collective).gather(ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags, context)
    }
    fn fi_query_collective(domain: *mut fid_domain, coll: fi_collective_op, attr: *mut fi_collective_attr, flags: u64) -> c_int {
        checked ((*domain).ops).query_collective(domain, coll, attr, flags)
    }
}
