//! Sentences of the page, one test or row each.

mod shared;
mod users;

use super::*;
use crate::api::av::sequence::Sequence;
use crate::sys::resolve::to_bytes;
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
