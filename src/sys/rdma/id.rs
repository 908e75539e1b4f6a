//! A connection identifier of librdmacm (rdma_cm_id) with an event channel of its own, and with the queue pair and the
//! completion queue of its connection.
//!
//! No call waits. An event is copied and acknowledged at once, as ending an identifier waits for that.

use super::calls::Calls;
use super::device::Device;
use super::events::{Objects, Trouble, Watch};
use super::queues::{Queues, Sizes, do_not_wait, pair};
use super::shared::SharedReceives;
use super::types::*;
use super::work::{Piece, Request, Stopped};
use super::{calls, errno, events, told};
use crate::sys::eventfd::EventFd;
use crate::sys::resolve::{from_bytes, to_bytes};
use core::ffi::c_int;
use core::mem::zeroed;
use core::ptr::{NonNull, null, null_mut};
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

pub struct Id {
    calls: &'static Calls,
    id: NonNull<rdma_cm_id>,
    /// Of its queue pair, which is ended before them, in `drop`.
    queues: Option<Arc<Queues>>,
    receives: Option<Arc<SharedReceives>>,
    has_pair: bool,
    /// Of its queue pair.
    watch: Option<Arc<Watch>>,
    /// Dropped after the identifier, which is in `drop`.
    channel: Channel,
}

// SAFETY: an identifier may be used by any thread, one at a time, as `&mut` and its one owner see to.
unsafe impl Send for Id {}

/// A queue pair as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairMade {
    /// What completions call it.
    pub number: u32,
    /// Bytes that a request can carry within itself.
    pub inline: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    AddressResolved,
    RouteResolved,
    Request,
    Established,
    /// The other side, or its kernel, does not want the connection.
    Rejected,
    /// Nobody listens there.
    NobodyThere,
    /// No address, no route, no answer, or an error of the connection's making.
    Failed,
    Disconnected,
    /// The device is gone.
    Removed,
    /// The hardware address of the device is another one, as bonded ports take over from each other.
    AddressChanged,
    /// A port of the device is down, or active again.
    PortDown,
    PortUp,
    Other,
}

/// What has become of an identifier.
pub struct Event {
    pub kind: EventKind,
    /// What the other side sent, with zeros behind it: the protocol does not say how long it was.
    pub data: Vec<u8>,
    /// Of `Request`: the new connection's identifier. None: there are no descriptors left, and it was refused.
    pub request: Option<Id>,
}

/// An event channel.
struct Channel {
    calls: &'static Calls,
    raw: NonNull<rdma_event_channel>,
}

impl Channel {
    fn open(calls: &'static Calls) -> io::Result<Channel> {
        // SAFETY: a call without arguments.
        let raw = unsafe { (calls.rdma_create_event_channel)() };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        let channel = Channel { calls, raw };
        do_not_wait(channel.fd())?;
        Ok(channel)
    }

    fn fd(&self) -> RawFd {
        // SAFETY: open.
        unsafe { self.raw.as_ref() }.fd
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: open, and no identifier is on it any more.
        unsafe { (self.calls.rdma_destroy_event_channel)(self.raw.as_ptr()) };
    }
}

impl Id {
    /// For a connection that this side begins, or to listen. The error says what is missing.
    pub fn open() -> io::Result<Id> {
        let calls = calls::calls().map_err(io::Error::other)?;
        let channel = Channel::open(calls)?;
        let mut id = null_mut();
        // SAFETY: an open channel, and a place for the identifier.
        told(unsafe { (calls.rdma_create_id)(channel.raw.as_ptr(), &mut id, null_mut(), RDMA_PS_TCP) })?;
        let id = NonNull::new(id).ok_or(io::ErrorKind::Other)?;
        Ok(Id {
            calls,
            id,
            queues: None,
            receives: None,
            has_pair: false,
            watch: None,
            channel,
        })
    }

    fn raw(&self) -> &rdma_cm_id {
        // SAFETY: open; librdmacm changes it only in calls on it.
        unsafe { self.id.as_ref() }
    }

    /// The device that it has been bound to, by an address or a request.
    pub fn device(&self) -> Option<Device> {
        // SAFETY: the context is NULL or librdmacm's.
        unsafe { Device::of(self.calls, self.raw().verbs) }
    }

    pub fn local_address(&self) -> Option<SocketAddr> {
        address(&self.raw().route.src_storage)
    }

    pub fn peer_address(&self) -> Option<SocketAddr> {
        address(&self.raw().route.dst_storage)
    }

    /// Becomes readable when `event` has something to tell.
    pub fn event_fd(&self) -> RawFd {
        self.channel.fd()
    }

