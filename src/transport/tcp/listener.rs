//! The socket that others connect to, and those who have connected and not yet said who they are.
//!
//! The contexts of a scalable endpoint share one: whichever polls accepts for all, hears them (`introduction`), and
//! lays each connection on the desk of the context that is wanted. A process-wide list finds it by its address.
//! Strangers who say nothing are bounded in number and time. Decides nothing about peers. Called by `arrivals`,
//! `passive` and `mod`.

use super::address;
use super::config::{Config, ONE_SECRET, OpenError};
use super::handshake::{Answer, Stranger, Verdict};
use super::introduction::{Interview, Introduced, Told};
use super::secret::{Secret, dialed};
use super::sockets;
use crate::sys::clock;
use crate::sys::epoll::{Epoll, Events};
use crate::sys::eventfd::EventFd;
use crate::sys::forks::ParentFd;
use crate::sys::lock::{Held, Lock};
use crate::sys::stream::{self, First, Part};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

/// As many may be connected without having said hello. With more, the oldest goes, but for those of the last second.
const GUESTS: usize = 256;
const GRACE_MS: u64 = 1000;
/// For so long.
const PATIENCE_MS: u64 = 10_000;
/// How long nobody is accepted after that failed for want of descriptors.
const PAUSE_MS: u64 = 100;
/// Connections accepted in one go.
const BURST: usize = 64;

const LISTENER: u64 = u64::MAX;

/// A connection whose dialer has said hello, and proven the secret if there is one.
pub(super) struct Arrival {
    pub socket: ParentFd,
    /// Grows in the order in which the dialers connected, which may have said hello in another one.
    pub number: u64,
    /// Where it came from.
    pub from: SocketAddr,
    pub said: Introduced,
    /// What answers prove.
    secret: Option<Secret>,
}

impl Arrival {
    /// Tells the dialer what becomes of its connection. A fresh socket takes that; if not, its end says enough.
    /// `data`: what the program at a passive endpoint says.
    pub(super) fn answer(&self, verdict: Verdict, instance: u64, data: &[u8]) -> bool {
        let answer = Answer { verdict, instance };
        let bytes = self.said.answer(&answer, data, self.secret.as_ref());
        stream::send(self.socket.as_fd(), &bytes, &[], &Part::NONE).is_ok_and(|sent| sent == bytes.len())
    }
}

/// Where the connections for one context are laid down.
pub(super) struct Desk {
    arrivals: Mutex<Vec<Arrival>>,
    /// There are some.
    pub has_arrivals: AtomicBool,
    /// The bell is set for a sleeper, and not only for arrivals.
    woken: AtomicBool,
    /// Readable when something was laid down, or somebody wants the context to wake.
    pub bell: EventFd,
}

struct Guest {
    socket: ParentFd,
    from: SocketAddr,
    interview: Interview,
    since: u64,
}

#[derive(Default)]
struct Lobby {
    guests: HashMap<u64, Guest>,
    next: u64,
    /// Nobody is accepted until then.
    closed_until: Option<u64>,
    told_shortage: bool,
    told_strangers: u32,
}

pub(super) struct Listener {
    socket: ParentFd,
    pub place: SocketAddr,
    pub secret: Option<Secret>,
    /// Readable when there is something to serve.
    epoll: Epoll,
    lobby: Mutex<Lobby>,
    /// When somebody's time is over; 0: nobody waits.
    deadline: AtomicU64,
    desks: Mutex<HashMap<u16, Arc<Desk>>>,
    pub calls: Calls,
}

