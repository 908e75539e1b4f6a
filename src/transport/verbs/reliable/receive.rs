//! What the device has completed, and the packets that have come. Part of `Reliable`.

use super::Reliable;
use super::link::{End, Outcome, Purpose};
use super::one_sided::Note;
use super::seam::Device;
use super::to_itself::BROKEN;
use crate::engine::port::{PeerId, Placement, Sink};
use crate::engine::wire::Header;
use crate::sys::rdma::{Done, DoneKind};
use crate::util::user::UserBuf;

/// Of the numbers of requests: it is a receive, into the buffer of the other bits.
const RECEIVE: u64 = 1 << 63;

const BATCH: usize = 16;

const NOTHING: Done = Done {
    id: 0,
    kind: DoneKind::Other,
    failure: None,
    len: 0,
    data: None,
    pair: 0,
};

/// Moves a packet's body to where the engine wants it. False: not now.
fn place_body<S: Sink>(sink: &mut S, from: PeerId, header: &Header, body: &UserBuf) -> bool {
    match sink.place(from, header, body.len()) {
        Placement::Into { iov, at, token } => {
            body.pour(&iov.part(at, body.len()));
            sink.placed(token, None);
        }
        Placement::Leased { lease, token } => {
            let mut bytes = vec![0; body.len()];
            body.read(&mut bytes);
            match lease.write(0, &bytes) {
                true => sink.placed(token, None),
                false => sink.cut(token),
            }
        }
        Placement::Keep { mut buffer, token } => {
            body.read(&mut buffer);
            sink.placed(token, Some(buffer));
        }
        Placement::Drop => {}
        Placement::Refuse => return false,
    }
    true
}

impl<D: Device> Reliable<D> {
    /// Takes what has completed, up to so many packets. True: there is nothing more.
    pub(super) fn take_completions<S: Sink>(&mut self, sink: &mut S, budget: usize) -> bool {
        while let Some(done) = self.found.pop_front() {
            self.completed(&done, sink);
        }
        let mut room = [NOTHING; BATCH];
        let mut came = 0;
        loop {
            let count = match self.device.poll(&mut room) {
                Ok(count) => count,
                Err(error) => {
                    self.lose_all(&format!("the completion queue is broken: {error}"));
                    return true;
                }
            };
            room.iter().take(count).for_each(|done| self.completed(done, sink));
            // Ends of our sends are no packets: if they were counted, a poll could end with none though some are there.
            came += room.iter().take(count).filter(|done| done.id & RECEIVE != 0).count();
            if count < BATCH {
                return true;
            }
            if came >= budget.max(BATCH) {
                return false;
            }
        }
    }

    /// Looks at what has completed before a sleep. True: there is something.
    pub(super) fn has_completions(&mut self) -> bool {
        let mut room = [NOTHING; BATCH];
        // What is wrong is found out by the next poll.
        let count = self.device.poll(&mut room).unwrap_or(0);
        self.found.extend(room.iter().take(count));
        !self.found.is_empty()
    }

    fn completed<S: Sink>(&mut self, done: &Done, sink: &mut S) {
        let owner = self.pairs.get(&done.pair).copied();
        if done.id & RECEIVE != 0 {
            return self.received(done, owner);
        }
        let Some(owner) = owner else { return };
        let is_own = self.is_end_of_itself(owner);
        let Some(peer) = self.peers.get_mut(owner) else { return };
        let Some(link) = peer.links().find(|link| link.number() == done.pair) else {
            return;
        };
        let free = &mut self.free_sends;
        let told = link.end != Some(End::Abandoned);
        link.completed(done.id, done.failure, &mut |purpose, outcome| match purpose {
            Purpose::Inline | Purpose::Part => {}
            Purpose::Buffer(buffer) => free.push(buffer),
            Purpose::Transfer(transfer) => {
                free.extend(transfer.buffer);
                // The device touches the memory no more, before the application may.
                drop(transfer.registrations);
                match outcome {
                    Outcome::Done if told => sink.finished(transfer.token, Ok(())),
                    Outcome::Refused if told => sink.finished(transfer.token, Err(transfer.refused)),
                    Outcome::Lost if told && is_own => sink.finished(transfer.token, Err(BROKEN)),
                    // Of what is lost with the connection, its end says all.
                    Outcome::Done | Outcome::Refused | Outcome::Lost => {}
                }
            }
        });
        link.tell_credit();
        self.note_end(owner);
    }

