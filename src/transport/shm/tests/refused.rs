//! What the system may refuse: memory, larger files, system calls.

use super::*;
use std::ffi::{CStr, CString};
use std::sync::Mutex;

static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A file system on a directory, until it is dropped.
struct Mounted(CString);

impl Mounted {
    /// None: only root can make one.
    fn on(dir: &Dir, options: &CStr) -> Option<Mounted> {
        let path = CString::new(dir.0.to_str().unwrap()).unwrap();
        let kind = c"tmpfs";
        // SAFETY: C strings that live through the call.
        let failed = unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
        (failed == 0).then_some(Mounted(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // SAFETY: the mount made above.
        unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
    }
}

/// A small file system of its own, as a container's /dev/shm is.
#[test]
fn a_full_file_system_is_an_error_and_no_signal() {
    let dir = Dir::new();
    // 16 endpoints and no more; two and all their rings, whichever of them has the dialogue.
    let Some(_mounted) = Mounted::on(&dir, c"size=192k") else {
        return;
    };
    let config = Config {
        warn: |line| WARNED.lock().unwrap().push(line.to_owned()),
        ..dir.config()
    };
    let mut ends = Vec::new();
    let error = loop {
        match ShmTransport::open(&format!("end-{}", ends.len()), &config) {
            Ok(end) => ends.push(end),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("is full") && error.contains(&layout::bytes_needed().to_string()),
        "{error}"
    );
    assert_eq!(dir.names().len(), 2 * ends.len());
    // Room for one small ring, and no more.
    ends.truncate(ends.len() - 1);
    let mut kept = Kept::default();
    let (a, b) = (ends[0].peer(b"end-1").unwrap(), ends[1].peer(b"end-0").unwrap());
    push_all(&mut ends[0], a, 0..1, &mut kept);
    assert_eq!(ends[1].push(b, &header(0), Body::Empty, None), Push::NoMemory);
    // What is too long for a small ring is refused; shorter packets go through.
    assert_eq!(ends[0].push(a, &header(7), Body::Bytes(&body(7)), None), Push::TooLong);
    let longest = vec![3; ends[0].limits().guaranteed_body];
    assert_eq!(ends[0].push(a, &header(1), Body::Bytes(&longest), None), Push::Done);
    while ends[0].push(a, &header(2), Body::Empty, None) != Push::Full {}
    let told = WARNED.lock().unwrap().join("\n");
    assert!(told.contains("which needs") && told.contains("end-0"), "{told}");
    assert_eq!(told.matches("large ring").count(), 1, "{told}");
    poll_until(&mut ends[1], &mut kept, |kept| kept.packets.len() > 2);
    // With room again all goes on.
    ends.truncate(2);
    let start = Instant::now();
    while ends[0].push(a, &header(7), Body::Bytes(&body(7)), None) != Push::Done {
        assert!(start.elapsed() < PATIENCE);
    }
    // For a large ring, and none for a dialogue.
    let lane = &ends[0].peers.get(a).unwrap().out.as_ref().unwrap().lane;
    assert!(lane.is_large() && lane.dialogue_room().is_none());
    let before = kept.packets.len();
    poll_until(&mut ends[1], &mut kept, |kept| kept.packets.len() > before);
    assert_eq!(kept.packets.last().unwrap().2, body(7));
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_no_signal() {
    let dir = Dir::new();
    let child = Child::run(|| {
        let limit = libc::rlimit {
            rlim_cur: 4096,
            rlim_max: 4096,
        };
        // SAFETY: a whole rlimit.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
        assert!(matches!(
            ShmTransport::open("a", &dir.config()),
            Err(OpenError::NoSpace { .. })
        ));
        assert!(dir.names().is_empty());
    });
    assert_eq!(child.wait(), 0);
}

/// Without process_vm_readv, as in many containers, a fetch is unsupported, and not tried each time.
#[test]
fn fetching_may_be_forbidden() {
    let dir = Dir::new();
    let mut end = dir.open("a");
    let byte = Box::leak(Box::new([1u8; 64]));
    // SAFETY: leaked, so valid for ever.
    let iov = UserIov::one(unsafe { crate::util::user::UserBuf::new(byte.as_mut_ptr(), 64) });
    let remote = end.expose(0, &iov, ExposedName::Sent(1)).unwrap().remote;
    let child = Child::run(|| {
        let to_a = |end: &mut ShmTransport| end.peer(b"a").unwrap();
        let mut free = dir.open("b");
        let peer = to_a(&mut free);
        assert_eq!(free.get(peer, &remote, &iov, 0, 64, Some(0)), port::Get::Done);
        forbid(libc::SYS_process_vm_readv);
        let mut bound = dir.open("c");
        let peer = to_a(&mut bound);
        assert_eq!(bound.get(peer, &remote, &iov, 0, 64, Some(0)), port::Get::Unsupported);
        let out = bound.peers.get(peer).and_then(|peer| peer.out.as_ref()).unwrap();
        assert!(out.proof.retry.is_pending());
        // The ring still works.
        assert_eq!(bound.push(peer, &header(1), Body::Empty, None), Push::Done);
    });
    assert_eq!(child.wait(), 0);
    let mut kept = Kept::default();
    poll_until(&mut end, &mut kept, |kept| {
        kept.packets.len() == 1 && kept.gone.len() == 2
    });
}

/// Without membarrier senders fence, and sleepers still wake.
#[test]
fn barriers_may_be_forbidden() {
    let dir = Dir::new();
    let mut free = dir.open("a");
    let child = Child::run(|| {
        forbid(libc::SYS_membarrier);
        let mut bound = dir.open("b");
        assert!(bound.own.header.wants_fence());
        let to = bound.peer(b"a").unwrap();
        assert!(bound.arm());
        bound.disarm();
        assert_eq!(bound.push(to, &header(1), Body::Empty, None), Push::Done);
    });
    assert_eq!(child.wait(), 0);
    let mut kept = Kept::default();
    poll_until(&mut free, &mut kept, |kept| kept.packets.len() == 1);
}

/// Has the kernel refuse a system call to this process from now on, with EPERM.
pub(super) fn forbid(call: libc::c_long) {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let mut steps = [
        step(load, 0, 0, 0),
        step(equal, 0, 1, call as u32),
        step(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: a whole program; it concerns this process, which is a test's child.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program),
            0
        );
    }
}

/// Sets the limit on file sizes.
fn limit_files(most: u64) {
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a whole rlimit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
}

/// A ring that cannot be taken up, or not be followed into a large one, does not keep the receiver from sleeping, and
/// is read as soon as it can be.
#[test]
fn a_ring_that_cannot_be_taken_up_keeps_nobody_awake() {
    let dir = Dir::new();
    let child = Child::run(|| {
        let (mut end, mut other) = (dir.open("here"), dir.open("there"));
        let to = other.peer(b"here").unwrap();
        let mut kept = Kept::default();
        // The first claims a small ring, the second goes on in a large one.
        for id in [0, 7] {
            push_all(&mut other, to, id..id + 1, &mut Kept::default());
            limit_files(4096);
            let before = kept.packets.len();
            let asleep = (0..1000).any(|_| {
                end.poll(&mut kept, 8);
                end.arm()
            });
            assert!(asleep && kept.packets.len() == before, "{id}");
            end.disarm();
            limit_files(libc::RLIM_INFINITY);
            poll_until(&mut end, &mut kept, |kept| kept.packets.len() > before);
            assert_whole(kept.packets.last().unwrap(), id);
        }
    });
    assert_eq!(child.wait(), 0);
}
