//! Command lines as the C library's fi_pingpong reads them, and what it says of wrong ones.

use super::*;

fn read(words: &[&str], posix: bool) -> Request {
    let args: Vec<Vec<u8>> = words.iter().map(|w| w.as_bytes().to_vec()).collect();
    parse(&args, posix)
}

fn run(words: &[&str]) -> Options {
    match read(words, false) {
        Request::Run(options) => *options,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn options_are_read_as_getopt_reads_them() {
    let default = Options::default;
    let server = |name: &str| Some(name.to_string());
    let name = |name: &str| CString::new(name).ok();
    let table: &[(&[&str], Options)] = &[
        (&[], default()),
        (
            &["host"],
            Options {
                server: server("host"),
                ..default()
            },
        ),
        (
            &["host", "-c"],
            Options {
                server: server("host"),
                verify: true,
                ..default()
            },
        ),
        (
            &["-c", "--", "-v", "x"],
            Options {
                server: server("-v"),
                verify: true,
                ..default()
            },
        ),
        (
            &["a", "b"],
            Options {
                server: server("a"),
                ..default()
            },
        ),
        (
            &["-"],
            Options {
                server: server("-"),
                ..default()
            },
        ),
        (
            &["-cv6"],
            Options {
                verify: true,
                verbose: true,
                ipv6: true,
                ..default()
            },
        ),
        (
            &["-cptcp", "h"],
            Options {
                verify: true,
                provider: name("tcp"),
                server: server("h"),
                ..default()
            },
        ),
        (
            &["-p", "-c"],
            Options {
                provider: name("-c"),
                ..default()
            },
        ),
        (
            &["-d", "a", "-f", "b"],
            Options {
                domain: name("a"),
                fabric: name("b"),
                ..default()
            },
        ),
        (
            &["-e", "RDM"],
            Options {
                ep_type: FI_EP_RDM,
                ..default()
            },
        ),
        (
            &["-e", "msg", "-m", "tagged"],
            Options {
                ep_type: FI_EP_MSG,
                tagged: true,
                ..default()
            },
        ),
        (&["-m", "MSG"], default()),
        (
            &["-m", "other"],
            Options {
                tagged: true,
                ..default()
            },
        ),
        (
            &["-B1", "-P", "65535"],
            Options {
                src_port: 1,
                dst_port: 65535,
                ..default()
            },
        ),
        (
            &["-I", "+7"],
            Options {
                iterations: 7,
                ..default()
            },
        ),
        (
            &["-S", "100", "-S", "all"],
            Options {
                sizes: Sizes::One(100),
                ..default()
            },
        ),
        (
            &["-S", "All"],
            Options {
                sizes: Sizes::All,
                ..default()
            },
        ),
        (
            &["-S", "all", "-S", "0"],
            Options {
                sizes: Sizes::One(0),
                ..default()
            },
        ),
    ];
    for (words, expected) in table {
        assert_eq!(run(words), *expected, "{words:?}");
    }
}

#[test]
fn posix_stops_at_the_first_operand() {
    let expected = Options {
        server: Some("h".into()),
        ..Options::default()
    };
    assert_eq!(read(&["h", "-c"], true), Request::Run(Box::new(expected)));
}

#[test]
fn what_is_wrong_is_told() {
    let usage = |text: &str| Request::Usage(Some(text.into()));
    let bad = |text: &str| Request::Bad(text.into());
    let table: &[(&[&str], Request)] = &[
        (&["-h"], Request::Usage(None)),
        (&["-cZ"], usage("invalid option -- 'Z'")),
        (&["-:"], usage("invalid option -- ':'")),
        (&["--help"], usage("invalid option -- '-'")),
        (&["-p"], usage("option requires an argument -- 'p'")),
        (&["-e", "sock"], bad("Unknown endpoint : sock")),
        (&["-I", "x"], bad("Error parsing \"x\": Invalid argument")),
        (&["-I", ""], bad("Error parsing \"\": Invalid argument")),
        (&["-I", "-"], bad("Error parsing \"-\": Invalid argument")),
        (
            &["-I", "-1"],
            bad("Error parsing \"-1\": Numerical result out of range"),
        ),
        (
            &["-S", "2147483648"],
            bad("Error parsing \"2147483648\": Numerical result out of range"),
        ),
        (
            &["-B", "65536"],
            bad("Error parsing \"65536\": Numerical result out of range"),
        ),
        (
            &["-P", "99999999999999999999999"],
            bad("Error parsing \"99999999999999999999999\": Numerical result out of range"),
        ),
    ];
    for (words, expected) in table {
        assert_eq!(read(words, false), *expected, "{words:?}");
    }
}
