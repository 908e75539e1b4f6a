//! struct fid_nic of this library: a plain record with the three operations that C programs use on it.
//!
//! A plug-in brings its own nic objects with its own operations; those are only ever copied and closed through them.
//! Called by `info`.

use super::info::Borrowed;
use super::lacking;
use super::memory::{self, NoMemory};
use super::types::*;
use crate::api::info::model::{BusAttr, DeviceAttr, LinkAttr, NicAttr, PciAttr};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

static OPS: fi_ops = fi_ops {
    close: Some(close),
    control: Some(control),
    tostr: Some(super::tostr::nic_tostr),
    ..lacking::FID
};

/// A deep copy of a nic made of plain parts, with our operations.
///
/// # Safety
/// `nic` and what it points to are readable.
unsafe fn copy(nic: *const fid_nic) -> Result<*mut fid_nic, NoMemory> {
    let fid = fid {
        fclass: FI_CLASS_NIC as usize,
        context: null_mut(),
        ops: (&raw const OPS).cast_mut(),
    };
    let new = memory::boxed(fid_nic {
        fid,
        device_attr: null_mut(),
        bus_attr: null_mut(),
        link_attr: null_mut(),
        prov_attr: null_mut(),
    })?;
    // SAFETY: `new` is ours and whole at every step, so `close` may free it half filled.
    unsafe {
        fill(new, nic).inspect_err(|_| {
            close(new.cast());
        })?;
    }
    Ok(new)
}

/// # Safety
/// As `copy`; `new` is a nic of ours without parts.
unsafe fn fill(new: *mut fid_nic, nic: *const fid_nic) -> Result<(), NoMemory> {
    // SAFETY: the nic and its parts are readable; each new part is first cleared of borrowed pointers, so it can be
    // freed at any time.
    unsafe {
        if let Some(device) = (*nic).device_attr.as_ref() {
            let part = memory::boxed(core::mem::zeroed::<fi_device_attr>())?;
            (*new).device_attr = part;
            (*part).name = memory::string(device.name)?;
            (*part).device_id = memory::string(device.device_id)?;
            (*part).device_version = memory::string(device.device_version)?;
            (*part).vendor_id = memory::string(device.vendor_id)?;
            (*part).driver = memory::string(device.driver)?;
            (*part).firmware = memory::string(device.firmware)?;
        }
        if let Some(bus) = (*nic).bus_attr.as_ref() {
            (*new).bus_attr = memory::boxed(*bus)?;
        }
        if let Some(link) = (*nic).link_attr.as_ref() {
            let part = memory::boxed(fi_link_attr {
                address: null_mut(),
                network_type: null_mut(),
                ..*link
            })?;
            (*new).link_attr = part;
            (*part).address = memory::string(link.address)?;
            (*part).network_type = memory::string(link.network_type)?;
        }
    }
    Ok(())
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    let nic = fid.cast::<fid_nic>();
    // SAFETY: only nics made by `copy` have this operation, and closing ends their life.
    unsafe {
        if let Some(device) = (*nic).device_attr.as_ref() {
            let strings = [
                device.name,
                device.device_id,
                device.device_version,
                device.vendor_id,
                device.driver,
                device.firmware,
            ];
            strings.into_iter().for_each(|text| memory::free(text));
        }
        if let Some(link) = (*nic).link_attr.as_ref() {
            memory::free(link.address);
            memory::free(link.network_type);
        }
        memory::free((*nic).device_attr);
        memory::free((*nic).bus_attr);
        memory::free((*nic).link_attr);
        memory::free(nic);
    }
    FI_SUCCESS
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    if command != FI_DUP as c_int {
        return -FI_ENOSYS;
    }
    if arg.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a nic of ours; FI_DUP's argument is a place for the copy's address.
    match unsafe { copy(fid.cast()) } {
        Ok(new) => {
            // SAFETY: as above.
            unsafe { arg.cast::<*mut fid_nic>().write(new) };
            FI_SUCCESS
        }
        Err(NoMemory) => -FI_ENOMEM,
    }
}

