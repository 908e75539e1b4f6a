//! Parameters: what the environment and the configuration file say to the core and to providers.
//!
//! Owns the definitions, where a value comes from, and how its text is read. Writes no log line while it holds its
//! lock, because the log itself is set up from parameters. Called by `abi::params`, `log` and the rest of the core.
//!
//! - `variables`: those of the core, with their help; `values`: how a text becomes a value.

mod values;
mod variables;

use crate::abi::types::{FI_EINVAL, FI_ENODATA, FI_ENOENT};
use crate::api::config::Config;
use crate::api::errno::{Errno, Result};
use crate::api::log::{self, Level, Subsys};
use crate::sys::lock::{Held, Lock};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use values::read;
use variables::VARIABLES;

/// The folder of the configuration file, set at build time.
const SYSCONFDIR: Option<&str> = option_env!("FABRIC_SYSCONFDIR");

/// The types of enum fi_param_type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    String,
    Int,
    Bool,
    Size,
}

/// Who defined a parameter: the core (no owner) or a provider, told apart by the address of its struct fi_provider. A
/// built-in one has a small number of its own, which is nobody's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(pub usize);

impl Owner {
    pub const CORE: Owner = Owner(0);
}

/// A value, read as the parameter's kind asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(Vec<u8>),
    Int(i32),
    Bool(bool),
    Size(usize),
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Nobody defined the parameter.
    Undefined,
    /// The user did not set it.
    Unset,
    /// What the user wrote cannot be read: the whole complaint, with the variable's name.
    Bad(String),
}

impl Miss {
    pub fn errno(&self) -> Errno {
        match self {
            Miss::Undefined => Errno(FI_ENOENT),
            Miss::Unset => Errno(FI_ENODATA),
            Miss::Bad(_) => Errno(FI_EINVAL),
        }
    }
}

pub type Found = std::result::Result<Value, Miss>;

/// One row of fi_getparams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub variable: String,
    pub kind: ParamType,
    pub help: String,
    pub value: Option<Vec<u8>>,
}

struct Param {
    owner: Owner,
    name: String,
    kind: ParamType,
    help: String,
    variable: String,
}

/// All definitions and the configuration file, once it has been read.
struct Registry {
    params: Vec<Param>,
    config: Option<Config>,
    prefer_config: bool,
}

static REGISTRY: Lock<Registry> = Lock::new(Registry::new());

/// For `sys::forks`, which takes these locks around fork.
pub(crate) static LOCK: &dyn Held = &REGISTRY;

/// Defines a parameter, or gives a new kind and help to one that is there. `prefix` is the provider's name, empty for
/// the core.
pub fn define(owner: Owner, prefix: &str, name: &str, kind: ParamType, help: &str) -> Result<()> {
    if name.is_empty() || help.is_empty() {
        return Err(Errno(FI_EINVAL));
    }
    opened().define(owner, prefix, name, kind, help);
    Ok(())
}

/// Forgets all parameters of an owner, who is about to be unloaded.
pub fn undefine(owner: Owner) {
    opened().params.retain(|param| param.owner != owner);
}

/// The value of a parameter. Says nothing to the log: `report` has the words.
pub fn get(owner: Owner, name: &str) -> Found {
    opened().get(owner, name, &environment)
}

/// All parameters in the order of their definition, each with what the user set, wherever he set it.
pub fn list() -> Vec<Listed> {
    let registry = opened();
    let listed = |param: &Param| Listed {
        variable: param.variable.clone(),
        kind: param.kind,
        help: param.help.clone(),
        value: registry.text(&param.variable, &environment).map(|(text, _)| text),
    };
    registry.params.iter().map(listed).collect()
}

/// What the log says about a `get`, and how loud.
pub fn report(name: &str, found: &Found) -> (Level, String) {
    match found {
        Ok(Value::Text(text)) => (
            Level::Info,
            format!("read string var {name}={}", String::from_utf8_lossy(text)),
        ),
        Ok(Value::Int(value)) => (Level::Info, format!("read int var {name}={value}")),
        Ok(Value::Bool(value)) => (Level::Info, format!("read bool var {name}={}", i32::from(*value))),
        Ok(Value::Size(value)) => (Level::Info, format!("read long var {name}={value}")),
        Err(Miss::Unset) => (Level::Info, format!("variable {name}=<not set>")),
        Err(Miss::Undefined) => (Level::Debug, format!("variable {name} was never defined")),
        Err(Miss::Bad(complaint)) => (Level::Warn, complaint.clone()),
    }
}

/// What the configuration file said and what was wrong with it, for the log to tell when it is ready.
pub fn config_notes() -> Vec<(Level, String)> {
    let registry = opened();
    let Some(config) = &registry.config else {
        return Vec::new();
    };
    let complaints = config.complaints.iter().map(|text| (Level::Warn, text.clone()));
    let read = config.entries.iter().map(|(name, value)| {
        (
            Level::Info,
            format!("Read config variable: {name}={}", String::from_utf8_lossy(value)),
        )
    });
    complaints.chain(read).collect()
}

