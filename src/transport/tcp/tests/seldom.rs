//! Who polls once and goes on to something else finds what has come.

use super::*;
use crate::engine::wire::Packet;
use crate::transport::tcp::send_buffer::PREFIX;
use core::mem::MaybeUninit;
use socket2::SockRef;

/// More than are read without being asked for.
const OTHERS: u32 = 6;

fn push(from: &mut TcpTransport, to: PeerId, id: u32) {
    let header = Header::new(Packet::Eager, id);
    assert_eq!(from.push(to, &header, Body::Bytes(b"body"), None), Push::Done);
    from.flush();
}

/// Until the kernel has so many bytes of this peer for us.
fn await_bytes(end: &mut TcpTransport, peer: PeerId, count: usize) {
    let socket = &end.peers.link(peer).unwrap().socket;
    let socket = SockRef::from(socket);
    let mut buffer = vec![MaybeUninit::uninit(); count];
    until("bytes", || socket.peek(&mut buffer).is_ok_and(|came| came == count));
}

/// One of many is talked with all the time. Then another one says something, just after the first did.
#[test]
fn one_poll_after_another_that_has_found_something() {
    let mut hub = open();
    let mut others: Vec<TcpTransport> = (0..OTHERS).map(|_| open()).collect();
    let mut numbers: Vec<(PeerId, PeerId)> = Vec::new();
    for other in &mut others {
        let (of_hub, of_other) = super::numbers(&mut hub, other);
        connect(&mut hub, of_hub, other, of_other);
        numbers.push((of_hub, of_other));
    }
    let mut kept = Kept::default();
    let mut id = 0;
    for round in 0..16 {
        let quiet = 1 + round % (OTHERS as usize - 1);
        // Until nobody has had news lately, and then some more, as each of some polls looks at everything.
        for _ in 0..active::CROWDED as usize + active::COOL as usize + round {
            hub.poll(&mut kept, 10);
        }
        for from in [0, quiet] {
            id += 1;
            push(&mut others[from], numbers[from].1, id);
            await_bytes(&mut hub, numbers[from].0, 1);
            if from == 0 {
                until("the one who is talked with", || hub.poll(&mut kept, 10) > 0);
            } else {
                hub.poll(&mut kept, 10);
            }
            let (came_from, header, _) = kept.packets.last().unwrap();
            assert_eq!((*came_from, header.id), (numbers[from].0, id), "round {round}");
        }
    }
}

/// Of one peer that has sent much, as of many.
#[test]
fn a_poll_takes_as_much_as_it_may() {
    const SENT: u32 = 100;
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    (0..SENT).for_each(|id| push(&mut a, b_of_a, id));
    let all = SENT as usize * (PREFIX + b"body".len());
    await_bytes(&mut b, a_of_b, all);
    let mut kept = Kept::default();
    let came = [0; 3].map(|_| b.poll(&mut kept, 64));
    assert_eq!((came, kept.packets.len()), ([64, 36, 0], SENT as usize));
}

/// The first packet leaves at once, as its receiver may have nothing else to do.
#[test]
fn what_the_engine_has_queued_leaves_together() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let header = |id| Header::new(Packet::Eager, id);
    push(&mut a, b_of_a, 0);
    a.gather();
    let held_back = [1, 2, 3].map(|id| {
        let pushed = a.push(b_of_a, &header(id), Body::Empty, None);
        (pushed, a.holds_back(b_of_a))
    });
    assert_eq!(held_back, [(Push::Done, true); 3]);
    a.flush();
    assert!(!a.holds_back(b_of_a));
    let mut kept = Kept::default();
    until("all", || {
        b.poll(&mut kept, 64);
        kept.packets.len() == 4
    });
}
