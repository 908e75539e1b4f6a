//! Sends that take more than one push: kept, in order per peer, until they have ended.
//!
//! `next` says which packet goes to a peer next, `pushed` what follows from it having gone; the push between the two is
//! the endpoint's. Answers go before anything else, then new messages and bytes asked for take turns. A message starts
//! only after all before it to that peer have started, which is all that matching order needs.

use super::credit;
use super::op::{Context, Kind, Level, Report, Send};
use super::port::PeerId;
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// Where the bytes of a send are.
#[derive(Debug)]
pub(super) enum Source {
    User(UserIov),
    /// FI_INJECT: the application's memory may have changed since.
    Copy(Box<[u8]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the queue, nothing sent.
    Queued,
    /// In the queue, first packet sent.
    Started,
    /// The peer knows of it, and will fetch it or ask for it.
    Offered,
    /// The peer has asked for the bytes.
    Asked,
    /// All bytes are gone; the peer will say when they were delivered.
    Sent,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub to: PeerId,
    pub kind: Kind,
    pub stage: Stage,
    pub level: Level,
    pub fence: bool,
    pub report: bool,
    pub tag: u64,
    pub data: Option<u64>,
    pub context: Context,
    pub source: Source,
    pub len: usize,
    /// Bytes pushed.
    pub at: usize,
    /// Bytes to push: less than `len` if the receiver has no room for all.
    pub until: usize,
}

impl Outgoing {
    pub fn new(send: &Send) -> Outgoing {
        let len = send.body.len();
        let copy = |iov: &UserIov| {
            let mut bytes = vec![0; len].into_boxed_slice();
            iov.read(0, &mut bytes);
            bytes
        };
        Outgoing {
            to: send.to,
            kind: send.kind,
            stage: Stage::Queued,
            level: send.level,
            fence: send.fence,
            report: send.report,
            tag: send.tag,
            data: send.data,
            context: send.context,
            source: if send.inject {
                Source::Copy(copy(&send.body))
            } else {
                Source::User(send.body)
            },
            len,
            at: 0,
            until: len,
        }
    }

    fn start(&self, packet: Packet, id: Id) -> Header {
        let ack = if self.level == Level::Delivery { flag::ACK } else { 0 };
        let mut header = message(packet, self.kind, self.tag, self.data, self.len);
        header.flags |= ack;
        header.id = id.short();
        header
    }

    fn segment(&self, id: Id, most: usize) -> (Header, usize) {
        let header = Header {
            packet: Packet::Segment,
            flags: 0,
            id: id.short(),
            tag: 0,
            data: 0,
            total: self.at as u64,
        };
        (header, most.min(self.until.saturating_sub(self.at)))
    }
}

/// The header that begins a message.
#[inline]
pub(super) fn message(packet: Packet, kind: Kind, tag: u64, data: Option<u64>, len: usize) -> Header {
    let (tagged, tag) = match kind {
        Kind::Message => (0, 0),
        Kind::Tagged => (flag::TAGGED, tag),
        Kind::Collective => (flag::COLLECTIVE, tag),
    };
    let with_data = if data.is_some() { flag::DATA } else { 0 };
    Header {
        packet,
        flags: tagged | with_data,
        id: 0,
        tag,
        data: data.unwrap_or(0),
        total: len as u64,
    }
}

/// What kind of packet a `Job` is, for `pushed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Answer,
    Credit,
    /// Begins a send that is in the queue.
    Start(Id),
    /// Goes on with it.
    Segment(Id),
    /// Some of what the peer asked for.
    Asked(Id),
}

/// One packet to be pushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub work: Work,
    pub header: Header,
    /// The part of the send's bytes that is its body.
    pub at: usize,
    pub len: usize,
}

impl Job {
    fn bare(work: Work, header: Header) -> Job {
        Job {
            work,
            header,
            at: 0,
            len: 0,
        }
    }
}

