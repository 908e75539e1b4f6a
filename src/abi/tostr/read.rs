//! C structs that only fi_tostr reads, as far as their texts need them; fi_info and its parts are `info_read`'s.
//!
//! Memory lists and wait sets are not followed. Called by `abi::tostr` only.

use crate::abi::text;
use crate::abi::types::*;
use crate::api::tostr::objects;

/// # Safety
/// `attr` is good; so for the readers below, up to the last field they name.
pub(super) unsafe fn av(attr: *const fi_av_attr) -> objects::AvAttr {
    // SAFETY: the caller vouches for the attributes, and for the name if there is one.
    unsafe {
        objects::AvAttr {
            av_type: (*attr).r#type,
            count: (*attr).count,
            ep_per_node: (*attr).ep_per_node,
            name: text::read((*attr).name),
            flags: (*attr).flags,
        }
    }
}

pub(super) unsafe fn mr(attr: *const fi_mr_attr) -> objects::MrAttr {
    // SAFETY: the caller vouches for the attributes; either side of the union is a pointer, which is not followed.
    unsafe {
        objects::MrAttr {
            mr_iov: (*attr).anonymous.mr_iov.addr(),
            iov_count: (*attr).iov_count,
            access: (*attr).access,
            offset: (*attr).offset,
            requested_key: (*attr).requested_key,
            context: (*attr).context.addr(),
            auth_key_size: (*attr).auth_key_size,
            iface: (*attr).iface,
        }
    }
}

pub(super) unsafe fn cq_err_entry(entry: *const fi_cq_err_entry) -> objects::CqErrEntry {
    // SAFETY: the caller vouches for the entry.
    unsafe {
        objects::CqErrEntry {
            op_context: (*entry).op_context.addr(),
            flags: (*entry).flags,
            len: (*entry).len,
            buf: (*entry).buf.addr(),
            data: (*entry).data,
            tag: (*entry).tag,
            olen: (*entry).olen,
            err: (*entry).err,
            err_data: (*entry).err_data.addr(),
            err_data_size: (*entry).err_data_size,
        }
    }
}
