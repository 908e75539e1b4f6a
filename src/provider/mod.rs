//! Which providers there are: the registry, the order they are asked in, and the plug-ins found on disk.
//!
//! - `registry`: the providers in their order; `filter`: FI_PROVIDER; `external`: which plug-in files are tried;
//! - `getinfo`: fi_getinfo over all of them;
//! - `on_engine`: what the providers of this library have in common; `connected`, `datagrams`, `direct`: what those say
//!   besides that have connected endpoints, datagrams, or cards that need no engine; `settings`: how they read
//!   variables;
//! - `shm`, `tcp`, `verbs`, `auto`: these providers.
//!
//! Knows `api` for the values it trades in and `sys` for the loader; what is C about a plug-in lives in `abi::plugin`.
//! Called by `abi::entry`.

#![forbid(unsafe_code)]

use crate::api::errno::Result;
use crate::api::info::query::{Answer, Query};
use core::any::Any;

pub mod auto;
pub mod connected;
pub mod datagrams;
pub mod direct;
pub mod external;
pub mod filter;
pub mod getinfo;
pub mod on_engine;
pub mod registry;
mod settings;
pub mod shm;
pub mod tcp;
pub mod verbs;

/// What a provider is to the core, told by its name and by whether it answers getinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Moves data itself: tcp, shm, verbs.
    Core,
    /// Stands on top of a core provider: `ofi_*`.
    Utility,
    /// Does one job for others, only when asked: `off_*`.
    Offload,
    /// Joins several core providers: `lnx`.
    Link,
    /// Wraps any provider's objects; has no getinfo.
    Hook,
}

impl Kind {
    /// Letter case does not count.
    pub fn of(name: &str, answers_getinfo: bool) -> Kind {
        let begins = |prefix: &str| {
            name.get(..prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
        };
        if !answers_getinfo {
            Kind::Hook
        } else if begins(UTILITY_PREFIX) {
            Kind::Utility
        } else if begins("off_") {
            Kind::Offload
        } else if begins("lnx") {
            Kind::Link
        } else {
            Kind::Core
        }
    }
}

/// Whether utility providers stand on this one only when told to by name: it does itself what they would add.
pub fn refuses_layers(name: &str, kind: Kind) -> bool {
    const COMPLETE: &[&str] = &["sockets", "auto", "shm", "efa", "psm3", "ucx", "cxi"];
    kind == Kind::Utility || COMPLETE.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Names that begin so are those of utility providers, whoever wrote them.
pub const UTILITY_PREFIX: &str = "ofi_";

/// A provider as the core sees it: built in, or a plug-in written for the C library.
pub trait Provider: Send + Sync {
    fn name(&self) -> &str;
    /// The same with the name of what it stands on, if it stands on that alone: `tcp;ofi_rxm`. Several of one name that
    /// stand on different ones are all used.
    fn whole_name(&self) -> &str {
        self.name()
    }
    /// The provider's own version, as fi_info shows it.
    fn version(&self) -> u32;
    /// The API version it was written for.
    fn fi_version(&self) -> u32;
    fn kind(&self) -> Kind;
    /// It is asked only for those who name it, in hints or by FI_PROVIDER.
    fn is_only_by_name(&self) -> bool {
        false
    }
    /// The candidates that fit the query, best first; never an empty list.
    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>>;
    /// The provider as its own type, for the layer that made it; `None` where no one asks.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_name() {
        let rows = [
            ("tcp", true, Kind::Core),
            ("ofi_rxm", true, Kind::Utility),
            ("OFI_RXD", true, Kind::Utility),
            ("off_coll", true, Kind::Offload),
            ("lnx", true, Kind::Link),
            ("LNX2", true, Kind::Link),
            ("ofi_hook_noop", false, Kind::Hook),
            ("tcp", false, Kind::Hook),
            ("ofi", true, Kind::Core),
            ("öfi_", true, Kind::Core),
            ("", true, Kind::Core),
        ];
        for (name, answers, kind) in rows {
            assert_eq!(Kind::of(name, answers), kind, "{name}");
        }
    }
}
