//! The names of files: an address, which may be any text, turned into a name that a file system takes, and back into
//! what kind of file a name is. Called by the files of this module; `context` and `base` also by `provider`.

use crate::sys::home::{self, PREFIX};
use crate::sys::shared_table::TABLE_PREFIX;
use std::path::{Path, PathBuf};

/// The longest address.
pub(super) const ADDRESS_MAX: usize = 256;
/// In names of files that are not named after an address. `escape` never writes this character.
const INTERNAL: char = '~';
/// The end of a socket's name.
const DOORBELL: &str = ".bell";
/// Stands between an address and the number of a context. It is no printing character, so programs do not choose it.
const CONTEXT: u8 = 0x1f;
/// A longer name is cut here, and a hash is appended; file systems take 255 bytes.
const ESCAPED_MAX: usize = 200;

/// The bytes of an address that count: up to the first zero. None for what cannot be an address.
pub(super) fn normal(address: &[u8]) -> Option<&[u8]> {
    let end = address.iter().position(|byte| *byte == 0).unwrap_or(address.len());
    address.get(..end).filter(|text| !text.is_empty() && end <= ADDRESS_MAX)
}

/// The address of a context of a scalable endpoint. The first context has the endpoint's own.
pub fn context(address: &[u8], index: usize) -> Vec<u8> {
    let mut name = normal(address).unwrap_or_default().to_vec();
    if index > 0 {
        name.push(CONTEXT);
        name.extend(format!("{index:04}").bytes());
    }
    name
}

/// The address of the scalable endpoint that this is a context of; else the address itself.
pub fn base(address: &[u8]) -> &[u8] {
    let end = address.iter().rposition(|byte| *byte == CONTEXT);
    address.get(..end.unwrap_or(address.len())).unwrap_or_default()
}

/// Which context of a scalable endpoint this is: 0, the endpoint itself. None: that is no number.
pub fn context_number(address: &[u8]) -> Option<usize> {
    match address.get(base(address).len()..)? {
        [] => Some(0),
        [_, digits @ ..] => core::str::from_utf8(digits)
            .ok()?
            .parse()
            .ok()
            .filter(|number| *number > 0),
    }
}

/// The file of an endpoint. Two long addresses may hash to one name: the file holds the whole address, to tell.
pub(super) fn endpoint_file(dir: &Path, address: &[u8]) -> PathBuf {
    dir.join(format!("{PREFIX}{}", escape(address)))
}

/// The socket that wakes an endpoint.
pub(super) fn doorbell(dir: &Path, instance: u64) -> PathBuf {
    dir.join(format!("{PREFIX}{INTERNAL}{instance:016x}{DOORBELL}"))
}

/// The draft of an endpoint's file.
pub(super) fn unfinished(dir: &Path, instance: u64) -> PathBuf {
    home::draft(dir, instance)
}

/// What a name in the directory says about its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// An endpoint's file, or the draft of one.
    Endpoint,
    /// The socket of an instance.
    Doorbell(u64),
    /// A named address vector.
    Table,
    /// None of ours.
    Other,
}

pub(super) fn file(name: &[u8]) -> File {
    let Some(rest) = name.strip_prefix(PREFIX.as_bytes()) else {
        let is_table = name.starts_with(TABLE_PREFIX.as_bytes());
        return if is_table { File::Table } else { File::Other };
    };
    let number = rest
        .strip_prefix(&[INTERNAL as u8])
        .and_then(|rest| rest.strip_suffix(DOORBELL.as_bytes()));
    let number = number.and_then(|number| u64::from_str_radix(core::str::from_utf8(number).ok()?, 16).ok());
    number.map_or(File::Endpoint, File::Doorbell)
}

fn escape(address: &[u8]) -> String {
    let mut name = String::new();
    for byte in address {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b':' => name.push(char::from(*byte)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    if name.len() > ESCAPED_MAX {
        name.truncate(ESCAPED_MAX);
        name.push_str(&format!("#{:016x}", hash(address)));
    }
    name
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_differ() {
        let dir = Path::new("/dev/shm");
        let rows: [(&[u8], &str); 5] = [
            (b"fi_shm://17:0:0", "libfabric-rs.fi_shm:%2f%2f17:0:0"),
            (b"a/b", "libfabric-rs.a%2fb"),
            (b"a%2fb", "libfabric-rs.a%252fb"),
            (b"..", "libfabric-rs..."),
            (b"a~", "libfabric-rs.a%7e"),
        ];
        for (address, name) in rows {
            assert_eq!(endpoint_file(dir, address), dir.join(name));
            assert_eq!(file(name.as_bytes()), File::Endpoint);
        }
        let long = |last: u8| {
            let mut address = vec![b'/'; 255];
            address.push(last);
            endpoint_file(dir, &address)
        };
        assert_ne!(long(b'a'), long(b'b'));
        assert!(long(b'a').file_name().unwrap().len() < 250);
        let named = |path: PathBuf| file(path.file_name().unwrap().as_encoded_bytes());
        assert_eq!(named(doorbell(dir, 0xf1)), File::Doorbell(0xf1));
        assert_eq!(named(unfinished(dir, 0xf1)), File::Endpoint);
        assert_eq!(
            (file(b"somebody-elses"), file(b"fi_av.shm.job")),
            (File::Other, File::Table)
        );
    }

    #[test]
    fn a_context_leads_back_to_its_name() {
        let rows: [(&[u8], usize, &[u8]); 3] =
            [(b"a\0", 0, b"a"), (b"a#1", 1, b"a#1\x1f0001"), (b"a", 15, b"a\x1f0015")];
        for (address, index, expected) in rows {
            let context = context(address, index);
            assert_eq!((&*context, base(&context)), (expected, normal(address).unwrap()));
            assert_eq!(context_number(&context), Some(index));
        }
    }

    #[test]
    fn addresses_end_at_a_zero_and_are_not_empty() {
        let rows: [(&[u8], Option<&[u8]>); 6] = [
            (b"abc", Some(b"abc")),
            (b"abc\0", Some(b"abc")),
            (b"abc\0def", Some(b"abc")),
            (b"", None),
            (b"\0", None),
            (&[1; 257], None),
        ];
        for (bytes, expected) in rows {
            assert_eq!(normal(bytes), expected);
        }
        let mut longest = vec![b'x'; 256];
        longest.push(0);
        assert_eq!(normal(&longest).map(<[u8]>::len), Some(256));
    }
}
