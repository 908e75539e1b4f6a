//! Working on a peer's memory without the peer: the initiator's side of its table of regions (`board`).
//!
//! A region is looked up in the peer's table when it is first used. If a file lies behind its memory that can be opened
//! here, it is mapped, and from then on bytes are copied and atomics executed as in memory of our own; what is large is
//! else copied by the kernel. Everything that is not so simple, refusals too, is left to the engine, which asks the peer.
//!
//! What a peer has been sent is carried out before what follows it, so nothing is done here until the peer has looked at
//! all of that. A region may be closed at any moment: see `board` for how its owner knows that we are done.

use super::board::{self, AT_SEVERAL, Shown, TURN};
use super::layout::{Header, MAX_SLOTS};
use super::near::{Near, Spot};
use super::outbound::Outbound;
use super::proof::Again;
use crate::engine::op::{Access, RemotePart};
use crate::sys::backing::{self, Mapping};
use crate::sys::process_vm::{self, Range};
use crate::util::hash::QuickMap;
use crate::util::regions::Rights;
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};

/// Bytes that the kernel copies while the owner of a region that is being closed would wait.
const STRETCH: usize = 1 << 20;
/// What is known of so many keys at most, of which there may be no regions.
const VIEWS_MOST: usize = 2 * MAX_SLOTS;
/// Operations until it is asked whether the peer lives, whose memory would outlive it.
pub const TIRED_AFTER: u32 = 4096;

/// The regions of a peer that were used.
#[derive(Debug, Default)]
pub struct Views {
    list: Vec<View>,
    /// By key.
    places: QuickMap<u64, usize>,
    last: usize,
    /// What our mark says when we leave the peer's memory next; while we are at it, it says where.
    turn: u64,
    /// With this turn it is seen whether the peer lives.
    tired_at: u64,
}

#[derive(Debug)]
struct View {
    key: u64,
    /// None: not in the table, which had changed so often when it was looked for.
    shown: Option<Shown>,
    changes: u64,
    near: Option<Near>,
    /// Mapping failed for a reason that may pass.
    again: Again,
}

impl View {
    /// Whether the region is there still, and cannot be mapped.
    #[inline(always)]
    fn stays_apart(&self, header: &Header) -> bool {
        let shown = self.shown.filter(|_| !self.again.was_refused());
        shown.is_some_and(|shown| header.generation(shown.slot) == shown.generation)
    }

    fn take(&mut self, near: Result<Near, Unmapped>) {
        match near {
            Ok(_) => {}
            Err(Unmapped::Private) => self.again = Again::default(),
            Err(Unmapped::Failed) => self.again.refused(),
        }
        self.near = near.ok();
    }
}

/// Why a region is not mapped here.
enum Unmapped {
    /// Its memory is its owner's alone, or its file may not be used so.
    Private,
    /// It might be another time.
    Failed,
}

impl Shown {
    /// Where a piece begins in the region, if it lies in it and may be used so.
    fn offset(&self, part: &RemotePart, wanted: Rights) -> Option<usize> {
        let at = part.addr.checked_sub(self.base)?;
        let fits = at <= self.len && part.len as u64 <= self.len - at;
        (fits && self.rights.allow(wanted)).then_some(at as usize)
    }
}

pub fn rights(access: Access) -> Rights {
    match access {
        Access::Read => Rights::READ,
        Access::Write => Rights::WRITE,
    }
}

/// Our mark in the peer's file, which is set until we leave.
struct Inside<'a> {
    mark: &'a AtomicU64,
    even: u64,
}

impl Inside<'_> {
    #[inline(always)]
    fn leave(self) {
        self.mark.store(self.even, Ordering::Release);
    }
}

/// A piece of a region that the kernel copies from or to, as long as its generation is this.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub part: RemotePart,
    pub access: Access,
    addr: u64,
    slot: usize,
    generation: u64,
}

