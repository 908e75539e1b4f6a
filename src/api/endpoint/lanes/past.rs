//! What is kept of closed lanes and of lost peers, and when it is forgotten.
//!
//! The number of a peer may stand in receives and in the engine long after its lane was closed, and tells whose
//! completion something was. So neither it nor the lane is used again before nobody holds it. Called by `Lanes`.

use super::{EndpointTransport, Lanes, NumberOf};
use crate::engine::port::PeerId;
use std::collections::HashSet;

/// Up to so many peers of closed lanes, nobody looks whether they are still known.
const CROWD: usize = 128;

impl<T: EndpointTransport> Lanes<T> {
    /// Whether there are twice as many peers of closed lanes as were left the last time, which makes the cost for each
    /// small.
    pub(super) fn has_much_past(&self) -> bool {
        self.past.len() >= (2 * self.past_left).max(CROWD)
    }

    /// Frees the numbers of peers and sources that are gone and that nobody holds, and their lanes. Returns the
    /// numbers.
    pub(super) fn forget_unheld(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let (mut gone, kept) = self.past.drain(..).partition::<Vec<_>, _>(|id| !held(*id));
        self.past_left = kept.len();
        self.past = kept;
        for lane in &mut self.lanes {
            let Some(transport) = &mut lane.transport else { continue };
            let known = &lane.known;
            let known = |number: PeerId| known.get(number as usize).copied().flatten();
            for number in transport.forget(&|number| known(number).is_some_and(|known| held(known.id))) {
                let known = lane.known.get_mut(number as usize).and_then(Option::take);
                gone.extend(known.map(|known| known.id));
            }
        }
        // A source stays as long as a peer has it.
        let known = self
            .lanes
            .iter()
            .flat_map(|lane| &lane.known)
            .flatten()
            .chain(&self.over);
        let used: HashSet<PeerId> = known.map(|known| known.source).collect();
        self.sources.retain(|_, id| {
            let stays = held(*id) || used.contains(id);
            gone.extend((!stays).then_some(*id));
            stays
        });
        for id in &gone {
            if let Some(end) = self.numbers.get_mut(*id as usize) {
                *end = NumberOf::Nothing;
            }
        }
        self.free.extend(&gone);
        self.find_free_lanes();
        gone
    }

    /// Lanes that are closed, and that no number names.
    fn find_free_lanes(&mut self) {
        let named = self.numbers.iter().filter_map(|end| match end {
            NumberOf::Peer { lane, .. } => Some(*lane),
            NumberOf::Source | NumberOf::Nothing => None,
        });
        let named: HashSet<usize> = named.collect();
        let lanes = self.lanes.iter().enumerate();
        let free = lanes.filter(|(at, lane)| lane.transport.is_none() && !named.contains(at));
        self.free_lanes = free.map(|(at, _)| at).collect();
    }
}
