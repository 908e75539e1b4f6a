//! The cards that an offer tells of (fi_info.nic): one offer for each device and each interface that the network may go by.
//! An endpoint chooses among them by itself, whichever offer it is opened from.
//!
//! Sandia OpenSHMEM deals its processes out over all offers whose card no offer before them had, and takes no others. So
//! `auto` is offered once for each card that verbs and tcp tell of, or they would be taken in its place.

use super::settings::{self, Network};
use crate::api::info::model::{Info, NicAttr};
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
    let has_tcp = settings::get().network != Network::None;
    let interfaces = has_tcp.then(tcp::nics).unwrap_or_default();
    let mut cards: Vec<NicAttr> = Vec::new();
    for card in devices.into_iter().chain(interfaces) {
        // An interface with several addresses is one card.
        if !cards.iter().any(|one| one.device == card.device) {
            cards.push(card);
        }
    }
    cards
}
