//! Connecting to a peer: the first push begins it, polls carry it on. Part of `Reliable`.
//!
//! When a try that failed is followed by another one, and when not, says `connecting::history`.

use super::Reliable;
use super::attempt::{Attempt, Way};
use super::buffers::Words;
use super::handshake::{Hello, Verdict};
use super::link::{End, Link};
use super::seam::Device;
use crate::engine::op::Unreached;
use crate::engine::port::{Loss, PeerId, Push, Sink};
use crate::sys::clock;
use crate::sys::rdma::{EventKind, Sizes};
use crate::transport::connecting::address::shown;
use crate::transport::connecting::{Failed, LONG_REST_MS, Next};
use crate::transport::verbs::seam::{Connection, News, QueuePair};
use std::io;

/// Why a try has failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nobody listens there.
    Nobody,
    /// The peer has no room now.
    Later,
    NoAnswer,
    /// There is no way there.
    NoWay(io::Error),
    /// This end has no memory for it.
    NoMemory(io::Error),
}

impl<D: Device> Reliable<D> {
    #[cold]
    pub(super) fn dial(&mut self, to: PeerId) {
        if self.is_back(to) {
            return;
        }
        let Some(peer) = self.peers.get_mut(to) else { return };
        let Some(place) = peer.place() else { return };
        peer.history.begins(clock::monotonic_ms());
        if self.is_lost {
            let why = io::Error::other("this endpoint's device is gone, or its completion queue is broken");
            return self.dial_failed(to, &Trouble::NoWay(why));
        }
        // The peer knows by it that our address is ours.
        let mut from = self.place;
        from.set_port(0);
        let dialed = self.device.dial().and_then(|mut wire| {
            wire.connection().resolve_address(Some(&from), &place)?;
            self.device.watch(&wire, u64::from(to))?;
            Ok(wire)
        });
        match dialed {
            Ok(wire) => self.begin(to, Attempt::Resolving(wire)),
            Err(error) => self.dial_failed(to, &Trouble::NoWay(error)),
        }
    }

