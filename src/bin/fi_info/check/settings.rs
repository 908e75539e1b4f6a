//! What the user has set for the library: variables FI_* of the environment, and the lines of its configuration file,
//! of which the library lets one or the other win.
//!
//! Called by the checks that tell of variables.

use super::machine::Machine;

/// The library's own choice, by which both are built.
fn file() -> String {
    format!("{}/libfabric.conf", option_env!("FABRIC_SYSCONFDIR").unwrap_or("/etc"))
}

/// One that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub name: String,
    pub value: String,
    /// The configuration file that has it; None: the environment.
    pub file: Option<String>,
    /// What has it too and wins.
    pub beaten_by: Option<String>,
}

impl Setting {
    /// NAME=VALUE, and where that is not the environment.
    pub fn told(&self) -> String {
        let place = self.file.as_ref().map_or(String::new(), |file| format!(" in {file}"));
        format!("{}={}{place}", self.name, self.value)
    }

    /// How to be without it.
    pub fn undo(&self) -> String {
        match &self.file {
            None => format!("unset {}", self.name),
            Some(file) => format!("take {} out of {file}", self.name),
        }
    }

    /// How to set another one in its place.
    pub fn put(&self, name: &str) -> String {
        match &self.file {
            None => format!("export {name}={}", self.value),
            Some(file) => format!("write {name}={} into {file}", self.value),
        }
    }
}

/// All of the environment, then all of the file.
pub fn all(machine: &Machine) -> Vec<Setting> {
    let path = file();
    let mut in_file: Vec<(String, String)> = Vec::new();
    for (name, value) in machine.text(&path).unwrap_or_default().lines().filter_map(entry) {
        // Of two lines with one name the first counts.
        if !in_file.iter().any(|(other, _)| *other == name) {
            in_file.push((name, value));
        }
    }
    let in_environment: Vec<(&str, &str)> = machine.vars().filter(|(name, _)| name.starts_with("FI_")).collect();
    let prefers_file = {
        let name = "FI_PREFER_SYSCONFIG";
        let of_file = in_file
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| &**value);
        machine.var(name).or(of_file).is_some_and(is_yes)
    };
    let of_environment = in_environment.iter().map(|(name, value)| Setting {
        name: (*name).into(),
        value: (*value).into(),
        file: None,
        beaten_by: (prefers_file && in_file.iter().any(|(other, _)| other == name)).then(|| path.clone()),
    });
    let of_file = in_file.iter().map(|(name, value)| Setting {
        name: name.clone(),
        value: value.clone(),
        file: Some(path.clone()),
        beaten_by: (!prefers_file && in_environment.iter().any(|(other, _)| other == name))
            .then(|| "the environment".into()),
    });
    of_environment.chain(of_file).collect()
}

/// The one of this name that counts; an empty one counts as none.
pub fn get(machine: &Machine, name: &str) -> Option<Setting> {
    let mut all = all(machine).into_iter();
    all.find(|one| one.name == name && one.beaten_by.is_none() && !one.value.is_empty())
}

/// NAME=VALUE; None: a line that says nothing.
fn entry(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

fn is_yes(value: &str) -> bool {
    ["1", "yes", "true", "on"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(value))
}

#[cfg(test)]
pub mod tests {
    use super::super::machine::made_up::MadeUp;
    use super::*;

    pub fn with_file(made: MadeUp, text: &str) -> MadeUp {
        made.put(&file(), text)
    }

    fn counting(made: &MadeUp) -> Vec<String> {
        let all = all(&made.0).into_iter().filter(|one| one.beaten_by.is_none());
        all.map(|one| one.told()).collect()
    }

    const LINES: &str = "# FI_HOOK=x\n\n FI_PROVIDER = tcp \nnothing\nFI_PROVIDER=shm\nFI_LOG_LEVEL=warn\n";

    #[test]
    fn the_environment_and_the_file() {
        let at = |text: &str| format!("{text} in {}", file());
        let made = with_file(MadeUp::new().set("HOME", "/root"), LINES);
        assert_eq!(counting(&made), [at("FI_PROVIDER=tcp"), at("FI_LOG_LEVEL=warn")]);
        let made = made.set("FI_PROVIDER", "shm");
        assert_eq!(counting(&made), ["FI_PROVIDER=shm".to_owned(), at("FI_LOG_LEVEL=warn")]);
        assert_eq!(get(&made.0, "FI_PROVIDER").unwrap().undo(), "unset FI_PROVIDER");
        let made = made.set("FI_PREFER_SYSCONFIG", "Yes");
        assert_eq!(get(&made.0, "FI_PROVIDER").unwrap().told(), at("FI_PROVIDER=tcp"));
        assert!(
            get(&made.0, "FI_PROVIDER")
                .unwrap()
                .undo()
                .starts_with("take FI_PROVIDER out of ")
        );
        assert_eq!(
            (get(&made.0, "FI_HOOK"), get(&MadeUp::new().0, "FI_PROVIDER")),
            (None, None)
        );
    }
}
