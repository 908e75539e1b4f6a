//! A full fi_info there and back through C, in the layout of each age: what each of them knew, and copies that share
//! nothing.

use super::super::layout::{ABI_1_0, ABI_1_1, ABI_1_3};
use super::*;
use crate::api::info::model::*;

fn full() -> Info {
    let text = |text: &str| Some(text.to_string());
    Info {
        caps: FI_MSG | FI_TAGGED,
        mode: FI_CONTEXT,
        addr_format: FI_ADDR_STR,
        src_addr: Some(b"fi_shm://1\0".to_vec()),
        dest_addr: Some(b"fi_shm://22\0".to_vec()),
        handle: Opaque(0x10),
        tx: Some(TxAttr {
            caps: 1,
            inject_size: 2,
            rma_iov_limit: 3,
            tclass: 4,
            ..Default::default()
        }),
        rx: Some(RxAttr {
            caps: 5,
            total_buffered_recv: 6,
            iov_limit: 7,
            ..Default::default()
        }),
        ep: Some(EpAttr {
            ep_type: FI_EP_RDM,
            rx_ctx_cnt: 8,
            auth_key: AuthKey {
                size: KeySize::Is(2),
                bytes: Some(vec![9, 10]),
            },
            ..Default::default()
        }),
        domain: Some(DomainAttr {
            name: text("eth0"),
            progress: FI_PROGRESS_MANUAL,
            max_ep_srx_ctx: 11,
            auth_key: AuthKey {
                size: KeySize::Is(FI_AV_AUTH_KEY),
                bytes: None,
            },
            mr_cnt: 12,
            tclass: 13,
            max_ep_auth_key: 14,
            max_group_id: 15,
            max_err_cntr_value: 16,
            ..Default::default()
        }),
        fabric: Some(FabricAttr {
            name: text("net"),
            prov_name: text("tcp"),
            prov_version: 17,
            api_version: 18,
            ..Default::default()
        }),
        nic: Some(NicAttr {
            device: Some(DeviceAttr {
                name: text("rxe0"),
                firmware: text("1"),
                ..Default::default()
            }),
            bus: Some(BusAttr {
                bus_type: FI_BUS_PCI,
                pci: PciAttr {
                    domain_id: 19,
                    function_id: 20,
                    ..Default::default()
                },
            }),
            link: Some(LinkAttr {
                address: text("a"),
                mtu: 21,
                network_type: text("Ethernet"),
                ..Default::default()
            }),
        }),
    }
}

/// Writes, reads back by a layout, frees.
fn through_c(info: &Info, layout: &Layout) -> Info {
    let c = write(info).unwrap();
    // SAFETY: a list of one, ours, freed once.
    unsafe {
        let back = read(c, layout);
        free(c, &CURRENT);
        back
    }
}

#[test]
fn everything_survives_the_way_through_c() {
    assert_eq!(through_c(&full(), &CURRENT), full());
    assert_eq!(through_c(&Info::default(), &CURRENT), Info::default());
}

#[test]
fn a_copy_is_equal_and_shares_nothing() {
    let c = write(&full()).unwrap();
    // SAFETY: both lists are ours; the first is freed before the second is read.
    unsafe {
        let copy = dup(c, &CURRENT).unwrap();
        free(c, &CURRENT);
        assert_eq!(read(copy, &CURRENT), full());
        free(copy, &CURRENT);
    }
}

#[test]
fn old_layouts_show_what_they_knew() {
    let mut expected = full();
    expected.domain.as_mut().unwrap().max_ep_auth_key = 0;
    expected.domain.as_mut().unwrap().max_group_id = 0;
    expected.domain.as_mut().unwrap().max_err_cntr_value = 0;
    assert_eq!(through_c(&full(), &ABI_1_3), expected);
    expected.tx.as_mut().unwrap().tclass = 0;
    expected.domain.as_mut().unwrap().tclass = 0;
    expected.nic = None;
    assert_eq!(through_c(&full(), &ABI_1_1), expected);
    expected.domain.as_mut().unwrap().mr_cnt = 0;
    expected.domain.as_mut().unwrap().auth_key = AuthKey::default();
    expected.ep.as_mut().unwrap().auth_key = AuthKey::default();
    expected.fabric.as_mut().unwrap().api_version = 0;
    assert_eq!(through_c(&full(), &ABI_1_0), expected);
}

#[test]
fn a_fresh_info_has_all_its_parts_and_nothing_in_them() {
    let c = allocate().unwrap();
    // SAFETY: ours, freed once.
    let info = unsafe {
        let info = read(c, &CURRENT);
        free(c, &CURRENT);
        info
    };
    let empty = Info {
        tx: Some(TxAttr::default()),
        rx: Some(RxAttr::default()),
        ep: Some(EpAttr::default()),
        domain: Some(DomainAttr::default()),
        fabric: Some(FabricAttr::default()),
        ..Info::default()
    };
    assert_eq!(info, empty);
}
