//! The text of C structs, read through the exported calls: as the C library's, and safe where that one crashes.

use super::*;
use core::ffi::CStr;
use core::mem::zeroed;

fn text_of<T>(value: &T, datatype: fi_type) -> String {
    // SAFETY: each test names the datatype of its value.
    let text = unsafe { CStr::from_ptr(tostr(ptr::from_ref(value).cast(), datatype)) };
    text.to_string_lossy().into_owned()
}

fn empty_info() -> fi_info {
    // SAFETY: all fields are numbers and raw pointers.
    unsafe { zeroed() }
}

#[test]
fn an_empty_info_says_what_is_missing() {
    let expected = "fi_info:
    caps: [  ]
    mode: [  ]
    addr_format: FI_FORMAT_UNSPEC
    src_addrlen: 0
    dest_addrlen: 0
    src_addr: (null)
    dest_addr: (null)
    handle: (nil)
    fi_tx_attr: (null)
    fi_rx_attr: (null)
    fi_ep_attr: (null)
    fi_domain_attr: (null)
    fi_fabric_attr: (null)
    nic: (nil)
";
    assert_eq!(text_of(&empty_info(), FI_TYPE_INFO), expected);
}

#[test]
fn attributes_are_written_as_the_c_library_does() {
    // SAFETY: as above.
    let (mut tx, mut ep, mut fabric): (fi_tx_attr, fi_ep_attr, fi_fabric_attr) = unsafe { zeroed() };
    (tx.caps, tx.mode, tx.tclass) = (FI_MSG | FI_SEND | FI_HMEM, FI_CONTEXT | FI_CONTEXT2, 0x201);
    (ep.r#type, ep.protocol, ep.protocol_version) = (FI_EP_RDM, FI_PROTO_RXM, u32::MAX);
    (ep.mem_tag_format, ep.tx_ctx_cnt, ep.rx_ctx_cnt, ep.auth_key_size) = (0xaaaa, FI_SHARED_CONTEXT, 36, usize::MAX);
    fabric.prov_name = c"tcp;ofi_rxm".as_ptr().cast_mut();
    (fabric.prov_version, fabric.api_version) = (122 << 16 | 7, 2 << 16 | 1);
    assert_eq!(
        text_of(&tx, FI_TYPE_TX_ATTR),
        "fi_tx_attr:\n    caps: [ FI_MSG, FI_SEND, FI_HMEM ]\n    mode: [ FI_CONTEXT, FI_CONTEXT2 ]\n    op_flags: [  \
         ]\n    msg_order: [  ]\n    inject_size: 0\n    size: 0\n    iov_limit: 0\n    rma_iov_limit: 0\n    \
         tclass: 0x201\n"
    );
    assert_eq!(
        text_of(&ep, FI_TYPE_EP_ATTR),
        "fi_ep_attr:\n    type: FI_EP_RDM\n    protocol: FI_PROTO_RXM\n    protocol_version: -1\n    max_msg_size: \
         0\n    msg_prefix_size: 0\n    max_order_raw_size: 0\n    max_order_war_size: 0\n    max_order_waw_size: \
         0\n    mem_tag_format: 0x000000000000aaaa\n    tx_ctx_cnt: FI_SHARED_CONTEXT\n    rx_ctx_cnt: 36\n    \
         auth_key_size: 18446744073709551615\n"
    );
    assert_eq!(
        text_of(&fabric, FI_TYPE_FABRIC_ATTR),
        "fi_fabric_attr:\n    name: (null)\n    prov_name: tcp;ofi_rxm\n    prov_version: 122.7\n    api_version: \
         2.1\n"
    );
}

#[test]
fn scalars_are_read_at_their_own_width() {
    let mr_mode = FI_MR_LOCAL as u64 | 1 << 32;
    assert_eq!(text_of(&mr_mode, FI_TYPE_MR_MODE), "FI_MR_LOCAL");
    let msg_order = FI_ORDER_RAR | FI_ORDER_RMA_RAR;
    assert_eq!(text_of(&msg_order, FI_TYPE_MSG_ORDER), "FI_ORDER_RAR, FI_ORDER_RMA_RAR");
    assert_eq!(text_of(&FI_WAIT_POLLFD, FI_TYPE_WAIT_OBJ), "FI_WAIT_POLLFD");
    assert_eq!(text_of(&-1i32, FI_TYPE_LOG_LEVEL), "Unknown");
    assert_eq!(text_of(&0u64, FI_TYPE_WAIT_OBJ + 1), "Unknown type");
    assert_eq!(text_of(&0u64, FI_TYPE_VERSION), "2.6.0");
}

/// Where the C library would read past an address or through a NULL, or write past the caller's buffer.
#[test]
fn what_the_c_library_trips_over_is_safe() {
    let mut address = [0u16; 2];
    address[0] = libc::AF_INET as u16;
    let mut value = empty_info();
    value.addr_format = FI_SOCKADDR_IN;
    (value.src_addr, value.src_addrlen) = (address.as_mut_ptr().cast(), size_of_val(&address));
    assert!(
        text_of(&value, FI_TYPE_INFO).contains("\n    src_addr: \n"),
        "a short address"
    );

    let mut ops = nic_ops();
    let mut nic = empty_nic(&mut ops);
    value.nic = &mut nic;
    let text = text_of(&value, FI_TYPE_INFO);
    assert!(text.ends_with(
        "\n    nic:\n        fi_device_attr: (null)\n        fi_bus_attr: (null)\n        fi_link_attr: (null)\n"
    ));
    for size in 1..text.len() + 3 {
        let mut buf = vec![0x7eu8; size + 1];
        // SAFETY: the buffer has `size` bytes and one to watch.
        let answer = unsafe { tostr_r(buf.as_mut_ptr().cast(), size, (&raw const value).cast(), FI_TYPE_INFO) };
        assert_eq!(answer, buf.as_mut_ptr().cast());
        assert_eq!(buf.pop(), Some(0x7e), "written past {size}");
        assert!(buf.contains(&0), "no end within {size}");
    }
}

fn nic_ops() -> fi_ops {
    // SAFETY: no function is a good value.
    let none: fi_ops = unsafe { zeroed() };
    fi_ops {
        size: size_of::<fi_ops>(),
        tostr: Some(nic_tostr),
        ..none
    }
}

fn empty_nic(ops: &mut fi_ops) -> fid_nic {
    let fid = fid {
        fclass: FI_CLASS_NIC as usize,
        context: ptr::null_mut(),
        ops,
    };
    fid_nic {
        fid,
        device_attr: ptr::null_mut(),
        bus_attr: ptr::null_mut(),
        link_attr: ptr::null_mut(),
        prov_attr: ptr::null_mut(),
    }
}

#[test]
fn a_nic_speaks_for_itself() {
    let mut device = fi_device_attr {
        name: c"mlx5_0".as_ptr().cast_mut(),
        device_id: c"0x1017".as_ptr().cast_mut(),
        device_version: ptr::null_mut(),
        vendor_id: c"0x15b3".as_ptr().cast_mut(),
        driver: c"mlx5_core".as_ptr().cast_mut(),
        firmware: c"16.27".as_ptr().cast_mut(),
    };
    let pci = fi_pci_attr {
        domain_id: 0x8000,
        bus_id: 200,
        device_id: 255,
        function_id: 7,
    };
    let mut bus = fi_bus_attr {
        bus_type: FI_BUS_PCI,
        attr: fi_bus_attr_attr { pci },
    };
    let mut link = fi_link_attr {
        address: c"fe80::1".as_ptr().cast_mut(),
        mtu: 4096,
        speed: 100_000_000_000,
        state: FI_LINK_UP,
        network_type: c"InfiniBand".as_ptr().cast_mut(),
    };
    let mut ops = nic_ops();
    let mut nic = empty_nic(&mut ops);
    (nic.device_attr, nic.bus_attr, nic.link_attr) = (&mut device, &mut bus, &mut link);
    let expected = "    nic:
        fi_device_attr:
            name: mlx5_0
            device_id: 0x1017
            device_version: (null)
            vendor_id: 0x15b3
            driver: mlx5_core
            firmware: 16.27
        fi_bus_attr:
            bus_type: FI_BUS_PCI
            fi_pci_attr:
                domain_id: 32768
                bus_id: 200
                device_id: 255
                function_id: 7
        fi_link_attr:
            address: fe80::1
            mtu: 4096
            speed: 100000000000
            state: FI_LINK_UP
            network_type: InfiniBand
";
    assert_eq!(text_of(&nic, FI_TYPE_FID), expected);
    let mut value = empty_info();
    value.nic = &mut nic;
    assert!(text_of(&value, FI_TYPE_INFO).ends_with(expected));
    // SAFETY: the ops are ours and alive.
    unsafe { (*nic.fid.ops).size = core::mem::offset_of!(fi_ops, tostr) };
    assert_eq!(
        text_of(&nic, FI_TYPE_FID),
        format!("fid: {:#x}\n", (&raw const nic).addr())
    );
}

#[test]
fn an_objects_text_is_appended_to_the_buffer() {
    let mut ops = nic_ops();
    let nic = empty_nic(&mut ops);
    for (size, expected) in [(0, "before"), (6, "before"), (7, "before"), (16, "before    nic:")] {
        let mut buf = *b"before\0~~~~~~~~~~~~~";
        // SAFETY: `size` is within the buffer.
        let code = unsafe { nic_tostr(&nic.fid, buf.as_mut_ptr().cast(), size) };
        assert_eq!(code, FI_SUCCESS);
        assert_eq!(
            CStr::from_bytes_until_nul(&buf).map(CStr::to_bytes),
            Ok(expected.as_bytes()),
            "size {size}"
        );
    }
}

#[test]
fn each_thread_has_its_own_answer() {
    let here = text_ptr();
    assert_eq!(
        std::thread::spawn(|| text_ptr() as usize)
            .join()
            .ok()
            .map(|there| there == here as usize),
        Some(false)
    );
    assert_eq!(text_ptr(), here);
}

fn text_ptr() -> *mut c_char {
    // SAFETY: capabilities are 64 bits.
    unsafe { tostr(ptr::from_ref(&FI_MSG).cast(), FI_TYPE_CAPS) }
}

#[test]
fn nothing_in_nothing_out() {
    let mut buf = [1 as c_char; 4];
    let data: *const c_void = ptr::from_ref(&FI_MSG).cast();
    // SAFETY: NULLs and a real buffer.
    unsafe {
        assert!(tostr(ptr::null(), FI_TYPE_INFO).is_null());
        assert!(tostr_r(buf.as_mut_ptr(), 4, ptr::null(), FI_TYPE_CAPS).is_null());
        assert!(tostr_r(buf.as_mut_ptr(), 0, data, FI_TYPE_CAPS).is_null());
        assert!(tostr_r(ptr::null_mut(), 4, data, FI_TYPE_CAPS).is_null());
        assert_eq!(buf, [1; 4]);
    }
}
