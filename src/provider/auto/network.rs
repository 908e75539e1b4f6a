//! The network of an `auto` endpoint: a device for the peers that it leads to, and tcp for the others.
//!
//! Both listen at one address and port. Whether a device does is told in the endpoint's name (`address`). Called by
//! `endpoint`.

use super::address::Address;
use super::sleep::both;
use super::{AutoDomain, NAME};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::engine::port::PeerId;
use crate::provider::tcp;
use crate::provider::verbs::network::{CardTransport, Network};
use crate::sys::epoll::Epoll;
use crate::transport::connecting::address;
use crate::transport::join::{Join, Naming};
use crate::transport::shm;
use crate::transport::tcp::{Secret, TcpTransport};
use std::net::{Ipv4Addr, SocketAddr};

/// How often a port is looked for that is free for both.
const TRIES: usize = 8;

pub struct NetworkNames {
    /// Readable when the device or tcp is; None: there is no device.
    both: Option<Epoll>,
}

pub(super) type NetworkTransport = Join<NetworkNames>;

impl NetworkNames {
    pub(super) fn both(&self) -> Option<&Epoll> {
        self.both.as_ref()
    }
}

impl Naming for NetworkNames {
    type Near = CardTransport;
    type Far = TcpTransport;

    const NEAR_MAY_FAIL: bool = true;
    /// Less than usual: while only shared memory is in use, the device is polled once in `Names::LOOK_EVERY` polls, and
    /// tcp once in so many of those.
    const LOOK_EVERY: u32 = 16;

    fn near(&self, address: &[u8]) -> Option<Vec<u8>> {
        Some(address::of(&Address::of(address)?.card()?))
    }

    fn far(&self, address: &[u8]) -> Option<Vec<u8>> {
        Address::of(address)?.network()
    }

    fn met_near(&self, near: &CardTransport, peer: PeerId) -> Option<Vec<u8>> {
        Some(Address::met(near.address(peer)?, near.instance_of(peer)?)?.text())
    }

    fn met_far(&self, far: &TcpTransport, peer: PeerId) -> Option<Vec<u8>> {
        Some(Address::met(far.address(peer)?, far.instance_of(peer)?)?.text())
    }

    fn base<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        shm::base(address)
    }

    fn chosen(&self, address: &[u8], near: bool) {
        let (way, text) = (if near { "verbs" } else { "tcp" }, String::from_utf8_lossy(address));
        log!(by NAME; Debug, EpCtrl, "{text} is reached by {way}");
    }

    fn left(&self, address: &[u8]) {
        let text = String::from_utf8_lossy(address);
        log!(by NAME; Info, EpCtrl, "{text} is not reached by verbs, and so by tcp");
    }

    fn ended(&self, near: usize, far: usize) {
        if self.both.is_some() && near + far > 0 {
            log!(by NAME; Info, EpCtrl, "fi_close: of the network's peers {near} were reached by verbs, {far} by tcp");
        }
    }
}

/// The network of an endpoint, and where that has come to be. A device is used if there is one at the wanted place.
pub(super) fn open(
    own: &Address,
    is_drawn: bool,
    domain: &AutoDomain,
    secret: Option<&Secret>,
) -> Result<(NetworkTransport, Address)> {
    // An endpoint of a name that others know has what that says.
    let may_have_card = own.context == 0 && (is_drawn || own.with_card(true) == *own);
    let mut network = domain.card.as_ref().filter(|_| may_have_card);
    if secret.is_some() && network.take().is_some() {
        log!(by NAME; Info, EpCtrl, "fi_endpoint: with a secret the RDMA device is not used, to which none is proven");
    }
    for _ in 0..TRIES {
        let Some((card, place)) = network.and_then(|network| open_card(network, own)) else {
            break;
        };
        let there = Address {
            place: Some(place),
            ..own.with_card(true)
        };
        match open_tcp(&there, secret) {
            Ok(far) => return joined(Some(card), far, there),
            Err(Errno(FI_EADDRINUSE)) if own.place.is_none_or(|place| place.port() == 0) => {}
            Err(error) => return Err(error),
        }
    }
    let own = if is_drawn { own.with_card(false) } else { *own };
    let usual = || tcp::usual_place().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let there = Address {
        place: Some(own.place.unwrap_or_else(usual)),
        ..own
    };
    joined(None, open_tcp(&there, secret)?, there)
}

