//! What was pushed to one peer and has not left: bytes that were copied, and behind them perhaps the rest of one body
//! in the application's memory.
//!
//! Packets are gathered, so that many small ones leave in one call. Knows the stream's words and no peer. Called by
//! `link`.

use super::handshake::frame;
use crate::engine::port::{Body, Notice, Token};
use crate::engine::wire::Header;
use crate::sys::forks::ParentFd;
use crate::sys::stream::{self, Part};
use crate::util::user::UserIov;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

/// What stands before a body.
pub(super) const PREFIX: usize = frame::WORD + Header::SIZE;

/// Bodies up to this size are copied to those before them; longer ones leave from where they are.
pub(super) const COPIED: usize = 8 << 10;

/// As much as is gathered before it leaves.
pub(super) const GATHERED: usize = 16 << 10;

/// With as much as this unsent, nothing is taken any more.
const MOST: usize = 64 << 10;

/// AMD's processors copy slowly, at worst half as fast, where the offset in a page of the destination is larger than
/// that of the source by less than this (docs/performance.md).
const TOO_NEAR: usize = 64;
pub(super) const PAGE: usize = 4096;
const ZEROS: [u8; TOO_NEAR] = [0; TOO_NEAR];

/// The rest of a body that was lent: it leaves when all bytes have.
#[derive(Debug)]
struct Lent {
    iov: UserIov,
    at: usize,
    len: usize,
    token: Token,
}

#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    bytes: Vec<u8>,
    /// How many of them have left.
    gone: usize,
    lent: Option<Lent>,
    /// Who is told when the bytes up to here have left, counted from the beginning of the connection.
    marks: VecDeque<(u64, Token)>,
    added: u64,
    left: u64,
    /// Who is to be told in the next poll.
    pub told: Vec<Token>,
    /// The socket took less than it was given: nothing more is given to it until the kernel tells that there is room.
    pub blocked: bool,
}

fn prefix(header: &Header, len: usize) -> [u8; PREFIX] {
    let mut bytes = [0; PREFIX];
    let (word, rest) = bytes.split_at_mut(frame::WORD);
    word.copy_from_slice(&(frame::PACKET | len as u32).to_le_bytes());
    rest.copy_from_slice(&header.encode());
    bytes
}

/// How many bytes to put before a packet whose body lies at `addr`, if so many leave `before` that body. The kernel
/// puts the first of those at the beginning of a page when the peer has taken all that was sent earlier. Else it may
/// put them anywhere, and a pad does neither good nor harm.
fn pad_len(addr: usize, before: usize) -> usize {
    match before.wrapping_sub(addr) % PAGE {
        ahead @ 1..TOO_NEAR => (TOO_NEAR - ahead).max(frame::WORD),
        _ => 0,
    }
}

/// A body as bytes of ours, and as the application's.
fn parts<'a>(body: &'a Body<'_>) -> (&'a [u8], Part<'a>) {
    match body {
        Body::Empty => (&[], Part::NONE),
        Body::Bytes(bytes) => (bytes, Part::NONE),
        Body::User { iov, at, len } => {
            let part = Part {
                iov,
                at: *at,
                len: *len,
            };
            (&[], part)
        }
    }
}

impl SendBuffer {
    fn waiting(&self) -> usize {
        self.bytes.len() - self.gone
    }

    /// Whether enough is gathered to leave.
    pub(super) fn is_much(&self) -> bool {
        self.waiting() >= GATHERED
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0 && self.lent.is_none()
    }

    /// Whether another packet may be added.
    pub(super) fn has_room(&self) -> bool {
        self.lent.is_none() && self.waiting() < MOST
    }

    /// Puts the last word of the stream behind all that was added. What was lent is copied: its owner is not told any
    /// more when it has left.
    #[cold]
    pub(super) fn end_with(&mut self, word: u32) {
        if let Some(Lent { iov, at, len, .. }) = self.lent.take() {
            self.copy_part(&Part { iov: &iov, at, len });
        }
        self.copy(&word.to_le_bytes());
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.added += bytes.len() as u64;
    }

    /// Moves the body of the packet that follows to where the kernel copies it quickly.
    fn add_pad(&mut self, bytes: &[u8], part: &Part<'_>) {
        let addr = match bytes {
            [] => part.iov.address(part.at),
            _ => bytes.as_ptr().addr(),
        };
        let len = pad_len(addr, self.waiting() + PREFIX);
        if let Some(rest) = len.checked_sub(frame::WORD) {
            self.copy(&(frame::PAD | rest as u32).to_le_bytes());
            self.copy(ZEROS.get(..rest).unwrap_or_default());
        }
    }

    fn copy_part(&mut self, part: &Part<'_>) {
        let end = self.bytes.len();
        self.bytes.resize(end + part.len, 0);
        part.iov.read(part.at, self.bytes.get_mut(end..).unwrap_or_default());
        self.added += part.len as u64;
    }

    /// Copies a packet behind the others.
    #[inline]
    pub(super) fn add(&mut self, header: &Header, body: &Body<'_>) {
        self.copy(&prefix(header, body.len()));
        let (bytes, part) = parts(body);
        self.copy(bytes);
        if part.len > 0 {
            self.copy_part(&part);
        }
    }

