//! The atomics of a card: on eight bytes, by their address. Those of the C library's provider, as far as they are true.
//!
//! FI_ATOMIC_WRITE and FI_ATOMIC_READ are a write and a read, which a card does at once to so few aligned bytes. All
//! wait for the reads and atomics before them, as a card keeps no order among those.

use super::endpoint::{Posted, VerbsEndpoint};
use super::seam::Link;
use super::sends::hold;
use crate::engine::op::{self, AtomicOp, AtomicTarget, CompletedOp, Form, PostHint, Refused, RemotePart};
use crate::mem::atomic::{Datatype, Op};
use crate::sys::rdma::{Opcode, Work};
use crate::util::user::UserIov;
use std::sync::LazyLock;

const ELEMENT: usize = 8;

/// What a device does, if it has atomics at all.
pub fn amos(atomics: bool) -> &'static [AtomicOp] {
    static ALL: LazyLock<Vec<AtomicOp>> = LazyLock::new(|| {
        let integers = [Datatype::Int64, Datatype::Uint64];
        // Bits are moved as they are; added and compared they are numbers.
        let moved = [integers[0], integers[1], Datatype::Double];
        let rows = [
            (Form::Base, Op::Write, &moved[..]),
            (Form::Fetch, Op::Read, &moved),
            (Form::Fetch, Op::Sum, &integers),
            (Form::Compare, Op::Cswap, &integers),
        ];
        let each = rows
            .into_iter()
            .flat_map(|(form, op, types)| types.iter().filter_map(move |of| AtomicOp::new(form, op, *of)));
        each.collect()
    });
    if atomics { &ALL } else { &[] }
}

/// What a device is asked for: with these operands, as the program's memory has them.
pub(super) fn opcode(op: AtomicOp, operand: u64, compare: u64) -> Opcode {
    match (op.form(), op.op()) {
        (Form::Base, _) => Opcode::Write,
        (Form::Fetch, Op::Read) => Opcode::Read,
        (Form::Fetch, _) => Opcode::FetchAdd(operand),
        (Form::Compare, _) => Opcode::CompareSwap { compare, swap: operand },
    }
}

/// Whether a device works on this address; if not, the log says so.
pub(super) fn is_aligned(addr: u64, warn: fn(&str)) -> bool {
    let aligned = addr % ELEMENT as u64 == 0;
    if !aligned {
        warn(&format!(
            "an atomic at {addr:#x}: a card wants the address to be a multiple of {ELEMENT}"
        ));
    }
    aligned
}

impl<L: Link> VerbsEndpoint<L> {
    pub fn amos(&self) -> &'static [AtomicOp] {
        amos(self.config.atomics)
    }

    pub fn atomic(&mut self, atomic: &op::Atomic, hint: PostHint) -> Result<(), Refused> {
        if !self.amos().contains(&atomic.op) {
            return Err(Refused::Unsupported);
        }
        if atomic.len != ELEMENT {
            return Err(Refused::TooLong);
        }
        let (remote, key) = self.target(&atomic.target)?;
        let fetches = atomic.op.form() != Form::Base;
        // What is injected is copied into the request, or read before the call returns.
        let (local, inject) = match fetches {
            true => (&atomic.result, false),
            false => (&atomic.operand, atomic.inject),
        };
        let opcode = opcode(atomic.op, word(&atomic.operand), word(&atomic.compare));
        if fetches && local.only().is_none() {
            return Err(Refused::Invalid); // a card gives the old value in one piece
        }
        let work = Work {
            remote: (remote.addr, key),
            ..self.work(opcode, atomic.data, true, inject, local)?
        };
        let posted = Posted {
            id: work.id,
            op: CompletedOp::Atomic(atomic.op.form()),
            context: atomic.context,
            tell: atomic.tell,
            len: atomic.len,
        };
        self.start(work, local, posted, hold(hint, inject))
    }

    fn target(&self, target: &AtomicTarget) -> Result<(RemotePart, u32), Refused> {
        let AtomicTarget::Memory(remote) = target else {
            return Err(Refused::Unsupported);
        };
        let part = remote.only().ok_or(Refused::Unsupported)?;
        let key = u32::try_from(part.key).map_err(|_| Refused::Invalid)?;
        match is_aligned(part.addr, self.config.warn) {
            true => Ok((part, key)),
            false => Err(Refused::Invalid),
        }
    }
}

/// An operand, as the program's memory has it.
fn word(operand: &UserIov) -> u64 {
    let mut bytes = [0; ELEMENT];
    operand.read(0, &mut bytes);
    u64::from_ne_bytes(bytes)
}
