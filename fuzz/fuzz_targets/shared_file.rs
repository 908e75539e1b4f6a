//! An endpoint's file that another process has written to.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric::fuzz::shared_file(data));
