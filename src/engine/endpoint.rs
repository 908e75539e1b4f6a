//! The calls of an endpoint, and the short way of a message that fits one packet.
//!
//! Only this file pushes, polls and gets: what is to be done is decided by `Core`, which does not know the transport
//! and is compiled once. Nothing here blocks; `progress` must be called as long as anything is unfinished.

use super::credit;
use super::deliver::Deliver;
use super::op::{Completion, Context, Ended, Error, Failure, Level, Look, Recv, Refused, Report, Send};
use super::outgoing::{self, Job, Outgoing, Source, Work};
use super::port::{Body, Get, Named, PeerId, Push, Transport};
use super::rma::What;
use super::state::{Config, Core, Fetching, Open};
use super::wire::Packet;
use crate::util::keep_in_registers;
use crate::util::regions::Regions;
use crate::util::slab::Id;
use std::sync::Arc;

/// Packets taken from the transport in one `progress`.
const POLL: usize = 64;
/// Packets pushed to one peer before others have their turn.
const BURST: usize = 32;

#[derive(Debug)]
pub struct Engine<T: Transport> {
    pub(super) transport: T,
    pub(super) core: Core,
    /// A peer had more to be pushed than its turn allowed.
    more: bool,
}

/// The end of a send that was never kept.
#[inline]
fn ended(send: &Send, error: Option<Error>) -> Completion {
    Completion {
        ended: Ended::Send,
        kind: send.kind,
        context: send.context,
        tell: send.tell,
        len: if error.is_none() { send.body.len() } else { 0 },
        buf: 0,
        tag: send.tag,
        data: None,
        source: Some(send.to),
        released: false,
        peeked: false,
        failure: error.map(|error| Failure { error, overflow: 0 }),
    }
}

/// What became of an attempt to push a peer's next packet.
enum Step {
    Pushed,
    Nothing,
    Full,
}

impl<T: Transport> Engine<T> {
    pub fn new(transport: T) -> Engine<T> {
        Engine::with(transport, Config::default())
    }

    pub fn with(transport: T, config: Config) -> Engine<T> {
        let core = Core::new(transport.limits(), config);
        Engine {
            transport,
            core,
            more: false,
        }
    }

    pub fn transport(&self) -> &T {
        &self.transport
    }

    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Starts a send. Its end is reported, perhaps before this returns.
    #[inline(always)]
    pub fn send(&mut self, send: &Send, report: &mut impl Report) -> Result<(), Refused> {
        let len = send.body.len();
        let short = len <= self.core.small && send.level < Level::Delivery && !send.fence;
        let Some(peer) = self.core.peers.get_mut(send.to as usize).filter(|_| short) else {
            return self.send_long(*send, report);
        };
        if !peer.queue.is_empty() || peer.special || peer.credit < credit::cost(len) {
            return self.send_long(*send, report);
        }
        let header = outgoing::message(Packet::Eager, send.kind, send.tag, send.data, len);
        let iov = &send.body;
        match self.transport.push(send.to, &header, Body::User { iov, at: 0, len }) {
            Push::Done => {
                peer.credit -= credit::cost(len);
                report.report(ended(send, None));
                Ok(())
            }
            Push::Full | Push::TooLong => self.send_long(*send, report),
            Push::Gone => {
                report.report(ended(send, Some(Error::PeerGone)));
                Ok(())
            }
            Push::Unreachable => Err(Refused::Unreachable),
            Push::NoMemory => Err(Refused::NoMemory),
        }
    }

    /// A send that needs more than one push: it is queued, and begun if it is the first. By value: on the short way the
    /// send then need not exist in memory.
    #[cold]
    fn send_long(&mut self, mut send: Send, report: &mut impl Report) -> Result<(), Refused> {
        let send = keep_in_registers(&mut send);
        self.queue(send.to, || Outgoing::new(send), report)
    }

    /// Queues a send or operation, and begins it if it is the first.
    pub(super) fn queue(
        &mut self,
        to: PeerId,
        make: impl FnOnce() -> Outgoing,
        report: &mut impl Report,
    ) -> Result<(), Refused> {
        let most = self.core.config.sends;
        let room = self.core.sends.len() < Id::SHORT_MAX;
        let peer = self.core.peer(to);
        if peer.shunned {
            return Err(Refused::Unreachable);
        }
        if peer.unfinished as usize >= most || !room {
            return Err(Refused::Again);
        }
        peer.unfinished += 1;
        let first = peer.queue.is_empty();
        let id = self.core.sends.insert(make());
        self.core.peer(to).queue.push_back(id);
        if first {
            self.push_to(to, report);
        }
        Ok(())
    }

    /// Takes a message that has come, or waits for one.
    #[inline(always)]
    pub fn recv(&mut self, recv: &Recv, report: &mut impl Report) -> Result<(), Refused> {
        if self.core.receive(recv, report) {
            self.push_all(report);
        }
        Ok(())
    }

