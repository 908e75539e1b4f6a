//! Raw keys of registered memory (fi_mr_raw_attr, fi_mr_map_raw, fi_mr_unmap_key): ours are the 8 bytes of the key
//! itself, so there is nothing to map, and nothing to free.
//!
//! Called by the control operations of regions and domains.

use crate::abi::types::*;
use core::ffi::{c_int, c_void};
use core::ptr::copy_nonoverlapping;

const SIZE: usize = size_of::<u64>();

/// FI_GET_RAW_MR of a region with this key, whose remote addresses count from `base`.
///
/// # Safety
/// `arg` is NULL or an fi_mr_raw_attr, and its buffer holds as many bytes as it says.
pub unsafe fn get(key: u64, base: u64, arg: *mut c_void) -> c_int {
    // SAFETY: FI_GET_RAW_MR has NULL or an fi_mr_raw_attr as its argument, whose buffer is as long as it says.
    unsafe {
        let Some(attr) = arg.cast::<fi_mr_raw_attr>().as_ref() else {
            return -FI_EINVAL;
        };
        if attr.key_size.is_null() {
            return -FI_EINVAL;
        }
        if attr.flags != 0 {
            return -(FI_EBADFLAGS as c_int);
        }
        let room = attr.key_size.replace(SIZE);
        if room < SIZE || attr.raw_key.is_null() {
            return -(FI_ETOOSMALL as c_int);
        }
        copy_nonoverlapping(key.to_ne_bytes().as_ptr(), attr.raw_key, SIZE);
        if !attr.base_addr.is_null() {
            attr.base_addr.write(base);
        }
    }
    FI_SUCCESS
}

/// Answers FI_MAP_RAW_MR and FI_UNMAP_KEY; None for any other command.
///
/// # Safety
/// `arg` is NULL or what the command says, and its key holds as many bytes as it says.
pub unsafe fn control(command: c_int, arg: *mut c_void) -> Option<c_int> {
    match command as u32 {
        // SAFETY: FI_MAP_RAW_MR has NULL or an fi_mr_map_raw as its argument.
        FI_MAP_RAW_MR => Some(unsafe { map(arg.cast()) }),
        FI_UNMAP_KEY => Some(if arg.is_null() { -FI_EINVAL } else { FI_SUCCESS }),
        _ => None,
    }
}

/// # Safety
/// As `control`.
unsafe fn map(arg: *const fi_mr_map_raw) -> c_int {
    // SAFETY: NULL or an fi_mr_map_raw, whose key has as many bytes as it says.
    unsafe {
        let Some(map) = arg.as_ref() else {
            return -FI_EINVAL;
        };
        if map.flags != 0 {
            return -(FI_EBADFLAGS as c_int);
        }
        if map.raw_key.is_null() || map.key.is_null() || map.key_size != SIZE {
            return -FI_EINVAL;
        }
        map.key
            .write(u64::from_ne_bytes(map.raw_key.cast::<[u8; SIZE]>().read_unaligned()));
    }
    FI_SUCCESS
}
