//! How the text of a variable becomes a value. Knows nothing of where the text comes from. Called by `params`.

use super::{ParamType, Value};

/// Reads a text as the kind asks, or says what is wrong with it.
pub(super) fn read(kind: ParamType, text: &[u8]) -> std::result::Result<Value, &'static str> {
    match kind {
        ParamType::String => Ok(Value::Text(text.to_vec())),
        ParamType::Bool => read_bool(text)
            .map(Value::Bool)
            .ok_or("not one of 1, 0, yes, no, true, false, on, off"),
        ParamType::Int => i32::try_from(read_integer(text)?)
            .map(Value::Int)
            .map_err(|_| "does not fit 32 bits"),
        ParamType::Size => match usize::try_from(read_integer(text)?) {
            Ok(size) => Ok(Value::Size(size)),
            Err(_) => Err("a size is not negative and fits 64 bits"),
        },
    }
}

fn read_bool(text: &[u8]) -> Option<bool> {
    let text = text.trim_ascii();
    let is_one_of = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    if is_one_of(&["1", "yes", "true", "on"]) {
        Some(true)
    } else if is_one_of(&["0", "no", "false", "off"]) {
        Some(false)
    } else {
        None
    }
}

/// An integer as strtol(3) with base 0 has it (0x: hexadecimal, 0: octal), but nothing may follow it.
fn read_integer(text: &[u8]) -> std::result::Result<i128, &'static str> {
    const NOT_A_NUMBER: &str = "not a whole number";
    let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| NOT_A_NUMBER)?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(NOT_A_NUMBER);
    }
    i128::from_str_radix(digits, radix)
        .map(|value| sign * value)
        .map_err(|_| "too large")
}

#[cfg(test)]
mod tests;
