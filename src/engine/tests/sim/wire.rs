//! One end of all lanes: what the engine under test has as its transport.

use super::*;
use crate::engine::op::Unreached;
use crate::engine::recall::KERNEL_COPY;

/// A body on the way to its place, or a get or copy in flight.
pub(super) enum Moving {
    Into(UserIov, usize, Vec<u8>),
    Leased(Lease, Vec<u8>),
    Keep(Vec<u8>),
    Get(UserIov, UserIov, usize, usize),
    /// A copy of so many bytes from or to a peer's region, which may be closed meanwhile.
    Copy(Lease, UserIov, Access, usize),
}

/// One end of all lanes.
pub struct Wire {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) me: PeerId,
    pub(super) peers: PeerId,
    pub(super) moving: Vec<(PeerId, Token, Moving)>,
    /// Pushes that have ended and are to be told.
    pub(super) owed: Vec<(PeerId, Token)>,
    pub(super) told: Vec<PeerId>,
    /// Nothing was pushed to these since their lanes were recalled: copies may overtake what stayed there.
    pub(super) passed: Vec<PeerId>,
}

impl Transport for Wire {
    const PUSHES_LATER: bool = true;

    fn limits(&self) -> Limits {
        let manner = self.world.borrow().manner;
        let at_once = manner.late == 0;
        Limits {
            sync_placement: at_once && manner.limits.sync_placement,
            ..manner.limits
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        Some(PeerId::from_le_bytes(address.try_into().ok()?))
    }

    fn is_sooner_sent(&mut self, _: PeerId, _: usize, around: Around) -> bool {
        let mut world = self.world.borrow_mut();
        world.around.push(around);
        world.roll(16) < world.manner.sooner_sent
    }

    fn is_held_up(&mut self, _: PeerId) -> bool {
        let mut world = self.world.borrow_mut();
        let of_16 = world.manner.held_up;
        of_16 > 0 && world.roll(16) < of_16
    }

    fn came_late(&mut self, _: PeerId) -> bool {
        let mut world = self.world.borrow_mut();
        let of_16 = world.manner.came_late;
        of_16 > 0 && world.roll(16) < of_16
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        let mut world = self.world.borrow_mut();
        if to >= self.peers {
            return Push::Unreachable(Unreached::Nobody);
        }
        if world.dead.contains(&to) {
            world.knocks += 1;
            return Push::Gone;
        }
        if world.manner.no_lanes {
            return Push::NoMemory;
        }
        let (depth, full) = (world.manner.depth, world.manner.full);
        if world.lanes.get(&(self.me, to)).is_some_and(|lane| lane.len() >= depth) || world.roll(16) < full {
            return Push::Full;
        }
        let limits = &world.manner.limits;
        assert!(body.len() <= limits.max_body || header.packet == Packet::Write && body.len() <= limits.short_write());
        // An atomic must be one packet.
        let whole = matches!(
            header.packet,
            Packet::Atomic | Packet::FetchAtomic | Packet::CompareAtomic
        );
        let (guaranteed, poor) = (world.manner.limits.guaranteed_body, world.manner.poor);
        if body.len() > guaranteed && !whole && world.roll(16) < poor {
            return Push::TooLong;
        }
        let keeps = world.manner.keeps;
        let gathered = notice == Some(Notice::ANSWERED) && world.roll(16) < keeps;
        let kept = Notice::to_tell(notice)
            .filter(|_| keeps > 0 && world.roll(16) < keeps)
            .map(|notice| Kept {
                body: match body {
                    Body::User { iov, at, len } => Some((*iov, at, len)),
                    Body::Empty | Body::Bytes(_) => None,
                },
                token: notice.token,
            });
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, len } => assert_eq!(iov.read(at, &mut bytes), len),
        }
        let mut header = Header::decode(&header.encode()).expect("what was encoded can be decoded");
        if let Some(code) = world.forged_code.filter(|_| whole) {
            header.code = code;
        }
        *world.packets.entry(header.packet as u8).or_default() += 1;
        self.passed.retain(|peer| *peer != to);
        world.put_later(self.me, to, header, &bytes, kept);
        if kept.is_some() || gathered {
            Push::Later
        } else {
            Push::Done
        }
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        self.moving.retain(|(from, ..)| *from != peer);
        self.owed.retain(|(to, _)| *to != peer);
        let mut world = self.world.borrow_mut();
        let lane = world.lanes.get_mut(&(self.me, peer)).into_iter().flatten();
        lane.for_each(|flight| flight.kept = None);
        true
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        *self.world.borrow_mut().polls.entry(self.me).or_default() += 1;
        self.land(sink);
        self.send_kept(sink);
        let peers = self.peers;
        let first = self.world.borrow_mut().roll(u64::from(peers)) as PeerId;
        let mut left = budget;
        for from in (0..peers).map(|n| (n + first) % peers) {
            while left > 0 && self.take(from, sink) {
                left -= 1;
            }
            self.mourn(from, sink);
        }
        budget - left
    }

    fn is_itself(&self, peer: PeerId) -> bool {
        peer == self.me
    }

    fn expose(&mut self, _: PeerId, iov: &UserIov, _: ExposedName) -> Option<Exposed> {
        let mut world = self.world.borrow_mut();
        let unwilling = world.manner.gets[0];
        if world.roll(32) < unwilling {
            return None;
        }
        world.exposures += 1;
        let id = world.exposures;
        let told = iov.len() > world.manner.limits.gets_at_once;
        let all = if told { &mut world.exposed } else { &mut world.lent };
        all.insert(id, (self.me, *iov));
        Some(Exposed {
            remote: Remote::new(&id.to_le_bytes())?,
            id: told.then_some(id),
        })
    }

    fn unexpose(&mut self, _: PeerId, id: u64) {
        let (owner, _) = self.world.borrow_mut().exposed.remove(&id).expect("exposed, and once");
        assert_eq!(owner, self.me);
    }

    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get {
        let mut world = self.world.borrow_mut();
        world.gets_alone += usize::from(token.is_none());
        let [unsupported, failing, at_once] = world.manner.gets;
        let (full, roll) = (world.manner.full, world.roll(16));
        if world.dead.contains(&from) {
            return Get::Gone;
        }
        if world.roll(16) < full {
            return Get::Full;
        }
        let id = u64::from_le_bytes(remote.bytes().try_into().unwrap());
        let (owner, theirs) = *world.exposed.get(&id).or(world.lent.get(&id)).unwrap();
        assert_eq!(owner, from);
        if roll < unsupported {
            return Get::Unsupported;
        }
        let begun = len;
        // A failing get may have copied nothing.
        let len = if roll < unsupported + failing { 0 } else { len };
        let get = Moving::Get(theirs, *local, at, len);
        let at_once = if begun > world.manner.limits.gets_at_once {
            at_once
        } else {
            16
        };
        if roll >= unsupported + failing && roll < unsupported + failing + at_once {
            drop(world);
            land(get);
            return Get::Done;
        }
        // Like a network card: a get that would end later cannot be done without a token.
        let Some(token) = token else {
            return Get::Unsupported;
        };
        drop(world);
        self.moving.push((from, token, get));
        Get::Later
    }

    fn copy(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        let (&CopyOp { access, data: None, .. }, [part], Local::User(local)) = (copy, copy.parts, copy.local) else {
            return Get::Unsupported;
        };
        let mut world = self.world.borrow_mut();
        let [at_once, later, failing] = world.manner.copies;
        let roll = world.roll(16);
        let empty = world.lanes.get(&(self.me, to)).is_none_or(VecDeque::is_empty);
        let seen = world.manner.late == 0 && (empty || self.passed.contains(&to));
        let short = part.len <= world.manner.limits.short_write();
        let rights = match access {
            Access::Read => Rights::READ,
            Access::Write => Rights::WRITE,
        };
        let found = world.regions[to as usize].find(0, part.key, part.addr, part.len, rights);
        let Some(theirs) = found
            .ok()
            .filter(|found| seen && !found.counted && !world.dead.contains(&to))
        else {
            return Get::Unsupported;
        };
        drop(world);
        let (from, into) = match access {
            Access::Read => (theirs.memory, *local),
            Access::Write => (*local, theirs.memory),
        };
        let at_once = if short { at_once + later } else { at_once };
        if roll < at_once {
            land(Moving::Get(from, into, 0, part.len));
            return Get::Done;
        }
        if short || roll >= at_once + later + failing {
            return Get::Unsupported;
        }
        let len = if roll < at_once + later { part.len } else { 0 };
        let regions = self.world.borrow().regions[to as usize].clone();
        let Ok((lease, _)) = regions.lease(0, part.key, part.addr, part.len, rights) else {
            return Get::Unsupported;
        };
        self.moving.push((to, token, Moving::Copy(lease, *local, access, len)));
        Get::Later
    }

    fn takes_writes(&mut self, to: PeerId, part: &RemotePart) -> bool {
        let regions = &self.world.borrow().regions[to as usize];
        let found = regions.find(0, part.key, part.addr, part.len, Rights::WRITE);
        found.is_ok_and(|found| !found.counted)
    }

    fn poll_mark(&self, to: PeerId) -> PollMark {
        let mut world = self.world.borrow_mut();
        world.looks += 1;
        PollMark {
            changes: world.polls.get(&to).map_or(0, |polls| polls / 4),
            nanos: KERNEL_COPY * world.looks / world.looks_per_copy.max(1),
        }
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        self.take_back(to, judge)
    }
}

