//! Turns lines of the library's log into reasons: which candidate was refused, and why.
//!
//! Two dialects. The core of this project says `refused CANDIDATE: REASON` and `skipped PROVIDER: REASON`. Plug-ins
//! written for the C library, and that library itself, say it in lines of their own, of which the ones that tell a
//! reason are known here; all others are skipped. Knows nothing but text. Called by `main`.

#[cfg(test)]
mod tests;

use crate::abi::types::{FI_LOG_WARN, fi_log_level};
use crate::ffi::Line;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub provider: String,
    /// What tells this candidate from others of its provider, such as endpoint type and domain.
    pub candidate: Option<String>,
    pub reason: String,
}

impl Refusal {
    fn of(provider: &str, reason: &str) -> Refusal {
        let (provider, candidate) = match provider.strip_suffix(')').and_then(|p| p.split_once(" (")) {
            Some((name, rest)) => (name, Some(rest.to_string())),
            None => (provider, None),
        };
        Refusal {
            provider: provider.to_string(),
            candidate,
            reason: reason.to_string(),
        }
    }
}

/// What a line of the log says about a refusal.
enum Meaning {
    Reason(Refusal),
    /// A reason that is only reported if there is no better one for the provider.
    Fallback(Refusal),
    /// A further part of the reason before it.
    More(String),
    Noise,
}

/// What is known besides the log.
#[derive(Default)]
pub struct Known {
    /// Every provider there is.
    pub registered: Vec<String>,
    /// The providers of the infos that were accepted, layers apart.
    pub accepted: Vec<String>,
    /// The provider that was asked for by name.
    pub asked: Option<String>,
}

/// The reasons in the order they came up, each said once; every provider that offered nothing has at least one.
pub fn refusals(lines: &[Line], known: &Known) -> Vec<Refusal> {
    let (mut found, mut fallbacks) = (Vec::<Refusal>::new(), Vec::new());
    for line in lines {
        match meaning(line) {
            Meaning::Reason(refusal) => found.push(refusal),
            Meaning::Fallback(refusal) => fallbacks.push(refusal),
            Meaning::More(text) => {
                let provider = String::from_utf8_lossy(&line.provider);
                if let Some(last) = found.last_mut().filter(|last| last.provider == provider) {
                    last.reason = format!("{}; {text}", last.reason);
                }
            }
            Meaning::Noise => {}
        }
    }
    let silent = known
        .registered
        .iter()
        .map(|name| Refusal::of(name, &silence(name, known.asked.as_deref())));
    for refusal in fallbacks.into_iter().chain(silent) {
        let same = |name: &String| name.eq_ignore_ascii_case(&refusal.provider);
        // Hooks and offload providers have no infos of their own, so none is refused.
        let helper = ["ofi_hook_", "off_"]
            .iter()
            .any(|prefix| refusal.provider.starts_with(prefix));
        if !helper && !known.accepted.iter().any(same) && !found.iter().any(|f| same(&f.provider)) {
            found.push(refusal);
        }
    }
    let mut once = Vec::new();
    for refusal in found {
        if !once.contains(&refusal) {
            once.push(refusal);
        }
    }
    once
}

/// The reason for a provider that no line of the log names.
fn silence(name: &str, asked: Option<&str>) -> String {
    match asked {
        Some(asked) if !asked.contains('^') && !asked.split(';').any(|part| part.eq_ignore_ascii_case(name)) => {
            format!("not asked, the provider wanted is {asked}")
        }
        _ => "offers nothing, and gives no reason".to_string(),
    }
}

fn meaning(line: &Line) -> Meaning {
    let [provider, func, text] = [&line.provider, &line.func, &line.text].map(|b| String::from_utf8_lossy(b));
    if text.is_empty() || func.starts_with("fi_param_") {
        Meaning::Noise
    } else if let Some(refused) = text.strip_prefix("refused ").or_else(|| text.strip_prefix("skipped ")) {
        match refused.split_once(": ") {
            Some((candidate, reason)) if provider == "core" => Meaning::Reason(Refusal::of(candidate, reason)),
            _ => Meaning::Reason(Refusal::of(&provider, refused)),
        }
    } else if provider == "core" {
        core_line(&text, line.level)
    } else {
        provider_line(&provider, &func, &text, line.level)
    }
}

/// What the core of the C library says; other warnings concern the run as a whole.
fn core_line(text: &str, level: fi_log_level) -> Meaning {
    type Make = fn(Refusal) -> Meaning;
    /// Text before the provider's name, text after it (or only its beginning), and how good a reason it is.
    const SHAPES: &[(&str, &str, Make)] = &[
        ("\"", "\" filtered by ", Meaning::Reason),
        ("Provider ", " fi_version ", Meaning::Reason),
        ("provider ", " is unknown", Meaning::Reason),
        ("Provider ", " is excluded", Meaning::Fallback),
        ("fi_getinfo: provider ", " returned ", Meaning::Fallback),
        ("fi_getinfo: provider ", " output ", Meaning::Fallback),
    ];
    for (before, after, make) in SHAPES {
        if let Some((name, _)) = text.strip_prefix(before).and_then(|rest| rest.split_once(after)) {
            let reason = &text[before.len() + name.len()..];
            let reason = reason.trim_start_matches(['"', ' ']).trim_end_matches(", skipping");
            return make(Refusal::of(name, reason));
        }
    }
    match plug_in_of(text) {
        Some(name) if level == FI_LOG_WARN => Meaning::Reason(Refusal::of(name, text)),
        None if level == FI_LOG_WARN => Meaning::Reason(Refusal::of("core", text)),
        _ => Meaning::Noise,
    }
}

/// The provider in `dlopen(.../libNAME-fi.so): reason`.
fn plug_in_of(text: &str) -> Option<&str> {
    let path = text.strip_prefix("dlopen(")?.split_once(')')?.0;
    path.rsplit('/').next()?.strip_prefix("lib")?.strip_suffix("-fi.so")
}

fn provider_line(provider: &str, func: &str, text: &str, level: fi_log_level) -> Meaning {
    const PARTS: [&str; 4] = ["Supported: ", "Requested: ", "Expected: ", "Given: "];
    const ADDRESSES: [&str; 3] = ["Available addr", "available addr", "Chosen addr"];
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    if begins(&PARTS) {
        let (first, rest) = text.split_at(1);
        return Meaning::More(first.to_ascii_lowercase() + rest);
    }
    // In all providers, functions that check infos have one of these words in their names.
    let about_infos = ["info", "check"].iter().any(|word| func.contains(word));
    if level == FI_LOG_WARN || (about_infos && !begins(&ADDRESSES)) {
        Meaning::Reason(Refusal::of(provider, text))
    } else {
        Meaning::Noise
    }
}

/// One line for each: `provider: reason`.
pub fn print(refusals: &[Refusal]) -> Vec<u8> {
    let lines = refusals.iter().map(|r| {
        let candidate = r.candidate.as_ref().map_or(String::new(), |c| format!(" ({c})"));
        format!("{}{candidate}: {}\n", r.provider, r.reason.replace('\n', " "))
    });
    lines.collect::<String>().into_bytes()
}
