//! Parameters: what the environment and the configuration file say to the core and to providers.

use crate::api::errno::Result;

/// As enum fi_param_type has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    Int,
    Bool,
    Size,
}

/// Who defined a parameter: the core (no owner) or a provider, told apart by the address of its struct fi_provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub usize);

impl Owner {
    pub const CORE: Owner = Owner(0);
}

/// Defines a parameter of the core; its variable is `FI_` + the name in capitals.
pub fn define_core(_name: &str, _kind: Kind, _help: &str) {}

/// The text set for a parameter of the core, or -FI_ENODATA when it is not set.
pub fn core_string(_name: &str) -> Result<String> {
    Err(crate::api::errno::Errno(crate::abi::types::FI_ENODATA))
}
