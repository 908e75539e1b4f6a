//! End to end, with providers made of the sample infos: who is listed for which FI_PROVIDER and which hints.

use super::*;
use crate::api::info::check::judge_all;
use crate::api::info::query::{CORE_PROV_ONLY, GETINFO_INTERNAL, fi_version};
use crate::api::info::samples::*;
use crate::provider::filter::Filter;
use std::sync::{Arc, Mutex, Weak};

mod told;

/// Answers with those of its templates that fit.
struct Core {
    name: &'static str,
    version: u32,
    fi_version: u32,
    templates: Vec<Info>,
}

impl Provider for Core {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> u32 {
        self.version
    }
    fn fi_version(&self) -> u32 {
        self.fi_version
    }
    fn kind(&self) -> Kind {
        Kind::of(self.name, true)
    }
    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>> {
        let infos = judge_all(self.name, &self.templates, query);
        if infos.is_empty() {
            return Err(Errno(FI_ENODATA));
        }
        Ok(infos.into_iter().map(|info| Answer { info, own: None }).collect())
    }
}

/// Stands on every core provider with endpoints of one type, and finds them as the C library's own do: it calls
/// fi_getinfo for core providers only, with itself excluded.
struct Layer {
    name: &'static str,
    below: u32,
    registry: Weak<Registry>,
}

impl Layer {
    /// The hints for what is below: no caps, so that only the endpoint type and the names decide.
    fn hints_below(&self, query: &Query) -> Info {
        let mut hints = Info::blank();
        hints.ep = Some(crate::api::info::model::EpAttr {
            ep_type: self.below,
            ..Default::default()
        });
        hints.mode = u64::MAX;
        let kept = query
            .prov_name()
            .unwrap_or("")
            .split(';')
            .filter(|name| *name != self.name && !name.is_empty());
        let exclude = format!("^{}", self.name);
        let names: Vec<&str> = kept.chain([exclude.as_str()]).collect();
        hints.fabric.as_mut().unwrap().prov_name = Some(names.join(";"));
        hints
    }
}

impl Provider for Layer {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> u32 {
        PROV_VERSION
    }
    fn fi_version(&self) -> u32 {
        fi_version(2, 6)
    }
    fn kind(&self) -> Kind {
        Kind::Utility
    }
    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>> {
        let own = judge_all(self.name, &[rxm()], query).pop().ok_or(Errno(FI_ENODATA))?;
        let hints = self.hints_below(query);
        let below = Query {
            flags: query.flags | CORE_PROV_ONLY,
            hints: Some(&hints),
            ..*query
        };
        let found = getinfo(&self.registry.upgrade().unwrap(), &below)?;
        let stack = |core: Answer| {
            let fabric = core.info.fabric.unwrap();
            let info = Info {
                fabric: Some(fabric),
                domain: core.info.domain,
                ..own.clone()
            };
            Answer { info, own: None }
        };
        Ok(found.into_iter().map(stack).collect())
    }
}

fn core(name: &'static str, templates: Vec<Info>) -> Core {
    Core {
        name,
        version: PROV_VERSION,
        fi_version: fi_version(2, 6),
        templates,
    }
}

/// A machine with verbs, shared memory and a network; registered in another order than asked.
fn machine(fi_provider: &str) -> Arc<Registry> {
    Arc::new_cyclic(|weak| {
        let mut registry = Registry::new(Filter::parse(Some(fi_provider)));
        let layer = |name, below| {
            Box::new(Layer {
                name,
                below,
                registry: Weak::clone(weak),
            })
        };
        registry.register(Box::new(core("shm", vec![shm()])), false);
        registry.register(Box::new(core("sm2", vec![shm()])), false);
        registry.register(layer("ofi_rxm", FI_EP_MSG), false);
        registry.register(Box::new(core("verbs", vec![verbs_msg()])), false);
        registry.register(layer("ofi_rxd", FI_EP_DGRAM), false);
        registry.register(Box::new(core("udp", vec![udp()])), false);
        registry.register(Box::new(core("tcp", vec![tcp_msg(), tcp_srx(), tcp_rdm()])), false);
        registry.register(Box::new(core("sockets", vec![tcp_msg(), tcp_rdm()])), false);
        registry.register(Box::new(core("off_coll", vec![shm()])), false);
        registry
    })
}

