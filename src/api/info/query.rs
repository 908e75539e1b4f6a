//! What goes into fi_getinfo and what comes out, on its way between the C caller, the core and the providers.

use super::address::Found;
use super::model::Info;
use crate::abi::types::*;
use core::any::Any;

/// The provider was asked by a provider, not by the application: its answer is not filtered by names.
pub const GETINFO_INTERNAL: u64 = 1 << 58;
/// A utility provider looks for a core provider to stand on.
pub const CORE_PROV_ONLY: u64 = 1 << 59;
/// Ask the providers that FI_PROVIDER or a better version of theirs hides as well.
pub const GETINFO_HIDDEN: u64 = 1 << 60;
/// Ask the offload providers too.
pub const OFFLOAD_PROV_ONLY: u64 = 1 << 61;

/// As the C macro FI_VERSION. Versions compare as numbers.
pub const fn fi_version(major: u32, minor: u32) -> u32 {
    (major << 16) | (minor & 0xffff)
}

pub const LIBRARY_VERSION: u32 = fi_version(FI_MAJOR_VERSION as u32, FI_MINOR_VERSION as u32);

/// One fi_getinfo call.
pub struct Query<'a> {
    pub version: u32,
    pub node: Option<&'a str>,
    pub service: Option<&'a str>,
    pub flags: u64,
    pub hints: Option<&'a Info>,
    /// What names were found to be, for all providers. None: nobody remembers.
    pub found: Option<&'a Found>,
    /// The caller's C arguments, for plug-ins that are given them as they came (`abi::plugin` knows the type).
    pub raw: Option<&'a dyn Any>,
}

impl<'a> Query<'a> {
    /// Whether the application speaks at least this version of the API.
    pub fn speaks(&self, major: u32, minor: u32) -> bool {
        self.version >= fi_version(major, minor)
    }

    pub fn has_flag(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// Whether a provider asks, not the application.
    pub fn is_internal(&self) -> bool {
        self.has_flag(CORE_PROV_ONLY | GETINFO_INTERNAL | GETINFO_HIDDEN)
    }

    /// The provider names asked for, as the application wrote them.
    pub fn prov_name(&self) -> Option<&'a str> {
        self.hints?.prov_name()
    }
}

/// One info that a provider offers.
pub struct Answer {
    pub info: Info,
    /// What the provider wants handed out in place of a fresh C struct: a plug-in's own fi_info (`abi::plugin` knows
    /// the type).
    pub own: Option<Box<dyn Any>>,
}
