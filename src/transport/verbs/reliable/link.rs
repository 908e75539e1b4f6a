//! One connection: what was posted to its queue pair, what has come, and how much each end may still send.
//!
//! A queue pair ends its requests in the order in which they were posted, so one queue knows all. Credit: each packet
//! takes one of the receives that the other end keeps for this connection; that end writes how many it has posted again
//! into a word of ours, which takes no receive and no attention here. So nobody ever sends what there is no receive
//! for.

use super::buffers::Words;
use super::handshake::Hello;
use crate::engine::port::{NotDone, Push, Token};
use crate::sys::rdma::{Failure, Opcode, PairMade, Piece, Request, Work};
use crate::transport::verbs::seam::{Connection, QueuePair, Registration};
use std::collections::VecDeque;
use std::sync::Arc;

/// Of requests whose end nobody waits for, every how manieth is told at least.
const TELL_EVERY: usize = 16;

/// What the other end writes in place of a count: it closes, and has sent all.
const GOODBYE: u64 = u64::MAX;

/// What a request was for, and what it keeps.
pub(super) enum Purpose {
    /// A packet, or a count; the bytes were within it.
    Inline,
    /// A packet from this buffer.
    Buffer(u32),
    /// Some of a transfer, and not the end of it.
    Part,
    Transfer(Transfer),
}

/// The end of a read, write or atomic of the other end's memory.
pub(super) struct Transfer {
    pub token: Token,
    /// Of our memory, as long as the device works on it.
    pub registrations: Vec<Arc<dyn Registration>>,
    /// The buffer that the bytes were in, if not the application's memory.
    pub buffer: Option<u32>,
    /// What the engine is told if the other end's device refuses.
    pub refused: NotDone,
}

struct Posted {
    id: u64,
    purpose: Purpose,
    /// Writes wait for it.
    is_ordered_read: bool,
}

/// How a request moves bytes between the other end's memory and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// A read that nothing waits for.
    Fetch,
    /// A read of registered memory: writes that are posted later do not overtake it.
    Read,
    Write,
    /// A write whose bytes are within the request.
    WriteInline,
    /// One of the device's atomics, which gives what was there before. It is a read to what is posted later, and waits
    /// for the reads before it.
    Atomic(Opcode),
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// The other end's memory is not there, or not for this.
    Refused,
    /// The connection ended.
    Lost,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The other end has ended it, or does not answer, or it broke.
    Cut,
    /// The other end violates the protocol, in this way.
    Bad(&'static str),
    /// The engine has given the peer up.
    Abandoned,
}

pub(super) struct Link<W> {
    pub wire: W,
    pair: PairMade,
    words: Words,
    /// What the other end said; None: nothing yet.
    other: Option<Hello>,
    next_id: u64,
    unfinished: VecDeque<Posted>,
    /// Requests that may be posted at once, apart from the last one.
    room: usize,
    untold: usize,
    /// Buffers of transfers that could not be posted whole. Part of one may still be sent from there.
    stranded: Vec<u32>,
    /// Reads and atomics of registered memory that have not ended.
    reading: usize,
    /// A part of a transfer was refused; its end follows.
    refused: bool,
    /// Packets that were sent.
    sent: u64,
    /// Packets that have come, those of them whose receives were posted again, and how many of those were told.
    came: u64,
    taken: u64,
    told: u64,
    /// What the other end may send before it is told more.
    window: u64,
    /// Packets that have come and were not delivered: buffer and length.
    pub arrived: VecDeque<(u32, usize)>,
    pub end: Option<End>,
    /// In which poll, and when in milliseconds, its end was seen first.
    pub ended_seen: Option<(u64, u64)>,
    /// The last packet found no credit.
    starved: bool,
    /// In the list of those with something to deliver.
    pub in_ready: bool,
}

