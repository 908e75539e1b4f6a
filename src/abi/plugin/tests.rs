//! Plug-ins made of Rust functions, held against what `plugin` promises.

use super::*;
use crate::abi::info;
use crate::api::info::model::{FabricAttr, Info};
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" fn no_fabric(_: *mut fi_fabric_attr, _: *mut *mut fid_fabric, _: *mut c_void) -> c_int {
    -FI_ENODEV
}

/// Offers, in a list of its own, one whole info for every 1 in the lowest eight flags, and one without ep_attr for
/// every 0 below the highest 1.
unsafe extern "C" fn by_flags(
    _: u32,
    _: *const c_char,
    _: *const c_char,
    flags: u64,
    _: *const fi_info,
    list: *mut *mut fi_info,
) -> c_int {
    if flags == 0xdead {
        return -FI_ENODEV;
    }
    for bit in (0..8).rev().filter(|bit| flags >> bit != 0) {
        let new = info::allocate().unwrap();
        // SAFETY: a whole fi_info of ours; `list` is a place for a pointer.
        unsafe {
            (*new).caps = 1 << bit;
            if flags >> bit & 1 == 0 {
                libc::free((*new).ep_attr.cast());
                (*new).ep_attr = null_mut();
            }
            (*new).next = *list;
            *list = new;
        }
    }
    0
}

/// Structs of the size they had in 1.17, each at the very end of its memory as far as malloc can say.
unsafe extern "C" fn of_1_17(
    _: u32,
    _: *const c_char,
    _: *const c_char,
    _: u64,
    _: *const fi_info,
    list: *mut *mut fi_info,
) -> c_int {
    // SAFETY: fresh zeroed memory, of which only what is there is written.
    unsafe {
        let new = libc::calloc(1, layout::ABI_1_3.info).cast::<fi_info>();
        (*new).tx_attr = libc::calloc(1, layout::ABI_1_3.tx).cast();
        (*new).rx_attr = libc::calloc(1, layout::ABI_1_3.rx).cast();
        (*new).ep_attr = libc::calloc(1, layout::ABI_1_3.ep).cast();
        (*new).domain_attr = libc::calloc(1, layout::ABI_1_3.domain).cast();
        (*new).fabric_attr = libc::calloc(1, layout::ABI_1_3.fabric).cast();
        (*(*new).domain_attr).tclass = 0x1234;
        // In memory, though not in the struct: must not be seen.
        let room = libc::malloc_usable_size((*new).domain_attr.cast());
        libc::memset((*new).domain_attr.cast::<u8>().add(192).cast(), 0xff, room - 192);
        *list = new;
    }
    0
}

fn provider(name: &CStr, getinfo: Option<GetInfo>, fi_version: u32) -> fi_provider {
    fi_provider {
        version: layout::version(3, 7),
        fi_version,
        context: fi_context {
            internal: [null_mut(); 4],
        },
        name: name.as_ptr(),
        getinfo,
        fabric: Some(no_fabric),
        cleanup: None,
    }
}

fn adopt(raw: &mut fi_provider) -> Option<ExternalProvider> {
    // SAFETY: the struct outlives the provider in every test.
    unsafe { ExternalProvider::adopt(raw, None, Path::new("libtest-fi.so")) }
}

fn ask(plugin: &ExternalProvider, flags: u64) -> Result<Vec<Answer>> {
    let null = core::ptr::null();
    let call = RawCall {
        version: layout::version(2, 6),
        node: null,
        service: null,
        flags,
        hints: core::ptr::null(),
    };
    let version = call.version;
    plugin.getinfo(&Query {
        version,
        node: None,
        service: None,
        flags,
        hints: None,
        found: None,
        raw: Some(&call),
    })
}

#[test]
fn what_cannot_be_used_is_refused() {
    let v2 = layout::version(2, 6);
    let mut whole = provider(c"x", Some(by_flags), v2);
    assert!(adopt(&mut whole).is_some());
    // SAFETY: null is allowed.
    assert!(unsafe { ExternalProvider::adopt(null_mut(), None, Path::new("libtest-fi.so")) }.is_none());
    let nameless = fi_provider {
        name: core::ptr::null(),
        ..whole
    };
    let no_fabric = fi_provider { fabric: None, ..whole };
    let old = fi_provider {
        fi_version: layout::version(1, 2),
        ..whole
    };
    for mut refused in [nameless, no_fabric, old] {
        assert!(adopt(&mut refused).is_none());
    }
    for odd in [c"", c"two\nlines", c"\xff\xfe", c"\x1b[31m"] {
        assert!(adopt(&mut provider(odd, None, v2)).is_none(), "{odd:?}");
    }
    assert!(
        adopt(&mut fi_provider {
            fi_version: layout::version(1, 3),
            ..whole
        })
        .is_some()
    );
    let long = CString::new(vec![b'n'; 100_000]).unwrap();
    assert_eq!(adopt(&mut provider(&long, None, v2)).unwrap().name().len(), 100_000);
}

