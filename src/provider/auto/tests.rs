//! What `auto` answers to a server: fi_getinfo with FI_SOURCE.

use super::*;
use crate::api::info::samples::empty_query;
use std::net::SocketAddr;

/// An address as a program has it.
fn own_address() -> String {
    let address = Address {
        name: 7,
        place: Some("10.1.2.3:4567".parse().unwrap()),
        context: 0,
    };
    string(&whole(&address.text()))
}

fn string(address: &[u8]) -> String {
    let text = address.strip_suffix(&[0]).expect("the NUL of a C string");
    String::from_utf8(text.to_vec()).unwrap()
}

/// Hints that name these providers, or none.
fn naming(names: Option<&str>) -> Info {
    let mut hints = Info::blank();
    hints.fabric.as_mut().unwrap().prov_name = names.map(str::to_owned);
    hints
}

fn answer(flags: u64, node: Option<&str>, service: Option<&str>, hints: &Info) -> Result<Info> {
    let query = Query {
        flags,
        node,
        service,
        hints: Some(hints),
        ..empty_query()
    };
    let mut answer = Info::default();
    Auto.address(&mut answer, &query).map(|()| answer)
}

/// Where a server is to listen that names node and service, and these providers.
fn place(names: Option<&str>, node: Option<&str>, service: Option<&str>) -> Result<Option<SocketAddr>> {
    let answer = answer(FI_SOURCE | FI_NUMERICHOST, node, service, &naming(names))?;
    assert_eq!((answer.addr_format, answer.dest_addr), (FI_ADDR_STR, None));
    let address = Address::of(&answer.src_addr.unwrap()).unwrap();
    assert_eq!(
        (address.name, address.context),
        (0, 0),
        "a number is drawn when it is opened"
    );
    Ok(address.place)
}

#[test]
fn who_names_auto_may_say_where_to_listen() {
    let at = |text: &str| Ok(Some(text.parse().unwrap()));
    for names in ["auto", "AUTO", "tcp;auto"] {
        assert_eq!(place(Some(names), None, Some("7471")), at("0.0.0.0:7471"), "{names}");
        assert_eq!(
            place(Some(names), Some("127.0.0.1"), Some("7471")),
            at("127.0.0.1:7471")
        );
        assert_eq!(place(Some(names), Some("127.0.0.1"), None), at("127.0.0.1:0"));
        assert_eq!(place(Some(names), Some("::1"), Some("7471")), at("[::1]:7471"));
    }
}

/// A client that names nobody is answered by tcp for such a place, which cannot speak with `auto`.
#[test]
fn who_does_not_name_auto_is_left_to_tcp() {
    for names in [None, Some("tcp"), Some("automatic"), Some("^auto")] {
        for (node, service) in [
            (None, Some("7471")),
            (Some("127.0.0.1"), Some("7471")),
            (Some("127.0.0.1"), None),
        ] {
            assert_eq!(
                place(names, node, service),
                Err(Errno(FI_ENODATA)),
                "{names:?} {node:?} {service:?}"
            );
        }
    }
}

#[test]
fn nobody_listens_at_an_address_of_another_machine_or_scheme() {
    for node in [
        "192.0.2.1",
        "fi_sockaddr_in://127.0.0.1:7471",
        "fi_shm://7",
        "localhost",
    ] {
        assert_eq!(place(Some(NAME), Some(node), None), Err(Errno(FI_ENODATA)), "{node}");
    }
}

/// Whoever has such an address got it of `auto`.
#[test]
fn an_address_of_auto_is_answered_to_whoever_has_it() {
    let own = own_address();
    for names in [None, Some("auto"), Some("tcp")] {
        let found = answer(FI_SOURCE, Some(&own), None, &naming(names)).unwrap();
        assert_eq!((string(&found.src_addr.unwrap()), found.dest_addr), (own.clone(), None));
    }
}

/// FI_SOURCE turns round which end a node names; the other is that of the hints.
#[test]
fn the_hints_have_the_other_end() {
    let own = own_address();
    let mut hints = naming(Some(NAME));
    hints.dest_addr = Some(whole(&Address { name: 9, ..blank() }.text()));
    let found = answer(FI_SOURCE, Some(&own), None, &hints).unwrap();
    assert_eq!(
        (string(&found.src_addr.unwrap()), &found.dest_addr),
        (own.clone(), &hints.dest_addr)
    );

    hints.src_addr = hints.dest_addr.take();
    let found = answer(0, Some(&own), None, &hints).unwrap();
    assert_eq!(
        (&found.src_addr, string(&found.dest_addr.unwrap())),
        (&hints.src_addr, own)
    );
    // Without FI_SOURCE a service is that of a peer, which `auto` does not find by its place.
    let unfound = answer(0, None, Some("7471"), &hints);
    assert_eq!(unfound.err(), Some(Errno(FI_ENODATA)));
}
