//! Which plug-in files are tried, in which order, and which of them are preferred.
//!
//! Reads folders, opens nothing: what a plug-in is inside is for `abi::plugin`, which calls this.
//!
//! The rules are those of fabric(7), "FI_PROVIDER_PATH". Unset or empty: every known name is tried along the loader's
//! path, then the default folders are searched. Set: its folders in their place; a leading `@` lets the first of a name
//! win whatever its version; `+/file` is a plug-in that beats all others of its name; without a folder among its
//! elements the default ones are searched after all.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the name of a plug-in file ends with.
const SUFFIX: &str = "fi.so";

/// A plug-in to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// A name for the loader's path; most likely there is nothing behind it.
    Guess(PathBuf),
    /// A file seen in a folder.
    Found(PathBuf),
    /// A file that the user wants in front of all others of its provider's name.
    Preferred(PathBuf),
}

impl Candidate {
    pub fn file(&self) -> &Path {
        match self {
            Candidate::Guess(file) | Candidate::Found(file) | Candidate::Preferred(file) => file,
        }
    }

    pub fn is_preferred(&self) -> bool {
        matches!(self, Candidate::Preferred(_))
    }

    /// Whether the loader's complaint about it means no more than that a guess was wrong.
    pub fn is_wrong_guess(&self, complaint: &str) -> bool {
        match self {
            // A guess that exists, but needs a library that does not, is complained about by that library's name.
            Candidate::Guess(name) => complaint.starts_with(&format!("{}: cannot open", name.display())),
            Candidate::Found(_) | Candidate::Preferred(_) => false,
        }
    }
}

/// Where to look.
#[derive(Debug, PartialEq, Eq)]
pub struct Search {
    /// `@`: among plug-ins of one name the first wins, not the newest.
    pub first_wins: bool,
    places: Vec<Place>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Loader(PathBuf),
    /// A folder that may well be missing.
    Default(PathBuf),
    /// A folder the user named.
    Named(PathBuf),
    Preferred(PathBuf),
}

impl Search {
    /// `setting`: FI_PROVIDER_PATH. `known`: the names of providers, in the order they are listed.
    /// `defaults`: see `default_folders`.
    pub fn new(setting: Option<&OsStr>, known: &[&str], defaults: &[PathBuf]) -> Search {
        let setting = setting.map_or(&b""[..], OsStr::as_bytes);
        let (first_wins, elements) = match setting.strip_prefix(b"@") {
            Some(rest) => (true, rest),
            None => (false, setting),
        };
        let mut places: Vec<Place> = if setting.is_empty() {
            known.iter().map(|name| Place::Loader(library_name(name))).collect()
        } else {
            let elements = elements.split(|byte| *byte == b':');
            elements.filter(|element| !element.is_empty()).map(place).collect()
        };
        if !places.iter().any(|place| matches!(place, Place::Named(_))) {
            places.extend(defaults.iter().cloned().map(Place::Default));
        }
        Search { first_wins, places }
    }

    /// The plug-ins to try, in order, each file once however many ways lead to it.
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut seen = HashSet::new();
        let preferred: HashSet<PathBuf> = self
            .preferred_files()
            .filter_map(|file| file.canonicalize().ok())
            .collect();
        let mut list = Vec::new();
        for place in &self.places {
            match place {
                Place::Loader(name) => list.push(Candidate::Guess(name.clone())),
                Place::Preferred(file) => match usable_preferred(file) {
                    Ok(real) if seen.insert(real.clone()) => list.push(Candidate::Preferred(file.clone())),
                    Ok(_) => {}
                    Err(why) => log!(Warn, Core, "{why}: \"{}\"", file.display()),
                },
                Place::Default(folder) | Place::Named(folder) => {
                    for file in plugin_files(folder, place) {
                        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
                        if !seen.insert(real.clone()) {
                            log!(Debug, Core, "{} was met before", file.display());
                        } else if preferred.contains(&real) {
                            list.push(Candidate::Preferred(file));
                        } else {
                            list.push(Candidate::Found(file));
                        }
                    }
                }
            }
        }
        list
    }

    fn preferred_files(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().filter_map(|place| match place {
            Place::Preferred(file) if file.is_absolute() => Some(file.as_path()),
            _ => None,
        })
    }
}

