//! A few of something, such as the pieces of an operation's memory: mostly one.
//!
//! One element is stored without an array, so that an operation of one piece can live in registers from the call to its
//! completion. Used by `user` and by the engine's RMA operations.

/// The most pieces an operation may have: iov_limit of every provider of ours.
pub const IOV_LIMIT: usize = 4;

/// Up to `IOV_LIMIT` of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallArray<T> {
    #[default]
    None,
    One(T),
    Several([T; IOV_LIMIT], u8),
}

impl<T: Copy + Default> SmallArray<T> {
    /// None when there are too many.
    pub fn new(list: impl IntoIterator<Item = T>) -> Option<SmallArray<T>> {
        let mut kept = [T::default(); IOV_LIMIT];
        let mut count = 0;
        for one in list {
            *kept.get_mut(count)? = one;
            count += 1;
        }
        Some(match count {
            0 => SmallArray::None,
            1 => SmallArray::One(kept[0]),
            _ => SmallArray::Several(kept, count as u8),
        })
    }
}

impl<T: Copy> SmallArray<T> {
    /// The element, if there is exactly one. By value: a reference would keep the whole array in memory.
    #[inline(always)]
    pub fn only(&self) -> Option<T> {
        match self {
            SmallArray::One(one) => Some(*one),
            _ => None,
        }
    }

    #[inline]
    pub fn all(&self) -> &[T] {
        match self {
            SmallArray::None => &[],
            SmallArray::One(one) => core::slice::from_ref(one),
            SmallArray::Several(list, count) => list.get(..usize::from(*count)).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_and_no_more() {
        for count in 0..=IOV_LIMIT + 1 {
            let list: Vec<usize> = (1..=count).collect();
            let array = SmallArray::new(list.iter().copied());
            if count > IOV_LIMIT {
                assert_eq!(array, None);
                continue;
            }
            let array = array.unwrap();
            assert_eq!(array.all(), list);
            assert_eq!(array.only(), (count == 1).then_some(1));
        }
    }
}
