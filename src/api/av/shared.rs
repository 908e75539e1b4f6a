//! The table that processes share: a named address vector.
//!
//! Words of a shared file (`sys::shared_table`): a header, then the indices 0, 1, 2 ... as an array of fi_addr_t, to
//! which map_addr points, then one record per index. A record has a sequence word, odd while it is being written, so a
//! reader needs no lock; writers lock the file. What else is needed to search is each process's own, and is brought up
//! to date when the header says that something changed: added records one by one, after a removal from the start.

use super::index::Index;
use super::kind::AddressKind;
use super::table::{Inserted, Scope, Store};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::log::Speaker;
use crate::sys::home;
use crate::sys::shared_table::{Access, SharedTable, TABLE_PREFIX};
use core::sync::atomic::{Ordering, fence};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

/// Words of the header.
mod word {
    /// Says that the table is set up, and in which format.
    pub(super) const MAGIC: usize = 0;
    pub(super) const FORMAT: usize = 1;
    pub(super) const AV_TYPE: usize = 2;
    pub(super) const CAPACITY: usize = 3;
    pub(super) const RECORD: usize = 4;
    /// Records ever used.
    pub(super) const USED: usize = 5;
    /// Records with memory behind them.
    pub(super) const RESERVED: usize = 6;
    /// Counts removals, and insertions at a place used before.
    pub(super) const REMOVALS: usize = 7;
    /// Counts insertions.
    pub(super) const ADDITIONS: usize = 8;
    /// The header has a page.
    pub(super) const HEADER: usize = 512;
}

/// Words of a record: its sequence, how often inserted (0: free) and length, the bytes.
const SEQUENCE: usize = 0;
const STATE: usize = 1;
const BYTES: usize = 2;

const MAGIC: u64 = u64::from_be_bytes(*b"fi_av\0\0\x01");

/// A named vector has room for this many addresses at least; pages that nobody uses cost nothing.
const LEAST_CAPACITY: usize = 1 << 20;
const MOST_CAPACITY: usize = 1 << 28;

/// Memory is taken for this many records at a time.
const STEP: u64 = 512;

/// How often a reader looks again at a record that is being written. A writer that died in it is no longer writing.
const PATIENCE: u32 = 10_000;

/// What must be the same for all who share a vector.
pub(super) struct Name<'a> {
    pub provider: Speaker,
    /// What the vector belongs to: names are the domain's own.
    pub domain: &'a str,
    pub name: &'a str,
    pub av_type: fi_av_type,
    pub count: usize,
    pub read_only: bool,
}

/// The part of a table that is read without a lock.
pub(super) struct Shared {
    provider: Speaker,
    table: SharedTable,
    capacity: u64,
    record: usize,
}

impl Shared {
    fn record_at(&self, index: u32) -> usize {
        word::HEADER + self.capacity as usize + index as usize * self.record
    }

    /// How many records may be read: those in use, but never more than the file has room for, whatever the header says.
    fn used(&self) -> u32 {
        self.table.load_published(word::USED).min(self.capacity) as u32
    }

    pub(super) fn removals(&self) -> u64 {
        self.table.load_published(word::REMOVALS)
    }

    pub(super) fn additions(&self) -> u64 {
        self.table.load_published(word::ADDITIONS)
    }

    /// The array of indices in this process.
    pub(super) fn map_addr(&self) -> usize {
        self.table.address_of(word::HEADER)
    }

    /// How often a record was inserted and its bytes; None if it is free.
    fn read(&self, index: u32) -> Option<(u32, Vec<u8>)> {
        if index >= self.used() {
            return None;
        }
        let at = self.record_at(index);
        for _ in 0..PATIENCE {
            let before = self.table.load_published(at + SEQUENCE);
            if before % 2 == 0 {
                let read = self.copy(at);
                fence(Ordering::Acquire);
                // SYNC POINT: meets `SharedStore::write`, which makes the sequence odd first and even last.
                if self.table.load(at + SEQUENCE) == before {
                    return read;
                }
            }
            core::hint::spin_loop();
        }
        None
    }

