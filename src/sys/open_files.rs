//! How many descriptors this process may have. Knows nothing of what they are for. Called by `transport`.

use std::sync::Once;

/// Raises the soft limit to the hard one, once. The soft limit is low by default for programs that use select(2).
pub fn raise_limit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(mut limit) = limit().filter(|limit| limit.rlim_cur < limit.rlim_max) {
            limit.rlim_cur = limit.rlim_max;
            // SAFETY: a structure of ours, read by the call.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
        }
    });
}

/// The soft limit.
pub fn most() -> u64 {
    limit().map_or(0, |limit| limit.rlim_cur)
}

fn limit() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a structure of ours, filled by the call.
    (unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let child = Child::run(|| {
            let low = libc::rlimit {
                rlim_cur: 32,
                rlim_max: 64,
            };
            // SAFETY: a structure of ours, read by the call.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &low) }, 0);
            raise_limit();
            assert_eq!(most(), 64);
        });
        assert_eq!(child.wait(), 0);
    }
}
