//! What a provider has to do with registered memory, if it has: a card must know memory before it touches it.
//!
//! A registrar belongs to a domain, as a card's protection domain does. The provider has it in what the endpoints of a
//! domain share (`OnEngine::registrar`), where their transports find it too. `api::mr` calls it for each fi_mr_reg and
//! fi_close; a provider without one (shared memory) is never asked.
//!
//! Descriptors. A program passes what fi_mr_desc gave with each buffer. They are not carried through the engine with
//! the operation: each would make every buffer longer, in every queue and on every fast path, for transports that do
//! not look. The shim shows them to the registrar before the operation begins (`lend`), and only with a provider whose
//! transport says that it wants them (`EndpointTransport::DESCRIPTORS`, a constant). What the transport needs later,
//! the card's key for an address, it looks up in its registrar: a descriptor names a registration and no operation, and
//! is good for exactly as long as that is.

use crate::api::errno::Result;
use crate::util::regions::Rights;
use crate::util::user::UserIov;

/// What a registrar makes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// What fi_mr_desc gives. Not 0, which stands for no descriptor.
    pub desc: usize,
    /// The key that peers must use, where the provider chooses it (FI_MR_PROV_KEY). None: it has no say.
    pub key: Option<u64>,
}

pub trait Registrar: Send + Sync {
    /// fi_mr_reg. The memory is used for what `access` says, and by peers as `rights` allows: less than `access` has,
    /// if somebody counts what they do, as a card tells nobody. An error is what the program gets.
    fn register(&self, memory: &UserIov, access: u64, rights: Rights) -> Result<Registered>;

    /// fi_close. No card touches the memory after this returns.
    fn deregister(&self, registered: &Registered);

    /// An operation comes that has memory at this address, of which the program says that it has this descriptor.
    /// False: it has not.
    fn lend(&self, addr: usize, desc: usize) -> bool;
}
