//! What the transport of one lane says to the engine, with the engine's numbers of peers.

use super::LanePeer;
use crate::engine::op::{Access, Error};
use crate::engine::port::*;
use crate::engine::wire::Header;
use crate::util::user::UserIov;

/// The engine, as the transport of one lane sees it.
pub(super) struct Tap<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) known: &'a mut [Option<LanePeer>],
    pub(super) fresh: &'a mut Vec<PeerId>,
}

impl<S: Sink> Sink for Tap<'_, S> {
    fn met(&mut self, peer: PeerId, _source: PeerId) {
        if let Some(Some(known)) = self.known.get_mut(peer as usize) {
            known.met = true;
            self.sink.met(known.id, known.source);
        }
    }

    #[inline]
    fn take(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        match self.known.get(from as usize) {
            Some(Some(known)) if known.met => self.sink.take(known.id, header, body),
            _ => false,
        }
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
        if let Some(Some(known)) = self.known.get_mut(peer as usize) {
            known.met = false;
            // Named first, though it may never have sent: receives directed to it must fail too.
            self.sink.met(known.id, known.source);
            self.sink.gone(known.id, loss);
        }
    }
}
