//! Order, errors, overruns and sleepers of an event queue, and what a closed object leaves in it. Events of sizes that
//! proptest makes up come out as they went in.

use super::*;
use crate::abi::types::*;
use crate::sys::epoll::Epoll;
use proptest::prelude::*;

const EAGAIN: Errno = Errno(FI_EAGAIN);
const EAVAIL: Errno = Errno(FI_EAVAIL as c_int);

fn attr(size: usize, flags: u64, wait_obj: fi_wait_obj) -> EqAttr {
    EqAttr {
        size,
        flags,
        wait_obj,
        wait_set: None,
    }
}

fn open(wait_obj: fi_wait_obj) -> Arc<Eq> {
    Eq::open(&attr(0, FI_WRITE, wait_obj)).unwrap()
}

/// The next event's number and bytes.
fn read(eq: &Eq, flags: u64, room: usize) -> Result<(u32, Vec<u8>)> {
    let mut seen = (0, Vec::new());
    let len = eq.read(flags, Some(room), |event, bytes| seen = (event, bytes.to_vec()))?;
    assert_eq!(len, seen.1.len());
    Ok(seen)
}

fn error(data: u64) -> ErrorEvent {
    ErrorEvent {
        data,
        err: 5,
        ..ErrorEvent::default()
    }
}

#[test]
fn attributes_are_checked() {
    let bad = [attr(1, 1, FI_WAIT_NONE), attr(1, 0, FI_WAIT_SET), attr(1, 0, 7)];
    for attr in bad {
        assert_eq!(Eq::open(&attr).err(), Some(Errno(FI_EINVAL)));
    }
    let eq = Eq::open(&attr(1, FI_AFFINITY, FI_WAIT_NONE)).unwrap();
    assert_eq!(eq.write(FI_NOTIFY, &[1]), Err(Errno(FI_EINVAL)));
    assert_eq!(eq.sread(0, Some(8), 0, |_, _| ()), Err(Errno(FI_ENOSYS)));
}

proptest! {
    #[test]
    fn events_of_any_size_come_out_in_order(sizes in prop::collection::vec(0usize..300, 0..40)) {
        let eq = open(FI_WAIT_NONE);
        for (n, size) in sizes.iter().enumerate() {
            prop_assert_eq!(eq.write(FI_NOTIFY + n as u32 + 100, &vec![n as u8; *size]), Ok(*size));
        }
        for (n, size) in sizes.iter().enumerate() {
            let expected = Ok((FI_NOTIFY + n as u32 + 100, vec![n as u8; *size]));
            if *size > 0 {
                prop_assert_eq!(read(&eq, 0, size - 1), Err(Errno(FI_ETOOSMALL as c_int)));
            }
            prop_assert_eq!(&read(&eq, FI_PEEK, 300), &expected);
            prop_assert_eq!(&read(&eq, 0, *size), &expected);
        }
        prop_assert_eq!(read(&eq, 0, 300), Err(EAGAIN));
    }
}

#[test]
fn errors_stand_in_line() {
    let eq = open(FI_WAIT_NONE);
    eq.post_entry(FI_AV_COMPLETE, 1, 2, 3).unwrap();
    eq.post_error(error(1)).unwrap();
    eq.post_entry(FI_AV_COMPLETE, 1, 2, 4).unwrap();
    assert_eq!(eq.read_error(0, |_| ()), Err(EAGAIN));
    assert_eq!(read(&eq, 0, 24), Ok((FI_AV_COMPLETE, entry_bytes(1, 2, 3).to_vec())));
    for flags in [FI_PEEK, FI_PEEK, 0] {
        assert_eq!(read(&eq, 0, 24), Err(EAVAIL));
        let mut seen = None;
        assert_eq!(eq.read_error(flags, |error| seen = Some(error.clone())), Ok(48));
        assert_eq!(seen, Some(error(1)));
    }
    assert_eq!(eq.read_error(0, |_| ()), Err(EAGAIN));
    assert_eq!(
        eq.read(FI_PEEK, None, |event, bytes| assert_eq!(
            (event, bytes.len()),
            (FI_AV_COMPLETE, 0)
        )),
        Ok(0)
    );
    assert_eq!(read(&eq, 0, 24), Ok((FI_AV_COMPLETE, entry_bytes(1, 2, 4).to_vec())));
}

