//! How a record is delivered that the engine did not take while it lay in the ring: the engine says where its body
//! goes.
//!
//! Knows neither ring nor poll. Called by `inbound`.

use super::dual_copy::HelpRequest;
use super::recall::RECALLED;
use crate::engine::port::{PeerId, Placement, Sink};
use crate::engine::wire;

/// What became of a record.
pub(super) enum Delivery {
    Done,
    Refused,
    Broken,
}

/// Delivers a record that `Sink::take` has left: the engine says where its body goes.
#[inline(never)]
pub(super) fn deliver<S: Sink>(
    sink: &mut S,
    peer: PeerId,
    help: &mut Option<HelpRequest>,
    words: [u64; 4],
    body: &[u8],
) -> Delivery {
    let Some(header) = wire::Header::from_words(words) else {
        return if words[0] == RECALLED[0] || asked_for_help(help, words, body) {
            Delivery::Done
        } else {
            Delivery::Broken
        };
    };
    match sink.place(peer, &header, body.len()) {
        Placement::Into { iov, at, token } => {
            iov.write(at, body);
            sink.placed(token, None);
        }
        Placement::Keep { mut buffer, token } => {
            let fits = buffer.len().min(body.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..fits), body.get(..fits)) {
                to.copy_from_slice(from);
            }
            sink.placed(token, Some(buffer));
        }
        Placement::Leased { lease, token } => {
            if lease.write(0, body) {
                sink.placed(token, None);
            } else {
                sink.cut(token);
            }
        }
        Placement::Drop => {}
        Placement::Refuse => return Delivery::Refused,
    }
    Delivery::Done
}

/// Whether a record that is no packet is a request for help. A sender has one request under way at most.
#[cold]
fn asked_for_help(asked: &mut Option<HelpRequest>, words: [u64; 4], body: &[u8]) -> bool {
    match HelpRequest::of(words, body) {
        Some(help) if asked.is_none() => {
            *asked = Some(help);
            true
        }
        _ => false,
    }
}
