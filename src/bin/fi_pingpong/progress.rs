//! How far a long run is, on a terminal. What is measured must not notice: until it is time for the next look at the
//! clock a message costs one comparison.
//!
//! Knows no fabric. Called by `run`.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A run that is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two lines, about.
const PAUSE: Duration = Duration::from_millis(250);

/// Of one size.
pub struct Progress {
    size: usize,
    total: u64,
    start: Instant,
    /// How many messages are done at the next look.
    next: u64,
    shown: bool,
}

impl Progress {
    /// Shown if stderr is a terminal.
    pub fn new(size: usize, total: u64) -> Progress {
        Progress {
            size,
            total,
            start: Instant::now(),
            next: if io::stderr().is_terminal() { 1 } else { u64::MAX },
            shown: false,
        }
    }

    /// So many messages are done.
    #[inline]
    pub fn done(&mut self, done: u64) {
        if done >= self.next {
            self.look(done);
        }
    }

    #[cold]
    fn look(&mut self, done: u64) {
        let elapsed = self.start.elapsed();
        self.next = next_look(done, elapsed);
        if elapsed >= PATIENCE {
            self.shown = true;
            let _ = write!(io::stderr(), "\r{}", line(self.size, done, self.total));
        }
    }
}

/// The line goes before a result is printed, or an error.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r{:WIDTH$}\r", "");
        }
    }
}

const WIDTH: usize = 60;

fn line(size: usize, done: u64, total: u64) -> String {
    let hundredths = done.saturating_mul(100) / total.max(1);
    let text = format!("{size} bytes: {done} of {total}, {hundredths} %");
    format!("{text:<WIDTH$.WIDTH$}")
}

/// After as many again at first, so that a short run looks at the clock a few times only; then after as many as take
/// the pause.
fn next_look(done: u64, elapsed: Duration) -> u64 {
    let step = if elapsed < PATIENCE {
        done
    } else {
        (done as f64 * PAUSE.as_secs_f64() / elapsed.as_secs_f64()) as u64
    };
    done.saturating_add(step.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_few_and_then_regular() {
        assert_eq!(next_look(1, Duration::ZERO), 2);
        assert_eq!(next_look(512, Duration::from_millis(999)), 1024);
        // A thousand a second: a quarter of a second is 250.
        assert_eq!(next_look(2000, Duration::from_secs(2)), 2250);
        assert_eq!(next_look(1, Duration::from_secs(9)), 2);
        assert_eq!(next_look(u64::MAX, Duration::from_secs(9)), u64::MAX);
    }

    #[test]
    fn a_line_covers_the_one_before() {
        assert_eq!(line(64, 500, 2000).trim_end(), "64 bytes: 500 of 2000, 25 %");
        for (size, done, total) in [(1, 0, 0), (usize::MAX, u64::MAX, u64::MAX)] {
            assert_eq!(line(size, done, total).len(), WIDTH);
        }
    }

    /// Tests have no terminal, or one that they are not to write to.
    #[test]
    fn what_is_not_shown_is_not_looked_at() {
        let mut progress = Progress {
            next: u64::MAX,
            ..Progress::new(64, 10)
        };
        (1..=10).for_each(|done| progress.done(done));
        assert_eq!((progress.next, progress.shown), (u64::MAX, false));
    }
}
