//! Brings the core up at its first use, and down when the library is unloaded or the process ends.
//!
//! Up means: the log is open, plug-ins are loaded, the registry is full. Called by
//! every entry that needs providers or parameters.

use super::{built_in, plugin, process};
use crate::api::log;
use crate::api::params;
use crate::provider::filter::Filter;
use crate::provider::registry::{Precedence, Registry};
use crate::sys::errno;
use crate::sys::identity;
use crate::sys::lock::{Held, Lock};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

static CORE: Lock<Option<Arc<Registry>>> = Lock::new(None);

/// For the list of locks that fork waits for.
pub(super) static LOCK: &dyn Held = &CORE;

/// Which thread of which process is bringing the core up; 0 when none is. No lock, for two reasons: a plug-in may call
/// back into the library while it is loaded, and may fork.
static STARTER: AtomicU64 = AtomicU64::new(0);

/// The providers; brings the core up first. None only for a plug-in that asks while it is being loaded itself.
pub(super) fn core() -> Option<Arc<Registry>> {
    process::at_fork();
    let me = identity::process_and_thread();
    loop {
        if let Some(core) = &*CORE.lock() {
            return Some(core.clone());
        }
        match STARTER.compare_exchange(0, me, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => break,
            Err(starter) if starter == me => return None,
            // The starter was a thread of the parent that did not come along through fork.
            Err(starter) if !identity::same_process(starter, me) => {
                let _ = STARTER.compare_exchange(starter, 0, Ordering::Acquire, Ordering::Relaxed);
            }
            Err(_) => std::thread::yield_now(),
        }
    }
    let running = CORE.lock().clone();
    let core = running.unwrap_or_else(|| {
        let core = Arc::new(start());
        *CORE.lock() = Some(core.clone());
        core
    });
    STARTER.store(0, Ordering::Release);
    Some(core)
}

fn start() -> Registry {
    // Files that were looked for and are not there are no errors, and some programs read errno after a call of ours.
    let _errno = errno::keep();
    log::init();
    let filter = params::core_string("provider").ok();
    let path = params::core_os_string("provider_path").ok();
    if let Ok(hooks) = params::core_string("hook") {
        log!(
            Warn,
            Core,
            "FI_HOOK={hooks}: this library has no hooks yet, providers are used as they are"
        );
    }
    let mut registry = Registry::new(Filter::parse(filter.as_deref()));
    let search = plugin::search(path.as_deref(), Registry::known_names());
    if search.first_wins {
        registry.set_precedence(Precedence::FirstRegistered);
    }
    plugin::load(&search, |provider, preferred| {
        registry.register(provider, preferred);
    });
    for provider in built_in::all() {
        registry.register(provider.start(), false);
    }
    registry.warn_of_unknown_names();
    registry
}

/// Providers first, since their clean-up may still log and read parameters.
pub(super) fn stop() {
    let core = CORE.lock().take();
    drop(core);
    process::unload();
}

/// The dynamic loader calls this when the library is unloaded and when the process exits.
extern "C" fn destructor() {
    stop();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
