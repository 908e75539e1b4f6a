//! What keeps a fabric busy, and which domains take locks, at each threading level.

use super::*;
use crate::api::info::model::DomainAttr;

fn info(threading: u32) -> Info {
    Info {
        domain: Some(DomainAttr {
            threading,
            ..DomainAttr::default()
        }),
        ..Info::default()
    }
}

#[test]
fn a_fabric_is_busy_while_a_domain_is_open() {
    let fabric = Fabric::new("any", 0);
    let domain = Domain::open(&fabric, &info(FI_THREAD_SAFE)).ok().unwrap();
    assert_eq!(unused(&fabric.users), Err(Errno(FI_EBUSY)));
    drop(domain);
    assert_eq!(unused(&fabric.users), Ok(()));
    assert_eq!(Domain::open(&fabric, &Info::default()).err(), Some(Errno(FI_EINVAL)));
}

#[test]
fn what_drives_all_endpoints_takes_their_locks() {
    let fabric = Fabric::new("any", 0);
    for (threading, caps, locked) in [
        (FI_THREAD_COMPLETION, FI_MSG, false),
        (FI_THREAD_COMPLETION, FI_TRIGGER, true),
        (FI_THREAD_COMPLETION, FI_RMA_EVENT, true),
        (FI_THREAD_DOMAIN, FI_TRIGGER | FI_RMA_EVENT, false),
    ] {
        let info = Info {
            caps,
            ..info(threading)
        };
        let domain = Domain::open(&fabric, &info).ok().unwrap();
        assert_eq!(domain.locked, locked, "{threading} {caps:#x}");
    }
}

/// A thread of its own may read the event queue, at whichever level.
#[test]
fn what_event_queues_drive_takes_locks() {
    let fabric = Fabric::new("any", 0);
    for threading in [FI_THREAD_COMPLETION, FI_THREAD_DOMAIN] {
        let mut collective = info(threading);
        collective.caps = FI_MSG | FI_COLLECTIVE;
        let mut connected = info(threading);
        connected.ep.get_or_insert_default().ep_type = FI_EP_MSG;
        for info in [collective, connected] {
            let domain = Domain::open(&fabric, &info).ok().unwrap();
            assert!(domain.locked && domain.crossed, "{threading} {:#x}", info.caps);
        }
    }
}

#[test]
fn only_the_levels_that_promise_order_go_without_a_lock() {
    for (threading, locked) in [
        (FI_THREAD_UNSPEC, true),
        (FI_THREAD_SAFE, true),
        (FI_THREAD_FID, true),
        (FI_THREAD_ENDPOINT, true),
        (FI_THREAD_COMPLETION, false),
        (FI_THREAD_DOMAIN, false),
    ] {
        assert_eq!(is_shared(threading), locked, "{threading}");
    }
}
