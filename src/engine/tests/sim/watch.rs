//! A transport as it is, with a look at the packets that it delivers: the log and the snapshots of `World`. Checks that
//! the transport names tokens as the port says: as often as it has to, and none of a peer that is gone or abandoned.

use super::*;
use crate::util::user::UserBuf;

/// By whom a token is named that the transport has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    Placement(Token),
    Push(Token),
    Copy(Token),
}

/// What the transport has: of which peer, and how often.
type Tokens = HashMap<Use, (PeerId, usize)>;

fn has(tokens: &mut Tokens, it: Use, peer: PeerId) {
    tokens.entry(it).or_insert((peer, 0)).1 += 1;
}

fn names(tokens: &mut Tokens, it: Use) {
    let (_, count) = tokens.get_mut(&it).unwrap_or_else(|| panic!("{it:?} is over"));
    *count -= 1;
    if *count == 0 {
        tokens.remove(&it);
    }
}

pub struct Watch<T> {
    pub inner: T,
    me: PeerId,
    world: Rc<RefCell<World>>,
    tokens: Tokens,
}

impl<T> Watch<T> {
    pub fn new(inner: T, me: PeerId, world: &Rc<RefCell<World>>) -> Watch<T> {
        let world = world.clone();
        let tokens = Tokens::new();
        Watch {
            inner,
            me,
            world,
            tokens,
        }
    }
}

impl<T> Watch<T> {
    /// A copy was begun: the transport is to name its token once if it is `Later`.
    fn begun(&mut self, get: Get, peer: PeerId, token: Token) -> Get {
        if get == Get::Later {
            has(&mut self.tokens, Use::Copy(token), peer);
        }
        get
    }
}

/// The engine, as the transport sees it.
struct Tap<'a, S> {
    sink: &'a mut S,
    me: PeerId,
    world: &'a RefCell<World>,
    tokens: &'a mut Tokens,
}

impl<S> Tap<'_, S> {
    /// Logs the first packet of a message; says whether it was one.
    fn arrives(&self, from: PeerId, header: &Header) -> bool {
        if !matches!(header.packet, Packet::Eager | Packet::First | Packet::Rendezvous) {
            return false;
        }
        let (to, header) = (self.me, *header);
        let mut world = self.world.borrow_mut();
        world.log.push(Event::Arrive { from, to, header });
        let seen = world.watched.get(to as usize).map(Lent::bytes);
        world.offered.extend(seen.map(|seen| (header, seen)));
        true
    }

    /// It was not taken after all, and nothing else has happened.
    fn came_not(&self) {
        let mut world = self.world.borrow_mut();
        assert!(matches!(world.log.pop(), Some(Event::Arrive { .. })));
        world.offered.pop();
    }
}

impl<S: Sink> Sink for Tap<'_, S> {
    fn met(&mut self, peer: PeerId, source: PeerId) {
        self.sink.met(peer, source);
    }

    fn take(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        let begins = self.arrives(from, header);
        let taken = self.sink.take(from, header, body);
        if begins && !taken {
            self.came_not();
        }
        taken
    }

    fn is_to_answer(&self, peer: PeerId) -> bool {
        self.sink.is_to_answer(peer)
    }

    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        let begins = self.arrives(from, header);
        let placement = self.sink.place(from, header, len);
        if begins && matches!(placement, Placement::Refuse) {
            self.came_not();
        }
        match &placement {
            Placement::Into { token, .. } | Placement::Leased { token, .. } | Placement::Keep { token, .. } => {
                has(self.tokens, Use::Placement(*token), from);
            }
            Placement::Drop | Placement::Refuse => {}
        }
        placement
    }

    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        names(self.tokens, Use::Placement(token));
        self.sink.placed(token, buffer);
    }

    fn cut(&mut self, token: Token) {
        names(self.tokens, Use::Placement(token));
        self.world.borrow_mut().cuts += 1;
        self.sink.cut(token);
    }

    fn sent(&mut self, token: Token, result: Result<(), Error>) {
        names(self.tokens, Use::Push(token));
        self.world.borrow_mut().sent_later += 1;
        self.sink.sent(token, result);
    }

    fn exposed_memory(&mut self, peer: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        self.sink.exposed_memory(peer, name, access)
    }

    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        names(self.tokens, Use::Copy(token));
        self.sink.finished(token, result);
    }

    fn written(&mut self, from: PeerId, len: usize, data: u64) {
        self.sink.written(from, len, data);
    }

    fn gone(&mut self, peer: PeerId, loss: Loss) {
        self.tokens.retain(|_, (of, _)| *of != peer);
        self.sink.gone(peer, loss);
    }
}

