//! Which members fi_poll names: those with entries, errors or a changed count, once each. And that it drives endpoints.

use super::*;
use crate::abi::types::*;
use crate::api::cntr::{Cntr, CntrAttr};
use crate::api::cq::entry::{Entry, ErrorEntry};
use crate::api::cq::{Cq, CqAttr};
use crate::api::progress::tests::Worker;

fn cq() -> Arc<Cq> {
    let attr = CqAttr {
        size: 0,
        flags: 0,
        format: FI_CQ_FORMAT_CONTEXT,
        wait_obj: FI_WAIT_NONE,
        wait_cond: FI_CQ_COND_NONE,
        wait_set: None,
        managed: true,
        locked: false,
    };
    Cq::open(&attr).unwrap()
}

fn cntr() -> Arc<Cntr> {
    let attr = CntrAttr {
        events: FI_CNTR_EVENTS_COMP,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
        flags: 0,
        locked: false,
    };
    Cntr::open(&attr).unwrap()
}

fn poll(set: &PollSet, room: usize) -> Vec<usize> {
    let mut contexts = vec![0; room];
    let told = set.poll(&mut contexts);
    contexts.truncate(told);
    contexts
}

#[test]
fn those_with_news_are_told() {
    assert_eq!(PollSet::open(1).err(), Some(Errno(FI_EINVAL)));
    let set = PollSet::open(0).unwrap();
    let (one, two, count) = (cq(), cq(), cntr());
    let as_one: Arc<dyn Waitable> = one.clone();
    set.add(&as_one, 11);
    set.add(&as_one, 99);
    set.add(&(two.clone() as Arc<dyn Waitable>), 22);
    set.add(&(count.clone() as Arc<dyn Waitable>), 33);
    assert_eq!(poll(&set, 9), [0; 0]);
    one.post(&Entry::default());
    two.post_error(ErrorEntry::default());
    count.complete(0);
    assert_eq!(poll(&set, 0), [0; 0]);
    assert_eq!(poll(&set, 2), [11, 22], "as many as there is room for");
    assert_eq!(poll(&set, 9), [11, 22, 33]);
    assert_eq!(poll(&set, 9), [11, 22], "a counter is told once for each change");
    one.read_each(1, |_| ()).unwrap();
    two.read_error(|_| ()).unwrap();
    count.fail();
    assert_eq!(poll(&set, 9), [33]);
    count.set(9);
    count.add(4);
    assert_eq!(poll(&set, 9), [0; 0], "the program's own changes");
    for change in [Cntr::add, Cntr::set] {
        count.complete(0);
        change(&count, 1);
        assert_eq!(poll(&set, 9), [33], "what came before the program's own change");
        change(&count, 7);
        count.complete(0);
        assert_eq!(poll(&set, 9), [33], "what came behind it");
    }
    one.post(&Entry::default());
    two.post(&Entry::default());
    set.remove(&as_one);
    assert_eq!(poll(&set, 9), [22]);
    drop(two);
    assert_eq!(poll(&set, 9), [0; 0]);
    assert_eq!(set.refs().count(), 0);
}

#[test]
fn polling_drives_the_members() {
    let set = PollSet::open(0).unwrap();
    let queue = cq();
    let inner = Arc::downgrade(&queue);
    let endpoint = Worker::new(move || inner.upgrade().unwrap().post(&Entry::default()));
    queue.attach(endpoint.clone());
    set.add(&(queue.clone() as Arc<dyn Waitable>), 7);
    endpoint.hand_in(1);
    assert_eq!(poll(&set, 1), [7]);
}
