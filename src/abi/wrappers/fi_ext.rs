//! Inline calls of `rdma/fi_ext.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_export_fid(fid: *mut fid, flags: u64, expfid: *mut *mut fid, context: *mut c_void) -> c_int {
        rust {
            let mut exp = fi_fid_export { fid: expfid, flags, context };
            fi_control(fid, FI_EXPORT_FID as c_int, (&raw mut exp).cast())
        }
        c r#"
struct fi_fid_export exp;

exp.fid = expfid;
exp.flags = flags;
exp.context = context;
return fi_control(fid, FI_EXPORT_FID, &exp);
"#
    }
    fn fi_import_fid(fid: *mut fid, expfid: *mut fid, flags: u64) -> c_int {
        slot ((*fid).ops).bind(fid, expfid, flags)
    }
    fn fi_import(version: u32, name: *const c_char, attr: *mut c_void, attr_len: size_t, flags: u64, fid: *mut fid, context: *mut c_void) -> c_int {
        rust {
            let mut open_fid: *mut fid = null_mut();
            let ret = crate::abi::entry::fi_open(version, name, attr, attr_len, flags, &mut open_fid, context);
            if ret != FI_SUCCESS {
                return ret;
            }
            let ret = fi_import_fid(open_fid, fid, flags);
            fi_close(open_fid);
            ret
        }
        c r#"
struct fid *open_fid;
int ret;

ret = fi_open(version, name, attr, attr_len, flags, &open_fid, context);
if (ret != FI_SUCCESS)
	return ret;

ret = fi_import_fid(open_fid, fid, flags);
fi_close(open_fid);
return ret;
"#
    }
    fn fi_import_log(version: u32, flags: u64, log_fid: *mut fid_logging) -> c_int {
        rust {
            (*log_fid).fid.fclass = FI_CLASS_LOG as size_t;
            (*(*log_fid).ops).size = size_of::<fi_ops_log>();
            fi_import(version, c"logging".as_ptr(), null_mut(), 0, flags, &raw mut (*log_fid).fid, log_fid.cast())
        }
        c r#"
log_fid->fid.fclass = FI_CLASS_LOG;
log_fid->ops->size = sizeof(struct fi_ops_log);

return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid,
		 log_fid);
"#
    }
}
