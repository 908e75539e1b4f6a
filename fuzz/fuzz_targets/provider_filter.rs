//! FI_PROVIDER.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric::fuzz::provider_filter(data));
