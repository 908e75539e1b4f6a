//! When the way that was found to be slower is tried again, as only what goes that way shows how quick it is.
//!
//! The hypervisor or the scheduler may move a process at any time, so it must be tried; but a message of 32 KiB may take four
//! times as long that way, and one in 64 of those is 5 percent of all. So the longer it has stayed the slower one, the more
//! seldom it is tried. Called by `ring_or_kernel` and `streaming`.

/// One of so many is tried at first, and of twice as many after each trial, to this most.
const FIRST: u16 = 64;
const MOST: u16 = 512;

#[derive(Debug)]
pub(super) struct Trials {
    /// So many go the quicker way before the next trial.
    left: u16,
    /// The trial after that is the one of so many.
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
    /// The first is tried at once, where nothing is known.
    pub(super) fn at_once() -> Trials {
        Trials { left: 0, each: FIRST }
    }

    /// Asked for each that could go either way: whether it is to be a trial.
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
