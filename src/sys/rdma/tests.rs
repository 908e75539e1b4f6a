//! Without a device: what is told then, and the codes that are read. The structs are held against the real headers by
//! `abi-tests/rdma-headers`, for which `the_layout` writes them down.

use super::device::{mtu, speed};
use super::types::{VALUES, ibv_wc, layout};
use super::*;
use crate::sys::epoll::Epoll;
use crate::sys::eventfd::EventFd;
use std::sync::Arc;

#[test]
fn codes_become_numbers() {
    assert_eq!([0, 1, 3, 5, 6, -1].map(mtu), [0, 256, 1024, 4096, 0, 0]);
    // The single lane of Soft-RoCE, four lanes of EDR, two of HDR, and codes that nobody has yet.
    let rows = [(1, 1, 2_500), (32, 2, 100_000), (64, 16, 100_000), (3, 1, 0), (1, 3, 0)];
    for (lane, width, mbits) in rows {
        assert_eq!(speed(lane, width), mbits * 1_000_000, "{lane} {width}");
    }
}

#[test]
fn completions_are_read_as_the_hardware_writes_them() {
    // SAFETY: numbers, of which zero is one.
    let mut raw: ibv_wc = unsafe { core::mem::zeroed() };
    (raw.wr_id, raw.opcode, raw.byte_len, raw.wc_flags) = (5, 128, 77, 2);
    raw.qp_num = 17;
    raw.imm_data = 0x0102_0304u32.to_be();
    let done = Done::of(&raw);
    assert_eq!((done.id, done.kind, done.len), (5, DoneKind::Received, 77));
    assert_eq!(done.pair, 17);
    assert_eq!((done.data, done.failure), (Some(0x0102_0304), None));
    raw.opcode = 129;
    assert_eq!(Done::of(&raw).kind, DoneKind::Written);
    raw.wc_flags = 0;
    assert_eq!(Done::of(&raw).data, None);
    // Of a failure only number and status are right.
    (raw.wc_flags, raw.status) = (2, 5);
    let failed = Done::of(&raw);
    assert_eq!((failed.kind, failed.len, failed.data), (DoneKind::Other, 0, None));
    assert_eq!(failed.failure, Some(Failure::Flushed));
    raw.status = 21;
    assert_eq!(Done::of(&raw).failure, Some(Failure::Other(21)));
}

#[test]
fn events_are_told_to_those_whom_they_concern() {
    let mut watches = events::Watches::default();
    let objects = |context, pair, queue| events::Objects { context, pair, queue };
    let bells = [(); 3].map(|()| Arc::new(EventFd::new().unwrap()));
    let [one, other, elsewhere] = [
        (0, objects(1, 10, 20)),
        (1, objects(1, 11, 21)),
        (2, objects(2, 10, 20)),
    ]
    .map(|(bell, objects)| watches.add(objects, &bells[bell]));
    let taken = || [&one, &other, &elsewhere].map(|watch| watch.take());
    // Whoever sleeps is woken, whatever thread has read the event.
    let rung = || {
        bells.each_ref().map(|bell| {
            let epoll = Epoll::new().unwrap();
            epoll.add(bell.fd()).unwrap();
            let rings = epoll.wait(0).unwrap() > 0;
            bell.clear();
            rings
        })
    };
    let (broken, gone) = (Some(Trouble::Broken), Some(Trouble::DeviceGone));
    let rows = [
        (1, 10, [broken, None, None]), // QP_FATAL
        (3, 11, [None, broken, None]), // QP_ACCESS_ERR
        (0, 20, [broken, None, None]), // CQ_ERR
        (0, 10, [None; 3]),            // of a queue with a pair's address
        (8, 0, [gone, gone, None]),    // DEVICE_FATAL
        (10, 1, [Some(Trouble::PortDown), Some(Trouble::PortDown), None]),
        (9, 1, [Some(Trouble::PortUp), Some(Trouble::PortUp), None]),
        (4, 10, [None; 3]), // COMM_EST
    ];
    for (event, element, expected) in rows {
        watches.tell(1, event, element);
        assert_eq!(
            rung(),
            expected.map(|trouble| trouble.is_some()),
            "event {event} of {element}"
        );
        assert_eq!(taken(), expected, "event {event} of {element}");
        assert_eq!(taken(), [None; 3], "once");
    }
    // Of several the worst comes first.
    for event in [10, 1, 8] {
        watches.tell(1, event, 10);
    }
    assert_eq!(
        [one.take(), one.take(), one.take()],
        [gone, broken, Some(Trouble::PortDown)]
    );
    // Who has ended is told nothing.
    drop(one);
    watches.tell(1, 8, 0);
    assert_eq!(
        [other.take(), other.take(), other.take()],
        [gone, Some(Trouble::PortDown), None]
    );
}

