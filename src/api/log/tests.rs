//! A line's form, byte for byte as the C library writes it, and which levels and subsystems a mask lets through.

use super::*;

#[test]
fn lines_look_like_the_c_librarys() {
    let site = CallSite {
        provider: b"tcp",
        subsys: "ep_ctrl",
        func: b"xnet_connect",
        line: 77,
    };
    let want = b"libfabric:4711:1700000000::tcp:ep_ctrl:xnet_connect():77<warn> no route\n";
    assert_eq!(format_line(4711, 1_700_000_000, "warn", &site, b"no route\n"), want);
    assert_eq!(
        format_line(4711, 1_700_000_000, "warn", &site, b"no route"),
        want,
        "a newline is added"
    );
}

#[test]
fn a_level_lets_through_the_levels_before_it() {
    // The C library's order: warn, trace, info, debug.
    let table: [(Option<Level>, [bool; 4]); 5] = [
        (None, [false; 4]),
        (Some(Level::Warn), [true, false, false, false]),
        (Some(Level::Trace), [true, true, false, false]),
        (Some(Level::Info), [true, true, true, false]),
        (Some(Level::Debug), [true; 4]),
    ];
    for (set, want) in table {
        let mask = mask_of(set, &Subsys::ALL);
        assert_eq!(
            Level::ALL.map(|level| allows(mask, level, Subsys::Cntr)),
            want,
            "{set:?}"
        );
    }
}

#[test]
fn subsystems_speak_only_when_listed() {
    let mask = mask_of(Some(Level::Debug), &[Subsys::Av, Subsys::Cntr]);
    let speaking: Vec<_> = Subsys::ALL
        .into_iter()
        .filter(|subsys| allows(mask, Level::Warn, *subsys))
        .collect();
    assert_eq!(speaking, [Subsys::Av, Subsys::Cntr]);
}

#[test]
fn c_numbers_out_of_range_are_nothing() {
    for (index, subsys) in Subsys::ALL.into_iter().enumerate() {
        assert_eq!(Subsys::from_c(index as u32), Some(subsys));
    }
    for (index, level) in Level::ALL.into_iter().enumerate() {
        assert_eq!(Level::from_c(index as u32), Some(level));
    }
    for value in [10, 31, 32, u32::MAX] {
        assert_eq!((Level::from_c(value), Subsys::from_c(value)), (None, None));
    }
}

#[test]
fn module_paths_lose_their_colons() {
    assert_eq!(short_name("fabric::api::params"), "params");
    assert_eq!(short_name("fi_getinfo"), "fi_getinfo");
}