/// An endpoint of the device, and where it listens. None: the device is not at the wanted place, or does not open
/// there.
fn open_card(network: &Network, own: &Address) -> Option<(CardTransport, SocketAddr)> {
    let at = match own.place {
        Some(place) if network.places().iter().any(|one| one.ip() == place.ip()) => place,
        Some(_) => return None,
        None => {
            let mut best = tcp::best_of(network.places())?;
            best.set_port(0);
            best
        }
    };
    let card = network.open(&at, own.with_card(true).instance()).ok()?;
    let place = card.place();
    Some((card, place))
}

fn open_tcp(own: &Address, secret: Option<&Secret>) -> Result<TcpTransport> {
    let address = own.network().ok_or(Errno(FI_EINVAL))?;
    tcp::open_as(&address, own.instance(), secret.cloned())
}

fn joined(card: Option<CardTransport>, far: TcpTransport, own: Address) -> Result<(NetworkTransport, Address)> {
    let own = own.listening_at(&far.local_address());
    let both = both(card.as_ref(), Some(&far))?;
    Ok((Join::new(NetworkNames { both }, card, Some(far)), own))
}

#[cfg(test)]
mod tests {
    use super::super::sleep::Sleeps;
    use super::*;
    use crate::api::info::model::Info;
    use crate::engine::port::{Body, Loss, NotDone, Placement, Push, Sink, Token, Transport};
    use crate::engine::wire::{Header, Packet};
    use crate::provider::tcp::DomainKey;
    use crate::sys::resolve::to_bytes;
    use crate::transport::tcp::Config;
    use std::time::{Duration, Instant};

    /// Counts the packets and the ends of connections.
    #[derive(Default)]
    struct Counted {
        packets: usize,
        gone: usize,
    }

    impl Sink for Counted {
        fn place(&mut self, _: PeerId, _: &Header, _: usize) -> Placement {
            self.packets += 1;
            Placement::Drop
        }

        fn placed(&mut self, _: Token, _: Option<Vec<u8>>) {}

        fn finished(&mut self, _: Token, _: core::result::Result<(), NotDone>) {}

        fn gone(&mut self, _: PeerId, _: Loss) {
            self.gone += 1;
        }
    }

    /// Whoever is no endpoint of `auto` is not heard, and keeps nobody awake. An instance of `auto` is below `NAMES`.
    #[test]
    fn who_has_no_name_is_left() {
        let key = DomainKey::of(&Info::default()).unwrap();
        let domain = AutoDomain { key, card: None };
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let own = Address {
            name: 5,
            place: Some(any),
            context: 0,
        };
        let (mut end, at) = open(&own, true, &domain, None).unwrap();
        for (instance, packets, gone) in [(77, 1, 0), (u64::MAX, 0, 1)] {
            let config = Config {
                instance: Some(instance),
                ..Config::default()
            };
            let mut other = TcpTransport::open(&to_bytes(&any), &config).unwrap();
            let to = other.peer(&at.network().unwrap()).unwrap();
            let (mut here, mut there) = (Counted::default(), Counted::default());
            let mut pushed = false;
            let start = Instant::now();
            while (here.packets, there.gone) != (packets, gone) || !Sleeps::arm(&mut end) {
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "{instance}: {} came",
                    here.packets
                );
                pushed = pushed || other.push(to, &Header::new(Packet::Eager, 1), Body::Empty, None) == Push::Done;
                other.poll(&mut there, 10);
                other.flush();
                end.poll(&mut here, 10);
                end.flush();
            }
        }
    }
}
