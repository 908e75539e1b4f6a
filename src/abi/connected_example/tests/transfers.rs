//! What is sent over connections, and how it ends with them.

use super::*;

#[test]
fn messages_go_to_the_peer_alone() {
    let program = Program::new();
    let pep = program.listening();
    let pairs = [0; 3].map(|_| program.pair(pep));
    let mut buffers = [[0_u8; 100_000]; 3];
    // One packet, several, and one that the receiver asks for.
    for len in [0, 8, 10_000, 100_000] {
        let sent: Vec<Vec<u8>> = (0..3_u8).map(|at| vec![at + 1; len]).collect();
        for (at, [a, b]) in pairs.iter().enumerate() {
            assert_eq!(recv(*b, &mut buffers[at][..len], 10 + at), 0);
            assert_eq!(send(*a, &sent[at], 20 + at), 0);
        }
        let all: Vec<(usize, c_int)> = [10, 11, 12, 20, 21, 22].map(|context| (context, 0)).into();
        assert_eq!(program.completions(), all);
        for at in 0..3 {
            assert_eq!(buffers[at][..len], sent[at]);
        }
    }
    close_all(&pairs.concat().iter().map(|ep| ep.cast()).collect::<Vec<_>>());
    close_all(&[pep.cast()]);
}

#[test]
fn receives_may_be_posted_before_there_is_a_connection_and_sends_not() {
    let program = Program::new();
    let pep = program.listening();
    let a = program.endpoint(program.info);
    let mut buffer = [0_u8; 8];
    assert_eq!(recv(a, &mut buffer, 1), -(FI_EOPBADSTATE as isize), "not enabled");
    // SAFETY: a live endpoint.
    assert_eq!(unsafe { fi_enable(a) }, 0);
    assert_eq!(recv(a, &mut buffer, 1), 0);
    assert_eq!(send(a, b"too soon", 2), -(FI_ENOTCONN as isize));
    assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
    assert_eq!(send(a, b"too soon", 2), -(FI_ENOTCONN as isize));
    let request = program.next();
    let b = program.endpoint(request.info);
    assert_eq!(accept(b, &[]), 0);
    // SAFETY: the event's.
    unsafe { fi_freeinfo(request.info) };
    assert_eq!([program.next().event, program.next().event], [FI_CONNECTED; 2]);
    assert_eq!(send(b, b"in time!", 3), 0);
    assert_eq!(program.completions(), [(1, 0), (3, 0)]);
    assert_eq!(&buffer, b"in time!");
    close_all(&[a.cast(), b.cast(), pep.cast()]);
}

#[test]
fn each_operation_ends_once_when_the_connection_does() {
    // Which side shuts down or closes.
    for (by, closes) in [(0, false), (1, false), (0, true), (1, true)] {
        let program = Program::new();
        let pep = program.listening();
        let ends = program.pair(pep);
        let long = vec![1_u8; 100_000];
        let mut buffers = [[0_u8; 8]; 4];
        for (at, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(recv(ends[at % 2], buffer, 10 + at), 0);
        }
        // Nobody receives more than 8 bytes: they wait for a receive that takes them all.
        for (at, end) in ends.iter().enumerate() {
            // SAFETY: a live endpoint; the bytes outlive the transfer.
            let sent = unsafe {
                fi_tsend(
                    *end,
                    long.as_ptr().cast(),
                    long.len(),
                    null_mut(),
                    0,
                    5,
                    (20 + at) as *mut c_void,
                )
            };
            assert_eq!(sent, 0);
        }
        assert_eq!(program.completions(), []);
        let (ended, other) = (ends[by], ends[1 - by]);
        let of = |side: usize| [10 + side, 12 + side, 20 + side].map(|context| (context, FI_ECANCELED));
        if closes {
            close_all(&[ended.cast()]);
            // What was posted to the closed one is discarded.
            assert_eq!(program.completions(), of(1 - by));
            let heard = program.next();
            assert_eq!((heard.event, heard.fid), (FI_SHUTDOWN, other as usize));
        } else {
            // SAFETY: a live endpoint.
            assert_eq!(unsafe { fi_shutdown(ended, 0) }, 0);
            let mut all = [of(0), of(1)].concat();
            all.sort_unstable();
            assert_eq!(program.completions(), all);
            assert_eq!(recv(ended, &mut buffers[0], 1), -(FI_ENOTCONN as isize));
            assert_eq!(send(ended, b"late", 1), -(FI_ENOTCONN as isize));
            close_all(&[ended.cast()]);
        }
        assert_eq!(recv(other, &mut buffers[0], 1), -(FI_ENOTCONN as isize));
        assert_eq!(send(other, b"late", 1), -(FI_ENOTCONN as isize));
        close_all(&[other.cast(), pep.cast()]);
        assert_eq!(program.completions(), []);
    }
}

