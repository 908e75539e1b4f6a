//! Sentences of the page, one test or row each, and vectors of every sort against a plain list.

use super::*;
use crate::api::av::sequence::Sequence;
use crate::sys::resolve::to_bytes;
use proptest::prelude::*;
use std::process::Command;
use std::sync::Mutex;

const NONE: u64 = FI_ADDR_NOTAVAIL;

/// The domain of `open`.
fn domain() -> Domain {
    Domain {
        user_ids: true,
        ..Domain::default()
    }
}

fn open(attr: AvAttr) -> Arc<Av> {
    Av::open(&attr, Arc::new(StringAddr), &domain()).unwrap()
}

fn strings(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|name| name.bytes().chain([0])).collect()
}

fn invalid<T>() -> Result<T> {
    Err(Errno(FI_EINVAL))
}

/// Inserts and says what came back in fi_addr.
fn insert(av: &Av, names: &[&str]) -> (Result<usize>, Vec<u64>) {
    let mut fi_addr = vec![7; names.len()];
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        ..Insert::default()
    };
    (av.insert(&strings(names), names.len(), request), fi_addr)
}

/// Inserts what nothing speaks against.
fn fill(av: &Av, names: &[&str]) {
    assert_eq!(insert(av, names).0, Ok(names.len()));
}

fn lookup(av: &Av, fi_addr: u64) -> Result<String> {
    let mut buffer = [0; 300];
    let len = av.lookup(fi_addr, &mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..len])
        .trim_end_matches('\0')
        .to_owned())
}

