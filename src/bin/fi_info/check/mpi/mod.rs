//! What the MPI libraries of this machine would take of what the library offers them, and the variables that change it.
//!
//! - `search`: which there are; `settings`: what is set for one; `choice`: their wishes and their rules.
//!
//! Called by `check`.

mod choice;
mod search;
mod settings;

use super::finding::{Finding, Section};
use super::library::{Library, Offer};
use super::loader;
use super::machine::Machine;
use crate::json::Json;
pub use choice::Kind;
use search::Installed;
use settings::Set;
use std::path::Path;

pub fn check(machine: &Machine, library: &Library) -> Section {
    let found = search::all(machine);
    let mut findings: Vec<Finding> = found.iter().flat_map(|one| told(machine, library, one)).collect();
    if findings.is_empty() {
        findings.push(
            Finding::fine(
                "none",
                "No mpiexec of MPICH, Open MPI or Intel MPI is on PATH or in the usual folders.",
            )
            .advise("If there is one, put its folder into PATH, or activate its environment, and check again."),
        );
    }
    Section {
        subject: "mpi",
        title: "MPI libraries",
        findings,
    }
}

fn told(machine: &Machine, library: &Library, one: &Installed) -> Vec<Finding> {
    let offers = library
        .to_mpi
        .iter()
        .find(|(kind, _)| *kind == one.kind)
        .map_or(&[][..], |(_, offers)| offers);
    let set = settings::all(machine, one);
    let taken = choice::takes(one.kind, &set, offers);
    let finding = other_transport(machine, one).unwrap_or_else(|| choice(one, &set, taken));
    let finding = finding
        .with_text("mpi", one.kind.name())
        .with_text("version", &one.version)
        .with_text("mpiexec", one.starter.display().to_string())
        .with("device", one.device.clone().map_or(Json::Null, Json::Text))
        .with(
            "provider",
            taken.map_or(Json::Null, |offer| Json::text(offer.provider.as_bytes())),
        );
    let library = named_library(machine, one).or_else(|| own_library(one));
    [finding].into_iter().chain(library).collect()
}

fn named(one: &Installed) -> String {
    format!("{} {} ({})", one.kind.name(), one.version, one.starter.display())
}

/// MPICH that was built for another library besides, or for none of ours.
fn other_transport(machine: &Machine, one: &Installed) -> Option<Finding> {
    let device = one.device.as_deref().filter(|_| one.kind == Kind::Mpich)?;
    let modules = device.split_once(':').map_or("", |(_, modules)| modules);
    let wanted = machine
        .var("MPIR_CVAR_CH4_NETMOD")
        .or_else(|| modules.split(',').next())
        .unwrap_or_default();
    if wanted == "ofi" {
        return None;
    }
    let name = named(one);
    let finding = if modules.split(',').any(|module| module == "ofi") {
        Finding::fine(
            "choice",
            format!("{name} takes {wanted} and not libfabric, as it is built for {device}."),
        )
        .advise("For libfabric: export MPIR_CVAR_CH4_NETMOD=ofi.")
    } else {
        Finding::fine(
            "choice",
            format!("{name} cannot use libfabric: it is built for {device}."),
        )
        .advise("For libfabric: an MPICH that is built --with-device=ch4:ofi.")
    };
    Some(finding)
}

fn choice(one: &Installed, set: &[Set], taken: Option<&Offer>) -> Finding {
    let (name, ways) = (named(one), one.kind.ways());
    let set: Vec<String> = set.iter().map(Set::told).collect();
    let by = match set.is_empty() {
        true => String::new(),
        false => format!(", with {}", set.join(" ")),
    };
    let sentence = match taken {
        Some(offer) => format!("{name} would take {} on {}{by}.", offer.provider, offer.domain),
        None if set.is_empty() => format!("{name} would take nothing of libfabric for its messages by itself."),
        None => format!("{name} would take nothing of libfabric for its messages{by}."),
    };
    let finding = Finding::fine("choice", sentence).advise(format!("To change it: {ways}."));
    finding.with("set", Json::Array(set.into_iter().map(Json::Text).collect()))
}

/// Intel MPI can be told which file to load. What stands above is true of the library that answers here.
fn named_library(machine: &Machine, one: &Installed) -> Option<Finding> {
    const VARIABLE: &str = "I_MPI_OFI_LIBRARY";
    let named = machine.var(VARIABLE).filter(|_| one.kind == Kind::Intel)?;
    let path = machine.absolute(named);
    let answers = loader::loaded(machine);
    let finding = match machine.real(&path) {
        None => Finding::warning(
            "named_library",
            format!("{VARIABLE}={named} is not there, so Intel MPI loads what it finds."),
            format!("unset {VARIABLE}, or let it name a libfabric.so.1."),
        ),
        Some(real) if answers.as_ref() == Some(&real) => {
            Finding::fine("named_library", format!("{VARIABLE} names this library for Intel MPI."))
        }
        Some(real) => {
            let folder = real.parent().unwrap_or(Path::new("/")).display().to_string();
            Finding::warning(
                "named_library",
                format!("{VARIABLE} has Intel MPI load {named}, and not the library that answers here."),
                format!("Ask that one: LD_LIBRARY_PATH={folder} fi_info --check; or unset {VARIABLE}."),
            )
        }
    };
    Some(finding.with_text("path", path.display().to_string()))
}

