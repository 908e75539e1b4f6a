//! RDMA devices with their ports and GIDs, as the kernel shows them, and whether the library offers them.
//!
//! Called by `mod`, and by `limits` for whether there is any.

use super::finding::{Finding, Section};
use super::library::Library;
use super::machine::Machine;
use crate::json::Json;

const CLASS: &str = "/sys/class/infiniband";
/// How many GIDs of a port are told in the sentence.
const GIDS_TOLD: usize = 4;

pub fn devices(machine: &Machine) -> Vec<String> {
    machine.names(CLASS)
}

pub fn check(machine: &Machine, library: &Library) -> Section {
    let devices = devices(machine);
    let mut findings: Vec<Finding> = devices.iter().flat_map(|name| device(machine, library, name)).collect();
    if devices.is_empty() {
        findings.push(
            Finding::fine("none", "There is no RDMA device.")
                .advise("Nothing, unless there should be one: then its driver is not loaded (rdma link, dmesg)."),
        );
    } else if !machine
        .names("/dev/infiniband")
        .iter()
        .any(|name| name.starts_with("uverbs"))
    {
        findings.push(Finding::warning(
            "files",
            "The devices have no files in /dev/infiniband, so that no program can open them.",
            "modprobe ib_uverbs rdma_ucm, as root; in a container --device=/dev/infiniband.",
        ));
    }
    Section {
        subject: "rdma",
        title: "RDMA devices",
        findings,
    }
}

fn device(machine: &Machine, library: &Library, name: &str) -> Vec<Finding> {
    let folder = format!("{CLASS}/{name}/ports");
    let ports = machine.names(&folder);
    let mut findings: Vec<Finding> = ports.iter().map(|number| port(machine, name, number)).collect();
    let offers = library.offers.iter().filter(|offer| {
        let domain = &offer.domain;
        domain
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let mut providers: Vec<&str> = offers.map(|offer| &*offer.provider).collect();
    providers.dedup();
    findings.push(match providers.as_slice() {
        [] => not_offered(library, name),
        providers => {
            let listed = Json::Array(providers.iter().map(|one| Json::text(one.as_bytes())).collect());
            Finding::fine("offered", format!("{name} is offered by {}.", providers.join(", ")))
                .with("providers", listed)
        }
    });
    findings
        .into_iter()
        .map(|finding| finding.with_text("device", name))
        .collect()
}

/// With what the library says of it, or of the provider.
fn not_offered(library: &Library, name: &str) -> Finding {
    let refusals = library.refusals.iter().filter(|one| one.provider == "verbs");
    let about = |one: &&crate::why::Refusal| one.candidate.as_deref() == Some(name);
    let why = refusals.clone().find(about).or_else(|| refusals.clone().next());
    let why = why.map_or("the library gives no reason", |one| &one.reason);
    Finding::warning(
        "offered",
        format!("No provider offers {name}: {why}."),
        "Mend that: a port that is up, an IP address on its network interface, librdmacm and libibverbs with its driver.",
    )
    .with_text("reason", why)
}

fn port(machine: &Machine, device: &str, number: &str) -> Finding {
    let folder = format!("{CLASS}/{device}/ports/{number}");
    let file = |name: &str| machine.text(format!("{folder}/{name}")).unwrap_or_default();
    let state = file("state");
    let state = state.rsplit(": ").next().unwrap_or_default().to_owned();
    let (layer, rate) = (file("link_layer"), file("rate"));
    let gids = gids(machine, &folder);
    let told: Vec<String> = gids.iter().take(GIDS_TOLD).map(|gid| gid.told()).collect();
    let more = if gids.len() > GIDS_TOLD { ", ..." } else { "" };
    let listed = if told.is_empty() {
        "no GID".into()
    } else {
        format!("GIDs {}{more}", told.join(", "))
    };
    let sentence = format!("{device} port {number} is {state}: {layer}, {rate}, {listed}.");
    let finding = if state == "ACTIVE" {
        Finding::fine("port", sentence)
    } else {
        let advice = "Look at the cable and the switch (InfiniBand: its subnet manager too); ip link set NAME up of its interface.";
        Finding::warning("port", sentence, advice)
    };
    finding
        .with_text("port", number)
        .with_text("state", state)
        .with_text("link_layer", layer)
        .with_text("rate", rate)
        .with("gids", Json::Array(gids.iter().map(Gid::json).collect()))
}

struct Gid {
    index: String,
    value: String,
    /// InfiniBand has none: RoCE v1, v2.
    kind: String,
}

impl Gid {
    fn told(&self) -> String {
        let kind = if self.kind.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.kind)
        };
        format!("{}: {}{kind}", self.index, self.value)
    }

    fn json(&self) -> Json {
        Json::Object(vec![
            ("index", Json::Text(self.index.clone())),
            ("gid", Json::Text(self.value.clone())),
            ("type", Json::Text(self.kind.clone())),
        ])
    }
}

