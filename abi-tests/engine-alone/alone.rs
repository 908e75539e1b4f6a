//! A crate of nothing but the engine and what it may stand on.
#[path = "../../src/engine/mod.rs"]
pub mod engine;
#[path = "../../src/mem/mod.rs"]
pub mod mem;
#[path = "../../src/util/mod.rs"]
pub mod util;
