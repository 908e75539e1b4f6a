//! Packets of an endpoint to itself, which need no device. Part of `Reliable`.

use super::Reliable;
use super::receive::place_body;
use super::seam::Device;
use crate::engine::port::{Body, Push, Sink};
use crate::engine::wire::Header;
use crate::util::user::{Scratch, UserBuf};
use std::collections::VecDeque;

/// The most packets.
const PACKETS: usize = 64;

#[derive(Default)]
pub(super) struct OwnLane {
    packets: VecDeque<(Header, Scratch)>,
    met: bool,
}

impl OwnLane {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn push(&mut self, header: &Header, body: &Body<'_>) -> Push {
        let room = self.packets.len() < PACKETS;
        let Some(memory) = room.then(|| Scratch::new(body.len())).flatten() else {
            return Push::Full;
        };
        copy_body(body, &whole(&memory));
        self.packets.push_back((*header, memory));
        Push::Done
    }
}

fn whole(memory: &Scratch) -> UserBuf {
    memory.lend().only().unwrap_or_default()
}

/// Copies a body to the start of a buffer that has room for it.
pub(super) fn copy_body(body: &Body<'_>, into: &UserBuf) {
    match body {
        Body::Empty => {}
        Body::Bytes(bytes) => drop(into.write(bytes)),
        Body::User { iov, at, len } => into.fill(&iov.part(*at, *len)),
    }
}

impl<D: Device> Reliable<D> {
    #[cold]
    pub(super) fn deliver_own<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let Some(number) = self.peers.number(self.place) else {
            return 0;
        };
        if !core::mem::replace(&mut self.own_lane.met, true) {
            sink.met(number, number);
        }
        let mut done = 0;
        while done < budget
            && let Some((header, memory)) = self.own_lane.packets.pop_front()
        {
            if !place_body(sink, number, &header, &whole(&memory)) {
                self.own_lane.packets.push_front((header, memory));
                break;
            }
            done += 1;
        }
        done
    }
}
