//! The seam over a real device.

use super::Address;
use super::seam::{DatagramLink, Router};
use crate::sys::rdma::{Arrived, DatagramPair, Pd, Piece, Place, Sizes, Way, Work};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Ways from one port of a device.
pub struct DeviceRouter {
    pd: Arc<Pd>,
    port: u8,
    /// Which GID of the port is its own.
    gid: u8,
}

impl DeviceRouter {
    pub fn new(pd: &Arc<Pd>, port: u8, gid: u8) -> DeviceRouter {
        DeviceRouter {
            pd: pd.clone(),
            port,
            gid,
        }
    }

    /// What an endpoint at this port is called, apart from its queue pair.
    pub fn local_address(&self) -> io::Result<Address> {
        let device = self.pd.device();
        let port = device.port(self.port)?;
        Ok(Address {
            gid: device.gid(self.port, usize::from(self.gid))?,
            lid: port.lid,
            partition: device.partition_key(self.port, 0)?,
            service_level: port.service_level,
            ..Address::default()
        })
    }

    /// A queue pair at this port, its number, and how many bytes its requests can carry within themselves.
    pub fn link(&self, sizes: &Sizes) -> io::Result<(DeviceDatagrams, u32, u32)> {
        let (pair, inline) = DatagramPair::open(&self.pd, self.port, sizes)?;
        let number = pair.number();
        Ok((DeviceDatagrams(pair), number, inline))
    }
}

impl Router for DeviceRouter {
    type Way = Way;

    fn way(&self, to: &Address) -> io::Result<Way> {
        let place = Place {
            port: self.port,
            own_gid: self.gid,
            gid: to.has_gid().then_some(to.gid),
            lid: to.lid,
            service_level: to.service_level,
        };
        Way::open(&self.pd, &place)
    }
}

pub struct DeviceDatagrams(DatagramPair);

impl DatagramLink for DeviceDatagrams {
    type Router = DeviceRouter;

    unsafe fn post_send(&mut self, work: &Work, pieces: &[Piece], way: &Way, pair: u32) -> io::Result<()> {
        // SAFETY: forwarded.
        unsafe { self.0.post_send(work, pieces, way, pair) }
    }

    unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        // SAFETY: forwarded.
        unsafe { self.0.post_receive(id, pieces) }
    }

    fn poll(&mut self, room: &mut [Arrived]) -> io::Result<usize> {
        self.0.poll(room)
    }

    fn notify(&mut self) -> io::Result<()> {
        self.0.notify()
    }

    fn wake_fd(&self) -> RawFd {
        self.0.fd()
    }

    fn fail(&mut self) -> io::Result<()> {
        self.0.fail()
    }

    fn renew(&mut self) -> io::Result<()> {
        self.0.renew()
    }
}
