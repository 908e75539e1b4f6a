//! Values by the memory that they are for: which of them have all of a piece, and which touch it.

use core::ops::Range;
use std::collections::BTreeMap;

/// Any number of values may be for the same memory; each has a number of its own, which is not 0.
pub(super) struct Ranges<T> {
    /// By first address and number.
    values: BTreeMap<(usize, usize), (usize, T)>,
    first_addresses: BTreeMap<usize, usize>,
    /// The longest memory there ever was: none that begins further before an address reaches it.
    longest: usize,
    last: usize,
}

impl<T> Default for Ranges<T> {
    fn default() -> Ranges<T> {
        Ranges {
            values: BTreeMap::new(),
            first_addresses: BTreeMap::new(),
            longest: 0,
            last: 0,
        }
    }
}

/// A value with its number and memory.
pub(super) struct Found<V> {
    pub number: usize,
    pub memory: Range<usize>,
    pub value: V,
}

/// Whether memory has all of `piece`.
pub(super) fn has_all(memory: &Range<usize>, piece: &Range<usize>) -> bool {
    memory.start <= piece.start && piece.end <= memory.end
}

impl<T> Ranges<T> {
    pub(super) fn insert(&mut self, memory: Range<usize>, value: T) -> usize {
        self.last += 1;
        self.longest = self.longest.max(memory.len());
        self.first_addresses.insert(self.last, memory.start);
        self.values.insert((memory.start, self.last), (memory.end, value));
        self.last
    }

    pub(super) fn remove(&mut self, number: usize) -> Option<(Range<usize>, T)> {
        let first = self.first_addresses.remove(&number)?;
        let (end, value) = self.values.remove(&(first, number))?;
        Some((first..end, value))
    }

    pub(super) fn memory(&self, number: usize) -> Option<Range<usize>> {
        let first = *self.first_addresses.get(&number)?;
        let (end, _) = self.values.get(&(first, number))?;
        Some(first..*end)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let first = *self.first_addresses.get(&number)?;
        self.values.get_mut(&(first, number)).map(|(_, value)| value)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Those that begin at `last` or before, the nearest and newest first, as far as they can reach `first`.
    fn reaching(&self, first: usize, last: usize) -> impl Iterator<Item = Found<&T>> {
        let lowest = first.saturating_sub(self.longest);
        let near = self.values.range((lowest, 0)..=(last, usize::MAX)).rev();
        near.map(|((first, number), (end, value))| Found {
            number: *number,
            memory: *first..*end,
            value,
        })
    }

    /// Those that have all of a piece.
    pub(super) fn with_all(&self, piece: Range<usize>) -> impl Iterator<Item = Found<&T>> {
        let all = self.reaching(piece.start, piece.start);
        all.filter(move |found| has_all(&found.memory, &piece))
    }

    /// Those that have a byte of `memory`, the last one first.
    pub(super) fn touching(&self, memory: Range<usize>) -> impl Iterator<Item = Found<&T>> {
        let all = self.reaching(memory.start, memory.end.saturating_sub(1));
        all.filter(move |found| found.memory.start < memory.end && memory.start < found.memory.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<'a>(found: impl Iterator<Item = Found<&'a char>>) -> String {
        found.map(|found| *found.value).collect()
    }

    #[test]
    fn values_are_found_by_what_they_have_and_by_what_they_touch() {
        let mut ranges = Ranges::default();
        let a = ranges.insert(100..200, 'a');
        ranges.insert(150..160, 'b');
        ranges.insert(300..301, 'c');
        let again = ranges.insert(100..200, 'd');
        assert_eq!(numbers(ranges.with_all(155..160)), "bda");
        assert_eq!(numbers(ranges.with_all(155..161)), "da");
        assert_eq!(numbers(ranges.with_all(200..200)), "da");
        assert_eq!(numbers(ranges.with_all(99..101)), "");
        assert_eq!(numbers(ranges.touching(0..1000)), "cbda");
        assert_eq!(numbers(ranges.touching(160..300)), "da");
        assert_eq!(numbers(ranges.touching(200..300)), "");
        assert_eq!((ranges.memory(a), ranges.len()), (Some(100..200), 4));
        assert_eq!(ranges.remove(again), Some((100..200, 'd')));
        assert_eq!(ranges.remove(again), None);
        *ranges.get_mut(a).unwrap() = 'z';
        assert_eq!(numbers(ranges.with_all(100..200)), "z");
    }
}
