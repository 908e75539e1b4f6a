//! Lines of the log, the C library's and ours, and what `--why` makes of them for each provider.

use super::*;
use crate::abi::types::FI_LOG_INFO;

fn line(provider: &str, func: &str, text: &str) -> Line {
    let own = |s: &str| s.as_bytes().to_vec();
    Line {
        provider: own(provider),
        level: FI_LOG_INFO,
        func: own(func),
        text: own(text),
    }
}

fn warning(text: &str) -> Line {
    Line {
        level: FI_LOG_WARN,
        ..line("core", "f", text)
    }
}

fn said(lines: &[Line], known: &Known) -> String {
    String::from_utf8(print(&refusals(lines, known))).unwrap()
}

#[test]
fn each_line_gives_its_reason_or_none() {
    let table: &[(Line, &str)] = &[
        (
            line("core", "m", "refused tcp: caps: lacks FI_ATOMIC"),
            "tcp: caps: lacks FI_ATOMIC\n",
        ),
        (
            line(
                "core",
                "m",
                "refused tcp (FI_EP_RDM, eth0): caps: asked FI_ATOMIC, offers FI_MSG",
            ),
            "tcp (FI_EP_RDM, eth0): caps: asked FI_ATOMIC, offers FI_MSG\n",
        ),
        (line("verbs", "m", "refused no device: x"), "verbs: no device: x\n"),
        (
            line("core", "m", "skipped tcp: FI_PROVIDER leaves it out"),
            "tcp: FI_PROVIDER leaves it out\n",
        ),
        (line("core", "fi_param_get_", "variable hook=<not set>"), ""),
        (
            line("core", "ofi_register_provider", "registering provider: tcp (205.10)"),
            "",
        ),
        (
            line(
                "core",
                "f",
                "\"udp\" filtered by provider include/exclude list, skipping",
            ),
            "udp: filtered by provider include/exclude list\n",
        ),
        (line("core", "f", "Provider tcp is excluded"), "tcp: is excluded\n"),
        (
            line(
                "core",
                "fi_getinfo_",
                "fi_getinfo: provider tcp returned -61 (No data available)",
            ),
            "tcp: returned -61 (No data available)\n",
        ),
        (line("tcp", "ofi_get_list_of_addr", "Available addr: 10.0.0.1"), ""),
        (line("tcp", "util_getinfo_ifs", "Chosen addr for using: 10.0.0.1"), ""),
        (
            line("verbs", "vrb_init_info", "no RDMA devices found"),
            "verbs: no RDMA devices found\n",
        ),
        (line("sm2", "sm2_resolve_addr", "resolving node=NULL"), ""),
        (
            warning("dlopen(/x/libefa-fi.so): no such file"),
            "efa: dlopen(/x/libefa-fi.so): no such file\n",
        ),
        (
            warning("provider foo is unknown, misspelled?"),
            "foo: is unknown, misspelled?\n",
        ),
        (
            warning("unable to parse filter from: ;"),
            "core: unable to parse filter from: ;\n",
        ),
    ];
    for (line, expected) in table {
        assert_eq!(
            said(std::slice::from_ref(line), &Known::default()),
            *expected,
            "{line:?}"
        );
    }
}

#[test]
fn parts_are_joined_and_repeats_left_out() {
    let group = [
        line("tcp", "ofi_check_ep_type", "unsupported endpoint type"),
        line("tcp", "ofi_check_ep_type", "Supported: FI_EP_MSG"),
        line("tcp", "ofi_check_ep_type", "Requested: FI_EP_DGRAM"),
    ];
    let lines = [group.clone(), group].concat();
    let expected = "tcp: unsupported endpoint type; supported: FI_EP_MSG; requested: FI_EP_DGRAM\n";
    assert_eq!(said(&lines, &Known::default()), expected);
}

#[test]
fn fallbacks_only_where_nothing_better_is_known() {
    let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let known = Known {
        registered: names(&["tcp", "udp", "shm", "verbs", "ofi_hook_perf", "off_coll"]),
        accepted: names(&["shm"]),
        asked: None,
    };
    let lines = [
        line("tcp", "ofi_check_info", "Unsupported capabilities"),
        line("core", "f", "fi_getinfo: provider tcp returned -61 (No data available)"),
        line(
            "core",
            "f",
            "fi_getinfo: provider verbs returned -61 (No data available)",
        ),
        line("core", "f", "Provider shm is excluded"),
    ];
    let expected = "tcp: Unsupported capabilities\nverbs: returned -61 (No data available)\n\
                    udp: offers nothing, and gives no reason\n";
    assert_eq!(said(&lines, &known), expected);
}

#[test]
fn a_provider_not_asked_is_told_so() {
    let known = Known {
        registered: vec!["tcp".into(), "udp".into()],
        asked: Some("TCP".into()),
        ..Known::default()
    };
    let expected = "tcp: offers nothing, and gives no reason\nudp: not asked, the provider wanted is TCP\n";
    assert_eq!(said(&[], &known), expected);
}
