//! The log calls as C has them: fi_log_enabled, fi_log_ready, fi_log, and the default callbacks behind them.
//!
//! Owns what C passes: struct fi_provider, enum values that may be any number, C strings. The rules and the output are
//! `api::log`'s; what an application put in their place is `log_import`'s. Called by `entry`, by the C-variadic call in
//! `cbits/variadic.c`, and by what speaks in a provider's name.

use super::log_import;
use super::types::*;
use crate::api::log::{self as rules, CallSite, Level, Speaker, Subsys};
use crate::provider::{Kind, refuses_layers, shm};
use crate::sys::{clock, errno};
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::ffi::CString;
use std::sync::OnceLock;

/// What the core keeps in `fi_provider.context`, laid out as the C library has it, for plug-ins built for the C library
/// look into it. It fits the 32 bytes there and is all zeros until the core fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvContext {
    /// 0 core, 1 utility, 2 hook, 3 offload, 4 link.
    pub kind: c_uint,
    /// C's bool: FI_LOG_PROV silences the provider.
    pub disable_logging: u8,
    /// C's bool: no utility provider may stand on it unless asked for by name.
    pub disable_layering: u8,
}

const _: () = assert!(size_of::<ProvContext>() <= size_of::<fi_context>());

impl ProvContext {
    /// The context inside a provider.
    ///
    /// # Safety
    /// `provider` points to a fi_provider; reading and writing through the result follows its rules.
    pub unsafe fn of(provider: *const fi_provider) -> *mut ProvContext {
        // SAFETY: takes an address inside a struct that is there, says the caller.
        unsafe { (&raw const (*provider).context).cast_mut().cast() }
    }

    /// What the core has to say about a provider when it takes it up.
    pub fn new(name: &str, kind: Kind) -> ProvContext {
        ProvContext {
            kind: match kind {
                Kind::Core => 0,
                Kind::Utility => 1,
                Kind::Hook => 2,
                Kind::Offload => 3,
                Kind::Link => 4,
            },
            disable_logging: u8::from(rules::provider_silenced(name)),
            disable_layering: u8::from(refuses_layers(name, kind)),
        }
    }
}

struct CoreProvider(fi_provider);

// SAFETY: never written once it is seen; its pointers are null or to a constant.
unsafe impl Sync for CoreProvider {}
// SAFETY: as above.
unsafe impl Send for CoreProvider {}

const CORE_VERSION: u32 = (FI_MAJOR_VERSION as u32) << 16 | FI_MINOR_VERSION as u32;

/// Who speaks when the core itself does.
static CORE: CoreProvider = CoreProvider(fi_provider {
    version: CORE_VERSION,
    fi_version: CORE_VERSION,
    context: fi_context {
        internal: [null_mut(); 4],
    },
    name: c"core".as_ptr(),
    getinfo: None,
    fabric: None,
    cleanup: None,
});

/// Who speaks when provider shm does: the struct that callbacks are shown, with what FI_LOG_PROV says of it.
static SHM: OnceLock<CoreProvider> = OnceLock::new();

fn shm_provider() -> CoreProvider {
    let mut provider = fi_provider {
        name: c"shm".as_ptr(),
        ..CORE.0
    };
    // SAFETY: a whole provider, which nobody else has yet.
    unsafe { ProvContext::of(&provider).write(ProvContext::new(shm::NAME, Kind::Core)) };
    provider.version = shm::VERSION;
    CoreProvider(provider)
}

/// What stands for a speaker of ours in C. NULL is the core.
pub(super) fn provider_of(speaker: Speaker) -> *const fi_provider {
    match speaker {
        shm::NAME => &SHM.get_or_init(shm_provider).0,
        _ => null(),
    }
}

/// Whether this is the core: as NULL, as our own struct, or by a callback that got it.
pub(super) fn is_core(provider: *const fi_provider) -> bool {
    provider.is_null() || core::ptr::eq(provider, &CORE.0)
}

/// The provider to show to callbacks.
fn shown(provider: *const fi_provider) -> *const fi_provider {
    if provider.is_null() { &CORE.0 } else { provider }
}