    pub fn bind(&mut self, to: &SocketAddr) -> io::Result<()> {
        let to = Sockaddr::of(to);
        // SAFETY: an open identifier, and a socket address.
        told(unsafe { (self.calls.rdma_bind_addr)(self.id.as_ptr(), to.raw()) })
    }

    pub fn listen(&mut self, backlog: usize) -> io::Result<()> {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: an open identifier.
        told(unsafe { (self.calls.rdma_listen)(self.id.as_ptr(), backlog) })
    }

    /// Finds the device and the hardware address of `to`. `AddressResolved` or `Failed` follows.
    pub fn resolve_address(&mut self, from: Option<&SocketAddr>, to: &SocketAddr, ms: i32) -> io::Result<()> {
        let (from, to) = (from.map(Sockaddr::of), Sockaddr::of(to));
        let from = from.as_ref().map_or(null(), Sockaddr::raw);
        // SAFETY: an open identifier, and socket addresses; the first may be NULL.
        told(unsafe { (self.calls.rdma_resolve_addr)(self.id.as_ptr(), from, to.raw(), ms) })
    }

    /// After `AddressResolved`. `RouteResolved` or `Failed` follows.
    pub fn resolve_route(&mut self, ms: i32) -> io::Result<()> {
        // SAFETY: an open identifier.
        told(unsafe { (self.calls.rdma_resolve_route)(self.id.as_ptr(), ms) })
    }

    /// Gives it the queue pair, of the protection domain of `queues`, which tell its completions. With `receives` it
    /// has none of its own.
    pub fn make_pair(
        &mut self,
        queues: impl Into<Arc<Queues>>,
        receives: Option<&Arc<SharedReceives>>,
        sizes: &Sizes,
    ) -> io::Result<PairMade> {
        let queues = queues.into();
        if self.has_pair
            || self.device() != Some(queues.pd.device())
            || receives.is_some_and(|receives| receives.pd() != &*queues.pd)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut wanted = pair(&queues, receives.map(|receives| &**receives), sizes);
        // SAFETY: an identifier without a queue pair, a protection domain of its device, and open queues of both kinds.
        told(unsafe { (self.calls.rdma_create_qp)(self.id.as_ptr(), queues.pd.raw(), &mut wanted) })?;
        self.has_pair = true;
        self.queues = Some(queues);
        self.receives = receives.cloned();
        let qp = self.pair()?;
        Ok(PairMade {
            // SAFETY: an open queue pair, whose number never changes.
            number: unsafe { (*qp).qp_num },
            inline: wanted.cap.max_inline_data,
        })
    }

    /// From now on `trouble` hears of its queue pair, and the bell rings.
    pub fn watch(&mut self, bell: &Arc<EventFd>) {
        let pair = self.raw().qp as usize;
        self.watch = self.queues.as_ref().map(|queues| {
            let objects = Objects {
                context: queues.pd.device().context() as usize,
                pair,
                queue: queues.address(),
            };
            events::watch(objects, bell)
        });
    }

    /// How long a peer waits before it sends again what there was no receive for: a code of ibv_modify_qp(3).
    pub fn set_retry_timer(&mut self, code: u8) -> io::Result<()> {
        // SAFETY: numbers, of which zero is one.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.min_rnr_timer = code;
        let qp = self.pair()?;
        // SAFETY: an open queue pair; of the struct only the named field is read.
        errno(unsafe { (self.calls.ibv_modify_qp)(qp, &mut attr, IBV_QP_MIN_RNR_TIMER) })
    }

    /// Asks the other side. `Established`, `Rejected` or `Failed` follows.
    pub fn connect(&mut self, data: &[u8]) -> io::Result<()> {
        let mut asked = parameters(data)?;
        // SAFETY: an identifier with a route and a queue pair, and data that lives through the call.
        told(unsafe { (self.calls.rdma_connect)(self.id.as_ptr(), &mut asked) })
    }

    /// Answers a request. `Established` or `Failed` follows.
    pub fn accept(&mut self, data: &[u8]) -> io::Result<()> {
        let mut asked = parameters(data)?;
        // SAFETY: an identifier with a queue pair, and data that lives through the call.
        told(unsafe { (self.calls.rdma_accept)(self.id.as_ptr(), &mut asked) })
    }

