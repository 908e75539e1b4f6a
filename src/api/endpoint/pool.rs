//! Shared receive contexts: one set of posted receives that several endpoints take their messages to.
//!
//! The endpoints share one engine over a lane for each (`lanes`), so matching is exact across all of them and an
//! endpoint that shares nothing pays nothing. The price is one lock for all that share. A message's end is told to the
//! queues of the endpoint it was sent to; what belongs to no endpoint (a cancelled receive, a look that finds nothing)
//! to the context's own queue if it has one, else to the first endpoint's.

mod member;

use super::Wire;
use super::lanes::Lanes;
use super::managed::{Managed, stop};
use super::side::{Side, Told, refused};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::collective::run::Runner;
use crate::api::cq::Cq;
use crate::api::domain::{Domain, unused};
use crate::api::driver::Driver;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{Info, RxAttr};
use crate::api::messaging::{Messaging, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::api::refs::Refs;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Context, MessageKind, Refused};
use crate::engine::port::{Limits, PeerId, Transport};
use crate::util::closable::{Closable, Entered};
use crate::util::user::UserIov;
use std::collections::HashSet;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use member::Member;

/// The number that regions know all by who share a context, as they are one engine: a region that is bound to one of them
/// is reached through the others too.
const SHARED_NUMBER: u64 = 0;

/// A shared receive context.
pub struct Pool<T: Wire> {
    domain: Arc<Domain>,
    /// Endpoints bound to it.
    users: Refs,
    pub(super) core: Closable<Core<T>>,
}

type SharedEngine<T> = Engine<Lanes<T>>;

/// What an engine says of an operation that it was given.
type Begun = core::result::Result<(), Refused>;

pub struct Core<T: Wire> {
    pub(super) engine: SharedEngine<T>,
    /// The context's own.
    side: Side,
    /// By lane; None: closed.
    pub(super) members: Vec<Option<Side>>,
    /// Somebody sleeps who was told that nothing is unfinished.
    deep: bool,
    /// One of the members is a target for peers; somebody counts what they do.
    target: bool,
    counted: bool,
    /// After the engine, which may still use its memory. Owners are lanes.
    pub(super) runner: Runner,
    /// Empty between calls, kept for its memory.
    pub(super) ended: Told,
}

impl<T: Wire + 'static> Pool<T> {
    pub fn open(domain: &Arc<Domain>, caps: u64, rx: &RxAttr, limits: Limits) -> Arc<Pool<T>> {
        domain.users.take();
        let info = Info {
            caps: caps & !FI_SEND | FI_RECV,
            rx: Some(rx.clone()),
            ..Info::default()
        };
        let mut side = Side::new(domain.provider, &info);
        side.enabled = true;
        side.deferred = Some(domain.deferred.clone());
        let core = Core {
            engine: Engine::new(Lanes::new(limits)),
            side,
            members: Vec::new(),
            deep: false,
            target: false,
            counted: false,
            runner: Runner::default(),
            ended: Told::default(),
        };
        Arc::new(Pool {
            domain: domain.clone(),
            users: Refs::default(),
            core: Closable::new(core, domain.crossed),
        })
    }
}

impl<T: Wire> Pool<T> {
    /// Lets peers of all who share it at the domain's memory, if one of them is to be a target; those who meet it on this
    /// lane by themselves, unless what they do is counted.
    fn open_memory(&self, lane: usize, target: bool, counted: bool) {
        let Some(mut core) = self.core.enter() else { return };
        core.target |= target;
        core.counted |= counted;
        let (any_counted, regions) = (core.counted, &self.domain.memory.regions);
        if core.target {
            core.engine.expose_regions(regions.clone(), SHARED_NUMBER, any_counted);
        }
        if target && !counted {
            core.engine.transport_mut().show_by(lane, regions, SHARED_NUMBER);
        }
    }
}

impl<T: Wire> Pool<T> {
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered<'_, Core<T>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    /// Drives all who share it. False: it is closed, or another thread is at it.
    fn drive(&self) -> bool {
        self.core.poll().map(|mut core| core.progress()).is_some()
    }

    /// Ends all that is unfinished, and lets go of the address vector and the domain.
    fn end(&self) {
        if self.core.close() {
            self.domain.users.give();
        }
    }
}

impl<T: Wire> Drop for Pool<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: Wire> Core<T> {
    pub(super) fn tell(&mut self) {
        if !self.ended.ends.is_empty() {
            self.tell_ended();
        }
        if self.runner.is_ready() {
            self.tell_collectives();
        }
    }

