//! The way of a connection: address, route, queue pair, question and answer, and the end. What the application's data
//! looks like on the wire.

use super::endpoint::VerbsEndpoint;
use super::seam::{Connection, Link, News};
use crate::sys::rdma::EventKind;
use std::io;
use std::net::SocketAddr;

/// The most bytes of an application's data in each direction: what librdmacm carries in a request over this port space,
/// less the byte that says how many there are.
pub const DATA_SIZE: usize = 55;

pub(super) const PORT_DOWN: &str =
    "a port of the device is down: operations wait until it is up again, or fail when the device gives up";
pub(super) const PORT_UP: &str = "a port of the device is up again";

/// What the application is to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Connected {
        data: Vec<u8>,
    },
    /// Nobody listens there, or the other side refused and sent this.
    Refused {
        data: Vec<u8>,
    },
    /// There is no way there, or no answer.
    Unreachable,
    /// The other side has ended it, or it broke.
    Closed,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Fresh,
    /// The address is being looked for, then the route.
    Resolving,
    /// The other side has been asked, or answered.
    Asked,
    Connected,
    /// All that is posted comes back; then it is over.
    Ending,
    Over,
}

/// Data with its length before it, as the protocol does not say how much of its own is the application's.
pub(super) fn to_wire(data: &[u8]) -> Vec<u8> {
    let data = data.get(..DATA_SIZE).unwrap_or(data);
    let mut bytes = vec![data.len() as u8];
    bytes.extend_from_slice(data);
    bytes
}

/// What came from the other side, whatever length it claims.
pub(super) fn from_wire(bytes: &[u8]) -> Vec<u8> {
    let Some((len, data)) = bytes.split_first() else {
        return Vec::new();
    };
    data.get(..usize::from(*len)).unwrap_or(data).to_vec()
}

impl<L: Link> VerbsEndpoint<L> {
    /// Begins to connect. An error: the address makes no sense here.
    pub fn connect(&mut self, to: &SocketAddr, data: &[u8]) -> io::Result<()> {
        self.link.connection().resolve_address(self.config.from.as_ref(), to)?;
        self.data = to_wire(data);
        self.stage = Stage::Resolving;
        Ok(())
    }

    /// Answers the request that it was made of.
    pub fn accept(&mut self, data: &[u8]) -> io::Result<()> {
        self.open_pair()?;
        self.link.connection().accept(&to_wire(data))?;
        self.stage = Stage::Asked;
        Ok(())
    }

    /// Ends the connection, or the attempt. Nothing is told of it.
    pub fn shutdown(&mut self) {
        self.end(None);
    }

    pub fn happened(&mut self) -> Option<Happened> {
        self.happened.pop_front()
    }

    pub fn local_address(&self) -> Option<SocketAddr> {
        self.link.local_address().or(self.config.from)
    }

    /// None: there is no connection.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.link.peer_address().filter(|_| self.stage == Stage::Connected)
    }

    /// Looks at what has become of the connection. True: something has.
    pub(super) fn look(&mut self) -> bool {
        let mut any = false;
        while let Some(news) = self.news() {
            any = true;
            self.hear(news);
        }
        any
    }

    fn news(&mut self) -> Option<News> {
        let of_device = |kind| News { kind, data: Vec::new() };
        let of_connection = self.link.connection().news();
        of_connection.or_else(|| self.link.trouble().map(of_device))
    }

    fn hear(&mut self, News { kind, data }: News) {
        match (self.stage, kind) {
            (Stage::Resolving, EventKind::AddressResolved) => {
                let next = self.open_pair().and_then(|()| self.link.connection().resolve_route());
                self.go_on(next, "no queue pair");
            }
            (Stage::Resolving, EventKind::RouteResolved) => {
                let data = core::mem::take(&mut self.data);
                let next = self.link.connection().connect(&data);
                self.go_on(next, "connecting");
                if self.stage == Stage::Resolving {
                    self.stage = Stage::Asked;
                }
            }
            (Stage::Asked, EventKind::Established) => {
                if let Err(error) = self.link.set_retry_timer(self.config.retry_timer) {
                    (self.config.warn)(&format!("the device keeps its own time between retries: {error}"));
                }
                self.stage = Stage::Connected;
                let data = from_wire(&data);
                self.happened.push_back(Happened::Connected { data });
            }
            (Stage::Resolving | Stage::Asked, EventKind::Rejected | EventKind::NobodyThere) => {
                let data = from_wire(&data);
                self.end(Some(Happened::Refused { data }));
            }
            (Stage::Resolving | Stage::Asked, EventKind::Failed | EventKind::Disconnected | EventKind::Removed) => {
                self.end(Some(Happened::Unreachable));
            }
            (Stage::Connected, EventKind::Disconnected | EventKind::Failed) => {
                self.end(Some(Happened::Closed));
            }
            (Stage::Connected | Stage::Ending, EventKind::Removed) => {
                (self.config.warn)("the device is gone");
                self.end(Some(Happened::Closed));
                self.expects_nothing = true;
            }
            (Stage::Connected, EventKind::PortDown) => (self.config.warn)(PORT_DOWN),
            (Stage::Connected, EventKind::AddressChanged) => (self.config.warn)(
                "the device has another hardware address: operations fail when the device gives up, if the peer's does not know it",
            ),
            (Stage::Connected, EventKind::PortUp) => (self.config.warn)(PORT_UP),
            // What comes late, or in an order that makes no sense, changes nothing.
            _ => {}
        }
    }

    /// Fails the attempt if a step could not be taken.
    fn go_on(&mut self, step: io::Result<()>, what: &str) {
        if let Err(error) = step {
            (self.config.warn)(&format!("{what}: {error}"));
            self.end(Some(Happened::Unreachable));
        }
    }

    /// Ends the connection. `tell`: what is to be heard when all that was posted has come back.
    pub(super) fn end(&mut self, tell: Option<Happened>) {
        if matches!(self.stage, Stage::Ending | Stage::Over) {
            // Who has shut it down does not want to hear more.
            self.last_word = self.last_word.take().filter(|_| tell.is_some());
            return;
        }
        self.link.connection().disconnect();
        self.mark_end();
        self.last_word = tell;
        self.stage = Stage::Ending;
    }
}