/// `name/endpoint type` of each info.
fn listed(answers: Result<Vec<Answer>>) -> String {
    let show = |answer: &Answer| {
        let ep_type = match answer.info.ep_type() {
            FI_EP_MSG => "msg",
            FI_EP_RDM => "rdm",
            FI_EP_DGRAM => "dgram",
            _ => "?",
        };
        format!("{}/{ep_type}", answer.info.prov_name().unwrap())
    };
    match answers {
        Ok(answers) => answers.iter().map(show).collect::<Vec<_>>().join(" "),
        Err(error) => format!("error {}", error.0),
    }
}

/// Hints that verbs needs: it is picky about mode and registration.
fn easy_hints(change: fn(&mut Info)) -> Info {
    let mut hints = Info {
        mode: u64::MAX,
        ..Info::blank()
    };
    change(&mut hints);
    hints
}

fn prov(hints: &mut Info, name: &str) {
    hints.fabric.as_mut().unwrap().prov_name = Some(name.into());
}

fn ep_type(hints: &mut Info, ep_type: u32) {
    hints.ep.as_mut().unwrap().ep_type = ep_type;
}

const NO_DATA: &str = "error 61";

#[test]
fn who_is_listed() {
    type Row = (&'static str, fn(&mut Info), &'static str);
    let rows: &[Row] = &[
        // (FI_PROVIDER, hints, names in order)
        (
            "",
            |_| {},
            "verbs/msg verbs;ofi_rxm/rdm tcp/rdm tcp;ofi_rxm/rdm udp;ofi_rxd/rdm shm/rdm udp/dgram tcp/msg sockets/msg \
             sockets/rdm sm2/rdm",
        ),
        (
            "",
            |h| ep_type(h, FI_EP_RDM),
            "verbs;ofi_rxm/rdm tcp/rdm tcp;ofi_rxm/rdm udp;ofi_rxd/rdm shm/rdm sockets/rdm sm2/rdm",
        ),
        ("", |h| ep_type(h, FI_EP_MSG), "verbs/msg tcp/msg sockets/msg"),
        ("", |h| ep_type(h, FI_EP_DGRAM), "udp/dgram"),
        (
            "",
            |h| h.caps = FI_ATOMIC,
            "verbs/msg verbs;ofi_rxm/rdm tcp;ofi_rxm/rdm udp;ofi_rxd/rdm shm/rdm sm2/rdm",
        ),
        ("", |h| h.caps = FI_MULTICAST, "udp/dgram"),
        ("", |h| h.caps = FI_HMEM, NO_DATA),
        (
            "",
            |h| h.addr_format = FI_ADDR_STR,
            "verbs;ofi_rxm/rdm tcp;ofi_rxm/rdm udp;ofi_rxd/rdm shm/rdm sm2/rdm",
        ),
        // Names in hints.
        ("", |h| prov(h, "tcp"), "tcp/rdm tcp;ofi_rxm/rdm tcp/msg"),
        ("", |h| prov(h, "TCP"), "tcp/rdm tcp;ofi_rxm/rdm tcp/msg"),
        ("", |h| prov(h, "shm"), "shm/rdm"),
        ("", |h| prov(h, "sockets"), "sockets/msg sockets/rdm"),
        ("", |h| prov(h, "udp"), "udp;ofi_rxd/rdm udp/dgram"),
        ("", |h| prov(h, "tcp;ofi_rxm"), "tcp;ofi_rxm/rdm"),
        ("", |h| prov(h, "ofi_rxm;tcp"), "tcp;ofi_rxm/rdm"),
        ("", |h| prov(h, "verbs;ofi_rxm"), "verbs;ofi_rxm/rdm"),
        ("", |h| prov(h, "sockets;ofi_rxm"), "sockets;ofi_rxm/rdm"),
        ("", |h| prov(h, "ofi_rxm"), "verbs;ofi_rxm/rdm tcp;ofi_rxm/rdm"),
        ("", |h| prov(h, "ofi_rxd"), "udp;ofi_rxd/rdm"),
        ("", |h| prov(h, "udp;ofi_rxm"), NO_DATA),
        ("", |h| prov(h, "shm;ofi_rxm"), NO_DATA),
        ("", |h| prov(h, "ofi_rxm;ofi_rxd"), NO_DATA),
        ("", |h| prov(h, "psm3"), NO_DATA),
        ("", |h| prov(h, "tcp;"), NO_DATA),
        // An empty name is that of no core provider, and layers stand on whatever they find.
        ("", |h| prov(h, ""), "verbs;ofi_rxm/rdm tcp;ofi_rxm/rdm udp;ofi_rxd/rdm"),
        ("", |h| prov(h, "off_coll"), NO_DATA),
        ("", |h| prov(h, "tcp;^ofi_rxm"), "tcp/msg tcp/rdm"),
        (
            "",
            |h| prov(h, "^ofi_rxm;^ofi_rxd;^sockets;^sm2;^verbs"),
            "shm/rdm udp/dgram tcp/msg tcp/rdm",
        ),
        // FI_PROVIDER.
        ("tcp", |_| {}, "tcp/rdm tcp;ofi_rxm/rdm tcp/msg"),
        ("Tcp", |_| {}, "tcp/rdm tcp;ofi_rxm/rdm tcp/msg"),
        ("tcp,shm", |_| {}, "tcp/rdm tcp;ofi_rxm/rdm shm/rdm tcp/msg"),
        ("tcp;ofi_rxm", |_| {}, "tcp;ofi_rxm/rdm"),
        ("ofi_rxm;tcp", |_| {}, NO_DATA),
        ("ofi_rxm", |_| {}, NO_DATA),
        ("tpc", |_| {}, NO_DATA),
        ("shm", |h| prov(h, "tcp"), NO_DATA),
        ("udp", |_| {}, "udp;ofi_rxd/rdm udp/dgram"),
        ("sm2,sockets", |_| {}, "sockets/msg sockets/rdm sm2/rdm"),
        (
            "^tcp",
            |_| {},
            "verbs/msg verbs;ofi_rxm/rdm udp;ofi_rxd/rdm shm/rdm udp/dgram sockets/msg sockets/rdm sm2/rdm",
        ),
        ("^ofi_rxm,verbs,udp,sockets,sm2", |_| {}, "shm/rdm tcp/msg tcp/rdm"),
        ("^tcp;ofi_rxm,verbs,udp,sockets,sm2", |_| {}, "shm/rdm tcp/msg tcp/rdm"),
        ("^tcp,verbs,udp,sockets,sm2,shm", |_| {}, NO_DATA),
        // Names of domains and fabrics.
        (
            "",
            |h| h.domain.as_mut().unwrap().name = Some("UDP".into()),
            "udp;ofi_rxd/rdm udp/dgram",
        ),
        (
            "",
            |h| h.fabric.as_mut().unwrap().name = Some("udp-ip".into()),
            "udp;ofi_rxd/rdm udp/dgram",
        ),
        ("", |h| h.domain.as_mut().unwrap().name = Some("eth7".into()), NO_DATA),
        // Versions.
        (
            "",
            |h| h.fabric.as_mut().unwrap().prov_version = PROV_VERSION + 1,
            NO_DATA,
        ),
        (
            "tcp",
            |h| h.fabric.as_mut().unwrap().prov_version = 1,
            "tcp/rdm tcp;ofi_rxm/rdm tcp/msg",
        ),
    ];
    for (number, (fi_provider, change, expected)) in rows.iter().enumerate() {
        let hints = easy_hints(*change);
        let answers = getinfo(&machine(fi_provider), &query_of(&hints, 2, 6));
        assert_eq!(listed(answers), *expected, "row {number}: FI_PROVIDER={fi_provider}");
    }
}

