//! A sender's own mark in a peer's file, which tells the peer where in its memory the sender works (`region_table`).
//!
//! Knows nothing of regions. Made by `outbound` with the claim of a lane, set by `direct_access`.

use super::layout::marks_at;
use super::ring::LINE;
use crate::sys::shared::{self, FileMap};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::BorrowedFd;

/// A sender's own mark in a peer's file, mapped: odd while the sender works on the peer's memory directly.
#[derive(Debug)]
pub(super) struct AccessMark {
    word: NonNull<AtomicU64>,
    _map: FileMap,
}

// SAFETY: the pointer points into the `FileMap` beside it, which may be sent and lives as long.
unsafe impl Send for AccessMark {}

impl AccessMark {
    /// Allocates and maps the mark, for the claimer of this lane.
    pub(super) fn map(fd: BorrowedFd<'_>, index: usize) -> io::Result<AccessMark> {
        let mark_at = marks_at() + index * LINE;
        shared::allocate(fd, mark_at as u64, LINE as u64)?;
        let page_at = mark_at / shared::page_size() * shared::page_size();
        let map = FileMap::new(fd, page_at as u64, shared::page_size())?;
        // SAFETY: within the page that is mapped.
        let word = unsafe { map.base().add(mark_at - page_at) }.cast();
        let mark = AccessMark { word, _map: map };
        mark.word().store(0, Ordering::Relaxed);
        Ok(mark)
    }

    #[inline(always)]
    pub(super) fn word(&self) -> &AtomicU64 {
        // SAFETY: mapped as long as this lives, and aligned as a line is; every process uses it as an atomic.
        unsafe { self.word.as_ref() }
    }
}
