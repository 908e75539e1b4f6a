//! Inline calls of `rdma/fabric.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_tc_dscp_set(dscp: u8) -> u32 {
        rust { u32::from(dscp) | FI_TC_DSCP }
        c "return (uint32_t) dscp | FI_TC_DSCP;"
    }
    fn fi_tc_dscp_get(tclass: u32) -> u8 {
        rust { if tclass & FI_TC_DSCP != 0 { tclass as u8 } else { 0 } }
        c "return tclass & FI_TC_DSCP ? (uint8_t) tclass : 0;"
    }
    fn fi_allocinfo() -> *mut fi_info {
        rust { crate::abi::entry::fi_dupinfo(null()) }
        c "return fi_dupinfo(NULL);"
    }
    fn fi_close(fid: *mut fid) -> c_int {
        slot ((*fid).ops).close(fid)
    }
    fn fi_control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
        slot ((*fid).ops).control(fid, command, arg)
    }
    fn fi_alias(fid: *mut fid, alias_fid: *mut *mut fid, flags: u64) -> c_int {
        rust {
            let mut arg = fi_alias { fid: alias_fid, flags };
            fi_control(fid, FI_ALIAS as c_int, (&raw mut arg).cast())
        }
        c r#"
struct fi_alias arg;

arg.fid = alias_fid;
arg.flags = flags;
return fi_control(fid, FI_ALIAS, &arg);
"#
    }
    fn fi_get_val(fid: *mut fid, name: c_int, val: *mut c_void) -> c_int {
        rust {
            let mut var = fi_fid_var { name, val };
            fi_control(fid, FI_GET_VAL as c_int, (&raw mut var).cast())
        }
        c r#"
struct fi_fid_var var;

var.name = name;
var.val = val;
return fi_control(fid, FI_GET_VAL, &var);
"#
    }
    fn fi_set_val(fid: *mut fid, name: c_int, val: *mut c_void) -> c_int {
        rust {
            let mut var = fi_fid_var { name, val };
            fi_control(fid, FI_SET_VAL as c_int, (&raw mut var).cast())
        }
        c r#"
struct fi_fid_var var;

var.name = name;
var.val = val;
return fi_control(fid, FI_SET_VAL, &var);
"#
    }
    fn fi_open_ops(fid: *mut fid, name: *const c_char, flags: u64, ops: *mut *mut c_void, context: *mut c_void) -> c_int {
        slot ((*fid).ops).ops_open(fid, name, flags, ops, context)
    }
    fn fi_set_ops(fid: *mut fid, name: *const c_char, flags: u64, ops: *mut c_void, context: *mut c_void) -> c_int {
        checked ((*fid).ops).ops_set(fid, name, flags, ops, context)
    }
}
