//! Asks cbindgen, once for all headers, and cuts its answer into one block of C per item.
//!
//! cbindgen sees every type together, so that it knows which names are structs, enums or typedefs; the order and the
//! file of a block are the business of `write`.

use crate::model::{Header, Kind, Named, Part, exported};
use cbindgen::{Builder, Config, DocumentationStyle, Language, Layout, Style};
use proc_macro2::{Ident, Span};
use std::collections::HashMap;
use std::{env, fs, process};

/// C text by item name; a function's ends in `()`, for there are structs of the same name.
pub type Blocks = HashMap<String, String>;

/// C types that come from the system's headers: (Rust name, C name).
const FOREIGN: [(&str, &str); 2] = [("iovec", "struct iovec"), ("pollfd", "struct pollfd")];

pub fn items(headers: &[Header]) -> impl Iterator<Item = &Named> {
    headers.iter().flat_map(|h| &h.parts).filter_map(|p| match p {
        Part::Item(item) => Some(item),
        Part::Text(..) => None,
    })
}

pub fn blocks(headers: &[Header]) -> Result<Blocks, String> {
    let input = env::temp_dir().join(format!("rdma-headers-{}.rs", process::id()));
    fs::write(&input, source(headers)).map_err(|e| format!("{}: {e}", input.display()))?;
    let answer = Builder::new().with_config(config(headers)).with_src(&input).generate();
    let removed = fs::remove_file(&input);
    let mut text = vec![];
    answer.map_err(|e| e.to_string())?.write(&mut text);
    removed.map_err(|e| e.to_string())?;
    let text = String::from_utf8(text).map_err(|e| e.to_string())?;
    Ok(text
        .split("\n\n")
        .filter_map(|block| block_of(block.trim_matches('\n')))
        .collect())
}

/// A block under the name it defines or declares, its comment in the shape that C programmers write.
fn block_of(block: &str) -> Option<(String, String)> {
    let (comment, code) = match block.strip_prefix("/*\n").and_then(|b| b.split_once("\n */\n")) {
        Some((words, code)) => (comment(words), code),
        None => (String::new(), block),
    };
    Some((name(code)?, format!("{comment}{code}")))
}

/// The words of a doc comment as C programmers write one, at most 80 wide.
fn comment(words: &str) -> String {
    let mut lines = vec![String::from("/*")];
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 77 => *line += &format!(" {word}"),
            _ => lines.push(format!(" * {word}")),
        }
    }
    lines.join("\n") + " */\n"
}

/// All items, and the wrappers as bare functions, in the Rust that cbindgen reads.
fn source(headers: &[Header]) -> String {
    let mut text = String::new();
    for item in items(headers).filter(|i| i.string.is_none()) {
        text += &format!("{}\n", item.rust);
    }
    for row in headers.iter().flat_map(|h| &h.rows) {
        let name = Ident::new(&row.name, Span::call_site());
        text += &format!("{}\n", exported(&[], &name, &row.params, &None, &row.ret));
    }
    text
}

fn config(headers: &[Header]) -> Config {
    let mut config = Config {
        language: Language::C,
        style: Style::Tag,
        no_includes: true,
        usize_is_size_t: true,
        tab_width: 8,
        documentation_style: DocumentationStyle::C,
        ..Config::default()
    };
    config.function.args = Layout::Horizontal;
    config.export.include = items(headers)
        .filter(|i| matches!(i.kind, Kind::Type | Kind::Enum))
        .map(|i| i.name.clone())
        .collect();
    config.export.rename = FOREIGN
        .iter()
        .map(|(rust, c)| (rust.to_string(), c.to_string()))
        .collect();
    config
}

fn name(code: &str) -> Option<String> {
    let code = code.lines().next()?;
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = code.split(|c| !is_part(c)).filter(|w| !w.is_empty()).collect();
    match words.as_slice() {
        ["define", name, ..] | ["struct" | "union" | "enum", name] | ["typedef", .., name] => Some(name.to_string()),
        _ => Some(format!("{}()", code.split('(').next()?.rsplit(|c| !is_part(c)).next()?)),
    }
}
