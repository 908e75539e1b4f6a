//! Providers that answer oddly, and what is listed of them.

use super::*;

/// Answers as it is told, and keeps the flags it was asked with.
struct Told {
    name: &'static str,
    answer: fn() -> Result<Vec<Answer>>,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Provider for Told {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> u32 {
        1
    }
    fn fi_version(&self) -> u32 {
        fi_version(2, 6)
    }
    fn kind(&self) -> Kind {
        Kind::of(self.name, true)
    }
    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>> {
        self.seen.lock().unwrap().push(query.flags);
        (self.answer)()
    }
}

fn one_named(name: Option<&str>) -> Result<Vec<Answer>> {
    let mut info = shm();
    info.fabric.as_mut().unwrap().prov_name = name.map(str::to_owned);
    Ok(vec![Answer { info, own: None }])
}

#[test]
fn odd_answers() {
    type Row = (&'static str, fn() -> Result<Vec<Answer>>, &'static str);
    let rows: &[Row] = &[
        ("a", || Err(Errno(FI_EINVAL)), NO_DATA),
        ("a", || Err(Errno(FI_ENOMEM)), NO_DATA),
        ("a", || Ok(Vec::new()), NO_DATA),
        ("a", || one_named(None), "a/rdm"),
        ("a", || one_named(Some("a")), "a/rdm"),
        ("ofi_x", || one_named(Some("a")), "a;ofi_x/rdm"),
        ("ofi_x", || one_named(None), "ofi_x/rdm"),
        ("lnx", || one_named(Some("shm+tcp")), "shm+tcp/rdm"),
        ("lnx", || one_named(None), "lnx/rdm"),
        ("off_a", || one_named(None), NO_DATA),
        (
            "a",
            || {
                Ok(vec![Answer {
                    info: Info::default(),
                    own: None,
                }])
            },
            "a/?",
        ),
        (
            "a",
            || Ok(one_named(None)?.into_iter().chain(one_named(None)?).collect()),
            "a/rdm",
        ),
    ];
    for (number, (name, answer, expected)) in rows.iter().enumerate() {
        let mut registry = Registry::new(Filter::default());
        registry.register(
            Box::new(Told {
                name,
                answer: *answer,
                seen: Arc::default(),
            }),
            false,
        );
        assert_eq!(listed(getinfo(&registry, &empty_query())), *expected, "row {number}");
    }
}

#[test]
fn flags_reach_the_provider_as_they_came() {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let mut registry = Registry::new(Filter::default());
    registry.register(
        Box::new(Told {
            name: "a",
            answer: || one_named(None),
            seen: Arc::clone(&seen),
        }),
        false,
    );
    for flags in [FI_RESCAN, FI_SOURCE | FI_NUMERICHOST, 1 << 62] {
        assert_eq!(listed(getinfo(&registry, &Query { flags, ..empty_query() })), "a/rdm");
    }
    assert_eq!(*seen.lock().unwrap(), [FI_RESCAN, FI_SOURCE | FI_NUMERICHOST, 1 << 62]);
}

/// Is there only for those who name it.
struct Shy;

impl Provider for Shy {
    fn name(&self) -> &str {
        "shy"
    }
    fn version(&self) -> u32 {
        1
    }
    fn fi_version(&self) -> u32 {
        fi_version(2, 6)
    }
    fn kind(&self) -> Kind {
        Kind::Core
    }
    fn is_only_by_name(&self) -> bool {
        true
    }
    fn getinfo(&self, _: &Query) -> Result<Vec<Answer>> {
        one_named(None)
    }
}

#[test]
fn who_is_there_only_by_name_is_listed_for_those_who_name_it() {
    let rows = [
        // (FI_PROVIDER, hinted prov_name, names in order)
        ("", None, "shm/rdm"),
        ("", Some("shy"), "shy/rdm"),
        ("", Some("Shy"), "shy/rdm"),
        ("", Some("^sm2"), "shm/rdm"),
        ("shy", None, "shy/rdm"),
        ("shm,SHY", None, "shm/rdm shy/rdm"),
        ("shm", None, "shm/rdm"),
        ("shm", Some("shy"), NO_DATA),
        ("^sm2", None, "shm/rdm"),
        ("^shy", Some("shy"), NO_DATA),
    ];
    for (fi_provider, name, expected) in rows {
        let mut registry = Registry::new(Filter::parse(Some(fi_provider)));
        registry.register(Box::new(core("shm", vec![shm()])), false);
        registry.register(Box::new(Shy), false);
        let mut hints = easy_hints(|_| {});
        hints.fabric.as_mut().unwrap().prov_name = name.map(str::to_owned);
        let answers = getinfo(&registry, &query_of(&hints, 2, 6));
        assert_eq!(listed(answers), expected, "FI_PROVIDER={fi_provider}, {name:?}");
    }
    let mut registry = Registry::new(Filter::parse(None));
    registry.register(Box::new(Shy), false);
    let told = Query {
        flags: FI_PROV_ATTR_ONLY,
        ..empty_query()
    };
    assert_eq!(getinfo(&registry, &told).unwrap_or_default().len(), 1);
}
