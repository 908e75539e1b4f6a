//! What each MPI library asks fi_getinfo for, which of the answers it leaves out by their names, and the variables that
//! change that. What fits its wishes, and in which order, is the library's answer.
//!
//! Pure tables and rules. Called by `mod`, and by `library` for the hints.

use super::settings::Set;
use crate::abi::types::*;
use crate::check::library::Offer;
use crate::options::Hints;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Mpich,
    Open,
    Intel,
}

/// Open MPI's mtl/ofi leaves out what begins so, in any case, if it was not named.
const LEFT_OUT_BY_OPEN_MPI: [&str; 7] = ["shm", "sockets", "tcp", "udp", "rstream", "usnic", "net"];

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Mpich, Kind::Open, Kind::Intel];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Mpich => "MPICH",
            Kind::Open => "Open MPI",
            Kind::Intel => "Intel MPI",
        }
    }

    /// For messages between machines, as far as they part one provider from another.
    pub fn hints(self) -> Hints {
        let messages = FI_MSG | FI_TAGGED;
        let caps = match self {
            Kind::Mpich => messages | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV,
            Kind::Open => messages | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV,
            Kind::Intel => messages | FI_RMA | FI_DIRECTED_RECV,
        };
        Hints {
            caps,
            ep_type: FI_EP_RDM,
            ..Hints::default()
        }
    }

    /// The variables that change what it takes, as lines of a shell that name a provider.
    pub fn ways(self) -> &'static str {
        match self {
            Kind::Mpich => {
                "FI_PROVIDER=NAME for another one; MPIR_CVAR_NOLOCAL=1 for libfabric between processes of one machine too; \
                 MPIR_CVAR_DEBUG_SUMMARY=1 shows what it took"
            }
            Kind::Open => {
                "OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=NAME for that one and no other \
                 transport; OMPI_MCA_mtl_base_verbose=100 shows what it took"
            }
            Kind::Intel => {
                "FI_PROVIDER=NAME or I_MPI_OFI_PROVIDER=NAME for another one; I_MPI_FABRICS=ofi for libfabric between processes of \
                 one machine too; I_MPI_DEBUG=2 shows what it took"
            }
        }
    }
}

/// Those of its variables that can decide it.
pub fn deciding(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Mpich => &["MPIR_CVAR_CH4_NETMOD"],
        Kind::Open => &[PML, MTL, INCLUDE[0], INCLUDE[1], EXCLUDE[0], EXCLUDE[1]],
        Kind::Intel => &[INTEL_FABRICS, INTEL_PROVIDER],
    }
}

/// Which of the answers it takes.
pub fn takes<'a>(kind: Kind, set: &[Set], offers: &'a [Offer]) -> Option<&'a Offer> {
    let var = |name: &str| value(set, name);
    match kind {
        // It has shared memory of its own, and gives this provider fewer points than any other.
        Kind::Mpich => {
            let mut others = offers
                .iter()
                .filter(|offer| offer.provider != "shm" && !offer.provider.ends_with(";ofi_rxd"));
            others.next().or(offers.first())
        }
        Kind::Open if !(admits(var(PML), "cm") && admits(var(MTL), "ofi")) => None,
        Kind::Open => offers.iter().find(|offer| open_mpi_admits(set, &offer.provider)),
        // All messages by its own shared memory.
        Kind::Intel if var(INTEL_FABRICS) == Some("shm") => None,
        Kind::Intel => {
            let mut admitted = offers.iter().filter(named(var(INTEL_PROVIDER)));
            let network = admitted.clone().find(|offer| offer.provider != "shm");
            network.or_else(|| admitted.next())
        }
    }
}

fn value<'a>(set: &'a [Set], name: &str) -> Option<&'a str> {
    set.iter().find(|one| one.name == name).map(|one| &*one.value)
}

const INTEL_PROVIDER: &str = "I_MPI_OFI_PROVIDER";
const INTEL_FABRICS: &str = "I_MPI_FABRICS";
const PML: &str = "OMPI_MCA_pml";
const MTL: &str = "OMPI_MCA_mtl";
const INCLUDE: [&str; 2] = [
    "OMPI_MCA_opal_common_ofi_provider_include",
    "OMPI_MCA_mtl_ofi_provider_include",
];
const EXCLUDE: [&str; 2] = [
    "OMPI_MCA_opal_common_ofi_provider_exclude",
    "OMPI_MCA_mtl_ofi_provider_exclude",
];

