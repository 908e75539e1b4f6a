//! fi_info's options: the table, the help text, and what a command line asks for.
//!
//! Knows `getopt` and `names`; makes no call of the library. Called by `main`.

#[cfg(test)]
mod tests;

use crate::abi::types::*;
use crate::common::getopt::{Found, Parser, Spec, Wrong};
use crate::names::{ADDR_FORMAT, CAPABILITY, EP_TYPE, MODE};
use std::ffi::CString;

/// The filters of a question to fi_getinfo that travel in its hints.
#[derive(Debug, Default, PartialEq)]
pub struct Hints {
    pub caps: u64,
    /// None: all modes.
    pub mode: Option<u64>,
    pub ep_type: fi_ep_type,
    pub addr_format: u32,
    pub provider: Option<CString>,
    pub domain: Option<CString>,
    pub fabric: Option<CString>,
}

/// One question to fi_getinfo.
#[derive(Debug, Default, PartialEq)]
pub struct Query {
    pub node: Option<CString>,
    pub port: Option<CString>,
    pub flags: u64,
    /// None: no filter was given, so fi_getinfo gets no hints at all.
    pub hints: Option<Hints>,
}

#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub query: Query,
    pub list: bool,
    pub verbose: bool,
    pub env: bool,
    pub json: bool,
    pub why: bool,
    /// The machine is to be checked; all else but `json` does not matter then.
    pub check: bool,
    /// Only variables, or infos, whose text contains this.
    pub contains: Option<Vec<u8>>,
}

/// What the command line comes to.
#[derive(Debug, PartialEq)]
pub enum Request {
    Ask(Options),
    Version,
    /// Help, after a complaint if there is one.
    Help(Option<Wrong>),
    /// A word that is no capability, mode, ...: the line to print.
    BadWord(Vec<u8>),
}

#[derive(Clone, Copy)]
pub enum Id {
    Help,
    Source,
    Node,
    Port,
    Caps,
    Mode,
    EpType,
    Domain,
    Fabric,
    AddrFormat,
    Provider,
    Env,
    EnvContaining,
    InfoContaining,
    List,
    Verbose,
    Version,
    Json,
    Why,
    Check,
}

static SPECS: [Spec<Id>; 20] = [
    flag(Id::Help, Some(b'h'), "help"),
    value(Id::Source, b's', "src_addr"),
    value(Id::Node, b'n', "node"),
    value(Id::Port, b'P', "port"),
    value(Id::Caps, b'c', "caps"),
    value(Id::Mode, b'm', "mode"),
    value(Id::EpType, b't', "ep_type"),
    value(Id::Domain, b'd', "domain"),
    value(Id::Fabric, b'f', "fabric"),
    value(Id::AddrFormat, b'a', "addr_format"),
    value(Id::Provider, b'p', "provider"),
    flag(Id::Env, Some(b'e'), "env"),
    value(Id::EnvContaining, b'g', "getenv"),
    value(Id::InfoContaining, b'i', "info"),
    flag(Id::List, Some(b'l'), "list"),
    flag(Id::Verbose, Some(b'v'), "verbose"),
    flag(Id::Version, None, "version"),
    flag(Id::Json, None, "json"),
    flag(Id::Why, None, "why"),
    flag(Id::Check, None, "check"),
];

const fn flag(id: Id, short: Option<u8>, long: &'static str) -> Spec<Id> {
    Spec {
        id,
        short,
        long,
        takes_value: false,
    }
}

const fn value(id: Id, short: u8, long: &'static str) -> Spec<Id> {
    Spec {
        id,
        short: Some(short),
        long,
        takes_value: true,
    }
}

