//! Packets through a byte stream, a socket pair, of which no call moves more than a few bytes.
//!
//! It shows that the seam fits streams: the header is known before the body, the body is moved as it comes, over many
//! polls, and what is refused stays in the socket.

use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Loss, Notice, PeerId, Placement, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::regions::Lease;
use crate::util::user::UserIov;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

const PEER: PeerId = 0;
/// What precedes a body in the stream: its length, and the packet's header.
const PREFIX: usize = 4 + Header::SIZE;

/// Where the body that is being read goes.
enum Sinking {
    Into(UserIov, usize, Token),
    /// With whether the lease held up to now.
    Leased(Lease, Token, bool),
    Keep(Vec<u8>, Token),
    Drop,
}

pub struct Stream {
    socket: UnixStream,
    /// The rest of a packet that the socket has not taken yet.
    tail: Vec<u8>,
    /// The beginning of the next packet.
    prefix: Vec<u8>,
    /// The body being read: where it goes, how many bytes have come, its length.
    body: Option<(Sinking, usize, usize)>,
    /// Varies the sizes of reads and writes.
    turn: usize,
    gone: bool,
    told: bool,
}

impl Stream {
    pub fn pair() -> [Stream; 2] {
        let (a, b) = UnixStream::pair().expect("a socket pair");
        [a, b].map(|socket| {
            socket.set_nonblocking(true).expect("a socket that does not block");
            Stream {
                socket,
                tail: Vec::new(),
                prefix: Vec::new(),
                body: None,
                turn: 0,
                gone: false,
                told: false,
            }
        })
    }

    /// How many bytes the next call may move: 1 to 61, so that packets are cut at every place.
    fn step(&mut self) -> usize {
        self.turn += 7;
        1 + self.turn % 61
    }

    /// Writes on until the socket takes no more.
    fn flush(&mut self) {
        while !self.tail.is_empty() && !self.gone {
            let most = self.step().min(self.tail.len());
            match self.socket.write(&self.tail[..most]) {
                Ok(done) => drop(self.tail.drain(..done)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
    }

    /// Reads at most `most` bytes; None when there are none now.
    fn read(&mut self, most: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.step().min(most)];
        match self.socket.read(&mut bytes) {
            Ok(0) => {
                self.gone = true;
                None
            }
            Ok(done) => {
                bytes.truncate(done);
                Some(bytes)
            }
            Err(error) => {
                self.gone |= error.kind() != ErrorKind::WouldBlock;
                None
            }
        }
    }

    /// Reads on, up to the end of a packet. None: there is nothing to read now, or the engine refused the packet.
    fn deliver<S: Sink>(&mut self, sink: &mut S) -> Option<()> {
        while self.prefix.len() < PREFIX {
            let bytes = self.read(PREFIX - self.prefix.len())?;
            self.prefix.extend(bytes);
        }
        if self.body.is_none() {
            let (len, header) = self.prefix.split_at(4);
            let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
            let header = Header::decode(header.try_into().unwrap()).expect("a header of ours");
            let to = match sink.place(PEER, &header, len) {
                Placement::Into { iov, at, token } => Sinking::Into(iov, at, token),
                Placement::Leased { lease, token } => Sinking::Leased(lease, token, true),
                Placement::Keep { buffer, token } => Sinking::Keep(buffer, token),
                Placement::Drop => Sinking::Drop,
                Placement::Refuse => return None,
            };
            self.body = Some((to, 0, len));
        }
        while let Some((_, done, len)) = &self.body {
            let left = len - done;
            if left == 0 {
                break;
            }
            let bytes = self.read(left)?;
            let Some((to, done, _)) = &mut self.body else {
                return None;
            };
            match to {
                Sinking::Into(iov, at, _) => drop(iov.write(*at + *done, &bytes)),
                Sinking::Leased(lease, _, holds) => *holds &= lease.write(*done, &bytes),
                Sinking::Keep(buffer, _) => buffer[*done..*done + bytes.len()].copy_from_slice(&bytes),
                Sinking::Drop => {}
            }
            *done += bytes.len();
        }
        self.prefix.clear();
        match self.body.take()?.0 {
            Sinking::Into(_, _, token) => sink.placed(token, None),
            Sinking::Leased(_, token, true) => sink.placed(token, None),
            Sinking::Leased(_, token, false) => sink.cut(token),
            Sinking::Keep(buffer, token) => sink.placed(token, Some(buffer)),
            Sinking::Drop => {}
        }
        Some(())
    }
}

impl Transport for Stream {
    fn limits(&self) -> Limits {
        Limits {
            max_body: 1000,
            eager: 5000,
            can_get: false,
            guaranteed_body: 1000,
            sync_placement: false,
        }
    }

    fn peer(&mut self, _: &[u8]) -> Option<PeerId> {
        Some(PEER)
    }

    fn push(&mut self, _: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        self.flush();
        if self.gone {
            return Push::Gone;
        }
        if !self.tail.is_empty() {
            return Push::Full;
        }
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => drop(iov.read(at, &mut bytes)),
        }
        self.tail.extend((bytes.len() as u32).to_le_bytes());
        self.tail.extend(header.encode());
        self.tail.extend(bytes);
        self.flush();
        Push::Done
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        self.flush();
        let mut done = 0;
        while done < budget && !self.told && self.deliver(sink).is_some() {
            done += 1;
        }
        if self.gone && !self.told {
            self.told = true;
            self.body = None;
            sink.gone(PEER, Loss::Died);
        }
        done
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}

mod tests {
    use super::*;
    use crate::transport::tests::suite::{Ends, Pair};

    impl Pair for Stream {
        fn pair() -> Ends<Stream> {
            let [a, b] = Stream::pair();
            let (b_of_a, a_of_b) = (PEER, PEER);
            Ends {
                a,
                b,
                b_of_a,
                a_of_b,
                keep: Box::new(()),
            }
        }
    }

    crate::transport::tests::suite::tests!(Stream);
}
