//! Only endpoints that have something to do are polled, and none that has is forgotten.

use super::*;

/// More than this many polls for one message would mean that others are polled for it.
const FEW: usize = 60;

#[test]
fn a_read_polls_those_alone_that_have_something_to_do() {
    let program = Program::new();
    let pep = program.listening();
    let pairs: Vec<_> = (0..200).map(|_| program.pair(pep)).collect();
    assert_eq!(program.completions(), []);
    let exchange = program.exchange();
    let count = |of: &AtomicUsize| of.swap(0, Ordering::Relaxed);
    let _ = count(&exchange.polls);
    assert_eq!(program.completions(), []);
    assert_eq!(count(&exchange.polls), 0, "idle endpoints are polled");

    let mut buffer = [0_u8; 8];
    let [a, b] = pairs[77];
    assert_eq!(recv(b, &mut buffer, 1), 0);
    assert_eq!(send(a, b"for one!", 2), 0);
    assert_eq!(program.completions(), [(1, 0), (2, 0)]);
    assert_eq!(&buffer, b"for one!");
    let polls = count(&exchange.polls);
    assert!(polls < FEW, "{polls} polls for one message");
    close_all(&pairs.concat().iter().map(|ep| ep.cast()).collect::<Vec<_>>());
    close_all(&[pep.cast()]);
}

/// A thread that sleeps is woken by the mark, whichever thread found the work.
#[test]
fn a_mark_wakes_who_sleeps() {
    const ROUNDS: usize = 300;
    let program = Program::new();
    let pep = program.listening();
    let [a, b] = program.pair(pep);
    let mut attr = fi_cq_attr {
        format: FI_CQ_FORMAT_TAGGED,
        wait_obj: FI_WAIT_FD,
        // SAFETY: plain data.
        ..unsafe { core::mem::zeroed() }
    };
    let mut sleeps = null_mut();
    // SAFETY: a live domain.
    let opened = unsafe { fi_cq_open(program.domain, &mut attr, &mut sleeps, null_mut()) };
    assert_eq!(opened, 0);
    close_all(&[a.cast(), b.cast()]);
    program.silence();

    // Of the next pair, the side that answers has the queue that a thread sleeps on.
    let asks = program.endpoint(program.info);
    assert_eq!(connect(asks, &name_of(pep.cast()), &[]), 0);
    let request = program.next();
    let mut answers = null_mut();
    // SAFETY: the calls of a C program.
    unsafe {
        assert_eq!(fi_endpoint(program.domain, request.info, &mut answers, null_mut()), 0);
        assert_eq!(fi_ep_bind(answers, program.eq.cast(), 0), 0);
        assert_eq!(fi_ep_bind(answers, sleeps.cast(), FI_TRANSMIT | FI_RECV), 0);
        fi_freeinfo(request.info);
    }
    assert_eq!(accept(answers, &[]), 0);
    assert_eq!([program.next().event, program.next().event], [FI_CONNECTED; 2]);
    // So many more that it is by marks that the reader finds this one.
    let mut others = [null_mut(); 8];
    for other in &mut others {
        // SAFETY: the calls of a C program.
        unsafe {
            assert_eq!(fi_endpoint(program.domain, program.info, other, null_mut()), 0);
            assert_eq!(fi_ep_bind(*other, sleeps.cast(), FI_TRANSMIT | FI_RECV), 0);
            assert_eq!(fi_enable(*other), 0);
        }
    }
    let mut buffer = [0_u8; 8];
    let (queue, end, into) = (sleeps as usize, answers as usize, buffer.as_mut_ptr() as usize);
    let (said, heard) = std::sync::mpsc::sync_channel(0);
    let sleeper = std::thread::spawn(move || {
        for round in 0..ROUNDS {
            // SAFETY: live objects; the buffer outlives the thread.
            unsafe {
                let buffer = core::slice::from_raw_parts_mut(into as *mut u8, 8);
                assert_eq!(recv(end as *mut fid_ep, buffer, round), 0);
                said.send(()).unwrap();
                let mut entry: fi_cq_tagged_entry = core::mem::zeroed();
                let read = fi_cq_sread(queue as *mut fid_cq, (&raw mut entry).cast(), 1, null(), 20_000);
                assert_eq!((read, entry.op_context as usize), (1, round), "round {round}");
            }
        }
    });
    for round in 0..ROUNDS {
        heard.recv().unwrap();
        // Some rounds find the thread asleep and some do not.
        (0..(round % 7) * 300).for_each(|_| core::hint::spin_loop());
        assert_eq!(send(asks, &[1; 8], round), 0);
        // Whoever reads may also be the one who drives the sleeper's endpoint.
        program.silence();
    }
    sleeper.join().unwrap();
    close_all(&others.map(|ep| ep.cast()));
    close_all(&[asks.cast(), answers.cast(), pep.cast(), sleeps.cast()]);
    assert_eq!(program.completions().len(), ROUNDS);
}

/// Long messages leave work after each call: the endpoint marks itself.
#[test]
fn what_a_call_leaves_is_gone_on_with() {
    let program = Program::new();
    let pep = program.listening();
    let [a, b] = program.pair(pep);
    let long = vec![3_u8; 5_000_000];
    let mut into = vec![0_u8; long.len()];
    assert_eq!(send(a, &long, 1), 0);
    assert_eq!(program.completions(), []);
    assert_eq!(recv(b, &mut into, 2), 0);
    let mut done = Vec::new();
    for _ in 0..10_000 {
        done.extend(program.completions());
        if done.len() == 2 {
            break;
        }
    }
    done.sort_unstable();
    assert_eq!(done, [(1, 0), (2, 0)]);
    assert!(into == long);
    close_all(&[a.cast(), b.cast(), pep.cast()]);
}
