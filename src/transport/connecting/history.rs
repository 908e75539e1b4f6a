//! What has become of the connections with a peer, and of the tries to make one; and the rules that follow: no socket,
//! no device, no clock.
//!
//! A peer that cannot be reached is tried again after pauses that grow, until its time is over; then the next operation
//! to it fails, and the one after that begins anew. One that there was a connection with, and where nobody listens now,
//! is dead, and stays so until there is a connection again, unless the transport expects another one in its place. An
//! endpoint at the same address that drew another number is another one, and the one before it has died.

use crate::engine::port::{Loss, Push};
use std::time::Duration;

/// The first pause after a try that failed, and the longest.
const REST_MS: u64 = 5;
const MOST_REST_MS: u64 = 500;

/// For how long a peer that is tried is expected to answer any moment.
const HOPE_MS: u64 = 1000;

/// The pause after nonsense, and for a peer that said that it connects to us.
pub const LONG_REST_MS: u64 = 1000;

/// Of two ends that connect with each other at once, whether this one keeps its own connection: both see the same two
/// addresses, so one does.
pub fn keeps_own(own: &[u8], theirs: &[u8]) -> bool {
    own < theirs
}

/// Why a try came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// Its machine says that nobody listens there.
    Nobody,
    /// Nothing was heard of it for as long as a try may take.
    NoAnswer,
    /// Anything else, which may be otherwise the next time.
    Otherwise,
}

/// What follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is tried again after so many milliseconds.
    Rest(u64),
    /// It is given up: it has ended.
    Dead,
    /// It is given up: it was tried for long enough.
    Unreachable,
}

#[derive(Debug, Default)]
pub struct History {
    /// The number that the endpoint at this address drew; 0: none is known.
    instance: u64,
    /// There is a connection, or was one: if nobody listens there now, the peer is dead.
    was_connected: bool,
    /// It is dead, and the engine is to be told in the next poll.
    died: bool,
    /// The answer to the next push.
    failure: Option<Push>,
    /// When it was first tried to connect, of tries that all failed; when the last of them began, and how many there
    /// were.
    since: Option<u64>,
    tried_at: u64,
    tries: u32,
}

impl History {
    /// What a push is answered, if that is known without a connection.
    pub fn answer(&mut self) -> Option<Push> {
        match self.died {
            true => Some(Push::Gone),
            false => self.failure.take(),
        }
    }

    pub fn has_answer(&self) -> bool {
        self.died || self.failure.is_some()
    }

    /// What the endpoint of the last connection calls itself.
    pub fn instance(&self) -> Option<u64> {
        Some(self.instance).filter(|instance| *instance != 0)
    }

    /// A try begins.
    pub fn begins(&mut self, now: u64) {
        self.since.get_or_insert(now);
        self.tried_at = now;
        self.tries = self.tries.saturating_add(1);
    }

    /// When the last try began.
    pub fn tried_at(&self) -> u64 {
        self.tried_at
    }

    /// Whether it has been tried for so short a time that it may answer soon.
    pub fn is_hopeful(&self, now: u64) -> bool {
        self.since.is_some() && self.tried_for(now) < HOPE_MS
    }

    /// For how long it has been tried to connect, of tries that all failed.
    pub fn tried_for(&self, now: u64) -> u64 {
        now.saturating_sub(self.since.unwrap_or(now))
    }

    /// A try has failed. `until`: when, as the transport counts it.
    pub fn failed(&self, why: Failed, until: u64, timeout: Duration) -> Next {
        let tried = self.tried_for(until);
        match why {
            Failed::Nobody if self.was_connected => Next::Dead,
            Failed::NoAnswer => Next::Unreachable,
            _ if u128::from(tried) >= timeout.as_millis() => Next::Unreachable,
            _ => Next::Rest((REST_MS << self.tries.min(10)).min(MOST_REST_MS)),
        }
    }

    /// It is given up. True: that was its death, of which the engine is to be told; else the next push is answered so.
    pub fn give_up(&mut self, failure: Push) -> bool {
        (self.since, self.tries) = (None, 0);
        if self.was_connected {
            self.dies();
        } else {
            self.failure = Some(failure);
        }
        self.died
    }

    /// It is dead, as the engine is to be told.
    pub fn dies(&mut self) {
        (self.died, self.failure) = (true, None);
    }

    /// Whether the engine is to be told now that it is dead.
    pub fn take_death(&mut self) -> bool {
        let died = core::mem::take(&mut self.died);
        if died {
            self.instance = 0;
        }
        died
    }

    /// A connection stands. True: with another endpoint than before, which has died.
    pub fn stands(&mut self, instance: u64) -> bool {
        let replaced = self.instance != 0 && self.is_other(instance);
        *self = History {
            instance,
            was_connected: true,
            tried_at: self.tried_at,
            ..History::default()
        };
        replaced
    }

    /// The connection has ended.
    pub fn ended(&mut self, loss: Loss) {
        if matches!(loss, Loss::Died | Loss::OneContext { .. }) {
            self.instance = 0;
        }
    }

