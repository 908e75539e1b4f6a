//! From options to two endpoints that can talk: connectionless ones learn each other's address, connected ones connect.
//!
//! Knows the order of the calls. Called by `main`; `run` uses the result.

use crate::abi::types::*;
use crate::control::{Control, Name, Role};
use crate::ffi::{
    self, Buffers, Domain, Endpoint, Event, Events, Fabric, Facts, Hints, Info, Interface, Passive, Queue, Vector,
};
use crate::options::Options;
use crate::say::{self, Fail, debug};
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;

/// Everything a run needs.
pub struct Link {
    pub endpoint: Endpoint,
    pub tx: Rc<Queue>,
    pub rx: Rc<Queue>,
    pub control: Control,
    pub facts: Facts,
    /// The whole info, for -v.
    pub info_text: String,
    /// The largest message there is room for.
    pub largest: usize,
    pub received: u64,
    pub posted: u64,
    pub _passive: Option<Passive>,
}

impl Link {
    pub fn open(options: &Options) -> Result<Link, Fail> {
        let control = Control::open(options)?;
        match (options.ep_type, control.role()) {
            (FI_EP_MSG, Role::Server) => accept(options, control),
            (FI_EP_MSG, Role::Client) => connect(options, control),
            _ => exchange(options, control),
        }
    }
}

/// Both sides open an endpoint, tell its name, and put the other's into the address vector. The client picks the fabric
/// that reaches the server's name, so it hears that first.
fn exchange(options: &Options, mut control: Control) -> Result<Link, Fail> {
    debug(format_args!("Connection-less endpoint"));
    let heard = match control.role() {
        Role::Client => Some(control.recv_name()?),
        Role::Server => None,
    };
    let info = getinfo(options, heard.as_ref())?;
    let fabric = Fabric::open(&info)?;
    // Not used, but opened by the original, and so a part of what it tests.
    let _events = Events::open(&fabric)?;
    let domain = Domain::open(&fabric, &info)?;
    let vector = Vector::open(&domain, info.facts.av_type)?;
    let mut link = Setup::new(options, &domain, info)?;
    link.endpoint.bind_vector(&vector)?;
    link.enable()?;
    let own = Name {
        format: link.info.facts.addr_format,
        bytes: link.endpoint.name()?,
    };
    control.send_name(&own)?;
    let other = match heard {
        Some(name) => name,
        None => control.recv_name()?,
    };
    link.endpoint.peer = vector.insert(&other.bytes)?;
    if link.info.facts.domain_caps & FI_LOCAL_COMM != 0 {
        vector.insert(&own.bytes)?;
    }
    Ok(link.finish(control, None))
}

fn accept(options: &Options, mut control: Control) -> Result<Link, Fail> {
    debug(format_args!("Connected endpoint: starting server"));
    let listen = getinfo(options, None)?;
    let fabric = Fabric::open(&listen)?;
    let events = Events::open(&fabric)?;
    let passive = Passive::listen(&fabric, &listen, &events)?;
    control.send_name(&Name {
        format: listen.facts.addr_format,
        bytes: passive.name()?,
    })?;
    let info = match event(&events, &mut control)? {
        Event::Request(info) => info,
        other => return Err(unexpected(&other)),
    };
    let domain = Domain::open(&fabric, &info)?;
    let mut link = Setup::new(options, &domain, info)?;
    link.endpoint.bind_events(&events)?;
    link.enable()?;
    link.endpoint.accept()?;
    connected(&events, &mut control)?;
    Ok(link.finish(control, Some(passive)))
}

fn connect(options: &Options, mut control: Control) -> Result<Link, Fail> {
    let server = control.recv_name()?;
    let info = getinfo(options, Some(&server))?;
    let fabric = Fabric::open(&info)?;
    let events = Events::open(&fabric)?;
    let domain = Domain::open(&fabric, &info)?;
    let mut link = Setup::new(options, &domain, info)?;
    link.endpoint.bind_events(&events)?;
    link.enable()?;
    debug(format_args!("Connected endpoint: connecting"));
    link.endpoint.connect(&server.bytes)?;
    connected(&events, &mut control)?;
    Ok(link.finish(control, None))
}

/// An endpoint and what stands around it, not yet connected.
struct Setup {
    endpoint: Endpoint,
    tx: Rc<Queue>,
    rx: Rc<Queue>,
    info: Info,
    largest: usize,
}

impl Setup {
    fn new(options: &Options, domain: &Rc<Domain>, info: Info) -> Result<Setup, Fail> {
        let facts = &info.facts;
        let largest = options.sizes.largest().min(facts.max_msg_size);
        let buffers = Buffers::new(domain, facts, largest)?;
        let tx = Queue::open(domain, facts.tx_queue)?;
        let rx = Queue::open(domain, facts.rx_queue)?;
        let interface = if facts.caps & FI_TAGGED != 0 {
            Interface::Tagged
        } else {
            Interface::Msg
        };
        let endpoint = Endpoint::open(domain, &info, &buffers, interface)?;
        Ok(Setup {
            endpoint,
            tx,
            rx,
            info,
            largest,
        })
    }

    /// Makes it ready, with a first receive posted before the other side can send.
    fn enable(&mut self) -> Result<(), Fail> {
        self.endpoint.bind_queue(&self.tx, FI_TRANSMIT)?;
        self.endpoint.bind_queue(&self.rx, FI_RECV)?;
        self.endpoint.enable()?;
        match self.endpoint.recv(0) {
            0 => Ok(()),
            error => Err(say::failed("receive", error)),
        }
    }

    fn finish(self, control: Control, passive: Option<Passive>) -> Link {
        debug(format_args!("Fabric Initialized"));
        Link {
            endpoint: self.endpoint,
            tx: self.tx,
            rx: self.rx,
            control,
            facts: self.info.facts,
            info_text: self.info.text(),
            largest: self.largest,
            received: 0,
            posted: 1,
            _passive: passive,
        }
    }
}

fn getinfo(options: &Options, dest: Option<&Name>) -> Result<Info, Fail> {
    let one_datagram = match options.sizes {
        crate::report::Sizes::One(size) if options.ep_type == FI_EP_DGRAM => size,
        _ => 0,
    };
    Info::get(&Hints {
        ep_type: options.ep_type,
        caps: if options.tagged { FI_TAGGED } else { FI_MSG },
        domain: options.domain.as_deref(),
        fabric: options.fabric.as_deref(),
        provider: options.provider.as_deref(),
        source: options.src_addr.as_deref().and_then(source),
        dest: dest.map(|name| (name.format, name.bytes.as_slice())),
        max_msg_size: one_datagram,
    })
}

/// The address -s names. One that is not found is told, and then left to the provider's choice.
fn source(name: &str) -> Option<SocketAddr> {
    match (name, 0).to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(address)) => Some(address),
        Ok(None) => None,
        Err(error) => {
            say::error(0, format_args!("source address {name} is not used: {error}"));
            None
        }
    }
}

/// Waits for an event as long as the other program lives.
fn event(events: &Events, control: &mut Control) -> Result<Event, Fail> {
    loop {
        if let Some(event) = events.wait(1000)? {
            return Ok(event);
        }
        control.check_peer()?;
    }
}

fn connected(events: &Events, control: &mut Control) -> Result<(), Fail> {
    match event(events, control)? {
        Event::Connected => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(event: &Event) -> Fail {
    let number = match event {
        Event::Request(_) => FI_CONNREQ,
        Event::Connected => FI_CONNECTED,
        Event::Other(number) => *number,
    };
    say::write(format_args!("Unexpected CM event {number}\n"));
    Fail(-ffi::EOTHER)
}
