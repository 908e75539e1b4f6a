//! A region of a peer's that is mapped here: what of it has pages, and where it was used last.
//!
//! Knows nothing of marks and generations, without which what it gives may not be touched. Called by `direct_access`.

use super::region_table::ShownRegion;
use crate::engine::op::RemotePart;
use crate::sys::backing::Mapping;
use crate::util::regions::Rights;

/// Bytes that get their pages at a time.
const CHUNK: usize = 64 << 10;

/// A piece of the peer's memory, where it is mapped here, as long as the region's generation is this.
#[derive(Clone, Copy, Debug, Default)]
pub struct MappedPiece {
    pub addr: usize,
    pub len: usize,
    pub entry: usize,
    pub generation: u64,
}

/// A region that is mapped here.
#[derive(Debug)]
pub struct MappedRegion {
    mapping: Mapping,
    entry: usize,
    generation: u64,
    /// By `number`: where it was used last with these rights.
    last_uses: [LastUse; 4],
    /// Chunks that have their pages, for reading and for writing.
    ready: [Box<[u64]>; 2],
}

/// Some of a region that may be used without a further look: it has pages, and lies here without a gap.
#[derive(Clone, Copy, Debug, Default)]
struct LastUse {
    /// As the peer names it.
    from: u64,
    len: u64,
    addr: usize,
}

#[inline(always)]
fn rights_index(rights: Rights) -> usize {
    usize::from(rights.read) | usize::from(rights.write) << 1
}

impl MappedRegion {
    pub fn new(mapping: Mapping, shown: &ShownRegion) -> MappedRegion {
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

    /// A piece, if it lies where the region was used last.
    #[inline(always)]
    pub fn piece(&self, part: &RemotePart, wanted: Rights) -> Option<MappedPiece> {
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

    /// The piece at byte `at`, which may be used so and has its pages. The next will mostly be near it.
    pub fn remember(&mut self, shown: &ShownRegion, at: usize, len: usize, wanted: Rights) -> MappedPiece {
        let [chunk, bit] = [at / CHUNK, at / CHUNK % 64];
        // As far as one word of bits tells.
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

    /// Whether these bytes have their pages.
    pub fn is_ready(&self, at: usize, len: usize, write: bool) -> bool {
        (at / CHUNK..=(at + len.max(1) - 1) / CHUNK).all(|chunk| self.has_pages(chunk, write))
    }

    fn has_pages(&self, chunk: usize, write: bool) -> bool {
        let bits = self.ready[usize::from(write)].get(chunk / 64);
        bits.is_some_and(|bits| bits & 1 << (chunk % 64) != 0)
    }

    /// False: the memory cannot be touched.
    #[cold]
    pub fn prepare(&mut self, at: usize, len: usize, write: bool) -> bool {
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
