//! Holds `src/abi/types` and `include/rdma` against the fact sheets and against the C library's own headers.
//!
//! `facts` is the common language; `ours`, `sheet`, `real` say it of the Rust types, a sheet, a tree of headers;
//! `compare` compares; `asserts` asks the C compilers; `inlines` calls the inline functions. `run` runs it all.

mod asserts;
mod compare;
mod facts;
mod inlines;
mod ours;
mod real;
mod sheet;

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

use asserts::Language;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

const NOW: &str = "2.6.0";
const USAGE: &str = "layout [--sheets DIR] [--differences FILE] [--cc NAME].. COMMAND
  rust VERSION               src/abi/types against a sheet
  asserts VERSION DIR        assertions from a sheet, over the headers in DIR
  bindgen VERSION DIR        src/abi/types against the headers in DIR
  inlines DIR [LIBRARY]      every inline of the headers in DIR, or the symbols of LIBRARY
  use DIR FILE               write a C program that calls every inline of the headers in DIR";

struct Setup {
    here: PathBuf,
    sheets: PathBuf,
    differences: PathBuf,
    work: PathBuf,
    compilers: Vec<String>,
    command: Vec<String>,
}

fn setup() -> Setup {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut setup = Setup {
        sheets: here.join("sheets"),
        differences: here.join("differences.txt"),
        work: here.join("target/work"),
        here,
        compilers: vec![],
        command: vec![],
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--sheets" => setup.sheets = words.next().unwrap_or_default().into(),
            "--differences" => setup.differences = words.next().unwrap_or_default().into(),
            "--cc" => setup.compilers.extend(words.next()),
            _ => setup.command.push(word),
        }
    }
    if setup.compilers.is_empty() {
        setup.compilers.push("gcc".into());
    }
    setup
}

fn main() -> ExitCode {
    match run(&setup()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("layout: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(setup: &Setup) -> Result<bool, String> {
    fs::create_dir_all(&setup.work).map_err(|e| e.to_string())?;
    let words: Vec<&str> = setup.command.iter().map(String::as_str).collect();
    match words[..] {
        ["rust", version] => {
            let theirs = sheet::read(&setup.sheets, version)?.facts();
            held(
                setup,
                &theirs,
                version,
                &format!("Rust types against the sheet of {version}"),
                true,
            )
        }
        ["asserts", version, dir] => asserts(setup, version, Path::new(dir)),
        ["bindgen", version, dir] => {
            let headers = sheet::read(&setup.sheets, version)?.headers;
            let theirs = real::facts(Path::new(dir), &headers)?;
            held(
                setup,
                &theirs,
                version,
                &format!("Rust types against the real headers of {version}"),
                false,
            )
        }
        ["inlines", dir] => inlines::run(setup, Path::new(dir), None),
        ["inlines", dir, library] => inlines::run(setup, Path::new(dir), Some(Path::new(library))),
        ["use", file] => {
            let text = inlines::callers(&sheet::read(&setup.sheets, NOW)?);
            fs::write(file, text).map(|()| true).map_err(|e| format!("{file}: {e}"))
        }
        _ => Err(format!("usage: {USAGE}")),
    }
}

fn held(setup: &Setup, theirs: &facts::Facts, version: &str, what: &str, whole: bool) -> Result<bool, String> {
    let ours = ours::facts();
    let count = if version == NOW {
        compare::same(&ours, theirs)
    } else {
        let list = compare::differences(&setup.differences)?;
        compare::older(&ours, theirs, version, &list, whole)
    };
    Ok(count.said(what))
}

fn asserts(setup: &Setup, version: &str, dir: &Path) -> Result<bool, String> {
    let sheet = sheet::read(&setup.sheets, version)?;
    let mut good = true;
    for compiler in &setup.compilers {
        let language = if compiler.ends_with("++") {
            Language::Cxx
        } else {
            Language::C
        };
        let text = asserts::program(&sheet, version == NOW, language);
        let count = asserts::run(&text, compiler, dir, &setup.work)?;
        good &= count.said(&format!("{compiler}: sheet of {version} over {}", dir.display()));
    }
    Ok(good)
}
