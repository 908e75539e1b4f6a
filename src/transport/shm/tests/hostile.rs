//! Files with any contents: the worst that may come of it is that a peer counts as gone.

use super::*;
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;

/// Writes over an endpoint's file, from outside.
fn scribble(dir: &Dir, address: &str, writes: &[(u64, Vec<u8>)]) {
    let path = name::endpoint_file(&dir.0, address.as_bytes());
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let size = file.metadata().unwrap().len();
    for (at, bytes) in writes {
        let at = at % size;
        let fits = bytes.len().min((size - at) as usize);
        file.write_all_at(&bytes[..fits], at).unwrap();
    }
}

/// Places worth writing to, and bytes worth writing there.
fn writes() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let first_ring = lane::lane_at(0) as u64;
    let place = prop_oneof![
        // The header, the states, the control block, the first cells, anywhere.
        (0..2048u64 / 8).prop_map(|word| word * 8),
        (2048..2100u64).prop_map(|at| at & !3),
        (0..512u64 / 8).prop_map(move |word| first_ring + word * 8),
        (0..40u64 * 8).prop_map(move |word| first_ring + 512 + word * 8),
        (0..40u64).prop_map(move |cell| first_ring + 512 + cell * 32),
        any::<u64>(),
    ];
    let word = |(lap, kind, len): (u64, u64, u16)| lap << 20 | kind << 16 | u64::from(len);
    let len = prop_oneof![any::<u16>(), 0..10u16];
    let record = (0..4u64, 0..5u64, len).prop_map(word);
    let bytes = prop_oneof![
        record.prop_map(|word| word.to_le_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 1..200),
        any::<u64>().prop_map(|word| word.to_le_bytes().to_vec()),
        Just(vec![0xff; 64]),
        Just(vec![1, 0, 0, 0]),
    ];
    proptest::collection::vec((place, bytes), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Neither the owner of the file nor its sender panics, hangs or leaves its memory.
    #[test]
    fn nobody_falls_over_garbage(first in writes(), second in writes()) {
        let dir = Dir::new();
        let config = Config { warn: |_| {}, ..dir.config() };
        let open = |address: &str| ShmTransport::open(address, &config).unwrap();
        let (mut a, mut b) = (open("a"), open("b"));
        let (to_a, to_b) = (b.peer(b"a").unwrap(), a.peer(b"b").unwrap());
        let mut kept = Kept::default();
        let exchange = |a: &mut ShmTransport, b: &mut ShmTransport, kept: &mut Kept| {
            for id in 0..40 {
                let _ = a.push(to_b, &header(id), Body::Bytes(&body(id)), None);
                let _ = b.push(to_a, &header(id), Body::Bytes(&body(id)), None);
                a.poll(kept, 8);
                b.poll(kept, 8);
            }
            if b.arm() {
                b.disarm();
            }
            let _ = a.arm();
            a.disarm();
        };
        exchange(&mut a, &mut b, &mut kept);
        scribble(&dir, "b", &first);
        exchange(&mut a, &mut b, &mut kept);
        a.check_peers(&mut kept);
        scribble(&dir, "a", &second);
        exchange(&mut a, &mut b, &mut kept);
        b.check_peers(&mut kept);
        // Another endpoint connects to both.
        let mut c = open("c");
        for address in [&b"a"[..], b"b"] {
            let to = c.peer(address).unwrap();
            let _ = c.push(to, &header(0), Body::Empty, None);
        }
        exchange(&mut a, &mut b, &mut kept);
    }
}

