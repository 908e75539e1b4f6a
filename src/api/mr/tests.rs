//! Memory regions alone: keys, rights, what is open and who holds it.

use super::memory::{Memory, Mode};
use super::*;
use crate::api::cntr::CntrAttr;
use crate::api::domain::Fabric;
use crate::api::info::model::{DomainAttr, Info};
use crate::api::progress::Progress;
use crate::engine::op::Access;
use crate::util::regions::Denied;
use crate::util::user::Lent;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::os::fd::RawFd;

const REMOTE: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;

fn domain(mr_mode: i32, key_size: usize) -> Arc<Domain> {
    let attr = DomainAttr {
        mr_mode,
        mr_key_size: key_size,
        ..DomainAttr::default()
    };
    let info = Info {
        domain: Some(attr),
        ..Info::default()
    };
    Domain::open(&Fabric::new("any", 0), &info).ok().unwrap()
}

fn request(memory: UserIov, access: u64, key: u64, flags: u64) -> Request {
    Request {
        memory,
        access,
        offset: 0,
        key,
        flags,
        whole: None,
    }
}

fn register(domain: &Arc<Domain>, access: u64, key: u64, flags: u64) -> Result<Arc<Mr>> {
    Mr::register(domain, request(Lent::new(&[100], 0).iov(), access, key, flags))
}

fn error(result: Result<Arc<Mr>>) -> i32 {
    result.err().unwrap().0
}

fn counter() -> Arc<Cntr> {
    Cntr::open(&CntrAttr {
        events: FI_CNTR_EVENTS_COMP,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
        flags: 0,
        locked: true,
    })
    .unwrap()
}

fn find(domain: &Arc<Domain>, endpoint: u64, key: u64, addr: u64, wanted: Rights) -> core::result::Result<(), Denied> {
    let found = domain.memory.regions.find(endpoint, key, addr, 1, wanted);
    found.map(|_| ())
}

#[test]
fn a_key_is_the_applications_own_until_closed() {
    let domain = domain(0, 8);
    let mr = register(&domain, REMOTE, 7, 0).unwrap();
    assert_eq!(mr.key(), 7);
    assert_eq!(error(register(&domain, REMOTE, 7, 0)), FI_ENOKEY as i32);
    assert_eq!(unused(&domain.users), Err(Errno(FI_EBUSY)));
    mr.close().unwrap();
    drop(mr);
    register(&domain, REMOTE, 7, 0).unwrap().close().unwrap();
    assert_eq!(unused(&domain.users), Ok(()));
}

#[test]
fn local_memory_takes_no_key() {
    let domain = domain(0, 8);
    let regions: Vec<_> = (0..3)
        .map(|_| register(&domain, FI_SEND | FI_READ, 7, 0).unwrap())
        .collect();
    assert!(regions.iter().all(|mr| mr.key() == FI_KEY_NOTAVAIL));
    assert_eq!(register(&domain, FI_REMOTE_READ, 7, 0).unwrap().key(), 7);
}

#[test]
fn what_cannot_be_registered() {
    let small = domain(0, 2);
    assert!(register(&small, REMOTE, 0xffff, 0).is_ok());
    assert_eq!(error(register(&small, REMOTE, 0x1_0000, 0)), FI_EKEYREJECTED);
    let large = domain(0, 8);
    assert_eq!(error(register(&large, REMOTE, FI_KEY_NOTAVAIL, 0)), FI_EKEYREJECTED);
    assert!(register(&large, REMOTE, FI_KEY_NOTAVAIL - 1, 0).is_ok());
    assert_eq!(error(register(&large, REMOTE, 1, FI_INJECT)), FI_EBADFLAGS as i32);
    let iov = Lent::new(&[1], 0).iov();
    let with_offset = Request {
        offset: 1,
        ..request(iov, REMOTE, 1, 0)
    };
    assert_eq!(error(Mr::register(&large, with_offset)), FI_EINVAL);
}

