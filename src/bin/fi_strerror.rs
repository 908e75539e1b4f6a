//! fi_strerror: the text for an error number of the fabric. A plain client of `libfabric.so.1`.

#[path = "common/abi.rs"]
mod abi;
#[path = "common/mod.rs"]
mod common;

use common::library::strerror;
use core::ffi::c_int;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<Vec<u8>> = std::env::args_os().map(OsString::into_vec).collect();
    let program = args.first().map_or(&b"fi_strerror"[..], |a| a);
    let usage = usage(program);
    let (text, ok) = match args.get(1..) {
        Some([arg]) if arg == b"-h" => (usage, true),
        Some([arg]) => match number(arg) {
            Number::Fits(code) => ([strerror(code).as_slice(), b"\n"].concat(), true),
            Number::TooBig => (
                [b"ERROR: '", arg.as_slice(), b"' is out of range\n\n", &usage].concat(),
                false,
            ),
            Number::None => (
                [b"ERROR: unable to parse '", arg.as_slice(), b"'\n\n", &usage].concat(),
                false,
            ),
        },
        _ => (usage, false),
    };
    let written = std::io::stdout().write_all(&text).is_ok();
    if ok && written {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn usage(program: &[u8]) -> Vec<u8> {
    let text = b" FI_ERROR_CODE\n\n\
        Prints what the error number FI_ERROR_CODE means. It may be decimal, octal (010) or\n\
        hexadecimal (0x8), and with or without a minus sign.\n";
    [b"Usage: ", program, text].concat()
}

#[derive(Debug, PartialEq)]
enum Number {
    /// Without its sign.
    Fits(c_int),
    /// A number, too big for an error.
    TooBig,
    None,
}

/// Reads what strtol reads with base 0: spaces, a sign, then 0x, 0 or a decimal digit. A number that does not even fit
/// into a long is none.
fn number(text: &[u8]) -> Number {
    let space = |c: &u8| matches!(c, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(|c| space(c)).count()..];
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (base, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    };
    let value = digits.iter().try_fold(0i128, |sum, c| {
        let sum = sum * i128::from(base) + i128::from(char::from(*c).to_digit(base)?);
        (sum <= i128::from(i64::MAX) + 1).then_some(sum)
    });
    let Some(value) = value
        .filter(|_| !digits.is_empty())
        .map(|v| if negative { -v } else { v })
    else {
        return Number::None;
    };
    if i64::try_from(value).is_err() {
        return Number::None;
    }
    // The smallest int has no positive twin; C wraps it to itself.
    i32::try_from(value).map_or(Number::TooBig, |v| Number::Fits(v.wrapping_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtol_reads_them() {
        let table: &[(&[u8], Number)] = &[
            (b"0", Number::Fits(0)),
            (b"61", Number::Fits(61)),
            (b"-61", Number::Fits(61)),
            (b"+61", Number::Fits(61)),
            (b" \t61", Number::Fits(61)),
            (b"0x3d", Number::Fits(61)),
            (b"-0X3D", Number::Fits(61)),
            (b"075", Number::Fits(61)),
            (b"2147483647", Number::Fits(i32::MAX)),
            (b"-2147483648", Number::Fits(i32::MIN)),
            (b"2147483648", Number::TooBig),
            (b"9223372036854775807", Number::TooBig),
            (b"-9223372036854775808", Number::TooBig),
            (b"9223372036854775808", Number::None),
            (b"99999999999999999999999999999999999999999999999", Number::None),
            (b"", Number::None),
            (b" ", Number::None),
            (b"-", Number::None),
            (b"--1", Number::None),
            (b"0x", Number::None),
            (b"08", Number::None),
            (b"61 ", Number::None),
            (b"6a", Number::None),
            (b"\xff", Number::None),
        ];
        for (text, expected) in table {
            assert_eq!(number(text), *expected, "{:?}", String::from_utf8_lossy(text));
        }
    }
}