impl<T: Transport> Transport for Watch<T> {
    const ONE_SIDED: bool = T::ONE_SIDED;
    const PUSHES_LATER: bool = T::PUSHES_LATER;

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.inner.peer(address)
    }

    fn is_sooner_sent(&mut self, to: PeerId, len: usize, around: Around) -> bool {
        self.inner.is_sooner_sent(to, len, around)
    }

    fn is_held_up(&mut self, to: PeerId) -> bool {
        self.inner.is_held_up(to)
    }

    fn awaits_credit(&mut self, to: PeerId) {
        self.inner.awaits_credit(to);
    }

    fn came_late(&mut self, to: PeerId) -> bool {
        self.inner.came_late(to)
    }

    fn is_itself(&self, peer: PeerId) -> bool {
        self.inner.is_itself(peer)
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        let push = self.inner.push(to, header, body, notice);
        if push == Push::Later {
            assert!(notice.is_some(), "Later without a notice");
            if let Some(notice) = Notice::to_tell(notice) {
                has(&mut self.tokens, Use::Push(notice.token), to);
            }
        }
        push
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        let abandoned = self.inner.abandon(peer);
        self.tokens.retain(|_, (of, _)| !abandoned || *of != peer);
        abandoned
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let (me, world, tokens) = (self.me, &*self.world, &mut self.tokens);
        let mut tap = Tap {
            sink,
            me,
            world,
            tokens,
        };
        self.inner.poll(&mut tap, budget)
    }

    fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        self.inner.expose(to, iov, name)
    }

    fn unexpose(&mut self, to: PeerId, id: u64) {
        self.inner.unexpose(to, id);
    }

    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get {
        let get = self.inner.get(from, remote, local, at, len, token);
        if get == Get::Later {
            has(&mut self.tokens, Use::Copy(token.expect("Later without a token")), from);
        }
        get
    }

    fn publish_regions(&mut self, regions: &Arc<Regions>, endpoint: u64) {
        self.inner.publish_regions(regions, endpoint);
    }

    fn let_reads_pass(&mut self) {
        self.inner.let_reads_pass();
    }

    fn hide_regions(&mut self) {
        self.inner.hide_regions();
    }

    fn reach<R>(
        &mut self,
        to: PeerId,
        part: &RemotePart,
        wanted: Rights,
        work: impl FnOnce(UserBuf) -> R,
    ) -> Option<R> {
        self.inner.reach(to, part, wanted, work)
    }

    fn reach_all<R>(
        &mut self,
        to: PeerId,
        parts: &[RemotePart],
        wanted: Rights,
        work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        self.inner.reach_all(to, parts, wanted, work)
    }

    fn one_sided(&self) -> OneSided {
        self.inner.one_sided()
    }

    fn copy(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        let copied = self.inner.copy(to, copy, token);
        self.begun(copied, to, token)
    }

    fn amo(&mut self, to: PeerId, amo: &Amo<'_>, token: Token) -> Get {
        let done = self.inner.amo(to, amo, token);
        self.begun(done, to, token)
    }

    fn takes_writes(&mut self, to: PeerId, part: &RemotePart) -> bool {
        self.inner.takes_writes(to, part)
    }

    fn poll_mark(&self, to: PeerId) -> PollMark {
        self.inner.poll_mark(to)
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        self.inner.recall(to, judge)
    }
}
