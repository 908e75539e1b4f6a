//! Rows of hints held against candidates, for what concerns the info as a whole: type, capabilities, mode, addresses,
//! fabric.

use super::templates::*;
use super::*;

#[test]
fn the_whole_info_is_checked() {
    check_rows(&[
        // Nothing asked.
        row(tcp_rdm, NEW, |_| {}, ""),
        row(tcp_msg, NEW, |_| {}, ""),
        row(shm, NEW, |_| {}, ""),
        row(udp, NEW, |_| {}, ""),
        row(rxm, NEW, |_| {}, ""),
        // Endpoint type.
        row(tcp_rdm, NEW, |h| ep(h).ep_type = FI_EP_RDM, ""),
        row(tcp_rdm, NEW, |h| ep(h).ep_type = FI_EP_MSG, "ep_attr.type"),
        row(udp, NEW, |h| ep(h).ep_type = FI_EP_RDM, "ep_attr.type"),
        row(udp, NEW, |h| ep(h).ep_type = 77, "ep_attr.type"),
        // Caps.
        row(tcp_rdm, NEW, |h| h.caps = FI_MSG | FI_TAGGED | FI_RMA, ""),
        row(tcp_rdm, NEW, |h| h.caps = FI_ATOMIC, "caps"),
        row(tcp_rdm, NEW, |h| h.caps = FI_MULTI_RECV | FI_SOURCE, ""),
        row(tcp_msg, NEW, |h| h.caps = FI_TAGGED, "caps"),
        row(tcp_msg, NEW, |h| h.caps = FI_MSG | FI_SOURCE, "caps"),
        row(shm, NEW, |h| h.caps = FI_ATOMIC | FI_LOCAL_COMM, ""),
        row(shm, NEW, |h| h.caps = FI_MSG | FI_REMOTE_COMM, "caps"),
        row(shm, NEW, |h| h.caps = FI_HMEM, "caps"),
        row(udp, NEW, |h| h.caps = FI_MSG | FI_MULTICAST, ""),
        row(udp, NEW, |h| h.caps = FI_RMA, "caps"),
        row(udp, NEW, |h| h.caps = 1 << 62, "caps"),
        // Mode: what the provider needs, not what the application could do besides.
        row(tcp_rdm, NEW, |h| h.mode = FI_CONTEXT | FI_MSG_PREFIX, ""),
        row(demanding, NEW, demanding_hints, ""),
        row(demanding, NEW, |_| {}, "mode"),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_CONTEXT;
            },
            "mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).mode = 0;
            },
            "domain_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_RX_CQ_DATA;
            },
            "rx_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                rx(h).mode = FI_CONTEXT;
            },
            "rx_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_ASYNC_IOV;
            },
            "tx_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_ASYNC_IOV;
                tx(h).mode = FI_ASYNC_IOV;
            },
            "",
        ),
        // Address format.
        row(tcp_rdm, NEW, |h| h.addr_format = FI_SOCKADDR_IN, ""),
        row(tcp_rdm, NEW, |h| h.addr_format = FI_SOCKADDR, ""),
        row(tcp_rdm, NEW, |h| h.addr_format = FI_ADDR_STR, "addr_format"),
        row(shm, NEW, |h| h.addr_format = FI_SOCKADDR_IN6, "addr_format"),
        row(rxm, NEW, |h| h.addr_format = FI_ADDR_EFA, ""),
        // Fabric.
        row(tcp_rdm, NEW, |h| fabric(h).prov_version = PROV_VERSION, ""),
        row(
            tcp_rdm,
            NEW,
            |h| fabric(h).prov_version = PROV_VERSION + 1,
            "fabric_attr.prov_version",
        ),
        row(tcp_rdm, NEW, |h| fabric(h).prov_name = Some("verbs".into()), ""),
        row(
            over_tcp,
            NEW,
            |h| fabric(h).prov_name = Some("verbs;ofi_rxm".into()),
            "fabric_attr.prov_name",
        ),
        row(over_tcp, NEW, |h| fabric(h).prov_name = Some("ofi_rxm;TCP".into()), ""),
        row(over_tcp, NEW, |_| {}, ""),
        row(
            over_tcp,
            NEW,
            |h| fabric(h).api_version = fi_version(1, 1),
            "fabric_attr.api_version",
        ),
        row(over_tcp, NEW, |h| fabric(h).api_version = fi_version(1, 9), ""),
        row(tcp_rdm, NEW, |h| fabric(h).name = Some("10.0.0.0/24".into()), ""),
    ]);
}
