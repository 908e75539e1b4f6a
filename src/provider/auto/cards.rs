//! The cards that an offer tells of (fi_info.nic): one offer for each device and each interface that the network may go
//! by. An endpoint chooses among them by itself, whichever offer it is opened from.
//!
//! Sandia OpenSHMEM deals its processes out over all offers whose card no offer before them had, and takes no others.
//! So `auto` is offered once for each card that verbs and tcp tell of, or they would be taken in its place.

use super::settings::{self, Network};
use crate::abi::types::FI_BUS_UNKNOWN;
use crate::api::info::model::{BusAttr, Info, NicAttr};
use crate::provider::{tcp, verbs};

/// This offer with each of the cards that there are. Devices come first, as they are tried first.
pub(super) fn each_with_a_card(offer: Info) -> Vec<Info> {
    let devices = super::may_have_card().then(verbs::network::nics).unwrap_or_default();
    let devices = devices.into_iter().map(without_place);
    let has_tcp = settings::get().network != Network::None;
    let interfaces = has_tcp.then(tcp::nics).unwrap_or_default();
    each_with(offer, devices.chain(interfaces))
}

/// The offer with each card, of which some may be named again, as an interface is that has several addresses; once,
/// without a card, if there is none.
fn each_with(offer: Info, cards: impl Iterator<Item = NicAttr>) -> Vec<Info> {
    let mut offers: Vec<Info> = Vec::new();
    for card in cards {
        let is_of = |one: &Info| one.nic.as_ref().is_some_and(|other| other.device == card.device);
        if !offers.iter().any(is_of) {
            offers.push(Info {
                nic: Some(card),
                ..offer.clone()
            });
        }
    }
    if offers.is_empty() {
        offers.push(offer);
    }
    offers
}

/// Not telling its place on the PCI bus: MPICH takes cards that have one by the order of their names, and where its
/// hwloc knows no PCI devices, as in the packages of PyPI, it ends the process.
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

    fn card(name: &str) -> NicAttr {
        let device = DeviceAttr {
            name: Some(name.into()),
            ..DeviceAttr::default()
        };
        NicAttr {
            device: Some(device),
            ..NicAttr::default()
        }
    }

    #[test]
    fn a_device_has_no_place() {
        let bus = BusAttr {
            bus_type: FI_BUS_PCI,
            ..BusAttr::default()
        };
        let told = without_place(NicAttr {
            bus: Some(bus),
            ..card("mlx5_0")
        });
        assert_eq!(told.device, card("mlx5_0").device);
        assert_eq!(told.bus.unwrap().bus_type, FI_BUS_UNKNOWN);
    }

    #[test]
    fn each_card_once_and_an_offer_without_any() {
        let nics = |names: &[&str]| -> Vec<Option<NicAttr>> {
            let offers = each_with(shm(), names.iter().copied().map(card));
            offers.into_iter().map(|offer| offer.nic).collect()
        };
        assert_eq!(nics(&[]), [None]);
        assert_eq!(
            nics(&["eth0", "eth0", "eth1"]),
            [Some(card("eth0")), Some(card("eth1"))]
        );
    }
}
