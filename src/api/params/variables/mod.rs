//! The variables of the core, in the order fi_getparams shows them. `docs/environment.md` tells the same at length.
//!
//! Knows only names, types and help texts; who uses a variable reads it by `params::core_*`. All that the C library has
//! are defined, as plug-ins built for it ask for them; those that nothing here heeds say so in their help.

use super::ParamType;

/// Name, type and help text.
pub(super) const VARIABLES: &[(&str, ParamType, &str)] = &[
    (
        "prefer_sysconfig",
        ParamType::Bool,
        "Let libfabric.conf win where it and the environment both set a variable (default: false)",
    ),
    (
        "log_interval",
        ParamType::Int,
        "Pause in ms between two lines of a rate-limited message (default: 2000)",
    ),
    (
        "log_level",
        ParamType::String,
        "How much to log: warn, trace, info or debug (default: nothing is logged)",
    ),
    (
        "log_prov",
        ParamType::String,
        "Providers to log, comma-separated; with ^ before the list: all others (default: all)",
    ),
    (
        "log_subsys",
        ParamType::String,
        "Subsystems to log, comma-separated; with ^ before the list: all others (default: all)",
    ),
    (
        "log_location",
        ParamType::String,
        "Where to log: stderr, stdout, a file that must not exist yet, or a folder (default: stderr)",
    ),
    (
        "log_location_mode",
        ParamType::Int,
        "Mode of the log file (default: 0600)",
    ),
    (
        "provider",
        ParamType::String,
        "Providers to use, comma-separated; with ^ before the list: all others (default: all)",
    ),
    (
        "provider_path",
        ParamType::String,
        "Where to look for plug-ins: folders, or + and a plug-in's file, joined by colons; with @ before the list the \
         first of a name wins, not the newest (default: the loader's path and the library's own folder)",
    ),
    (
        "hook",
        ParamType::String,
        "Hooks to put around each provider, joined by semicolons; ignored with a warning, as there are none yet \
         (default: none)",
    ),
    (
        "fork_unsafe",
        ParamType::Bool,
        "Let providers save work that fork needs; ignored but by plug-ins: the library's own providers need none \
         (default: no)",
    ),
    (
        "universe_size",
        ParamType::Size,
        "How many peers to expect; ignored but by plug-ins: the library's own tables grow as peers come \
         (default: 1024, unless the provider says otherwise)",
    ),
    (
        "av_remove_cleanup",
        ParamType::Bool,
        "Drop what is kept for a peer, connections too, when it leaves the address vector; ignored but by plug-ins: \
         the library itself has no connections, and drops what it keeps when it needs the room (default: false)",
    ),
    (
        "offload_coll_provider",
        ParamType::String,
        "The provider to offload collectives to; ignored: collectives run on the endpoint's own provider \
         (default: none)",
    ),
    (
        "mr_cache_max_size",
        ParamType::Size,
        "Bytes of memory that a domain's registrations are kept of while nobody uses them (default: any number)",
    ),
    (
        "mr_cache_max_count",
        ParamType::Size,
        "How many registrations a domain keeps while nobody uses them; 0: none (default: 1024)",
    ),
    (
        "mr_cache_monitor",
        ParamType::String,
        "Who tells of memory that goes, so that registrations can be kept: userfaultfd, or disabled, which keeps none \
         (default: userfaultfd)",
    ),
];

#[cfg(test)]
mod tests;
