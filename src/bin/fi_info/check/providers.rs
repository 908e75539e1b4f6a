//! Each provider: usable, or why not. What the library refused, and whether an endpoint of what it offers really opens.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::library::{Library, Trial};
use super::machine::Machine;
use super::settings::{self, Setting};
use crate::json::Json;

/// What concerns the run as a whole is refused in this name: it is a warning.
const CORE: &str = "core";

/// These need no device, so that they should be there.
const EVERYWHERE: [&str; 2] = ["shm", "tcp"];

/// How the network of `auto` begins that has a device.
const VERBS: &str = "verbs";

pub fn check(machine: &Machine, library: &Library) -> Section {
    let mut findings: Vec<Finding> = library.trials.iter().map(tried).collect();
    findings.extend(ways_of_auto(library));
    findings.extend(unusable(machine, library));
    if library.usable().is_empty() {
        let why = library.failed.as_deref().unwrap_or("no provider");
        findings.insert(0, none(machine, why));
    }
    findings.extend(warnings(machine, library));
    Section {
        subject: "providers",
        title: "Providers",
        findings,
    }
}

fn none(machine: &Machine, why: &str) -> Finding {
    let advice = match filter(machine) {
        Some(filter) => format!(
            "{} says which may be used: {}, and check again.",
            filter.told(),
            filter.undo()
        ),
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

fn filter(machine: &Machine) -> Option<Setting> {
    settings::get(machine, "FI_PROVIDER")
}

/// How peers would be reached by the provider that has two ways, of which one is enough for it to be offered and to
/// open.
fn ways_of_auto(library: &Library) -> Option<Finding> {
    library.usable().into_iter().find(|name| *name == "auto")?;
    let (local, network) = (way(library, "FI_AUTO_LOCAL")?, way(library, "FI_AUTO_NETWORK")?);
    let opened = library.trials.iter().find(|trial| trial.provider == "auto");
    let told = opened.and_then(|trial| trial.ways.as_ref());
    // A device is used where there is one.
    let network = match told {
        Some((_, opened)) if network.starts_with(VERBS) && opened.starts_with(VERBS) => opened.clone(),
        _ if network.starts_with(VERBS) => "tcp".into(),
        _ => network,
    };
    let has_local = told.is_none_or(|(opened, _)| *opened == local);
    let has_network = told.is_none_or(|(_, opened)| *opened == network) && !is_refused(library, &network);
    let lost: Vec<&str> = [(&local, has_local), (&network, has_network)]
        .into_iter()
        .filter(|(way, has)| *way != "none" && !has)
        .map(|(way, _)| &**way)
        .collect();
    let reached = match (has_local && local != "none", has_network && network != "none") {
        (true, true) => format!("peers on this machine by {local}, and others by {network}"),
        (true, false) => format!("peers on this machine by {local}, and no others"),
        (false, true) => format!("all peers by {network}"),
        (false, false) => "no peer".into(),
    };
    let finding = if lost.is_empty() {
        Finding::fine("ways", format!("auto reaches {reached}."))
            .advise("To change it: FI_AUTO_LOCAL and FI_AUTO_NETWORK; `fi_info -g FI_AUTO` says what each may be.")
    } else {
        let lost = lost.join(" and ");
        Finding::warning(
            "ways",
            format!("auto reaches {reached}, as {lost} cannot be used."),
            format!("Mend {lost}: the line about it says what is wrong."),
        )
    };
    let name = |way: String, has: bool| if has { way } else { "none".into() };
    Some(
        finding
            .with_text("provider", "auto")
            .with_text("local", name(local, has_local))
            .with_text("network", name(network, has_network)),
    )
}

/// For another reason than that FI_PROVIDER hides it, which `auto` does not ask about.
fn is_refused(library: &Library, provider: &str) -> bool {
    let mut refusals = library
        .refusals
        .iter()
        .filter(|one| one.provider == provider)
        .peekable();
    let is_there = refusals.peek().is_some() && !library.usable().contains(&provider);
    is_there && !refusals.any(|one| one.reason.contains("FI_PROVIDER"))
}

/// What the variable comes to by what the library says of it: its help names what it may be, and what it is by default.
fn way(library: &Library, variable: &str) -> Option<String> {
    let param = library.params.iter().find(|param| param.name == variable.as_bytes())?;
    let text = |text: &Option<Vec<u8>>| String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
    let (help, value) = (text(&param.help), text(&param.value).to_ascii_lowercase());
    let (may_be, default) = help.rsplit_once("(default: ")?;
    let mut words = may_be.split(|letter: char| letter.is_whitespace() || letter == ',');
    let is_understood = !value.is_empty() && words.any(|word| word == value);
    let way = if is_understood {
        &*value
    } else {
        default.trim_end_matches(')')
    };
    Some(way.to_owned())
}

/// The name by which FI_PROVIDER leaves one out.
fn last(provider: &str) -> &str {
    provider.rsplit(';').next().unwrap_or(provider)
}

/// What says that there is nothing, and not why; of no use beside a reason.
const NO_REASONS: [&str; 4] = ["returned ", "output ", "filtered by ", "offers nothing"];

/// What the library says of those that are listed for no one else.
const BY_NAME: &str = "it is there for those who name it";

/// Those that offer nothing, each once, with all reasons that the library gives.
fn unusable(machine: &Machine, library: &Library) -> Vec<Finding> {
    let usable: Vec<&str> = library.usable().into_iter().flat_map(|name| name.split(';')).collect();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for refusal in library.refusals.iter().filter(|refusal| refusal.provider != CORE) {
        let (name, reason) = (last(&refusal.provider), refusal.reason.trim_end_matches('.'));
        if usable.contains(&name) {
            continue;
        }
        match reasons.iter_mut().find(|(other, _)| *other == name) {
            Some((_, all)) if all.contains(&reason) => {}
            Some((_, all)) => all.push(reason),
            None => reasons.push((name, vec![reason])),
        }
    }
    for (_, all) in &mut reasons {
        let says_why = |reason: &&str| !NO_REASONS.iter().any(|words| reason.starts_with(words));
        if all.iter().any(says_why) {
            all.retain(says_why);
        }
    }
    reasons.iter().map(|(name, all)| refused(machine, name, all)).collect()
}

fn refused(machine: &Machine, name: &str, reasons: &[&str]) -> Finding {
    let sentence = format!("{name} cannot be used: {}.", reasons.join("; "));
    let filtered = reasons.iter().any(|reason| reason.contains("FI_PROVIDER"));
    let finding = match filter(machine).filter(|_| filtered) {
        Some(filter) => {
            let or = match filter.value.starts_with('^') {
                true => format!("do not name {name} there"),
                false => format!("name {name} there"),
            };
            let (undo, value) = (filter.undo(), filter.value);
            Finding::fine("refused", sentence).advise(format!("To have it: {undo} (it is {value}), or {or}."))
        }
        None if reasons == [BY_NAME] => Finding::fine(
            "by-name",
            format!("{name} is there for those who name it, in hints or by FI_PROVIDER={name}."),
        ),
        None if name == "tcp" => Finding::warning(
            "refused",
            sentence,
            "Mend that: what stands under Network interfaces says what each of them lacks.",
        ),
        None if EVERYWHERE.contains(&name) => Finding::warning(
            "refused",
            sentence,
            format!("Mend that; `fi_info --why -p {name}` says it again."),
        ),
        None => Finding::fine("refused", sentence).advise(format!(
            "Nothing, unless this machine should have it: then `fi_info --why -p {name}`."
        )),
    };
    let listed = reasons.iter().map(|reason| Json::text(reason.as_bytes())).collect();
    finding.with_text("provider", name).with("reasons", Json::Array(listed))
}

/// The warnings that are no reason of a refusal, which has its own line.
fn warnings(machine: &Machine, library: &Library) -> impl Iterator<Item = Finding> {
    let told = |line: &String| {
        library
            .refusals
            .iter()
            .any(|refusal| refusal.provider != CORE && line.ends_with(&refusal.reason))
    };
    let lines: Vec<String> = library
        .warnings(&settings::all(machine))
        .into_iter()
        .filter(|line| !told(line))
        .collect();
    lines.into_iter().map(|line| {
        let sentence = format!("The library warns: {}.", line.trim_end_matches('.'));
        let advice = "Mend what the line names; FI_LOG_LEVEL=info shows what led to it.";
        Finding::warning("warned", sentence, advice).with_text("line", line)
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::library::Offer;
    use super::super::machine::made_up::MadeUp;
    use super::*;
    use crate::abi::types::{FI_LOG_INFO, FI_LOG_WARN, FI_PARAM_STRING};
    use crate::ffi::{Line, Param};
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

    fn auto_with(local: &str, network: &str) -> Library {
        let param = |name: &str, help: &str, value: &str| Param {
            name: name.as_bytes().to_vec(),
            kind: FI_PARAM_STRING,
            help: Some(help.as_bytes().to_vec()),
            value: Some(value.as_bytes().to_vec()).filter(|value| !value.is_empty()),
        };
        let network_help = "How others are reached: verbs, tcp, or none for peers here (default: verbs if there is a device, else tcp)";
        Library {
            offers: vec![offer("auto")],
            params: vec![
                param("FI_AUTO_LOCAL", "How: shm, or none to do without (default: shm)", local),
                param("FI_AUTO_NETWORK", network_help, network),
            ],
            ..Library::default()
        }
    }

    #[test]
    fn the_ways_of_auto() {
        let rows = [
            ("", "", "peers on this machine by shm, and others by tcp"),
            ("none", "TCP", "all peers by tcp"),
            ("shm", "None", "peers on this machine by shm, and no others"),
            ("", "verbs", "peers on this machine by shm, and others by tcp"),
            ("", "carrier-pigeon", "peers on this machine by shm, and others by tcp"),
        ];
        for (local, network, told) in rows {
            let finding = ways_of_auto(&auto_with(local, network)).unwrap();
            assert_eq!(finding.sentence, format!("auto reaches {told}."));
        }
        assert!(ways_of_auto(&Library::default()).is_none());
    }

    #[test]
    fn a_way_that_auto_cannot_go_is_not_promised() {
        let with = |ways: Option<(&str, &str)>, refused: &[(&str, &str)]| {
            let mut library = auto_with("", "");
            library.trials = vec![Trial {
                ways: ways.map(|(local, network)| (local.into(), network.into())),
                ..trial("auto")
            }];
            library.refusals = refused.iter().map(|(name, reason)| refusal(name, reason)).collect();
            let finding = ways_of_auto(&library).unwrap();
            (finding.level, finding.sentence)
        };
        let both = "auto reaches peers on this machine by shm, and others by tcp.";
        let no_shm = "auto reaches all peers by tcp, as shm cannot be used.";
        let no_tcp = "auto reaches peers on this machine by shm, and no others, as tcp cannot be used.";
        let none = "auto reaches no peer, as shm and tcp cannot be used.";
        let down = [("tcp", "no interface is up")];
        assert_eq!(with(Some(("shm", "tcp")), &[]), (Level::Fine, both.into()));
        let device = "auto reaches peers on this machine by shm, and others by verbs or tcp.";
        assert_eq!(with(Some(("shm", "verbs or tcp")), &[]), (Level::Fine, device.into()));
        assert_eq!(
            with(Some(("the network too", "tcp")), &[]),
            (Level::Warning, no_shm.into())
        );
        assert_eq!(with(Some(("shm", "no way")), &[]), (Level::Warning, no_tcp.into()));
        assert_eq!(with(Some(("shm", "tcp")), &down), (Level::Warning, no_tcp.into()));
        assert_eq!(
            with(Some(("the network too", "tcp")), &down),
            (Level::Warning, none.into())
        );
        assert_eq!(
            with(None, &[("tcp", "FI_PROVIDER leaves it out")]),
            (Level::Fine, both.into())
        );
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
        library.offers.push(offer("tcp;ofi_rxm"));
        assert_eq!(levels(&library), [Level::Fine]);
        assert!(check(&made.0, &library).findings.iter().all(|one| one.advice.is_some()));
    }

    #[test]
    fn a_provider_has_one_line_with_its_reasons() {
        let made = MadeUp::new().set("FI_PROVIDER", "shm");
        let refusals = vec![
            refusal("verbs", "filtered by a list"),
            refusal("verbs", "no device."),
            refusal("tcp;ofi_rxm", "left out by FI_PROVIDER"),
            refusal("ofi_rxm", "returned -61"),
            refusal("verbs", "no device"),
            refusal("verbs", "no port"),
            refusal("efa", "returned -61"),
            refusal("sockets", BY_NAME),
        ];
        let library = Library {
            offers: vec![offer("shm")],
            refusals,
            ..Library::default()
        };
        let found = check(&made.0, &library).findings;
        let told: Vec<&str> = found.iter().map(|one| &*one.sentence).collect();
        let expected = [
            "verbs cannot be used: no device; no port.",
            "ofi_rxm cannot be used: left out by FI_PROVIDER.",
            "efa cannot be used: returned -61.",
            "sockets is there for those who name it, in hints or by FI_PROVIDER=sockets.",
        ];
        assert_eq!(told, expected);
        assert!(
            found[1]
                .advice
                .as_ref()
                .unwrap()
                .contains("unset FI_PROVIDER (it is shm)")
        );
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
        assert!(
            found[1]
                .advice
                .as_ref()
                .unwrap()
                .ends_with("(it is tpc), or name tcp there.")
        );
        let found = check(&MadeUp::new().set("FI_PROVIDER", "^tcp").0, &library).findings;
        let advice = found[1].advice.as_ref().unwrap();
        assert!(advice.ends_with("(it is ^tcp), or do not name tcp there."), "{advice}");
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
