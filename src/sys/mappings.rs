//! What this process has mapped (/proc/self/maps). Knows nothing of what it is used for. Called by `transport`.

use core::ops::Range;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Whether all of this memory is mapped, private, and of no file: so nobody but this process, by a call that names
/// these addresses, can put other pages there. Reads the list of all mappings up to there, some microseconds for a
/// dozen.
pub fn is_private_anonymous(memory: &Range<usize>) -> bool {
    File::open("/proc/self/maps").is_ok_and(|maps| says_so(BufReader::new(maps), memory))
}

fn says_so(maps: impl BufRead, memory: &Range<usize>) -> bool {
    let mut known = memory.start;
    // In the order of their addresses.
    for line in maps.split(b'\n').map_while(Result::ok) {
        let Some(mapping) = Mapping::read(&line) else {
            return false;
        };
        if mapping.memory.end <= known {
            continue;
        }
        if mapping.memory.start > known || !mapping.is_private_anonymous {
            return false;
        }
        known = mapping.memory.end;
        if known >= memory.end {
            return true;
        }
    }
    false
}

struct Mapping {
    memory: Range<usize>,
    is_private_anonymous: bool,
}

impl Mapping {
    /// By proc_pid_maps(5): `START-END RIGHTS OFFSET DEVICE INODE NAME`. The device and inode of no file are zero.
    fn read(line: &[u8]) -> Option<Mapping> {
        let mut fields = line
            .split(|byte| *byte == b' ')
            .map(|field| core::str::from_utf8(field).unwrap_or(""));
        let (start, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?;
        let (_, device, inode) = (fields.next()?, fields.next()?, fields.next()?);
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(Mapping {
            memory: address(start)?..address(end)?,
            is_private_anonymous: rights.ends_with('p') && device == "00:00" && inode == "0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 r--p 00000000 fe:00 2883849                    /usr/bin/cat
3000-5000 rw-p 00000000 00:00 0                          [heap]
5000-6000 rw-p 00000000 00:00 0 \n\
6000-8000 rw-s 00000000 00:01 7                          /memfd:x (deleted)
9000-a000 rw-p 00000000 00:01 7                          /memfd:x (deleted)
b000-c000 rw-p 00000000 00:00 0                          [anon:some name]
";

    #[test]
    fn only_what_no_file_backs_is_private_and_anonymous() {
        let rows = [
            (0x3000..0x6000, true),
            (0x4010..0x4020, true),
            (0xb000..0xc000, true),
            (0x2fff..0x4000, false), // a file's
            (0x5000..0x7000, false), // shared
            (0x9000..0xa000, false), // private, of a file that others may shorten
            (0x8000..0x9000, false), // nothing
            (0xb000..0xc001, false), // nothing behind it
        ];
        for (memory, expected) in rows {
            assert_eq!(says_so(MAPS.as_bytes(), &memory), expected, "{memory:x?}");
        }
        assert!(!says_so(&b"nonsense"[..], &(0..1)));
    }

    #[test]
    fn the_kernel_lists_our_own() {
        let allocated = vec![1u8; 1 << 20];
        let of = |bytes: &[u8]| bytes.as_ptr() as usize..bytes.as_ptr() as usize + bytes.len();
        assert!(is_private_anonymous(&of(&allocated)));
        assert!(!is_private_anonymous(&of(MAPS.as_bytes())));
    }
}
