//! The sizes that are measured, and the table of results, column for column as the C library's program prints it.

use super::*;

#[test]
fn sizes_stay_below_the_limit() {
    let table: &[(Sizes, usize, &[usize])] = &[
        (Sizes::Some, LARGEST, &SOME),
        (Sizes::Some, 1024, &[64, 256, 1024]),
        (Sizes::Some, 63, &[]),
        (Sizes::One(100), 100, &[100]),
        (Sizes::One(100), 99, &[]),
        (Sizes::One(0), 99, &[0]),
        (Sizes::All, 12, &[0, 1, 2, 3, 4, 6, 8, 12]),
    ];
    for (sizes, limit, expected) in table {
        assert_eq!(sizes.list(*limit), *expected, "{sizes} {limit}");
    }
    let all = Sizes::All.list(usize::MAX);
    assert_eq!((all.len(), all.last()), (46, Some(&LARGEST)));
    assert!(all.is_sorted());
}

#[test]
fn numbers_are_short() {
    let sizes = [
        (0, "0"),
        (1023, "1023"),
        (1024, "1k"),
        (1536, "1.5k"),
        (10752, "10k"),
        (1 << 20, "1m"),
    ];
    for (size, expected) in sizes {
        assert_eq!(size_text(size), expected);
    }
    assert_eq!(size_text(u64::MAX), "17179869183g");
    let counts = [(999, "999"), (1999, "1k"), (1_000_000, "1m"), (3_000_000_000, "3b")];
    for (count, expected) in counts {
        assert_eq!(count_text(count), expected);
    }
}

/// Lines that the C library's program printed for the same numbers, as far as its rounding shows them.
#[test]
fn rows_have_the_columns_of_the_original() {
    assert_eq!(
        header(),
        "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    );
    let row = |size, sent, acked, microseconds| {
        row(&Result {
            size,
            sent,
            acked,
            microseconds,
        })
    };
    assert_eq!(
        row(64, 10, 10, 156_051),
        "64      10      =10      1.2k        0.16s      0.01    7802.55       0.00\n"
    );
    assert_eq!(
        row(1048576, 10, 10, 236_259),
        "1m      10      =10      20m         0.24s     88.76   11812.95       0.00\n"
    );
    assert!(row(64, 10, 8, 1).starts_with("64      10      +2       1.2k"));
    assert!(row(64, 10, 12, 1).starts_with("64      10      -2       1.2k"));
}
