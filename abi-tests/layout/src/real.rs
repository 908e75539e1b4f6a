//! What libclang makes of a tree of real headers, by way of bindgen.

use crate::facts::Facts;
use quote::ToTokens;
use std::collections::HashMap;
use std::path::Path;
use syn::{Expr, Item, Lit, UnOp};

pub fn facts(include: &Path, headers: &[String]) -> Result<Facts, String> {
    // fi_profile.h of the C library uses this macro and nowhere defines it.
    let text: String = headers.iter().map(|h| format!("#include <{h}>\n")).collect();
    let text = format!("#include <stddef.h>\n{}\n{text}", crate::asserts::CONTAINER_OF);
    let bindings = bindgen::Builder::default()
        .header_contents("all.h", &text)
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_item("(fi|fid|FI)_.*|fid")
        .prepend_enum_name(false)
        .layout_tests(true)
        .derive_default(false)
        .generate_comments(false)
        .formatter(bindgen::Formatter::None)
        .generate()
        .map_err(|e| e.to_string())?
        .to_string();
    let file = syn::parse_file(&bindings).map_err(|e| format!("bindgen's answer: {e}"))?;
    let mut facts = Facts::default();
    let asserted = asserted(&bindings);
    let unions = unions(&file);
    for ((kind, name), value) in &asserted {
        let Some((owner, field)) = name.split_once("::") else {
            if !name.contains("__bindgen") && ours_to_say(name) {
                facts.num(&format!("{kind} {name}"), *value);
            }
            continue;
        };
        if owner.contains("__bindgen") || !ours_to_say(owner) {
            continue;
        }
        let union = unions.get(&(owner.to_string(), field.to_string()));
        let nameless = field.starts_with("__bindgen_anon");
        if !nameless {
            facts.num(&format!("offset {owner}.{field}"), *value);
        }
        for (member, inner) in union.into_iter().flat_map(|u| members(&asserted, u)) {
            let path = if nameless { member } else { format!("{field}.{member}") };
            facts.num(&format!("offset {owner}.{path}"), value + inner);
        }
    }
    values(&file, &mut facts);
    if facts.0.is_empty() {
        Err("bindgen found nothing".into())
    } else {
        Ok(facts)
    }
}

/// Not the system's types that they use.
fn ours_to_say(tag: &str) -> bool {
    tag.starts_with("fi_") || tag.starts_with("fid_") || tag == "fid"
}

type Asserted = HashMap<(&'static str, String), i128>;

/// bindgen states each layout as `["Size of x"][size_of::<x>() - 16usize]`.
fn asserted(bindings: &str) -> Asserted {
    let mut all = Asserted::new();
    let labels = [
        ("size", "\"Size of "),
        ("align", "\"Alignment of "),
        ("offset", "\"Offset of field: "),
    ];
    for (kind, label) in labels {
        for piece in bindings.split(label).skip(1) {
            let Some((name, rest)) = piece.split_once('"') else {
                continue;
            };
            let Some((_, rest)) = rest.split_once("- ") else {
                continue;
            };
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            // `type` is a word of Rust.
            let name = name
                .strip_suffix("::type_")
                .map_or(name.to_string(), |owner| format!("{owner}::type"));
            if let Ok(value) = digits.parse() {
                all.insert((kind, name), value);
            }
        }
    }
    all
}

/// (struct, field) of every field whose type is a union that C gave no tag.
fn unions(file: &syn::File) -> HashMap<(String, String), String> {
    let mut all = HashMap::new();
    for item in &file.items {
        let Item::Struct(s) = item else { continue };
        for field in &s.fields {
            let ty = field.ty.to_token_stream().to_string();
            if let (Some(name), true) = (&field.ident, ty.contains("__bindgen_ty")) {
                all.insert((s.ident.to_string(), name.to_string()), ty);
            }
        }
    }
    all
}

fn members<'a>(asserted: &'a Asserted, union: &'a str) -> impl Iterator<Item = (String, i128)> + 'a {
    asserted.iter().filter_map(move |((kind, name), value)| {
        let (owner, member) = name.split_once("::")?;
        (*kind == "offset" && owner == union).then(|| (member.to_string(), *value))
    })
}

/// Enumerators, and the macros simple enough for bindgen, which takes SIZE_MAX for -1.
fn values(file: &syn::File, facts: &mut Facts) {
    for item in &file.items {
        let Item::Const(c) = item else { continue };
        let name = c.ident.to_string();
        let misread = c.ty.to_token_stream().to_string() == "i32";
        if let (Some(value), true, false) = (literal(&c.expr), name.starts_with("FI_"), misread) {
            facts.num(&format!("value {name}"), value);
        }
    }
}

fn literal(e: &Expr) -> Option<i128> {
    match e {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) => i.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => Some(-literal(&u.expr)?),
        _ => None,
    }
}
