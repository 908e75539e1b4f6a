//! Which sizes are measured, and the table of results, column for column as other tools parse it.
//!
//! Pure text and numbers. Called by `run`; `options` keeps a `Sizes`.

#[cfg(test)]
mod tests;

use core::fmt;

/// Which message sizes to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Six of them, 64 bytes to 1 MiB.
    Some,
    /// Every power of two, and half way between them.
    All,
    One(usize),
}

const SOME: [usize; 6] = [64, 256, 1024, 4096, 65536, 1048576];
/// The largest of `All`: 4 MiB and half as much again.
pub const LARGEST: usize = (1 << 22) + (1 << 21);

impl Sizes {
    /// The largest message that may be asked for.
    pub fn largest(self) -> usize {
        match self {
            Sizes::One(size) => size,
            Sizes::Some | Sizes::All => LARGEST,
        }
    }

    /// The sizes in order, none above `limit`.
    pub fn list(self, limit: usize) -> Vec<usize> {
        let fits = |size: &usize| *size <= limit;
        match self {
            Sizes::One(size) => [size].into_iter().filter(fits).collect(),
            Sizes::Some => SOME.into_iter().filter(fits).collect(),
            Sizes::All => {
                let steps = (1..=22).flat_map(|power| [1 << power, (1 << power) + (1 << (power - 1))]);
                [0, 1].into_iter().chain(steps).filter(fits).collect()
            }
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Sizes::Some => f.write_str("default sizes"),
            Sizes::All => f.write_str("All sizes"),
            Sizes::One(size) => write!(f, "selected size = {size}"),
        }
    }
}

/// One size, measured.
pub struct Result {
    pub size: usize,
    /// Messages sent by the client, and answers it got.
    pub sent: u64,
    pub acked: u64,
    pub microseconds: u64,
}

pub fn header() -> String {
    format!(
        "{:<8}{:<8}{:<9}{:<8}{:>8} {:>10}{:>13}{:>13}\n",
        "bytes", "#sent", "#ack", "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec"
    )
}

pub fn row(result: &Result) -> String {
    let Result {
        size,
        sent,
        acked,
        microseconds,
    } = *result;
    // There and back.
    let bytes = sent.saturating_mul(size as u64).saturating_mul(2);
    let acks = match sent.cmp(&acked) {
        core::cmp::Ordering::Equal => format!("={:<8}", count_text(acked)),
        core::cmp::Ordering::Less => format!("-{:<8}", count_text(acked - sent)),
        core::cmp::Ordering::Greater => format!("+{:<8}", count_text(sent - acked)),
    };
    let per_transfer = f64::from(microseconds as f32 / sent as f32 / 2.0);
    format!(
        "{:<8}{:<8}{acks}{:<8}{:>8.2}s{:>10.2}{per_transfer:>11.2}{:>11.2}\n",
        size_text(size as u64),
        count_text(sent),
        size_text(bytes),
        microseconds as f64 / 1e6,
        bytes as f64 / microseconds as f64,
        1.0 / per_transfer,
    )
}

/// 1536 is 1.5k, 10240 is 10k.
fn size_text(size: u64) -> String {
    let (unit, letter) = match size {
        0..0x400 => (1, ""),
        0x400..0x10_0000 => (0x400, "k"),
        0x10_0000..0x4000_0000 => (0x10_0000, "m"),
        _ => (0x4000_0000, "g"),
    };
    let (whole, tenth) = (size / unit, size % unit * 10 / unit);
    if whole < 10 && tenth > 0 {
        format!("{whole}.{tenth}{letter}")
    } else {
        format!("{whole}{letter}")
    }
}

/// 1999 is 1k.
fn count_text(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        1_000_000..1_000_000_000 => format!("{}m", count / 1_000_000),
        _ => format!("{}b", count / 1_000_000_000),
    }
}
