//! The findings as a page and as a JSON document. Neither works anything out: both are written of the same findings.
//!
//! Called by `mod`.

use super::finding::{Finding, Level, Section, worst};
use crate::json::Json;

/// A title for each subject, a line for each finding, what to do below it.
pub fn page(sections: &[Section]) -> String {
    let mut page = String::new();
    for section in sections {
        page += &format!("{}\n", plain(section.title));
        for finding in &section.findings {
            let mark = match finding.level {
                Level::Fine => "  ",
                Level::Warning => "! ",
                Level::Broken => "X ",
            };
            page += &format!("  {mark}{}\n", plain(&finding.sentence));
            if let Some(advice) = &finding.advice {
                page += &format!("      -> {}\n", plain(advice));
            }
        }
        page.push('\n');
    }
    page + &sum(sections) + "\n"
}

/// What comes from names and variables may have any bytes; a line stays one line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn count(sections: &[Section], level: Level) -> usize {
    let findings = sections.iter().flat_map(|section| &section.findings);
    findings.filter(|finding| finding.level == level).count()
}

fn sum(sections: &[Section]) -> String {
    let (broken, warnings) = (count(sections, Level::Broken), count(sections, Level::Warning));
    let many = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    match (broken, warnings) {
        (0, 0) => "All is well.".into(),
        (0, warnings) => format!("{} (!), nothing is broken.", many(warnings, "warning")),
        (broken, warnings) => format!(
            "{} broken (X), {} (!).",
            many(broken, "thing"),
            many(warnings, "warning")
        ),
    }
}

pub fn document(sections: &[Section]) -> Json {
    let level = worst(sections);
    let subjects = sections.iter().map(|section| {
        let findings = section.findings.iter().map(finding).collect();
        Json::Object(vec![
            ("subject", Json::text(section.subject.as_bytes())),
            ("title", Json::text(section.title.as_bytes())),
            ("findings", Json::Array(findings)),
        ])
    });
    Json::Object(vec![
        ("level", Json::text(level.name().as_bytes())),
        ("exit_status", Json::Number(level.exit_status().into())),
        ("summary", Json::Text(sum(sections))),
        ("subjects", Json::Array(subjects.collect())),
    ])
}

fn finding(finding: &Finding) -> Json {
    Json::Object(vec![
        ("about", Json::text(finding.about.as_bytes())),
        ("level", Json::text(finding.level.name().as_bytes())),
        ("sentence", Json::Text(finding.sentence.clone())),
        ("advice", finding.advice.clone().map_or(Json::Null, Json::Text)),
        ("data", Json::Object(finding.data.clone())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(findings: Vec<Finding>) -> Vec<Section> {
        vec![Section {
            subject: "s",
            title: "Title",
            findings,
        }]
    }

    #[test]
    fn a_page_and_its_end() {
        let told = |findings| page(&sections(findings));
        let fine = || Finding::fine("a", "It is\nso.");
        let warning = || Finding::warning("b", "Odd.", "Do it.");
        assert_eq!(told(vec![fine()]), "Title\n    It is?so.\n\nAll is well.\n");
        let odd = told(vec![warning(), fine()]);
        assert_eq!(
            odd,
            "Title\n  ! Odd.\n      -> Do it.\n    It is?so.\n\n1 warning (!), nothing is broken.\n"
        );
        let broken = told(vec![warning(), warning(), Finding::broken("c", "No.", "Mend.")]);
        assert!(
            broken.ends_with("  X No.\n      -> Mend.\n\n1 thing broken (X), 2 warnings (!).\n"),
            "{broken}"
        );
    }

    #[test]
    fn the_worst_is_the_exit_status() {
        let status = |findings| worst(&sections(findings)).exit_status();
        assert_eq!(status(vec![]), 0);
        assert_eq!(status(vec![Finding::fine("a", "")]), 0);
        assert_eq!(status(vec![Finding::warning("a", "", ""), Finding::fine("a", "")]), 1);
        assert_eq!(
            status(vec![Finding::broken("a", "", ""), Finding::warning("a", "", "")]),
            2
        );
    }

    #[test]
    fn the_document_has_what_the_page_has() {
        let one = Finding::warning("b", "Odd \"x\".", "Do it.").with("n", Json::Number(7));
        let text = document(&sections(vec![one])).document();
        for part in [
            "\"level\": \"warning\"",
            "\"exit_status\": 1",
            "\"sentence\": \"Odd \\\"x\\\".\"",
            "\"advice\": \"Do it.\"",
            "\"n\": 7",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
