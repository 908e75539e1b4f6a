//! One endpoint over a scripted device: the test says what the device answers and what completes, and sees what was
//! asked of it. Here are the device, the card and the endpoint, for all tests.
//!
//! - `connection`: how it comes about and ends, each step that can fail, and news in an order that makes no sense.
//! - `atomics`: which there are, and what the device is asked for.
//! - `sends`: which requests are signalled, lists with one doorbell, and the mark at the end.
//! - `requests`: what is posted and completed, what is refused, and how the end of a connection ends it.
//! - `shared`: receives of several endpoints.
//! - `memory`: which key the device is told.
//! - `datagram`: an endpoint of datagrams over a device of its own.

mod atomics;
mod connection;
mod datagram;
mod memory;
mod requests;
mod sends;
mod shared;

use super::*;
use crate::engine::op::{
    self, CompletedOp, Completion, CompletionLevel, Error, MessageKind, PostHint, Refused, RemoteIov, RemotePart, Tell,
    Unreached,
};
use crate::sys::rdma::{
    Access, Done, DoneKind, EventKind, Failure, Opcode, PairMade, Piece, Request, Sizes, Stopped, Work,
};
use crate::util::user::{Lent, UserBuf, UserIov};
use seam::News;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};

/// What the device was asked, what it will tell, and what fails.
#[derive(Default)]
struct Script {
    asked: Vec<&'static str>,
    /// The call that fails from now on, and with which errno.
    fails: Option<(&'static str, i32)>,
    /// The request that is refused once, and with which errno.
    refuses: Option<(u64, i32)>,
    refused: Vec<u64>,
    /// Completions that there is to be room for.
    room: usize,
    /// Of the queue pair.
    pair: Option<Sizes>,
    news: VecDeque<News>,
    done: VecDeque<Done>,
    sends: Vec<(Work, Vec<Piece>)>,
    receives: Vec<(u64, Vec<Piece>)>,
    data: Vec<u8>,
}

#[derive(Clone, Default)]
struct Device(Arc<Mutex<Script>>);

const INLINE: u32 = 16;

impl Device {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    fn call(&self, name: &'static str) -> io::Result<MutexGuard<'_, Script>> {
        let mut script = self.script();
        script.asked.push(name);
        match script.fails {
            Some((failing, errno)) if failing == name => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(script),
        }
    }

    fn tells(&self, kind: EventKind, data: &[u8]) {
        let data = data.to_vec();
        self.script().news.push_back(News { kind, data });
    }

    fn completes(&self, id: u64, kind: DoneKind, failure: Option<Failure>) {
        let (len, data) = (5, (kind == DoneKind::Written).then_some(77));
        self.script().done.push_back(Done {
            id,
            kind,
            failure,
            len,
            data,
            pair: 0,
        });
    }

    /// As hardware does for a queue pair in error: all that is posted comes back.
    fn flushes(&self) {
        let posted: Vec<u64> = {
            let script = self.script();
            let sends = script.sends.iter().map(|(work, _)| work.id);
            sends.chain(script.receives.iter().map(|(id, _)| *id)).collect()
        };
        for id in posted {
            self.completes(id, DoneKind::Other, Some(Failure::Flushed));
        }
    }
}

impl Receives for Device {
    unsafe fn post(&self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        self.call("shared receive")
            .map(|mut script| script.receives.push((id, pieces.to_vec())))
    }
}

impl Connection for Device {
    fn resolve_address(&mut self, _: Option<&SocketAddr>, _: &SocketAddr) -> io::Result<()> {
        self.call("address").map(drop)
    }

    fn resolve_route(&mut self) -> io::Result<()> {
        self.call("route").map(drop)
    }

    fn connect(&mut self, data: &[u8]) -> io::Result<()> {
        self.call("connect").map(|mut script| script.data = data.to_vec())
    }

    fn accept(&mut self, data: &[u8]) -> io::Result<()> {
        self.call("accept").map(|mut script| script.data = data.to_vec())
    }

    fn reject(&mut self, _: &[u8]) {
        unreachable!("a listener's work");
    }

    fn disconnect(&mut self) {
        drop(self.call("disconnect"));
    }

    fn news(&mut self) -> Option<News> {
        self.script().news.pop_front()
    }
}

impl QueuePair for Device {
    type Connection = Device;

    fn connection(&mut self) -> &mut Device {
        self
    }

    fn make_pair(&mut self, sizes: &Sizes) -> io::Result<PairMade> {
        self.call("pair").map(|mut script| {
            script.pair = Some(*sizes);
            PairMade {
                number: 0,
                inline: INLINE,
            }
        })
    }

    unsafe fn post_sends(&mut self, requests: &[Request<'_>]) -> Result<(), Stopped> {
        assert!(!requests.is_empty());
        let none_taken = |why| Stopped { taken: 0, why };
        let mut script = self.call("send").map_err(none_taken)?;
        for (taken, Request { work, pieces }) in requests.iter().enumerate() {
            if let Some((id, errno)) = script.refuses.take_if(|(id, _)| *id == work.id) {
                script.refused.push(id);
                let why = io::Error::from_raw_os_error(errno);
                return Err(Stopped { taken, why });
            }
            script.sends.push((*work, pieces.to_vec()));
        }
        Ok(())
    }
}

impl Completions for Device {
    fn poll(&mut self, room: &mut [Done]) -> io::Result<usize> {
        let mut script = self.call("poll")?;
        let count = script.done.len().min(room.len());
        for (place, done) in room.iter_mut().zip(script.done.drain(..count)) {
            *place = done;
        }
        Ok(count)
    }

