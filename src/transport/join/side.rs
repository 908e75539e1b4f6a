//! One of the two transports of a join.
//!
//! Knows nothing of the other one. Called by `Join`.

use super::peers;
use crate::engine::port::tap::{KnownPeers, Tap};
use crate::engine::port::{PeerId, Sink, Transport};

/// One of the two transports, with what the engine calls its peers.
pub(super) struct Side<T> {
    pub transport: T,
    pub known: KnownPeers,
    /// Peers that have sent something and have no number of the engine's yet. Empty between polls of the join.
    pub fresh: Vec<PeerId>,
}

impl<T: Transport> Side<T> {
    pub(super) fn new(transport: T) -> Side<T> {
        Side {
            transport,
            known: Vec::new(),
            fresh: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) fn poll<S: Sink>(&mut self, sink: &mut S, lost: &mut Vec<PeerId>, budget: usize) -> usize {
        let mut tap = Tap {
            sink,
            known: &mut self.known,
            fresh: &mut self.fresh,
            lost,
            forgets: true,
        };
        self.transport.poll(&mut tap, budget)
    }

    /// Numbers that the transport gives up, of peers that the engine does not hold.
    pub(super) fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let known = &self.known;
        let is_held = |number: PeerId| peers::known(known, number).is_some_and(|known| held(known.id));
        let forgotten = self.transport.forget(&is_held);
        let lost = forgotten
            .into_iter()
            .filter_map(|number| peers::unknow(&mut self.known, number));
        lost.collect()
    }
}
