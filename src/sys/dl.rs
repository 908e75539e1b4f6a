//! The dynamic loader: shared objects opened while the program runs, and where this library itself was loaded from.
//!
//! Knows nothing of libfabric. Called by `abi::plugin`.

use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An open shared object, closed when dropped.
#[derive(Debug)]
pub struct Library {
    handle: NonNull<c_void>,
}

// SAFETY: a handle of dlopen belongs to the process, and dlsym, dlinfo and dlclose may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; nothing behind the handle is changed through a shared reference.
unsafe impl Sync for Library {}

impl Library {
    /// Opens `name` with every symbol bound at once. The error is the loader's own text. A name without a slash is
    /// looked for along the loader's path.
    pub fn open(name: &Path) -> Result<Library, String> {
        let c_name = CString::new(name.as_os_str().as_bytes())
            .map_err(|_| format!("{}: a zero byte in the name", name.display()))?;
        // SAFETY: a C string that outlives the call. The object's constructors run, which is what naming a plug-in
        // means.
        let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW) };
        NonNull::new(handle)
            .map(|handle| Library { handle })
            .ok_or_else(last_error)
    }

    /// The address of a symbol; a symbol that is there but null counts as missing.
    pub fn symbol(&self, name: &CStr) -> Result<NonNull<c_void>, String> {
        // SAFETY: the handle is open as long as `self` is, and the name is a C string.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        NonNull::new(address).ok_or_else(last_error)
    }

    /// Whether both are one loaded object, perhaps opened by different names.
    pub fn is(&self, other: &Library) -> bool {
        self.handle == other.handle
    }

    /// The file behind it, as the loader found it.
    pub fn file(&self) -> Option<PathBuf> {
        let mut map: *const LinkMap = ptr::null();
        // SAFETY: RTLD_DI_LINKMAP writes one pointer to where the last argument points.
        let failed = unsafe { libc::dlinfo(self.handle.as_ptr(), libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
        if failed != 0 || map.is_null() {
            return None;
        }
        // SAFETY: the entry lives as long as the object is open, and starts with the public fields.
        path_from(unsafe { (*map).name })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: opened by dlopen, closed here only.
        unsafe { libc::dlclose(self.handle.as_ptr()) };
    }
}

/// The public head of the loader's `struct link_map`.
#[repr(C)]
struct LinkMap {
    addr: usize,
    name: *const libc::c_char,
}

/// The file this library was loaded from: the shared object, or the program it is linked into.
pub fn own_file() -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    let here = own_file as fn() -> Option<PathBuf>;
    // SAFETY: any address may be asked about, and `info` is there to be written.
    match unsafe { libc::dladdr(here as *const c_void, &raw mut info) } {
        0 => None,
        _ => path_from(info.dli_fname),
    }
}

fn path_from(name: *const libc::c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's names are C strings, and ours to read while the object they name is loaded.
    let name = unsafe { CStr::from_ptr(name) };
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// The loader's text for the last failed call of this thread.
fn last_error() -> String {
    // SAFETY: no arguments; the text is this thread's until its next loader call, and copied before that.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader gave no reason".to_owned();
    }
    // SAFETY: not null, so a C string as told above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_opens_and_answers() {
        let libc = Library::open(Path::new("libc.so.6")).unwrap();
        assert!(libc.symbol(c"getenv").is_ok());
        let missing = libc.symbol(c"no_such_symbol_here").unwrap_err();
        assert!(missing.contains("no_such_symbol_here"), "{missing}");
        let file = libc.file().unwrap();
        assert!(file.is_absolute() && file.ends_with("libc.so.6"), "{file:?}");
    }

    #[test]
    fn one_object_is_known_again_under_another_name() {
        let by_name = Library::open(Path::new("libc.so.6")).unwrap();
        let by_path = Library::open(&by_name.file().unwrap()).unwrap();
        assert!(by_name.is(&by_path));
        assert!(!by_name.is(&Library::open(Path::new("libm.so.6")).unwrap()));
    }

    #[test]
    fn what_cannot_open_is_named_with_the_reason() {
        let reason = Library::open(Path::new("/no/such/libx-fi.so")).unwrap_err();
        assert!(reason.starts_with("/no/such/libx-fi.so: "), "{reason}");
        assert!(Library::open(Path::new("a\0b")).is_err());
    }

    #[test]
    fn a_test_is_its_own_file() {
        assert_eq!(
            own_file().unwrap().canonicalize().unwrap(),
            std::env::current_exe().unwrap().canonicalize().unwrap()
        );
    }
}
