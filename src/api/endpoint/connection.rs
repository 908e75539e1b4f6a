//! What a transport does to have a connection: the one peer of an FI_EP_MSG endpoint.
//!
//! The transport talks to the other side; here is what the application is told of it, and which calls it may make when.
//! `Endpoint` and `SharedRxEndpoint` have one each if they were opened as FI_EP_MSG; the passive side is
//! `api::passive`.

use super::ops::EndpointOps;
use super::state::EndpointState;
use crate::abi::types::*;
use crate::api::av::{AddressKind, Av, Hold};
use crate::api::eq::event::{ErrorEvent, connection_bytes};
use crate::api::errno::{Errno, Result};
use crate::engine::port::PeerId;
use std::sync::Arc;

/// The number of a connected transport's only peer, from the beginning: receives are posted before there is a
/// connection.
pub const PEER: PeerId = 0;

/// A transport with one peer, at the other end of a connection. None of the calls waits. `Transport::poll` moves the
/// connection on; the engine calls it whether or not the connection stands, and asks for events after each.
pub trait Connects {
    /// fi_connect: begins to connect to the passive endpoint at `address`, which gets `data`, at most
    /// `Connected::DATA_SIZE` bytes. An error: the address makes no sense. Whatever else fails is told as an event.
    fn connect(&mut self, address: &[u8], data: &[u8]) -> Result<()>;

    /// fi_accept, for a transport that was made of a request: the other side gets `data`. A transport that is dropped
    /// without this refuses the request.
    fn accept(&mut self, data: &[u8]) -> Result<()>;

    /// fi_shutdown: ends the connection, or the attempt. What was pushed still arrives. The next poll calls
    /// `Sink::gone` for `PEER`; no event follows. Dropping the transport ends the connection too.
    fn shutdown(&mut self);

    /// What has become of the connection. `Failed` and `Closed` come after the poll that has delivered all that the
    /// peer sent and called `Sink::gone` for `PEER`, and are the last.
    fn event(&mut self) -> Option<ConnectionEvent>;

    /// The peer's address, as fi_getpeer tells it. None: there is no connection.
    fn peer_address(&self) -> Option<Vec<u8>>;
}

/// What happens to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It stands: packets may be pushed. On the side that connected, `data` is what the other gave fi_accept; on the
    /// side that accepted it is empty.
    Connected { data: Vec<u8> },
    /// It never stood. `data`: what the other side gave fi_reject, with FI_ECONNREFUSED.
    Failed { error: Errno, data: Vec<u8> },
    /// The other side has ended it, or it broke.
    Closed,
}

/// How far the connection of an endpoint has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// fi_connect may be called.
    Fresh,
    /// Made of a request: fi_accept may be called.
    Requested,
    /// The other side has to answer.
    Begun,
    Connected,
    /// It failed, or was shut down by either side.
    Over,
}

/// What an endpoint of FI_EP_MSG knows of its connection.
pub struct Connection {
    stage: Stage,
    /// The endpoint's fid and context, for events.
    fid: usize,
    context: usize,
    /// The most bytes of the program's data in each direction.
    data_size: usize,
    kind: Arc<dyn AddressKind>,
    /// Programs may bind a vector, which has no use here.
    av: Option<Hold>,
}

impl Connection {
    /// `requested`: the transport was made of a request.
    pub fn new(requested: bool, data_size: usize, kind: Arc<dyn AddressKind>) -> Connection {
        Connection {
            stage: if requested { Stage::Requested } else { Stage::Fresh },
            fid: 0,
            context: 0,
            data_size,
            kind,
            av: None,
        }
    }

    /// What events about the endpoint carry. Told once there is a fid.
    pub fn named(&mut self, fid: usize, context: usize) {
        (self.fid, self.context) = (fid, context);
    }

    pub(super) fn fid(&self) -> usize {
        self.fid
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub(super) fn bind_av(&mut self, av: &Arc<Av>) -> Result<()> {
        match self.av {
            Some(_) => Err(Errno(FI_EINVAL)),
            None => {
                self.av = Some(av.hold());
                Ok(())
            }
        }
    }

    fn must_be(&self, stage: Stage) -> Result<()> {
        if self.stage == stage {
            Ok(())
        } else {
            Err(Errno(FI_EINVAL))
        }
    }
}

impl EndpointState {
    fn connection(&mut self) -> Result<&mut Connection> {
        self.connection.as_deref_mut().ok_or(Errno(FI_ENOSYS))
    }

