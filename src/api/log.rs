//! The log: who may speak, at which level, about what, and where the lines go.

/// As FI_LOG_LEVEL has them, least talkative first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Warn,
    Trace,
    Info,
    Debug,
}

/// As FI_LOG_SUBSYS has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subsys {
    Core,
    Fabric,
    Domain,
    EpCtrl,
    EpData,
    Av,
    Cq,
    Eq,
    Mr,
    Cntr,
}

/// Whether a line of the core itself would be written.
pub fn core_enabled(_level: Level, _subsys: Subsys) -> bool {
    false
}

/// Writes a line of the core itself.
pub fn core_write(_level: Level, _subsys: Subsys, _func: &str, _line: u32, _text: core::fmt::Arguments) {}

/// `log!(Warn, Core, "text {}", x)`: a line of the core, formatted only if someone listens.
macro_rules! log {
    ($level:ident, $subsys:ident, $($text:tt)+) => {{
        use $crate::api::log::{Level, Subsys};
        if $crate::api::log::core_enabled(Level::$level, Subsys::$subsys) {
            $crate::api::log::core_write(Level::$level, Subsys::$subsys, module_path!(), line!(), format_args!($($text)+));
        }
    }};
}
