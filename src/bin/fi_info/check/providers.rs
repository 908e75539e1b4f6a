//! Each provider: usable, or why not. What the library refused, and whether an endpoint of what it offers really opens.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::library::{Library, Trial};
use super::machine::Machine;
use crate::json::Json;

/// These need no device, so that they should be there.
const EVERYWHERE: [&str; 2] = ["shm", "tcp"];

pub fn check(machine: &Machine, library: &Library) -> Section {
    let mut findings: Vec<Finding> = library.trials.iter().map(tried).collect();
    findings.extend(unusable(machine, library));
    if library.usable().is_empty() {
        let why = library.failed.as_deref().unwrap_or("no provider");
        findings.insert(0, none(machine, why));
    }
    findings.extend(library.warnings().into_iter().map(warned));
    Section {
        subject: "providers",
        title: "Providers",
        findings,
    }
}

fn none(machine: &Machine, why: &str) -> Finding {
    let advice = match machine.var("FI_PROVIDER") {
        Some(value) => format!("FI_PROVIDER={value} says which may be used: unset FI_PROVIDER, and check again."),
        None => "The lines below say what each one lacks; `fi_info --why` says it of every candidate.".into(),
    };
    Finding::broken(
        "none",
        format!("No provider can be used: fi_getinfo says {why:?}."),
        advice,
    )
}

fn tried(trial: &Trial) -> Finding {
    let Trial {
        provider, domain, kind, ..
    } = trial;
    let finding = match &trial.failed {
        None => Finding::fine(
            "usable",
            format!("{provider} can be used: an endpoint ({kind}) opens on {domain}."),
        ),
        Some((call, error)) => {
            let said = trial
                .logged
                .as_ref()
                .map_or(String::new(), |line| format!("; the library says: {line}"));
            Finding::broken(
                "broken",
                format!("{provider} is offered, but {call} on {domain} fails: {error}{said}."),
                format!(
                    "Mend what the line says, or leave the provider out: FI_PROVIDER=^{}.",
                    last(provider)
                ),
            )
            .with_text("call", call)
            .with_text("error", error)
        }
    };
    finding
        .with_text("provider", provider)
        .with_text("domain", domain)
        .with_text("type", kind)
        .with("opened", Json::Bool(trial.failed.is_none()))
}

/// The name by which FI_PROVIDER leaves one out.
fn last(provider: &str) -> &str {
    provider.rsplit(';').next().unwrap_or(provider)
}

/// Those that offer nothing, with the library's reason, and those of which only a part is refused.
fn unusable<'a>(machine: &'a Machine, library: &'a Library) -> impl Iterator<Item = Finding> + 'a {
    let usable = library.usable();
    library
        .refusals
        .iter()
        .filter(|refusal| refusal.provider != "core")
        .map(move |refusal| {
            let name = &refusal.provider;
            let which = refusal
                .candidate
                .as_ref()
                .map_or_else(|| name.clone(), |which| format!("{name} ({which})"));
            let sentence = format!("{which} cannot be used: {}.", refusal.reason.trim_end_matches('.'));
            let filtered = machine
                .var("FI_PROVIDER")
                .filter(|_| refusal.reason.contains("FI_PROVIDER"));
            let finding = match filtered {
                Some(value) => Finding::fine("refused", sentence).advise(format!(
                    "To have it: unset FI_PROVIDER (it is {value}), or name {name} there."
                )),
                None if EVERYWHERE.contains(&&**name) && !usable.contains(&&**name) => Finding::warning(
                    "refused",
                    sentence,
                    format!("Mend that; `fi_info --why -p {name}` says it again."),
                ),
                None => Finding::fine("refused", sentence).advise(format!(
                    "Nothing, unless this machine should have it: then `fi_info --why -p {name}`."
                )),
            };
            finding.with_text("provider", name).with_text("reason", &refusal.reason)
        })
}