    pub fn reject(&mut self, data: &[u8]) -> io::Result<()> {
        let len = u8::try_from(data.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: an open identifier, and data that lives through the call.
        told(unsafe { (self.calls.rdma_reject)(self.id.as_ptr(), data.as_ptr().cast(), len) })
    }

    /// Puts the queue pair into error, so that all that is posted ends, and tells the other side.
    pub fn disconnect(&mut self) -> io::Result<()> {
        // SAFETY: an open identifier.
        told(unsafe { (self.calls.rdma_disconnect)(self.id.as_ptr()) })
    }

    /// The next event, if there is one.
    pub fn event(&mut self) -> Option<Event> {
        let mut raw = null_mut();
        // SAFETY: an open channel, and a place for the event.
        let none = unsafe { (self.calls.rdma_get_cm_event)(self.channel.raw.as_ptr(), &mut raw) } != 0;
        if none || raw.is_null() {
            return None;
        }
        // SAFETY: an event that is ours until it is acknowledged, here only.
        let (event, taken) = unsafe {
            let event = *raw;
            let taken = private_data(&event);
            (self.calls.rdma_ack_cm_event)(raw);
            (event, taken)
        };
        let kind = kind(event.event, event.status);
        let request = match kind {
            // SAFETY: a new identifier, which nobody else has.
            EventKind::Request => unsafe { self.adopt(event.id) },
            _ => None,
        };
        Some(Event {
            kind,
            data: taken,
            request,
        })
    }

    /// What its device has told of its queue pair since `watch`, as far as anybody has looked (`Device::look`), each
    /// once.
    pub fn trouble(&mut self) -> Option<Trouble> {
        self.watch.as_ref()?.take()
    }

    /// The identifier of a request, on a channel of its own. None: there are no descriptors left; it is refused.
    ///
    /// # Safety
    /// A new identifier of an event on this channel, which has been acknowledged.
    unsafe fn adopt(&self, id: *mut rdma_cm_id) -> Option<Id> {
        let id = NonNull::new(id)?;
        let moved = Channel::open(self.calls).and_then(|channel| {
            // SAFETY: both are open, and the identifier has no event that was not acknowledged.
            told(unsafe { (self.calls.rdma_migrate_id)(id.as_ptr(), channel.raw.as_ptr()) })?;
            Ok(channel)
        });
        match moved {
            Ok(channel) => Some(Id {
                calls: self.calls,
                id,
                queues: None,
                receives: None,
                has_pair: false,
                watch: None,
                channel,
            }),
            Err(_) => {
                // SAFETY: ours alone, and ended here.
                unsafe { (self.calls.rdma_destroy_id)(id.as_ptr()) };
                None
            }
        }
    }

    /// Its queues, once it has a queue pair.
    pub fn queues(&self) -> Option<&Queues> {
        self.queues.as_deref()
    }

    fn pair(&self) -> io::Result<*mut ibv_qp> {
        if self.has_pair {
            Ok(self.raw().qp)
        } else {
            Err(io::ErrorKind::NotConnected.into())
        }
    }

    /// Posts requests with one doorbell for up to `LINKED` of them.
    ///
    /// # Safety
    /// The memory of the pieces is lent until the request has completed: to be read, and for a read to be written. With
    /// `inline`, until the call returns.
    pub unsafe fn post_sends(&mut self, requests: &[Request<'_>]) -> Result<(), Stopped> {
        let stopped = |taken: usize, why: io::Error| Stopped { taken, why };
        if let [one] = requests {
            let mut list = [one.raw().map_err(|why| stopped(0, why))?];
            // SAFETY: the caller's promise.
            return unsafe { self.post_linked(&mut list) };
        }
        for (at, some) in requests.chunks(LINKED).enumerate() {
            // SAFETY: numbers and pointers, of which zero and NULL are one.
            let mut list: [ibv_send_wr; LINKED] = unsafe { zeroed() };
            for (place, request) in list.iter_mut().zip(some) {
                *place = request.raw().map_err(|why| stopped(at * LINKED, why))?;
            }
            // SAFETY: the caller's promise.
            let posted = unsafe { self.post_linked(&mut list[..some.len()]) };
            posted.map_err(|here| stopped(at * LINKED + here.taken, here.why))?;
        }
        Ok(())
    }

    /// Posts a list, which is not empty, by one call.
    ///
    /// # Safety
    /// As `post_sends`.
    unsafe fn post_linked(&mut self, list: &mut [ibv_send_wr]) -> Result<(), Stopped> {
        let none_taken = |why: io::Error| Stopped { taken: 0, why };
        let qp = self.pair().map_err(none_taken)?;
        let (first, count) = (list.as_mut_ptr(), list.len());
        for at in 1..count {
            // SAFETY: both are in the list.
            unsafe { (*first.add(at - 1)).next = first.add(at) };
        }
        let mut bad = null_mut();
        // SAFETY: a queue pair's context has all calls of its device.
        let post = unsafe { (*(*qp).context).ops.post_send };
        let post = post.ok_or_else(|| none_taken(io::ErrorKind::Unsupported.into()))?;
        // SAFETY: an open queue pair, and a list that is read before the call returns; the memory by the caller's
        // promise.
        errno(unsafe { post(qp, first, &mut bad) }).map_err(|why| Stopped {
            // The call points to the first that was not taken.
            taken: (0..count)
                .position(|at| core::ptr::eq(bad, first.wrapping_add(at)))
                .unwrap_or(0),
            why,
        })
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// The memory of the pieces is lent, to be written, until the receive has completed.
    pub unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        let qp = self.pair()?;
        let mut request = ibv_recv_wr {
            wr_id: id,
            next: null_mut(),
            sg_list: pieces.as_ptr().cast_mut().cast(),
            num_sge: c_int::try_from(pieces.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        };
        let mut bad = null_mut();
        // SAFETY: a queue pair's context has all calls of its device.
        let post = unsafe { (*(*qp).context).ops.post_recv }.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: as for `post_linked`.
        errno(unsafe { post(qp, &mut request, &mut bad) })
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: open, ended here only, the queue pair first; no event waits for acknowledgement.
        unsafe {
            if self.has_pair {
                (self.calls.rdma_destroy_qp)(self.id.as_ptr());
            }
            (self.calls.rdma_destroy_id)(self.id.as_ptr());
        }
    }
}

/// The most requests that are linked to one list: what fits a stack, and more than a doorbell costs.
const LINKED: usize = 16;

const _: () = assert!(size_of::<Piece>() == size_of::<ibv_sge>());

/// As the status of a refusal: InfiniBand's reason for a service that is not there, and iWARP's errno.
const NOBODY_THERE: [c_int; 2] = [8, -libc::ECONNREFUSED];

/// As many reads at once as both devices can do; a peer that has no receive is tried for ever, one that does not answer
/// six times more: Soft-RoCE takes seven, the most there is, for endless.
fn parameters(data: &[u8]) -> io::Result<rdma_conn_param> {
    Ok(rdma_conn_param {
        private_data: data.as_ptr().cast(),
        private_data_len: u8::try_from(data.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        responder_resources: u8::MAX,
        initiator_depth: u8::MAX,
        flow_control: 1,
        retry_count: 6,
        rnr_retry_count: 7,
        srq: 0,
        qp_num: 0,
    })
}

/// `status`: an errno below 0, or a reason of the protocol's.
fn kind(event: c_int, status: c_int) -> EventKind {
    match event {
        RDMA_CM_EVENT_ADDR_RESOLVED => EventKind::AddressResolved,
        RDMA_CM_EVENT_ROUTE_RESOLVED => EventKind::RouteResolved,
        RDMA_CM_EVENT_CONNECT_REQUEST => EventKind::Request,
        RDMA_CM_EVENT_CONNECT_RESPONSE | RDMA_CM_EVENT_ESTABLISHED => EventKind::Established,
        RDMA_CM_EVENT_REJECTED if NOBODY_THERE.contains(&status) => EventKind::NobodyThere,
        RDMA_CM_EVENT_REJECTED => EventKind::Rejected,
        RDMA_CM_EVENT_ADDR_ERROR
        | RDMA_CM_EVENT_ROUTE_ERROR
        | RDMA_CM_EVENT_CONNECT_ERROR
        | RDMA_CM_EVENT_UNREACHABLE => EventKind::Failed,
        RDMA_CM_EVENT_DISCONNECTED => EventKind::Disconnected,
        RDMA_CM_EVENT_DEVICE_REMOVAL => EventKind::Removed,
        RDMA_CM_EVENT_ADDR_CHANGE => EventKind::AddressChanged,
        _ => EventKind::Other,
    }
}

/// # Safety
/// An event that has not been acknowledged.
unsafe fn private_data(event: &rdma_cm_event) -> Vec<u8> {
    let (data, len) = (event.param.private_data, usize::from(event.param.private_data_len));
    if data.is_null() {
        return Vec::new();
    }
    // SAFETY: an event's data has that many bytes; those of datagrams, whose struct begins alike, do not come here.
    unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec()
}

/// A socket address in the form that C takes.
struct Sockaddr(libc::sockaddr_storage);

impl Sockaddr {
    fn of(address: &SocketAddr) -> Sockaddr {
        // SAFETY: numbers, of which zero is one.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let bytes = to_bytes(address);
        // SAFETY: a storage has room for every socket address.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut storage).cast(), bytes.len()) };
        Sockaddr(storage)
    }

    fn raw(&self) -> *const libc::sockaddr {
        (&raw const self.0).cast()
    }
}

fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let len = size_of::<libc::sockaddr_storage>();
    // SAFETY: the storage is that long, and all of it was written.
    from_bytes(unsafe { core::slice::from_raw_parts((&raw const *storage).cast(), len) })
}
