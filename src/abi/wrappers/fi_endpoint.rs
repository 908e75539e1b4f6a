//! Inline calls of `rdma/fi_endpoint.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_passive_ep(fabric: *mut fid_fabric, info: *mut fi_info, pep: *mut *mut fid_pep, context: *mut c_void) -> c_int {
        slot ((*fabric).ops).passive_ep(fabric, info, pep, context)
    }
    fn fi_endpoint(domain: *mut fid_domain, info: *mut fi_info, ep: *mut *mut fid_ep, context: *mut c_void) -> c_int {
        slot ((*domain).ops).endpoint(domain, info, ep, context)
    }
    fn fi_endpoint2(domain: *mut fid_domain, info: *mut fi_info, ep: *mut *mut fid_ep, flags: u64, context: *mut c_void) -> c_int {
        rust {
            if flags == 0 {
                return fi_endpoint(domain, info, ep, context);
            }
            guarded!((*domain).ops, endpoint2, (domain, info, ep, flags, context))
        }
        c r#"
if (!flags)
	return fi_endpoint(domain, info, ep, context);

return FI_CHECK_OP(domain->ops, struct fi_ops_domain, endpoint2) ?
	domain->ops->endpoint2(domain, info, ep, flags, context) :
	-FI_ENOSYS;
"#
    }
    fn fi_scalable_ep(domain: *mut fid_domain, info: *mut fi_info, sep: *mut *mut fid_ep, context: *mut c_void) -> c_int {
        slot ((*domain).ops).scalable_ep(domain, info, sep, context)
    }
    fn fi_ep_bind(ep: *mut fid_ep, bfid: *mut fid, flags: u64) -> c_int {
        slot ((*ep).fid.ops).bind(&raw mut (*ep).fid, bfid, flags)
    }
    fn fi_pep_bind(pep: *mut fid_pep, bfid: *mut fid, flags: u64) -> c_int {
        slot ((*pep).fid.ops).bind(&raw mut (*pep).fid, bfid, flags)
    }
    fn fi_scalable_ep_bind(sep: *mut fid_ep, bfid: *mut fid, flags: u64) -> c_int {
        slot ((*sep).fid.ops).bind(&raw mut (*sep).fid, bfid, flags)
    }
    fn fi_enable(ep: *mut fid_ep) -> c_int {
        slot ((*ep).fid.ops).control(&raw mut (*ep).fid, FI_ENABLE as c_int, null_mut())
    }
    fn fi_cancel(fid: fid_t, context: *mut c_void) -> ssize_t {
        slot ((*(fid as *mut fid_ep)).ops).cancel(fid, context)
    }
    fn fi_setopt(fid: fid_t, level: c_int, optname: c_int, optval: *const c_void, optlen: size_t) -> c_int {
        slot ((*(fid as *mut fid_ep)).ops).setopt(fid, level, optname, optval, optlen)
    }
    fn fi_getopt(fid: fid_t, level: c_int, optname: c_int, optval: *mut c_void, optlen: *mut size_t) -> c_int {
        slot ((*(fid as *mut fid_ep)).ops).getopt(fid, level, optname, optval, optlen)
    }
    fn fi_ep_alias(ep: *mut fid_ep, alias_ep: *mut *mut fid_ep, flags: u64) -> c_int {
        rust {
            let mut fid: *mut fid = null_mut();
            let ret = fi_alias(&raw mut (*ep).fid, &mut fid, flags);
            if ret == 0 {
                *alias_ep = fid.cast();
            }
            ret
        }
        c r#"
struct fid *fid;
int ret;

ret = fi_alias(&ep->fid, &fid, flags);
if (!ret)
	*alias_ep = (struct fid_ep *) fid;
return ret;
"#
    }
    fn fi_tx_context(ep: *mut fid_ep, idx: c_int, attr: *mut fi_tx_attr, tx_ep: *mut *mut fid_ep, context: *mut c_void) -> c_int {
        slot ((*ep).ops).tx_ctx(ep, idx, attr, tx_ep, context)
    }
    fn fi_rx_context(ep: *mut fid_ep, idx: c_int, attr: *mut fi_rx_attr, rx_ep: *mut *mut fid_ep, context: *mut c_void) -> c_int {
        slot ((*ep).ops).rx_ctx(ep, idx, attr, rx_ep, context)
    }
    #[deprecated]
    fn fi_rx_size_left(ep: *mut fid_ep) -> ssize_t {
        slot ((*ep).ops).rx_size_left(ep)
    }
    #[deprecated]
    fn fi_tx_size_left(ep: *mut fid_ep) -> ssize_t {
        slot ((*ep).ops).tx_size_left(ep)
    }
    fn fi_stx_context(domain: *mut fid_domain, attr: *mut fi_tx_attr, stx: *mut *mut fid_stx, context: *mut c_void) -> c_int {
        slot ((*domain).ops).stx_ctx(domain, attr, stx, context)
    }
    fn fi_srx_context(domain: *mut fid_domain, attr: *mut fi_rx_attr, rx_ep: *mut *mut fid_ep, context: *mut c_void) -> c_int {
        slot ((*domain).ops).srx_ctx(domain, attr, rx_ep, context)
    }
    fn fi_recv(ep: *mut fid_ep, buf: *mut c_void, len: size_t, desc: *mut c_void, src_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
        slot ((*ep).msg).recv(ep, buf, len, desc, src_addr, context)
    }
    fn fi_recvv(ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: size_t, src_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
        slot ((*ep).msg).recvv(ep, iov, desc, count, src_addr, context)
    }
    fn fi_recvmsg(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> ssize_t {
        slot ((*ep).msg).recvmsg(ep, msg, flags)
    }
    fn fi_send(ep: *mut fid_ep, buf: *const c_void, len: size_t, desc: *mut c_void, dest_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
        slot ((*ep).msg).send(ep, buf, len, desc, dest_addr, context)
    }
    fn fi_sendv(ep: *mut fid_ep, iov: *const iovec, desc: *mut *mut c_void, count: size_t, dest_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
        slot ((*ep).msg).sendv(ep, iov, desc, count, dest_addr, context)
    }
    fn fi_sendmsg(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> ssize_t {
        slot ((*ep).msg).sendmsg(ep, msg, flags)
    }
    fn fi_inject(ep: *mut fid_ep, buf: *const c_void, len: size_t, dest_addr: fi_addr_t) -> ssize_t {
        slot ((*ep).msg).inject(ep, buf, len, dest_addr)
    }
    fn fi_senddata(ep: *mut fid_ep, buf: *const c_void, len: size_t, desc: *mut c_void, data: u64, dest_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
        slot ((*ep).msg).senddata(ep, buf, len, desc, data, dest_addr, context)
    }
    fn fi_injectdata(ep: *mut fid_ep, buf: *const c_void, len: size_t, data: u64, dest_addr: fi_addr_t) -> ssize_t {
        slot ((*ep).msg).injectdata(ep, buf, len, data, dest_addr)
    }
}
