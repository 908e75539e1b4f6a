//! The file's lines, good and bad, each with its number of complaints; and real files, one of them too long.

use super::*;

#[test]
fn lines() {
    /// The text, the entries read from it, and the number of complaints.
    type Row<'a> = (&'a [u8], &'a [(&'a str, &'a [u8])], usize);
    let table: &[Row] = &[
        (b"", &[], 0),
        (b"\n\n  \r\n# FI_A=1\n   # note\n", &[], 0),
        (
            b"FI_A=1\nFI_B=two words\n",
            &[("FI_A", b"1"), ("FI_B", b"two words")],
            0,
        ),
        (b"FI_A=1\r\nFI_B=2\r\n", &[("FI_A", b"1"), ("FI_B", b"2")], 0),
        (b"FI_A=no newline at the end", &[("FI_A", b"no newline at the end")], 0),
        (b"  FI_A = spaced \t\n", &[("FI_A", b"spaced")], 0),
        (b"FI_A=\n", &[("FI_A", b"")], 0),
        (b"FI_A=x=y#z\n", &[("FI_A", b"x=y#z")], 0),
        (b"FI_A=/caf\xe9\n", &[("FI_A", b"/caf\xe9")], 0),
        (b"FI_A=first\nFI_A=second\n", &[("FI_A", b"first")], 1),
        (b"FI_A\x0b=1\nFI A=1\nFI_B=2\n", &[("FI_B", b"2")], 2),
        (b"nonsense\n=1\nFI_\xff=1\nFI_A=a\0b\nFI_B=2\n", &[("FI_B", b"2")], 4),
    ];
    for (text, entries, complaints) in table {
        let got = Config::parse(text);
        let want: Vec<_> = entries
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_vec()))
            .collect();
        assert_eq!(got.entries, want, "{:?}", String::from_utf8_lossy(text));
        assert_eq!(got.complaints.len(), *complaints, "{:?}", got.complaints);
    }
}

#[test]
fn a_long_line_is_whole() {
    let text = [b"FI_A=".as_slice(), &vec![b'x'; 10_000], b"\nFI_B=2\n"].concat();
    let config = Config::parse(&text);
    assert_eq!(config.get("FI_A").map(<[u8]>::len), Some(10_000));
    assert_eq!(config.get("FI_B"), Some(b"2".as_slice()));
    assert_eq!(config.get("FI_C"), None);
}

#[test]
fn complaints_name_file_and_line() {
    let dir = std::env::temp_dir().join(format!("libfabric-rs-config-{}", std::process::id()));
    // One that ended badly may have left it.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).expect("a fresh directory");
    let file = dir.join("libfabric.conf");
    assert_eq!(Config::load(&file), Config::default(), "no file, no word");
    assert_eq!(Config::load(&dir).complaints.len(), 1, "a directory is not a file");
    std::fs::write(&file, "FI_A=1\noops\n").expect("writable");
    let config = Config::load(&file);
    assert_eq!(config.get("FI_A"), Some(b"1".as_slice()));
    let complaint = config.complaints.first().expect("one complaint");
    assert!(complaint.contains("libfabric.conf: line 2"), "{complaint}");
    let long = [b"FI_A=1\nFI_B=".as_slice(), &vec![b'x'; MAX_BYTES as usize]].concat();
    std::fs::write(&file, long).expect("writable");
    let config = Config::load(&file);
    assert_eq!(
        config.entries,
        [("FI_A".to_string(), b"1".to_vec())],
        "no line is used in part"
    );
    assert_eq!(config.complaints.len(), 1, "the cut is told");
    std::fs::remove_dir_all(&dir).expect("ours");
}
