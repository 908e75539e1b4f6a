//! A provider with connected endpoints, to start from: what `example` is for the others. Its endpoints are those of one
//! process, over the transport `joined`. `tests` goes through the C ABI.

use super::types::*;
use crate::api::av::string::{name, text};
use crate::api::av::{AddressKind, StringAddr};
use crate::api::endpoint::connection::{ConnectionEvent, Connects};
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::api::passive::{Incoming, Listener, Request};
use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Notice, PeerId, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::provider::connected::Connected;
use crate::provider::on_engine::{OnEngine, Rdm};
use crate::transport::tests::joined::{Call, Joined, Network, News};
use crate::transport::tests::loopback::LIMITS;
use crate::util::ready::Ready;
use crate::util::user::UserIov;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

mod tests;

/// Where all endpoints of the process meet.
static NETWORK: LazyLock<Network> = LazyLock::new(Network::default);

pub(super) struct Calls;

/// What a domain's endpoints share: here only numbers that tests ask for.
#[derive(Default)]
pub(super) struct Exchange {
    endpoints: AtomicUsize,
    /// How often a transport was polled.
    polls: AtomicUsize,
}

/// A transport that knows its domain's exchange.
pub(super) struct Phone {
    line: Joined,
    exchange: Arc<Exchange>,
}

impl Phone {
    fn new(exchange: &Arc<Exchange>, line: Joined) -> Phone {
        exchange.endpoints.fetch_add(1, Ordering::Relaxed);
        let exchange = exchange.clone();
        Phone { line, exchange }
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.exchange.endpoints.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unique() -> Vec<u8> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string().into_bytes()
}

fn own_name(info: &Info) -> Vec<u8> {
    match name(info.src_addr.as_deref().unwrap_or_default()) {
        [] => unique(),
        own => own.to_vec(),
    }
}

impl OnEngine for Calls {
    type Transport = Phone;
    type Shared = Exchange;

    const NAME: &'static str = "calls";
    const VERSION: u32 = 1 << 16;

    fn start() -> Calls {
        Calls
    }

    fn offers(&self) -> Vec<Info> {
        let rdm = Rdm {
            fabric: "calls".into(),
            domain: "calls".into(),
            version: Self::VERSION,
            addr_format: FI_ADDR_STR,
            protocol: FI_PROTO_UNSPEC,
            protocol_version: 1,
            reach: FI_LOCAL_COMM,
            tx_size: 64,
            rx_size: 64,
            inject_size: 64,
            limits: LIMITS,
        };
        vec![rdm.connected_offer()]
    }

    fn address(&self, answer: &mut Info, query: &Query) -> Result<()> {
        let named = query.node.or(query.service).map(|name| raw(name.as_bytes()));
        (answer.src_addr, answer.dest_addr) = match named {
            Some(own) if query.has_flag(FI_SOURCE) => (Some(own), None),
            peer => (Some(raw(b"")), peer),
        };
        Ok(())
    }

    fn address_kind(_: u32) -> Arc<dyn AddressKind> {
        Arc::new(StringAddr::of("fi_calls"))
    }

    fn limits() -> Limits {
        LIMITS
    }

    /// A domain of this name stands for a device that cannot be opened.
    fn share(info: &Info) -> Result<Exchange> {
        match info.domain_name() {
            Some("broken") => Err(Errno(FI_ENODEV)),
            _ => Ok(Exchange::default()),
        }
    }
}

impl Connected for Calls {
    type Listener = Bell;
    type ConnectedTransport = Phone;

    const DATA_SIZE: usize = 32;

    fn listener(info: &Info) -> Result<Bell> {
        let name = own_name(info);
        Ok(Bell { name, listens: false })
    }

    fn open_connected(exchange: &Arc<Exchange>, info: &Info) -> Result<Phone> {
        Ok(Phone::new(exchange, Joined::new(&NETWORK, &own_name(info))))
    }

