//! What each MPI library asks fi_getinfo for, which of the answers it leaves out by their names, and the variables that
//! change that. What fits its wishes, and in which order, is the library's answer.
//!
//! Pure tables and rules. Called by `mod`, and by `library` for the hints.

use crate::abi::types::*;
use crate::check::library::Offer;
use crate::check::machine::Machine;
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
                "FI_PROVIDER=NAME for another one; I_MPI_FABRICS=ofi for libfabric between processes of one machine too; \
                 I_MPI_DEBUG=2 shows what it took"
            }
        }
    }

    /// Which of the answers it takes.
    pub fn takes<'a>(self, machine: &Machine, offers: &'a [Offer]) -> Option<&'a Offer> {
        match self {
            // It has shared memory of its own, and gives this provider fewer points than any other.
            Kind::Mpich => {
                let mut others = offers
                    .iter()
                    .filter(|offer| offer.provider != "shm" && !offer.provider.ends_with(";ofi_rxd"));
                others.next().or(offers.first())
            }
            Kind::Open => offers.iter().find(|offer| open_mpi_admits(machine, &offer.provider)),
            Kind::Intel => {
                let wanted = machine.var("I_MPI_OFI_PROVIDER");
                let named = |offer: &&Offer| wanted.is_none_or(|name| name == offer.provider);
                let mut admitted = offers.iter().filter(named);
                let network = admitted.clone().find(|offer| offer.provider != "shm");
                network.or_else(|| admitted.next())
            }
        }
    }
}

fn open_mpi_admits(machine: &Machine, provider: &str) -> bool {
    const INCLUDE: [&str; 2] = [
        "OMPI_MCA_opal_common_ofi_provider_include",
        "OMPI_MCA_mtl_ofi_provider_include",
    ];
    const EXCLUDE: [&str; 2] = [
        "OMPI_MCA_opal_common_ofi_provider_exclude",
        "OMPI_MCA_mtl_ofi_provider_exclude",
    ];
    let begins = |name: &str| {
        let name = name.trim();
        provider
            .get(..name.len())
            .is_some_and(|head| !name.is_empty() && head.eq_ignore_ascii_case(name))
    };
    let set = |names: [&str; 2]| names.into_iter().find_map(|name| machine.var(name));
    if let Some(list) = set(INCLUDE) {
        return list.split(',').any(begins);
    }
    match set(EXCLUDE) {
        Some(list) => !list.split(',').any(begins),
        None => !LEFT_OUT_BY_OPEN_MPI.into_iter().any(begins),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::machine::made_up::MadeUp;

    fn offers(names: &[&str]) -> Vec<Offer> {
        let offer = |name: &&str| Offer {
            provider: (*name).into(),
            ..Offer::default()
        };
        names.iter().map(offer).collect()
    }

    fn taken(kind: Kind, made: &MadeUp, names: &[&str]) -> Option<String> {
        kind.takes(&made.0, &offers(names)).map(|offer| offer.provider.clone())
    }

    #[test]
    fn who_takes_what() {
        let made = MadeUp::new();
        let all = ["shm", "tcp", "verbs;ofi_rxm"];
        assert_eq!(taken(Kind::Mpich, &made, &all).as_deref(), Some("tcp"));
        assert_eq!(taken(Kind::Mpich, &made, &["shm"]).as_deref(), Some("shm"));
        assert_eq!(taken(Kind::Intel, &made, &all).as_deref(), Some("tcp"));
        assert_eq!(taken(Kind::Intel, &made, &["shm"]).as_deref(), Some("shm"));
        assert_eq!(taken(Kind::Open, &made, &all).as_deref(), Some("verbs;ofi_rxm"));
        assert_eq!(taken(Kind::Open, &made, &["shm", "tcp;ofi_rxm"]), None);
        for kind in Kind::ALL {
            assert_eq!(taken(kind, &made, &[]), None);
        }
    }

    #[test]
    fn variables_change_it() {
        let all = ["shm", "tcp", "verbs;ofi_rxm"];
        let made = MadeUp::new().set("OMPI_MCA_opal_common_ofi_provider_include", "none, TCP");
        assert_eq!(taken(Kind::Open, &made, &all).as_deref(), Some("tcp"));
        let made = MadeUp::new().set("OMPI_MCA_mtl_ofi_provider_exclude", "tcp,verbs");
        assert_eq!(taken(Kind::Open, &made, &all).as_deref(), Some("shm"));
        let made = MadeUp::new().set("I_MPI_OFI_PROVIDER", "verbs;ofi_rxm");
        assert_eq!(taken(Kind::Intel, &made, &all).as_deref(), Some("verbs;ofi_rxm"));
    }
}
