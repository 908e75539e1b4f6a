//! Deferred work alone: what waits for a counter, starts in its order, and can be taken back.

use super::*;
use crate::api::cntr::CntrAttr;
use crate::api::messaging::SendCall;
use crate::engine::op::{CompletedOp, Error, Failure, MessageKind, Tell};
use crate::util::user::UserIov;
use core::sync::atomic::AtomicU64;
use std::sync::Mutex;

/// An endpoint that notes what it is asked for, and refuses as often as it is told to.
#[derive(Default)]
struct Noted {
    begun: Mutex<Vec<(u64, Flags, Context)>>,
    refusals: Mutex<Vec<Errno>>,
    failed: Mutex<Vec<(Context, Errno)>>,
}

struct To(Arc<Noted>, usize);

impl AnyEndpoint for To {
    fn begin(&self, call: &Call) -> Result<()> {
        if let Some(refusal) = self.0.refusals.lock().unwrap().pop() {
            return Err(refusal);
        }
        let Call::Send(send, _) = call else {
            panic!("not a send")
        };
        self.0.begun.lock().unwrap().push((send.tag, send.flags, send.context));
        Ok(())
    }

    fn fail(&self, call: &Call, error: Errno, _: Option<&Arc<Cntr>>) {
        self.0.failed.lock().unwrap().push((call.context(), error));
    }

    fn key(&self) -> usize {
        self.1
    }
}

struct Bed {
    deferred: Arc<Deferred>,
    noted: Arc<Noted>,
    trigger: Arc<Cntr>,
    done: Arc<Cntr>,
}

fn cntr() -> Arc<Cntr> {
    let attr = CntrAttr {
        events: FI_CNTR_EVENTS_COMP,
        wait_obj: FI_WAIT_NONE,
        wait_set: None,
        flags: 0,
        locked: true,
    };
    Cntr::open(&attr).ok().unwrap()
}

fn bed() -> Bed {
    Bed {
        deferred: Deferred::new("any", &Arc::new(Memory::new(0, 8, true)), true),
        noted: Arc::default(),
        trigger: cntr(),
        done: cntr(),
    }
}

const FLAGS: u64 = FI_MORE;

impl Bed {
    fn send(&self, threshold: u64, tag: u64, endpoint: usize, flags: u64) -> Work {
        let send = SendCall {
            kind: MessageKind::Tagged,
            dest: 0,
            tag,
            data: None,
            flags: Flags::Call(flags),
            context: 1000 + tag as usize,
        };
        Work {
            trigger: Held::new(&self.trigger),
            threshold,
            name: tag as usize,
            action: Action::Operation {
                endpoint: Box::new(To(self.noted.clone(), endpoint)),
                call: Box::new(Call::Send(send, UserIov::NONE)),
                ending: Ending::Counted(Some(Held::new(&self.done))),
            },
        }
    }

    fn queue(&self, threshold: u64, tag: u64) {
        self.deferred.queue(self.send(threshold, tag, 1, FLAGS)).unwrap();
    }

    fn add(&self, by: u64) {
        self.trigger.add(by);
        self.deferred.run();
    }

    fn tags(&self) -> Vec<u64> {
        self.noted.begun.lock().unwrap().iter().map(|begun| begun.0).collect()
    }

    fn end(&self, which: usize, failure: Option<Error>) -> Completion {
        Completion {
            op: CompletedOp::Send,
            kind: MessageKind::Tagged,
            context: self.noted.begun.lock().unwrap()[which].2,
            tell: Tell::Own,
            len: 0,
            buf: 0,
            tag: 0,
            data: None,
            source: None,
            released: false,
            peeked: false,
            failure: failure.map(|error| Failure { error, overflow: 0 }),
        }
    }
}

