//! Keys, rights and bounds of regions, and what mirrors are told while regions come, change and go. The mirror here
//! writes down what it is told, and can say that a peer does not leave.

use super::*;
use crate::util::user::Lent;
use core::sync::atomic::{AtomicBool, Ordering};

fn region(cuts: &[usize], base: u64, rights: Rights) -> Region {
    Region {
        memory: Lent::new(cuts, 0).iov(),
        rights,
        base,
        enabled: true,
        endpoint: None,
        counted: false,
    }
}

#[test]
fn an_applications_key_is_its_own_until_closed() {
    let regions = Regions::new(false, true);
    assert_eq!(regions.add(region(&[1], 0, Rights::READ), 7), Some(7));
    assert_eq!(regions.add(region(&[2], 0, Rights::READ), 7), None);
    assert_eq!(
        regions.find(0, 7, 0, 1, Rights::READ).map(|found| found.memory.len()),
        Ok(1)
    );
    regions.remove(7).unwrap();
    assert_eq!(regions.find(0, 7, 0, 1, Rights::READ), Err(Denied::Key));
    assert_eq!(regions.add(region(&[2], 0, Rights::READ), 7), Some(7));
}

#[test]
fn keys_of_ours_differ_and_do_not_count_up() {
    let regions = Regions::new(true, true);
    let keys: Vec<u64> = (0..100)
        .map(|_| regions.add(region(&[1], 0, Rights::BOTH), 7).unwrap())
        .collect();
    assert!(keys.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1));
    assert!(keys.iter().all(|key| regions.find(0, *key, 0, 1, Rights::BOTH).is_ok()));
}

/// What a mirror was told, and whether a peer does not leave.
#[derive(Default)]
struct Seen(std::sync::Mutex<Vec<(char, u64)>>, AtomicBool);

impl Seen {
    fn note(&self, what: char, key: u64) {
        self.0.lock().unwrap().push((what, key));
    }

