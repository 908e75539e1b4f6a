//! Tagged atomics (FI_ATOMIC with FI_TAGGED) at their target, which is the buffer of a tagged receive.
//!
//! Such an operation is matched like a message: with the oldest posted receive, or it is unexpected until one is
//! posted. Then it works on that receive's buffer, and both the receive and the operation complete.

use super::atomic_target::IncomingAtomic;
use super::credit;
use super::kernel::Kernel;
use super::message::{Delivery, Message, Phase, done_header};
use super::op::{Error, Form, MessageKind, Report};
use super::peer::Malformed;
use super::pieces::done_failed;
use super::port::PeerId;
use super::receive::MatchedRecv;
use super::rma_target::short_data;
use super::state::Core;
use super::wire::{Header, flag};
use crate::util::slab::Id;

/// The operation on the receive's buffer.
#[derive(Debug)]
pub(super) struct TaggedAtomic {
    pub form: Form,
    pub kernel: Kernel,
    /// The offset in the buffer.
    pub at: usize,
    pub len: usize,
}

impl TaggedAtomic {
    /// How long the receive's buffer must be.
    fn extent(&self) -> usize {
        self.at.saturating_add(self.len)
    }

    /// The operation as a message that is here whole. `body` is the operands.
    fn into_message(self, from: PeerId, header: &Header, body: &[u8]) -> Message {
        let len = self.len;
        Message {
            tag: header.data,
            data: short_data(header),
            ack: true,
            next: len,
            head: body.to_vec(),
            tagged_atomic: Some(Box::new(self)),
            ..Message::new(from, header, Phase::Coming, len)
        }
    }
}

impl Message {
    /// How long a buffer must be to take the whole message or operation.
    pub(super) fn extent(&self) -> usize {
        self.tagged_atomic
            .as_ref()
            .map_or(self.total, |operation| operation.extent())
    }
}

impl Core {
    /// A tagged atomic has come.
    pub(super) fn tagged_atomic(
        &mut self,
        from: PeerId,
        header: &Header,
        body: &[u8],
        atomic: &IncomingAtomic,
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        let at = usize::try_from(header.tag).map_err(|_| Malformed)?;
        let cost = credit::cost(body.len());
        let charged = header.flags & flag::WITHHELD == 0;
        if charged {
            self.charge_credit(from, cost)?;
        }
        let kernel = match atomic.kernel() {
            Ok(kernel) => kernel,
            Err(error) => {
                self.send_control(from, done_failed(header.id, error));
                if charged {
                    self.repay_credit(from, cost);
                }
                return Ok(());
            }
        };
        let operation = TaggedAtomic {
            form: atomic.form,
            kernel,
            at,
            len: atomic.len,
        };
        let extent = operation.extent();
        let mut message = operation.into_message(from, header, body);
        if let Some(matched) = self.take_post(MessageKind::Tagged, from, message.tag, extent) {
            if charged {
                self.repay_credit(from, cost);
            }
            self.execute_tagged_atomic(&message, &matched, report);
            return Ok(());
        }
        message.kept = if charged { cost } else { 0 };
        let id = self.arrivals.insert(message);
        self.hold_unexpected(id);
        if charged {
            self.charge_kept(from, cost);
        }
        Ok(())
    }

    /// An unexpected tagged atomic is matched.
    pub(super) fn tagged_atomic_attached(&mut self, id: Id, matched: MatchedRecv, report: &mut impl Report) {
        if let Some(message) = self.arrivals.remove(id) {
            self.execute_tagged_atomic(&message, &matched, report);
        }
    }

    /// An unexpected tagged atomic is discarded: it is not executed and fails at its initiator.
    pub(super) fn tagged_atomic_discarded(&mut self, id: Id) {
        if let Some(message) = self.arrivals.remove(id).filter(|message| message.ack) {
            self.send_control(message.from, done_failed(message.number, Error::Canceled));
        }
    }

    fn execute_tagged_atomic(&mut self, message: &Message, matched: &MatchedRecv, report: &mut impl Report) {
        let Some(task) = &message.tagged_atomic else { return };
        let room = matched.iov.len().saturating_sub(task.at);
        let delivery = Delivery {
            total: task.len,
            room,
            answer: None,
            ..message.delivery(matched)
        };
        let atomic = IncomingAtomic::of(task.form, Some(task.kernel), task.len, &message.head);
        let done_or_not = match atomic {
            Some(atomic) if room >= task.len => {
                let buffer = matched.iov.part(task.at, task.len);
                let mut result = self.buffers.take(atomic.result());
                atomic.execute(&[buffer], &mut result).map(|()| result)
            }
            _ => Err(Error::OutOfRange),
        };
        match done_or_not {
            Ok(result) => {
                self.report_message(&delivery, None, report);
                match (message.ack, task.form) {
                    (false, _) => {}
                    (true, Form::Base) => self.send_control(message.from, done_header(message.number)),
                    (true, _) => return self.reply(message.from, message.number, result),
                }
                self.buffers.give_back(result);
            }
            Err(error) => {
                // A buffer that is too short is reported as truncation; else the receive gets the atomic's error.
                let error_here = (room >= task.len).then_some(error);
                self.report_message(&delivery, error_here, report);
                if message.ack {
                    self.send_control(message.from, done_failed(message.number, error));
                }
            }
        }
    }
}