    fn copy(&self, at: usize) -> Option<(u32, Vec<u8>)> {
        let state = self.table.load(at + STATE);
        let (uses, len) = ((state >> 32) as u32, state as u32 as usize);
        if uses == 0 || len > (self.record - BYTES) * 8 {
            return None;
        }
        let mut bytes = Vec::with_capacity(len + 8);
        for word in 0..len.div_ceil(8) {
            bytes.extend(self.table.load(at + BYTES + word).to_le_bytes());
        }
        bytes.truncate(len);
        Some((uses, bytes))
    }
}

/// A named vector, as one process has it open.
pub(super) struct SharedStore {
    kind: Arc<dyn AddressKind>,
    shared: Arc<Shared>,
    read_only: bool,
    /// Of the table as it was when `removals` and `seen` were read.
    index: Index,
    free: BinaryHeap<Reverse<u32>>,
    removals: u64,
    seen: u32,
}

impl SharedStore {
    pub(super) fn open(name: &Name, kind: Arc<dyn AddressKind>) -> Result<SharedStore> {
        let file = file_name(name)?;
        let capacity = name.count.max(LEAST_CAPACITY).checked_next_power_of_two();
        let capacity = capacity
            .filter(|capacity| *capacity <= MOST_CAPACITY)
            .ok_or(Errno(FI_EINVAL))?;
        let record = BYTES + kind.longest().div_ceil(8);
        let words = word::HEADER + capacity + capacity * record;
        let access = if name.read_only { Access::Read } else { Access::Write };
        let make = |table: &SharedTable| {
            table.reserve(0, word::HEADER)?;
            table.store(word::FORMAT, kind.format().into());
            table.store(word::AV_TYPE, name.av_type.into());
            table.store(word::CAPACITY, capacity as u64);
            table.store(word::RECORD, record as u64);
            table.publish(word::MAGIC, MAGIC);
            Ok(())
        };
        let table = open_table(&file, access, words, make).map_err(|error| {
            log!(
                by name.provider;
                Warn,
                Av,
                "cannot open shared address vector {} in {}: {error}",
                name.name,
                home::base().display()
            );
            errno_of(&error)
        })?;
        let shared = Shared {
            provider: name.provider,
            capacity: table.load(word::CAPACITY),
            record: record.max(BYTES),
            table,
        };
        check_header(&shared, name, &*kind)?;
        Ok(SharedStore {
            kind,
            shared: Arc::new(shared),
            read_only: name.read_only,
            index: Index::default(),
            free: BinaryHeap::new(),
            removals: 0,
            seen: 0,
        })
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Brings the index up to date with what other processes did since the last call.
    fn catch_up(&mut self) {
        let removals = self.shared.removals();
        if removals != self.removals {
            self.index.clear();
            self.free.clear();
            (self.removals, self.seen) = (removals, 0);
        }
        let used = self.shared.used();
        for index in self.seen..used {
            match self.shared.read(index) {
                Some((_, address)) => self.index.insert(self.index.hash(0, self.kind.key(&address)), index),
                None => self.free.push(Reverse(index)),
            }
        }
        self.seen = used;
    }

    fn lookup(&self, address: &[u8]) -> Option<u32> {
        let key = self.kind.key(address);
        self.index.places(self.index.hash(0, key)).find(|place| {
            let there = self.shared.read(*place);
            there.is_some_and(|(_, there)| self.kind.key(&there) == key)
        })
    }

    /// Writes a record. The writer's lock is held, and the record has memory behind it.
    fn write(&self, index: u32, uses: u32, address: &[u8]) {
        let (table, at) = (&self.shared.table, self.shared.record_at(index));
        // A writer that died left it odd; then it stays odd until it is whole again.
        let odd = table.load(at + SEQUENCE) | 1;
        table.store(at + SEQUENCE, odd);
        // SYNC POINT: meets the fence in `Shared::read`.
        fence(Ordering::Release);
        table.store(at + STATE, u64::from(uses) << 32 | address.len() as u64);
        for (word, bytes) in address.chunks(8).enumerate() {
            let mut eight = [0; 8];
            bytes.iter().zip(&mut eight).for_each(|(byte, place)| *place = *byte);
            table.store(at + BYTES + word, u64::from_le_bytes(eight));
        }
        table.publish(at + SEQUENCE, odd.wrapping_add(1));
    }

    /// Changes only how often an address was inserted, in one word, so that no reader ever misses it.
    fn set_uses(&self, index: u32, uses: u32) {
        let at = self.shared.record_at(index) + STATE;
        let len = u64::from(self.shared.table.load(at) as u32);
        self.shared.table.store(at, u64::from(uses) << 32 | len);
    }

    /// Memory for one record more.
    fn grow(&self) -> Result<u32> {
        let (table, index) = (&self.shared.table, u64::from(self.seen));
        if index >= self.shared.capacity {
            log!(by self.shared.provider; Warn, Av, "shared address vector is full with {index} addresses");
            return Err(Errno(FI_ENOMEM));
        }
        let reserved = table.load(word::RESERVED);
        if index >= reserved {
            let step = STEP.min(self.shared.capacity - reserved.min(self.shared.capacity));
            self.reserve(index, step).map_err(|error| {
                let bytes = step as usize * (self.shared.record + 1) * 8;
                log!(
                    by self.shared.provider;
                    Warn,
                    Av,
                    "shared address vector needs {bytes} bytes more in {}: {error}",
                    home::base().display()
                );
                errno_of(&error)
            })?;
            table.store(word::RESERVED, index + step);
        }
        Ok(self.seen)
    }

    fn reserve(&self, index: u64, step: u64) -> io::Result<()> {
        let table = &self.shared.table;
        table.reserve(word::HEADER + index as usize, step as usize)?;
        table.reserve(self.shared.record_at(index as u32), step as usize * self.shared.record)
    }

    fn count_up(&self, word: usize) -> u64 {
        let count = self.shared.table.load(word).wrapping_add(1);
        self.shared.table.publish(word, count);
        count
    }

    fn place(&mut self, address: &[u8]) -> Result<u32> {
        if let Some(Reverse(index)) = self.free.pop() {
            self.write(index, 1, address);
            // Others still have the place among their free ones.
            self.removals = self.count_up(word::REMOVALS);
            return Ok(index);
        }
        let index = self.grow()?;
        self.write(index, 1, address);
        self.shared.table.store(word::HEADER + index as usize, index.into());
        self.shared.table.publish(word::USED, u64::from(index) + 1);
        self.seen = index + 1;
        Ok(index)
    }
}

impl Store for SharedStore {
    fn begin(&mut self) -> Result<()> {
        if !self.read_only {
            self.shared.table.lock().map_err(|error| errno_of(&error))?;
        }
        self.catch_up();
        Ok(())
    }

