//! How much memory a process may lock (RLIMIT_MEMLOCK), which is what devices work on. Called by `api` and `provider`.

/// Behind the text of an error: what can be done about it, if that is the limit.
pub fn advice(errno: i32) -> String {
    advice_with(errno, limit())
}

/// In bytes; None: as much as it wants, or nobody knows.
fn limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a structure of ours, filled by the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn advice_with(errno: i32, limit: Option<u64>) -> String {
    match (errno, limit) {
        (libc::ENOMEM | libc::EAGAIN, Some(limit)) => format!(
            "; devices work on locked memory, of which this process may have {} KiB (RLIMIT_MEMLOCK): raise it with \
             `ulimit -l unlimited`, memlock in /etc/security/limits.conf, or LimitMEMLOCK=infinity of a systemd unit",
            limit / 1024
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_with_what_raises_it() {
        let text = advice_with(libc::ENOMEM, Some(8 << 20));
        for part in ["8192 KiB", "RLIMIT_MEMLOCK", "ulimit -l", "limits.conf", "LimitMEMLOCK"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(advice_with(libc::ENOMEM, None), "");
        assert_eq!(advice_with(libc::EINVAL, Some(1)), "");
    }
}
