//! fi_info: which fabric interfaces there are, what the library's environment variables mean, and why an interface is
//! not offered; and what a help desk would ask of this machine. A plain client of `libfabric.so.1`: it shares the C
//! types with the library, and no code.
//!
//! Here: from the command line to the output and the exit status. Options are in `options`, texts in `print`,
//! `document` and `why`, the library in `ffi`, the check in `check`.

#[path = "../common/abi.rs"]
mod abi;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod document;
mod ffi;
mod json;
mod names;
mod options;
mod print;
mod why;

use abi::types::FI_PROV_ATTR_ONLY;
use core::ffi::c_int;
use ffi::{Capture, Infos, Param};
use json::Json;
use options::{Options, Query, Request};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use why::{Known, Refusal};

/// What the program ends with: text for each stream, and 0, a negative error, or what a check comes to.
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
        Request::Ask(options) if options.check => {
            let (out, status) = check::check(options.json);
            Outcome {
                out,
                code: status.into(),
                ..Outcome::default()
            }
        }
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
    let written = std::io::stdout()
        .write_all(&outcome.out)
        .and_then(|()| std::io::stdout().flush());
    let _ = std::io::stderr().write_all(&outcome.err);
    match written {
        // A reader that went away (`fi_info | head`) has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr(), "fi_info: cannot write: {error}");
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    match (outcome.code, outcome.code.unsigned_abs() as u8) {
        (0, _) => ExitCode::SUCCESS,
        (_, 0) => ExitCode::FAILURE,
        (_, status) => ExitCode::from(status),
    }
}

fn ask(options: &Options) -> Outcome {
    let mut failed = Vec::new();
    let capture = options.why.then(Capture::start);
    let infos = ffi::getinfo(&options.query);
    let refusals = capture.map(|capture| match capture {
        Ok(capture) => why::refusals(&capture.finish(), &known(options, infos.as_ref().ok())),
        Err(code) => {
            failed.push(("fi_open", code));
            Vec::new()
        }
    });
    let answer = match infos {
        Ok(infos) => Answer::Infos(infos),
        Err(code) => {
            failed.push(("fi_getinfo", code));
            Answer::Nothing
        }
    };
    // Also when no info was found: a variable may be the reason.
    let answer = match options.env.then(ffi::params) {
        Some(Ok(params)) => Answer::Variables(params),
        Some(Err(code)) => {
            failed.push(("fi_getparams", code));
            Answer::Nothing
        }
        None => answer,
    };
    Outcome {
        out: if options.json {
            document(options, &answer, refusals.as_deref())
        } else {
            [refusals.map_or(Vec::new(), |r| why::print(&r)), text(options, &answer)].concat()
        },
        err: failed
            .iter()
            .flat_map(|(call, code)| print::failed(call, *code))
            .collect(),
        code: failed.last().map_or(0, |(_, code)| *code),
    }
}

/// What is to be shown.
enum Answer {
    Infos(Infos),
    Variables(Vec<Param>),
    Nothing,
}

fn text(options: &Options, answer: &Answer) -> Vec<u8> {
    let contains = options.contains.as_deref();
    match answer {
        Answer::Nothing => Vec::new(),
        Answer::Variables(params) => print::variables(params, contains),
        Answer::Infos(infos) if options.verbose => print::long(infos, contains),
        Answer::Infos(infos) if options.list => print::providers(infos),
        Answer::Infos(infos) => print::short(infos),
    }
}

/// The JSON document, also without an answer: then its array is empty.
fn document(options: &Options, answer: &Answer, refusals: Option<&[Refusal]>) -> Vec<u8> {
    let contains = options.contains.as_deref();
    let answer = match answer {
        Answer::Nothing => Json::Array(Vec::new()),
        Answer::Variables(params) => document::variables(params, contains),
        Answer::Infos(infos) if options.list && !options.verbose => document::providers(infos),
        Answer::Infos(infos) => document::infos(infos, contains),
    };
    match refusals {
        Some(refusals) => document::explained(refusals, answer),
        None => answer,
    }
    .document()
    .into_bytes()
}

/// What `why` needs to know besides the log.
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
