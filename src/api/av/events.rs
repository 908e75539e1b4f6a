//! What an address vector opened with FI_EVENT tells an event queue.

use crate::api::errno::Errno;

/// An event queue as an address vector sees it. Called without any lock of the vector.
pub trait Events: Send + Sync {
    /// An insertion has ended, with so many addresses inserted: FI_AV_COMPLETE. After its errors, exactly once.
    fn complete(&self, context: usize, count: u64);

    /// The address at this place of the insertion was not inserted: an error entry with `index` as its data.
    fn error(&self, context: usize, index: u64, err: Errno);

    /// The vector was bound to the queue, which is in use from now on.
    fn attached(&self) {}

    /// The vector was closed.
    fn detached(&self) {}
}
