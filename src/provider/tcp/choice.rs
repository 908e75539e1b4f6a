//! Which interface comes first, and why: in words, for the log and for those who read it (`fi_info --check`).
//!
//! Pure functions of what the system listed. Called by `interfaces`.

use crate::sys::interfaces::Interface;
use core::cmp::Reverse;

/// An interface that may be used, with its speed in megabits a second; 0: it does not tell.
pub(super) type Rated = (Interface, u64);

/// Best first: those that reach other machines, then the fastest; IPv4 before IPv6, and lower addresses first.
pub(super) fn sort(usable: &mut [Rated]) {
    usable.sort_by_key(|(one, speed)| (one.loopback, Reverse(*speed), one.address.is_ipv6(), one.address.ip()));
}

/// Why an interface is not used; None: it is. `wanted` is what FI_TCP_IFACE names.
pub(super) fn left_out(one: &Interface, wanted: Option<&str>) -> Option<String> {
    let name = &one.name;
    match wanted {
        Some(wanted) if wanted == name => None,
        Some(wanted) => Some(format!("FI_TCP_IFACE={wanted} names another")),
        None => one
            .point_to_point
            .then(|| format!("it is a tunnel, which leads to one place only; FI_TCP_IFACE={name} takes it")),
    }
}

/// Why the first of those that are sorted is the first.
pub(super) fn why_first(sorted: &[Rated], wanted: Option<&str>) -> String {
    let Some(((first, speed), rest)) = sorted.split_first() else {
        return "there is none".into();
    };
    if wanted.is_some() {
        return "FI_TCP_IFACE names it".into();
    }
    if first.loopback {
        return "no interface that reaches other machines is up with an address".into();
    }
    let other = rest.iter().find(|(one, _)| one.name != first.name && !one.loopback);
    match other {
        None => "no other interface reaches other machines".into(),
        Some((next, slower)) if slower < speed => {
            format!(
                "it is the fastest, {}, before {}, {}",
                rate(*speed),
                next.name,
                rate(*slower)
            )
        }
        Some((next, _)) => format!("{} is as fast, {}, and has the higher address", next.name, rate(*speed)),
    }
}

fn rate(speed: u64) -> String {
    match speed {
        0 => "which tells no speed".into(),
        speed => format!("{speed} Mbit/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn one(name: &str, ip: &str, speed: u64) -> Rated {
        let interface = Interface {
            name: name.into(),
            address: SocketAddr::new(ip.parse().unwrap(), 0),
            prefix: 24,
            loopback: name == "lo",
            point_to_point: name.starts_with("tun"),
        };
        (interface, speed)
    }

    fn first(mut all: Vec<Rated>, wanted: Option<&str>) -> (String, String) {
        sort(&mut all);
        (all[0].0.name.clone(), why_first(&all, wanted))
    }

    #[test]
    fn the_first_is_told_with_its_reason() {
        let lo = || one("lo", "127.0.0.1", 0);
        let six = || one("eth0", "fd00::1", 1000);
        let rows = [
            (vec![lo()], "lo", "no interface that reaches other machines is up"),
            (
                vec![lo(), six(), one("eth0", "10.0.0.9", 1000)],
                "eth0",
                "no other interface",
            ),
            (
                vec![six(), one("eth1", "10.1.0.1", 25_000)],
                "eth1",
                "fastest, 25000 Mbit/s, before eth0, 1000 Mbit/s",
            ),
            (
                vec![one("a", "10.0.0.9", 10), one("b", "10.0.0.1", 10)],
                "b",
                "a is as fast, 10 Mbit/s, and has the higher",
            ),
            (
                vec![one("veth", "10.0.0.1", 0), one("b", "10.0.0.2", 10)],
                "b",
                "before veth, which tells no speed",
            ),
        ];
        for (all, name, why) in rows {
            let (found, told) = first(all, None);
            assert!(found == name && told.contains(why), "{found}: {told}");
        }
        assert_eq!(first(vec![lo()], Some("lo")).1, "FI_TCP_IFACE names it");
        assert_eq!(why_first(&[], None), "there is none");
    }

    #[test]
    fn what_is_left_out_has_its_reason() {
        let (tunnel, _) = one("tun0", "10.8.0.2", 10);
        assert!(left_out(&tunnel, None).unwrap().contains("FI_TCP_IFACE=tun0 takes it"));
        assert_eq!(left_out(&tunnel, Some("tun0")), None);
        let (card, _) = one("eth0", "10.0.0.1", 10);
        assert_eq!(left_out(&card, None), None);
        assert_eq!(
            left_out(&card, Some("eth1")).unwrap(),
            "FI_TCP_IFACE=eth1 names another"
        );
    }
}
