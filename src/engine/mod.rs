//! The protocol, written once for every transport.

#![forbid(unsafe_code)]

pub mod matching;