/// Frees everything, for the unloading of the library.
pub fn close() {
    let old = std::mem::replace(&mut *REGISTRY.lock(), Registry::new());
    drop(old);
}

/// The text set for a parameter of the core, or -FI_ENODATA when it is not set. Bytes that are no text are replaced.
pub fn core_string(name: &str) -> Result<String> {
    core_os_string(name).map(|text| text.to_string_lossy().into_owned())
}

/// As `core_string`, with every byte kept: for names of files.
pub fn core_os_string(name: &str) -> Result<OsString> {
    match core_get(name)? {
        Value::Text(text) => Ok(OsString::from_vec(text)),
        Value::Int(_) | Value::Bool(_) | Value::Size(_) => Err(Errno(FI_EINVAL)),
    }
}

/// A size of the core. -FI_EINVAL (and a warning) when the text is none.
pub fn core_size(name: &str) -> Result<usize> {
    match core_get(name)? {
        Value::Size(value) => Ok(value),
        Value::Text(_) | Value::Bool(_) | Value::Int(_) => Err(Errno(FI_EINVAL)),
    }
}

fn core_get(name: &str) -> Result<Value> {
    let found = get(Owner::CORE, name);
    tell(name, &found);
    found.map_err(|miss| miss.errno())
}

/// Logs the result of a `get`.
pub fn tell(name: &str, found: &Found) {
    let (level, text) = report(name, found);
    if log::core_enabled(level, Subsys::Core) {
        log::core_write(level, Subsys::Core, module_path!(), line!(), format_args!("{text}"));
    }
}

/// The registry, with the configuration file read.
fn opened() -> crate::sys::lock::Guard<'static, Registry> {
    let mut registry = REGISTRY.lock();
    if registry.config.is_none() {
        let file = Path::new(SYSCONFDIR.unwrap_or("/etc")).join("libfabric.conf");
        registry.open(Config::load(&file), &environment);
    }
    registry
}

fn environment(variable: &str) -> Option<Vec<u8>> {
    std::env::var_os(variable).map(OsString::into_vec)
}

/// Looks a variable up in the environment, or in what a test puts in its place.
type Environment<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

impl Registry {
    const fn new() -> Registry {
        Registry {
            params: Vec::new(),
            config: None,
            prefer_config: false,
        }
    }

    /// Takes the configuration file in, defines the core's variables, and learns whether the file goes before the
    /// environment.
    fn open(&mut self, config: Config, environment: Environment) {
        self.config = Some(config);
        for (name, kind, help) in VARIABLES {
            self.define(Owner::CORE, "", name, *kind, help);
        }
        match self.get(Owner::CORE, "prefer_sysconfig", environment) {
            Ok(value) => self.prefer_config = value == Value::Bool(true),
            Err(Miss::Bad(complaint)) => {
                self.config
                    .iter_mut()
                    .for_each(|config| config.complaints.push(complaint.clone()));
            }
            Err(Miss::Unset | Miss::Undefined) => {}
        }
    }

    fn define(&mut self, owner: Owner, prefix: &str, name: &str, kind: ParamType, help: &str) {
        let (help, variable) = match prefix {
            "" => (help.to_string(), format!("FI_{name}")),
            _ => (format!("{prefix}: {help}"), format!("FI_{prefix}_{name}")),
        };
        let variable = variable.to_ascii_uppercase();
        match self
            .params
            .iter_mut()
            .find(|param| param.owner == owner && param.name == name)
        {
            Some(param) => (param.kind, param.help, param.variable) = (kind, help, variable),
            None => self.params.push(Param {
                owner,
                name: name.to_string(),
                kind,
                help,
                variable,
            }),
        }
    }

    fn get(&self, owner: Owner, name: &str, environment: Environment) -> Found {
        let param = self
            .params
            .iter()
            .find(|param| param.owner == owner && param.name == name)
            .ok_or(Miss::Undefined)?;
        let (text, place) = self.text(&param.variable, environment).ok_or(Miss::Unset)?;
        read(param.kind, &text).map_err(|why| {
            let text = String::from_utf8_lossy(&text);
            Miss::Bad(format!(
                "{}={text} ({place}): {why}; the default is used",
                param.variable
            ))
        })
    }

    /// What the user wrote for a variable, and where.
    fn text(&self, variable: &str, environment: Environment) -> Option<(Vec<u8>, &'static str)> {
        let file = self.config.as_ref().and_then(|config| config.get(variable));
        let file = file.map(|text| (text.to_vec(), "in libfabric.conf"));
        if self.prefer_config && file.is_some() {
            return file;
        }
        environment(variable).map(|text| (text, "in the environment")).or(file)
    }
}

#[cfg(test)]
mod tests;
