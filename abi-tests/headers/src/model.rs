//! Reads `src/abi` into headers: per file, the items in source order and the rows of the wrapper table.
//!
//! Knows the marks that the types use (`c_text!`, `c_enum!`, `c_decl!`, `@inline` ...) and nothing about C text.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use std::path::Path;
use std::{collections::HashMap, fs};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, FnArg, Ident, Item, LitStr, ReturnType, Token, Type, Variadic, braced, parenthesized};

/// One public header.
pub struct Header {
    /// Below `include/rdma`, as `providers/fi_log.h`.
    pub path: String,
    /// Below `src/abi/types`: a file, or a folder of files.
    pub source: String,
    pub parts: Vec<Part>,
    pub rows: Vec<Row>,
}

pub enum Part {
    /// `c_text!`: where, and the text.
    Text(String, String),
    /// An item that cbindgen writes under this name.
    Item(Named),
}

pub struct Named {
    pub name: String,
    /// The item as cbindgen shall see it.
    pub rust: TokenStream,
    pub marks: Marks,
    /// Fields of a struct or union, to find the type of an expression.
    pub fields: HashMap<String, Type>,
    pub kind: Kind,
    /// The value of a string constant: cbindgen knows no strings.
    pub string: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Const,
    Type,
    Enum,
    Function,
}

#[derive(Clone, Default)]
pub struct Marks {
    pub inline: bool,
    pub opaque: bool,
    pub deprecated: bool,
    pub printf: Option<String>,
}

/// One row of the wrapper table.
pub struct Row {
    pub name: String,
    pub deprecated: bool,
    pub params: Punctuated<FnArg, Token![,]>,
    pub ret: ReturnType,
    pub body: Body,
}

#[allow(clippy::large_enum_variant)]
pub enum Body {
    /// `guarded`: look first whether the table has the slot.
    Slot {
        guarded: bool,
        table: Expr,
        slot: Ident,
        args: Vec<Expr>,
    },
    C(String),
}

/// The headers in an order in which each comes after those it needs.
const FILES: [&str; 16] = [
    "fi_errno",
    "fabric",
    "fi_eq",
    "fi_domain",
    "fi_endpoint",
    "fi_cm",
    "fi_rma",
    "fi_tagged",
    "fi_atomic",
    "fi_collective",
    "fi_trigger",
    "providers/fi_prov",
    "providers/fi_log",
    "providers/fi_peer",
    "fi_ext",
    "fi_profile",
];

pub fn read(abi: &Path) -> Result<Vec<Header>, String> {
    refuse_strays(&abi.join("types"), "")?;
    FILES
        .iter()
        .map(|name| {
            let file = whole_file(&abi.join("types").join(name))?;
            let parts = parts(&file).map_err(|e| format!("{name}: {e}"))?;
            let table = abi
                .join("wrappers")
                .join(format!("{}.rs", name.rsplit('/').next().unwrap_or(name)));
            let rows = if table.exists() {
                rows(&parse_file(&table)?).map_err(|e| format!("{name}: {e}"))?
            } else {
                vec![]
            };
            let in_files = abi.join("types").join(name).is_dir();
            Ok(Header {
                path: format!("{name}.h"),
                source: format!("{name}{}", if in_files { "/" } else { ".rs" }),
                parts,
                rows,
            })
        })
        .collect()
}

/// A file that nobody lists here would be a header that nobody gets.
fn refuse_strays(dir: &Path, prefix: &str) -> Result<(), String> {
    for entry in fs::read_dir(dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if FILES.contains(&format!("{prefix}{name}").as_str()) {
            continue; // a header in several files: its `mod.rs` names them, as the compiler sees to
        } else if entry.path().is_dir() {
            refuse_strays(&entry.path(), &format!("{name}/"))?;
        } else if let Some(stem) = name.strip_suffix(".rs").filter(|s| *s != "mod")
            && !FILES.contains(&format!("{prefix}{stem}").as_str())
        {
            return Err(format!("types/{prefix}{name} is not in the list of headers"));
        }
    }
    Ok(())
}

