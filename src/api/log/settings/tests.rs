//! Each FI_LOG_ variable, from text to what it means, with the complaint that a wrong one gives; and the files that
//! FI_LOG_LOCATION makes or refuses to overwrite.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn from(set: &[(&str, Value)]) -> Settings {
    Settings::from(&|name| {
        set.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.clone())
            .ok_or(Miss::Unset)
    })
}

fn word(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

#[test]
fn nothing_set_is_silence() {
    let want = Settings {
        level: None,
        subsystems: Subsys::ALL.to_vec(),
        providers: NameList::none(),
        interval_ms: 2000,
        location: Location::Stderr,
        mode: 0o600,
        complaints: vec![],
    };
    assert_eq!(from(&[]), want);
}

#[test]
fn levels() {
    let table = [
        ("warn", Level::Warn, 0),
        ("TRACE", Level::Trace, 0),
        ("Info", Level::Info, 0),
        (" debug ", Level::Debug, 0),
        ("verbose", Level::Warn, 1),
        ("", Level::Warn, 1),
        ("3", Level::Warn, 1),
    ];
    for (text, level, complaints) in table {
        let got = from(&[("log_level", word(text))]);
        assert_eq!((got.level, got.complaints.len()), (Some(level), complaints), "{text:?}");
    }
}

#[test]
fn filters() {
    let table = [
        ("", "tcp", true),
        ("^", "tcp", true),
        (" , ", "tcp", true),
        ("tcp", "tcp", true),
        ("tcp", "TCP", true),
        ("tcp", "shm", false),
        ("tcp, shm", "shm", true),
        ("tcp", "tcp;ofi_rxm", false),
        ("^tcp", "tcp", false),
        ("^tcp", "shm", true),
        ("^tcp,shm", "shm", false),
    ];
    for (list, name, want) in table {
        assert_eq!(
            NameList::parse(list.trim()).lets_through(name),
            want,
            "{list:?} {name:?}"
        );
    }
}

#[test]
fn subsystem_lists() {
    let got = from(&[("log_subsys", word("cq,AV"))]);
    assert_eq!(
        (got.subsystems, got.complaints.len()),
        (vec![Subsys::Av, Subsys::Cq], 0)
    );
    let got = from(&[("log_subsys", word("^core,domain"))]);
    assert_eq!(got.subsystems.len(), 8);
    let got = from(&[("log_subsys", word("cores"))]);
    assert_eq!(
        (got.subsystems, got.complaints.len()),
        (vec![], 1),
        "nothing matches, and the log says why"
    );
}

#[test]
fn numbers_out_of_range_leave_the_default() {
    let table = [
        ("log_interval", Value::Int(0), 0, 0o600, 0),
        ("log_interval", Value::Int(500), 500, 0o600, 0),
        ("log_interval", Value::Int(-1), 2000, 0o600, 1),
        ("log_location_mode", Value::Int(0o644), 2000, 0o644, 0),
        ("log_location_mode", Value::Int(0o10000), 2000, 0o600, 1),
    ];
    for (name, value, interval, mode, complaints) in table {
        let got = from(&[(name, value.clone())]);
        assert_eq!(
            (got.interval_ms, got.mode, got.complaints.len()),
            (interval, mode, complaints),
            "{name} {value:?}"
        );
    }
}

#[test]
fn locations() {
    assert_eq!(from(&[("log_location", word("stdout"))]).standard_fd(), output::STDOUT);
    assert_eq!(from(&[("log_location", word("stderr"))]).standard_fd(), output::STDERR);
    assert_eq!(from(&[("log_location", word(""))]).standard_fd(), output::STDERR);
    assert!(from(&[("log_location", word("stdout"))]).open_file().is_none());

    let dir = std::env::temp_dir().join(format!("libfabric-rs-log-{}", std::process::id()));
    // One that ended badly may have left it.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).expect("a fresh directory");
    let in_dir = [
        ("log_location", word(&dir.to_string_lossy())),
        ("log_location_mode", Value::Int(0o640)),
    ];
    let mut settings = from(&in_dir);
    let file = settings.open_file().expect("a log file in the folder");
    assert_eq!(settings.complaints.len(), 0);
    let name = dir.join(format!("ofi_{}.log", std::process::id()));
    let mode = std::fs::metadata(&name).expect("it is there").permissions().mode();
    // The umask may take bits of group and others away, never of the owner.
    assert_eq!(mode & 0o700, 0o600);
    assert_eq!(mode & 0o037, 0);
    drop(file);

    std::fs::write(&name, "precious").expect("writable");
    let mut settings = from(&[("log_location", word(&name.to_string_lossy()))]);
    assert!(settings.open_file().is_none(), "an existing file is never opened");
    assert_eq!((settings.complaints.len(), settings.standard_fd()), (1, output::STDERR));
    assert_eq!(std::fs::read(&name).expect("readable"), b"precious");

    let mut settings = from(&[("log_location", word(&dir.join("no/such/folder").to_string_lossy()))]);
    assert!(settings.open_file().is_none());
    assert_eq!(settings.complaints.len(), 1);
    std::fs::remove_dir_all(&dir).expect("ours");
}
