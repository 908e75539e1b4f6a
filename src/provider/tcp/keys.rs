//! Which secret the endpoints of a domain prove to their peers: of the application's keys, or of a file. Called by
//! `mod`.

use super::settings;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{AuthKey, Info};
use crate::transport::tcp::Secret;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// No file with a key is longer.
const LONGEST: u64 = 64 << 10;

/// What an endpoint without a key of its own has to prove; None: nothing.
pub struct DomainKey(Option<Secret>);

impl DomainKey {
    /// That of the domain's attributes, else that of the user's file.
    pub(in crate::provider) fn of(info: &Info) -> Result<DomainKey> {
        let asked = info.domain.as_ref().and_then(|domain| secret(&domain.auth_key));
        let found = asked.map_or_else(|| settings::get().secret, |asked| Ok(Some(asked)));
        found.map(DomainKey).map_err(|why| {
            log!(by super::NAME; Warn, Domain, "fi_domain: FI_TCP_AUTH_KEY_FILE: {why}");
            Errno(FI_ENOKEY as i32)
        })
    }

    /// The secret of an endpoint that is opened for this info.
    pub(in crate::provider) fn of_endpoint(&self, info: &Info) -> Option<Secret> {
        let own = info.ep.as_ref().and_then(|ep| secret(&ep.auth_key));
        own.or_else(|| self.of_context())
    }

    /// The secret of whoever has no attributes of its own.
    pub(in crate::provider) fn of_context(&self) -> Option<Secret> {
        self.0.clone()
    }
}

fn secret(key: &AuthKey) -> Option<Secret> {
    key.bytes.as_deref().and_then(Secret::new)
}

/// The secret in a file: all of it but the end of its last line. An error says what is wrong, and to what file.
pub(super) fn of_file(path: &[u8]) -> core::result::Result<Secret, String> {
    let name = Path::new(OsStr::from_bytes(path));
    let wrong = |why: &dyn core::fmt::Display| format!("{}: {why}", name.display());
    // Before it is opened, which of a FIFO waits for its writer.
    let about = std::fs::metadata(name).map_err(|error| wrong(&error))?;
    if !about.is_file() {
        return Err(wrong(&"not a regular file"));
    }
    let file = File::open(name).map_err(|error| wrong(&error))?;
    if about.permissions().mode() & 0o077 != 0 {
        log!(by super::NAME; Warn, Domain, "{}", wrong(&"other users can read or write this file (chmod 600)"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(&error))?;
    if bytes.len() as u64 > LONGEST {
        return Err(wrong(&format_args!("longer than {LONGEST} bytes")));
    }
    let key = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let key = key.strip_suffix(b"\r").unwrap_or(key);
    Secret::new(key).ok_or_else(|| wrong(&"no key in it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::info::model::KeySize;

    fn written(name: &str, bytes: &[u8]) -> core::result::Result<Secret, String> {
        let path = std::env::temp_dir().join(format!("lfab-key-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let read = of_file(path.as_os_str().as_bytes());
        std::fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn a_file_has_a_key_or_says_why_not() {
        assert!(written("whole", b"0123").is_ok() && written("line", b"0123\r\n").is_ok());
        for (name, bytes) in [("empty", &b""[..]), ("blank", b"\n"), ("long", &[7; (64 << 10) + 1])] {
            assert!(written(name, bytes).is_err(), "{name}");
        }
        let nowhere = of_file(b"/nonexistent/key").unwrap_err();
        assert!(nowhere.contains("/nonexistent/key"), "{nowhere}");
        let folder = of_file(Path::new("/").as_os_str().as_bytes()).unwrap_err();
        assert!(folder.contains("not a regular file"), "{folder}");
    }

    #[test]
    fn an_endpoints_own_key_goes_before_its_domains() {
        let key = |bytes: &[u8]| AuthKey {
            size: KeySize::Is(bytes.len()),
            bytes: Some(bytes.to_vec()),
        };
        let mut info = Info::blank();
        info.domain.get_or_insert_default().auth_key = key(b"domain");
        let domain = DomainKey::of(&info).unwrap();
        assert!(domain.of_endpoint(&info).is_some_and(|secret| secret.is(b"domain")));
        info.ep.get_or_insert_default().auth_key = key(b"endpoint");
        assert!(domain.of_endpoint(&info).is_some_and(|secret| secret.is(b"endpoint")));
        let none = DomainKey::of(&Info::blank()).unwrap();
        assert!(none.of_endpoint(&Info::blank()).is_none() && none.of_endpoint(&info).is_some());
    }
}
