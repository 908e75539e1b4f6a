//! Tests of what is left of an endpoint that is closed while another thread still has a reference to it, as one does
//! that was about to drive it: nothing.

use super::contexts::{Bed, entries, recv, send};
use super::*;
use crate::api::cq::Cq;
use crate::api::domain::unused;
use crate::api::endpoint::EndpointOps;
use crate::api::endpoint::scalable::Direction;
use crate::api::messaging::{Flags, Messaging};
use crate::util::user::Lent;
use std::sync::Arc;

/// What a receive's memory holds while nothing has come.
const NOTHING: [u8; 8] = [0; 8];

/// Posts a receive to `posts`, has a message sent to it, closes the endpoint, and drives it once more.
fn close_and_drive(bed: &Bed, name: u64, posts: &impl Messaging, closed: &impl EndpointOps) {
    let late = closed.as_progress();
    let (sender, _, _) = bed.plain();
    let memory = recv(posts, FI_ADDR_UNSPEC, 1, 1, Flags::Endpoint, 8);
    send(&sender, name, 1, b"too late");
    closed.close().unwrap();
    late.progress();
    late.settle();
    assert_eq!((late.arm(), late.wake_fd()), (true, None));
    assert_eq!(memory.bytes(), NOTHING);
    sender.close().unwrap();
}

/// All that endpoints used can be closed, though `_late` is still there.
fn nothing_is_held<V>(bed: &Bed, queues: &[Arc<Cq>], _late: V) {
    for cq in queues {
        assert_eq!(cq.close(), Ok(()));
    }
    assert_eq!((bed.av.close(), bed.domain.close()), (Ok(()), Ok(())));
    assert_eq!(unused(&bed.domain.fabric.users), Ok(()));
}

#[test]
fn a_closed_endpoint_does_nothing_and_holds_nothing() {
    let bed = Bed::new();
    let (endpoint, cq, name) = bed.plain();
    close_and_drive(&bed, name, &endpoint, &endpoint);
    nothing_is_held(&bed, &[cq], endpoint);
}

#[test]
fn nor_does_one_that_shares_its_receives() {
    let bed = Bed::new();
    let pool = bed.pool();
    let (one, one_cq, _) = bed.member(&pool);
    let (two, two_cq, name) = bed.member(&pool);
    one.close().unwrap();
    close_and_drive(&bed, name, &pool, &two);
    let late = pool.as_progress();
    pool.close().unwrap();
    late.progress();
    nothing_is_held(&bed, &[one_cq, two_cq], (one, two, pool));
    let bed = Bed::new();
    let info = bed.with(1, FI_SHARED_CONTEXT);
    let alone = crate::api::endpoint::shared_rx::SharedRxEndpoint::new(
        &bed.domain,
        &info,
        Shm::open(&Arc::default(), &info).unwrap(),
    );
    alone.bind_av(&bed.av).unwrap();
    alone.close().unwrap();
    nothing_is_held(&bed, &[], alone);
}

#[test]
fn nor_does_a_context_which_is_a_new_one_when_opened_again() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(1, 1);
    let (context, cq) = bed.context(&whole, Direction::Receive, 0);
    let (sender, sender_cq, _) = bed.plain();
    let before = recv(&context, FI_ADDR_UNSPEC, 1, 1, Flags::Endpoint, 8);
    send(&sender, name, 1, b"too late");
    context.close().unwrap();
    cq.close().unwrap();
    // Sent before, or to the context as it is now: the first receive has nothing of either.
    let (again, cq) = bed.context(&whole, Direction::Receive, 0);
    let now: Lent = recv(&again, FI_ADDR_UNSPEC, 2, 2, Flags::Endpoint, 8);
    let (other, _, _) = bed.plain();
    send(&other, name, 1, b"too soon");
    send(&other, name, 2, b"in time!");
    assert_eq!(entries(&cq, 1, &[&sender_cq])[0].context, 2);
    assert_eq!((before.bytes(), now.bytes()), (NOTHING.to_vec(), b"in time!".to_vec()));
    again.close().unwrap();
    whole.close().unwrap();
    sender.close().unwrap();
    other.close().unwrap();
    nothing_is_held(&bed, &[cq], (whole, context, again));
}

/// Each read of the sender finds an entry, so only now and then one drives it: that must be enough for its credit.
#[test]
fn a_sender_that_always_finds_entries_gets_credit() {
    const MESSAGES: usize = 20_000;
    let bed = Bed::new();
    let (from, from_cq, _) = bed.plain();
    let (to, to_cq, name) = bed.plain();
    for message in 0..MESSAGES {
        let memory = recv(&to, FI_ADDR_UNSPEC, 1, message, Flags::Endpoint, 8);
        send(&from, name, 1, b"8 bytes.");
        assert_eq!(entries(&to_cq, 1, &[])[0].context, message);
        assert_eq!(
            (from_cq.read_each(1, |_| ()), memory.bytes()),
            (Ok(1), b"8 bytes.".to_vec())
        );
    }
}

/// What the next program that opens it gets was sent to it.
#[test]
fn one_that_carries_collectives_is_a_new_one_when_opened_again() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(1, 1);
    let (context, cq) = bed.context(&whole, Direction::Receive, 0);
    context.with_state(|state| state.collective_carrier = true);
    let (sender, sender_cq, _) = bed.plain();
    for (tag, text) in [(1, b"too late"), (2, b"reserved")] {
        send(&sender, name, tag, text);
    }
    entries(&sender_cq, 2, &[&cq]);
    context.as_progress().progress();
    recv(&context, FI_ADDR_UNSPEC, 2, 2, Flags::Call(FI_PEEK | FI_CLAIM), 8);
    assert_eq!(entries(&cq, 1, &[])[0].context, 2);
    context.close().unwrap();
    cq.close().unwrap();
    // It has its address vector still.
    let again = whole.context(Direction::Receive, 0).ok().unwrap();
    let cq = crate::api::cq::tests::open(FI_WAIT_NONE);
    again.bind_cq(&cq, FI_RECV).unwrap();
    again.enable().unwrap();
    let memory = recv(&again, FI_ADDR_UNSPEC, 1, 3, Flags::Endpoint, 8);
    send(&sender, name, 1, b"in time!");
    assert_eq!(entries(&cq, 1, &[])[0].context, 3);
    assert_eq!(memory.bytes(), b"in time!");
    again.close().unwrap();
    whole.close().unwrap();
    sender.close().unwrap();
    nothing_is_held(&bed, &[cq], (whole, context, again));
}

/// Receive context 0 may carry the collectives of transmit contexts, and then outlives its fid: without its receives.
#[test]
fn one_that_carries_collectives_goes_on_without_its_receives() {
    let bed = Bed::new();
    let (whole, name) = bed.scalable(1, 1);
    let (context, cq) = bed.context(&whole, Direction::Receive, 0);
    context.with_state(|state| state.collective_carrier = true);
    let (sender, _, _) = bed.plain();
    let memory = recv(&context, FI_ADDR_UNSPEC, 1, 1, Flags::Endpoint, 8);
    send(&sender, name, 1, b"too late");
    context.close().unwrap();
    cq.close().unwrap();
    context.as_progress().progress();
    assert_eq!(memory.bytes(), NOTHING);
    whole.close().unwrap();
    sender.close().unwrap();
    nothing_is_held(&bed, &[], (whole, context));
}
