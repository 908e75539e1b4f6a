//! The calls to `libfabric.so.1`, and all `unsafe` of this program: what comes back is copied, or lent by an owner that
//! frees it.
//!
//! `log` has the log while it is led to this program, `trial` opens an endpoint, `rehearsal` has a child make calls
//! first, `system` asks the kernel. Knows the C types; decides nothing. Called by every module that needs the library.

mod log;
pub mod rehearsal;
pub mod system;
mod trial;

use crate::abi::types::*;
use crate::common::library::{InfoList, bytes, name_for_info, tostr};
use crate::options::{Hints, Query};
use core::ffi::{c_char, c_int};
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

pub use crate::common::library::strerror;
pub use log::{Capture, Line};
pub use trial::open_endpoint;

#[link(name = "fabric")]
unsafe extern "C" {
    fn fi_getparams(params: *mut *mut fi_param, count: *mut c_int) -> c_int;
    fn fi_freeparams(params: *mut fi_param);
}

/// The kinds of fi_tostr that name a 64-bit value.
#[derive(Clone, Copy)]
pub enum Wide {
    Caps = FI_TYPE_CAPS as isize,
    Mode = FI_TYPE_MODE as isize,
    OpFlags = FI_TYPE_OP_FLAGS as isize,
    MsgOrder = FI_TYPE_MSG_ORDER as isize,
}

/// The kinds of fi_tostr that name a 32-bit value.
#[derive(Clone, Copy)]
pub enum Narrow {
    AddrFormat = FI_TYPE_ADDR_FORMAT as isize,
    AvType = FI_TYPE_AV_TYPE as isize,
    EpType = FI_TYPE_EP_TYPE as isize,
    MrMode = FI_TYPE_MR_MODE as isize,
    Progress = FI_TYPE_PROGRESS as isize,
    Protocol = FI_TYPE_PROTOCOL as isize,
    Threading = FI_TYPE_THREADING as isize,
}

/// The library's name for a value.
pub fn name_of_u64(value: u64, kind: Wide) -> Vec<u8> {
    // SAFETY: every kind of `Wide` reads one u64.
    unsafe { tostr((&raw const value).cast(), kind as fi_type) }
}

/// The library's name for a value.
pub fn name_of_u32(value: u32, kind: Narrow) -> Vec<u8> {
    // SAFETY: every kind of `Narrow` reads one u32 or int.
    unsafe { tostr((&raw const value).cast(), kind as fi_type) }
}

/// The version of the library itself.
pub fn library_version() -> Vec<u8> {
    // SAFETY: FI_TYPE_VERSION reads nothing.
    unsafe { tostr(c"1".as_ptr().cast(), FI_TYPE_VERSION) }
}

/// What fi_getinfo answered.
pub struct Infos(InfoList);

impl Infos {
    pub fn iter(&self) -> impl Iterator<Item = Info<'_>> {
        let lend = |raw: *mut fi_info| {
            NonNull::new(raw).map(|raw| Info {
                raw,
                owner: PhantomData,
            })
        };
        // SAFETY: every info of the list lives as long as `self`.
        std::iter::successors(lend(self.0.head()), move |info| lend(unsafe { info.raw.as_ref() }.next))
    }
}

/// One info of a list.
#[derive(Clone, Copy)]
pub struct Info<'a> {
    raw: NonNull<fi_info>,
    owner: PhantomData<&'a Infos>,
}

