//! Compares two sets of facts and counts. What may differ between releases is listed in `differences.txt`.

use crate::facts::Facts;
use std::path::Path;

/// One line of the list: releases it holds for, a fact (`*` at its end stands for any rest), and why.
pub struct Difference {
    versions: Vec<String>,
    pattern: String,
    line: usize,
}

pub fn differences(file: &Path) -> Result<Vec<Difference>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut all = vec![];
    for (i, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
    {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [versions, pattern, _reason] = parts[..] else {
            return Err(format!("differences, line {}: three columns", i + 1));
        };
        let versions = versions.split_whitespace().map(String::from).collect();
        all.push(Difference {
            versions,
            pattern: pattern.into(),
            line: i + 1,
        });
    }
    Ok(all)
}

impl Difference {
    fn is(&self, key: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(start) => key.starts_with(start),
            None => self.pattern == key,
        }
    }
}

#[derive(Default)]
pub struct Count {
    pub pass: usize,
    pub fail: usize,
}

impl Count {
    pub fn fail(&mut self, why: String) {
        self.fail += 1;
        println!("  FAIL {why}");
    }

    pub fn said(&self, what: &str) -> bool {
        let word = if self.fail == 0 { "PASS" } else { "FAIL" };
        println!("{word} {what}: {} checks held, {} failed", self.pass, self.fail);
        self.fail == 0 && self.pass > 0
    }
}

/// The same release: every fact of one side is a fact of the other.
pub fn same(ours: &Facts, theirs: &Facts) -> Count {
    let mut count = Count::default();
    for (key, value) in &theirs.0 {
        match ours.0.get(key) {
            Some(own) if own == value => count.pass += 1,
            Some(own) => count.fail(format!("{key}: {own}, should be {value}")),
            None => count.fail(format!("{key}: missing, should be {value}")),
        }
    }
    for key in ours.0.keys().filter(|k| !theirs.0.contains_key(*k)) {
        count.fail(format!("{key}: is not there in C"));
    }
    count
}

/// An older release: what it has we have too, but for the listed differences, each of which must be real.
/// `whole`: they tell every fact, so that a line of the list that meets none is out of date.
pub fn older(ours: &Facts, theirs: &Facts, version: &str, list: &[Difference], whole: bool) -> Count {
    let mut count = Count::default();
    let mut used = vec![false; list.len()];
    for (key, value) in &theirs.0 {
        let own = ours.0.get(key);
        let entry = list
            .iter()
            .position(|d| d.versions.iter().any(|v| v == version) && d.is(key));
        match (own == Some(value), entry) {
            (true, _) => count.pass += 1,
            (false, Some(i)) => {
                used[i] = true;
                count.pass += 1;
            }
            (false, None) => {
                let own = own.map_or("missing".into(), |v| v.to_string());
                count.fail(format!("{key}: {own}, in {version} {value}"));
            }
        }
    }
    for (entry, used) in list.iter().zip(used) {
        if !used && entry.versions.iter().any(|v| v == version) && whole {
            count.fail(format!(
                "differences, line {}: {} does not differ in {version}",
                entry.line, entry.pattern
            ));
        }
    }
    count
}
