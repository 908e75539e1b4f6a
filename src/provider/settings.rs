//! How a provider of this library reads its variables: what `shm` and `tcp` do alike with theirs.

use crate::api::params::{self, Found, Owner, ParamType, Value};

/// What an endpoint's queues can be asked to hold.
pub(super) const QUEUE_MAX: usize = 1 << 20;

/// A variable: its name behind FI_PROVIDER_, its kind, and a line of help.
pub(super) type Variable = (&'static str, ParamType, &'static str);

/// Makes a provider's variables known, and hands `read` what the user set.
pub(super) fn define<S>(
    owner: Owner,
    provider: &str,
    variables: &[Variable],
    read: impl FnOnce(&dyn Fn(&str) -> Found) -> S,
) -> S {
    for (name, kind, help) in variables {
        // The names are none of an application's, so nothing can be wrong with them.
        let _ = params::define(owner, provider, name, *kind, help);
    }
    read(&|name| {
        let found = params::get(owner, name);
        params::tell(name, &found);
        found
    })
}

/// A size that the user set, if it makes sense.
pub(super) fn size(found: Found) -> Option<usize> {
    match found {
        Ok(Value::Size(size)) => Some(size),
        _ => None,
    }
}

/// The same for the length of an endpoint's queue.
pub(super) fn queue(found: Found) -> Option<usize> {
    size(found).map(|size| size.clamp(1, QUEUE_MAX))
}
