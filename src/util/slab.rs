//! A slab: values at stable small numbers, told apart from their successors by a generation.
//!
//! What comes and goes (posted receives, unexpected messages, operations in flight) is named by an `Id`, never by an
//! address, so that a late cancel or answer finds nothing instead of the wrong thing. Used by `engine` and `api`.

/// The name of one value in one slab, for as long as that value is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    index: u32,
    generation: u32,
}

impl Id {
    /// Bits of a short name that hold the place; the rest holds the low bits of the generation.
    const SHORT: u32 = 20;
    /// The most values a slab may have for each to have a short name.
    pub const SHORT_MAX: usize = 1 << Id::SHORT;

    /// The place of the value. Another value may have it after this one was removed.
    pub fn place(self) -> u32 {
        self.index
    }

    /// The name as a number, for packets.
    pub fn bits(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.generation)
    }

    pub fn from_bits(bits: u64) -> Id {
        Id {
            index: (bits >> 32) as u32,
            generation: bits as u32,
        }
    }

    /// A shorter name, for packets: of a value among the first `SHORT_MAX`. See `Slab::find_short`.
    pub fn short(self) -> u32 {
        (self.generation << Id::SHORT) | (self.index & ((1 << Id::SHORT) - 1))
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    Free { next: u32 },
    Taken(T),
}

/// A place that no value ever has.
pub const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            slots: Vec::new(),
            free: NOWHERE,
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many places there are, taken or free: all that there ever were at once.
    pub fn places(&self) -> usize {
        self.slots.len()
    }

    /// Where the next value will be.
    #[inline]
    pub fn next_place(&self) -> u32 {
        if self.free == NOWHERE {
            self.slots.len() as u32
        } else {
            self.free
        }
    }

    /// The name that the next value will have.
    #[inline]
    pub fn next_id(&self) -> Id {
        let index = self.next_place();
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        Id { index, generation }
    }

    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Id {
        self.len += 1;
        if let Some(slot) = self.slots.get_mut(self.free as usize) {
            let index = self.free;
            if let State::Free { next } = slot.state {
                self.free = next;
            }
            slot.state = State::Taken(value);
            return Id {
                index,
                generation: slot.generation,
            };
        }
        let index = self.slots.len() as u32;
        self.slots.push(Slot {
            generation: 0,
            state: State::Taken(value),
        });
        Id { index, generation: 0 }
    }

    #[inline]
    pub fn get(&self, id: Id) -> Option<&T> {
        match self.slots.get(id.index as usize) {
            Some(Slot {
                generation,
                state: State::Taken(value),
            }) if *generation == id.generation => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        match self.slots.get_mut(id.index as usize) {
            Some(Slot {
                generation,
                state: State::Taken(value),
            }) if *generation == id.generation => Some(value),
            _ => None,
        }
    }

    /// The value at a place, whatever its generation. For callers that know it is still the one they mean.
    #[inline]
    pub fn at(&self, place: u32) -> Option<&T> {
        match &self.slots.get(place as usize)?.state {
            State::Taken(value) => Some(value),
            State::Free { .. } => None,
        }
    }

    #[inline]
    pub fn at_mut(&mut self, place: u32) -> Option<&mut T> {
        match &mut self.slots.get_mut(place as usize)?.state {
            State::Taken(value) => Some(value),
            State::Free { .. } => None,
        }
    }

    /// The name of what is at a place.
    #[inline]
    pub fn name(&self, place: u32) -> Option<Id> {
        let generation = self.slots.get(place as usize)?.generation;
        Some(Id {
            index: place,
            generation,
        })
    }

    /// The name behind a short name, if a value is there. A generation 4096 later has the same short name.
    pub fn find_short(&self, short: u32) -> Option<Id> {
        let index = short & ((1 << Id::SHORT) - 1);
        let slot = self.slots.get(index as usize)?;
        let id = Id {
            index,
            generation: slot.generation,
        };
        (matches!(slot.state, State::Taken(_)) && id.short() == short).then_some(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        let numbered = (0u32..).zip(&self.slots);
        numbered.filter_map(|(index, slot)| match &slot.state {
            State::Taken(value) => {
                let generation = slot.generation;
                Some((Id { index, generation }, value))
            }
            State::Free { .. } => None,
        })
    }

    /// Removes what is at a place without returning it, which would copy a large value.
    #[inline(always)]
    pub fn clear(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place as usize) {
            if matches!(slot.state, State::Taken(_)) {
                slot.state = State::Free { next: self.free };
                slot.generation = slot.generation.wrapping_add(1);
                self.free = place;
                self.len -= 1;
            }
        }
    }

    pub fn remove(&mut self, id: Id) -> Option<T> {
        self.get(id)?;
        let slot = self.slots.get_mut(id.index as usize)?;
        let old = core::mem::replace(&mut slot.state, State::Free { next: self.free });
        slot.generation = slot.generation.wrapping_add(1);
        self.free = id.index;
        self.len -= 1;
        match old {
            State::Taken(value) => Some(value),
            State::Free { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_name_stays_dead_when_its_place_is_used_again() {
        let mut slab = Slab::default();
        let first = slab.insert("a");
        assert_eq!(slab.remove(first), Some("a"));
        let second = slab.insert("b");
        assert_eq!(first.index, second.index);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&"b")));
        assert_eq!((slab.remove(first), slab.len()), (None, 1));
    }

    #[test]
    fn names_survive_being_numbers() {
        let mut slab = Slab::default();
        let dead = slab.insert(0);
        slab.remove(dead);
        let ids: Vec<Id> = (1..4).map(|n| slab.insert(n)).collect();
        for id in &ids {
            assert_eq!(Id::from_bits(id.bits()), *id);
            assert_eq!(slab.find_short(id.short()), Some(*id));
        }
        assert_eq!(slab.find_short(dead.short()), None);
        assert_eq!(slab.find_short(3), None);
        slab.remove(ids[1]);
        let left: Vec<(Id, &i32)> = slab.iter().collect();
        assert_eq!(left, [(ids[0], &1), (ids[2], &3)]);
    }

    #[test]
    fn places_are_used_again_before_new_ones_are_made() {
        let mut slab = Slab::default();
        let ids: Vec<Id> = (0..10).map(|n| slab.insert(n)).collect();
        for id in &ids[3..6] {
            slab.remove(*id);
        }
        for n in 0..3 {
            slab.insert(n);
        }
        assert_eq!((slab.len(), slab.slots.len()), (10, 10));
    }
}