impl<'a> Info<'a> {
    pub fn raw(self) -> &'a fi_info {
        // SAFETY: lent by the list it stands in.
        unsafe { self.raw.as_ref() }
    }

    pub fn tx(self) -> Option<&'a fi_tx_attr> {
        // SAFETY: NULL or a part that lives as long as the info; so in the four that follow.
        unsafe { self.raw().tx_attr.as_ref() }
    }

    pub fn rx(self) -> Option<&'a fi_rx_attr> {
        // SAFETY: as in `tx`.
        unsafe { self.raw().rx_attr.as_ref() }
    }

    pub fn ep(self) -> Option<&'a fi_ep_attr> {
        // SAFETY: as in `tx`.
        unsafe { self.raw().ep_attr.as_ref() }
    }

    pub fn domain(self) -> Option<&'a fi_domain_attr> {
        // SAFETY: as in `tx`.
        unsafe { self.raw().domain_attr.as_ref() }
    }

    pub fn fabric(self) -> Option<&'a fi_fabric_attr> {
        // SAFETY: as in `tx`.
        unsafe { self.raw().fabric_attr.as_ref() }
    }

    pub fn data_progress(self) -> Option<fi_progress> {
        // SAFETY: both names of the union are the same integer.
        self.domain().map(|domain| unsafe { domain.anonymous.data_progress })
    }

    pub fn domain_name(self) -> Option<&'a [u8]> {
        // SAFETY: names in an info are NULL or strings that live as long as it; so in the two that follow.
        self.domain().and_then(|domain| unsafe { bytes(domain.name) })
    }

    pub fn fabric_name(self) -> Option<&'a [u8]> {
        // SAFETY: as in `domain_name`.
        self.fabric().and_then(|fabric| unsafe { bytes(fabric.name) })
    }

    pub fn provider(self) -> Option<&'a [u8]> {
        // SAFETY: as in `domain_name`.
        self.fabric().and_then(|fabric| unsafe { bytes(fabric.prov_name) })
    }

    /// The whole info as the library writes it.
    pub fn text(self) -> Vec<u8> {
        // SAFETY: FI_TYPE_INFO reads an info.
        unsafe { tostr(self.raw.as_ptr().cast_const().cast(), FI_TYPE_INFO) }
    }

    pub fn nic(self) -> Option<Nic<'a>> {
        // SAFETY: NULL, or a nic that lives as long as the info; its parts likewise.
        unsafe {
            let nic = self.raw().nic.as_ref()?;
            Some(Nic {
                device: nic.device_attr.as_ref().map(|d| Device {
                    name: bytes(d.name),
                    device_id: bytes(d.device_id),
                    device_version: bytes(d.device_version),
                    vendor_id: bytes(d.vendor_id),
                    driver: bytes(d.driver),
                    firmware: bytes(d.firmware),
                }),
                bus_type: nic.bus_attr.as_ref().map(|bus| bus.bus_type),
                // The union has one member, meant only for this bus type.
                pci: nic
                    .bus_attr
                    .as_ref()
                    .filter(|bus| bus.bus_type == FI_BUS_PCI)
                    .map(|bus| bus.attr.pci),
                link: nic.link_attr.as_ref().map(|l| Link {
                    address: bytes(l.address),
                    mtu: l.mtu,
                    speed: l.speed,
                    state: l.state,
                    network_type: bytes(l.network_type),
                }),
            })
        }
    }
}

pub struct Nic<'a> {
    pub device: Option<Device<'a>>,
    pub bus_type: Option<fi_bus_type>,
    pub pci: Option<fi_pci_attr>,
    pub link: Option<Link<'a>>,
}

pub struct Device<'a> {
    pub name: Option<&'a [u8]>,
    pub device_id: Option<&'a [u8]>,
    pub device_version: Option<&'a [u8]>,
    pub vendor_id: Option<&'a [u8]>,
    pub driver: Option<&'a [u8]>,
    pub firmware: Option<&'a [u8]>,
}

pub struct Link<'a> {
    pub address: Option<&'a [u8]>,
    pub mtu: usize,
    pub speed: usize,
    pub state: fi_link_state,
    pub network_type: Option<&'a [u8]>,
}

/// Asks fi_getinfo; an error is the negative number it returned.
pub fn getinfo(query: &Query) -> Result<Infos, c_int> {
    let hints = match &query.hints {
        Some(hints) => Some(c_hints(hints).ok_or(-FI_ENOMEM)?),
        None => None,
    };
    InfoList::ask(
        query.node.as_deref(),
        query.port.as_deref(),
        query.flags,
        hints.as_ref(),
    )
    .map(Infos)
}

/// The hints as a C struct; None when memory is out.
fn c_hints(from: &Hints) -> Option<InfoList> {
    let hints = InfoList::hints()?;
    // SAFETY: just made, nobody else has it; parts that are not NULL are whole.
    unsafe {
        let info = hints.head().as_mut()?;
        let (ep, domain) = (info.ep_attr.as_mut()?, info.domain_attr.as_mut()?);
        let fabric = info.fabric_attr.as_mut()?;
        info.caps = from.caps;
        info.mode = from.mode.unwrap_or(u64::MAX);
        info.addr_format = from.addr_format;
        ep.r#type = from.ep_type;
        domain.mode = u64::MAX;
        // Every mode but these two, each of which excludes all others.
        domain.mr_mode = !(FI_MR_BASIC | FI_MR_SCALABLE);
        domain.name = name_for_info(from.domain.as_deref());
        fabric.name = name_for_info(from.fabric.as_deref());
        fabric.prov_name = name_for_info(from.provider.as_deref());
    }
    Some(hints)
}

/// A variable of the environment that the library or a provider understands.
pub struct Param {
    pub name: Vec<u8>,
    pub kind: fi_param_type,
    pub help: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

/// Asks fi_getparams; an error is the negative number it returned.
pub fn params() -> Result<Vec<Param>, c_int> {
    let (mut head, mut count) = (ptr::null_mut(), 0);
    // SAFETY: both are places to write to.
    let ret = unsafe { fi_getparams(&mut head, &mut count) };
    if ret != 0 {
        return Err(ret);
    }
    if head.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the library filled `count` entries; their texts live until they are freed below, and are copied before.
    unsafe {
        let own = |text: *const c_char| bytes(text).map(<[u8]>::to_vec);
        let all = core::slice::from_raw_parts(head, usize::try_from(count).unwrap_or(0));
        let copies = all.iter().map(|p| Param {
            name: own(p.name).unwrap_or_default(),
            kind: p.r#type,
            help: own(p.help_string),
            value: own(p.value),
        });
        let copies = copies.collect();
        fi_freeparams(head);
        Ok(copies)
    }
}