    fn end(&mut self) {
        if !self.read_only {
            self.shared.table.unlock();
        }
    }

    fn insert(&mut self, _: Scope, address: &[u8]) -> Result<Inserted> {
        if self.read_only {
            return Err(Errno(FI_EACCES));
        }
        if address.len() > (self.shared.record - BYTES) * 8 {
            return Err(Errno(FI_EINVAL));
        }
        if let Some(index) = self.lookup(address) {
            let (uses, _) = self.shared.read(index).ok_or(Errno(FI_EINVAL))?;
            self.set_uses(index, uses.checked_add(1).ok_or(Errno(FI_ENOMEM))?);
            return Ok(Inserted { index, new: false });
        }
        let index = self.place(address)?;
        self.index.insert(self.index.hash(0, self.kind.key(address)), index);
        self.count_up(word::ADDITIONS);
        Ok(Inserted { index, new: true })
    }

    fn remove(&mut self, index: u32) -> Result<bool> {
        if self.read_only {
            return Err(Errno(FI_EACCES));
        }
        let (uses, address) = self.shared.read(index).ok_or(Errno(FI_EINVAL))?;
        if uses > 1 {
            self.set_uses(index, uses - 1);
            return Ok(false);
        }
        self.write(index, 0, &[]);
        self.index.remove(self.index.hash(0, self.kind.key(&address)), index);
        self.free.push(Reverse(index));
        self.removals = self.count_up(word::REMOVALS);
        Ok(true)
    }