    /// Which regions peers may reach, `endpoint` being the number that regions know this endpoint by. `counted`: somebody
    /// counts what peers do, whether or not the region is watched. Without this, peers reach nothing.
    pub fn open(&mut self, regions: Arc<Regions>, endpoint: u64, counted: bool) {
        if !counted {
            self.transport.show(&regions, endpoint);
        }
        self.core.open = Some(Open {
            regions,
            endpoint,
            counted,
        });
    }

    /// FI_PEEK and FI_CLAIM: see `Look`. What is found or not found is reported.
    #[inline(always)]
    pub fn look(&mut self, look: Look, recv: &Recv, report: &mut impl Report) -> Result<(), Refused> {
        self.look_for(look, *recv, report)
    }

    #[cold]
    fn look_for(&mut self, look: Look, mut recv: Recv, report: &mut impl Report) -> Result<(), Refused> {
        let recv = keep_in_registers(&mut recv);
        let lacks = self.core.lacks(look, recv);
        if self.core.look(look, recv, report)? {
            self.push_all(report);
        }
        // Reading a queue that holds the answer to a failed look does not drive the endpoint, so without this a program
        // that only looks would never see what has come. Afterwards: what comes while a program looks is for its next look,
        // after it has looked elsewhere.
        if lacks {
            self.progress(report);
        }
        Ok(())
    }

    /// Cancels the oldest receive with this context, if it has not met a message. Says whether there was one.
    pub fn cancel(&mut self, context: Context, report: &mut impl Report) -> bool {
        self.core.cancel(context, report)
    }

    /// Ends the application's receives, if no message is on its way into one: says so.
    pub fn give_up_receives(&mut self, report: &mut impl Report) -> bool {
        self.core.give_up_receives(report)
    }

    /// Ends a receive of a collective that has met no message.
    pub fn withdraw(&mut self, context: Context, report: &mut impl Report) {
        self.core.withdraw_own(context, report);
    }

    /// Moves everything on: what waited for room, what has come, what follows from it. Says how much came.
    #[inline]
    pub fn progress(&mut self, report: &mut impl Report) -> usize {
        self.push_all(report);
        let core = &mut self.core;
        let came = self.transport.poll(&mut Deliver { core, report }, POLL);
        if !self.core.asked.is_empty() {
            self.wait_for_asked(report);
        }
        self.push_all(report);
        came
    }

    /// Whether something waits for room in the transport: then `progress` has work though nothing may come.
    pub fn busy(&self) -> bool {
        !self.core.busy.is_empty() || !self.core.fetches.is_empty()
    }

    /// Whether `progress` could push something now. What waits for room is not counted: the transport tells of room.
    pub fn has_work(&self) -> bool {
        self.more || !self.core.fetches.is_empty()
    }

    /// Whether an operation waits for a peer.
    pub fn unfinished(&self) -> bool {
        let posted = self.posted() + self.core.collective.posted_len();
        self.sending() + posted + self.core.streams.len() + self.core.fetches.len() > 0
    }

    /// Receives of the application's that have not met a message.
    pub fn posted(&self) -> usize {
        self.core.messages.posted_len() + self.core.tagged.posted_len()
    }

    /// Sends and operations that have not ended.
    pub fn sending(&self) -> usize {
        self.core.sends.len() + self.core.unacked
    }

    /// How often a peer was gone: whoever counts on one for longer than an operation sees by this that it is another.
    pub fn deaths(&self, peer: PeerId) -> u32 {
        self.core.peers.get(peer as usize).map_or(0, |peer| peer.deaths)
    }

    /// Lets the numbers of peers that are gone be used for others, but for those that `held` names. It grows with the
    /// number of peers, so it is worth it when the transport says so.
    #[cold]
    pub fn forget_peers(&mut self, held: impl Fn(PeerId) -> bool) -> Vec<PeerId> {
        let named = self.core.peers_in_use();
        let forgotten = self.transport.forget(&|peer| named.contains(&peer) || held(peer));
        self.core.forget_all(&forgotten);
        forgotten
    }

    /// Packets that came and made no sense.
    pub fn malformed(&self) -> u64 {
        self.core.malformed
    }

    /// What is unfinished: nothing may be, when nothing is under way.
    #[cfg(test)]
    pub fn leftovers(&self) -> [usize; 5] {
        let core = &self.core;
        let sides = core.peers.iter().filter_map(|peer| peer.side.as_ref());
        let sides = core.unacked + sides.map(|side| side.left()).sum::<usize>();
        [
            core.sends.len(),
            core.arrivals.len(),
            core.landings.len(),
            core.streams.len() + core.multis.len() + core.claims.len(),
            sides + core.kept + core.peers.iter().map(|peer| peer.kept + peer.withheld).sum::<usize>(),
        ]
    }

