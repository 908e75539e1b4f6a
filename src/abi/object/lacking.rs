//! Op tables of what a type lacks: every slot answers -FI_ENOSYS, none is a null pointer.
//!
//! One function stands in all slots of a return type: whatever the arguments, it looks at none, which the calling
//! convention of every platform of ours allows.

use crate::abi::types::*;
use core::ffi::c_int;
use libc::ssize_t;

unsafe extern "C" fn no_size() -> ssize_t {
    -FI_ENOSYS as ssize_t
}

unsafe extern "C" fn no_int() -> c_int {
    -FI_ENOSYS
}

/// A slot of any signature that answers ssize_t.
macro_rules! no_size {
    () => {
        // SAFETY: both are pointers to C functions; the one called ignores what it is passed.
        Some(unsafe { core::mem::transmute::<unsafe extern "C" fn() -> ssize_t, _>(no_size) })
    };
}

/// A slot of any signature that answers int.
macro_rules! no_int {
    () => {
        // SAFETY: as above.
        Some(unsafe { core::mem::transmute::<unsafe extern "C" fn() -> c_int, _>(no_int) })
    };
}

pub static RMA: fi_ops_rma = fi_ops_rma {
    size: size_of::<fi_ops_rma>(),
    read: no_size!(),
    readv: no_size!(),
    readmsg: no_size!(),
    write: no_size!(),
    writev: no_size!(),
    writemsg: no_size!(),
    inject: no_size!(),
    writedata: no_size!(),
    injectdata: no_size!(),
};

pub static ATOMIC: fi_ops_atomic = fi_ops_atomic {
    size: size_of::<fi_ops_atomic>(),
    write: no_size!(),
    writev: no_size!(),
    writemsg: no_size!(),
    inject: no_size!(),
    readwrite: no_size!(),
    readwritev: no_size!(),
    readwritemsg: no_size!(),
    compwrite: no_size!(),
    compwritev: no_size!(),
    compwritemsg: no_size!(),
    writevalid: no_int!(),
    readwritevalid: no_int!(),
    compwritevalid: no_int!(),
};

pub static COLLECTIVE: fi_ops_collective = fi_ops_collective {
    size: size_of::<fi_ops_collective>(),
    barrier: no_size!(),
    broadcast: no_size!(),
    alltoall: no_size!(),
    allreduce: no_size!(),
    allgather: no_size!(),
    reduce_scatter: no_size!(),
    reduce: no_size!(),
    scatter: no_size!(),
    gather: no_size!(),
    msg: no_size!(),
    barrier2: no_size!(),
};

pub const CM: fi_ops_cm = fi_ops_cm {
    size: size_of::<fi_ops_cm>(),
    setname: no_int!(),
    getname: no_int!(),
    getpeer: no_int!(),
    connect: no_int!(),
    listen: no_int!(),
    accept: no_int!(),
    reject: no_int!(),
    shutdown: no_int!(),
    join: no_int!(),
};

pub const EP: fi_ops_ep = fi_ops_ep {
    size: size_of::<fi_ops_ep>(),
    cancel: no_size!(),
    getopt: no_int!(),
    setopt: no_int!(),
    tx_ctx: no_int!(),
    rx_ctx: no_int!(),
    rx_size_left: no_size!(),
    tx_size_left: no_size!(),
};

pub const DOMAIN: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open: no_int!(),
    cq_open: no_int!(),
    endpoint: no_int!(),
    scalable_ep: no_int!(),
    cntr_open: no_int!(),
    poll_open: no_int!(),
    stx_ctx: no_int!(),
    srx_ctx: no_int!(),
    query_atomic: no_int!(),
    query_collective: no_int!(),
    endpoint2: no_int!(),
};

pub const FABRIC: fi_ops_fabric = fi_ops_fabric {
    size: size_of::<fi_ops_fabric>(),
    domain: no_int!(),
    passive_ep: no_int!(),
    eq_open: no_int!(),
    wait_open: no_int!(),
    trywait: no_int!(),
    domain2: no_int!(),
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Op tables are a size and then slots, so they can be walked.
    fn slots<T>(table: &T) -> &[usize] {
        // SAFETY: a table is `size_of::<T>()` bytes of words.
        let words = unsafe { core::slice::from_raw_parts((&raw const *table).cast::<usize>(), size_of::<T>() / 8) };
        assert_eq!(words[0], size_of::<T>());
        &words[1..]
    }

    #[test]
    fn every_slot_answers() {
        let (no_size, no_int) = (no_size as *const () as usize, no_int as *const () as usize);
        for table in [
            slots(&RMA),
            slots(&ATOMIC),
            slots(&COLLECTIVE),
            slots(&CM),
            slots(&EP),
            slots(&DOMAIN),
            slots(&FABRIC),
        ] {
            assert!(!table.is_empty() && table.iter().all(|slot| [no_size, no_int].contains(slot)));
        }
        let ep = core::ptr::null_mut();
        // SAFETY: the functions look at nothing.
        unsafe {
            let context = core::ptr::null_mut();
            assert_eq!(
                RMA.read.unwrap()(ep, context, 1, context, 2, 3, 4, context),
                -FI_ENOSYS as ssize_t
            );
            assert_eq!(CM.listen.unwrap()(core::ptr::null_mut()), -FI_ENOSYS);
        }
    }
}
