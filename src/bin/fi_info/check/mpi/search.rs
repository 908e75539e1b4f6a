//! The MPI libraries of this machine: their starters on PATH and in the usual folders, and what those say of
//! themselves.
//!
//! Called by `mod`.

use super::Kind;
use crate::check::machine::Machine;
use std::path::{Path, PathBuf};

const STARTERS: [&str; 4] = ["mpiexec", "mpiexec.hydra", "mpiexec.mpich", "mpiexec.openmpi"];
const FOLDERS: [&str; 8] = [
    "/usr/bin",
    "/usr/local/bin",
    "/usr/lib64/mpich/bin",
    "/usr/lib64/openmpi/bin",
    "/opt/mpich/bin",
    "/opt/openmpi/bin",
    "/opt/intel/oneapi/mpi/latest/bin",
    "/opt/intel/mpi/bin",
];
/// Variables that name a folder with a `bin` in it.
const PREFIXES: [&str; 4] = ["VIRTUAL_ENV", "CONDA_PREFIX", "I_MPI_ROOT", "MPI_HOME"];

#[derive(Debug, PartialEq)]
pub struct Installed {
    pub kind: Kind,
    pub version: String,
    /// Its mpiexec.
    pub starter: PathBuf,
    /// What MPICH was built for, such as `ch4:ucx,ofi`.
    pub device: Option<String>,
    /// The libfabric.so.1 that it has for itself.
    pub own_library: Option<PathBuf>,
}

pub fn all(machine: &Machine) -> Vec<Installed> {
    let mut found: Vec<Installed> = Vec::new();
    let mut asked: Vec<PathBuf> = Vec::new();
    for starter in starters(machine) {
        let Some(real) = machine.real(&starter).filter(|real| !asked.contains(real)) else {
            continue;
        };
        asked.push(real);
        let Some(one) = installed(machine, starter) else {
            continue;
        };
        // One that is there by several names.
        let same = |other: &&Installed| {
            (other.kind, &other.version, other.starter.parent()) == (one.kind, &one.version, one.starter.parent())
        };
        if !found.iter().any(|other| same(&other)) {
            found.push(one);
        }
    }
    found
}

fn starters(machine: &Machine) -> Vec<PathBuf> {
    let path = machine
        .var("PATH")
        .unwrap_or_default()
        .split(':')
        .filter(|folder| folder.starts_with('/'));
    let mut folders: Vec<PathBuf> = path.map(PathBuf::from).collect();
    folders.extend(
        PREFIXES
            .iter()
            .filter_map(|name| machine.var(name))
            .map(|prefix| Path::new(prefix).join("bin")),
    );
    folders.extend(FOLDERS.iter().map(PathBuf::from));
    let each = folders
        .iter()
        .flat_map(|folder| STARTERS.iter().map(move |name| folder.join(name)));
    each.filter(|path| machine.is_file(path)).collect()
}

fn installed(machine: &Machine, starter: PathBuf) -> Option<Installed> {
    let said = machine.version_of(&starter)?;
    let (kind, version) = told(&said)?;
    Some(Installed {
        kind,
        version,
        device: device(&said),
        own_library: own_library(machine, &starter),
        starter,
    })
}

/// What `mpiexec --version` says.
fn told(said: &str) -> Option<(Kind, String)> {
    let word_after = |marker: &str| Some(said.split_once(marker)?.1.split_whitespace().next()?.to_owned());
    if said.contains("Intel(R) MPI Library") {
        Some((Kind::Intel, word_after("Version")?))
    } else if said.contains("Open MPI") || said.contains("OpenRTE") {
        let after = word_after("(Open MPI)").or_else(|| word_after("(OpenRTE)"));
        Some((Kind::Open, after?))
    } else if said.contains("HYDRA build details") {
        Some((Kind::Mpich, word_after("Version:")?))
    } else {
        None
    }
}

/// The word behind --with-device=, without quotes.
fn device(said: &str) -> Option<String> {
    let rest = said.split_once("--with-device=")?.1;
    let word = rest
        .split(|c: char| c.is_whitespace() || c == '\'' || c == '"')
        .next()?;
    Some(word.to_owned()).filter(|word| !word.is_empty())
}

fn own_library(machine: &Machine, starter: &Path) -> Option<PathBuf> {
    let prefix = starter.parent()?.parent()?;
    // /usr is everybody's.
    let of_its_own = prefix != Path::new("/usr") && prefix != Path::new("/usr/local");
    let places = ["lib", "lib64", "libfabric/lib", "opt/mpi/libfabric/lib"];
    let mut files = places.iter().map(|place| prefix.join(place).join("libfabric.so.1"));
    files.find(|path| of_its_own && machine.is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::machine::made_up::MadeUp;

    const HYDRA: &str = "HYDRA build details:\n    Version:          5.0.2\n    Configure options:   --with-device=ch4:ucx,ofi --with-pm=hydra\n";

    #[test]
    fn starters_are_recognized_by_what_they_say() {
        let rows = [
            (HYDRA, Some((Kind::Mpich, "5.0.2"))),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 1",
                Some((Kind::Intel, "2021.19.0")),
            ),
            ("mpiexec (Open MPI) 5.0.11\n\nReport bugs", Some((Kind::Open, "5.0.11"))),
            ("mpiexec (OpenRTE) 4.1.4\n", Some((Kind::Open, "4.1.4"))),
            ("something else 1.0", None),
        ];
        for (said, expected) in rows {
            let expected = expected.map(|(kind, version)| (kind, version.to_owned()));
            assert_eq!(told(said), expected, "{said}");
        }
        assert_eq!(device(HYDRA).as_deref(), Some("ch4:ucx,ofi"));
        assert_eq!(device("'--with-device=ch4:ofi' 'x'").as_deref(), Some("ch4:ofi"));
        assert_eq!(device("none"), None);
    }

    #[test]
    fn each_is_found_once() {
        let made = MadeUp::new()
            .program("/venv/bin/mpiexec.hydra", HYDRA)
            .link("/venv/bin/mpiexec", "mpiexec.hydra")
            .program("/venv/bin/mpiexec.mpich", HYDRA)
            .link("/opt/mpich/bin/mpiexec", "../../../venv/bin/mpiexec.hydra")
            .put("/venv/lib/libfabric.so.1", "x")
            .program("/usr/bin/mpiexec.openmpi", "mpiexec (OpenRTE) 4.1.4")
            .put("/usr/lib/libfabric.so.1", "x")
            .program("/usr/local/bin/mpiexec", "broken")
            .set("PATH", "relative:/none:/venv/bin")
            .set("VIRTUAL_ENV", "/venv");
        let found = all(&made.0);
        let told: Vec<(Kind, &str)> = found.iter().map(|one| (one.kind, &*one.version)).collect();
        assert_eq!(told, [(Kind::Mpich, "5.0.2"), (Kind::Open, "4.1.4")]);
        assert_eq!(
            found[0].own_library.as_deref(),
            Some(Path::new("/venv/lib/libfabric.so.1"))
        );
        assert_eq!(
            (found[0].device.as_deref(), found[1].own_library.as_deref()),
            (Some("ch4:ucx,ofi"), None)
        );
    }
}
