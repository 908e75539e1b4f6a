//! Inline calls of `rdma/fi_cm.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_setname(fid: fid_t, addr: *mut c_void, addrlen: size_t) -> c_int {
        slot ((*(fid as *mut fid_ep)).cm).setname(fid, addr, addrlen)
    }
    fn fi_getname(fid: fid_t, addr: *mut c_void, addrlen: *mut size_t) -> c_int {
        slot ((*(fid as *mut fid_ep)).cm).getname(fid, addr, addrlen)
    }
    fn fi_getpeer(ep: *mut fid_ep, addr: *mut c_void, addrlen: *mut size_t) -> c_int {
        slot ((*ep).cm).getpeer(ep, addr, addrlen)
    }
    fn fi_listen(pep: *mut fid_pep) -> c_int {
        slot ((*pep).cm).listen(pep)
    }
    fn fi_connect(ep: *mut fid_ep, addr: *const c_void, param: *const c_void, paramlen: size_t) -> c_int {
        slot ((*ep).cm).connect(ep, addr, param, paramlen)
    }
    fn fi_accept(ep: *mut fid_ep, param: *const c_void, paramlen: size_t) -> c_int {
        slot ((*ep).cm).accept(ep, param, paramlen)
    }
    fn fi_reject(pep: *mut fid_pep, handle: fid_t, param: *const c_void, paramlen: size_t) -> c_int {
        slot ((*pep).cm).reject(pep, handle, param, paramlen)
    }
    fn fi_shutdown(ep: *mut fid_ep, flags: u64) -> c_int {
        slot ((*ep).cm).shutdown(ep, flags)
    }
    fn fi_join(ep: *mut fid_ep, addr: *const c_void, flags: u64, mc: *mut *mut fid_mc, context: *mut c_void) -> c_int {
        checked ((*ep).cm).join(ep, addr, flags, mc, context)
    }
    fn fi_mc_addr(mc: *mut fid_mc) -> fi_addr_t {
        rust { (*mc).fi_addr }
        c "return mc->fi_addr;"
    }
}
