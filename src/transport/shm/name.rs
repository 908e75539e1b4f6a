//! Where the files of an endpoint are: an address, which is any text, turned into names that a file system takes.

use std::path::{Path, PathBuf};

/// All our files begin so; the sweep looks at no others.
pub const PREFIX: &str = "libfabric-rs.";
/// The longest address.
pub const ADDRESS_MAX: usize = 256;
/// Names of files that are not an endpoint's region hold this character, which `escape` never writes.
const APART: char = '~';
/// A longer name is cut here and told apart by its hash; file systems take 255 bytes.
const ESCAPED_MAX: usize = 200;

/// The bytes of an address as they are compared: up to the first zero. None for what cannot be an address.
pub fn normal(address: &[u8]) -> Option<&[u8]> {
    let end = address.iter().position(|byte| *byte == 0).unwrap_or(address.len());
    address.get(..end).filter(|text| !text.is_empty() && end <= ADDRESS_MAX)
}

/// The file of an endpoint. Two addresses may have one file if their hashes meet: the region holds the whole address.
pub fn region(dir: &Path, address: &[u8]) -> PathBuf {
    dir.join(format!("{PREFIX}{}", escape(address)))
}

/// The named pipe that wakes an endpoint.
pub fn bell(dir: &Path, address: &[u8]) -> PathBuf {
    pipe_of(&region(dir, address))
}

pub fn pipe_of(region: &Path) -> PathBuf {
    let mut name = region.as_os_str().to_owned();
    name.push(APART.encode_utf8(&mut [0; 4]));
    name.into()
}

/// A file on its way to become a region.
pub fn unfinished(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{PREFIX}{APART}{number:016x}"))
}

/// Whether a name in the directory may be a region, or one that was never finished.
pub fn is_region(name: &[u8]) -> bool {
    name.starts_with(PREFIX.as_bytes()) && !name.ends_with(&[APART as u8])
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
            assert_eq!(region(dir, address), dir.join(name));
            assert!(is_region(name.as_bytes()));
        }
        let long = |last: u8| {
            let mut address = vec![b'/'; 255];
            address.push(last);
            region(dir, &address)
        };
        assert_ne!(long(b'a'), long(b'b'));
        assert!(long(b'a').file_name().unwrap().len() < 250);
        assert!(!is_region(pipe_of(&long(b'a')).as_os_str().as_encoded_bytes()));
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
