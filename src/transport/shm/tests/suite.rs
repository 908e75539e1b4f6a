//! The suite that every transport must pass, between two endpoints of one process.

use super::*;
use crate::transport::tests::suite::{Ends, Pair};

impl Pair for ShmTransport {
    fn pair() -> Ends<ShmTransport> {
        let dir = Dir::new();
        let (mut a, mut b) = (dir.open("a"), dir.open("b"));
        let (b_of_a, a_of_b) = (a.peer(b"b").unwrap(), b.peer(b"a").unwrap());
        Ends {
            a,
            b,
            b_of_a,
            a_of_b,
            keep: Box::new(dir),
        }
    }
}

crate::transport::tests::suite::tests!(ShmTransport);
