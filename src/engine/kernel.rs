//! The one door from the engine to the kernels of atomic operations.

use super::op::Form;
use crate::util::user::UserIov;

/// Whether there is such an operation, and how long its elements are.
pub(super) fn element(form: Form, code: u16) -> Option<usize> {
    match (code >> 8, code & 255, form) {
        (7, 2, _) => Some(8),
        _ => None,
    }
}

/// Whether an operation only reads.
pub(super) fn only_reads(code: u16) -> bool {
    code & 255 == 10
}

/// Does it: all of `target`, whose pieces hold whole elements. `compare` and `result` are as long, or empty if the form
/// has none.
pub(super) fn execute(_form: Form, _code: u16, target: &UserIov, operand: &[u8], _compare: &[u8], result: &mut [u8]) {
    let mut at = 0;
    for part in target.parts() {
        for at_part in (0..part.len()).step_by(8) {
            let piece = part.part(at_part, 8);
            let mut old = [0; 8];
            piece.read(&mut old);
            let mut with = [0; 8];
            with.copy_from_slice(operand.get(at..at + 8).unwrap_or(&[0; 8]));
            piece.write(
                &u64::from_le_bytes(old)
                    .wrapping_add(u64::from_le_bytes(with))
                    .to_le_bytes(),
            );
            if let Some(place) = result.get_mut(at..at + 8) {
                place.copy_from_slice(&old);
            }
            at += 8;
        }
    }
}
