//! A peer's region that is mapped here: which of its pages are populated, and where it was used last.
//!
//! Knows nothing of access marks and generations: `direct_access`, which calls this, sets the mark before it touches
//! what it gets here.

use super::region_table::ShownRegion;
use crate::engine::op::RemotePart;
use crate::sys::backing::Mapping;
use crate::util::regions::Rights;

/// Bytes that are populated at a time.
const CHUNK: usize = 64 << 10;

/// A piece of the peer's memory, as it is mapped here. To be used only while the region's generation is this one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MappedPiece {
    pub addr: usize,
    pub len: usize,
    pub entry: usize,
    pub generation: u64,
}

/// A region that is mapped here.
#[derive(Debug)]
pub(super) struct MappedRegion {
    mapping: Mapping,
    entry: usize,
    generation: u64,
    /// By `rights_index`: where the region was used last with these rights.
    last_uses: [LastUse; 4],
    /// A bit for each chunk that is populated, for reading and for writing.
    ready: [Box<[u64]>; 2],
}

/// A run of populated chunks within the region's bounds and rights: a piece that lies in it needs no other check.
#[derive(Clone, Copy, Debug, Default)]
struct LastUse {
    /// Remote address of its first byte.
    from: u64,
    len: u64,
    addr: usize,
}

#[inline(always)]
fn rights_index(rights: Rights) -> usize {
    usize::from(rights.read) | usize::from(rights.write) << 1
}

impl MappedRegion {
    pub(super) fn new(mapping: Mapping, shown: &ShownRegion) -> MappedRegion {
        let words = mapping.len().div_ceil(CHUNK).div_ceil(64);
        let ready = [vec![0; words].into_boxed_slice(), vec![0; words].into_boxed_slice()];
        MappedRegion {
            mapping,
            entry: shown.entry,
            generation: shown.generation,
            last_uses: Default::default(),
            ready,
        }
    }

    /// A piece, if it lies in the run that was used last with these rights.
    #[inline(always)]
    pub(super) fn piece(&self, part: &RemotePart, wanted: Rights) -> Option<MappedPiece> {
        let last = &self.last_uses[rights_index(wanted)];
        let at = part.addr.wrapping_sub(last.from);
        let fits = at < last.len && part.len as u64 <= last.len - at;
        fits.then(|| self.at(last.addr + at as usize, part.len))
    }

    #[inline(always)]
    fn at(&self, addr: usize, len: usize) -> MappedPiece {
        MappedPiece {
            addr,
            len,
            entry: self.entry,
            generation: self.generation,
        }
    }

    /// The piece at byte `at`, which the caller has checked and prepared. Remembers the populated run around it, in
    /// which the next piece will mostly lie.
    pub(super) fn remember(&mut self, shown: &ShownRegion, at: usize, len: usize, wanted: Rights) -> MappedPiece {
        let [chunk, bit] = [at / CHUNK, at / CHUNK % 64];
        // The run is not longer than one word of bits tells.
        if let Some(bits) = self.ready[usize::from(wanted.write)].get(chunk / 64) {
            let before = (bits << (63 - bit)).leading_ones() as usize;
            let behind = (bits >> bit).trailing_ones() as usize;
            let [from, to] = [(chunk + 1).saturating_sub(before) * CHUNK, (chunk + behind) * CHUNK];
            self.last_uses[rights_index(wanted)] = LastUse {
                from: shown.base.wrapping_add(from as u64),
                len: shown.len.min(to as u64).saturating_sub(from as u64),
                addr: self.mapping.address(from),
            };
        }
        self.at(self.mapping.address(at), len)
    }

    /// Whether these bytes are populated.
    pub(super) fn is_ready(&self, at: usize, len: usize, write: bool) -> bool {
        (at / CHUNK..=(at + len.max(1) - 1) / CHUNK).all(|chunk| self.has_pages(chunk, write))
    }

    fn has_pages(&self, chunk: usize, write: bool) -> bool {
        let bits = self.ready[usize::from(write)].get(chunk / 64);
        bits.is_some_and(|bits| bits & 1 << (chunk % 64) != 0)
    }

    /// Populates these bytes. False: they must not be touched, as that would raise SIGBUS.
    #[cold]
    pub(super) fn prepare(&mut self, at: usize, len: usize, write: bool) -> bool {
        for chunk in at / CHUNK..=(at + len.max(1) - 1) / CHUNK {
            if self.mapping.populate(chunk * CHUNK, CHUNK, write).is_err() {
                return false;
            }
            let bits = &mut self.ready[usize::from(write)];
            if let Some(bits) = bits.get_mut(chunk / 64) {
                *bits |= 1 << (chunk % 64);
            }
        }
        true
    }
}
