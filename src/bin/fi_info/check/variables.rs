//! Every variable FI_* that is set: understood, of no use here, or unknown, with the nearest that is known.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::library::Library;
use super::machine::Machine;
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
    let set = machine.vars().filter(|(name, _)| name.starts_with("FI_"));
    let mut findings: Vec<Finding> = set.map(|(name, value)| one(name, value, &known)).collect();
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

fn one(name: &str, value: &str, known: &[String]) -> Finding {
    let finding = if known.iter().any(|known| known == name) {
        Finding::fine("known", format!("{name}={value} is understood."))
    } else if told_of().contains(name) {
        Finding::warning(
            "without_use",
            format!("{name}={value} does nothing here: no provider that is loaded has it."),
            format!("unset {name}; docs/environment.md says what there is in its place."),
        )
    } else {
        unknown(name, value, known)
    };
    finding.with_text("name", name).with_text("value", value)
}

fn unknown(name: &str, value: &str, known: &[String]) -> Finding {
    let near = nearest(name, known);
    let advice = match near {
        Some(near) => format!("Perhaps {near} is meant: then export {near}={value}. Else unset {name}."),
        None => format!("unset {name}; no name is near it, and `fi_info -e` lists those that are known."),
    };
    Finding::warning(
        "unknown",
        format!("{name}={value} is unknown, so it does nothing."),
        advice,
    )
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
    use super::*;
    use crate::abi::types::FI_PARAM_STRING;
    use crate::ffi::Param;

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
