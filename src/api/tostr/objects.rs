//! What opens an object, and what comes out of a completion queue, as text: the attributes of address vectors,
//! queues, counters and memory regions, and the error entry.

use super::enums::{self, name};
use super::flags;
use super::{Pointer, Text, or_null};
use crate::abi::types::{fi_cntr_attr, fi_cq_attr};

/// The lines of struct fi_av_attr.
pub struct AvAttr {
    pub av_type: u32,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: Option<String>,
    pub flags: u64,
}

/// The lines of struct fi_mr_attr. Pointers are shown, never followed; the struct may end after `iface` in older
/// programs.
pub struct MrAttr {
    pub mr_iov: usize,
    pub iov_count: usize,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: usize,
    pub auth_key_size: usize,
    pub iface: u32,
}

/// The lines of struct fi_cq_err_entry, which has no more than these in older programs.
pub struct CqErrEntry {
    pub op_context: usize,
    pub flags: u64,
    pub len: usize,
    pub buf: usize,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: i32,
    pub err_data: usize,
    pub err_data_size: usize,
}

pub fn av_attr(text: &mut Text, attr: &AvAttr) {
    text.open(0, "fi_av_attr");
    text.line(1, "type", name(enums::AV_TYPE, attr.av_type));
    text.line(1, "count", attr.count);
    text.line(1, "ep_per_node", attr.ep_per_node);
    text.line(1, "name", or_null(&attr.name));
    flags::line(text, 1, "flags", flags::AV_FLAGS, attr.flags);
}

pub fn cq_attr(text: &mut Text, attr: &fi_cq_attr) {
    text.open(0, "fi_cq_attr");
    text.line(1, "size", attr.size);
    flags::line(text, 1, "flags", flags::CQ_FLAGS, attr.flags);
    text.line(1, "format", name(enums::CQ_FORMAT, attr.format));
    text.line(1, "wait_obj", name(enums::WAIT_OBJ, attr.wait_obj));
    text.line(1, "signaling_vector", attr.signaling_vector);
    text.line(1, "wait_cond", name(enums::CQ_WAIT_COND, attr.wait_cond));
}

pub fn mr_attr(text: &mut Text, attr: &MrAttr) {
    text.open(0, "fi_mr_attr");
    text.line(1, "mr_iov", Pointer(attr.mr_iov));
    text.line(1, "iov_count", attr.iov_count);
    flags::line(text, 1, "access", flags::MR_ACCESS, attr.access);
    text.line(1, "offset", format_args!("0x{:x}", attr.offset));
    text.line(1, "requested_key", format_args!("0x{:x}", attr.requested_key));
    text.line(1, "context", Pointer(attr.context));
    text.line(1, "auth_key_size", attr.auth_key_size);
    text.line(1, "iface", name(enums::HMEM_IFACE, attr.iface));
}

pub fn cntr_attr(text: &mut Text, attr: &fi_cntr_attr) {
    text.open(0, "fi_cntr_attr");
    text.line(1, "events", name(enums::CNTR_EVENTS, attr.events));
    text.line(1, "wait_obj", name(enums::WAIT_OBJ, attr.wait_obj));
    text.line(1, "flags", format_args!("0x{:x}", attr.flags));
}

pub fn cq_err_entry(text: &mut Text, entry: &CqErrEntry) {
    text.open(0, "fi_cq_err_entry");
    text.line(1, "op_context", Pointer(entry.op_context));
    text.line(1, "flags", format_args!("0x{:x}", entry.flags));
    text.line(1, "len", entry.len);
    text.line(1, "buf", Pointer(entry.buf));
    text.line(1, "data", entry.data);
    text.line(1, "tag", format_args!("0x{:x}", entry.tag));
    text.line(1, "olen", entry.olen);
    text.line(1, "err", entry.err);
    // The C library shows the error code in this line too; the text is kept equal.
    text.line(1, "prov_errno", entry.err);
    text.line(1, "err_data", Pointer(entry.err_data));
    text.line(1, "err_data_size", entry.err_data_size);
}
