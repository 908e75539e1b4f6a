//! What one of several transports says to the engine that they have together, with that engine's numbers of peers.
//!
//! Each transport numbers its peers for itself. A peer without a number of the engine's is noted, and its first packet
//! is refused: its address can only be asked for when the transport has returned. Called by what joins transports.

use super::*;
use crate::engine::op::{Access, Error};
use crate::engine::wire::Header;
use crate::util::user::UserIov;

/// A peer of one transport, with its numbers in the engine.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub id: PeerId,
    /// As whose its messages match.
    pub source: PeerId,
    /// The engine was told of its source since the peer came or came back.
    pub met: bool,
}

/// By a transport's own numbers of its peers.
pub type KnownPeers = Vec<Option<Known>>;

/// The engine, as one of the transports sees it.
pub struct Tap<'a, S> {
    pub sink: &'a mut S,
    pub known: &'a mut [Option<Known>],
    /// Peers that have sent something and have no number of the engine's.
    pub fresh: &'a mut Vec<PeerId>,
    /// Peers that were lost, by the engine's number.
    pub lost: &'a mut Vec<PeerId>,
    /// A number of the transport's stands for nobody once its peer was lost.
    pub forgets: bool,
}

impl<S: Sink> Sink for Tap<'_, S> {
    fn met(&mut self, peer: PeerId, _source: PeerId) {
        if let Some(Some(known)) = self.known.get_mut(peer as usize) {
            known.met = true;
            self.sink.met(known.id, known.source);
        }
    }

    #[inline(always)]
    fn take(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        match self.known.get(from as usize) {
            Some(Some(known)) if known.met => self.sink.take(known.id, header, body),
            _ => false,
        }
    }

    #[inline(always)]
    fn take_message(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        match self.known.get(from as usize) {
            Some(Some(known)) if known.met => self.sink.take_message(known.id, header, body),
            _ => false,
        }
    }

    fn is_to_answer(&self, peer: PeerId) -> bool {
        let known = self.known.get(peer as usize).copied().flatten();
        known.is_some_and(|known| self.sink.is_to_answer(known.id))
    }

    #[inline]
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        let Some(Some(known)) = self.known.get_mut(from as usize) else {
            self.fresh.push(from);
            return Placement::Refuse;
        };
        if !known.met {
            known.met = true;
            self.sink.met(known.id, known.source);
        }
        self.sink.place(known.id, header, len)
    }

    #[inline]
    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        self.sink.placed(token, buffer);
    }

    fn exposed_memory(&mut self, peer: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        let known = self.known.get(peer as usize).copied().flatten()?;
        self.sink.exposed_memory(known.id, name, access)
    }

    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        self.sink.finished(token, result);
    }

    fn written(&mut self, from: PeerId, len: usize, data: u64) {
        if let Some(Some(known)) = self.known.get(from as usize) {
            self.sink.written(known.id, len, data);
        }
    }

    fn cut(&mut self, token: Token) {
        self.sink.cut(token);
    }

    fn sent(&mut self, token: Token, result: Result<(), Error>) {
        self.sink.sent(token, result);
    }

    fn gone(&mut self, peer: PeerId, loss: Loss) {
        if let Loss::OneContext { whole } = loss
            && !matches!(self.known.get(whole as usize), Some(Some(_)))
        {
            self.fresh.push(whole); // its end is to be told by a number, too
        }
        let Some(place) = self.known.get_mut(peer as usize) else {
            return;
        };
        if let Some(known) = place {
            known.met = false;
            // Named first, though it may never have sent: receives directed to it must fail too.
            self.sink.met(known.id, known.source);
            self.sink.gone(known.id, loss);
            self.lost.push(known.id);
            if self.forgets {
                *place = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::wire::Packet;

    /// A peer's number of the transport, and of the engine.
    const NUMBER: PeerId = 1;
    const ID: PeerId = 7;

    /// Knows one peer.
    #[derive(Default)]
    struct Engine {
        calls: usize,
    }

    impl Engine {
        fn called(&mut self, peer: PeerId) {
            assert_eq!(peer, ID);
            self.calls += 1;
        }
    }

    impl Sink for Engine {
        fn met(&mut self, peer: PeerId, _: PeerId) {
            self.called(peer);
        }

        fn take(&mut self, from: PeerId, _: &Header, _: &[u8]) -> bool {
            self.called(from);
            true
        }

        fn is_to_answer(&self, peer: PeerId) -> bool {
            peer == ID
        }

        fn place(&mut self, from: PeerId, _: &Header, _: usize) -> Placement {
            self.called(from);
            Placement::Drop
        }

        fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

        fn exposed_memory(&mut self, peer: PeerId, _: &ExposedName, _: Access) -> Option<UserIov> {
            self.called(peer);
            None
        }

        fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

        fn written(&mut self, from: PeerId, _: usize, _: u64) {
            self.called(from);
        }

        fn gone(&mut self, peer: PeerId, _: Loss) {
            self.called(peer);
        }
    }

    #[test]
    fn the_engine_hears_of_peers_by_its_own_numbers() {
        let known = Known {
            id: ID,
            source: ID,
            met: false,
        };
        let (mut engine, mut fresh, mut lost) = (Engine::default(), Vec::new(), Vec::new());
        let mut tap = Tap {
            sink: &mut engine,
            known: &mut [None, Some(known)],
            fresh: &mut fresh,
            lost: &mut lost,
            forgets: false,
        };
        let header = Header::new(Packet::Eager, 0);
        tap.met(NUMBER, NUMBER);
        assert!(tap.take(NUMBER, &header, &[]));
        assert!(tap.is_to_answer(NUMBER) && !tap.is_to_answer(ID));
        tap.place(NUMBER, &header, 0);
        tap.exposed_memory(NUMBER, &ExposedName::Nothing, Access::Read);
        tap.written(NUMBER, 0, 0);
        tap.gone(NUMBER, Loss::Died);
        // Before the loss the source is named again.
        // A context's endpoint gets a number, by which its end can be told.
        tap.gone(NUMBER, Loss::OneContext { whole: 0 });
        tap.gone(NUMBER, Loss::OneContext { whole: NUMBER });
        assert_eq!((engine.calls, lost, fresh), (11, vec![ID; 3], vec![0]));
    }
}
