//! The structs of libibverbs and librdmacm that are used here, as C lays them out on Linux. Plain data.
//!
//! Names, fields and values are those of `infiniband/verbs.h` and `rdma/rdma_cma.h`, whose binary interface has not
//! changed since version 1.1 of the library. Of a struct that only the library makes, the fields up to the last one
//! that is read here are enough. `abi-tests/rdma-headers` holds all of them against the real headers. Used by
//! `sys::rdma` alone.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// Names as C has them: `layout` below makes them known to the test.
macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident { $($field:ident : $kind:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub(super) struct $name { $(pub(super) $field: $kind),* }
        )*

        /// Each struct's name, whether it is whole here, its size, and the offset and size of each of its fields.
        #[cfg(test)]
        pub(super) fn layout() -> Vec<(&'static str, usize, Vec<(&'static str, usize, usize)>)> {
            fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
                size_of::<F>()
            }
            vec![$((
                stringify!($name),
                size_of::<$name>(),
                vec![$((
                    stringify!($field),
                    core::mem::offset_of!($name, $field),
                    size_of_field(|whole: &$name| &whole.$field),
                )),*],
            )),*]
        }
    };
}

structs! {
    ibv_device {
        ops: [*const c_void; 2],
        node_type: c_int,
        transport_type: c_int,
        name: [c_char; 64],
    }
    /// Only the calls that the header makes by way of this table.
    ibv_context_ops {
        before_poll: [*const c_void; 11],
        poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
        req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
        before_shared_post: [*const c_void; 7],
        post_srq_recv: Option<unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
        before_post: [*const c_void; 4],
        post_send: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
        post_recv: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
        after: [*const c_void; 5],
    }
    ibv_context {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
    }
    ibv_device_attr {
        fw_ver: [c_char; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: c_int,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }
    /// The exported call fills in no more, whatever later headers have behind it.
    ibv_port_attr {
        state: c_int,
        max_mtu: c_int,
        active_mtu: c_int,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
    }
    ibv_pd {
        context: *mut ibv_context,
        handle: u32,
    }
    ibv_mr {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }
    ibv_comp_channel {
        context: *mut ibv_context,
        fd: c_int,
        refcnt: c_int,
    }
    ibv_cq {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
    }
    ibv_srq {
        context: *mut ibv_context,
    }
    ibv_srq_attr {
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
    }
    ibv_srq_init_attr {
        srq_context: *mut c_void,
        attr: ibv_srq_attr,
    }
    ibv_qp {
        context: *mut ibv_context,
        qp_context: *mut c_void,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        handle: u32,
        qp_num: u32,
    }
    ibv_ah {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        handle: u32,
    }
    ibv_qp_cap {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }
    ibv_qp_init_attr {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: c_int,
        sq_sig_all: c_int,
    }
    ibv_global_route {
        dgid: [u64; 2],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
    }
    ibv_ah_attr {
        grh: ibv_global_route,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }
    ibv_qp_attr {
        qp_state: c_int,
        cur_qp_state: c_int,
        path_mtu: c_int,
        path_mig_state: c_int,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: c_uint,
        cap: ibv_qp_cap,
        ah_attr: ibv_ah_attr,
        alt_ah_attr: ibv_ah_attr,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        rate_limit: u32,
    }
    /// The element is an address, or a port's number.
    ibv_async_event {
        element: *mut c_void,
        event_type: c_int,
    }
    ibv_sge {
        addr: u64,
        length: u32,
        lkey: u32,
    }
    /// What follows is a union; this is the arm of RDMA, with room for the others.
    ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: c_int,
        send_flags: c_uint,
        imm_data: u32,
        wr: ibv_rdma,
        qp_type: u32,
        gap: u32,
        rest: [u64; 6],
    }
    /// Without gaps, so that what another arm has there is copied with it.
    ibv_rdma {
        remote_addr: u64,
        rkey: u32,
        gap: u32,
        room: [u64; 2],
    }
    /// The arm of atomics.
    ibv_atomic {
        remote_addr: u64,
        compare_add: u64,
        swap: u64,
        rkey: u32,
        gap: u32,
    }
    /// The arm of datagrams.
    ibv_ud {
        ah: *mut ibv_ah,
        remote_qpn: u32,
        remote_qkey: u32,
    }
    ibv_recv_wr {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }
    ibv_wc {
        wr_id: u64,
        status: c_int,
        opcode: c_int,
        vendor_err: u32,
        byte_len: u32,
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }
    rdma_event_channel {
        fd: c_int,
    }
    rdma_addr {
        src_storage: libc::sockaddr_storage,
        dst_storage: libc::sockaddr_storage,
    }
    /// Of its route, the first part.
    rdma_cm_id {
        verbs: *mut ibv_context,
        channel: *mut rdma_event_channel,
        context: *mut c_void,
        qp: *mut ibv_qp,
        route: rdma_addr,
    }
    rdma_conn_param {
        private_data: *const c_void,
        private_data_len: u8,
        responder_resources: u8,
        initiator_depth: u8,
        flow_control: u8,
        retry_count: u8,
        rnr_retry_count: u8,
        srq: u8,
        qp_num: u32,
    }
    rdma_cm_event {
        id: *mut rdma_cm_id,
        listen_id: *mut rdma_cm_id,
        event: c_int,
        status: c_int,
        param: rdma_conn_param,
    }
}

