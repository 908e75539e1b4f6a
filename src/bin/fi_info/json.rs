//! JSON as text. Knows nothing about fabrics. Called by `document` and `check`.

/// A JSON value; objects keep the order they are made in.
#[derive(Clone)]
pub enum Json {
    Null,
    Bool(bool),
    Number(u64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// Bytes that are not UTF-8 become U+FFFD: JSON has no other way to carry them.
    pub fn text(bytes: &[u8]) -> Json {
        Json::Text(String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn text_or_null(bytes: Option<&[u8]>) -> Json {
        bytes.map_or(Json::Null, Json::text)
    }

    /// The document, indented by two spaces, with a line feed at its end.
    pub fn document(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out.push('\n');
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
            Json::Number(n) => out.push_str(&n.to_string()),
            Json::Text(text) => write_text(out, text),
            Json::Array(items) => write_list(out, depth, "[]", items, |out, item, inner| item.write(out, inner)),
            Json::Object(fields) => write_list(out, depth, "{}", fields, |out, (name, value), inner| {
                write_text(out, name);
                out.push_str(": ");
                value.write(out, inner);
            }),
        }
    }
}

fn write_list<T>(out: &mut String, depth: usize, ends: &str, items: &[T], one: impl Fn(&mut String, &T, usize)) {
    let (open, close) = ends.split_at(1);
    out.push_str(open);
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        one(out, item, depth + 1);
    }
    if !items.is_empty() {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
    out.push_str(close);
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let table: &[(&[u8], &str)] = &[
            (b"", r#""""#),
            (b"tcp;ofi_rxm", r#""tcp;ofi_rxm""#),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\n\r\t\x01\x1f\x7f", r#""\n\r\t\u0001\u001f\u007f""#),
            ("grün".as_bytes(), "\"grün\""),
            (b"bad\xff", "\"bad\u{fffd}\""),
        ];
        for (bytes, expected) in table {
            assert_eq!(Json::text(bytes).document(), format!("{expected}\n"));
        }
    }

    #[test]
    fn values_nest() {
        let value = Json::Object(vec![
            ("none", Json::Array(vec![])),
            ("empty", Json::Object(vec![])),
            (
                "list",
                Json::Array(vec![Json::Number(u64::MAX), Json::Null, Json::Bool(true)]),
            ),
        ]);
        let expected = "{\n  \"none\": [],\n  \"empty\": {},\n  \"list\": [\n    18446744073709551615,\n    null,\n    true\n  ]\n}\n";
        assert_eq!(value.document(), expected);
    }
}
