//! Descriptors that are few, and peers that are many.

use super::*;
use crate::engine::wire::Packet;
use crate::sys::child::Child;
use crate::sys::open_files;
use core::sync::atomic::AtomicUsize;
use std::fs::File;

static TOLD: AtomicUsize = AtomicUsize::new(0);

fn counting() -> Config {
    Config {
        info: |line| {
            eprintln!("{line}");
            TOLD.fetch_add(usize::from(line.contains("ulimit -n")), Ordering::Relaxed);
        },
        ..config()
    }
}

fn header(id: u32) -> Header {
    Header::new(Packet::Eager, id)
}

/// Takes all descriptors that there are.
fn take_all() -> Vec<File> {
    core::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// The soft limit is raised when it is reached and not before, whatever needs a descriptor: an endpoint, a connection
/// of ours, or one of somebody else's.
#[test]
fn the_soft_limit_is_raised_when_it_is_reached() {
    let child = Child::run(|| {
        open_files::set_limits(300, 1000);
        let (mut a, mut b) = (open_at("127.0.0.1:0", &counting()), open_at("127.0.0.1:0", &counting()));
        assert_eq!((open_files::most(), TOLD.load(Ordering::Relaxed)), (300, 0));
        let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
        let mut full = take_all();
        connect(&mut a, b_of_a, &mut b, a_of_b);
        assert_eq!((open_files::most(), TOLD.load(Ordering::Relaxed)), (1000, 1));
        open_files::set_limits(300, 1000);
        full.extend(take_all());
        drop(open_at("127.0.0.1:0", &counting()));
        assert_eq!((open_files::most(), TOLD.load(Ordering::Relaxed)), (1000, 2));
    });
    assert_eq!(child.wait(), 0);
}

/// Those of FI_EP_MSG, too, whichever of their descriptors is the first that there is none for.
#[test]
fn an_endpoint_of_a_call_raises_the_limit() {
    let child = Child::run(|| {
        for left in 0..4 {
            open_files::set_limits(300, 1000);
            let mut passive = one_peer::passive(&counting());
            let mut caller = one_peer::caller(&counting());
            caller.call(&passive.local_address(), b"").unwrap();
            let call = one_peer::next_call(&mut passive);
            let mut full = take_all();
            full.truncate(full.len() - left);
            let made = TcpTransport::open_for_call(&mut Some(call), &counting());
            assert!(made.is_ok(), "{left}");
        }
    });
    assert_eq!(child.wait(), 0);
}

/// Whichever there is none for, the call is left, and is answered when there are some.
#[test]
fn a_call_outlives_a_shortage() {
    let child = Child::run(|| {
        open_files::set_limits(300, 300);
        let mut passive = one_peer::passive(&counting());
        let mut caller = one_peer::caller(&counting());
        caller.call(&passive.local_address(), b"").unwrap();
        let mut call = Some(one_peer::next_call(&mut passive));
        let mut full = take_all();
        while TcpTransport::open_for_call(&mut call, &counting()).is_err() {
            assert!(call.is_some());
            full.pop();
        }
        assert!(call.is_none());
    });
    assert_eq!(child.wait(), 0);
}

/// There is none to accept with: nobody spins, nobody is forgotten, and the connections that exist go on.
#[test]
fn who_cannot_be_accepted_waits() {
    let child = Child::run(|| {
        let [mut a, mut b, mut c] = [(); 3].map(|()| open());
        let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
        let (c_of_a, a_of_c) = numbers(&mut a, &mut c);
        connect(&mut a, b_of_a, &mut b, a_of_b);
        c.dial(a_of_c);
        let most = open_files::most().min(1000);
        open_files::set_limits(most, most);
        let full = take_all();
        let (mut at_a, mut at_b, mut at_c) = (Kept::default(), Kept::default(), Kept::default());
        // A shortage that is over and comes again is no other.
        for id in 0..3 {
            until("a pause", || {
                a.poll(&mut at_a, 10);
                a.listener.as_ref().unwrap().is_closed()
            });
            until("rest", || {
                a.poll(&mut at_a, 10);
                a.listener.as_ref().unwrap().is_closed() && a.arm()
            });
            assert_eq!(b.push(a_of_b, &header(id), Body::Empty, None), Push::Done);
            until("a packet", || {
                a.poll(&mut at_a, 10);
                b.poll(&mut at_b, 10);
                c.poll(&mut at_c, 10);
                at_a.packets.len() == id as usize + 1
            });
            assert!(!is_connected(&mut a, c_of_a));
        }
        assert!(matches!(
            TcpTransport::open(&address::of(&a.place), &config()),
            Err(OpenError::Descriptors(_) | OpenError::InUse)
        ));
        drop(full);
        connect(&mut c, a_of_c, &mut a, c_of_a);
        assert!(at_a.gone.is_empty() && at_b.gone.is_empty());
    });
    assert_eq!(child.wait(), 0);
}

/// All at once to one, which has not accepted anybody yet.
#[test]
fn a_storm_of_peers_is_taken() {
    const PEERS: usize = 300;
    let mut hub = open();
    let mut ends: Vec<(TcpTransport, PeerId, bool)> = (0..PEERS)
        .map(|_| {
            let mut end = open();
            let to = end.peer(&hub.local_address()).unwrap();
            end.dial(to);
            (end, to, false)
        })
        .collect();
    let (mut sink, mut at_hub) = (Kept::default(), Kept::default());
    until("all packets", || {
        for (id, (end, to, sent)) in (0..).zip(&mut ends) {
            if !*sent {
                *sent = end.push(*to, &header(id), Body::Empty, None) == Push::Done;
                end.poll(&mut sink, 1);
            }
        }
        hub.poll(&mut at_hub, 100);
        at_hub.packets.len() == PEERS
    });
    let mut ids: Vec<u32> = at_hub.packets.iter().map(|(_, header, _)| header.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..PEERS as u32).collect::<Vec<_>>());
    assert!(at_hub.gone.is_empty() && sink.gone.is_empty());
}