#[test]
fn addresses_and_keys_are_as_the_mode_says() {
    let memory = Lent::new(&[10, 20], 0).iov();
    let start = memory.address(0) as u64;
    for (mode, base, own_key) in [
        (FI_MR_UNSPEC, 0, false),
        (FI_MR_SCALABLE, 0, false),
        (FI_MR_BASIC, start, true),
        (FI_MR_VIRT_ADDR, start, false),
        (FI_MR_PROV_KEY, 0, true),
        (FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_COLLECTIVE, 0, false),
    ] {
        let domain = domain(mode, 8);
        let mr = Mr::register(&domain, request(memory, REMOTE, 5, 0)).ok().unwrap();
        assert_eq!((mr.base(), mr.key() != 5), (base, own_key), "{mode:#x}");
        assert_eq!(find(&domain, 1, mr.key(), base + 29, Rights::BOTH), Ok(()), "{mode:#x}");
        assert_eq!(find(&domain, 1, mr.key(), base + 30, Rights::BOTH), Err(Denied::Range));
    }
    let raw = domain(FI_MR_RAW | FI_MR_PROV_KEY, 8);
    let mr = register(&raw, REMOTE, 0, 0).unwrap();
    assert_eq!(mr.key(), FI_KEY_NOTAVAIL);
    assert!(find(&raw, 1, mr.raw_key(), 0, Rights::BOTH).is_ok());
}

#[test]
fn a_region_of_an_endpoint_is_reached_through_it_once_enabled() {
    let domain = domain(FI_MR_ENDPOINT, 8);
    let mr = register(&domain, FI_REMOTE_READ, 5, 0).unwrap();
    assert_eq!(mr.enable(), Err(Errno(FI_EINVAL)));
    mr.bind_endpoint(3).unwrap();
    assert_eq!(mr.bind_endpoint(4), Err(Errno(FI_EINVAL)));
    assert_eq!(find(&domain, 3, 5, 0, Rights::READ), Err(Denied::Key));
    mr.enable().unwrap();
    assert_eq!(find(&domain, 3, 5, 0, Rights::READ), Ok(()));
    assert_eq!(find(&domain, 3, 5, 0, Rights::WRITE), Err(Denied::Rights));
    assert_eq!(find(&domain, 4, 5, 0, Rights::READ), Err(Denied::Key));
    assert_eq!(mr.bind_endpoint(3), Err(Errno(FI_EOPBADSTATE as i32)));
    assert_eq!(
        mr.bind_counter(&counter(), FI_REMOTE_WRITE),
        Err(Errno(FI_EOPBADSTATE as i32))
    );
}

#[test]
fn a_region_with_events_waits_for_fi_mr_enable() {
    let domain = domain(FI_MR_RMA_EVENT, 8);
    let plain = register(&domain, REMOTE, 1, 0).unwrap();
    assert!(find(&domain, 1, 1, 0, Rights::BOTH).is_ok());
    let mr = register(&domain, REMOTE, 2, FI_RMA_EVENT).unwrap();
    assert!(find(&domain, 1, 2, 0, Rights::BOTH).is_err());
    mr.bind_counter(&counter(), FI_REMOTE_WRITE).unwrap();
    mr.enable().unwrap();
    assert!(find(&domain, 1, 2, 0, Rights::BOTH).is_ok());
    drop(plain);
}

/// A region without remote rights, of which no peer can do anything, binds counters as others do.
#[test]
fn a_counter_is_free_when_its_region_is_closed() {
    let domain = domain(0, 8);
    for access in [FI_SEND | FI_RECV, REMOTE] {
        let (mr, writes) = (register(&domain, access, 5, 0).unwrap(), counter());
        mr.bind_counter(&writes, FI_REMOTE_WRITE).unwrap();
        assert!(writes.is_busy());
        mr.close().unwrap();
        assert!(!writes.is_busy(), "{access:#x}");
    }
}

/// Something that a counter drives and that a region waits for.
#[derive(Default)]
struct Fake {
    progressed: AtomicUsize,
    settled: AtomicUsize,
}

impl Progress for Fake {
    fn progress(&self) {
        self.progressed.fetch_add(1, Ordering::Relaxed);
    }
    fn settle(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }
    fn arm(&self) -> bool {
        true
    }
    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}

