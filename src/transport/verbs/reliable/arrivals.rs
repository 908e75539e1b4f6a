//! Peers that connect to us: who is accepted, who waits, and what becomes of our own try. Part of `Reliable`.
//!
//! The rule for two that connect at once stands in `handshake`, and who keeps its own in
//! `connecting::history`. Until its dialer has confirmed it, a connection changes
//! nothing: a request may be of a try that the peer has given up.

use super::Reliable;
use super::attempt::{Attempt, Way};
use super::handshake::{Hello, Verdict};
use super::link::End;
use super::seam::{Device, Request};
use crate::engine::port::{PeerId, Sink};
use crate::transport::connecting::address::{self, shown};
use crate::transport::connecting::keeps_own;
use crate::transport::verbs::seam::{Connection, QueuePair};

impl<D: Device> Reliable<D> {
    pub(super) fn arrived<S: Sink>(&mut self, mut request: Request<D::Wire>, sink: &mut S) {
        let hello = match Hello::decode(&request.data) {
            Ok(hello) => hello,
            Err(stranger) => {
                (self.config.warn)(&format!(
                    "a connection from {} is refused, which speaks another protocol or version ({stranger:?}): is it \
                     `verbs;ofi_rxm` of the C library?",
                    shown(request.from)
                ));
                return request.wire.connection().reject(&Verdict::Foreign.encode());
            }
        };
        let Some(mut place) = request.from.filter(|_| hello.port != 0) else {
            return request.wire.connection().reject(&Verdict::Impostor.encode());
        };
        place.set_port(hello.port);
        if place == self.place {
            return self.arrived_from_itself(request, hello);
        }
        let known = self.peers.number(&address::of(&place));
        let Some(from) = known.filter(|_| !self.is_lost) else {
            return request.wire.connection().reject(&Verdict::Later.encode());
        };
        // The device may tell of a request first, and then of the confirmation that its asker had given before.
        self.hear_all(from, sink);
        self.judge(from, request, hello);
    }

    fn judge(&mut self, from: PeerId, mut request: Request<D::Wire>, hello: Hello) {
        let Some(peer) = self.peers.get(from) else { return };
        match peer.way {
            Way::Begun(Attempt::Resolving(_) | Attempt::Asked(_)) if keeps_own(&self.own, &peer.address) => {
                request.wire.connection().reject(&Verdict::Wait.encode());
            }
            // What came on that one would be lost; the peer asks again when it has come to be the link.
            Way::Begun(Attempt::Agreed(_)) => request.wire.connection().reject(&Verdict::Later.encode()),
            // What was under way before is given up, as the peer would not begin anew otherwise.
            _ => self.accept(from, request, hello),
        }
    }

    /// The peer has confirmed. What it sent on a connection before, which it has given up, is delivered first.
    pub(super) fn agreed<S: Sink>(&mut self, from: PeerId, sink: &mut S) {
        let Some(peer) = self.peers.get_mut(from) else { return };
        let Some(link) = &mut peer.link else {
            return self.settle(from, sink);
        };
        link.cut(End::Cut);
        if let Some(Attempt::Accepted(link)) = peer.set_way(Way::None) {
            peer.set_way(Way::Begun(Attempt::Agreed(link)));
        }
        self.note_end(from);
    }

    pub(super) fn accept(&mut self, from: PeerId, request: Request<D::Wire>, hello: Hello) {
        self.set_way(from, Way::None);
        let mut link = match self.equip(from, request.wire) {
            Ok(link) => link,
            Err((mut wire, error)) => {
                wire.connection().reject(&Verdict::Later.encode());
                // Of an asker that has given up meanwhile librdmacm says this.
                if error.raw_os_error() != Some(libc::EINVAL) {
                    self.tell_shortage(&error);
                }
                return;
            }
        };
        link.heard_hello(hello);
        let answer = self.hello(&link).encode();
        let accepted = self
            .device
            .watch(&link.wire, u64::from(from))
            .and_then(|()| link.wire.connection().accept(&answer));
        match accepted {
            Ok(()) => self.begin(from, Attempt::Accepted(Box::new(link))),
            // It has gone away meanwhile.
            Err(_) => self.close(link),
        }
    }

    fn tell_shortage(&mut self, error: &std::io::Error) {
        if !core::mem::replace(&mut self.told_shortage, true) {
            (self.config.warn)(&format!(
                "a peer's connection is refused, as this endpoint has no room for it: {error}"
            ));
        }
    }
}
