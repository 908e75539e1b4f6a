//! Writes `include/rdma` from `src/abi/types` (what the types are) and `src/abi/wrappers` (what the inlines call).
//!
//! cbindgen says every struct, op table, enum, constant and prototype in C; what it cannot say is added here: the
//! order of the source, include guards, texts marked `c_text!`, unions without a name, deprecation, the inline
//! functions. `model` reads the Rust, `cbind` asks cbindgen, `inline` turns a row of the wrapper table into C,
//! `write` puts a header together. Called by `make headers`; with `--check` it compares instead of writing.

mod cbind;
mod inline;
mod model;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

struct Args {
    check: bool,
    src: PathBuf,
    out: PathBuf,
}

fn args() -> Result<Args, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut args = Args {
        check: false,
        src: root.join("src/abi"),
        out: root.join("include/rdma"),
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().map(PathBuf::from).ok_or(format!("{word} needs a folder"));
        match word.as_str() {
            "--check" => args.check = true,
            "--src" => args.src = value()?,
            "--out" => args.out = value()?,
            _ => return Err("usage: rdma-headers [--check] [--src src/abi] [--out include/rdma]".into()),
        }
    }
    Ok(args)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("rdma-headers: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let args = args()?;
    let headers = model::read(&args.src)?;
    let blocks = cbind::blocks(&headers)?;
    let mut good = true;
    for (path, text) in write::all(&headers, &blocks)? {
        let file = args.out.join(&path);
        let old = fs::read_to_string(&file).unwrap_or_default();
        if args.check {
            good &= same(&path, &old, &text);
        } else if old != text {
            fs::create_dir_all(file.parent().unwrap_or(&args.out)).map_err(|e| e.to_string())?;
            fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
            println!("wrote {}", file.display());
        }
    }
    if args.check {
        println!(
            "headers: {} {}",
            headers.len(),
            if good {
                "as generated: PASS"
            } else {
                "FAIL, run `make headers`"
            }
        );
    }
    Ok(good)
}

/// Compares line by line and shows the first difference, as diff would.
fn same(path: &str, committed: &str, generated: &str) -> bool {
    if committed == generated {
        return true;
    }
    let (mut a, mut b) = (committed.lines(), generated.lines());
    let mut line = 1;
    loop {
        match (a.next(), b.next()) {
            (x, y) if x == y && x.is_some() => line += 1,
            (x, y) => {
                println!("{path}:{line}: differs from what src/abi says");
                println!("-{}\n+{}", x.unwrap_or("(end)"), y.unwrap_or("(end)"));
                return false;
            }
        }
    }
}
