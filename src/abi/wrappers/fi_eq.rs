//! Inline calls of `rdma/fi_eq.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_trywait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
        slot ((*fabric).ops).trywait(fabric, fids, count)
    }
    #[deprecated]
    fn fi_wait(waitset: *mut fid_wait, timeout: c_int) -> c_int {
        slot ((*waitset).ops).wait(waitset, timeout)
    }
    #[deprecated]
    fn fi_poll(pollset: *mut fid_poll, context: *mut *mut c_void, count: c_int) -> c_int {
        slot ((*pollset).ops).poll(pollset, context, count)
    }
    #[deprecated]
    fn fi_poll_add(pollset: *mut fid_poll, event_fid: *mut fid, flags: u64) -> c_int {
        slot ((*pollset).ops).poll_add(pollset, event_fid, flags)
    }
    #[deprecated]
    fn fi_poll_del(pollset: *mut fid_poll, event_fid: *mut fid, flags: u64) -> c_int {
        slot ((*pollset).ops).poll_del(pollset, event_fid, flags)
    }
    fn fi_eq_open(fabric: *mut fid_fabric, attr: *mut fi_eq_attr, eq: *mut *mut fid_eq, context: *mut c_void) -> c_int {
        slot ((*fabric).ops).eq_open(fabric, attr, eq, context)
    }
    fn fi_eq_read(eq: *mut fid_eq, event: *mut u32, buf: *mut c_void, len: size_t, flags: u64) -> ssize_t {
        slot ((*eq).ops).read(eq, event, buf, len, flags)
    }
    fn fi_eq_readerr(eq: *mut fid_eq, buf: *mut fi_eq_err_entry, flags: u64) -> ssize_t {
        slot ((*eq).ops).readerr(eq, buf, flags)
    }
    fn fi_eq_write(eq: *mut fid_eq, event: u32, buf: *const c_void, len: size_t, flags: u64) -> ssize_t {
        slot ((*eq).ops).write(eq, event, buf, len, flags)
    }
    fn fi_eq_sread(eq: *mut fid_eq, event: *mut u32, buf: *mut c_void, len: size_t, timeout: c_int, flags: u64) -> ssize_t {
        slot ((*eq).ops).sread(eq, event, buf, len, timeout, flags)
    }
    fn fi_eq_strerror(eq: *mut fid_eq, prov_errno: c_int, err_data: *const c_void, buf: *mut c_char, len: size_t) -> *const c_char {
        slot ((*eq).ops).strerror(eq, prov_errno, err_data, buf, len)
    }
    fn fi_cq_read(cq: *mut fid_cq, buf: *mut c_void, count: size_t) -> ssize_t {
        slot ((*cq).ops).read(cq, buf, count)
    }
    fn fi_cq_readfrom(cq: *mut fid_cq, buf: *mut c_void, count: size_t, src_addr: *mut fi_addr_t) -> ssize_t {
        slot ((*cq).ops).readfrom(cq, buf, count, src_addr)
    }
    fn fi_cq_readerr(cq: *mut fid_cq, buf: *mut fi_cq_err_entry, flags: u64) -> ssize_t {
        rust {
            // Providers older than the field leave it alone, so it must not look valid.
            if !buf.is_null() {
                (*buf).src_addr = FI_ADDR_NOTAVAIL;
            }
            unguarded!((*cq).ops, readerr, (cq, buf, flags))
        }
        c r#"
/* Providers older than the field leave it alone. */
if (buf)
	buf->src_addr = FI_ADDR_NOTAVAIL;
return cq->ops->readerr(cq, buf, flags);
"#
    }
    fn fi_cq_sread(cq: *mut fid_cq, buf: *mut c_void, count: size_t, cond: *const c_void, timeout: c_int) -> ssize_t {
        slot ((*cq).ops).sread(cq, buf, count, cond, timeout)
    }
    fn fi_cq_sreadfrom(cq: *mut fid_cq, buf: *mut c_void, count: size_t, src_addr: *mut fi_addr_t, cond: *const c_void, timeout: c_int) -> ssize_t {
        slot ((*cq).ops).sreadfrom(cq, buf, count, src_addr, cond, timeout)
    }
    fn fi_cq_signal(cq: *mut fid_cq) -> c_int {
        slot ((*cq).ops).signal(cq)
    }
    fn fi_cq_strerror(cq: *mut fid_cq, prov_errno: c_int, err_data: *const c_void, buf: *mut c_char, len: size_t) -> *const c_char {
        slot ((*cq).ops).strerror(cq, prov_errno, err_data, buf, len)
    }
    fn fi_cntr_read(cntr: *mut fid_cntr) -> u64 {
        slot ((*cntr).ops).read(cntr)
    }
    fn fi_cntr_readerr(cntr: *mut fid_cntr) -> u64 {
        slot ((*cntr).ops).readerr(cntr)
    }
    fn fi_cntr_add(cntr: *mut fid_cntr, value: u64) -> c_int {
        slot ((*cntr).ops).add(cntr, value)
    }
    fn fi_cntr_adderr(cntr: *mut fid_cntr, value: u64) -> c_int {
        checked ((*cntr).ops).adderr(cntr, value)
    }
    fn fi_cntr_set(cntr: *mut fid_cntr, value: u64) -> c_int {
        slot ((*cntr).ops).set(cntr, value)
    }
    fn fi_cntr_seterr(cntr: *mut fid_cntr, value: u64) -> c_int {
        checked ((*cntr).ops).seterr(cntr, value)
    }
    fn fi_cntr_wait(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
        slot ((*cntr).ops).wait(cntr, threshold, timeout)
    }
}