    fn received(&mut self, done: &Done, owner: Option<PeerId>) {
        let buffer = (done.id & !RECEIVE) as u32;
        let link = owner
            .and_then(|owner| self.peers.get_mut(owner))
            .and_then(|peer| peer.links().find(|link| link.number() == done.pair));
        let wanted = link.filter(|link| done.failure.is_none() && link.end.is_none_or(|end| end == End::Cut));
        let (Some(link), Some(owner)) = (wanted, owner) else {
            return self.receives_again(buffer);
        };
        link.receive(buffer, done.len);
        if !core::mem::replace(&mut link.in_ready, true) {
            self.ready.push(owner);
        }
        self.note_end(owner);
    }

    /// False: the device does not take it, so there is a receive less.
    fn post_receive(&mut self, buffer: u32) -> bool {
        let piece = self.receives.piece(buffer, self.receives.size());
        // SAFETY: a buffer of ours that no receive has, and that ends after the device and its connections.
        unsafe { self.device.post_receive(RECEIVE | u64::from(buffer), piece) }.is_ok()
    }

    /// A receive that no connection waits for.
    pub(super) fn receives_again(&mut self, buffer: u32) {
        // One that the device does not take is lost, as the connection is that it was for.
        self.post_receive(buffer);
    }

    /// Receives for another connection, as many as it may be given. None: there is no room for any.
    pub(super) fn grant(&mut self) -> Option<usize> {
        const LEAST: usize = 2;
        let left = |most: usize| most.saturating_sub(self.posted) + self.spare;
        // The more connections there are, the less each gets, so that there is something for the next.
        let wanted = self.config.window.min((left(self.config.receives) / 16).max(LEAST));
        if left(self.config.most_receives) < wanted {
            return None;
        }
        if self.spare < wanted {
            let more = u16::try_from(wanted - self.spare).ok()?;
            match self.receives.grow(self.memory.lasting(&*self.device), more) {
                Ok(numbers) => {
                    for number in numbers {
                        if self.post_receive(number) {
                            self.posted += 1;
                            self.spare += 1;
                        }
                    }
                }
                Err(error) => self.tell_memory("receives", &error),
            }
        }
        let granted = wanted.min(self.spare);
        self.spare -= granted;
        (granted >= LEAST).then_some(granted)
    }

    pub(super) fn deliver_ready<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let mut done = 0;
        for number in core::mem::take(&mut self.ready) {
            done += self.deliver(number, sink, budget - done);
            let link = self.peers.link(number);
            let Some(link) = link else { continue };
            link.in_ready = !link.arrived.is_empty();
            if link.in_ready {
                self.ready.push(number);
            }
        }
        done
    }

    fn deliver<S: Sink>(&mut self, from: PeerId, sink: &mut S, budget: usize) -> usize {
        let mut done = 0;
        if self.is_end_of_itself(from) {
            self.refuse_packets(from);
        }
        while done < budget {
            // Of one that is being made, nothing is delivered before it stands.
            let Some(link) = self.peers.link(from) else {
                return done;
            };
            let Some((buffer, len)) = link.arrived.front().copied() else {
                break;
            };
            let packet = self.receives.memory(buffer).part(0, len);
            if let Some(note) = Note::read(&packet) {
                sink.written(from, note.len, note.data);
                self.repost(from, buffer);
                done += 1;
                continue;
            }
            let mut header = [0; Header::SIZE];
            let whole = packet.read(&mut header) == Header::SIZE;
            let Some(header) = Header::decode(&header).filter(|_| whole) else {
                link.cut(End::Bad("what is no packet"));
                self.drop_arrived(from);
                self.note_end(from);
                return done;
            };
            if !place_body(sink, from, &header, &packet.part(Header::SIZE, len)) {
                break;
            }
            done += 1;
            self.repost(from, buffer);
        }
        if let Some(link) = self.peers.link(from) {
            link.tell_credit();
        }
        self.note_end(from);
        done
    }

    /// The oldest packet of a peer was delivered.
    fn repost(&mut self, from: PeerId, buffer: u32) {
        let posted = self.post_receive(buffer);
        let Some(link) = self.peers.link(from) else {
            return;
        };
        link.arrived.pop_front();
        match posted {
            true => link.took(),
            false => link.cut(End::Cut),
        }
    }

    /// What has come of a peer and was not delivered is of no use any more.
    pub(super) fn drop_arrived(&mut self, from: PeerId) {
        let link = self.peers.link(from);
        let arrived = link.map(|link| core::mem::take(&mut link.arrived)).unwrap_or_default();
        for (buffer, _) in arrived {
            self.receives_again(buffer);
        }
    }
}
