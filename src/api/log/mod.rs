//! The log: who may speak, at which level, about what, and where the lines go.
//!
//! Owns the default rules and the default output. What an application imported in their place is known only as a
//! `Sink`, which `abi::log_import` puts in. Called by everybody in the core through `log!`, and by `abi::log`.
//!
//! - `settings`: what the variables FI_LOG_* say.

mod settings;

use crate::api::names::NameList;
use crate::api::params;
use crate::sys::lock::{Held, Lock};
use crate::sys::{clock, errno, output};
use core::fmt::Arguments;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use settings::Settings;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

/// The levels of FI_LOG_LEVEL, least talkative first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Warn,
    Trace,
    Info,
    Debug,
}

/// The subsystems of FI_LOG_SUBSYS.
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

impl Level {
    pub const ALL: [Level; 4] = [Level::Warn, Level::Trace, Level::Info, Level::Debug];

    /// From the C enum, which may be any number.
    pub fn from_c(value: u32) -> Option<Level> {
        Level::ALL.get(value as usize).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Level::Warn => "warn",
            Level::Trace => "trace",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

impl Subsys {
    pub const ALL: [Subsys; 10] = [
        Subsys::Core,
        Subsys::Fabric,
        Subsys::Domain,
        Subsys::EpCtrl,
        Subsys::EpData,
        Subsys::Av,
        Subsys::Cq,
        Subsys::Eq,
        Subsys::Mr,
        Subsys::Cntr,
    ];

    /// From the C enum, which may be any number.
    pub fn from_c(value: u32) -> Option<Subsys> {
        Subsys::ALL.get(value as usize).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Subsys::Core => "core",
            Subsys::Fabric => "fabric",
            Subsys::Domain => "domain",
            Subsys::EpCtrl => "ep_ctrl",
            Subsys::EpData => "ep_data",
            Subsys::Av => "av",
            Subsys::Cq => "cq",
            Subsys::Eq => "eq",
            Subsys::Mr => "mr",
            Subsys::Cntr => "cntr",
        }
    }
}

/// Whose lines they are: the core's, or those of a provider of ours, by its name.
pub type Speaker = &'static str;
pub const CORE: Speaker = "core";

/// What may stand in for the default rules and the default output, for lines of the core and of our own providers.
pub trait Sink: Sync {
    /// Whether a line is wanted; None leaves it to the default rules.
    fn enabled(&self, speaker: Speaker, level: Level, subsys: Subsys) -> Option<bool>;
    /// Takes a line, which ends with a newline; false leaves it to the default output.
    fn write(&self, speaker: Speaker, level: Level, subsys: Subsys, func: &str, line: u32, text: &str) -> bool;
}

static SINK: OnceLock<&'static dyn Sink> = OnceLock::new();

/// Puts in the sink that is asked before the default rules. There is one in the library; later calls change nothing.
pub fn set_sink(sink: &'static dyn Sink) {
    let _ = SINK.set(sink);
}

/// The levels and subsystems that may speak, one bit each, and READY once the settings have been read. One word, so
/// that a line nobody wants costs a load and a test.
static MASK: AtomicU32 = AtomicU32::new(0);
const SUBSYS_SHIFT: u32 = Level::ALL.len() as u32;
const READY: u32 = 1 << 31;

static INTERVAL_MS: AtomicU64 = AtomicU64::new(0);
static OUTPUT_FD: AtomicI32 = AtomicI32::new(output::STDERR);

/// Settings other than those in the words above.
struct Kept {
    providers: NameList,
    /// Kept open; the words above have its number.
    _file: Option<OwnedFd>,
}

static KEPT: Lock<Kept> = Lock::new(Kept {
    providers: NameList::none(),
    _file: None,
});

/// For the list of locks that fork waits for.
pub(crate) static LOCK: &dyn Held = &KEPT;

/// Reads the settings, once. All functions here call it when they need to; calling it early only fixes the moment.
pub fn init() {
    if MASK.load(Ordering::Acquire) & READY != 0 {
        return;
    }
    if let Some(complaints) = read_settings() {
        // Only now: writing a line while the settings are read would come back here.
        complaints.into_iter().for_each(|text| note(Level::Warn, &text));
        params::config_notes()
            .into_iter()
            .for_each(|(level, text)| note(level, &text));
    }
}

/// Reads the settings. Returns complaints about them, or None if another thread was first. SYNC POINT: the Release of
/// MASK pairs with the Acquire in `init` and `mask`: who sees READY sees the rest.
fn read_settings() -> Option<Vec<String>> {
    let mut kept = KEPT.lock();
    if MASK.load(Ordering::Relaxed) & READY != 0 {
        return None;
    }
    let mut settings = Settings::read();
    let file = settings.open_file();
    let fd = file.as_ref().map_or(settings.standard_fd(), AsRawFd::as_raw_fd);
    OUTPUT_FD.store(fd, Ordering::Relaxed);
    INTERVAL_MS.store(settings.interval_ms, Ordering::Relaxed);
    *kept = Kept {
        providers: settings.providers,
        _file: file,
    };
    MASK.store(mask_of(settings.level, &settings.subsystems) | READY, Ordering::Release);
    Some(settings.complaints)
}

fn mask_of(level: Option<Level>, subsystems: &[Subsys]) -> u32 {
    let levels = level.map_or(0, |level| (2 << level as u32) - 1);
    subsystems
        .iter()
        .fold(levels, |mask, subsys| mask | 1 << (SUBSYS_SHIFT + *subsys as u32))
}

fn allows(mask: u32, level: Level, subsys: Subsys) -> bool {
    let wanted = 1 << level as u32 | 1 << (SUBSYS_SHIFT + subsys as u32);
    mask & wanted == wanted
}

fn mask() -> u32 {
    let mask = MASK.load(Ordering::Acquire);
    if mask & READY != 0 {
        return mask;
    }
    init();
    MASK.load(Ordering::Acquire)
}

/// Closes the log file, for the unloading of the library. What is written later goes to stderr.
pub fn close() {
    let mut kept = KEPT.lock();
    OUTPUT_FD.store(output::STDERR, Ordering::Relaxed);
    *kept = Kept {
        providers: NameList::none(),
        _file: None,
    };
}

/// Whether the default rules let a line of this level and subsystem through.
pub fn default_enabled(level: Level, subsys: Subsys) -> bool {
    allows(mask(), level, subsys)
}

/// Whether FI_LOG_PROV silences a provider.
pub fn provider_silenced(name: &str) -> bool {
    init();
    !KEPT.lock().providers.lets_through(name)
}

/// The pause between two lines of one rate-limited site.
pub fn interval_ms() -> u64 {
    init();
    INTERVAL_MS.load(Ordering::Relaxed)
}

/// Whether a line of the core itself would be written.
pub fn core_enabled(level: Level, subsys: Subsys) -> bool {
    enabled(CORE, level, subsys)
}

/// Whether a line of the core or of a provider of ours would be written.
pub fn enabled(speaker: Speaker, level: Level, subsys: Subsys) -> bool {
    let imported = SINK.get().and_then(|sink| sink.enabled(speaker, level, subsys));
    let by_rule = || default_enabled(level, subsys) && (speaker == CORE || !provider_silenced(speaker));
    imported.unwrap_or_else(by_rule)
}

/// Writes a line of the core itself.
pub fn core_write(level: Level, subsys: Subsys, func: &str, line: u32, text: Arguments) {
    write(CORE, level, subsys, func, line, text);
}

/// Writes a line of the core or of a provider of ours.
pub fn write(speaker: Speaker, level: Level, subsys: Subsys, func: &str, line: u32, text: Arguments) {
    let _errno = errno::keep();
    let func = short_name(func);
    let text = format!("{text}\n");
    if !SINK
        .get()
        .is_some_and(|sink| sink.write(speaker, level, subsys, func, line, &text))
    {
        let site = CallSite {
            provider: speaker.as_bytes(),
            subsys: subsys.name(),
            func: func.as_bytes(),
            line: i64::from(line),
        };
        default_write(level.name(), &site, text.as_bytes());
    }
}

/// Module paths have colons, which would confuse who takes the lines apart at them: their last part must do.
fn short_name(module: &str) -> &str {
    module.rsplit("::").next().unwrap_or(module)
}

/// A line about the log's settings or the configuration file. The default rules hold it back by level only:
/// FI_LOG_SUBSYS may be where the mistake lies.
fn note(level: Level, text: &str) {
    let imported = SINK.get().and_then(|sink| sink.enabled(CORE, level, Subsys::Core));
    let by_level = || mask() & 1 << level as u32 != 0;
    let wanted = if level == Level::Warn {
        imported.unwrap_or_else(by_level)
    } else {
        core_enabled(level, Subsys::Core)
    };
    if wanted {
        core_write(level, Subsys::Core, module_path!(), line!(), format_args!("{text}"));
    }
}

/// Where a line comes from.
pub struct CallSite<'a> {
    pub provider: &'a [u8],
    pub subsys: &'a str,
    pub func: &'a [u8],
    pub line: i64,
}

