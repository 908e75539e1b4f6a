//! Requests for help with a copy.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric::fuzz::help(data));