/// As fi_getinfo takes a name: `verbs` is in `verbs;ofi_rxm` too.
fn named(wanted: Option<&str>) -> impl Fn(&&Offer) -> bool + Clone {
    move |offer| wanted.is_none_or(|name| name == offer.provider || offer.provider.split(';').next() == Some(name))
}

/// A list of Open MPI's components: names, or after a ^ those that are left out.
fn admits(list: Option<&str>, component: &str) -> bool {
    let Some(list) = list else { return true };
    let (without, names) = list.strip_prefix('^').map_or((false, list), |names| (true, names));
    names.split(',').any(|name| name.trim() == component) != without
}

fn open_mpi_admits(set: &[Set], provider: &str) -> bool {
    let begins = |name: &str| {
        let name = name.trim();
        provider
            .get(..name.len())
            .is_some_and(|head| !name.is_empty() && head.eq_ignore_ascii_case(name))
    };
    let either = |names: [&str; 2]| names.into_iter().find_map(|name| value(set, name));
    if let Some(list) = either(INCLUDE) {
        return list.split(',').any(begins);
    }
    match either(EXCLUDE) {
        Some(list) => !list.split(',').any(begins),
        None => !LEFT_OUT_BY_OPEN_MPI.into_iter().any(begins),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(names: &[&str]) -> Vec<Offer> {
        let offer = |name: &&str| Offer {
            provider: (*name).into(),
            ..Offer::default()
        };
        names.iter().map(offer).collect()
    }

    fn set(name: &'static str, value: &str) -> [Set; 1] {
        [Set {
            name,
            value: value.into(),
            file: None,
        }]
    }

    fn taken(kind: Kind, set: &[Set], names: &[&str]) -> Option<String> {
        takes(kind, set, &offers(names)).map(|offer| offer.provider.clone())
    }

    #[test]
    fn who_takes_what() {
        let all = ["shm", "tcp", "verbs;ofi_rxm"];
        assert_eq!(taken(Kind::Mpich, &[], &all).as_deref(), Some("tcp"));
        assert_eq!(taken(Kind::Mpich, &[], &["shm"]).as_deref(), Some("shm"));
        assert_eq!(taken(Kind::Intel, &[], &all).as_deref(), Some("tcp"));
        assert_eq!(taken(Kind::Intel, &[], &["shm"]).as_deref(), Some("shm"));
        assert_eq!(taken(Kind::Open, &[], &all).as_deref(), Some("verbs;ofi_rxm"));
        assert_eq!(taken(Kind::Open, &[], &["shm", "tcp;ofi_rxm"]), None);
        for kind in Kind::ALL {
            assert_eq!(taken(kind, &[], &[]), None);
        }
    }

    #[test]
    fn variables_change_it() {
        let all = ["shm", "tcp", "verbs;ofi_rxm"];
        let made = set("OMPI_MCA_opal_common_ofi_provider_include", "none, TCP");
        assert_eq!(taken(Kind::Open, &made, &all).as_deref(), Some("tcp"));
        let made = set("OMPI_MCA_mtl_ofi_provider_exclude", "tcp,verbs");
        assert_eq!(taken(Kind::Open, &made, &all).as_deref(), Some("shm"));
        for value in ["verbs", "verbs;ofi_rxm"] {
            let made = set("I_MPI_OFI_PROVIDER", value);
            assert_eq!(
                taken(Kind::Intel, &made, &all).as_deref(),
                Some("verbs;ofi_rxm"),
                "{value}"
            );
        }
        assert_eq!(taken(Kind::Intel, &set("I_MPI_OFI_PROVIDER", "efa"), &all), None);
    }

    #[test]
    fn variables_that_leave_nothing_to_libfabric() {
        let rows = [
            (Kind::Intel, "I_MPI_FABRICS", "shm", false),
            (Kind::Intel, "I_MPI_FABRICS", "shm:ofi", true),
            (Kind::Open, "OMPI_MCA_pml", "ob1", false),
            (Kind::Open, "OMPI_MCA_pml", "^ucx,cm", false),
            (Kind::Open, "OMPI_MCA_pml", "^ucx", true),
            (Kind::Open, "OMPI_MCA_mtl", "^ofi", false),
            (Kind::Open, "OMPI_MCA_mtl", "psm2, ofi", true),
        ];
        for (kind, name, value, takes) in rows {
            assert!(deciding(kind).contains(&name));
            let made = set(name, value);
            assert_eq!(taken(kind, &made, &["verbs"]).is_some(), takes, "{name}={value}");
        }
    }
}
