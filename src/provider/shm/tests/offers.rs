//! What fi_getinfo answers, by question.

use super::*;

fn ask(node: Option<&str>, service: Option<&str>, flags: u64, hints: Option<&Info>) -> Result<Vec<Answer>> {
    Shm.getinfo(&Query {
        version: LIBRARY_VERSION,
        node,
        service,
        flags,
        hints,
        found: None,
        raw: None,
    })
}

fn text(address: &Option<Vec<u8>>) -> String {
    address.as_ref().map_or("-".into(), |bytes| {
        String::from_utf8_lossy(&bytes[..bytes.len() - 1]).into_owned()
    })
}

#[test]
fn node_and_service_name_one_end() {
    let own = text(&ask(None, None, 0, None).unwrap()[0].info.src_addr);
    let rows = [
        (None, None, 0, own.as_str(), "-"),
        (Some("a"), None, 0, &own, "fi_shm://a"),
        (None, Some("7"), 0, &own, "fi_ns://7"),
        (Some("a"), Some("7"), 0, &own, "fi_ns://a:7"),
        (Some("fi_shm://x"), Some("7"), 0, &own, "fi_shm://x"),
        (Some("a"), Some("7"), FI_SOURCE, "fi_ns://a:7", "-"),
        (None, Some("7"), FI_SOURCE, "fi_ns://7", "-"),
    ];
    for (node, service, flags, source, dest) in rows {
        let answers = ask(node, service, flags, None).unwrap();
        let info = &answers[0].info;
        assert_eq!(
            (text(&info.src_addr).as_str(), text(&info.dest_addr).as_str()),
            (source, dest),
            "{node:?} {service:?}"
        );
    }
    assert_eq!(ask(None, None, FI_SOURCE, None).err(), Some(Errno(FI_EINVAL)));
}

/// MPICH takes addresses of other processes for as long as its own. And a process that has the number of another, as in
/// two containers, does not have its names.
#[test]
fn names_nobody_gave_have_one_length_and_differ() {
    let opened = |info: &Info| EndpointTransport::local_address(&Shm::open(&Arc::default(), info).unwrap());
    let info = ask(None, None, 0, None).unwrap().remove(0).info;
    let mut names: Vec<_> = (0..12).map(|_| opened(&info)).collect();
    names.extend((0..2).map(|_| {
        opened(&Info {
            src_addr: None,
            ..info.clone()
        })
    }));
    let (tell, hear) = std::os::unix::net::UnixStream::pair().unwrap();
    let child = crate::sys::child::Child::run(|| {
        // Of what the parent asked, and of what it asks itself.
        let own = ask(None, None, 0, None).unwrap().remove(0).info;
        assert_ne!(own.src_addr, info.src_addr);
        for name in [opened(&info), opened(&own)] {
            std::io::Write::write_all(&mut &tell, &name).unwrap();
        }
    });
    let len = names[0].len();
    for _ in 0..2 {
        let mut name = vec![0; len];
        std::io::Read::read_exact(&mut &hear, &mut name).unwrap();
        names.push(name);
    }
    assert_eq!(child.wait(), 0);
    let context = |index| ShmTransport::raw_address(&ShmTransport::context_address(&names[0], index)).len();
    assert!((1..CONTEXTS).all(|index| context(index) == context(1)));
    assert!(
        names
            .iter()
            .all(|name| name.len() == len && name.starts_with(b"fi_shm://"))
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 16);
}

/// A name that a program gave is kept, and what comes behind it has one length too.
#[test]
fn names_that_programs_give() {
    fn opened(node: Option<&str>, service: Option<&str>) -> String {
        let info = ask(node, service, FI_SOURCE, None).unwrap().remove(0).info;
        let transport = Shm::open(&Arc::default(), &info).unwrap();
        String::from_utf8(EndpointTransport::local_address(&transport)).unwrap()
    }
    let own = format!("test-{:016x}", sys::shared::random().unwrap());
    let numbered = [(); 2].map(|()| opened(Some(&format!("fi_shm://{own}")), None));
    assert!(
        numbered
            .iter()
            .all(|name| name.starts_with(&format!("fi_shm://{own}:")))
    );
    assert!(numbered[0] != numbered[1] && numbered[0].len() == numbered[1].len());
    assert_eq!(opened(Some(&own), Some("7")), format!("fi_shm://{own}:7\0"));
    assert_eq!(opened(None, Some(&own)), format!("fi_shm://{own}\0"));
}

#[test]
fn hints_name_the_other_end() {
    let hints = Info {
        src_addr: Some(b"me\0".into()),
        dest_addr: Some(b"you\0".into()),
        ..Info::default()
    };
    let ends = |node, flags| {
        let info = &ask(node, None, flags, Some(&hints)).unwrap()[0].info;
        (text(&info.src_addr), text(&info.dest_addr))
    };
    assert_eq!(ends(None, 0), ("me".into(), "you".into()));
    assert_eq!(ends(Some("x"), 0), ("me".into(), "fi_shm://x".into()));
    assert_eq!(ends(Some("x"), FI_SOURCE), ("fi_shm://x".into(), "you".into()));
}

