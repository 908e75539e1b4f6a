//! The queues and counters of an endpoint, and how an end is told to them.

use crate::abi::types::*;
use crate::api::cntr::Cntr;
use crate::api::cq::{Cq, Entry, ErrorEntry};
use crate::api::eq::Eq;
use crate::api::errno::{Errno, Result};
use crate::api::progress::Progress;
use crate::engine::op::{Completion, Ended, Error, Failure, Kind};
use std::sync::Arc;

struct BoundCq {
    cq: Arc<Cq>,
    /// FI_SELECTIVE_COMPLETION: only what asks for it is reported.
    selective: bool,
}

#[derive(Default)]
pub struct Bindings {
    tx: Option<BoundCq>,
    rx: Option<BoundCq>,
    send_cntr: Option<Arc<Cntr>>,
    recv_cntr: Option<Arc<Cntr>>,
    /// Counters of operations that this endpoint does not have; they only have to be bound.
    other_cntrs: Vec<Arc<Cntr>>,
    eq: Option<Arc<Eq>>,
}

impl Bindings {
    pub fn bind_cq(&mut self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        if flags & (FI_TRANSMIT | FI_RECV) == 0 || flags & !(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 {
            return Err(Errno(FI_EBADFLAGS as i32));
        }
        let twice = flags & FI_TRANSMIT != 0 && self.tx.is_some() || flags & FI_RECV != 0 && self.rx.is_some();
        if twice {
            return Err(Errno(FI_EINVAL));
        }
        let bound = || {
            Some(BoundCq {
                cq: cq.clone(),
                selective: flags & FI_SELECTIVE_COMPLETION != 0,
            })
        };
        if flags & FI_TRANSMIT != 0 {
            cq.refs().take();
            self.tx = bound();
        }
        if flags & FI_RECV != 0 {
            cq.refs().take();
            self.rx = bound();
        }
        Ok(())
    }

    pub fn bind_cntr(&mut self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        const KNOWN: u64 = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
        if flags & KNOWN == 0 || flags & !KNOWN != 0 {
            return Err(Errno(FI_EBADFLAGS as i32));
        }
        for (bit, place) in [(FI_SEND, &mut self.send_cntr), (FI_RECV, &mut self.recv_cntr)] {
            if flags & bit != 0 {
                if place.is_some() {
                    return Err(Errno(FI_EINVAL));
                }
                cntr.refs().take();
                *place = Some(cntr.clone());
            }
        }
        if flags & !(FI_SEND | FI_RECV) != 0 {
            cntr.refs().take();
            self.other_cntrs.push(cntr.clone());
        }
        Ok(())
    }

    /// In place of the one before.
    pub fn bind_eq(&mut self, eq: &Arc<Eq>) {
        eq.refs().take();
        if let Some(before) = self.eq.replace(eq.clone()) {
            before.refs().give();
        }
    }

    /// Whether there is somebody to tell of each direction that the endpoint has.
    pub fn check(&self, send: bool, recv: bool) -> Result<()> {
        let silent = send && self.tx.is_none() && self.send_cntr.is_none()
            || recv && self.rx.is_none() && self.recv_cntr.is_none();
        if silent {
            log!(
                Warn,
                EpCtrl,
                "fi_enable: a completion queue or counter is missing, for sends or for receives"
            );
            return Err(Errno(FI_ENOCQ as i32));
        }
        Ok(())
    }

    fn queues(&self) -> impl Iterator<Item = &Arc<Cq>> {
        [&self.tx, &self.rx].into_iter().flatten().map(|bound| &bound.cq)
    }

    fn counters(&self) -> impl Iterator<Item = &Arc<Cntr>> {
        [&self.send_cntr, &self.recv_cntr]
            .into_iter()
            .flatten()
            .chain(&self.other_cntrs)
    }

    /// From now on reading any of them drives the endpoint.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) {
        self.queues().for_each(|cq| cq.attach(endpoint.clone()));
        self.counters().for_each(|cntr| cntr.attach(endpoint.clone()));
    }

