use super::*;
use crate::engine::tests::sim::{Connected, World};
use crate::transport::tests::suite::{Ends, Pair};

impl Pair for Stream {
    fn pair() -> Ends<Stream> {
        let [a, b] = <[Stream; 2]>::try_from(Stream::connected(2, 7)).unwrap_or_else(|_| unreachable!());
        Ends {
            a,
            b,
            b_of_a: 1,
            a_of_b: 0,
            keep: Box::new(()),
        }
    }
}

impl Connected for Stream {
    const BREAKS: bool = true;

    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<Stream> {
        Stream::connected(nodes, world.borrow_mut().roll(u64::MAX))
    }

    fn is_quiet(&self) -> bool {
        Stream::is_quiet(self)
    }

    fn die(&mut self) {
        Stream::die(self);
    }

    fn break_off(&mut self, peer: PeerId) {
        Stream::break_off(self, peer);
    }
}

crate::transport::tests::suite::tests!(Stream);
crate::engine::tests::random::over!(Stream);
