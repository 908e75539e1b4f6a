//! Bodies of the fuzz targets: each takes any bytes, reads them as one kind of text from outside or as what another
//! process has written, and holds the answer against what must always be true of it.
//!
//! `fuzz/` runs them under cargo-fuzz, for as long as one likes; the tests below run each on some thousand generated
//! inputs, always the same ones. Compiled for nothing else.

#![forbid(unsafe_code)]

mod packets;
mod scene;
mod stream;

use crate::abi::types::*;
use crate::api::config::Config;
use crate::api::errno::{Errno, Result};
use crate::api::info::address::{self, End, Family, Names, Resolver};
use crate::api::info::model::{FabricAttr, Info};
use crate::api::info::query::{Answer, LIBRARY_VERSION, Query};
use crate::provider::external::Search;
use crate::provider::filter::Filter;
use crate::provider::getinfo;
use crate::provider::registry::Registry;
use crate::provider::{Kind, Provider};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;

/// What is done with each input.
type Body = fn(&[u8]);

/// Bodies, by the names of their files in `fuzz/fuzz_targets`.
pub const TARGETS: [(&str, Body); 9] = [
    ("provider_filter", provider_filter),
    ("provider_path", provider_path),
    ("layering", layering),
    ("address", address),
    ("config", config),
    ("packets", packets),
    ("stream", stream),
    ("shared_file", shared_file),
    ("help", help),
];

pub use crate::transport::shm::fuzz::{help, shared_file};
pub use packets::packets;
pub use stream::stream;

const NAMES: [(&str, Kind); 4] = [
    ("tcp", Kind::Core),
    ("shm", Kind::Core),
    ("ofi_rxm", Kind::Utility),
    ("off_coll", Kind::Offload),
];

/// FI_PROVIDER.
pub fn provider_filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let filter = Filter::parse(Some(&text));
    for unknown in filter.unknown(&["tcp", "shm"]) {
        assert!(text.contains(&unknown.name), "{unknown:?} is not in {text:?}");
        assert!(!["tcp", "shm"].contains(&unknown.name.as_str()));
    }
    // A caret in front turns the answer about infos round, unless there is nothing it could be about.
    if text.starts_with('^') || text.split(',').all(|name| name.trim().is_empty()) {
        return;
    }
    let negated = Filter::parse(Some(&format!("^{text}")));
    for name in ["tcp", "shm", "tcp;ofi_rxm", "shm;ofi_rxd", "", ";"] {
        assert_ne!(
            filter.hides_info(name),
            negated.hides_info(name),
            "{name:?} by {text:?}"
        );
    }
    for (name, kind) in NAMES {
        assert!(
            !(filter.hides_provider(name, kind) && negated.hides_provider(name, kind)),
            "{name} by {text:?}"
        );
    }
}

/// FI_PROVIDER_PATH. Only read, never followed: what is on this machine's disk is no part of the input.
pub fn provider_path(data: &[u8]) {
    let search = |text: &[u8]| {
        let defaults = ["/usr/lib/libfabric".into()];
        Search::new(Some(OsStr::from_bytes(text)), &["tcp", "verbs"], &defaults)
    };
    let found = search(data);
    assert_eq!(found.first_wins, data.starts_with(b"@"), "{data:?}");
    // More colons name no more places.
    if !matches!(data, b"" | b"@") {
        assert_eq!(found, search(&[data, b":::"].concat()), "{data:?}");
    }
}

