//! What fits and what is replied in each age of the API, in rows of offers as tcp, shm and verbs have them.

use super::*;
use crate::api::info::samples::query_of;

const MSG: u64 = FI_MSG | FI_SEND | FI_RECV;
const RMA: u64 = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
const BASIC_MAP: c_int = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
/// As verbs offers it.
const VERBS: c_int = BASIC_MAP | FI_MR_LOCAL | FI_MR_BASIC;
/// As tcp and shm offer it.
const EASY: c_int = FI_MR_BASIC | FI_MR_SCALABLE;

fn hints(caps: u64, mode: u64, mr_mode: c_int) -> Info {
    let mut hints = Info {
        caps,
        mode,
        ..Info::blank()
    };
    hints.domain.as_mut().unwrap().mr_mode = mr_mode;
    hints
}

#[test]
fn what_fits() {
    let rows = [
        // (offered, api, caps, mode, mr_mode, fits)
        (EASY, (1, 20), MSG, 0, 0, true),
        (EASY, (1, 20), RMA, 0, FI_MR_LOCAL | BASIC_MAP, true),
        (EASY, (1, 20), RMA, 0, FI_MR_BASIC, true),
        (EASY, (1, 20), RMA, 0, FI_MR_SCALABLE, true),
        (EASY, (1, 20), RMA, 0, FI_MR_BASIC | FI_MR_SCALABLE, false),
        (EASY, (1, 20), RMA, 0, FI_MR_BASIC | FI_MR_LOCAL, false),
        (EASY, (1, 20), RMA, 0, FI_MR_SCALABLE | FI_MR_LOCAL, false),
        (EASY, (1, 4), RMA, 0, 0, true),
        (EASY, (1, 4), RMA, 0, FI_MR_BASIC, true),
        (EASY, (1, 4), RMA, 0, FI_MR_SCALABLE, true),
        (EASY, (1, 4), RMA, 0, FI_MR_LOCAL, false),
        (VERBS, (1, 4), RMA, 0, FI_MR_BASIC, false),
        (VERBS, (1, 4), RMA, FI_LOCAL_MR, FI_MR_BASIC, true),
        (VERBS, (1, 4), RMA, FI_LOCAL_MR, 0, true),
        (VERBS, (1, 4), RMA, FI_LOCAL_MR, FI_MR_SCALABLE, false),
        (VERBS, (1, 20), RMA, 0, 0, false),
        (VERBS, (1, 20), RMA, FI_LOCAL_MR, 0, true),
        (VERBS, (1, 20), RMA, FI_LOCAL_MR, FI_MR_BASIC, true),
        (VERBS, (1, 20), RMA, 0, FI_MR_BASIC, false),
        (VERBS, (1, 20), RMA, 0, FI_MR_LOCAL | BASIC_MAP, true),
        (VERBS, (1, 20), RMA, 0, FI_MR_LOCAL | FI_MR_VIRT_ADDR, false),
        (VERBS, (1, 20), MSG, 0, FI_MR_LOCAL, false),
        (VERBS, (1, 20), MSG, 0, FI_MR_LOCAL | FI_MR_ALLOCATED, true),
        (VERBS, (1, 20), FI_RMA | FI_READ, 0, FI_MR_LOCAL | FI_MR_ALLOCATED, true),
        (BASIC_MAP, (1, 20), MSG, 0, FI_MR_ENDPOINT, true),
        (BASIC_MAP, (1, 20), RMA, 0, FI_MR_ENDPOINT, false),
        (BASIC_MAP, (1, 4), RMA, 0, 0, false),
        (FI_MR_HMEM, (1, 20), MSG, 0, FI_MR_ENDPOINT, true),
        (FI_MR_HMEM, (1, 20), MSG | FI_HMEM, 0, FI_MR_ENDPOINT, false),
        (FI_MR_HMEM, (1, 20), MSG | FI_HMEM, 0, FI_MR_HMEM, true),
    ];
    for (row, (offered, (major, minor), caps, mode, mr_mode, fits)) in rows.into_iter().enumerate() {
        let hints = hints(caps, mode, mr_mode);
        let query = query_of(&hints, major, minor);
        assert_eq!(check(offered, &hints, &query).is_ok(), fits, "row {row}");
    }
}

#[test]
fn what_is_replied() {
    let rows = [
        // (offered, api, caps, mr_mode hinted, mr_mode replied, FI_LOCAL_MR replied)
        (EASY, (1, 20), RMA, 0, 0, false),
        (EASY, (1, 20), RMA, FI_MR_BASIC, FI_MR_BASIC, false),
        (EASY, (1, 20), RMA, FI_MR_SCALABLE, FI_MR_SCALABLE, false),
        (EASY, (1, 20), RMA, FI_MR_LOCAL | BASIC_MAP, 0, false),
        (EASY, (1, 4), RMA, 0, FI_MR_BASIC, false),
        (FI_MR_SCALABLE, (1, 4), RMA, 0, FI_MR_SCALABLE, false),
        (VERBS, (1, 4), RMA, 0, FI_MR_BASIC, true),
        (VERBS, (1, 20), RMA, FI_MR_BASIC, FI_MR_BASIC, true),
        (
            VERBS,
            (1, 20),
            RMA,
            FI_MR_LOCAL | BASIC_MAP,
            FI_MR_LOCAL | BASIC_MAP,
            false,
        ),
        (
            VERBS,
            (1, 20),
            RMA,
            FI_MR_LOCAL | BASIC_MAP | FI_MR_HMEM,
            FI_MR_LOCAL | BASIC_MAP,
            false,
        ),
        (
            VERBS,
            (1, 20),
            MSG,
            FI_MR_LOCAL | FI_MR_ALLOCATED,
            FI_MR_LOCAL | FI_MR_ALLOCATED,
            false,
        ),
        (BASIC_MAP, (1, 20), MSG, FI_MR_ALLOCATED, 0, false),
    ];
    for (row, (offered, (major, minor), caps, mr_mode, expected, local)) in rows.into_iter().enumerate() {
        let hints = hints(caps, 0, mr_mode);
        let query = query_of(&hints, major, minor);
        assert_eq!(reply(offered, caps, Some(&hints), &query), expected, "row {row}");
        let mode = if local { FI_LOCAL_MR } else { 0 };
        assert_eq!(reply_mode(offered, Some(&hints), &query), mode, "row {row}");
    }
}

#[test]
fn caps_without_the_modes_of_a_target() {
    const INITIATOR: u64 = FI_RMA | FI_READ | FI_WRITE;
    let rows = [
        (VERBS, (1, 20), RMA, FI_MR_LOCAL | BASIC_MAP, RMA),
        (VERBS, (1, 20), RMA, FI_MR_BASIC, RMA),
        (VERBS, (1, 20), RMA, FI_MR_LOCAL, INITIATOR),
        (VERBS, (1, 20), RMA, 0, INITIATOR),
        (VERBS, (1, 4), RMA, 0, RMA),
        (EASY, (1, 20), RMA, 0, RMA),
        (VERBS, (1, 20), MSG, 0, MSG),
    ];
    for (row, (offered, (major, minor), caps, mr_mode, expected)) in rows.into_iter().enumerate() {
        let hints = hints(caps, 0, mr_mode);
        assert_eq!(
            trim_caps(caps, offered, &hints, &query_of(&hints, major, minor)),
            expected,
            "row {row}"
        );
    }
    let no_domain = Info {
        caps: RMA,
        ..Info::default()
    };
    assert_eq!(
        trim_caps(RMA, VERBS, &no_domain, &query_of(&no_domain, 1, 4)),
        INITIATOR
    );
}
