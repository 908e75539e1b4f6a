//! Endpoints of FI_EP_MSG: the one peer, which the program connects to or accepts. Part of `TcpTransport`.
//!
//! The connection is made as any other (`dialing`, `arrivals`), by a program's word instead of the first push, and
//! once: it is not tried again and not made anew. What becomes of it is told as events, after the engine has heard of
//! it. Called by `provider`, and by those others.

use super::attempt::Way;
use super::causes::Waiting;
use super::config::{Config, OpenError};
use super::handshake::{Answer, Verdict};
use super::link::Link;
use super::listener::Desk;
use super::passive::Call;
use super::{TcpTransport, address, sockets};
use crate::engine::port::{PeerId, Sink};
use crate::sys::forks::ParentFd;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// The only peer's number.
const PEER: PeerId = 0;

/// What has become of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It stands. `data`: what the other program gave fi_accept.
    Connected { data: Vec<u8> },
    /// It never stood. `data`: what the other program gave fi_reject.
    Failed { errno: i32, data: Vec<u8> },
    /// The other side has ended it, or it broke.
    Closed,
}

#[derive(Default)]
pub(super) struct OnePeer {
    /// Bound to the endpoint's address; it becomes the connection.
    socket: Option<ParentFd>,
    /// What the endpoint was opened for, until it is accepted.
    call: Option<Call>,
    /// What the program gave fi_connect.
    said: Vec<u8>,
    /// What the other program gave fi_accept.
    heard: Vec<u8>,
    /// After a shutdown: what was pushed is on its way.
    pub leaving: Option<Box<Link>>,
    /// Shut down by the program, which is told nothing more.
    shut_down: bool,
    connected: VecDeque<Event>,
    /// Told when the engine has heard of the end.
    last: Option<Event>,
    heard_of_end: bool,
    /// The connection has ended, and the engine is told soon.
    ends: Option<Waiting>,
}

impl OnePeer {
    /// Begins to connect with the socket that the endpoint is bound by.
    pub(super) fn dial(&mut self, to: SocketAddr) -> io::Result<ParentFd> {
        let socket = self.socket.take().ok_or(ErrorKind::AlreadyExists)?;
        sockets::connect(&socket, to).map(|()| socket)
    }

    pub(super) fn said(&self) -> &[u8] {
        &self.said
    }

    pub(super) fn stands(&mut self) {
        let data = core::mem::take(&mut self.heard);
        self.connected.push_back(Event::Connected { data });
    }

    /// Whether the engine may hear now that the connection has ended.
    pub(super) fn may_end(&mut self) -> bool {
        self.ends.get_or_insert_default().is_over()
    }

    /// The engine has heard that there is no connection.
    pub(super) fn has_ended(&mut self) {
        self.heard_of_end = true;
        if !self.shut_down {
            self.last.get_or_insert(Event::Closed);
        }
    }
}

impl TcpTransport {
    /// Makes an endpoint with this address of a socket, which is to connect to a passive one. With port 0 it gets a
    /// port when it connects.
    pub fn open_to_call(address: &[u8], config: &Config) -> Result<TcpTransport, OpenError> {
        let place = address::place(address).ok_or(OpenError::Address)?;
        let socket = sockets::to_connect(Some(place), &place, config);
        let socket = socket.map_err(|error| OpenError::of("binding", error))?;
        let place = sockets::own_place(&socket).unwrap_or(place);
        let one_peer = OnePeer {
            socket: Some(socket),
            ..OnePeer::default()
        };
        TcpTransport::new(Desk::new(config)?, None, place, 0, Some(one_peer), config)
    }

    /// Makes the endpoint of a call, which it takes, and is to accept. An error leaves the call.
    pub fn open_for_call(call: &mut Option<Call>, config: &Config) -> Result<TcpTransport, OpenError> {
        let known = call.as_ref().and_then(|call| Some((call.local()?, call.peer())));
        let (place, peer) = known.ok_or(OpenError::Address)?;
        let one_peer = Some(OnePeer::default());
        let mut transport = TcpTransport::new(Desk::new(config)?, None, place, 0, one_peer, config)?;
        transport.peers.number(&peer);
        if let Some(one) = &mut transport.one_peer {
            one.call = call.take();
        }
        Ok(transport)
    }

    /// Whether it is an endpoint of FI_EP_MSG.
    #[inline]
    pub fn has_one_peer(&self) -> bool {
        self.one_peer.is_some()
    }

    /// Whether the other side has its address already.
    pub fn is_for_call(&self) -> bool {
        self.one_peer.as_ref().is_some_and(|one| one.socket.is_none())
    }

