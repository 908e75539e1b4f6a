//! A fact sheet: JSON with the layouts, values and inline calls of one release's headers (`sheets/`).

use crate::facts::Facts;
use serde_json::Value;
use std::path::Path;

pub struct Sheet {
    pub json: Value,
    /// Headers of the release that are ours too; Debian adds some of providers.
    pub headers: Vec<String>,
}

pub fn read(dir: &Path, version: &str) -> Result<Sheet, String> {
    let load = |version: &str| -> Result<Value, String> {
        let file = dir.join(format!("libfabric-{version}.json"));
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
    };
    let headers = |sheet: &Value| -> Vec<String> {
        sheet["headers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|h| Some(h.as_str()?.to_string()))
            .collect()
    };
    let json = load(version)?;
    let known = headers(&load("2.6.0")?);
    let headers = headers(&json).into_iter().filter(|h| known.contains(h)).collect();
    Ok(Sheet { json, headers })
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub fn number(value: &Value, key: &str) -> i128 {
    match &value[key] {
        Value::Number(n) => n
            .as_u64()
            .map(i128::from)
            .or(n.as_i64().map(i128::from))
            .unwrap_or(i128::MIN),
        _ => i128::MIN,
    }
}

pub fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// How many parameters a function pointer takes, from its type in C: `int (*)(struct fid *, int)`.
fn parameters(ty: &str) -> Option<i128> {
    let list = ty.split_once("(*)(")?.1.strip_suffix(')')?;
    let mut depth = 0;
    let mut commas = 0;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => commas += 1,
            _ => {}
        }
    }
    Some(if list == "void" { 0 } else { commas + 1 })
}

pub fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

impl Sheet {
    /// Entries of a section that come from our headers.
    pub fn section(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        entries(&self.json[name]).filter(|(_, e)| {
            e.get("header")
                .is_none_or(|h| self.headers.iter().any(|ours| h == ours))
        })
    }

    /// Fields as (path, entry); members of nameless unions stand among the others, those of named ones under it.
    pub fn fields(entry: &Value) -> Vec<(String, &Value)> {
        let mut all = vec![];
        for field in list(entry, "fields") {
            let name = text(field, "name").to_string();
            let members = list(field, "fields")
                .map(|m| (format!("{name}.{}", text(m, "name")), m))
                .collect::<Vec<_>>();
            all.push((name, field));
            all.extend(members);
        }
        all
    }

    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for (name, entry) in self.section("structs") {
            facts.num(&format!("size {name}"), number(entry, "size"));
            facts.num(&format!("align {name}"), number(entry, "align"));
            for (path, field) in Self::fields(entry) {
                facts.num(&format!("offset {name}.{path}"), number(field, "offset"));
                facts.num(&format!("width {name}.{path}"), number(field, "size"));
                if let Some(count) = parameters(text(field, "type")) {
                    facts.num(&format!("parameters {name}.{path}"), count);
                }
            }
        }
        for (name, entry) in self.section("enums") {
            facts.num(&format!("size {name}"), number(entry, "size"));
            facts.num(&format!("signed {name}"), i128::from(entry["signed"] == true));
            for (member, _) in entries(&entry["members"]) {
                facts.num(&format!("value {member}"), number(&entry["members"], member));
            }
        }
        for (name, entry) in self.section("macros") {
            match &entry["value"] {
                Value::String(s) => facts.text(&format!("value {name}"), s),
                _ => facts.num(&format!("value {name}"), number(entry, "value")),
            }
        }
        for (name, entry) in self.section("typedefs") {
            facts.num(&format!("size {name}"), number(entry, "size"));
        }
        facts
    }
}