/// An event queue that writes down what it is told.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
    fn take(&self) -> Vec<String> {
        core::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Events for Heard {
    fn complete(&self, context: usize, count: u64) {
        self.add(format!("complete {context} {count}"));
    }
    fn error(&self, context: usize, index: u64, err: Errno) {
        self.add(format!("error {context} {index} {}", err.0));
    }
    fn attached(&self) {
        self.add("attached".into());
    }
    fn detached(&self) {
        self.add("detached".into());
    }
}

#[test]
fn attributes_are_checked() {
    let none = AvAttr::default();
    let rows = [
        // (asked, domain's, outcome)
        (FI_AV_UNSPEC, FI_AV_UNSPEC, Some(FI_AV_TABLE)),
        (FI_AV_UNSPEC, FI_AV_MAP, Some(FI_AV_MAP)),
        (FI_AV_MAP, FI_AV_UNSPEC, Some(FI_AV_MAP)),
        (FI_AV_TABLE, FI_AV_TABLE, Some(FI_AV_TABLE)),
        (FI_AV_TABLE, FI_AV_MAP, None),
        (77, FI_AV_UNSPEC, None),
    ];
    for (asked, of_domain, expected) in rows {
        let attr = AvAttr {
            av_type: asked,
            ..none.clone()
        };
        let domain = Domain {
            av_type: of_domain,
            ..Domain::default()
        };
        let made = Av::open(&attr, Arc::new(StringAddr), &domain).map(|av| av.av_type());
        assert_eq!(made, expected.ok_or(Errno(FI_EINVAL)), "{asked} {of_domain}");
    }
    let refused = [
        AvAttr {
            flags: FI_READ,
            ..none.clone()
        },
        AvAttr {
            flags: FI_MORE,
            ..none.clone()
        },
        AvAttr {
            flags: FI_AV_USER_ID,
            ..none.clone()
        },
        AvAttr {
            rx_ctx_bits: 17,
            ..none.clone()
        },
        AvAttr {
            rx_ctx_bits: -1,
            ..none.clone()
        },
        AvAttr {
            name: Some(""),
            ..none.clone()
        },
    ];
    for attr in refused {
        let made = Av::open(&attr, Arc::new(StringAddr), &Domain::default());
        assert_eq!(made.err(), Some(Errno(FI_EINVAL)), "{attr:?}");
    }
    let hints = AvAttr {
        flags: FI_SYMMETRIC,
        count: usize::MAX,
        ep_per_node: 4,
        ..none
    };
    assert_eq!(insert(&open(hints), &["a"]), (Ok(1), vec![0]));
}

#[test]
fn the_lowest_free_index_is_used() {
    let av = open(AvAttr::default());
    assert_eq!(insert(&av, &["a", "b", "c", "d"]), (Ok(4), vec![0, 1, 2, 3]));
    assert_eq!(av.remove(&[2, 1], 0), Ok(()));
    assert_eq!(
        (lookup(&av, 1), lookup(&av, 4), lookup(&av, NONE)),
        (invalid(), invalid(), invalid())
    );
    // A removed address comes back at whatever place is free.
    assert_eq!(insert(&av, &["c", "b", "e"]), (Ok(3), vec![1, 2, 4]));
    assert_eq!(lookup(&av, 1), Ok("c".into()));
    // fi_addr may be NULL: indices are known beforehand.
    assert_eq!(av.insert(&strings(&["f"]), 1, Insert::default()), Ok(1));
    assert_eq!(lookup(&av, 5), Ok("f".into()));
    assert_eq!(av.insert(&[], 0, Insert::default()), Ok(0));
}

#[test]
fn a_second_insertion_is_counted() {
    let av = open(AvAttr::default());
    assert_eq!(insert(&av, &["fi_shm://a", "a", "fi_ns://a"]), (Ok(3), vec![0, 0, 0]));
    assert_eq!(lookup(&av, 0), Ok("fi_shm://a".into()));
    assert_eq!((av.remove(&[0], 0), av.remove(&[0], 0)), (Ok(()), Ok(())));
    assert_eq!(av.find(b"a\0"), Some(0));
    assert_eq!((av.remove(&[0], 0), av.remove(&[0], 0)), (Ok(()), invalid()));
    assert_eq!(av.find(b"a\0"), None);
}

#[test]
fn removing_goes_on_past_what_is_wrong() {
    let av = open(AvAttr::default());
    fill(&av, &["a", "b", "c"]);
    assert_eq!(av.remove(&[0, 9, NONE, 2], 0), invalid());
    assert_eq!((av.contains(0), av.contains(1), av.contains(2)), (false, true, false));
    assert_eq!(
        (av.remove(&[1], FI_MORE), av.remove(&[1], FI_AUTH_KEY)),
        (invalid(), invalid())
    );
    assert_eq!(av.remove(&[], 0), Ok(()));
    assert!(av.contains(1));
}

#[test]
fn failed_addresses_are_not_available_and_the_others_are() {
    let av = open(AvAttr::default());
    let long = "x".repeat(300);
    assert_eq!(insert(&av, &["a", "", "b", &long]), (Ok(2), vec![0, NONE, 1, NONE]));
    // An array shorter than the count says.
    let (mut fi_addr, mut status) = ([7; 3], [7; 3]);
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        flags: FI_SYNC_ERR | FI_MORE,
        status: Some(&mut status),
        ..Insert::default()
    };
    assert_eq!(av.insert(b"c\0d", 3, request), Ok(2));
    assert_eq!((fi_addr, status), ([2, 3, NONE], [0, 0, FI_EINVAL]));
    // A string without its end is kept with one.
    assert_eq!(av.address(3).as_deref(), Some(&b"d\0"[..]));
}

