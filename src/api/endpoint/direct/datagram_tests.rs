//! Endpoints without a connection on a stand-in card: it numbers the addresses of a vector, and says who sent.

use super::*;
use crate::api::av::{self, Av, AvAttr, Insert, StringAddr};
use crate::api::cq::{self, Cq};
use crate::api::domain::Fabric;
use crate::api::info::model::{DomainAttr, EpAttr};
use crate::api::messaging::Flags;
use crate::engine::op::{CompletedOp, Context, MessageKind};
use crate::util::user::Lent;
use std::collections::VecDeque;
use std::sync::Mutex;

/// What was sent: from whom, and to whom.
type Post = Arc<Mutex<Vec<(Vec<u8>, Vec<u8>)>>>;

struct Card {
    post: Post,
    me: Vec<u8>,
    /// By number.
    peers: Vec<Vec<u8>>,
    receives: VecDeque<op::Recv>,
}

impl DirectTransport for Card {
    fn local_address(&self) -> Vec<u8> {
        self.me.clone()
    }

    fn send(&mut self, send: &op::Send, _: PostHint) -> Result<(), Refused> {
        let to = self.peers.get(send.to as usize).ok_or(Refused::Invalid)?;
        self.post.lock().unwrap().push((self.me.clone(), to.clone()));
        Ok(())
    }

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        self.receives.push_back(*recv);
        Ok(())
    }

    fn rma(&mut self, _: &op::Rma, _: PostHint) -> Result<(), Refused> {
        Err(Refused::Unsupported)
    }

    fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        let mut post = self.post.lock().unwrap();
        while let Some(at) = post.iter().position(|(_, to)| *to == self.me) {
            let (from, _) = post.remove(at);
            let Some(recv) = self.receives.pop_front() else {
                continue;
            };
            let known = self.peers.iter().position(|peer| *peer == from);
            let source = known.unwrap_or_else(|| {
                self.peers.push(from);
                self.peers.len() - 1
            });
            report(Completion {
                op: CompletedOp::Recv,
                kind: MessageKind::Untagged,
                context: recv.context,
                tell: recv.tell,
                len: 1,
                buf: 0,
                tag: 0,
                data: None,
                source: (recv.context != NAMELESS).then_some(source as PeerId),
                released: false,
                peeked: false,
                failure: None,
            });
        }
    }

    fn unfinished(&self) -> (usize, usize) {
        (0, self.receives.len())
    }

    fn connection(&mut self) -> Option<&mut dyn Connects> {
        None
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.peers.push(address.to_vec());
        Some(self.peers.len() as PeerId - 1)
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.peers.get(peer as usize).map(Vec::as_slice)
    }
}

/// The card does not say of a receive with this context who sent.
const NAMELESS: Context = 99;

fn cq() -> Arc<Cq> {
    cq::tests::open(FI_WAIT_NONE)
}

fn vector(names: &[u8], count: usize) -> Arc<Av> {
    let kind = Arc::new(StringAddr::of("fi_card"));
    let av = Av::open(&AvAttr::default(), kind, &av::Domain::default()).ok().unwrap();
    assert_eq!(av.insert(names, count, Insert::default()), Ok(count));
    av
}

#[test]
fn peers_are_those_of_the_vector_and_sources_too() {
    let info = Info {
        caps: FI_MSG | FI_SOURCE,
        ep: Some(EpAttr {
            ep_type: FI_EP_DGRAM,
            max_msg_size: 100,
            ..EpAttr::default()
        }),
        domain: Some(DomainAttr::default()),
        ..Info::default()
    };
    let domain = Domain::open(&Fabric::new("any", 0), &info).ok().unwrap();
    let (post, cq) = (Post::default(), cq());
    let av = vector(b"fi_card://a\0fi_card://b\0", 2);
    let [a, b, stranger] = [&b"fi_card://a\0"[..], b"fi_card://b\0", b"fi_card://c\0"].map(|me| {
        let card = Card {
            post: post.clone(),
            me: av.kind().key(me).to_vec(),
            peers: Vec::new(),
            receives: VecDeque::new(),
        };
        let end = DirectEndpoint::new(&domain, &info, card);
        end.bind_cq(&cq, FI_TRANSMIT | FI_RECV).unwrap();
        end
    });
    assert_eq!(a.enable(), Err(Errno(FI_ENOAV as i32)));
    for end in [&a, &b, &stranger] {
        end.bind_av(&av).unwrap();
        end.enable().unwrap();
    }
    let send = |end: &Arc<DirectEndpoint<Card>>, dest| {
        let call = SendCall {
            kind: MessageKind::Untagged,
            dest,
            tag: 0,
            data: None,
            flags: Flags::Endpoint,
            context: 1,
        };
        end.send(&call, &UserIov::NONE)
    };
    let memory = Lent::new(&[8], 0);
    for context in [2, NAMELESS, 3] {
        let call = RecvCall {
            kind: MessageKind::Untagged,
            source: FI_ADDR_UNSPEC,
            tag: 0,
            ignore: 0,
            flags: Flags::Endpoint,
            context,
        };
        b.recv(&call, &memory.iov()).unwrap();
    }
    assert_eq!(send(&a, 7), Err(Errno(FI_EINVAL).into()));
    assert_eq!([send(&a, 1), send(&a, 1), send(&stranger, 1)], [Ok(()); 3]);
    let mut told = Vec::new();
    for _ in 0..5 {
        let _ = cq.read_each(1, |entry| told.push((entry.context, entry.src)));
    }
    // In the order in which they came, whether or not the source had to be looked up.
    assert_eq!(told, [(2, 0), (NAMELESS, FI_ADDR_NOTAVAIL), (3, FI_ADDR_NOTAVAIL)]);
    for end in [&a, &b, &stranger] {
        end.close().unwrap();
    }
    assert_eq!((domain.close(), cq.close(), av.close()), (Ok(()), Ok(()), Ok(())));
}
