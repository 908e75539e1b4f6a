//! Node, service, flags and hints against the addresses of the reply, by tables, without a network.

use super::*;
use crate::api::info::samples::{empty_query, query_of, shm, tcp_rdm, verbs_msg};

/// Knows one host of each family and the numbers; routes from .1 to everywhere.
struct Fake;

impl Resolver for Fake {
    fn lookup(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        family: Family,
        end: End,
        names: Names,
    ) -> Option<SocketAddr> {
        let host = match (node, family, end, names) {
            (Some("both"), Family::V6, _, Names::Resolve) => "2001:db8::5",
            (Some("both"), _, _, Names::Resolve) => "10.0.0.5",
            (Some("six"), Family::Any | Family::V6, _, Names::Resolve) => "2001:db8::6",
            (None, Family::V6, End::Source, _) => "::",
            (None, _, End::Source, _) => "0.0.0.0",
            (None, _, End::Dest, _) => "127.0.0.1",
            (Some(number), ..) => number,
        };
        let port = service.map_or(Ok(0), str::parse).ok()?;
        Some(SocketAddr::new(host.parse().ok()?, port))
    }

    fn source_for(&self, dest: &SocketAddr) -> Option<SocketAddr> {
        match dest {
            SocketAddr::V4(_) => "10.0.0.1:0".parse().ok(),
            SocketAddr::V6(_) => None,
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    to_bytes(&text.parse().unwrap())
}

fn text(addr: &Option<Vec<u8>>) -> String {
    addr.as_deref()
        .map_or("-".into(), |bytes| from_bytes(bytes).unwrap().to_string())
}

struct Ask {
    node: Option<&'static str>,
    service: Option<&'static str>,
    flags: u64,
    format: u32,
    src: Option<&'static str>,
    dest: Option<&'static str>,
}

const NOTHING: Ask = Ask {
    node: None,
    service: None,
    flags: 0,
    format: 0,
    src: None,
    dest: None,
};

fn run(template: Info, ask: &Ask) -> Result<Info> {
    let hints = Info {
        addr_format: ask.format,
        src_addr: ask.src.map(bytes),
        dest_addr: ask.dest.map(bytes),
        ..Info::blank()
    };
    let query = Query {
        node: ask.node,
        service: ask.service,
        flags: ask.flags,
        ..query_of(&hints, 2, 6)
    };
    let mut info = template;
    fill(&mut info, &query, &Fake).map(|()| info)
}

#[test]
fn socket_addresses() {
    const SIX: &str = "[2001:db8::5]:7";
    let rows = [
        // (asked, Ok((src, dest, format)) or the error)
        (NOTHING, Ok(("-", "-", FI_SOCKADDR_IP))),
        (
            Ask {
                flags: FI_SOURCE,
                ..NOTHING
            },
            Err(FI_EINVAL),
        ),
        (
            Ask {
                node: Some("both"),
                service: Some("7"),
                flags: FI_SOURCE,
                ..NOTHING
            },
            Ok(("10.0.0.5:7", "-", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                service: Some("7"),
                flags: FI_SOURCE,
                ..NOTHING
            },
            Ok(("0.0.0.0:7", "-", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                service: Some("7"),
                flags: FI_SOURCE,
                format: FI_SOCKADDR_IN6,
                ..NOTHING
            },
            Ok(("[::]:7", "-", FI_SOCKADDR_IN6)),
        ),
        (
            Ask {
                node: Some("both"),
                service: Some("7"),
                ..NOTHING
            },
            Ok(("10.0.0.1:0", "10.0.0.5:7", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                service: Some("7"),
                ..NOTHING
            },
            Ok(("10.0.0.1:0", "127.0.0.1:7", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                node: Some("both"),
                service: Some("7"),
                format: FI_SOCKADDR_IN6,
                ..NOTHING
            },
            Ok(("-", SIX, FI_SOCKADDR_IN6)),
        ),
        (
            Ask {
                node: Some("six"),
                ..NOTHING
            },
            Ok(("-", "[2001:db8::6]:0", FI_SOCKADDR_IN6)),
        ),
        (
            Ask {
                node: Some("six"),
                format: FI_SOCKADDR_IN,
                ..NOTHING
            },
            Err(FI_ENODATA),
        ),
        (
            Ask {
                node: Some("10.0.0.9"),
                flags: FI_NUMERICHOST,
                ..NOTHING
            },
            Ok(("10.0.0.1:0", "10.0.0.9:0", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                node: Some("both"),
                flags: FI_NUMERICHOST,
                ..NOTHING
            },
            Err(FI_ENODATA),
        ),
        (
            Ask {
                node: Some("nobody"),
                ..NOTHING
            },
            Err(FI_ENODATA),
        ),
        // Hints: the source counts unless FI_SOURCE names it, the destination unless node and service do.
        (
            Ask {
                src: Some("10.0.0.3:3"),
                ..NOTHING
            },
            Ok(("10.0.0.3:3", "-", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                dest: Some("10.0.0.4:4"),
                ..NOTHING
            },
            Ok(("10.0.0.1:0", "10.0.0.4:4", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                src: Some("10.0.0.3:3"),
                dest: Some("10.0.0.4:4"),
                ..NOTHING
            },
            Ok(("10.0.0.3:3", "10.0.0.4:4", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                node: Some("both"),
                src: Some("10.0.0.3:3"),
                dest: Some("10.0.0.4:4"),
                ..NOTHING
            },
            Ok(("10.0.0.3:3", "10.0.0.5:0", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                node: Some("both"),
                flags: FI_SOURCE,
                src: Some("10.0.0.3:3"),
                dest: Some("10.0.0.4:4"),
                ..NOTHING
            },
            Ok(("10.0.0.5:0", "10.0.0.4:4", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                dest: Some(SIX),
                format: FI_SOCKADDR,
                ..NOTHING
            },
            Ok(("-", SIX, FI_SOCKADDR_IN6)),
        ),
        (
            Ask {
                dest: Some(SIX),
                format: FI_SOCKADDR_IN,
                ..NOTHING
            },
            Err(FI_EINVAL),
        ),
        // A URI in place of a name.
        (
            Ask {
                node: Some("fi_sockaddr_in://10.0.0.7:70"),
                ..NOTHING
            },
            Ok(("10.0.0.1:0", "10.0.0.7:70", FI_SOCKADDR_IN)),
        ),
        (
            Ask {
                node: Some("fi_sockaddr://10.0.0.7:70"),
                service: Some("7"),
                ..NOTHING
            },
            Err(FI_EINVAL),
        ),
        (
            Ask {
                node: Some("fi_sockaddr_in://10.0.0.7:70"),
                format: FI_SOCKADDR_IN6,
                ..NOTHING
            },
            Err(FI_ENODATA),
        ),
        (
            Ask {
                node: Some("http://10.0.0.7:70"),
                ..NOTHING
            },
            Err(FI_ENODATA),
        ),
    ];
    for (number, (ask, expected)) in rows.into_iter().enumerate() {
        let got = run(tcp_rdm(), &ask).map(|info| (text(&info.src_addr), text(&info.dest_addr), info.addr_format));
        let expected = expected
            .map(|(src, dest, format)| (src.into(), dest.into(), format))
            .map_err(Errno);
        assert_eq!(got, expected, "row {number}");
    }
}

#[test]
fn uris() {
    let rows = [
        ("fi_sockaddr", "10.31.6.12:7471", Some("10.31.6.12:7471")),
        ("FI_SOCKADDR_IN", "10.31.6.12:7471", Some("10.31.6.12:7471")),
        ("fi_sockaddr_in", "10.31.6.12", Some("10.31.6.12:0")),
        ("fi_sockaddr_in", ":80", Some("0.0.0.0:80")),
        ("fi_sockaddr_in6", ":80", Some("[::]:80")),
        ("fi_sockaddr_in6", "[fe80::6:12]:7471", Some("[fe80::6:12]:7471")),
        ("fi_sockaddr_in6", "[fe80::6:12]", Some("[fe80::6:12]:0")),
        ("fi_sockaddr", "10.31.6.12:7471?qos=3", Some("10.31.6.12:7471")),
        ("fi_sockaddr", "10.31.6.12:7471/a/b", Some("10.31.6.12:7471")),
        ("fi_sockaddr_in", "[::1]:1", None),
        ("fi_sockaddr_in6", "1.2.3.4:1", None),
        ("fi_sockaddr", "1.2.3.4:99999", None),
        ("fi_sockaddr", "", None),
        ("fi_addr_efa", "[fe80::1]:1:2", None),
    ];
    for (scheme, rest, expected) in rows {
        let got = parse_uri(scheme, rest).map(|addr| addr.to_string());
        assert_eq!(got.as_deref(), expected, "{scheme}://{rest}");
    }
}

#[test]
fn strings_and_foreign_formats() {
    let named = |template, node, flags| {
        run(
            template,
            &Ask {
                node: Some(node),
                flags,
                ..NOTHING
            },
        )
    };
    let info = named(shm(), "fi_shm://4711", 0).unwrap();
    assert_eq!(info.dest_addr.as_deref(), Some(&b"fi_shm://4711\0"[..]));
    assert_eq!((info.src_addr, info.addr_format), (None, FI_ADDR_STR));
    let info = named(shm(), "fi_shm://4711", FI_SOURCE).unwrap();
    assert_eq!(info.src_addr.as_deref(), Some(&b"fi_shm://4711\0"[..]));
    assert_eq!(named(shm(), "4711", 0).unwrap().dest_addr, None);
    assert_eq!(named(verbs_msg(), "both", 0), Err(Errno(FI_ENOSYS)));
    assert_eq!(
        run(verbs_msg(), &NOTHING).map(|info| info.addr_format),
        Ok(FI_SOCKADDR_IB)
    );
}

#[test]
fn a_short_address_in_hints_is_bad_input() {
    for bytes in [&[][..], &[2], &[2, 0, 0, 0]] {
        let hints = Info {
            dest_addr: Some(bytes.to_vec()),
            ..Info::blank()
        };
        assert_eq!(
            fill(&mut tcp_rdm(), &query_of(&hints, 2, 6), &Fake),
            Err(Errno(FI_EINVAL))
        );
    }
}

/// Counts how often it is asked.
struct Counting(core::cell::Cell<u32>);

impl Resolver for Counting {
    fn lookup(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        family: Family,
        end: End,
        names: Names,
    ) -> Option<SocketAddr> {
        self.0.set(self.0.get() + 1);
        Fake.lookup(node, service, family, end, names)
    }

    fn source_for(&self, dest: &SocketAddr) -> Option<SocketAddr> {
        Fake.source_for(dest)
    }
}

#[test]
fn a_name_is_looked_up_once_in_a_call() {
    let (found, resolver, hints) = (Found::default(), Counting(0.into()), Info::blank());
    for (node, end, asked) in [("both", 0, 1), ("both", FI_SOURCE, 2), ("nobody", 0, 3)] {
        let query = Query {
            node: Some(node),
            service: Some("7"),
            flags: end,
            found: Some(&found),
            ..query_of(&hints, 2, 6)
        };
        let answers = [(); 3].map(|()| {
            let mut info = tcp_rdm();
            fill(&mut info, &query, &resolver).map(|()| (text(&info.src_addr), text(&info.dest_addr)))
        });
        assert_eq!(resolver.0.get(), asked, "{node}");
        assert!(answers[0].is_ok() == (node == "both") && answers[1..].iter().all(|other| *other == answers[0]));
    }
}

/// The answer of an interface, which has this address, to a server that names this one.
fn of_an_interface(own: &str, node: &str) -> Result<String> {
    let own: SocketAddr = own.parse().unwrap();
    let mut info = Info {
        addr_format: FI_SOCKADDR_IN6,
        src_addr: Some(to_bytes(&own)),
        ..Info::blank()
    };
    let query = Query {
        node: Some(node),
        service: Some("7"),
        flags: FI_SOURCE | FI_NUMERICHOST,
        ..empty_query()
    };
    of_interface(&mut info, &query).map(|()| text(&info.src_addr))
}

/// Several interfaces may have the same link-local address.
#[test]
fn a_link_local_address_is_that_of_its_interface() {
    let rows = [
        ("fe80::1", Ok("[fe80::1%3]:7")),
        ("fe80::1%3", Ok("[fe80::1%3]:7")),
        ("fe80::1%4", Err(Errno(FI_ENODATA))),
        ("fe80::2", Err(Errno(FI_ENODATA))),
        ("::", Ok("[fe80::1%3]:7")),
    ];
    for (node, expected) in rows {
        assert_eq!(
            of_an_interface("[fe80::1%3]:0", node),
            expected.map(str::to_owned),
            "{node}"
        );
    }
}