#[test]
fn without_a_device_it_is_said_so() {
    if any() {
        return;
    }
    let why = devices().err().unwrap();
    assert!(why.contains("/sys/class/infiniband"), "{why}");
}

/// Run by name, with the file to write in RDMA_LAYOUT: assertions in C, which only compile if all of it is so.
#[test]
#[ignore = "abi-tests/rdma-headers runs it"]
fn the_layout() {
    let mut text = String::new();
    // Those that the library makes too are looked at up to a field.
    const BEGINNINGS: [&str; 7] = [
        "ibv_device",
        "ibv_context",
        "ibv_cq",
        "ibv_srq",
        "ibv_qp",
        "rdma_cm_id",
        "rdma_cm_event",
    ];
    // Parts of unions and arrays have names of ours.
    const OURS: [&str; 4] = ["ibv_rdma", "ibv_atomic", "ibv_ud", "ibv_context_ops"];
    for (name, size, fields) in layout() {
        if OURS.contains(&name) {
            continue;
        }
        if !BEGINNINGS.contains(&name) && name != "rdma_addr" {
            text += &format!("_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");\n");
        }
        for (field, offset, size) in fields {
            let place = format!("struct {name}, {field}");
            text += &match (name, field) {
                ("ibv_device", "ops") | ("ibv_send_wr", "gap" | "rest") => continue,
                ("rdma_cm_id", "route") | ("rdma_cm_event", "param") | ("ibv_send_wr", "wr") => {
                    format!("_Static_assert(offsetof({place}) == {offset}, \"{name}.{field}\");\n")
                }
                _ => format!(
                    "_Static_assert(offsetof({place}) == {offset} && sizeof(((struct {name} *)0)->{field}) == {size}, \
                     \"{name}.{field}\");\n"
                ),
            };
        }
    }
    for (slot, at) in [
        ("poll_cq", 11),
        ("req_notify_cq", 12),
        ("post_srq_recv", 20),
        ("post_send", 25),
        ("post_recv", 26),
    ] {
        text += &format!("_Static_assert(offsetof(struct ibv_context_ops, {slot}) == {at} * 8, \"{slot}\");\n");
    }
    text += "_Static_assert(sizeof(struct ibv_context_ops) == 32 * 8, \"ops\");\n";
    text +=
        "_Static_assert(offsetof(struct ibv_send_wr, wr.rdma.rkey) == offsetof(struct ibv_send_wr, wr) + 8, \"\");\n";
    for (field, at) in [
        ("atomic.compare_add", 8),
        ("atomic.swap", 16),
        ("atomic.rkey", 24),
        ("ud.ah", 0),
        ("ud.remote_qpn", 8),
        ("ud.remote_qkey", 12),
    ] {
        text += &format!(
            "_Static_assert(offsetof(struct ibv_send_wr, wr.{field}) == offsetof(struct ibv_send_wr, wr) + {at},              \"{field}\");\n"
        );
    }
    for (name, value) in VALUES {
        text += &format!("_Static_assert({name} == {value}, \"{name}\");\n");
    }
    std::fs::write(std::env::var("RDMA_LAYOUT").expect("the file to write"), text).expect("it can be written");
}

#[test]
fn a_datagram_says_where_it_comes_from() {
    // SAFETY: numbers, of which zero is one.
    let mut raw: ibv_wc = unsafe { core::mem::zeroed() };
    (raw.wr_id, raw.opcode, raw.byte_len, raw.wc_flags, raw.src_qp) = (7, 128, 48, 1, 17);
    let arrived = Arrived::of(&raw);
    assert_eq!((arrived.done.len, arrived.sender, arrived.has_header), (48, 17, true));
    raw.wc_flags = 2;
    assert_eq!(
        (Arrived::of(&raw).has_header, Arrived::of(&raw).done.data),
        (false, Some(0))
    );
}
