//! Which requests tell of their success, what is given to the device by one call, and what becomes of both when the
//! connection ends.

use super::*;

const SILENT: PostHint = PostHint {
    more: false,
    silent: true,
};

const MORE: PostHint = PostHint {
    more: true,
    silent: false,
};

/// Connected, with room for so many sends.
fn bed(sends: u32) -> Bed {
    let mut bed = Bed::new();
    bed.end.config.sizes.sends = sends;
    bed.accept();
    bed
}

impl Bed {
    fn send_so(&mut self, len: usize, context: usize, hint: PostHint) -> Result<(), Refused> {
        let send = send_of(self.part(len), context);
        self.end.send(&send, hint)
    }

    /// Which of the requests that the device has are signalled.
    fn signaled(&self) -> Vec<bool> {
        let script = self.device.script();
        script.sends.iter().map(|(work, _)| work.signaled).collect()
    }

    fn id(&self, at: usize) -> u64 {
        self.device.script().sends[at].0.id
    }

    /// How many requests the device has, and by how many calls they came.
    fn given(&self) -> (usize, usize) {
        let script = self.device.script();
        let calls = script.asked.iter().filter(|call| **call == "send").count();
        (script.sends.len(), calls)
    }
}

#[test]
fn of_silent_requests_some_are_signalled() {
    let mut bed = bed(8);
    for context in 1..=8 {
        assert_eq!(bed.send_so(8, context, SILENT), Ok(()));
    }
    assert_eq!(bed.signaled(), [false, true, false, true, false, true, false, true]);
    assert_eq!(bed.send_so(8, 9, SILENT), Err(Refused::Again));
    // One that is signalled gives back the places of those before it, and they are told as well.
    bed.device.completes(bed.id(3), DoneKind::Other, None);
    assert_eq!(bed.ends(), [(1, None), (2, None), (3, None), (4, None)]);
    assert_eq!(bed.end.unfinished(), (4, 0));
    // One that somebody wants to hear of begins the count anew.
    assert_eq!(bed.send(8, 9), Ok(()));
    assert_eq!(bed.send_so(8, 10, SILENT), Ok(()));
    assert_eq!(bed.signaled()[8..], [true, false]);
}

#[test]
fn a_queue_too_short_for_silence_signals_all() {
    let mut bed = bed(2);
    assert_eq!((bed.send_so(8, 1, SILENT), bed.send_so(8, 2, SILENT)), (Ok(()), Ok(())));
    assert_eq!(bed.signaled(), [true, true]);
}

#[test]
fn a_silent_request_that_fails_is_named() {
    let mut bed = bed(100);
    for context in 1..=4 {
        assert_eq!(bed.send_so(8, context, SILENT), Ok(()));
    }
    bed.device
        .completes(bed.id(1), DoneKind::Other, Some(Failure::NoAccess));
    let gone = Some(Error::PeerGone);
    assert_eq!(bed.ends(), [(1, None), (2, Some(Error::NoRights))]);
    bed.device.script().sends.drain(..2);
    bed.device.flushes();
    assert_eq!(bed.ends(), [(3, gone), (4, gone)]);
    assert_eq!(bed.end.happened(), Some(Happened::Closed));
}

#[test]
fn a_mark_tells_of_silent_requests_at_the_end() {
    let mut bed = bed(100);
    assert_eq!((bed.send_so(8, 1, SILENT), bed.send_so(8, 2, SILENT)), (Ok(()), Ok(())));
    bed.device.tells(EventKind::Disconnected, b"");
    assert!(!bed.end.arm());
    assert_eq!(
        (bed.ends(), bed.end.happened()),
        (Vec::new(), None),
        "nothing says that they are done"
    );
    let (mark, pieces) = bed.device.script().sends[2].clone();
    assert_eq!((mark.opcode, mark.signaled, pieces.len()), (Opcode::Send, true, 0));
    // The device had done both; only the mark comes back.
    bed.device.completes(mark.id, DoneKind::Other, Some(Failure::Flushed));
    assert_eq!(bed.ends(), [(1, None), (2, None)]);
    assert_eq!((bed.end.happened(), bed.end.happened()), (Some(Happened::Closed), None));
}

#[test]
fn no_mark_goes_where_the_last_request_tells() {
    let mut bed = bed(100);
    assert_eq!((bed.send_so(8, 1, SILENT), bed.send(8, 2)), (Ok(()), Ok(())));
    bed.end.shutdown();
    assert_eq!(bed.given(), (2, 2));
}