    pub(super) fn tell_ended(&mut self) {
        let lanes = self.engine.transport();
        for end in self.ended.ends.drain(..) {
            if end.kind == MessageKind::Collective {
                self.runner.ended(&end);
                continue;
            }
            let lane = end.source.map(|peer| lanes.lane_of(peer));
            let side = match lane {
                Some(Some(lane)) => self.members.get_mut(lane).and_then(Option::as_mut),
                Some(None) | None if self.side.bindings.hears_receives() => Some(&mut self.side),
                Some(None) | None => self.members.iter_mut().flatten().next(),
            };
            if let Some(side) = side {
                side.tell::<T>(&end, |peer| lanes.address_of(peer));
            }
        }
    }

    /// Lets go of peers that are gone and that nobody means to meet again.
    #[cold]
    fn forget_peers(&mut self) {
        let sides = self.members.iter_mut().flatten().chain([&mut self.side]);
        let known: HashSet<PeerId> = sides.flat_map(|side| side.peers.held()).collect();
        let runner = &self.runner;
        let gone = self
            .engine
            .forget_peers(|peer| known.contains(&peer) || runner.names(peer));
        for side in self.members.iter_mut().flatten().chain([&mut self.side]) {
            side.peers.reuse(&gone);
        }
    }

    fn progress(&mut self) {
        self.engine.progress(&mut self.ended);
        self.runner.retry();
        self.tell();
        let lanes = self.engine.transport();
        for refusal in self.ended.refusals.drain(..) {
            refusal.log(self.side.provider, lanes.address_of(refusal.from));
        }
        if std::mem::take(&mut self.ended.seldom) && lanes.is_crowded() {
            self.forget_peers();
        }
    }

    /// Whether something waits for a peer.
    fn unfinished(&self) -> bool {
        self.engine.unfinished() || self.runner.is_stalled()
    }

    /// An operation was begun, and somebody sleeps who may have to end it: see `Endpoint`.
    pub(super) fn begun(&mut self, driver: Option<&Driver>) {
        if !(self.deep || driver.is_some()) || !self.unfinished() {
            return;
        }
        self.deep = false;
        match driver {
            Some(driver) => driver.watch(),
            None => self.engine.transport().wake(),
        }
    }
}

impl<T: Wire + 'static> Managed for Arc<Pool<T>> {
    type Wire = T;
    type Base = Self;

    fn base(&self) -> &Self {
        self
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn side<R>(&self, use_it: impl FnOnce(&mut Side) -> R) -> R {
        match self.core.enter() {
            Some(mut core) => use_it(&mut core.side),
            None => use_it(&mut Side::new(self.domain.provider, &Info::default())), // closed; nobody calls then
        }
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn unfinished(&self) -> (usize, usize) {
        (0, self.core.enter().map_or(0, |core| core.engine.posted()))
    }

    fn local_address(&self) -> Vec<u8> {
        Vec::new()
    }

    /// It works from the beginning.
    fn enable(&self) -> Result<()> {
        Ok(())
    }

    fn cancel(&self, context: Context) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let found = core.engine.cancel(context, &mut core.ended);
        core.tell();
        drop(guard);
        self.domain.deferred.run();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }

    /// Programs may bind a queue, though nothing is told to it but what belongs to no endpoint.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.side(|side| side.bindings.bind_cq(cq, flags))
    }

    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.side(|side| side.bind_av(av))
    }

    fn close(&self) -> Result<()> {
        unused(&self.users)?;
        self.side(|side| unused(&side.aliases))?;
        stop(self);
        self.end();
        Ok(())
    }
}

impl<T: Wire> Messaging for Pool<T> {
    fn send(&self, _: &SendCall, _: &UserIov) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }

    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let lanes = core.engine.transport_mut();
        let (recv, look) = core.side.incoming::<T>(call, body, |address| lanes.peer(address))?;
        let result = match look {
            None => core.engine.recv(&recv, &mut core.ended),
            Some(look) => core.engine.peek(look, &recv, &mut core.ended),
        };
        core.tell();
        core.begun(self.domain.driver.as_ref());
        drop(guard);
        self.domain.deferred.run();
        result.map_err(refused)
    }
}

impl<T: Wire> Rma for Pool<T> {
    fn rma(&self, _: &RmaCall) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

impl<T: Wire> Atomics for Pool<T> {
    fn atomic(&self, _: &AtomicCall) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

impl<T: Wire> Progress for Pool<T> {
    fn progress(&self) {
        if self.drive() {
            self.domain.deferred.run();
        }
    }

    /// Nobody can wake who sleeps on the context's own queue.
    fn arm(&self) -> bool {
        self.core.is_closed()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}
