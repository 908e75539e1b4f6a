//! Identifiers, keys and contexts: what an address is known by besides its index.

use super::*;

#[test]
fn user_identifiers_of_an_insertion_are_reported() {
    let av = open(AvAttr::default());
    let mut ids = [100, 101];
    let request = Insert {
        fi_addr: Some(&mut ids),
        flags: FI_AV_USER_ID,
        ..Insert::default()
    };
    assert_eq!(av.insert(&strings(&["a", "b"]), 2, request), Ok(2));
    assert_eq!(ids, [0, 1], "the output is unchanged");
    fill(&av, &["c"]);
    assert_eq!([0, 1, 2].map(|fi_addr| av.reported(fi_addr)), [100, 101, 2]);
    assert_eq!(av.set_user_id(0, 7, 0), invalid());
    av.remove(&[1], 0).unwrap();
    fill(&av, &["d"]);
    assert_eq!(av.reported(1), 1);
}

#[test]
fn user_identifiers_of_a_vector_are_set_later() {
    let av = open(AvAttr {
        flags: FI_AV_USER_ID,
        ..AvAttr::default()
    });
    fill(&av, &["a", "b"]);
    assert_eq!(av.reported(1), NONE);
    let before = av.generation();
    assert_eq!(av.set_user_id(1, 77, 0), Ok(()));
    assert_ne!(av.generation(), before);
    assert_eq!((av.reported(0), av.reported(1)), (NONE, 77));
    assert_eq!(
        (av.set_user_id(2, 77, 0), av.set_user_id(1, 77, FI_MORE)),
        (invalid(), invalid())
    );
    assert_eq!(av.set_user_id(1, 77, FI_AUTH_KEY), invalid());
}

#[test]
fn addresses_belong_to_their_keys() {
    let domain = Domain {
        auth_key_size: Some(4),
        ..domain()
    };
    let attr = AvAttr {
        flags: FI_AV_USER_ID,
        ..AvAttr::default()
    };
    let av = Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &domain).unwrap();
    assert_eq!(
        (av.insert_auth_key(b"abc", 0), av.insert_auth_key(b"abcd", 1)),
        (invalid(), invalid())
    );
    let (one, other) = (
        av.insert_auth_key(b"abcd", 0).unwrap(),
        av.insert_auth_key(b"efgh", 0).unwrap(),
    );
    assert_eq!(av.insert_auth_key(b"abcd", 0), Ok(one));
    av.remove(&[one], FI_AUTH_KEY).unwrap();
    let mut fi_addr = [one, other, 99, 0];
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        flags: FI_AUTH_KEY,
        ..Insert::default()
    };
    // The same address under another key is another address; what is no key's handle fails.
    assert_eq!(av.insert(&strings(&["a", "a", "a", "a"]), 4, request), Ok(2));
    assert_eq!(fi_addr, [0, 1, NONE, NONE]);
    assert_eq!((av.find(b"a"), av.find(b"b")), (Some(0), None), "by the first key");
    assert_eq!(insert(&av, &["a"]), (Ok(1), vec![2]));
    assert_eq!(av.find(b"a"), Some(2));
    let mut key = [0; 6];
    for (fi_addr, expected) in [(one, b"abcd\0\0"), (0, b"abcd\0\0"), (1, b"efgh\0\0")] {
        assert_eq!((av.lookup_auth_key(fi_addr, &mut key), &key), (Ok(4), expected));
    }
    let mut short = [0; 2];
    assert_eq!((av.lookup_auth_key(other, &mut short), &short), (Ok(4), b"ef"));
    assert_eq!(
        (av.lookup_auth_key(2, &mut key), av.lookup_auth_key(NONE, &mut key)),
        (invalid(), invalid())
    );
    // Endpoints that were enabled with a key keep it.
    let held = av.hold_keys();
    assert!(av.in_use());
    assert_eq!(av.remove(&[one], FI_AUTH_KEY), Err(Errno(FI_EBUSY)));
    drop(held);
    assert_eq!((av.remove(&[one], FI_AUTH_KEY), av.in_use()), (Ok(()), false));
    assert_eq!(av.lookup_auth_key(one, &mut key), invalid());
    assert_eq!(
        av.lookup_auth_key(0, &mut key),
        Ok(4),
        "the address knows its key still"
    );
    let without = open(AvAttr::default());
    assert_eq!(without.insert_auth_key(b"abcd", 0), invalid());
}

/// What a stranger's message is reported under: the first key of the endpoint.
#[test]
fn keys_are_reported_by_handle_or_by_identifier() {
    let domain = Domain {
        auth_key_size: Some(0),
        ..domain()
    };
    for (flags, before, after) in [(0, None, None), (FI_AV_USER_ID, Some(NONE), Some(5))] {
        let attr = AvAttr {
            flags,
            rx_ctx_bits: 4,
            ..AvAttr::default()
        };
        let av = Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &domain).unwrap();
        let without = av.hold_keys();
        let one = av.insert_auth_key(b"one", 0).unwrap();
        let other = av.insert_auth_key(b"other", 0).unwrap();
        let held = av.hold_keys();
        assert_eq!((without.reported(), held.reported()), (NONE, before.unwrap_or(one)));
        let allowed = if flags == 0 { invalid() } else { Ok(()) };
        assert_eq!(av.set_user_id(other, 6, FI_AUTH_KEY), allowed);
        assert_eq!(av.set_user_id(one, 5, FI_AUTH_KEY), allowed);
        assert_eq!(held.reported(), after.unwrap_or(one));
        assert_eq!(av.set_user_id(one, 5, 0), invalid());
    }
}

#[test]
fn receive_contexts_do_not_matter_to_the_table() {
    let av = open(AvAttr {
        rx_ctx_bits: 4,
        ..AvAttr::default()
    });
    fill(&av, &["a", "b"]);
    let context = |fi_addr: u64, rx: u64| rx << 60 | fi_addr;
    assert_eq!(av.split(context(1, 9)), (1, 9));
    assert_eq!(lookup(&av, context(1, 9)), Ok("b".into()));
    assert_eq!((lookup(&av, 1 << 59), lookup(&av, NONE)), (invalid(), invalid()));
}
