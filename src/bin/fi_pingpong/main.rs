//! fi_pingpong: two copies of this program, a server and a client, send one message to and fro and print what it took.
//! A plain client of `libfabric.so.1`: it shares the C types with the library, and no code. Either side may be the C
//! library's fi_pingpong.
//!
//! Here: from the command line to the exit status. Options are in `options`, setting up in `link`, measuring in `run`,
//! the talk beside the fabric in `control`, texts in `report`, `progress` and `say`, the library in `ffi`.

#[path = "../common/abi.rs"]
mod abi;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod ffi;
mod link;
mod options;
mod progress;
mod report;
mod run;
mod say;

use abi::types::FI_EP_MSG;
use link::Link;
use options::{Options, Request};
use say::{Fail, debug};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<Vec<u8>> = std::env::args_os().map(OsString::into_vec).collect();
    let (program, args) = args
        .split_first()
        .map_or((&b"fi_pingpong"[..], &[][..]), |(p, rest)| (p, rest));
    let program = String::from_utf8_lossy(program);
    let posix = std::env::var_os("POSIXLY_CORRECT").is_some();
    match options::parse(args, posix) {
        Request::Run(options) => match session(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Fail(code)) => status(code),
        },
        Request::Usage(wrong) => {
            if let Some(wrong) = wrong {
                say::write(format_args!("{program}: {wrong}\n"));
            }
            say::write(format_args!("{}", options::usage(&program)));
            ExitCode::FAILURE
        }
        Request::Bad(why) => {
            say::write(format_args!("{why}\n"));
            ExitCode::FAILURE
        }
    }
}

fn session(options: &Options) -> Result<(), Fail> {
    if options.verbose {
        say::be_verbose();
    }
    for line in options::describe(options) {
        debug(format_args!("{line}"));
    }
    let mut link = Link::open(options)?;
    let result = run::run(options, &mut link);
    if options.ep_type == FI_EP_MSG {
        link.endpoint.shutdown();
    }
    result
}

/// The error's low byte as from C's exit, but never 0.
fn status(code: i32) -> ExitCode {
    match code.unsigned_abs() as u8 {
        0 => ExitCode::FAILURE,
        status => ExitCode::from(status),
    }
}
