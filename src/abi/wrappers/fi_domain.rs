//! Inline calls of `rdma/fi_domain.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_hmem_ze_device(driver_index: c_int, device_index: c_int) -> c_int {
        rust { driver_index << 16 | device_index }
        c "return driver_index << 16 | device_index;"
    }
    fn fi_domain(fabric: *mut fid_fabric, info: *mut fi_info, domain: *mut *mut fid_domain, context: *mut c_void) -> c_int {
        slot ((*fabric).ops).domain(fabric, info, domain, context)
    }
    fn fi_domain2(fabric: *mut fid_fabric, info: *mut fi_info, domain: *mut *mut fid_domain, flags: u64, context: *mut c_void) -> c_int {
        rust {
            if flags == 0 {
                return fi_domain(fabric, info, domain, context);
            }
            guarded!((*fabric).ops, domain2, (fabric, info, domain, flags, context))
        }
        c r#"
if (!flags)
	return fi_domain(fabric, info, domain, context);

return FI_CHECK_OP(fabric->ops, struct fi_ops_fabric, domain2) ?
	fabric->ops->domain2(fabric, info, domain, flags, context) :
	-FI_ENOSYS;
"#
    }
    fn fi_domain_bind(domain: *mut fid_domain, fid: *mut fid, flags: u64) -> c_int {
        slot ((*domain).fid.ops).bind(&raw mut (*domain).fid, fid, flags)
    }
    fn fi_cq_open(domain: *mut fid_domain, attr: *mut fi_cq_attr, cq: *mut *mut fid_cq, context: *mut c_void) -> c_int {
        slot ((*domain).ops).cq_open(domain, attr, cq, context)
    }
    fn fi_cntr_open(domain: *mut fid_domain, attr: *mut fi_cntr_attr, cntr: *mut *mut fid_cntr, context: *mut c_void) -> c_int {
        slot ((*domain).ops).cntr_open(domain, attr, cntr, context)
    }
    #[deprecated]
    fn fi_wait_open(fabric: *mut fid_fabric, attr: *mut fi_wait_attr, waitset: *mut *mut fid_wait) -> c_int {
        slot ((*fabric).ops).wait_open(fabric, attr, waitset)
    }
    #[deprecated]
    fn fi_poll_open(domain: *mut fid_domain, attr: *mut fi_poll_attr, pollset: *mut *mut fid_poll) -> c_int {
        slot ((*domain).ops).poll_open(domain, attr, pollset)
    }
    fn fi_mr_reg(domain: *mut fid_domain, buf: *const c_void, len: size_t, acs: u64, offset: u64, requested_key: u64, flags: u64, mr: *mut *mut fid_mr, context: *mut c_void) -> c_int {
        slot ((*domain).mr).reg(&raw mut (*domain).fid, buf, len, acs, offset, requested_key, flags, mr, context)
    }
    fn fi_mr_regv(domain: *mut fid_domain, iov: *const iovec, count: size_t, acs: u64, offset: u64, requested_key: u64, flags: u64, mr: *mut *mut fid_mr, context: *mut c_void) -> c_int {
        slot ((*domain).mr).regv(&raw mut (*domain).fid, iov, count, acs, offset, requested_key, flags, mr, context)
    }
    fn fi_mr_regattr(domain: *mut fid_domain, attr: *const fi_mr_attr, flags: u64, mr: *mut *mut fid_mr) -> c_int {
        slot ((*domain).mr).regattr(&raw mut (*domain).fid, attr, flags, mr)
    }
    fn fi_mr_desc(mr: *mut fid_mr) -> *mut c_void {
        rust { (*mr).mem_desc }
        c "return mr->mem_desc;"
    }
    fn fi_mr_key(mr: *mut fid_mr) -> u64 {
        rust { (*mr).key }
        c "return mr->key;"
    }
    fn fi_mr_raw_attr(mr: *mut fid_mr, base_addr: *mut u64, raw_key: *mut u8, key_size: *mut size_t, flags: u64) -> c_int {
        rust {
            let mut attr = fi_mr_raw_attr { flags, base_addr, raw_key, key_size };
            fi_control(&raw mut (*mr).fid, FI_GET_RAW_MR as c_int, (&raw mut attr).cast())
        }
        c r#"
struct fi_mr_raw_attr attr;

attr.flags = flags;
attr.base_addr = base_addr;
attr.raw_key = raw_key;
attr.key_size = key_size;
return mr->fid.ops->control(&mr->fid, FI_GET_RAW_MR, &attr);
"#
    }
    fn fi_mr_map_raw(domain: *mut fid_domain, base_addr: u64, raw_key: *mut u8, key_size: size_t, key: *mut u64, flags: u64) -> c_int {
        rust {
            let mut map = fi_mr_map_raw { flags, base_addr, raw_key, key_size, key };
            fi_control(&raw mut (*domain).fid, FI_MAP_RAW_MR as c_int, (&raw mut map).cast())
        }
        c r#"
struct fi_mr_map_raw map;

map.flags = flags;
map.base_addr = base_addr;
map.raw_key = raw_key;
map.key_size = key_size;
map.key = key;
return domain->fid.ops->control(&domain->fid, FI_MAP_RAW_MR, &map);
"#
    }
    fn fi_mr_unmap_key(domain: *mut fid_domain, key: u64) -> c_int {
        slot ((*domain).fid.ops).control(&raw mut (*domain).fid, FI_UNMAP_KEY as c_int, (&raw const key) as *mut c_void)
    }
    fn fi_mr_bind(mr: *mut fid_mr, bfid: *mut fid, flags: u64) -> c_int {
        slot ((*mr).fid.ops).bind(&raw mut (*mr).fid, bfid, flags)
    }
    fn fi_mr_refresh(mr: *mut fid_mr, iov: *const iovec, count: size_t, flags: u64) -> c_int {
        rust {
            let mut modify: fi_mr_modify = core::mem::zeroed();
            modify.flags = flags;
            modify.attr.anonymous.mr_iov = iov;
            modify.attr.iov_count = count;
            fi_control(&raw mut (*mr).fid, FI_REFRESH as c_int, (&raw mut modify).cast())
        }
        c r#"
struct fi_mr_modify modify;

memset(&modify, 0, sizeof(modify));
modify.flags = flags;
modify.attr.mr_iov = iov;
modify.attr.iov_count = count;
return mr->fid.ops->control(&mr->fid, FI_REFRESH, &modify);
"#
    }
    fn fi_mr_enable(mr: *mut fid_mr) -> c_int {
        slot ((*mr).fid.ops).control(&raw mut (*mr).fid, FI_ENABLE as c_int, null_mut())
    }
    fn fi_av_open(domain: *mut fid_domain, attr: *mut fi_av_attr, av: *mut *mut fid_av, context: *mut c_void) -> c_int {
        slot ((*domain).ops).av_open(domain, attr, av, context)
    }
    #[deprecated]
    fn fi_av_bind(av: *mut fid_av, fid: *mut fid, flags: u64) -> c_int {
        slot ((*av).fid.ops).bind(&raw mut (*av).fid, fid, flags)
    }
    fn fi_av_insert(av: *mut fid_av, addr: *const c_void, count: size_t, fi_addr: *mut fi_addr_t, flags: u64, context: *mut c_void) -> c_int {
        slot ((*av).ops).insert(av, addr, count, fi_addr, flags, context)
    }
    fn fi_av_insertsvc(av: *mut fid_av, node: *const c_char, service: *const c_char, fi_addr: *mut fi_addr_t, flags: u64, context: *mut c_void) -> c_int {
        slot ((*av).ops).insertsvc(av, node, service, fi_addr, flags, context)
    }
    fn fi_av_insertsym(av: *mut fid_av, node: *const c_char, nodecnt: size_t, service: *const c_char, svccnt: size_t, fi_addr: *mut fi_addr_t, flags: u64, context: *mut c_void) -> c_int {
        slot ((*av).ops).insertsym(av, node, nodecnt, service, svccnt, fi_addr, flags, context)
    }
    fn fi_av_remove(av: *mut fid_av, fi_addr: *mut fi_addr_t, count: size_t, flags: u64) -> c_int {
        slot ((*av).ops).remove(av, fi_addr, count, flags)
    }
    fn fi_av_lookup(av: *mut fid_av, fi_addr: fi_addr_t, addr: *mut c_void, addrlen: *mut size_t) -> c_int {
        slot ((*av).ops).lookup(av, fi_addr, addr, addrlen)
    }
    fn fi_av_straddr(av: *mut fid_av, addr: *const c_void, buf: *mut c_char, len: *mut size_t) -> *const c_char {
        slot ((*av).ops).straddr(av, addr, buf, len)
    }
    fn fi_av_insert_auth_key(av: *mut fid_av, auth_key: *const c_void, auth_key_size: size_t, fi_addr: *mut fi_addr_t, flags: u64) -> c_int {
        checked ((*av).ops).insert_auth_key(av, auth_key, auth_key_size, fi_addr, flags)
    }
    fn fi_av_lookup_auth_key(av: *mut fid_av, addr: fi_addr_t, auth_key: *mut c_void, auth_key_size: *mut size_t) -> c_int {
        checked ((*av).ops).lookup_auth_key(av, addr, auth_key, auth_key_size)
    }
    fn fi_av_set_user_id(av: *mut fid_av, fi_addr: fi_addr_t, user_id: fi_addr_t, flags: u64) -> c_int {
        checked ((*av).ops).set_user_id(av, fi_addr, user_id, flags)
    }
    fn fi_rx_addr(fi_addr: fi_addr_t, rx_index: c_int, rx_ctx_bits: c_int) -> fi_addr_t {
        rust {
            // A C shift by 64 is undefined; zero bits means there is no index to place.
            let shift = 64u32.wrapping_sub(rx_ctx_bits as u32);
            (rx_index as u64).checked_shl(shift).unwrap_or(0) | fi_addr
        }
        c "return (fi_addr_t) (((uint64_t) rx_index << (64 - rx_ctx_bits)) | fi_addr);"
    }
    fn fi_group_addr(fi_addr: fi_addr_t, group_id: u32) -> fi_addr_t {
        rust { u64::from(group_id) << 32 | fi_addr }
        c "return (fi_addr_t) (((uint64_t) group_id << 32) | fi_addr);"
    }
}
