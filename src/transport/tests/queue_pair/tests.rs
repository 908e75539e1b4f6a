//! The suite on cards, and what only cards do.

use super::*;
use crate::transport::tests::suite::{Ends, Pair};

impl Pair for QueuePair {
    fn pair() -> Ends<QueuePair> {
        let fabric = Fabric::default();
        let (mut a, mut b) = (fabric.open(b"a"), fabric.open(b"b"));
        let (b_of_a, a_of_b) = (a.peer(b"b").unwrap(), b.peer(b"a").unwrap());
        Ends {
            a,
            b,
            b_of_a,
            a_of_b,
            keep: Box::new(()),
        }
    }
}

crate::transport::tests::suite::tests!(QueuePair);
