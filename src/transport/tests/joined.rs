//! The smallest transport with connections: one peer each, joined by two queues, in one process. The tests of connected
//! and of passive endpoints are made with it, and a new one can begin as a copy.
//!
//! Knows `engine::port` and `util`. Listeners of one `Network` are found by name.

#![forbid(unsafe_code)]

use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Loss, Notice, PeerId, Placement, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::transport::tests::loopback::LIMITS;
use crate::util::ready::Ready;
use crate::util::user::UserIov;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PEER: PeerId = 0;

/// The most packets in flight in one direction.
const DEPTH: usize = 64;

#[derive(Default)]
struct Names {
    /// By name: the calls that wait, and how many may.
    listeners: HashMap<Vec<u8>, (VecDeque<Call>, usize)>,
}

/// Where listeners are found.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Names>>);

impl Network {
    fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.0)
    }

    /// False: the name is taken.
    pub fn listen(&self, name: &[u8], backlog: usize) -> bool {
        let mut names = self.names();
        match names.listeners.get_mut(name) {
            Some((_, most)) => *most = backlog,
            None => drop(names.listeners.insert(name.to_vec(), (VecDeque::new(), backlog))),
        }
        true
    }

    pub fn next_call(&self, name: &[u8]) -> Option<Call> {
        self.names().listeners.get_mut(name)?.0.pop_front()
    }

    /// Whoever waits is refused.
    pub fn end(&self, name: &[u8]) {
        let gone = self.names().listeners.remove(name);
        drop(gone);
    }
}

/// What one side of a connection has for the other.
#[derive(Default)]
struct Half {
    packets: VecDeque<(Header, Vec<u8>)>,
    closed: bool,
    mark: Option<Arc<Ready>>,
}

#[derive(Default)]
struct Line {
    /// What the side that connects is to read, and what the other is.
    halves: [Half; 2],
    /// The data of the side that accepts; `refused`: it did not.
    answer: Option<Vec<u8>>,
    refused: bool,
}

type SharedLine = Arc<Mutex<Line>>;

/// A connection that was asked for. Dropped, it is refused.
pub struct Call {
    line: Option<SharedLine>,
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    pub data: Vec<u8>,
}

impl Call {
    pub fn reject(mut self, data: &[u8]) {
        if let Some(line) = self.line.take() {
            refuse(&line, data);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            refuse(&line, &[]);
        }
    }
}

fn refuse(line: &SharedLine, data: &[u8]) {
    let mut inside = lock(line);
    inside.answer = Some(data.to_vec());
    inside.refused = true;
    mark(inside, 0);
}