/// The text of a C string; NULL is shown as printf(3) shows it.
///
/// # Safety
/// `string` is null or a C string that stays as it is while the result is used.
pub(super) unsafe fn text<'a>(string: *const c_char) -> Cow<'a, str> {
    // SAFETY: as the caller says.
    String::from_utf8_lossy(unsafe { bytes(string) })
}

/// # Safety
/// As for `text`.
unsafe fn bytes<'a>(string: *const c_char) -> &'a [u8] {
    if string.is_null() {
        return b"(null)";
    }
    // SAFETY: not null, so a C string.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}

/// # Safety
/// `provider` is null or a provider.
pub(super) unsafe fn provider_name<'a>(provider: *const fi_provider) -> Cow<'a, str> {
    // SAFETY: `shown` is never null, so this is a provider, and its name lives as long.
    unsafe { text((*shown(provider)).name) }
}

/// The flags that the callbacks are given for a provider.
///
/// # Safety
/// `provider` is null or a provider.
unsafe fn flags(provider: *const fi_provider) -> u64 {
    // SAFETY: `shown` is never null, so this is a provider with its context.
    let context = unsafe { ProvContext::of(shown(provider)).read() };
    if context.disable_logging != 0 {
        FI_LOG_PROV_FILTERED
    } else {
        0
    }
}

/// fi_log_enabled: whether a line would be written. NULL means the core.
///
/// # Safety
/// `provider` is null or a provider.
pub unsafe fn log_enabled(provider: *const fi_provider, level: fi_log_level, subsys: fi_log_subsys) -> c_int {
    // SAFETY: as the caller says.
    let flags = unsafe { flags(provider) };
    let enabled = log_import::enabled().unwrap_or(default_enabled);
    // SAFETY: our own callback, or one that the application lent us until it closes the import.
    unsafe { enabled(shown(provider), level, subsys, flags) }
}

/// fi_log_ready: as `log_enabled`, but only once in FI_LOG_INTERVAL for each `showtime`.
///
/// # Safety
/// `provider` is null or a provider; `showtime` is null or the caller's word, zero at first.
pub unsafe fn log_ready(
    provider: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    showtime: *mut u64,
) -> c_int {
    // SAFETY: as the caller says.
    let flags = unsafe { flags(provider) };
    let ready = log_import::ready().unwrap_or(default_ready);
    // SAFETY: as in `log_enabled`.
    unsafe { ready(shown(provider), level, subsys, flags, showtime) }
}

/// fi_log, with the text put together. Writes whatever the level: callers ask `log_enabled` first.
///
/// # Safety
/// `provider` is null or a provider; `func` and `msg` are null or C strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn rs_fi_log(
    provider: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    func: *const c_char,
    line: c_int,
    msg: *const c_char,
) {
    let log = log_import::log().unwrap_or(default_log);
    // SAFETY: as in `log_enabled`.
    unsafe { log(shown(provider), level, subsys, func, line, msg) };
}

/// The default rules.
///
/// # Safety
/// Touches no pointer.
pub(super) unsafe extern "C" fn default_enabled(
    _provider: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    flags: u64,
) -> c_int {
    match (Level::from_c(level), Subsys::from_c(subsys)) {
        (Some(level), Some(subsys)) if flags & FI_LOG_PROV_FILTERED == 0 => {
            c_int::from(rules::default_enabled(level, subsys))
        }
        _ => 0,
    }
}

/// The default pause between the lines of one place. Asks the rules in force, imported or not, as the C library does.
///
/// # Safety
/// As for `log_ready`.
pub(super) unsafe extern "C" fn default_ready(
    provider: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    flags: u64,
    showtime: *mut u64,
) -> c_int {
    let enabled = log_import::enabled().unwrap_or(default_enabled);
    // SAFETY: as in `log_enabled`.
    if unsafe { enabled(provider, level, subsys, flags) } == 0 {
        return 0;
    }
    if showtime.is_null() || !showtime.is_aligned() {
        // Without a word to remember the time in there is no pause.
        return 1;
    }
    // SAFETY: aligned and the caller's to write; other threads of the caller come here with the same word.
    let showtime = unsafe { AtomicU64::from_ptr(showtime) };
    c_int::from(turn_has_come(showtime, clock::monotonic_ms(), rules::interval_ms()))
}

