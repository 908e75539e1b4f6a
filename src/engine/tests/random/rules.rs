//! The matching rules of MPI on two plain lists, replayed from the log of a run.

use super::*;

pub struct Posted {
    pub recv: Recv,
    used: usize,
}

/// One node's application, as the rules have it: two lists, searched from the front.
#[derive(Default)]
pub struct Rules {
    pub posted: Vec<Posted>,
    pub held: Vec<usize>,
    pub claims: HashMap<Context, usize>,
    pub ends: Vec<Completion>,
    /// For each message received: the context and place it went to.
    pub went: HashMap<usize, (Context, usize)>,
}

impl Rules {
    pub fn fits(recv: &Recv, sent: &Sent) -> bool {
        let tag = if recv.kind == MessageKind::Tagged {
            sent.send.tag
        } else {
            0
        };
        recv.kind == sent.send.kind && want(recv).fits(sent.from, tag)
    }

    pub fn arrive(&mut self, world: &World, message: usize) {
        let sent = &world.sent[message];
        match self.posted.iter().position(|posted| Rules::fits(&posted.recv, sent)) {
            Some(place) => self.meet(world, place, message),
            None => self.held.push(message),
        }
    }

    pub fn post(&mut self, world: &World, recv: Recv) {
        self.posted.push(Posted { recv, used: 0 });
        while let Some(place) = self
            .posted
            .iter()
            .position(|posted| posted.recv.context == recv.context)
        {
            let Some(message) = self.find(world, &recv) else { return };
            let message = self.held.remove(message);
            self.meet(world, place, message);
        }
    }

    pub fn find(&self, world: &World, recv: &Recv) -> Option<usize> {
        self.held
            .iter()
            .position(|message| Rules::fits(recv, &world.sent[*message]))
    }

    pub fn meet(&mut self, world: &World, place: usize, message: usize) {
        let Posted { recv, used } = &mut self.posted[place];
        let at = *used;
        let room = recv.body.len() - at;
        *used += room.min(world.sent[message].bytes.len());
        let over = recv.multi.is_none_or(|least| recv.body.len() - *used < least.max(1));
        let buf = if recv.multi.is_some() { recv.body.address(at) } else { 0 };
        let recv = *recv;
        if over {
            self.posted.remove(place);
        }
        self.end(world, &recv, message, room, buf);
    }

    pub fn end(&mut self, world: &World, recv: &Recv, message: usize, room: usize, buf: usize) {
        let sent = &world.sent[message];
        let overflow = sent.bytes.len().saturating_sub(room);
        self.went.insert(message, (recv.context, buf));
        self.ends.push(Completion {
            len: sent.bytes.len() - overflow,
            buf,
            failure: (overflow > 0).then_some(Failure {
                error: Error::Truncated,
                overflow,
            }),
            ..seen(recv, sent)
        });
    }

    pub fn fail(&mut self, recv: &Recv, error: Error) {
        self.ends.push(Completion {
            failure: Some(Failure { error, overflow: 0 }),
            ..plain(recv.kind, recv.context)
        });
    }

    pub fn peek(&mut self, world: &World, peek: Peek, recv: &Recv) {
        if matches!(peek, Peek::ReceiveClaimed | Peek::DiscardClaimed) {
            let message = self.claims.remove(&recv.context).expect("it was claimed");
            if peek == Peek::ReceiveClaimed {
                self.end(world, recv, message, recv.body.len(), 0);
            } else {
                self.ends.push(seen(recv, &world.sent[message]));
            }
            return;
        }
        let Some(place) = self.find(world, recv) else {
            self.fail(recv, Error::NoMessage);
            let end = self.ends.last_mut().unwrap();
            (end.peeked, end.tag) = (true, recv.tag);
            return;
        };
        let message = self.held[place];
        self.ends.push(Completion {
            peeked: true,
            ..seen(recv, &world.sent[message])
        });
        if peek != Peek::Only {
            self.held.remove(place);
        }
        if peek == Peek::Claim {
            self.claims.insert(recv.context, message);
        }
    }
}

pub fn plain(kind: MessageKind, context: Context) -> Completion {
    Completion {
        op: CompletedOp::Recv,
        kind,
        context,
        tell: Tell::Queue,
        len: 0,
        buf: 0,
        tag: 0,
        data: None,
        source: None,
        released: false,
        peeked: false,
        failure: None,
    }
}

pub fn seen(recv: &Recv, sent: &Sent) -> Completion {
    let tag = if recv.kind == MessageKind::Tagged {
        sent.send.tag
    } else {
        0
    };
    Completion {
        len: sent.bytes.len(),
        tag,
        data: sent.send.data,
        source: Some(sent.from),
        ..plain(recv.kind, recv.context)
    }
}