/// Writes a line to where FI_LOG_LOCATION says, at once and in one piece.
pub fn default_write(level: &str, site: &CallSite, text: &[u8]) {
    init();
    let line = format_line(std::process::id(), clock::wall_seconds(), level, site, text);
    output::write(OUTPUT_FD.load(Ordering::Relaxed), &line);
}

/// The C library's line: `libfabric:PID:TIME:PREFIX:PROVIDER:SUBSYS:FUNC():LINE<LEVEL> TEXT`. The prefix is empty: it
/// names a layered provider at work in a provider below it, of which this core has none.
fn format_line(pid: u32, time: u64, level: &str, site: &CallSite, text: &[u8]) -> Vec<u8> {
    let mut line = format!("libfabric:{pid}:{time}::").into_bytes();
    line.extend_from_slice(site.provider);
    line.extend_from_slice(format!(":{}:", site.subsys).as_bytes());
    line.extend_from_slice(site.func);
    line.extend_from_slice(format!("():{}<{level}> ", site.line).as_bytes());
    line.extend_from_slice(text);
    if !text.ends_with(b"\n") {
        line.push(b'\n');
    }
    line
}

/// `log!(Warn, Core, "text {}", x)`: a line of the core, formatted only if someone listens. `log!(by name; Warn, Av,
/// ...)`: one of a provider of ours.
macro_rules! log {
    (by $speaker:expr; $level:ident, $subsys:ident, $($text:tt)+) => {{
        use $crate::api::log::{self, Level, Subsys};
        let speaker: log::Speaker = $speaker;
        if log::enabled(speaker, Level::$level, Subsys::$subsys) {
            log::write(speaker, Level::$level, Subsys::$subsys, module_path!(), line!(), format_args!($($text)+));
        }
    }};
    ($level:ident, $subsys:ident, $($text:tt)+) => {
        log!(by $crate::api::log::CORE; $level, $subsys, $($text)+)
    };
}

#[cfg(test)]
mod tests;
