//! How a connection comes about and ends: each step that can fail, refusals, and news in an order that makes no sense.

use super::*;
use crate::transport::verbs::connection;

#[test]
fn the_way_of_a_connection() {
    let mut bed = Bed::new();
    bed.recv(1).unwrap();
    bed.end.connect(&peer(), b"who?").unwrap();
    assert_eq!(bed.end.peer_address(), None);
    bed.device.tells(EventKind::AddressResolved, b"");
    assert_eq!(bed.poll(), []);
    assert_eq!(
        bed.device.script().receives.len(),
        1,
        "what was posted before there was a queue pair"
    );
    let room = Sizes {
        sends: 3,
        ..config().sizes
    };
    assert_eq!(
        bed.device.script().pair,
        Some(room),
        "two sends and the mark at the end"
    );
    bed.device.tells(EventKind::RouteResolved, b"");
    assert_eq!(bed.poll(), []);
    assert_eq!(bed.device.script().data, b"\x04who?");
    bed.device.tells(EventKind::Established, b"\x02ok\0\0\0");
    bed.poll();
    assert_eq!(bed.end.happened(), Some(Happened::Connected { data: b"ok".to_vec() }));
    assert_eq!((bed.end.happened(), bed.end.peer_address()), (None, Some(peer())));
    bed.device.tells(EventKind::Disconnected, b"");
    // News are looked for in every so manieth poll, and before each sleep.
    assert!(!bed.end.arm());
    assert_eq!(bed.end.happened(), None, "the receive has not come back");
    bed.device.flushes();
    assert_eq!(bed.ends(), [(1, Some(Error::PeerGone))]);
    assert_eq!((bed.end.happened(), bed.end.happened()), (Some(Happened::Closed), None));
    let asked = bed.device.script().asked.clone();
    let steps: Vec<_> = asked
        .into_iter()
        .filter(|call| !["poll", "notify"].contains(call))
        .collect();
    assert_eq!(
        steps,
        ["address", "pair", "receive", "route", "connect", "timer", "disconnect"]
    );
}

#[test]
fn each_step_can_fail() {
    let mut bed = Bed::new();
    bed.device.script().fails = Some(("address", libc::ENODEV));
    assert_eq!(
        bed.end.connect(&peer(), b"").unwrap_err().raw_os_error(),
        Some(libc::ENODEV)
    );

    for failing in ["pair", "receive", "route", "connect"] {
        let mut bed = Bed::new();
        bed.recv(1).unwrap();
        bed.device.script().fails = Some((failing, libc::ENOMEM));
        bed.end.connect(&peer(), b"").unwrap();
        bed.device.tells(EventKind::AddressResolved, b"");
        bed.device.tells(EventKind::RouteResolved, b"");
        let before = bed.ends();
        bed.device.flushes();
        let after = bed.ends();
        assert_eq!([before, after].concat(), [(1, Some(Error::PeerGone))], "{failing}");
        assert_eq!(bed.end.happened(), Some(Happened::Unreachable), "{failing}");
    }

    for failing in ["pair", "accept"] {
        let mut bed = Bed::new();
        bed.device.script().fails = Some((failing, libc::EINVAL));
        assert!(bed.end.accept(b"").is_err(), "{failing}");
    }

    // Without its timer a connection works.
    let mut bed = Bed::new();
    bed.device.script().fails = Some(("timer", libc::EINVAL));
    bed.end.accept(b"yes").unwrap();
    assert_eq!(bed.device.script().data, b"\x03yes");
    bed.device.tells(EventKind::Established, b"");
    bed.poll();
    assert!(matches!(bed.end.happened(), Some(Happened::Connected { .. })));
}

#[test]
fn the_other_side_can_refuse() {
    let rows = [
        (
            EventKind::Rejected,
            &b"\x02no\0"[..],
            Happened::Refused { data: b"no".to_vec() },
        ),
        (EventKind::Rejected, b"", Happened::Refused { data: Vec::new() }),
        (EventKind::Failed, b"", Happened::Unreachable),
        (EventKind::Removed, b"", Happened::Unreachable),
    ];
    for (kind, data, expected) in rows {
        let mut bed = Bed::new();
        bed.end.connect(&peer(), b"").unwrap();
        bed.device.tells(EventKind::AddressResolved, b"");
        bed.device.tells(EventKind::RouteResolved, b"");
        bed.device.tells(kind, data);
        assert_eq!(bed.poll(), []);
        assert_eq!(bed.end.happened(), Some(expected));
        // What comes after the end changes nothing.
        for late in [
            EventKind::Established,
            EventKind::Disconnected,
            EventKind::AddressResolved,
        ] {
            bed.device.tells(late, b"");
        }
        bed.end.arm();
        bed.poll();
        assert_eq!(bed.end.happened(), None);
    }
}

