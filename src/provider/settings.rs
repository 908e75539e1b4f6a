//! How a provider of this library reads its variables: what all of them do alike with theirs.

use crate::api::params::{self, Found, Owner, ParamType, Value};
use core::ops::RangeInclusive;

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

/// A number that the user set of a provider. In place of one that is out of range the nearest is taken, and the log
/// tells.
pub(super) fn within(provider: &'static str, name: &str, found: Found, range: RangeInclusive<usize>) -> Option<usize> {
    let number = match found {
        Ok(Value::Size(size)) => i128::try_from(size).ok()?,
        Ok(Value::Int(number)) => i128::from(number),
        _ => return None,
    };
    let (least, most) = (*range.start(), *range.end());
    let taken = usize::try_from(number.max(0)).unwrap_or(usize::MAX).clamp(least, most);
    if i128::try_from(taken) != Ok(number) {
        log!(by provider; Warn, Core, "FI_{}_{}: {number} is not from {least} to {most}, so {taken} is taken",
            provider.to_ascii_uppercase(), name.to_ascii_uppercase());
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::params::Miss;

    #[test]
    fn the_nearest_of_a_range() {
        let rows = [
            (Ok(Value::Size(3)), Some(3)),
            (Ok(Value::Size(0)), Some(1)),
            (Ok(Value::Size(usize::MAX)), Some(8)),
            (Ok(Value::Int(8)), Some(8)),
            (Ok(Value::Int(-1)), Some(1)),
            (Ok(Value::Int(i32::MAX)), Some(8)),
            (Ok(Value::Bool(true)), None),
            (Err(Miss::Unset), None),
        ];
        for (found, taken) in rows {
            assert_eq!(within("shm", "tx_size", found, 1..=8), taken);
        }
    }
}