    fn take(&self) -> Vec<(char, u64)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Mirror for Seen {
    fn show(&self, key: u64, region: &Region) {
        self.note(if region.shown_at(5).is_some() { '+' } else { '0' }, key);
    }
    fn hide(&self, key: u64) {
        self.note('-', key);
    }
    fn settle(&self, key: u64) -> bool {
        self.note('.', key);
        !self.1.load(Ordering::Relaxed)
    }
    fn is_over(&self) -> bool {
        !self.1.load(Ordering::Relaxed)
    }
}

#[test]
fn a_mirror_shows_what_there_is() {
    let regions = Regions::new(false, true);
    regions.add(region(&[1], 0, Rights::READ), 1);
    let mirror = Arc::new(Seen::default());
    regions.reflect(&mirror);
    regions.add(region(&[2], 0, Rights::READ), 2);
    assert_eq!(mirror.take(), [('+', 1), ('+', 2)]);
    for change in [
        (|region| region.counted = true) as fn(&mut Region),
        |region| region.counted = false,
        |region| region.endpoint = Some(4),
        |region| region.endpoint = Some(5),
        |region| region.enabled = false,
    ] {
        regions.change(2, change);
    }
    let shown: String = mirror.take().iter().map(|(what, _)| what).collect();
    assert_eq!(shown, "0+0+0");
    regions.remove(1).unwrap();
    assert_eq!(mirror.take(), [('-', 1), ('.', 1)]);
    // Memory in pieces is reached by asking.
    regions.add(region(&[2, 3], 0, Rights::READ), 3);
    assert_eq!(mirror.take(), [('0', 3)]);
    let weak = Arc::downgrade(&mirror);
    drop(mirror);
    assert!(weak.upgrade().is_none());
    regions.remove(2).unwrap();
}

/// A region that a peer does not leave is what it was, and closed when the peer has left.
#[test]
fn a_region_that_is_in_use_stays() {
    let regions = Regions::new(false, true);
    let (mirror, closed) = (Arc::new(Seen::default()), Arc::new(Seen::default()));
    regions.reflect(&mirror);
    regions.reflect(&closed);
    regions.add(region(&[1], 0, Rights::READ), 1);
    regions.add(region(&[1], 0, Rights::READ), 2);
    for seen in [&mirror, &closed] {
        assert_eq!(seen.take(), [('+', 1), ('+', 2)]);
    }
    mirror.1.store(true, Ordering::Relaxed);
    assert_eq!(regions.remove(1), Err(Busy));
    assert_eq!(mirror.take(), [('-', 1), ('.', 1), ('+', 1)]);
    assert!(regions.find(5, 1, 0, 1, Rights::READ).is_ok());
    mirror.1.store(false, Ordering::Relaxed);
    assert_eq!(regions.remove(1), Ok(()));
    assert_eq!(regions.find(5, 1, 0, 1, Rights::READ), Err(Denied::Key));
    // Nor is one closed that a peer is at through an endpoint that is.
    closed.1.store(true, Ordering::Relaxed);
    regions.leave(closed.clone());
    assert_eq!(regions.remove(2), Err(Busy));
    closed.1.store(false, Ordering::Relaxed);
    assert_eq!(regions.remove(2), Ok(()));
    assert_eq!(Arc::strong_count(&closed), 1);
}

/// While a region is being closed it is what it was, but no mirror shows it.
#[test]
fn a_closing_region_is_not_shown() {
    struct Meddler(Weak<Regions>, Seen);
    impl Mirror for Meddler {
        fn show(&self, key: u64, region: &Region) {
            self.1.show(key, region);
        }
        fn hide(&self, key: u64) {
            self.1.hide(key);
        }
        fn settle(&self, key: u64) -> bool {
            let regions = self.0.upgrade().unwrap();
            assert!(regions.find(5, key, 0, 1, Rights::READ).is_ok());
            assert!(regions.change(key, |_| ()));
            regions.reflect(&Arc::new(Meddler(Weak::new(), Seen::default())));
            regions.add(region(&[1], 0, Rights::READ), key + 1).unwrap();
            self.1.settle(key)
        }
        fn is_over(&self) -> bool {
            false
        }
    }
    let regions = Arc::new(Regions::new(false, true));
    let mirror = Arc::new(Meddler(Arc::downgrade(&regions), Seen::default()));
    regions.reflect(&mirror);
    regions.add(region(&[1], 0, Rights::READ), 1).unwrap();
    assert_eq!(regions.remove(1), Ok(()));
    assert_eq!(mirror.1.take(), [('+', 1), ('-', 1), ('+', 2), ('.', 1)]);
}

#[test]
fn only_what_is_allowed_is_found() {
    let regions = Regions::new(false, false);
    regions.add(region(&[4, 6], 100, Rights::READ), 1);
    let mut private = region(&[8], 0, Rights::BOTH);
    private.endpoint = Some(5);
    private.enabled = false;
    regions.add(private, 2);
    let rows = [
        (1, 100, 10, Rights::READ, Ok(10)),
        (1, 103, 2, Rights::READ, Ok(2)),
        (1, 110, 0, Rights::READ, Ok(0)),
        (1, 111, 0, Rights::READ, Err(Denied::Range)),
        (1, 99, 1, Rights::READ, Err(Denied::Range)),
        (1, 109, 2, Rights::READ, Err(Denied::Range)),
        (1, u64::MAX, usize::MAX, Rights::READ, Err(Denied::Range)),
        (1, 100, 1, Rights::WRITE, Err(Denied::Rights)),
        (1, 100, 1, Rights::BOTH, Err(Denied::Rights)),
        (2, 0, 8, Rights::BOTH, Err(Denied::Key)),
        (3, 0, 0, Rights::READ, Err(Denied::Key)),
    ];
    for (key, addr, len, wanted, expected) in rows {
        let found = regions.find(5, key, addr, len, wanted).map(|found| found.memory.len());
        assert_eq!(found, expected, "{key} {addr} {len}");
    }
    assert!(regions.change(2, |region| region.enabled = true));
    assert!(regions.find(5, 2, 0, 8, Rights::BOTH).is_ok());
    assert_eq!(regions.find(6, 2, 0, 8, Rights::BOTH), Err(Denied::Key));
    assert!(!regions.change(9, |_| ()));
}
