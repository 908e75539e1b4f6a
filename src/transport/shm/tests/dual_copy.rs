//! Dual copies: of large messages by receiver and sender, and of regions by initiator and target.

use super::*;
use crate::transport::shm::dual_copy::{HelperState, TakeFrom, helper_word, take_piece};
use crate::transport::shm::lane::Lane;
use crate::util::regions::Region;
use crate::util::user::UserBuf;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) const LEN: usize = 3 << 20;

/// A sink that records how gets end, and has one message and some regions to be asked for.
#[derive(Default)]
pub(super) struct GetSink {
    pub ended: Vec<(Token, bool)>,
    gone: Vec<PeerId>,
    sent: Option<UserIov>,
    regions: Option<Arc<Regions>>,
}

/// The name of that message.
const SENT: ExposedName = ExposedName::Sent(3);

impl GetSink {
    fn sending(iov: UserIov) -> GetSink {
        GetSink {
            sent: Some(iov),
            ..GetSink::default()
        }
    }

    pub fn showing(regions: &Arc<Regions>) -> GetSink {
        GetSink {
            regions: Some(regions.clone()),
            ..GetSink::default()
        }
    }
}

impl Sink for GetSink {
    fn place(&mut self, _: PeerId, _: &Header, _: usize) -> Placement {
        Placement::Drop
    }
    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}
    fn exposed_memory(&mut self, _: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        match name {
            ExposedName::Region(part) => {
                let rights = crate::transport::shm::direct_access::rights(access);
                let found = self.regions.as_ref()?.find(1, part.key, part.addr, part.len, rights);
                Some(found.ok()?.memory)
            }
            name => self.sent.filter(|_| *name == SENT && access == Access::Read),
        }
    }
    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        self.ended.push((token, result.is_ok()));
    }
    fn gone(&mut self, peer: PeerId, _: Loss) {
        self.gone.push(peer);
    }
}

pub(super) fn iov(bytes: &mut [u8]) -> UserIov {
    let (first, rest) = bytes.split_at_mut(bytes.len() / 3);
    // SAFETY: the memory outlives the calls in every test.
    UserIov::new([first, rest].map(|part| unsafe { UserBuf::new(part.as_mut_ptr(), part.len()) })).unwrap()
}

pub(super) fn pattern(round: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + at / 4096 + round) as u8).collect()
}

/// Fetches, and polls until that has ended. Whether it succeeded.
fn fetch(end: &mut ShmTransport, from: PeerId, remote: &Remote, into: &UserIov, at: usize, len: usize) -> bool {
    let mut sink = GetSink::default();
    match end.get(from, remote, into, at, len, Some(9)) {
        port::Get::Done => return true,
        port::Get::Later => {}
        other => panic!("{other:?}"),
    }
    let start = Instant::now();
    while sink.ended.is_empty() {
        end.poll(&mut sink, 64);
        assert!(start.elapsed() < PATIENCE, "never finished");
    }
    assert_eq!(sink.ended.first().map(|(token, _)| *token), Some(9));
    sink.ended.iter().all(|(_, ok)| *ok)
}

/// Opens two endpoints that have a ring in each other's file.
pub(super) fn joined(dir: &Dir) -> (ShmTransport, ShmTransport, PeerId, PeerId) {
    let (mut a, mut b) = (dir.open("a"), dir.open("b"));
    let (to_b, to_a) = (a.peer(b"b").unwrap(), b.peer(b"a").unwrap());
    for (end, to) in [(&mut a, to_b), (&mut b, to_a)] {
        assert_eq!(end.push(to, &header(1), Body::Empty, None), Push::Done);
    }
    for end in [&mut a, &mut b] {
        poll_until(end, &mut Kept::default(), |kept| !kept.packets.is_empty());
    }
    (a, b, to_b, to_a)
}

/// How many pieces the peer has copied of the last dual copy.
fn helped(end: &ShmTransport, peer: PeerId) -> u64 {
    let lane = end.peers.get(peer).and_then(|peer| peer.lane).unwrap();
    end.inbox.lane(lane).unwrap().helped().load(Ordering::Acquire) & 0xffff
}

/// The lane that an endpoint has in its peer's file.
pub(super) fn lane(end: &ShmTransport, peer: PeerId) -> &Lane {
    &end.peers.get(peer).and_then(|peer| peer.out.as_ref()).unwrap().lane
}

