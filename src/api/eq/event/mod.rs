//! What an event queue holds, and the C structs it becomes.
//!
//! Knows layouts, not what events mean. Called by `eq`, by those who post, and by the shims.

use crate::abi::types::{FI_CONNECTED, FI_CONNREQ, FI_SHUTDOWN, fi_eq_cm_entry, fi_eq_entry, fi_eq_err_entry};
use core::ffi::{c_int, c_void};
use core::mem::offset_of;

/// Below this API version a program has no say in where error data goes. As the C macro FI_VERSION.
const WITH_ERR_DATA_BUFFER: u32 = (1 << 16) | 5;

/// An event that is not an error: its number, the object it is about (0: none), and the C struct as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub event: u32,
    pub fid: usize,
    pub bytes: Box<[u8]>,
}

/// The bytes of a `struct fi_eq_entry`.
pub fn entry_bytes(fid: usize, context: usize, data: u64) -> [u8; size_of::<fi_eq_entry>()] {
    let mut bytes = [0; size_of::<fi_eq_entry>()];
    for (at, word) in [
        (offset_of!(fi_eq_entry, fid), fid as u64),
        (offset_of!(fi_eq_entry, context), context as u64),
        (offset_of!(fi_eq_entry, data), data),
    ] {
        bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The bytes of a `struct fi_eq_cm_entry`, with the program's data behind it. `info`: the address of a C struct.
pub fn connection_bytes(fid: usize, info: usize, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; offset_of!(fi_eq_cm_entry, data)];
    for (at, word) in [
        (offset_of!(fi_eq_cm_entry, fid), fid),
        (offset_of!(fi_eq_cm_entry, info), info),
    ] {
        bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    }
    bytes.extend_from_slice(data);
    bytes
}

impl Event {
    /// The C struct behind a connection request.
    pub fn info(&self) -> Option<usize> {
        let at = offset_of!(fi_eq_cm_entry, info);
        let word = self.bytes.get(at..at + 8).filter(|_| self.event == FI_CONNREQ)?;
        word.try_into().ok().map(usize::from_ne_bytes)
    }

    /// How many bytes a program gets that has `room` for them; None: too few. Only the data of connection events may be
    /// cut short.
    pub fn fits(&self, room: usize) -> Option<usize> {
        let needed = match self.event {
            FI_CONNREQ | FI_CONNECTED | FI_SHUTDOWN => self.bytes.len().min(offset_of!(fi_eq_cm_entry, data)),
            _ => self.bytes.len(),
        };
        (room >= needed).then(|| room.min(self.bytes.len()))
    }
}

/// An operation or an object that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorEvent {
    pub fid: usize,
    pub context: usize,
    pub data: u64,
    /// Positive.
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: Vec<u8>,
}

/// How a program gets an error event.
#[derive(Clone, Copy)]
pub struct ErrorEventReply {
    /// The struct, whose `err_data` points to the program's buffer or to the queue's own copy.
    pub entry: fi_eq_err_entry,
    /// Bytes of the error's data to copy into the program's buffer first.
    pub copy: usize,
}

impl ErrorEvent {
    /// `err_data` and `err_data_size`: what the program put there.
    pub fn answer(&self, api: u32, err_data: *mut c_void, err_data_size: usize) -> ErrorEventReply {
        let own_buffer = api >= WITH_ERR_DATA_BUFFER && err_data_size != 0 && !err_data.is_null();
        let copy = if own_buffer {
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
        ErrorEventReply {
            entry: fi_eq_err_entry {
                fid: self.fid as *mut _,
                context: self.context as *mut c_void,
                data: self.data,
                err: self.err,
                prov_errno: self.prov_errno,
                err_data,
                err_data_size,
            },
            copy,
        }
    }
}

#[cfg(test)]
mod tests;