#[test]
fn counters_count_what_peers_do_and_drive_all_endpoints() {
    let domain = domain(0, 8);
    let fakes = [Arc::new(Fake::default()), Arc::new(Fake::default())];
    let [first, second] = [&fakes[0], &fakes[1]].map(|fake| fake.clone() as Arc<dyn Progress>);
    let (writes, reads) = (counter(), counter());
    let mr = register(&domain, REMOTE, 5, 0).unwrap();
    domain.memory.join(&first);
    mr.bind_counter(&writes, FI_REMOTE_WRITE).unwrap();
    assert_eq!(mr.bind_counter(&writes, FI_REMOTE_WRITE), Err(Errno(FI_EINVAL)));
    assert_eq!(mr.bind_counter(&writes, 0), Err(Errno(FI_EINVAL)));
    assert_eq!(mr.bind_counter(&writes, FI_SEND), Err(Errno(FI_EBADFLAGS as i32)));
    mr.bind_counter(&reads, FI_REMOTE_READ).unwrap();
    domain.memory.join(&second);
    let touched = |key, access, atomic| domain.memory.touched(key, access, atomic, 8);
    touched(5, Access::Write, false);
    touched(5, Access::Read, false);
    touched(5, Access::Read, true);
    touched(6, Access::Write, false);
    assert_eq!((writes.read(), reads.read()), (2, 2));
    let driven = |fake: &Fake| fake.progressed.load(Ordering::Relaxed);
    assert_eq!((driven(&fakes[0]), driven(&fakes[1])), (2, 2));
    assert!(writes.is_busy());
    domain.memory.leave(&first, || ());
    domain.memory.leave(&first, || ());
    writes.read();
    assert_eq!((driven(&fakes[0]), driven(&fakes[1])), (2, 3));
    mr.close().unwrap();
    let settled = |fake: &Fake| fake.settled.load(Ordering::Relaxed);
    assert_eq!((settled(&fakes[0]), settled(&fakes[1])), (0, 1));
    assert!(!writes.is_busy() && !reads.is_busy());
    domain.memory.leave(&second, || ());
    assert_eq!(Arc::strong_count(&fakes[1]), 2);
    touched(5, Access::Write, false);
    assert_eq!(writes.read(), 2);
}

/// Registers a region as soon as it is asked whether its endpoint is between two calls.
struct Hasty {
    domain: Arc<Domain>,
    found: Mutex<Option<core::result::Result<(), Errno>>>,
}

impl Progress for Hasty {
    fn progress(&self) {}
    fn settle(&self) {
        let found =
            register(&self.domain, REMOTE, 5, 0).map(|mr| mr.bind_counter(&counter(), FI_REMOTE_WRITE).unwrap());
        *self.found.lock().unwrap() = Some(found);
    }
    fn arm(&self) -> bool {
        true
    }
    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}

/// What is bound to its successor would be taken for what was bound to it.
#[test]
fn a_key_is_in_use_until_its_region_is_closed() {
    let domain = domain(0, 8);
    let hasty = Arc::new(Hasty {
        domain: domain.clone(),
        found: Mutex::default(),
    });
    let mr = register(&domain, REMOTE, 5, 0).unwrap();
    mr.bind_counter(&counter(), FI_REMOTE_WRITE).unwrap();
    domain.memory.join(&(hasty.clone() as Arc<dyn Progress>));
    mr.close().unwrap();
    assert_eq!(*hasty.found.lock().unwrap(), Some(Err(Errno(FI_ENOKEY as i32))));
    let (again, writes) = (register(&domain, REMOTE, 5, 0).unwrap(), counter());
    again.bind_counter(&writes, FI_REMOTE_WRITE).unwrap();
    domain.memory.touched(5, Access::Write, false, 8);
    assert_eq!(writes.read(), 1);
}

#[test]
fn a_single_use_is_the_last() {
    let domain = domain(0, 8);
    let mr = register(&domain, REMOTE, 5, FI_MR_SINGLE_USE).unwrap();
    assert!(find(&domain, 1, 5, 0, Rights::READ).is_ok());
    domain.memory.touched(5, Access::Read, false, 1);
    assert_eq!(find(&domain, 1, 5, 0, Rights::READ), Err(Denied::Key));
    mr.close().unwrap();
}

