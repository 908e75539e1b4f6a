//! Rows of hints held against candidates, for domain attributes: names, modes, keys, limits of counters.

use super::templates::*;
use super::*;

#[test]
fn domains_are_checked() {
    check_rows(&[
        // Domain.
        row(tcp_rdm, NEW, |h| domain(h).threading = FI_THREAD_ENDPOINT, ""),
        row(tcp_rdm, NEW, |h| domain(h).threading = 17, "domain_attr.threading"),
        row(
            shm,
            NEW,
            |h| domain(h).progress = FI_PROGRESS_AUTO,
            "domain_attr.progress",
        ),
        row(shm, NEW, |h| domain(h).control_progress = FI_PROGRESS_AUTO, ""),
        row(shm, NEW, |h| domain(h).resource_mgmt = FI_RM_ENABLED, ""),
        row(
            lax,
            NEW,
            |h| domain(h).resource_mgmt = FI_RM_ENABLED,
            "domain_attr.resource_mgmt",
        ),
        row(lax, NEW, |h| domain(h).av_type = FI_AV_TABLE, ""),
        row(lax, NEW, |h| domain(h).av_type = FI_AV_MAP, "domain_attr.av_type"),
        row(tcp_rdm, NEW, |h| domain(h).av_type = FI_AV_MAP, ""),
        row(tcp_rdm, NEW, |h| domain(h).cq_data_size = 8, ""),
        row(tcp_rdm, NEW, |h| domain(h).cq_data_size = 9, "domain_attr.cq_data_size"),
        row(
            tcp_rdm,
            NEW,
            |h| domain(h).mr_mode = FI_MR_BASIC | FI_MR_LOCAL,
            "domain_attr.mr_mode",
        ),
        row(verbs_msg, NEW, |h| h.mode = FI_RX_CQ_DATA, "mode"),
        row(verbs_msg, NEW, |h| h.mode = FI_RX_CQ_DATA | FI_LOCAL_MR, ""),
        row(tcp_rdm, NEW, |h| domain(h).max_ep_stx_ctx = 5, ""),
        row(tcp_rdm, NEW, |h| domain(h).cntr_cnt = 1, "domain_attr.cntr_cnt"),
        row(tcp_rdm, (1, 4), |h| domain(h).cntr_cnt = 1, ""),
        row(tcp_rdm, NEW, |h| domain(h).mr_iov_limit = 2, "domain_attr.mr_iov_limit"),
        row(tcp_rdm, (1, 4), |h| domain(h).mr_iov_limit = 2, ""),
        row(tcp_rdm, NEW, |h| domain(h).caps = FI_SHARED_AV, "domain_attr.caps"),
        row(tcp_rdm, (1, 4), |h| domain(h).caps = FI_SHARED_AV, ""),
        row(tcp_rdm, NEW, |h| domain(h).caps = FI_LOCAL_COMM, ""),
        row(tcp_rdm, NEW, |h| domain(h).max_err_data = 1, "domain_attr.max_err_data"),
        row(tcp_rdm, (1, 4), |h| domain(h).max_err_data = 1, ""),
        row(tcp_rdm, NEW, |h| domain(h).mr_cnt = 1, "domain_attr.mr_cnt"),
        row(tcp_rdm, (1, 4), |h| domain(h).mr_cnt = 1, ""),
        row(tcp_rdm, NEW, |h| domain(h).ep_cnt = usize::MAX, ""),
        // Keys.
        row(
            tcp_rdm,
            NEW,
            |h| domain(h).auth_key = key(&[1]),
            "domain_attr.auth_key_size",
        ),
        row(tcp_rdm, (1, 4), |h| domain(h).auth_key = key(&[1]), ""),
        row(tcp_rdm, NEW, |h| domain(h).auth_key = AV_KEYS, ""),
        row(
            tcp_rdm,
            (1, 19),
            |h| domain(h).auth_key = AV_KEYS,
            "domain_attr.auth_key_size",
        ),
        row(
            tcp_rdm,
            NEW,
            |h| {
                domain(h).auth_key = AuthKey {
                    bytes: Some(vec![1]),
                    ..AV_KEYS
                }
            },
            "domain_attr.auth_key",
        ),
        row(tcp_rdm, NEW, |h| ep(h).auth_key = key(&[1]), "ep_attr.auth_key_size"),
        row(
            tcp_rdm,
            NEW,
            |h| {
                domain(h).auth_key = AV_KEYS;
                ep(h).auth_key = key(&[1]);
            },
            "ep_attr.auth_key",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).auth_key = key(&[9, 9, 9]);
            },
            "domain_attr.auth_key_size",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).auth_key = key(&[9, 9, 9, 9]);
                ep(h).auth_key = key(&[8, 8]);
                domain(h).max_ep_auth_key = 4;
            },
            "",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).max_ep_auth_key = 5;
            },
            "domain_attr.max_ep_auth_key",
        ),
        row(
            demanding,
            (1, 19),
            |h| {
                demanding_hints(h);
                domain(h).max_ep_auth_key = 5;
            },
            "",
        ),
        // Counter limits.
        row(tcp_rdm, NEW, |h| domain(h).max_cntr_value = u64::MAX, ""),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).max_cntr_value = 1001;
            },
            "domain_attr.max_cntr_value",
        ),
        row(
            demanding,
            (2, 4),
            |h| {
                demanding_hints(h);
                domain(h).max_cntr_value = 1001;
            },
            "",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).max_err_cntr_value = 1001;
            },
            "",
        ),
    ]);
}
