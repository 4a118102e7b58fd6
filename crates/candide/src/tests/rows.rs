//! The rows that the tests use.

#[cfg(not(any(loom, shuttle)))]
use crate::schema::{Refused, Updater};
use candide_derive::Record;

/// A row with two groups and with sub-word columns that share a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
pub(crate) struct Item {
    #[key]
    pub(crate) id: u64,
    #[group(hot)]
    pub(crate) count: i64,
    #[group(hot)]
    pub(crate) small: u8,
    #[group(hot)]
    pub(crate) flag: bool,
    #[group(cold)]
    pub(crate) other: u64,
}

impl Item {
    pub(crate) fn new(id: u64, count: i64) -> Item {
        Item { id, count, small: 7, flag: false, other: 100 }
    }
}

/// An updater that applies a function to the count.
#[cfg(not(any(loom, shuttle)))]
#[cfg_attr(sanitized, allow(dead_code))]
#[derive(Clone, Copy)]
pub(crate) struct OfCount<F>(pub(crate) F);

#[cfg(not(any(loom, shuttle)))]
impl<F> Updater<Item> for OfCount<F>
where
    F: Fn(&mut i64) -> Result<(), Refused> + Copy + Send + Sync + 'static,
{
    type Target = crate::Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        (self.0)(count)
    }
}

/// A row of many words in one group. A change of one column takes less memory for the version
/// before it than a change from the first column to the last.
#[cfg(not(any(loom, shuttle, sanitized)))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
pub(crate) struct Wide {
    #[key]
    pub(crate) id: u64,
    pub(crate) first: u64,
    pub(crate) middle: [u64; 20],
    pub(crate) last: u64,
}