fn warned(line: String) -> Finding {
    let sentence = format!("The library warns: {line}.").replace("..", ".");
    Finding::warning(
        "warned",
        sentence,
        "Mend what the line names; FI_LOG_LEVEL=info shows what led to it.",
    )
    .with_text("line", line)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::library::Offer;
    use super::super::machine::made_up::MadeUp;
    use super::*;
    use crate::abi::types::{FI_LOG_INFO, FI_LOG_WARN};
    use crate::ffi::Line;
    use crate::why::Refusal;

    fn trial(provider: &str) -> Trial {
        Trial {
            provider: provider.into(),
            domain: "eth0".into(),
            kind: "FI_EP_RDM".into(),
            ..Trial::default()
        }
    }

    fn offer(provider: &str) -> Offer {
        Offer {
            provider: provider.into(),
            ..Offer::default()
        }
    }

    fn refusal(provider: &str, reason: &str) -> Refusal {
        Refusal {
            provider: provider.into(),
            candidate: None,
            reason: reason.into(),
        }
    }

    fn only(section: Section) -> Finding {
        assert_eq!(section.findings.len(), 1);
        section.findings.into_iter().next().unwrap()
    }

    #[test]
    fn an_endpoint_that_opens_and_one_that_does_not() {
        let made = MadeUp::new();
        let mut library = Library {
            offers: vec![offer("tcp")],
            trials: vec![trial("tcp")],
            ..Library::default()
        };
        let fine = only(check(&made.0, &library));
        assert_eq!(
            (fine.level, &*fine.sentence),
            (Level::Fine, "tcp can be used: an endpoint (FI_EP_RDM) opens on eth0.")
        );
        library.trials[0].failed = Some(("fi_endpoint".into(), "Too many open files".into()));
        library.trials[0].logged = Some("no descriptors".into());
        let broken = only(check(&made.0, &library));
        assert_eq!(broken.level, Level::Broken);
        for part in [
            "fi_endpoint on eth0 fails: Too many open files",
            "the library says: no descriptors",
        ] {
            assert!(broken.sentence.contains(part), "{}", broken.sentence);
        }
        assert!(broken.advice.unwrap().contains("FI_PROVIDER=^tcp"));
    }

    #[test]
    fn what_needs_no_device_should_be_there() {
        let made = MadeUp::new();
        let mut library = Library {
            offers: vec![offer("shm")],
            refusals: vec![refusal("tcp", "no interface"), refusal("verbs", "no device")],
            ..Library::default()
        };
        let levels = |library: &Library| {
            check(&made.0, library)
                .findings
                .iter()
                .map(|one| one.level)
                .collect::<Vec<_>>()
        };
        assert_eq!(levels(&library), [Level::Warning, Level::Fine]);
        // One of its candidates alone is no matter.
        library.offers.push(offer("tcp"));
        assert_eq!(levels(&library), [Level::Fine, Level::Fine]);
        assert!(check(&made.0, &library).findings.iter().all(|one| one.advice.is_some()));
    }

    #[test]
    fn nothing_usable_is_broken_and_names_the_variable() {
        let made = MadeUp::new().set("FI_PROVIDER", "tpc");
        let library = Library {
            failed: Some("No data available".into()),
            refusals: vec![refusal("tcp", "FI_PROVIDER leaves it out")],
            ..Library::default()
        };
        let found = check(&made.0, &library).findings;
        assert_eq!((found[0].level, found[1].level), (Level::Broken, Level::Fine));
        assert!(found[0].sentence.contains("No data available"));
        assert!(found[0].advice.as_ref().unwrap().contains("unset FI_PROVIDER"));
        assert!(found[1].advice.as_ref().unwrap().contains("it is tpc"));
    }

    #[test]
    fn warnings_of_the_log_are_told_once() {
        let line = |level, text: &str| Line {
            provider: b"core".to_vec(),
            level,
            func: Vec::new(),
            text: text.as_bytes().to_vec(),
        };
        let made = MadeUp::new();
        let lines = vec![
            line(FI_LOG_WARN, "a is odd"),
            line(FI_LOG_INFO, "b"),
            line(FI_LOG_WARN, "a is odd"),
        ];
        let library = Library {
            offers: vec![offer("tcp")],
            lines,
            ..Library::default()
        };
        let found = only(check(&made.0, &library));
        assert_eq!(
            (found.level, &*found.sentence),
            (Level::Warning, "The library warns: core: a is odd.")
        );
    }
}
