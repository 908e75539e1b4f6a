//! Sends that take more than one push: kept, in order per peer, until they have ended.
//!
//! `next` says which packet goes to a peer next, `pushed` what follows from it having gone; the push between the two is
//! the endpoint's. Answers go before anything else, then new messages and bytes asked for take turns. A message starts
//! only after all before it to that peer have started, which is all that matching order needs.

use super::credit;
use super::op::{CompletionLevel, Context, Error, MessageKind, Report, Send, Tell};
use super::port::PeerId;
use super::rma::What;
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

impl Source {
    pub fn new(iov: &UserIov, inject: bool) -> Source {
        if !inject {
            return Source::User(*iov);
        }
        let mut bytes = vec![0; iov.len()].into_boxed_slice();
        iov.read(0, &mut bytes);
        Source::Copy(bytes)
    }

    pub fn len(&self) -> usize {
        match self {
            Source::User(iov) => iov.len(),
            Source::Copy(bytes) => bytes.len(),
        }
    }
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
    /// The peer lets us fetch what we read.
    Fetching,
    /// That did not work: the peer is to be asked again.
    Again,
    /// It has failed, but some of what the peer sent is still on its way to our memory.
    Failed(Error),
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub to: PeerId,
    pub what: What,
    pub kind: MessageKind,
    pub stage: Stage,
    pub level: CompletionLevel,
    pub fence: bool,
    pub tell: Tell,
    /// A long read or write that has started.
    pub long: bool,
    /// Of an operation on one remote piece, its address.
    pub tag: u64,
    pub data: Option<u64>,
    pub context: Context,
    pub source: Source,
    pub len: usize,
    /// Bytes pushed; of what we asked for, bytes that a place was found for.
    pub at: usize,
    /// Bytes to push: less than `len` if the receiver has no room for all. Of what we asked for, bytes not yet here.
    pub until: usize,
}

impl Outgoing {
    pub fn new(send: &Send) -> Outgoing {
        let len = send.body.len();
        Outgoing {
            kind: send.kind,
            fence: send.fence,
            tag: send.tag,
            data: send.data,
            source: Source::new(&send.body, send.inject),
            ..Outgoing::bare(send.to, What::Message, len, send.level, send.tell, send.context)
        }
    }

    /// What all operations have.
    pub fn bare(to: PeerId, what: What, len: usize, level: CompletionLevel, tell: Tell, context: Context) -> Outgoing {
        Outgoing {
            to,
            what,
            kind: MessageKind::Untagged,
            stage: Stage::Queued,
            level,
            fence: false,
            tell,
            long: false,
            tag: 0,
            data: None,
            context,
            source: Source::User(UserIov::default()),
            len,
            at: 0,
            until: len,
        }
    }

    fn start(&self, packet: Packet, id: Id) -> Header {
        let ack = if self.level == CompletionLevel::Delivery {
            flag::ACK
        } else {
            0
        };
        let mut header = message(packet, self.kind, self.tag, self.data, self.len);
        header.flags |= ack;
        header.id = id.short();
        header
    }

    fn segment(&self, id: Id, most: usize) -> (Header, usize) {
        let header = Header {
            packet: Packet::Segment,
            flags: 0,
            code: 0,
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
pub(super) fn message(packet: Packet, kind: MessageKind, tag: u64, data: Option<u64>, len: usize) -> Header {
    let (tagged, tag) = match kind {
        MessageKind::Untagged => (0, 0),
        MessageKind::Tagged => (flag::TAGGED, tag),
        MessageKind::Collective => (flag::COLLECTIVE, tag),
    };
    let with_data = if data.is_some() { flag::DATA } else { 0 };
    Header {
        packet,
        flags: tagged | with_data,
        code: 0,
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
    /// Acknowledges short operations.
    Acks,
    /// What a peer asked to read.
    Reply,
    Serve,
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
    pub fn bare(work: Work, header: Header) -> Job {
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
        if peer.side.is_some() {
            if let Some(header) = self.ack_due(to) {
                return Some(Job::bare(Work::Acks, header));
            }
            if let Some(reply) = self.first_reply(to) {
                return Some(Job {
                    len: reply.left().min(self.most(to)),
                    ..Job::bare(Work::Reply, reply.header)
                });
            }
        }
        if peer.answer_next {
            self.next_asked(to).or_else(|| self.next_queued(to))
        } else {
            self.next_queued(to).or_else(|| self.next_asked(to))
        }
    }

    fn next_asked(&self, to: PeerId) -> Option<Job> {
        let peer = self.peers.get(to as usize)?;
        let serves = peer.side.as_ref().is_some_and(|side| side.serve_next);
        if let Some((header, len)) = (serves || peer.answers.is_empty())
            .then(|| self.next_served(to))
            .flatten()
        {
            return Some(Job {
                work: Work::Serve,
                header,
                at: 0,
                len,
            });
        }
        let id = *peer.answers.front()?;
        let send = self.sends.get(id)?;
        if let What::Read(away) = &send.what {
            return Some(Job::bare(Work::Asked(id), self.read_header(id, send, away, false)));
        }
        let (header, len) = send.segment(id, self.most(to));
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
            let (header, len) = send.segment(id, self.most(to));
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
        if !matches!(send.what, What::Message) {
            return self.next_operation(to, id, send);
        }
        if peer.special && peer.has_longs() {
            return None; // it must not pass them
        }
        // What would have to be cut small is better fetched.
        let asks = send.len > self.limits.eager || peer.narrow && send.len > self.limits.guaranteed_body;
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
            Work::Acks => self.acks_given(to, &job.header),
            Work::Reply => self.replied(to, job.len),
            Work::Serve => self.served(to, &job.header, job.len, report),
            Work::Start(id) => self.started(to, id, job, report),
            Work::Segment(id) => {
                self.peer(to).answer_next = true;
                if self.advance(id, job.len) {
                    self.peer(to).queue.pop_front();
                    self.sent(id, report);
                }
            }
            Work::Asked(id) if job.header.packet == Packet::Read => self.asked_again(to, id),
            Work::Asked(id) => {
                let done = self.advance(id, job.len);
                let peer = self.peer(to);
                peer.answer_next = false;
                peer.answers.pop_front();
                if let Some(side) = &mut peer.side {
                    side.serve_next = true;
                }
                if done {
                    self.sent(id, report);
                } else {
                    self.peer(to).answers.push_back(id);
                }
            }
        }
    }

    fn started(&mut self, to: PeerId, id: Id, job: &Job, report: &mut impl Report) {
        if self
            .sends
            .get(id)
            .is_some_and(|send| !matches!(send.what, What::Message))
        {
            return self.operation_started(to, id, &job.header);
        }
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
            _ => {}
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
