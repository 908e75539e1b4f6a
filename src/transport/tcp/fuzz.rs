//! What the fuzz target `stream` needs of an endpoint: strangers whose sockets are not of TCP. Compiled for tests and
//! fuzzing only; called by `crate::fuzz`.

use super::handshake::{Hello, frame};
use super::introduction::{Heard, Introduction};
use super::secret::{Secret, dialed};
use super::{Config, TcpTransport, address};
use crate::engine::port::PeerId;
use crate::sys::forks::ParentFd;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Ports of this machine where nobody listens, so that whoever is looked for there is dead.
const PORTS: [u16; 2] = [1, 2];

fn place(which: u8) -> SocketAddr {
    let port = PORTS[usize::from(which) % PORTS.len()];
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// An endpoint that nobody but these strangers can reach, and that leaves without waiting.
pub fn open(secret: Option<&[u8]>) -> Option<TcpTransport> {
    let config = Config {
        secret: secret.and_then(Secret::new),
        linger: Duration::ZERO,
        // Who refuses is not tried again.
        connect_timeout: Duration::ZERO,
        ..Config::default()
    };
    TcpTransport::open(&address::of(&SocketAddr::from(([127, 0, 0, 1], 0))), &config).ok()
}

/// The numbers of those whom strangers say to be.
pub fn known(end: &mut TcpTransport) -> Vec<PeerId> {
    use crate::engine::port::Transport;
    let places = (0..PORTS.len()).map(|which| address::of(&place(which as u8)));
    places.filter_map(|address| end.peer(&address)).collect()
}

/// Has the next poll look at everything.
pub fn look(end: &mut TcpTransport) {
    end.polls |= super::deadlines::TICK - 1;
}

/// Who has connected to an endpoint.
pub struct Stranger {
    stream: UnixStream,
    secret: Option<Secret>,
    introduction: Option<Introduction>,
}

impl Stranger {
    pub fn connect(end: &TcpTransport, which: u8) -> Option<Stranger> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        ours.set_nonblocking(true).ok()?;
        theirs.set_nonblocking(true).ok()?;
        end.listener.as_ref()?.admit(ParentFd::new(theirs.into()), place(which));
        Some(Stranger {
            stream: ours,
            secret: end.config.secret.clone(),
            introduction: None,
        })
    }

    /// Any bytes.
    pub fn say(&mut self, bytes: &[u8]) {
        let _ = self.stream.write(bytes);
    }

    /// A hello as an endpoint says it; `change` is done to one of its bytes.
    pub fn say_hello(&mut self, which: u8, instance: u64, context: u16, change: Option<(u8, u8)>) {
        let hello = Hello {
            from: address::of(&place(which)),
            instance,
            context,
            nonce: None,
        };
        let Ok(introduction) = Introduction::begin(hello, &[], dialed(None, context), self.secret.as_ref()) else {
            return;
        };
        let (hello, data) = introduction.hello();
        let mut bytes = [&hello[..], data].concat();
        if let Some(byte) = change.and_then(|(at, _)| bytes.get_mut(usize::from(at) % Hello::SIZE)) {
            *byte ^= change.map_or(0, |(_, with)| with);
        }
        self.say(&bytes);
        self.introduction = Some(introduction);
    }

    /// Takes what the endpoint says, and answers its question as it should be, or with a byte changed.
    pub fn listen(&mut self, change: u8) {
        let Some(introduction) = &mut self.introduction else {
            let _ = self.stream.read(&mut [0; 4096]);
            return;
        };
        while let Ok(came @ 1..) = self.stream.read(introduction.room()) {
            match introduction.came(came) {
                Heard::Part => {}
                Heard::Say(mut proof) => {
                    proof[0] ^= change;
                    let _ = self.stream.write(&proof);
                }
                Heard::Answer(..) | Heard::Nonsense | Heard::BadData | Heard::Unproven => {
                    self.introduction = None;
                    return;
                }
            }
        }
    }

    pub fn confirm(&mut self) {
        self.say(&frame::CONFIRM.to_le_bytes());
    }

    /// A packet as it stands in the stream, with a length that may be another than its body's.
    pub fn packet(&mut self, len: u32, header: &[u8], body: &[u8]) {
        self.say(&[&len.to_le_bytes()[..], header, body].concat());
    }

    pub fn pad(&mut self, len: u8, sent: u8) {
        let word = frame::PAD | u32::from(len);
        self.say(&[&word.to_le_bytes()[..], &vec![0; usize::from(sent)]].concat());
    }

    pub fn goodbye(&mut self) {
        self.say(&frame::GOODBYE.to_le_bytes());
    }
}
