//! What rustc makes of `src/abi/types`; the questions are written by `build.rs`.

use crate::facts::Facts;
use core::mem::offset_of;

/// Bytes of the field that `place` names.
fn width<T, F>(_place: fn(*const T) -> *const F) -> usize {
    size_of::<F>()
}

include!(concat!(env!("OUT_DIR"), "/ours.rs"));

pub fn facts() -> Facts {
    let mut facts = Facts::default();
    ours(&mut facts);
    facts
}
