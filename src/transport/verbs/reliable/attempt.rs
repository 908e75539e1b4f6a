//! The steps of a try to connect with queue pairs. What is done in each stands in `dialing` (we connect) and `arrivals`
//! (they do).

use super::link::Link;
use crate::transport::connecting;
use crate::transport::verbs::seam::{Connection, News, QueuePair};

pub(super) type Peers<W> = connecting::Peers<Link<W>, Attempt<W>>;
pub(super) type Peer<W> = connecting::Peer<Link<W>, Attempt<W>>;
pub(super) type Way<W> = connecting::Way<Attempt<W>>;

pub(super) enum Attempt<W> {
    /// Our own connection, which has no queue pair yet.
    Resolving(W),
    /// The same, once the peer is to be asked or was asked.
    Asked(Box<Link<W>>),
    /// The peer's, which we accepted and it has not confirmed.
    Accepted(Box<Link<W>>),
    /// The same, confirmed: it waits for the end of the connection before it.
    Agreed(Box<Link<W>>),
}

impl<W> Attempt<W> {
    /// The connection, once it has a queue pair.
    pub(super) fn into_link(self) -> Option<Box<Link<W>>> {
        match self {
            Attempt::Resolving(_) => None,
            Attempt::Asked(link) | Attempt::Accepted(link) | Attempt::Agreed(link) => Some(link),
        }
    }
}

impl<W> Way<W> {
    pub(super) fn link(&mut self) -> Option<&mut Link<W>> {
        match self {
            Way::Begun(Attempt::Asked(link) | Attempt::Accepted(link) | Attempt::Agreed(link)) => Some(link),
            _ => None,
        }
    }
}

impl<W: QueuePair> Way<W> {
    pub(super) fn news(&mut self) -> Option<News> {
        match self {
            Way::Begun(Attempt::Resolving(wire)) => wire.connection().news(),
            way => way.link()?.wire.connection().news(),
        }
    }
}

impl<W> Peer<W> {
    /// Its connection, and the one that is being made.
    pub(super) fn links(&mut self) -> impl Iterator<Item = &mut Link<W>> {
        let Peer { link, way, .. } = self;
        link.as_deref_mut().into_iter().chain(way.link())
    }
}