/// Marks who reads this half.
fn mark(line: MutexGuard<'_, Line>, side: usize) {
    let mark = line.halves[side].mark.clone();
    drop(line);
    if let Some(mark) = mark {
        mark.set();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fresh,
    /// It was asked for here (side 0), or is to be accepted here (side 1).
    Open,
    Standing,
    /// Ended, by this side or the other. The engine has to hear of it.
    Ending,
    Over,
}

/// One end of a connection, or what will be one.
pub struct Joined {
    network: Network,
    name: Vec<u8>,
    peer: Vec<u8>,
    line: Option<(SharedLine, usize)>,
    stage: Stage,
    news: VecDeque<News>,
    /// Told when the engine has heard of the end.
    last: Option<News>,
    mark: Option<Arc<Ready>>,
}

/// What the program is told.
pub enum News {
    Connected(Vec<u8>),
    Refused(Vec<u8>),
    Closed,
}

impl Joined {
    pub fn new(network: &Network, name: &[u8]) -> Joined {
        Joined {
            network: network.clone(),
            name: name.to_vec(),
            peer: Vec::new(),
            line: None,
            stage: Stage::Fresh,
            news: VecDeque::new(),
            last: None,
            mark: None,
        }
    }

    /// The end of a connection that was asked for.
    pub fn answering(network: &Network, mut call: Call) -> Joined {
        let mut new = Joined::new(network, &call.to);
        new.peer = call.from.clone();
        new.line = call.line.take().map(|line| (line, 1));
        new.stage = Stage::Open;
        new
    }

    pub fn name(&self) -> &[u8] {
        &self.name
    }

    pub fn peer_name(&self) -> Option<&[u8]> {
        (self.stage == Stage::Standing).then_some(&self.peer)
    }

    pub fn address(&self) -> Option<&[u8]> {
        (!self.peer.is_empty()).then_some(&self.peer)
    }

    pub fn watch(&mut self, ready: &Arc<Ready>) {
        self.mark = Some(ready.clone());
        if let Some((line, side)) = &self.line {
            lock(line).halves[*side].mark = Some(ready.clone());
        }
    }

    pub fn connect(&mut self, to: &[u8], data: &[u8]) {
        let line = SharedLine::default();
        lock(&line).halves[0].mark = self.mark.clone();
        self.peer = to.to_vec();
        self.line = Some((line.clone(), 0));
        self.stage = Stage::Open;
        let call = Call {
            line: Some(line),
            from: self.name.clone(),
            to: to.to_vec(),
            data: data.to_vec(),
        };
        let mut names = self.network.names();
        let refused = match names.listeners.get_mut(to) {
            Some((calls, most)) if calls.len() < *most => {
                calls.push_back(call);
                None
            }
            _ => Some(call),
        };
        drop(names);
        drop(refused);
    }

    pub fn accept(&mut self, data: &[u8]) {
        if let Some((line, _)) = &self.line {
            let mut inside = lock(line);
            inside.answer = Some(data.to_vec());
            mark(inside, 0);
        }
        self.stage = Stage::Standing;
        self.news.push_back(News::Connected(Vec::new()));
    }

    pub fn shutdown(&mut self) {
        self.leave();
        self.stage = Stage::Ending;
    }

    /// Tells the other side.
    fn leave(&mut self) {
        let Some((line, side)) = self.line.take() else { return };
        if side == 1 && self.stage == Stage::Open {
            return refuse(&line, &[]);
        }
        let mut inside = lock(&line);
        inside.halves[1 - side].closed = true;
        mark(inside, 1 - side);
    }

    pub fn event(&mut self) -> Option<News> {
        self.look_for_answer();
        if let Some(news) = self.news.pop_front() {
            return Some(news);
        }
        self.last.take_if(|_| self.stage == Stage::Over)
    }

    fn look_for_answer(&mut self) {
        let Some((line, 0)) = &self.line else { return };
        if self.stage != Stage::Open {
            return;
        }
        let mut inside = lock(line);
        let Some(data) = inside.answer.take() else { return };
        if inside.refused {
            self.stage = Stage::Ending;
            self.last = Some(News::Refused(data));
        } else {
            self.stage = Stage::Standing;
            self.news.push_back(News::Connected(data));
        }
    }

    fn next(&self) -> Option<(Header, Vec<u8>)> {
        let (line, side) = self.line.as_ref()?;
        lock(line).halves[*side].packets.pop_front()
    }

    fn other_left(&self) -> bool {
        let left = |(line, side): &(SharedLine, usize)| lock(line).halves[*side].closed;
        self.line.as_ref().is_some_and(left)
    }

    /// Delivers one packet. False: there is none, or the engine refused it.
    fn deliver<S: Sink>(&self, sink: &mut S) -> bool {
        let Some((header, body)) = self.next() else {
            return false;
        };
        match sink.place(PEER, &header, body.len()) {
            Placement::Into { iov, at, token } => {
                iov.write(at, &body);
                sink.placed(token, None);
            }
            Placement::Keep { mut buffer, token } => {
                buffer.copy_from_slice(&body);
                sink.placed(token, Some(buffer));
            }
            // Only without `Limits::sync_placement`.
            Placement::Leased { .. } | Placement::Drop => {}
            Placement::Refuse => {
                if let Some((line, side)) = &self.line {
                    lock(line).halves[*side].packets.push_front((header, body));
                }
                if let Some(mark) = &self.mark {
                    mark.set();
                }
                return false;
            }
        }
        // There is room again for a sender that found none.
        if let Some((line, side)) = &self.line {
            mark(lock(line), 1 - side);
        }
        true
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Transport for Joined {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn peer(&mut self, _: &[u8]) -> Option<PeerId> {
        None
    }

    fn push(&mut self, _: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        let Some((line, side)) = self.line.as_ref().filter(|_| self.stage == Stage::Standing) else {
            return Push::Gone;
        };
        let mut inside = lock(line);
        if inside.halves[*side].closed {
            return Push::Gone;
        }
        if inside.halves[1 - side].packets.len() >= DEPTH {
            return Push::Full;
        }
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => {
                iov.read(at, &mut bytes);
            }
        }
        inside.halves[1 - side].packets.push_back((*header, bytes));
        mark(inside, 1 - side);
        Push::Done
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        self.look_for_answer();
        let mut done = 0;
        while done < budget && self.stage == Stage::Standing && self.deliver(sink) {
            done += 1;
        }
        if done < budget && matches!(self.stage, Stage::Open | Stage::Standing) && self.other_left() {
            self.last = Some(News::Closed);
            self.stage = Stage::Ending;
        }
        if self.stage == Stage::Ending {
            self.stage = Stage::Over;
            sink.gone(PEER, Loss::Died);
        }
        if done == budget {
            if let Some(mark) = &self.mark {
                mark.set();
            }
        }
        done
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tests::suite::{Ends, Pair};

    impl Pair for Joined {
        fn pair() -> Ends<Joined> {
            let network = Network::default();
            assert!(network.listen(b"b", 1));
            let mut a = Joined::new(&network, b"a");
            a.connect(b"b", &[]);
            let mut b = Joined::answering(&network, network.next_call(b"b").unwrap());
            b.accept(&[]);
            assert!(a.event().is_some() && b.event().is_some());
            Ends {
                a,
                b,
                b_of_a: PEER,
                a_of_b: PEER,
                keep: Box::new(()),
            }
        }
    }

    crate::transport::tests::suite::tests!(Joined);
}
