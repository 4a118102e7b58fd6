//! Handles by which a row can be inserted without a second lookup, and lookups in several tables at
//! once.

#![forbid(unsafe_code)]

use super::table::{Row, Table};
use crate::engine::Protocol;
use crate::error::Abort;
use crate::index::{Lookup, Place};
use crate::protocols::DefaultProtocol;
use crate::schema::Record;
use crate::txn::Tx;
use std::ops::Deref;

/// A handle on a key's record or, if the key has none, on the place where a row can be inserted. It
/// offers all operations of a [`Row`]. See [`Tx::find_both`].
pub struct Entry<'t, R: Record, P: Protocol = DefaultProtocol> {
    row: Row<'t, R, P>,
    place: Place,
}

impl<R: Record, P: Protocol> std::fmt::Debug for Entry<'_, R, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("row", &self.row).finish_non_exhaustive()
    }
}

impl<'t, R: Record, P: Protocol> Deref for Entry<'t, R, P> {
    type Target = Row<'t, R, P>;

    fn deref(&self) -> &Row<'t, R, P> {
        &self.row
    }
}

impl<R: Record, P: Protocol> Entry<'_, R, P> {
    /// Inserts `row`, as [`Table::insert`] does. If the key of `row` is that of this handle, and
    /// the place has not changed since, no second lookup is needed.
    ///
    /// # Errors
    /// As [`Table::insert`].
    pub fn insert(self, row: R) -> Result<(), Abort> {
        self.row.insert_at_place(&row, self.place)
    }
}

impl<P: Protocol> Tx<'_, P> {
    /// Returns handles on the records of two keys, of two tables or of one. The lookups take turns,
    /// so that their cache misses can overlap.
    ///
    /// The lookups observe nothing. Operations on the handles find out whether the rows exist.
    ///
    /// ```
    /// # use candide::{Abort, Database, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Item { #[key] id: u64, bids: u64 }
    /// # #[derive(Record, Clone, Copy)]
    /// # #[record(ordered)]
    /// # struct Bid { #[key] item: u64, #[key] number: u64, cents: u64 }
    /// let db = Database::new();
    /// let (items, bids) = (db.table::<Item>("items")?, db.table::<Bid>("bids")?);
    /// db.run(|tx| items.insert(tx, Item { id: 7, bids: 0 }))?;
    /// db.run(|tx| {
    ///     let (item, bid) = tx.find_both((&items, &7), (&bids, &(7, 1)))?;
    ///     item.update(Item::BIDS.add(1))?;
    ///     bid.insert(Bid { item: 7, number: 1, cents: 250 })
    /// })?;
    /// assert_eq!(db.run(|tx| bids.read(tx, &(7, 1), Bid::CENTS)), Ok::<_, Abort>(250));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [every operation](Table#errors-of-every-operation).
    #[inline]
    #[expect(clippy::type_complexity, reason = "two handles, each of a table of its own")]
    pub fn find_both<'t, A: Record, B: Record>(
        &'t self,
        (first, key): (&'t Table<A, P>, &A::Key),
        (second, other): (&'t Table<B, P>, &B::Key),
    ) -> Result<(Entry<'t, A, P>, Entry<'t, B, P>), Abort> {
        let state = &mut *self.state.borrow_mut();
        state.admit(self.engine, first.core())?;
        state.admit(self.engine, second.core())?;
        let [(found, place), (other_found, other_place)] = first.in_words(key, |words| {
            first.core().check_key(words);
            second.in_words(other, |other_words| {
                second.core().check_key(other_words);
                let mut lookups = [
                    Lookup::begin(&first.core().index, words),
                    Lookup::begin(&second.core().index, other_words),
                ];
                Lookup::complete(&mut lookups);
                let [(found, place), (other_found, other_place)] = lookups.map(Lookup::into_found);
                [
                    (state.read_view(first.core(), words, found), place),
                    (state.read_view(second.core(), other_words, other_found), other_place),
                ]
            })
        });
        let entry = Entry { row: Row::found(first, self, *key, found), place };
        let other =
            Entry { row: Row::found(second, self, *other, other_found), place: other_place };
        Ok((entry, other))
    }
}
