//! The rows of the scripts. A row has a key, a value, and a second value in a separate group. The
//! rows are in a hash index or in an ordered index.

use crate::engine::Protocol;
use crate::schema::Record;
use crate::tests::rows::Item;
use crate::{Abort, Column, Table, Tx};
use candide_derive::Record;
use std::ops::RangeInclusive;

/// The functions of a row type that steps need.
pub(super) trait Row: Record<Key = u64> {
    const VALUE: Column<Self, i64>;
    const COLD: Column<Self, u64>;

    fn new(key: u64, value: i64) -> Self;
    /// Returns the key, the value and the cold value.
    fn parts(&self) -> (u64, (i64, i64));

    /// Returns at most `count` rows of the range `keys`, from its beginning or, if `backwards`,
    /// from its end.
    fn scan<P: Protocol>(
        table: &Table<Self, P>,
        tx: &Tx<'_, P>,
        keys: RangeInclusive<u64>,
        backwards: bool,
        count: usize,
    ) -> Result<Vec<(u64, i64)>, Abort>;
}

impl Row for Item {
    const VALUE: Column<Item, i64> = Item::COUNT;
    const COLD: Column<Item, u64> = Item::OTHER;

    fn new(key: u64, value: i64) -> Item {
        Item::new(key, value)
    }

    fn parts(&self) -> (u64, (i64, i64)) {
        (self.id, (self.count, self.other as i64))
    }

    fn scan<P: Protocol>(
        _table: &Table<Item, P>,
        _tx: &Tx<'_, P>,
        _keys: RangeInclusive<u64>,
        _backwards: bool,
        _count: usize,
    ) -> Result<Vec<(u64, i64)>, Abort> {
        unreachable!("a script that scans is for a table in order")
    }
}

/// A row of an ordered index.
#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate, ordered)]
pub(super) struct Placed {
    #[key]
    key: u64,
    #[group(hot)]
    value: i64,
    #[group(cold)]
    cold: u64,
}

impl Row for Placed {
    const VALUE: Column<Placed, i64> = Placed::VALUE;
    const COLD: Column<Placed, u64> = Placed::COLD;

    fn new(key: u64, value: i64) -> Placed {
        Placed { key, value, cold: Item::new(key, value).other }
    }

    fn parts(&self) -> (u64, (i64, i64)) {
        (self.key, (self.value, self.cold as i64))
    }

    fn scan<P: Protocol>(
        table: &Table<Placed, P>,
        tx: &Tx<'_, P>,
        keys: RangeInclusive<u64>,
        backwards: bool,
        count: usize,
    ) -> Result<Vec<(u64, i64)>, Abort> {
        if backwards {
            table.scan_rev(tx, keys, Placed::VALUE).take(count).collect()
        } else {
            table.scan(tx, keys, Placed::VALUE).take(count).collect()
        }
    }
}
