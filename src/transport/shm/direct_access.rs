//! Direct access: working on a peer's registered memory without the peer. The initiator's side of `region_table`.
//!
//! A region is looked up in the peer's table when its key is first used. If a file lies behind its memory that can be
//! opened here, the region is mapped, and bytes are copied and atomics executed in place. Else the kernel copies what
//! is long enough. Everything else, every refusal included, is left to the engine, which asks the peer.
//!
//! What was pushed to a peer takes effect before what follows it, so nothing is done here until the peer has read all
//! of that. A region may be closed at any moment; `region_table` tells how its owner waits for those who are at it.
//!
//! Called by `ShmTransport` and `recall`. Knows nothing of operations: what is done in place is the caller's closure.

use super::config::MAX_BODY;
use super::layout::{FileHeader, MAX_ENTRIES};
use super::mapped_region::{MappedPiece, MappedRegion};
use super::outbound::Outbound;
use super::proof::Retry;
use super::region_table::{self, IN_SEVERAL, ShownRegion, VISIT};
use crate::engine::op::{Access, RemotePart};
use crate::sys::backing::{self, Mapping};
use crate::sys::process_vm::{self, Range};
use crate::util::hash::QuickMap;
use crate::util::regions::Rights;
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};

/// The most bytes that the kernel copies under one mark: for so long may closing the region have to wait.
const STRETCH: usize = 1 << 20;
/// The most keys that are remembered. There may be keys among them without a region.
const CACHED_MOST: usize = 2 * MAX_ENTRIES;
/// Operations between two checks that the peer is alive, as mapped memory outlives its owner.
pub(super) const ALIVE_CHECK_EVERY: u32 = 4096;

/// What is known of the peer's regions that were used, or asked for.
#[derive(Debug, Default)]
pub(super) struct RegionCache {
    list: Vec<CachedRegion>,
    /// Places in `list`.
    by_key: QuickMap<u64, usize>,
    last: usize,
    /// Our mark's value between two visits to the peer's memory, a multiple of `VISIT`. During one, the entry is added.
    visits: u64,
    /// When `visits` reaches this, the peer is checked for being alive.
    alive_check_at: u64,
}

#[derive(Debug)]
struct CachedRegion {
    key: u64,
    /// None: the table had no such key when `changes` was its count of changes.
    shown: Option<ShownRegion>,
    changes: u64,
    mapped: Option<MappedRegion>,
    /// When to try to map it, if that failed for a reason that may pass, or was put off.
    retry: Retry,
}

impl CachedRegion {
    /// Whether the region is still shown, and not worth another try: its memory is private. For one that is not mapped.
    #[inline(always)]
    fn cannot_be_mapped(&self, header: &FileHeader) -> bool {
        let shown = self.shown.filter(|_| !self.retry.is_pending());
        shown.is_some_and(|shown| header.generation(shown.entry) == shown.generation)
    }

    fn take(&mut self, mapped: Result<MappedRegion, Unmapped>) {
        match mapped {
            Ok(_) => {}
            Err(Unmapped::Private) => self.retry = Retry::default(),
            Err(Unmapped::Failed) => self.retry.refused(),
        }
        self.mapped = mapped.ok();
    }
}

/// Why a region is not mapped here.
enum Unmapped {
    /// Its memory is private to its owner, or the rights of its file do not suffice.
    Private,
    /// Something that may pass, such as a lack of descriptors.
    Failed,
}

impl ShownRegion {
    /// The offset of a piece in the region, if it is within bounds and rights.
    fn offset(&self, part: &RemotePart, wanted: Rights) -> Option<usize> {
        let at = part.addr.checked_sub(self.base)?;
        let fits = at <= self.len && part.len as u64 <= self.len - at;
        (fits && self.rights.allow(wanted)).then_some(at as usize)
    }
}

pub(super) fn rights(access: Access) -> Rights {
    match access {
        Access::Read => Rights::READ,
        Access::Write => Rights::WRITE,
    }
}

/// Our access mark in the peer's file is set, until `leave`.
struct Marked<'a> {
    mark: &'a AtomicU64,
    even: u64,
}

impl Marked<'_> {
    #[inline(always)]
    fn leave(self) {
        self.mark.store(self.even, Ordering::Release);
    }
}

/// A piece of a region that the kernel may copy from or to while the region's generation is this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteRange {
    pub part: RemotePart,
    pub access: Access,
    addr: u64,
    entry: usize,
    generation: u64,
}

