//! Names of values as the C library has them, known or not.

use super::*;

#[test]
fn values_have_the_names_of_the_c_library() {
    let table = [
        (EP_TYPE, 3, "FI_EP_RDM"),
        (EP_TYPE, 4, "Unknown"),
        (EP_TYPE, u32::MAX, "Unknown"),
        (THREADING, 2, "Unknown"),
        (THREADING, 4, "FI_THREAD_COMPLETION"),
        (PROTOCOL, 4, "Unknown"),
        (PROTOCOL, 31, "FI_PROTO_LNX"),
        (ADDR_FORMAT, 5, "Unknown"),
        (ADDR_FORMAT, 17, "FI_SOCKADDR_IP"),
        (ATOMIC_TYPE, 15, "FI_UINT128"),
        (ATOMIC_TYPE, 16, "Unknown"),
        (ATOMIC_OP, 19, "Unknown"),
        (LOG_LEVEL, 1, "trace"),
        (LOG_SUBSYS, 10, "Unknown"),
        (BUS_TYPE, 0, "FI_BUS_UNKNOWN"),
    ];
    for (names, value, expected) in table {
        assert_eq!(name(names, value), expected, "value {value}");
    }
}
