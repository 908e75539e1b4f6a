//! The suite of all transports, over IPv4, over IPv6, where the kernel takes a few KiB at a time, and between endpoints
//! with one peer.

use super::*;
use crate::transport::tests::suite::{Ends, Pair};

/// Less than one long body has.
fn some_room() -> Config {
    Config {
        kernel_buffer: Some(32 << 10),
        ..config()
    }
}

fn ends(place: &str, config: &Config) -> Ends<TcpTransport> {
    let [mut a, mut b] = [(); 2].map(|()| open_at(place, config));
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    Ends {
        a,
        b,
        b_of_a,
        a_of_b,
        keep: Box::new(()),
    }
}

mod ipv4 {
    use super::*;

    impl Pair for TcpTransport {
        fn pair() -> Ends<TcpTransport> {
            ends("127.0.0.1:0", &some_room())
        }
    }

    crate::transport::tests::suite::tests!(TcpTransport);
}

/// Another type for the same transport with other settings.
macro_rules! variant {
    ($module:ident, $ends:expr) => {
        mod $module {
            use super::*;

            struct Other(TcpTransport);

            impl Transport for Other {
                const PUSHES_LATER: bool = true;
                fn limits(&self) -> Limits {
                    self.0.limits()
                }
                fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
                    self.0.peer(address)
                }
                fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
                    self.0.push(to, header, body, notice)
                }
                fn gather(&mut self) {
                    self.0.gather();
                }
                fn flush(&mut self) {
                    self.0.flush();
                }
                fn holds_back(&mut self, to: PeerId) -> bool {
                    self.0.holds_back(to)
                }
                fn abandon(&mut self, peer: PeerId) -> bool {
                    self.0.abandon(peer)
                }
                fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
                    self.0.poll(sink, budget)
                }
                fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
                    self.0.expose(to, iov, name)
                }
                fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
                    Get::Unsupported
                }
            }

            impl Pair for Other {
                fn pair() -> Ends<Other> {
                    let ends = $ends;
                    Ends {
                        a: Other(ends.a),
                        b: Other(ends.b),
                        b_of_a: ends.b_of_a,
                        a_of_b: ends.a_of_b,
                        keep: ends.keep,
                    }
                }
            }

            crate::transport::tests::suite::tests!(Other);
        }
    };
}

variant!(ipv6, ends("[::1]:0", &some_room()));
variant!(one_peer, super::super::one_peer::ends(&some_room()));
variant!(
    little_by_little,
    ends(
        "127.0.0.1:0",
        &Config {
            kernel_buffer: Some(4 << 10),
            // Both ends are in one thread: while one closes, nobody reads what it has left to send.
            linger: Duration::from_millis(10),
            ..config()
        }
    )
);
