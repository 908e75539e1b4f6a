//! Puts a header together: guard, includes, forward declarations, then the parts in the order of the source.

use crate::cbind::{Blocks, items};
use crate::inline::{self, Fields};
use crate::model::{Header, Kind, Named, Part};
use std::collections::{BTreeSet, HashMap, HashSet};

const WIDTH: usize = 80;

/// Struct tags a header declares or defines, itself or through what it includes.
type Known = HashMap<String, HashSet<String>>;

/// Path and text of every header. Headers must come after those they include.
pub fn all(headers: &[Header], blocks: &Blocks) -> Result<Vec<(String, String)>, String> {
    let fields: Fields = items(headers).map(|i| (i.name.as_str(), &i.fields)).collect();
    let unions: HashMap<&str, &str> = items(headers)
        .filter(|i| i.marks.inline)
        .filter_map(|i| Some((i.name.as_str(), blocks.get(&i.name)?.as_str())))
        .collect();
    let mut known = Known::new();
    headers
        .iter()
        .map(|h| Ok((h.path.clone(), header(h, blocks, &fields, &unions, &mut known)?)))
        .collect()
}

fn header(
    header: &Header,
    blocks: &Blocks,
    fields: &Fields,
    unions: &HashMap<&str, &str>,
    known: &mut Known,
) -> Result<String, String> {
    let top = texts(header, "top").join("\n\n");
    let body = body(header, blocks, fields, unions)?;
    let forward = forward(header, &top, &body, known);
    let stem = header
        .path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches(".h");
    let guard = format!("{}_H", stem.to_uppercase());
    let source = &header.source;
    Ok(format!(
        "/* SPDX-License-Identifier: BSD-2-Clause */\n\
         /* Written by `make headers` from src/abi/types/{source}: do not edit. */\n\n\
         #ifndef {guard}\n#define {guard}\n\n{top}\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{forward}{body}\n\n\
         #ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */\n"
    ))
}

