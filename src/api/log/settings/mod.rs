//! What the FI_LOG_* variables say: their meaning, their defaults, and what is wrong with what the user wrote.
//!
//! Writes no line itself, for the log is not ready yet: it hands its complaints to `log`, which calls it once.

use super::{Level, Subsys};
use crate::api::names::NameList;
use crate::api::params::{self, Found, Miss, Owner, Value};
use crate::sys::output;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

const DEFAULT_INTERVAL_MS: u64 = 2000;
const DEFAULT_MODE: u32 = 0o600;

/// The settings, with the default for each one that is not set or cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// None: nothing is logged.
    pub level: Option<Level>,
    pub subsystems: Vec<Subsys>,
    pub providers: NameList,
    pub interval_ms: u64,
    location: Location,
    mode: u32,
    pub complaints: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Location {
    Stderr,
    Stdout,
    /// A file, or a folder to make one in.
    Path(PathBuf),
}

impl Settings {
    pub(super) fn read() -> Settings {
        Settings::from(&|name| params::get(Owner::CORE, name))
    }

    fn from(get: &dyn Fn(&str) -> Found) -> Settings {
        let mut complaints = Vec::new();
        let level = level(text(get, "log_level"), &mut complaints);
        let subsystems = subsystems(text(get, "log_subsys"), &mut complaints);
        let providers = text(get, "log_prov").map_or(NameList::none(), |list| NameList::parse(list.trim()));
        let interval = number(get, "log_interval", 0..=i32::MAX, &mut complaints);
        let mode = number(get, "log_location_mode", 0..=0o7777, &mut complaints);
        Settings {
            level,
            subsystems,
            providers,
            interval_ms: interval.map_or(DEFAULT_INTERVAL_MS, u64::from),
            location: location(get("log_location")),
            mode: mode.unwrap_or(DEFAULT_MODE),
            complaints,
        }
    }

    /// Opens the log file, if one is asked for; it must not exist, so that nothing is overwritten.
    pub(super) fn open_file(&mut self) -> Option<OwnedFd> {
        let Location::Path(path) = &self.location else {
            return None;
        };
        let path = match path.is_dir() {
            true => path.join(format!("ofi_{}.log", std::process::id())),
            false => path.clone(),
        };
        match output::create_new(&path, self.mode) {
            Ok(file) => Some(file),
            Err(error) => {
                let hint = match error.kind() {
                    std::io::ErrorKind::AlreadyExists => "; remove the file, or name a folder",
                    _ => "",
                };
                let path = path.display();
                self.complaints.push(format!(
                    "FI_LOG_LOCATION: cannot create {path}: {error}{hint}. The log goes to stderr."
                ));
                None
            }
        }
    }

    /// The descriptor to write to when there is no file.
    pub(super) fn standard_fd(&self) -> RawFd {
        match self.location {
            Location::Stdout => output::STDOUT,
            Location::Stderr | Location::Path(_) => output::STDERR,
        }
    }
}

fn text(get: &dyn Fn(&str) -> Found, name: &str) -> Option<String> {
    match get(name) {
        Ok(Value::Text(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
        Ok(Value::Int(_) | Value::Bool(_) | Value::Size(_)) | Err(_) => None,
    }
}

fn number(
    get: &dyn Fn(&str) -> Found,
    name: &str,
    range: core::ops::RangeInclusive<i32>,
    complaints: &mut Vec<String>,
) -> Option<u32> {
    match get(name) {
        Ok(Value::Int(value)) if range.contains(&value) => u32::try_from(value).ok(),
        Ok(Value::Int(value)) => {
            let name = name.to_ascii_uppercase();
            let (from, to) = (range.start(), range.end());
            complaints.push(format!(
                "FI_{name}={value}: not between {from} and {to}; the default is used"
            ));
            None
        }
        Err(Miss::Bad(complaint)) => {
            complaints.push(complaint);
            None
        }
        Ok(Value::Text(_) | Value::Bool(_) | Value::Size(_)) | Err(Miss::Unset | Miss::Undefined) => None,
    }
}

/// Unset is silence; a word that is no level is taken as a wish to hear warnings, as in the C library.
fn level(word: Option<String>, complaints: &mut Vec<String>) -> Option<Level> {
    let word = word?;
    let known = Level::ALL
        .into_iter()
        .find(|level| level.name().eq_ignore_ascii_case(word.trim()));
    if known.is_none() {
        complaints.push(format!(
            "FI_LOG_LEVEL={word}: not one of warn, trace, info, debug; warn is used"
        ));
    }
    known.or(Some(Level::Warn))
}

fn subsystems(list: Option<String>, complaints: &mut Vec<String>) -> Vec<Subsys> {
    let filter = list.map_or(NameList::none(), |list| NameList::parse(list.trim()));
    let is_known = |name: &&String| {
        Subsys::ALL
            .iter()
            .any(|subsys| subsys.name().eq_ignore_ascii_case(name))
    };
    for name in filter.list.iter().filter(|name| !is_known(name)) {
        let known = Subsys::ALL.map(Subsys::name).join(", ");
        complaints.push(format!(
            "FI_LOG_SUBSYS: there is no subsystem {name}; there are {known}"
        ));
    }
    Subsys::ALL
        .into_iter()
        .filter(|subsys| filter.lets_through(subsys.name()))
        .collect()
}

fn location(found: Found) -> Location {
    match found {
        Ok(Value::Text(text)) => match text.as_slice() {
            b"" | b"stderr" => Location::Stderr,
            b"stdout" => Location::Stdout,
            _ => Location::Path(std::ffi::OsString::from_vec(text).into()),
        },
        Ok(Value::Int(_) | Value::Bool(_) | Value::Size(_)) | Err(_) => Location::Stderr,
    }
}

#[cfg(test)]
mod tests;