impl Views {
    /// Sets our mark. `place`: as `board` wants it. `fenced`: the owner has no barrier for us.
    #[inline(always)]
    fn enter<'a>(&mut self, mark: &'a AtomicU64, place: u64, fenced: bool) -> Inside<'a> {
        let inside = self.turn + place;
        self.turn += TURN;
        // SYNC POINT reach: marked before the generation is looked at.
        mark.store(inside, Ordering::Relaxed);
        if fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        Inside { mark, even: self.turn }
    }

    #[inline(always)]
    fn get(&self) -> Option<&View> {
        self.list.get(self.last)
    }

    fn get_mut(&mut self) -> Option<&mut View> {
        self.list.get_mut(self.last)
    }

    /// Makes room for so many more.
    fn make_room(&mut self, more: usize) {
        if self.list.len() + more > VIEWS_MOST {
            self.list.clear();
            self.places.clear();
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// As if the time had come to try again what failed.
    #[cfg(test)]
    pub fn make_due(&mut self) {
        self.list.iter_mut().for_each(|view| view.again.make_due());
    }

    fn forget(&mut self, at: usize) {
        if at >= self.list.len() {
            return;
        }
        let gone = self.list.swap_remove(at);
        self.places.remove(&gone.key);
        if let Some(moved) = self.list.get(at) {
            self.places.insert(moved.key, at);
        }
    }

    /// Whether it is time to see if the peer lives. Before the first turn it is.
    #[inline(always)]
    pub fn is_tired(&self) -> bool {
        self.turn >= self.tired_at
    }
}

impl Outbound {
    /// Hands a piece of the peer's memory to `work`, if it is mapped here and may be used now.
    #[inline(always)]
    pub fn reach<R>(&mut self, part: &RemotePart, wanted: Rights, work: impl FnOnce(UserBuf) -> R) -> Option<R> {
        let spot = self.find(part, wanted)?;
        // Not before: the peer writes there whenever it has looked.
        if !self.has_seen_all() {
            return None;
        }
        let Some(inside) = self.enter_all(&[spot]) else {
            self.forget_closed();
            return None;
        };
        // SAFETY: mapped as long as the view, and with pages; the owner leaves it as it is while we are marked.
        let result = work(unsafe { UserBuf::new(spot.addr as *mut u8, spot.len) });
        inside.leave();
        Some(result)
    }

    /// The same with several pieces, all of them or none.
    #[inline(never)]
    pub fn reach_all<R>(
        &mut self,
        parts: &[RemotePart],
        wanted: Rights,
        work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        // Now, so that what was found first is still mapped when the last is.
        self.views.make_room(parts.len());
        let mut found = [Spot::default(); IOV_LIMIT];
        let spots = found.get_mut(..parts.len())?;
        for (spot, part) in spots.iter_mut().zip(parts) {
            *spot = self.find(part, wanted)?;
        }
        // SAFETY: as in `reach`; nothing was unmapped since, for all were found.
        let pieces = spots
            .iter()
            .map(|spot| unsafe { UserBuf::new(spot.addr as *mut u8, spot.len) });
        let memory = UserIov::new(pieces)?;
        if !self.has_seen_all() {
            return None;
        }
        let Some(inside) = self.enter_all(spots) else {
            self.forget_closed();
            return None;
        };
        let result = work(&memory);
        inside.leave();
        Some(result)
    }

    /// Where a piece of the peer's memory is mapped here.
    #[inline(always)]
    fn find(&mut self, part: &RemotePart, wanted: Rights) -> Option<Spot> {
        match self.views.get().filter(|view| view.key == part.key) {
            Some(View { near: Some(near), .. }) => near.spot(part, wanted),
            Some(view) if view.stays_apart(&self.header) => return None,
            _ => None,
        }
        .or_else(|| self.find_elsewhere(*part, wanted))
    }

    /// The same, of another region or elsewhere in it. By value, so that on the way itself nothing need be in memory.
    #[inline(never)]
    fn find_elsewhere(&mut self, part: RemotePart, wanted: Rights) -> Option<Spot> {
        if self.views.get().is_none_or(|view| view.key != part.key) {
            self.look_up(part.key);
        }
        let view = self.views.get()?;
        let (Some(shown), Some(near)) = (view.shown, &view.near) else {
            self.look_again();
            return None;
        };
        let at = shown.offset(&part, wanted)?;
        let ready = near.is_ready(at, part.len, wanted.write) || self.prepare(at, part.len, wanted.write);
        let near = self.views.get_mut()?.near.as_mut().filter(|_| ready)?;
        Some(near.remember(&shown, at, part.len, wanted))
    }

    /// Marks us, if all regions are still there.
    #[inline(always)]
    fn enter_all(&mut self, spots: &[Spot]) -> Option<Inside<'_>> {
        let place = match spots {
            [only] => board::at_slot(only.slot),
            _ => AT_SEVERAL,
        };
        let inside = self.views.enter(self.mark.word(), place, self.fence);
        for spot in spots {
            if self.header.generation(spot.slot) != spot.generation {
                inside.leave();
                return None;
            }
        }
        Some(inside)
    }

    /// What the kernel may copy from or to now, if this piece is in a region and the peer has looked at all it was sent.
    #[cold]
    pub fn open(&mut self, part: &RemotePart, access: Access) -> Option<Open> {
        if !self.has_seen_all() {
            return None;
        }
        self.open_now(part, access)
    }

    /// The same, whatever the peer has looked at.
    pub fn open_now(&mut self, part: &RemotePart, access: Access) -> Option<Open> {
        if self.views.get().is_none_or(|view| view.key != part.key) {
            self.look_up(part.key);
        }
        let shown = self.views.get()?.shown?;
        let at = shown.offset(part, rights(access))?;
        if !self.is_proved() {
            return None;
        }
        Some(Open {
            part: *part,
            access,
            addr: shown.addr.wrapping_add(at as u64),
            slot: shown.slot,
            generation: shown.generation,
        })
    }

    /// Has the kernel copy all of it. False: nothing, or not all, was copied.
    pub fn copy_all(&mut self, open: &Open, local: &UserIov) -> bool {
        let all = open.part.len;
        (0..all)
            .step_by(STRETCH)
            .all(|at| self.copy_some(open, local, at, STRETCH.min(all - at)))
    }

    /// Has the kernel copy some of it, if it is still open.
    pub fn copy_some(&mut self, open: &Open, local: &UserIov, at: usize, len: usize) -> bool {
        let place = board::at_slot(open.slot);
        let inside = self.views.enter(self.mark.word(), place, self.fence);
        let copied = self.header.generation(open.slot) == open.generation && self.copy_stretch(open, local, at, len);
        inside.leave();
        copied
    }

    fn copy_stretch(&self, open: &Open, local: &UserIov, at: usize, len: usize) -> bool {
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
            addr: open.addr.wrapping_add(at as u64),
            len: len as u64,
        }];
        let pid = self.pid() as i32;
        // SAFETY: the operation's memory is valid until it has ended, as promised to `UserBuf`; the peer's is a region's
        // of its own, which it does not take back while we are marked.
        let copied = unsafe {
            match open.access {
                Access::Read => process_vm::read(pid, &theirs, ours),
                Access::Write => process_vm::write(pid, &theirs, ours),
            }
        };
        copied.is_ok_and(|copied| copied == len)
    }

    /// Whether the peer has looked at all that it was sent.
    #[inline(always)]
    fn has_seen_all(&self) -> bool {
        // SYNC POINT seen: acquire.
        let seen = self.ring.seen().load(Ordering::Acquire);
        seen == self.producer.position() || self.may_be_passed(seen)
    }

    /// The peer lives: a while may pass until that is seen again. It is told, before the first turn, that we come.
    pub fn set_out(&mut self) {
        self.header.reached().store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.views.tired_at = self.views.turn + TURN * u64::from(TIRED_AFTER);
    }

    /// Forgets what is used now, if its region is another by now. What failed is tried again when it is time.
    fn look_again(&mut self) {
        let Some(view) = self.views.get() else { return };
        if self.is_stale(view) {
            return self.views.forget(self.views.last);
        }
        let failed = view.again.was_refused() && view.again.is_due();
        let Some(shown) = view.shown.filter(|_| failed) else {
            return;
        };
        let near = self.map(&shown);
        if let Some(view) = self.views.get_mut() {
            view.take(near);
        }
    }

    fn is_stale(&self, view: &View) -> bool {
        match &view.shown {
            Some(shown) => self.header.generation(shown.slot) != shown.generation,
            None => self.header.changes().load(Ordering::Acquire) != view.changes,
        }
    }

    /// Gives up what is mapped of regions that are closed.
    #[cold]
    pub fn forget_closed(&mut self) {
        for at in (0..self.views.list.len()).rev() {
            if self.views.list.get(at).is_some_and(|view| self.is_stale(view)) {
                self.views.forget(at);
            }
        }
    }

    /// Makes a key's view the last one.
    #[cold]
    fn look_up(&mut self, key: u64) {
        if let Some(place) = self.views.places.get(&key) {
            self.views.last = *place;
            return;
        }
        self.views.make_room(1);
        // Before the table is looked at: what comes later changes it.
        let changes = self.header.changes().load(Ordering::Acquire);
        let shown = self.header.find_slot(key);
        let near = shown.map(|shown| self.map(&shown));
        self.views.last = self.views.list.len();
        self.views.places.insert(key, self.views.last);
        let mut view = View {
            key,
            shown,
            changes,
            near: None,
            again: Again::default(),
        };
        if let Some(near) = near {
            view.take(near);
        }
        self.views.list.push(view);
    }

    fn map(&mut self, shown: &Shown) -> Result<Near, Unmapped> {
        let near = self.try_map(shown).map(|mapping| Near::new(mapping, shown));
        let pid = self.pid();
        let Shown { key, len, .. } = shown;
        let how = match near {
            Ok(_) => "mapped",
            Err(Unmapped::Private) => "not shared: large operations are copied by the kernel, small ones are sent",
            Err(Unmapped::Failed) => {
                "cannot be mapped now, which is tried again later: large operations are copied by the kernel, small ones \
                 are sent"
            }
        };
        (self.debug)(&format!("region {key:#x} of process {pid}, {len} bytes: {how}"));
        near
    }

    fn try_map(&mut self, shown: &Shown) -> Result<Mapping, Unmapped> {
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
        let opened = file.open(pid, write).ok_or(Unmapped::Failed)?;
        let mapping = file.map(&opened, shown.len, write).map_err(|_| Unmapped::Failed)?;
        #[cfg(tsan)]
        let mapping = mapping.at_home(pid, shown.addr);
        Ok(mapping)
    }

    /// What is mapped here of the region with this key could not be touched: it is used as if it were not mapped.
    #[cold]
    fn prepare(&mut self, at: usize, len: usize, write: bool) -> bool {
        let Some(view) = self.views.get_mut() else {
            return false;
        };
        let ready = view.near.as_mut().is_some_and(|near| near.prepare(at, len, write));
        if !ready {
            view.take(Err(Unmapped::Failed));
        }
        ready
    }
}