/// Those that are set, in the order of their numbers.
fn gids(machine: &Machine, port: &str) -> Vec<Gid> {
    let mut indices = machine.names(format!("{port}/gids"));
    indices.sort_by_key(|index| index.parse::<u32>().unwrap_or(u32::MAX));
    let one = |index: String| {
        let value = machine.text(format!("{port}/gids/{index}"))?;
        let set = value.bytes().any(|digit| digit != b'0' && digit != b':');
        let kind = machine
            .text(format!("{port}/gid_attrs/types/{index}"))
            .unwrap_or_default();
        set.then_some(Gid { index, value, kind })
    };
    indices.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::library::Offer;
    use super::super::machine::made_up::MadeUp;
    use super::*;
    use crate::why::Refusal;

    fn card(state: &str) -> MadeUp {
        let at = |file: &str| format!("{CLASS}/rxe0/ports/1/{file}");
        MadeUp::new()
            .put(&at("state"), state)
            .put(&at("link_layer"), "Ethernet\n")
            .put(&at("rate"), "2.5 Gb/sec (1X SDR)\n")
            .put(&at("gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n")
            .put(&at("gids/10"), "fe80::7\n")
            .put(&at("gids/2"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n")
            .put(&at("gid_attrs/types/2"), "RoCE v2\n")
    }

    #[test]
    fn a_port_that_is_up_and_offered() {
        let made = card("4: ACTIVE\n").put("/dev/infiniband/uverbs0", "");
        let offer = Offer {
            provider: "verbs".into(),
            domain: "rxe0-dgram".into(),
            ..Offer::default()
        };
        let library = Library {
            offers: vec![offer.clone(), offer],
            ..Library::default()
        };
        let found = check(&made.0, &library).findings;
        let told: Vec<&str> = found.iter().map(|one| &*one.sentence).collect();
        let gids = "GIDs 2: 0000:0000:0000:0000:0000:ffff:0a00:0001 (RoCE v2), 10: fe80::7";
        let port = format!("rxe0 port 1 is ACTIVE: Ethernet, 2.5 Gb/sec (1X SDR), {gids}.");
        assert_eq!(told, [&*port, "rxe0 is offered by verbs."]);
    }

    #[test]
    fn a_port_that_is_down_and_files_that_are_not_there() {
        let made = card("1: DOWN\n");
        let refusals = vec![
            Refusal {
                provider: "verbs".into(),
                candidate: None,
                reason: "no librdmacm".into(),
            },
            Refusal {
                provider: "verbs".into(),
                candidate: Some("rxe0".into()),
                reason: "no port of it is up".into(),
            },
        ];
        let library = Library {
            refusals,
            ..Library::default()
        };
        let found = check(&made.0, &library).findings;
        let about: Vec<&str> = found.iter().map(|one| one.about).collect();
        assert_eq!(about, ["port", "offered", "files"]);
        assert!(
            found
                .iter()
                .all(|one| one.level == Level::Warning && one.advice.is_some())
        );
        assert_eq!(found[1].sentence, "No provider offers rxe0: no port of it is up.");
    }

    #[test]
    fn without_a_device_nothing_is_wrong() {
        let made = MadeUp::new();
        let found = check(&made.0, &Library::default()).findings;
        assert_eq!((found.len(), found[0].level), (1, Level::Fine));
    }
}
