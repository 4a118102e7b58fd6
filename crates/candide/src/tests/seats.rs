//! Row types for tests that create indexes on tables in use.

use crate::{Index, Ordered, Protocol, RunOptions, Session, Table, Whole};
use candide_derive::Record;

/// A row with a key of two words, and three groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
pub(crate) struct Seat {
    #[key]
    pub(crate) hall: u64,
    #[key]
    pub(crate) seat: u64,
    #[group(owner)]
    pub(crate) owner: u64,
    #[group(price)]
    pub(crate) price: i64,
    #[group(price)]
    pub(crate) sold: bool,
}

/// A row of an unordered table, with a key of one word and two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
pub(crate) struct Coat {
    #[key]
    pub(crate) id: u64,
    #[group(owner)]
    pub(crate) owner: u64,
    #[group(price)]
    pub(crate) price: i64,
}

/// Returns an unsold seat.
pub(crate) fn seat(hall: u64, seat: u64, owner: u64) -> Seat {
    Seat { hall, seat, owner, price: 0, sold: false }
}

/// Asserts that an index of the owners finds exactly the rows of the table.
pub(crate) fn check_index<P: Protocol>(
    session: &mut Session<P>,
    table: &Table<Seat, P>,
    index: &Index<Seat, u64, Ordered, P>,
) {
    let checked = session.with(RunOptions::new().attempts_max(50)).run(|tx| {
        let indexed: Result<Vec<_>, _> =
            index.scan(tx, .., Whole).map(|row| row.map(|row| row.1)).collect();
        let mut rows = table
            .scan(tx, .., Whole)
            .map(|row| row.map(|row| row.1))
            .collect::<Result<Vec<_>, _>>()?;
        rows.sort_by_key(|row| row.owner);
        assert_eq!(indexed?, rows);
        Ok(())
    });
    assert_eq!(checked, Ok(()), "the index cannot be read");
}
