//! The providers of this library, each with its C objects. Another provider is one more line in `ALL`, and one
//! more in `COUNT`.
//!
//! Knows nothing of plug-ins. Called by `start`, which registers them, by `open` and `object::domain`, which open their
//! fabrics and domains, and by `log`.

use super::log::CoreProvider;
use super::object::connected::ConnectedDomainOf;
use super::object::datagrams::DatagramDomainOf;
use super::object::direct::DirectDomainOf;
use super::object::on_engine::DomainOf;
use super::object::pep;
use super::types::{fi_info, fi_ops_domain, fi_provider, fid_fabric, fid_pep};
use crate::api::domain::Opened;
use crate::api::endpoint::EndpointTransport;
use crate::api::errno::Result;
use crate::api::info::model::Info;
use crate::api::log::Speaker;
use crate::provider::Provider;
use crate::provider::connected::Connected;
use crate::provider::datagrams::Datagrams;
use crate::provider::direct::Direct;
use crate::provider::on_engine::OnEngine;
use crate::sys::lock::Held;
use core::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, OnceLock};

static ALL: [BuiltIn; COUNT] = [
    BuiltIn::on_engine::<crate::provider::auto::Auto>(c"auto"),
    BuiltIn::on_engine::<crate::provider::shm::Shm>(c"shm"),
    BuiltIn::connected::<crate::provider::tcp::Tcp>(c"tcp"),
    BuiltIn::on_engine::<crate::provider::tcp::TcpRxm>(c"ofi_rxm"),
    BuiltIn::connected::<crate::provider::tcp::Sockets>(c"sockets"),
    BuiltIn::datagrams::<crate::provider::verbs::Verbs>(c"verbs"),
    BuiltIn::on_engine::<crate::provider::verbs::VerbsRxm>(c"ofi_rxm"),
    #[cfg(test)]
    BuiltIn::on_engine::<super::example::Example>(c"example"),
    #[cfg(test)]
    BuiltIn::on_engine::<super::card::StandIn>(c"stand_in"),
    #[cfg(test)]
    BuiltIn::connected::<super::connected_example::Calls>(c"calls"),
];

/// In tests there are two examples and a stand-in for a card besides.
const COUNT: usize = 7 + 3 * cfg!(test) as usize;

/// The locks of what providers keep for the whole process, which fork waits for.
pub(super) static LOCK: &dyn Held = crate::transport::tcp::LOCK;
pub(super) static LOCK_OF_CLOSED: &dyn Held = crate::transport::tcp::LOCK_OF_CLOSED;
pub(super) static LOCK_OF_SWEEP: &dyn Held = crate::transport::shm::LOCK_OF_SWEEP;

/// fi_passive_ep of a provider.
pub(super) type OpenPassive =
    unsafe extern "C" fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_pep, *mut c_void) -> c_int;

/// What is C about a provider of this library.
pub(super) struct BuiltIn {
    /// Its whole name, by which its objects find it.
    pub name: Speaker,
    /// What its domains open.
    pub domain_ops: &'static fi_ops_domain,
    /// Opens what the endpoints of a domain share.
    pub share: fn(&Info) -> Result<Opened>,
    /// fi_passive_ep, if it has connected endpoints.
    pub passive_ep: Option<OpenPassive>,
    start: fn() -> Box<dyn Provider>,
    version: u32,
    c_name: &'static CStr,
    /// Made when a log callback wants to know who speaks.
    c_struct: OnceLock<CoreProvider>,
}

impl BuiltIn {
    const fn on_engine<P: OnEngine>(c_name: &'static CStr) -> BuiltIn {
        BuiltIn {
            name: P::WHOLE_NAME,
            domain_ops: const { &DomainOf::<P>::OPS },
            share: |info| {
                let shared = Arc::new(P::share(info)?);
                let registrar = P::registrar(&shared);
                Ok(Opened { shared, registrar })
            },
            passive_ep: None,
            start: || Box::new(P::start()),
            version: P::VERSION,
            c_name,
            c_struct: OnceLock::new(),
        }
    }

    /// One with connected endpoints besides.
    const fn connected<P>(c_name: &'static CStr) -> BuiltIn
    where
        P: Connected<ConnectedTransport: EndpointTransport>,
    {
        let mut built_in = BuiltIn::on_engine::<P>(c_name);
        built_in.domain_ops = const { &ConnectedDomainOf::<P>::OPS };
        built_in.passive_ep = Some(pep::open::<P>);
        built_in
    }

    /// One whose endpoints are all connected and have no engine.
    const fn direct<P: Direct>(c_name: &'static CStr) -> BuiltIn {
        let mut built_in = BuiltIn::on_engine::<P>(c_name);
        built_in.domain_ops = const { &DirectDomainOf::<P>::OPS };
        built_in.passive_ep = Some(pep::open::<P>);
        built_in
    }

    /// One that has endpoints of datagrams besides, without an engine too.
    const fn datagrams<P: Datagrams>(c_name: &'static CStr) -> BuiltIn {
        let mut built_in = BuiltIn::direct::<P>(c_name);
        built_in.domain_ops = const { &DatagramDomainOf::<P>::OPS };
        built_in
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
