//! An endpoint of datagrams over a scripted device: what is posted and where to, what is refused, what a failure ends,
//! and by whom a way is held.

use super::super::datagram::{Address, DatagramConfig, DatagramEndpoint, DatagramLink, Held, PREFIX, Router, Ways};
use super::{Card, INLINE, recv_of, send_of};
use crate::engine::op::{Completion, Error, Refused, Send};
use crate::sys::rdma::{Access, Arrived, Done, DoneKind, Failure, Piece, Sizes, Work};
use crate::transport::verbs::Registrations;
use crate::util::user::Lent;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
struct Script {
    asked: Vec<&'static str>,
    /// The call that fails from now on, and with which errno.
    fails: Option<(&'static str, i32)>,
    done: VecDeque<Arrived>,
    /// Number, queue pair, way and data.
    sends: Vec<(u64, u32, u8, Option<u32>)>,
    receives: Vec<u64>,
    /// Ways that are open.
    ways: usize,
}

#[derive(Clone, Default)]
struct Device(Arc<Mutex<Script>>);

/// The last byte of the GID that it leads to.
struct Way(Device, u8);

impl Drop for Way {
    fn drop(&mut self) {
        self.0.script().ways -= 1;
    }
}

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

    fn completes(&self, id: u64, failure: Option<Failure>) {
        let kind = match id & 1 {
            _ if failure.is_some() => DoneKind::Other,
            0 => DoneKind::Other,
            _ => DoneKind::Received,
        };
        let (len, data) = (PREFIX + 5, (id & 1 == 1).then_some(9));
        let done = Done {
            id,
            kind,
            failure,
            len,
            data,
            pair: 0,
        };
        self.script().done.push_back(Arrived {
            done,
            sender: 7,
            has_header: true,
        });
    }
}

impl Router for Device {
    type Way = Way;

    fn way(&self, to: &Address) -> io::Result<Way> {
        self.call("way")?.ways += 1;
        Ok(Way(self.clone(), to.gid[15]))
    }
}

impl DatagramLink for Device {
    type Router = Device;

    unsafe fn post_send(&mut self, work: &Work, _: &[Piece], way: &Way, pair: u32) -> io::Result<()> {
        let sent = (work.id, pair, way.1, work.data);
        self.call("send").map(|mut script| script.sends.push(sent))
    }

    unsafe fn post_receive(&mut self, id: u64, _: &[Piece]) -> io::Result<()> {
        self.call("receive").map(|mut script| script.receives.push(id))
    }

    fn poll(&mut self, room: &mut [Arrived]) -> io::Result<usize> {
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

    fn fail(&mut self) -> io::Result<()> {
        self.call("fail").map(drop)
    }

    fn renew(&mut self) -> io::Result<()> {
        self.call("renew").map(drop)
    }
}

const MOST: usize = 200;

fn place(last: u8) -> Address {
    let mut gid = [0; 16];
    (gid[0], gid[1], gid[15]) = (0xfe, 0x80, last);
    Address {
        gid,
        pair: 7,
        partition: 0xffff,
        ..Address::default()
    }
}

struct Bed {
    device: Device,
    ways: Arc<Ways<Device>>,
    end: DatagramEndpoint<Device>,
    /// Registered.
    buffer: Lent,
}

impl Bed {
    fn new() -> Bed {
        let device = Device::default();
        let memory = Arc::new(Registrations::new(Box::new(Card::default())));
        let buffer = Lent::new(&[MOST + PREFIX + 1], 0);
        let all = buffer.iov().only().unwrap();
        memory.register(&all, Access::default()).unwrap();
        let ways = Arc::new(Ways::new(device.clone()));
        let config = DatagramConfig {
            sizes: Sizes {
                sends: 2,
                receives: 2,
                send_pieces: 2,
                receive_pieces: 1,
                inline: INLINE,
            },
            most: MOST,
            sourced: true,
            warn: |_| {},
        };
        Bed {
            end: DatagramEndpoint::new(device.clone(), &place(1), ways.clone(), memory, config),
            ways,
            device,
            buffer,
        }
    }

    fn polled(&mut self) -> Vec<Completion> {
        let mut told = Vec::new();
        self.end.poll(&mut |end| told.push(end));
        told
    }