/// The folders searched when the user names none: `libfabric/` beside the library (beside the name it was loaded by,
/// and beside the file that name leads to), and the one chosen when it was built.
/// A program that the library is linked into has no such folder beside it.
pub fn default_folders(own_file: Option<&Path>, built_in: Option<&str>) -> Vec<PathBuf> {
    let is_ours = |file: &PathBuf| {
        file.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("libfabric"))
    };
    let absolute = own_file.and_then(|file| std::path::absolute(file).ok());
    let real = own_file.and_then(|file| file.canonicalize().ok());
    let beside = [absolute, real]
        .into_iter()
        .flatten()
        .filter(is_ours)
        .map(|file| file.with_file_name("libfabric"));
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in beside.chain(built_in.into_iter().flat_map(|list| list.split(':')).map(PathBuf::from)) {
        if !folder.as_os_str().is_empty() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The file a provider's plug-in has by custom: `libverbs-fi.so`, and `librxm-fi.so` for ofi_rxm.
fn library_name(provider: &str) -> PathBuf {
    let short = ["ofi_", "off_"]
        .iter()
        .find_map(|prefix| provider.strip_prefix(prefix))
        .unwrap_or(provider);
    PathBuf::from(format!("lib{short}-{SUFFIX}"))
}

fn place(element: &[u8]) -> Place {
    match element.strip_prefix(b"+") {
        Some(file) => Place::Preferred(OsStr::from_bytes(file).into()),
        None => Place::Named(OsStr::from_bytes(element).into()),
    }
}

/// The real path of a preferred plug-in, or what is wrong with it.
fn usable_preferred(file: &Path) -> Result<PathBuf, &'static str> {
    if !file.is_absolute() {
        return Err("invalid format for preferred provider");
    }
    file.canonicalize().map_err(|_| "preferred provider not found")
}

/// The plug-ins of a folder, last name first: the order in which the C library meets them.
fn plugin_files(folder: &Path, place: &Place) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            match place {
                Place::Named(_) => log!(Warn, Core, "FI_PROVIDER_PATH: {}: {error}", folder.display()),
                _ => log!(Debug, Core, "{}: {error}", folder.display()),
            }
            return Vec::new();
        }
    };
    let mut names: Vec<_> = entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| is_plugin(name))
        .collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    names.into_iter().map(|name| folder.join(name)).collect()
}

