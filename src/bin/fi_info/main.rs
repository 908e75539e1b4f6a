//! fi_info: which fabric interfaces there are, what the library's environment variables mean, and why an interface is
//! not offered. A plain client of `libfabric.so.1`: it shares the C types with the library, and no code.
//!
//! Here: from the command line to the output and the exit status. Options are in `options`, texts in `print`,
//! `document` and `why`, the library in `ffi`.

mod abi;
mod document;
mod ffi;
mod getopt;
mod json;
mod names;
mod options;
mod print;
mod why;

use abi::types::FI_PROV_ATTR_ONLY;
use core::ffi::c_int;
use ffi::{Capture, Infos};
use json::Json;
use options::{Options, Query, Request};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use why::{Known, Refusal};

/// What the program ends with: text for each stream, and 0 or a negative error.
#[derive(Default)]
struct Outcome {
    out: Vec<u8>,
    err: Vec<u8>,
    code: c_int,
}

fn main() -> ExitCode {
    let args: Vec<Vec<u8>> = std::env::args_os().map(OsString::into_vec).collect();
    let (program, args) = args
        .split_first()
        .map_or((&b"fi_info"[..], &[][..]), |(first, rest)| (first, rest));
    let posix = std::env::var_os("POSIXLY_CORRECT").is_some();
    let outcome = match options::parse(args, posix) {
        Request::Ask(options) => ask(&options),
        Request::Version => Outcome {
            out: print::versions(program),
            ..Outcome::default()
        },
        Request::Help(wrong) => Outcome {
            out: options::usage(program),
            err: wrong.map_or(Vec::new(), |wrong| [program, b": ", &wrong.0, b"\n"].concat()),
            code: -1,
        },
        Request::BadWord(line) => Outcome {
            err: [&line[..], b"\n"].concat(),
            code: -libc::EINVAL,
            ..Outcome::default()
        },
    };
    finish(&outcome)
}

/// Writes, and makes the exit status: the error's low byte as from C's exit, but never 0 for an error.
fn finish(outcome: &Outcome) -> ExitCode {
    // A reader that went away (`fi_info | head`) is no error of ours, and there is nobody to tell of others.
    let _ = std::io::stdout()
        .write_all(&outcome.out)
        .and_then(|()| std::io::stdout().flush());
    let _ = std::io::stderr().write_all(&outcome.err);
    match (outcome.code, outcome.code.unsigned_abs() as u8) {
        (0, _) => ExitCode::SUCCESS,
        (_, 0) => ExitCode::FAILURE,
        (_, status) => ExitCode::from(status),
    }
}

fn ask(options: &Options) -> Outcome {
    let mut outcome = Outcome::default();
    let capture = options.why.then(Capture::start);
    let answer = ffi::getinfo(&options.query);
    let refusals = capture.map(|capture| match capture {
        Ok(capture) => why::refusals(&capture.finish(), &known(options, answer.as_ref().ok())),
        Err(code) => {
            outcome.err.extend_from_slice(&print::failed("fi_open", code));
            Vec::new()
        }
    });
    let shown = answer
        .map_err(|code| ("fi_getinfo", code))
        .and_then(|infos| show(options, &infos));
    if let Err((call, code)) = shown {
        outcome.err.extend_from_slice(&print::failed(call, code));
        outcome.code = code;
    }
    outcome.out = compose(
        options,
        shown.unwrap_or_else(|_| Shown::nothing(options)),
        refusals.as_deref(),
    );
    outcome
}

/// The answer in the form that was asked for.
enum Shown {
    Text(Vec<u8>),
    Document(Json),
}

impl Shown {
    fn nothing(options: &Options) -> Shown {
        if options.json {
            Shown::Document(Json::Array(Vec::new()))
        } else {
            Shown::Text(Vec::new())
        }
    }
}

/// The forms in the order in which they win; a failed call comes with its name.
fn show(options: &Options, infos: &Infos) -> Result<Shown, (&'static str, c_int)> {
    let contains = options.contains.as_deref();
    Ok(match options {
        Options { env: true, json, .. } => {
            let params = ffi::params().map_err(|code| ("fi_getparams", code))?;
            match json {
                true => Shown::Document(document::variables(&params, contains)),
                false => Shown::Text(print::variables(&params, contains)),
            }
        }
        Options {
            verbose: true,
            json: false,
            ..
        } => Shown::Text(print::long(infos, contains)),
        Options {
            verbose: false,
            list: true,
            json: false,
            ..
        } => Shown::Text(print::providers(infos)),
        Options { json: false, .. } => Shown::Text(print::short(infos)),
        Options {
            verbose: false,
            list: true,
            ..
        } => Shown::Document(document::providers(infos)),
        Options { .. } => Shown::Document(document::infos(infos, contains)),
    })
}

/// One text, or one JSON document, with the reasons in front when they were asked for.
fn compose(options: &Options, shown: Shown, refusals: Option<&[Refusal]>) -> Vec<u8> {
    let document = match (shown, refusals) {
        (Shown::Text(text), None) => return text,
        (Shown::Text(text), Some(refusals)) => return [why::print(refusals), text].concat(),
        (Shown::Document(document), None) => document,
        (Shown::Document(document), Some(refusals)) => document::explained(refusals, document),
    };
    debug_assert!(options.json);
    document.document().into_bytes()
}

/// What else helps to tell who was refused.
fn known(options: &Options, accepted: Option<&Infos>) -> Known {
    let all = ffi::getinfo(&Query {
        flags: FI_PROV_ATTR_ONLY,
        ..Query::default()
    })
    .ok();
    let names = |infos: Option<&Infos>| -> Vec<String> {
        let names = infos
            .iter()
            .flat_map(|infos| infos.iter())
            .filter_map(|info| info.provider());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    };
    let asked = options.query.hints.as_ref().and_then(|hints| hints.provider.as_ref());
    Known {
        registered: names(all.as_ref()),
        accepted: names(accepted)
            .iter()
            .flat_map(|name| name.split(';'))
            .map(str::to_string)
            .collect(),
        asked: asked.map(|name| name.to_string_lossy().into_owned()),
    }
}
