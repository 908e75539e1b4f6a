//! The C side of fi_tostr and fi_tostr_r: reads the value that the datatype says, and writes the text where C wants it.
//!
//! `read` opens the structs that only these two calls read. The wording is `api::tostr`'s. Called by `abi::entry`;
//! `nic_tostr` also by C, through the op table of a nic.

mod read;
#[cfg(test)]
mod tests;

use super::info_read;
use super::layout::CURRENT;
use super::types::*;
use crate::api::tostr::info::AddressField;
use crate::api::tostr::{Pointer, Text, enums, flags, info, nic, objects};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::cell::UnsafeCell;

/// The size of the buffer behind fi_tostr.
const BUFFER: usize = 8192;

/// The most that an object may say about itself: a caller's buffer may be of any size, and ours must not grow with it.
const OBJECT_TEXT: usize = 65536;

thread_local! {
    /// What fi_tostr returned last in this thread. Plain bytes, with nothing to drop: a destructor here would keep the
    /// library loaded after dlclose until the thread ends.
    static ANSWER: UnsafeCell<[u8; BUFFER]> = const { UnsafeCell::new([0; BUFFER]) };
}

/// fi_tostr. The text stays until the thread's next call.
///
/// # Safety
/// `data` is NULL or points to a value of the datatype.
pub unsafe fn tostr(data: *const c_void, datatype: fi_type) -> *mut c_char {
    // SAFETY: fi_tostr's caller passes NULL or a value of the datatype.
    let Some(text) = (unsafe { to_text(data, datatype, BUFFER) }) else {
        return ptr::null_mut();
    };
    ANSWER.with(|answer| {
        let buffer = answer.get().cast();
        // SAFETY: the buffer has BUFFER bytes and is this thread's alone; `text` is shorter.
        unsafe { put(buffer, BUFFER, &text) };
        buffer
    })
}

/// fi_tostr_r.
///
/// # Safety
/// As `tostr`; `buf` is NULL or has `len` bytes.
pub unsafe fn tostr_r(buf: *mut c_char, len: usize, data: *const c_void, datatype: fi_type) -> *mut c_char {
    if buf.is_null() || len == 0 {
        return ptr::null_mut();
    }
    // SAFETY: fi_tostr_r's caller passes NULL or a value of the datatype.
    match unsafe { to_text(data, datatype, len) } {
        None => ptr::null_mut(),
        Some(text) => {
            // SAFETY: fi_tostr_r's caller passes `len` bytes.
            unsafe { put(buf, len, &text) };
            buf
        }
    }
}

/// Copies a text and its NUL.
///
/// # Safety
/// `buf` has `len` bytes, at least one.
unsafe fn put(buf: *mut c_char, len: usize, text: &[u8]) {
    let count = text.len().min(len - 1);
    // SAFETY: count + 1 <= len, and a fresh text does not overlap the caller's buffer.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), buf, count);
        buf.add(count).write(0);
    }
}

/// The text of a value, cut as for a buffer of `size` bytes. `None` when there is no value.
///
/// # Safety
/// As `tostr`.
pub unsafe fn to_text(data: *const c_void, datatype: fi_type, size: usize) -> Option<Vec<u8>> {
    if data.is_null() {
        return None;
    }
    let mut text = Text::new(size);
    // SAFETY: a value of the datatype, and a datatype is known to one of the three at most.
    let known = unsafe {
        add_enum(&mut text, data, datatype)
            || add_flags(&mut text, data, datatype)
            || add_struct(&mut text, data, datatype)
    };
    if !known {
        write!(text, "Unknown type");
    }
    Some(text.into_bytes())
}

/// # Safety
/// As `tostr`, `data` not NULL.
unsafe fn add_enum(text: &mut Text, data: *const c_void, datatype: fi_type) -> bool {
    let names = match datatype {
        FI_TYPE_EP_TYPE => enums::EP_TYPE,
        FI_TYPE_ADDR_FORMAT => enums::ADDR_FORMAT,
        FI_TYPE_THREADING => enums::THREADING,
        FI_TYPE_PROGRESS => enums::PROGRESS,
        FI_TYPE_PROTOCOL => enums::PROTOCOL,
        FI_TYPE_AV_TYPE => enums::AV_TYPE,
        FI_TYPE_ATOMIC_TYPE => enums::ATOMIC_TYPE,
        FI_TYPE_ATOMIC_OP => enums::ATOMIC_OP,
        FI_TYPE_EQ_EVENT => enums::EQ_EVENT,
        FI_TYPE_OP_TYPE => enums::OP_TYPE,
        FI_TYPE_COLLECTIVE_OP => enums::COLLECTIVE_OP,
        FI_TYPE_HMEM_IFACE => enums::HMEM_IFACE,
        FI_TYPE_CQ_FORMAT => enums::CQ_FORMAT,
        FI_TYPE_LOG_LEVEL => enums::LOG_LEVEL,
        FI_TYPE_LOG_SUBSYS => enums::LOG_SUBSYS,
        FI_TYPE_CQ_WAIT_COND => enums::CQ_WAIT_COND,
        FI_TYPE_WAIT_OBJ => enums::WAIT_OBJ,
        _ => return false,
    };
    // SAFETY: these types are ints in C.
    let value = unsafe { data.cast::<u32>().read_unaligned() };
    write!(text, "{}", enums::name(names, value));
    true
}

