//! One connection: packets being written to a socket and read from one, a few bytes at a time.

use super::PREFIX;
use crate::engine::op::Error;
use crate::engine::port::{Body, Notice, PeerId, Placement, Push, Sink, Token, When};
use crate::engine::wire::Header;
use crate::util::regions::Lease;
use crate::util::user::UserIov;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Packets that wait for room in the socket.
const DEPTH: usize = 3;

/// A die: how many bytes a call moves, how many calls a poll makes, and what is copied.
pub struct Die(pub u64);

impl Die {
    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below.max(1)
    }

    /// Mostly so few that packets are cut at every place.
    fn step(&mut self) -> usize {
        let most = if self.roll(8) == 0 { 5000 } else { 61 };
        1 + self.roll(most) as usize
    }
}

enum Bytes {
    Copied(Vec<u8>),
    /// The application's memory, until `Sink::sent`.
    Kept(UserIov, usize, usize),
}

/// A packet of which not all is written.
struct Writing {
    prefix: [u8; PREFIX],
    body: Bytes,
    done: usize,
    /// Who is to be told.
    token: Option<Token>,
}

impl Writing {
    fn len(&self) -> usize {
        PREFIX
            + match &self.body {
                Bytes::Copied(bytes) => bytes.len(),
                Bytes::Kept(_, _, len) => *len,
            }
    }

    /// At most `most` of the bytes that are left.
    fn next(&self, most: usize) -> Vec<u8> {
        let most = most.min(self.len() - self.done);
        let Some(at) = self.done.checked_sub(PREFIX) else {
            return self.prefix[self.done..].iter().take(most).copied().collect();
        };
        match &self.body {
            Bytes::Copied(bytes) => bytes[at..at + most].to_vec(),
            Bytes::Kept(iov, from, _) => {
                let mut bytes = vec![0; most];
                assert_eq!(iov.read(from + at, &mut bytes), most);
                bytes
            }
        }
    }
}

/// Where the body that is being read goes.
enum Target {
    Into(UserIov, usize, Token),
    /// With whether the lease has held up to now.
    Leased(Lease, Token, bool),
    Keep(Vec<u8>, Token),
    Drop,
}

struct Reading {
    target: Target,
    done: usize,
    len: usize,
}

/// What a link came to in a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Packet,
    Nothing,
    /// The poll has made all its calls.
    Enough,
    /// The connection is over.
    End,
}

/// The other end hears of it though a child of fork, which another test has at the same time, has this end open too.
pub fn shut(socket: &UnixStream) {
    let _ = socket.shutdown(Shutdown::Both);
}

/// A connection, or the place of one.
#[derive(Default)]
pub struct Link {
    /// To write to and to read from: the same connection.
    sockets: Option<[UnixStream; 2]>,
    writing: VecDeque<Writing>,
    /// Packets that are written and have to be told.
    written: Vec<Token>,
    /// The beginning of the next packet.
    prefix: Vec<u8>,
    reading: Option<Reading>,
    /// Nothing more can be written: what can still be read comes first, then the end.
    deaf: bool,
    /// It ended, and the engine was not told.
    pub over: bool,
}

impl Link {
    pub fn is_up(&self) -> bool {
        self.sockets.is_some()
    }

    /// Nothing is under way but in the socket.
    pub fn is_quiet(&self) -> bool {
        let sending = self.writing.len() + self.written.len();
        sending == 0 && self.prefix.is_empty() && self.reading.is_none() && !self.over
    }

    pub fn connect(&mut self, out: UnixStream, inward: UnixStream) {
        for socket in [&out, &inward] {
            socket.set_nonblocking(true).expect("a socket that does not block");
        }
        self.sockets = Some([out, inward]);
    }

    /// Ends the connection on this side, and with it all that is under way.
    pub fn hang_up(&mut self) {
        if let Some([socket, _]) = &self.sockets {
            shut(socket);
        }
        *self = Link {
            over: true,
            ..Link::default()
        };
    }

