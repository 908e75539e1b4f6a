//! fi_cancel: takes back a posted receive that has no message yet, or a queued operation of which nothing has left.
//!
//! Whatever has begun goes on: its packets cannot be called back, and its peer may have it already. Called by endpoints,
//! and for receives by shared contexts, whose endpoints' operations are not theirs to take back.

use super::endpoint::Engine;
use super::op::{Context, Error, Failure, MessageKind, OperationOf, Report, Tell};
use super::outgoing::Outgoing;
use super::port::{PeerId, Transport};
use super::state::Core;
use crate::util::slab::Id;

impl<T: Transport> Engine<T> {
    /// Cancels the oldest of the unmatched receives that this names. Returns whether there was one.
    pub fn cancel_receive(&mut self, operation: OperationOf, report: &mut impl Report) -> bool {
        self.core.cancel_receive(operation, report)
    }

    /// Cancels a queued operation that this names, and lets go what has waited behind it. Returns whether there was one.
    pub fn cancel_queued(&mut self, operation: OperationOf, report: &mut impl Report) -> bool {
        let Some(to) = self.core.cancel_queued(operation, report) else {
            return false;
        };
        self.end_exposures();
        self.judge_first(to);
        self.push_all(report);
        true
    }
}

impl OperationOf {
    /// Its context, and whether it is the library's.
    fn name(self) -> (Context, bool) {
        match self {
            OperationOf::Program(context) => (context, false),
            OperationOf::Library(context) => (context, true),
        }
    }
}

impl Core {
    fn cancel_receive(&mut self, operation: OperationOf, report: &mut impl Report) -> bool {
        let (context, own) = operation.name();
        [MessageKind::Untagged, MessageKind::Tagged].into_iter().any(|kind| {
            let found = self
                .matcher(kind)
                .find_context(context, |post| (post.tell == Tell::Own) == own);
            found.is_some_and(|id| self.withdraw(kind, id, Error::Canceled, report))
        })
    }

    /// Says to whom the operation was to go.
    fn cancel_queued(&mut self, operation: OperationOf, report: &mut impl Report) -> Option<PeerId> {
        let (id, to) = self.queued_as(operation)?;
        self.peer(to).queue.retain(|queued| *queued != id);
        let failure = Failure {
            error: Error::Canceled,
            overflow: 0,
        };
        self.end_outgoing(id, Some(failure), report);
        Some(to)
    }

    fn queued_as(&self, operation: OperationOf) -> Option<(Id, PeerId)> {
        let (context, own) = operation.name();
        // An injected operation has no context: nobody can mean it.
        if context == 0 && !own {
            return None;
        }
        let is_meant = |queued: &Outgoing| {
            let is_named = queued.context == context && (queued.tell == Tell::Own) == own;
            is_named && queued.kind != MessageKind::Collective && queued.has_not_begun()
        };
        let is_in_queue = |id: Id, to: PeerId| {
            let peer = self.peers.get(to as usize);
            peer.is_some_and(|peer| peer.queue.contains(&id))
        };
        let named = self.outgoing.iter().filter(|(_, outgoing)| is_meant(outgoing));
        let mut places = named.map(|(id, outgoing)| (id, outgoing.to));
        places.find(|(id, to)| is_in_queue(*id, *to))
    }
}
