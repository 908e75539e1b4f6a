//! The network interfaces: what tcp makes of each, which one it takes and why, in the library's own words; and of those
//! that it does not offer, what the system says.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::library::{Library, Offer};
use super::machine::Machine;
use crate::ffi::system::Link;
use crate::json::Json;
use std::net::{IpAddr, Ipv6Addr};

const TCP: &str = "tcp";
const CLASS: &str = "/sys/class/net";
/// How the names of interfaces begin that lead to containers and guests of this machine alone.
const INSIDE: [&str; 6] = ["docker", "virbr", "podman", "cni", "veth", "lxcbr"];

pub fn check(machine: &Machine, library: &Library) -> Section {
    let offers: Vec<&Offer> = library.offers.iter().filter(|offer| offer.provider == TCP).collect();
    let mut names: Vec<&str> = Vec::new();
    for offer in &offers {
        if !names.contains(&&*offer.domain) {
            names.push(&offer.domain);
        }
    }
    let mut findings = vec![taken(library, &offers)];
    findings.extend(names.iter().map(|name| one(name, &offers)));
    let unused = machine.links.iter().filter(|link| !names.contains(&&*link.name));
    findings.extend(unused.map(|link| not_offered(machine, library, link)));
    Section {
        subject: "interfaces",
        title: "Network interfaces",
        findings,
    }
}

fn taken(library: &Library, offers: &[&Offer]) -> Finding {
    let Some(first) = offers.first() else {
        return Finding::fine("taken", "tcp takes no interface, as it cannot be used.")
            .advise("The line about tcp under Providers says why, and those below what each interface lacks.");
    };
    let name = &first.domain;
    let address = first.address.as_deref().and_then(ip);
    // A library that does not say why takes what it offers first.
    let told = library.said(TCP, "takes ").into_iter().next();
    let told = told.unwrap_or_else(|| format!("{name}: it is offered first"));
    let sentence = format!("tcp takes {told}.");
    let finding = if address.is_some_and(|ip| ip.is_loopback()) {
        let advice =
            "Bring an interface up and give it an address: ip link set NAME up; ip addr add ADDRESS/BITS dev NAME.";
        Finding::warning(
            "taken",
            format!("{sentence} So jobs over tcp cannot leave this machine."),
            advice,
        )
    } else if INSIDE.iter().any(|head| name.starts_with(head)) {
        let sentence = format!("{sentence} By its name it leads to containers or guests of this machine alone.");
        Finding::warning(
            "taken",
            sentence,
            "Name the one that leads to the other machines: export FI_TCP_IFACE=NAME.",
        )
    } else {
        Finding::fine("taken", sentence).advise("For another one: export FI_TCP_IFACE=NAME.")
    };
    finding
        .with_text("interface", name)
        .with_text("why", told)
        .with("address", address.map_or(Json::Null, |ip| Json::Text(ip.to_string())))
}

