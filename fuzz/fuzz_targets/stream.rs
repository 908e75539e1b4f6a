//! What strangers say to an endpoint of provider tcp.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric::fuzz::stream(data));
