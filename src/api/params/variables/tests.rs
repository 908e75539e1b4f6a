//! The table against the source and the manual: what it lists is read somewhere, or docs/environment.md says that it is
//! ignored.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../docs/environment.md");

/// The row of `docs/environment.md` for a variable.
fn row(name: &str) -> &'static str {
    let start = format!("| `FI_{}` |", name.to_ascii_uppercase());
    let row = PAGE.lines().find(|line| line.starts_with(&start));
    row.unwrap_or_else(|| panic!("no row {start}"))
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder of the source") {
        let path = entry.expect("a name").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What ships of the library, but for this list, without its tests.
fn shipped() -> String {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let ships = |path: &PathBuf| {
        let is_test = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        !is_test && !path.ends_with("params/variables/mod.rs")
    };
    let text = |path: PathBuf| {
        let text = fs::read_to_string(path).expect("source is text");
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        text[..end].to_owned()
    };
    files.into_iter().filter(ships).map(text).collect()
}

/// `get`, `text` and `number` are the log's own ways to `params::get`, and `prefer_sysconfig` is read before there is
/// one.
fn is_read(source: &str, name: &str) -> bool {
    let calls = ["core_string(", "core_os_string(", "core_size(", "get("];
    let with_another = ["text(get, ", "number(get, ", "get(Owner::CORE, "];
    let mut ways = calls.iter().chain(&with_another);
    ways.any(|call| source.contains(&format!("{call}\"{name}\"")))
}

#[test]
fn every_variable_is_read_or_said_to_be_ignored() {
    let source = shipped();
    let mut ignored = Vec::new();
    for (name, _, help) in VARIABLES {
        let says_so = help.contains("ignored");
        assert_eq!(says_so, row(name).contains("ignored"), "help and page differ on {name}");
        if says_so {
            ignored.push(*name);
        } else {
            assert!(
                is_read(&source, name),
                "nothing reads {name}, and its help promises something"
            );
        }
    }
    let expected = [
        "hook",
        "fork_unsafe",
        "universe_size",
        "av_remove_cleanup",
        "offload_coll_provider",
    ];
    assert_eq!(ignored, expected);
    // All but FI_HOOK, for which there is a warning, are read by nobody.
    assert_eq!(ignored.iter().filter(|name| is_read(&source, name)).count(), 1);
}