    fn address(&self, index: u32) -> Option<Cow<'_, [u8]>> {
        self.shared.read(index).map(|(_, bytes)| Cow::Owned(bytes))
    }

    fn find(&mut self, _: Scope, address: &[u8]) -> Option<u32> {
        self.catch_up();
        self.lookup(address)
    }

    fn span(&self) -> u32 {
        self.shared.used()
    }
}

/// Opens the table in the user's own directory.
fn open_table(
    file: &str,
    access: Access,
    words: usize,
    make: impl Fn(&SharedTable) -> io::Result<()>,
) -> io::Result<SharedTable> {
    let base = home::base();
    if access == Access::Read {
        let home = home::find(&base)?.ok_or(io::ErrorKind::NotFound)?;
        return SharedTable::open(&home.join(file), access, words, make);
    }
    home::enter(&base, |home| SharedTable::open(&home.join(file), access, words, &make))
}

/// A table made by another build, or for other addresses, is not read.
fn check_header(shared: &Shared, name: &Name, kind: &dyn AddressKind) -> Result<()> {
    let table = &shared.table;
    let most = MOST_CAPACITY as u64;
    let size = (1..=most).contains(&shared.capacity)
        && shared.record_at(shared.capacity as u32) <= table.len()
        && table.load(word::RECORD) == shared.record as u64;
    let same = table.load_published(word::MAGIC) == MAGIC
        && table.load(word::FORMAT) == u64::from(kind.format())
        && table.load(word::AV_TYPE) == u64::from(name.av_type);
    if size && same {
        return Ok(());
    }
    log!(by name.provider; Warn, Av, "shared address vector {} is of another kind", name.name);
    Err(Errno(FI_EINVAL))
}

/// A file name for a vector of this domain and this name, in the user's directory. Different ones never meet.
fn file_name(name: &Name) -> Result<String> {
    const LONGEST: usize = 255;
    if name.name.is_empty() {
        return Err(Errno(FI_EINVAL));
    }
    let file = format!("{TABLE_PREFIX}{}.{}", plain(name.domain), plain(name.name));
    if file.len() > LONGEST {
        log!(by name.provider; Warn, Av, "name of shared address vector is too long: {}", name.name);
        return Err(Errno(FI_EINVAL));
    }
    Ok(file)
}

/// Letters, digits and a few signs as they are, the rest as numbers.
fn plain(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    text.bytes()
        .map(|byte| {
            if keep(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02x}")
            }
        })
        .collect()
}

fn errno_of(error: &io::Error) -> Errno {
    match (error.kind(), error.raw_os_error()) {
        (_, Some(code)) => Errno(code),
        (io::ErrorKind::NotFound, _) => Errno(FI_ENOENT),
        (io::ErrorKind::WouldBlock, _) => Errno(FI_EAGAIN),
        _ => Errno(FI_EIO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_meet() {
        let made = |domain, name| {
            file_name(&Name {
                provider: "any",
                domain,
                name,
                av_type: FI_AV_TABLE,
                count: 0,
                read_only: false,
            })
        };
        let names = [
            ("a", "b.c"),
            ("a.b", "c"),
            ("a/b", "c"),
            ("a%2fb", "c"),
            ("", "a.b.c"),
            ("a", "ü"),
        ];
        let files: std::collections::HashSet<String> = names.iter().map(|(d, n)| made(d, n).unwrap()).collect();
        assert_eq!(files.len(), names.len());
        assert!(
            files
                .iter()
                .all(|file| file.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'))
        );
        assert_eq!(made("a", ""), Err(Errno(FI_EINVAL)));
        assert_eq!(made("a", &"x".repeat(300)), Err(Errno(FI_EINVAL)));
    }
}
