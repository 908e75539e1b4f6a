//! What is left inside an engine, for tests that must see that nothing is.

use crate::engine::endpoint::Engine;
use crate::engine::peer::Peer;
use crate::engine::port::{ExposedName, PeerId, Transport};

impl<T: Transport> Engine<T> {
    /// Sizes of all tables: all are 0 when nothing is in flight.
    pub fn leftovers(&self) -> [usize; 5] {
        let core = &self.core;
        let sides = core.peers.iter().filter_map(|peer| peer.rma.as_ref());
        let sides = core.unacked + sides.map(|rma| rma.left()).sum::<usize>();
        [
            core.outgoing.len(),
            core.arrivals.len(),
            core.landings.len(),
            core.streams.len()
                + core.multis.len()
                + core.claims.len()
                + core.calls.len()
                + core.exposures.len()
                + core.posted_pieces.len(),
            sides + core.kept + core.peers.iter().map(|peer| peer.kept + peer.withheld).sum::<usize>(),
        ]
    }

    /// The names of all outgoing operations in flight.
    pub fn unfinished_names(&self) -> Vec<ExposedName> {
        self.core
            .outgoing
            .iter()
            .map(|(id, _)| ExposedName::Sent(id.bits()))
            .collect()
    }

    /// Our credit at a peer; its credit here; and what we have yet to return to it.
    pub fn credit(&self, peer: PeerId) -> (usize, usize, usize) {
        let stranger = Peer::new(&self.core.config);
        let peer = self.core.peers.get(peer as usize).unwrap_or(&stranger);
        (peer.credit, peer.allowed, peer.owed + peer.withheld)
    }
}
