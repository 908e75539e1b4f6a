//! Pairs of what is asked and offered on each scale: threading, progress, resource management.

use super::*;

#[test]
fn scales() {
    type Row = (fn(u32, u32) -> Check, u32, u32, bool);
    let rows: &[Row] = &[
        // (attribute, asked, offers, fits)
        (check_threading, FI_THREAD_UNSPEC, FI_THREAD_SAFE, true),
        (check_threading, FI_THREAD_SAFE, FI_THREAD_SAFE, true),
        (check_threading, FI_THREAD_FID, FI_THREAD_SAFE, true),
        (check_threading, FI_THREAD_ENDPOINT, FI_THREAD_SAFE, true),
        (check_threading, FI_THREAD_COMPLETION, FI_THREAD_SAFE, true),
        (check_threading, FI_THREAD_DOMAIN, FI_THREAD_SAFE, true),
        (check_threading, FI_THREAD_SAFE, FI_THREAD_DOMAIN, false),
        (check_threading, FI_THREAD_FID, FI_THREAD_COMPLETION, false),
        (check_threading, FI_THREAD_ENDPOINT, FI_THREAD_COMPLETION, false),
        (check_threading, FI_THREAD_COMPLETION, FI_THREAD_DOMAIN, false),
        (check_threading, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, true),
        (check_threading, 99, FI_THREAD_SAFE, false),
        (check_progress, FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL, true),
        (check_progress, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, true),
        (check_progress, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, true),
        (check_progress, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL, false),
        (check_progress, FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_MANUAL, true),
        (check_progress, FI_PROGRESS_MANUAL, FI_PROGRESS_CONTROL_UNIFIED, false),
        (check_progress, 99, FI_PROGRESS_AUTO, false),
        (check_resource_mgmt, FI_RM_UNSPEC, FI_RM_ENABLED, true),
        (check_resource_mgmt, FI_RM_ENABLED, FI_RM_ENABLED, true),
        (check_resource_mgmt, FI_RM_DISABLED, FI_RM_ENABLED, true),
        (check_resource_mgmt, FI_RM_ENABLED, FI_RM_DISABLED, false),
        (check_resource_mgmt, 99, FI_RM_ENABLED, false),
    ];
    for (row, (check, asked, offers, fits)) in rows.iter().enumerate() {
        assert_eq!(check(*asked, *offers).is_ok(), *fits, "row {row}");
    }
}
