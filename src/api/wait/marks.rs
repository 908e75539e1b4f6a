//! What each thread has seen of an object when it last tried to wait for it.
//!
//! A thread that has read an old value, and then asks whether it may sleep, must be told of a change that another
//! thread was told of before. Called by `cntr` and `set`.

use super::Mark;
use crate::sys::thread;

/// So many threads are remembered. Who is forgotten is told of a change that there was none.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub struct Marks(Vec<(u64, Mark)>);

impl Marks {
    /// What the calling thread saw last.
    pub fn own(&self) -> Mark {
        let me = thread::own_number();
        let own = self.0.iter().find(|(number, _)| *number == me);
        own.map_or(Mark::default(), |(_, mark)| *mark)
    }

    /// Remembers what the calling thread sees now, and returns what it saw before.
    pub fn replace(&mut self, mark: Mark) -> Mark {
        let me = thread::own_number();
        if let Some((_, before)) = self.0.iter_mut().find(|(number, _)| *number == me) {
            return core::mem::replace(before, mark);
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((me, mark));
        Mark::default()
    }
}
