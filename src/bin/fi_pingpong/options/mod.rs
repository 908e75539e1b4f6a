//! The command line: options as getopt(3) reads them, checked words and numbers, the usage text.
//!
//! Knows nothing of fabrics beyond the endpoint types. Called by `main`.

#[cfg(test)]
mod tests;

use crate::abi::types::{FI_EP_DGRAM, FI_EP_MSG, FI_EP_RDM, fi_ep_type};
use crate::common::getopt::{Found, Parser, Spec, Wrong};
use crate::report::Sizes;
use std::ffi::CString;
use std::io;

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub src_port: u16,
    pub dst_port: u16,
    pub src_addr: Option<String>,
    /// Where the server is; without it we are the server.
    pub server: Option<String>,
    pub iterations: u32,
    pub sizes: Sizes,
    pub verify: bool,
    pub tagged: bool,
    pub verbose: bool,
    pub ipv6: bool,
    pub domain: Option<CString>,
    pub fabric: Option<CString>,
    pub provider: Option<CString>,
    pub ep_type: fi_ep_type,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            src_port: 0,
            dst_port: 0,
            src_addr: None,
            server: None,
            iterations: 10,
            sizes: Sizes::Some,
            verify: false,
            tagged: false,
            verbose: false,
            ipv6: false,
            domain: None,
            fabric: None,
            provider: None,
            ep_type: FI_EP_DGRAM,
        }
    }
}

#[derive(Debug, PartialEq)]
pub enum Request {
    Run(Box<Options>),
    /// The usage, after getopt's complaint if there is one.
    Usage(Option<String>),
    /// A value that makes no sense.
    Bad(String),
}

static SPECS: [Spec<u8>; 14] = [
    letter(b'h', false),
    letter(b'v', false),
    letter(b'c', false),
    letter(b'6', false),
    letter(b'd', true),
    letter(b'p', true),
    letter(b'f', true),
    letter(b'e', true),
    letter(b'I', true),
    letter(b'S', true),
    letter(b's', true),
    letter(b'B', true),
    letter(b'P', true),
    letter(b'm', true),
];

const fn letter(letter: u8, takes_value: bool) -> Spec<u8> {
    Spec {
        id: letter,
        short: Some(letter),
        long: "",
        takes_value,
    }
}

/// Reads `args` (without the program's name); `posix` ends the options at the first operand.
pub fn parse(args: &[Vec<u8>], posix: bool) -> Request {
    let mut options = Options::default();
    for found in Parser::new(&SPECS, args, posix) {
        let taken = match found {
            Err(Wrong(complaint)) => Err(Request::Usage(Some(text(&complaint)))),
            Ok(Found::Operand(operand)) => {
                options.server.get_or_insert_with(|| text(operand));
                Ok(())
            }
            Ok(Found::Option(letter @ (b'h' | b'v' | b'c' | b'6'), _)) => flag(&mut options, letter),
            Ok(Found::Option(letter, value)) => set(&mut options, letter, value),
        };
        if let Err(request) = taken {
            return request;
        }
    }
    Request::Run(Box::new(options))
}

fn flag(options: &mut Options, letter: u8) -> Result<(), Request> {
    match letter {
        b'v' => options.verbose = true,
        b'c' => options.verify = true,
        b'6' => options.ipv6 = true,
        _ => return Err(Request::Usage(None)),
    }
    Ok(())
}

fn set(options: &mut Options, letter: u8, value: &[u8]) -> Result<(), Request> {
    // An argument of a program has no zero byte in it.
    let name = || CString::new(value).ok();
    match letter {
        b'd' => options.domain = name(),
        b'p' => options.provider = name(),
        b'f' => options.fabric = name(),
        b's' => options.src_addr = Some(text(value)),
        b'e' => options.ep_type = ep_type(value)?,
        b'I' => options.iterations = number(value, i32::MAX as u32)?,
        // A single size has precedence over `all`, also if it comes first.
        b'S' if value.eq_ignore_ascii_case(b"all") => {
            if !matches!(options.sizes, Sizes::One(_)) {
                options.sizes = Sizes::All;
            }
        }
        b'S' => options.sizes = Sizes::One(number(value, i32::MAX as u32)? as usize),
        b'B' => options.src_port = port(value)?,
        b'P' => options.dst_port = port(value)?,
        // As in the C library's program, every word but msg means tagged.
        _ => options.tagged |= !value.eq_ignore_ascii_case(b"msg"),
    }
    Ok(())
}