#[test]
fn without_hints_shared_receive_contexts_are_listed_too() {
    let answers = getinfo(&machine("tcp"), &empty_query());
    assert_eq!(listed(answers), "tcp/rdm tcp;ofi_rxm/rdm tcp/msg tcp/msg");
}

#[test]
fn flags() {
    let rows = [
        // (FI_PROVIDER, flags, hinted prov_name, names in order)
        ("tcp", FI_RESCAN, None, "tcp/rdm tcp;ofi_rxm/rdm tcp/msg"),
        ("tcp", 1 << 3, None, "tcp/rdm tcp;ofi_rxm/rdm tcp/msg"),
        (
            "tcp",
            FI_PROV_ATTR_ONLY | FI_RESCAN,
            None,
            "tcp/rdm tcp;ofi_rxm/rdm tcp/msg",
        ),
        ("", CORE_PROV_ONLY, None, "verbs/msg udp/dgram tcp/msg tcp/rdm sm2/rdm"),
        ("", CORE_PROV_ONLY, Some("^tcp"), "verbs/msg udp/dgram sm2/rdm"),
        ("", CORE_PROV_ONLY, Some("shm"), "shm/rdm"),
        ("", CORE_PROV_ONLY, Some("shm;^ofi_rxm"), "shm/rdm"),
        ("", CORE_PROV_ONLY, Some("ofi_rxm"), NO_DATA),
        ("shm", GETINFO_INTERNAL, None, "shm/rdm"),
        ("tcp;ofi_rxm", GETINFO_INTERNAL, None, "tcp;ofi_rxm/rdm tcp/msg tcp/rdm"),
        ("shm", GETINFO_HIDDEN, Some("udp;^ofi_rxd"), "udp/dgram"),
        (
            "shm",
            OFFLOAD_PROV_ONLY | GETINFO_INTERNAL,
            None,
            "shm/rdm off_coll/rdm",
        ),
        ("", OFFLOAD_PROV_ONLY, Some("off_coll"), "off_coll/rdm"),
    ];
    for (number, (fi_provider, flags, name, expected)) in rows.into_iter().enumerate() {
        let mut hints = easy_hints(|_| {});
        hints.fabric.as_mut().unwrap().prov_name = name.map(str::to_owned);
        let query = Query {
            flags,
            ..query_of(&hints, 2, 6)
        };
        assert_eq!(listed(getinfo(&machine(fi_provider), &query)), expected, "row {number}");
    }
}

