//! Every variable FI_* that is set: understood, misread, of no use here, or unknown, with the nearest that is known.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::library::Library;
use super::machine::Machine;
use super::settings::{self, Setting};
use crate::json::Json;
use std::collections::BTreeSet;

/// Names variables of the C library besides, which do nothing.
const PAGE: &str = include_str!("../../../../docs/environment.md");

pub fn check(machine: &Machine, library: &Library) -> Section {
    let known: Vec<String> = library
        .params
        .iter()
        .map(|param| String::from_utf8_lossy(&param.name).into_owned())
        .collect();
    let set = settings::all(machine);
    let mut findings: Vec<Finding> = set.iter().map(|setting| one(setting, library, &known)).collect();
    if findings.is_empty() {
        findings.push(
            Finding::fine("none", "No variable FI_* is set: everything is as by default.")
                .advise("`fi_info -e` lists those that there are."),
        );
    }
    Section {
        subject: "variables",
        title: "Variables",
        findings,
    }
}

fn one(setting: &Setting, library: &Library, known: &[String]) -> Finding {
    let (name, told, undo) = (&setting.name, setting.told(), setting.undo());
    let finding = if known.iter().any(|known| known == name) {
        understood(setting, library)
    } else if told_of().contains(&**name) {
        Finding::warning(
            "without_use",
            format!("{told} does nothing here: no provider that is loaded has it."),
            format!("{undo}; libfabric-rs(7) says what there is in its place."),
        )
    } else {
        unknown(setting, known)
    };
    let place = setting.file.as_deref().unwrap_or("environment");
    let finding = finding.with_text("name", name).with_text("value", &setting.value);
    finding.with_text("place", place)
}

/// By its name; whether its value is, the library says.
fn understood(setting: &Setting, library: &Library) -> Finding {
    let (name, told, undo) = (&setting.name, setting.told(), setting.undo());
    if let Some(winner) = &setting.beaten_by {
        let advice = format!("{undo}, as it does nothing.");
        return Finding::fine("known", format!("{told} is understood, but {winner} goes before it.")).advise(advice);
    }
    match library.warning_of(setting).or_else(|| nobody_logs_as(setting, library)) {
        None => Finding::fine("known", format!("{told} is understood.")),
        Some(why) => Finding::warning(
            "misread",
            format!("{told}: {}.", why.trim_end_matches('.')),
            format!("Set it to something else (`fi_info -g {name}` says what it may be), or {undo}."),
        ),
    }
}

/// Why FI_LOG_PROV does not do what it seems to. The library does not tell of it, as a plug-in may log by any name.
fn nobody_logs_as(setting: &Setting, library: &Library) -> Option<String> {
    if setting.name != "FI_LOG_PROV" {
        return None;
    }
    let is_known = |name: &str| {
        let mut known = library.providers.iter().map(|(known, _)| &**known);
        name.is_empty() || name.eq_ignore_ascii_case("core") || known.any(|known| known.eq_ignore_ascii_case(name))
    };
    let mut names = setting.value.trim_start_matches('^').split(',').map(str::trim);
    let stranger = names.find(|name| !is_known(name))?;
    let known: Vec<&str> = library.providers.iter().map(|(known, _)| &**known).collect();
    Some(format!(
        "no provider is called {stranger}; there are {}",
        known.join(", ")
    ))
}

fn unknown(setting: &Setting, known: &[String]) -> Finding {
    let near = nearest(&setting.name, known);
    let (told, undo) = (setting.told(), setting.undo());
    let advice = match near {
        Some(near) => format!("Perhaps {near} is meant: then {}. Else {undo}.", setting.put(near)),
        None => format!("{undo}; no name is near it, and `fi_info -e` lists those that are known."),
    };
    Finding::warning("unknown", format!("{told} is unknown, so it does nothing."), advice)
        .with("nearest", near.map_or(Json::Null, |near| Json::text(near.as_bytes())))
}

/// All names that the page has.
fn told_of() -> BTreeSet<&'static str> {
    let words = PAGE.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
    // One that ends so is the beginning of several.
    words
        .filter(|word| word.starts_with("FI_") && !word.ends_with('_'))
        .collect()
}

/// The known name that takes the fewest changes of a letter; None: it takes more than a third of the letters.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let changes = known.iter().map(|one| (distance(name, one), one));
    let (least, near) = changes.min_by_key(|(changes, _)| *changes)?;
    // FI_ is in all of them.
    (least <= name.len().saturating_sub(3) / 3).then_some(near)
}

