//! Lists of names in variables: `a,b` for those that are meant or, after `^`, for those that are not. Letter case does
//! not count.
//!
//! Knows nothing of what is named. Called by `log` and by `provider::filter`.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameList {
    pub list: Vec<String>,
    pub negated: bool,
}

impl NameList {
    pub const fn none() -> NameList {
        NameList {
            list: Vec::new(),
            negated: false,
        }
    }

    /// Empty elements do not count.
    pub fn parse(text: &str) -> NameList {
        let (negated, list) = match text.strip_prefix('^') {
            Some(list) => (true, list),
            None => (false, text),
        };
        let list = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        NameList { list, negated }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// An empty list lets everybody through.
    pub fn lets_through(&self, name: &str) -> bool {
        self.is_empty() || self.has(name) != self.negated
    }
}