/// The calls of a passive endpoint that its program has not answered. While there are too many, nobody is accepted, so
/// that others wait in the kernel, as many as it lets.
pub(super) struct Calls {
    pub waiting: Arc<AtomicUsize>,
    pub most: AtomicUsize,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            waiting: Arc::default(),
            most: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Calls {
    /// `coming`: who may have something to ask soon.
    fn have_room(&self, coming: usize) -> bool {
        self.waiting.load(Ordering::Relaxed) + coming < self.most.load(Ordering::Relaxed)
    }
}

/// All of this process, by their addresses.
static ALL: Lock<Vec<(Vec<u8>, Weak<Listener>)>> = Lock::new(Vec::new());

/// Held across fork, so that a child can open endpoints of its own.
pub static LOCK: &dyn Held = &ALL;

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    pub(super) fn open(at: SocketAddr, config: &Config) -> Result<Arc<Listener>, OpenError> {
        let (socket, place) = sockets::listen(at, config).map_err(|error| OpenError::of("listening", error))?;
        let listener = Listener::over(socket, place, config)?;
        let mut all = ALL.lock();
        all.retain(|(_, known)| known.strong_count() > 0);
        all.push((address::of(&place), Arc::downgrade(&listener)));
        Ok(listener)
    }

    /// Of a socket that listens already.
    pub(super) fn over(socket: ParentFd, place: SocketAddr, config: &Config) -> Result<Arc<Listener>, OpenError> {
        let epoll = Epoll::new().map_err(|error| OpenError::of("epoll", error))?;
        epoll
            .add_with_key(socket.as_fd().as_raw_fd(), LISTENER)
            .map_err(|error| OpenError::of("epoll", error))?;
        Ok(Arc::new(Listener {
            socket,
            place,
            secret: config.secret.clone(),
            epoll,
            lobby: Mutex::default(),
            deadline: AtomicU64::new(0),
            desks: Mutex::default(),
            calls: Calls::default(),
        }))
    }

    /// `backlog` connections may wait in the kernel, if it lets so many.
    pub(super) fn resize(&self, backlog: i32) -> std::io::Result<()> {
        sockets::begin_to_listen(&self.socket, backlog)
    }

    /// The listener that another context of the same scalable endpoint has opened.
    pub(super) fn find(address: &[u8]) -> Option<Arc<Listener>> {
        let all = ALL.lock();
        let known = all.iter().filter(|(known, _)| known == address);
        known
            .filter_map(|(_, listener)| listener.upgrade())
            .find(|listener| listener.socket.is_ours())
    }

    /// None: another context has this number.
    pub(super) fn add_desk(&self, context: u16, config: &Config) -> Result<Arc<Desk>, OpenError> {
        let desk = Desk::new(config)?;
        let mut desks = locked(&self.desks);
        if desks.contains_key(&context) {
            return Err(OpenError::InUse);
        }
        desks.insert(context, desk.clone());
        Ok(desk)
    }

    pub(super) fn remove_desk(&self, context: u16) {
        let desk = locked(&self.desks).remove(&context);
        drop(desk.map(|desk| desk.take()));
    }

    pub(super) fn fd(&self) -> RawFd {
        self.epoll.fd()
    }

    /// How many have connected and not said who they are.
    #[cfg(test)]
    pub(super) fn guests(&self) -> usize {
        locked(&self.lobby).guests.len()
    }

