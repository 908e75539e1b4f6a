//! struct fid_nic as text: what an info of a nic that we made ourselves says after its attributes.

use super::enums::{self, name};
use super::{Text, or_null};
use crate::abi::types::FI_BUS_PCI;
use crate::api::info::model::{BusAttr, DeviceAttr, LinkAttr, NicAttr, PciAttr};

/// Indented as the last part of an info, also when asked for alone.
pub fn add(text: &mut Text, nic: &NicAttr) {
    text.open(1, "nic");
    device(text, nic.device.as_ref());
    bus(text, nic.bus.as_ref());
    link(text, nic.link.as_ref());
}

fn device(text: &mut Text, attr: Option<&DeviceAttr>) {
    let Some(attr) = attr else {
        return text.line(2, "fi_device_attr", "(null)");
    };
    text.open(2, "fi_device_attr");
    text.line(3, "name", or_null(&attr.name));
    text.line(3, "device_id", or_null(&attr.device_id));
    text.line(3, "device_version", or_null(&attr.device_version));
    text.line(3, "vendor_id", or_null(&attr.vendor_id));
    text.line(3, "driver", or_null(&attr.driver));
    text.line(3, "firmware", or_null(&attr.firmware));
}

fn bus(text: &mut Text, attr: Option<&BusAttr>) {
    let Some(attr) = attr else {
        return text.line(2, "fi_bus_attr", "(null)");
    };
    text.open(2, "fi_bus_attr");
    text.line(3, "bus_type", name(enums::BUS_TYPE, attr.bus_type));
    if attr.bus_type == FI_BUS_PCI {
        pci(text, &attr.pci);
    }
}

fn pci(text: &mut Text, attr: &PciAttr) {
    text.open(3, "fi_pci_attr");
    text.line(4, "domain_id", attr.domain_id);
    text.line(4, "bus_id", attr.bus_id);
    text.line(4, "device_id", attr.device_id);
    text.line(4, "function_id", attr.function_id);
}

fn link(text: &mut Text, attr: Option<&LinkAttr>) {
    let Some(attr) = attr else {
        return text.line(2, "fi_link_attr", "(null)");
    };
    text.open(2, "fi_link_attr");
    text.line(3, "address", or_null(&attr.address));
    text.line(3, "mtu", attr.mtu);
    text.line(3, "speed", attr.speed);
    text.line(3, "state", name(enums::LINK_STATE, attr.state));
    text.line(3, "network_type", or_null(&attr.network_type));
}
