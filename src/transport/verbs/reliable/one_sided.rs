//! Reads and writes of a peer's registered memory by the devices alone. Part of `Reliable`. Atomics stand in `atomics`.
//!
//! Only between two ends that both say in their hello that their devices know their regions by the keys that programs
//! exchange. For other peers, and for the endpoint itself, the engine asks by packets, from the first operation on.
//!
//! A queue pair carries out what is posted to it in order, but for a read, which later writes and packets may overtake:
//! writes are posted with a fence then, and packets are held by the engine (`OneSided::ordered_after_read`). Of a write
//! with remote CQ data a note tells, a packet behind the write that is shorter than a header.
//!
//! A device that refuses, for a key that is not there say, ends the connection with it.

use super::Reliable;
use super::link::{Move, Purpose};
use super::local_keys::{LOCAL_READ, LOCAL_WRITE, LocalKeys};
use super::seam::Device;
use super::steps::{Step, Theirs, steps};
use crate::engine::op::{Access, Error};
use crate::engine::port::{CopyOp, Get, Local, NotDone, OneSided, PeerId, Push, Token};
use crate::sys::rdma::Piece;
use crate::transport::verbs::atomics::amos;
use crate::util::user::{UserBuf, UserIov};

/// What endpoints do whose devices know registered memory; `atomics`: the devices' atomics too, and no others then.
pub(super) fn devices_own(atomics: bool) -> OneSided {
    OneSided {
        copies: true,
        atomics: amos(atomics),
        ordered_after_write: true,
        ordered_after_read: false,
    }
}

/// What the engine is told when the peer's device refuses. The connection has ended with that, so the peer is not
/// asked.
const REFUSED: NotDone = NotDone::Failed(Error::NoRights);

/// That a write with remote CQ data is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub len: usize,
    pub data: u64,
}

impl Note {
    pub(super) const SIZE: usize = 16;

    fn encode(&self) -> [u8; Note::SIZE] {
        let mut bytes = [0; Note::SIZE];
        let all = (self.len as u64)
            .to_le_bytes()
            .into_iter()
            .chain(self.data.to_le_bytes());
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// None: the packet is of another kind.
    pub(super) fn read(packet: &UserBuf) -> Option<Note> {
        if packet.len() != Note::SIZE {
            return None;
        }
        let mut bytes = [[0; 8]; 2];
        packet.read(bytes.as_flattened_mut());
        let [len, data] = bytes.map(u64::from_le_bytes);
        Some(Note {
            len: usize::try_from(len).ok()?,
            data,
        })
    }
}

/// The engine's answer for a peer that no packet can be pushed to either.
pub(super) fn unreached(push: Push) -> Get {
    match push {
        Push::Gone => Get::Gone,
        Push::Unreachable(why) => Get::Failed(Error::Unreachable(why)),
        Push::NoMemory => Get::Failed(Error::NoMemory),
        _ => Get::Full,
    }
}

impl<D: Device> Reliable<D> {
    pub(super) fn transfer(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        if self.peers.get(to).is_some_and(|peer| peer.is_self) {
            return Get::Unsupported;
        }
        let Some(link) = self.peers.link(to) else {
            return unreached(self.connect_first(to));
        };
        if !link.is_open() {
            return Get::Unsupported;
        }
        let inline = link.inline() >= Note::SIZE;
        if copy.data.is_some() && !(link.has_credit() && (inline || self.has_buffers(2))) {
            return Get::Full;
        }
        let Some(theirs) = Theirs::of_regions(copy.parts) else {
            return Get::Failed(Error::NoKey);
        };
        let begun = match (copy.access, copy.local) {
            (Access::Write, Local::Bytes(bytes)) => self.write_bytes(to, &theirs, bytes, copy.data.is_some(), token),
            (access, Local::User(iov)) => {
                let how = match access {
                    Access::Read => Move::Read,
                    Access::Write => Move::Write,
                };
                self.move_memory(to, how, &theirs, iov, copy.data.is_some(), token)
            }
            (Access::Read, Local::Bytes(_)) => Get::Failed(Error::OutOfRange),
        };
        match copy.data {
            Some(data) if matches!(begun, Get::Done | Get::Later) => {
                let len = copy.parts.iter().map(|part| part.len).sum();
                self.tell_written(to, Note { len, data });
                begun
            }
            _ => begun,
        }
    }

