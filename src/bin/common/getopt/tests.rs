//! Command lines as getopt_long(3) reads them, long names that are cut short and POSIXLY_CORRECT among them.

use super::*;

static SPECS: [Spec<char>; 6] = [
    Spec {
        id: 'l',
        short: Some(b'l'),
        long: "list",
        takes_value: false,
    },
    Spec {
        id: 'v',
        short: Some(b'v'),
        long: "verbose",
        takes_value: false,
    },
    Spec {
        id: 'V',
        short: None,
        long: "version",
        takes_value: false,
    },
    Spec {
        id: 'p',
        short: Some(b'p'),
        long: "provider",
        takes_value: true,
    },
    Spec {
        id: 'P',
        short: Some(b'P'),
        long: "port",
        takes_value: true,
    },
    Spec {
        id: 'o',
        short: Some(b'o'),
        long: "por",
        takes_value: false,
    },
];

/// Options as `letter` or `letter=value`, operands in brackets, errors as `!message`, one word each.
fn read(line: &[&str], posix: bool) -> Vec<String> {
    let args: Vec<Vec<u8>> = line.iter().map(|a| a.as_bytes().to_vec()).collect();
    Parser::new(&SPECS, &args, posix)
        .map(|item| match item {
            Ok(Found::Option(id @ ('p' | 'P'), value)) => format!("{id}={}", String::from_utf8_lossy(value)),
            Ok(Found::Option(id, _)) => id.to_string(),
            Ok(Found::Operand(text)) => format!("[{}]", String::from_utf8_lossy(text)),
            Err(Wrong(text)) => format!("!{}", String::from_utf8_lossy(&text)),
        })
        .collect()
}

#[test]
fn reads_as_getopt_long_does() {
    let table: &[(&[&str], &[&str])] = &[
        (&[], &[]),
        (&["-l"], &["l"]),
        (&["-lv"], &["l", "v"]),
        (&["-lptcp"], &["l", "p=tcp"]),
        (&["-lp", "tcp"], &["l", "p=tcp"]),
        (&["-p", "-l"], &["p=-l"]),
        (&["-p", "--", "-l"], &["p=--", "l"]),
        (&["-p", ""], &["p="]),
        (&["--list"], &["l"]),
        (&["--li", "--verb"], &["l", "v"]),
        (&["--provider=tcp"], &["p=tcp"]),
        (&["--prov", "tcp"], &["p=tcp"]),
        (&["--provider="], &["p="]),
        (&["--provider=a=b"], &["p=a=b"]),
        (&["--por"], &["o"]),
        (&["x", "-l", "y", "-v"], &["[x]", "l", "[y]", "v"]),
        (&["-", "-l"], &["[-]", "l"]),
        (&["-l", "--", "-v", "--"], &["l", "[-v]", "[--]"]),
        (
            &["--ver"],
            &["!option '--ver' is ambiguous; possibilities: '--verbose' '--version'"],
        ),
        (
            &["--p=1"],
            &["!option '--p=1' is ambiguous; possibilities: '--provider' '--port' '--por'"],
        ),
        (&["--zz=4", "-l"], &["!unrecognized option '--zz=4'", "l"]),
        (&["--list=4"], &["!option '--list' doesn't allow an argument"]),
        (&["--port"], &["!option '--port' requires an argument"]),
        (&["-p"], &["!option requires an argument -- 'p'"]),
        (&["-zl"], &["!invalid option -- 'z'", "l"]),
    ];
    for (line, expected) in table {
        assert_eq!(read(line, false), *expected, "{line:?}");
    }
}

#[test]
fn posix_stops_at_the_first_operand() {
    assert_eq!(read(&["-l", "x", "-v"], true), ["l", "[x]", "[-v]"]);
}