#[test]
fn a_thread_drives_only_where_it_was_asked_for() {
    for (asked, told) in [
        (FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL),
        (FI_PROGRESS_AUTO, FI_PROGRESS_AUTO),
        (FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL),
        (FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_CONTROL_UNIFIED),
    ] {
        let hints = Info {
            domain: Some(DomainAttr {
                progress: asked,
                ..DomainAttr::default()
            }),
            ..Info::default()
        };
        let answers = ask(None, None, 0, Some(&hints)).unwrap();
        assert_eq!(answers[0].info.domain.as_ref().unwrap().progress, told, "{asked}");
    }
    let answers = ask(None, None, 0, None).unwrap();
    assert_eq!(answers[0].info.domain.as_ref().unwrap().progress, FI_PROGRESS_MANUAL);
}

#[test]
fn op_flags_are_those_asked_for() {
    let flags = |hints: Option<&Info>| {
        let info = &ask(None, None, 0, hints).unwrap()[0].info;
        (info.tx.as_ref().unwrap().op_flags, info.rx.as_ref().unwrap().op_flags)
    };
    assert_eq!(flags(None), (0, 0));
    let tx = Some(TxAttr {
        op_flags: FI_DELIVERY_COMPLETE,
        ..TxAttr::default()
    });
    assert_eq!(flags(Some(&Info { tx, ..Info::default() })), (FI_DELIVERY_COMPLETE, 0));
}

/// An exact endpoint refuses receives from anyone, which who asks for nothing in particular does not expect.
#[test]
fn nobody_is_exact_unasked() {
    let caps = |hints: Option<&Info>| {
        let query = Query {
            version: 2 << 16 | 6,
            node: None,
            service: None,
            flags: 0,
            hints,
            found: None,
            raw: None,
        };
        let info = Shm.getinfo(&query).unwrap().remove(0).info;
        [info.caps, info.rx.unwrap().caps].map(|caps| caps & FI_EXACT_DIRECTED_RECV != 0)
    };
    let asks = |caps| Info {
        caps,
        ..Info::default()
    };
    assert_eq!(caps(None), [false, false]);
    assert_eq!(caps(Some(&asks(0))), [false, false]);
    assert_eq!(caps(Some(&asks(FI_MSG))), [false, false]);
    assert_eq!(caps(Some(&asks(FI_MSG | FI_EXACT_DIRECTED_RECV))), [true, true]);
}

#[test]
fn queues_are_as_large_as_the_user_wants() {
    let settings = Settings {
        tx_size: 5,
        rx_size: 5000,
        ..Settings::default()
    };
    let info = offer(&settings);
    assert_eq!((info.tx.unwrap().size, info.rx.unwrap().size), (5, 5000));
}

/// The same answers as the C library's shm gives: the old names stand alone, and bits are taken but not needed.
#[test]
fn registration_is_needed_in_no_mode() {
    let old = (1, 4);
    for (mr_mode, told_old, told) in [
        (FI_MR_UNSPEC, Some(FI_MR_BASIC), Some(0)),
        (FI_MR_BASIC, Some(FI_MR_BASIC), Some(FI_MR_BASIC)),
        (FI_MR_SCALABLE, Some(FI_MR_SCALABLE), Some(FI_MR_SCALABLE)),
        (FI_MR_BASIC | FI_MR_SCALABLE, None, None),
        (FI_MR_LOCAL, None, Some(0)),
        (-1, None, None),
    ] {
        for ((major, minor), told) in [(old, told_old), ((1, 5), told), ((2, 6), told)] {
            let hints = Info {
                caps: FI_MSG,
                mode: FI_LOCAL_MR,
                domain: Some(DomainAttr {
                    mr_mode,
                    ..DomainAttr::default()
                }),
                ..Info::default()
            };
            let query = Query {
                version: major << 16 | minor,
                node: None,
                service: None,
                flags: 0,
                hints: Some(&hints),
                found: None,
                raw: None,
            };
            let got = Shm.getinfo(&query).ok();
            let got = got.map(|answers| answers[0].info.domain.as_ref().unwrap().mr_mode);
            assert_eq!(got, told, "{mr_mode:#x} in {major}.{minor}");
        }
    }
}

#[test]
fn what_is_not_offered_is_refused() {
    let asks = [FI_REMOTE_COMM, FI_HMEM];
    for caps in asks {
        assert!(
            ask(
                None,
                None,
                0,
                Some(&Info {
                    caps,
                    ..Info::default()
                })
            )
            .is_err(),
            "{caps:#x}"
        );
    }
    let caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_COLLECTIVE | FI_LOCAL_COMM;
    let info = &ask(
        None,
        None,
        0,
        Some(&Info {
            caps,
            ..Info::default()
        }),
    )
    .unwrap()[0]
        .info;
    assert_eq!(info.caps & caps, caps);
    assert_eq!(info.caps & (FI_SOURCE | FI_SOURCE_ERR), 0, "only when asked for");
}

/// Else reads need not wait for each other.
#[test]
fn orders_between_reads_are_for_those_who_ask() {
    let both = FI_ORDER_RAR | FI_ORDER_RMA_RAR;
    let order = |hints: Option<&Info>| {
        let answers = ask(None, None, 0, hints).unwrap();
        let parts = answers[0].info.parts().unwrap();
        [parts.tx.msg_order, parts.rx.msg_order]
    };
    for order in order(None) {
        assert_eq!((order & both, order & FI_ORDER_RAW), (0, FI_ORDER_RAW));
    }
    let hints = Info {
        tx: Some(TxAttr {
            msg_order: FI_ORDER_RAR | FI_ORDER_SAS,
            ..TxAttr::default()
        }),
        ..Info::default()
    };
    assert_eq!(order(Some(&hints)).map(|order| order & both), [FI_ORDER_RAR, 0]);
}
