//! Pairs of formats: which serves whom, and which is of which family.

use super::*;

#[test]
fn families() {
    let rows = [
        // (asked, offered or concrete, fits, includes)
        (FI_FORMAT_UNSPEC, FI_SOCKADDR_IN, true, true),
        (FI_SOCKADDR, FI_SOCKADDR_IN, true, true),
        (FI_SOCKADDR, FI_SOCKADDR_IB, true, true),
        (FI_SOCKADDR, FI_ADDR_STR, false, false),
        (FI_SOCKADDR_IP, FI_SOCKADDR_IN, true, true),
        (FI_SOCKADDR_IP, FI_SOCKADDR_IN6, true, true),
        (FI_SOCKADDR_IP, FI_SOCKADDR_IB, false, false),
        (FI_SOCKADDR_IN, FI_SOCKADDR_IP, true, false),
        (FI_SOCKADDR_IN6, FI_SOCKADDR_IP, true, false),
        (FI_SOCKADDR_IN, FI_SOCKADDR, true, false),
        (FI_SOCKADDR_IN, FI_SOCKADDR_IN6, false, false),
        (FI_SOCKADDR_IN6, FI_SOCKADDR_IN6, true, true),
        (FI_SOCKADDR_IB, FI_SOCKADDR_IP, false, false),
        (FI_SOCKADDR_IB, FI_SOCKADDR, true, false),
        (FI_ADDR_STR, FI_ADDR_STR, true, true),
        (FI_ADDR_STR, FI_SOCKADDR_IP, false, false),
        (FI_ADDR_STR, FI_FORMAT_UNSPEC, true, true),
        (FI_ADDR_EFA, FI_ADDR_IB_UD, false, false),
        (12345, FI_SOCKADDR_IP, false, false),
    ];
    for (asked, other, fit, included) in rows {
        assert_eq!(fits(asked, other), fit, "{asked} by {other}");
        assert_eq!(includes(asked, other), included, "{asked} of {other}");
    }
}