    /// Context and error of what completes.
    fn ends(&mut self) -> Vec<(usize, Option<Error>)> {
        let told = self.polled();
        told.iter()
            .map(|end| (end.context, end.failure.map(|failure| failure.error)))
            .collect()
    }

    /// The number of an address that a vector has.
    fn peer(&mut self, last: u8) -> (u32, Arc<Held<Way>>) {
        let held = self.ways.hold(&place(last)).unwrap();
        (self.end.peer(&place(last).to_bytes()).unwrap(), held)
    }

    fn send(&mut self, to: u32, len: usize, context: usize) -> Result<(), Refused> {
        let send = send_of(self.buffer.iov().part(0, len), context);
        self.end.send(&Send { to, ..send })
    }

    fn recv(&mut self, len: usize, context: usize) -> Result<(), Refused> {
        let recv = recv_of(self.buffer.iov().part(0, len), context);
        self.end.recv(&recv)
    }
}

#[test]
fn datagrams_go_where_their_address_says() {
    let mut bed = Bed::new();
    let ((a, _held_a), (b, _held_b)) = (bed.peer(4), bed.peer(5));
    assert_eq!((a, b), (0, 1));
    assert_eq!(bed.send(b, 8, 1), Ok(()));
    let data = Send {
        to: a,
        data: Some(0x1_0000_0002),
        ..send_of(bed.buffer.iov().part(0, MOST), 2)
    };
    assert_eq!(bed.end.send(&data), Ok(()));
    assert_eq!(bed.device.script().sends, [(2, 7, 5, None), (4, 7, 4, Some(2))]);
    // The queue is full, until one has completed.
    assert_eq!(bed.send(a, 8, 3), Err(Refused::Again));
    assert_eq!(bed.end.unfinished(), (2, 0));
    bed.device.completes(4, None);
    assert_eq!(bed.ends(), [(1, None), (2, None)]);
    assert_eq!(bed.send(a, 8, 3), Ok(()));
}

#[test]
fn what_cannot_be_sent_is_refused_at_once() {
    let mut bed = Bed::new();
    let (to, held) = bed.peer(4);
    assert_eq!(bed.send(to, MOST + 1, 1), Err(Refused::TooLong));
    let inject = |len| Send {
        to,
        inject: true,
        ..send_of(bed.buffer.iov().part(0, len), 1)
    };
    let (short, long) = (inject(INLINE as usize), inject(INLINE as usize + 1));
    assert_eq!(
        (bed.end.send(&short), bed.end.send(&long)),
        (Ok(()), Err(Refused::TooLong))
    );
    assert_eq!(bed.send(to + 1, 8, 1), Err(Refused::Invalid));
    assert_eq!(bed.recv(PREFIX - 1, 1), Err(Refused::Invalid));
    let foreign = Lent::new(&[100], 0);
    assert_eq!(
        bed.end.send(&Send {
            to,
            ..send_of(foreign.iov(), 1)
        }),
        Err(Refused::Invalid)
    );
    for (errno, refused) in [(libc::ENOMEM, Refused::Again), (libc::EINVAL, Refused::Invalid)] {
        bed.device.script().fails = Some(("send", errno));
        assert_eq!(bed.send(to, 8, 1), Err(refused));
        bed.device.script().fails = Some(("receive", errno));
        assert_eq!(bed.recv(PREFIX, 1), Err(refused));
    }
    bed.device.script().fails = None;
    // Nobody has the address any more.
    bed.ways.let_go(held);
    bed.device.completes(2, None);
    assert_eq!(bed.ends(), [(1, None)]);
    assert_eq!(bed.send(to, 8, 1), Err(Refused::Invalid));
}

#[test]
fn a_receive_tells_who_sent() {
    let mut bed = Bed::new();
    let (to, _held) = bed.peer(4);
    let mut header = [0; PREFIX];
    header[0] = 0x60;
    header[8..24].copy_from_slice(&place(4).gid);
    bed.buffer.set(&header);
    assert_eq!((bed.recv(PREFIX + 8, 1), bed.recv(PREFIX, 2)), (Ok(()), Ok(())));
    assert_eq!(bed.recv(PREFIX, 3), Err(Refused::Again));
    bed.device.completes(3, None);
    let told = bed.polled();
    assert_eq!(
        (told.len(), told[0].context, told[0].len, told[0].data),
        (1, 1, PREFIX + 5, Some(9))
    );
    assert_eq!(told[0].source, Some(to));
    assert_eq!(bed.end.address_of(to), Some(&place(4).to_bytes()[..]));

    // A stranger, and one that has not been sent to.
    header[23] = 5;
    bed.buffer.set(&header);
    bed.device.completes(5, None);
    assert_eq!(bed.polled()[0].source, None);
    let _held = bed.ways.hold(&place(5)).unwrap();
    assert_eq!(bed.recv(PREFIX, 3), Ok(()));
    bed.device.completes(7, None);
    let source = bed.polled()[0].source;
    assert_eq!(bed.end.address_of(source.unwrap()), Some(&place(5).to_bytes()[..]));
}

#[test]
fn headers_of_ip_name_their_sender() {
    let mut bed = Bed::new();
    let mut v4 = place(0);
    v4.gid = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 9];
    let _held = bed.ways.hold(&v4).unwrap();
    let mut header = [0; PREFIX];
    header[20] = 0x45;
    header[32..36].copy_from_slice(&[10, 0, 0, 9]);
    for (first, known) in [(0x45, true), (0x46, false)] {
        header[20] = first;
        bed.buffer.set(&header);
        bed.recv(PREFIX, 1).unwrap();
        let id = *bed.device.script().receives.last().unwrap();
        bed.device.completes(id, None);
        assert_eq!(bed.polled()[0].source.is_some(), known, "{first:#x}");
    }
}

