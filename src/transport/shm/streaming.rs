//! Whether a long message that could be copied by the kernel is better sent through the ring.
//!
//! Where both processors share a cache, a stream through the ring takes two thirds of what a copy by the kernel does,
//! of which each side does its part. But it goes on only while both sides poll: a sender that computes meanwhile, or a
//! receiver that looks now and then, is better off with the copy, which the receiver does in one call. So both must be
//! seen to poll. Called by `ShmTransport::get`. Knows nothing of messages.

use super::ShmTransport;
use super::copy_speed::SpeedClass;
use super::trials::Trials;
use crate::engine::port::{PeerId, Token};
use crate::sys::shared;
use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The receiver looks twice within this time, and the sender must have polled in between. A copy of 64 KiB by the
/// kernel takes twice as long. Tests have more, as code that is not optimized takes longer.
const SOON: Duration = Duration::from_micros(if cfg!(test) { 200 } else { 2 });
/// After a sender was not seen to poll, so many messages are copied without a look: where more processes run than
/// processors, or a program computes while it sends, looks would be in vain most of the time.
const LEFT_ALONE: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Ring,
    Kernel,
    /// The receiver asks again in the next poll.
    NotYet,
}

#[derive(Debug)]
pub(super) struct Streaming {
    /// Which messages are streamed all the same where the ring does not beat a dual copy, and which one is being tried.
    trials: Trials,
    tried: Option<Token>,
    look: Option<Look>,
    /// How many messages are still copied without a look.
    left_alone: u8,
}

/// The number of the sender's polls, as it was when the receiver looked for one of the messages that wait. It stands for
/// all of them: asking for each takes so long that no message would find its own look again.
#[derive(Clone, Copy, Debug)]
struct Look {
    polls: u64,
    at: Instant,
    /// The sender was seen to poll since.
    is_answered: bool,
}

impl ShmTransport {
    /// How a long message of this peer comes best. `message` is the token of its get.
    pub(super) fn way_of(&mut self, from: PeerId, message: Token) -> Way {
        let peer = self.peers.get(from).filter(|_| self.config.stream);
        let Some((out, lane)) = peer.and_then(|peer| Some((peer.out.as_ref()?, peer.lane?))) else {
            return Way::Kernel;
        };
        let polls = out.header.polls().load(Ordering::Relaxed);
        let plenty = || shared::is_half_free(&self.config.dir);
        let inbound = self.inbox.get_mut(lane);
        inbound.map_or(Way::Kernel, |inbound| inbound.way_of(message, polls, plenty))
    }
}

impl Default for Streaming {
    fn default() -> Streaming {
        Streaming {
            trials: Trials::at_once(),
            tried: None,
            look: None,
            left_alone: 0,
        }
    }
}

impl Streaming {
    /// The way of the message of this token. `polls`: the sender's count by now. `may_try`: whether there is memory to
    /// spare for a ring.
    pub(super) fn choose(
        &mut self,
        token: Token,
        speed: SpeedClass,
        polls: u64,
        may_try: impl FnOnce() -> bool,
    ) -> Way {
        if self.left_alone > 0 {
            self.left_alone -= 1;
            return Way::Kernel;
        }
        let now = Instant::now();
        if speed == SpeedClass::BeatsDualCopy {
            self.trials = Trials::default();
        } else if self.tried != Some(token) {
            // While one message is being tried no other is copied: that takes so long that the second look would come
            // too late.
            if self.tried.is_some() && self.is_recent(now) {
                return Way::NotYet;
            }
            self.look = None;
            if !self.is_to_be_tried(token, may_try) {
                return Way::Kernel;
            }
        }
        self.look_again(now, polls)
    }

    fn look_again(&mut self, now: Instant, polls: u64) -> Way {
        let Some(look) = self
            .look
            .as_mut()
            .filter(|look| !look.is_answered || now - look.at < SOON)
        else {
            self.look = Some(Look {
                polls,
                at: now,
                is_answered: false,
            });
            return Way::NotYet;
        };
        if now - look.at >= SOON {
            self.look = None;
            self.tried = None;
            self.left_alone = LEFT_ALONE;
            Way::Kernel
        } else if look.polls == polls {
            Way::NotYet
        } else {
            look.is_answered = true;
            self.tried = None;
            Way::Ring
        }
    }

    fn is_recent(&self, now: Instant) -> bool {
        self.look.is_some_and(|look| now - look.at < SOON)
    }