impl<W: QueuePair> Link<W> {
    /// On a new queue pair. `room`: requests that it holds. `window`: packets that the other end may send.
    pub(super) fn new(wire: W, pair: PairMade, words: Words, room: usize, window: usize) -> Link<W> {
        Link {
            wire,
            pair,
            words,
            other: None,
            next_id: 0,
            unfinished: VecDeque::new(),
            room,
            untold: 0,
            stranded: Vec::new(),
            reading: 0,
            refused: false,
            sent: 0,
            came: 0,
            taken: 0,
            told: 0,
            window: window as u64,
            arrived: VecDeque::new(),
            end: None,
            ended_seen: None,
            starved: false,
            in_ready: false,
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.pair.number
    }

    pub(super) fn inline(&self) -> usize {
        self.pair.inline as usize
    }

    pub(super) fn window(&self) -> usize {
        self.window as usize
    }

    pub(super) fn word(&self) -> (u64, u32) {
        self.words.remote()
    }

    pub(super) fn heard_hello(&mut self, hello: Hello) {
        self.other = Some(hello);
    }

    pub(super) fn instance(&self) -> u64 {
        self.other.map_or(0, |other| other.instance)
    }

    /// Whether the other end's device knows its registered memory by the keys that it tells.
    pub(super) fn is_open(&self) -> bool {
        self.other.is_some_and(|other| other.is_open)
    }

    /// Whether devices do the atomics on the other end's memory.
    pub(super) fn has_atomics(&self) -> bool {
        self.other.is_some_and(|other| other.has_atomics)
    }

    /// The longest packet that the other end receives.
    pub(super) fn longest(&self) -> usize {
        self.other.map_or(0, |other| other.longest as usize)
    }

    /// Whether there is room for so many requests.
    pub(super) fn has_room(&self, requests: usize) -> bool {
        self.end.is_none() && self.unfinished.len() + requests <= self.room
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Whether the other end has a receive for another packet.
    pub(super) fn has_credit(&mut self) -> bool {
        let window = self.other.map_or(0, |other| u64::from(other.window));
        let heard = self.words.heard();
        self.starved = heard == GOODBYE || self.sent - heard.min(self.sent) >= window;
        !self.starved
    }

    /// The last packet found no credit. Of credit nothing tells but a look at the word; when it is there, this is so
    /// once more, as the packet has not been tried again.
    pub(super) fn is_starved(&mut self) -> bool {
        let starved = self.starved && self.end.is_none();
        if starved {
            self.has_credit();
        }
        starved
    }

    /// The other end has said that it closes.
    pub(super) fn said_goodbye(&self) -> bool {
        self.words.heard() == GOODBYE
    }

    /// The other end has written what no count can be.
    fn check_count(&mut self) {
        let heard = self.words.heard();
        if heard != GOODBYE && heard > self.sent && self.end.is_none() {
            self.cut(End::Bad("a count of packets that it cannot have taken"));
        }
    }

    /// Posts a packet, from a buffer or within the request.
    pub(super) fn send(&mut self, piece: Piece, purpose: Purpose) -> Push {
        let inline = matches!(purpose, Purpose::Inline);
        let work = self.work(Opcode::Send, inline, !inline);
        if !self.post(&work, &[piece], purpose) {
            return Push::Full;
        }
        self.sent += 1;
        Push::Done
    }

    /// Posts a read, write or atomic of the other end's memory. False: the connection has ended.
    pub(super) fn transfer(&mut self, how: Move, remote: (u64, u32), ours: Piece, purpose: Purpose) -> bool {
        let told = matches!(purpose, Purpose::Transfer(_));
        let opcode = match how {
            Move::Fetch | Move::Read => Opcode::Read,
            Move::Write | Move::WriteInline => Opcode::Write,
            Move::Atomic(opcode) => opcode,
        };
        let work = Work {
            remote,
            fence: opcode != Opcode::Read && self.reading > 0,
            ..self.work(opcode, how == Move::WriteInline, told)
        };
        let posted = self.post(&work, &[ours], purpose);
        let is_ordered = matches!(how, Move::Read | Move::Atomic(_));
        if let Some(last) = self.unfinished.back_mut().filter(|_| posted && is_ordered) {
            last.is_ordered_read = true;
            self.reading += 1;
        }
        posted
    }

    fn work(&mut self, opcode: Opcode, inline: bool, told: bool) -> Work {
        self.next_id += 1;
        let often = TELL_EVERY.min(self.room / 2);
        self.untold = if told || self.untold + 1 >= often {
            0
        } else {
            self.untold + 1
        };
        Work {
            id: self.next_id,
            opcode,
            data: None,
            remote: (0, 0),
            signaled: self.untold == 0,
            inline,
            fence: false,
        }
    }

    fn post(&mut self, work: &Work, pieces: &[Piece], purpose: Purpose) -> bool {
        // SAFETY: buffers and words live as long as this connection and are written again only after the request has
        // ended (a count may be written over, by a later one); the memory of a transfer is lent until it is told or the
        // peer is gone, before which the connection has ended.
        let posted = unsafe { self.wire.post_sends(&[Request { work: *work, pieces }]) };
        if posted.is_err() {
            self.cut(End::Cut);
            return false;
        }
        self.unfinished.push_back(Posted {
            id: work.id,
            purpose,
            is_ordered_read: false,
        });
        true
    }

    /// A packet has come into a buffer.
    pub(super) fn receive(&mut self, buffer: u32, len: usize) {
        self.came += 1;
        self.arrived.push_back((buffer, len));
        if self.came - self.told > self.window {
            self.cut(End::Bad("more packets than it was given credit for"));
        }
    }

    /// The receive of a packet was posted again.
    pub(super) fn took(&mut self) {
        self.taken += 1;
    }

    /// Tells the other end of receives that were posted again, once they are half of all.
    pub(super) fn tell_credit(&mut self) {
        self.check_count();
        let owed = self.taken - self.told;
        if owed > 0 && owed * 2 >= self.window && self.has_room(1) {
            let count = self.taken;
            self.write_word(count, false);
        }
    }

    fn write_word(&mut self, value: u64, told: bool) {
        let Some(other) = self.other else { return };
        let piece = self.words.say(value);
        let inline = self.pair.inline >= piece.len;
        let work = Work {
            remote: other.word,
            ..self.work(Opcode::Write, inline, told)
        };
        if self.post(&work, &[piece], Purpose::Inline) {
            self.told = value.min(self.taken);
        }
    }

    /// Says that this end closes and has sent all.
    pub(super) fn say_goodbye(&mut self) {
        if self.end.is_none() {
            self.write_word(GOODBYE, true);
        }
    }

    /// A request has completed, and with it all before it: `ended` gets what each was for.
    pub(super) fn completed(&mut self, id: u64, failure: Option<Failure>, ended: &mut dyn FnMut(Purpose, Outcome)) {
        while self.unfinished.front().is_some_and(|posted| posted.id <= id) {
            let Some(posted) = self.unfinished.pop_front() else {
                break;
            };
            let outcome = match failure.filter(|_| posted.id == id) {
                None => Outcome::Done,
                Some(Failure::Flushed) if !self.refused => Outcome::Lost,
                Some(Failure::Flushed | Failure::NoAccess | Failure::Refused) => Outcome::Refused,
                Some(_) => Outcome::Lost,
            };
            self.reading -= usize::from(posted.is_ordered_read);
            self.refused = outcome == Outcome::Refused && matches!(posted.purpose, Purpose::Part);
            ended(posted.purpose, outcome);
        }
        if failure.is_some() {
            self.cut(End::Cut);
        }
    }

    /// Everything that was posted has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// Ends the connection: all that is posted comes back.
    pub(super) fn cut(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.wire.connection().disconnect();
            self.post_last();
        }
    }

    /// A request whose end is told in any case, behind those whose success nobody hears of. There is room for one more.
    fn post_last(&mut self) {
        let work = self.work(Opcode::Send, false, true);
        let request = Request { work, pieces: &[] };
        // SAFETY: a request without memory.
        if unsafe { self.wire.post_sends(&[request]) }.is_ok() {
            let purpose = Purpose::Inline;
            self.unfinished.push_back(Posted {
                id: work.id,
                purpose,
                is_ordered_read: false,
            });
        }
    }

    /// The engine does not want to hear of it any more.
    pub(super) fn abandon(&mut self) {
        self.cut(End::Abandoned);
        self.end = Some(End::Abandoned);
    }

    /// The requests of which the engine waits for a word.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Token> + '_ {
        self.unfinished.iter().filter_map(|posted| match &posted.purpose {
            Purpose::Transfer(transfer) => Some(transfer.token),
            Purpose::Inline | Purpose::Buffer(_) | Purpose::Part => None,
        })
    }

    /// Whether the device may work on the application's memory yet.
    pub(super) fn transfers(&self) -> bool {
        let mut posted = self.unfinished.iter();
        posted.any(|posted| matches!(posted.purpose, Purpose::Part | Purpose::Transfer(_)))
    }

    /// What is still kept for requests, of which the device will say nothing more.
    pub(super) fn leave(&mut self) -> impl Iterator<Item = Purpose> + '_ {
        let stranded = self.stranded.drain(..).map(Purpose::Buffer);
        self.unfinished.drain(..).map(|posted| posted.purpose).chain(stranded)
    }

    /// Keeps a buffer until the connection is gone.
    pub(super) fn strand(&mut self, buffer: Option<u32>) {
        self.stranded.extend(buffer);
    }
}