#[test]
fn names_and_versions_on_the_answers() {
    let hints = easy_hints(|h| prov(h, "tcp"));
    let answers = getinfo(&machine(""), &query_of(&hints, 1, 9)).ok().unwrap();
    assert!(!answers.is_empty());
    for answer in answers {
        let fabric = answer.info.fabric.unwrap();
        assert_eq!(
            (fabric.prov_version, fabric.api_version),
            (PROV_VERSION, fi_version(1, 9))
        );
    }
}

#[test]
fn only_names_of_providers() {
    let query = Query {
        flags: FI_PROV_ATTR_ONLY,
        ..empty_query()
    };
    let answers = getinfo(&machine("tcp"), &query).ok().unwrap();
    let names: Vec<_> = answers.iter().map(|answer| answer.info.prov_name().unwrap()).collect();
    assert_eq!(
        names,
        [
            "verbs", "ofi_rxm", "ofi_rxd", "shm", "udp", "tcp", "sockets", "off_coll", "sm2"
        ]
    );
    let mut expected = Info::blank();
    let fabric = expected.fabric.as_mut().unwrap();
    fabric.prov_name = Some("verbs".into());
    fabric.prov_version = PROV_VERSION;
    assert_eq!(answers[0].info, expected);
    let nobody = Registry::new(Filter::default());
    assert_eq!(listed(getinfo(&nobody, &query)), NO_DATA);
}

#[test]
fn versions_asked_for() {
    let rows = [
        // (asked, result)
        ((2, 6), NO_DATA),
        ((2, 5), "old/rdm"),
        ((1, 0), "old/rdm"),
        ((0, 0), "old/rdm"),
        ((2, 7), "error 38"),
        ((3, 0), "error 38"),
        ((0xffff, 0xffff), "error 38"),
    ];
    for ((major, minor), expected) in rows {
        let mut registry = Registry::new(Filter::default());
        let old = Core {
            fi_version: fi_version(2, 5),
            ..core("old", vec![shm()])
        };
        registry.register(Box::new(old), false);
        let query = Query {
            version: fi_version(major, minor),
            ..empty_query()
        };
        assert_eq!(listed(getinfo(&registry, &query)), expected, "{major}.{minor}");
    }
    let query = Query {
        version: fi_version(3, 0),
        flags: FI_PROV_ATTR_ONLY,
        ..empty_query()
    };
    assert_eq!(listed(getinfo(&machine(""), &query)), "error 38");
}

#[test]
fn of_two_versions_the_newer_answers() {
    let mut registry = Registry::new(Filter::default());
    for version in [1, 3, 2] {
        registry.register(
            Box::new(Core {
                version,
                ..core("shm", vec![shm()])
            }),
            false,
        );
    }
    let answers = getinfo(&registry, &empty_query()).ok().unwrap();
    let versions: Vec<u32> = answers
        .into_iter()
        .map(|answer| answer.info.fabric.unwrap().prov_version)
        .collect();
    assert_eq!(versions, [3]);
}