#[test]
fn socket_addresses_fail_one_by_one() {
    let kind = Arc::new(SocketAddr::new(FI_SOCKADDR_IN));
    let av = Av::open(&AvAttr::default(), kind, &Domain::default()).unwrap();
    let good = to_bytes(&"10.0.0.1:5000".parse().unwrap());
    let array = [&good[..], &[0; 16]].concat();
    let mut status = [7, 7];
    let request = Insert {
        flags: FI_SYNC_ERR,
        status: Some(&mut status),
        ..Insert::default()
    };
    assert_eq!(av.insert(&array, 2, request), Ok(1));
    assert_eq!(status, [0, FI_EADDRNOTAVAIL]);
    let mut buffer = [9; 20];
    assert_eq!(av.lookup(0, &mut buffer), Ok(16));
    assert_eq!((&buffer[..16], &buffer[16..]), (&good[..], &[9; 4][..]));
    let mut short = [9; 6];
    assert_eq!((av.lookup(0, &mut short), &short[..]), (Ok(16), &good[..6]));
    assert_eq!(av.lookup(0, &mut []), Ok(16));
    // The two examples of the page.
    let names = Sequence {
        node: Some("10.1.1.1"),
        nodecnt: 2,
        service: Some("5000"),
        svccnt: 2,
    };
    let mut fi_addr = [0; 4];
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        ..Insert::default()
    };
    assert_eq!(av.insertsym(&names, request), Ok(4));
    let texts = fi_addr.map(|fi_addr| {
        let mut text = [0; 64];
        let len = av.straddr(&av.address(fi_addr).unwrap(), &mut text).unwrap();
        String::from_utf8_lossy(&text[..len - 1]).into_owned()
    });
    let expected = ["10.1.1.1:5000", "10.1.1.1:5001", "10.1.1.2:5000", "10.1.1.2:5001"];
    assert_eq!(texts, expected.map(|place| format!("fi_sockaddr_in://{place}")));
    // A port beyond the last fails alone.
    let names = Sequence {
        node: Some("10.1.1.9"),
        nodecnt: 1,
        service: Some("65535"),
        svccnt: 2,
    };
    let mut status = [7, 7];
    let request = Insert {
        flags: FI_SYNC_ERR,
        status: Some(&mut status),
        ..Insert::default()
    };
    assert_eq!((av.insertsym(&names, request), status), (Ok(1), [0, FI_EINVAL]));
}

#[test]
fn names_are_inserted() {
    let av = open(AvAttr::default());
    let rows = [
        (Some("n0"), Some("5000"), Ok(1), "fi_ns://n0:5000"),
        (Some("fi_shm://77:0:1"), None, Ok(1), "fi_shm://77:0:1"),
        (Some("fi_shm://77:0:1"), Some("1"), Ok(0), ""),
        (None, None, Err(Errno(FI_EINVAL)), ""),
    ];
    for (node, service, expected, name) in rows {
        let mut fi_addr = [7];
        let request = Insert {
            fi_addr: Some(&mut fi_addr),
            ..Insert::default()
        };
        assert_eq!(av.insertsvc(node, service, request), expected, "{node:?} {service:?}");
        match expected {
            Ok(1) => assert_eq!(lookup(&av, fi_addr[0]), Ok(name.into())),
            Ok(_) => assert_eq!(fi_addr, [NONE]),
            Err(_) => assert_eq!(fi_addr, [7]),
        }
    }
}

#[test]
fn texts_and_strings_are_cut_off_with_their_end() {
    let av = open(AvAttr::default());
    fill(&av, &["fi_shm://7"]);
    for room in 0..14 {
        let expected: Vec<u8> = match room {
            0 => vec![],
            1..=10 => [&b"fi_shm://7"[..room - 1], &[0]].concat(),
            _ => b"fi_shm://7\0".to_vec(),
        };
        let (mut looked, mut written) = (vec![9; room], vec![9; room]);
        assert_eq!(
            (av.lookup(0, &mut looked), av.straddr(b"fi_shm://7\0", &mut written)),
            (Ok(11), Some(11))
        );
        assert_eq!(looked[..expected.len()], expected, "{room}");
        assert_eq!(written[..expected.len()], expected, "{room}");
        assert!(looked.iter().chain(&written).filter(|byte| **byte == 9).count() == 2 * room.saturating_sub(11));
    }
}