#[test]
fn work_starts_by_threshold_and_then_in_order() {
    let bed = bed();
    for (threshold, tag) in [(3, 1), (1, 2), (3, 3), (2, 4), (9, 5)] {
        bed.queue(threshold, tag);
    }
    assert_eq!(bed.tags(), []);
    bed.add(1);
    assert_eq!(bed.tags(), [2]);
    bed.trigger.add_errors(2);
    bed.deferred.run();
    assert_eq!(bed.tags(), [2, 4, 1, 3]);
    bed.queue(3, 6);
    assert_eq!(bed.tags(), [2, 4, 1, 3, 6], "at once");
}

#[test]
fn what_is_refused_for_now_keeps_its_place() {
    let bed = bed();
    for tag in 1..=3 {
        bed.queue(1, tag);
    }
    *bed.noted.refusals.lock().unwrap() = vec![Errno(FI_EAGAIN); 2];
    bed.add(1);
    assert_eq!((bed.tags().len(), bed.deferred.is_due()), (0, true));
    bed.queue(1, 4);
    assert_eq!(bed.tags(), [], "refused again, and not overtaken");
    bed.deferred.run();
    assert_eq!(bed.tags(), [1, 2, 3, 4]);
    assert!(!bed.deferred.is_due());
}

#[test]
fn work_that_cannot_start_is_an_error_of_its_counter() {
    let bed = bed();
    bed.queue(1, 1);
    bed.noted.refusals.lock().unwrap().push(Errno(FI_EMSGSIZE));
    bed.add(1);
    assert_eq!((bed.tags().len(), bed.done.read_errors(), bed.done.read()), (0, 1, 0));
    bed.noted.refusals.lock().unwrap().push(Errno(FI_EMSGSIZE));
    let answer = bed.deferred.queue(bed.send(1, 2, 1, FLAGS));
    assert_eq!(
        (answer, bed.done.read_errors()),
        (Err(Errno(FI_EMSGSIZE)), 1),
        "told at once"
    );
    assert_eq!((bed.trigger.refs().count(), bed.done.refs().count()), (0, 0));
}

/// What the program waits for in a queue must come there, or it waits for ever.
#[test]
fn work_that_cannot_start_is_told_where_it_would_have_ended() {
    let bed = bed();
    for (flags, ending, told) in [
        (FLAGS, Ending::Ordinary, true),
        (FLAGS, Ending::Counted(Some(Held::new(&bed.done))), false),
        (FLAGS | FI_COMPLETION, Ending::Counted(Some(Held::new(&bed.done))), true),
    ] {
        let mut work = bed.send(bed.trigger.read() + 1, 1, 1, flags);
        let Action::Operation { ending: of_work, .. } = &mut work.action else {
            unreachable!()
        };
        *of_work = ending;
        bed.deferred.queue(work).unwrap();
        bed.noted.refusals.lock().unwrap().push(Errno(FI_EMSGSIZE));
        bed.add(1);
        let failed = core::mem::take(&mut *bed.noted.failed.lock().unwrap());
        assert_eq!(failed, vec![(1001, Errno(FI_EMSGSIZE)); usize::from(told)]);
    }
}

#[test]
fn ends_come_back_by_number_once() {
    let bed = bed();
    bed.queue(0, 1);
    bed.deferred
        .queue(bed.send(0, 2, 1, FLAGS | FI_COMPLETION | FI_TRIGGER))
        .unwrap();
    let flags: Vec<Flags> = bed.noted.begun.lock().unwrap().iter().map(|begun| begun.1).collect();
    assert_eq!(flags, [Flags::Own(FLAGS), Flags::Own(FLAGS)]);
    assert_eq!(bed.done.refs().count(), 2, "in use until they end");
    for (which, entry) in [(0, None), (1, Some(1002))] {
        let landed = bed.deferred.landed(&bed.end(which, None)).unwrap();
        assert!(Arc::ptr_eq(landed.counted.unwrap().cntr(), &bed.done));
        assert_eq!(landed.entry, entry);
        assert!(bed.deferred.landed(&bed.end(which, None)).is_none());
    }
    assert_eq!(bed.done.refs().count(), 0);
}

