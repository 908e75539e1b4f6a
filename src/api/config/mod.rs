//! The configuration file `$sysconfdir/libfabric.conf`: one `NAME=VALUE` a line, names as in the environment.
//!
//! Owns the text format and the reading; which of file and environment wins is `params`' question. Called by `params`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A file beyond this is no configuration file; the rest of it is left alone, with a word about it.
const MAX_BYTES: u64 = 1 << 20;

/// What a configuration file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Name and value, in the order of the file, each name once.
    pub entries: Vec<(String, Vec<u8>)>,
    /// What was wrong with it and what became of it, for the log.
    pub complaints: Vec<String>,
}

impl Config {
    /// The value the file gives to an environment variable's name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.entries
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_slice())
    }

    /// Reads the file. A file that is not there says nothing.
    pub fn load(path: &Path) -> Config {
        match read(path) {
            Ok(text) => {
                let whole = whole_lines(&text);
                let mut config = Config::parse(whole);
                if whole.len() < text.len() {
                    config
                        .complaints
                        .push(format!("longer than {MAX_BYTES} bytes; only the beginning is used"));
                }
                config
                    .complaints
                    .iter_mut()
                    .for_each(|text| *text = format!("{}: {text}", path.display()));
                config
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Config::default(),
            Err(error) => Config {
                complaints: vec![format!(
                    "{}: cannot be read: {error}; its settings are not used",
                    path.display()
                )],
                ..Config::default()
            },
        }
    }

    /// Takes the text apart. A line that makes no sense is left out and complained about, never half used.
    pub fn parse(text: &[u8]) -> Config {
        let mut config = Config::default();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            match config.entry(line) {
                Ok(entry) => config.entries.push(entry),
                Err(why) => config
                    .complaints
                    .push(format!("line {}: {why}; the line is not used", index + 1)),
            }
        }
        config
    }

    fn entry(&self, line: &[u8]) -> Result<(String, Vec<u8>), String> {
        let equals = line
            .iter()
            .position(|&byte| byte == b'=')
            .ok_or("no '=' (write NAME=VALUE)")?;
        let (name, value) = line.split_at(equals);
        let name = core::str::from_utf8(name.trim_ascii()).map_err(|_| "the name is not text")?;
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.is_empty() {
            return Err("no name before '='".into());
        }
        if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("the name has white space or a control character in it".into());
        }
        if line.contains(&0) {
            return Err("it has a zero byte".into());
        }
        if self.get(name).is_some() {
            return Err(format!("{name} is set by an earlier line"));
        }
        Ok((name.to_string(), value.to_vec()))
    }
}

/// At most a byte more than is used, and only from a regular file: opening a pipe could wait for ever.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// All of a text of sensible size; of a longer one the lines that are there to their end.
fn whole_lines(text: &[u8]) -> &[u8] {
    match text.get(..MAX_BYTES as usize) {
        Some(start) if start.len() < text.len() => {
            let end = start.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
            start.get(..end).unwrap_or_default()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests;