    fn notify(&mut self) -> io::Result<()> {
        self.call("notify").map(drop)
    }

    fn wake_fd(&self) -> RawFd {
        -1
    }
}

impl Link for Device {
    type Receives = Device;

    fn share(&mut self, _: &Arc<Device>) {
        self.script().asked.push("share");
    }

    fn make_room(&mut self, completions: usize) -> io::Result<()> {
        self.call("room").map(|mut script| script.room = completions)
    }

    fn set_retry_timer(&mut self, code: u8) -> io::Result<()> {
        assert_eq!(code, config().retry_timer);
        self.call("timer").map(drop)
    }

    fn trouble(&mut self) -> Option<EventKind> {
        None
    }

    unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        self.call("receive")
            .map(|mut script| script.receives.push((id, pieces.to_vec())))
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        Some(peer())
    }
}

/// Registers memory by giving keys in order; counts what is registered.
#[derive(Clone, Default)]
struct Card(Arc<Mutex<(u32, usize)>>);

struct Known(Card, u32);

impl Nic for Card {
    fn register(&self, memory: &UserBuf, _: Access) -> io::Result<Box<dyn Registration>> {
        if memory.len() > 1000 {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let mut count = self.0.lock().unwrap();
        count.0 += 1;
        count.1 += 1;
        Ok(Box::new(Known(self.clone(), count.0)))
    }
}

impl Registration for Known {
    fn local_key(&self) -> u32 {
        self.1
    }

    fn remote_key(&self) -> u32 {
        self.1 + 100
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().1 -= 1;
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 7))
}

fn config() -> Config {
    Config {
        sizes: Sizes {
            sends: 2,
            receives: 2,
            send_pieces: 2,
            receive_pieces: 1,
            inline: INLINE,
        },
        from: None,
        retry_timer: 12,
        atomics: true,
        warn: |_| {},
    }
}

struct Bed {
    device: Device,
    end: VerbsEndpoint<Device>,
    /// Registered.
    buffer: Lent,
    memory: Arc<Registrations>,
}

impl Bed {
    fn new() -> Bed {
        let device = Device::default();
        let memory = Arc::new(Registrations::new(Box::new(Card::default())));
        let buffer = Lent::new(&[64], 0);
        let all = buffer.iov().only().unwrap();
        memory.register(&all, Access::default()).unwrap();
        Bed {
            end: VerbsEndpoint::new(device.clone(), memory.clone(), config()),
            device,
            buffer,
            memory,
        }
    }

    fn connected() -> Bed {
        let mut bed = Bed::new();
        bed.accept();
        bed
    }

    fn accept(&mut self) {
        self.end.accept(b"").unwrap();
        self.device.tells(EventKind::Established, b"");
        assert_eq!(self.poll(), []);
        assert_eq!(self.end.happened(), Some(Happened::Connected { data: Vec::new() }));
    }

    fn poll(&mut self) -> Vec<Completion> {
        let mut reported = Vec::new();
        self.end.poll(&mut |end| reported.push(end));
        reported
    }

    /// Context and error of what completes.
    fn ends(&mut self) -> Vec<(usize, Option<Error>)> {
        let told = self.poll();
        told.iter()
            .map(|end| (end.context, end.failure.map(|failure| failure.error)))
            .collect()
    }

    fn part(&self, len: usize) -> UserIov {
        self.buffer.iov().part(0, len)
    }

    fn send(&mut self, len: usize, context: usize) -> Result<(), Refused> {
        let send = send_of(self.part(len), context);
        self.end.send(&send, HEARD)
    }

    fn recv(&mut self, context: usize) -> Result<(), Refused> {
        let recv = recv_of(self.part(32), context);
        self.end.recv(&recv)
    }
}

/// An operation by itself, whose success somebody wants to hear of.
const HEARD: PostHint = PostHint {
    more: false,
    silent: false,
};

fn send_of(body: UserIov, context: usize) -> op::Send {
    op::Send {
        kind: MessageKind::Untagged,
        to: 0,
        tag: 0,
        data: None,
        body,
        inject: false,
        level: CompletionLevel::Inject,
        fence: false,
        context,
        tell: Tell::Queue,
    }
}

fn recv_of(body: UserIov, context: usize) -> op::Recv {
    op::Recv {
        kind: MessageKind::Untagged,
        from: None,
        tag: 0,
        ignore: 0,
        body,
        multi: None,
        context,
        tell: Tell::Queue,
    }
}

fn rma_of(access: op::Access, local: UserIov, key: u64) -> op::Rma {
    let len = local.len();
    op::Rma {
        access,
        to: 0,
        local,
        remote: RemoteIov::one(RemotePart { addr: 0x1000, len, key }),
        data: None,
        inject: false,
        level: op::CompletionLevel::Delivery,
        fence: false,
        context: 3,
        tell: Tell::Queue,
    }
}
