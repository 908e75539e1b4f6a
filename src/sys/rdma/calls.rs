//! The calls of libibverbs and librdmacm, found when they are first wanted.
//!
//! The libraries are opened by their names of today's binary interface and stay open. Nothing here is linked to them,
//! so libfabric.so loads on machines without them. Used by `sys::rdma` alone.

use super::types::*;
use crate::sys::dl::Library;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::NonNull;
use libc::sockaddr;
use std::ffi::CString;
use std::path::Path;
use std::sync::OnceLock;

macro_rules! calls {
    ($($library:literal { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* })*) => {
        pub(super) struct Calls {
            $($(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*)*
            /// Open as long as the calls are there.
            _libraries: Vec<Library>,
        }

        impl Calls {
            fn find() -> Result<Calls, String> {
                let mut libraries = Vec::new();
                $(
                    let library = Library::open(Path::new($library))?;
                    $(
                        let $name = symbol(&library, stringify!($name))?;
                        // SAFETY: the symbol of this name in a library of this interface has this type.
                        let $name = unsafe {
                            transmute::<NonNull<c_void>, unsafe extern "C" fn($($arg),*) $(-> $ret)?>($name)
                        };
                    )*
                    libraries.push(library);
                )*
                Ok(Calls { $($($name,)*)* _libraries: libraries })
            }
        }
    };
}

calls! {
    "libibverbs.so.1" {
        ibv_query_device: fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
        ibv_query_port: fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
        ibv_query_gid: fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
        ibv_query_pkey: fn(*mut ibv_context, u8, c_int, *mut u16) -> c_int;
        ibv_alloc_pd: fn(*mut ibv_context) -> *mut ibv_pd;
        ibv_dealloc_pd: fn(*mut ibv_pd) -> c_int;
        ibv_reg_mr: fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
        ibv_dereg_mr: fn(*mut ibv_mr) -> c_int;
        ibv_create_comp_channel: fn(*mut ibv_context) -> *mut ibv_comp_channel;
        ibv_destroy_comp_channel: fn(*mut ibv_comp_channel) -> c_int;
        ibv_create_cq: fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
        ibv_resize_cq: fn(*mut ibv_cq, c_int) -> c_int;
        ibv_destroy_cq: fn(*mut ibv_cq) -> c_int;
        ibv_get_cq_event: fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
        ibv_ack_cq_events: fn(*mut ibv_cq, u32);
        ibv_get_async_event: fn(*mut ibv_context, *mut ibv_async_event) -> c_int;
        ibv_ack_async_event: fn(*mut ibv_async_event);
        ibv_create_srq: fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
        ibv_destroy_srq: fn(*mut ibv_srq) -> c_int;
        ibv_create_qp: fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
        ibv_modify_qp: fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
        ibv_destroy_qp: fn(*mut ibv_qp) -> c_int;
        ibv_create_ah: fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah;
        ibv_destroy_ah: fn(*mut ibv_ah) -> c_int;
    }
    "librdmacm.so.1" {
        rdma_get_devices: fn(*mut c_int) -> *mut *mut ibv_context;
        rdma_free_devices: fn(*mut *mut ibv_context);
        rdma_create_event_channel: fn() -> *mut rdma_event_channel;
        rdma_destroy_event_channel: fn(*mut rdma_event_channel);
        rdma_create_id: fn(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, c_int) -> c_int;
        rdma_destroy_id: fn(*mut rdma_cm_id) -> c_int;
        rdma_migrate_id: fn(*mut rdma_cm_id, *mut rdma_event_channel) -> c_int;
        rdma_bind_addr: fn(*mut rdma_cm_id, *const sockaddr) -> c_int;
        rdma_resolve_addr: fn(*mut rdma_cm_id, *const sockaddr, *const sockaddr, c_int) -> c_int;
        rdma_resolve_route: fn(*mut rdma_cm_id, c_int) -> c_int;
        rdma_create_qp: fn(*mut rdma_cm_id, *mut ibv_pd, *mut ibv_qp_init_attr) -> c_int;
        rdma_destroy_qp: fn(*mut rdma_cm_id);
        rdma_connect: fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
        rdma_listen: fn(*mut rdma_cm_id, c_int) -> c_int;
        rdma_accept: fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
        rdma_reject: fn(*mut rdma_cm_id, *const c_void, u8) -> c_int;
        rdma_disconnect: fn(*mut rdma_cm_id) -> c_int;
        rdma_get_cm_event: fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int;
        rdma_ack_cm_event: fn(*mut rdma_cm_event) -> c_int;
    }
}

fn symbol(library: &Library, name: &str) -> Result<NonNull<c_void>, String> {
    let name = CString::new(name).map_err(|error| error.to_string())?;
    library.symbol(&name)
}

/// The calls, or the loader's text that says what is missing. Asked for anew each time until they are there: somebody
/// may install the libraries while a program runs.
pub(super) fn calls() -> Result<&'static Calls, String> {
    static FOUND: OnceLock<Calls> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let found = Calls::find()?;
    Ok(FOUND.get_or_init(|| found))
}
