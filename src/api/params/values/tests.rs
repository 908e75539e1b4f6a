//! Texts of each kind of parameter, and the value or the complaint that comes of them.

use super::*;

#[test]
fn texts_become_values() {
    const NO_BOOL: &str = "not one of 1, 0, yes, no, true, false, on, off";
    let table: &[(ParamType, &str, std::result::Result<Value, &str>)] = &[
        (ParamType::String, "", Ok(Value::Text(vec![]))),
        (ParamType::String, " a ", Ok(Value::Text(b" a ".to_vec()))),
        (ParamType::Bool, "1", Ok(Value::Bool(true))),
        (ParamType::Bool, "On", Ok(Value::Bool(true))),
        (ParamType::Bool, "YES", Ok(Value::Bool(true))),
        (ParamType::Bool, "true ", Ok(Value::Bool(true))),
        (ParamType::Bool, "0", Ok(Value::Bool(false))),
        (ParamType::Bool, "oFF", Ok(Value::Bool(false))),
        (ParamType::Bool, "no", Ok(Value::Bool(false))),
        (ParamType::Bool, "False", Ok(Value::Bool(false))),
        (ParamType::Bool, "2", Err(NO_BOOL)),
        (ParamType::Bool, "", Err(NO_BOOL)),
        (ParamType::Bool, "01", Err(NO_BOOL)),
        (ParamType::Int, "42", Ok(Value::Int(42))),
        (ParamType::Int, " -42 ", Ok(Value::Int(-42))),
        (ParamType::Int, "+7", Ok(Value::Int(7))),
        (ParamType::Int, "0", Ok(Value::Int(0))),
        (ParamType::Int, "0600", Ok(Value::Int(0o600))),
        (ParamType::Int, "0x1F", Ok(Value::Int(31))),
        (ParamType::Int, "-0X10", Ok(Value::Int(-16))),
        (ParamType::Int, "2147483647", Ok(Value::Int(i32::MAX))),
        (ParamType::Int, "2147483648", Err("does not fit 32 bits")),
        (ParamType::Int, "10k", Err("not a whole number")),
        (ParamType::Int, "", Err("not a whole number")),
        (ParamType::Int, "-", Err("not a whole number")),
        (ParamType::Int, "--1", Err("not a whole number")),
        (ParamType::Int, "+-1", Err("not a whole number")),
        (ParamType::Int, "0x", Err("not a whole number")),
        (ParamType::Int, "0x-1", Err("not a whole number")),
        (ParamType::Int, "089", Err("not a whole number")),
        (ParamType::Int, "1e3", Err("not a whole number")),
        (
            ParamType::Int,
            "99999999999999999999999999999999999999999",
            Err("too large"),
        ),
        (ParamType::Size, "0", Ok(Value::Size(0))),
        (ParamType::Size, "18446744073709551615", Ok(Value::Size(usize::MAX))),
        (
            ParamType::Size,
            "18446744073709551616",
            Err("a size is not negative and fits 64 bits"),
        ),
        (ParamType::Size, "-1", Err("a size is not negative and fits 64 bits")),
        (ParamType::Size, "garbage", Err("not a whole number")),
    ];
    for (kind, text, want) in table {
        assert_eq!(&read(*kind, text.as_bytes()), want, "{kind:?} {text:?}");
    }
    assert_eq!(read(ParamType::Int, b"\xff"), Err("not a whole number"));
}
