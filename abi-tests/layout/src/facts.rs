//! Facts: what a source says of each item, as `size fi_info` = 120. All comparisons are between two sets of these.
//!
//! Kinds: `size`, `align` (struct, enum, typedef), `signed` (enum), `offset`, `width`, `parameters` (field), `value`.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(i128),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Text(t) => write!(f, "{t:?}"),
        }
    }
}

#[derive(Default)]
pub struct Facts(pub BTreeMap<String, Value>);

impl Facts {
    pub fn num(&mut self, key: &str, value: i128) {
        self.0.insert(key.into(), Value::Number(value));
    }

    pub fn text(&mut self, key: &str, value: &str) {
        self.0.insert(key.into(), Value::Text(value.into()));
    }
}
