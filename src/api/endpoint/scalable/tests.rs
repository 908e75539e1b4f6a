use super::super::Renamed;
use super::*;
use crate::api::domain::Fabric;
use crate::api::endpoint::state::Settings;
use crate::api::info::model::{DomainAttr, EpAttr};
use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Notice, PeerId, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::transport::tests::loopback::LIMITS;
use std::os::fd::RawFd;

/// Whether a context sends messages, and whether it receives them.
fn messages(caps: u64, direction: Direction) -> (bool, bool) {
    let info = Info {
        caps,
        ..Info::default()
    };
    let settings = Settings::of(&only(&info, direction));
    (settings.can_send, settings.can_recv)
}

#[test]
fn contexts_have_the_messages_of_their_direction() {
    for (caps, transmit, receive) in [
        (FI_MSG, (true, false), (false, true)),
        (FI_TAGGED | FI_SEND | FI_RECV, (true, false), (false, true)),
        (FI_MSG | FI_RMA | FI_ATOMIC, (true, false), (false, true)),
        (FI_COLLECTIVE, (true, false), (false, true)),
        (FI_RMA, (false, false), (false, false)),
        (FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV, (false, false), (false, false)),
    ] {
        assert_eq!(messages(caps, Direction::Transmit), transmit, "{caps:#x}");
        assert_eq!(messages(caps, Direction::Receive), receive, "{caps:#x}");
    }
}

#[test]
fn contexts_for_memory_have_that_of_their_direction() {
    for direction in [Direction::Transmit, Direction::Receive] {
        let transmits = direction == Direction::Transmit;
        let info = Info {
            caps: FI_RMA | FI_ATOMIC,
            ..Info::default()
        };
        let settings = Settings::of(&only(&info, direction));
        let found = (settings.can_read, settings.can_write, settings.is_target);
        assert_eq!(found, (transmits, transmits, !transmits));
    }
}

/// A transport that finds out whether two threads poll it at once.
#[derive(Default)]
struct Turnstile {
    inside: Arc<AtomicBool>,
}

impl Transport for Turnstile {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn peer(&mut self, _: &[u8]) -> Option<PeerId> {
        None
    }

    fn push(&mut self, _: PeerId, _: &Header, _: Body<'_>, _: Option<Notice>) -> Push {
        Push::Gone
    }

    fn poll<S: Sink>(&mut self, _: &mut S, _: usize) -> usize {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two threads poll it at once");
        (0..50).for_each(|_| core::hint::spin_loop());
        self.inside.store(false, Ordering::SeqCst);
        0
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}

impl EndpointTransport for Turnstile {
    fn local_address(&self) -> Vec<u8> {
        Vec::new()
    }

    fn renamed(&self, _: &[u8]) -> Result<Renamed<Turnstile>> {
        Ok(Renamed::default())
    }

    fn address_of(&self, _: PeerId) -> Option<&[u8]> {
        None
    }

    fn context_address(address: &[u8], _: usize) -> Vec<u8> {
        address.to_vec()
    }

    fn base_address(address: &[u8]) -> &[u8] {
        address
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        address.to_vec()
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    fn wake(&self) {}
}

/// One that has no queue is driven by the queues of several transmit contexts, which several threads may read.
#[test]
fn threads_meet_in_a_context_without_a_queue_at_every_threading_level() {
    for threading in [FI_THREAD_SAFE, FI_THREAD_COMPLETION] {
        let info = Info {
            caps: FI_RMA | FI_ATOMIC,
            ep: Some(EpAttr {
                tx_ctx_cnt: 2,
                rx_ctx_cnt: 1,
                ..EpAttr::default()
            }),
            domain: Some(DomainAttr {
                threading,
                ..DomainAttr::default()
            }),
            ..Info::default()
        };
        let fabric = Fabric::new("any", 0);
        let domain = Domain::open(&fabric, &info).ok().unwrap();
        let more = Box::new(|_: &[u8]| Ok(Turnstile::default()));
        let whole = Scalable::open(&domain, &info, Turnstile::default(), more).ok().unwrap();
        let alone = whole.rx[0].endpoint.as_progress();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..100_000).for_each(|_| alone.progress()));
            }
        });
    }
}