#[test]
fn the_kind_is_told_by_the_name_and_by_getinfo() {
    let cases = [
        (c"verbs", true, Kind::Core, 0, false),
        (c"EFA", true, Kind::Core, 0, true),
        (c"OFI_rxm", true, Kind::Utility, 1, true),
        (c"ofi_hook_x", false, Kind::Hook, 2, false),
        (c"off_coll", true, Kind::Offload, 3, false),
        (c"lnx", true, Kind::Link, 4, false),
        (c"of\u{e9}", true, Kind::Core, 0, false),
    ];
    for (name, has_getinfo, kind, number, on_request_only) in cases {
        let mut raw = provider(name, has_getinfo.then_some(by_flags as GetInfo), layout::version(2, 6));
        assert_eq!(adopt(&mut raw).unwrap().kind(), kind, "{name:?}");
        // SAFETY: written by `adopt`.
        let context = unsafe { (&raw const raw.context).cast::<ProvContext>().read() };
        assert_eq!(
            (context.kind, context.disable_layering),
            (number, u8::from(on_request_only)),
            "{name:?}"
        );
    }
}

static CLEANED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn cleanup() {
    CLEANED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn cleanup_runs_once_used_or_refused() {
    let mut raw = fi_provider {
        cleanup: Some(cleanup),
        ..provider(c"x", None, layout::version(2, 6))
    };
    let plugin = adopt(&mut raw).unwrap();
    assert_eq!(CLEANED.load(Ordering::Relaxed), 0);
    drop(plugin);
    assert_eq!(CLEANED.load(Ordering::Relaxed), 1);
    assert!(adopt(&mut fi_provider { fi_version: 0, ..raw }).is_none());
    assert_eq!(CLEANED.load(Ordering::Relaxed), 2);
}

#[test]
fn whole_infos_are_taken_over_and_broken_ones_dropped() {
    let mut raw = provider(c"x", Some(by_flags), layout::version(2, 6));
    let plugin = adopt(&mut raw).unwrap();
    let caps = |answers: Vec<Answer>| answers.iter().map(|answer| answer.info.caps).collect::<Vec<u64>>();
    assert_eq!(caps(ask(&plugin, 0b111).unwrap()), [1, 2, 4]);
    assert_eq!(caps(ask(&plugin, 0b1011).unwrap()), [1, 2, 8]);
    assert_eq!(caps(ask(&plugin, 0b1000_0000).unwrap()), [0x80]);
    assert_eq!(ask(&plugin, 0).err(), Some(Errno(FI_ENODATA)), "an empty list");
    assert_eq!(ask(&plugin, 0xdead).err(), Some(Errno(FI_ENODEV)));
}

#[test]
fn an_answer_is_handed_out_as_it_came_but_for_the_cores_words() {
    let mut raw = provider(c"x", Some(by_flags), layout::version(2, 6));
    let plugin = adopt(&mut raw).unwrap();
    let Answer { info: mut seen, own } = ask(&plugin, 0b11).unwrap().remove(0);
    seen.fabric = Some(FabricAttr {
        prov_name: Some("x;ofi_y".into()),
        prov_version: 7,
        api_version: 8,
        ..seen.fabric.unwrap()
    });
    let own = own.unwrap().downcast::<OwnInfo>().unwrap();
    let node = own.signed(seen.fabric.as_ref()).unwrap();
    // SAFETY: ours now, and freed once.
    unsafe {
        assert!((*node).next.is_null());
        assert_eq!(info::read(node, &layout::CURRENT), seen);
        info::free(node, &layout::CURRENT);
    }
}

#[test]
fn short_structs_grow_to_todays_size() {
    let mut raw = provider(c"x", Some(of_1_17), layout::version(1, 17));
    let plugin = adopt(&mut raw).unwrap();
    let Answer { info: seen, own } = ask(&plugin, 0).unwrap().remove(0);
    let domain = seen.domain.clone().unwrap();
    assert_eq!(
        (domain.tclass, domain.max_ep_auth_key, domain.max_cntr_value),
        (0x1234, 0, 0)
    );
    let node = own.unwrap().downcast::<OwnInfo>().unwrap().signed(None).unwrap();
    // SAFETY: ours now, and freed once.
    let read: Info = unsafe {
        assert!(libc::malloc_usable_size((*node).domain_attr.cast()) >= size_of::<fi_domain_attr>());
        let read = info::read(node, &layout::CURRENT);
        info::free(node, &layout::CURRENT);
        read
    };
    assert_eq!(read, seen);
}

#[test]
fn a_call_without_its_c_arguments_is_not_for_a_plugin() {
    let mut raw = provider(c"x", Some(by_flags), layout::version(2, 6));
    let query = Query {
        version: 0,
        node: None,
        service: None,
        flags: 1,
        hints: None,
        found: None,
        raw: None,
    };
    assert_eq!(adopt(&mut raw).unwrap().getinfo(&query).err(), Some(Errno(FI_ENOSYS)));
    let mut hook = provider(c"hook", None, layout::version(2, 6));
    assert_eq!(ask(&adopt(&mut hook).unwrap(), 1).err(), Some(Errno(FI_ENOSYS)));
}
