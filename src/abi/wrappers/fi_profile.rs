//! Inline calls of `rdma/fi_profile.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_profile_reset(prof_fid: *mut fid_profile, flags: u64) {
        slot ((*prof_fid).ops).reset(prof_fid, flags)
    }
    fn fi_profile_query_vars(prof_fid: *mut fid_profile, varlist: *mut fi_profile_desc, count: *mut size_t) -> ssize_t {
        slot ((*prof_fid).ops).query_vars(prof_fid, varlist, count)
    }
    fn fi_profile_query_events(prof_fid: *mut fid_profile, eventlist: *mut fi_profile_desc, count: *mut size_t) -> ssize_t {
        slot ((*prof_fid).ops).query_events(prof_fid, eventlist, count)
    }
    fn fi_profile_read_u64(prof_fid: *mut fid_profile, var_id: u32, data: *mut u64) -> ssize_t {
        rust {
            let mut size = size_of::<u64>();
            let ret = unguarded!((*prof_fid).ops, read_var, (prof_fid, var_id, data.cast(), &mut size));
            ret.min(0)
        }
        c r#"
size_t size = sizeof(uint64_t);
ssize_t ret = prof_fid->ops->read_var(prof_fid, var_id, (void *) data,
				      &size);

return ret > 0 ? 0 : ret;
"#
    }
    fn fi_profile_register_callback(prof_fid: *mut fid_profile, event_id: u32, callback: Option<unsafe extern "C" fn(prof_fid: *mut fid_profile, event: *mut fi_profile_desc, param: *mut c_void, size: size_t, context: *mut c_void) -> c_int>, context: *mut c_void) -> c_int {
        slot ((*prof_fid).ops).reg_callback(prof_fid, event_id, callback, context)
    }
    fn fi_profile_start_reads(prof_fid: *mut fid_profile, flags: u64) {
        slot ((*prof_fid).ops).start_reads(prof_fid, flags)
    }
    fn fi_profile_end_reads(prof_fid: *mut fid_profile, flags: u64) {
        slot ((*prof_fid).ops).end_reads(prof_fid, flags)
    }
    fn fi_profile_open(fid: *mut fid, flags: u64, prof_fid: *mut *mut fid_profile, context: *mut c_void) -> c_int {
        rust {
            let mut ops: *mut c_void = null_mut();
            let ret = fi_open_ops(fid, c"fi_profile_ops".as_ptr(), flags, &mut ops, context);
            if ret == 0 {
                *prof_fid = ops.byte_sub(offset_of!(fid_profile, ops)).cast();
            }
            ret
        }
        c r#"
void *ops = NULL;
int ret = fi_open_ops(fid, "fi_profile_ops", flags, &ops, context);

if (!ret)
	*prof_fid = (struct fid_profile *)
		((char *) ops - offsetof(struct fid_profile, ops));
return ret;
"#
    }
    fn fi_profile_close(prof_fid: *mut fid_profile) -> c_int {
        slot ((*prof_fid).fid.ops).close(&raw mut (*prof_fid).fid)
    }
}