    /// Whether a transfer of so many requests, and a note if there is one, may be posted now; if not, what to answer.
    fn room_for(&mut self, to: PeerId, steps: usize, note: bool) -> Result<(), Get> {
        let link = self.peers.link(to);
        let link = link.ok_or(Get::Full)?;
        let all = steps + usize::from(note);
        if all > link.room() {
            return Err(Get::Failed(Error::NoMemory));
        }
        if link.has_room(all) { Ok(()) } else { Err(Get::Full) }
    }

    /// A read, write or atomic, from or to the application's memory.
    pub(super) fn move_memory(
        &mut self,
        to: PeerId,
        how: Move,
        theirs: &[Theirs],
        local: &UserIov,
        note: bool,
        token: Token,
    ) -> Get {
        let right = match how {
            Move::Write | Move::WriteInline => LOCAL_READ,
            Move::Fetch | Move::Read | Move::Atomic(_) => LOCAL_WRITE,
        };
        let Some(steps) = steps(theirs, 0, local) else {
            return Get::Failed(Error::OutOfRange);
        };
        if let Err(answer) = self.room_for(to, steps.len(), note) {
            return answer;
        }
        if let (Move::Write, [step]) = (how, &*steps)
            && step.ours.len() <= self.inline_of(to)
        {
            return self.post_steps(to, Move::WriteInline, &steps, LocalKeys::default(), (token, REFUSED));
        }
        match self.keys_of(local, right) {
            Some(ours) => self.post_steps(to, how, &steps, ours, (token, REFUSED)),
            None => Get::Failed(Error::NoMemory),
        }
    }

    /// Bytes that the application may change as soon as this has returned.
    pub(super) fn write_bytes(&mut self, to: PeerId, theirs: &[Theirs], bytes: &[u8], note: bool, token: Token) -> Get {
        if bytes.len() > self.sends.size() {
            return Get::Failed(Error::NoMemory);
        }
        let Some(buffer) = self.free_sends.pop().or_else(|| self.make_sends()) else {
            return Get::Full;
        };
        let memory = self.sends.memory(buffer).part(0, bytes.len());
        memory.write(bytes);
        let key = self.sends.piece(buffer, bytes.len()).key;
        let planned = steps(theirs, 0, &UserIov::one(memory)).ok_or(Get::Failed(Error::OutOfRange));
        let planned: Result<Vec<Step>, Get> = planned.and_then(|steps| {
            self.room_for(to, steps.len(), note)?;
            Ok(steps)
        });
        let begun = match planned {
            Ok(steps) if steps.is_empty() => Get::Done,
            Ok(steps) => {
                let is_inline = steps.len() == 1 && bytes.len() <= self.inline_of(to);
                let how = if is_inline { Move::WriteInline } else { Move::Write };
                let ours = LocalKeys {
                    keys: vec![key],
                    buffer: (!is_inline).then_some(buffer),
                    ..LocalKeys::default()
                };
                let begun = self.post_steps(to, how, &steps, ours, (token, REFUSED));
                if !is_inline {
                    return begun; // the buffer is the request's
                }
                begun
            }
            Err(answer) => answer,
        };
        self.free_sends.push(buffer);
        begun
    }

    /// Whether there are so many buffers to send from: a few, as more are made by the dozen.
    fn has_buffers(&mut self, count: usize) -> bool {
        if self.free_sends.len() < count {
            let made = self.make_sends();
            self.free_sends.extend(made);
        }
        self.free_sends.len() >= count
    }

    fn inline_of(&mut self, to: PeerId) -> usize {
        let link = self.peers.link(to);
        link.map_or(0, |link| link.inline())
    }

    /// Behind the write. There is room and credit for it, and a buffer if it needs one.
    fn tell_written(&mut self, to: PeerId, note: Note) {
        let bytes = note.encode();
        let inline = self.inline_of(to) >= Note::SIZE;
        let buffer = if inline { None } else { self.free_sends.pop() };
        let (piece, purpose) = match buffer {
            Some(buffer) => {
                self.sends.memory(buffer).write(&bytes);
                (self.sends.piece(buffer, Note::SIZE), Purpose::Buffer(buffer))
            }
            None => {
                let piece = Piece {
                    addr: bytes.as_ptr() as u64,
                    len: Note::SIZE as u32,
                    key: 0,
                };
                (piece, Purpose::Inline)
            }
        };
        let link = self.peers.link(to);
        if let Some(link) = link
            && link.send(piece, purpose) != Push::Done
        {
            self.note_end(to);
        }
    }
}