/// Begins copies, until a helper has taken a piece of one and is stopped then. Returns the number of that one, whose
/// beginner waits. `poll`: has the helper's endpoint answer to a copy of which it took none.
pub(super) fn until_a_helper_stops(
    (helper, to_beginner): (&mut ShmTransport, PeerId),
    (beginner, to_helper): (&mut ShmTransport, PeerId),
    mut begin: impl FnMut(&mut ShmTransport) -> port::Get,
    mut poll: impl FnMut(&mut ShmTransport) -> usize,
) -> u32 {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < PATIENCE, "the helper never takes a piece");
        let number = beginner.peers.get(to_helper).unwrap().last_dual_copy + 1;
        let pieces = lane(helper, to_beginner).pieces();
        let (got, taken) = beside_a_stopped_helper(pieces, number, || begin(beginner));
        if taken {
            assert_eq!(got, port::Get::Later);
            return number;
        }
        assert_eq!(got, port::Get::Done);
        poll(helper);
    }
}

/// The same of one copy, of this number, if the helper is quick enough. Returns how the copy began, and whether a piece
/// was taken.
fn beside_a_stopped_helper(pieces: &AtomicU64, number: u32, begin: impl FnOnce() -> port::Get) -> (port::Get, bool) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| {
            let mut tries = core::iter::from_fn(|| (!over.load(Ordering::Relaxed)).then_some(()));
            tries.any(|()| take_piece(pieces, number, TakeFrom::Back).is_some())
        });
        let got = begin();
        over.store(true, Ordering::Relaxed);
        (got, taken.join().unwrap())
    })
}

