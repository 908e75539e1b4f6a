//! A count that is given back too often is none, and does not wrap.

use super::*;

#[test]
fn the_count_never_goes_below_nothing() {
    let refs = Refs::default();
    refs.acquire();
    refs.acquire();
    refs.release();
    assert_eq!(refs.count(), 1);
    refs.release();
    refs.release();
    assert_eq!(refs.count(), 0);
}