    /// Takes back the packet that was added last. False: a part of it has left.
    #[cold]
    pub(super) fn take_back(&mut self, len: usize) -> bool {
        let stays = self.waiting().checked_sub(len);
        if let Some(stays) = stays {
            self.bytes.truncate(self.gone + stays);
            self.added -= len as u64;
        }
        stays.is_some()
    }

    /// Has somebody told when all that was added has left. False: it has.
    pub(super) fn mark(&mut self, token: Token) -> bool {
        let waits = self.waiting() > 0;
        if waits {
            self.marks.push_back((self.added, token));
        }
        waits
    }

    /// Gives the socket what it takes. An error: the connection is over.
    #[inline]
    pub(super) fn flush(&mut self, socket: &ParentFd) -> io::Result<()> {
        if self.is_empty() || self.blocked {
            return Ok(());
        }
        match self.lent.take() {
            None => {
                let sent = self.give(socket, &[], &Part::NONE)?;
                self.took(sent);
            }
            Some(lent) => self.flush_lent(socket, lent)?,
        }
        Ok(())
    }

    fn flush_lent(&mut self, socket: &ParentFd, mut lent: Lent) -> io::Result<()> {
        let part = Part {
            iov: &lent.iov,
            at: lent.at,
            len: lent.len,
        };
        let before = self.waiting();
        let sent = self.give(socket, &[], &part)?;
        self.took(sent.min(before));
        let from_body = sent.saturating_sub(before).min(lent.len);
        if from_body == lent.len {
            self.told.push(lent.token);
            return Ok(());
        }
        lent.at += from_body;
        lent.len -= from_body;
        self.blocked = true;
        self.lent = Some(lent);
        Ok(())
    }

    /// Gives the socket, which is not blocked, all that waits, and a packet behind it from where its body is. What it
    /// does not take of the body is lent if somebody is told when that has left, and else copied. Returns whether it is
    /// lent.
    pub(super) fn send_behind(
        &mut self,
        socket: &ParentFd,
        header: &Header,
        body: &Body<'_>,
        to_tell: Option<Notice>,
    ) -> io::Result<bool> {
        let (bytes, part) = parts(body);
        self.add_pad(bytes, &part);
        self.copy(&prefix(header, body.len()));
        let before = self.waiting();
        let sent = self.give(socket, bytes, &part)?;
        self.took(sent.min(before));
        let from_body = sent.saturating_sub(before).min(body.len());
        if from_body == body.len() {
            return Ok(false);
        }
        self.blocked = true;
        self.copy(bytes.get(from_body..).unwrap_or_default());
        match to_tell {
            Some(notice) if part.len > from_body => {
                self.lent = Some(Lent {
                    iov: *part.iov,
                    at: part.at + from_body,
                    len: part.len - from_body,
                    token: notice.token,
                });
                return Ok(true);
            }
            _ if part.len > from_body => self.copy_part(&Part {
                iov: part.iov,
                at: part.at + from_body,
                len: part.len - from_body,
            }),
            _ => {}
        }
        Ok(false)
    }

    fn give(&self, socket: &ParentFd, next: &[u8], part: &Part<'_>) -> io::Result<usize> {
        let waiting = self.bytes.get(self.gone..).unwrap_or_default();
        loop {
            match stream::send(socket.as_fd(), waiting, next, part) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                sent => return sent,
            }
        }
    }

    /// So many of the bytes have left.
    #[inline]
    fn took(&mut self, sent: usize) {
        self.gone += sent;
        self.left += sent as u64;
        if !self.marks.is_empty() {
            self.tell();
        }
        if self.waiting() == 0 {
            self.bytes.clear();
            self.gone = 0;
            self.bytes.shrink_to(4 * MOST);
            return;
        }
        self.blocked = true;
        if self.gone > MOST {
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
    }

    #[cold]
    fn tell(&mut self) {
        while let Some((_, token)) = self.marks.front().copied().filter(|(at, _)| *at <= self.left) {
            self.marks.pop_front();
            self.told.push(token);
        }
    }

    /// The connection is over: memory that was lent is not read any more, and nobody is told.
    pub(super) fn clear(&mut self) {
        *self = SendBuffer::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_body_is_copied_to_just_ahead_of_its_own_offset() {
        for addr in 0..2 * PAGE {
            for before in [PREFIX, PREFIX + 1, PREFIX + 100, MOST] {
                let pad = pad_len(addr, before);
                let ahead = (before + pad + PAGE - addr % PAGE) % PAGE;
                assert!(!(1..TOO_NEAR).contains(&ahead), "{addr}, {before}: {ahead}");
                assert!(pad == 0 || (frame::WORD..TOO_NEAR).contains(&pad), "{pad}");
            }
        }
    }

    #[test]
    fn only_a_packet_of_which_nothing_has_left_is_taken_back() {
        let mut buffer = SendBuffer::default();
        let header = Header::new(crate::engine::wire::Packet::Eager, 1);
        buffer.add(&header, &Body::Bytes(&[1; 10]));
        let before = buffer.bytes.clone();
        buffer.add(&header, &Body::Bytes(&[2; 20]));
        assert!(buffer.take_back(PREFIX + 20));
        assert_eq!((&buffer.bytes, buffer.added), (&before, before.len() as u64));
        buffer.took(1);
        assert!(!buffer.take_back(PREFIX + 10));
        assert_eq!(buffer.waiting(), PREFIX + 9);
    }
}
