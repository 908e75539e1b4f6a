//! Peers that connect to us: who is welcomed, who waits, and what becomes of our own try. Part of `TcpTransport`.
//!
//! The rule for two that connect at once stands in `handshake`, and who keeps its own in `connecting::history`.

use super::attempt::{Attempt, Way};
use super::handshake::{Verdict, frame};
use super::listener::Arrival;
use super::{TcpTransport, address, key, key_of, sockets};
use crate::engine::port::{PeerId, Sink};
use crate::sys::clock;
use crate::sys::forks::ParentFd;
use crate::sys::stream::{self, First, Part};
use crate::transport::connecting::keeps_own;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};

/// How long a welcome waits to be confirmed. A dialer that computes and does not poll connects anew.
const PATIENCE_MS: u64 = 30_000;

/// For so long after a welcome the peer is not welcomed on another connection: the confirmation may be on its way, and
/// behind it what the peer has seen leave.
const MAY_CONFIRM_MS: u64 = 2_000;

/// `until`: how long the welcome waits.
fn may_confirm(socket: &ParentFd, until: u64) -> bool {
    let welcomed = until.saturating_sub(PATIENCE_MS);
    clock::monotonic_ms() < welcomed + MAY_CONFIRM_MS && !sockets::is_at_its_end(socket)
}

impl TcpTransport {
    #[cold]
    pub(super) fn receive_arrivals<S: Sink>(&mut self, sink: &mut S) {
        for arrival in self.desk.take() {
            let from = address::said_by(&arrival.said.hello.from, &arrival.from);
            // Whoever begins anew has said on the connection before all that it had to say there.
            if let Some(from) = self.peers.number(&from) {
                self.hear_confirmation(from, sink);
            }
            match self.judge(&arrival, &from) {
                (Verdict::Welcome, Some(from)) => {
                    if self.welcome(from, arrival, &[]) {
                        self.hear_confirmation(from, sink);
                    } else {
                        self.unconfirmed(from, ErrorKind::ConnectionReset);
                    }
                }
                (verdict, _) => {
                    arrival.answer(verdict, self.instance, &[]);
                }
            }
        }
    }

    /// `from`: who has come.
    fn judge(&mut self, arrival: &Arrival, from: &[u8]) -> (Verdict, Option<PeerId>) {
        if arrival.said.hello.instance == self.instance {
            return (Verdict::Yourself, None);
        }
        let Some(number) = self.peers.number(from) else {
            return (Verdict::Later, None);
        };
        let Some(peer) = self.peers.get(number) else {
            return (Verdict::Later, None);
        };
        let has_address = address::place(from).is_some_and(|place| place.ip() == arrival.from.ip());
        let taken =
            peer.link.is_some() || matches!(peer.way, Way::Begun(Attempt::Welcomed { .. } | Attempt::Agreed { .. }));
        if taken && !has_address {
            let place = address::shown(address::place(from));
            (self.config.warn)(&format!(
                "a connection from {} says that it is {place}, which is connected: refused",
                arrival.from
            ));
            return (Verdict::Impostor, None);
        }
        match &peer.way {
            Way::Begun(Attempt::Dialing { said: Some(said), .. }) if keeps_own(&said.from, from) => {
                (Verdict::Wait, None)
            }
            // What came on that one would be lost; the peer asks again when it has come to be the link.
            Way::Begun(Attempt::Agreed { .. }) => (Verdict::Later, None),
            Way::Begun(Attempt::Welcomed { arrival: newer, .. }) if arrival.number < *newer => (Verdict::Later, None),
            Way::Begun(Attempt::Welcomed { socket, until, .. }) if may_confirm(socket, *until) => {
                (Verdict::Later, None)
            }
            _ => (Verdict::Welcome, Some(number)),
        }
    }

    /// Accepts who has come, unless anybody else is at it.
    pub(super) fn serve_guests(&self) {
        if let Some(listener) = &self.listener {
            listener.serve(self.instance, &self.config);
        }
    }

    /// Our own try is given up; so is what the peer has begun before, as it would not begin anew otherwise. `behind`:
    /// what stands behind the answer. False: the peer is gone.
    pub(super) fn welcome(&mut self, from: PeerId, arrival: Arrival, behind: &[u8]) -> bool {
        let Some(peer) = self.peers.get_mut(from) else {
            return false;
        };
        let fd = arrival.socket.as_fd().as_raw_fd();
        peer.way = Way::None;
        if self.epoll.add_edges(fd, key_of(from, key::WAY)).is_err()
            || !arrival.answer(Verdict::Welcome, self.instance, behind)
        {
            return false;
        }
        peer.way = Way::Begun(Attempt::Welcomed {
            socket: arrival.socket,
            arrival: arrival.number,
            instance: arrival.said.hello.instance,
            until: clock::monotonic_ms() + PATIENCE_MS,
            word: [0; frame::WORD],
            got: 0,
        });
        self.peers.note_way(from);
        true
    }

    pub(super) fn hear_confirmation<S: Sink>(&mut self, from: PeerId, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(from) else { return };
        let Way::Begun(Attempt::Welcomed { socket, word, got, .. }) = &mut peer.way else {
            return;
        };
        let place = word.get_mut(*got..).unwrap_or_default();
        match stream::receive(socket.as_fd(), First::Memory(Part::NONE), place) {
            Ok(came @ 1..) => *got += came,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            // It has changed its mind.
            _ => return self.unconfirmed(from, ErrorKind::ConnectionReset),
        }
        if *got < frame::WORD {
            return;
        }
        if u32::from_le_bytes(*word) != frame::CONFIRM {
            return self.unconfirmed(from, ErrorKind::InvalidData);
        }
        let Some(Attempt::Welcomed { socket, instance, .. }) = peer.set_way(Way::None) else {
            return;
        };
        peer.way = Way::Begun(Attempt::Agreed { socket, instance });
        if let Some(link) = &mut peer.link {
            link.supersede(clock::monotonic_ms());
            self.activate(from);
        }
        self.settle(from, sink);
    }
}