    /// Nobody is accepted for a while.
    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        locked(&self.lobby).closed_until.is_some()
    }

    /// When it must be served though nothing is readable.
    pub(super) fn deadline(&self) -> Option<u64> {
        Some(self.deadline.load(Ordering::Relaxed)).filter(|deadline| *deadline != 0)
    }

    /// Accepts who has come and hears what they say, unless another thread is at it.
    #[cold]
    pub(super) fn serve(&self, own_instance: u64, config: &Config) {
        let mut lobby = match self.lobby.try_lock() {
            Ok(lobby) => lobby,
            Err(TryLockError::Poisoned(lobby)) => lobby.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let now = clock::monotonic_ms();
        lobby.reopen(self, now);
        let mut events = Events::new();
        self.epoll.look(&mut events);
        for event in events.iter() {
            if event.key == LISTENER {
                self.accept(&mut lobby, now, own_instance, config);
            } else {
                self.hear(&mut lobby, event.key, own_instance, config);
            }
        }
        lobby.guests.retain(|_, guest| now < guest.since + PATIENCE_MS);
        let oldest = lobby.guests.values().map(|guest| guest.since + PATIENCE_MS).min();
        let deadline = oldest.into_iter().chain(lobby.closed_until).min();
        self.deadline.store(deadline.unwrap_or(0), Ordering::Relaxed);
    }

    fn accept(&self, lobby: &mut Lobby, now: u64, own_instance: u64, config: &Config) {
        for _ in 0..BURST {
            let full = lobby.guests.len() >= GUESTS && !lobby.send_oldest_away(now);
            if full || !self.calls.have_room(lobby.guests.len()) {
                return lobby.close(self, now);
            }
            match sockets::accept(&self.socket, config) {
                Ok(Some((socket, from))) => {
                    // Most have spoken already.
                    if let Some(key) = self.welcome(lobby, socket, from, now) {
                        self.hear(lobby, key, own_instance, config);
                    }
                }
                Ok(None) => return,
                Err(error) if sockets::is_shortage(&error) => {
                    if !core::mem::replace(&mut lobby.told_shortage, true) {
                        (config.warn)(&format!(
                            "cannot accept a connection: {}",
                            OpenError::of("accept", error)
                        ));
                    }
                    return lobby.close(self, now);
                }
                // One that went away again.
                Err(_) => {}
            }
        }
    }

    /// Somebody has connected.
    fn welcome(&self, lobby: &mut Lobby, socket: ParentFd, from: SocketAddr, since: u64) -> Option<u64> {
        let key = lobby.next;
        self.epoll.add_with_key(socket.as_fd().as_raw_fd(), key).ok()?;
        lobby.next += 1;
        let interview = Interview::new();
        lobby.guests.insert(
            key,
            Guest {
                socket,
                from,
                interview,
                since,
            },
        );
        Some(key)
    }

    /// As if it had connected.
    #[cfg(any(test, fuzzing))]
    pub(super) fn admit(&self, socket: ParentFd, from: SocketAddr) {
        self.welcome(&mut locked(&self.lobby), socket, from, clock::monotonic_ms());
    }

    /// A guest has said something, or gone.
    fn hear(&self, lobby: &mut Lobby, key: u64, own_instance: u64, config: &Config) {
        let told = loop {
            let Some(guest) = lobby.guests.get_mut(&key) else {
                return;
            };
            let socket = &guest.socket;
            let came = match stream::receive(socket.as_fd(), First::Memory(Part::NONE), guest.interview.room()) {
                Ok(came @ 1..) => came,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => return drop(lobby.guests.remove(&key)),
            };
            let place = |context| dialed(sockets::own_place(socket), context);
            match guest.interview.came(came, self.secret.as_ref(), place) {
                Told::Part => {}
                Told::Ask(question) => match stream::send(socket.as_fd(), &question, &[], &Part::NONE) {
                    Ok(sent) if sent == question.len() => {}
                    _ => return drop(lobby.guests.remove(&key)),
                },
                told => break told,
            }
        };
        let Some(guest) = lobby.guests.remove(&key) else { return };
        let _ = self.epoll.remove(guest.socket.as_fd().as_raw_fd());
        match told {
            Told::Known(said) => self.hand_over(key, guest, *said, own_instance),
            Told::Stranger(why) => {
                let verdict = match why {
                    Stranger::Magic => None,
                    Stranger::HasSecret | Stranger::NoSecret | Stranger::WrongSecret => Some(Verdict::Denied),
                    Stranger::NoRandom => Some(Verdict::Later),
                    Stranger::ByteOrder | Stranger::Version(..) | Stranger::Address | Stranger::Data => {
                        Some(Verdict::Foreign)
                    }
                };
                if let Some(verdict) = verdict {
                    let instance = own_instance;
                    let _ = stream::send(
                        guest.socket.as_fd(),
                        &Answer { verdict, instance }.encode(),
                        &[],
                        &Part::NONE,
                    );
                }
                lobby.tell(&guest.from, why, config);
            }
            Told::Part | Told::Ask(_) => {}
        }
    }

    fn hand_over(&self, number: u64, guest: Guest, said: Introduced, own_instance: u64) {
        let desk = locked(&self.desks).get(&said.hello.context).cloned();
        let arrival = Arrival {
            socket: guest.socket,
            number,
            from: guest.from,
            said,
            secret: self.secret.clone(),
        };
        match desk.filter(|desk| desk.has_room()) {
            Some(desk) => desk.lay_down(arrival),
            None => {
                arrival.answer(Verdict::Later, own_instance, &[]);
            }
        }
    }
}

