//! Offers of datagrams, the addresses of their answers, and vectors that hold ways.

use super::super::devices::tests::told;
use super::*;
use crate::api::av::{Av, AvAttr, Domain, Insert};
use crate::api::info::query::{LIBRARY_VERSION, Query};
use std::io;

fn query<'a>(node: Option<&'a str>, service: Option<&'a str>, flags: u64, hints: Option<&'a Info>) -> Query<'a> {
    Query {
        version: LIBRARY_VERSION,
        node,
        service,
        flags,
        hints,
        raw: None,
        found: None,
    }
}

#[test]
fn an_offer_is_of_one_packet_of_the_port() {
    let info = offer(&told()).unwrap();
    let parts = info.parts().unwrap();
    assert_eq!(
        (info.domain_name(), info.fabric_name(), info.addr_format),
        (Some("mlx5_0-dgram"), Some("IB-0xfe80000000000001"), FI_ADDR_IB_UD)
    );
    assert_eq!((parts.ep.ep_type, parts.ep.protocol), (FI_EP_DGRAM, FI_PROTO_IB_UD));
    assert_eq!((parts.ep.max_msg_size, parts.ep.msg_prefix_size), (4096, 40));
    assert_eq!(
        (info.mode, parts.rx.mode, parts.tx.mode),
        (FI_MSG_PREFIX, FI_MSG_PREFIX, 0)
    );
    assert_eq!((parts.tx.inject_size, parts.tx.size, parts.tx.iov_limit), (180, 100, 2));
    assert_eq!(parts.domain.max_ep_srx_ctx, 0);
    assert_eq!(info.caps & (FI_RMA | FI_SOURCE), FI_SOURCE);
    let mut iwarp = told();
    iwarp.datagram_inline = None;
    assert!(offer(&iwarp).is_none());
}

const TEXT: &str = "fi_addr_ib_ud://fe80::aa:7/0/ffff/0";

#[test]
fn nodes_are_named_by_their_address() {
    let named = Address::from_text(TEXT).unwrap().to_bytes().to_vec();
    let empty = vec![0; Address::SIZE];
    let hints = Info {
        dest_addr: Some(named.clone()),
        ..Info::default()
    };
    let mut of_service = empty.clone();
    of_service[24] = 9;
    type Ends = (Option<Vec<u8>>, Option<Vec<u8>>);
    let rows: [(Query, Option<Ends>); 7] = [
        (query(None, None, 0, None), Some((Some(empty.clone()), None))),
        (
            query(Some(TEXT), None, 0, None),
            Some((Some(empty.clone()), Some(named.clone()))),
        ),
        (
            query(Some(TEXT), None, FI_SOURCE, None),
            Some((Some(named.clone()), None)),
        ),
        (query(None, Some("9"), FI_SOURCE, None), Some((Some(of_service), None))),
        (query(None, Some("http"), FI_SOURCE, None), None),
        (query(Some("10.0.0.1"), None, 0, None), None),
        (query(None, None, 0, Some(&hints)), Some((Some(empty), Some(named)))),
    ];
    for (query, expected) in rows {
        let mut info = offer(&told()).unwrap();
        let ends = address(&mut info, &query)
            .map(|()| (info.src_addr, info.dest_addr))
            .ok();
        assert_eq!(
            ends, expected,
            "{:?} {:?} {:#x}",
            query.node, query.service, query.flags
        );
    }
}

/// Ways that are counted; there is none to a queue pair 13.
#[derive(Clone, Default)]
struct Roads(Arc<Mutex<usize>>);

struct Road(Roads);

impl Router for Roads {
    type Way = Road;

    fn way(&self, to: &Address) -> io::Result<Road> {
        if to.pair == 13 {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
        }
        *self.0.lock().unwrap() += 1;
        Ok(Road(self.clone()))
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap() -= 1;
    }
}

#[test]
fn a_vector_holds_the_ways_to_what_it_has() {
    let roads = Roads::default();
    let open = || *roads.0.lock().unwrap();
    let ways = Arc::new(Ways::new(roads.clone()));
    let vector = || {
        let kind = Arc::new(QueuePairKind::over(&ways));
        Av::open(&AvAttr::default(), kind, &Domain::default()).unwrap()
    };
    let address = |pair: u32| Address {
        pair,
        ..Address::from_text(TEXT).unwrap()
    };
    let array: Vec<u8> = [7, 13, 0, 1 << 24, 8, 7].map(|pair| address(pair).to_bytes()).concat();
    let mut addrs = [5; 6];
    let insert = |av: &Arc<Av>, array: &[u8], addrs: &mut [fi_addr_t]| {
        let request = Insert {
            fi_addr: Some(addrs),
            ..Insert::default()
        };
        av.insert(array, array.len() / Address::SIZE, request)
    };
    let (first, second) = (vector(), vector());
    assert_eq!(insert(&first, &array, &mut addrs), Ok(3));
    let none = FI_ADDR_NOTAVAIL;
    assert_eq!(addrs, [0, none, none, none, 1, 0]);
    assert_eq!(open(), 2);
    assert_eq!(insert(&second, &address(7).to_bytes(), &mut addrs[..1]), Ok(1));
    assert_eq!(open(), 2);
    // It was inserted twice.
    assert_eq!((first.remove(&[0], 0), open()), (Ok(()), 2));
    assert_eq!((first.remove(&[0, 1], 0), open()), (Ok(()), 1));
    assert_eq!((second.remove(&[0], 0), open()), (Ok(()), 0));
    assert_eq!(insert(&first, &address(9).to_bytes(), &mut addrs[..1]), Ok(1));
    assert_eq!((addrs[0], open()), (0, 1));
    drop(first);
    assert_eq!(open(), 0);
}

#[test]
fn places_are_checked_and_written_as_text() {
    let kind: QueuePairKind = QueuePairKind::default();
    let address = Address::from_text(TEXT).unwrap().to_bytes();
    assert_eq!(kind.text(&address).as_deref(), Some(TEXT.as_bytes()));
    assert_eq!(kind.resolve(Some(TEXT), None), Ok(address.to_vec()));
    assert_eq!(kind.resolve(Some("host"), None), Err(Errno(FI_ENODATA)));
    assert_eq!(kind.check(&address), Ok(()));
    assert_eq!(kind.check(&[0; 32]), Err(Errno(FI_EADDRNOTAVAIL)));
    // What pads it tells nothing.
    let mut padded = address;
    padded[31] = 1;
    assert_eq!(kind.key(&padded), kind.key(&address));
}
