//! Turns a sheet into a C program of static assertions and compiles it over a tree of headers.

use crate::compare::Count;
use crate::sheet::{Sheet, list, number, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::{collections::HashSet, fs};

/// The C library's fi_profile.h needs it from its includer.
pub const CONTAINER_OF: &str = "#ifndef container_of\n#define container_of(ptr, type, field) \
     ((type *) ((char *) ptr - offsetof(type, field)))\n#endif";

#[derive(Clone, Copy, PartialEq)]
pub enum Language {
    C,
    Cxx,
}

/// `own`: our headers, which need no help to compile.
pub fn program(sheet: &Sheet, own: bool, language: Language) -> String {
    let mut out = String::from("#include <stddef.h>\n#include <string.h>\n");
    if !own {
        out += CONTAINER_OF;
        out += "\n";
    }
    for header in &sheet.headers {
        out += &format!("#include <{header}>\n");
    }
    if language == Language::Cxx {
        out += "#define _Static_assert static_assert\n";
    }
    for check in checks(sheet, language) {
        out += &format!("_Static_assert({check}, \"\");\n");
    }
    out
}

fn checks(sheet: &Sheet, language: Language) -> Vec<String> {
    let types = language == Language::C;
    let mut all = vec![];
    for (name, entry) in sheet.section("structs") {
        let tag = format!("{} {name}", text(entry, "kind"));
        all.push(format!("sizeof({tag}) == {}", number(entry, "size")));
        all.push(format!("__alignof__({tag}) == {}", number(entry, "align")));
        for (path, field) in Sheet::fields(entry) {
            all.push(format!("offsetof({tag}, {path}) == {}", number(field, "offset")));
            let ty = text(field, "type");
            if types && !ty.contains("anonymous") {
                all.push(same_type(&format!("(({tag} *) 0)->{path}"), ty));
            }
        }
    }
    for (name, entry) in sheet.section("enums") {
        if !name.starts_with("anon:") {
            all.push(format!("sizeof(enum {name}) == {}", number(entry, "size")));
        }
        for member in entry["members"].as_object().into_iter().flatten().map(|(m, _)| m) {
            all.push(format!("{member} == {}", c_number(number(&entry["members"], member))));
        }
    }
    for (name, entry) in sheet.section("macros") {
        match &entry["value"] {
            Value::String(s) => all.push(format!("sizeof({name}) == {}", s.len() + 1)),
            _ => all.push(format!("{name} == {}", c_number(number(entry, "value")))),
        }
        if types && entry["type"] != "string" {
            all.push(same_type(name, text(entry, "type")));
        }
        if let (true, Value::String(s)) = (types, &entry["value"]) {
            all.push(format!("!__builtin_strcmp({name}, {s:?})"));
        }
    }
    for (name, entry) in sheet.section("typedefs") {
        all.push(format!("sizeof({name}) == {}", number(entry, "size")));
        if types {
            all.push(format!("__builtin_types_compatible_p({name}, {})", text(entry, "type")));
        }
    }
    for (name, entry) in sheet.section("functions").filter(|_| types) {
        all.push(same_type(name, &function_type(entry)));
    }
    for (call, value) in sheet.section("samples").filter(|(c, _)| c.starts_with("FI_") && types) {
        all.push(format!("({call}) == {value}"));
    }
    all
}

fn same_type(expression: &str, ty: &str) -> String {
    format!("__builtin_types_compatible_p(__typeof__({expression}), {ty})")
}

fn function_type(entry: &Value) -> String {
    let mut params: Vec<&str> = list(entry, "params").map(|p| text(p, "type")).collect();
    if entry["variadic"] == true {
        params.push("...");
    }
    let params = if params.is_empty() {
        "void".into()
    } else {
        params.join(", ")
    };
    format!("{} ({params})", text(entry, "returns"))
}

fn c_number(n: i128) -> String {
    if n > i128::from(i64::MAX) {
        format!("{n}ULL")
    } else {
        n.to_string()
    }
}

/// Compiles; a failed assertion, or one that does not even compile, is a failure.
pub fn run(text: &str, compiler: &str, include: &Path, work: &Path) -> Result<Count, String> {
    let cxx = compiler.ends_with("++");
    let file = work.join(if cxx { "asserts.cc" } else { "asserts.c" });
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let limit = if compiler.starts_with("clang") {
        "-ferror-limit=0"
    } else {
        "-fmax-errors=0"
    };
    let standard = if cxx { "-std=c++11" } else { "-std=gnu11" };
    let output = Command::new(compiler)
        .args([standard, "-w", "-fsyntax-only", limit, "-I"])
        .args([include, &file])
        .output()
        .map_err(|e| format!("{compiler}: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut count = Count {
        pass: text.matches("_Static_assert(").count(),
        fail: 0,
    };
    let mut seen = HashSet::new();
    for error in errors.lines().filter(|l| l.contains("error:")) {
        let place = error.split("error:").next().unwrap_or_default();
        let line = place
            .split(':')
            .nth(1)
            .and_then(|n| n.parse::<usize>().ok())
            .filter(|_| place.contains("/asserts.c"));
        let what = line.and_then(|n| text.lines().nth(n - 1)).unwrap_or(error);
        if seen.insert(what.to_string()) {
            count.pass = count.pass.saturating_sub(1);
            count.fail(what.to_string());
        }
    }
    if !output.status.success() && count.fail == 0 {
        count.fail(format!("{compiler}: {errors}"));
    }
    Ok(count)
}