    /// The names of sends that have not ended.
    #[cfg(test)]
    pub fn unfinished_names(&self) -> Vec<Named> {
        self.core.sends.iter().map(|(id, _)| Named::Sent(id.bits())).collect()
    }

    /// What we may send to a peer unasked; what it may send to us, and what we have yet to give back.
    #[cfg(test)]
    pub fn credit(&self, peer: PeerId) -> (usize, usize, usize) {
        let stranger = super::peer::Peer::new(&self.core.config);
        let peer = self.core.peers.get(peer as usize).unwrap_or(&stranger);
        (peer.credit, peer.allowed, peer.owed + peer.withheld)
    }

    /// Pushes what waits, to each peer in turn as long as it has room.
    #[inline]
    fn push_all(&mut self, report: &mut impl Report) {
        if self.busy() {
            self.push_waiting(report);
        }
    }

    #[inline(never)]
    fn push_waiting(&mut self, report: &mut impl Report) {
        self.more = false;
        self.fetch_all(report);
        for _ in 0..self.core.busy.len() {
            let Some(to) = self.core.busy.pop_front() else { return };
            self.core.peer(to).busy = false;
            self.push_to(to, report);
        }
    }

    fn push_to(&mut self, to: PeerId, report: &mut impl Report) {
        for _ in 0..BURST {
            match self.push_next(to, report) {
                Step::Pushed => {}
                Step::Nothing => {
                    self.core.peer(to).narrow = false;
                    return;
                }
                Step::Full => return self.core.wake(to),
            }
        }
        self.more = true;
        self.core.wake(to);
    }

    fn push_next(&mut self, to: PeerId, report: &mut impl Report) -> Step {
        let Some(job) = self.core.next(to) else {
            return Step::Nothing;
        };
        match self.push_job(to, &job) {
            Push::Done => {
                self.core.pushed(to, &job, report);
                Step::Pushed
            }
            Push::Full => Step::Full,
            Push::Gone => {
                self.core.unreached(to, Error::PeerGone, report);
                Step::Nothing
            }
            Push::Unreachable => {
                self.core.unreached(to, Error::Unreachable, report);
                Step::Nothing
            }
            Push::NoMemory => {
                self.core.unreached(to, Error::NoMemory, report);
                Step::Nothing
            }
            Push::TooLong => {
                // It is cut, or begun otherwise; what cannot be ends.
                if core::mem::replace(&mut self.core.peer(to).narrow, true) {
                    self.core.no_memory(to, job.work, report);
                }
                Step::Pushed
            }
        }
    }

    fn push_job(&mut self, to: PeerId, job: &Job) -> Push {
        let sent = match job.work {
            Work::Answer | Work::Credit | Work::Acks => None,
            Work::Reply => return self.push_reply(to, job.len),
            Work::Serve => return self.push_served(to, job),
            Work::Start(id) | Work::Segment(id) | Work::Asked(id) => {
                let send = self.core.sends.get(id);
                if send.is_some_and(|send| !matches!(send.what, What::Message)) && job.header.packet != Packet::Segment
                {
                    return self.push_operation(to, job, id);
                }
                send.map(|send| (id, &send.source))
            }
        };
        let (at, len) = (job.at, job.len);
        let offer = job.header.packet == Packet::Rendezvous && self.core.limits.can_get;
        let remote;
        let body = match sent {
            Some((id, Source::User(iov))) if offer && !iov.is_empty() => {
                remote = self.transport.expose(to, iov, Named::Sent(id.bits()));
                Body::Bytes(&remote.bytes)
            }
            Some((_, Source::User(iov))) if len > 0 => Body::User { iov, at, len },
            Some((_, Source::Copy(bytes))) if len > 0 => {
                Body::Bytes(bytes.get(at..).and_then(|bytes| bytes.get(..len)).unwrap_or_default())
            }
            Some((_, Source::User(_) | Source::Copy(_))) | None => Body::Empty,
        };
        // The only push besides that of a short send, so both can be inlined.
        self.transport.push(to, &job.header, body)
    }

    /// Fetches messages that have met their receive.
    fn fetch_all(&mut self, report: &mut impl Report) {
        for _ in 0..self.core.fetches.len() {
            let Some(what) = self.core.fetches.pop_front() else {
                return;
            };
            let fetch = match what {
                Fetching::Message(id) => self.core.fetch(id),
                Fetching::Read(id) => self.core.pull(id),
            };
            let Some(fetch) = fetch else {
                self.core.not_fetched(what, report);
                continue;
            };
            let (from, len) = (fetch.from, fetch.len);
            let token = (!fetch.now).then(|| what.token());
            match self.transport.get(from, &fetch.remote, &fetch.into, 0, len, token) {
                Get::Done => self.core.got_all(what, true, report),
                Get::Later => {}
                Get::Full => self.core.fetches.push_back(what),
                Get::Unsupported => self.core.got_all(what, false, report),
                Get::Gone => {} // what waits for it ends when all that the peer sent is here
            }
        }
    }
}
