//! What is posted and completed: operations as requests, what a card cannot do, and how failures end what is posted.

use super::*;

#[test]
fn operations_become_requests() {
    let mut bed = Bed::connected();
    // Short bytes travel in the request, whatever memory they are in; long ones by their key.
    assert_eq!(bed.send(16, 1), Ok(()));
    assert_eq!(bed.send(17, 2), Ok(()));
    assert_eq!(bed.send(1, 9), Err(Refused::Again), "the queue has room for two");
    let sends = core::mem::take(&mut bed.device.script().sends);
    assert_eq!((sends[0].0.inline, sends[0].1[0].key), (true, 0));
    assert_eq!(
        (sends[1].0.inline, sends[1].1[0].key, sends[1].1[0].len),
        (false, 1, 17)
    );
    assert_eq!(bed.end.unfinished(), (2, 0));
    // The second that ends tells of both.
    bed.device.completes(sends[1].0.id, DoneKind::Other, None);
    assert_eq!(bed.ends(), [(1, None), (2, None)]);

    let write = op::Rma {
        data: Some(0x1_0000_0007),
        fence: true,
        ..rma_of(op::Access::Write, bed.part(32), 9)
    };
    assert_eq!(bed.end.rma(&write, HEARD), Ok(()));
    assert_eq!(bed.end.rma(&rma_of(op::Access::Read, bed.part(8), 9), HEARD), Ok(()));
    let sends = core::mem::take(&mut bed.device.script().sends);
    let (write, read) = (sends[0].0, sends[1].0);
    assert_eq!(
        (write.opcode, write.remote, write.data, write.fence),
        (Opcode::Write, (0x1000, 9), Some(7), true)
    );
    // A read cannot be inline, however short.
    assert_eq!((read.opcode, read.inline, sends[1].1[0].key), (Opcode::Read, false, 1));
    bed.device.completes(write.id, DoneKind::Other, None);
    bed.device.completes(read.id, DoneKind::Other, None);
    let ops: Vec<_> = bed.poll().iter().map(|end| (end.op, end.len)).collect();
    let rma = |access, len| (CompletedOp::Rma(access), len);
    assert_eq!(ops, [rma(op::Access::Write, 32), rma(op::Access::Read, 8)]);
}

#[test]
fn receives_end_with_messages_and_with_written_data() {
    let mut bed = Bed::connected();
    assert_eq!((bed.recv(1), bed.recv(2)), (Ok(()), Ok(())));
    assert_eq!(bed.recv(3), Err(Refused::Again));
    let ids: Vec<u64> = bed.device.script().receives.iter().map(|(id, _)| *id).collect();
    bed.device.completes(ids[0], DoneKind::Received, None);
    bed.device.completes(ids[1], DoneKind::Written, None);
    let told = bed.poll();
    assert_eq!(
        (told[0].op, told[0].context, told[0].len, told[0].data),
        (CompletedOp::Recv, 1, 5, None)
    );
    let written = CompletedOp::Target {
        access: op::Access::Write,
        key: 0,
        atomic: false,
    };
    assert_eq!(
        (told[1].op, told[1].context, told[1].len, told[1].data),
        (written, 2, 5, Some(77))
    );
    assert_eq!(bed.end.unfinished(), (0, 0));
}