/// The provider name in hints, through all of fi_getinfo; a first line that begins with `=` is FI_PROVIDER.
pub fn layering(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (filter, prov_name) = match text.strip_prefix('=').map(|rest| rest.split_once('\n')) {
        Some(Some((filter, rest))) => (Filter::parse(Some(filter)), rest),
        _ => (Filter::default(), text.as_ref()),
    };
    let mut registry = Registry::new(filter);
    for (name, kind) in NAMES {
        registry.register(Box::new(Fake { name, kind }), false);
    }
    registry.warn_of_unknown_names();
    registry.find(prov_name);
    let hints = Info {
        fabric: Some(FabricAttr {
            prov_name: Some(prov_name.into()),
            ..FabricAttr::default()
        }),
        ..Info::default()
    };
    let query = query(Some(&hints), None, None);
    match getinfo::getinfo(&registry, &query) {
        Ok(answers) => {
            assert!(!answers.is_empty());
            for answer in answers {
                let name = answer.info.prov_name().unwrap_or_default();
                assert!(
                    NAMES.iter().any(|(known, _)| name == *known),
                    "{name:?} for {prov_name:?}"
                );
            }
        }
        Err(error) => assert_eq!(error, Errno(FI_ENODATA), "for {prov_name:?}"),
    }
}

/// Node, and after a line's end the service.
pub fn address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (node, service) = match text.split_once('\n') {
        Some((node, service)) => (node, Some(service)),
        None => (text.as_ref(), None),
    };
    for format in [
        FI_FORMAT_UNSPEC,
        FI_SOCKADDR,
        FI_SOCKADDR_IN,
        FI_SOCKADDR_IN6,
        FI_ADDR_STR,
    ] {
        for flags in [FI_NUMERICHOST, FI_NUMERICHOST | FI_SOURCE] {
            let mut query = query(None, Some(node), service);
            query.flags = flags;
            let mut info = Info {
                addr_format: format,
                ..Info::default()
            };
            if address::fill(&mut info, &query, &Nowhere).is_err() {
                continue;
            }
            for (place, bytes) in [("source", &info.src_addr), ("destination", &info.dest_addr)] {
                let fits = match info.addr_format {
                    FI_SOCKADDR_IN => size_of::<libc::sockaddr_in>(),
                    FI_SOCKADDR_IN6 => size_of::<libc::sockaddr_in6>(),
                    _ => continue,
                };
                assert!(
                    bytes.as_ref().is_none_or(|bytes| bytes.len() == fits),
                    "{place} of {text:?}"
                );
            }
        }
    }
    if let Some(bytes) = address::string_addr(Some(node)) {
        assert_eq!(bytes.split_last(), Some((&0, node.as_bytes())));
    }
}

/// The configuration file.
pub fn config(data: &[u8]) {
    let config = Config::parse(data);
    let mut written = Vec::new();
    for (name, value) in &config.entries {
        assert!(
            !name.is_empty() && name.trim() == name && !name.contains(['=', '\n', '\0']),
            "{name:?}"
        );
        assert!(!value.contains(&b'\n') && !value.contains(&0), "{name:?}");
        assert_eq!(config.get(name), Some(value.as_slice()));
        written.extend_from_slice(name.as_bytes());
        written.push(b'=');
        written.extend_from_slice(value);
        written.push(b'\n');
    }
    assert_eq!(
        Config::parse(&written),
        Config {
            entries: config.entries,
            complaints: Vec::new()
        }
    );
}

fn query<'a>(hints: Option<&'a Info>, node: Option<&'a str>, service: Option<&'a str>) -> Query<'a> {
    Query {
        version: LIBRARY_VERSION,
        node,
        service,
        flags: 0,
        hints,
        found: None,
        raw: None,
    }
}

/// A provider that offers one bare info, whatever is asked.
struct Fake {
    name: &'static str,
    kind: Kind,
}

impl Provider for Fake {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> u32 {
        1
    }
    fn fi_version(&self) -> u32 {
        LIBRARY_VERSION
    }
    fn kind(&self) -> Kind {
        self.kind
    }
    fn getinfo(&self, _query: &Query) -> Result<Vec<Answer>> {
        Ok(vec![Answer {
            info: Info::blank(),
            own: None,
        }])
    }
}

/// Knows no names and no routes, so that only what is written as an address counts.
struct Nowhere;

