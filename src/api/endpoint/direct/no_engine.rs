//! The transport of endpoints without an engine. There is none: what asks an endpoint for its transport's type (shared
//! receive contexts, looking up addresses) gets one of which no value exists.

use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::Result;
use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Notice, PeerId, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::user::UserIov;
use std::os::fd::RawFd;

pub enum NoEngine {}

impl Transport for NoEngine {
    fn limits(&self) -> Limits {
        match *self {}
    }

    fn peer(&mut self, _: &[u8]) -> Option<PeerId> {
        match *self {}
    }

    fn push(&mut self, _: PeerId, _: &Header, _: Body<'_>, _: Option<Notice>) -> Push {
        match *self {}
    }

    fn poll<S: Sink>(&mut self, _: &mut S, _: usize) -> usize {
        match *self {}
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        match *self {}
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        match *self {}
    }
}

impl EndpointTransport for NoEngine {
    /// A card must know the memory of each operation.
    const DESCRIPTORS: bool = true;

    fn local_address(&self) -> Vec<u8> {
        match *self {}
    }

    fn renamed(&self, _: &[u8]) -> Result<Renamed<NoEngine>> {
        match *self {}
    }

    fn address_of(&self, _: PeerId) -> Option<&[u8]> {
        match *self {}
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
        match *self {}
    }

    fn wake_fd(&self) -> Option<RawFd> {
        match *self {}
    }

    fn wake(&self) {
        match *self {}
    }
}
