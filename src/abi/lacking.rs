//! Op tables for the calls that an object does not have: every slot answers -FI_ENOSYS, none is a null pointer.
//!
//! An object's table starts from one of these and puts its own slots over it. One function is in all slots: it looks at
//! no argument, and its answer is right as an int and as an ssize_t, which the calling convention of our platforms
//! allows.

use crate::abi::types::*;
use core::mem::MaybeUninit;
use libc::ssize_t;

type Slot = Option<unsafe extern "C" fn() -> ssize_t>;

unsafe extern "C" fn no() -> ssize_t {
    -FI_ENOSYS as ssize_t
}

/// # Safety
/// The type is a size followed by slots, which are pointers to C functions that answer an int or an ssize_t.
unsafe trait Table: Sized {
    const LACKING: Self = {
        let mut table = MaybeUninit::<Self>::uninit();
        let words = table.as_mut_ptr().cast::<usize>();
        let mut slot = 1;
        // SAFETY: every word of the table is written, with what the trait promises to be there.
        unsafe {
            words.write(size_of::<Self>());
            while slot < size_of::<Self>() / size_of::<Slot>() {
                words.add(slot).cast::<Slot>().write(Some(no));
                slot += 1;
            }
            table.assume_init()
        }
    };
}

// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_msg {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_tagged {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_rma {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_atomic {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_collective {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_cm {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_ep {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_domain {}
// SAFETY: a size and slots, in the C library's headers too.
unsafe impl Table for fi_ops_fabric {}

pub(super) static MSG: fi_ops_msg = Table::LACKING;
pub(super) static TAGGED: fi_ops_tagged = Table::LACKING;
pub(super) static RMA: fi_ops_rma = Table::LACKING;
pub(super) static ATOMIC: fi_ops_atomic = Table::LACKING;
pub(super) static COLLECTIVE: fi_ops_collective = Table::LACKING;

pub(super) const FID: fi_ops = Table::LACKING;
pub(super) const CM: fi_ops_cm = Table::LACKING;
pub(super) const EP: fi_ops_ep = Table::LACKING;
pub(super) const DOMAIN: fi_ops_domain = Table::LACKING;
pub(super) const FABRIC: fi_ops_fabric = Table::LACKING;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_answers() {
        fn all_slots<T: Table>(table: &T) {
            // SAFETY: a table is a size and then slots.
            let words = unsafe {
                core::slice::from_raw_parts((&raw const *table).cast::<usize>(), size_of::<T>() / size_of::<usize>())
            };
            assert_eq!(words[0], size_of::<T>());
            assert!(words.len() > 1 && words[1..].iter().all(|&slot| slot == no as *const () as usize));
        }
        all_slots(&FID);
        all_slots(&MSG);
        all_slots(&TAGGED);
        all_slots(&RMA);
        all_slots(&ATOMIC);
        all_slots(&COLLECTIVE);
        all_slots(&CM);
        all_slots(&EP);
        all_slots(&DOMAIN);
        all_slots(&FABRIC);
        let (ep, context) = (core::ptr::null_mut(), core::ptr::null_mut());
        // SAFETY: the function looks at nothing.
        unsafe {
            let answer = RMA.read.unwrap()(ep, context, 1, context, 2, 3, 4, context);
            assert_eq!(answer, -FI_ENOSYS as ssize_t);
            assert_eq!(CM.listen.unwrap()(core::ptr::null_mut()), -FI_ENOSYS);
        }
    }
}