impl Resolver for Nowhere {
    fn lookup(&self, node: Option<&str>, service: Option<&str>, _: Family, _: End, _: Names) -> Option<SocketAddr> {
        Some(SocketAddr::new(
            node?.parse().ok()?,
            service.unwrap_or("0").parse().ok()?,
        ))
    }
    fn source_for(&self, dest: &SocketAddr) -> Option<SocketAddr> {
        Some(*dest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: usize = 4000;

    /// What the texts of all targets are made of; other bytes come in between.
    const WORDS: [&str; 42] = [
        "tcp",
        "TCP",
        "shm",
        "verbs",
        "ofi_rxm",
        "rxm",
        "off_coll",
        "^",
        "^^",
        ",",
        ",,",
        ";",
        ";;",
        ":",
        "::",
        "@",
        "+",
        "/",
        "/usr",
        "..",
        "=",
        "==",
        "#",
        "\n",
        " ",
        "\t",
        "\0",
        "FI_PROVIDER",
        "fi_sockaddr_in://",
        "fi_sockaddr://",
        "fi_sockaddr_in6://",
        "fi_addr_str://",
        "://",
        "127.0.0.1",
        "[::1]",
        "::1",
        "7471",
        "65536",
        "-1",
        "?",
        "é",
        "\u{202e}",
    ];

    /// Marsaglia's xorshift: the same inputs on every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }

        fn input(&mut self) -> Vec<u8> {
            let mut text = Vec::new();
            for _ in 0..self.below(12) {
                match self.below(8) {
                    0 => text.push(self.below(256) as u8),
                    _ => text.extend_from_slice(WORDS[self.below(WORDS.len())].as_bytes()),
                }
            }
            text
        }
    }

    fn try_all(name: &str) {
        let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for _ in 0..ROUNDS {
            target(&dice.input());
        }
        target(&b"^,;:@=\n".repeat(10_000));
    }

    #[test]
    fn provider_filter_holds() {
        try_all("provider_filter");
    }

    #[test]
    fn provider_path_holds() {
        try_all("provider_path");
    }

    #[test]
    fn layering_holds() {
        try_all("layering");
    }

    #[test]
    fn address_holds() {
        try_all("address");
    }

    #[test]
    fn config_holds() {
        try_all("config");
    }

    /// Bytes of any kind, for what is no text.
    fn try_bytes(target: fn(&[u8]), rounds: usize, most: usize) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for _ in 0..rounds {
            let len = dice.below(most);
            let data: Vec<u8> = (0..len).map(|_| dice.below(256) as u8).collect();
            target(&data);
        }
    }

    #[test]
    fn packets_hold() {
        try_bytes(packets, 1000, 2000);
    }

    #[test]
    fn streams_hold() {
        try_bytes(stream, 500, 1000);
    }

    #[test]
    fn shared_files_hold() {
        try_bytes(shared_file, 1000, 600);
    }

    #[test]
    fn requests_for_help_hold() {
        try_bytes(help, ROUNDS, 160);
    }

    /// What fuzzing has found or come across is tried again.
    #[test]
    fn the_corpus_holds() {
        for (name, target) in TARGETS {
            let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                target(&std::fs::read(entry.path()).unwrap());
            }
        }
    }

    #[test]
    fn inputs_are_not_all_refused() {
        let mut dice = Dice(1);
        let inputs: Vec<Vec<u8>> = (0..ROUNDS).map(|_| dice.input()).collect();
        assert!(inputs.iter().any(|input| Config::parse(input).entries.len() > 1));
        assert!(inputs.iter().any(|input| input.len() > 60) && inputs.iter().any(Vec::is_empty));
    }

    /// Each body has its target file, so that cargo-fuzz runs all there is.
    #[test]
    fn every_body_has_a_target() {
        for (name, _) in TARGETS {
            let file = format!("{}/fuzz/fuzz_targets/{name}.rs", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(text.contains(&format!("fabric::fuzz::{name}(")), "{file}");
        }
    }
}
