//! The card of an offer (fid_nic), from what the kernel shows of its interface. Called by `interfaces`.
//!
//! Bus and link are always there, as programs look at them without asking (MPICH at both). The place on the PCI bus is
//! told on request only: MPICH takes a card that has one by the order of names, whatever comes first here, and ends the
//! process where its hwloc knows no PCI devices, as in the packages of PyPI.

use super::settings;
use crate::abi::types::*;
use crate::api::info::model::{BusAttr, DeviceAttr, LinkAttr, NicAttr, PciAttr};
use crate::sys::card::{self, Card};

const BITS_IN_A_MEGABIT: usize = 1_000_000;

/// ARPHRD_INFINIBAND: IP over InfiniBand.
const INFINIBAND: u16 = 32;

pub(super) fn nic(interface: &str) -> NicAttr {
    of_card(interface, card::of(interface), settings::get().nic_pci)
}

fn of_card(interface: &str, card: Card, with_pci: bool) -> NicAttr {
    let bus = match card.pci.as_ref().filter(|_| with_pci) {
        None => BusAttr {
            bus_type: FI_BUS_UNKNOWN,
            ..BusAttr::default()
        },
        Some(place) => BusAttr {
            bus_type: FI_BUS_PCI,
            pci: PciAttr {
                domain_id: place.domain,
                bus_id: place.bus,
                device_id: place.device,
                function_id: place.function,
            },
        },
    };
    let speed = card.speed.and_then(|speed| usize::try_from(speed).ok());
    let device = card.pci.unwrap_or_default();
    NicAttr {
        device: Some(DeviceAttr {
            name: Some(interface.into()),
            device_id: device.device_id,
            device_version: device.revision,
            vendor_id: device.vendor_id,
            driver: card.driver,
            firmware: None,
        }),
        bus: Some(bus),
        link: Some(LinkAttr {
            address: card.address,
            mtu: card.mtu,
            speed: speed.map_or(0, |speed| speed.saturating_mul(BITS_IN_A_MEGABIT)),
            state: match card.is_up {
                Some(true) => FI_LINK_UP,
                Some(false) => FI_LINK_DOWN,
                None => FI_LINK_UNKNOWN,
            },
            network_type: match card.kind {
                Some(libc::ARPHRD_ETHER) => Some("Ethernet".into()),
                Some(INFINIBAND) => Some("InfiniBand".into()),
                _ => None,
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::card::PciDevice;

    #[test]
    fn a_card_on_the_bus() {
        let card = Card {
            address: Some("02:fc:00:00:00:01".into()),
            mtu: 9000,
            speed: Some(25_000),
            is_up: Some(true),
            kind: Some(1),
            driver: Some("ice".into()),
            pci: Some(PciDevice {
                domain: 1,
                bus: 2,
                device: 3,
                function: 4,
                vendor_id: Some("0x8086".into()),
                device_id: Some("0x1593".into()),
                revision: None,
            }),
        };
        let usual = of_card("eth7", card.clone(), false);
        assert_eq!(usual.bus.map(|bus| bus.bus_type), Some(FI_BUS_UNKNOWN));
        let nic = of_card("eth7", card, true);
        assert_eq!(usual.device, nic.device);
        let (device, bus, link) = (nic.device.unwrap(), nic.bus.unwrap(), nic.link.unwrap());
        assert_eq!(
            (device.name.as_deref(), device.driver.as_deref()),
            (Some("eth7"), Some("ice"))
        );
        assert_eq!(
            (device.vendor_id.as_deref(), device.device_id.as_deref()),
            (Some("0x8086"), Some("0x1593"))
        );
        let pci = bus.pci;
        let place = (pci.domain_id, pci.bus_id, pci.device_id, pci.function_id);
        assert_eq!((bus.bus_type, place), (FI_BUS_PCI, (1, 2, 3, 4)));
        assert_eq!((link.mtu, link.speed, link.state), (9000, 25_000_000_000, FI_LINK_UP));
        assert_eq!(link.network_type.as_deref(), Some("Ethernet"));
    }

    #[test]
    fn bus_and_link_are_there_without_a_card() {
        let nic = nic("no such interface");
        assert_eq!(nic.bus.unwrap().bus_type, FI_BUS_UNKNOWN);
        let link = nic.link.unwrap();
        assert_eq!((link.speed, link.state, link.network_type), (0, FI_LINK_UNKNOWN, None));
        assert_eq!(nic.device.unwrap().name.as_deref(), Some("no such interface"));
    }
}
