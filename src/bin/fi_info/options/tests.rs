//! Command lines: what becomes hints or flags, and which of several ends wins.

use super::*;

fn read(line: &[&str]) -> Request {
    let args: Vec<Vec<u8>> = line.iter().map(|a| a.as_bytes().to_vec()).collect();
    parse(&args, false)
}

fn ask(line: &[&str]) -> Options {
    match read(line) {
        Request::Ask(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_filters_there_are_no_hints() {
    let options = ask(&["-v", "-n", "host", "-P", "7", "--json"]);
    assert_eq!(options.query.hints, None);
    assert_eq!(options.query.node.as_deref(), Some(c"host"));
    assert_eq!(options.query.port.as_deref(), Some(c"7"));
    assert_eq!(options.query.flags, 0);
    assert!(options.verbose && options.json && !options.list);
}

#[test]
fn filters_become_hints() {
    let line = [
        "-cFI_MSG",
        "--caps=fi_rma",
        "-t",
        "FI_EP_RDM",
        "-m",
        "",
        "-p",
        "a",
        "-p",
        "b",
        "-a",
        "FI_ADDR_STR",
    ];
    let hints = ask(&line).query.hints.unwrap();
    assert_eq!(hints.caps, FI_MSG | FI_RMA);
    assert_eq!(hints.ep_type, FI_EP_RDM);
    assert_eq!(hints.mode, Some(0));
    assert_eq!(hints.provider.as_deref(), Some(c"b"));
    assert_eq!(hints.addr_format, FI_ADDR_STR);
    assert_eq!(ask(&["-d", "eth0"]).query.hints.unwrap().mode, None);
}

#[test]
fn flags_go_with_their_options() {
    let options = ask(&["-l", "-s", "10.0.0.1"]);
    assert_eq!(options.query.flags, FI_PROV_ATTR_ONLY | FI_SOURCE);
    assert_eq!(options.query.node.as_deref(), Some(c"10.0.0.1"));
    assert_eq!(ask(&["-g", "tcp"]).contains.as_deref(), Some(&b"tcp"[..]));
    assert!(ask(&["-g", "tcp"]).env);
    assert!(ask(&["--info=eth"]).verbose);
}

#[test]
fn the_first_end_wins() {
    assert_eq!(read(&["-l", "--version", "-Z"]), Request::Version);
    assert_eq!(read(&["-h", "-Z"]), Request::Help(None));
    assert_eq!(
        read(&["-Z", "-h"]),
        Request::Help(Some(Wrong(b"invalid option -- 'Z'".to_vec())))
    );
    assert_eq!(
        read(&["-c", "x"]),
        Request::BadWord(b"error: Unrecognized capability: x".to_vec())
    );
}

#[test]
fn the_help_names_every_option() {
    let text = String::from_utf8(usage(b"fi_info")).unwrap();
    assert!(text.starts_with("Usage: fi_info\n  -h, --help "), "{text}");
    assert_eq!(text.lines().count(), SPECS.len() + 1);
    assert!(text.contains("\n  -p, --provider=PROV "), "{text}");
    assert!(text.contains("\n  --why "), "{text}");
}
