//! How large struct fi_info and its parts were in each version of the ABI.
//!
//! Fields were only ever appended, so an older struct is a prefix of today's, and today's of a newer one; its size says
//! all. Everything that reads a struct it did not allocate goes through here, so that it never reads past the end of an
//! older caller's. Called by `info`, `compat` and `plugin`.

use super::types::*;

/// Bytes of each struct that a caller of one ABI version knows.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    pub info: usize,
    pub tx: usize,
    pub rx: usize,
    pub ep: usize,
    pub domain: usize,
    pub fabric: usize,
}

pub(super) const ABI_1_0: Layout = Layout {
    info: 112,
    tx: 72,
    rx: 64,
    ep: 80,
    domain: 120,
    fabric: 28,
};
pub(super) const ABI_1_1: Layout = Layout {
    ep: 96,
    domain: 184,
    fabric: 32,
    ..ABI_1_0
};
pub(super) const ABI_1_2: Layout = Layout { info: 120, ..ABI_1_1 };
pub(super) const ABI_1_3: Layout = Layout {
    tx: 80,
    domain: 192,
    ..ABI_1_2
};
pub(super) const ABI_1_7: Layout = Layout { domain: 200, ..ABI_1_3 };
pub(super) const ABI_1_8: Layout = Layout { domain: 208, ..ABI_1_7 };
pub(super) const CURRENT: Layout = Layout { domain: 224, ..ABI_1_8 };
/// Of the C library after 2.6.0, which programs are linked against already: a pointer and a count for accelerators, which
/// no provider here has. Their owners find zero there.
pub(super) const ABI_1_10: Layout = Layout {
    ep: 104,
    domain: 232,
    ..CURRENT
};

const _: () = assert!(
    CURRENT.info == size_of::<fi_info>()
        && CURRENT.tx == size_of::<fi_tx_attr>()
        && CURRENT.rx == size_of::<fi_rx_attr>()
        && CURRENT.ep == size_of::<fi_ep_attr>()
        && CURRENT.domain == size_of::<fi_domain_attr>()
        && CURRENT.fabric == size_of::<fi_fabric_attr>()
);

/// FI_VERSION as a function.
pub(super) const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

impl Layout {
    /// What code written for an API version may have allocated: the ABI that the first release of that version had.
    pub fn of_api(api: u32) -> &'static Layout {
        const FIRST: [(u32, &Layout); 6] = [
            (version(2, 5), &CURRENT),
            (version(2, 0), &ABI_1_8),
            (version(1, 20), &ABI_1_7),
            (version(1, 9), &ABI_1_3),
            (version(1, 7), &ABI_1_2),
            (version(1, 5), &ABI_1_1),
        ];
        FIRST
            .iter()
            .find(|(first, _)| api >= *first)
            .map_or(&ABI_1_0, |(_, layout)| layout)
    }
}

/// Copies the part of a struct that its owner knows; what lies beyond is zero.
///
/// # Safety
/// `from` points to `known` readable bytes, and all-zero bytes are a valid `T`.
pub(super) unsafe fn prefix<T: Copy>(from: *const T, known: usize) -> T {
    let mut whole = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the caller vouches for `known` bytes at `from`; `whole` holds at least as many as are copied, and the
    // rest of it is zero, which is a valid T.
    unsafe {
        let bytes = known.min(size_of::<T>());
        core::ptr::copy_nonoverlapping(from.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), bytes);
        whole.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_find_the_abi_of_their_first_release() {
        let rows = [
            (version(1, 0), &ABI_1_0),
            (version(1, 4), &ABI_1_0),
            (version(1, 5), &ABI_1_1),
            (version(1, 8), &ABI_1_2),
            (version(1, 9), &ABI_1_3),
            (version(1, 19), &ABI_1_3),
            (version(1, 20), &ABI_1_7),
            (version(1, 22), &ABI_1_7),
            (version(2, 0), &ABI_1_8),
            (version(2, 4), &ABI_1_8),
            (version(2, 5), &CURRENT),
            (version(2, 6), &CURRENT),
            (version(9, 0), &CURRENT),
        ];
        for (api, layout) in rows {
            assert_eq!(Layout::of_api(api), layout, "{api:#x}");
        }
    }

    #[test]
    fn a_prefix_ends_where_its_owner_says() {
        // SAFETY: numbers, for which zero is a value.
        let zeros: fi_tx_attr = unsafe { core::mem::zeroed() };
        let full = fi_tx_attr {
            tclass: 7,
            rma_iov_limit: 3,
            ..zeros
        };
        // SAFETY: `full` is a whole struct.
        let old = unsafe { prefix(&full, ABI_1_0.tx) };
        assert_eq!((old.rma_iov_limit, old.tclass), (3, 0));
    }
}
