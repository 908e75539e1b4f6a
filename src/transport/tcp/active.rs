//! Who is read in a poll: links that had news lately are asked directly, all others are found by epoll.
//!
//! What a poll costs when nothing has come does not depend on how many peers there are: a read of at most `BLIND`
//! links, or one look at epoll, and now and then both. A program that polls in a loop has a look at epoll in each
//! `LOOK` polls. One that has found something and polls once more, as in MPI_Test after MPI_Barrier, finds with that
//! poll whatever has come. Part of `TcpTransport`.

use super::deadlines::TICK;
use super::link::Link;
use super::{TcpTransport, key, key_of};
use crate::engine::port::{PeerId, Sink};
use crate::sys::epoll::Events;

/// Polls from one look at epoll to the next while links are asked directly.
pub(super) const LOOK: u64 = 8;

/// Links without known news that are read in a poll. Where there are more, only epoll is asked, in every poll.
const BLIND: usize = 2;

/// For so many polls after there were more.
pub(super) const CROWDED: u64 = 2000;

/// Polls without news after which a link is no longer asked.
pub(super) const COOL: u32 = 2000;

/// What becomes of a link that was read.
#[derive(PartialEq)]
enum After {
    Stays,
    Cools,
    Ends,
}

/// Reads a link. Returns how many packets it had.
#[inline(always)]
fn read<S: Sink>(
    link: &mut Link,
    number: PeerId,
    has_news: bool,
    sink: &mut S,
    buffer: &mut [u8],
    most: usize,
) -> (usize, After) {
    let came = link.receive(number, sink, buffer, most);
    link.idle = if came > 0 || has_news { 0 } else { link.idle + 1 };
    let after = match (link.is_over(), link.idle > COOL) {
        (true, _) => After::Ends,
        (false, true) => After::Cools,
        (false, false) => return (came, After::Stays),
    };
    link.in_active = false;
    (came, after)
}

impl TcpTransport {
    /// Reads links that have news, and some that had lately.
    #[inline]
    pub(super) fn read_active<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let (mut done, mut at) = (0, 0);
        let crowded = self.many_are_active();
        let mut blind = if crowded { 0 } else { BLIND };
        // So that with many of them each comes first now and then.
        if self.active.len() > 1 {
            let first = self.polls as usize % self.active.len();
            self.active.swap(0, first);
        }
        while let Some(number) = self.active.get(at).copied() {
            if done >= budget {
                break;
            }
            let Some(link) = self.peers.link(number) else {
                self.active.swap_remove(at);
                continue;
            };
            let news = link.has_news();
            if !news && blind == 0 {
                link.in_active = false;
                self.active.swap_remove(at);
                if !crowded {
                    self.crowded_until = self.polls + CROWDED;
                }
                continue;
            }
            blind -= usize::from(!news);
            let (came, after) = read(link, number, news, sink, self.buffer.bytes(), budget - done);
            done += came;
            at += usize::from(self.stays_active(at, number, after));
        }
        done
    }

    /// Reads those that have news, and no others.
    fn read_news<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let (mut done, mut at) = (0, 0);
        while let Some(number) = self.active.get(at).copied().filter(|_| done < budget) {
            let Some(link) = self.peers.link(number).filter(|link| link.has_news()) else {
                at += 1;
                continue;
            };
            let (came, after) = read(link, number, true, sink, self.buffer.bytes(), budget - done);
            done += came;
            at += usize::from(self.stays_active(at, number, after));
        }
        done
    }

    /// Whether the link at this place among the active ones is still there.
    #[inline(always)]
    fn stays_active(&mut self, at: usize, number: PeerId, after: After) -> bool {
        if after == After::Stays {
            return true;
        }
        self.active.swap_remove(at);
        if after == After::Ends {
            self.peers.note_end(number);
        }
        false
    }

    /// Whether epoll is asked in this poll, if nothing else says so: a program that polls in a loop has it asked now
    /// and then, and one that has just found something at once.
    #[inline]
    pub(super) fn is_look_due(&mut self) -> bool {
        let has_found = core::mem::take(&mut self.has_found);
        let is_another_quiet = has_found && self.peers.count() > self.active.len();
        self.polls % LOOK == 0 || is_another_quiet || self.active.is_empty() || self.many_are_active()
    }

    /// Asks epoll, and reads the links that have news by that.
    pub(super) fn look_and_read<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        if self.look(sink) {
            self.read_news(sink, budget)
        } else {
            0
        }
    }

    /// More links had news lately than are read without.
    #[inline]
    pub(super) fn many_are_active(&self) -> bool {
        self.polls < self.crowded_until
    }

    /// Asks the kernel who has news, and sees to connections that are being made. Whether links have something to read.
    fn look<S: Sink>(&mut self, sink: &mut S) -> bool {
        let mut is_readable = false;
        let mut tick = self.polls % TICK == 0 || core::mem::take(&mut self.tick_is_due);
        while let Some(number) = self.news_of_ways.pop() {
            self.way_has_news(number, sink);
        }
        let mut events = Events::new();
        self.epoll.look(&mut events);
        for event in events.iter() {
            match event.key {
                key::LOBBY => self.serve_guests(),
                // Whoever was to be woken has been, by this poll.
                key::BELL if self.watched.is_watched() => self.desk.quieten(),
                key::BELL => {}
                key::TIMER => {
                    tick = true;
                    self.silence_timer();
                }
                _ if event.key & 1 == key::LINK => {
                    is_readable |= event.readable;
                    self.link_has_news(event);
                }
                _ => self.way_has_news((event.key >> 1) as PeerId, sink),
            }
        }
        if tick {
            self.tick(sink);
        }
        is_readable
    }

    /// While somebody sleeps, `arm` does so.
    fn silence_timer(&mut self) {
        if self.watched.is_watched() {
            self.timer.clear();
            self.timed_for = None;
        }
    }

    pub(super) fn link_has_news(&mut self, event: crate::sys::epoll::Event) {
        let number = (event.key >> 1) as PeerId;
        debug_assert_eq!(event.key, key_of(number, key::LINK));
        let Some(link) = self.peers.link(number) else {
            return self.leaving_has_room();
        };
        if event.writable {
            link.writable();
            if !link.out.is_empty() {
                self.note_unsent(number);
            }
        }
        let Some(link) = self.peers.link(number) else { return };
        if event.readable {
            link.readable = true;
            link.ending |= event.ended;
            self.activate(number);
        }
    }
}
