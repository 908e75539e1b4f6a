//! Which way leads to a peer, and what goes to one for which that is not settled, or that is far. Part of `Join`.

use super::peers::{self, Peers, Way};
use super::side::Side;
use super::{Join, Naming};
use crate::engine::op::Unreached;
use crate::engine::port::{Body, Contact, Notice, PeerId, Push, Transport};
use crate::engine::wire::Header;
use crate::util::keep_in_registers;
use crate::util::user::UserIov;

impl<N: Naming> Join<N> {
    /// The way to a peer, which is chosen now if it is open.
    #[inline]
    pub(super) fn settled(&mut self, peer: PeerId) -> Way {
        match self.peers.way(peer) {
            Way::Open | Way::Begun(_) => self.settle(peer),
            way => way,
        }
    }

    #[cold]
    fn settle(&mut self, peer: PeerId) -> Way {
        let Some(address) = self.peers.address(peer).filter(|_| !self.peers.is_former(peer)) else {
            return Way::Open;
        };
        if let (Some(near), Some(there)) = (&mut self.near, self.names.near(address))
            && let Some(number) = near.transport.peer(&there)
            && near.transport.connect(number) != Contact::NoWay
        {
            if let Way::Begun(_) = self.peers.way(peer) {
                leave_far(&mut self.peers, &mut self.far, peer);
            }
            return self.peers.choose(&self.names, peer, Way::Near(number), &mut near.known);
        }
        // Who was near is on this machine, where the near way has just said that nobody is there any more. The far way
        // would find that out only when its patience ends.
        if !N::NEAR_MAY_FAIL && self.peers.was_near(peer) {
            return Way::Open;
        }
        // Whoever answers on the far way has opened the near one by then, which is looked for once more when the far
        // one stands.
        let may_come_near = !N::NEAR_MAY_FAIL && self.near.is_some();
        self.settle_far(peer, may_come_near)
    }

    fn settle_far(&mut self, peer: PeerId, may_come_near: bool) -> Way {
        let Some(address) = self.peers.address(peer) else {
            return Way::Open;
        };
        if let (Some(far), Some(there)) = (&mut self.far, self.names.far(address))
            && let Some(number) = far.transport.peer(&there)
        {
            if may_come_near && matches!(far.transport.connect(number), Contact::Soon | Contact::Late) {
                self.turns.far_is_used();
                return self.peers.begin(peer, number, &mut far.known);
            }
            return self.peers.choose(&self.names, peer, Way::Far(number), &mut far.known);
        }
        Way::Open
    }

    /// To a peer that is far, or whose way is open. The body is part of the application's memory, or a few bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn push_elsewhere(
        &mut self,
        to: PeerId,
        mut header: Header,
        user: Option<(UserIov, usize, usize)>,
        bytes: &[u8],
        notice: Option<Notice>,
    ) -> Push {
        let header = &*keep_in_registers(&mut header);
        let body = match &user {
            Some((iov, at, len)) => Body::User {
                iov,
                at: *at,
                len: *len,
            },
            None if bytes.is_empty() => Body::Empty,
            None => Body::Bytes(bytes),
        };
        if let (Way::Near(number), Some(near)) = (self.settled(to), &mut self.near) {
            let pushed = near.transport.push(number, header, body, notice);
            let failed = matches!(pushed, Push::Unreachable(_) | Push::NoMemory);
            if !(N::NEAR_MAY_FAIL && failed && self.goes_far_instead(to)) {
                return pushed;
            }
        }
        match (self.peers.way(to), &mut self.far) {
            (Way::Far(number), Some(far)) => {
                self.turns.far_is_used();
                self.far_is_to_flush = true;
                let pushed = far.transport.push(number, header, body, notice);
                // Whoever opens there later may be near.
                if matches!(pushed, Push::Unreachable(_)) && !N::NEAR_MAY_FAIL {
                    leave_far(&mut self.peers, &mut self.far, to);
                }
                pushed
            }
            (Way::Begun(_), _) => Push::Full,
            _ => Push::Unreachable(Unreached::Nobody),
        }
    }

    /// The near way was chosen and does not lead to this peer. Whether the far one does.
    fn goes_far_instead(&mut self, to: PeerId) -> bool {
        if let (Some(number), Some(near)) = (self.peers.numbers(to).0, &mut self.near) {
            peers::unknow(&mut near.known, number);
        }
        self.peers.leave_near(&self.names, to);
        matches!(self.settle_far(to, false), Way::Far(_))
    }
}

/// The far way is not taken to this peer after all.
fn leave_far<T>(peers: &mut Peers, far: &mut Option<Side<T>>, peer: PeerId) {
    if let (Some(number), Some(far)) = (peers.leave_far(peer), far) {
        peers::unknow(&mut far.known, number);
    }
}