#[test]
fn what_a_card_cannot_do_is_refused() {
    let mut bed = Bed::connected();
    let body = bed.part(8);
    let send = send_of(body, 1);
    let tagged = op::Send {
        kind: MessageKind::Tagged,
        ..send
    };
    let delivered = op::Send {
        level: CompletionLevel::Delivery,
        ..send
    };
    assert_eq!(bed.end.send(&tagged, HEARD), Err(Refused::Unsupported));
    assert_eq!(bed.end.send(&delivered, HEARD), Err(Refused::Unsupported));
    let injected = op::Send {
        inject: true,
        ..send_of(bed.part(17), 1)
    };
    assert_eq!(bed.end.send(&injected, HEARD), Err(Refused::TooLong));
    let many = op::Recv {
        multi: Some(1),
        ..recv_of(body, 1)
    };
    assert_eq!(bed.end.recv(&many), Err(Refused::Unsupported));
    let three = Lent::new(&[1, 1, 1], 0);
    assert_eq!(bed.end.send(&send_of(three.iov(), 1), HEARD), Err(Refused::Invalid));
    assert_eq!(bed.end.recv(&recv_of(three.iov(), 1)), Err(Refused::Invalid));
    // Its keys have 32 bits, and it takes one piece.
    assert_eq!(
        bed.end.rma(&rma_of(op::Access::Read, body, 1 << 32), HEARD),
        Err(Refused::Invalid)
    );
    let part = RemotePart {
        addr: 0,
        len: 4,
        key: 1,
    };
    let pieces = op::Rma {
        remote: RemoteIov::new([part, part]).unwrap(),
        ..rma_of(op::Access::Read, body, 1)
    };
    assert_eq!(bed.end.rma(&pieces, HEARD), Err(Refused::Invalid));
    // The memory is nobody's.
    let strange = Lent::new(&[32], 0);
    assert_eq!(bed.end.send(&send_of(strange.iov(), 1), HEARD), Err(Refused::Invalid));
    assert_eq!(bed.end.recv(&recv_of(strange.iov(), 1)), Err(Refused::Invalid));
    assert_eq!(bed.end.unfinished(), (0, 0));
    assert!(bed.device.script().sends.is_empty() && bed.device.script().receives.is_empty());
}

#[test]
fn posting_can_fail() {
    for (errno, refused) in [(libc::ENOMEM, Refused::Again), (libc::EINVAL, Refused::Invalid)] {
        let mut bed = Bed::connected();
        bed.device.script().fails = Some(("send", errno));
        assert_eq!(bed.send(8, 1), Err(refused));
        bed.device.script().fails = Some(("receive", errno));
        assert_eq!(bed.recv(1), Err(refused));
        assert_eq!(bed.end.unfinished(), (0, 0));
    }
}

#[test]
fn a_failed_operation_ends_the_connection() {
    let rows = [
        (Failure::NoAnswer, Error::Unreachable(Unreached::TimedOut)),
        (Failure::NoAccess, Error::NoRights),
        (Failure::NotRegistered, Error::NotRegistered),
        (Failure::TooLong, Error::Truncated),
        (Failure::NotReady, Error::Broken),
        (Failure::Other(7), Error::Protocol),
    ];
    for (failure, error) in rows {
        let mut bed = Bed::connected();
        assert_eq!((bed.recv(1), bed.send(8, 2), bed.send(8, 3)), (Ok(()), Ok(()), Ok(())));
        let first = bed.device.script().sends.remove(0).0.id;
        bed.device.completes(first, DoneKind::Other, Some(failure));
        bed.device.flushes();
        let gone = Some(Error::PeerGone);
        assert_eq!(bed.ends(), [(2, Some(error)), (3, gone), (1, gone)], "{failure:?}");
        assert_eq!((bed.end.happened(), bed.end.happened()), (Some(Happened::Closed), None));
        assert!(bed.device.script().asked.contains(&"disconnect"));
    }
}

#[test]
fn a_broken_completion_queue_ends_everything() {
    let mut bed = Bed::connected();
    assert_eq!((bed.recv(1), bed.send(8, 2)), (Ok(()), Ok(())));
    bed.device.script().fails = Some(("poll", libc::EIO));
    let gone = Some(Error::PeerGone);
    assert_eq!(bed.ends(), [(2, gone), (1, gone)]);
    assert_eq!(bed.end.happened(), Some(Happened::Closed));
}

#[test]
fn sleep_sees_what_came_before() {
    let mut bed = Bed::connected();
    assert!(bed.end.arm());
    assert_eq!(bed.recv(1), Ok(()));
    let id = bed.device.script().receives[0].0;
    bed.device.completes(id, DoneKind::Received, None);
    assert!(!bed.end.arm());
    assert!(!bed.end.arm(), "until it was reported");
    assert_eq!(bed.ends(), [(1, None)]);
    assert!(bed.end.arm());
    bed.device.script().fails = Some(("notify", libc::EIO));
    assert!(!bed.end.arm(), "nobody would wake it");
}