#[test]
fn what_was_sent_before_the_end_still_arrives() {
    let program = Program::new();
    let pep = program.listening();
    let [a, b] = program.pair(pep);
    assert_eq!(send(a, b"farewell", 1), 0);
    assert_eq!(program.completions(), [(1, 0)]);
    close_all(&[a.cast()]);
    let mut buffer = [0_u8; 8];
    // The peer has not heard of the end, as nobody read since.
    assert_eq!(recv(b, &mut buffer, 2), 0);
    assert_eq!(program.completions(), [(2, 0)]);
    assert_eq!(&buffer, b"farewell");
    assert_eq!(program.next().event, FI_SHUTDOWN);
    close_all(&[b.cast(), pep.cast()]);
}

/// Without a receive for them, messages wait on the receiver's side, where they outlive the connection.
#[test]
fn what_came_before_the_end_can_be_received_after_it() {
    let program = Program::new();
    let pep = program.listening();
    let [a, b] = program.pair(pep);
    assert_eq!(send(a, b"first", 1), 0);
    assert_eq!(send(a, b"second", 2), 0);
    assert_eq!(program.completions(), [(1, 0), (2, 0)]);
    close_all(&[a.cast()]);
    assert_eq!(program.next().event, FI_SHUTDOWN);
    let mut buffers = [[0_u8; 8]; 3];
    assert_eq!(recv(b, &mut buffers[0], 3), 0);
    assert_eq!(recv(b, &mut buffers[1], 4), 0);
    assert_eq!(program.completions(), [(3, 0), (4, 0)]);
    assert_eq!((&buffers[0][..5], &buffers[1][..6]), (&b"first"[..], &b"second"[..]));
    assert_eq!(recv(b, &mut buffers[2], 5), -(FI_ENOTCONN as isize));
    assert_eq!(send(b, b"late", 6), -(FI_ENOTCONN as isize));
    close_all(&[b.cast(), pep.cast()]);
    assert_eq!(program.completions(), []);
}

#[test]
fn connected_endpoints_share_receives() {
    let program = Program::new();
    let pep = program.listening();
    // SAFETY: the calls of a C program.
    unsafe {
        let mut srx = null_mut();
        assert_eq!(
            fi_srx_context(program.domain, (*program.info).rx_attr, &mut srx, null_mut()),
            0
        );
        let info = fi_dupinfo(program.info);
        (*(*info).ep_attr).rx_ctx_cnt = FI_SHARED_CONTEXT;
        let mut ends = Vec::new();
        let mut answering = Vec::new();
        for _ in 0..3 {
            let a = program.endpoint(program.info);
            assert_eq!(connect(a, &name_of(pep.cast()), &[]), 0);
            let request = program.next();
            (*info).handle = (*request.info).handle;
            let b = program.endpoint(info);
            assert_eq!(fi_ep_bind(b, srx.cast(), 0), 0);
            assert_eq!(accept(b, b"shared"), 0);
            fi_freeinfo(request.info);
            assert_eq!([program.next().event, program.next().event], [FI_CONNECTED; 2]);
            assert_eq!(peer_of(b), Ok(name_of(a.cast())));
            ends.push(a);
            answering.push(b);
        }
        let mut buffers = [[0_u8; 4]; 6];
        for (at, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(recv(srx, buffer, 10 + at), 0);
        }
        for (at, end) in ends.iter().enumerate() {
            assert_eq!(send(*end, &[at as u8 + 1; 4], 20 + at), 0);
        }
        let good = |contexts: &[usize]| contexts.iter().map(|context| (*context, 0)).collect::<Vec<_>>();
        assert_eq!(program.completions(), good(&[10, 11, 12, 20, 21, 22]));
        let mut seen: Vec<u8> = buffers[..3].iter().map(|buffer| buffer[0]).collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
        // And back, each to its own peer.
        let mut back = [[0_u8; 4]; 3];
        for (at, buffer) in back.iter_mut().enumerate() {
            assert_eq!(recv(ends[at], buffer, 30 + at), 0);
            assert_eq!(send(answering[at], &[at as u8 + 5; 4], 40 + at), 0);
        }
        assert_eq!(program.completions(), good(&[30, 31, 32, 40, 41, 42]));
        assert_eq!(back, [[5; 4], [6; 4], [7; 4]]);
        // One ends; the receives stay for the others.
        close_all(&[ends[0].cast()]);
        let heard = program.next();
        assert_eq!((heard.event, heard.fid), (FI_SHUTDOWN, answering[0] as usize));
        assert_eq!(send(answering[0], &[0; 4], 1), -(FI_ENOTCONN as isize));
        assert_eq!(send(ends[1], &[9; 4], 50), 0);
        assert_eq!(program.completions(), good(&[13, 50]));
        close_all(
            &answering
                .iter()
                .chain(&ends[1..])
                .map(|ep| ep.cast())
                .collect::<Vec<_>>(),
        );
        close_all(&[srx.cast(), pep.cast()]);
        fi_freeinfo(info);
    }
}
