//! How many descriptors this process may have. Knows nothing of what they are for. Called by `transport`.

use std::io;

/// Raises the soft limit to the hard one, which then is the new one; None: it stays as it is. The soft limit is low by
/// default for programs that use select(2), so it is raised only for those that need more.
pub fn raise_limit() -> Option<u64> {
    let mut limit = limit().filter(|limit| limit.rlim_cur < limit.rlim_max)?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: a structure of ours, read by the call.
    (unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } == 0).then_some(limit.rlim_max)
}

/// Whether a call that has failed for want of descriptors may do better now, because the soft limit was raised.
pub fn has_raised_limit(error: &io::Error, tell: fn(&str)) -> bool {
    let raised = (error.raw_os_error() == Some(libc::EMFILE)).then(raise_limit).flatten();
    if let Some(most) = raised {
        tell(&format!(
            "the process had as many open files as it may: its soft limit is raised to the hard one, {most} (ulimit -n)"
        ));
    }
    raised.is_some()
}

/// The soft limit.
pub fn most() -> u64 {
    limit().map_or(0, |limit| limit.rlim_cur)
}

/// Both limits of this process.
#[cfg(test)]
pub fn set_limits(soft: u64, hard: u64) {
    let limits = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: a structure of ours, read by the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) }, 0);
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
            set_limits(32, 64);
            assert_eq!((most(), raise_limit(), most(), raise_limit()), (32, Some(64), 64, None));
        });
        assert_eq!(child.wait(), 0);
    }
}
