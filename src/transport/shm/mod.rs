//! Packets through shared memory, between processes of one machine and one user.
//!
//! **A message.** Each endpoint owns one file in /dev/shm (`endpoint_file`, `layout`, `name`). The first push to a peer
//! claims a lane there (`reaching`, `outbound`, `lane`); nothing is negotiated, so the packet is on its way when `push`
//! returns. A lane is a ring of cache lines with one producer and one consumer (`ring`): 16 lines at first, 1024 if
//! needed. The receiver polls the lanes that were active lately, and finds the others by the bells that their senders
//! ring (`inbound`, `delivery`); it gives lines back, as credit, a part of a ring at a time. Two that answer each other
//! use the same lines by turns (`dialogue`). `housekeeping` does the rest, every eighth poll.
//!
//! **Sleep.** An endpoint announces sleep in its attention word (`attention`, `sleeping`). Who pushes to a sleeper, or
//! gives lines back to one that waits for room, sends a datagram to the socket beside its file (`doorbell`).
//!
//! **Memory.** Large messages are fetched by the kernel (`get`), by sender and receiver together if both run
//! (`dual_copy`), or go through the ring where that is quicker (`copy_speed`, `streaming`, `ring_or_kernel`, `trials`).
//! Registered memory stands in a table of the file (`region_table`); an initiator maps it and works in place, or has
//! the kernel copy it (`direct_access`, `access_mark`, `mapped_region`), once the pid is proved to be the peer's
//! (`proof`). Short operations that wait for a target which does not poll are taken back from its ring and done so
//! (`recall`, `exclusion`).
//!
//! **Death.** Endpoints and claims are kernel locks, which end with their process. `housekeeping` asks for each peer's
//! lock within a second; `peers` reports a death after what the peer had sent. Whoever finds files of the dead removes
//! them (`sweep`). What peers write is checked: the worst that comes of it is that they count as dead.
//!
//! Knows `engine::port`, `util` and `sys`. Called by the engine, and by `provider` to open and to sleep.

mod access_mark;
mod ahead;
mod attention;
mod bells;
mod config;
mod contest;
mod copy_speed;
mod delivery;
mod dialogue;
mod direct_access;
mod doorbell;
mod dual_copy;
mod endpoint_file;
mod exclusion;
mod fill;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod get;
mod housekeeping;
mod inbound;
mod lane;
mod layout;
mod mapped_region;
mod name;
mod outbound;
mod passing;
mod peers;
mod proof;
mod reaching;
mod recall;
mod region_table;
mod ring;
mod ring_or_kernel;
mod room_wait;
mod sleeping;
mod streaming;
mod sweep;
mod trials;
mod wide_rings;

#[cfg(test)]
mod tests;

use crate::engine::op::{Access, RemotePart};
use crate::engine::port::{
    self, Around, Body, Contact, Exposed, ExposedName, Limits, Local, Notice, PeerId, PollMark, Push, Recall, Remote,
    Sink, Token, Transport,
};
use crate::engine::wire::{Header, Packet};
use crate::sys::clock;
use crate::util::regions::{Regions, Rights};
use crate::util::user::{UserBuf, UserIov};
use config::{MAX_BODY, MAX_WRITE};
use core::sync::atomic::Ordering;
use dual_copy::{PeerMemory, PendingCopy};
use endpoint_file::EndpointFile;
use inbound::{Inbox, LaneEvent};
use outbound::Written;
use peers::Peers;
use region_table::RegionTable;
use std::sync::Arc;
use streaming::Way;

pub use config::{Config, OpenError};
pub use name::{base, context, context_number};
pub use sweep::LOCK as LOCK_OF_SWEEP;