    pub fn push(&mut self, header: &Header, body: Body<'_>, notice: Option<Notice>, die: &mut Die) -> Push {
        self.flush(die);
        if self.deaf || self.writing.len() == DEPTH || die.roll(16) == 0 {
            return Push::Full;
        }
        let gathered = notice == Some(Notice::ANSWERED) && die.roll(2) > 0;
        let notice = Notice::to_tell(notice);
        let keep = notice.is_some() && die.roll(4) > 0;
        let kept = keep && matches!(body, Body::User { .. });
        let mut prefix = [0; PREFIX];
        prefix[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        prefix[4..].copy_from_slice(&header.encode());
        let body = match body {
            Body::Empty => Bytes::Copied(Vec::new()),
            Body::Bytes(bytes) => Bytes::Copied(bytes.to_vec()),
            Body::User { iov, at, len } if keep => Bytes::Kept(*iov, at, len),
            Body::User { iov, at, len } => {
                let mut bytes = vec![0; len];
                assert_eq!(iov.read(at, &mut bytes), len);
                Bytes::Copied(bytes)
            }
        };
        let (done, token) = (0, None);
        self.writing.push_back(Writing {
            prefix,
            body,
            done,
            token,
        });
        self.flush(die);
        let transmitted = notice.is_some_and(|notice| notice.when == When::Transmitted);
        match (self.writing.back_mut(), notice) {
            (Some(last), Some(notice)) if kept || transmitted => {
                last.token = Some(notice.token);
                Push::Later
            }
            _ if gathered => Push::Later,
            _ => Push::Done,
        }
    }

    /// Writes some, as far as the socket takes it.
    fn flush(&mut self, die: &mut Die) {
        let Some([socket, _]) = &mut self.sockets else { return };
        for _ in 0..1 + die.roll(24) {
            let Some(first) = self.writing.front_mut().filter(|_| !self.deaf) else {
                return;
            };
            match socket.write(&first.next(die.step())) {
                Ok(done) => first.done += done,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.deaf = true,
            }
            if first.done == first.len() {
                let written = self.writing.pop_front();
                self.written.extend(written.and_then(|packet| packet.token));
            }
        }
    }

    /// Writes on, and tells the engine of what is written. `why`: what ends a connection that has ended.
    pub fn write_on<S: Sink>(&mut self, sink: &mut S, why: Error, die: &mut Die) {
        self.flush(die);
        for token in self.written.drain(..) {
            sink.sent(token, Ok(()));
        }
        // The engine may be told of what is lost before the end, or with it.
        if self.deaf && die.roll(2) == 0 {
            for token in self.writing.drain(..).filter_map(|packet| packet.token) {
                sink.sent(token, Err(why));
            }
        }
    }

    /// Reads on, up to the end of a packet.
    pub fn read_on<S: Sink>(&mut self, from: PeerId, sink: &mut S, calls: &mut u64, die: &mut Die) -> Came {
        while self.prefix.len() < PREFIX {
            match self.read(PREFIX - self.prefix.len(), calls, die) {
                Ok(bytes) => self.prefix.extend(bytes),
                Err(end) => return end,
            }
        }
        if self.reading.is_none() {
            let (len, header) = self.prefix.split_at(4);
            let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
            let header = Header::decode(header.try_into().unwrap()).expect("a header of ours");
            let target = match sink.place(from, &header, len) {
                Placement::Into { iov, at, token } => Target::Into(iov, at, token),
                Placement::Leased { lease, token } => {
                    assert_eq!(lease.len(), len);
                    Target::Leased(lease, token, true)
                }
                Placement::Keep { buffer, token } => Target::Keep(buffer, token),
                Placement::Drop => Target::Drop,
                Placement::Refuse => return Came::Nothing,
            };
            self.reading = Some(Reading { target, done: 0, len });
        }
        while let Some(left) = self
            .reading
            .as_ref()
            .map(|body| body.len - body.done)
            .filter(|left| *left > 0)
        {
            let bytes = match self.read(left, calls, die) {
                Ok(bytes) => bytes,
                Err(end) => return end,
            };
            if let Some(body) = &mut self.reading {
                body.take(&bytes);
            }
        }
        self.prefix.clear();
        if let Some(body) = self.reading.take() {
            body.tell(sink);
        }
        Came::Packet
    }

    fn read(&mut self, most: usize, calls: &mut u64, die: &mut Die) -> Result<Vec<u8>, Came> {
        let Some([_, socket]) = &mut self.sockets else {
            return Err(Came::Nothing);
        };
        *calls = calls.checked_sub(1).ok_or(Came::Enough)?;
        let mut bytes = vec![0; die.step().min(most)];
        match socket.read(&mut bytes) {
            Ok(0) => Err(Came::End),
            Ok(done) => {
                bytes.truncate(done);
                Ok(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Came::Nothing),
            Err(_) => Err(Came::End),
        }
    }
}

impl Reading {
    fn take(&mut self, bytes: &[u8]) {
        match &mut self.target {
            Target::Into(iov, at, _) => drop(iov.write(*at + self.done, bytes)),
            Target::Leased(lease, _, holds) => *holds = *holds && lease.write(self.done, bytes),
            Target::Keep(buffer, _) => buffer[self.done..self.done + bytes.len()].copy_from_slice(bytes),
            Target::Drop => {}
        }
        self.done += bytes.len();
    }

    fn tell<S: Sink>(self, sink: &mut S) {
        match self.target {
            Target::Into(_, _, token) | Target::Leased(_, token, true) => sink.placed(token, None),
            Target::Leased(_, token, false) => sink.cut(token),
            Target::Keep(buffer, token) => sink.placed(token, Some(buffer)),
            Target::Drop => {}
        }
    }
}
