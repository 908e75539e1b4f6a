//! Values as a reader of the log wants them: by their names. The one place where fi_getinfo turns flags into text.

use crate::abi::types::*;
use crate::api::errno::Errno;

/// A value of the given kind. `FI_TYPE_INFO` stands for a plain number.
pub fn describe_flags(kind: fi_type, value: u64) -> String {
    match kind {
        FI_TYPE_INFO => value.to_string(),
        FI_TYPE_VERSION => describe_version(value as u32),
        _ => format!("{value:#x}"),
    }
}

pub fn describe_version(version: u32) -> String {
    format!("{}.{}", version >> 16, version & 0xffff)
}

pub fn describe_error(error: Errno) -> String {
    error.code().to_string()
}
