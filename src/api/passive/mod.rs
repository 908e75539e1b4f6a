//! Passive endpoints: they listen, and report who wants to connect to an event queue.
//!
//! Provider-independent: `Listener` is the provider's. Knows no C type of an object. Called by `abi::object::pep`.

use super::domain::Fabric;
use super::eq::Eq;
use super::errno::{Errno, Result};
use super::progress::Progress;
use crate::abi::types::{FI_EBUSY, FI_EINVAL, FI_ENOEQ, FI_EOPBADSTATE};
use crate::util::closable::{Closable, Entered};
use std::os::fd::RawFd;
use std::sync::Arc;

/// What listens for connections on behalf of a passive endpoint. None of the calls waits.
pub trait Listener: Send + 'static {
    type Request: Request;

    /// fi_listen: from now on requests may come. `backlog`: how many may wait for `next_request`. Called again, it
    /// changes that.
    fn listen(&mut self, backlog: usize) -> Result<()>;

    /// The next request that has come with all its data. Called over and over while somebody reads the event queue;
    /// does whatever work there is.
    fn next_request(&mut self) -> Option<Incoming<Self::Request>>;

    /// fi_getname.
    fn local_address(&self) -> Vec<u8>;

    /// fi_setname, before `listen`.
    fn rename(&mut self, address: &[u8]) -> Result<()>;

    /// Becomes readable when `next_request` has something to do. The same from `listen` on.
    fn wake_fd(&self) -> Option<RawFd>;

    /// Drains `wake_fd`. False: there is work, so do not sleep. Nothing to do for a descriptor that stays readable
    /// while there is work, as an epoll set does.
    fn arm(&mut self) -> bool {
        true
    }
}

/// A request to connect, with what the program is told of it.
pub struct Incoming<R> {
    /// The address of the side that connects, and the one that it connected to.
    pub peer: Vec<u8>,
    pub local: Vec<u8>,
    /// What the other side gave fi_connect.
    pub data: Vec<u8>,
    pub request: R,
}

/// A request that was neither accepted nor rejected. Dropped, it is refused without data.
pub trait Request: Send + 'static {
    /// fi_reject. At most `Connected::DATA_SIZE` bytes.
    fn reject(self, data: &[u8]);
}

/// Where requests go: the event queue, once there is a handle for each.
pub trait Requests<R>: Send + Sync + 'static {
    fn arrived(&self, eq: &Eq, incoming: Incoming<R>);
}

/// A passive endpoint. Reading its event queue drives it.
pub struct Passive<L: Listener> {
    fabric: Arc<Fabric>,
    /// How programs see its address.
    pub addr_format: u32,
    requests: Box<dyn Requests<L::Request>>,
    core: Closable<Core<L>>,
}

struct Core<L> {
    listener: L,
    eq: Option<Arc<Eq>>,
    backlog: usize,
    listening: bool,
}

/// Requests that may wait where the program does not say (FI_BACKLOG).
const BACKLOG: usize = 1024;

impl<L: Listener> Passive<L> {
    pub fn new(
        fabric: &Arc<Fabric>,
        listener: L,
        addr_format: u32,
        requests: Box<dyn Requests<L::Request>>,
    ) -> Arc<Passive<L>> {
        fabric.users.acquire();
        let core = Core {
            listener,
            eq: None,
            backlog: BACKLOG,
            listening: false,
        };
        Arc::new(Passive {
            fabric: fabric.clone(),
            addr_format,
            requests,
            core: Closable::new(core, true),
        })
    }

    fn enter(&self) -> Result<Entered<'_, Core<L>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    /// fi_pep_bind. Another queue in its place is -FI_EINVAL, as the events about the endpoint are in the first.
    pub fn bind_eq(&self, eq: &Arc<Eq>) -> Result<()> {
        let mut core = self.enter()?;
        match &core.eq {
            Some(bound) if Arc::ptr_eq(bound, eq) => Ok(()),
            Some(_) => Err(Errno(FI_EINVAL)),
            None => {
                eq.refs().acquire();
                core.eq = Some(eq.clone());
                Ok(())
            }
        }
    }

    /// FI_BACKLOG.
    pub fn set_backlog(&self, backlog: i32) -> Result<()> {
        let backlog = usize::try_from(backlog).map_err(|_| Errno(FI_EINVAL))?;
        let mut core = self.enter()?;
        core.backlog = backlog;
        if core.listening {
            core.listener.listen(backlog)?;
        }
        Ok(())
    }

    /// fi_listen. -FI_EINVAL: it does already, as in the C library.
    pub fn listen(self: &Arc<Self>) -> Result<()> {
        let mut core = self.enter()?;
        let provider = self.fabric.provider;
        let Some(eq) = core.eq.clone() else {
            log!(by provider; Warn, EpCtrl, "fi_listen: no event queue is bound");
            return Err(Errno(FI_ENOEQ as i32));
        };
        if core.listening {
            log!(by provider; Warn, EpCtrl, "fi_listen: the endpoint listens already");
            return Err(Errno(FI_EINVAL));
        }
        let backlog = core.backlog;
        core.listener.listen(backlog)?;
        core.listening = true;
        drop(core);
        eq.attach(self.clone());
        Ok(())
    }

    /// fi_getname.
    pub fn local_address(&self) -> Result<Vec<u8>> {
        Ok(self.enter()?.listener.local_address())
    }

    /// fi_setname. -FI_EBUSY once it listens: peers may know the old one.
    pub fn rename(&self, address: &[u8]) -> Result<()> {
        let mut core = self.enter()?;
        if core.listening {
            log!(by self.fabric.provider; Warn, EpCtrl, "fi_setname: the endpoint listens already");
            return Err(Errno(FI_EBUSY));
        }
        core.listener.rename(address)
    }

    /// Ends the listener, as an active endpoint gets its address; the rest goes with fi_close. Returns the address, and
    /// the event queue as `close` does.
    pub fn give_up_address(self: &Arc<Self>) -> Result<(Vec<u8>, Option<Arc<Eq>>)> {
        let address = self.local_address()?;
        Ok((address, self.end()))
    }

    /// fi_close. Returns the event queue, which may have events about the endpoint.
    pub fn close(self: &Arc<Self>) -> Option<Arc<Eq>> {
        let eq = self.end();
        self.fabric.users.release();
        eq
    }

    fn end(self: &Arc<Self>) -> Option<Arc<Eq>> {
        let (eq, listening) = {
            let mut core = self.core.enter()?;
            (core.eq.take(), core.listening)
        };
        if let Some(eq) = &eq {
            if listening {
                let _ = eq.detach(&(self.clone() as Arc<dyn Progress>));
            }
            eq.refs().release();
        }
        self.core.close();
        eq
    }
}

impl<L: Listener> Progress for Passive<L> {
    fn progress(&self) {
        let Some(mut core) = self.core.poll() else { return };
        let core = &mut *core;
        let Some(eq) = &core.eq else { return };
        while let Some(incoming) = core.listener.next_request() {
            self.requests.arrived(eq, incoming);
        }
    }

    fn arm(&self) -> bool {
        self.core.enter().is_none_or(|mut core| core.listener.arm())
    }

    fn settle(&self) {
        self.core.pass();
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.core.enter()?.listener.wake_fd()
    }
}
