//! The node and service names of fi_av_insertsym: a first one, counted up.

use crate::abi::types::FI_EINVAL;
use crate::api::errno::{Errno, Result};
use std::net::{Ipv4Addr, Ipv6Addr};

/// All services of a node come before the next node.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    pub node: Option<&'a str>,
    pub nodecnt: usize,
    pub service: Option<&'a str>,
    pub svccnt: usize,
}

impl Sequence<'_> {
    /// How many addresses it names. Refuses a sequence whose last name cannot be made.
    pub fn count(&self) -> Result<usize> {
        let count = self.nodecnt.checked_mul(self.svccnt).ok_or(Errno(FI_EINVAL))?;
        if u32::try_from(count).is_err() || (self.node.is_none() && self.service.is_none()) {
            return Err(Errno(FI_EINVAL));
        }
        if count > 0 {
            self.name(count - 1)?;
        }
        Ok(count)
    }

    /// The node and service at a place in the order.
    pub fn name(&self, at: usize) -> Result<(Option<String>, Option<String>)> {
        let (node, service) = at
            .checked_div(self.svccnt)
            .zip(at.checked_rem(self.svccnt))
            .ok_or(Errno(FI_EINVAL))?;
        let is_uri = self.node.is_some_and(|node| node.contains("://"));
        if is_uri && (self.nodecnt > 1 || self.svccnt > 1) {
            return Err(Errno(FI_EINVAL));
        }
        Ok((
            step(self.node, node, |text, by| {
                next_v4(text, by)
                    .or_else(|| next_v6(text, by))
                    .or_else(|| next_suffix(text, by))
            })?,
            step(self.service, service, |text, by| {
                Some(text.parse::<u64>().ok()?.checked_add(by)?.to_string())
            })?,
        ))
    }
}

/// A name is left as it is when it is not counted up, whatever it looks like.
fn step(first: Option<&str>, by: usize, next: impl Fn(&str, u64) -> Option<String>) -> Result<Option<String>> {
    match (first, by) {
        (first, 0) => Ok(first.map(str::to_owned)),
        (Some(first), by) => next(first, by as u64).map(Some).ok_or(Errno(FI_EINVAL)),
        (None, _) => Err(Errno(FI_EINVAL)),
    }
}

fn next_v4(text: &str, by: u64) -> Option<String> {
    let first: Ipv4Addr = text.parse().ok()?;
    let number = u32::from(first).checked_add(u32::try_from(by).ok()?)?;
    Some(Ipv4Addr::from(number).to_string())
}

fn next_v6(text: &str, by: u64) -> Option<String> {
    let first: Ipv6Addr = text.parse().ok()?;
    Some(Ipv6Addr::from(u128::from(first).checked_add(by.into())?).to_string())
}

/// `host08` is followed by `host09` and `host10`. What looks like an IP address is not counted up this way.
fn next_suffix(text: &str, by: u64) -> Option<String> {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return None;
    }
    let stem = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.get(stem.len()..)?;
    let number = digits.parse::<u64>().ok()?.checked_add(by)?;
    Some(format!("{stem}{number:0width$}", width = digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(node: Option<&str>, nodecnt: usize, service: Option<&str>, svccnt: usize) -> Option<Vec<String>> {
        let sequence = Sequence {
            node,
            nodecnt,
            service,
            svccnt,
        };
        let text = |at| {
            let (node, service) = sequence.name(at).unwrap();
            format!("{}:{}", node.unwrap_or_default(), service.unwrap_or_default())
        };
        sequence.count().ok().map(|count| (0..count).map(text).collect())
    }

    #[test]
    fn names_are_counted_up_services_first() {
        type Row = (
            Option<&'static str>,
            usize,
            Option<&'static str>,
            usize,
            &'static [&'static str],
        );
        let rows: [Row; 10] = [
            // The two examples of the page.
            (
                Some("10.1.1.1"),
                2,
                Some("5000"),
                2,
                &["10.1.1.1:5000", "10.1.1.1:5001", "10.1.1.2:5000", "10.1.1.2:5001"],
            ),
            (
                Some("host10"),
                2,
                Some("5000"),
                2,
                &["host10:5000", "host10:5001", "host11:5000", "host11:5001"],
            ),
            (Some("10.1.1.255"), 2, Some("1"), 1, &["10.1.1.255:1", "10.1.2.0:1"]),
            (Some("fe80::ffff"), 2, Some("1"), 1, &["fe80::ffff:1", "fe80::1:0:1"]),
            (Some("n08"), 3, Some("1"), 1, &["n08:1", "n09:1", "n10:1"]),
            (Some("9"), 2, None, 1, &["9:", "10:"]),
            // Not counted up: any name will do.
            (Some("host"), 1, Some("http"), 1, &["host:http"]),
            (None, 1, Some("7"), 2, &[":7", ":8"]),
            (Some("fi_shm://n1"), 1, None, 1, &["fi_shm://n1:"]),
            (Some("host"), 0, Some("http"), 3, &[]),
        ];
        for (node, nodecnt, service, svccnt, expected) in rows {
            let made = names(node, nodecnt, service, svccnt);
            assert_eq!(
                made.as_deref(),
                Some(&expected.iter().map(|text| text.to_string()).collect::<Vec<_>>()[..])
            );
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let rows = [
            (Some("host"), 2, Some("1"), 1),
            (Some("host1"), 1, Some("http"), 2),
            (Some("255.255.255.255"), 2, Some("1"), 1),
            (Some("10.0.0.1"), 1, None, 2),
            (None, 2, Some("1"), 1),
            (None, 1, None, 1),
            (Some("fi_shm://n1"), 2, None, 1),
            (Some("host1"), usize::MAX, Some("1"), 2),
            (Some("host1"), usize::MAX, Some("1"), 1),
            (Some("host18446744073709551615"), 2, Some("1"), 1),
            (Some("host1"), 1, Some("18446744073709551615"), 2),
        ];
        for (node, nodecnt, service, svccnt) in rows {
            assert_eq!(
                names(node, nodecnt, service, svccnt),
                None,
                "{node:?} {nodecnt} {service:?} {svccnt}"
            );
        }
    }
}
