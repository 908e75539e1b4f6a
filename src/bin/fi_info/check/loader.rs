//! Which libfabric.so.1 this is, and which others the loader would find, in its order (ld.so(8)).
//!
//! Called by `mod`.

use super::cache;
use super::finding::{Finding, Section};
use super::library::Library;
use super::machine::Machine;
use crate::json::Json;
use std::path::{Path, PathBuf};

const NAME: &str = "libfabric.so.1";
/// Where the loader looks at last, on one distribution or another.
const USUAL: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// What this program has mapped.
const MAPS: &str = "/proc/self/maps";
/// What only this library has: its own node of symbol versions.
const OWN_NODE: &[u8] = b"FABRIC_RS_1.0";

/// A libfabric.so.1 of this machine.
struct Found {
    path: PathBuf,
    real: PathBuf,
    /// What makes the loader find it.
    by: String,
    ours: bool,
}

pub fn check(machine: &Machine, library: &Library) -> Section {
    let loaded = loaded(machine);
    let found = found(machine);
    let mut findings = vec![
        this(machine, library, loaded.as_deref()),
        first(loaded.as_deref(), &found),
    ];
    let others = found.iter().skip(1).filter(|one| Some(&one.real) != loaded.as_ref());
    findings.extend(others.map(other));
    Section {
        subject: "library",
        title: "Which libfabric.so.1",
        findings,
    }
}

/// The file that this program has mapped.
pub fn loaded(machine: &Machine) -> Option<PathBuf> {
    let maps = machine.text(MAPS)?;
    let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let path = paths.find(|path| Path::new(path).file_name().is_some_and(is_libfabric))?;
    Some(PathBuf::from(path))
}

fn is_libfabric(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("libfabric.so")
}

fn this(machine: &Machine, library: &Library, loaded: Option<&Path>) -> Finding {
    let program = machine.link("/proc/self/exe").unwrap_or_else(|| "fi_info".into());
    let version = &library.version;
    let Some(path) = loaded else {
        if !machine.exists(MAPS) {
            let sentence = format!("This is libfabric {version}; without {MAPS} it is not known from which file.");
            return Finding::warning("loaded", sentence, "mount -t proc proc /proc, as root.")
                .with_text("version", version)
                .with_text("program", program);
        }
        return Finding::fine(
            "loaded",
            format!("This is libfabric {version}, linked into {program} itself."),
        )
        .with_text("version", version)
        .with_text("program", program);
    };
    let ours = is_ours(machine, path);
    let file = path.display();
    let mut finding = Finding::fine(
        "loaded",
        format!(
            "This is {}, {} {version}; {program} is linked with it.",
            file,
            whose(ours)
        ),
    );
    if !ours {
        let beside = beside(machine, &program).unwrap_or_else(|| PathBuf::from("FOLDER"));
        finding = finding.advise(format!(
            "For libfabric-rs: export LD_LIBRARY_PATH={}, before any other folder.",
            beside.display()
        ));
    }
    finding
        .with_text("path", file.to_string())
        .with_text("version", version)
        .with("libfabric_rs", Json::Bool(ours))
        .with_text("program", program)
}

/// The folder of the library of ours that came with this program, as its rpath has it.
fn beside(machine: &Machine, program: &str) -> Option<PathBuf> {
    let folder = Path::new(program).parent()?.parent()?.join("lib");
    is_ours(machine, &folder.join(NAME)).then_some(folder)
}

fn whose(ours: bool) -> &'static str {
    if ours {
        "libfabric-rs"
    } else {
        "not libfabric-rs but the C library or one made of it,"
    }
}

fn is_ours(machine: &Machine, path: &Path) -> bool {
    let bytes = machine.bytes(path).unwrap_or_default();
    bytes.windows(OWN_NODE.len()).any(|window| window == OWN_NODE)
}

/// What a program gets that has no path of its own to a library.
fn first(loaded: Option<&Path>, found: &[Found]) -> Finding {
    let folder = loaded.and_then(Path::parent).unwrap_or(Path::new("FOLDER")).display();
    let advice = format!("To use this one: export LD_LIBRARY_PATH={folder}; or install it, and run ldconfig.");
    let Some(one) = found.first() else {
        return Finding::warning(
            "first",
            format!("A program without an rpath would find no {NAME}."),
            advice,
        );
    };
    let path = one.path.display();
    let finding = if loaded.is_none_or(|loaded| loaded == one.real) {
        Finding::fine(
            "first",
            format!(
                "A program without an rpath loads this one too, as {path}, by {}.",
                one.by
            ),
        )
    } else {
        let whose = whose(one.ours).trim_end_matches(',');
        Finding::warning(
            "first",
            format!(
                "A program without an rpath loads another one: {path}, by {}; it is {whose}.",
                one.by
            ),
            advice,
        )
    };
    told(finding, one)
}

