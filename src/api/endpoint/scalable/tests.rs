//! What of an endpoint each of its contexts can do, and threads that meet in one: to drive it, and to close it while
//! another makes it carry a group. The transports say who polls them.

use super::*;
use crate::api::domain::Fabric;
use crate::api::endpoint::state::Settings;
use crate::api::endpoint::tests::Hooked;
use crate::api::eq::EqAttr;
use crate::api::info::model::{DomainAttr, EpAttr};

/// Whether a context sends messages, and whether it receives them.
fn messages(caps: u64, direction: Direction) -> (bool, bool) {
    let info = Info {
        caps,
        ..Info::default()
    };
    let settings = Settings::of(&only(&info, direction));
    (settings.can_send, settings.can_recv)
}

#[test]
fn contexts_have_the_messages_of_their_direction() {
    for (caps, transmit, receive) in [
        (FI_MSG, (true, false), (false, true)),
        (FI_TAGGED | FI_SEND | FI_RECV, (true, false), (false, true)),
        (FI_MSG | FI_RMA | FI_ATOMIC, (true, false), (false, true)),
        (FI_COLLECTIVE, (true, false), (false, true)),
        (FI_RMA, (false, false), (false, false)),
        (FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV, (false, false), (false, false)),
    ] {
        assert_eq!(messages(caps, Direction::Transmit), transmit, "{caps:#x}");
        assert_eq!(messages(caps, Direction::Receive), receive, "{caps:#x}");
    }
}

#[test]
fn contexts_for_memory_have_that_of_their_direction() {
    for direction in [Direction::Transmit, Direction::Receive] {
        let transmits = direction == Direction::Transmit;
        let info = Info {
            caps: FI_RMA | FI_ATOMIC,
            ..Info::default()
        };
        let settings = Settings::of(&only(&info, direction));
        let found = (settings.can_read, settings.can_write, settings.is_target);
        assert_eq!(found, (transmits, transmits, !transmits));
    }
}

/// A transport that finds out whether two threads poll it at once.
fn turnstile() -> Hooked {
    let inside = AtomicBool::new(false);
    Hooked::polled(move || {
        assert!(!inside.swap(true, Ordering::SeqCst), "two threads poll it at once");
        (0..50).for_each(|_| core::hint::spin_loop());
        inside.store(false, Ordering::SeqCst);
    })
}

/// One that has no queue is driven by the queues of several transmit contexts, which several threads may read.
#[test]
fn threads_meet_in_a_context_without_a_queue_at_every_threading_level() {
    for threading in [FI_THREAD_SAFE, FI_THREAD_COMPLETION] {
        let info = Info {
            caps: FI_RMA | FI_ATOMIC,
            ep: Some(EpAttr {
                tx_ctx_cnt: 2,
                rx_ctx_cnt: 1,
                ..EpAttr::default()
            }),
            domain: Some(DomainAttr {
                threading,
                ..DomainAttr::default()
            }),
            ..Info::default()
        };
        let fabric = Fabric::new("any", 0);
        let domain = Domain::open(&fabric, &info).ok().unwrap();
        let more = Box::new(|_: &[u8]| Ok(turnstile()));
        let whole = Scalable::open(&domain, &info, turnstile(), more).ok().unwrap();
        let alone = whole.rx[0].endpoint.as_progress();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..100_000).for_each(|_| alone.progress()));
            }
        });
    }
}

/// One thread joins a group with a transmit context, another closes the receive context that is to carry it.
#[test]
fn a_context_that_is_closed_meanwhile_carries_collectives_all_the_same() {
    let info = Info {
        caps: FI_TAGGED | FI_COLLECTIVE,
        ep: Some(EpAttr {
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..EpAttr::default()
        }),
        domain: Some(DomainAttr::default()),
        ..Info::default()
    };
    let domain = Domain::open(&Fabric::new("any", 0), &info).ok().unwrap();
    let transport = || Hooked::polled(|| ());
    let attr = EqAttr {
        size: 0,
        flags: 0,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
    };
    for round in 0..5000 {
        let more = Box::new(move |_: &[u8]| Ok(transport()));
        let whole = Scalable::open(&domain, &info, transport(), more).ok().unwrap();
        let context = whole.context(Direction::Receive, 0).ok().unwrap();
        let eq = Eq::open(&attr).ok().unwrap();
        let collectives = whole.tx[0].collectives.as_ref().unwrap();
        let begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| {
                begun.store(true, Ordering::Relaxed);
                context.close()
            });
            while !begun.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
            (0..round % 100 * 4).for_each(|_| core::hint::spin_loop());
            assert_eq!(collectives.listen(eq.clone(), None), Ok(()));
            assert_eq!(closing.join().unwrap(), Ok(()));
        });
        assert!(whole.rx[0].endpoint.with_state(|state| state.collective_carrier));
        assert_eq!(domain.memory.waited_for(), 1);
        collectives.close().unwrap();
        whole.close().unwrap();
        assert_eq!(domain.memory.waited_for(), 0);
    }
}
