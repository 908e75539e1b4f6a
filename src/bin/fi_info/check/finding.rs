//! What a check has found: one sentence, how bad it is, what to do, and the same as data.
//!
//! The page and the JSON document are both made of these, so neither knows more than the other. Knows no subject. Made
//! by all checks, read by `page`.

use crate::json::Json;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Fine,
    /// Programs run, but perhaps not as they could, or not with this library.
    Warning,
    /// Programs cannot use the library, or a provider that it offers.
    Broken,
}

impl Level {
    /// Of the program: what monitors expect of a check (0, 1, 2).
    pub fn exit_status(self) -> u8 {
        self as u8
    }

    pub fn name(self) -> &'static str {
        match self {
            Level::Fine => "fine",
            Level::Warning => "warning",
            Level::Broken => "broken",
        }
    }
}

/// One idea.
pub struct Finding {
    /// What it is about, for programs: it stays when the sentence changes.
    pub about: &'static str,
    pub level: Level,
    pub sentence: String,
    /// What to do. Whatever is not fine has one.
    pub advice: Option<String>,
    pub data: Vec<(&'static str, Json)>,
}

impl Finding {
    pub fn fine(about: &'static str, sentence: impl Into<String>) -> Finding {
        Finding {
            about,
            level: Level::Fine,
            sentence: sentence.into(),
            advice: None,
            data: Vec::new(),
        }
    }

    pub fn warning(about: &'static str, sentence: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            level: Level::Warning,
            ..Finding::fine(about, sentence).advise(advice)
        }
    }

    pub fn broken(about: &'static str, sentence: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            level: Level::Broken,
            ..Finding::fine(about, sentence).advise(advice)
        }
    }

    /// What can be done, of something that is fine as well.
    pub fn advise(mut self, advice: impl Into<String>) -> Finding {
        self.advice = Some(advice.into());
        self
    }

    pub fn with(mut self, name: &'static str, value: Json) -> Finding {
        self.data.push((name, value));
        self
    }

    pub fn with_text(self, name: &'static str, text: impl Into<String>) -> Finding {
        self.with(name, Json::Text(text.into()))
    }
}

/// The findings of one subject.
pub struct Section {
    /// For programs.
    pub subject: &'static str,
    pub title: &'static str,
    pub findings: Vec<Finding>,
}

/// The worst of all.
pub fn worst(sections: &[Section]) -> Level {
    let levels = sections.iter().flat_map(|section| &section.findings);
    levels.map(|finding| finding.level).max().unwrap_or(Level::Fine)
}
