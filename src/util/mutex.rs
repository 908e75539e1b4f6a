//! The standard library's mutex; in the models of `abi-tests/loom` loom's, which tries every order of its holders. For
//! what has a model. Knows nobody.

#[cfg(all(test, loom))]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub use std::sync::{Mutex, MutexGuard};

use std::sync::PoisonError;

/// What a thread that panicked has left is taken as it is.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
