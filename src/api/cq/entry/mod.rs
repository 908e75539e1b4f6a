//! What a completion queue holds, and the C structs it becomes.
//!
//! Knows the layouts of the API versions, not where a program wants its entries. Called by `cq` and its shims.

use crate::abi::types::fi_cq_err_entry;
use crate::abi::types::{FI_ADDR_NOTAVAIL, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_MSG};
use crate::abi::types::{FI_CQ_FORMAT_TAGGED, FI_CQ_FORMAT_UNSPEC, fi_addr_t, fi_cq_format};
use crate::util::user_array::UserArray;
use core::ffi::{c_int, c_void};
use core::mem::offset_of;

/// An operation that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub context: usize,
    pub flags: u64,
    pub len: usize,
    pub buf: usize,
    pub data: u64,
    pub tag: u64,
    /// FI_ADDR_NOTAVAIL when it is not known or not asked for.
    pub src: fi_addr_t,
}

impl Default for Entry {
    fn default() -> Self {
        Entry {
            context: 0,
            flags: 0,
            len: 0,
            buf: 0,
            data: 0,
            tag: 0,
            src: FI_ADDR_NOTAVAIL,
        }
    }
}

impl Entry {
    /// Writes it to the program's array, in the format of the queue. False: there is no room.
    #[inline(always)]
    pub fn put(&self, array: &mut UserArray) -> bool {
        let field = |at| match at {
            0 => self.context as u64,
            1 => self.flags,
            2 => self.len as u64,
            3 => self.buf as u64,
            4 => self.data,
            _ => self.tag,
        };
        array.put(field, self.src)
    }
}

/// The format of a queue, one of the four there are, by the words of its entries. UNSPEC is CONTEXT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Context = 1,
    Msg = 3,
    Data = 5,
    Tagged = 6,
}

impl Format {
    pub fn of(format: fi_cq_format) -> Option<Format> {
        match format {
            FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_CONTEXT => Some(Format::Context),
            FI_CQ_FORMAT_MSG => Some(Format::Msg),
            FI_CQ_FORMAT_DATA => Some(Format::Data),
            FI_CQ_FORMAT_TAGGED => Some(Format::Tagged),
            _ => None,
        }
    }

    /// Words of one entry. The structs of all formats begin alike: a longer one has more fields.
    pub fn words(self) -> usize {
        self as usize
    }
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorEntry {
    pub context: usize,
    pub flags: u64,
    pub len: usize,
    pub buf: usize,
    pub data: u64,
    pub tag: u64,
    /// Bytes that did not fit.
    pub olen: usize,
    /// Positive.
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: Vec<u8>,
    /// As the page has it: FI_ADDR_NOTAVAIL but for FI_AV_AUTH_KEY.
    pub src_addr: fi_addr_t,
}

impl Default for ErrorEntry {
    fn default() -> Self {
        ErrorEntry {
            context: 0,
            flags: 0,
            len: 0,
            buf: 0,
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: Vec::new(),
            src_addr: FI_ADDR_NOTAVAIL,
        }
    }
}

/// API versions from which the error entry has one field more. As the C macro FI_VERSION.
const WITH_ERR_DATA_SIZE: u32 = (1 << 16) | 5;
const WITH_SRC_ADDR: u32 = (1 << 16) | 20;

/// How a program that asked for `api` gets an error entry.
#[derive(Clone, Copy)]
pub struct ErrorEntryReply {
    /// The struct, whose `err_data` points to the program's buffer or to the queue's own copy.
    pub entry: fi_cq_err_entry,
    /// How many bytes of the struct may be written: older programs have a shorter one.
    pub size: usize,
    /// Bytes of the error's data to copy into the program's buffer first.
    pub copy: usize,
}

/// The size of the error entry in a program of this API version. Only one of more than 72 bytes has an `err_data_size`
/// that may be read.
pub fn error_size(api: u32) -> usize {
    if api < WITH_ERR_DATA_SIZE {
        offset_of!(fi_cq_err_entry, err_data_size)
    } else if api < WITH_SRC_ADDR {
        offset_of!(fi_cq_err_entry, src_addr)
    } else {
        size_of::<fi_cq_err_entry>()
    }
}

impl ErrorEntry {
    /// `err_data` and `err_data_size`: what the program put there; not looked at below API version 1.5.
    pub fn answer(&self, api: u32, err_data: *mut c_void, err_data_size: usize) -> ErrorEntryReply {
        let own_buffer = api >= WITH_ERR_DATA_SIZE && err_data_size != 0;
        let copy = if own_buffer && !err_data.is_null() {
            err_data_size.min(self.err_data.len())
        } else {
            0
        };
        let (err_data, err_data_size) = if own_buffer {
            (err_data, copy)
        } else if self.err_data.is_empty() {
            (core::ptr::null_mut(), 0)
        } else {
            (self.err_data.as_ptr().cast_mut().cast(), self.err_data.len())
        };
        ErrorEntryReply {
            entry: fi_cq_err_entry {
                op_context: self.context as *mut c_void,
                flags: self.flags,
                len: self.len,
                buf: self.buf as *mut c_void,
                data: self.data,
                tag: self.tag,
                olen: self.olen,
                err: self.err,
                prov_errno: self.prov_errno,
                err_data,
                err_data_size,
                src_addr: self.src_addr,
            },
            size: error_size(api),
            copy,
        }
    }
}

#[cfg(test)]
mod tests;