/// Of several threads that find the time come, one gets the turn.
fn turn_has_come(showtime: &AtomicU64, now: u64, pause: u64) -> bool {
    let due = showtime.load(Ordering::Relaxed);
    let next = now.saturating_add(pause);
    now >= due
        && showtime
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// The default output.
///
/// # Safety
/// As for `rs_fi_log`.
pub(super) unsafe extern "C" fn default_log(
    provider: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    func: *const c_char,
    line: c_int,
    msg: *const c_char,
) {
    let _errno = errno::keep();
    let level = Level::from_c(level).map_or("unknown", Level::name);
    let subsys = Subsys::from_c(subsys).map_or("unknown", Subsys::name);
    // SAFETY: as the caller says.
    unsafe {
        let provider = bytes((*shown(provider)).name);
        let place = CallSite {
            provider,
            subsys,
            func: bytes(func),
            line: i64::from(line),
        };
        rules::default_write(level, &place, bytes(msg));
    }
}

/// A line that the core writes in a provider's name, or its own for NULL.
pub(super) struct Line<'a> {
    pub provider: *const fi_provider,
    pub level: Level,
    pub subsys: Subsys,
    pub func: &'a CStr,
    pub number: u32,
}

/// Writes a line, if it is wanted.
///
/// # Safety
/// `line.provider` is null or a provider.
pub(super) unsafe fn say(line: &Line, words: &str) {
    // SAFETY: as the caller says.
    unsafe {
        if log_enabled(line.provider, line.level as fi_log_level, line.subsys as fi_log_subsys) != 0 {
            say_anyway(line, words);
        }
    }
}

/// # Safety
/// As for `say`.
pub(super) unsafe fn say_anyway(line: &Line, words: &str) {
    let _errno = errno::keep();
    let msg = c_text(&format!("{words}\n"));
    let number = c_int::try_from(line.number).unwrap_or(0);
    let (level, subsys) = (line.level as fi_log_level, line.subsys as fi_log_subsys);
    // SAFETY: C strings of ours, and the provider as the caller says.
    unsafe { rs_fi_log(line.provider, level, subsys, line.func.as_ptr(), number, msg.as_ptr()) };
}

/// A C string; a zero byte inside, which would cut it, becomes a question mark.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    fn provider(name: &'static CStr) -> fi_provider {
        fi_provider {
            name: name.as_ptr(),
            ..CORE.0
        }
    }

    #[test]
    fn the_context_has_the_c_librarys_layout() {
        assert_eq!(offset_of!(ProvContext, kind), 0);
        assert_eq!(offset_of!(ProvContext, disable_logging), 4);
        assert_eq!(offset_of!(ProvContext, disable_layering), 5);
        let mut prov = provider(c"one");
        // SAFETY: a provider of this test.
        unsafe {
            assert_eq!(flags(&prov), 0);
            (*ProvContext::of(&raw mut prov)).disable_logging = 1;
            assert_eq!(flags(&prov), FI_LOG_PROV_FILTERED);
            assert_eq!(flags(null_mut()), 0, "NULL is the core");
        }
    }

    #[test]
    fn one_turn_each_pause() {
        let showtime = AtomicU64::new(0);
        let turns = [1000, 1001, 2999, 3000, 3001, 9000].map(|now| turn_has_come(&showtime, now, 2000));
        assert_eq!(turns, [true, false, false, true, false, true]);
        assert!(
            turn_has_come(&AtomicU64::new(5), u64::MAX, 2000),
            "the clock's end is no overflow"
        );
    }

    #[test]
    fn unknown_levels_and_subsystems_are_never_enabled() {
        for (level, subsys) in [(4, 0), (0, 10), (u32::MAX, u32::MAX), (32, 32)] {
            // SAFETY: touches no pointer.
            assert_eq!(unsafe { default_enabled(null_mut(), level, subsys, 0) }, 0);
        }
    }

    #[test]
    fn texts_from_c() {
        // SAFETY: null and constants.
        unsafe {
            assert_eq!(text(null_mut()), "(null)");
            assert_eq!(text(c"abc".as_ptr()), "abc");
            assert_eq!(provider_name(null_mut()), "core");
            assert_eq!(
                provider_name(&fi_provider {
                    name: null_mut(),
                    ..CORE.0
                }),
                "(null)"
            );
        }
        assert_eq!(c_text("a\0b").as_bytes(), b"a?b");
    }
}