#[test]
fn a_part_lies_in_its_whole_and_keeps_it_open() {
    let domain = domain(0, 8);
    let memory = Lent::new(&[10, 20], 0).iov();
    let whole = Mr::register(&domain, request(memory, FI_SEND, 0, 0)).ok().unwrap();
    let part_of = |iov: UserIov| {
        let part = Request {
            whole: Some(whole.clone()),
            ..request(iov, FI_REMOTE_READ, 9, 0)
        };
        Mr::register(&domain, part)
    };
    assert_eq!(error(part_of(Lent::new(&[1], 0).iov())), FI_EINVAL);
    let part = part_of(memory.part(5, 20)).ok().unwrap();
    assert_eq!(whole.close(), Err(Errno(FI_EBUSY)));
    assert!(find(&domain, 1, 9, 19, Rights::READ).is_ok());
    assert_eq!(part.refresh(&memory.part(5, 3)), Ok(()));
    assert_eq!(part.refresh(&UserIov::default()), Ok(()));
    assert_eq!(part.refresh(&memory), Err(Errno(FI_EINVAL)));
    part.close().unwrap();
    drop(part);
    assert_eq!(whole.close(), Ok(()));
}

/// A card that notes what it is told, and chooses no keys.
#[derive(Default)]
struct Card {
    rights: Mutex<Vec<Rights>>,
    known: AtomicUsize,
}

impl registrar::Registrar for Card {
    fn register(&self, _: &UserIov, _: u64, rights: Rights) -> Result<Registered> {
        self.known.fetch_add(1, Ordering::SeqCst);
        self.rights.lock().unwrap().push(rights);
        Ok(Registered { desc: 1, key: None })
    }

    fn deregister(&self, _: &Registered) {
        self.known.fetch_sub(1, Ordering::SeqCst);
    }

    fn lend(&self, _: usize, _: usize) -> bool {
        true
    }
}

fn domain_of(card: &Arc<Card>) -> Arc<Domain> {
    let info = Info {
        domain: Some(DomainAttr {
            mr_key_size: 8,
            ..DomainAttr::default()
        }),
        ..Info::default()
    };
    let registrar = Some(card.clone() as Arc<dyn registrar::Registrar>);
    let opened = crate::api::domain::Opened {
        registrar,
        ..Default::default()
    };
    Domain::sharing(&Fabric::new("any", 0), &info, |_| Ok(opened))
        .ok()
        .unwrap()
}

#[test]
fn a_card_knows_what_is_registered_and_nothing_else() {
    let card = Arc::new(Card::default());
    let domain = domain_of(&card);
    let known = || card.known.load(Ordering::SeqCst);
    let (local, remote) = (register(&domain, FI_SEND, 0, 0), register(&domain, REMOTE, 7, 0));
    assert_eq!(known(), 2);
    assert_eq!(error(register(&domain, REMOTE, 7, 0)), FI_ENOKEY as i32);
    assert_eq!(known(), 2, "what got no key is not registered");
    for mr in [local, remote] {
        mr.ok().unwrap().close().unwrap();
    }
    assert_eq!(known(), 0);
}

#[test]
fn peers_do_not_reach_through_a_card_what_is_counted() {
    let card = Arc::new(Card::default());
    let domain = domain_of(&card);
    for (flags, rights) in [
        (0, Rights::BOTH),
        (FI_RMA_EVENT, Rights::default()),
        (FI_MR_SINGLE_USE, Rights::default()),
    ] {
        let mr = register(&domain, REMOTE, 7, flags).ok().unwrap();
        assert_eq!(card.rights.lock().unwrap().pop(), Some(rights));
        mr.close().unwrap();
    }
}

#[test]
fn numbers_of_endpoints_differ() {
    let memory = Memory::new(0, 8, true);
    assert_ne!(memory.number(), memory.number());
    assert_eq!(Mode::of(FI_MR_SCALABLE), Mode::of(FI_MR_UNSPEC));
}