#[test]
fn a_failure_ends_what_is_posted_and_then_it_works_again() {
    let mut bed = Bed::new();
    let (to, _held) = bed.peer(4);
    bed.recv(PREFIX, 1).unwrap();
    bed.recv(PREFIX, 2).unwrap();
    bed.send(to, 8, 3).unwrap();
    bed.device.completes(3, Some(Failure::TooLong));
    assert_eq!(bed.ends(), [(1, Some(Error::Truncated))]);
    assert_eq!(bed.device.script().asked.last(), Some(&"fail"));
    // Until all is back, nothing more.
    assert_eq!(
        (bed.send(to, 8, 4), bed.recv(PREFIX, 4)),
        (Err(Refused::Again), Err(Refused::Again))
    );
    bed.device.completes(5, Some(Failure::Flushed));
    assert_eq!(bed.ends(), [(2, Some(Error::Canceled))]);
    bed.device.completes(6, Some(Failure::Flushed));
    assert_eq!(bed.ends(), [(3, Some(Error::Canceled))]);
    assert_eq!(bed.device.script().asked.last(), Some(&"renew"));
    assert_eq!((bed.send(to, 8, 4), bed.recv(PREFIX, 5)), (Ok(()), Ok(())));
    assert_eq!(bed.ends(), []);
}

#[test]
fn a_device_that_does_not_help_ends_everything() {
    for broken in ["fail", "poll", "renew"] {
        let mut bed = Bed::new();
        let (to, _held) = bed.peer(4);
        bed.recv(PREFIX, 1).unwrap();
        if broken != "renew" {
            bed.recv(PREFIX, 2).unwrap();
            bed.send(to, 8, 3).unwrap();
        }
        bed.device.completes(3, Some(Failure::Other(21)));
        bed.device.script().fails = Some((broken, libc::EIO));
        let mut ends = bed.ends();
        ends.sort_unstable_by_key(|(context, _)| *context);
        let first = if broken == "poll" {
            Error::Canceled
        } else {
            Error::Protocol
        };
        let all = [(1, Some(first)), (2, Some(Error::Canceled)), (3, Some(Error::Canceled))];
        assert_eq!(ends, all[..if broken == "renew" { 1 } else { 3 }], "{broken}");
        assert_eq!(
            (bed.send(to, 8, 4), bed.recv(PREFIX, 4)),
            (Err(Refused::Invalid), Err(Refused::Invalid))
        );
        assert_eq!((bed.ends(), bed.end.unfinished()), (vec![], (0, 0)));
    }
}