#[test]
fn what_is_taken_back_is_not_done_and_holds_nothing() {
    let bed = bed();
    for tag in 1..=4 {
        bed.queue(1, tag);
    }
    assert_eq!(bed.deferred.cancel(2), Ok(()));
    assert_eq!(bed.deferred.cancel(2), Err(Errno(FI_ENOENT)));
    bed.deferred.flush(Some(&bed.done));
    assert_eq!(bed.trigger.refs().count(), 3);
    bed.add(1);
    assert_eq!(bed.tags(), [1, 3, 4]);
    bed.queue(5, 6);
    bed.deferred.flush(None);
    bed.add(9);
    assert_eq!((bed.tags(), bed.trigger.refs().count()), (vec![1, 3, 4], 0));
}

#[test]
fn an_endpoint_that_closes_takes_its_work_along() {
    let bed = bed();
    bed.queue(0, 1);
    bed.deferred.queue(bed.send(0, 2, 2, FLAGS)).unwrap();
    bed.queue(1, 3);
    bed.deferred.queue(bed.send(1, 4, 2, FLAGS)).unwrap();
    bed.deferred.leave(1);
    bed.add(1);
    assert_eq!(bed.tags(), [1, 2, 4]);
    assert!(bed.deferred.landed(&bed.end(0, None)).is_none());
    assert!(bed.deferred.landed(&bed.end(1, None)).is_some());
}

#[test]
fn counters_start_each_other() {
    let bed = bed();
    let links: Vec<Arc<Cntr>> = (0..=100).map(|_| cntr()).collect();
    for pair in links.windows(2) {
        let work = Work {
            trigger: Held::new(&pair[0]),
            threshold: 2,
            name: 0,
            action: Action::Count {
                cntr: Held::new(&pair[1]),
                change: Change::Add(2),
            },
        };
        bed.deferred.queue(work).unwrap();
    }
    links[0].add(1);
    bed.deferred.run();
    assert_eq!(links[1].read(), 0);
    links[0].add(1);
    bed.deferred.run();
    assert_eq!(links[100].read(), 2);
    assert!(links.iter().all(|link| link.refs().count() == 0));
}

#[test]
fn nothing_is_lost_or_done_twice_between_threads() {
    const EACH: u64 = 2000;
    let bed = bed();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let bed = &bed;
            scope.spawn(move || (0..EACH).for_each(|at| bed.queue(at + 1, thread * EACH + at)));
        }
        for _ in 0..2 {
            let bed = &bed;
            scope.spawn(move || (0..EACH / 2).for_each(|_| bed.add(1)));
        }
    });
    bed.deferred.run();
    let mut tags = bed.tags();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..2 * EACH));
    assert!(!bed.deferred.is_due());
}

/// A counter is stepped by one thread while another queues the work that waits for it, or takes other work back.
#[test]
fn no_step_is_missed_while_work_is_queued_or_taken_back() {
    const ROUNDS: u64 = 20_000;
    let bed = bed();
    let [begun, stepped] = [const { AtomicU64::new(0) }; 2];
    let wait_for = |word: &AtomicU64, round: u64| {
        while word.load(Ordering::Acquire) < round {
            std::hint::spin_loop();
        }
    };
    let linger = |turns: u64| (0..turns).for_each(|_| std::hint::spin_loop());
    let mut lost = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_for(&begun, round);
                linger(round % 50);
                bed.add(1);
                stepped.store(round, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            if round % 2 == 0 {
                begun.store(round, Ordering::Release);
                linger(round / 50 % 50);
                bed.queue(round, round);
            } else {
                bed.queue(round, round);
                begun.store(round, Ordering::Release);
                linger(round / 50 % 50);
                assert_eq!(bed.deferred.cancel(0), Err(Errno(FI_ENOENT)));
            }
            wait_for(&stepped, round);
            let begun = bed.noted.begun.lock().unwrap().len() as u64;
            if begun < round {
                lost += 1;
                bed.add(0);
                bed.deferred.due.set();
                bed.deferred.run();
            }
        }
    });
    assert_eq!((lost, bed.deferred.is_due()), (0, false), "of {ROUNDS} rounds");
}
