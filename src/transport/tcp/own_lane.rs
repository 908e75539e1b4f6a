//! Packets of an endpoint to itself, which need no socket. Part of `TcpTransport`.

use super::TcpTransport;
use crate::engine::port::{Body, PeerId, Placement, Push, Sink};
use crate::engine::wire::Header;
use std::collections::VecDeque;

/// The most packets, and bytes of their bodies.
const PACKETS: usize = 256;
const BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct OwnLane {
    packets: VecDeque<(Header, Vec<u8>)>,
    bytes: usize,
    met: bool,
}

impl OwnLane {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn push(&mut self, header: &Header, body: &Body<'_>) -> Push {
        if self.packets.len() >= PACKETS || self.bytes >= BYTES {
            return Push::Full;
        }
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => {
                iov.read(*at, &mut bytes);
            }
        }
        self.bytes += bytes.len();
        self.packets.push_back((*header, bytes));
        Push::Done
    }

    /// False: the engine refused it.
    fn deliver<S: Sink>(&mut self, number: PeerId, sink: &mut S) -> bool {
        let Some((header, body)) = self.packets.pop_front() else {
            return false;
        };
        if !sink.take(number, &header, &body) {
            match sink.place(number, &header, body.len()) {
                Placement::Into { iov, at, token } => {
                    iov.write(at, &body);
                    sink.placed(token, None);
                }
                Placement::Leased { lease, token } => match lease.write(0, &body) {
                    true => sink.placed(token, None),
                    false => sink.cut(token),
                },
                Placement::Keep { mut buffer, token } => {
                    buffer.copy_from_slice(&body);
                    sink.placed(token, Some(buffer));
                }
                Placement::Drop => {}
                Placement::Refuse => {
                    self.packets.push_front((header, body));
                    return false;
                }
            }
        }
        self.bytes -= body.len();
        true
    }
}

impl TcpTransport {
    #[cold]
    pub(super) fn deliver_own<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let own = self.own.clone();
        let Some(number) = self.peers.number(&own) else {
            return 0;
        };
        if !core::mem::replace(&mut self.own_lane.met, true) {
            let source = self.peers.source(number);
            sink.met(number, source);
        }
        let mut done = 0;
        while done < budget && self.own_lane.deliver(number, sink) {
            done += 1;
        }
        done
    }
}
