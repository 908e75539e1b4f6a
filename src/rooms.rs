//! Holds the rule of `lib.rs` about who may use whom, by reading every import of the crate's own source.

use std::fs;
use std::path::{Path, PathBuf};

/// In the order of the rule: a room may use those that stand after it.
const ROOMS: [&str; 8] = ["abi", "provider", "api", "transport", "sys", "engine", "mem", "util"];
/// Those to which the public C types are open.
const KNOW_THE_TYPES: [&str; 2] = ["provider", "api"];

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

/// What ships of a file: tests may use any room.
fn shipped(path: &Path) -> String {
    let in_tests = path.components().any(|part| part.as_os_str() == "tests");
    let is_test = in_tests || path.ends_with("tests.rs") || path.ends_with("sys/child.rs");
    let text = fs::read_to_string(path).expect("source is text");
    match text.find("#[cfg(test)]\nmod ") {
        _ if is_test => String::new(),
        Some(at) if text[at..].contains("mod tests {") => text[..at].to_owned(),
        _ => text,
    }
}

/// The rooms that a text names as `crate::ROOM`, with what follows.
fn named(text: &str) -> impl Iterator<Item = (&'static str, &str)> {
    text.split("crate::").skip(1).filter_map(|rest| {
        let room = ROOMS.iter().find(|room| {
            rest.strip_prefix(**room)
                .is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        room.map(|room| (*room, rest))
    })
}

fn may_use(user: &str, room: &str, path: &str) -> bool {
    let place = |name: &str| ROOMS.iter().position(|room| *room == name);
    let types = path.starts_with("abi::types") && KNOW_THE_TYPES.contains(&user);
    types || place(user) <= place(room)
}

#[test]
fn a_room_uses_those_after_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for user in ROOMS {
        let mut files = Vec::new();
        sources(&source.join(user), &mut files);
        for file in files {
            for (room, path) in named(&shipped(&file)) {
                seen += 1;
                if !may_use(user, room, path) {
                    wrong.push(format!("{}: crate::{room}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "against the rule of lib.rs:\n{}", wrong.join("\n"));
    assert!(seen > ROOMS.len() * ROOMS.len(), "the imports were not found");
}

/// Where a text that ships says the name of a provider of this library. Comments may.
fn lines_with<'a>(text: &'a str, provider: &str) -> impl Iterator<Item = &'a str> {
    let (path, module) = (format!("{provider}::"), format!("::{provider}"));
    let value = provider[..1].to_uppercase() + &provider[1..];
    let says = move |line: &str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        line.contains(&path) || line.contains(&module) || words.any(|word| word.starts_with(&value))
    };
    text.lines()
        .filter(move |line| !line.trim_start().starts_with("//") && says(line))
}

/// What knows a provider is its own folders here and in `transport`, and its line in the list of all.
#[test]
fn nobody_else_knows_a_provider() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = fs::read_dir(source.join("provider")).expect("a folder of the source");
    let names = folders.map(|entry| entry.expect("a name").file_name().into_string().expect("text"));
    let list = source.join("abi/built_in.rs");
    let listed = shipped(&list);
    let providers: Vec<String> = names.filter(|name| lines_with(&listed, name).count() > 0).collect();
    assert!(!providers.is_empty(), "no provider was found");
    let mut files = Vec::new();
    for room in ROOMS.iter().filter(|room| !["provider", "transport"].contains(room)) {
        sources(&source.join(room), &mut files);
    }
    for file in files.iter().filter(|file| **file != list) {
        let text = shipped(file);
        for provider in &providers {
            let said: Vec<&str> = lines_with(&text, provider).collect();
            assert!(said.is_empty(), "{} knows {provider}: {said:?}", file.display());
        }
    }
}

#[test]
fn the_rule_is_the_one_that_is_told() {
    let told = include_str!("lib.rs");
    assert!(
        told.contains(&format!("`{}`", ROOMS.join("` -> `"))),
        "lib.rs tells another order"
    );
}

#[test]
fn what_is_wrong_is_found() {
    let text = "use crate::api::errno; use crate::apiary::x; crate::abi::types::X; crate::abi::entry";
    let found: Vec<_> = named(text)
        .map(|(room, path)| (room, may_use("engine", room, path)))
        .collect();
    assert_eq!(found, [("api", false), ("abi", false), ("abi", false)]);
    let knows = |line| lines_with(line, "shm").count() == 1;
    assert!(knows("use crate::provider::shm;") && knows("shm::open()") && knows("Box::new(ShmTransport)"));
    assert!(!knows("\"/dev/shm\"") && !knows("FI_PROTO_SHM") && !knows("// as provider::shm does"));
    assert!(may_use("api", "abi", "abi::types::X") && !may_use("api", "abi", "abi::entry"));
    assert!(may_use("engine", "util", "util::slab") && !may_use("engine", "sys", "sys::clock"));
}
