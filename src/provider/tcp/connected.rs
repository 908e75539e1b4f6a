//! What provider `tcp` says of connected and passive endpoints: the transport's, in the words of `api`.
//!
//! Called by `abi::object` through `Connected` and by the endpoints through `Connects`.

use super::{DomainKey, Tcp, address_of, config, open_to_call, opened, place};
use crate::abi::types::FI_EINVAL;
use crate::api::endpoint::connection::{ConnectionEvent, Connects};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::passive::{Incoming, Listener, Request};
use crate::provider::connected::Connected;
use crate::sys::resolve::to_bytes;
use crate::transport::tcp::{self, Call, Event, Passive, TcpTransport};
use std::os::fd::RawFd;
use std::sync::Arc;

impl Connected for Tcp {
    type Listener = Passive;
    type ConnectedTransport = TcpTransport;

    const DATA_SIZE: usize = tcp::DATA_SIZE;

    fn listener(info: &Info) -> Result<Passive> {
        let (address, secret) = (address_of(info), DomainKey::of(info)?.of_endpoint(info));
        opened("fi_passive_ep", &address, Passive::open(&address, &config(secret)))
    }

    fn open_connected(key: &Arc<DomainKey>, info: &Info) -> Result<TcpTransport> {
        open_to_call("fi_endpoint", &address_of(info), key.of_endpoint(info))
    }

    fn answer(_: &Arc<DomainKey>, _: &Info, call: &mut Option<Call>) -> Result<TcpTransport> {
        let place = call.as_ref().and_then(Call::local);
        let address = place.map(|place| to_bytes(&place)).unwrap_or_default();
        opened(
            "fi_endpoint",
            &address,
            TcpTransport::open_for_call(call, &config(None)),
        )
    }
}

impl Listener for Passive {
    type Request = Call;

    fn listen(&mut self, backlog: usize) -> Result<()> {
        let address = Passive::local_address(self);
        opened("fi_listen", &address, Passive::listen(self, backlog))
    }

    fn next_request(&mut self) -> Option<Incoming<Call>> {
        let call = self.next_call()?;
        Some(Incoming {
            peer: call.peer(),
            local: call.local().map(|place| to_bytes(&place)).unwrap_or_default(),
            data: call.data(),
            request: call,
        })
    }

    fn local_address(&self) -> Vec<u8> {
        Passive::local_address(self)
    }

    fn rename(&mut self, address: &[u8]) -> Result<()> {
        let wanted = to_bytes(&place(address).ok_or(Errno(FI_EINVAL))?);
        opened("fi_setname", &wanted, Passive::rename(self, &wanted))
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(Passive::wake_fd(self))
    }

    fn arm(&mut self) -> bool {
        Passive::arm(self)
    }
}

impl Request for Call {
    fn reject(self, data: &[u8]) {
        Call::reject(self, data);
    }
}

impl Connects for TcpTransport {
    fn connect(&mut self, address: &[u8], data: &[u8]) -> Result<()> {
        opened("fi_connect", address, self.call(address, data))
    }

    fn accept(&mut self, data: &[u8]) -> Result<()> {
        TcpTransport::accept(self, data);
        Ok(())
    }

    fn shutdown(&mut self) {
        self.shut_down();
    }

    fn event(&mut self) -> Option<ConnectionEvent> {
        TcpTransport::event(self).map(|event| match event {
            Event::Connected { data } => ConnectionEvent::Connected { data },
            Event::Failed { errno, data } => ConnectionEvent::Failed {
                error: Errno(errno),
                data,
            },
            Event::Closed => ConnectionEvent::Closed,
        })
    }

    fn peer_address(&self) -> Option<Vec<u8>> {
        self.connected_with()
    }
}
