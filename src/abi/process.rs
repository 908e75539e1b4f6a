//! The life of the process around logging and parameters: what fork waits for, and what unloading frees.
//!
//! `at_fork` is called by the entry points before they take a lock, `unload` by the library's destructor.

use crate::sys::lock::{Held, hold_across_fork};

/// Outermost first: setting up the log reads parameters while the log's lock is held.
static LOCKS: &[&dyn Held] = &[
    super::start::LOCK,
    crate::api::instances::LOCK,
    super::object::pep::LOCK,
    super::log_import::LOCK,
    crate::api::log::LOCK,
    crate::api::params::LOCK,
    super::params::LOCK,
    super::built_in::LOCK,
    super::built_in::LOCK_OF_CLOSED,
    super::built_in::LOCK_OF_SWEEP,
    super::object::request::LOCK,
];

/// Makes fork wait for these locks, so that a child finds them free and what they guard whole. Cheap after the first
/// call.
pub(crate) fn at_fork() {
    hold_across_fork(&LOCKS);
}

/// Frees what logging and parameters hold. Strings handed out to C are gone after this.
pub(crate) fn unload() {
    super::params::close();
    crate::api::params::close();
    crate::api::log::close();
}

#[cfg(test)]
mod tests {
    use crate::api::params::{self, Owner};
    use crate::sys::child::Child;
    use core::sync::atomic::{AtomicBool, Ordering};

    /// Takes the locks of `LOCKS` that can be taken without the environment, whose lock in std fork does not wait for.
    fn take_locks() {
        params::undefine(Owner(0x4000));
        crate::api::log::provider_silenced("nobody");
        crate::api::instances::closed(0);
    }

    #[test]
    fn children_find_the_locks_free() {
        static STOP: AtomicBool = AtomicBool::new(false);
        take_locks();
        let busy = std::thread::spawn(|| {
            while !STOP.load(Ordering::Relaxed) {
                take_locks();
            }
        });
        let stuck = (0..200).find(|_| Child::run(take_locks).wait() != 0);
        STOP.store(true, Ordering::Relaxed);
        busy.join().expect("no panic");
        assert_eq!(stuck, None, "a child waited for ever");
    }
}
