//! Timings, not tests: `cargo test --release --lib shm::tests::bench -- --ignored --nocapture --test-threads 1`.
//! Two processes, each on a core of its own.

use super::*;
use crate::util::user::UserBuf;

fn pin(core: usize) {
    // SAFETY: a cpu set is plain data; all zero is the empty one.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: a whole cpu set of ours.
    unsafe {
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Counts what comes, and copies it where a receive would want it.
struct Count {
    packets: u64,
    into: UserIov,
}

impl Sink for Count {
    #[inline]
    fn place(&mut self, _: PeerId, header: &Header, _: usize) -> Placement {
        Placement::Into {
            iov: self.into,
            at: header.total as usize,
            token: 0,
        }
    }
    #[inline]
    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {
        self.packets += 1;
    }
    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}
    fn gone(&mut self, _: PeerId, _: Loss) {}
}

fn memory(len: usize) -> UserIov {
    let memory = Box::leak(vec![1u8; len.max(1)].into_boxed_slice());
    // SAFETY: leaked, so valid for ever.
    UserIov::one(unsafe { UserBuf::new(memory.as_mut_ptr(), len) })
}

/// Sends one message of `len` bytes in packets.
#[inline]
fn send(end: &mut ShmTransport, to: PeerId, from: &UserIov, len: usize, sink: &mut Count) {
    let mut at = 0;
    loop {
        let part = (len - at).min(MAX_BODY);
        let head = Header {
            total: at as u64,
            ..header(1)
        };
        let body = Body::User {
            iov: from,
            at,
            len: part,
        };
        match end.push(to, &head, body, None) {
            Push::Done => at += part,
            Push::Full => {
                end.poll(sink, 64);
                core::hint::spin_loop();
                continue;
            }
            other => panic!("{other:?}"),
        }
        if at == len {
            return;
        }
    }
}

fn wait(end: &mut ShmTransport, sink: &mut Count, packets: u64) {
    while sink.packets < packets {
        end.poll(sink, 64);
    }
}

/// Runs `work` in two processes that know each other; the second argument says which it is.
fn pair(work: impl Fn(ShmTransport, PeerId, bool)) {
    let dir = Dir::new();
    let child = Child::run(|| {
        pin(1);
        let mut end = dir.open("b");
        let to = end.peer(b"a").unwrap();
        work(end, to, false);
    });
    pin(0);
    let mut end = dir.open("a");
    let to = end.peer(b"b").unwrap();
    while end.connect_out(to).is_err() {}
    work(end, to, true);
    assert_eq!(child.wait(), 0);
}

/// The best of many short batches: on a busy machine the others measure who else runs.
struct Best(f64);

impl Best {
    fn of(batches: u64, size: u64, mut work: impl FnMut(u64)) -> Best {
        let mut best = f64::MAX;
        for batch in 0..batches {
            let start = Instant::now();
            (batch * size..(batch + 1) * size).for_each(&mut work);
            best = best.min(start.elapsed().as_nanos() as f64 / size as f64);
        }
        Best(best)
    }
}

#[test]
#[ignore = "a measurement"]
fn latency() {
    for len in [
        0usize,
        8,
        64,
        256,
        1024,
        4096,
        8192,
        16 << 10,
        64 << 10,
        256 << 10,
        1 << 20,
    ] {
        pair(|mut end, to, first| {
            let (from, into) = (memory(len), memory(len));
            let mut sink = Count { packets: 0, into };
            let packets = len.div_ceil(MAX_BODY).max(1) as u64;
            let size = (200_000 / (len as u64 + 400)).max(4);
            let batches = (1_000_000_000 / (len as u64 + 2000) / size).min(1000);
            let Best(best) = Best::of(batches, size, |round| {
                let wanted = (round + 1) * packets;
                if first {
                    send(&mut end, to, &from, len, &mut sink);
                }
                wait(&mut end, &mut sink, wanted);
                if !first {
                    send(&mut end, to, &from, len, &mut sink);
                }
            });
            if first {
                println!("{len:8} bytes: {:10.1} ns one way", best / 2.0);
            }
        });
    }
}

#[test]
#[ignore = "a measurement"]
fn rate() {
    for len in [8usize, 1024, 8192, 64 << 10, 1 << 20] {
        pair(|mut end, to, first| {
            let (from, into) = (memory(len), memory(len));
            let mut sink = Count { packets: 0, into };
            let packets = len.div_ceil(MAX_BODY).max(1) as u64;
            // Each batch is many rings long.
            let size = (2_000_000 / (len as u64 + 100)).max(8);
            let batches = 300;
            if first {
                let Best(best) = Best::of(batches, size, |_| send(&mut end, to, &from, len, &mut sink));
                wait(&mut end, &mut sink, 1);
                println!("{len:8} bytes: {:8.3} M/s {:7.2} GB/s", 1e3 / best, len as f64 / best);
            } else {
                wait(&mut end, &mut sink, batches * size * packets);
                send(&mut end, to, &from, 0, &mut sink);
            }
        });
    }
}

#[test]
#[ignore = "a measurement"]
fn idle_poll() {
    let dir = Dir::new();
    for peers in [0, 1, 8, 32, 256] {
        let mut hub = dir.open("hub");
        let mut others: Vec<_> = (0..peers).map(|n| dir.open(&format!("peer-{n}"))).collect();
        let mut sink = Count {
            packets: 0,
            into: memory(8),
        };
        for other in &mut others {
            let to = other.peer(b"hub").unwrap();
            assert_eq!(other.push(to, &header(0), Body::Empty, None), Push::Done);
        }
        wait(&mut hub, &mut sink, peers);
        let Best(best) = Best::of(1000, 1000, |_| assert_eq!(hub.poll(&mut sink, 64), 0));
        println!("{peers} peers: {best:.1} ns an idle poll");
    }
}

#[test]
#[ignore = "a measurement"]
fn fetch_latency() {
    for len in [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
        let dir = Dir::new();
        let from = memory(len);
        let mut a = dir.open("a");
        let remote = a.expose(0, &from, ExposedName::Sent(1)).unwrap().remote;
        // The child reads the parent's memory.
        let child = Child::run(|| {
            let mut end = dir.open("b");
            let to = end.peer(b"a").unwrap();
            let into = memory(len);
            let Best(best) = Best::of(1000, 2, |_| {
                assert_eq!(end.get(to, &remote, &into, 0, len, Some(0)), port::Get::Done);
            });
            println!("{len:8} bytes: {best:10.1} ns a fetch");
        });
        assert_eq!(child.wait(), 0);
        a.poll(&mut Kept::default(), 1);
    }
}

/// What the instructions cost without another core.
#[test]
#[ignore = "a measurement"]
fn one_core() {
    let dir = Dir::new();
    let mut end = dir.open("a");
    let to = end.peer(b"a").unwrap();
    for len in [0usize, 8, 64] {
        let (from, into) = (memory(len), memory(len));
        let mut sink = Count { packets: 0, into };
        let Best(both) = Best::of(30000, 100, |round| {
            send(&mut end, to, &from, len, &mut sink);
            wait(&mut end, &mut sink, round + 1);
        });
        let mut sink = Count { packets: 0, into };
        let Best(push) = Best::of(30000, 100, |round| {
            send(&mut end, to, &from, len, &mut sink);
            if round % 100 == 99 {
                wait(&mut end, &mut sink, round + 1);
            }
        });
        println!("{len} bytes: {both:.1} ns to send and receive, {push:.1} ns in bursts");
    }
}
