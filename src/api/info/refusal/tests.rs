//! Each kind of refusal as the line that the log has of it.

use super::*;

#[test]
fn a_refusal_is_one_line_with_asked_and_offered() {
    let show = |bits| describe_flags(FI_TYPE_CAPS, bits);
    let rows = [
        (
            subset("caps", FI_TYPE_CAPS, FI_MSG | FI_ATOMIC, FI_MSG | FI_RMA),
            format!(
                "caps: asked {}, offers {}, lacks {}",
                show(FI_MSG | FI_ATOMIC),
                show(FI_MSG | FI_RMA),
                show(FI_ATOMIC)
            ),
        ),
        (
            granted("mode", FI_TYPE_MODE, FI_CONTEXT, 0),
            format!(
                "mode: needs {0}, given {1}, misses {0}",
                describe_flags(FI_TYPE_MODE, FI_CONTEXT),
                describe_flags(FI_TYPE_MODE, 0)
            ),
        ),
        (
            size_at_most("tx_attr.size", 9, 8),
            "tx_attr.size: asked 9, offers at most 8".into(),
        ),
        (
            Err(Refusal {
                attr: "domain_attr.name",
                why: Why::NotNamed {
                    asked: "eth9".into(),
                    offers: "lo".into(),
                },
            }),
            "domain_attr.name: asked \"eth9\", offers \"lo\"".into(),
        ),
        (
            Err(Refusal::says("ep_attr.auth_key", "no")),
            "ep_attr.auth_key: no".into(),
        ),
    ];
    for (check, line) in rows {
        assert_eq!(check.unwrap_err().to_string(), line);
    }
    assert_eq!(subset("caps", FI_TYPE_CAPS, FI_MSG, FI_MSG | FI_RMA), Ok(()));
    assert_eq!(size_at_most("tx_attr.size", 8, 8), Ok(()));
}