/// A file, or a folder: what its `mod.rs` names, in that order.
fn whole_file(path: &Path) -> Result<syn::File, String> {
    let folder = path.join("mod.rs");
    if !folder.exists() {
        return parse_file(&path.with_extension("rs"));
    }
    let mut whole = parse_file(&folder)?;
    for item in std::mem::take(&mut whole.items) {
        if let Item::Mod(module) = item {
            whole
                .items
                .extend(whole_file(&path.join(module.ident.to_string()))?.items);
        }
    }
    Ok(whole)
}

fn parse_file(path: &Path) -> Result<syn::File, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn parts(file: &syn::File) -> syn::Result<Vec<Part>> {
    let mut parts = vec![];
    for item in &file.items {
        match item {
            Item::Use(_) | Item::Mod(_) => {}
            Item::Macro(m) if m.mac.path.is_ident("c_text") => parts.push(m.mac.parse_body_with(c_text)?),
            Item::Macro(m) if m.mac.path.is_ident("c_decl") => parts.extend(m.mac.parse_body_with(c_decl)?),
            Item::Macro(m) if m.mac.path.is_ident("c_enum") => parts.push(m.mac.parse_body_with(c_enum)?),
            Item::Const(c) => {
                let (docs, marks) = marks(&c.attrs);
                let (name, ty, value) = (&c.ident, &c.ty, &c.expr);
                let rust = quote! { #(#docs)* pub const #name: #ty = #value; };
                let mut part = named(name, rust, marks, Kind::Const);
                if let (
                    Part::Item(item),
                    Expr::Lit(syn::ExprLit {
                        lit: syn::Lit::Str(text),
                        ..
                    }),
                ) = (&mut part, &**value)
                {
                    item.string = Some(text.value());
                }
                parts.push(part);
            }
            Item::Type(t) => parts.push(named(&t.ident, t.to_token_stream(), Marks::default(), Kind::Type)),
            Item::Struct(s) => {
                let (docs, marks) = marks(&s.attrs);
                let (name, fields) = (&s.ident, &s.fields);
                let shape = (!marks.opaque).then(|| quote! { #[repr(C)] });
                let mut part = named(
                    name,
                    quote! { #(#docs)* #shape pub struct #name #fields },
                    marks,
                    Kind::Type,
                );
                add_fields(&mut part, s.fields.iter());
                parts.push(part);
            }
            Item::Union(u) => {
                let (docs, marks) = marks(&u.attrs);
                let (name, fields) = (&u.ident, &u.fields);
                let mut part = named(
                    name,
                    quote! { #(#docs)* #[repr(C)] pub union #name #fields },
                    marks,
                    Kind::Type,
                );
                add_fields(&mut part, u.fields.named.iter());
                parts.push(part);
            }
            other => {
                return Err(syn::Error::new_spanned(
                    other,
                    "an item the header writer does not know",
                ));
            }
        }
    }
    Ok(parts)
}

fn named(name: &Ident, rust: TokenStream, marks: Marks, kind: Kind) -> Part {
    Part::Item(Named {
        name: name.to_string(),
        rust,
        marks,
        fields: HashMap::new(),
        kind,
        string: None,
    })
}

fn add_fields<'a>(part: &mut Part, fields: impl Iterator<Item = &'a syn::Field>) {
    if let Part::Item(item) = part {
        item.fields = fields
            .filter_map(|f| Some((f.ident.as_ref()?.to_string(), f.ty.clone())))
            .collect();
    }
}

/// Separates the marks from the comments that travel into the header; drops derives and the like.
fn marks(attrs: &[Attribute]) -> (Vec<Attribute>, Marks) {
    let mut marks = Marks::default();
    let mut docs = vec![];
    for attr in attrs.iter().filter(|a| a.path().is_ident("doc")) {
        let text = match &attr.meta {
            syn::Meta::NameValue(nv) => nv.value.to_token_stream().to_string(),
            _ => String::new(),
        };
        match text.trim_matches('"').trim() {
            "@inline" => marks.inline = true,
            "@opaque" => marks.opaque = true,
            "@deprecated" => marks.deprecated = true,
            mark if mark.starts_with("@printf ") => marks.printf = mark.strip_prefix("@printf ").map(str::to_string),
            _ => docs.push(attr.clone()),
        }
    }
    (docs, marks)
}

fn c_text(input: ParseStream) -> syn::Result<Part> {
    let place: Ident = input.parse()?;
    input.parse::<Token![,]>()?;
    let text: LitStr = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(Part::Text(
        place.to_string(),
        text.value().trim_matches('\n').to_string(),
    ))
}

fn c_enum(input: ParseStream) -> syn::Result<Part> {
    let (docs, marks) = marks(&input.call(Attribute::parse_outer)?);
    input.parse::<syn::Visibility>()?;
    input.parse::<Token![enum]>()?;
    let name: Ident = input.parse()?;
    input.parse::<Token![:]>()?;
    input.parse::<Ident>()?;
    let body;
    braced!(body in input);
    let variants = Punctuated::<syn::Variant, Token![,]>::parse_terminated(&body)?;
    Ok(named(
        &name,
        quote! { #(#docs)* #[repr(C)] pub enum #name { #variants } },
        marks,
        Kind::Enum,
    ))
}

fn c_decl(input: ParseStream) -> syn::Result<Vec<Part>> {
    let mut parts = vec![];
    while !input.is_empty() {
        let function: syn::ForeignItemFn = input.parse()?;
        let (docs, marks) = marks(&function.attrs);
        let sig = &function.sig;
        parts.push(named(
            &sig.ident,
            exported(&docs, &sig.ident, &sig.inputs, &sig.variadic, &sig.output),
            marks,
            Kind::Function,
        ));
    }
    Ok(parts)
}

/// A function in the only form that cbindgen takes for exported.
pub fn exported(
    docs: &[Attribute],
    name: &Ident,
    params: &Punctuated<FnArg, Token![,]>,
    variadic: &Option<Variadic>,
    ret: &ReturnType,
) -> TokenStream {
    let params = params.iter();
    let dots = variadic.is_some().then(|| quote! { ... });
    quote! { #(#docs)* #[unsafe(no_mangle)] pub unsafe extern "C" fn #name(#(#params,)* #dots) #ret {} }
}

fn rows(file: &syn::File) -> syn::Result<Vec<Row>> {
    let mut rows = vec![];
    for item in &file.items {
        match item {
            Item::Use(_) => {}
            Item::Macro(m) if m.mac.path.is_ident("wrappers") => {
                let table = |input: ParseStream| {
                    let mut rows = vec![];
                    while !input.is_empty() {
                        rows.push(input.parse()?);
                    }
                    Ok(rows)
                };
                rows.extend(table.parse2(m.mac.tokens.clone())?);
            }
            other => return Err(syn::Error::new_spanned(other, "only `wrappers!` is expected here")),
        }
    }
    Ok(rows)
}

impl Parse for Row {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let deprecated = input
            .call(Attribute::parse_outer)?
            .iter()
            .any(|a| a.path().is_ident("deprecated"));
        input.parse::<Token![fn]>()?;
        let name = input.parse::<Ident>()?.to_string();
        let (params, body);
        parenthesized!(params in input);
        let params = Punctuated::parse_terminated(&params)?;
        let ret = input.parse()?;
        braced!(body in input);
        Ok(Row {
            name,
            deprecated,
            params,
            ret,
            body: body.parse()?,
        })
    }
}

impl Parse for Body {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let word: Ident = input.parse()?;
        if word == "rust" {
            let rust;
            braced!(rust in input);
            rust.parse::<TokenStream>()?;
            input.parse::<Ident>()?;
            return Ok(Body::C(input.parse::<LitStr>()?.value().trim_matches('\n').to_string()));
        }
        let (table, args);
        parenthesized!(table in input);
        let table = table.parse()?;
        input.parse::<Token![.]>()?;
        let slot = input.parse()?;
        parenthesized!(args in input);
        let args = Punctuated::<Expr, Token![,]>::parse_terminated(&args)?
            .into_iter()
            .collect();
        match word.to_string().as_str() {
            "slot" => Ok(Body::Slot {
                guarded: false,
                table,
                slot,
                args,
            }),
            "checked" => Ok(Body::Slot {
                guarded: true,
                table,
                slot,
                args,
            }),
            _ => Err(syn::Error::new(word.span(), "slot, checked or rust")),
        }
    }
}