    /// No call is for more than a mailbox holds.
    fn answer(exchange: &Arc<Exchange>, info: &Info, call: &mut Option<Call>) -> Result<Phone> {
        if info.tx.as_ref().is_some_and(|tx| tx.size == usize::MAX) {
            return Err(Errno(FI_ENOMEM));
        }
        let call = call.take().ok_or(Errno(FI_EINVAL))?;
        Ok(Phone::new(exchange, Joined::answering(&NETWORK, call)))
    }
}

pub(super) struct Bell {
    name: Vec<u8>,
    listens: bool,
}

impl Listener for Bell {
    type Request = Call;

    fn listen(&mut self, backlog: usize) -> Result<()> {
        self.listens = true;
        NETWORK.listen(&self.name, backlog);
        Ok(())
    }

    fn next_request(&mut self) -> Option<Incoming<Call>> {
        NETWORK.next_call(&self.name).map(|call| Incoming {
            peer: raw(&call.from),
            local: raw(&call.to),
            data: call.data.clone(),
            request: call,
        })
    }

    fn local_address(&self) -> Vec<u8> {
        raw(&self.name)
    }

    fn rename(&mut self, address: &[u8]) -> Result<()> {
        self.name = name(text(address)).to_vec();
        Ok(())
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    /// It cannot wake anyone.
    fn arm(&mut self) -> bool {
        false
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if self.listens {
            NETWORK.end(&self.name);
        }
    }
}

impl Request for Call {
    fn reject(self, data: &[u8]) {
        Call::reject(self, data);
    }
}

/// A name as programs see it.
fn raw(name: &[u8]) -> Vec<u8> {
    [b"fi_calls://", name, &[0]].concat()
}

impl Transport for Phone {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.line.peer(address)
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        self.line.push(to, header, body, notice)
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        self.exchange.polls.fetch_add(1, Ordering::Relaxed);
        self.line.poll(sink, budget)
    }

    fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        self.line.expose(to, iov, name)
    }

    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get {
        self.line.get(from, remote, local, at, len, token)
    }
}

impl Connects for Phone {
    fn connect(&mut self, address: &[u8], data: &[u8]) -> Result<()> {
        self.line.connect(name(text(address)), data);
        Ok(())
    }

    fn accept(&mut self, data: &[u8]) -> Result<()> {
        self.line.accept(data);
        Ok(())
    }

    fn shutdown(&mut self) {
        self.line.shutdown();
    }

    fn event(&mut self) -> Option<ConnectionEvent> {
        self.line.event().map(|news| match news {
            News::Connected(data) => ConnectionEvent::Connected { data },
            News::Refused(data) => ConnectionEvent::Failed {
                error: Errno(FI_ECONNREFUSED),
                data,
            },
            News::Closed => ConnectionEvent::Closed,
        })
    }

    fn peer_address(&self) -> Option<Vec<u8>> {
        self.line.peer_name().map(raw)
    }
}

impl EndpointTransport for Phone {
    fn local_address(&self) -> Vec<u8> {
        raw(self.line.name())
    }

    fn renamed(&self, _: &[u8]) -> Result<Renamed<Phone>> {
        Err(Errno(FI_EOPNOTSUPP))
    }

    fn address_of(&self, _: PeerId) -> Option<&[u8]> {
        self.line.address()
    }

    fn context_address(address: &[u8], _: usize) -> Vec<u8> {
        address.to_vec()
    }

    fn base_address(address: &[u8]) -> &[u8] {
        address
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        raw(address)
    }

    /// It cannot wake anyone.
    fn arm(&mut self) -> bool {
        false
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    fn wake(&self) {}

    fn connection(&mut self) -> Option<&mut dyn Connects> {
        Some(self)
    }

    /// Peers set the marks themselves, so there is no descriptor.
    fn watched_by(&mut self, mark: &Arc<Ready>) -> bool {
        self.line.watch(mark);
        true
    }
}