/// Moves the bytes and tells the engine.
fn tell<S: Sink>(sink: &mut S, token: Token, moving: Moving) {
    let (get, leased) = (
        matches!(moving, Moving::Get(..) | Moving::Copy(..)),
        matches!(moving, Moving::Leased(..)),
    );
    match (get, land(moving)) {
        (true, (true, _)) => sink.finished(token, Ok(())),
        (true, (false, _)) => sink.finished(token, Err(NotDone::AskPeer)),
        (false, (false, _)) if leased => sink.cut(token),
        (false, (_, buffer)) => sink.placed(token, buffer),
    }
}

/// Moves the bytes; says whether it worked, and gives back a buffer that was lent.
pub(super) fn land(moving: Moving) -> (bool, Option<Vec<u8>>) {
    match moving {
        Moving::Into(iov, at, bytes) => (iov.write(at, &bytes) <= bytes.len(), None),
        Moving::Leased(lease, bytes) => (lease.write(0, &bytes), None),
        Moving::Keep(bytes) => (true, Some(bytes)),
        Moving::Get(from, into, at, len) => {
            let mut bytes = vec![0; len];
            assert_eq!(from.read(at, &mut bytes), len);
            assert_eq!(into.write(at, &bytes), len);
            (len > 0, None)
        }
        Moving::Copy(lease, local, access, len) => {
            let copied = lease.with(|theirs| match access {
                Access::Read => theirs.part(0, len).copy_to(&local),
                Access::Write => local.part(0, len).copy_to(theirs),
            });
            (copied.is_some_and(|copied| copied > 0), None)
        }
    }
}