#[test]
fn an_asynchronous_vector_tells_its_queue() {
    let av = open(AvAttr {
        flags: FI_EVENT,
        ..AvAttr::default()
    });
    let no_eq = Err(Errno(FI_ENOEQ as c_int));
    assert_eq!(av.insert(&strings(&["a"]), 1, Insert::default()), no_eq);
    assert_eq!(av.insertsvc(Some("a"), None, Insert::default()), no_eq);
    let heard = Arc::new(Heard::default());
    assert_eq!(av.bind_eq(heard.clone(), FI_SEND), invalid());
    assert_eq!(av.bind_eq(heard.clone(), 0), Ok(()));
    assert_eq!(av.bind_eq(heard.clone(), 0), invalid());
    let mut fi_addr = [7; 4];
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        context: 42,
        ..Insert::default()
    };
    assert_eq!(av.insert(&strings(&["a", "", "b", ""]), 4, request), Ok(0));
    assert_eq!(fi_addr, [0, NONE, 1, NONE]);
    let einval = FI_EINVAL;
    let expected = [
        "attached".to_owned(),
        format!("error 42 1 {einval}"),
        format!("error 42 3 {einval}"),
        "complete 42 2".to_owned(),
    ];
    assert_eq!(heard.take(), expected);
    // Even when all fail, and when there are none.
    assert_eq!(av.insert(&strings(&[""]), 1, Insert::default()), Ok(0));
    assert_eq!(av.insert(&[], 0, Insert::default()), Ok(0));
    assert_eq!(
        heard.take(),
        [
            format!("error 0 0 {einval}"),
            "complete 0 0".into(),
            "complete 0 0".into()
        ]
    );
    let mut status = [0];
    let request = Insert {
        flags: FI_SYNC_ERR,
        status: Some(&mut status),
        ..Insert::default()
    };
    assert_eq!(
        av.insert(&strings(&["a"]), 1, request),
        Err(Errno(FI_EBADFLAGS as c_int))
    );
    assert_eq!(av.close(), Ok(()));
    assert_eq!(heard.take(), ["detached"]);
}

#[test]
fn a_synchronous_vector_tells_nobody() {
    let av = open(AvAttr::default());
    let heard = Arc::new(Heard::default());
    av.bind_eq(heard.clone(), 0).unwrap();
    assert_eq!(insert(&av, &["a", ""]).0, Ok(1));
    assert_eq!(heard.take(), ["attached"]);
}

#[test]
fn flags_of_insertions_are_checked() {
    let keys = Domain {
        auth_key_size: Some(0),
        ..domain()
    };
    let user_id = AvAttr {
        flags: FI_AV_USER_ID,
        ..AvAttr::default()
    };
    let none = AvAttr::default();
    let bad = FI_EBADFLAGS as c_int;
    let plain = domain();
    let rows = [
        // (attr, domain, flags, fi_addr given, error)
        (&none, &plain, FI_MORE | FI_FIREWALL_ADDR, false, 0),
        (&none, &plain, FI_EVENT, false, bad),
        (&none, &plain, FI_SYNC_ERR, false, FI_EINVAL),
        (&none, &plain, FI_AV_USER_ID, true, 0),
        (&none, &plain, FI_AV_USER_ID, false, FI_EINVAL),
        (&user_id, &plain, FI_AV_USER_ID, true, FI_EINVAL),
        (&none, &keys, FI_AV_USER_ID, true, FI_EINVAL),
        (&none, &plain, FI_AUTH_KEY, true, FI_EINVAL),
        (&none, &keys, FI_AUTH_KEY, false, FI_EINVAL),
        (&user_id, &keys, 0, true, 0),
    ];
    for (attr, domain, flags, given, error) in rows {
        let av = Av::open(attr, Arc::new(StringAddr), domain).unwrap();
        let mut fi_addr = [3];
        let request = Insert {
            fi_addr: given.then_some(&mut fi_addr[..]),
            flags,
            ..Insert::default()
        };
        let expected = if error == 0 { Ok(1) } else { Err(Errno(error)) };
        assert_eq!(av.insert(&strings(&["a"]), 1, request), expected, "{flags:#x} {given}");
    }
}

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
    let av = Av::open(&attr, Arc::new(StringAddr), &domain).unwrap();
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
    assert_eq!(
        (av.find_with_key(b"a", one), av.find_with_key(b"a", other)),
        (Some(0), Some(1))
    );
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
    assert_eq!(av.reported_key(one), NONE);
    assert_eq!((av.set_user_id(one, 5, FI_AUTH_KEY), av.reported_key(one)), (Ok(()), 5));
    assert_eq!(av.set_user_id(one, 5, 0), invalid());
    // Endpoints that were enabled with a key keep it.
    let held = av.hold_keys();
    assert_eq!(held.handles().collect::<Vec<_>>(), [one, other]);
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

#[test]
fn a_vector_in_use_stays_open() {
    let av = open(AvAttr::default());
    let (one, other) = (av.hold(), av.hold());
    drop(one);
    assert_eq!((av.close(), Arc::ptr_eq(other.av(), &av)), (Err(Errno(FI_EBUSY)), true));
    drop(other);
    assert_eq!(av.close(), Ok(()));
}

