//! Connecting to a peer: the first push begins it, polls carry it on. Part of `TcpTransport`.
//!
//! When a try that failed is followed by another one, and when not, says `connecting::history`.

use super::attempt::{Attempt, SaidHello, Way};
use super::config::ONE_SECRET;
use super::ends::died;
use super::handshake::{Answer, CALL, Hello, Verdict, frame};
use super::introduction::{Heard, Introduction};
use super::link::Link;
use super::secret::dialed;
use super::{TcpTransport, address, config, key, key_of, sockets};
use crate::engine::op::Unreached;
use crate::engine::port::{PeerId, Push, Sink};
use crate::sys::clock;
use crate::sys::stream::{self, First, Part};
use crate::transport::connecting::{Failed, LONG_REST_MS, Next};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};

/// As many connections are made at the same time.
const AT_ONCE: usize = 1024;

const NO_ENDPOINT: &str = "whoever answers there is no endpoint of this library";

impl TcpTransport {
    /// Begins to connect, unless something is under way.
    pub(super) fn dial_if_idle(&mut self, to: PeerId) {
        if self.peers.is_idle(to, clock::monotonic_ms()) {
            self.dial(to);
        }
    }

    /// Begins to connect. Whatever comes of it, the next push or poll tells.
    #[cold]
    pub(super) fn dial(&mut self, to: PeerId) {
        if self.peers.ways().len() >= AT_ONCE && self.peers.begun() >= AT_ONCE {
            return self.rest(to, LONG_REST_MS);
        }
        let Some(peer) = self.peers.get_mut(to) else { return };
        peer.history.begins(clock::monotonic_ms());
        let Some(place) = peer.place() else { return };
        let own = self.place.ip();
        // The peer knows by it that our address is ours. Other machines may not be told to answer to a loopback
        // address.
        let names_us = !own.is_unspecified() && (!own.is_loopback() || place.ip().is_loopback());
        let from = names_us.then_some(self.place);
        let dialed = match &mut self.one_peer {
            Some(one) => one.dial(place),
            None => sockets::dial(from, place, &self.config),
        };
        let dialed = dialed.and_then(|socket| {
            let fd = socket.as_fd().as_raw_fd();
            self.epoll.add_edges(fd, key_of(to, key::WAY)).map(|()| socket)
        });
        match dialed {
            Ok(socket) => {
                let place = sockets::own_place(&socket).filter(|_| self.one_peer.is_some());
                peer.way = Way::Begun(Attempt::Dialing { socket, said: None });
                place.into_iter().for_each(|place| self.learn_place(place));
                self.peers.note_way(to);
                self.say_hello(to);
            }
            Err(error) => self.dial_failed(to, &error),
        }
    }