#[test]
fn whoever_does_how_much_the_bytes_are_there() {
    let dir = Dir::new();
    let (mut a, mut b, to_b, to_a) = joined(&dir);
    let mut from = pattern(0, LEN);
    let source = iov(&mut from);
    let remote = a.expose(to_b, &source, SENT).unwrap().remote;
    let (stop, done_by_a) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                a.poll(&mut GetSink::sending(source), 64);
                std::thread::yield_now();
            }
        });
        scope.spawn(|| {
            // Until the sender has copied a piece, however the two are scheduled.
            let start = Instant::now();
            for round in 0.. {
                let at = round * 1001 % 5000;
                let len = (64 << 10) + round * 77_777 % (LEN - (128 << 10));
                let mut to = vec![0u8; LEN];
                assert!(fetch(&mut b, to_a, &remote, &iov(&mut to), at, len));
                assert!(to[at..at + len] == pattern(0, LEN)[at..at + len]);
                assert!(to[..at].iter().chain(&to[at + len..]).all(|byte| *byte == 0));
                done_by_a.fetch_add(helped(&b, to_a), Ordering::Relaxed);
                if round > 40 && done_by_a.load(Ordering::Relaxed) > 0 {
                    break;
                }
                assert!(start.elapsed() < PATIENCE, "the sender never helps");
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

/// A sender that polls only later finds no pieces left, and is not asked again before that.
#[test]
fn a_busy_sender_is_not_waited_for() {
    let dir = Dir::new();
    let (mut a, mut b, to_b, to_a) = joined(&dir);
    let mut from = pattern(3, LEN);
    let source = iov(&mut from);
    let remote = a.expose(to_b, &source, SENT).unwrap().remote;
    for round in 0..2000 {
        let mut to = vec![0u8; 128 << 10];
        let len = to.len();
        assert_eq!(b.get(to_a, &remote, &iov(&mut to), 0, len, Some(1)), port::Get::Done);
        assert!(to == from[..len]);
        if round % 500 == 499 {
            let asked = b.peers.get(to_a).unwrap().last_dual_copy;
            assert_eq!(asked, round / 500 + 1);
            a.poll(&mut GetSink::sending(source), 64);
            assert_eq!(helped(&b, to_a), 0);
        }
    }
}

/// While the sender still copies one message, the next is not begun; pieces at which it fails are copied by the
/// receiver.
#[test]
fn one_message_after_the_other() {
    let dir = Dir::new();
    let (mut a, mut b, to_b, to_a) = joined(&dir);
    let mut from = pattern(4, LEN);
    let source = iov(&mut from);
    let remote = a.expose(to_b, &source, SENT).unwrap().remote;
    let (mut first, mut second) = (vec![0u8; LEN], vec![0u8; LEN]);
    let (first_iov, second_iov) = (iov(&mut first), iov(&mut second));
    let number = until_a_helper_stops(
        (&mut a, to_b),
        (&mut b, to_a),
        |b| b.get(to_a, &remote, &first_iov, 0, LEN, Some(1)),
        |a| a.poll(&mut GetSink::sending(source), 64),
    );
    let mut sink = GetSink::default();
    for _ in 0..3 {
        assert_eq!(b.get(to_a, &remote, &second_iov, 0, LEN, Some(2)), port::Get::Full);
        b.poll(&mut sink, 64);
        assert!(sink.ended.is_empty());
    }
    lane(&a, to_b)
        .helped()
        .store(helper_word(number, HelperState::Failed, 0), Ordering::Release);
    b.poll(&mut sink, 64);
    assert_eq!(sink.ended, [(1, true)]);
    assert!(first == from);
    a.poll(&mut GetSink::sending(source), 64);
    assert!(fetch(&mut b, to_a, &remote, &second_iov, 0, LEN));
    assert!(second == from);
}

/// An endpoint closes though a sender was stopped with a piece of a message, and a sender that comes later leaves the
/// memory alone.
#[test]
fn an_endpoint_closes_without_a_stopped_sender() {
    let dir = Dir::new();
    let (mut a, mut b, to_b, to_a) = joined(&dir);
    let mut from = pattern(4, LEN);
    let source = iov(&mut from);
    let remote = a.expose(to_b, &source, SENT).unwrap().remote;
    let mut to = vec![0u8; LEN];
    let target = iov(&mut to);
    let number = until_a_helper_stops(
        (&mut a, to_b),
        (&mut b, to_a),
        |b| b.get(to_a, &remote, &target, 0, LEN, Some(1)),
        |a| a.poll(&mut GetSink::sending(source), 64),
    );
    drop(b);
    to.fill(7);
    // As if there were pieces left when the sender reads the request.
    let word = |front: u64, back: u64| u64::from(number) << 32 | front << 16 | back;
    lane(&a, to_b).pieces().store(word(0, 2), Ordering::Release);
    a.poll(&mut GetSink::sending(source), 64);
    assert!(to.iter().all(|byte| *byte == 7));
}

/// A sender whose system forbids process_vm_writev fails, and the receiver copies all.
#[test]
fn a_sender_that_may_not_write_leaves_it_to_the_receiver() {
    let dir = Dir::new();
    let mut from = pattern(5, LEN);
    let mut to = vec![0u8; LEN];
    let (source, target) = (iov(&mut from), iov(&mut to));
    let mut receiver = dir.open("b");
    let child = Child::run(|| {
        super::refused::forbid(libc::SYS_process_vm_writev);
        let mut a = dir.open("a");
        let to_b = a.peer(b"b").unwrap();
        let remote = a.expose(to_b, &source, SENT).unwrap().remote;
        assert_eq!(a.push(to_b, &header(1), Body::Bytes(remote.bytes()), None), Push::Done);
        let mut sink = GetSink::sending(source);
        while sink.gone.is_empty() {
            a.poll(&mut sink, 64);
        }
    });
    let mut kept = Kept::default();
    poll_until(&mut receiver, &mut kept, |kept| !kept.packets.is_empty());
    let (peer, _, bytes) = kept.packets.remove(0);
    let remote = Remote::new(&bytes).unwrap();
    for _ in 0..20 {
        assert!(fetch(&mut receiver, peer, &remote, &target, 0, LEN));
        assert!(to == pattern(5, LEN));
        target.write(0, &vec![0; LEN]);
    }
    drop(receiver);
    assert_eq!(child.wait(), 0);
}

// ---- regions ----

pub(super) const KEY: u64 = 5;

/// Registers private memory with an endpoint.
pub(super) fn open(end: &mut ShmTransport, memory: &mut [u8]) -> Arc<Regions> {
    let regions = Arc::new(Regions::new(false, true));
    end.publish_regions(&regions, 1);
    // SAFETY: the memory outlives the calls in every test.
    let memory = UserIov::one(unsafe { UserBuf::new(memory.as_mut_ptr(), memory.len()) });
    assert_eq!(regions.add(region(memory), KEY), Some(KEY));
    regions
}

pub(super) fn region(memory: UserIov) -> Region {
    Region {
        memory,
        rights: Rights::BOTH,
        base: 0,
        enabled: true,
        endpoint: None,
        counted: false,
    }
}

pub(super) fn part(at: usize, len: usize) -> RemotePart {
    RemotePart {
        addr: at as u64,
        len,
        key: KEY,
    }
}

/// Copies, and polls until that has ended. Whether it succeeded.
fn copy(end: &mut ShmTransport, to: PeerId, part: &RemotePart, local: &UserIov, access: Access) -> bool {
    let mut sink = GetSink::default();
    match end.copy(to, &copy_op(part, local, access), 9) {
        port::Get::Done => return true,
        port::Get::Later => {}
        other => panic!("{other:?}"),
    }
    let start = Instant::now();
    while sink.ended.is_empty() {
        end.poll(&mut sink, 64);
        assert!(start.elapsed() < PATIENCE, "never finished");
    }
    sink.ended == [(9, true)]
}

#[test]
fn a_target_that_looks_helps_to_copy() {
    for access in [Access::Read, Access::Write] {
        let dir = Dir::new();
        let (mut target, mut end, _, to) = joined(&dir);
        let mut memory = pattern(1, LEN);
        let regions = open(&mut target, &mut memory);
        let (stop, helped_with) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    target.poll(&mut GetSink::showing(&regions), 64);
                    std::thread::yield_now();
                }
            });
            scope.spawn(|| {
                let (mut wanted, start) = (pattern(1, LEN), Instant::now());
                for round in 2.. {
                    let at = round * 1001 % 5000;
                    let len = (64 << 10) + round * 77_777 % (LEN - (128 << 10));
                    let mut bytes = pattern(round, len);
                    match access {
                        Access::Write => wanted[at..at + len].copy_from_slice(&bytes),
                        Access::Read => bytes.fill(0),
                    }
                    assert!(copy(&mut end, to, &part(at, len), &iov(&mut bytes), access));
                    assert!(bytes == wanted[at..at + len]);
                    helped_with.fetch_add(helped(&end, to), Ordering::Relaxed);
                    if round > 40 && helped_with.load(Ordering::Relaxed) > 0 {
                        break;
                    }
                    assert!(start.elapsed() < PATIENCE, "the target never helps");
                }
                let mut all = vec![0; LEN];
                assert!(copy(&mut end, to, &part(0, LEN), &iov(&mut all), Access::Read));
                assert!(all == wanted);
                stop.store(true, Ordering::Relaxed);
            });
        });
    }
}