    /// Takes `attach` back.
    pub fn stop(&self, endpoint: &Arc<dyn Progress>) {
        for cq in self.queues() {
            let _ = cq.detach(endpoint);
        }
        for cntr in self.counters() {
            let _ = cntr.detach(endpoint);
        }
    }

    /// Lets go of everything; whoever was not attached is not detached.
    pub fn detach(self, endpoint: &Arc<dyn Progress>) {
        self.stop(endpoint);
        self.queues().for_each(|cq| cq.refs().give());
        self.counters().for_each(|cntr| cntr.refs().give());
        if let Some(eq) = &self.eq {
            eq.refs().give();
        }
    }

    /// Whether a queue is bound for receives.
    pub fn hears_receives(&self) -> bool {
        self.rx.is_some()
    }

    #[inline]
    pub fn tx_selective(&self) -> bool {
        self.tx.as_ref().is_some_and(|bound| bound.selective)
    }

    #[inline]
    pub fn rx_selective(&self) -> bool {
        self.rx.as_ref().is_some_and(|bound| bound.selective)
    }

    /// Tells queue and counter of the direction.
    #[inline(always)]
    pub fn tell(&self, end: &Completion, source: fi_addr_t) {
        let (bound, cntr) = match end.ended {
            Ended::Send | Ended::Rma(_) | Ended::Atomic(_) => (&self.tx, &self.send_cntr),
            Ended::Recv | Ended::Target { .. } => (&self.rx, &self.recv_cntr),
        };
        if let Some(failure) = end.failure {
            return fail(bound.as_ref(), cntr.as_ref(), *end, failure, source);
        }
        // A look is an answer, not an operation that a counter counts.
        if let Some(cntr) = cntr.as_ref().filter(|_| !end.peeked) {
            cntr.complete(end.len);
        }
        if let Some(bound) = bound.as_ref().filter(|_| end.report) {
            bound.cq.post(&Entry {
                context: end.context,
                flags: flags(end),
                len: end.len,
                buf: end.buf,
                data: end.data.unwrap_or(0),
                tag: end.tag,
                src: source,
            });
        }
    }
}

#[inline]
fn flags(end: &Completion) -> u64 {
    let kind = match end.kind {
        Kind::Message => FI_MSG,
        Kind::Tagged => FI_TAGGED,
    };
    let direction = match end.ended {
        Ended::Send | Ended::Rma(_) | Ended::Atomic(_) => FI_SEND,
        Ended::Recv | Ended::Target { .. } => FI_RECV,
    };
    let data = if end.data.is_some() { FI_REMOTE_CQ_DATA } else { 0 };
    let released = if end.released { FI_MULTI_RECV } else { 0 };
    kind | direction | data | released
}

#[cold]
fn fail(bound: Option<&BoundCq>, cntr: Option<&Arc<Cntr>>, end: Completion, failure: Failure, source: fi_addr_t) {
    if let Some(cntr) = cntr.filter(|_| !end.peeked) {
        cntr.fail();
    }
    let Some(bound) = bound else { return };
    let err = errno(failure.error);
    bound.cq.post_error(ErrorEntry {
        context: end.context,
        flags: flags(&end),
        len: end.len,
        buf: end.buf,
        data: end.data.unwrap_or(0),
        tag: end.tag,
        olen: failure.overflow,
        err,
        prov_errno: err,
        src_addr: source,
        ..ErrorEntry::default()
    });
}

fn errno(error: Error) -> i32 {
    match error {
        Error::Truncated => FI_ETRUNC as i32,
        Error::Canceled => FI_ECANCELED,
        Error::NoMessage => FI_ENOMSG,
        Error::PeerGone => FI_EIO,
        Error::NoMemory => FI_ENOMEM,
        Error::Unreachable => FI_EHOSTUNREACH,
        Error::Protocol => FI_EPROTO,
        Error::NoKey => FI_EKEYREJECTED as i32,
        Error::NoRights => FI_EACCES,
        Error::OutOfRange => FI_EINVAL,
        Error::NoSuchAtomic => FI_EOPNOTSUPP,
    }
}