/// # Safety
/// As `tostr`, `data` not NULL.
unsafe fn add_flags(text: &mut Text, data: *const c_void, datatype: fi_type) -> bool {
    let names = match datatype {
        FI_TYPE_CAPS => flags::CAPS,
        FI_TYPE_OP_FLAGS => flags::OP_FLAGS,
        FI_TYPE_MSG_ORDER => flags::MSG_ORDER,
        FI_TYPE_MODE => flags::MODE,
        FI_TYPE_CQ_EVENT_FLAGS => flags::CQ_EVENT,
        FI_TYPE_MR_MODE => flags::MR_MODE,
        _ => return false,
    };
    // SAFETY: these sets are 64 bits wide, all but the memory mode, which is an int.
    let bits = unsafe {
        match datatype {
            FI_TYPE_MR_MODE => data.cast::<u32>().read_unaligned().into(),
            _ => data.cast::<u64>().read_unaligned(),
        }
    };
    flags::add(text, names, bits);
    true
}

/// # Safety
/// As `tostr`, `data` not NULL.
unsafe fn add_struct(text: &mut Text, data: *const c_void, datatype: fi_type) -> bool {
    // SAFETY: the datatype says which struct it is.
    unsafe {
        match datatype {
            FI_TYPE_INFO => add_info(text, data.cast()),
            FI_TYPE_TX_ATTR => info::tx_attr(text, 0, Some(&info_read::tx(&*data.cast()))),
            FI_TYPE_RX_ATTR => info::rx_attr(text, 0, Some(&info_read::rx(&*data.cast()))),
            FI_TYPE_EP_ATTR => info::ep_attr(text, 0, Some(&info_read::ep(&*data.cast()))),
            FI_TYPE_DOMAIN_ATTR => info::domain_attr(text, 0, Some(&info_read::domain(&*data.cast()))),
            FI_TYPE_FABRIC_ATTR => info::fabric_attr(text, 0, Some(&info_read::fabric(&*data.cast()))),
            FI_TYPE_VERSION => write!(text, "{FI_MAJOR_VERSION}.{FI_MINOR_VERSION}.{FI_REVISION_VERSION}"),
            FI_TYPE_FID => add_fid(text, "fid: ", data.cast()),
            FI_TYPE_AV_ATTR => objects::av_attr(text, &read::av(data.cast())),
            FI_TYPE_CQ_ATTR => objects::cq_attr(text, &data.cast::<fi_cq_attr>().read_unaligned()),
            FI_TYPE_MR_ATTR => objects::mr_attr(text, &read::mr(data.cast())),
            FI_TYPE_CNTR_ATTR => objects::cntr_attr(text, &data.cast::<fi_cntr_attr>().read_unaligned()),
            FI_TYPE_CQ_ERR_ENTRY => objects::cq_err_entry(text, &read::cq_err_entry(data.cast())),
            _ => return false,
        }
    }
    true
}

/// # Safety
/// `data` points to an info whose pointers are NULL or good.
unsafe fn add_info(text: &mut Text, data: *const fi_info) {
    // SAFETY: an info of today's layout.
    unsafe {
        let value = info_read::read(data, &CURRENT);
        let src = AddressField {
            at: (*data).src_addr.addr(),
            len: (*data).src_addrlen,
        };
        let dest = AddressField {
            at: (*data).dest_addr.addr(),
            len: (*data).dest_addrlen,
        };
        info::head(text, &value, src, dest);
        add_fid(text, "    handle: ", (*data).handle);
        info::parts(text, &value);
        add_fid(text, "    nic: ", (*data).nic.cast());
    }
}

/// An object whose ops have a tostr writes its own text, without the label; of any other the address is written.
///
/// # Safety
/// `object` is NULL or a live fid.
unsafe fn add_fid(text: &mut Text, label: &str, object: *const fid) {
    // SAFETY: NULL or a live fid.
    let Some(speak) = (unsafe { tostr_op(object) }) else {
        return writeln!(text, "{label}{}", Pointer(object.addr()));
    };
    // A buffer of its own: C providers append to what they find in it, and count its size from the start.
    let mut said = vec![0u8; text.left().clamp(1, OBJECT_TEXT)];
    // SAFETY: the op takes its own fid and a buffer of that size that holds an empty string.
    unsafe { speak(object, said.as_mut_ptr().cast(), said.len()) };
    text.add_piece(said.split(|byte| *byte == 0).next().unwrap_or_default());
}

type TostrOp = unsafe extern "C" fn(fid: *const fid, buf: *mut c_char, len: usize) -> c_int;

/// The object's own tostr, if it has ops and they are new enough to have one.
///
/// # Safety
/// As `add_fid`.
unsafe fn tostr_op(object: *const fid) -> Option<TostrOp> {
    // SAFETY: a live fid; the table's size says whether it has the field.
    unsafe {
        let ops = object.as_ref()?.ops;
        if ops.is_null() || (*ops).size <= core::mem::offset_of!(fi_ops, tostr) {
            return None;
        }
        (*ops).tostr
    }
}

/// The tostr op of a nic that this library made. Appends to the string in `buf`, which has `len` bytes.
///
/// # Safety
/// `object` is a `fid_nic`; `buf` is NULL or has `len` bytes.
pub unsafe extern "C" fn nic_tostr(object: *const fid, buf: *mut c_char, len: usize) -> c_int {
    if object.is_null() || buf.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live nic; strnlen looks at `len` bytes at most.
    unsafe {
        let used = libc::strnlen(buf, len);
        if used < len {
            let mut text = Text::new(len - used);
            nic::add(&mut text, &super::nic::read(object.cast()));
            put(buf.add(used), len - used, &text.into_bytes());
        }
    }
    FI_SUCCESS
}
