//! What memory has gone of late: told by whoever watches, read by each cache at its own pace.

use crate::sys::userfaultfd::Gone;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Who falls behind by more than this takes everything to have gone.
const ROOM: usize = 64;

/// Telling neither allocates, nor frees, nor waits for anybody who does: see `sys::userfaultfd`. The lock is held for a
/// few copies only.
pub struct Recent {
    count: AtomicU64,
    last: Mutex<[Gone; ROOM]>,
}

/// What was not read yet.
pub(super) enum News {
    Some(Vec<Gone>),
    /// More than is remembered.
    All,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            count: AtomicU64::new(0),
            last: Mutex::new(core::array::from_fn(|_| Gone::default())),
        }
    }
}

impl Recent {
    pub fn tell(&self, gone: Gone) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.count.load(Ordering::Relaxed);
        if let Some(place) = last.get_mut(count as usize % ROOM) {
            *place = gone;
        }
        self.count.store(count + 1, Ordering::Release);
    }

    /// Nobody can tell while it lives.
    #[cfg(test)]
    pub(super) fn hold(&self) -> impl Drop {
        self.last.lock().unwrap()
    }

    /// How much was told, ever.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// What was told since `seen`, which becomes the count of what has been read.
    pub(super) fn since(&self, seen: &mut u64) -> News {
        let (count, copy) = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            (self.count(), last.clone())
        };
        let new = count - core::mem::replace(seen, count);
        if new > ROOM as u64 {
            return News::All;
        }
        let places = (count - new..count).map(|number| number as usize % ROOM);
        News::Some(places.filter_map(|place| copy.get(place).cloned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(number: usize) -> Gone {
        Gone {
            memory: number..number + 1,
            is_mapped: false,
        }
    }

    #[test]
    fn each_reads_all_that_was_told_or_hears_that_it_is_too_much() {
        let (recent, mut seen) = (Recent::default(), 0);
        for told in [0, 1, ROOM, 3] {
            let before = recent.count() as usize;
            (before..before + told).for_each(|number| recent.tell(gone(number)));
            match recent.since(&mut seen) {
                News::Some(news) => assert!(news.into_iter().eq((before..before + told).map(gone))),
                News::All => panic!("{told} are remembered"),
            }
        }
        (0..ROOM + 1).for_each(|number| recent.tell(gone(number)));
        assert!(matches!(recent.since(&mut seen), News::All));
        assert!(matches!(recent.since(&mut seen), News::Some(news) if news.is_empty()));
    }
}