#[test]
fn news_in_the_wrong_order_change_nothing() {
    let mut bed = Bed::new();
    for kind in [
        EventKind::Established,
        EventKind::RouteResolved,
        EventKind::Disconnected,
        EventKind::Other,
    ] {
        bed.device.tells(kind, b"");
    }
    assert_eq!(bed.poll(), []);
    assert_eq!(bed.end.happened(), None);
    bed.end.connect(&peer(), b"").unwrap();
    bed.device.tells(EventKind::Established, b"");
    bed.poll();
    assert_eq!(bed.end.happened(), None);
}

#[test]
fn a_queue_pair_in_error_ends_the_connection() {
    // The device says so.
    let mut bed = Bed::connected();
    assert_eq!((bed.recv(1), bed.send(8, 2)), (Ok(()), Ok(())));
    bed.device.tells(EventKind::Failed, b"");
    assert!(!bed.end.arm());
    assert_eq!(bed.ends(), [], "what is posted comes back first");
    bed.device.flushes();
    let gone = Some(Error::PeerGone);
    assert_eq!(bed.ends(), [(2, gone), (1, gone)]);
    assert_eq!((bed.end.happened(), bed.end.happened()), (Some(Happened::Closed), None));

    // Or what is posted comes back by itself.
    let mut bed = Bed::connected();
    assert_eq!(bed.recv(1), Ok(()));
    bed.device.flushes();
    assert_eq!(bed.ends(), [(1, gone)]);
    assert_eq!((bed.end.happened(), bed.end.happened()), (Some(Happened::Closed), None));
}

#[test]
fn from_a_device_that_is_gone_nothing_comes_back() {
    let mut bed = Bed::connected();
    assert_eq!((bed.recv(1), bed.send(8, 2)), (Ok(()), Ok(())));
    bed.device.tells(EventKind::Removed, b"");
    assert!(!bed.end.arm());
    let gone = Some(Error::PeerGone);
    assert_eq!(bed.ends(), [(2, gone), (1, gone)]);
    assert_eq!((bed.end.happened(), bed.end.happened()), (Some(Happened::Closed), None));
    // It may say so while what was posted is awaited; and what comes back after all is not told twice.
    let mut bed = Bed::connected();
    assert_eq!(bed.recv(1), Ok(()));
    bed.end.shutdown();
    assert_eq!(bed.ends(), []);
    bed.device.tells(EventKind::Removed, b"");
    assert_eq!(bed.ends(), [(1, gone)]);
    bed.device.flushes();
    assert_eq!((bed.ends(), bed.end.happened()), (Vec::new(), None));
}

#[test]
fn a_port_that_is_down_ends_nothing() {
    let mut bed = Bed::connected();
    assert_eq!(bed.recv(1), Ok(()));
    for kind in [EventKind::PortDown, EventKind::PortUp] {
        bed.device.tells(kind, b"");
        bed.end.arm();
        assert_eq!((bed.ends(), bed.end.happened()), (Vec::new(), None));
    }
    let id = bed.device.script().receives[0].0;
    bed.device.completes(id, DoneKind::Received, None);
    assert_eq!(bed.ends(), [(1, None)]);
}

#[test]
fn lengths_of_data_are_not_believed() {
    let long: Vec<u8> = (0..100).collect();
    assert_eq!(connection::to_wire(&long).len(), DATA_SIZE + 1);
    assert_eq!(connection::from_wire(&connection::to_wire(&long)), &long[..DATA_SIZE]);
    for (bytes, expected) in [
        (&b""[..], &b""[..]),
        (b"\0", b""),
        (b"\xffab", b"ab"),
        (b"\x01ab", b"a"),
    ] {
        assert_eq!(connection::from_wire(bytes), expected);
    }
}

#[test]
fn who_shuts_down_hears_nothing() {
    let mut bed = Bed::connected();
    assert_eq!(bed.recv(1), Ok(()));
    bed.end.shutdown();
    bed.device.tells(EventKind::Disconnected, b"");
    assert_eq!(bed.ends(), []);
    bed.device.flushes();
    assert_eq!(bed.ends(), [(1, Some(Error::PeerGone))]);
    assert_eq!(bed.end.happened(), None);

    // Before there is a queue pair nothing flushes.
    let mut bed = Bed::new();
    assert_eq!(bed.recv(1), Ok(()));
    bed.end.connect(&peer(), b"").unwrap();
    bed.end.shutdown();
    assert_eq!(bed.ends(), [(1, Some(Error::PeerGone))]);
    assert_eq!(bed.end.happened(), None);
}
