//! What the library itself says and does: its version, its providers, what they offer and refuse and why, whether an
//! endpoint of each opens, and what it answers to each MPI. All of it through its C functions and its log, so that
//! nothing that the library decides is worked out a second time here.
//!
//! Knows no machine. Called by `mod`; the checks read what it has gathered.

use super::mpi::Kind;
use super::rehearsal::TRYING;
use super::settings::Setting;
use crate::abi::types::*;
use crate::document::address_of;
use crate::ffi::{self, Capture, Info, Infos, Line, Narrow, Param};
use crate::options::{Hints, Query};
use crate::print::version;
use crate::why::{self, Known, Refusal};

/// Gathered once, and then only read.
#[derive(Default)]
pub struct Library {
    pub version: String,
    /// Name and version.
    pub providers: Vec<(String, String)>,
    /// Without a wish, best first.
    pub offers: Vec<Offer>,
    pub refusals: Vec<Refusal>,
    /// What fi_getinfo failed with, without a wish.
    pub failed: Option<String>,
    /// An endpoint of each provider that offers one.
    pub trials: Vec<Trial>,
    /// All that was logged meanwhile.
    pub lines: Vec<Line>,
    pub params: Vec<Param>,
    /// What it offers to each MPI, by that one's own wishes.
    pub to_mpi: Vec<(Kind, Vec<Offer>)>,
}

/// One info.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    pub provider: String,
    pub domain: String,
    pub fabric: String,
    pub kind: String,
    pub address: Option<String>,
    /// Bits a second; 0: it does not tell.
    pub speed: u64,
}

/// An endpoint that was opened, or was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    pub provider: String,
    pub domain: String,
    pub kind: String,
    /// The call and the text of its error; what the log said of it.
    pub failed: Option<(String, String)>,
    pub logged: Option<String>,
    /// Of `auto`: how it reaches peers on this machine, and others, by what it logged.
    pub ways: Option<(String, String)>,
}

impl Library {
    /// What it says without being started.
    pub fn unasked() -> Library {
        Library {
            version: text(&ffi::library_version()),
            ..Library::default()
        }
    }

    /// Asks the library that this program runs on.
    pub fn ask() -> Library {
        let mut library = Library::unasked();
        // A log that cannot be led here leaves only the reasons out.
        let capture = Capture::start().ok();
        let found = ffi::getinfo(&Query::default());
        let lines = capture.map(Capture::finish).unwrap_or_default();
        let named = quietly(|| {
            ffi::getinfo(&Query {
                flags: FI_PROV_ATTR_ONLY,
                ..Query::default()
            })
        });
        library.providers = named.map(|infos| providers(&infos)).unwrap_or_default();
        match found {
            Ok(infos) => {
                library.offers = infos.iter().map(Offer::of).collect();
                library.trials = first_offers(&infos).into_iter().map(trial).collect();
            }
            Err(code) => library.failed = Some(error(code)),
        }
        library.refusals = why::refusals(&lines, &library.known());
        library.lines = lines;
        library.params = ffi::params().unwrap_or_default();
        let answer = |kind: Kind| (kind, asked(kind.hints()).unwrap_or_default());
        library.to_mpi = quietly(|| Kind::ALL.into_iter().map(answer).collect());
        library
    }

    fn known(&self) -> Known {
        let parts = self.offers.iter().flat_map(|offer| offer.provider.split(';'));
        Known {
            registered: self.providers.iter().map(|(name, _)| name.clone()).collect(),
            accepted: parts.map(str::to_owned).collect(),
            asked: None,
        }
    }

    /// The names of those that offer something, best first.
    pub fn usable(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for offer in &self.offers {
            if !names.contains(&&*offer.provider) {
                names.push(&offer.provider);
            }
        }
        names
    }

    /// What a provider logged that begins with these words, without them, each once.
    pub fn said<'a>(&'a self, provider: &'a str, words: &'a str) -> Vec<String> {
        let mut found = Vec::new();
        for line in self.lines.iter().filter(|line| line.provider == provider.as_bytes()) {
            let line = text(&line.text);
            if let Some(rest) = line.strip_prefix(words) {
                if !found.iter().any(|one| one == rest) {
                    found.push(rest.to_owned());
                }
            }
        }
        found
    }

    /// The warnings of the library, each once, but for those of these variables.
    pub fn warnings(&self, settings: &[Setting]) -> Vec<String> {
        let mut found = Vec::new();
        for line in self.lines.iter().filter(|line| line.level == FI_LOG_WARN) {
            let own = text(&line.text);
            let is_told = settings.iter().any(|setting| complaint(&own, setting).is_some());
            let line = format!("{}: {own}", text(&line.provider));
            if !is_told && !found.contains(&line) {
                found.push(line);
            }
        }
        found
    }

    /// What it warned of a variable's value.
    pub fn warning_of(&self, setting: &Setting) -> Option<String> {
        let mut warnings = self.lines.iter().filter(|line| line.level == FI_LOG_WARN);
        warnings.find_map(|line| complaint(&text(&line.text), setting))
    }
}

