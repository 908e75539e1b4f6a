//! Reads `src/abi/types` and writes the program text that asks rustc for every size, offset and value there.
//!
//! LAYOUT_TYPES names another folder: the test of the test lays a spoiled copy there.

use quote::quote;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::{env, fs};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Fields, Ident, Item, Token, Type, braced};

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let types = env::var("LAYOUT_TYPES")
        .map(PathBuf::from)
        .unwrap_or(manifest.join("../../src/abi/types"));
    let types = types.canonicalize().expect("the types exist");
    println!("cargo::rerun-if-env-changed=LAYOUT_TYPES");
    println!("cargo::rerun-if-changed={}", types.display());

    let mut found = Found::default();
    for file in files(&types) {
        let text = fs::read_to_string(&file).expect("a readable file");
        found.read(syn::parse_file(&text).expect("a Rust file"));
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("ours.rs"), found.program()).expect("a writable OUT_DIR");
    // The types as they stand, under the name by which they call each other.
    let module = format!(
        "mod abi {{ #[path = {:?}] pub mod types; }}",
        types.join("mod.rs").display().to_string()
    );
    fs::write(out.join("abi.rs"), module).expect("a writable OUT_DIR");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![];
    for entry in fs::read_dir(dir).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(files(&path)),
            path if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("mod.rs") => all.push(path),
            _ => {}
        }
    }
    all
}

#[derive(Default)]
struct Found {
    /// Structs and unions with their fields; inline unions apart.
    structs: BTreeMap<String, Vec<(String, Type)>>,
    inline: HashMap<String, Vec<(String, Type)>>,
    aliases: Vec<String>,
    /// Tag as the sheets say it, and the Rust name.
    enums: Vec<(String, String)>,
    numbers: Vec<String>,
    texts: Vec<String>,
}

impl Found {
    fn read(&mut self, file: syn::File) {
        for item in file.items {
            match item {
                Item::Const(c) if matches!(&*c.ty, Type::Reference(_)) => self.texts.push(c.ident.to_string()),
                Item::Const(c) => self.numbers.push(c.ident.to_string()),
                Item::Type(t) => self.aliases.push(t.ident.to_string()),
                Item::Struct(s) if !marked(&s.attrs, "@opaque") => {
                    let Fields::Named(fields) = s.fields else {
                        panic!("{}: fields need names", s.ident)
                    };
                    self.structs.insert(s.ident.to_string(), named(fields));
                }
                Item::Union(u) => {
                    assert!(
                        marked(&u.attrs, "@inline"),
                        "{}: a union of its own is new here",
                        u.ident
                    );
                    self.inline.insert(u.ident.to_string(), named(u.fields));
                }
                Item::Macro(m) if m.mac.path.is_ident("c_enum") => self.read_enum(m.mac.tokens),
                _ => {}
            }
        }
    }

    fn read_enum(&mut self, tokens: proc_macro2::TokenStream) {
        let parse = |input: ParseStream| {
            input.call(Attribute::parse_outer)?;
            input.parse::<syn::Visibility>()?;
            input.parse::<Token![enum]>()?;
            let name: Ident = input.parse()?;
            input.parse::<Token![:]>()?;
            input.parse::<Ident>()?;
            let body;
            braced!(body in input);
            let variants = body.parse_terminated(syn::Variant::parse, Token![,])?;
            Ok((
                name.to_string(),
                variants.iter().map(|v| v.ident.to_string()).collect::<Vec<_>>(),
            ))
        };
        use syn::parse::Parse;
        let (name, members) = parse.parse2(tokens).expect("c_enum! as the types write it");
        let tag = if name.starts_with("anon_") {
            format!("anon:{}", members[0])
        } else {
            name.clone()
        };
        self.enums.push((tag, name));
        self.numbers.extend(members);
    }

    /// (name as the sheets say it, Rust path) of every field, inline unions opened.
    fn fields(&self, of: &str) -> Vec<(String, String, Type)> {
        let mut all = vec![];
        for (field, ty) in &self.structs[of] {
            let union = self.inline.get(&quote!(#ty).to_string());
            if field != "anonymous" {
                all.push((field.clone(), field.clone(), ty.clone()));
            }
            for (member, ty) in union.into_iter().flatten() {
                let said = if field == "anonymous" {
                    member.clone()
                } else {
                    format!("{field}.{member}")
                };
                all.push((said, format!("{field}.{member}"), ty.clone()));
            }
        }
        all
    }

    fn program(&self) -> String {
        let mut rows = String::new();
        let mut row = |key: String, value: String| rows += &format!("    facts.num(\"{key}\", ({value}) as i128);\n");
        for name in self.structs.keys() {
            row(format!("size {name}"), format!("size_of::<t::{name}>()"));
            row(format!("align {name}"), format!("align_of::<t::{name}>()"));
            for (said, path, ty) in self.fields(name) {
                let path = raw(&path);
                row(
                    format!("offset {name}.{said}"),
                    format!("offset_of!(t::{name}, {path})"),
                );
                row(
                    format!("width {name}.{said}"),
                    format!("width(|p: *const t::{name}| unsafe {{ &raw const (*p).{path} }})"),
                );
                if let Some(count) = parameters(&ty) {
                    row(format!("parameters {name}.{said}"), format!("{count}_usize"));
                }
            }
        }
        for (tag, name) in &self.enums {
            row(format!("size {tag}"), format!("size_of::<t::{name}>()"));
            row(format!("signed {tag}"), format!("t::{name}::MIN != 0"));
        }
        for name in &self.aliases {
            row(format!("size {name}"), format!("size_of::<t::{name}>()"));
        }
        for name in &self.numbers {
            row(format!("value {name}"), format!("t::{name}"));
        }
        for name in &self.texts {
            rows += &format!("    facts.text(\"value {name}\", t::{name});\n");
        }
        format!("use crate::abi::types as t;\npub fn ours(facts: &mut crate::facts::Facts) {{\n{rows}}}\n")
    }
}

fn named(fields: syn::FieldsNamed) -> Vec<(String, Type)> {
    let name = |f: &syn::Field| {
        f.ident
            .as_ref()
            .map(|i| i.to_string().trim_start_matches("r#").to_string())
    };
    fields
        .named
        .iter()
        .map(|f| (name(f).expect("a name"), f.ty.clone()))
        .collect()
}

/// `type` is a word of Rust.
fn raw(path: &str) -> String {
    path.split('.')
        .map(|p| if p == "type" { "r#type" } else { p })
        .collect::<Vec<_>>()
        .join(".")
}

fn marked(attrs: &[Attribute], mark: &str) -> bool {
    attrs.iter().any(|a| quote!(#a).to_string().contains(mark))
}

/// How many parameters a slot has: `Option<fn(..)>`.
fn parameters(ty: &Type) -> Option<usize> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(args) = &last.arguments else {
        return None;
    };
    match args.args.first()? {
        syn::GenericArgument::Type(Type::BareFn(function)) if last.ident == "Option" => Some(function.inputs.len()),
        _ => None,
    }
}