impl Core {
    /// The next packet for a peer, if one can go.
    pub fn next(&self, to: PeerId) -> Option<Job> {
        let peer = self.peers.get(to as usize)?;
        if let Some(header) = peer.control.front() {
            return Some(Job::bare(Work::Answer, *header));
        }
        if let Some(header) = self.credit_due(to) {
            return Some(Job::bare(Work::Credit, header));
        }
        if peer.answer_next {
            self.next_asked(to).or_else(|| self.next_queued(to))
        } else {
            self.next_queued(to).or_else(|| self.next_asked(to))
        }
    }

    fn next_asked(&self, to: PeerId) -> Option<Job> {
        let id = *self.peers.get(to as usize)?.answers.front()?;
        let send = self.sends.get(id)?;
        let (header, len) = send.segment(id, self.limits.max_body);
        Some(Job {
            work: Work::Asked(id),
            header,
            at: send.at,
            len,
        })
    }

    fn next_queued(&self, to: PeerId) -> Option<Job> {
        let peer = self.peers.get(to as usize)?;
        let id = *peer.queue.front()?;
        let send = self.sends.get(id)?;
        if send.stage == Stage::Started {
            let (header, len) = send.segment(id, self.limits.max_body);
            return Some(Job {
                work: Work::Segment(id),
                header,
                at: send.at,
                len,
            });
        }
        if send.fence && self.fenced(to) {
            return None;
        }
        let asks = send.len > self.limits.eager;
        if !asks && credit::cost(send.len) > peer.credit && !peer.pressed {
            return None; // credit will come
        }
        if asks || credit::cost(send.len) > peer.credit {
            return Some(Job::bare(Work::Start(id), send.start(Packet::Rendezvous, id)));
        }
        let (packet, len) = if send.len <= self.small {
            (Packet::Eager, send.len)
        } else {
            (Packet::First, self.limits.max_body)
        };
        Some(Job {
            work: Work::Start(id),
            header: send.start(packet, id),
            at: 0,
            len,
        })
    }

    /// A job's packet is on its way.
    pub fn pushed(&mut self, to: PeerId, job: &Job, report: &mut impl Report) {
        match job.work {
            Work::Answer => {
                self.peer(to).control.pop_front();
            }
            Work::Credit => self.credit_given(to, &job.header),
            Work::Start(id) => self.started(to, id, job, report),
            Work::Segment(id) => {
                self.peer(to).answer_next = true;
                if self.advance(id, job.len) {
                    self.peer(to).queue.pop_front();
                    self.sent(id, report);
                }
            }
            Work::Asked(id) => {
                let done = self.advance(id, job.len);
                let peer = self.peer(to);
                peer.answer_next = false;
                peer.answers.pop_front();
                if done {
                    self.sent(id, report);
                } else {
                    self.peer(to).answers.push_back(id);
                }
            }
        }
    }

    fn started(&mut self, to: PeerId, id: Id, job: &Job, report: &mut impl Report) {
        let peer = self.peer(to);
        peer.answer_next = true;
        match job.header.packet {
            Packet::Rendezvous => {
                peer.queue.pop_front();
                if let Some(send) = self.sends.get_mut(id) {
                    send.stage = Stage::Offered;
                }
                return;
            }
            Packet::First => {
                if let Some(send) = self.sends.get_mut(id) {
                    send.stage = Stage::Started;
                }
            }
            Packet::Eager | Packet::Segment | Packet::Send | Packet::Done | Packet::Credit => {}
        }
        // As `next_queued` saw to it, `total` is a length of ours that credit covers.
        let peer = self.peer(to);
        peer.credit = peer.credit.saturating_sub(credit::cost(job.header.total as usize));
        if self.advance(id, job.len) {
            self.peer(to).queue.pop_front();
            self.sent(id, report);
        }
    }

    /// Counts bytes as pushed; says whether they were the last.
    fn advance(&mut self, id: Id, len: usize) -> bool {
        let Some(send) = self.sends.get_mut(id) else {
            return true;
        };
        send.at += len;
        send.at >= send.until
    }
}
