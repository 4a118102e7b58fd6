//! The rows that the tests use.

use crate::{Column, Group, Hashed, Record};

/// A row with two groups, sub-word columns that share a word, and a column of two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) count: i64,
    pub(crate) small: u8,
    pub(crate) flag: bool,
    pub(crate) other: u64,
}

impl Item {
    pub(crate) const COUNT: Column<Item, i64> = Column::new(0, 0, "count");
    pub(crate) const SMALL: Column<Item, u8> = Column::packed(0, 1, 0, "small");
    pub(crate) const FLAG: Column<Item, bool> = Column::packed(0, 1, 8, "flag");
    pub(crate) const OTHER: Column<Item, u64> = Column::new(1, 0, "other");

    pub(crate) fn new(id: u64, count: i64) -> Item {
        Item { id, count, small: 7, flag: false, other: 100 }
    }
}

impl Record for Item {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 3];
    const NAME: &'static str = "Item";
    const GROUPS: &'static [Group] = &[Group::new("hot", 2), Group::new("cold", 1)];

    fn key(&self) -> u64 {
        self.id
    }

    fn store(&self, words: &mut [u64]) {
        Self::COUNT.put(words, &self.count);
        Self::SMALL.put(words, &self.small);
        Self::FLAG.put(words, &self.flag);
        Self::OTHER.put(words, &self.other);
    }

    fn load(key: &u64, words: &[u64]) -> Item {
        Item {
            id: *key,
            count: Self::COUNT.take(words),
            small: Self::SMALL.take(words),
            flag: Self::FLAG.take(words),
            other: Self::OTHER.take(words),
        }
    }
}