    /// Begins to connect. An error: the address is none that can be connected to from here.
    pub fn call(&mut self, address: &[u8], data: &[u8]) -> Result<(), OpenError> {
        let place = address::place(address).filter(|place| place.port() != 0);
        let place = place.filter(|place| place.is_ipv4() == self.place.is_ipv4());
        let (Some(_), Some(one)) = (place, &mut self.one_peer) else {
            return Err(OpenError::Destination);
        };
        one.said = data.to_vec();
        if self.peers.number(address::base(address)) == Some(PEER) {
            self.dial(PEER);
        }
        Ok(())
    }

    /// The address that the other side sees is known as soon as it is dialed.
    pub(super) fn learn_place(&mut self, place: SocketAddr) {
        self.place = place;
        self.own = address::of(&place);
    }

    /// Accepts the call that it was opened for.
    pub fn accept(&mut self, data: &[u8]) {
        let call = self.one_peer.as_mut().and_then(|one| one.call.take());
        let Some(arrival) = call.and_then(Call::take) else {
            return;
        };
        if !self.welcome(PEER, arrival, data) {
            self.call_failed(&ErrorKind::ConnectionReset.into());
        }
    }

    /// The other side has answered. `data`: what its program gave fi_accept or fi_reject.
    pub(super) fn call_answered<S: Sink>(&mut self, to: PeerId, answer: Answer, data: Vec<u8>, sink: &mut S) {
        let Some(one) = &mut self.one_peer else { return };
        match answer.verdict {
            Verdict::Welcome => {
                one.heard = data;
                self.confirm(to, answer.instance, sink);
            }
            Verdict::Rejected => {
                let errno = libc::ECONNREFUSED;
                self.end_call(Some(Event::Failed { errno, data }));
            }
            Verdict::Later => self.refused(to, "no passive endpoint listens there, or it has no room"),
            _ => self.refused(to, "it answers what no passive endpoint does"),
        }
    }

    /// The connection does not come about.
    #[cold]
    pub(super) fn call_failed(&mut self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(match error.kind() {
            ErrorKind::TimedOut => libc::ETIMEDOUT,
            ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
            ErrorKind::InvalidData => libc::EPROTO,
            ErrorKind::PermissionDenied => libc::EACCES,
            _ => libc::ECONNRESET,
        });
        let place = address::shown(self.peers.get(PEER).and_then(|peer| peer.place()));
        (self.config.info)(&format!("no connection with {place}: {error}"));
        let data = Vec::new();
        self.end_call(Some(Event::Failed { errno, data }));
    }

    /// Who was welcomed does not confirm it.
    pub(super) fn unconfirmed(&mut self, from: PeerId, why: ErrorKind) {
        if self.one_peer.is_some() {
            return self.call_failed(&why.into());
        }
        let Some(peer) = self.peers.get_mut(from) else { return };
        peer.way = Way::None;
        // Our own try was given up for it, so nobody else finds out whether the peer lives.
        if peer.link.is_none() && peer.history.was_connected() {
            self.dial(from);
        }
    }

    /// Whatever is under way is given up; the engine hears of it in the next poll.
    fn end_call(&mut self, event: Option<Event>) {
        let Some(one) = self
            .one_peer
            .as_mut()
            .filter(|one| one.last.is_none() && !one.heard_of_end)
        else {
            return;
        };
        one.last = event;
        if let Some(peer) = self.peers.get_mut(PEER) {
            peer.way = Way::None;
            peer.history.dies();
            self.peers.note_end(PEER);
        }
    }

    /// Ends the connection, or the attempt. What was pushed leaves by itself.
    pub fn shut_down(&mut self) {
        let link = self.peers.get_mut(PEER).and_then(|peer| peer.link.take());
        let Some(one) = &mut self.one_peer else { return };
        // A call that is not accepted yet is rejected by this.
        one.call = None;
        one.shut_down = true;
        if let Some(mut link) = link.filter(|link| link.end.is_none()) {
            link.say_goodbye();
            one.leaving = Some(link);
        }
        self.end_call(None);
    }

    /// The socket of a connection that was shut down has room again.
    #[cold]
    pub(super) fn leaving_has_room(&mut self) {
        if let Some(link) = self.one_peer.as_mut().and_then(|one| one.leaving.as_mut()) {
            link.writable();
            link.flush();
        }
    }

    /// What has become of the connection.
    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        let one = self.one_peer.as_mut()?;
        if one.connected.is_empty() && !one.heard_of_end {
            return None;
        }
        one.connected.pop_front().or_else(|| one.last.take())
    }

    /// The peer that it is connected with, as a socket address.
    pub fn connected_with(&self) -> Option<Vec<u8>> {
        let peer = self.peers.get(PEER).filter(|peer| peer.link.is_some())?;
        self.one_peer.is_some().then(|| address::raw(&peer.address))
    }
}