impl Wire {
    /// Takes the next packet from a peer, if one is due and wanted.
    fn take<S: Sink>(&mut self, from: PeerId, sink: &mut S) -> bool {
        let mut world = self.world.borrow_mut();
        let (now, late) = (world.now, world.manner.late);
        let Some(lane) = world.lanes.get_mut(&(from, self.me)) else {
            return false;
        };
        let Some(flight) = due(lane, now) else {
            return false;
        };
        let later = world.roll(16) < late;
        let (to, header) = (self.me, flight.header);
        let at_once = !later && world.roll(2) == 0;
        drop(world);
        if at_once && sink.take(from, &header, &flight.body) {
            return true;
        }
        let (token, moving) = match sink.place(from, &header, flight.body.len()) {
            Placement::Into { iov, at, token } => (token, Moving::Into(iov, at, flight.body)),
            Placement::Leased { lease, token } => {
                assert_eq!(lease.len(), flight.body.len());
                (token, Moving::Leased(lease, flight.body))
            }
            Placement::Keep { buffer, token } => {
                assert_eq!(buffer.len(), flight.body.len());
                (token, Moving::Keep(flight.body))
            }
            Placement::Drop => return true,
            Placement::Refuse => {
                // An engine refuses an honest peer's packet only while an earlier one is still landing.
                let lands = self.moving.iter().any(|(of, ..)| *of == from);
                assert!(lands, "an honest peer is refused");
                let mut world = self.world.borrow_mut();
                let lane = world.lanes.entry((from, to)).or_default();
                lane.push_front(Flight { due: now, ..flight });
                return false;
            }
        };
        if later {
            self.moving.push((from, token, moving));
        } else {
            tell(sink, token, moving);
        }
        true
    }

    /// Reads some of the memory that pushes have kept, and says so.
    fn send_kept<S: Sink>(&mut self, sink: &mut S) {
        let (mut sent, mut still) = (Vec::new(), Vec::new());
        let mut world = self.world.borrow_mut();
        for to in 0..self.peers {
            if world.dead.contains(&to) || world.roll(2) == 0 {
                continue;
            }
            let lane = world.lanes.get_mut(&(self.me, to)).into_iter().flatten();
            for flight in lane.take(2) {
                let Some(kept) = flight.kept.take() else { continue };
                if let Some((iov, at, len)) = kept.body {
                    assert_eq!((iov.read(at, &mut flight.body), flight.body.len()), (len, len));
                }
                self.owed.push((to, kept.token));
            }
        }
        // The packet may be there, and answered, before it is told.
        for (to, token) in self.owed.drain(..) {
            if world.roll(2) == 0 {
                sent.push(token);
            } else {
                still.push((to, token));
            }
        }
        drop(world);
        self.owed = still;
        sent.into_iter().for_each(|token| sink.sent(token, Ok(())));
    }

    /// Lets some of what is moving arrive, in any order.
    fn land<S: Sink>(&mut self, sink: &mut S) {
        for _ in 0..self.moving.len() {
            let roll = self.world.borrow_mut().roll(2 * self.moving.len() as u64) as usize;
            if roll < self.moving.len() {
                let (_, token, moving) = self.moving.swap_remove(roll);
                tell(sink, token, moving);
            }
        }
    }

    /// Reports a dead peer, once all that it sent was delivered.
    fn mourn<S: Sink>(&mut self, peer: PeerId, sink: &mut S) {
        let world = self.world.borrow();
        let lane = world.lanes.get(&(peer, self.me));
        let over = world.dead.contains(&peer) && lane.is_none_or(VecDeque::is_empty);
        drop(world);
        if over && !self.told.contains(&peer) {
            self.told.push(peer);
            self.moving.retain(|(from, ..)| *from != peer);
            self.owed.retain(|(to, _)| *to != peer);
            sink.gone(peer, Loss::Died);
        }
    }
}

fn due(lane: &mut VecDeque<Flight>, now: u64) -> Option<Flight> {
    let next = lane.front()?;
    if next.due > now || next.kept.is_some() {
        return None;
    }
    lane.pop_front()
}