fn ep_type(value: &[u8]) -> Result<fi_ep_type, Request> {
    match value.to_ascii_lowercase().as_slice() {
        b"msg" => Ok(FI_EP_MSG),
        b"rdm" => Ok(FI_EP_RDM),
        b"dgram" => Ok(FI_EP_DGRAM),
        _ => Err(Request::Bad(format!("Unknown endpoint : {}", text(value)))),
    }
}

fn port(value: &[u8]) -> Result<u16, Request> {
    // The limit makes it fit.
    number(value, u16::MAX.into()).map(|n| n as u16)
}

/// A decimal number from 0 to `max`, with what strtol(3) allows before it.
fn number(value: &[u8], max: u32) -> Result<u32, Request> {
    let bad = |code| {
        let why = io::Error::from_raw_os_error(code).to_string();
        let why = why.split(" (os error").next().unwrap_or_default();
        Request::Bad(format!("Error parsing \"{}\": {why}", text(value)))
    };
    let (negative, digits) = match value.trim_ascii_start() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(bad(libc::EINVAL));
    }
    let sum = digits.iter().fold(0u64, |sum, d| {
        sum.saturating_mul(10).saturating_add(u64::from(d - b'0'))
    });
    match u32::try_from(sum) {
        Ok(sum) if sum <= max && (!negative || sum == 0) => Ok(sum),
        _ => Err(bad(libc::ERANGE)),
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

pub fn usage(program: &str) -> String {
    let lines = [
        (
            "-B <src_port>",
            "port of the control connection here (server: 47592, client: any)",
        ),
        ("-P <dst_port>", "port of the server's control connection (47592)"),
        ("-d <domain>", "domain name"),
        ("-f <fabric>", "fabric name"),
        ("-s <source address>", "address to send from"),
        ("-p <provider>", "provider name, such as shm or tcp"),
        ("-e <ep_type>", "endpoint type: msg|rdm|dgram (dgram)"),
        ("-I <number>", "iterations for each size (10)"),
        (
            "-S <size>",
            "one message size, or 'all'; without it six of them up to 1 MiB",
        ),
        ("-c", "check the data that arrives"),
        ("-m <transmit mode>", "kind of messages: msg|tagged (msg)"),
        ("-h", "this help"),
        ("-v", "tell each step"),
        ("-6", "control connection over IPv6"),
    ];
    let mut out = format!("Usage:\n  {program} [OPTIONS]\t\tstart server\n");
    out += &format!("  {program} [OPTIONS] <srv_addr>\tconnect to server\n\nPing pong client and server\n\nOptions:\n");
    for (option, what) in lines {
        out += &format!(" {option:<20} {what}\n");
    }
    out
}

/// What was chosen, one line each, for -v.
pub fn describe(options: &Options) -> Vec<String> {
    let line = |name: &str, value: String| format!("  - {name:<20}: {value}");
    let bracket = |value: &Option<String>| format!("[{}]", value.as_deref().unwrap_or("None"));
    let mut lines = vec![
        " * PingPong options:".to_string(),
        line("src_addr", bracket(&options.src_addr)),
        line("src_port", format!("[{}]", options.src_port)),
        line("dst_addr", bracket(&options.server)),
        line("dst_port", format!("[{}]", options.dst_port)),
        line("sizes_enabled", options.sizes.to_string()),
        line("iterations", options.iterations.to_string()),
    ];
    let names = [
        ("provider", &options.provider),
        ("domain", &options.domain),
        ("fabric", &options.fabric),
    ];
    for (what, name) in names {
        lines.extend(name.as_ref().map(|name| line(what, text(name.as_bytes()))));
    }
    lines
}
