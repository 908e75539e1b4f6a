//! FI_PROVIDER_PATH.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric::fuzz::provider_path(data));
