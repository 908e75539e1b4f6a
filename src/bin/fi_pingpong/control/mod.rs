//! The control connection: a TCP stream on which the two programs tell each other their fabric addresses, start each
//! size together, and compare counts. The bytes are those of the C library's fi_pingpong, which may be the other side.
//!
//! Knows nothing of the fabric. Called by `link` and `run`.

#[cfg(test)]
mod tests;

use crate::ffi;
use crate::options::Options;
use crate::say::{self, Fail, debug};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

const PORT: u16 = 47592;
const NAME_MAX: usize = 1024;
const SYNC_ASK: &[u8] = b"q\0";
const SYNC_ANSWER: &[u8] = b"a\0";
const COUNT_LEN: usize = 10;
const COUNT_ANSWER: &[u8] = b"cnt ok\0";
/// How long data may still be on its way when the other side has closed its end.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    Client,
    Server,
}

/// A fabric address and its format.
pub struct Name {
    pub format: u32,
    pub bytes: Vec<u8>,
}

pub struct Control {
    stream: TcpStream,
    role: Role,
    closed_since: Option<Instant>,
}

impl Control {
    pub fn open(options: &Options) -> Result<Control, Fail> {
        debug(format_args!("Initializing control messages"));
        let (stream, role) = match &options.server {
            Some(server) => (connect(options, server)?, Role::Client),
            None => (accept(options)?, Role::Server),
        };
        // A short answer must be sent at once, not wait for more bytes.
        let _ = stream.set_nodelay(true);
        debug(format_args!("{role:?}: connected"));
        Ok(Control {
            stream,
            role,
            closed_since: None,
        })
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn send_name(&mut self, name: &Name) -> Result<(), Fail> {
        debug(format_args!("Sending name"));
        let len = u32::try_from(name.bytes.len()).unwrap_or(u32::MAX);
        self.send(&[&len.to_be_bytes()[..], &name.format.to_ne_bytes(), &name.bytes].concat())
    }

    pub fn recv_name(&mut self) -> Result<Name, Fail> {
        debug(format_args!("Receiving name"));
        let len = u32::from_be_bytes(self.recv()?) as usize;
        if len > NAME_MAX {
            return Err(say::error(
                -libc::EINVAL,
                format_args!("a name of {len} bytes is too long"),
            ));
        }
        let format = u32::from_ne_bytes(self.recv()?);
        let mut bytes = vec![0; len];
        self.recv_into(&mut bytes)?;
        Ok(Name { format, bytes })
    }

    /// Returns when both programs have come this far.
    pub fn sync(&mut self) -> Result<(), Fail> {
        debug(format_args!("Syncing nodes"));
        match self.role {
            Role::Client => {
                self.send(SYNC_ASK)?;
                self.expect(SYNC_ANSWER)
            }
            Role::Server => {
                self.expect(SYNC_ASK)?;
                self.send(SYNC_ANSWER)
            }
        }
    }

    /// Tells the client's count to the server; both return it.
    pub fn share_count(&mut self, count: u64) -> Result<u64, Fail> {
        debug(format_args!("Exchanging ack count"));
        match self.role {
            Role::Client => {
                let mut text = count.to_string().into_bytes();
                text.resize(COUNT_LEN, 0);
                self.send(&text)?;
                self.expect(COUNT_ANSWER)?;
                Ok(count)
            }
            Role::Server => {
                let count = number(&self.recv::<COUNT_LEN>()?);
                self.send(COUNT_ANSWER)?;
                count.ok_or_else(|| say::error(-libc::EBADMSG, format_args!("the count received is no number")))
            }
        }
    }

    /// An error if the other program has ended and all that it sent must have arrived. Whoever waits for the fabric
    /// asks this now and then.
    pub fn check_peer(&mut self) -> Result<(), Fail> {
        let gone = self.stream.set_nonblocking(true).is_ok()
            && match self.stream.peek(&mut [0]) {
                Ok(len) => len == 0,
                Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
            };
        let _ = self.stream.set_nonblocking(false);
        if !gone {
            return Ok(());
        }
        match self.closed_since {
            Some(since) if since.elapsed() > GRACE => Err(say::error(
                -libc::ECONNABORTED,
                format_args!("the other side ended before all its data arrived"),
            )),
            since => {
                self.closed_since = since.or_else(|| Some(Instant::now()));
                Ok(())
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Fail> {
        self.stream
            .write_all(bytes)
            .map_err(|error| say::failed_io("ctrl/send", &error))
    }

    fn recv<const N: usize>(&mut self) -> Result<[u8; N], Fail> {
        let mut bytes = [0; N];
        self.recv_into(&mut bytes)?;
        Ok(bytes)
    }

    fn recv_into(&mut self, bytes: &mut [u8]) -> Result<(), Fail> {
        self.stream.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => say::error(
                -libc::ECONNABORTED,
                format_args!("ctrl/read: no data or remote connection closed"),
            ),
            _ => say::failed_io("ctrl/read", &error),
        })
    }

    fn expect(&mut self, wanted: &[u8]) -> Result<(), Fail> {
        let mut bytes = vec![0; wanted.len()];
        self.recv_into(&mut bytes)?;
        if bytes == wanted {
            Ok(())
        } else {
            let shown = [wanted, &bytes].map(|b| b.escape_ascii().to_string());
            let [wanted, got] = shown;
            Err(say::error(
                -libc::EBADMSG,
                format_args!("ctrl/read: expected {wanted}, got {got}"),
            ))
        }
    }
}

fn connect(options: &Options, server: &str) -> Result<TcpStream, Fail> {
    let port = if options.dst_port == 0 { PORT } else { options.dst_port };
    let found = (server, port)
        .to_socket_addrs()
        .map_err(|error| say::error(-1, format_args!("getaddrinfo : {error}")))?;
    let mut last = None;
    for address in found.filter(|address| address.is_ipv6() == options.ipv6) {
        debug(format_args!("CLIENT: connecting to {}", address.ip()));
        match ffi::connect_from(options.src_port, &address) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(error) => {
            let code = error.raw_os_error().unwrap_or(libc::EIO);
            say::error(-code, format_args!("failed to connect: {}", ffi::strerror(code)))
        }
        None => say::error(-1, format_args!("getaddrinfo : no address of this family for {server}")),
    })
}

fn accept(options: &Options) -> Result<TcpStream, Fail> {
    let port = if options.src_port == 0 { PORT } else { options.src_port };
    let any: SocketAddr = if options.ipv6 {
        (Ipv6Addr::UNSPECIFIED, port).into()
    } else {
        (Ipv4Addr::UNSPECIFIED, port).into()
    };
    let listener = TcpListener::bind(any).map_err(|error| say::failed_io("bind", &error))?;
    debug(format_args!("SERVER: waiting for connection"));
    let (stream, _) = listener.accept().map_err(|error| say::failed_io("accept", &error))?;
    Ok(stream)
}

/// Decimal digits up to the first zero byte.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.split(|c| *c == 0).next()?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}
