//! What a peer may send, and in which order.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fabric::fuzz::packets(data));
