//! Each wait object: what it tells of itself, whether a call can sleep on it, and what FI_GETWAIT gives for it.

use super::*;
use crate::abi::types::{FI_WAIT_UNSPEC, FI_WAIT_YIELD};

#[test]
fn each_object_says_what_it_is_and_what_it_is_made_of() {
    let table = [
        (FI_WAIT_NONE, Ok(FI_WAIT_NONE), false),
        (FI_WAIT_UNSPEC, Ok(FI_WAIT_FD), true),
        (FI_WAIT_FD, Ok(FI_WAIT_FD), true),
        (FI_WAIT_POLLFD, Ok(FI_WAIT_POLLFD), true),
        (FI_WAIT_MUTEX_COND, Ok(FI_WAIT_MUTEX_COND), true),
        (FI_WAIT_YIELD, Ok(FI_WAIT_YIELD), true),
    ];
    for (object, told, blocks) in table {
        let wait = Wait::open(object, None).unwrap();
        assert_eq!(wait.object(), told, "{object}");
        assert_eq!(wait.blocking().is_ok(), blocks, "{object}");
        let fits = matches!(
            (object, wait.handle()),
            (FI_WAIT_UNSPEC | FI_WAIT_FD, Ok(Handle::Fd(_)))
                | (FI_WAIT_POLLFD, Ok(Handle::PollFds { .. }))
                | (FI_WAIT_MUTEX_COND, Ok(Handle::MutexCond { .. }))
                | (FI_WAIT_NONE | FI_WAIT_YIELD, Err(Errno(FI_ENODATA)))
        );
        assert!(fits, "{object}");
    }
    assert_eq!(Wait::open(FI_WAIT_SET, None).err(), Some(Errno(FI_EINVAL)));
    assert_eq!(Wait::open(99, None).err(), Some(Errno(FI_EINVAL)));
}
