//! Who hears what of a connection, and when.

use super::*;

const GONE: c_int = -FI_ENOTCONN;

#[test]
fn a_connection_is_made_and_ended() {
    let program = Program::new();
    let pep = program.listening();
    let [a, b] = program.pair(pep);
    assert_eq!(peer_of(a), Ok(name_of(pep.cast())));
    assert_eq!(peer_of(b), Ok(name_of(a.cast())));
    // SAFETY: a live endpoint.
    assert_eq!(unsafe { fi_shutdown(a, 0) }, 0);
    for ep in [a, b] {
        let heard = program.next();
        assert_eq!((heard.event, heard.fid), (FI_SHUTDOWN, ep as usize));
        assert_eq!(peer_of(ep), Err(GONE));
    }
    program.silence();
    close_all(&[a.cast(), b.cast(), pep.cast()]);
}

#[test]
fn the_request_says_who_asks() {
    let program = Program::new();
    let pep = program.listening();
    let a = program.endpoint(program.info);
    assert_eq!(connect(a, &name_of(pep.cast()), b"from a"), 0);
    let request = program.next();
    assert_eq!((request.event, request.data.as_slice()), (FI_CONNREQ, &b"from a"[..]));
    // SAFETY: the event's info, with all its parts.
    unsafe {
        let info = &*request.info;
        let bytes = |at: *mut c_void, len| core::slice::from_raw_parts(at.cast::<u8>(), len).to_vec();
        assert_eq!(bytes(info.dest_addr, info.dest_addrlen), name_of(a.cast()));
        assert_eq!(bytes(info.src_addr, info.src_addrlen), name_of(pep.cast()));
        assert_eq!((*info.ep_attr).r#type, FI_EP_MSG);
        assert_eq!((*info.handle).fclass, FI_CLASS_CONNREQ as usize);
        assert_eq!(reject(pep, info.handle, b"no room"), 0);
        assert_eq!(
            reject(pep, info.handle, b"again"),
            -FI_EINVAL,
            "a request is answered once"
        );
        let mut ep = null_mut();
        assert_eq!(
            fi_endpoint(program.domain, request.info, &mut ep, null_mut()),
            -FI_EINVAL
        );
        fi_freeinfo(request.info);
    }
    assert_eq!(
        program.error(),
        (a as usize, 0x11, FI_ECONNREFUSED, b"no room".to_vec())
    );
    close_all(&[a.cast(), pep.cast()]);
}

#[test]
fn data_of_any_size_goes_both_ways_and_too_much_is_cut() {
    let program = Program::new();
    let pep = program.listening();
    let long = [7_u8; 40];
    for len in [0, 1, 31, 32, 40] {
        let cut = len.min(Calls::DATA_SIZE);
        let a = program.endpoint(program.info);
        assert_eq!(connect(a, &name_of(pep.cast()), &long[..len]), 0);
        let request = program.next();
        assert_eq!(request.data, long[..cut]);
        let b = program.endpoint(request.info);
        assert_eq!(accept(b, &long[..len]), 0);
        let mut data: Vec<usize> = [program.next(), program.next()].map(|heard| heard.data.len()).into();
        data.sort_unstable();
        assert_eq!(data, [0, cut]);
        let c = program.endpoint(program.info);
        assert_eq!(connect(c, &name_of(pep.cast()), &[]), 0);
        let other = program.next();
        // SAFETY: the events' infos.
        unsafe {
            assert_eq!(reject(pep, (*other.info).handle, &long[..len]), 0);
            fi_freeinfo(request.info);
            fi_freeinfo(other.info);
        }
        assert_eq!(program.error().3, long[..cut]);
        close_all(&[a.cast(), b.cast(), c.cast()]);
        program.silence();
    }
    assert_eq!(size_option(pep.cast(), FI_OPT_CM_DATA_SIZE), Ok(Calls::DATA_SIZE));
    assert_eq!(size_option(pep.cast(), FI_OPT_MIN_MULTI_RECV), Err(-FI_ENOPROTOOPT));
    let ep = program.endpoint(program.info);
    assert_eq!(size_option(ep.cast(), FI_OPT_CM_DATA_SIZE), Ok(Calls::DATA_SIZE));
    close_all(&[ep.cast(), pep.cast()]);
}

#[test]
fn nobody_answers() {
    let program = Program::new();
    let a = program.endpoint(program.info);
    assert_eq!(connect(a, b"fi_calls://nobody\0", &[]), 0);
    assert_eq!(program.error(), (a as usize, 0x11, FI_ECONNREFUSED, Vec::new()));
    assert_eq!(connect(a, b"fi_calls://nobody\0", &[]), -FI_EINVAL, "once in its life");
    program.silence();
    close_all(&[a.cast()]);
}

#[test]
fn whoever_waits_is_refused_when_the_listener_goes() {
    for read in [false, true] {
        let program = Program::new();
        let pep = program.listening();
        let ends = [0; 3].map(|_| program.endpoint(program.info));
        for end in ends {
            assert_eq!(connect(end, &name_of(pep.cast()), b"x"), 0);
        }
        let first = read.then(|| program.next());
        close_all(&[pep.cast()]);
        let mut refused: Vec<usize> = ends
            .map(|_| {
                let (fid, _, errno, _) = program.error();
                assert_eq!(errno, FI_ECONNREFUSED);
                fid
            })
            .into();
        refused.sort_unstable();
        let mut all = ends.map(|end| end as usize);
        all.sort_unstable();
        assert_eq!(refused, all);
        program.silence();
        if let Some(first) = first {
            let mut ep = null_mut();
            // SAFETY: the info outlives the request that its handle named.
            unsafe {
                assert_eq!(fi_endpoint(program.domain, first.info, &mut ep, null_mut()), -FI_EINVAL);
                fi_freeinfo(first.info);
            }
        }
        close_all(&ends.map(|end| end.cast()));
    }
}

#[test]
fn an_endpoint_that_never_accepts_refuses() {
    let program = Program::new();
    let pep = program.listening();
    let a = program.endpoint(program.info);
    assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
    let request = program.next();
    let b = program.endpoint(request.info);
    assert_eq!(
        connect(b, &name_of(pep.cast()), &[]),
        -FI_EINVAL,
        "it is there to accept"
    );
    // SAFETY: the event's.
    unsafe { fi_freeinfo(request.info) };
    close_all(&[b.cast()]);
    assert_eq!(program.error().2, FI_ECONNREFUSED);
    close_all(&[a.cast(), pep.cast()]);
}

#[test]
fn calls_out_of_turn_are_refused() {
    let program = Program::new();
    let pep = program.passive();
    let a = program.endpoint(program.info);
    // SAFETY: live objects, of which some calls have not been made yet.
    unsafe {
        assert_eq!(accept(a, &[]), -FI_EINVAL, "there is no request");
        assert_eq!(fi_connect(a, null(), null(), 0), -FI_EINVAL);
        assert_eq!(fi_shutdown(a, 0), 0);
        assert_eq!(fi_shutdown(a, 1), -(FI_EBADFLAGS as c_int));
        assert_eq!(peer_of(a), Err(GONE));
        let mut alone = null_mut();
        assert_eq!(fi_endpoint(program.domain, program.info, &mut alone, null_mut()), 0);
        assert_eq!(fi_ep_bind(alone, program.cq.cast(), FI_TRANSMIT | FI_RECV), 0);
        assert_eq!(connect(alone, b"fi_calls://x\0", &[]), -(FI_ENOEQ as c_int));
        close_all(&[alone.cast()]);

        assert_eq!(reject(pep, null_mut(), &[]), -FI_EINVAL);
        assert_eq!(fi_pep_bind(pep, program.eq.cast(), 1), -(FI_EBADFLAGS as c_int));
        assert_eq!(fi_pep_bind(pep, program.cq.cast(), 0), -FI_EINVAL);
        let (mut attr, mut other) = (core::mem::zeroed(), null_mut());
        assert_eq!(fi_eq_open(program.fabric, &mut attr, &mut other, null_mut()), 0);
        assert_eq!(fi_pep_bind(pep, other.cast(), 0), -FI_EINVAL, "it has a queue");
        assert_eq!(fi_pep_bind(pep, program.eq.cast(), 0), 0);
        close_all(&[other.cast()]);
        let mut backlog = 1;
        let set = |backlog: *mut c_int| fi_control(pep.cast(), FI_BACKLOG as c_int, backlog.cast());
        assert_eq!(set(&mut backlog), 0);
        assert_eq!(set(null_mut()), -FI_EINVAL);
        backlog = -1;
        assert_eq!(set(&mut backlog), -FI_EINVAL);
        assert_eq!(
            fi_setname(pep.cast(), c"fi_calls://here".as_ptr().cast_mut().cast(), 16),
            0
        );
        assert_eq!(name_of(pep.cast()), b"fi_calls://here\0");
        assert_eq!(fi_listen(pep), 0);
        assert_eq!(fi_listen(pep), -FI_EINVAL);
        assert_eq!(
            fi_setname(pep.cast(), c"fi_calls://there".as_ptr().cast_mut().cast(), 17),
            -FI_EBUSY
        );
        assert_eq!(fi_close(program.eq.cast()), -FI_EBUSY, "endpoints are bound to it");
        let mut unbound = null_mut();
        assert_eq!(fi_passive_ep(program.fabric, program.info, &mut unbound, null_mut()), 0);
        assert_eq!(fi_listen(unbound), -(FI_ENOEQ as c_int));
        assert_eq!(fi_close(program.fabric.cast()), -FI_EBUSY);
        close_all(&[unbound.cast()]);
    }
    // The backlog is one: the second is refused at once.
    let b = program.endpoint(program.info);
    assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
    assert_eq!(connect(b, &name_of(pep.cast()), &[]), 0);
    let mut refused = 0;
    for _ in 0..2 {
        match (0..1000)
            .map(|_| program.event())
            .find(|event| *event != Err(-(FI_EAGAIN as isize)))
        {
            // SAFETY: the event's.
            Some(Ok(request)) => unsafe { fi_freeinfo(request.info) },
            _ => {
                refused += 1;
                program.error();
            }
        }
    }
    assert!(refused <= 1, "the queue is read between the two at most");
    close_all(&[a.cast(), b.cast(), pep.cast()]);
}

#[test]
fn a_connection_is_asked_for_once() {
    let program = Program::new();
    let pep = program.listening();
    let a = program.endpoint(program.info);
    assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
    assert_eq!(
        connect(a, &name_of(pep.cast()), &[]),
        -FI_EINVAL,
        "it waits for the answer"
    );
    let request = program.next();
    program.silence();
    let b = program.endpoint(request.info);
    // SAFETY: the event's.
    unsafe { fi_freeinfo(request.info) };
    assert_eq!(accept(b, &[]), 0);
    assert_eq!(accept(b, &[]), -FI_EINVAL);
    close_all(&[a.cast(), b.cast(), pep.cast()]);
}

#[test]
fn a_request_is_rejected_where_it_came_to() {
    let program = Program::new();
    let (pep, other) = (program.listening(), program.listening());
    let a = program.endpoint(program.info);
    assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
    let request = program.next();
    // SAFETY: the event's.
    let handle = unsafe { (*request.info).handle };
    assert_eq!(reject(other, handle, &[]), -FI_EINVAL);
    program.silence();
    assert_eq!(reject(pep, handle, &[]), 0);
    assert_eq!(program.error().2, FI_ECONNREFUSED);
    // SAFETY: the event's.
    unsafe { fi_freeinfo(request.info) };
    close_all(&[a.cast(), pep.cast(), other.cast()]);
}

/// An endpoint that cannot be opened leaves the request, which is answered by another or rejected.
#[test]
fn a_request_outlives_an_endpoint_that_fails() {
    for is_rejected in [false, true] {
        let program = Program::new();
        let pep = program.listening();
        let a = program.endpoint(program.info);
        assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
        let request = program.next();
        let mut failed = null_mut();
        // SAFETY: a live domain, and the event's info, of which the program asks for too much.
        unsafe {
            let tx = (*request.info).tx_attr;
            let size = core::mem::replace(&mut (*tx).size, usize::MAX);
            for _ in 0..2 {
                let made = fi_endpoint(program.domain, request.info, &mut failed, null_mut());
                assert_eq!(made, -FI_ENOMEM);
            }
            (*tx).size = size;
        }
        program.silence();
        // SAFETY: the event's.
        let handle = unsafe { (*request.info).handle };
        if is_rejected {
            assert_eq!(reject(pep, handle, b"busy"), 0);
            assert_eq!(program.error().2, FI_ECONNREFUSED);
        } else {
            let b = program.endpoint(request.info);
            assert_eq!(reject(pep, handle, &[]), -FI_EINVAL, "it is used up");
            assert_eq!(accept(b, &[]), 0);
            assert_eq!(
                (program.next().event, program.next().event),
                (FI_CONNECTED, FI_CONNECTED)
            );
            close_all(&[b.cast()]);
        }
        // SAFETY: the event's.
        unsafe { fi_freeinfo(request.info) };
        close_all(&[a.cast(), pep.cast()]);
    }
}

/// With room for one request that waits, the second is refused, and only then is the queue read.
#[test]
fn a_backlog_holds_for_a_passive_endpoint_that_listens_already() {
    let program = Program::new();
    let pep = program.listening();
    let mut backlog: c_int = 1;
    // SAFETY: a live passive endpoint, and FI_BACKLOG's argument.
    let set = unsafe { fi_control(pep.cast(), FI_BACKLOG as c_int, (&raw mut backlog).cast()) };
    assert_eq!(set, 0);
    let ends = [0; 2].map(|_| program.endpoint(program.info));
    for end in ends {
        assert_eq!(connect(end, &name_of(pep.cast()), &[]), 0);
    }
    let heard: Vec<_> = (0..1000)
        .map(|_| program.event())
        .filter(|event| *event != Err(-(FI_EAGAIN as isize)))
        .take(2)
        .map(|event| match event {
            // SAFETY: the event's.
            Ok(request) => unsafe {
                fi_freeinfo(request.info);
                FI_CONNREQ as c_int
            },
            Err(_) => program.error().2,
        })
        .collect();
    assert!(heard.contains(&FI_ECONNREFUSED), "{heard:?}");
    close_all(&[ends[0].cast(), ends[1].cast(), pep.cast()]);
}

#[test]
fn a_passive_endpoint_gives_its_address_to_an_active_one() {
    let program = Program::new();
    let (listener, pep) = (program.listening(), program.passive());
    let own = name_of(pep.cast());
    let mut info = null_mut();
    // SAFETY: the calls of a C program; the handle is a live passive endpoint's.
    unsafe {
        let hints = fi_dupinfo(program.info);
        // fi_getinfo names what is open, which may be another test's, closed by now.
        (*(*hints).fabric_attr).fabric = null_mut();
        (*(*hints).domain_attr).domain = null_mut();
        (*hints).handle = pep.cast();
        assert_eq!(fi_getinfo(fi_version(), null(), null(), 0, hints, &mut info), 0);
        assert_eq!((*info).handle, pep.cast());
        fi_freeinfo(hints);
    }
    let a = program.endpoint(info);
    assert_eq!(name_of(a.cast()), own);
    let mut len = 0;
    // SAFETY: live endpoints.
    unsafe {
        assert!(fi_listen(pep) < 0 && fi_getname(pep.cast(), null_mut(), &mut len) < 0);
        fi_freeinfo(info);
    }
    assert_eq!(connect(a, &name_of(listener.cast()), &[]), 0);
    let request = program.next();
    // SAFETY: the event's.
    unsafe {
        let from = core::slice::from_raw_parts((*request.info).dest_addr.cast::<u8>(), (*request.info).dest_addrlen);
        assert_eq!(from, own);
        fi_freeinfo(request.info);
    }
    close_all(&[pep.cast(), a.cast(), listener.cast()]);
}

#[test]
fn events_of_what_was_closed_are_gone() {
    let program = Program::new();
    let pep = program.listening();
    let [a, b] = program.pair(pep);
    close_all(&[a.cast()]);
    // b hears of the end, but its event is not read before b is closed.
    assert!(program.completions().is_empty());
    close_all(&[b.cast()]);
    program.silence();
    close_all(&[pep.cast()]);
}

#[test]
fn a_device_that_cannot_be_opened_fails_the_domain() {
    let program = Program::new();
    // SAFETY: an info of fi_getinfo's, whose name is malloc'ed.
    unsafe {
        let info = fi_dupinfo(program.info);
        libc::free((*(*info).domain_attr).name.cast());
        (*(*info).domain_attr).name = libc::strdup(c"broken".as_ptr());
        let mut domain = null_mut();
        assert_eq!(fi_domain(program.fabric, info, &mut domain, null_mut()), -FI_ENODEV);
        fi_freeinfo(info);
    }
}