fn one(name: &str, offers: &[&Offer]) -> Finding {
    let mut places: Vec<(String, &str)> = Vec::new();
    let own = offers.iter().filter(|offer| offer.domain == name);
    for offer in own.clone() {
        let address = offer.address.as_deref().and_then(ip);
        let place = (address.map_or_else(String::new, |ip| ip.to_string()), &*offer.fabric);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let speed = own.map(|offer| offer.speed).max().unwrap_or(0);
    let rate = match speed / 1_000_000 {
        0 => "it tells no speed".to_owned(),
        rate => format!("{rate} Mbit/s"),
    };
    let listed: Vec<String> = places.iter().map(|(ip, net)| format!("{ip} in {net}")).collect();
    let addresses = places.iter().map(|(ip, net)| {
        Json::Object(vec![
            ("address", Json::Text(ip.clone())),
            ("subnet", Json::text(net.as_bytes())),
        ])
    });
    Finding::fine("offered", format!("{name} has {}; {rate}.", listed.join(", ")))
        .with_text("interface", name)
        .with(
            "bits_per_second",
            if speed == 0 { Json::Null } else { Json::Number(speed) },
        )
        .with("addresses", Json::Array(addresses.collect()))
}

/// Of an address as the library writes it: fi_sockaddr_in://10.0.0.1:0, fi_sockaddr_in6://[::1]:0.
fn ip(address: &str) -> Option<IpAddr> {
    let (_, place) = address.split_once("://")?;
    if let Some(six) = place.strip_prefix('[') {
        let (ip, _) = six.split_once(']')?;
        // A link-local one has its scope behind it.
        return ip.split('%').next()?.parse::<Ipv6Addr>().ok().map(IpAddr::from);
    }
    place.rsplit_once(':')?.0.parse().ok()
}

fn not_offered(machine: &Machine, library: &Library, link: &Link) -> Finding {
    let name = &link.name;
    let said = library.said(TCP, "leaves out ").into_iter();
    let own = said.filter_map(|line| {
        let (which, why) = line.split_once(": ")?;
        (which.split(' ').next() == Some(name)).then(|| why.to_owned())
    });
    let (lacks, advice) = lacking(link);
    let why = own.into_iter().next().unwrap_or_else(|| lacks.into());
    let speed = speed(machine, name);
    let rate = speed.map_or(String::new(), |rate| format!(" ({rate} Mbit/s)"));
    Finding::fine("unused", format!("{name}{rate} is not used by tcp: {why}."))
        .advise(format!("Nothing, unless it should be: {advice}."))
        .with_text("interface", name)
        .with_text("reason", why)
        .with(
            "bits_per_second",
            speed.map_or(Json::Null, |rate| Json::Number(rate * 1_000_000)),
        )
        .with("up", Json::Bool(link.up))
        .with("carrier", Json::Bool(link.running))
}

/// What an interface has not that tcp asks of it, and how to give it that.
fn lacking(link: &Link) -> (&'static str, String) {
    let name = &link.name;
    match (link.up, link.running, link.addressed) {
        (false, ..) => ("it is down", format!("ip link set {name} up")),
        (_, false, _) => (
            "it is up, but has no carrier",
            "look at its cable, or at what it stands on".into(),
        ),
        (.., false) => ("it has no IP address", format!("ip addr add ADDRESS/BITS dev {name}")),
        _ => (
            "it was not offered",
            "FI_LOG_LEVEL=info says what tcp made of it".into(),
        ),
    }
}

/// Megabits a second; None: it does not tell.
fn speed(machine: &Machine, name: &str) -> Option<u64> {
    let told = machine.text(format!("{CLASS}/{name}/speed"))?;
    told.parse()
        .ok()
        .filter(|speed| (1..u64::from(u32::MAX)).contains(speed))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine::made_up::MadeUp;
    use super::*;
    use crate::abi::types::FI_LOG_INFO;
    use crate::ffi::Line;

    fn offer(domain: &str, address: &str, speed: u64) -> Offer {
        Offer {
            provider: TCP.into(),
            domain: domain.into(),
            fabric: "10.0.0.0/8".into(),
            address: Some(address.into()),
            speed,
            ..Offer::default()
        }
    }

    fn library(offers: Vec<Offer>, lines: &[&str]) -> Library {
        let line = |text: &&str| Line {
            provider: TCP.into(),
            level: FI_LOG_INFO,
            func: Vec::new(),
            text: text.as_bytes().to_vec(),
        };
        Library {
            offers,
            lines: lines.iter().map(line).collect(),
            ..Library::default()
        }
    }

    #[test]
    fn the_one_that_is_taken_and_all_others() {
        let made = MadeUp::new()
            .put("/sys/class/net/eth1/speed", "1000\n")
            .put("/sys/class/net/ib0/speed", "-1")
            .put("/sys/class/net/of_another_network/operstate", "up")
            .has_link("eth0", "up running addressed")
            .has_link("eth1", "addressed")
            .has_link("eth2", "up addressed")
            .has_link("ib0", "up running")
            .has_link("tun0", "up running addressed");
        let offers = vec![
            offer("eth0", "fi_sockaddr_in://10.0.0.7:0", 10_000_000_000),
            offer("eth0", "fi_sockaddr_in6://[fe80::1%eth0]:0", 10_000_000_000),
        ];
        let lines = [
            "takes eth0 10.0.0.7: it is the fastest",
            "leaves out tun0 10.8.0.1: it is a tunnel",
        ];
        let found = check(&made.0, &library(offers, &lines)).findings;
        let told: Vec<&str> = found.iter().map(|one| &*one.sentence).collect();
        let expected = [
            "tcp takes eth0 10.0.0.7: it is the fastest.",
            "eth0 has 10.0.0.7 in 10.0.0.0/8, fe80::1 in 10.0.0.0/8; 10000 Mbit/s.",
            "eth1 (1000 Mbit/s) is not used by tcp: it is down.",
            "eth2 is not used by tcp: it is up, but has no carrier.",
            "ib0 is not used by tcp: it has no IP address.",
            "tun0 is not used by tcp: it is a tunnel.",
        ];
        assert_eq!(told, expected);
        assert!(found.iter().all(|one| one.level == Level::Fine));
        let advice = found[2].advice.as_ref().unwrap();
        assert!(advice.ends_with("ip link set eth1 up."), "{advice}");
    }

    #[test]
    fn an_interface_that_leads_nowhere() {
        let made = MadeUp::new();
        let level = |domain: &str, address: &str| taken(&library(vec![], &[]), &[&offer(domain, address, 0)]).level;
        assert_eq!(level("lo", "fi_sockaddr_in://127.0.0.1:0"), Level::Warning);
        assert_eq!(level("lo", "fi_sockaddr_in6://[::1]:0"), Level::Warning);
        assert_eq!(level("docker0", "fi_sockaddr_in://172.17.0.1:0"), Level::Warning);
        assert_eq!(level("eth0", "fi_sockaddr_in://10.0.0.7:0"), Level::Fine);
        let none = check(&made.0, &library(vec![], &[])).findings;
        assert!(none[0].sentence.contains("takes no interface") && none[0].advice.is_some());
    }
}
