//! Plain data of `rdma/fi_domain.h`.

use super::*;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{iovec, size_t, ssize_t};

c_text!(
    top,
    r#"
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
"#
);

pub const FI_SYMMETRIC: u64 = 1u64 << 59;
pub const FI_SYNC_ERR: u64 = 1u64 << 58;
pub const FI_UNIVERSE: u64 = 1u64 << 57;
pub const FI_BARRIER_SET: u64 = 1u64 << 40;
pub const FI_BROADCAST_SET: u64 = 1u64 << 41;
pub const FI_ALLTOALL_SET: u64 = 1u64 << 42;
pub const FI_ALLREDUCE_SET: u64 = 1u64 << 43;
pub const FI_ALLGATHER_SET: u64 = 1u64 << 44;
pub const FI_REDUCE_SCATTER_SET: u64 = 1u64 << 45;
pub const FI_REDUCE_SET: u64 = 1u64 << 46;
pub const FI_SCATTER_SET: u64 = 1u64 << 47;
pub const FI_GATHER_SET: u64 = 1u64 << 48;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_av_attr {
    pub r#type: fi_av_type,
    pub rx_ctx_bits: c_int,
    pub count: size_t,
    pub ep_per_node: size_t,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

/// Which addresses of an address vector a set begins with.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_av_set_attr {
    pub count: size_t,
    pub start_addr: fi_addr_t,
    pub end_addr: fi_addr_t,
    pub stride: u64,
    pub comm_key_size: size_t,
    pub comm_key: *mut u8,
    pub flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_av {
    pub size: size_t,
    pub insert: Option<
        unsafe extern "C" fn(
            av: *mut fid_av,
            addr: *const c_void,
            count: size_t,
            fi_addr: *mut fi_addr_t,
            flags: u64,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub insertsvc: Option<
        unsafe extern "C" fn(
            av: *mut fid_av,
            node: *const c_char,
            service: *const c_char,
            fi_addr: *mut fi_addr_t,
            flags: u64,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub insertsym: Option<
        unsafe extern "C" fn(
            av: *mut fid_av,
            node: *const c_char,
            nodecnt: size_t,
            service: *const c_char,
            svccnt: size_t,
            fi_addr: *mut fi_addr_t,
            flags: u64,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub remove:
        Option<unsafe extern "C" fn(av: *mut fid_av, fi_addr: *mut fi_addr_t, count: size_t, flags: u64) -> c_int>,
    pub lookup: Option<
        unsafe extern "C" fn(av: *mut fid_av, fi_addr: fi_addr_t, addr: *mut c_void, addrlen: *mut size_t) -> c_int,
    >,
    pub straddr: Option<
        unsafe extern "C" fn(av: *mut fid_av, addr: *const c_void, buf: *mut c_char, len: *mut size_t) -> *const c_char,
    >,
    pub av_set: Option<
        unsafe extern "C" fn(
            av: *mut fid_av,
            attr: *mut fi_av_set_attr,
            av_set: *mut *mut fid_av_set,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub insert_auth_key: Option<
        unsafe extern "C" fn(
            av: *mut fid_av,
            auth_key: *const c_void,
            auth_key_size: size_t,
            fi_addr: *mut fi_addr_t,
            flags: u64,
        ) -> c_int,
    >,
    pub lookup_auth_key: Option<
        unsafe extern "C" fn(
            av: *mut fid_av,
            fi_addr: fi_addr_t,
            auth_key: *mut c_void,
            auth_key_size: *mut size_t,
        ) -> c_int,
    >,
    pub set_user_id:
        Option<unsafe extern "C" fn(av: *mut fid_av, fi_addr: fi_addr_t, user_id: fi_addr_t, flags: u64) -> c_int>,
}

/// Address vector: short handles for the addresses of peers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_av {
    pub fid: fid,
    pub ops: *mut fi_ops_av,
}
pub const FI_MR_DMABUF: u64 = 1u64 << 40;
pub const FI_MR_SINGLE_USE: u64 = 1u64 << 41;
pub const FI_HMEM_HOST_ALLOC: u64 = 1u64 << 45;
pub const FI_HMEM_DEVICE_ONLY: u64 = 1u64 << 46;

/// Registered memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_mr {
    pub fid: fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

c_enum! {
    pub enum fi_hmem_iface: c_uint {
        FI_HMEM_SYSTEM = 0,
        FI_HMEM_CUDA = 1,
        FI_HMEM_ROCR = 2,
        FI_HMEM_ZE = 3,
        FI_HMEM_NEURON = 4,
        FI_HMEM_SYNAPSEAI = 5,
    }
}

/// Device memory named by a dma-buf file descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mr_dmabuf {
    pub fd: c_int,
    pub offset: u64,
    pub len: size_t,
    pub base_addr: *mut c_void,
}

/// Authorization key given as an entry of an address vector.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mr_auth_key {
    pub av: *mut fid_av,
    pub src_addr: fi_addr_t,
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_mr_attr_anonymous {
    pub mr_iov: *const iovec,
    pub dmabuf: *const fi_mr_dmabuf,
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_mr_attr_device {
    pub reserved: u64,
    pub cuda: c_int,
    pub ze: c_int,
    pub neuron: c_int,
    pub synapseai: c_int,
    pub rocr: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mr_attr {
    pub anonymous: fi_mr_attr_anonymous,
    pub iov_count: size_t,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: *mut c_void,
    pub auth_key_size: size_t,
    pub auth_key: *mut u8,
    pub iface: fi_hmem_iface,
    pub device: fi_mr_attr_device,
    pub hmem_data: *mut c_void,
    pub page_size: size_t,
    pub base_mr: *const fid_mr,
    pub sub_mr_cnt: size_t,
}

/// Argument of FI_REFRESH.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mr_modify {
    pub flags: u64,
    pub attr: fi_mr_attr,
}
pub const FI_SET_OPS_HMEM_OVERRIDE: &str = "hmem_override_ops";

/// Copies to and from device memory that an application does better than the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_hmem_override_ops {
    pub size: size_t,
    pub copy_from_hmem_iov: Option<
        unsafe extern "C" fn(
            dest: *mut c_void,
            size: size_t,
            iface: fi_hmem_iface,
            device: u64,
            hmem_iov: *const iovec,
            hmem_iov_count: size_t,
            hmem_iov_offset: u64,
        ) -> ssize_t,
    >,
    pub copy_to_hmem_iov: Option<
        unsafe extern "C" fn(
            iface: fi_hmem_iface,
            device: u64,
            hmem_iov: *const iovec,
            hmem_iov_count: size_t,
            hmem_iov_offset: u64,
            src: *const c_void,
            size: size_t,
        ) -> ssize_t,
    >,
}

c_text!(
    here,
    r#"
#ifdef FABRIC_DIRECT
#include <rdma/fi_direct_atomic_def.h>
#endif

#ifndef FABRIC_DIRECT_ATOMIC_DEF
"#
);

pub const FI_COLLECTIVE_OFFSET: c_int = 256;

c_enum! {
    pub enum fi_datatype: c_uint {
        FI_INT8 = 0,
        FI_UINT8 = 1,
        FI_INT16 = 2,
        FI_UINT16 = 3,
        FI_INT32 = 4,
        FI_UINT32 = 5,
        FI_INT64 = 6,
        FI_UINT64 = 7,
        FI_FLOAT = 8,
        FI_DOUBLE = 9,
        FI_FLOAT_COMPLEX = 10,
        FI_DOUBLE_COMPLEX = 11,
        FI_LONG_DOUBLE = 12,
        FI_LONG_DOUBLE_COMPLEX = 13,
        FI_INT128 = 14,
        FI_UINT128 = 15,
        FI_FLOAT16 = 16,
        FI_BFLOAT16 = 17,
        FI_FLOAT8_E4M3 = 18,
        FI_FLOAT8_E5M2 = 19,
        FI_VOID = 256,
    }
}

c_enum! {
    pub enum fi_op: c_uint {
        FI_MIN = 0,
        FI_MAX = 1,
        FI_SUM = 2,
        FI_PROD = 3,
        FI_LOR = 4,
        FI_LAND = 5,
        FI_BOR = 6,
        FI_BAND = 7,
        FI_LXOR = 8,
        FI_BXOR = 9,
        FI_ATOMIC_READ = 10,
        FI_ATOMIC_WRITE = 11,
        FI_CSWAP = 12,
        FI_CSWAP_NE = 13,
        FI_CSWAP_LE = 14,
        FI_CSWAP_LT = 15,
        FI_CSWAP_GE = 16,
        FI_CSWAP_GT = 17,
        FI_MSWAP = 18,
        FI_DIFF = 19,
        FI_NOOP = 256,
    }
}

c_text!(
    here,
    r#"
#endif

#ifndef FABRIC_DIRECT_COLLECTIVE_DEF
"#
);

c_enum! {
    pub enum fi_collective_op: c_uint {
        FI_BARRIER = 0,
        FI_BROADCAST = 1,
        FI_ALLTOALL = 2,
        FI_ALLREDUCE = 3,
        FI_ALLGATHER = 4,
        FI_REDUCE_SCATTER = 5,
        FI_REDUCE = 6,
        FI_SCATTER = 7,
        FI_GATHER = 8,
    }
}

c_text!(
    here,
    r#"
#endif
"#
);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_domain {
    pub size: size_t,
    pub av_open: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            attr: *mut fi_av_attr,
            av: *mut *mut fid_av,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub cq_open: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            attr: *mut fi_cq_attr,
            cq: *mut *mut fid_cq,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub endpoint: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            info: *mut fi_info,
            ep: *mut *mut fid_ep,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub scalable_ep: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            info: *mut fi_info,
            sep: *mut *mut fid_ep,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub cntr_open: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            attr: *mut fi_cntr_attr,
            cntr: *mut *mut fid_cntr,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub poll_open: Option<
        unsafe extern "C" fn(domain: *mut fid_domain, attr: *mut fi_poll_attr, pollset: *mut *mut fid_poll) -> c_int,
    >,
    pub stx_ctx: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            attr: *mut fi_tx_attr,
            stx: *mut *mut fid_stx,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub srx_ctx: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            attr: *mut fi_rx_attr,
            rx_ep: *mut *mut fid_ep,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub query_atomic: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            datatype: fi_datatype,
            op: fi_op,
            attr: *mut fi_atomic_attr,
            flags: u64,
        ) -> c_int,
    >,
    pub query_collective: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            coll: fi_collective_op,
            attr: *mut fi_collective_attr,
            flags: u64,
        ) -> c_int,
    >,
    pub endpoint2: Option<
        unsafe extern "C" fn(
            domain: *mut fid_domain,
            info: *mut fi_info,
            ep: *mut *mut fid_ep,
            flags: u64,
            context: *mut c_void,
        ) -> c_int,
    >,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_mr {
    pub size: size_t,
    pub reg: Option<
        unsafe extern "C" fn(
            fid: *mut fid,
            buf: *const c_void,
            len: size_t,
            access: u64,
            offset: u64,
            requested_key: u64,
            flags: u64,
            mr: *mut *mut fid_mr,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub regv: Option<
        unsafe extern "C" fn(
            fid: *mut fid,
            iov: *const iovec,
            count: size_t,
            access: u64,
            offset: u64,
            requested_key: u64,
            flags: u64,
            mr: *mut *mut fid_mr,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub regattr:
        Option<unsafe extern "C" fn(fid: *mut fid, attr: *const fi_mr_attr, flags: u64, mr: *mut *mut fid_mr) -> c_int>,
}
/// @deprecated
pub const FI_REG_MR: u64 = 1u64 << 59;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_domain {
    pub fid: fid,
    pub ops: *mut fi_ops_domain,
    pub mr: *mut fi_ops_mr,
}

c_text!(
    here,
    r#"
#ifdef FABRIC_DIRECT
#include <rdma/fi_direct_domain.h>
#endif

#ifndef FABRIC_DIRECT_DOMAIN
"#
);
c_text!(inlines, "");
c_text!(
    here,
    r#"
#endif
"#
);
