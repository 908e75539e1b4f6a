//! Whether the library can be asked at all. A plug-in whose constructor, fi_prov_ini or fi_getinfo hangs or crashes
//! does that to every program, and would do it to this one: so all that runs a plug-in's code is done by a child first.
//!
//! Called by `mod`, before the library is used.

use super::finding::Finding;
use super::library;
use crate::ffi::rehearsal::{Ended, Patience, rehearse, set};
use std::time::Duration;

/// Some devices are waited for as long as 15 seconds.
const PATIENCE: Patience = Patience {
    still: Duration::from_secs(30),
    whole: Duration::from_secs(300),
};

/// What the library logs at this level, to the child's own streams.
const LOG: [(&str, &str); 4] = [
    ("FI_LOG_LEVEL", "debug"),
    ("FI_LOG_PROV", "core"),
    ("FI_LOG_SUBSYS", "core"),
    ("FI_LOG_LOCATION", "stderr"),
];

/// What stands in the log before a file is opened, a provider is asked, and before its endpoint is.
const OPENING: &str = "opening provider lib ";
const ASKING: &str = "asking provider ";
pub const TRYING: &str = "trying an endpoint of ";

/// What can be asked.
#[derive(Default)]
pub struct Rehearsal {
    /// What went wrong with everything as the user has it.
    pub stuck: Option<Stuck>,
    /// Not even without plug-ins it goes well.
    pub mute: bool,
}

#[derive(Debug, PartialEq)]
pub struct Stuck {
    how: String,
    at: Option<Step>,
}

/// The last that was begun.
#[derive(Debug, PartialEq)]
enum Step {
    /// The file of a plug-in was opened.
    File(String),
    /// A provider was asked, or an endpoint of it opened.
    Provider(String),
}

impl Rehearsal {
    /// If it goes wrong, plug-ins are left out from here on, so that the rest can be told.
    pub fn of_this_machine() -> Rehearsal {
        let Some(stuck) = tried() else {
            return Rehearsal::default();
        };
        // A folder without plug-ins.
        set("FI_PROVIDER_PATH", "/");
        Rehearsal {
            stuck: Some(stuck),
            mute: tried().is_some(),
        }
    }
}

fn tried() -> Option<Stuck> {
    // Where no child can be had, the library is asked all the same.
    let (ended, log) = rehearse(&LOG, PATIENCE, library::rehearsal).ok()?;
    Stuck::of(ended, &log)
}

impl Stuck {
    fn of(ended: Ended, log: &str) -> Option<Stuck> {
        let how = match ended {
            Ended::Well => return None,
            Ended::Hung => "hangs".to_owned(),
            Ended::Died(Some(signal)) => format!("crashes (signal {signal})"),
            Ended::Died(None) => "ends the program".to_owned(),
        };
        let at = log.lines().rev().find_map(Step::of);
        Some(Stuck { how, at })
    }

    pub fn finding(&self) -> Finding {
        const REST: &str = "What follows is told without plug-ins";
        let how = &self.how;
        let (sentence, advice) = match &self.at {
            Some(Step::File(file)) => (
                format!("{file} {how} when it is loaded, and so does every program that uses libfabric here."),
                format!(
                    "Take the file out of the folder, or name another one in FI_PROVIDER_PATH (FI_PROVIDER_PATH=/none: no \
                     plug-ins), and ask whoever made it. {REST}."
                ),
            ),
            Some(Step::Provider(name)) => (
                format!("Provider {name} {how} when it is used, and so may every program that uses libfabric here."),
                format!("Leave it out: export FI_PROVIDER=^{name}; and ask whoever made it. {REST}."),
            ),
            None => (
                format!("The library {how} when it is first called."),
                format!("FI_LOG_LEVEL=debug fi_info shows how far it comes. {REST}."),
            ),
        };
        let finding = Finding::broken("stuck", sentence, advice).with_text("how", how);
        match &self.at {
            Some(Step::File(file)) => finding.with_text("file", file),
            Some(Step::Provider(name)) => finding.with_text("provider", name),
            None => finding,
        }
    }
}

impl Step {
    fn of(line: &str) -> Option<Step> {
        let after = |words: &str| line.split_once(words).map(|(_, rest)| rest.trim().to_owned());
        let provider = || after(ASKING).or_else(|| after(TRYING)).map(Step::Provider);
        after(OPENING).map(Step::File).or_else(provider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Rehearsal {
        /// One in which nothing went well.
        pub fn in_vain() -> Rehearsal {
            Rehearsal {
                stuck: Stuck::of(Ended::Hung, LOADING),
                mute: true,
            }
        }
    }

    const LOADING: &str = "libfabric:1:2::core:core:open():5<debug> opening provider lib /a b/libx-fi.so";

    fn sentence(ended: Ended, log: &str) -> String {
        Stuck::of(ended, log).unwrap().finding().sentence
    }

    #[test]
    fn the_last_step_is_blamed() {
        assert_eq!(Stuck::of(Ended::Well, LOADING), None);
        let told = sentence(Ended::Hung, &format!("x\n{LOADING}\nof its own\n"));
        assert!(told.starts_with("/a b/libx-fi.so hangs when it is loaded"), "{told}");
        let told = sentence(
            Ended::Died(Some(11)),
            &format!("{LOADING}\nx<debug> asking provider y\n"),
        );
        assert!(
            told.starts_with("Provider y crashes (signal 11) when it is used"),
            "{told}"
        );
        let told = sentence(Ended::Died(None), &format!("{LOADING}\ntrying an endpoint of z\n"));
        assert!(told.starts_with("Provider z ends the program when"), "{told}");
        assert_eq!(sentence(Ended::Hung, ""), "The library hangs when it is first called.");
    }
}
