//! Lanes that come and go, each with a connection of its own.

use super::*;
use crate::engine::port::{NotDone, Placement};
use crate::sys::resolve::to_bytes;
use crate::transport::tcp::{Config, Passive, TcpTransport};

#[derive(Default)]
struct Ends(Vec<PeerId>);

impl Sink for Ends {
    fn place(&mut self, _: PeerId, _: &Header, _: usize) -> Placement {
        Placement::Drop
    }

    fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

    fn finished(&mut self, _: Token, _: Result<(), NotDone>) {}

    fn gone(&mut self, peer: PeerId, _: Loss) {
        self.0.push(peer);
    }
}

/// A server whose clients come and go for years has no more lanes and numbers than were in use at a time, but for some.
#[test]
fn lanes_and_numbers_are_used_again() {
    let config = Config::default();
    let any = to_bytes(&"127.0.0.1:0".parse().unwrap());
    let mut passive = Passive::open(&any, &config).unwrap();
    passive.listen(100).unwrap();
    let mut lanes = Lanes::<TcpTransport>::new(Limits::default(), Limits::default());
    let (mut ends, mut first) = (Ends::default(), None);
    for _ in 0..500 {
        let mut client = TcpTransport::open_to_call(&any, &config).unwrap();
        client.call(&passive.local_address(), b"").unwrap();
        let call = loop {
            client.poll(&mut Ends::default(), 10);
            if let Some(call) = passive.next_call() {
                break call;
            }
        };
        let mut server = TcpTransport::open_for_call(&mut Some(call), &config).unwrap();
        server.accept(b"");
        let lane = lanes.add(server);
        let mut peer = None;
        while peer.is_none() {
            client.poll(&mut Ends::default(), 10);
            lanes.poll(&mut ends, 10);
            lanes.hear_connections(|_, event, only| {
                if matches!(event, ConnectionEvent::Connected { .. }) {
                    peer = only;
                }
            });
        }
        let first = *first.get_or_insert((peer.unwrap(), lane));
        // The number of the first is held all the time.
        assert_eq!(peer == Some(first.0), lane == first.1);
        lanes.close(lane);
        lanes.poll(&mut ends, 10);
        if lanes.is_crowded() {
            lanes.forget(&|number| number == first.0);
        }
        assert_eq!(lanes.lane_of(first.0), Some(first.1));
    }
    assert_eq!(ends.0.len(), 500);
    assert!(
        lanes.lanes.len() < 200 && lanes.numbers.len() < 500 && lanes.sources.len() < 200,
        "{} lanes, {} numbers, {} sources",
        lanes.lanes.len(),
        lanes.numbers.len(),
        lanes.sources.len()
    );
}
