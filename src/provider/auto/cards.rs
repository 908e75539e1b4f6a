//! The cards that an offer tells of (fi_info.nic): one offer for each device and each interface that the network may go by.
//! An endpoint chooses among them by itself, whichever offer it is opened from.
//!
//! Sandia OpenSHMEM deals its processes out over all offers whose card no offer before them had, and takes no others. So
//! `auto` is offered once for each card that verbs and tcp tell of, or they would be taken in its place.

use super::settings::{self, Network};
use crate::abi::types::FI_BUS_UNKNOWN;
use crate::api::info::model::{BusAttr, Info, NicAttr};
use crate::provider::{tcp, verbs};

/// This offer with each of the cards; once, without, if there are none.
pub(super) fn each_with_a_card(offer: Info) -> Vec<Info> {
    let cards = cards();
    if cards.is_empty() {
        return vec![offer];
    }
    let with = |card| Info {
        nic: Some(card),
        ..offer.clone()
    };
    cards.into_iter().map(with).collect()
}

/// Devices come first, as they are tried first.
fn cards() -> Vec<NicAttr> {
    let devices = super::may_have_card().then(verbs::network::nics).unwrap_or_default();
    let devices = devices.into_iter().map(without_place);
    let has_tcp = settings::get().network != Network::None;
    let interfaces = has_tcp.then(tcp::nics).unwrap_or_default();
    let mut cards: Vec<NicAttr> = Vec::new();
    for card in devices.chain(interfaces) {
        // An interface with several addresses is one card.
        if !cards.iter().any(|one| one.device == card.device) {
            cards.push(card);
        }
    }
    cards
}

/// Not telling its place on the PCI bus: MPICH takes cards that have one by the order of their names, and where its hwloc
/// knows no PCI devices, as in the packages of PyPI, it ends the process.
fn without_place(card: NicAttr) -> NicAttr {
    let bus = BusAttr {
        bus_type: FI_BUS_UNKNOWN,
        ..BusAttr::default()
    };
    NicAttr { bus: Some(bus), ..card }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::FI_BUS_PCI;
    use crate::api::info::model::DeviceAttr;
    use crate::api::info::samples::shm;

    #[test]
    fn a_device_has_no_place() {
        let device = DeviceAttr {
            name: Some("mlx5_0".into()),
            ..DeviceAttr::default()
        };
        let bus = BusAttr {
            bus_type: FI_BUS_PCI,
            ..BusAttr::default()
        };
        let card = NicAttr {
            device: Some(device.clone()),
            bus: Some(bus),
            ..NicAttr::default()
        };
        let told = without_place(card);
        assert_eq!(
            (told.device, told.bus.unwrap().bus_type),
            (Some(device), FI_BUS_UNKNOWN)
        );
    }

    #[test]
    fn there_is_an_offer_though_there_is_no_card() {
        let offers = each_with_a_card(shm());
        assert!(!offers.is_empty());
        let names = |info: &Info| info.nic.as_ref().map(|nic| nic.device.clone());
        for (at, one) in offers.iter().enumerate() {
            assert!(offers[..at].iter().all(|before| names(before) != names(one)), "twice");
        }
    }
}
