//! Who is read in a poll: links that had news lately are asked directly, all others are found by epoll.
//!
//! What a poll costs when nothing has come does not depend on how many peers there are: a read of at most `BLIND` links,
//! or one look at epoll, and now and then both. A program that polls in a loop has a look at epoll in each `LOOK` polls. One
//! that polls once and goes on to something else, as MPI_Test does, finds with that poll whatever has come. Part of
//! `TcpTransport`.

use super::deadlines::TICK;
use super::{TcpTransport, key, key_of};
use crate::engine::port::{PeerId, Sink};
use crate::sys::clock;
use crate::sys::epoll::Events;

/// Polls from one look at epoll to the next while links are asked directly.
pub(super) const LOOK: u64 = 8;

/// Links without known news that are read in a poll. Where there are more, only epoll is asked, in every poll.
const BLIND: usize = 2;

/// For so many polls after there were more.
const CROWDED: u64 = 2000;

/// Polls without news after which a link is no longer asked.
const COOL: u32 = 2000;

/// Packets of one link before others have their turn.
const TURN: usize = 32;

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
            let (came, stays) = self.read_link(at, number, sink, budget - done);
            done += came;
            at += usize::from(stays);
        }
        done
    }

    /// Reads those that have news, and no others.
    fn read_news<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let (mut done, mut at) = (0, 0);
        while let Some(number) = self.active.get(at).copied().filter(|_| done < budget) {
            let has_news = self.peers.link(number).is_some_and(|link| link.has_news());
            let (came, stays) = if has_news {
                self.read_link(at, number, sink, budget - done)
            } else {
                (0, true)
            };
            done += came;
            at += usize::from(stays);
        }
        done
    }

    /// Reads the link at this place among the active ones. Returns how many packets it had, and whether it is still there.
    #[inline]
    fn read_link<S: Sink>(&mut self, at: usize, number: PeerId, sink: &mut S, most: usize) -> (usize, bool) {
        let Some(link) = self.peers.link(number) else {
            return (0, true);
        };
        let news = link.has_news();
        let came = link.receive(number, sink, &mut self.buffer, TURN.min(most));
        link.idle = if came > 0 || news { 0 } else { link.idle + 1 };
        let is_over = link.is_over();
        let stays = !is_over && link.idle <= COOL;
        if !stays {
            link.in_active = false;
            self.active.swap_remove(at);
        }
        if is_over {
            self.peers.note_end(number);
        }
        (came, stays)
    }

    /// Whether epoll is asked in this poll, unless something says more than that: a program that polls in a loop has it asked
    /// now and then, and one that has just found something, or has not polled for a while, at once.
    #[inline]
    pub(super) fn is_look_due(&mut self) -> bool {
        let finds = core::mem::take(&mut self.has_found) && self.peers.count() > self.active.len();
        if self.polls % LOOK == 0 || finds || self.active.is_empty() || self.many_are_active() {
            return true;
        }
        let now = clock::coarse_ms();
        core::mem::replace(&mut self.looked_at, now) != now
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
