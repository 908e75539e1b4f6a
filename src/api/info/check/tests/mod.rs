//! One candidate against hints, by rows of tables: whether it fits, or which attribute is the reason why not.
//!
//! - `whole_info_rows`, `domain_rows`, `endpoint_rows`: the rows; `templates`: what they are made of;
//! - `replies`: what is answered where a candidate fits.

use super::*;
use crate::api::info::model::{AuthKey, DomainAttr, EpAttr, RxAttr, TxAttr};
use crate::api::info::query::fi_version;
use crate::api::info::samples::*;

mod domain_rows;
mod endpoint_rows;
mod replies;
mod templates;
mod whole_info_rows;

type Change = fn(&mut Info);

/// For the C library's own hints: zero everywhere, every attribute there.
fn outcome(template: &Info, version: u32, change: Change) -> Result<Info, &'static str> {
    let mut hints = Info::blank();
    change(&mut hints);
    let query = Query {
        version,
        ..query_of(&hints, 1, 0)
    };
    check(template, template, &query).map_err(|refusal| refusal.attr)
}

struct Row {
    template: fn() -> Info,
    api: (u32, u32),
    change: Change,
    /// The attribute that is refused, or "" when the candidate fits.
    refused: &'static str,
}

const fn row(template: fn() -> Info, api: (u32, u32), change: Change, refused: &'static str) -> Row {
    Row {
        template,
        api,
        change,
        refused,
    }
}

const NEW: (u32, u32) = (2, 6);

fn check_rows(rows: &[Row]) {
    for (number, row) in rows.iter().enumerate() {
        let refused = outcome(&(row.template)(), fi_version(row.api.0, row.api.1), row.change).err();
        assert_eq!(refused.unwrap_or(""), row.refused, "row {number}");
    }
}

/// Names of providers and of layers, and what a layer may stand on for them.
#[test]
fn names_of_layers_alone_leave_open_what_they_stand_on() {
    let yes = ["tcp", "tcp;ofi_rxm", "OFI_RXM;TCP", "ofi_rxm", "tcp;^ofi_rxm"];
    let no = [
        "",
        ";",
        "^tcp",
        "ofi_rxm;^tcp",
        "ofi_rxm;^TCP",
        "verbs;ofi_rxm",
        "^ofi_rxm",
    ];
    for (names, may) in yes
        .map(|names| (names, true))
        .into_iter()
        .chain(no.map(|names| (names, false)))
    {
        assert_eq!(may_stand_on(names, "tcp"), may, "{names}");
    }
}