/// Where an MPI has a libfabric.so.1 of its own, it takes that one, unless it is told.
fn own_library(one: &Installed) -> Option<Finding> {
    let path = one.own_library.as_ref()?.display();
    let way = match one.kind {
        Kind::Intel => "export I_MPI_OFI_LIBRARY=",
        Kind::Mpich | Kind::Open => "export LD_PRELOAD=",
    };
    let sentence = format!(
        "{} {} brings a libfabric.so.1 of its own: {path}.",
        one.kind.name(),
        one.version
    );
    let finding = Finding::fine("own_library", sentence)
        .advise(format!("To have it run on another one: {way}FOLDER/libfabric.so.1."))
        .with_text("path", path.to_string());
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine::made_up::MadeUp;
    use super::*;

    fn library(provider: &str) -> Library {
        let offer = Offer {
            provider: provider.into(),
            domain: "eth0".into(),
            ..Offer::default()
        };
        Library {
            to_mpi: Kind::ALL.into_iter().map(|kind| (kind, vec![offer.clone()])).collect(),
            ..Library::default()
        }
    }

    fn hydra(device: &str) -> MadeUp {
        let says = format!("HYDRA build details:\n Version:   5.0\n Configure options:  '--with-device={device}'");
        MadeUp::new().program("/usr/bin/mpiexec", &says)
    }

    fn sentence(made: &MadeUp, provider: &str) -> (String, String) {
        let found = check(&made.0, &library(provider)).findings.into_iter().next().unwrap();
        (found.sentence, found.advice.unwrap())
    }

    #[test]
    fn mpich_by_what_it_was_built_for() {
        let (told, advice) = sentence(&hydra("ch4:ucx,ofi"), "tcp");
        assert!(
            told.contains("MPICH 5.0 (/usr/bin/mpiexec) takes ucx and not libfabric"),
            "{told}"
        );
        assert!(advice.contains("MPIR_CVAR_CH4_NETMOD=ofi"));
        let (told, _) = sentence(&hydra("ch4:ucx,ofi").set("MPIR_CVAR_CH4_NETMOD", "ofi"), "tcp");
        assert!(
            told.ends_with("would take tcp on eth0, with MPIR_CVAR_CH4_NETMOD=ofi."),
            "{told}"
        );
        assert!(
            sentence(&hydra("ch4:ofi"), "tcp")
                .0
                .ends_with("would take tcp on eth0.")
        );
        assert!(sentence(&hydra("ch4:ucx"), "tcp").0.contains("cannot use libfabric"));
        assert!(
            sentence(&hydra("ch3:nemesis"), "tcp")
                .0
                .contains("cannot use libfabric")
        );
    }

    #[test]
    fn open_mpi_takes_no_tcp_by_itself() {
        let made = MadeUp::new().program("/usr/bin/mpiexec", "mpiexec (Open MPI) 5.0.11");
        let (told, advice) = sentence(&made, "tcp");
        assert!(
            told.contains("would take nothing of libfabric") && advice.contains("provider_include=NAME"),
            "{told}"
        );
        assert!(sentence(&made, "verbs;ofi_rxm").0.contains("would take verbs;ofi_rxm"));
        let made = made.put("/etc/openmpi/openmpi-mca-params.conf", "mtl = ^ofi\n");
        let (told, _) = sentence(&made, "verbs;ofi_rxm");
        let by = "OMPI_MCA_mtl=^ofi (in /etc/openmpi/openmpi-mca-params.conf).";
        assert!(
            told.contains("would take nothing of libfabric") && told.ends_with(by),
            "{told}"
        );
    }

    #[test]
    fn a_library_of_its_own_is_told() {
        let made = MadeUp::new()
            .program(
                "/opt/x/bin/mpiexec",
                "Intel(R) MPI Library for Linux* OS, Version 2021.19.0",
            )
            .put("/opt/x/lib/libfabric.so.1", "")
            .set("PATH", "/opt/x/bin");
        let found = check(&made.0, &library("tcp")).findings;
        assert!(found[1].sentence.contains("/opt/x/lib/libfabric.so.1"));
        assert!(found[1].advice.as_ref().unwrap().contains("I_MPI_OFI_LIBRARY="));
    }

    #[test]
    fn a_library_that_intel_mpi_is_told_to_load() {
        let with = |named: &str| {
            let made = MadeUp::new()
                .program(
                    "/usr/bin/mpiexec",
                    "Intel(R) MPI Library for Linux* OS, Version 2021.19.0",
                )
                .put("/opt/rs/libfabric.so.1.32.0", "")
                .link("/opt/rs/libfabric.so.1", "libfabric.so.1.32.0")
                .put("/opt/c/libfabric.so.1", "")
                .put("/proc/self/maps", "7f1 r-xp 0 0:1 6  /opt/rs/libfabric.so.1.32.0\n")
                .set("I_MPI_OFI_LIBRARY", named);
            let found = check(&made.0, &library("tcp")).findings;
            (found[1].level, found[1].sentence.clone(), found[1].advice.clone())
        };
        assert_eq!(with("/opt/rs/libfabric.so.1").0, Level::Fine);
        let (level, told, advice) = with("/opt/c/libfabric.so.1");
        assert!(
            level == Level::Warning && told.contains("not the library that answers here"),
            "{told}"
        );
        assert!(advice.unwrap().contains("LD_LIBRARY_PATH=/opt/c fi_info --check"));
        let (level, told, _) = with("/opt/none.so");
        assert!(
            level == Level::Warning && told.contains("/opt/none.so is not there"),
            "{told}"
        );
    }

    #[test]
    fn without_any_there_is_an_answer() {
        let made = MadeUp::new();
        assert!(check(&made.0, &library("tcp")).findings[0].advice.is_some());
    }
}
