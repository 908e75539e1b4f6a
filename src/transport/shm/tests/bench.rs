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
    fn place(&mut self, _: PeerId, header: &Header, _: usize) -> Place {
        Place::Into {
            iov: self.into,
            at: header.total as usize,
            token: 0,
        }
    }
    #[inline]
    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {
        self.packets += 1;
    }
    fn finished(&mut self, _: Token, _: bool) {}
    fn gone(&mut self, _: PeerId) {}
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
        match end.push(to, &head, body) {
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
    while end.connect(to).is_err() {}
    work(end, to, true);
    assert_eq!(child.wait(), 0);
}

#[test]
#[ignore = "a measurement"]
fn latency() {
    for len in [
        0usize,
        8,
        24,
        64,
        256,
        1024,
        4096,
        8192,
        16 << 10,
        64 << 10,
        256 << 10,
        1 << 20,
        4 << 20,
    ] {
        pair(|mut end, to, first| {
            let (from, into) = (memory(len), memory(len));
            let mut sink = Count { packets: 0, into };
            let packets = len.div_ceil(MAX_BODY).max(1) as u64;
            let rounds = if len > 64 << 10 {
                500
            } else {
                200_000.min(400_000_000 / (len as u64 + 400))
            };
            let mut best = f64::MAX;
            for turn in 0..6 {
                let start = Instant::now();
                for round in 0..rounds {
                    let wanted = (turn * rounds + round + 1) * packets;
                    if first {
                        send(&mut end, to, &from, len, &mut sink);
                    }
                    wait(&mut end, &mut sink, wanted);
                    if !first {
                        send(&mut end, to, &from, len, &mut sink);
                    }
                }
                best = best.min(start.elapsed().as_nanos() as f64 / rounds as f64 / 2.0);
            }
            if first {
                println!("{len:8} bytes: {best:10.1} ns one way");
            }
        });
    }
}

#[test]
#[ignore = "a measurement"]
fn rate() {
    for len in [8usize, 64, 1024, 8192, 64 << 10, 1 << 20] {
        pair(|mut end, to, first| {
            let (from, into) = (memory(len), memory(len));
            let mut sink = Count { packets: 0, into };
            let packets = len.div_ceil(MAX_BODY).max(1) as u64;
            let count = if len <= 64 {
                5_000_000
            } else {
                2_000_000_000 / len as u64
            };
            for turn in 1..=4 {
                let start = Instant::now();
                if first {
                    (0..count).for_each(|_| send(&mut end, to, &from, len, &mut sink));
                    wait(&mut end, &mut sink, turn);
                    let took = start.elapsed().as_secs_f64();
                    let (rate, bytes) = (count as f64 / took / 1e6, (count * len as u64) as f64 / took / 1e9);
                    println!("{len:8} bytes: {rate:8.3} M/s {bytes:7.2} GB/s");
                } else {
                    wait(&mut end, &mut sink, turn * count * packets);
                    send(&mut end, to, &from, 0, &mut sink);
                }
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
            assert_eq!(other.push(to, &header(0), Body::Empty), Push::Done);
        }
        wait(&mut hub, &mut sink, peers);
        let start = Instant::now();
        (0..1_000_000).for_each(|_| assert_eq!(hub.poll(&mut sink, 64), 0));
        println!(
            "{peers} peers: {:.1} ns an idle poll",
            start.elapsed().as_nanos() as f64 / 1e6
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn fetch_latency() {
    for len in [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
        let dir = Dir::new();
        let from = memory(len);
        let mut a = dir.open("a");
        let remote = a.expose(0, &from);
        // The child reads the parent's memory.
        let child = Child::run(|| {
            let mut end = dir.open("b");
            let to = end.peer(b"a").unwrap();
            let into = memory(len);
            let mut best = f64::MAX;
            for _ in 0..5 {
                let start = Instant::now();
                (0..200).for_each(|_| assert_eq!(end.get(to, &remote, &into, 0, len, 0), port::Get::Done));
                best = best.min(start.elapsed().as_nanos() as f64 / 200.0);
            }
            println!("{len:8} bytes: {best:10.1} ns a fetch");
        });
        assert_eq!(child.wait(), 0);
        a.poll(&mut Kept::default(), 1);
    }
}
