//! The pieces of an operation's memory: mostly one.
//!
//! One takes no array, so that an operation of one piece is made, passed on and forgotten in registers.

/// The most pieces an operation may have: iov_limit of every provider of ours.
pub const IOV_LIMIT: usize = 4;

/// Up to `IOV_LIMIT` of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Few<T> {
    #[default]
    None,
    One(T),
    Several([T; IOV_LIMIT], u8),
}

impl<T: Copy + Default> Few<T> {
    /// None when there are too many.
    pub fn new(list: impl IntoIterator<Item = T>) -> Option<Few<T>> {
        let mut kept = [T::default(); IOV_LIMIT];
        let mut count = 0;
        for one in list {
            *kept.get_mut(count)? = one;
            count += 1;
        }
        Some(match count {
            0 => Few::None,
            1 => Few::One(kept[0]),
            _ => Few::Several(kept, count as u8),
        })
    }
}

impl<T: Copy> Few<T> {
    /// The one, if there is only one. By value: a reference, which may be none, would keep the whole in memory.
    #[inline(always)]
    pub fn only(&self) -> Option<T> {
        match self {
            Few::One(one) => Some(*one),
            _ => None,
        }
    }

    #[inline]
    pub fn all(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(one) => core::slice::from_ref(one),
            Few::Several(list, count) => list.get(..usize::from(*count)).unwrap_or_default(),
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
            let few = Few::new(list.iter().copied());
            if count > IOV_LIMIT {
                assert_eq!(few, None);
                continue;
            }
            let few = few.unwrap();
            assert_eq!(few.all(), list);
            assert_eq!(few.only(), (count == 1).then_some(1));
        }
    }
}