#[test]
fn cached_answers_are_told_to_be_stale() {
    let av = open(AvAttr::default());
    fill(&av, &["a", "b", "a"]);
    let seen = || (av.generation(), av.additions());
    let first = seen();
    av.remove(&[0], 0).unwrap();
    assert_eq!(seen(), first, "it was there twice");
    av.remove(&[0], 0).unwrap();
    assert!(seen().0 != first.0 && seen().1 == first.1);
    let second = seen();
    fill(&av, &["b"]);
    assert_eq!(seen(), second);
    fill(&av, &["c"]);
    assert!(seen().0 == second.0 && seen().1 != second.1);
}

#[test]
fn threads_insert_and_remove_at_once() {
    let domain = Domain {
        locked: true,
        ..Domain::default()
    };
    let av = Av::open(&AvAttr::default(), Arc::new(StringAddr), &domain).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let av = &av;
            scope.spawn(move || {
                for turn in 0..500 {
                    let name = format!("{thread}.{turn}");
                    let (done, fi_addr) = insert(av, &[&name]);
                    assert_eq!((done, lookup(av, fi_addr[0])), (Ok(1), Ok(name)));
                    if turn % 2 == 0 {
                        av.remove(&fi_addr, 0).unwrap();
                    }
                }
            });
        }
    });
    let left = av.members(0, NONE, 1);
    assert_eq!(left.len(), 4 * 250);
    assert!(
        left.iter().all(|fi_addr| *fi_addr < 4 * 250 + 4),
        "free places are used again"
    );
}

/// The definition: places in order, each with an address and how often it was inserted.
#[derive(Default)]
struct Model(Vec<Option<(u8, usize)>>);

impl Model {
    fn find(&self, address: u8) -> Option<usize> {
        self.0
            .iter()
            .position(|place| place.is_some_and(|(there, _)| there == address))
    }

    fn insert(&mut self, address: u8) -> usize {
        let at = self.find(address).or_else(|| self.0.iter().position(Option::is_none));
        let at = at.unwrap_or(self.0.len());
        self.0.resize(self.0.len().max(at + 1), None);
        let (_, uses) = self.0[at].unwrap_or((address, 0));
        self.0[at] = Some((address, uses + 1));
        at
    }

