//! /etc/ld.so.cache, the list from which the loader takes libraries that are in none of the folders it was told.
//!
//! Pure bytes, of the form that glibc has written since 2.2. Called by `loader`.

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Magic, two counts, flags, offset of extensions, three words.
const HEADER: usize = 48;
/// Flags, name, path, version of the system, hardware.
const ENTRY: usize = 24;

/// The paths of a library of this name, in the cache's order. What is no such file has none.
pub fn paths(cache: &[u8], name: &str) -> Vec<String> {
    // The form before it may stand in front of it.
    let Some(start) = cache.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let count = word(cache, MAGIC.len()).unwrap_or(0) as usize;
    let entries = (0..count)
        .map(|at| HEADER + at * ENTRY)
        .take_while(|at| at + ENTRY <= cache.len());
    let text = |at: usize| word(cache, at).and_then(|offset| string(cache, offset as usize));
    let named = entries.filter(|at| text(at + 4).is_some_and(|key| key == name.as_bytes()));
    named
        .filter_map(|at| Some(String::from_utf8_lossy(text(at + 8)?).into_owned()))
        .collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn string(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    rest.split(|byte| *byte == 0).next()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A cache with these names and paths.
    pub fn cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut table = Vec::new();
        let strings_at = HEADER + entries.len() * ENTRY;
        for (name, path) in entries {
            let mut place = |text: &str| {
                let at = (strings_at + strings.len()) as u32;
                strings.extend_from_slice(text.as_bytes());
                strings.push(0);
                at
            };
            let (name, path) = (place(name), place(path));
            for word in [0x303, name, path, 0, 0, 0] {
                table.extend_from_slice(&word.to_ne_bytes());
            }
        }
        let mut cache = MAGIC.to_vec();
        cache.extend_from_slice(&(entries.len() as u32).to_ne_bytes());
        cache.resize(HEADER, 0);
        [cache, table, strings].concat()
    }

    #[test]
    fn paths_are_found_by_name() {
        let entries = [
            ("libc.so.6", "/lib/libc.so.6"),
            ("libfabric.so.1", "/a/l"),
            ("libfabric.so.1", "/b/l"),
        ];
        let new = cache(&entries);
        assert_eq!(paths(&new, "libfabric.so.1"), ["/a/l", "/b/l"]);
        assert_eq!(
            paths(&[&b"ld.so-1.7.0 and more"[..], &new].concat(), "libc.so.6"),
            ["/lib/libc.so.6"]
        );
        assert!(paths(&new, "libfabric.so").is_empty());
    }

    #[test]
    fn what_is_no_cache_has_no_paths() {
        let whole = cache(&[("libfabric.so.1", "/a/l")]);
        for len in 0..whole.len() {
            // Never more than the path that stands there, and no reading beyond the end.
            assert!(
                paths(&whole[..len], "libfabric.so.1")
                    .iter()
                    .all(|path| "/a/l".starts_with(path))
            );
        }
        let mut wild = whole.clone();
        wild[20..24].copy_from_slice(&u32::MAX.to_ne_bytes());
        wild[56..60].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(paths(&wild, "libfabric.so.1").is_empty());
    }
}
