//! What is set for an MPI library: variables of the environment, and for Open MPI the files of its parameters, of which
//! Debian's leaves libfabric out.
//!
//! Called by `mod`.

use super::search::Installed;
use super::{Kind, choice};
use crate::check::machine::Machine;
use std::path::{Path, PathBuf};

/// How the variables of Open MPI's parameters begin.
const OPEN_MPI: &str = "OMPI_MCA_";

/// A variable that decides what is taken.
#[derive(Debug, PartialEq)]
pub struct Set {
    pub name: &'static str,
    pub value: String,
    /// The file that has it, as a parameter; None: the environment.
    pub file: Option<PathBuf>,
}

impl Set {
    pub fn told(&self) -> String {
        let place = self.file.as_ref();
        let place = place.map_or(String::new(), |file| format!(" (in {})", file.display()));
        format!("{}={}{place}", self.name, self.value)
    }
}

/// Those of this MPI, each from where it counts.
pub fn all(machine: &Machine, one: &Installed) -> Vec<Set> {
    let files = match one.kind {
        Kind::Open => files(machine, &one.starter),
        Kind::Mpich | Kind::Intel => Vec::new(),
    };
    let deciding = choice::deciding(one.kind).iter();
    deciding
        .filter_map(|name| {
            let of_environment = machine.var(name).map(|value| (value.to_owned(), None));
            let of_files = || {
                let mut values = files
                    .iter()
                    .map(|file| (value(machine, file, name), Some(file.clone())));
                values.find_map(|(value, file)| Some((value?, file)))
            };
            let (value, file) = of_environment.or_else(of_files)?;
            Some(Set { name, value, file })
        })
        .collect()
}

/// The user's, the installation's, and where distributions put it.
fn files(machine: &Machine, starter: &Path) -> Vec<PathBuf> {
    const NAME: &str = "openmpi-mca-params.conf";
    let home = machine
        .var("HOME")
        .map(|home| Path::new(home).join(".openmpi/mca-params.conf"));
    let real = machine.real(starter).unwrap_or_else(|| starter.to_owned());
    let prefix = real
        .parent()
        .and_then(Path::parent)
        .map(|prefix| prefix.join("etc").join(NAME));
    let usual = Path::new("/etc/openmpi").join(NAME);
    let is_of_the_system = real.starts_with("/usr/bin") || real.starts_with("/usr/lib");
    let usual = Some(usual).filter(|_| is_of_the_system);
    [home, prefix, usual].into_iter().flatten().collect()
}

/// Of a line `mtl = ^ofi`.
fn value(machine: &Machine, file: &Path, variable: &str) -> Option<String> {
    let text = machine.text(file)?;
    let wanted = variable.strip_prefix(OPEN_MPI)?;
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut pairs = lines.filter_map(|line| line.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim() == wanted)?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::machine::made_up::MadeUp;

    fn told(made: &MadeUp, starter: &str, kind: Kind) -> Vec<String> {
        let one = Installed {
            kind,
            version: "1".into(),
            starter: starter.into(),
            device: None,
            own_library: None,
        };
        all(&made.0, &one).iter().map(Set::told).collect()
    }

    #[test]
    fn the_environment_goes_before_the_users_file_and_that_before_the_systems() {
        let made = MadeUp::new()
            .put("/usr/bin/mpiexec", "")
            .put(
                "/etc/openmpi/openmpi-mca-params.conf",
                "#pml = cm\nmtl = ^ofi\n btl=^uct\npml = ^ucx\n",
            )
            .put("/venv/etc/openmpi-mca-params.conf", "mtl=psm2")
            .put("/venv/bin/mpiexec", "")
            .set("HOME", "/root");
        let debian = [
            "OMPI_MCA_pml=^ucx (in /etc/openmpi/openmpi-mca-params.conf)",
            "OMPI_MCA_mtl=^ofi (in /etc/openmpi/openmpi-mca-params.conf)",
        ];
        assert_eq!(told(&made, "/usr/bin/mpiexec", Kind::Open), debian);
        let made = made.put("/root/.openmpi/mca-params.conf", "mtl = ofi");
        let user = "OMPI_MCA_mtl=ofi (in /root/.openmpi/mca-params.conf)";
        assert_eq!(told(&made, "/usr/bin/mpiexec", Kind::Open), [debian[0], user]);
        assert_eq!(told(&made, "/venv/bin/mpiexec", Kind::Open), [user]);
        let made = made.set("OMPI_MCA_mtl", "x").set("I_MPI_FABRICS", "shm");
        assert_eq!(
            told(&made, "/usr/bin/mpiexec", Kind::Open),
            [debian[0], "OMPI_MCA_mtl=x"]
        );
        assert_eq!(told(&made, "/usr/bin/mpiexec", Kind::Intel), ["I_MPI_FABRICS=shm"]);
    }
}