    /// It is known to be there, or to have been, though there was no connection with it.
    pub fn was_heard_of(&mut self) {
        self.was_connected = true;
    }

    /// It has died, and another endpoint may come in its place: that one is tried for as long as any other.
    pub fn expect_another(&mut self) {
        self.was_connected = false;
    }

    /// Whether an endpoint with this number is another one than that of the last connection.
    pub fn is_other(&self, instance: u64) -> bool {
        self.instance != instance
    }

    pub fn was_connected(&self) -> bool {
        self.was_connected
    }

    /// The engine does not know yet that it is dead.
    pub fn has_died(&self) -> bool {
        self.died
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::op::Unreached;

    const TIMEOUT: Duration = Duration::from_millis(1000);
    const REFUSED: Push = Push::Unreachable(Unreached::Refused);

    #[test]
    fn pauses_grow_until_the_time_is_over() {
        let mut history = History::default();
        let mut pauses = Vec::new();
        let mut now = 7;
        history.begins(now);
        while let Next::Rest(ms) = history.failed(Failed::Nobody, now, TIMEOUT) {
            pauses.push(ms);
            now += ms;
            history.begins(now);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 500]);
        assert_eq!(history.failed(Failed::Otherwise, now, TIMEOUT), Next::Unreachable);
        assert_eq!(history.tried_at(), now);
        // The next push hears of it, and the one after that tries anew.
        assert!(!history.give_up(REFUSED));
        assert_eq!((history.answer(), history.answer()), (Some(REFUSED), None));
        history.begins(now);
        assert_eq!(history.failed(Failed::Nobody, now, TIMEOUT), Next::Rest(10));
    }

    #[test]
    fn there_is_hope_for_a_while() {
        let mut history = History::default();
        assert!(!history.is_hopeful(5) && !history.has_answer());
        history.begins(5);
        history.begins(900);
        assert!(history.is_hopeful(5) && history.is_hopeful(4 + HOPE_MS) && !history.is_hopeful(5 + HOPE_MS));
        history.stands(1);
        assert!(!history.is_hopeful(5));
        history.begins(5);
        history.give_up(REFUSED);
        assert!(!history.is_hopeful(5) && history.has_answer());
    }

    #[test]
    fn one_try_without_an_answer_is_enough() {
        let mut history = History::default();
        history.begins(0);
        assert_eq!(history.failed(Failed::NoAnswer, 0, TIMEOUT), Next::Unreachable);
        assert_eq!(history.failed(Failed::Nobody, 0, Duration::ZERO), Next::Unreachable);
    }

    #[test]
    fn where_a_connection_broke_and_nobody_listens_it_is_dead() {
        let mut history = History::default();
        assert!(!history.stands(5));
        history.ended(Loss::Broken);
        history.begins(0);
        assert_eq!(history.failed(Failed::Otherwise, 0, TIMEOUT), Next::Rest(10));
        assert_eq!(history.failed(Failed::Nobody, 0, TIMEOUT), Next::Dead);
        assert!(history.give_up(REFUSED) && history.has_died());
        assert_eq!(
            (history.answer(), history.answer()),
            (Some(Push::Gone), Some(Push::Gone))
        );
        // Told once for each time that it was looked for. Whoever listens there some time is nobody's successor.
        assert!(history.take_death() && !history.take_death());
        assert_eq!(history.answer(), None);
        history.begins(0);
        assert_eq!(history.failed(Failed::Nobody, 0, TIMEOUT), Next::Dead);
        history.expect_another();
        assert_eq!(history.failed(Failed::Nobody, 0, TIMEOUT), Next::Rest(10));
        assert!(!history.stands(6));
    }

    #[test]
    fn where_another_is_expected_nobody_dies_twice() {
        let mut history = History::default();
        history.stands(5);
        history.ended(Loss::Died);
        assert!(history.was_connected());
        history.expect_another();
        assert!(!history.was_connected() && !history.give_up(REFUSED));
        assert_eq!(history.answer(), Some(REFUSED));
        assert!(!history.stands(6), "the engine knows that the one before has died");
    }

    #[test]
    fn another_number_is_another_endpoint() {
        let mut history = History::default();
        history.begins(3);
        history.give_up(REFUSED);
        assert!(!history.stands(5));
        assert_eq!(history.answer(), None, "it is there after all");
        history.ended(Loss::Broken);
        assert!(history.is_other(6) && !history.is_other(5));
        assert!(!history.stands(5));
        history.ended(Loss::Silent);
        assert!(history.stands(6));
        history.dies();
        assert!(!history.stands(6) && !history.has_died());
    }

    #[test]
    fn of_two_that_connect_one_keeps_its_own() {
        let all: Vec<Vec<u8>> = ["10.0.0.1:9", "10.0.0.2:5", "10.0.0.2:7", "[::1]:1", "[::2]:1"]
            .iter()
            .map(|text| super::super::address::of(&text.parse().unwrap()))
            .collect();
        for (at, a) in all.iter().enumerate() {
            assert!(!keeps_own(a, a));
            assert!(all[at + 1..].iter().all(|b| keeps_own(a, b) != keeps_own(b, a)));
        }
    }
}