    pub(super) fn set_way(&mut self, to: PeerId, way: Way<D::Wire>) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let before = peer.set_way(way);
        self.peers.note_way(to);
        if let Some(link) = before.and_then(Attempt::into_link) {
            self.close(*link);
        }
    }

    pub(super) fn begin(&mut self, to: PeerId, attempt: Attempt<D::Wire>) {
        self.set_way(to, Way::Begun(attempt));
    }

    /// Gives a connection its queue pair, with receives of this end. Or the connection again, and why there is no room.
    pub(super) fn equip(&mut self, to: PeerId, mut wire: D::Wire) -> Result<Link<D::Wire>, (D::Wire, io::Error)> {
        let Some(window) = self.grant() else {
            let why = "all receives are given to other peers";
            return Err((wire, io::Error::new(io::ErrorKind::OutOfMemory, why)));
        };
        let sizes = Sizes {
            // One more to end with.
            sends: self.config.sends as u32 + 1,
            receives: 0,
            send_pieces: 1,
            receive_pieces: 0,
            inline: self.config.inline as u32,
        };
        let completions = self.completions(self.pairs.len() + 1);
        let made = self.device.make_room(completions);
        let made = made.and_then(|()| Words::new(self.memory.lasting(&*self.device)));
        let made = made.and_then(|words| Ok((words, sizes.with_less_inline(|sizes| wire.make_pair(sizes))?)));
        match made {
            Ok((words, pair)) => {
                self.pairs.insert(pair.number, to);
                Ok(Link::new(wire, pair, words, self.config.sends, window))
            }
            Err(error) => {
                self.spare += window;
                Err((wire, error))
            }
        }
    }

    /// How many may wait to be taken, with so many connections: an overflow would end all of them.
    fn completions(&self, connections: usize) -> usize {
        // One more request to end with, and one to say goodbye.
        self.config.receives.max(self.posted) + connections * (self.config.sends + 2)
    }

    pub(super) fn hello(&self, link: &Link<D::Wire>) -> Hello {
        Hello {
            port: self.place.port(),
            window: link.window() as u16,
            longest: self.config.buffer as u32,
            instance: self.instance,
            word: link.word(),
            is_open: self.is_open,
            has_atomics: self.memory.atomics,
        }
    }

    /// Looks what has become of connections, and who has come.
    #[cold]
    pub(super) fn look<S: Sink>(&mut self, sink: &mut S) {
        let mut keys = core::mem::take(&mut self.news);
        self.device.look(&mut keys);
        for key in keys {
            self.hear_all(key as PeerId, sink);
        }
        while let Some(trouble) = self.troubles.pop_front().or_else(|| self.device.trouble()) {
            self.hear_trouble(trouble);
        }
        while let Some(request) = self.visitors.pop_front().or_else(|| self.device.request()) {
            self.arrived(request, sink);
        }
        let now = clock::monotonic_ms();
        for number in self.peers.take_ways() {
            if self.peers.get_mut(number).is_some_and(|peer| peer.ends_rest(now)) {
                self.dial(number);
            }
            if self.is_left_for_elsewhere(number, now) {
                self.dial_failed(number, &Trouble::NoAnswer);
            }
            self.peers.note_way(number);
        }
    }

    /// A try takes longer than there is patience for a peer that another way leads to.
    fn is_left_for_elsewhere(&self, to: PeerId, now: u64) -> bool {
        let (Some(patience), Some(peer)) = (self.config.elsewhere_after, self.peers.get(to)) else {
            return false;
        };
        let is_tried = matches!(peer.way, Way::Begun(Attempt::Resolving(_) | Attempt::Asked(_)));
        is_tried && !peer.history.was_connected() && u128::from(peer.history.tried_for(now)) >= patience.as_millis()
    }

    pub(super) fn hear_all<S: Sink>(&mut self, from: PeerId, sink: &mut S) {
        while let Some(news) = self.peers.get_mut(from).and_then(|peer| peer.way.news()) {
            self.hear(from, news, sink);
        }
        let link = self.peers.link(from);
        let Some(link) = link else { return };
        while let Some(news) = link.wire.connection().news() {
            if matches!(
                news.kind,
                EventKind::Disconnected | EventKind::Failed | EventKind::Removed
            ) {
                link.cut(End::Cut);
            }
        }
        self.note_end(from);
    }

    fn hear<S: Sink>(&mut self, from: PeerId, news: News, sink: &mut S) {
        use EventKind::{
            AddressResolved, Disconnected, Established, Failed, NobodyThere, Rejected, Removed, RouteResolved,
        };
        let Some(peer) = self.peers.get_mut(from) else { return };
        match (&mut peer.way, news.kind) {
            (Way::Begun(Attempt::Resolving(wire)), AddressResolved) => {
                if let Err(error) = wire.connection().resolve_route() {
                    self.dial_failed(from, &Trouble::NoWay(error));
                }
            }
            (Way::Begun(Attempt::Resolving(_)), RouteResolved) => self.ask(from),
            (Way::Begun(Attempt::Resolving(_)), Failed | Removed | Disconnected | Rejected | NobodyThere) => {
                let error = io::ErrorKind::HostUnreachable.into();
                self.dial_failed(from, &Trouble::NoWay(error));
            }
            (Way::Begun(Attempt::Asked(_)), Established) => self.answered(from, &news.data, sink),
            (Way::Begun(Attempt::Asked(_)), Rejected) => self.rejected(from, &news.data),
            (Way::Begun(Attempt::Asked(_)), NobodyThere) => self.dial_failed(from, &Trouble::Nobody),
            (Way::Begun(Attempt::Asked(_)), Failed | Removed | Disconnected) => {
                self.dial_failed(from, &Trouble::NoAnswer)
            }
            (Way::Begun(Attempt::Accepted(_)), Established) => self.agreed(from, sink),
            (Way::Begun(Attempt::Accepted(_)), Failed | Removed | Disconnected | Rejected | NobodyThere) => {
                self.set_way(from, Way::None);
            }
            // What the peer sent on it before is still delivered.
            (Way::Begun(Attempt::Agreed(link)), Failed | Removed | Disconnected) => link.cut(End::Cut),
            // What comes late, or in an order that makes no sense, changes nothing.
            _ => {}
        }
    }

    /// There is a way: asks the peer.
    fn ask(&mut self, to: PeerId) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let Some(Attempt::Resolving(wire)) = peer.set_way(Way::None) else {
            return;
        };
        let link = match self.equip(to, wire) {
            Ok(link) => link,
            Err((_, error)) => return self.dial_failed(to, &Trouble::NoMemory(error)),
        };
        let hello = self.hello(&link).encode();
        self.begin(to, Attempt::Asked(Box::new(link)));
        let link = self.peers.get_mut(to).and_then(|peer| peer.way.link());
        let asked = link.map(|link| link.wire.connection().connect(&hello));
        if let Some(Err(error)) = asked {
            self.dial_failed(to, &Trouble::NoWay(error));
        }
    }

    fn answered<S: Sink>(&mut self, to: PeerId, data: &[u8], sink: &mut S) {
        match Hello::decode(data) {
            Ok(hello) => {
                let link = self.peers.get_mut(to).and_then(|peer| peer.way.link());
                link.into_iter().for_each(|link| link.heard_hello(hello));
                self.settle(to, sink);
            }
            Err(_) => self.refused(to, FOREIGN),
        }
    }

    /// There is a connection. None is made while another one stands.
    pub(super) fn settle<S: Sink>(&mut self, to: PeerId, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        if peer.way.link().is_none() {
            return;
        }
        let Some(link) = peer.set_way(Way::None).and_then(Attempt::into_link) else {
            return;
        };
        let is_other = peer.history.stands(link.instance());
        let waits = !link.arrived.is_empty();
        peer.link = Some(link);
        if is_other {
            self.tell_gone(to, Loss::Died, sink);
        }
        if !self.is_end_of_itself(to) {
            sink.met(to, to);
        }
        if waits {
            self.ready.push(to);
        }
        self.note_end(to);
        self.tell_differing(to);
    }

    fn rejected(&mut self, to: PeerId, data: &[u8]) {
        match Verdict::decode(data) {
            Some(Verdict::Wait) => self.rest(to, LONG_REST_MS),
            Some(Verdict::Later) => self.dial_failed(to, &Trouble::Later),
            Some(Verdict::Foreign) => self.refused(to, FOREIGN),
            Some(Verdict::Impostor) => {
                self.refused(to, "it does not believe our address; is there an address translation?")
            }
            // Its kernel has refused, which has no room for the request, or its process, which has no descriptor.
            None if data.iter().all(|byte| *byte == 0) => self.dial_failed(to, &Trouble::Later),
            None => self.refused(to, FOREIGN),
        }
    }

    /// Not before a while.
    pub(super) fn rest(&mut self, to: PeerId, ms: u64) {
        let until = clock::monotonic_ms() + ms;
        self.set_way(to, Way::Resting { until });
    }

    /// Trying again would not help.
    fn refused(&mut self, to: PeerId, why: &str) {
        let place = self.peers.get(to).and_then(|peer| peer.place());
        (self.config.warn)(&format!("{} refuses the connection: {why}", shown(place)));
        self.give_up(to, Push::Unreachable(Unreached::Refused));
    }

    fn give_up(&mut self, to: PeerId, failure: Push) {
        self.set_way(to, Way::None);
        self.peers.give_up(to, failure);
    }

    #[cold]
    pub(super) fn dial_failed(&mut self, to: PeerId, trouble: &Trouble) {
        self.set_way(to, Way::None);
        let Some(peer) = self.peers.get_mut(to) else { return };
        let failed = match trouble {
            Trouble::Nobody => Failed::Nobody,
            Trouble::NoAnswer => Failed::NoAnswer,
            Trouble::Later | Trouble::NoWay(_) | Trouble::NoMemory(_) => Failed::Otherwise,
        };
        let (failure, why) = match trouble {
            Trouble::Nobody => (
                Unreached::Refused,
                "nobody listens there: is it up, and was it told this address?".into(),
            ),
            Trouble::Later => (Unreached::Refused, "it has no room for another connection".into()),
            Trouble::NoAnswer => (Unreached::TimedOut, "it does not answer".into()),
            Trouble::NoWay(error) => (Unreached::Nobody, format!("there is no way there: {error}")),
            Trouble::NoMemory(error) => (Unreached::Nobody, format!("this endpoint cannot connect: {error}")),
        };
        let place = shown(peer.place());
        let elsewhere = self.config.elsewhere_after.filter(|_| !peer.history.was_connected());
        let (now, timeout) = (clock::monotonic_ms(), elsewhere.unwrap_or(self.config.connect_timeout));
        match peer.history.failed(failed, now, timeout) {
            Next::Rest(ms) => return self.rest(to, ms),
            Next::Dead => (self.config.info)(&format!("{place}: {why}; that endpoint has ended")),
            Next::Unreachable => (self.config.warn)(&format!("{place} cannot be reached: {why}")),
        }
        self.give_up(
            to,
            match trouble {
                Trouble::NoMemory(_) => Push::NoMemory,
                _ => Push::Unreachable(failure),
            },
        );
    }
}

const FOREIGN: &str = "it has another version of this library, or is of another: the C library's `verbs;ofi_rxm` speaks \
                       a protocol of its own, so all processes of a job need the same library";