fn texts<'a>(header: &'a Header, place: &str) -> Vec<&'a str> {
    header
        .parts
        .iter()
        .filter_map(|p| match p {
            Part::Text(at, text) if at == place => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn body(header: &Header, blocks: &Blocks, fields: &Fields, unions: &HashMap<&str, &str>) -> Result<String, String> {
    let inlines = header
        .rows
        .iter()
        .map(|r| inline::function(r, blocks, fields))
        .collect::<Result<Vec<_>, _>>()?
        .join("\n\n");
    let mut placed = inlines.is_empty();
    let mut out = String::new();
    let mut last_kind = None;
    for part in &header.parts {
        let (text, kind) = match part {
            Part::Text(at, text) => match at.as_str() {
                "top" => continue,
                "here" => (text.clone(), None),
                "inlines" => {
                    placed = true;
                    (inlines.clone(), None)
                }
                other => return Err(format!("{}: c_text at {other}?", header.path)),
            },
            Part::Item(item) if item.marks.inline || item.marks.opaque => continue,
            Part::Item(item) => (self::item(item, blocks, unions)?, Some(item.kind)),
        };
        // Constants stand in a row, and so do prototypes; all else is a paragraph.
        let row = kind.is_some() && kind == last_kind && matches!(kind, Some(Kind::Const | Kind::Function));
        out += if out.is_empty() {
            ""
        } else if row {
            "\n"
        } else {
            "\n\n"
        };
        out += &text;
        last_kind = kind;
    }
    if !placed {
        out += "\n\n";
        out += &inlines;
    }
    Ok(out)
}

fn item(item: &Named, blocks: &Blocks, unions: &HashMap<&str, &str>) -> Result<String, String> {
    if let Some(text) = &item.string {
        return Ok(format!("#define {} {text:?}", item.name));
    }
    let call = if item.kind == Kind::Function { "()" } else { "" };
    let block = blocks
        .get(&format!("{}{call}", item.name))
        .ok_or(format!("{}: cbindgen did not write it", item.name))?;
    Ok(match item.kind {
        Kind::Const if item.marks.deprecated => deprecated(&item.name, block)?,
        Kind::Const => enclose(&upper_suffix(block)),
        Kind::Enum => tabs(&block.replacen(&format!("enum {} {{", item.name), &enum_head(&item.name), 1)),
        Kind::Type => lines(block, unions),
        Kind::Function => match &item.marks.printf {
            Some(at) => fold(
                &format!("{} FI_FORMAT_PRINTF({at});", block.trim_end_matches(';')),
                "\t\t",
            ),
            None => fold(block, "\t\t"),
        },
    })
}

fn enum_head(name: &str) -> String {
    if name.starts_with("anon_") {
        "enum {".into()
    } else {
        format!("enum {name} {{")
    }
}

/// 1ull says the same, but nobody writes it.
fn upper_suffix(text: &str) -> String {
    text.split(' ')
        .map(|w| match w.strip_suffix("ull").or(w.strip_suffix("ull)")) {
            Some(digits) if digits.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit()) => {
                w.replace("ull", "ULL")
            }
            _ => w.to_string(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// A value that is a cast needs parentheses, which cbindgen leaves out.
fn enclose(block: &str) -> String {
    match block.rsplit_once(" (uint64_t)") {
        Some((head, value)) if head.starts_with("#define ") => format!("{head} ((uint64_t) {value})"),
        _ => block.replace("(uint64_t)", "(uint64_t) "),
    }
}

/// The warning stands in the value, so that it is said where a program uses the name.
fn deprecated(name: &str, block: &str) -> Result<String, String> {
    let head = format!("#define {name} ");
    let (comment, value) = block.split_once(&head).ok_or(format!("{name}: not a #define"))?;
    let warning = format!("_Pragma(\"GCC warning \\\"'{name}' is deprecated\\\"\")");
    Ok(format!("{comment}{head}\\\n\t{warning} {}", upper_suffix(value)))
}

/// A struct line by line: inline unions take their place, long slots fold, indents become tabs.
fn lines(block: &str, unions: &HashMap<&str, &str>) -> String {
    let mut out = vec![];
    for line in block.lines() {
        if line.starts_with(['/', ' ']) && line.trim_start().starts_with(['/', '*']) {
            out.push(line.to_string());
            continue;
        }
        let line = tabs(line);
        let words: Vec<&str> = line.trim().trim_end_matches(';').split(' ').collect();
        match words.as_slice() {
            ["union", tag, name] if unions.contains_key(tag) => out.extend(union(unions[tag], name)),
            [ty, name] if name.ends_with("[0]") => out.push(format!("\t{ty} {}[];", name.trim_end_matches("[0]"))),
            _ => out.push(fold(&line, "\t\t\t")),
        }
    }
    let text = out.join("\n");
    // C++ has no such arrays, compilers do; __extension__ is not enough for clang.
    if text.contains("[];") {
        return format!(
            "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wpedantic\"\n{text}\n#pragma GCC diagnostic pop"
        );
    }
    text
}

fn union(block: &str, name: &str) -> Vec<String> {
    // C99 and C++11 know no nameless union inside a struct, or only half: compilers do.
    let (head, tail) = if name == "anonymous" {
        ("__extension__ union", String::new())
    } else {
        ("union", format!(" {name}"))
    };
    let members = block
        .lines()
        .skip_while(|l| !l.starts_with("union "))
        .skip(1)
        .take_while(|l| *l != "};");
    let mut out = vec![format!("\t{head} {{")];
    out.extend(members.map(|l| format!("\t{}", tabs(l))));
    out.push(format!("\t}}{tail};"));
    out
}

fn tabs(text: &str) -> String {
    text.lines()
        .map(|line| {
            let rest = line.trim_start_matches(' ');
            let depth = line.len() - rest.len();
            format!("{}{}{rest}", "\t".repeat(depth / 8), " ".repeat(depth % 8))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Breaks a long line after commas; further lines begin with `indent`.
pub fn fold(line: &str, indent: &str) -> String {
    let width = |s: &str| s.chars().map(|c| if c == '\t' { 8 } else { 1 }).sum::<usize>();
    let mut out = String::new();
    let mut current = String::new();
    for piece in line.split_inclusive(", ") {
        if !current.is_empty() && width(&current) + width(piece.trim_end()) > WIDTH {
            out += current.trim_end();
            out += "\n";
            current = indent.to_string();
        }
        current += piece;
    }
    out + &current
}

/// Declares the structs that a header mentions before it defines them, or that another header defines.
fn forward(header: &Header, top: &str, body: &str, known: &mut Known) -> String {
    let mut seen: HashSet<String> = top
        .lines()
        .filter_map(|l| l.strip_prefix("#include <rdma/")?.strip_suffix('>'))
        .flat_map(|path| known.get(path).cloned().unwrap_or_default())
        .chain(["iovec", "pollfd"].map(String::from))
        .collect();
    let mut wanted = BTreeSet::new();
    for line in body.lines().filter(|l| !l.trim_start().starts_with(['#', '/', '*'])) {
        if let Some(tag) = line.strip_prefix("struct ").and_then(|l| l.strip_suffix(" {")) {
            seen.insert(tag.to_string());
        }
        for tag in line.split("struct ").skip(1) {
            let tag: String = tag.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if seen.insert(tag.clone()) {
                wanted.insert(tag);
            }
        }
    }
    known.insert(header.path.clone(), seen);
    if wanted.is_empty() {
        return String::new();
    }
    wanted.iter().map(|tag| format!("struct {tag};\n")).collect::<String>() + "\n"
}
