//! Which providers there are: the registry, the order they are asked in, and the plug-ins found on disk.
//!
//! Knows `api` for the values it trades in and `sys` for the loader. Called by `abi::entry`.