#[test]
fn files_that_are_no_endpoints_are_nobody() {
    let dir = Dir::new();
    let mut a = dir.open("a");
    let size = layout::header_bytes();
    std::fs::write(name::endpoint_file(&dir.0, b"short"), "x").unwrap();
    std::fs::write(name::endpoint_file(&dir.0, b"empty"), vec![0; size]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", name::endpoint_file(&dir.0, b"link")).unwrap();
    let fifo = std::ffi::CString::new(name::endpoint_file(&dir.0, b"fifo").into_os_string().into_vec()).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    std::fs::create_dir(name::endpoint_file(&dir.0, b"dir")).unwrap();
    // A living endpoint of another version.
    let _b = dir.open("b");
    scribble(&dir, "b", &[(8, vec![255])]);
    for address in ["short", "empty", "link", "fifo", "dir", "b"] {
        let to = a.peer(address.as_bytes()).unwrap();
        assert_eq!(
            a.push(to, &header(0), Body::Empty, None),
            Push::Unreachable(Unreached::Nobody),
            "{address}"
        );
    }
}

#[test]
fn a_broken_ring_ends_its_sender_and_no_other() {
    let dir = Dir::new();
    let (mut hub, mut bad, mut good) = (dir.open("hub"), dir.open("bad"), dir.open("good"));
    let mut kept = Kept::default();
    let (from_bad, from_good) = (bad.peer(b"hub").unwrap(), good.peer(b"hub").unwrap());
    push_all(&mut bad, from_bad, 0..1, &mut Kept::default());
    push_all(&mut good, from_good, 0..1, &mut Kept::default());
    poll_until(&mut hub, &mut kept, |kept| kept.packets.len() == 2);
    // The second record of the first ring.
    let second_line = lane::lane_at(0) as u64 + lane::CONTROL_BYTES as u64 + 64;
    scribble(&dir, "hub", &[(second_line, vec![0x55; 8])]);
    poll_until(&mut hub, &mut kept, |kept| kept.gone.len() == 1);
    let number = hub.peer(b"bad").unwrap();
    assert_eq!(kept.gone, [number]);
    // The sender finds out, and can connect again.
    assert_eq!(bad.push(from_bad, &header(1), Body::Empty, None), Push::Gone);
    let mut at_bad = Kept::default();
    poll_until(&mut bad, &mut at_bad, |kept| kept.gone.len() == 1);
    push_all(&mut bad, from_bad, 0..3, &mut at_bad);
    push_all(&mut good, from_good, 1..3, &mut Kept::default());
    poll_until(&mut hub, &mut kept, |kept| kept.packets.len() == 7);
}

/// Behind the wide ring there is no larger one.
#[test]
fn a_third_move_to_another_ring_ends_its_sender() {
    let dir = Dir::new();
    let (mut hub, mut bad) = (dir.open("hub"), dir.open("bad"));
    let mut kept = Kept::default();
    let to = bad.peer(b"hub").unwrap();
    let number = hub.peer(b"bad").unwrap();
    for moves in 0..3 {
        push_all(&mut bad, to, moves..moves + 1, &mut Kept::default());
        poll_until(&mut hub, &mut kept, |kept| kept.packets.len() == moves as usize + 1);
        let out = bad.peers.get_mut(to).unwrap().out.as_mut().unwrap();
        match moves {
            2 => out.producer.move_on(out.lane.rows(), out.lane.rows()),
            _ => assert!(out.grow()),
        }
    }
    poll_until(&mut hub, &mut kept, |kept| !kept.gone.is_empty());
    assert_eq!((kept.gone, kept.packets.len()), (vec![number], 3));
}

/// A peer that names another's process in its file, with all that other files say of that, is not believed; nor is a
/// peer whose file changes after it was read.
#[test]
fn a_process_is_whose_file_it_has() {
    let dir = Dir::new();
    let (mut victim, _liar, mut us) = (dir.open("victim"), dir.open("liar"), dir.open("us"));
    let mut bytes = [7u8; 64];
    // SAFETY: the memory outlives the calls.
    let iov = UserIov::one(unsafe { UserBuf::new(bytes.as_mut_ptr(), bytes.len()) });
    let remote = victim.expose(0, &iov, ExposedName::Sent(1)).unwrap().remote;
    let mut into = [0u8; 64];
    // SAFETY: as above.
    let local = UserIov::one(unsafe { UserBuf::new(into.as_mut_ptr(), into.len()) });
    let honest = std::fs::read(name::endpoint_file(&dir.0, b"victim")).unwrap();
    // Instance, pid and probe; owner page.
    scribble(
        &dir,
        "liar",
        &[(16, honest[16..40].to_vec()), (56, honest[56..64].to_vec())],
    );
    let to = us.peer(b"liar").unwrap();
    assert_eq!(us.get(to, &remote, &local, 0, 64, Some(1)), port::Get::Unsupported);
    assert_eq!(into, [0; 64]);
    let to = us.peer(b"victim").unwrap();
    assert_eq!(us.get(to, &remote, &local, 0, 64, Some(1)), port::Get::Done);
    scribble(&dir, "victim", &[(16, vec![0xee; 24])]);
    let out = us.peers.get(to).and_then(|peer| peer.out.as_ref()).unwrap();
    assert_eq!((out.instance(), out.pid()), (victim.own.instance, std::process::id()));
}