    fn is_to_be_tried(&mut self, token: Token, may_try: impl FnOnce() -> bool) -> bool {
        self.tried = (self.trials.is_due() && may_try()).then_some(token);
        self.tried.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a message if the sender's polls are counted so in a row of looks.
    fn ways(streaming: &mut Streaming, token: Token, speed: SpeedClass, polls: &[u64]) -> Vec<Way> {
        let choose = |polls: &u64| streaming.choose(token, speed, *polls, || true);
        polls.iter().map(choose).collect()
    }

    #[test]
    fn a_message_goes_through_the_ring_once_its_sender_is_seen_to_poll() {
        let mut streaming = Streaming::default();
        // What takes longer than `SOON` here is another case.
        let seen = (0..1000).map(|token| {
            ways(
                &mut streaming,
                token,
                SpeedClass::BeatsDualCopy,
                &[2 * token, 2 * token + 1],
            )
        });
        assert!(seen.collect::<Vec<_>>().contains(&vec![Way::NotYet, Way::Ring]));
    }

    #[test]
    fn who_does_not_poll_is_asked_for_nothing() {
        let mut streaming = Streaming::default();
        let started = Instant::now();
        let mut looks = 0;
        while ways(&mut streaming, 1, SpeedClass::BeatsDualCopy, &[7]) == [Way::NotYet] {
            looks += 1;
            assert!(started.elapsed() < Duration::from_secs(60), "{looks} looks");
        }
        assert!(started.elapsed() >= SOON);
        // Nor for the next messages.
        let next =
            (0..LEFT_ALONE).map(|number| ways(&mut streaming, 2 + u64::from(number), SpeedClass::BeatsDualCopy, &[8]));
        assert!(next.flatten().all(|way| way == Way::Kernel));
        assert_eq!(ways(&mut streaming, 99, SpeedClass::BeatsDualCopy, &[8]), [Way::NotYet]);
    }

    /// The sender sends all, and then computes, or this process has its processor.
    #[test]
    fn nor_is_who_has_many_under_way() {
        let mut streaming = Streaming::default();
        let started = Instant::now();
        let is_copied = |token: &Token| ways(&mut streaming, *token, SpeedClass::BeatsDualCopy, &[7]) == [Way::Kernel];
        let mut tokens = (0..100_000).cycle();
        let copied = tokens
            .by_ref()
            .take_while(|_| started.elapsed() < Duration::from_secs(60))
            .find(is_copied);
        assert!(copied.is_some());
    }

    #[test]
    fn where_copies_are_slower_some_messages_are_tried() {
        for speed in [
            SpeedClass::Unknown,
            SpeedClass::Slow,
            SpeedClass::BeatsFetchOf16K,
            SpeedClass::BeatsFetchOf32K,
        ] {
            let mut streaming = Streaming::default();
            let is_tried = |token: &Token| {
                let first = ways(&mut streaming, *token, speed, &[2 * token]);
                if first == [Way::NotYet] {
                    ways(&mut streaming, *token, speed, &[2 * token + 1]);
                    streaming.left_alone = 0; // where this process was stopped between the two
                }
                first != [Way::Kernel]
            };
            let tried: Vec<Token> = (0..200).filter(is_tried).collect();
            assert_eq!(tried, [0, 64, 192]);
        }
    }

    #[test]
    fn others_wait_while_one_is_tried_and_then_do_not() {
        let seen = (0..1000).map(|_| {
            let mut streaming = Streaming::default();
            let mut way = |token, polls| streaming.choose(token, SpeedClass::Unknown, polls, || true);
            [way(1, 7), way(2, 7), way(1, 8), way(2, 8), way(3, 8)]
        });
        let expected = [Way::NotYet, Way::NotYet, Way::Ring, Way::Kernel, Way::Kernel];
        // What takes longer than `SOON` is another case.
        assert!(seen.collect::<Vec<_>>().contains(&expected));
    }

    #[test]
    fn nothing_is_tried_that_is_not_worth_its_memory() {
        let mut streaming = Streaming::default();
        for token in 0..200 {
            assert_eq!(
                streaming.choose(token, SpeedClass::Unknown, token, || false),
                Way::Kernel
            );
        }
        assert_eq!(
            streaming.choose(999, SpeedClass::BeatsDualCopy, 1, || false),
            Way::NotYet
        );
    }

    #[test]
    fn looks_that_lie_far_apart_say_that_the_receiver_does_not_poll() {
        let mut streaming = Streaming::default();
        assert_eq!(ways(&mut streaming, 1, SpeedClass::BeatsDualCopy, &[1]), [Way::NotYet]);
        let look = streaming.look.as_mut().unwrap();
        look.at = look.at.checked_sub(SOON).unwrap();
        assert_eq!(ways(&mut streaming, 1, SpeedClass::BeatsDualCopy, &[9]), [Way::Kernel]);
    }
}
