//! Devices that tell of trouble by themselves, or that nothing can be read from.

use super::meeting::{Kept, until};
use super::*;
use crate::engine::port::Loss;
use std::sync::Mutex;

/// The connection breaks off, and no other one can be made, so that nothing waits for the peer.
const ENDS: [(PeerId, Loss); 2] = [(1, Loss::Broken), (1, Loss::Died)];

/// An endpoint that keeps its warnings there, connected with another one.
fn connected(warn: fn(&str)) -> (Net, [Reliable<NetDevice>; 2]) {
    let net = Net::new(3, Manner::default());
    let config = Config { warn, ..config() };
    let place = |number| net.open(&format!("10.0.0.{number}:7471"));
    let mut ends = [1, 2].map(|number| Reliable::new(place(number), &config).unwrap());
    meet(&mut ends);
    (net, ends)
}

fn with(warned: &Mutex<Vec<String>>, what: &str) -> usize {
    let warned = warned.lock().unwrap();
    warned.iter().filter(|line| line.contains(what)).count()
}

#[test]
fn a_queue_that_stays_broken_is_warned_of_once() {
    static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let (net, [mut a, _b]) = connected(|line| WARNED.lock().unwrap().push(line.into()));
    net.set_manner(Manner {
        queues_fail: true,
        ..Manner::default()
    });
    let mut kept = Kept::default();
    for _ in 0..1000 {
        a.poll(&mut kept, 10);
    }
    assert_eq!(kept.gone, ENDS);
    assert_eq!(with(&WARNED, "the completion queue is broken"), 1, "{WARNED:?}");
}

/// The device says nothing more of connections, and those that would be made with it could do nothing.
#[test]
fn all_connections_end_with_their_device() {
    static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    for (kind, why) in [
        (EventKind::Removed, "the device is gone"),
        (EventKind::Failed, "the completion queue is broken"),
    ] {
        let (net, [mut a, _b]) = connected(|line| WARNED.lock().unwrap().push(line.into()));
        let mut kept = Kept::default();
        until("nothing to do", || {
            a.poll(&mut kept, 10);
            a.arm()
        });
        net.trouble(0, kind);
        assert!(!a.arm(), "a sleeper would not hear of it");
        until("the end", || {
            a.poll(&mut kept, 10);
            kept.gone.len() == ENDS.len()
        });
        assert_eq!((kept.gone.as_slice(), with(&WARNED, why)), (&ENDS[..], 1));
        let header = Header::new(crate::engine::wire::Packet::Segment, 1);
        until("a send that fails", || {
            a.push(1, &header, Body::Empty, None) != Push::Full
        });
        assert_eq!(a.push(1, &header, Body::Empty, None), Push::Gone);
    }
}

#[test]
fn a_port_that_is_down_ends_nothing() {
    static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let (net, [mut a, _b]) = connected(|line| WARNED.lock().unwrap().push(line.into()));
    net.trouble(0, EventKind::PortDown);
    net.trouble(0, EventKind::PortUp);
    let mut kept = Kept::default();
    until("nothing to do", || {
        a.poll(&mut kept, 10);
        a.arm()
    });
    let told = ["device is down", "device is up again"].map(|what| with(&WARNED, what));
    assert_eq!((told, kept.gone.len()), ([1, 1], 0));
    assert!(a.peers.link(1).is_some());
}
