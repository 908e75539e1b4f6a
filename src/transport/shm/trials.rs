//! When a way that was found to be slower is tried again, as only what goes that way shows how quick it is by now.
//!
//! The hypervisor or the scheduler may move a process at any time, so trials never end. But a message of 32 KiB may
//! take four times as long that way, and trying one in 64 then costs 5 percent of the time of all. So the longer a way
//! has stayed the slower one, the more seldom it is tried. Called by `ring_or_kernel` and `streaming`.

/// At first one in so many is a trial.
const FIRST: u16 = 64;
/// After each trial it is one in twice as many, up to this.
const MOST: u16 = 512;

#[derive(Debug)]
pub(super) struct Trials {
    /// How many go the quicker way before the next trial.
    left: u16,
    /// The trial after that is one in so many.
    each: u16,
}

impl Default for Trials {
    fn default() -> Trials {
        Trials {
            left: FIRST - 1,
            each: FIRST,
        }
    }
}

impl Trials {
    /// Trials whose first is due at once, where nothing is known yet.
    pub(super) fn at_once() -> Trials {
        Trials { left: 0, each: FIRST }
    }

    /// Called for each body that could go either way: whether this one is a trial.
    pub(super) fn is_due(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.left = self.each - 1;
        self.each = (2 * self.each).min(MOST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(mut trials: Trials, of: usize) -> Vec<usize> {
        (0..of).filter(|_| trials.is_due()).collect()
    }

    #[test]
    fn trials_become_fewer_but_never_end() {
        assert_eq!(due(Trials::default(), 2000), [63, 127, 255, 511, 1023, 1535]);
        assert_eq!(due(Trials::at_once(), 600), [0, 64, 192, 448]);
    }
}
