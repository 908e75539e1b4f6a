//! What goes into fi_getinfo and what comes out, on its way between the C caller, the core and the providers.

use super::model::Info;
use core::any::Any;

/// One fi_getinfo call.
pub struct Query<'a> {
    pub version: u32,
    pub node: Option<&'a str>,
    pub service: Option<&'a str>,
    pub flags: u64,
    pub hints: Option<&'a Info>,
    /// The caller's C arguments, for plug-ins that are given them as they came (`abi::plugin` knows the type).
    pub raw: Option<&'a dyn Any>,
}

/// One info that a provider offers.
pub struct Answer {
    pub info: Info,
    /// What the provider wants handed out in place of a fresh C struct: a plug-in's own fi_info (`abi::plugin` knows
    /// the type).
    pub own: Option<Box<dyn Any>>,
}