/// The name of an option's value, and what the option does.
fn described(id: Id) -> (&'static str, &'static str) {
    match id {
        Id::Help => ("", "show this text"),
        Id::Source => ("ADDR", "address or name to send from"),
        Id::Node => ("NAME", "address or name of the node to reach"),
        Id::Port => ("PNUM", "port or service there"),
        Id::Caps => ("CAP1|CAP2..", "capabilities wanted, such as FI_MSG|FI_RMA"),
        Id::Mode => ("MOD1|MOD2..", "modes accepted, all when not given"),
        Id::EpType => ("EPTYPE", "endpoint type wanted, such as FI_EP_RDM"),
        Id::Domain => ("DOMAIN", "name of the domain"),
        Id::Fabric => ("FABRIC", "name of the fabric"),
        Id::AddrFormat => ("FMT", "address format wanted, such as FI_SOCKADDR_IN"),
        Id::Provider => ("PROV", "name of the provider"),
        Id::Env => ("", "show the environment variables that are understood"),
        Id::EnvContaining => ("SUBSTR", "as -e, only names containing SUBSTR"),
        Id::InfoContaining => ("SUBSTR", "as -v, only infos containing SUBSTR"),
        Id::List => ("", "show the providers there are"),
        Id::Verbose => ("", "show everything about each info"),
        Id::Version => ("", "show versions"),
        Id::Json => ("", "print a JSON document"),
        Id::Why => ("", "say first what was refused, and why"),
        Id::Check => ("", "check this machine, and say what to do"),
    }
}

/// The text of `--help`.
pub fn usage(program: &[u8]) -> Vec<u8> {
    let mut text = [b"Usage: ", program, b"\n"].concat();
    for spec in &SPECS {
        let (metavar, help) = described(spec.id);
        let short = spec
            .short
            .map_or(String::new(), |letter| format!("-{}, ", letter as char));
        let equals = if spec.takes_value { "=" } else { "" };
        let names = format!("{short}--{}{equals}{metavar}", spec.long);
        text.extend_from_slice(format!("  {names:<26}  {help}\n").as_bytes());
    }
    text
}

/// Reads the arguments after the program's name, from left to right; the first thing that ends the run wins.
pub fn parse(args: &[Vec<u8>], posix: bool) -> Request {
    let mut options = Options::default();
    for found in Parser::new(&SPECS, args, posix) {
        match found {
            Err(wrong) => return Request::Help(Some(wrong)),
            Ok(Found::Operand(_)) => {}
            Ok(Found::Option(Id::Help, _)) => return Request::Help(None),
            Ok(Found::Option(Id::Version, _)) => return Request::Version,
            Ok(Found::Option(id, value)) => {
                if let Err(line) = options.take(id, value) {
                    return Request::BadWord(line);
                }
            }
        }
    }
    Request::Ask(options)
}

impl Options {
    fn take(&mut self, id: Id, value: &[u8]) -> Result<(), Vec<u8>> {
        match id {
            Id::Source => {
                self.query.node = c_string(value);
                self.query.flags |= FI_SOURCE;
            }
            Id::Node => self.query.node = c_string(value),
            Id::Port => self.query.port = c_string(value),
            Id::List => {
                self.list = true;
                self.query.flags |= FI_PROV_ATTR_ONLY;
            }
            Id::Env => self.env = true,
            Id::EnvContaining => {
                self.env = true;
                self.contains = Some(value.to_vec());
            }
            Id::InfoContaining => {
                self.verbose = true;
                self.contains = Some(value.to_vec());
            }
            Id::Verbose => self.verbose = true,
            Id::Json => self.json = true,
            Id::Why => self.why = true,
            Id::Check => self.check = true,
            Id::Caps | Id::Mode | Id::EpType | Id::AddrFormat | Id::Provider | Id::Domain | Id::Fabric => {
                self.query.hints.get_or_insert_default().take(id, value)?;
            }
            Id::Help | Id::Version => {}
        }
        Ok(())
    }
}

impl Hints {
    fn take(&mut self, id: Id, value: &[u8]) -> Result<(), Vec<u8>> {
        match id {
            Id::Caps => self.caps |= CAPABILITY.many(value)?,
            Id::Mode => self.mode = Some(MODE.many(value)?),
            Id::EpType => self.ep_type = EP_TYPE.one(value)? as fi_ep_type,
            Id::AddrFormat => self.addr_format = ADDR_FORMAT.one(value)? as u32,
            Id::Provider => self.provider = c_string(value),
            Id::Domain => self.domain = c_string(value),
            Id::Fabric => self.fabric = c_string(value),
            _ => {}
        }
        Ok(())
    }
}

/// Arguments of a program have no zero bytes in them.
fn c_string(bytes: &[u8]) -> Option<CString> {
    CString::new(bytes).ok()
}