/// Names and values of the header's enums that are used here.
macro_rules! values {
    ($($name:ident = $value:expr;)*) => {
        $(pub(super) const $name: c_int = $value;)*

        #[cfg(test)]
        pub(super) const VALUES: &[(&str, c_int)] = &[$((stringify!($name), $name)),*];
    };
}

values! {
    IBV_TRANSPORT_IB = 0;
    IBV_TRANSPORT_IWARP = 1;
    IBV_PORT_DOWN = 1;
    IBV_PORT_ARMED = 3;
    IBV_PORT_ACTIVE = 4;
    IBV_LINK_LAYER_UNSPECIFIED = 0;
    IBV_LINK_LAYER_INFINIBAND = 1;
    IBV_LINK_LAYER_ETHERNET = 2;
    IBV_ACCESS_LOCAL_WRITE = 1;
    IBV_ACCESS_REMOTE_WRITE = 2;
    IBV_ACCESS_REMOTE_READ = 4;
    IBV_ACCESS_REMOTE_ATOMIC = 8;
    IBV_ATOMIC_NONE = 0;
    IBV_EVENT_CQ_ERR = 0;
    IBV_EVENT_QP_FATAL = 1;
    IBV_EVENT_QP_REQ_ERR = 2;
    IBV_EVENT_QP_ACCESS_ERR = 3;
    IBV_EVENT_DEVICE_FATAL = 8;
    IBV_EVENT_PORT_ACTIVE = 9;
    IBV_EVENT_PORT_ERR = 10;
    IBV_QPT_RC = 2;
    IBV_QPT_UD = 4;
    IBV_QPS_RESET = 0;
    IBV_QPS_INIT = 1;
    IBV_QPS_RTR = 2;
    IBV_QPS_RTS = 3;
    IBV_QPS_ERR = 6;
    IBV_QP_STATE = 1;
    IBV_QP_PKEY_INDEX = 1 << 4;
    IBV_QP_PORT = 1 << 5;
    IBV_QP_QKEY = 1 << 6;
    IBV_QP_SQ_PSN = 1 << 16;
    IBV_QP_MIN_RNR_TIMER = 1 << 15;
    IBV_WR_RDMA_WRITE = 0;
    IBV_WR_RDMA_WRITE_WITH_IMM = 1;
    IBV_WR_SEND = 2;
    IBV_WR_SEND_WITH_IMM = 3;
    IBV_WR_RDMA_READ = 4;
    IBV_WR_ATOMIC_CMP_AND_SWP = 5;
    IBV_WR_ATOMIC_FETCH_AND_ADD = 6;
    IBV_SEND_FENCE = 1;
    IBV_SEND_SIGNALED = 2;
    IBV_SEND_INLINE = 8;
    IBV_WC_SUCCESS = 0;
    IBV_WC_LOC_LEN_ERR = 1;
    IBV_WC_LOC_PROT_ERR = 4;
    IBV_WC_WR_FLUSH_ERR = 5;
    IBV_WC_REM_INV_REQ_ERR = 9;
    IBV_WC_REM_ACCESS_ERR = 10;
    IBV_WC_RETRY_EXC_ERR = 12;
    IBV_WC_RNR_RETRY_EXC_ERR = 13;
    IBV_WC_RECV = 128;
    IBV_WC_RECV_RDMA_WITH_IMM = 129;
    IBV_WC_GRH = 1;
    IBV_WC_WITH_IMM = 2;
    RDMA_PS_TCP = 0x0106;
    RDMA_CM_EVENT_ADDR_RESOLVED = 0;
    RDMA_CM_EVENT_ADDR_ERROR = 1;
    RDMA_CM_EVENT_ROUTE_RESOLVED = 2;
    RDMA_CM_EVENT_ROUTE_ERROR = 3;
    RDMA_CM_EVENT_CONNECT_REQUEST = 4;
    RDMA_CM_EVENT_CONNECT_RESPONSE = 5;
    RDMA_CM_EVENT_CONNECT_ERROR = 6;
    RDMA_CM_EVENT_UNREACHABLE = 7;
    RDMA_CM_EVENT_REJECTED = 8;
    RDMA_CM_EVENT_ESTABLISHED = 9;
    RDMA_CM_EVENT_DISCONNECTED = 10;
    RDMA_CM_EVENT_DEVICE_REMOVAL = 11;
    RDMA_CM_EVENT_ADDR_CHANGE = 14;
}

/// struct ibv_gid_entry and others are not here: of a GID only its bytes are asked for.
pub(super) type ibv_gid = [u8; 16];