    /// Tells the program what has become of its endpoint's connection since the last call.
    pub(super) fn hear_all(&mut self, connection: &mut dyn Connects) {
        while let Some(event) = connection.event() {
            self.hear(event, Some(PEER));
        }
    }

    /// Tells the program what has become of the connection. `only`: the peer's number for whoever sends.
    pub(super) fn hear(&mut self, event: ConnectionEvent, only: Option<PeerId>) {
        let Some(connection) = &mut self.connection else { return };
        let (fid, context) = (connection.fid, connection.context);
        let (stage, only) = match &event {
            ConnectionEvent::Connected { .. } => (Stage::Connected, only),
            ConnectionEvent::Failed { .. } | ConnectionEvent::Closed => (Stage::Over, None),
        };
        connection.stage = stage;
        self.peers.connect(only);
        let Some(eq) = self.bindings.eq() else { return };
        // A queue that is overrun says so itself.
        let _ = match event {
            ConnectionEvent::Connected { data } => eq.post(FI_CONNECTED, fid, &connection_bytes(fid, 0, &data)),
            ConnectionEvent::Closed => eq.post(FI_SHUTDOWN, fid, &connection_bytes(fid, 0, &[])),
            ConnectionEvent::Failed {
                error: Errno(err),
                data,
            } => eq.post_error(ErrorEvent {
                fid,
                context,
                err,
                prov_errno: err,
                err_data: data,
                ..ErrorEvent::default()
            }),
        };
    }
}

/// fi_connect.
pub fn connect(endpoint: &dyn EndpointOps, address: &[u8], data: &[u8]) -> Result<()> {
    begin(endpoint, Stage::Fresh, data, &|transport, data| {
        transport.connect(address, data)
    })
}

/// fi_accept.
pub fn accept(endpoint: &dyn EndpointOps, data: &[u8]) -> Result<()> {
    begin(endpoint, Stage::Requested, data, &|transport, data| {
        transport.accept(data)
    })
}

/// What is asked of the transport, with the program's data.
type Ask<'a> = dyn Fn(&mut dyn Connects, &[u8]) -> Result<()> + 'a;

/// Enables the endpoint, as both calls do, and has reading the event queue drive it.
fn begin(endpoint: &dyn EndpointOps, from: Stage, data: &[u8], ask: &Ask) -> Result<()> {
    may_begin(&mut endpoint.lock_state(), from)?;
    endpoint.enable()?;
    let me = endpoint.as_progress();
    endpoint.with_connection(&mut |transport, state| {
        state.bindings.drive_by_eq(&me)?;
        let connection = state.connection()?;
        connection.must_be(from)?;
        ask(transport, data.get(..connection.data_size).unwrap_or(data))?;
        connection.stage = Stage::Begun;
        Ok(())
    })
}

fn may_begin(state: &mut EndpointState, from: Stage) -> Result<()> {
    state.connection()?.must_be(from)?;
    if state.bindings.eq().is_none() {
        log!(by state.provider; Warn, EpCtrl, "fi_connect, fi_accept: no event queue is bound");
        return Err(Errno(FI_ENOEQ as i32));
    }
    Ok(())
}

/// fi_shutdown. What is unfinished has ended in error when it returns. The endpoint hears of its own shutdown too, as
/// programs expect that know other libraries.
pub fn shutdown(endpoint: &dyn EndpointOps) -> Result<()> {
    let mut before = Stage::Fresh;
    endpoint.with_connection(&mut |transport, state| {
        let connection = state.connection()?;
        before = connection.stage;
        if matches!(before, Stage::Requested | Stage::Begun | Stage::Connected) {
            transport.shutdown();
            connection.stage = Stage::Over;
            state.peers.connect(None);
        }
        Ok(())
    })?;
    if before == Stage::Connected {
        endpoint.lock_state().hear(ConnectionEvent::Closed, None);
    }
    Ok(())
}

/// fi_getpeer.
pub fn peer_address(endpoint: &dyn EndpointOps) -> Result<Vec<u8>> {
    let mut address = None;
    endpoint.with_connection(&mut |transport, state| {
        state.connection()?;
        address = transport.peer_address();
        Ok(())
    })?;
    address.ok_or(Errno(FI_ENOTCONN))
}

/// How the addresses look that the endpoint may connect to.
pub fn address_kind(endpoint: &dyn EndpointOps) -> Result<Arc<dyn AddressKind>> {
    Ok(endpoint.lock_state().connection()?.kind.clone())
}

/// FI_OPT_CM_DATA_SIZE.
pub fn data_size(endpoint: &dyn EndpointOps) -> Result<usize> {
    Ok(endpoint.lock_state().connection()?.data_size)
}
