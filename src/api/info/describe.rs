//! Values as a reader of the log wants them: by their names. The one place where fi_getinfo turns values into text.

use crate::abi::types::*;
use crate::api::errno::{self, Errno};
use crate::api::tostr::{enums, flags};

/// A value of the given kind. `FI_TYPE_INFO` stands for a plain number.
pub fn describe_flags(kind: fi_type, value: u64) -> String {
    match kind {
        FI_TYPE_CAPS => bits(flags::CAPS, value),
        FI_TYPE_MODE => bits(flags::MODE, value),
        FI_TYPE_OP_FLAGS => bits(flags::OP_FLAGS, value),
        FI_TYPE_MSG_ORDER => bits(flags::MSG_ORDER, value),
        FI_TYPE_MR_MODE => bits(flags::MR_MODE, value),
        FI_TYPE_EP_TYPE => one(enums::EP_TYPE, value),
        FI_TYPE_ADDR_FORMAT => one(enums::ADDR_FORMAT, value),
        FI_TYPE_PROTOCOL => one(enums::PROTOCOL, value),
        FI_TYPE_PROGRESS => one(enums::PROGRESS, value),
        FI_TYPE_THREADING => one(enums::THREADING, value),
        FI_TYPE_AV_TYPE => one(enums::AV_TYPE, value),
        FI_TYPE_VERSION => describe_version(value as u32),
        _ => value.to_string(),
    }
}

/// Names in brackets; bits without a name are there too, as a number, so that nothing is hidden.
fn bits(names: flags::FlagNames, value: u64) -> String {
    let known = names.iter().filter(|(bit, _)| value & bit != 0);
    let rest = known.clone().fold(value, |rest, (bit, _)| rest & !bit);
    let named = known.map(|(_, name)| (*name).to_owned());
    let unnamed = (rest != 0).then(|| format!("{rest:#x}"));
    format!("[{}]", named.chain(unnamed).collect::<Vec<_>>().join(", "))
}

fn one(names: enums::EnumNames, value: u64) -> String {
    let name = u32::try_from(value).map_or("Unknown", |value| enums::name(names, value));
    if name == "Unknown" {
        value.to_string()
    } else {
        name.to_owned()
    }
}

pub fn describe_version(version: u32) -> String {
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// The number and its text: `-61 (No data available)`.
pub fn describe_error(error: Errno) -> String {
    format!("{} ({})", error.code(), errno::text(error.0).to_string_lossy())
}
