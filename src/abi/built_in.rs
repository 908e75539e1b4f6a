//! The providers of this library, each with its C objects. Another provider is one more line in `ALL`, and one
//! more in `COUNT`.
//!
//! Knows nothing of plug-ins. Called by `start`, which registers them, by `open` and `object::domain`, which open their
//! fabrics and domains, and by `log`.

use super::log::CoreProvider;
use super::object::on_engine::DomainOf;
use super::types::{fi_ops_domain, fi_provider};
use crate::api::domain::Shared;
use crate::api::errno::Result;
use crate::api::info::model::Info;
use crate::api::log::Speaker;
use crate::provider::Provider;
use crate::provider::on_engine::OnEngine;
use core::ffi::CStr;
use std::sync::{Arc, OnceLock};

static ALL: [BuiltIn; COUNT] = [
    BuiltIn::on_engine::<crate::provider::shm::Shm>(c"shm"),
    #[cfg(test)]
    BuiltIn::on_engine::<super::example::Example>(c"example"),
];

/// In tests there is an example besides.
const COUNT: usize = 1 + cfg!(test) as usize;

/// What is C about a provider of this library.
pub(super) struct BuiltIn {
    pub name: Speaker,
    /// What its domains open.
    pub domain_ops: &'static fi_ops_domain,
    /// Opens what the endpoints of a domain share.
    pub share: fn(&Info) -> Result<Shared>,
    start: fn() -> Box<dyn Provider>,
    version: u32,
    c_name: &'static CStr,
    /// Made when a log callback wants to know who speaks.
    c_struct: OnceLock<CoreProvider>,
}

impl BuiltIn {
    const fn on_engine<P: OnEngine>(c_name: &'static CStr) -> BuiltIn {
        BuiltIn {
            name: P::NAME,
            domain_ops: const { &DomainOf::<P>::OPS },
            share: |info| Ok(Arc::new(P::share(info)?)),
            start: || Box::new(P::start()),
            version: P::VERSION,
            c_name,
            c_struct: OnceLock::new(),
        }
    }

    /// The provider with what the user set, for the registry.
    pub(super) fn start(&self) -> Box<dyn Provider> {
        (self.start)()
    }

    /// The provider as log callbacks are shown it.
    pub(super) fn c_struct(&self) -> &fi_provider {
        let make = || CoreProvider::of(self.c_name, self.name, self.version);
        self.c_struct.get_or_init(make).as_ref()
    }
}

pub(super) fn all() -> &'static [BuiltIn] {
    &ALL
}

pub(super) fn find(name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|built_in| built_in.name == name)
}
