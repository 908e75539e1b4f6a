//! Receives that both ends take from one context.

use super::*;

#[test]
fn a_shared_context_serves_endpoints_made_for_it() {
    let bed = bed_with(FI_SHARED_CONTEXT);
    let [a, b] = &bed.ends;
    let context = DirectSharedRx::new(&bed.domain, &Default::default(), CardReceives::new(Pool::default()));
    assert_eq!(a.enable(), Err(Errno(FI_EOPBADSTATE as i32)), "nothing is bound yet");
    assert_eq!(a.bind_srx(&"no context"), Err(Errno(FI_EINVAL)));
    assert_eq!((a.bind_srx(&context), b.bind_srx(&context)), (Ok(()), Ok(())));
    assert_eq!(a.bind_srx(&context), Err(Errno(FI_EINVAL)), "once");
    connect(a, b"b\0", b"?").unwrap();
    accept(b, b"yes").unwrap();
    Progress::progress(&**a);
    let into = Lent::new(&[8], 0);
    let recv = recv_call(7);
    assert_eq!(context.recv(&recv, &into.iov()), Ok(()));
    assert_eq!(context.unfinished(), (0, 1));
    let peek = RecvCall {
        flags: Flags::Call(FI_PEEK),
        ..recv
    };
    assert_eq!(context.recv(&peek, &into.iov()), Err(Errno(FI_EOPNOTSUPP).into()));
    assert_eq!(a.send(&call(1), &iov(b"12345678")), Ok(()));
    assert_eq!(completions(&bed.cq), [(1, 8, 0), (7, 8, 0)]);
    assert_eq!(into.bytes(), b"12345678");
    assert_eq!(context.close(), Err(Errno(FI_EBUSY)), "two endpoints use it");
    shutdown(a).unwrap();
    for end in &bed.ends {
        assert!(bed.domain.close().is_err());
        end.close().unwrap();
    }
    assert_eq!((context.close(), bed.domain.close()), (Ok(()), Ok(())));
}

/// What came by a connection has taken receives of others, and is told though nobody has looked before it is closed.
#[test]
fn a_closed_endpoint_reports_the_receives_that_it_has_taken() {
    let bed = bed_with(FI_SHARED_CONTEXT);
    let [a, b] = &bed.ends;
    let context = DirectSharedRx::new(&bed.domain, &Default::default(), CardReceives::new(Pool::default()));
    assert_eq!((a.bind_srx(&context), b.bind_srx(&context)), (Ok(()), Ok(())));
    connect(a, b"b\0", b"?").unwrap();
    accept(b, b"yes").unwrap();
    Progress::progress(&**a);
    let into = Lent::new(&[8], 0);
    let recv = recv_call(7);
    assert_eq!(context.recv(&recv, &into.iov()), Ok(()));
    assert_eq!(a.send(&call(1), &iov(b"12345678")), Ok(()));
    b.close().unwrap();
    assert_eq!(completions(&bed.cq), [(1, 8, 0), (7, 8, 0)]);
    a.close().unwrap();
    assert_eq!((context.close(), bed.domain.close()), (Ok(()), Ok(())));
}

/// One end's queue takes only what asks for it. It is the context's counter that counts the other's receives.
#[test]
fn each_end_is_told_of_shared_receives_as_it_bound_its_queue() {
    let bed = bed_with(FI_SHARED_CONTEXT);
    let [a, b] = &bed.ends;
    let context = DirectSharedRx::new(&bed.domain, &Default::default(), CardReceives::new(Pool::default()));
    let (quiet, counted) = (queue(), counter());
    context.bind_cntr(&counted, FI_RECV).unwrap();
    let before = b.with_state(|state| core::mem::take(&mut state.bindings));
    before.detach(&b.as_progress());
    b.bind_eq(&bed.eq);
    b.bind_cq(&quiet, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)
        .unwrap();
    assert_eq!((a.bind_srx(&context), b.bind_srx(&context)), (Ok(()), Ok(())));
    connect(a, b"b\0", b"?").unwrap();
    accept(b, b"yes").unwrap();
    Progress::progress(&**a);
    let into = Lent::new(&[8], 0);
    for flags in [0, FI_COMPLETION] {
        let recv = RecvCall {
            flags: Flags::Call(flags),
            ..recv_call(7 + flags as usize)
        };
        assert_eq!(context.recv(&recv, &into.iov()), Ok(()));
        assert_eq!(a.send(&call(1), &iov(b"12345678")), Ok(()));
        assert_eq!(completions(&bed.cq), [(1, 8, 0)]);
    }
    assert_eq!(completions(&quiet), [(7 + FI_COMPLETION as usize, 8, 0)]);
    assert_eq!(context.recv(&recv_call(9), &into.iov()), Ok(()));
    assert_eq!(b.send(&call(1), &iov(b"12345678")), Ok(()));
    assert_eq!(completions(&bed.cq), [(9, 8, 0)]);
    assert_eq!(counted.read(), 3);
}

#[test]
fn an_endpoint_with_receives_of_its_own_takes_no_shared_ones() {
    let bed = bed();
    let context = DirectSharedRx::new(&bed.domain, &Default::default(), CardReceives::new(Pool::default()));
    assert_eq!(bed.ends[0].bind_srx(&context), Err(Errno(FI_EINVAL)));
    assert_eq!(context.close(), Ok(()));
    bed.close();
}
