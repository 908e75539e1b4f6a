//! Inline calls of `rdma/providers/fi_prov.h`, one row each: see the module above for how a row reads.

use super::*;

wrappers! {
    fn fi_param_get_str(provider: *mut fi_provider, param_name: *const c_char, value: *mut *mut c_char) -> c_int {
        rust { crate::abi::entry::fi_param_get(provider, param_name, value.cast()) }
        c "return fi_param_get(provider, param_name, value);"
    }
    fn fi_param_get_int(provider: *mut fi_provider, param_name: *const c_char, value: *mut c_int) -> c_int {
        rust { crate::abi::entry::fi_param_get(provider, param_name, value.cast()) }
        c "return fi_param_get(provider, param_name, value);"
    }
    fn fi_param_get_bool(provider: *mut fi_provider, param_name: *const c_char, value: *mut c_int) -> c_int {
        rust { crate::abi::entry::fi_param_get(provider, param_name, value.cast()) }
        c "return fi_param_get(provider, param_name, value);"
    }
    fn fi_param_get_size_t(provider: *mut fi_provider, param_name: *const c_char, value: *mut size_t) -> c_int {
        rust { crate::abi::entry::fi_param_get(provider, param_name, value.cast()) }
        c "return fi_param_get(provider, param_name, value);"
    }
}