impl RegionCache {
    /// Sets our mark; `place` is `mark_in_entry` or `IN_SEVERAL`. `fenced`: the owner has the kernel run no barrier over
    /// us, as it cannot or need not.
    #[inline(always)]
    fn enter<'a>(&mut self, mark: &'a AtomicU64, place: u64, fenced: bool) -> Marked<'a> {
        let marked = self.visits + place;
        let even = self.visits + VISIT;
        self.visits = even;
        // SYNC POINT reach: the mark is set before the generation is read.
        mark.store(marked, Ordering::Relaxed);
        if fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        Marked { mark, even }
    }

    #[inline(always)]
    fn get(&self) -> Option<&CachedRegion> {
        self.list.get(self.last)
    }

    fn get_mut(&mut self) -> Option<&mut CachedRegion> {
        self.list.get_mut(self.last)
    }

    /// Forgets all regions if `more` of them would be too many.
    fn make_room(&mut self, more: usize) {
        if self.list.len() + more > CACHED_MOST {
            self.list.clear();
            self.by_key.clear();
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Makes everything that failed due to be tried again.
    #[cfg(test)]
    pub fn make_due(&mut self) {
        self.list.iter_mut().for_each(|cached| cached.retry.make_due());
    }

    fn forget(&mut self, at: usize) {
        if at >= self.list.len() {
            return;
        }
        let gone = self.list.swap_remove(at);
        self.by_key.remove(&gone.key);
        if let Some(moved) = self.list.get(at) {
            self.by_key.insert(moved.key, at);
        }
    }

    /// Whether the peer must be checked for being alive: before the first visit, and now and then.
    #[inline(always)]
    pub(super) fn alive_check_is_due(&self) -> bool {
        self.visits >= self.alive_check_at
    }
}

impl Outbound {
    /// See `Transport::reach`.
    #[inline(always)]
    pub(super) fn reach<R>(&mut self, part: &RemotePart, wanted: Rights, work: impl FnOnce(UserBuf) -> R) -> Option<R> {
        let piece = self.find(part, wanted)?;
        // After `find`, which takes long when it maps: the peer may have read more by now.
        if !self.may_go_ahead() {
            return None;
        }
        let Some(marked) = self.enter_all(&[piece]) else {
            self.forget_closed();
            return None;
        };
        // SAFETY: mapped as long as the cached region, and with pages; the owner leaves it as it is while our mark is
        // set.
        let result = work(unsafe { UserBuf::new(piece.addr as *mut u8, piece.len) });
        marked.leave();
        Some(result)
    }

    /// See `Transport::reach_all`.
    #[inline(never)]
    pub(super) fn reach_all<R>(
        &mut self,
        parts: &[RemotePart],
        wanted: Rights,
        work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        // Once for all: finding the last piece must not unmap the first one.
        self.cache.make_room(parts.len());
        let mut found = [MappedPiece::default(); IOV_LIMIT];
        let pieces = found.get_mut(..parts.len())?;
        for (piece, part) in pieces.iter_mut().zip(parts) {
            *piece = self.find(part, wanted)?;
        }
        // SAFETY: as in `reach`; no piece was unmapped meanwhile, as all were found and room was made before.
        let buffers = pieces
            .iter()
            .map(|piece| unsafe { UserBuf::new(piece.addr as *mut u8, piece.len) });
        let memory = UserIov::new(buffers)?;
        if !self.may_go_ahead() {
            return None;
        }
        let Some(marked) = self.enter_all(pieces) else {
            self.forget_closed();
            return None;
        };
        let result = work(&memory);
        marked.leave();
        Some(result)
    }

    /// Where a piece of the peer's memory is mapped here.
    #[inline(always)]
    fn find(&mut self, part: &RemotePart, wanted: Rights) -> Option<MappedPiece> {
        match self.cache.get().filter(|cached| cached.key == part.key) {
            Some(CachedRegion {
                mapped: Some(mapped), ..
            }) => mapped.piece(part, wanted),
            Some(cached) if cached.cannot_be_mapped(&self.header) => return None,
            _ => None,
        }
        .or_else(|| self.find_elsewhere(*part, wanted))
    }

    /// `find` for another region than the last, or another part of it. Takes its arguments by value, so that `find` can
    /// keep them in registers.
    #[inline(never)]
    fn find_elsewhere(&mut self, part: RemotePart, wanted: Rights) -> Option<MappedPiece> {
        if self.cache.get().is_none_or(|cached| cached.key != part.key) {
            self.look_up(part.key, part.len < MAX_BODY);
        }
        let cached = self.cache.get()?;
        let (Some(shown), Some(mapped)) = (cached.shown, &cached.mapped) else {
            self.look_again();
            return None;
        };
        let at = shown.offset(&part, wanted)?;
        let ready = mapped.is_ready(at, part.len, wanted.write) || self.prepare(at, part.len, wanted.write);
        let mapped = self.cache.get_mut()?.mapped.as_mut().filter(|_| ready)?;
        Some(mapped.remember(&shown, at, part.len, wanted))
    }

    /// Sets our mark, if the regions of all pieces are still shown.
    #[inline(always)]
    fn enter_all(&mut self, pieces: &[MappedPiece]) -> Option<Marked<'_>> {
        let place = match pieces {
            [only] => region_table::mark_in_entry(only.entry),
            _ => IN_SEVERAL,
        };
        let marked = self.cache.enter(self.mark.word(), place, self.fence);
        for piece in pieces {
            if self.header.generation(piece.entry) != piece.generation {
                marked.leave();
                return None;
            }
        }
        Some(marked)
    }

    /// The piece, if it is in a region that the kernel may copy from or to, whatever the peer has read.
    pub(super) fn copyable_now(&mut self, part: &RemotePart, access: Access) -> Option<RemoteRange> {
        if self.cache.get().is_none_or(|cached| cached.key != part.key) {
            self.look_up(part.key, false);
        }
        let shown = self.cache.get()?.shown?;
        let at = shown.offset(part, rights(access))?;
        if !self.is_proved() {
            return None;
        }
        Some(RemoteRange {
            part: *part,
            access,
            addr: shown.addr.wrapping_add(at as u64),
            entry: shown.entry,
            generation: shown.generation,
        })
    }

    /// Has the kernel copy all of it. False: nothing, or not all, was copied.
    pub(super) fn copy_all(&mut self, range: &RemoteRange, local: &UserIov) -> bool {
        let all = range.part.len;
        (0..all)
            .step_by(STRETCH)
            .all(|at| self.copy_some(range, local, at, STRETCH.min(all - at)))
    }

    /// Has the kernel copy some of it, if the region is still shown.
    pub(super) fn copy_some(&mut self, range: &RemoteRange, local: &UserIov, at: usize, len: usize) -> bool {
        let place = region_table::mark_in_entry(range.entry);
        // Beside a call of the kernel a fence takes no time, and without it whoever closes the region had to call.
        let marked = self.cache.enter(self.mark.word(), place, true);
        let copied =
            self.header.generation(range.entry) == range.generation && self.copy_stretch(range, local, at, len);
        marked.leave();
        copied
    }

    fn copy_stretch(&self, range: &RemoteRange, local: &UserIov, at: usize, len: usize) -> bool {
        let mut ours = [Range { addr: 0, len: 0 }; IOV_LIMIT];
        let mut count = 0;
        for (range, piece) in ours.iter_mut().zip(local.slices(at, len)) {
            *range = Range {
                addr: piece.addr() as u64,
                len: piece.len() as u64,
            };
            count += 1;
        }
        let ours = ours.get(..count).unwrap_or_default();
        let theirs = [Range {
            addr: range.addr.wrapping_add(at as u64),
            len: len as u64,
        }];
        let pid = self.pid() as i32;
        // SAFETY: `local` is valid until the operation has ended, as was promised to `UserBuf::new`; the peer's memory
        // is a region that the peer shows with these rights, and does not take back while our mark is set.
        let copied = unsafe {
            match range.access {
                Access::Read => process_vm::read(pid, &theirs, ours),
                Access::Write => process_vm::write(pid, &theirs, ours),
            }
        };
        copied.is_ok_and(|copied| copied == len)
    }

    /// The peer was just seen alive. Also tells the peer, before the first visit, that marks must be looked at.
    pub(super) fn note_alive(&mut self) {
        self.header.direct_access().store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.cache.alive_check_at = self.cache.visits + VISIT * u64::from(ALIVE_CHECK_EVERY);
    }

    /// Forgets the last region if it is stale; maps it now if that failed before, or was put off, and is due.
    fn look_again(&mut self) {
        let Some(cached) = self.cache.get() else { return };
        if self.is_stale(cached) {
            return self.cache.forget(self.cache.last);
        }
        let is_due = cached.retry.is_pending() && cached.retry.is_due();
        let Some(shown) = cached.shown.filter(|_| is_due) else {
            return;
        };
        let mapped = self.map(&shown);
        if let Some(cached) = self.cache.get_mut() {
            cached.take(mapped);
        }
    }

    fn is_stale(&self, cached: &CachedRegion) -> bool {
        match &cached.shown {
            Some(shown) => self.header.generation(shown.entry) != shown.generation,
            None => self.header.changes().load(Ordering::Acquire) != cached.changes,
        }
    }

    /// Unmaps regions that are closed.
    #[cold]
    pub(super) fn forget_closed(&mut self) {
        for at in (0..self.cache.list.len()).rev() {
            if self.cache.list.get(at).is_some_and(|cached| self.is_stale(cached)) {
                self.cache.forget(at);
            }
        }
    }

    /// Makes the region of this key the last used one, and looks it up in the peer's table if it is not known. `map`: if
    /// it is not known, it is mapped at once. Otherwise that waits for the second use: much memory is registered for one
    /// long operation, and whether it can be mapped takes as long to find out as copying 16 KiB.
    #[cold]
    fn look_up(&mut self, key: u64, map: bool) {
        if let Some(place) = self.cache.by_key.get(&key) {
            self.cache.last = *place;
            return;
        }
        self.cache.make_room(1);
        // Read before the table is: a region that is shown later changes the count.
        let changes = self.header.changes().load(Ordering::Acquire);
        let shown = self.header.find_entry(key);
        let mapped = shown.filter(|_| map).map(|shown| self.map(&shown));
        self.cache.last = self.cache.list.len();
        self.cache.by_key.insert(key, self.cache.last);
        let mut cached = CachedRegion {
            key,
            shown,
            changes,
            mapped: None,
            retry: if map { Retry::default() } else { Retry::put_off() },
        };
        if let Some(mapped) = mapped {
            cached.take(mapped);
        }
        self.cache.list.push(cached);
    }

    fn map(&mut self, shown: &ShownRegion) -> Result<MappedRegion, Unmapped> {
        let mapped = self.try_map(shown).map(|mapping| MappedRegion::new(mapping, shown));
        let pid = self.pid();
        let ShownRegion { key, len, .. } = shown;
        let how = match mapped {
            Ok(_) => "mapped",
            Err(Unmapped::Private) => "not shared: large operations are copied by the kernel, small ones are sent",
            Err(Unmapped::Failed) => {
                "cannot be mapped now, which is tried again later: large operations are copied by the kernel, small ones \
                 are sent"
            }
        };
        (self.debug)(&format!("region {key:#x} of process {pid}, {len} bytes: {how}"));
        mapped
    }

    fn try_map(&mut self, shown: &ShownRegion) -> Result<Mapping, Unmapped> {
        let pid = self.pid();
        let write = shown.rights.write;
        if shown.len == 0 {
            return Err(Unmapped::Private);
        }
        if !self.is_known() {
            return Err(Unmapped::Failed);
        }
        let file = backing::backing(pid, shown.addr, shown.len).map_err(|_| Unmapped::Failed)?;
        let file = file.filter(|file| file.writable || !write).ok_or(Unmapped::Private)?;
        // SYNC POINT reach: the owner sees that it is mapped, or we see that it is hidden.
        self.header.note_mapping(shown.entry);
        fence(Ordering::SeqCst);
        let opened = file.open(pid, write).ok_or(Unmapped::Failed)?;
        let mapping = file.map(&opened, shown.len, write).map_err(|_| Unmapped::Failed)?;
        #[cfg(tsan)]
        let mapping = mapping.at_home(pid, shown.addr);
        Ok(mapping)
    }

    /// Has the last used region's pages populated. If they cannot be, the region is treated as not mapped.
    #[cold]
    fn prepare(&mut self, at: usize, len: usize, write: bool) -> bool {
        let Some(cached) = self.cache.get_mut() else {
            return false;
        };
        let ready = cached
            .mapped
            .as_mut()
            .is_some_and(|mapped| mapped.prepare(at, len, write));
        if !ready {
            cached.take(Err(Unmapped::Failed));
        }
        ready
    }
}
