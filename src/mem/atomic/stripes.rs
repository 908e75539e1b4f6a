//! The locks for elements that are not native: too large, or unaligned.
//!
//! The cache line of an address selects one of a fixed number of locks. An element takes the locks of all lines it
//! touches, lower index first, so any two elements that share a byte share a lock, whatever their types. The locks
//! belong to this process: they order only operations that this process executes.

use crate::util::lock::{Guard, OptLock};

const LINE: usize = 64;
const COUNT: usize = 64;

#[repr(align(64))]
struct Stripe(OptLock<()>);

static STRIPES: [Stripe; COUNT] = [const { Stripe(OptLock::new((), true)) }; COUNT];

fn lock(index: usize) -> Guard<'static, ()> {
    STRIPES[index % COUNT].0.lock()
}

/// Takes the locks of `len` bytes at `addr`. No element touches more than two lines.
fn hold(addr: usize, len: usize) -> (Guard<'static, ()>, Option<Guard<'static, ()>>) {
    debug_assert!(len <= LINE);
    let first = addr / LINE % COUNT;
    let last = addr.wrapping_add(len.saturating_sub(1)) / LINE % COUNT;
    let low = lock(first.min(last));
    (low, (first != last).then(|| lock(first.max(last))))
}

/// Replaces the element by what `change` returns, or leaves it if that is None. Returns the old value.
///
/// # Safety
/// The element's bytes are readable, and writable unless `change` returns None.
#[inline]
pub(super) unsafe fn update<W: Copy>(at: *mut W, change: impl Fn(W) -> Option<W>) -> W {
    let _held = hold(at.addr(), size_of::<W>());
    // SAFETY: the caller promises readable bytes, and the access is unaligned. The locks exclude other operations of
    // ours.
    let old = unsafe { at.read_unaligned() };
    if let Some(new) = change(old) {
        // SAFETY: the caller promises writable bytes if `change` returns a value.
        unsafe { at.write_unaligned(new) };
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_share_a_byte_share_a_lock() {
        let taken = |index: usize| STRIPES[index].0.try_lock().is_none();
        for addr in [
            LINE * COUNT - 8,
            LINE * COUNT - 1,
            LINE * 5 + 56,
            LINE * 5 + 63,
            LINE * 7,
        ] {
            let held = hold(addr, 16);
            for byte in addr..addr + 16 {
                assert!(taken(byte / LINE % COUNT));
            }
            drop(held);
        }
    }
}