    /// Says hello as soon as the kernel has connected.
    pub(super) fn say_hello(&mut self, to: PeerId) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let Way::Begun(Attempt::Dialing {
            socket,
            said: said @ None,
        }) = &mut peer.way
        else {
            return;
        };
        if let Some(error) = sockets::error_of(socket) {
            return self.dial_failed(to, &error);
        }
        let mut from = self.own.clone();
        if self.place.ip().is_unspecified() {
            // It is known by the address that this peer can reach it by.
            let Some(mut place) = sockets::own_place(socket) else {
                return;
            };
            if place.ip().is_unspecified() {
                return;
            }
            place.set_port(self.place.port());
            from = address::context(&address::of(&place), self.context.into());
        }
        let (context, data) = match &self.one_peer {
            Some(one) => (CALL, one.said()),
            None => (address::context_number(&peer.address), &[][..]),
        };
        let hello = Hello {
            from: from.clone(),
            instance: self.instance,
            context,
            nonce: None,
        };
        let Some(place) = sockets::other_place(socket) else {
            return;
        };
        let begun = Introduction::begin(hello, data, dialed(Some(place), context), self.config.secret.as_ref());
        let introduction = match begun {
            Ok(introduction) => introduction,
            Err(error) => return self.dial_failed(to, &error),
        };
        let (hello, data) = introduction.hello();
        match stream::send(socket.as_fd(), hello, data, &Part::NONE) {
            Ok(sent) if sent == hello.len() + data.len() => *said = Some(Box::new(SaidHello { from, introduction })),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {}
            Err(error) => self.dial_failed(to, &error),
            // A fresh socket has room for it.
            Ok(_) => self.dial_failed(to, &ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Something has come, or ended, on the way to a peer.
    pub(super) fn way_has_news<S: Sink>(&mut self, to: PeerId, sink: &mut S) {
        self.say_hello(to);
        match self.peers.get(to).map(|peer| &peer.way) {
            Some(Way::Begun(Attempt::Dialing { said: Some(_), .. })) => self.hear_answer(to, sink),
            Some(Way::Begun(Attempt::Welcomed { .. })) => self.hear_confirmation(to, sink),
            _ => {}
        }
    }

    fn hear_answer<S: Sink>(&mut self, to: PeerId, sink: &mut S) {
        let heard = loop {
            let Some(peer) = self.peers.get_mut(to) else { return };
            let Way::Begun(Attempt::Dialing {
                socket,
                said: Some(said),
            }) = &mut peer.way
            else {
                return;
            };
            let introduction = &mut said.introduction;
            let came = match stream::receive(socket.as_fd(), First::Memory(Part::NONE), introduction.room()) {
                Ok(0) => return self.dial_failed(to, &ErrorKind::UnexpectedEof.into()),
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.dial_failed(to, &error),
            };
            match introduction.came(came) {
                Heard::Part => {}
                Heard::Say(proof) => match stream::send(socket.as_fd(), &proof, &[], &Part::NONE) {
                    Ok(sent) if sent == proof.len() => {}
                    _ => return self.dial_failed(to, &ErrorKind::ConnectionReset.into()),
                },
                heard => break heard,
            }
        };
        match heard {
            Heard::Answer(answer, data) => self.answered(to, answer, data, sink),
            Heard::Unproven => self.denied(to, "it does not prove the secret of this endpoint"),
            Heard::BadData => self.dial_failed(to, &ErrorKind::InvalidData.into()),
            Heard::Nonsense if self.one_peer.is_some() => self.refused(to, NO_ENDPOINT),
            // An endpoint may take that place yet.
            Heard::Part | Heard::Say(_) | Heard::Nonsense => self.dial_failed(to, &io::Error::other(NO_ENDPOINT)),
        }
    }

    fn answered<S: Sink>(&mut self, to: PeerId, answer: Answer, data: Vec<u8>, sink: &mut S) {
        if self.one_peer.is_some() && !matches!(answer.verdict, Verdict::Foreign | Verdict::Denied) {
            return self.call_answered(to, answer, data, sink);
        }
        let Some(peer) = self.peers.get_mut(to) else { return };
        match answer.verdict {
            Verdict::Welcome => self.confirm(to, answer.instance, sink),
            Verdict::Wait => self.rest(to, LONG_REST_MS),
            Verdict::Yourself => {
                peer.is_self = true;
                peer.way = Way::None;
                self.own_number.get_or_insert(to);
            }
            Verdict::Later => self.dial_failed(to, &io::Error::other("it has no room, or no such context, now")),
            Verdict::Foreign => self.refused(
                to,
                "it has another version of this library, or another byte order; all machines need the same",
            ),
            Verdict::Impostor => self.refused(
                to,
                "it is connected with another endpoint that says it has our address; is it on two machines?",
            ),
            Verdict::Rejected => self.refused(to, "it answers as a passive endpoint"),
            Verdict::Denied => self.denied(
                to,
                "it has another secret than this endpoint, or only one of both has one",
            ),
        }
    }

    /// The peer has welcomed us: the connection is agreed on. `instance`: what the peer calls itself.
    pub(super) fn confirm<S: Sink>(&mut self, to: PeerId, instance: u64, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(to) else { return };
        let Some(Attempt::Dialing { socket, .. }) = peer.set_way(Way::None) else {
            return;
        };
        let confirm = frame::CONFIRM.to_le_bytes();
        // The welcome may be old, and withdrawn meanwhile: what is sent then is lost.
        if sockets::is_at_its_end(&socket) {
            return self.dial_failed(to, &ErrorKind::UnexpectedEof.into());
        }
        if stream::send(socket.as_fd(), &confirm, &[], &Part::NONE).is_ok_and(|sent| sent == confirm.len()) {
            peer.way = Way::Begun(Attempt::Agreed { socket, instance });
            self.settle(to, sink);
        } else {
            self.dial_failed(to, &ErrorKind::ConnectionReset.into());
        }
    }

    /// There is a connection, and the one before it has come to its end.
    pub(super) fn settle<S: Sink>(&mut self, to: PeerId, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(to).filter(|peer| peer.link.is_none()) else {
            return;
        };
        if !matches!(peer.way, Way::Begun(Attempt::Agreed { .. })) {
            return;
        }
        let Some(Attempt::Agreed { socket, instance }) = peer.set_way(Way::None) else {
            return;
        };
        if self
            .epoll
            .rename(socket.as_fd().as_raw_fd(), key_of(to, key::LINK))
            .is_err()
        {
            return self.unconfirmed(to, ErrorKind::Other);
        }
        sockets::watch_by_ourselves(&socket, &self.config);
        sockets::hurry_within_machine(&socket);
        peer.link = Some(Box::new(Link::new(socket)));
        let has_died = peer.history.stands(instance);
        let source = self.peers.source(to);
        sink.met(to, source);
        if has_died {
            let died = died(to, source);
            sink.gone(to, died);
            self.look_after(died);
            sink.met(to, source);
        }
        self.activate(to);
        self.one_peer.iter_mut().for_each(|one| one.stands());
        self.start_watch();
    }

    /// Not before a while.
    pub(super) fn rest(&mut self, to: PeerId, ms: u64) {
        if let Some(peer) = self.peers.get_mut(to) {
            let until = clock::monotonic_ms() + ms;
            peer.way = Way::Resting { until };
            self.peers.note_way(to);
        }
    }

    /// Trying again would not help.
    pub(super) fn refused(&mut self, to: PeerId, why: &str) {
        if let Some(peer) = self.peers.get_mut(to) {
            let place = address::shown(peer.place());
            (self.config.warn)(&format!("{place} refuses the connection: {why}"));
            if self.one_peer.is_some() {
                return self.call_failed(&ErrorKind::ConnectionRefused.into());
            }
            self.peers.give_up(to, Push::Unreachable(Unreached::Refused));
        }
    }

    fn denied(&mut self, to: PeerId, why: &str) {
        if let Some(peer) = self.peers.get_mut(to) {
            let place = address::shown(peer.place());
            (self.config.warn)(&format!("no connection with {place}: {why}; {ONE_SECRET}"));
            if self.one_peer.is_some() {
                return self.call_failed(&ErrorKind::PermissionDenied.into());
            }
            self.peers.give_up(to, Push::Unreachable(Unreached::Denied));
        }
    }

    #[cold]
    pub(super) fn dial_failed(&mut self, to: PeerId, error: &io::Error) {
        if self.one_peer.is_some() {
            return self.call_failed(error);
        }
        let Some(peer) = self.peers.get_mut(to) else { return };
        peer.way = Way::None;
        let place = address::shown(peer.place());
        let (own, timeout) = (self.place.ip(), self.config.connect_timeout);
        let failure = Push::Unreachable(reason(error));
        let failed = match error.kind() {
            ErrorKind::ConnectionRefused => Failed::Nobody,
            ErrorKind::TimedOut => Failed::NoAnswer,
            _ => Failed::Otherwise,
        };
        // A try that began in time is carried through.
        let next = peer.history.failed(failed, peer.history.tried_at(), timeout);
        let shortage = sockets::is_shortage(error);
        if shortage && !core::mem::replace(&mut self.told_shortage, true) {
            let why = config::OpenError::of(
                "connecting",
                io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0)),
            );
            (self.config.warn)(&format!("cannot connect to {place}: {why}"));
        }
        match next {
            Next::Rest(ms) => return self.rest(to, ms),
            Next::Dead => (self.config.info)(&format!("nobody listens at {place} any more: that endpoint has ended")),
            Next::Unreachable if shortage => {}
            Next::Unreachable => {
                // Whoever refuses was reached, so that another interface would not help.
                let hint = match failed {
                    Failed::Nobody => "nobody listens there: is it up, and was it told this address?",
                    _ => "FI_TCP_IFACE chooses another interface, if a firewall is not the cause",
                };
                (self.config.warn)(&format!(
                    "{place} cannot be reached from {own} within {timeout:?} (FI_TCP_CONNECT_TIMEOUT): {error}; {hint}"
                ));
            }
        }
        self.peers.give_up(to, if shortage { Push::NoMemory } else { failure });
    }
}

/// What a program is told when connecting came to nothing for this.
fn reason(error: &io::Error) -> Unreached {
    match error.kind() {
        ErrorKind::ConnectionRefused => Unreached::Refused,
        ErrorKind::TimedOut => Unreached::TimedOut,
        ErrorKind::NetworkUnreachable => Unreached::NoNetwork,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::UnexpectedEof
        | ErrorKind::BrokenPipe => Unreached::Reset,
        _ => Unreached::Nobody,
    }
}