fn other(one: &Found) -> Finding {
    let sentence = format!(
        "Also there, behind it: {}, by {}; it is {}.",
        one.path.display(),
        one.by,
        whose(one.ours).trim_end_matches(',')
    );
    told(Finding::fine("other", sentence), one)
}

fn told(finding: Finding, one: &Found) -> Finding {
    finding
        .with_text("path", one.path.display().to_string())
        .with_text("file", one.real.display().to_string())
        .with_text("by", &one.by)
        .with("libfabric_rs", Json::Bool(one.ours))
}

/// All that the loader would find for a program of this kind, each file once, first the one that it takes.
fn found(machine: &Machine) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (path, by) in candidates(machine) {
        let Some(real) = machine.real(&path) else { continue };
        if fits(machine, &path) && !found.iter().any(|one| one.real == real) {
            let ours = is_ours(machine, &path);
            found.push(Found { path, real, by, ours });
        }
    }
    found
}

fn candidates(machine: &Machine) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    let preloaded = machine.text("/etc/ld.so.preload").unwrap_or_default();
    for (list, by) in [
        (machine.var("LD_PRELOAD").unwrap_or_default(), "LD_PRELOAD"),
        (&preloaded, "/etc/ld.so.preload"),
    ] {
        // A bare name is looked for where the loader looks for all others.
        let paths = list.split([' ', ':', '\n', '\t']).filter(|path| path.contains('/'));
        let named = paths
            .map(PathBuf::from)
            .filter(|path| path.file_name().is_some_and(is_libfabric));
        all.extend(named.map(|path| (machine.absolute(path), by.to_owned())));
    }
    let folders = machine.var("LD_LIBRARY_PATH").map(|list| list.split([':', ';']));
    // An empty one is where the program is started, as any that does not begin at the root.
    all.extend(folders.into_iter().flatten().map(|folder| {
        let here = if folder.starts_with('/') {
            ""
        } else {
            ", from this folder alone"
        };
        (machine.absolute(folder).join(NAME), format!("LD_LIBRARY_PATH{here}"))
    }));
    let cache = machine.bytes("/etc/ld.so.cache").unwrap_or_default();
    all.extend(
        cache::paths(&cache, NAME)
            .into_iter()
            .map(|path| (path.into(), "/etc/ld.so.cache".into())),
    );
    all.extend(
        USUAL
            .iter()
            .map(|folder| (Path::new(folder).join(NAME), format!("the usual folder {folder}"))),
    );
    all
}

/// Of the same kind of processor as this program: the loader passes over others.
fn fits(machine: &Machine, path: &Path) -> bool {
    let kind = |path: &Path| {
        let head = machine.head(path, 20)?;
        let elf = head.starts_with(b"\x7fELF") && head.len() == 20;
        elf.then(|| (head[4], head[5], head[18], head[19]))
    };
    let own = kind(Path::new("/proc/self/exe"));
    let its = kind(path);
    its.is_some() && (own.is_none() || own == its)
}

#[cfg(test)]
mod tests {
    use super::super::machine::made_up::MadeUp;
    use super::*;
    use crate::check::finding::Level;

