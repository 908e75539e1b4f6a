//! The machine that is checked: its files below a root, the environment, and what only a call tells. Tests make one up
//! in a folder.
//!
//! Knows no subject. Used by all checks.

use crate::ffi::system::{self, Link, Room};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

pub struct Machine {
    root: PathBuf,
    /// Where relative paths begin.
    cwd: PathBuf,
    env: BTreeMap<String, String>,
    /// Of /dev/shm; an error is its text.
    pub shm: Result<Room, String>,
    /// What the kernel says to a process that wants to copy from another one's memory; None: it may.
    pub copying_refused: Option<String>,
    pub processors: u64,
    /// The network interfaces.
    pub links: Vec<Link>,
    /// How a program is asked for its version; made-up ones cannot be run.
    ask: fn(&Path) -> Option<String>,
}

/// For how long another program may think about its own version.
const PATIENCE: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(5);

impl Machine {
    /// The one that this runs on. To be called before the library is used, as it forks.
    pub fn this() -> Machine {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        Machine {
            root: PathBuf::from("/"),
            cwd: std::env::current_dir().unwrap_or_default(),
            env: std::env::vars_os()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            shm: system::room(Path::new("/dev/shm")).map_err(|error| error.to_string()),
            copying_refused: system::copying_is_refused().map(|error| error.to_string()),
            processors: thread::available_parallelism().map_or(1, |count| count.get() as u64),
            links: system::links().unwrap_or_default(),
            ask: says,
        }
    }

    /// A variable of the environment; one that is empty counts as not set.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn vars(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A path as a program that runs here means it.
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        self.cwd.join(path)
    }

    /// Where a file of the machine is found by us.
    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).exists()
    }

    pub fn is_file(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).is_file()
    }

    /// The content of a file without blanks at its ends; None: there is none, or it cannot be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(path)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.at(path)).ok()
    }

    /// The beginning of a file.
    pub fn head(&self, path: impl AsRef<Path>, len: u64) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        fs::File::open(self.at(path))
            .ok()?
            .take(len)
            .read_to_end(&mut head)
            .ok()?;
        Some(head)
    }

    pub fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(fs::read_link(self.at(path)).ok()?.to_string_lossy().into_owned())
    }

    /// A path without links, as the machine knows it.
    pub fn real(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let real = self.at(path).canonicalize().ok()?;
        let root = self.root.canonicalize().ok()?;
        Some(Path::new("/").join(real.strip_prefix(root).ok()?))
    }

    /// The names in a folder, sorted.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// What a program says when it is asked for its version; None: it cannot be run, or does not end.
    pub fn version_of(&self, program: impl AsRef<Path>) -> Option<String> {
        (self.ask)(&self.at(program))
    }
}

/// On either stream.
fn says(program: &Path) -> Option<String> {
    let command = &mut Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    // It says less than a pipe holds; one that says more is ended as one that does not end.
    let end = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(NAP);
    }
    let out = child.stdout.take().map(system::written).unwrap_or_default();
    let err = child.stderr.take().map(system::written).unwrap_or_default();
    Some(String::from_utf8_lossy(&[out, err].concat()).into_owned())
}

#[cfg(test)]
pub mod made_up {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A machine in a folder of its own, which goes with it.
    pub struct MadeUp(pub Machine);

    impl MadeUp {
        pub fn new() -> MadeUp {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let root = std::env::temp_dir().join(format!("fi_info-check-{}-{number}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(&root).unwrap();
            MadeUp(Machine {
                root,
                cwd: PathBuf::from("/here"),
                env: BTreeMap::new(),
                shm: Ok(Room {
                    size: 8 << 30,
                    free: 8 << 30,
                    writable: true,
                    read_only: false,
                }),
                copying_refused: None,
                processors: 4,
                links: Vec::new(),
                ask: |program| fs::read_to_string(program).ok(),
            })
        }

        pub fn set(mut self, name: &str, value: &str) -> MadeUp {
            self.0.env.insert(name.into(), value.into());
            self
        }

        pub fn put(self, path: &str, content: impl AsRef<[u8]>) -> MadeUp {
            let at = self.0.at(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, content).unwrap();
            self
        }

        /// A network interface: flags in words, such as `up running addressed`.
        pub fn has_link(mut self, name: &str, flags: &str) -> MadeUp {
            let has = |flag: &str| flags.split(' ').any(|one| one == flag);
            self.0.links.push(Link {
                name: name.into(),
                up: has("up"),
                running: has("running"),
                addressed: has("addressed"),
            });
            self
        }

        /// One that says this of itself.
        pub fn program(self, path: &str, says: &str) -> MadeUp {
            self.put(path, says)
        }

        /// A link whose target is read and not followed.
        pub fn link(self, path: &str, to: &str) -> MadeUp {
            let at = self.0.at(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            symlink(to, at).unwrap();
            self
        }
    }

    impl Drop for MadeUp {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::MadeUp;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_those_below_the_root() {
        let made = MadeUp::new()
            .put("/proc/self/x", " a\n")
            .put("/proc/self/b", "")
            .link("/lib/l", "../proc/self/x");
        let machine = &made.0;
        assert_eq!(machine.text("/proc/self/x").as_deref(), Some("a"));
        assert_eq!(machine.names("/proc/self"), ["b", "x"]);
        assert_eq!(machine.link("/lib/l").as_deref(), Some("../proc/self/x"));
        assert_eq!(machine.real("/lib/l"), Some(PathBuf::from("/proc/self/x")));
        assert_eq!(
            (machine.text("/etc/passwd"), machine.exists("/etc/passwd")),
            (None, false)
        );
        assert_eq!(machine.head("/proc/self/x", 2).as_deref(), Some(&b" a"[..]));
    }

    /// Every shell says something, if only that it has no such option.
    #[test]
    fn a_program_is_asked_for_its_version() {
        assert!(says(Path::new("/bin/sh")).is_some_and(|text| !text.is_empty()));
        assert_eq!(
            (says(Path::new("/etc/passwd")), says(Path::new("/no such program"))),
            (None, None)
        );
    }

    /// A starter that leaves a process of its own behind, which has its streams.
    #[test]
    fn a_program_that_leaves_a_child_is_not_waited_for() {
        let made = MadeUp::new().put("/mpiexec", "#!/bin/sh\nsleep 600 & echo I am $!\n");
        let path = made.0.at("/mpiexec");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let start = Instant::now();
        // Until it execs, a child that another test has just begun may have the file open for writing (ETXTBSY).
        let said = (0..1000).find_map(|_| says(&path)).unwrap();
        let child = said.trim().strip_prefix("I am ").unwrap();
        let kill = Command::new("sh").args(["-c", "kill $0", child]).status();
        assert!(kill.unwrap().success() && start.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn an_empty_variable_is_none() {
        let made = MadeUp::new().set("A", "").set("B", "b");
        assert_eq!(
            (made.0.var("A"), made.0.var("B"), made.0.var("C")),
            (None, Some("b"), None)
        );
    }
}
