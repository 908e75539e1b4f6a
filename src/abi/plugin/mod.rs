//! A plug-in, `lib*-fi.so`: its file is opened, asked for its struct fi_provider, and shown to the core as a provider.
//!
//! Knows the layouts that older plug-ins were built with. Which files are tried is for `provider::external`; which of
//! two providers of one name is asked, for `provider::registry`. `answer` takes the lists apart that its fi_getinfo
//! gives. Called by `start`; as a provider by `provider::getinfo`, and by `open` for its fabrics.

use crate::abi::layout;
use crate::abi::log::ProvContext;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::query::{Answer, Query};
use crate::api::params::{self, Owner};
use crate::provider::external::{Candidate, Search, default_folders};
use crate::provider::{Kind, Provider};
use crate::sys::dl::{self, Library};
use core::any::Any;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{NonNull, null_mut};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

mod answer;
#[cfg(test)]
mod tests;

pub use answer::OwnInfo;

/// The arguments of a fi_getinfo call as C passed them, hints in the newest layout. The pointers are good for as long
/// as the call lasts.
#[derive(Clone, Copy)]
pub struct RawCall {
    pub version: u32,
    pub node: *const c_char,
    pub service: *const c_char,
    pub flags: u64,
    pub hints: *const fi_info,
}

/// Which files are tried, by FI_PROVIDER_PATH and the names of the providers that are known.
pub fn search(setting: Option<&OsStr>, known: &[&str]) -> Search {
    let built_in = option_env!("FABRIC_PROVIDER_DIR");
    Search::new(setting, known, &default_folders(dl::own_file().as_deref(), built_in))
}

/// Opens what the search finds, and hands every usable plug-in to `register`, with whether it is preferred.
/// Plug-ins log and define parameters meanwhile: no lock of the log or of the parameters may be held.
pub fn load(search: &Search, mut register: impl FnMut(Box<dyn Provider>, bool)) {
    // Kept open until all is done, so that a file met again is known again even if it was of no use.
    let mut met: Vec<Arc<Library>> = Vec::new();
    for candidate in search.candidates() {
        if let Some(plugin) = open(&candidate, &mut met) {
            register(Box::new(plugin), candidate.is_preferred());
        }
    }
}

/// Opens one plug-in. One that cannot be used is logged with the reason.
fn open(candidate: &Candidate, met: &mut Vec<Arc<Library>>) -> Option<ExternalProvider> {
    let file = candidate.file();
    log!(Debug, Core, "opening provider lib {}", file.display());
    let library = match Library::open(file) {
        Ok(library) => Arc::new(library),
        Err(why) if candidate.is_wrong_guess(&why) => {
            log!(Debug, Core, "dlopen({}): {why}", file.display());
            return None;
        }
        Err(why) => {
            log!(Warn, Core, "dlopen({}): {why}", file.display());
            return None;
        }
    };
    if met.iter().any(|other| other.is(&library)) {
        log!(Debug, Core, "{} is loaded already", file.display());
        return None;
    }
    met.push(library.clone());
    let entry = match library.symbol(c"fi_prov_ini") {
        Ok(entry) => entry,
        Err(why) => {
            log!(Warn, Core, "{}: dlsym: {why}", file.display());
            return None;
        }
    };
    // SAFETY: by fi_provider(3), fi_prov_ini has this type and may be called once the object is loaded.
    let raw = unsafe {
        let entry: unsafe extern "C" fn() -> *mut fi_provider = core::mem::transmute(entry.as_ptr());
        entry()
    };
    // SAFETY: what fi_prov_ini returns is null or a struct fi_provider that stays while the object is loaded.
    unsafe { ExternalProvider::adopt(raw, Some(library), file) }
}

/// A provider in a plug-in. Dropping it runs the plug-in's cleanup and closes its file.
pub struct ExternalProvider {
    raw: NonNull<fi_provider>,
    name: String,
    version: u32,
    fi_version: u32,
    kind: Kind,
    getinfo: Option<GetInfo>,
    open_fabric: OpenFabric,
    cleanup: Option<unsafe extern "C" fn()>,
    /// Closed after `drop` has called into it. None for a provider that is linked in.
    _library: Option<Arc<Library>>,
}

type GetInfo = unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int;
type OpenFabric = unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;

// SAFETY: fi_getinfo and fi_fabric may be called from any thread at any time, and a provider's functions are written
// for that; the struct itself is not touched once it is adopted.
unsafe impl Send for ExternalProvider {}
// SAFETY: as above.
unsafe impl Sync for ExternalProvider {}