/// A target that does not poll is not waited for. Nor does what follows wait: direct access may overtake the request.
#[test]
fn a_target_that_does_not_look_is_not_waited_for() {
    let dir = Dir::new();
    let (mut target, mut end, _, to) = joined(&dir);
    let mut memory = pattern(1, LEN);
    let regions = open(&mut target, &mut memory);
    for round in 0..300 {
        let len = 100_000 + round;
        let mut bytes = pattern(round, len);
        for access in [Access::Write, Access::Read] {
            assert_eq!(
                end.copy(to, &copy_op(&part(round, len), &iov(&mut bytes), access), 9),
                port::Get::Done
            );
        }
        assert!(bytes == pattern(round, len) && memory[round..round + len] == bytes);
        if round % 100 == 99 {
            assert_eq!(end.peers.get(to).unwrap().last_dual_copy as usize, round / 100 + 1);
            target.poll(&mut GetSink::showing(&regions), 64);
            assert_eq!(helped(&end, to), 0);
        }
    }
    // A packet of the engine's is not overtaken.
    assert_eq!(end.push(to, &header(1), Body::Empty, None), Push::Done);
    let mut bytes = vec![0; 100_000];
    let local = iov(&mut bytes);
    let mut again = || end.copy(to, &copy_op(&part(0, 100_000), &local, Access::Read), 9);
    assert_eq!(again(), port::Get::Unsupported);
    target.poll(&mut GetSink::default(), 64);
    assert_eq!(again(), port::Get::Done);
}

/// A region that is closed before the target reads the request is left alone by both.
#[test]
fn what_was_closed_meanwhile_is_not_touched() {
    for access in [Access::Read, Access::Write] {
        let dir = Dir::new();
        let (mut target, mut end, to_end, to) = joined(&dir);
        let mut memory = vec![1; LEN];
        let regions = open(&mut target, &mut memory);
        let mut bytes = vec![2; LEN];
        let local = iov(&mut bytes);
        let number = until_a_helper_stops(
            (&mut target, to_end),
            (&mut end, to),
            |end| end.copy(to, &copy_op(&part(0, LEN), &local, access), 9),
            |target| target.poll(&mut GetSink::showing(&regions), 64),
        );
        regions.remove(KEY).unwrap();
        memory.fill(3);
        local.write(0, &[4; LEN]);
        let (mut sink, mut helping) = (GetSink::default(), GetSink::showing(&regions));
        end.poll(&mut sink, 64);
        assert!(sink.ended.is_empty());
        // The target reads the request now, and finds no such region.
        target.poll(&mut helping, 64);
        assert_eq!(helped(&end, to), 0);
        lane(&target, to_end)
            .helped()
            .store(helper_word(number, HelperState::Failed, 0), Ordering::Release);
        end.poll(&mut sink, 64);
        assert_eq!(sink.ended, [(9, false)]);
        assert!(memory.iter().all(|byte| *byte == 3));
        assert!(bytes.iter().all(|byte| *byte == 4));
    }
}