/// A copy of any nic, made by the nic itself; NULL if it cannot copy itself.
///
/// # Safety
/// `nic` is NULL or a live object.
pub(super) unsafe fn dup(nic: *mut fid_nic) -> Result<*mut fid_nic, NoMemory> {
    let mut new: *mut fid_nic = null_mut();
    if nic.is_null() {
        return Ok(new);
    }
    // SAFETY: a live nic, whose operation table says by its size what it has.
    let ret = unsafe {
        let place = (&raw mut new).cast::<c_void>();
        guarded!((*nic).fid.ops, control, (&raw mut (*nic).fid, FI_DUP as c_int, place))
    };
    match ret {
        FI_SUCCESS => Ok(new),
        code if code == -FI_ENOSYS => Ok(null_mut()),
        _ => Err(NoMemory),
    }
}

/// # Safety
/// `nic` is NULL or a live object, not used again.
pub(super) unsafe fn free(nic: *mut fid_nic) {
    if !nic.is_null() {
        // SAFETY: a live nic that is not used again.
        let _: c_int = unsafe { guarded!((*nic).fid.ops, close, (&raw mut (*nic).fid)) };
    }
}

/// # Safety
/// `nic` and what it points to are readable.
pub(super) unsafe fn read(nic: *const fid_nic) -> NicAttr {
    use super::text::read as text;
    // SAFETY: the nic and its parts are readable.
    unsafe {
        NicAttr {
            device: (*nic).device_attr.as_ref().map(|device| DeviceAttr {
                name: text(device.name),
                device_id: text(device.device_id),
                device_version: text(device.device_version),
                vendor_id: text(device.vendor_id),
                driver: text(device.driver),
                firmware: text(device.firmware),
            }),
            bus: (*nic).bus_attr.as_ref().map(|bus| BusAttr {
                bus_type: bus.bus_type,
                pci: {
                    let pci = bus.attr.pci;
                    PciAttr {
                        domain_id: pci.domain_id,
                        bus_id: pci.bus_id,
                        device_id: pci.device_id,
                        function_id: pci.function_id,
                    }
                },
            }),
            link: (*nic).link_attr.as_ref().map(|link| LinkAttr {
                address: text(link.address),
                mtu: link.mtu,
                speed: link.speed,
                state: link.state,
                network_type: text(link.network_type),
            }),
        }
    }
}

/// A nic of ours from its safe form.
pub(super) fn write(nic: &NicAttr) -> Result<*mut fid_nic, NoMemory> {
    let mut keep = Borrowed::default();
    let mut device = nic.device.as_ref().map(|device| fi_device_attr {
        name: keep.string(&device.name),
        device_id: keep.string(&device.device_id),
        device_version: keep.string(&device.device_version),
        vendor_id: keep.string(&device.vendor_id),
        driver: keep.string(&device.driver),
        firmware: keep.string(&device.firmware),
    });
    let mut bus = nic.bus.map(|bus| fi_bus_attr {
        bus_type: bus.bus_type,
        attr: fi_bus_attr_attr {
            pci: fi_pci_attr {
                domain_id: bus.pci.domain_id,
                bus_id: bus.pci.bus_id,
                device_id: bus.pci.device_id,
                function_id: bus.pci.function_id,
            },
        },
    });
    let mut link = nic.link.as_ref().map(|link| fi_link_attr {
        address: keep.string(&link.address),
        mtu: link.mtu,
        speed: link.speed,
        state: link.state,
        network_type: keep.string(&link.network_type),
    });
    let borrowed = fid_nic {
        fid: fid {
            fclass: FI_CLASS_NIC as usize,
            context: null_mut(),
            ops: null_mut(),
        },
        device_attr: device.as_mut().map_or(null_mut(), |part| part),
        bus_attr: bus.as_mut().map_or(null_mut(), |part| part),
        link_attr: link.as_mut().map_or(null_mut(), |part| part),
        prov_attr: null_mut(),
    };
    // SAFETY: every part lives in this function until the copy is made.
    unsafe { copy(&borrowed) }
}