    /// The beginning of a library for a processor of this number.
    fn elf(processor: u8, content: &[u8]) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01".to_vec();
        head.resize(18, 0);
        [&head[..], &[processor, 0], content].concat()
    }

    fn library() -> Library {
        Library {
            version: "2.6.0".into(),
            ..Library::default()
        }
    }

    /// A program that has mapped the one in /opt/rs.
    fn machine() -> MadeUp {
        MadeUp::new()
            .put("/opt/rs/libfabric.so.1", elf(62, OWN_NODE))
            .put(
                "/proc/self/maps",
                "7f0 r-xp 0 0:1 5   /usr/lib/libc.so.6\n7f1 r-xp 0 0:1 6  /opt/rs/libfabric.so.1\n",
            )
            .put("/bin/fi_info", elf(62, b""))
            .link("/proc/self/exe", "../../bin/fi_info")
    }

    fn sentences(section: &Section) -> Vec<(Level, &str)> {
        section
            .findings
            .iter()
            .map(|finding| (finding.level, &*finding.sentence))
            .collect()
    }

    #[test]
    fn nobody_else_finds_this_one() {
        let made = machine();
        let section = check(&made.0, &library());
        let [(Level::Fine, this), (Level::Warning, first)] = sentences(&section)[..] else {
            panic!()
        };
        assert!(
            this.starts_with("This is /opt/rs/libfabric.so.1, libfabric-rs 2.6.0; "),
            "{this}"
        );
        assert!(this.contains("bin/fi_info is linked with it"), "{this}");
        assert!(first.contains("would find no libfabric.so.1"), "{first}");
        assert!(
            section.findings[1]
                .advice
                .as_ref()
                .unwrap()
                .contains("LD_LIBRARY_PATH=/opt/rs;")
        );
    }

    #[test]
    fn the_loaders_order() {
        let c = elf(62, b"FABRIC_1.9");
        let cache = cache::tests::cache(&[(NAME, "/usr/lib/old/libfabric.so.1")]);
        let made = machine()
            .put("/usr/lib/old/libfabric.so.1", &c)
            .put("/usr/lib64/libfabric.so.1", &c)
            .put("/arm/libfabric.so.1", elf(183, b""))
            .put("/etc/ld.so.cache", cache)
            .set("LD_LIBRARY_PATH", "/none::/arm:/opt/rs");
        let section = check(&made.0, &library());
        let all = sentences(&section);
        assert!(
            all[1]
                .1
                .contains("loads this one too, as /opt/rs/libfabric.so.1, by LD_LIBRARY_PATH"),
            "{all:?}"
        );
        assert!(
            all[2]
                .1
                .contains("/usr/lib/old/libfabric.so.1, by /etc/ld.so.cache; it is not libfabric-rs but")
        );
        assert!(
            all[3]
                .1
                .contains("/usr/lib64/libfabric.so.1, by the usual folder /usr/lib64"),
            "{all:?}"
        );
        assert!(all.len() == 4 && all.iter().all(|one| one.0 == Level::Fine), "{all:?}");
    }

    #[test]
    fn folders_that_begin_where_the_program_is_started() {
        let made = machine()
            .put("/here/libfabric.so.1", elf(62, b""))
            .put("/here/own/libfabric.so.1", elf(62, b""))
            .set("LD_LIBRARY_PATH", "own:")
            .set("LD_PRELOAD", "libfabric.so.1");
        let section = check(&made.0, &library());
        let all = sentences(&section);
        let told = "/here/own/libfabric.so.1, by LD_LIBRARY_PATH, from this folder alone;";
        assert!(all[1].1.contains(told), "{all:?}");
        assert!(all[2].1.contains("/here/libfabric.so.1, by LD_LIBRARY_PATH"), "{all:?}");
    }

    #[test]
    fn what_is_preloaded_goes_before_all() {
        let made = machine()
            .put("/x/libfabric.so.1.2", elf(62, b""))
            .set("LD_LIBRARY_PATH", "/opt/rs")
            .set("LD_PRELOAD", "/x/other.so /x/libfabric.so.1.2");
        let section = check(&made.0, &library());
        let (level, first) = sentences(&section)[1];
        assert_eq!(level, Level::Warning);
        assert!(
            first.contains("loads another one: /x/libfabric.so.1.2, by LD_PRELOAD"),
            "{first}"
        );
    }

    #[test]
    fn another_library_under_this_program() {
        let made = MadeUp::new()
            .put("/opt/c/libfabric.so.1", elf(62, b"FABRIC_1.9"))
            .put("/opt/rs/lib/libfabric.so.1", elf(62, OWN_NODE))
            .put("/proc/self/maps", "7f1 r-xp 0 0:1 6  /opt/c/libfabric.so.1\n")
            .link("/proc/self/exe", "/opt/rs/bin/fi_info");
        let this = &check(&made.0, &library()).findings[0];
        assert!(this.sentence.contains("not libfabric-rs"), "{}", this.sentence);
        assert!(this.advice.as_ref().unwrap().contains("LD_LIBRARY_PATH=/opt/rs/lib,"));
    }

    #[test]
    fn a_program_with_the_library_inside() {
        let made = MadeUp::new();
        let unknown = &check(&made.0, &library()).findings[0];
        assert!(unknown.level == Level::Warning && unknown.sentence.contains("without /proc/self/maps"));
        let made = made.put(MAPS, "7f0 r-xp 0 0:1 5   /usr/lib/libc.so.6\n");
        let section = check(&made.0, &library());
        assert!(section.findings[0].sentence.contains("linked into fi_info itself"));
    }
}