impl ExternalProvider {
    /// Takes over what fi_prov_ini returned; a provider that cannot be used is cleaned up at once.
    ///
    /// # Safety
    /// `raw` is null or a struct fi_provider that lives, and may be written, as long as `library` is open.
    unsafe fn adopt(raw: *mut fi_provider, library: Option<Arc<Library>>, file: &Path) -> Option<ExternalProvider> {
        let Some(raw) = NonNull::new(raw) else {
            log!(
                Info,
                Core,
                "{}: no provider structure: it finds nothing to do here",
                file.display()
            );
            return None;
        };
        // SAFETY: promised by the caller. A copy, so that later changes by the plug-in do not matter.
        let seen = unsafe { raw.as_ptr().read() };
        // SAFETY: promised by the caller.
        let (name, open_fabric) = match unsafe { usable(&seen) } {
            Ok(parts) => parts,
            Err(why) => {
                log!(Warn, Core, "{}: {why}; ignoring", file.display());
                clean_up(raw, seen.cleanup);
                return None;
            }
        };
        let kind = Kind::of(&name, seen.getinfo.is_some());
        // SAFETY: the caller lets us write, and the context is the core's to use.
        unsafe { ProvContext::of(raw.as_ptr()).write(ProvContext::new(&name, kind)) };
        log!(Debug, Core, "{name} is in {}", file.display());
        Some(ExternalProvider {
            raw,
            name,
            version: seen.version,
            fi_version: seen.fi_version,
            kind,
            getinfo: seen.getinfo,
            open_fabric,
            cleanup: seen.cleanup,
            _library: library,
        })
    }

    /// Opens a fabric of this provider, or, for a hook, wraps the one in `attr`.
    ///
    /// # Safety
    /// As fi_fabric: `attr` is an fi_fabric_attr, `fabric` a place for a pointer.
    pub unsafe fn fabric(
        &self,
        attr: *mut fi_fabric_attr,
        fabric: *mut *mut fid_fabric,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: fi_fabric's caller vouches for its pointers; the plug-in is loaded as long as `self` lives.
        unsafe { (self.open_fabric)(attr, fabric, context) }
    }

    /// The plug-in's own struct: what a hook is given as its context.
    pub fn raw(&self) -> *mut fi_provider {
        self.raw.as_ptr()
    }
}

impl Provider for ExternalProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn fi_version(&self) -> u32 {
        self.fi_version
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>> {
        let (Some(getinfo), Some(call)) = (self.getinfo, query.raw.and_then(|raw| raw.downcast_ref::<RawCall>()))
        else {
            return Err(Errno(FI_ENOSYS));
        };
        let mut list: *mut fi_info = null_mut();
        // SAFETY: whoever made the RawCall vouches for its pointers during this call.
        let ret = unsafe { getinfo(call.version, call.node, call.service, call.flags, call.hints, &mut list) };
        if ret != 0 {
            return Err(Errno(ret.checked_abs().unwrap_or(FI_EOTHER as c_int)));
        }
        // SAFETY: on success the list is ours, in the layout of the API version that the plug-in was written for.
        let answers = unsafe { answer::take(list, self) };
        match answers.is_empty() {
            true => Err(Errno(FI_ENODATA)),
            false => Ok(answers),
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Drop for ExternalProvider {
    fn drop(&mut self) {
        clean_up(self.raw, self.cleanup);
    }
}

/// The last call into a plug-in before its file is closed: its parameters go, then what it holds.
fn clean_up(raw: NonNull<fi_provider>, cleanup: Option<unsafe extern "C" fn()>) {
    params::undefine(Owner(raw.as_ptr().addr()));
    if let Some(cleanup) = cleanup {
        // SAFETY: the plug-in is still loaded, and this is called once.
        unsafe { cleanup() };
    }
}

/// The name and the one function that a provider must have, or why it cannot be used.
///
/// # Safety
/// The name, if any, is a C string.
unsafe fn usable(provider: &fi_provider) -> core::result::Result<(String, OpenFabric), String> {
    if provider.name.is_null() {
        return Err("a provider without a name".to_owned());
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(provider.name) };
    let name = match name.to_str() {
        Ok(name) if !name.is_empty() && !name.contains(|c: char| c.is_control()) => name,
        _ => return Err(format!("provider name {name:?} cannot be used")),
    };
    let Some(open_fabric) = provider.fabric else {
        return Err(format!("provider {name} is missing mandatory entry points"));
    };
    if provider.fi_version < layout::version(1, 3) {
        let (major, minor) = (provider.fi_version >> 16, provider.fi_version & 0xffff);
        return Err(format!("provider {name} has unsupported FI version {major}.{minor}"));
    }
    Ok((name.to_owned(), open_fabric))
}
