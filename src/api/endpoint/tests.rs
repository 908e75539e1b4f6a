//! What an endpoint is to its domain's memory while it is opened and closed.

use super::*;
use crate::api::av::string::StringAddr;
use crate::api::av::{Av, AvAttr};
use crate::api::cq::Cq;
use crate::api::domain::Fabric;
use crate::api::info::model::DomainAttr;
use crate::engine::port::{Body, Exposed, ExposedName, Get, Limits, Notice, Push, Remote, Sink, Token, Transport};
use crate::engine::wire::Header;
use crate::transport::tests::loopback::LIMITS;
use core::sync::atomic::{AtomicBool, Ordering};

type Hook = Box<dyn Fn() + Send>;

/// A transport to nobody, which says when it is polled and when it ends.
pub(super) struct Hooked {
    polled: Hook,
    ended: Hook,
}

impl Hooked {
    pub(super) fn polled(hook: impl Fn() + Send + 'static) -> Hooked {
        Hooked {
            polled: Box::new(hook),
            ended: Box::new(|| ()),
        }
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        (self.ended)();
    }
}

impl Transport for Hooked {
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
        (self.polled)();
        0
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}

impl EndpointTransport for Hooked {
    fn local_address(&self) -> Vec<u8> {
        Vec::new()
    }

    fn renamed(&self, _: &[u8]) -> Result<Renamed<Hooked>> {
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

struct Bed {
    domain: Arc<Domain>,
    av: Arc<Av>,
    info: Info,
}

impl Bed {
    fn new() -> Bed {
        let info = Info {
            caps: FI_RMA,
            domain: Some(DomainAttr::default()),
            ..Info::default()
        };
        let domain = Domain::open(&Fabric::new("any", 0), &info).ok().unwrap();
        let av = Av::open(&AvAttr::default(), Arc::new(StringAddr::of("fi_any")), &domain.av);
        Bed {
            av: av.ok().unwrap(),
            domain,
            info,
        }
    }

    fn bound(&self, transport: Hooked) -> (Arc<Endpoint<Hooked>>, Arc<Cq>) {
        let endpoint = Endpoint::new(&self.domain, &self.info, transport);
        let cq = crate::api::cq::tests::open(FI_WAIT_NONE);
        endpoint.bind_av(&self.av).unwrap();
        endpoint.bind_cq(&cq, FI_TRANSMIT | FI_RECV).unwrap();
        (endpoint, cq)
    }
}

/// Who is in a call of the endpoint meanwhile may be working on a region.
#[test]
fn closing_a_region_waits_for_an_endpoint_until_that_has_ended() {
    let bed = Bed::new();
    let waited_for = Arc::new(AtomicBool::new(false));
    let (seen, domain) = (waited_for.clone(), bed.domain.clone());
    let (endpoint, _cq) = bed.bound(Hooked {
        polled: Box::new(|| ()),
        ended: Box::new(move || seen.store(domain.memory.waited_for() == 1, Ordering::SeqCst)),
    });
    endpoint.enable().unwrap();
    endpoint.close().unwrap();
    assert!(waited_for.load(Ordering::SeqCst) && bed.domain.memory.waited_for() == 0);
}

#[test]
fn closing_a_region_waits_for_an_endpoint_before_anything_drives_that() {
    let bed = Bed::new();
    for _ in 0..2000 {
        let domain = bed.domain.clone();
        let transport = Hooked::polled(move || assert_eq!(domain.memory.waited_for(), 1));
        let (endpoint, cq) = bed.bound(transport);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let _ = cq.read_each(1, |_| ());
                }
            });
            endpoint.enable().unwrap();
            done.store(true, Ordering::Release);
            reader.join().unwrap();
        });
        endpoint.close().unwrap();
    }
}