/// How many letters must be put in, taken out or changed, or swapped with their neighbour (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine::made_up::MadeUp;
    use super::super::settings::tests::with_file;
    use super::*;
    use crate::abi::types::{FI_LOG_WARN, FI_PARAM_STRING};
    use crate::ffi::{Line, Param};

    fn library() -> Library {
        let param = |name: &&str| Param {
            name: name.as_bytes().to_vec(),
            kind: FI_PARAM_STRING,
            help: None,
            value: None,
        };
        Library {
            params: ["FI_PROVIDER", "FI_TCP_IFACE", "FI_LOG_LEVEL"]
                .iter()
                .map(param)
                .collect(),
            ..Library::default()
        }
    }

    #[test]
    fn each_variable_is_judged() {
        let made = MadeUp::new()
            .set("FI_PROVIDER", "tcp")
            .set("FI_TCP_IFCAE", "eth0")
            .set("FI_SHM_USE_XPMEM", "1")
            .set("FI_CHEESE_AND_WINE", "1")
            .set("HOME", "/root");
        let found = check(&made.0, &library()).findings;
        let told: Vec<(Level, &str)> = found.iter().map(|one| (one.level, &*one.sentence)).collect();
        let expected = [
            (Level::Warning, "FI_CHEESE_AND_WINE=1 is unknown, so it does nothing."),
            (Level::Fine, "FI_PROVIDER=tcp is understood."),
            (
                Level::Warning,
                "FI_SHM_USE_XPMEM=1 does nothing here: no provider that is loaded has it.",
            ),
            (Level::Warning, "FI_TCP_IFCAE=eth0 is unknown, so it does nothing."),
        ];
        assert_eq!(told, expected);
        assert!(found[0].advice.as_ref().unwrap().contains("no name is near"));
        assert!(found[3].advice.as_ref().unwrap().contains("export FI_TCP_IFACE=eth0"));
    }

    #[test]
    fn a_value_that_is_misread() {
        let line = |text: &str| Line {
            provider: b"core".to_vec(),
            level: FI_LOG_WARN,
            func: Vec::new(),
            text: text.as_bytes().to_vec(),
        };
        let library = Library {
            lines: vec![
                line("FI_LOG_LEVEL=a: b: not one of warn, info; warn is used"),
                line("FI_PROVIDER: no provider is called \"tpc\"; the nearest name is tcp"),
                line("FI_TCP_IFACES is odd"),
            ],
            ..library()
        };
        let made = MadeUp::new()
            .set("FI_LOG_LEVEL", "a: b")
            .set("FI_TCP_IFACE", "eth0")
            .set("FI_PROVIDER", "tpc");
        let found = check(&made.0, &library).findings;
        let told: Vec<(Level, &str)> = found.iter().map(|one| (one.level, &*one.sentence)).collect();
        let expected = [
            (
                Level::Warning,
                "FI_LOG_LEVEL=a: b: not one of warn, info; warn is used.",
            ),
            (
                Level::Warning,
                "FI_PROVIDER=tpc: no provider is called \"tpc\"; the nearest name is tcp.",
            ),
            (Level::Fine, "FI_TCP_IFACE=eth0 is understood."),
        ];
        assert_eq!(told, expected);
        assert!(found[1].advice.as_ref().unwrap().ends_with("or unset FI_PROVIDER."));
    }

    #[test]
    fn names_of_those_who_may_log() {
        let mut library = library();
        library.params.push(Param {
            name: b"FI_LOG_PROV".to_vec(),
            kind: FI_PARAM_STRING,
            help: None,
            value: None,
        });
        library.providers = vec![("tcp".into(), "1".into()), ("shm".into(), "1".into())];
        let told = |value: &str| {
            let made = MadeUp::new().set("FI_LOG_PROV", value);
            check(&made.0, &library).findings[0].sentence.clone()
        };
        for value in ["tcp", "^TCP,core", "shm, tcp"] {
            assert_eq!(told(value), format!("FI_LOG_PROV={value} is understood."));
        }
        assert_eq!(
            told("tcp,verbs"),
            "FI_LOG_PROV=tcp,verbs: no provider is called verbs; there are tcp, shm."
        );
    }

    #[test]
    fn the_configuration_file_sets_variables_too() {
        let made = MadeUp::new().set("FI_PROVIDER", "shm");
        let made = with_file(made, "FI_PROVIDER=tcp\nFI_TCP_IFCAE=eth0\n");
        let found = check(&made.0, &library()).findings;
        let told: Vec<&str> = found.iter().map(|one| &*one.sentence).collect();
        let expected = [
            "FI_PROVIDER=shm is understood.",
            "FI_PROVIDER=tcp in /etc/libfabric.conf is understood, but the environment goes before it.",
            "FI_TCP_IFCAE=eth0 in /etc/libfabric.conf is unknown, so it does nothing.",
        ];
        assert_eq!(told, expected);
        let advice = found[2].advice.as_ref().unwrap();
        assert!(
            advice.contains("write FI_TCP_IFACE=eth0 into /etc/libfabric.conf"),
            "{advice}"
        );
        assert!(
            advice.ends_with("Else take FI_TCP_IFCAE out of /etc/libfabric.conf."),
            "{advice}"
        );
    }

    #[test]
    fn without_any_there_is_an_answer() {
        let made = MadeUp::new();
        assert!(
            check(&made.0, &library()).findings[0]
                .sentence
                .contains("No variable FI_* is set")
        );
    }

    #[test]
    fn distances() {
        let rows = [
            ("", "", 0),
            ("a", "", 1),
            ("IFACE", "IFCAE", 1),
            ("IFACE", "FACE", 1),
            ("abc", "xbz", 2),
        ];
        for (one, other, changes) in rows {
            assert_eq!(
                (distance(one, other), distance(other, one)),
                (changes, changes),
                "{one} {other}"
            );
        }
    }
}