#[test]
fn without_a_mark_silent_requests_end_all_the_same() {
    let mut bed = bed(100);
    assert_eq!((bed.recv(1), bed.send_so(8, 2, SILENT)), (Ok(()), Ok(())));
    bed.device.script().fails = Some(("send", libc::EINVAL));
    bed.end.shutdown();
    assert_eq!(bed.ends(), [(2, Some(Error::PeerGone))]);
    assert_eq!(bed.end.unfinished(), (0, 1));
    bed.device.flushes();
    assert_eq!(bed.ends(), [(1, Some(Error::PeerGone))]);
    assert_eq!(bed.end.unfinished(), (0, 0));
}

#[test]
fn a_list_has_one_doorbell() {
    let mut bed = bed(100);
    for context in 1..=3 {
        assert_eq!(bed.send_so(20, context, MORE), Ok(()));
    }
    let write = rma_of(op::Access::Write, bed.part(32), 9);
    assert_eq!(bed.end.rma(&write, MORE), Ok(()));
    assert_eq!((bed.given(), bed.end.unfinished()), ((0, 0), (4, 0)));
    assert_eq!(bed.send_so(20, 5, HEARD), Ok(()));
    assert_eq!(bed.given(), (5, 1));
    let ordered: Vec<bool> = (1..5).map(|at| bed.id(at - 1) < bed.id(at)).collect();
    assert_eq!(ordered, [true; 4], "in the order of the calls");
    bed.device.completes(bed.id(4), DoneKind::Other, None);
    assert_eq!(bed.ends().len(), 5);
}

#[test]
fn who_promised_more_and_sends_none_is_not_kept_waiting() {
    let mut bed = bed(100);
    assert_eq!(bed.send_so(8, 1, MORE), Ok(()));
    assert_eq!((bed.poll(), bed.given()), (Vec::new(), (1, 1)));
    assert_eq!(bed.send_so(8, 2, MORE), Ok(()));
    assert!(bed.end.arm());
    assert_eq!(bed.given(), (2, 2));
    // A list that grows long goes by itself, and so does what may not stay in the caller's memory.
    for context in 3..19 {
        assert_eq!(bed.send_so(8, context, MORE), Ok(()));
    }
    assert_eq!(bed.given(), (18, 3));
    let injected = op::Send {
        inject: true,
        ..send_of(bed.part(8), 19)
    };
    assert_eq!(bed.end.send(&injected, MORE), Ok(()));
    assert_eq!(bed.given(), (19, 4));
}

#[test]
fn a_full_queue_takes_no_more_and_gives_what_it_held() {
    let mut bed = bed(2);
    assert_eq!((bed.send_so(8, 1, MORE), bed.send_so(8, 2, MORE)), (Ok(()), Ok(())));
    assert_eq!(bed.given(), (0, 0));
    assert_eq!(bed.send_so(8, 3, MORE), Err(Refused::Again));
    assert_eq!(bed.given(), (2, 1));
}

#[test]
fn what_a_device_has_no_room_for_stays_in_its_place() {
    let mut bed = bed(100);
    for context in 1..=3 {
        assert_eq!(bed.send_so(8, context, MORE), Ok(()));
    }
    // Numbers are even for sends, and the accept took none.
    bed.device.script().refuses = Some((4, libc::ENOMEM));
    assert_eq!(bed.send_so(8, 4, HEARD), Ok(()));
    assert_eq!(bed.given(), (1, 1));
    assert_eq!(bed.poll(), []);
    let ids: Vec<u64> = (0..4).map(|at| bed.id(at)).collect();
    assert_eq!((ids, bed.given()), (vec![2, 4, 6, 8], (4, 2)));
}

#[test]
fn what_a_device_refuses_fails_by_itself() {
    let mut bed = bed(100);
    for context in 1..=2 {
        assert_eq!(bed.send_so(8, context, PostHint { silent: true, ..MORE }), Ok(()));
    }
    bed.device.script().refuses = Some((6, libc::EINVAL));
    assert_eq!(bed.send_so(8, 3, HEARD), Ok(()));
    assert_eq!(bed.device.script().refused, [6]);
    assert!(!bed.end.arm(), "its failure is to be told");
    assert_eq!(bed.ends(), [(3, Some(Error::OutOfRange))]);
    assert_eq!(bed.end.unfinished(), (2, 0));
    // Now silent ones are the last.
    bed.end.shutdown();
    bed.device.completes(bed.id(2), DoneKind::Other, Some(Failure::Flushed));
    assert_eq!(bed.ends(), [(1, None), (2, None)]);
}

#[test]
fn what_is_held_ends_with_the_connection() {
    let mut bed = bed(100);
    assert_eq!(bed.send_so(8, 1, MORE), Ok(()));
    bed.device.script().fails = Some(("send", libc::ENOMEM));
    bed.end.shutdown();
    assert_eq!(bed.ends(), [(1, Some(Error::PeerGone))]);
    assert_eq!(bed.end.unfinished(), (0, 0));
}
