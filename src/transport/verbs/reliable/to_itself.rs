//! The connection of an endpoint with itself, over which it works on its own memory as its peers do. Part of
//! `Reliable`.
//!
//! Its two ends are peers that the engine does not know: numbers `out` and `back`, by addresses that no other peer can
//! have, those of the endpoint with a context. `out` dials and posts; `back` answers, and nothing comes of it. What the
//! connection's end has cost is told for each request, since to the engine no peer is lost.

use super::Reliable;
use super::attempt::{Attempt, Peer, Way};
use super::handshake::{Hello, Verdict};
use super::link::End;
use super::seam::{Device, Request};
use crate::engine::op::Error;
use crate::engine::port::{Loss, NotDone, PeerId, Sink};
use crate::transport::connecting::address;
use crate::transport::verbs::seam::{Connection, QueuePair};

/// What the engine is told of a request that was under way.
pub(super) const BROKEN: NotDone = NotDone::Failed(Error::Broken);

#[derive(Clone, Copy, Debug)]
pub(super) struct ToItself {
    pub out: PeerId,
    back: PeerId,
}

impl<D: Device> Reliable<D> {
    /// The number of the end that posts. None: there is no memory for more peers.
    pub(super) fn number_of_itself(&mut self) -> Option<PeerId> {
        if self.to_itself.is_none() {
            let mut number = |context| {
                let number = self.peers.number(&address::context(&self.own, context))?;
                // So it keeps its number.
                self.peers.get_mut(number)?.is_self = true;
                Some(number)
            };
            let (out, back) = (number(1)?, number(2)?);
            self.to_itself = Some(ToItself { out, back });
        }
        self.to_itself.map(|ends| ends.out)
    }

    /// The engine does not know this peer, which is an end of the connection with itself.
    pub(super) fn is_end_of_itself(&self, peer: PeerId) -> bool {
        self.to_itself.is_some_and(|ends| [ends.out, ends.back].contains(&peer))
    }

    /// It only answers.
    pub(super) fn is_back(&self, peer: PeerId) -> bool {
        self.to_itself.is_some_and(|ends| ends.back == peer)
    }

    /// Somebody at the endpoint's own address connects.
    pub(super) fn arrived_from_itself(&mut self, mut request: Request<D::Wire>, hello: Hello) {
        let asks = |peer: &Peer<D::Wire>| matches!(peer.way, Way::Begun(Attempt::Asked(_)));
        let ends = self.to_itself.filter(|ends| self.peers.get(ends.out).is_some_and(asks));
        match ends {
            Some(ends) if hello.instance == self.instance => self.accept(ends.back, request, hello),
            _ => request.wire.connection().reject(&Verdict::Impostor.encode()),
        }
    }

    /// Packets of an endpoint to itself need no connection, so nothing of ours sends any there.
    pub(super) fn refuse_packets(&mut self, end: PeerId) {
        let link = self.peers.link(end);
        link.into_iter()
            .for_each(|link| link.cut(End::Bad("a packet on the connection with itself")));
        self.drop_arrived(end);
        self.note_end(end);
    }

    /// The engine is told of a lost peer, if it knows it.
    pub(super) fn tell_gone<S: Sink>(&self, number: PeerId, loss: Loss, sink: &mut S) {
        if !self.is_end_of_itself(number) {
            sink.gone(number, loss);
        }
    }
}
