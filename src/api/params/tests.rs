//! Definitions, names, and who wins of file and environment, on registries of a test's own with an environment that is
//! made up. The last test asks the registry of the process, under an owner that nobody else has.

use super::*;

const TCP: Owner = Owner(0x1000);
const SHM: Owner = Owner(0x2000);

fn nothing_set(_: &str) -> Option<Vec<u8>> {
    None
}

fn registry(config: &str, environment: Environment) -> Registry {
    let mut registry = Registry::new();
    registry.open(Config::parse(config.as_bytes()), environment);
    registry
}

#[test]
fn variables_are_named_after_owner_and_parameter() {
    let mut registry = registry("", &nothing_set);
    registry.define(Owner::CORE, "", "log_level", ParamType::String, "how loud");
    registry.define(TCP, "ofi_rxm", "tx_size", ParamType::Size, "how many");
    let help = |variable: &str| {
        registry
            .params
            .iter()
            .find(|p| p.variable == variable)
            .map(|p| p.help.as_str())
    };
    assert_eq!(help("FI_LOG_LEVEL"), Some("how loud"));
    assert_eq!(help("FI_OFI_RXM_TX_SIZE"), Some("ofi_rxm: how many"));
    assert_eq!(registry.params.len(), VARIABLES.len() + 1);
}

#[test]
fn a_second_definition_replaces_the_first() {
    let set = |name: &str| (name == "FI_TCP_SIZE").then(|| b"8".to_vec());
    let mut registry = registry("", &set);
    registry.define(TCP, "tcp", "size", ParamType::String, "old");
    registry.define(SHM, "shm", "size", ParamType::Int, "another owner");
    registry.define(TCP, "tcp", "size", ParamType::Size, "new");
    let helps: Vec<_> = registry.params.iter().map(|p| p.help.as_str()).collect();
    assert_eq!(
        helps.get(VARIABLES.len()..),
        Some(&["tcp: new", "shm: another owner"][..])
    );
    assert_eq!(registry.get(TCP, "size", &set), Ok(Value::Size(8)));
    assert_eq!(registry.get(SHM, "size", &set), Err(Miss::Unset));
    assert_eq!(registry.get(SHM, "other", &set), Err(Miss::Undefined));
}

#[test]
fn environment_or_file_wins_as_asked() {
    let both = |name: &str| match name {
        "FI_A" => Some(b"env".to_vec()),
        "FI_EMPTY" => Some(vec![]),
        _ => None,
    };
    let prefer = |name: &str| {
        if name == "FI_PREFER_SYSCONFIG" {
            Some(b"yes".to_vec())
        } else {
            both(name)
        }
    };
    let file = "FI_A=file\nFI_B=file\nFI_EMPTY=file\n";
    // (file, environment, value of a, b, empty)
    let table: [(&str, Environment, [&[u8]; 3]); 4] = [
        (file, &nothing_set, [b"file", b"file", b"file"]),
        (file, &both, [b"env", b"file", b""]),
        (file, &prefer, [b"file", b"file", b"file"]),
        (
            "FI_PREFER_SYSCONFIG=1\nFI_A=file\nFI_B=file\nFI_EMPTY=file",
            &both,
            [b"file", b"file", b"file"],
        ),
    ];
    for (index, (config, environment, want)) in table.into_iter().enumerate() {
        let mut registry = registry(config, environment);
        for (name, want) in ["a", "b", "empty"].into_iter().zip(want) {
            registry.define(Owner::CORE, "", name, ParamType::String, "x");
            let got = registry.get(Owner::CORE, name, environment);
            assert_eq!(got, Ok(Value::Text(want.to_vec())), "row {index}, {name}");
        }
    }
}

#[test]
fn complaints_name_variable_text_and_place() {
    let mut registry = registry("FI_N=many\nFI_PREFER_SYSCONFIG=perhaps", &nothing_set);
    registry.define(Owner::CORE, "", "n", ParamType::Int, "x");
    let found = registry.get(Owner::CORE, "n", &nothing_set);
    let want = "FI_N=many (in libfabric.conf): not a whole number; the default is used";
    assert_eq!(found, Err(Miss::Bad(want.into())));
    assert_eq!(report("n", &found), (Level::Warn, want.into()));
    assert_eq!(
        registry.config.map(|config| config.complaints.len()),
        Some(1),
        "about prefer_sysconfig"
    );
    assert!(!registry.prefer_config);
}

#[test]
fn what_is_undefined_is_gone() {
    let owner = Owner(0x3000);
    assert_eq!(define(owner, "x", "", ParamType::Int, "help"), Err(Errno(FI_EINVAL)));
    assert_eq!(define(owner, "x", "one", ParamType::Int, ""), Err(Errno(FI_EINVAL)));
    assert_eq!(define(owner, "x", "one", ParamType::Int, "help"), Ok(()));
    assert_eq!(get(owner, "one"), Err(Miss::Unset));
    assert!(
        list()
            .iter()
            .any(|row| row.variable == "FI_X_ONE" && row.value.is_none())
    );
    undefine(owner);
    assert_eq!(get(owner, "one"), Err(Miss::Undefined));
}
