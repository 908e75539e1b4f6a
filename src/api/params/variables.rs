//! The variables of the core, in the order fi_getparams shows them. `docs/environment.md` tells the same at length.
//!
//! Knows only names, kinds and help texts; who uses a variable reads it by `params::core_*`.

use super::ParamType;

pub const VARIABLES: &[(&str, ParamType, &str)] = &[
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
        "Hooks to put around each provider, joined by semicolons (default: none)",
    ),
    (
        "fork_unsafe",
        ParamType::Bool,
        "Let providers save work that fork needs; fork is then not safe (default: no)",
    ),
    (
        "universe_size",
        ParamType::Size,
        "How many peers to expect (default: 1024, unless the provider says otherwise)",
    ),
    (
        "av_remove_cleanup",
        ParamType::Bool,
        "Drop what is kept for a peer, connections too, when it leaves the address vector (default: false)",
    ),
    (
        "offload_coll_provider",
        ParamType::String,
        "The provider to offload collectives to (default: none)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _, _) in VARIABLES {
            let row = format!("| `FI_{}` |", name.to_ascii_uppercase());
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