fn is_plugin(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() > SUFFIX.len() && name.ends_with(SUFFIX.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir};
    use std::os::unix::fs::symlink;

    /// A folder of this test, gone when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str, files: &[&str]) -> Scratch {
            let folder = std::env::temp_dir().join(format!("fabric-external-{}-{test}", std::process::id()));
            // One that ended badly may have left it.
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            let scratch = Scratch(folder.canonicalize().unwrap());
            for file in files {
                let path = scratch.path(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                File::create(path).unwrap();
            }
            scratch
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        /// `text` with `%` for this folder.
        fn expand(&self, text: &str) -> String {
            text.replace('%', self.0.to_str().unwrap())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// `? name` a guess, `- file` found, `+ file` preferred; the scratch folder is written `%`.
    fn told(scratch: &Scratch, search: &Search) -> Vec<String> {
        let line = |candidate: &Candidate| {
            let mark = match candidate {
                Candidate::Guess(_) => '?',
                Candidate::Found(_) => '-',
                Candidate::Preferred(_) => '+',
            };
            format!("{mark} {}", candidate.file().display()).replace(scratch.0.to_str().unwrap(), "%")
        };
        search.candidates().iter().map(line).collect()
    }

    #[test]
    fn the_setting_decides_what_is_tried() {
        let files = ["one/liba-fi.so", "one/libb-fi.so", "two/libz-fi.so", "std/libs-fi.so"];
        let scratch = Scratch::new("setting", &files);
        let guesses = [
            "? libverbs-fi.so",
            "? librxm-fi.so",
            "? libcoll-fi.so",
            "- %/std/libs-fi.so",
        ];
        let standard = ["- %/std/libs-fi.so"];
        let cases: &[(Option<&str>, bool, &[&str])] = &[
            (None, false, &guesses),
            (Some(""), false, &guesses),
            (Some("@"), true, &standard),
            (Some(":"), false, &standard),
            (Some("%/one"), false, &["- %/one/libb-fi.so", "- %/one/liba-fi.so"]),
            (
                Some("%/two::%/one"),
                false,
                &["- %/two/libz-fi.so", "- %/one/libb-fi.so", "- %/one/liba-fi.so"],
            ),
            (Some("@%/two"), true, &["- %/two/libz-fi.so"]),
            (
                Some("+%/one/liba-fi.so"),
                false,
                &["+ %/one/liba-fi.so", "- %/std/libs-fi.so"],
            ),
            (
                Some("@+%/one/liba-fi.so"),
                true,
                &["+ %/one/liba-fi.so", "- %/std/libs-fi.so"],
            ),
            (
                Some("+%/one/liba-fi.so:%/two"),
                false,
                &["+ %/one/liba-fi.so", "- %/two/libz-fi.so"],
            ),
            (
                Some("%/two:+%/one/liba-fi.so"),
                false,
                &["- %/two/libz-fi.so", "+ %/one/liba-fi.so"],
            ),
            // Preferred wherever it is met first; once, however it is spelled.
            (
                Some("%/one:+%/one/liba-fi.so"),
                false,
                &["- %/one/libb-fi.so", "+ %/one/liba-fi.so"],
            ),
            (
                Some("+%/one/../one/liba-fi.so:%/one"),
                false,
                &["+ %/one/../one/liba-fi.so", "- %/one/libb-fi.so"],
            ),
            (Some("%/two:%/two/"), false, &["- %/two/libz-fi.so"]),
            // Not absolute, missing, empty: told, and not tried.
            (Some("+one/liba-fi.so"), false, &standard),
            (Some("+%/one/no-fi.so"), false, &standard),
            (Some("+"), false, &standard),
            (Some("%/none"), false, &[]),
            (Some("@@%/two"), true, &[]),
        ];
        for (setting, first_wins, expected) in cases {
            let setting = setting.map(|text| scratch.expand(text));
            let search = Search::new(
                setting.as_deref().map(OsStr::new),
                &["verbs", "ofi_rxm", "off_coll"],
                &[scratch.path("std")],
            );
            assert_eq!(search.first_wins, *first_wins, "{setting:?}");
            assert_eq!(told(&scratch, &search), *expected, "{setting:?}");
        }
    }

    #[test]
    fn only_plugins_of_a_folder_last_name_first() {
        let scratch = Scratch::new(
            "names",
            &[
                "a-fi.so",
                "B-fi.so",
                "xfi.so",
                "fi.so",
                "liba.so",
                "a-fi.so.1",
                "dir/x-fi.so",
            ],
        );
        create_dir(scratch.path("folder-fi.so")).unwrap();
        symlink("nowhere", scratch.path("dangling-fi.so")).unwrap();
        symlink("a-fi.so", scratch.path("Again-fi.so")).unwrap();
        let search = Search::new(Some(OsStr::new(&scratch.expand("%"))), &[], &[]);
        let expected = [
            "- %/xfi.so",
            "- %/folder-fi.so",
            "- %/dangling-fi.so",
            "- %/a-fi.so",
            "- %/B-fi.so",
        ];
        assert_eq!(told(&scratch, &search), expected);
    }

    #[test]
    fn a_wrong_guess_is_told_from_a_plugin_that_cannot_load() {
        let guess = Candidate::Guess("libverbs-fi.so".into());
        let cases = [
            (
                "libverbs-fi.so: cannot open shared object file: No such file or directory",
                true,
            ),
            (
                "libibverbs.so.1: cannot open shared object file: No such file or directory",
                false,
            ),
            ("/usr/lib/libverbs-fi.so: undefined symbol: ibv_open_device", false),
            ("", false),
        ];
        for (complaint, wrong) in cases {
            assert_eq!(guess.is_wrong_guess(complaint), wrong, "{complaint}");
            assert!(!Candidate::Found("libverbs-fi.so".into()).is_wrong_guess(complaint));
        }
    }

    #[test]
    fn default_folders_stand_beside_the_library() {
        let scratch = Scratch::new("default", &["real/libfabric.so.1.2", "bin/program"]);
        create_dir(scratch.path("link")).unwrap();
        symlink("../real/libfabric.so.1.2", scratch.path("link/libfabric.so.1")).unwrap();
        let cases: &[(Option<&str>, Option<&str>, &[&str])] = &[
            (None, None, &[]),
            (None, Some("/opt/a:/opt/b"), &["/opt/a", "/opt/b"]),
            (Some("%/real/libfabric.so.1.2"), None, &["%/real/libfabric"]),
            (
                Some("%/link/libfabric.so.1"),
                Some("/opt/a"),
                &["%/link/libfabric", "%/real/libfabric", "/opt/a"],
            ),
            (Some("%/bin/program"), Some(""), &[]),
        ];
        for (file, built_in, expected) in cases {
            let file = file.map(|file| PathBuf::from(scratch.expand(file)));
            let expected: Vec<PathBuf> = expected.iter().map(|folder| scratch.expand(folder).into()).collect();
            assert_eq!(default_folders(file.as_deref(), *built_in), expected, "{file:?}");
        }
    }
}