    fn remove(&mut self, at: usize) -> Result<()> {
        let place = self
            .0
            .get_mut(at)
            .filter(|place| place.is_some())
            .ok_or(Errno(FI_EINVAL))?;
        *place = place
            .map(|(address, uses)| (address, uses - 1))
            .filter(|(_, uses)| *uses > 0);
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Work {
    Insert(Vec<u8>),
    Remove(usize),
}

fn work() -> impl Strategy<Value = Vec<(usize, Work)>> {
    let insert = prop::collection::vec(0u8..20, 0..5).prop_map(Work::Insert);
    let one = prop_oneof![insert, (0usize..22).prop_map(Work::Remove)];
    prop::collection::vec((any::<usize>(), one), 0..60)
}

fn text(address: u8) -> String {
    format!("fi_shm://{address}")
}

/// Does the work on one of `writers` at a time, and holds every one of `readers` against the model after each.
fn same_as_model(work: &[(usize, Work)], writers: &[Arc<Av>], readers: &[Arc<Av>]) {
    let mut model = Model::default();
    for (who, work) in work {
        let av = &writers[who % writers.len()];
        match work {
            Work::Insert(addresses) => {
                let names: Vec<String> = addresses.iter().copied().map(text).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let expected: Vec<u64> = addresses.iter().map(|address| model.insert(*address) as u64).collect();
                assert_eq!(insert(av, &names), (Ok(names.len()), expected));
            }
            Work::Remove(at) => assert_eq!(av.remove(&[*at as u64], 0), model.remove(*at)),
        }
        for av in readers {
            for (at, place) in model.0.iter().enumerate() {
                let expected = place.map(|(address, _)| text(address)).ok_or(Errno(FI_EINVAL));
                assert_eq!(lookup(av, at as u64), expected);
            }
            for address in 0..20 {
                let found = av.find(text(address).as_bytes());
                assert_eq!(found, model.find(address).map(|at| at as u64), "{address}");
            }
            let there: Vec<u64> = (0..model.0.len())
                .filter(|at| model.0[*at].is_some())
                .map(|at| at as u64)
                .collect();
            assert_eq!(av.members(0, NONE, 1), there);
        }
    }
}

fn own_name(test: &str) -> String {
    use core::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{test}.{}.{count}", std::process::id())
}

fn named(name: &str, flags: u64) -> Result<Arc<Av>> {
    let attr = AvAttr {
        name: Some(name),
        flags,
        ..AvAttr::default()
    };
    let domain = Domain {
        name: "test".into(),
        ..Domain::default()
    };
    Av::open(&attr, Arc::new(StringAddr), &domain)
}

proptest! {
    #[test]
    fn a_table_is_a_list_with_holes(work in work()) {
        let av = [open(AvAttr::default())];
        same_as_model(&work, &av, &av);
    }

    /// Two who write and one who reads, each with a search table of its own.
    #[test]
    fn a_named_vector_is_the_same_for_all(work in work()) {
        let name = own_name("model");
        let writers = [named(&name, 0).unwrap(), named(&name, 0).unwrap()];
        let reader = named(&name, FI_READ).unwrap();
        let readers = [writers[0].clone(), writers[1].clone(), reader];
        same_as_model(&work, &writers, &readers);
    }
}

#[test]
fn a_reader_finds_but_does_not_change() {
    let name = own_name("reader");
    assert_eq!(named(&name, FI_READ).err(), Some(Errno(FI_ENOENT)));
    let writer = named(&name, 0).unwrap();
    let reader = named(&name, FI_READ).unwrap();
    fill(&writer, &["a", "b"]);
    // Not even what is there already.
    let mut status = [7; 2];
    let mut fi_addr = [7; 2];
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        flags: FI_SYNC_ERR,
        status: Some(&mut status),
        ..Insert::default()
    };
    assert_eq!(reader.insert(&strings(&["b", "c"]), 2, request), Ok(0));
    assert_eq!((fi_addr, status), ([NONE; 2], [FI_EACCES; 2]));
    assert_eq!(reader.remove(&[1], 0), Err(Errno(FI_EACCES)));
    let seen = (reader.generation(), reader.additions());
    fill(&writer, &["c"]);
    assert!(reader.generation() == seen.0 && reader.additions() != seen.1);
    writer.remove(&[1], 0).unwrap();
    assert_ne!(reader.generation(), seen.0);
    assert_eq!(lookup(&reader, 1), invalid());
    assert!(writer.map_addr() != 0 && writer.map_addr() != reader.map_addr());
}

#[test]
fn vectors_of_another_kind_or_domain_do_not_meet() {
    let name = own_name("kinds");
    let _first = named(&name, 0).unwrap();
    let attr = AvAttr {
        name: Some(&name),
        map_addr: 0x1000,
        ..AvAttr::default()
    };
    let domain = |name: &str| Domain {
        name: name.into(),
        ..Domain::default()
    };
    let sockets = Arc::new(SocketAddr::new(FI_SOCKADDR_IN));
    assert_eq!(Av::open(&attr, sockets, &domain("test")).err(), Some(Errno(FI_EINVAL)));
    let map = AvAttr {
        av_type: FI_AV_MAP,
        ..attr.clone()
    };
    assert_eq!(
        Av::open(&map, Arc::new(StringAddr), &domain("test")).err(),
        Some(Errno(FI_EINVAL))
    );
    let other = Av::open(&attr, Arc::new(StringAddr), &domain("other")).unwrap();
    assert_eq!((insert(&other, &["z"]), other.map_addr()), ((Ok(1), vec![0]), 0x1000));
    let keys = Domain {
        auth_key_size: Some(0),
        ..domain("keys")
    };
    assert_eq!(
        Av::open(&attr, Arc::new(StringAddr), &keys).err(),
        Some(Errno(FI_ENOSYS))
    );
}

#[test]
fn a_named_vector_grows() {
    const STEP: u32 = 10_000;
    let name = own_name("large");
    let writer = named(&name, 0).unwrap();
    let reader = named(&name, FI_READ).unwrap();
    for step in 0..10 {
        let names: Vec<u8> = (step * STEP..(step + 1) * STEP)
            .flat_map(|at| format!("{at}\0").into_bytes())
            .collect();
        assert_eq!(
            writer.insert(&names, STEP as usize, Insert::default()),
            Ok(STEP as usize)
        );
        let last = (step + 1) * STEP - 1;
        assert_eq!(reader.find(format!("{last}").as_bytes()), Some(last.into()));
        assert_eq!(lookup(&reader, last.into()), Ok(last.to_string()));
    }
}

#[test]
fn a_reader_never_sees_half_an_address() {
    const TURNS: u32 = 20_000;
    let name = own_name("torn");
    let writer = named(&name, 0).unwrap();
    let reader = named(&name, FI_READ).unwrap();
    let names = ["a".repeat(200), "b".repeat(180)];
    let done = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..TURNS {
                fill(&writer, &[&names[turn as usize % 2]]);
                assert_eq!(writer.remove(&[0], 0), Ok(()));
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            match lookup(&reader, 0) {
                Ok(name) => assert!(names.contains(&name), "{name}"),
                Err(errno) => assert_eq!(errno, Errno(FI_EINVAL)),
            }
        }
    });
}