impl Lobby {
    /// False: even the oldest has come only now.
    fn send_oldest_away(&mut self, now: u64) -> bool {
        let oldest = self.guests.iter().min_by_key(|(_, guest)| guest.since);
        let key = oldest
            .filter(|(_, guest)| guest.since + GRACE_MS < now)
            .map(|(key, _)| *key);
        key.is_some_and(|key| self.guests.remove(&key).is_some())
    }

    /// Nobody is accepted for a while, without looking again and again.
    fn close(&mut self, listener: &Listener, now: u64) {
        let _ = listener.epoll.remove(listener.socket.as_fd().as_raw_fd());
        self.closed_until = Some(now + PAUSE_MS);
    }

    fn reopen(&mut self, listener: &Listener, now: u64) {
        if self.closed_until.is_some_and(|until| until <= now) {
            let fd = listener.socket.as_fd().as_raw_fd();
            self.closed_until = match listener.epoll.add_with_key(fd, LISTENER) {
                Ok(()) => None,
                Err(_) => Some(now + PAUSE_MS),
            };
        }
    }

    /// Some lines are enough to know that somebody tries.
    fn tell(&mut self, from: &SocketAddr, why: Stranger, config: &Config) {
        const LINES: u32 = 10;
        self.told_strangers += 1;
        if self.told_strangers > LINES {
            return;
        }
        let what = match why {
            Stranger::Magic => "it is no endpoint of provider tcp of this library".to_owned(),
            Stranger::ByteOrder => "its machine has another byte order".to_owned(),
            Stranger::Version(protocol, engine) => format!(
                "it has another version of this library (protocol {protocol}.{engine}): use the same on all machines"
            ),
            Stranger::Address => "it says an address that nobody can have".to_owned(),
            Stranger::Data => "it says that a program gave it more data than there may be".to_owned(),
            Stranger::HasSecret => format!("it has a secret, and this endpoint has none; {ONE_SECRET}"),
            Stranger::NoSecret => format!("it has no secret, and this endpoint has one; {ONE_SECRET}"),
            Stranger::WrongSecret => format!("it does not prove the secret of this endpoint; {ONE_SECRET}"),
            Stranger::NoRandom => "the system has no random numbers".to_owned(),
        };
        let last = if self.told_strangers == LINES {
            "; no more of this is told"
        } else {
            ""
        };
        (config.warn)(&format!("a connection from {from} is refused: {what}{last}"));
    }
}

impl Desk {
    pub(super) fn new(config: &Config) -> Result<Arc<Desk>, OpenError> {
        let bell = sockets::with_more_descriptors(config, EventFd::new);
        Ok(Arc::new(Desk {
            arrivals: Mutex::default(),
            has_arrivals: AtomicBool::new(false),
            woken: AtomicBool::new(false),
            bell: bell.map_err(|error| OpenError::of("eventfd", error))?,
        }))
    }

    /// A context that does not poll is not given connections without end.
    fn has_room(&self) -> bool {
        locked(&self.arrivals).len() < GUESTS
    }

    fn lay_down(&self, arrival: Arrival) {
        locked(&self.arrivals).push(arrival);
        // SYNC POINT: whoever sees the flag finds the arrival under the lock.
        self.has_arrivals.store(true, Ordering::Release);
        self.bell.set();
    }

    pub(super) fn take(&self) -> Vec<Arrival> {
        let mut arrivals = locked(&self.arrivals);
        self.has_arrivals.store(false, Ordering::Relaxed);
        // Or each look at epoll would find it.
        self.bell.clear();
        if self.woken.load(Ordering::SeqCst) {
            self.bell.set();
        }
        core::mem::take(&mut *arrivals)
    }

    /// Whoever sleeps is woken.
    pub(super) fn wake(&self) {
        // SYNC POINT: `take` sees this, or clears the bell before it is set here.
        self.woken.store(true, Ordering::SeqCst);
        self.bell.set();
    }

    /// Somebody will sleep.
    pub(super) fn quieten(&self) {
        self.woken.store(false, Ordering::SeqCst);
        self.bell.clear();
    }
}
