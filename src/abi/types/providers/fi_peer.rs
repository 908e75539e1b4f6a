//! Plain data of `rdma/providers/fi_peer.h`.

use crate::abi::types::*;
use core::ffi::{c_int, c_void};
use libc::{iovec, size_t, ssize_t};

c_text!(
    top,
    r#"
#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>
"#
);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_av_owner {
    pub size: size_t,
    pub query: Option<unsafe extern "C" fn(av: *mut fid_peer_av, attr: *mut fi_av_attr) -> c_int>,
    pub ep_addr: Option<unsafe extern "C" fn(av: *mut fid_peer_av, ep: *mut fid_ep) -> fi_addr_t>,
}

/// An address vector that one provider owns and another reads.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_peer_av {
    pub fid: fid,
    pub owner_ops: *mut fi_ops_av_owner,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_av_context {
    pub size: size_t,
    pub av: *mut fid_peer_av,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_av_set_owner {
    pub size: size_t,
    pub members:
        Option<unsafe extern "C" fn(av: *mut fid_peer_av_set, addr: *mut fi_addr_t, count: *mut size_t) -> c_int>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_peer_av_set {
    pub fid: fid,
    pub owner_ops: *mut fi_ops_av_set_owner,
}

/// @opaque
// Upstream does not define it either.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_av_set {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_av_set_context {
    pub size: size_t,
    pub av_set: *mut fi_peer_av_set,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_cq_owner {
    pub size: size_t,
    pub write: Option<
        unsafe extern "C" fn(
            cq: *mut fid_peer_cq,
            context: *mut c_void,
            flags: u64,
            len: size_t,
            buf: *mut c_void,
            data: u64,
            tag: u64,
            src: fi_addr_t,
        ) -> ssize_t,
    >,
    pub writeerr: Option<unsafe extern "C" fn(cq: *mut fid_peer_cq, err_entry: *const fi_cq_err_entry) -> ssize_t>,
}

/// A completion queue that one provider owns and another writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_peer_cq {
    pub fid: fid,
    pub owner_ops: *mut fi_ops_cq_owner,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_cq_context {
    pub size: size_t,
    pub cq: *mut fid_peer_cq,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_cntr_owner {
    pub size: size_t,
    pub inc: Option<unsafe extern "C" fn(cntr: *mut fid_peer_cntr)>,
    pub incerr: Option<unsafe extern "C" fn(cntr: *mut fid_peer_cntr)>,
}

/// A counter that one provider owns and another counts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_peer_cntr {
    pub fid: fid,
    pub owner_ops: *mut fi_ops_cntr_owner,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_cntr_context {
    pub size: size_t,
    pub cntr: *mut fid_peer_cntr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_domain_context {
    pub size: size_t,
    pub domain: *mut fid_domain,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_eq_context {
    pub size: size_t,
    pub eq: *mut fid_eq,
}

/// A receive of the owner that a peer provider is to fill.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_rx_entry {
    pub srx: *mut fid_peer_srx,
    pub addr: fi_addr_t,
    pub msg_size: size_t,
    pub tag: u64,
    pub cq_data: u64,
    pub flags: u64,
    pub context: *mut c_void,
    pub count: size_t,
    pub desc: *mut *mut c_void,
    pub peer_context: *mut c_void,
    pub owner_context: *mut c_void,
    pub iov: *mut iovec,
}

/// The message for which a receive is looked up.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_match_attr {
    pub addr: fi_addr_t,
    pub msg_size: size_t,
    pub tag: u64,
}

/// What the peer asks of the owner.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_srx_owner {
    pub size: size_t,
    pub get_msg: Option<
        unsafe extern "C" fn(
            srx: *mut fid_peer_srx,
            attr: *mut fi_peer_match_attr,
            entry: *mut *mut fi_peer_rx_entry,
        ) -> c_int,
    >,
    pub get_tag: Option<
        unsafe extern "C" fn(
            srx: *mut fid_peer_srx,
            attr: *mut fi_peer_match_attr,
            entry: *mut *mut fi_peer_rx_entry,
        ) -> c_int,
    >,
    pub queue_msg: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> c_int>,
    pub queue_tag: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> c_int>,
    pub foreach_unspec_addr: Option<
        unsafe extern "C" fn(
            srx: *mut fid_peer_srx,
            get_addr: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> fi_addr_t>,
        ),
    >,
    pub free_entry: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry)>,
}

/// What the owner tells the peer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_srx_peer {
    pub size: size_t,
    pub start_msg: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> c_int>,
    pub start_tag: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> c_int>,
    pub discard_msg: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> c_int>,
    pub discard_tag: Option<unsafe extern "C" fn(entry: *mut fi_peer_rx_entry) -> c_int>,
}

/// A receive queue that one provider owns and another feeds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_peer_srx {
    pub ep_fid: fid_ep,
    pub owner_ops: *mut fi_ops_srx_owner,
    pub peer_ops: *mut fi_ops_srx_peer,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_srx_context {
    pub size: size_t,
    pub srx: *mut fid_peer_srx,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_transfer_peer {
    pub size: size_t,
    pub complete:
        Option<unsafe extern "C" fn(ep: *mut fid_ep, buf: *mut fi_cq_tagged_entry, src_addr: fi_addr_t) -> ssize_t>,
    pub comperr: Option<unsafe extern "C" fn(ep: *mut fid_ep, buf: *mut fi_cq_err_entry) -> ssize_t>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_peer_transfer_context {
    pub size: size_t,
    pub info: *mut fi_info,
    pub ep: *mut fid_ep,
    pub peer_ops: *mut fi_ops_transfer_peer,
}