/// The role and the vector's name of a process that another test started.
const ROLE: &str = "FI_TEST_AV_ROLE";

/// Runs this test program again, as the other process of a test. Says whether it was content.
fn other_process(role: &str, name: &str) -> bool {
    let program = std::env::current_exe().unwrap();
    let done = Command::new(program)
        .args(["--ignored", "--exact", "api::av::tests::the_other_process"])
        .env(ROLE, format!("{role} {name}"))
        .output()
        .unwrap();
    done.status.success() && String::from_utf8_lossy(&done.stdout).contains("1 passed")
}

#[test]
#[ignore = "the other process of the tests below"]
fn the_other_process() {
    let asked = std::env::var(ROLE).unwrap();
    let (role, name) = asked.split_once(' ').unwrap();
    match role {
        "read" => {
            let av = named(name, FI_READ).unwrap();
            assert_eq!((lookup(&av, 0), lookup(&av, 1)), (Ok("a".into()), Ok("b".into())));
            assert_eq!((av.find(b"b"), av.find(b"c")), (Some(1), None));
        }
        "write" => {
            let av = named(name, 0).unwrap();
            assert_eq!(insert(&av, &["c", "a"]), (Ok(2), vec![2, 0]));
            assert_eq!(av.remove(&[1], 0), Ok(()));
        }
        "die" => {
            let av = named(name, 0).unwrap();
            fill(&av, &["d"]);
            // Nothing of ours runs any more, as after SIGKILL.
            std::process::abort();
        }
        _ => panic!("unknown role {role}"),
    }
}

#[test]
fn processes_share_a_vector() {
    let name = own_name("processes");
    let av = named(&name, 0).unwrap();
    fill(&av, &["a", "b"]);
    assert!(other_process("read", &name));
    assert!(!other_process("read", "never opened"));
    assert!(other_process("write", &name));
    assert_eq!((lookup(&av, 1), lookup(&av, 2)), (invalid(), Ok("c".into())));
    assert_eq!((av.find(b"c"), av.find(b"b")), (Some(2), None));
    assert_eq!(insert(&av, &["e"]), (Ok(1), vec![1]));
    assert!(!other_process("die", &name));
    assert_eq!(lookup(&av, 3), Ok("d".into()), "what the dead one inserted stays");
    assert_eq!(insert(&av, &["f"]), (Ok(1), vec![4]), "and its locks are gone");
}

#[test]
fn a_process_that_died_leaves_nothing_that_harms() {
    let name = own_name("dead");
    assert!(!other_process("die", &name));
    assert_eq!(named(&name, FI_READ).err(), Some(Errno(FI_ENOENT)));
    assert!(!other_process("die", &name));
    let av = named(&name, 0).unwrap();
    assert_eq!(insert(&av, &["x"]), (Ok(1), vec![0]));
}