impl Offer {
    fn of(info: Info) -> Offer {
        let name = |name: Option<&[u8]>| text(name.unwrap_or_default());
        let link = info.nic().and_then(|nic| nic.link);
        Offer {
            provider: name(info.provider()),
            domain: name(info.domain_name()),
            fabric: name(info.fabric_name()),
            kind: info
                .ep()
                .map_or_else(String::new, |ep| text(&ffi::name_of_u32(ep.r#type, Narrow::EpType))),
            address: address_of(info).map(|address| text(&address)),
            speed: link.map_or(0, |link| link.speed as u64),
        }
    }
}

/// Of a line `NAME=VALUE (PLACE): WHY` or `NAME: WHY` of this variable, the last part.
fn complaint(line: &str, setting: &Setting) -> Option<String> {
    let rest = line.strip_prefix(&*setting.name)?;
    let rest = rest.strip_prefix(&*format!("={}", setting.value)).unwrap_or(rest);
    let (place, why) = rest.split_once(": ")?;
    (place.is_empty() || place.starts_with(" (")).then(|| why.to_owned())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn error(code: i32) -> String {
    text(&ffi::strerror(code.saturating_neg()))
}

/// Without lines of the log, which the user may have led to stdout, where the page is.
fn quietly<T>(question: impl FnOnce() -> T) -> T {
    let capture = Capture::start().ok();
    let answer = question();
    let _ = capture.map(Capture::finish);
    answer
}

fn providers(infos: &Infos) -> Vec<(String, String)> {
    let one = |info: Info| {
        let number = info.fabric().map_or(0, |fabric| fabric.prov_version);
        (text(info.provider().unwrap_or_default()), version(number))
    };
    infos.iter().map(one).collect()
}

fn asked(hints: Hints) -> Option<Vec<Offer>> {
    let query = Query {
        hints: Some(hints),
        ..Query::default()
    };
    Some(ffi::getinfo(&query).ok()?.iter().map(Offer::of).collect())
}

/// All of `Library::ask` that runs code of plug-ins, for nothing but to see whether it comes to its end.
pub fn rehearsal() {
    for (info, offer) in ffi::getinfo(&Query::default()).iter().flat_map(first_offers) {
        eprintln!("{TRYING}{}", offer.provider);
        let _ = ffi::open_endpoint(info);
    }
}

/// Of each provider the first, which is what a program takes that has no wish.
fn first_offers(infos: &Infos) -> Vec<(Info<'_>, Offer)> {
    let mut first: Vec<(Info, Offer)> = Vec::new();
    for info in infos.iter() {
        let offer = Offer::of(info);
        if !first.iter().any(|(_, other)| other.provider == offer.provider) {
            first.push((info, offer));
        }
    }
    first
}

fn trial((info, offer): (Info, Offer)) -> Trial {
    let capture = Capture::start().ok();
    let opened = ffi::open_endpoint(info);
    let lines = capture.map(Capture::finish).unwrap_or_default();
    let last_warning = lines.iter().rfind(|line| line.level == FI_LOG_WARN);
    Trial {
        provider: offer.provider,
        domain: offer.domain,
        kind: offer.kind,
        failed: opened.err().map(|(call, code)| (call.to_owned(), error(code))),
        logged: last_warning.map(|line| text(&line.text)),
        ways: lines.iter().find_map(|line| ways(&text(&line.text))),
    }
}

/// In what `auto` logs of an endpoint: `... are reached by shm, others by tcp at ADDRESS`.
fn ways(line: &str) -> Option<(String, String)> {
    let (_, told) = line.split_once("peers on this machine are reached by ")?;
    let (local, network) = told.split_once(", others by ")?;
    let network = network.split_once(" at ").map_or(network, |(name, _)| name);
    Some((local.to_owned(), network.to_owned()))
}
