//! How a peer is reached: connected with on first use, seen to be alive before its memory is touched, and given up for
//! a while or for good.
//!
//! Knows nothing of what is sent. Called by `ShmTransport`'s calls, and by `ring_or_kernel` and `dual_copy`.

use super::config::Config;
use super::outbound::{ConnectError, Outbound, Written};
use super::{ShmTransport, peers};
use crate::engine::op::Unreached;
use crate::engine::port::{self, PeerId, Push, Remote};
use crate::engine::wire::Packet;
use crate::sys::clock;
use core::sync::atomic::{Ordering, fence};

/// For so long after a lane in a peer's file was not to be had, none is asked for to answer it.
const NO_LANE_MS: u64 = 20;

impl ShmTransport {
    /// Connects to a peer on the first push to it. Answers are tried again in each poll, which the kernel need not hear
    /// of.
    #[cold]
    pub(super) fn connect_to_push(&mut self, to: PeerId, packet: Packet) -> Result<&mut Outbound, Push> {
        let tried_ms = self.peers.get(to).and_then(|peer| peer.no_lane_ms);
        if packet.is_answer() && tried_ms.is_some_and(|tried| clock::monotonic_ms() < tried + NO_LANE_MS) {
            return Err(Push::NoMemory);
        }
        self.connect_out(to)
    }

    #[cold]
    pub(super) fn connect_out(&mut self, to: PeerId) -> Result<&mut Outbound, Push> {
        let peer = self.peers.get_mut(to).ok_or(Push::Unreachable(Unreached::Nobody))?;
        if peer.ending {
            return Err(Push::Gone);
        }
        let stranger = peer.instance == 0;
        let tried_ms = peer.no_lane_ms.take();
        // What is missing is said once.
        let quiet = tried_ms.map(|_| Config {
            warn: |_| {},
            ..self.config.clone()
        });
        let config = quiet.as_ref().unwrap_or(&self.config);
        let out = match Outbound::connect(&peer.address, peer.instance, &self.own, config) {
            Ok(mut out) => {
                out.warn = self.config.warn;
                out
            }
            Err(ConnectError::NoLane) => {
                peer.no_lane_ms = Some(clock::monotonic_ms());
                return Err(Push::NoMemory);
            }
            Err(ConnectError::Nobody) if stranger => return Err(Push::Unreachable(Unreached::Nobody)),
            // The endpoint that we knew by this address is gone, which the engine must be told.
            Err(ConnectError::Nobody | ConnectError::OtherInstance) => return Err(self.push_failed(to, Written::Gone)),
        };
        peer.instance = out.instance();
        let peer = self.peers.get_mut(to).ok_or(Push::Unreachable(Unreached::Nobody))?;
        let out = peer.out.insert(out);
        if let Some(inbound) = peer.lane.and_then(|lane| self.inbox.get_mut(lane)) {
            inbound.open_dialogues(out, self.own.instance);
        }
        Ok(out)
    }

    /// The connection to a peer for direct access, if the peer was seen alive not long ago.
    #[inline(always)]
    pub(super) fn direct_path(&mut self, to: PeerId) -> Option<&mut Outbound> {
        if !self.own.is_ours() {
            return None;
        }
        let out = self.peers.get(to).and_then(|peer| peer.out.as_ref());
        // Two ends, so that where nothing is due the peer is looked up once.
        if out.is_some_and(|out| !out.cache.alive_check_is_due()) {
            return self.peers.get_mut(to)?.out.as_mut();
        }
        self.connect_or_check(to)?;
        self.peers.get_mut(to)?.out.as_mut()
    }

    /// Connects, or checks that the peer is alive: memory that is mapped outlives its owner and does not tell.
    #[cold]
    pub(super) fn connect_or_check(&mut self, to: PeerId) -> Option<()> {
        let peer = self.peers.get(to)?;
        if peer.out.is_none() {
            self.connect_out(to).ok()?.note_alive();
            return Some(());
        }
        if !self.lives(peer) {
            self.end(to);
            return None;
        }
        self.peers.get_mut(to)?.out.as_mut()?.note_alive();
        Some(())
    }

    /// The kernel refused to copy: it is not asked again for a while.
    #[cold]
    pub(super) fn back_off(&mut self, peer: PeerId) {
        if let Some(out) = self.peers.get_mut(peer).and_then(|peer| peer.out.as_mut()) {
            out.proof.refused();
        }
    }

    /// Fails a fetch whose peer has closed its endpoint or the region meanwhile: the program may have used that memory for
    /// something else by then. Where it was another region, the peer is asked for the bytes.
    pub(super) fn unless_closed(&mut self, from: PeerId, remote: &Remote, got: port::Get) -> port::Get {
        // SYNC POINT closed: the owner says that it closes before it gives the memory back.
        fence(Ordering::SeqCst);
        let closed = |peer: &peers::Peer| peer.out.as_ref().is_none_or(|out| out.is_closed());
        if got == port::Get::Done && self.peers.get(from).is_none_or(closed) {
            self.end(from);
            return port::Get::Gone;
        }
        let out = self.peers.get(from).and_then(|peer| peer.out.as_ref());
        if got == port::Get::Done && out.is_some_and(|out| !out.is_still_lent(remote)) {
            return port::Get::Unsupported;
        }
        got
    }

    #[cold]
    pub(super) fn push_failed(&mut self, to: PeerId, sent: Written) -> Push {
        match sent {
            Written::Gone => {
                self.end(to);
                return Push::Gone;
            }
            Written::TooLong => return Push::TooLong,
            Written::Done | Written::Full => {}
        }
        if let Some(peer) = self.peers.get_mut(to).filter(|peer| !peer.starved) {
            peer.starved = true;
            self.starved.push(to);
        }
        Push::Full
    }
}
