//! Whether a domain keeps registrations of memory that programs did not register, and how many: FI_MR_CACHE_*.

use super::NAME;
use crate::api::params;
use crate::sys::rdma::Pd;
use crate::transport::verbs::cache::{Cache, KernelMonitor, Most};
use std::sync::Arc;

/// As many as the C library keeps.
const COUNT: usize = 1024;

/// None: memory is registered for each transfer anew.
pub(super) fn open(pd: &Arc<Pd>) -> Option<Arc<Cache>> {
    let most = Most {
        count: params::core_size("mr_cache_max_count").unwrap_or(COUNT),
        bytes: params::core_size("mr_cache_max_size").unwrap_or(usize::MAX),
    };
    let monitor = params::core_string("mr_cache_monitor").ok();
    if most.count == 0 || !is_wanted(monitor.as_deref()) {
        log!(by NAME; Info, Mr, "long messages are registered anew each time, as FI_MR_CACHE_ variables say");
        return None;
    }
    match KernelMonitor::get() {
        Ok(monitor) => {
            log!(by NAME; Info, Mr, "registrations of long messages are kept; a userfaultfd tells of memory that goes");
            Some(Arc::new(Cache::new(Box::new(pd.clone()), monitor, most)))
        }
        Err(error) => {
            log!(by NAME; Info, Mr, "long messages are registered anew each time, as there is no userfaultfd: {error}");
            None
        }
    }
}

/// `monitor`: what the user asks for.
fn is_wanted(monitor: Option<&str>) -> bool {
    match monitor {
        None | Some("userfaultfd") => true,
        Some("disabled") => false,
        Some(other) => {
            log!(by NAME; Warn, Mr, "FI_MR_CACHE_MONITOR={other}: only userfaultfd and disabled are here; taking userfaultfd");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_word_turns_it_off() {
        let wanted = [None, Some("userfaultfd"), Some("memhooks"), Some("kdreg2"), Some("")];
        assert!(wanted.into_iter().all(is_wanted));
        assert!(!is_wanted(Some("disabled")));
    }
}