/// An endpoint's shared-memory transport.
pub struct ShmTransport {
    peers: Peers,
    inbox: Inbox,
    own: EndpointFile,
    config: Config,
    /// Polls until the next housekeeping.
    polls_to_housekeeping: u32,
    /// Polls so far, which peers read in our file: whoever waits for us sees by them that we poll.
    polls: u64,
    housekeepings: u32,
    /// When peers were last checked for being alive, in ms.
    last_check: u64,
    /// Lanes whose bells were rung, which the next housekeeping reads.
    rung: Vec<usize>,
    /// The first of them that had no turn, the last time there were too many.
    left_out: usize,
    /// What is to be done about lanes that were read. Empty between polls.
    events: Vec<(usize, LaneEvent)>,
    /// Peers towards which a push found the ring full. `sleeping` asks them to wake us when there is room.
    starved: Vec<PeerId>,
    /// Dual copies of which the helper has not done its part yet.
    pending_copies: Vec<PendingCopy>,
    /// Counts sleeps, in the form of the attention word.
    sleeps: u64,
    /// Reads need not keep their order: see `passing`.
    reads_pass: bool,
    warned_of_mapping: bool,
    /// Where peers find our registered memory, and whose regions these are.
    region_table: Option<(Arc<RegionTable>, Arc<Regions>)>,
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        if let Some((table, regions)) = self.region_table.take() {
            table.close();
            // Peers may still be at a region through this endpoint: closing the region goes on waiting for them.
            regions.leave(table);
        }
        if self.own.is_ours() {
            self.wait_for_helpers();
        }
    }
}

impl ShmTransport {
    /// Makes the endpoint that others reach by `address`.
    pub fn open(address: &str, config: &Config) -> Result<ShmTransport, OpenError> {
        Ok(ShmTransport {
            own: EndpointFile::open(address, config)?,
            peers: Peers::default(),
            inbox: Inbox::default(),
            config: config.clone(),
            polls_to_housekeeping: 1,
            polls: 0,
            housekeepings: 0,
            last_check: clock::monotonic_ms(),
            rung: Vec::new(),
            left_out: 0,
            events: Vec::new(),
            starved: Vec::new(),
            pending_copies: Vec::new(),
            sleeps: 0,
            reads_pass: false,
            warned_of_mapping: false,
            region_table: None,
        })
    }

    pub fn local_address(&self) -> &str {
        self.own.address()
    }

    /// The address behind a number.
    pub fn address(&self, peer: PeerId) -> Option<&[u8]> {
        self.peers.get(peer).map(|peer| &*peer.address)
    }
}

impl Transport for ShmTransport {
    fn limits(&self) -> Limits {
        self.config.limits()
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.peers.number(address)
    }

    fn is_crowded(&self) -> bool {
        self.peers.is_crowded()
    }

    fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let (copies, starved) = (&self.pending_copies, &self.starved);
        let busy = |peer: PeerId| starved.contains(&peer) || copies.iter().any(|pending| pending.peer == peer);
        self.peers.reuse(&|peer| held(peer) || busy(peer))
    }

    #[inline(always)]
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        if !self.own.is_ours() || body.len() > MAX_WRITE {
            return Push::Gone;
        }
        let polls = self.polls;
        let out = match self.peers.get_mut(to).and_then(|peer| peer.out.as_mut()) {
            Some(out) => out,
            None => match self.connect_to_push(to, header.packet) {
                Ok(out) => out,
                Err(push) => return push,
            },
        };
        let before = out.requested();
        match out.push(header, body, polls) {
            Written::Done => {
                if header.packet == Packet::Read {
                    out.last_reads.pushed(before, out.requested());
                }
                Push::Done
            }
            sent => self.push_failed(to, sent),
        }
    }

    fn connect(&mut self, to: PeerId) -> Contact {
        if self.peers.get(to).is_some_and(|peer| peer.out.is_some()) {
            return Contact::Made;
        }
        match self.connect_out(to) {
            Ok(_) => Contact::Made,
            // The engine is to hear of the end first.
            Err(Push::Gone) => Contact::Soon,
            Err(_) => Contact::NoWay,
        }
    }

    fn is_sooner_sent(&mut self, to: PeerId, len: usize, around: Around) -> bool {
        let (own, eager, polls) = (self.own.instance, self.config.eager, self.polls);
        let out = self.peers.get_mut(to).and_then(|peer| peer.out.as_mut());
        // What an endpoint offers to itself is copied once.
        len <= eager && out.is_none_or(|out| out.instance() != own && out.is_sooner_sent(len, polls, around))
    }

    fn is_held_up(&mut self, to: PeerId) -> bool {
        let out = self.peers.get_mut(to).and_then(|peer| peer.out.as_mut());
        out.is_some_and(|out| out.is_held_up())
    }

    fn awaits_credit(&mut self, to: PeerId) {
        if let Some(out) = self.peers.get_mut(to).and_then(|peer| peer.out.as_mut()) {
            out.credit_wait.begin();
        }
    }

    fn came_late(&mut self, to: PeerId) -> bool {
        let out = self.peers.get_mut(to).and_then(|peer| peer.out.as_mut());
        out.is_some_and(|out| out.came_late())
    }

    #[inline(always)]
    fn is_itself(&self, peer: PeerId) -> bool {
        let out = self.peers.get(peer).and_then(|peer| peer.out.as_ref());
        out.is_some_and(|out| out.instance() == self.own.instance)
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        !self.is_copying_with(peer)
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        if !self.own.is_ours() {
            return 0;
        }
        let mut done = self.inbox.poll_hot(sink, budget, &mut self.events);
        self.polls += 1;
        self.own.header.polls().store(self.polls, Ordering::Relaxed);
        self.polls_to_housekeeping -= 1;
        // A program that polls once and goes on to something else finds what has come, whoever sent it.
        if self.polls_to_housekeeping == 0 || self.own.header.seems_rung() || !self.events.is_empty() {
            done += self.do_housekeeping(sink, budget.saturating_sub(done));
        }
        if !self.pending_copies.is_empty() {
            done += self.collect(sink);
        }
        done
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.inbox.has_answered();
    }

    fn publish_regions(&mut self, regions: &Arc<Regions>, endpoint: u64) {
        // Peers know entries of the table by their generations, so a file never has another one.
        if self.region_table.is_some() {
            return;
        }
        // Without memory for it, peers ask.
        if let Ok(table) = RegionTable::new(&self.own, endpoint) {
            let table = Arc::new(table);
            regions.reflect(&table);
            self.region_table = Some((table, regions.clone()));
        }
    }

    fn let_reads_pass(&mut self) {
        self.reads_pass = true;
    }

    fn hide_regions(&mut self) {
        if let Some((table, _)) = &self.region_table {
            table.close();
        }
    }

    #[inline(always)]
    fn reach<R>(
        &mut self,
        to: PeerId,
        part: &RemotePart,
        wanted: Rights,
        work: impl FnOnce(UserBuf) -> R,
    ) -> Option<R> {
        self.direct_path(to)?.reach(part, wanted, work)
    }

    fn reach_all<R>(
        &mut self,
        to: PeerId,
        parts: &[RemotePart],
        wanted: Rights,
        work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        self.direct_path(to)?.reach_all(parts, wanted, work)
    }

    fn takes_writes(&mut self, to: PeerId, part: &RemotePart) -> bool {
        let range = self
            .direct_path(to)
            .and_then(|out| out.copyable_now(part, Access::Write));
        range.is_some()
    }

    fn copy(&mut self, to: PeerId, copy: &port::CopyOp<'_>, token: Token) -> port::Get {
        let (&port::CopyOp { access, data: None, .. }, [part], Local::User(local)) = (copy, copy.parts, copy.local)
        else {
            return port::Get::Unsupported;
        };
        if !self.config.fetch || local.len() != part.len {
            return port::Get::Unsupported;
        }
        // A short operation travels as a packet, unless the peer does not poll.
        if self.is_better_sent(to, access, part.len) && self.direct_path(to).is_none_or(|out| !out.is_not_polling()) {
            return port::Get::Unsupported;
        }
        let bulk = self.config.bulk;
        let like = if self.reads_pass { access } else { Access::Write };
        let found = self.direct_path(to).and_then(|out| {
            let range = out.copyable_now(part, access)?;
            // A short operation that may not overtake what is unread goes as a packet behind it.
            let is_free = out.may_pass(like) || part.len >= bulk && out.wait_until_read(like);
            is_free.then(|| (range, out.is_asleep()))
        });
        let Some((range, asleep)) = found else {
            return port::Get::Unsupported;
        };
        // A sleeping target is not woken to help, and one that still helps with another copy is not waited for. What
        // fits a packet must be done when this returns, to keep its place among short operations.
        let long = part.len > MAX_BODY && part.len >= self.config.regions_together();
        let may_ask = long && !asleep && !self.is_copying_with(to);
        if may_ask && self.crosses_copy_of(to) {
            return self.copy_seen_by(to, |us| us.copy_by_kernel(to, access, &range, local));
        }
        if let Some(got) = may_ask
            .then(|| self.copy_together(to, &PeerMemory::Region(range), local, 0, part.len, token))
            .flatten()
        {
            return got;
        }
        self.copy_by_kernel(to, access, &range, local)
    }

    fn poll_mark(&self, to: PeerId) -> PollMark {
        let out = self.peers.get(to).and_then(|peer| peer.out.as_ref());
        PollMark {
            changes: out.map_or(0, |out| out.header.polls().load(Ordering::Relaxed)),
            nanos: clock::monotonic_ns(),
        }
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        if !self.config.fetch {
            return None;
        }
        self.direct_path(to)?.recall(judge)
    }

    fn expose(&mut self, _: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        let lent = match name {
            ExposedName::Sent(_) => None,
            // Who closes a region says so in the table.
            ExposedName::Region(_) | ExposedName::Nothing => {
                self.region_table.as_ref()?;
                Some(get::Lent(self.own.header.closings().load(Ordering::Relaxed)))
            }
        };
        // The name is for a dual copy.
        let name = if iov.len() < self.config.together {
            ExposedName::Nothing
        } else {
            name
        };
        let remote = get::expose(self.own.instance, iov, name, lent)?;
        Some(Exposed { remote, id: None })
    }

    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> port::Get {
        if !self.config.fetch || !self.own.is_ours() {
            return port::Get::Unsupported;
        }
        let connected = self.peers.get(from).is_some_and(|peer| peer.out.is_some());
        if !connected {
            match self.connect_out(from).map(drop) {
                Err(Push::Gone) => return port::Get::Gone,
                Err(_) => return port::Get::Unsupported,
                Ok(()) => {}
            }
        }
        let Some(peer) = self.peers.get_mut(from) else {
            return port::Get::Unsupported;
        };
        let Some(out) = &mut peer.out else {
            return port::Get::Gone;
        };
        if !out.is_proved() {
            if out.is_closed() {
                self.end(from);
                return port::Get::Gone;
            }
            return port::Get::Unsupported;
        }
        let (instance, pid) = (out.instance(), out.pid());
        // Without a token, nobody may touch our memory after this returns: the sender must not help then.
        let together = token.filter(|_| len >= self.config.together);
        // While it still helps with another copy, this one is not begun, and is asked for once more.
        let ask = together.filter(|_| !self.is_copying_with(from));
        match ask.map_or(Way::Kernel, |token| self.way_of(from, token)) {
            Way::Ring => return port::Get::Unsupported,
            Way::NotYet => return port::Get::Full,
            Way::Kernel => {}
        }
        let got =
            together.and_then(|token| self.copy_together(from, &PeerMemory::Message(*remote), local, at, len, token));
        if let Some(got) = got {
            if got == port::Get::Unsupported {
                self.back_off(from);
            }
            return self.unless_closed(from, remote, got);
        }
        let got = self.fetch(from, len, || get::get(instance, pid, remote, local, at, len));
        if got == port::Get::Unsupported {
            self.back_off(from);
        }
        self.unless_closed(from, remote, got)
    }
}
