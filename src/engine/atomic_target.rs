//! Atomic operations by peers on this endpoint's memory: checked, executed and answered in one step.

use super::kernel::Kernel;
use super::op::{Access, Error, Form, RemoteIov, RemotePart, Report};
use super::peer::Malformed;
use super::pieces::{Refusal, RegionMemory, read_list};
use super::port::PeerId;
use super::rma_target::{short_data, target_completion};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use crate::util::user::{UserBuf, UserIov};

/// A peer's operation and its operands, as its packet says.
pub(super) struct IncomingAtomic<'a> {
    pub form: Form,
    pub len: usize,
    kernel: Option<Kernel>,
    operand: &'a [u8],
    compare: &'a [u8],
}

impl<'a> IncomingAtomic<'a> {
    /// None if the operands do not have the length that the operation needs. `kernel` is None for an unknown operation.
    pub(super) fn of(form: Form, kernel: Option<Kernel>, len: usize, bytes: &'a [u8]) -> Option<IncomingAtomic<'a>> {
        let (operand, compare) = match form {
            Form::Base | Form::Fetch => (bytes, Default::default()),
            Form::Compare => bytes.split_at_checked(len)?,
        };
        let only_reads = kernel.is_none_or(Kernel::only_reads);
        let fits = operand.len() == len || only_reads && operand.is_empty();
        let fits = fits && (form != Form::Compare || compare.len() == len);
        fits.then_some(IncomingAtomic {
            form,
            len,
            kernel,
            operand,
            compare,
        })
    }

    /// The operation, if it exists and `len` is whole elements.
    pub(super) fn kernel(&self) -> Result<Kernel, Error> {
        let whole = |kernel: &Kernel| kernel.is_whole(self.len);
        self.kernel.filter(whole).ok_or(Error::NoSuchAtomic)
    }

    /// An unknown op or type gets the strictest rights; the caller then refuses it.
    pub(super) fn rights(&self) -> Rights {
        self.kernel.map_or(Rights::BOTH, Kernel::rights)
    }

    /// Which counter it belongs to: an atomic that returns old values counts as a read.
    pub(super) fn access(&self) -> Access {
        match self.form {
            Form::Base => Access::Write,
            Form::Fetch | Form::Compare => Access::Read,
        }
    }

    /// How many bytes it returns.
    pub(super) fn result(&self) -> usize {
        if self.form == Form::Base { 0 } else { self.len }
    }

    /// As `execute`, on one piece of memory.
    pub(super) fn execute_one(&self, target: UserBuf, result: &mut [u8]) -> Result<(), Error> {
        self.kernel()?.execute_piece(target, self.operand, self.compare, result)
    }

    /// Executes it, unless an element lies across two pieces of memory, where it could not be atomic.
    pub(super) fn execute(&self, target: &[UserIov], result: &mut [u8]) -> Result<(), Error> {
        let kernel = self.kernel()?;
        let mut pieces = target.iter().flat_map(|iov| iov.parts());
        if !pieces.all(|piece| kernel.is_whole(piece.len())) {
            return Err(Error::OutOfRange);
        }
        let mut at = 0;
        for iov in target {
            let end = at + iov.len();
            let of = |bytes: &'a [u8]| bytes.get(at..end).unwrap_or_default();
            let (operand, compare) = (of(self.operand), of(self.compare));
            kernel.execute(iov, operand, compare, result.get_mut(at..end).unwrap_or_default())?;
            at = end;
        }
        Ok(())
    }
}

impl Core {
    /// An atomic has come.
    pub(super) fn atomic(
        &mut self,
        from: PeerId,
        header: &Header,
        body: &[u8],
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        let form = match header.packet {
            Packet::FetchAtomic => Form::Fetch,
            Packet::CompareAtomic => Form::Compare,
            _ => Form::Base,
        };
        if header.flags & flag::TAGGED != 0 {
            let len = self.atomic_len(form, header, body)?;
            let atomic = IncomingAtomic::of(form, Kernel::from_code(form, header.code), len, body).ok_or(Malformed)?;
            return self.tagged_atomic(from, header, body, &atomic, report);
        }
        let in_header = if header.flags & flag::LIST == 0 {
            self.atomic_len(form, header, body)?
        } else {
            0
        };
        let (remote, bytes) = read_list(header, body, in_header)?;
        let len = self.atomic_len(form, header, bytes)?;
        let atomic = IncomingAtomic::of(form, Kernel::from_code(form, header.code), len, bytes).ok_or(Malformed)?;
        if remote.len() != len {
            return Err(Malformed);
        }
        let done = match self.one_sided.atomics {
            [] => self.execute_atomic(&atomic, &remote),
            // Our peers' cards execute atomics here, which a processor's are not atomic against.
            _ => Err((Core::some_part(&remote), Error::NoSuchAtomic)),
        };
        match done {
            Ok((found, result)) => self.atomic_done(from, header, &atomic, &found, result, report),
            Err((part, error)) => {
                let refusal = Refusal { from, part, error };
                match form {
                    Form::Base => self.refuse_short(&refusal, report),
                    Form::Fetch | Form::Compare => self.refuse(header.id, &refusal, report),
                }
            }
        }
        Ok(())
    }

    /// Answers an atomic that was executed, and reports it to those who count.
    fn atomic_done(
        &mut self,
        from: PeerId,
        header: &Header,
        atomic: &IncomingAtomic,
        found: &RegionMemory,
        result: Vec<u8>,
        report: &mut impl Report,
    ) {
        let mut data = None;
        if atomic.form == Form::Base {
            data = short_data(header);
            self.buffers.give_back(result);
            self.ack(from);
        } else {
            self.reply(from, header.id, result);
        }
        if found.counted || data.is_some() {
            report.report(target_completion(
                from,
                atomic.access(),
                found.part.key,
                true,
                atomic.len,
                data,
            ));
        }
    }

    /// Executes an atomic. Returns the memory it worked on and its result.
    fn execute_atomic(
        &mut self,
        atomic: &IncomingAtomic,
        remote: &RemoteIov,
    ) -> Result<(RegionMemory, Vec<u8>), (RemotePart, Error)> {
        let somewhere = |error| (Core::some_part(remote), error);
        atomic.kernel().map_err(somewhere)?;
        let found = self.find_regions(remote, 0, atomic.len, atomic.rights())?;
        let mut result = self.buffers.take(atomic.result());
        atomic.execute(found.parts(), &mut result).map_err(somewhere)?;
        Ok((found, result))
    }

    /// How many bytes at the target a peer's atomic works on.
    pub(super) fn atomic_len(&self, form: Form, header: &Header, operand: &[u8]) -> Result<usize, Malformed> {
        if form == Form::Base {
            return Ok(operand.len());
        }
        let len = usize::try_from(header.total).map_err(|_| Malformed)?;
        // The result must fit one packet.
        if len <= self.limits.max_body {
            Ok(len)
        } else {
            Err(Malformed)
        }
    }
}
