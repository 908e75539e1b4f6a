//! The C side of fi_tostr and fi_tostr_r: opens the pointer that a datatype promises, and puts the text where C wants
//! it.
//!
//! The wording is `api::tostr`'s. Called by `abi::entry`; `nic_tostr` also by C, through the ops of a nic.

mod read;

use super::info_read;
use super::layout::CURRENT;
use super::types::*;
use crate::api::tostr::info::AddressField;
use crate::api::tostr::{Pointer, Text, enums, flags, info, nic, objects};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::cell::UnsafeCell;

/// The size of the buffer behind fi_tostr.
const BUFFER: usize = 8192;

/// The most an object may say about itself; a caller's buffer can be of any size and must not be matched by ours.
const OBJECT_TEXT: usize = 65536;

thread_local! {
    /// What fi_tostr returned last in this thread. Plain bytes, with nothing to drop: a destructor here would keep the
    /// library loaded after dlclose until the thread ends.
    static ANSWER: UnsafeCell<[u8; BUFFER]> = const { UnsafeCell::new([0; BUFFER]) };
}

/// fi_tostr. The text stays until the thread's next call.
///
/// # Safety
/// `data` is NULL or points to a value of the datatype.
pub unsafe fn tostr(data: *const c_void, datatype: fi_type) -> *mut c_char {
    // SAFETY: the caller's promise.
    let Some(text) = (unsafe { to_text(data, datatype, BUFFER) }) else {
        return ptr::null_mut();
    };
    ANSWER.with(|answer| {
        let buffer = answer.get().cast();
        // SAFETY: the buffer has BUFFER bytes and is this thread's alone; `text` is shorter.
        unsafe { put(buffer, BUFFER, &text) };
        buffer
    })
}

/// fi_tostr_r.
///
/// # Safety
/// As `tostr`; `buf` is NULL or has `len` bytes.
pub unsafe fn tostr_r(buf: *mut c_char, len: usize, data: *const c_void, datatype: fi_type) -> *mut c_char {
    if buf.is_null() || len == 0 {
        return ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    match unsafe { to_text(data, datatype, len) } {
        None => ptr::null_mut(),
        Some(text) => {
            // SAFETY: the caller's promise; `to_text` keeps to `len`.
            unsafe { put(buf, len, &text) };
            buf
        }
    }
}

/// Copies a text and its NUL.
///
/// # Safety
/// `buf` has `len` bytes, at least one.
unsafe fn put(buf: *mut c_char, len: usize, text: &[u8]) {
    let count = text.len().min(len - 1);
    // SAFETY: count + 1 <= len, and a fresh text does not overlap the caller's buffer.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), buf, count);
        buf.add(count).write(0);
    }
}

/// The text of a value, cut as for a buffer of `size` bytes. `None` when there is no value.
///
/// # Safety
/// As `tostr`.
pub unsafe fn to_text(data: *const c_void, datatype: fi_type, size: usize) -> Option<Vec<u8>> {
    if data.is_null() {
        return None;
    }
    let mut text = Text::new(size);
    // SAFETY: the caller's promise. A datatype answers to one of the three at most.
    let known = unsafe {
        add_enum(&mut text, data, datatype)
            || add_flags(&mut text, data, datatype)
            || add_struct(&mut text, data, datatype)
    };
    if !known {
        write!(text, "Unknown type");
    }
    Some(text.into_bytes())
}

/// # Safety
/// As `tostr`, `data` not NULL.
unsafe fn add_enum(text: &mut Text, data: *const c_void, datatype: fi_type) -> bool {
    let names = match datatype {
        FI_TYPE_EP_TYPE => enums::EP_TYPE,
        FI_TYPE_ADDR_FORMAT => enums::ADDR_FORMAT,
        FI_TYPE_THREADING => enums::THREADING,
        FI_TYPE_PROGRESS => enums::PROGRESS,
        FI_TYPE_PROTOCOL => enums::PROTOCOL,
        FI_TYPE_AV_TYPE => enums::AV_TYPE,
        FI_TYPE_ATOMIC_TYPE => enums::ATOMIC_TYPE,
        FI_TYPE_ATOMIC_OP => enums::ATOMIC_OP,
        FI_TYPE_EQ_EVENT => enums::EQ_EVENT,
        FI_TYPE_OP_TYPE => enums::OP_TYPE,
        FI_TYPE_COLLECTIVE_OP => enums::COLLECTIVE_OP,
        FI_TYPE_HMEM_IFACE => enums::HMEM_IFACE,
        FI_TYPE_CQ_FORMAT => enums::CQ_FORMAT,
        FI_TYPE_LOG_LEVEL => enums::LOG_LEVEL,
        FI_TYPE_LOG_SUBSYS => enums::LOG_SUBSYS,
        FI_TYPE_CQ_WAIT_COND => enums::CQ_WAIT_COND,
        FI_TYPE_WAIT_OBJ => enums::WAIT_OBJ,
        _ => return false,
    };
    // SAFETY: these types are ints in C.
    let value = unsafe { data.cast::<u32>().read_unaligned() };
    write!(text, "{}", enums::name(names, value));
    true
}