#[test]
fn an_overrun_is_told_after_what_was_kept() {
    let eq = Eq::with_limit(&attr(3, FI_WRITE, FI_WAIT_NONE), 2).unwrap();
    let overrun = Errno(FI_EOVERRUN as c_int);
    for n in 0..3 {
        assert_eq!(eq.write(n, &[]), Ok(0), "size is the least there is room for");
    }
    assert_eq!(
        (eq.write(3, &[]), eq.post_error(error(0))),
        (Err(overrun), Err(overrun))
    );
    for n in 0..3 {
        assert_eq!(read(&eq, 0, 0), Ok((n, vec![])));
        assert_eq!(eq.write(4, &[]), Err(overrun));
    }
    for _ in 0..2 {
        assert_eq!(read(&eq, 0, 0), Err(EAVAIL));
        assert_eq!(
            eq.read_error(0, |error| assert_eq!(error.err, FI_EOVERRUN as c_int)),
            Ok(48)
        );
    }
}

#[test]
fn a_closed_object_is_forgotten() {
    let eq = open(FI_WAIT_NONE);
    eq.post_entry(FI_AV_COMPLETE, 1, 0, 0).unwrap();
    eq.post_entry(FI_AV_COMPLETE, 2, 0, 0).unwrap();
    eq.post_error(ErrorEvent { fid: 1, ..error(0) }).unwrap();
    eq.write(FI_NOTIFY, &[9]).unwrap();
    assert_eq!(eq.forget(0).len(), 0);
    let forgotten = eq.forget(1);
    assert_eq!(forgotten.iter().map(|event| event.fid).collect::<Vec<_>>(), [1]);
    assert_eq!(read(&eq, 0, 24), Ok((FI_AV_COMPLETE, entry_bytes(2, 0, 0).to_vec())));
    assert_eq!(read(&eq, 0, 24), Ok((FI_NOTIFY, vec![9])));
}

#[test]
fn the_descriptor_follows_trywait() {
    let eq = open(FI_WAIT_FD);
    let Ok(Handle::Fd(fd)) = eq.handle() else {
        panic!("no descriptor")
    };
    let epoll = Epoll::new().unwrap();
    epoll.add(fd).unwrap();
    let readable = || epoll.wait(0).unwrap() == 1;
    assert_eq!((eq.trywait(), readable()), (Ok(()), false));
    eq.write(FI_NOTIFY, &[]).unwrap();
    assert_eq!((readable(), eq.trywait()), (true, Err(EAGAIN)));
    assert!(read(&eq, 0, 0).is_ok());
    assert_eq!((eq.trywait(), readable()), (Ok(()), false));
    eq.post_error(error(0)).unwrap();
    assert_eq!((readable(), eq.trywait()), (true, Err(EAGAIN)));
}

#[test]
fn sleepers_get_each_event_once() {
    for object in [FI_WAIT_UNSPEC, FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD] {
        let eq = open(object);
        assert_eq!(eq.sread(0, Some(8), 1, |_, _| ()), Err(EAGAIN));
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut sum = 0u64;
                        loop {
                            let mut number = 0;
                            eq.sread(0, Some(8), -1, |event, _| number = event).unwrap();
                            if number == 0 {
                                return sum;
                            }
                            sum += u64::from(number);
                        }
                    })
                })
                .collect();
            for n in (1..=200).chain([0, 0]) {
                eq.write(n, &[]).unwrap();
                std::thread::yield_now();
            }
            assert_eq!(
                readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>(),
                200 * 201 / 2
            );
        });
    }
}