#[test]
fn what_was_found_on_the_way_to_sleep_is_told() {
    let mut bed = Bed::new();
    bed.recv(PREFIX, 1).unwrap();
    assert!(bed.end.arm());
    bed.device.completes(3, None);
    assert!(!bed.end.arm());
    assert!(!bed.end.arm(), "what was found was not told yet");
    assert_eq!(bed.ends(), [(1, None)]);
    assert!(bed.end.arm());
    bed.device.script().fails = Some(("notify", libc::EIO));
    assert!(!bed.end.arm());
}

#[test]
fn a_way_is_open_while_somebody_holds_it() {
    let mut bed = Bed::new();
    let (to, held) = bed.peer(4);
    let again = bed.ways.hold(&place(4)).unwrap();
    assert_eq!((bed.device.script().ways, bed.ways.count()), (1, 1));
    bed.ways.let_go(again);
    bed.send(to, 8, 1).unwrap();
    bed.ways.let_go(held);
    // The datagram has not left.
    assert_eq!(bed.device.script().ways, 1);
    bed.device.completes(2, None);
    assert_eq!(bed.ends(), [(1, None)]);
    assert_eq!(bed.device.script().ways, 0);
    let (other, held) = bed.peer(5);
    assert_ne!(other, to);
    // The same address again has its number again.
    let (same, way) = bed.peer(4);
    assert_eq!(same, to);
    bed.ways.let_go(way);
    bed.ways.let_go(held);
    assert_eq!(bed.ways.count(), 0);

    bed.device.script().fails = Some(("way", libc::ENETUNREACH));
    assert!(bed.ways.hold(&place(6)).is_err());
    assert_eq!(bed.end.peer(&place(6).to_bytes()), None);
    assert_eq!(bed.end.peer(&[1, 2, 3]), None);
    assert_eq!(bed.device.script().ways, 0);
}

#[test]
fn numbers_of_addresses_that_are_gone_are_used_again() {
    let mut bed = Bed::new();
    let mut most = 0;
    for round in 0..1000u32 {
        let mut address = place(1);
        address.pair = 100 + round;
        let held = bed.ways.hold(&address).unwrap();
        most = most.max(bed.end.peer(&address.to_bytes()).unwrap());
        bed.ways.let_go(held);
    }
    assert!(most < 128, "{most}");
    assert_eq!((bed.ways.count(), bed.device.script().ways), (0, 0));
    // An address that no vector of this process holds is the endpoint's own.
    let own = bed.end.peer(&place(9).to_bytes()).unwrap();
    assert_eq!(bed.send(own, 8, 1), Ok(()));
    assert_eq!(bed.device.script().ways, 1);
}

#[test]
fn addresses_as_bytes_and_as_text() {
    let address = Address {
        lid: 0x1234,
        service: 5,
        service_level: 3,
        ..place(0xaa)
    };
    let bytes = address.to_bytes();
    assert_eq!(Address::from_bytes(&bytes), Some(address));
    assert_eq!(
        (bytes[16], bytes[20], bytes[24], bytes[26], bytes[31]),
        (7, 0x34, 5, 3, 0)
    );
    assert_eq!(Address::from_bytes(&bytes[..26]), None);
    let text = "fi_addr_ib_ud://fe80::aa:7/1234/ffff/3";
    let named = Address { service: 0, ..address };
    assert_eq!(Address::from_text(text), Some(named));
    for odd in [
        "fi_sockaddr_in://10.0.0.1:7",
        "fi_addr_ib_ud://fe80::aa:7/1234/ffff",
        "fi_addr_ib_ud://fe80::aa:7/1234/ffff/3/4",
        "fi_addr_ib_ud://fe80::aa:7/1234/ffff/333",
        "fi_addr_ib_ud://fe80:7/1/2/3",
        "fe80::aa:7/1/2/3",
        "",
    ] {
        assert_eq!(Address::from_text(odd), None, "{odd}");
    }
    assert!(address.is_place() && !Address::default().is_place());
    assert!(
        Address {
            lid: 1,
            ..Address::default()
        }
        .is_place()
    );
}