/// # Safety
/// As `tostr`, `data` not NULL.
unsafe fn add_flags(text: &mut Text, data: *const c_void, datatype: fi_type) -> bool {
    let names = match datatype {
        FI_TYPE_CAPS => flags::CAPS,
        FI_TYPE_OP_FLAGS => flags::OP_FLAGS,
        FI_TYPE_MSG_ORDER => flags::MSG_ORDER,
        FI_TYPE_MODE => flags::MODE,
        FI_TYPE_CQ_EVENT_FLAGS => flags::CQ_EVENT,
        FI_TYPE_MR_MODE => flags::MR_MODE,
        _ => return false,
    };
    // SAFETY: these sets are 64 bits wide, all but the memory mode, which is an int.
    let bits = unsafe {
        match datatype {
            FI_TYPE_MR_MODE => data.cast::<u32>().read_unaligned().into(),
            _ => data.cast::<u64>().read_unaligned(),
        }
    };
    flags::add(text, names, bits);
    true
}

/// # Safety
/// As `tostr`, `data` not NULL.
unsafe fn add_struct(text: &mut Text, data: *const c_void, datatype: fi_type) -> bool {
    // SAFETY: the caller's promise, once per datatype.
    unsafe {
        match datatype {
            FI_TYPE_INFO => add_info(text, data.cast()),
            FI_TYPE_TX_ATTR => info::tx_attr(text, 0, Some(&info_read::tx(&*data.cast()))),
            FI_TYPE_RX_ATTR => info::rx_attr(text, 0, Some(&info_read::rx(&*data.cast()))),
            FI_TYPE_EP_ATTR => info::ep_attr(text, 0, Some(&info_read::ep(&*data.cast()))),
            FI_TYPE_DOMAIN_ATTR => info::domain_attr(text, 0, Some(&info_read::domain(&*data.cast()))),
            FI_TYPE_FABRIC_ATTR => info::fabric_attr(text, 0, Some(&info_read::fabric(&*data.cast()))),
            FI_TYPE_VERSION => write!(text, "{FI_MAJOR_VERSION}.{FI_MINOR_VERSION}.{FI_REVISION_VERSION}"),
            FI_TYPE_FID => add_fid(text, "fid: ", data.cast()),
            FI_TYPE_AV_ATTR => objects::av_attr(text, &read::av(data.cast())),
            FI_TYPE_CQ_ATTR => objects::cq_attr(text, &data.cast::<fi_cq_attr>().read_unaligned()),
            FI_TYPE_MR_ATTR => objects::mr_attr(text, &read::mr(data.cast())),
            FI_TYPE_CNTR_ATTR => objects::cntr_attr(text, &data.cast::<fi_cntr_attr>().read_unaligned()),
            FI_TYPE_CQ_ERR_ENTRY => objects::cq_err_entry(text, &read::cq_err_entry(data.cast())),
            _ => return false,
        }
    }
    true
}

/// # Safety
/// `data` points to an info whose pointers are NULL or good.
unsafe fn add_info(text: &mut Text, data: *const fi_info) {
    // SAFETY: the caller's promise.
    unsafe {
        let value = info_read::read(data, &CURRENT);
        let src = AddressField {
            at: (*data).src_addr.addr(),
            len: (*data).src_addrlen,
        };
        let dest = AddressField {
            at: (*data).dest_addr.addr(),
            len: (*data).dest_addrlen,
        };
        info::head(text, &value, src, dest);
        add_fid(text, "    handle: ", (*data).handle);
        info::parts(text, &value);
        add_fid(text, "    nic: ", (*data).nic.cast());
    }
}

/// An object that can speak for itself does so, and then without the label; of any other we say where it lies.
///
/// # Safety
/// `object` is NULL or a live fid.
unsafe fn add_fid(text: &mut Text, label: &str, object: *const fid) {
    // SAFETY: the caller's promise.
    let Some(speak) = (unsafe { tostr_op(object) }) else {
        return writeln!(text, "{label}{}", Pointer(object.addr()));
    };
    // A buffer of its own: C providers append to what they find in it, and count its size from the start.
    let mut said = vec![0u8; text.left().clamp(1, OBJECT_TEXT)];
    // SAFETY: the op takes its own fid and a buffer of that size that holds an empty string.
    unsafe { speak(object, said.as_mut_ptr().cast(), said.len()) };
    text.add_piece(said.split(|byte| *byte == 0).next().unwrap_or_default());
}

type TostrOp = unsafe extern "C" fn(fid: *const fid, buf: *mut c_char, len: usize) -> c_int;

/// The object's own tostr, if it has ops and they are new enough to have one.
///
/// # Safety
/// As `add_fid`.
unsafe fn tostr_op(object: *const fid) -> Option<TostrOp> {
    // SAFETY: the caller's promise; the size guards the field.
    unsafe {
        let ops = object.as_ref()?.ops;
        if ops.is_null() || (*ops).size <= core::mem::offset_of!(fi_ops, tostr) {
            return None;
        }
        (*ops).tostr
    }
}

/// The tostr op of a nic that this library made. Appends to the string in `buf`, which has `len` bytes.
///
/// # Safety
/// `object` is a `fid_nic`; `buf` is NULL or has `len` bytes.
pub unsafe extern "C" fn nic_tostr(object: *const fid, buf: *mut c_char, len: usize) -> c_int {
    if object.is_null() || buf.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the caller's promise; strnlen looks at `len` bytes at most.
    unsafe {
        let used = libc::strnlen(buf, len);
        if used < len {
            let mut text = Text::new(len - used);
            nic::add(&mut text, &super::nic::read(object.cast()));
            put(buf.add(used), len - used, &text.into_bytes());
        }
    }
    FI_SUCCESS
}

#[cfg(test)]
mod tests {
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
        (ep.mem_tag_format, ep.tx_ctx_cnt, ep.rx_ctx_cnt, ep.auth_key_size) =
            (0xaaaa, FI_SHARED_CONTEXT, 36, usize::MAX);
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
}
