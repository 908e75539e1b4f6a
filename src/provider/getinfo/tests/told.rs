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
