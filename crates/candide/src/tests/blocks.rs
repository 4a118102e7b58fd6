//! The blocks of bytes outside of records that a database has, counted in two ways.

use super::waiting::eventually;
use crate::Database;
use crate::engine::{Protocol, word_in};
use crate::record::value::names_value;
use std::collections::BTreeSet;
use std::sync::PoisonError;

/// Returns the number of blocks that the rows of all tables name, versions in their chains
/// included, and that of blocks which the slabs have given out. No other transaction runs.
fn blocks<P: Protocol>(db: &Database<P>) -> (usize, usize) {
    let engine = &db.inner.engine;
    // The versions stay where they are, and so do the blocks that they name, since the walk is in a
    // transaction.
    let counted = db.run(|_| {
        let mut named = BTreeSet::new();
        let tables = engine.tables.read().unwrap_or_else(PoisonError::into_inner);
        for core in tables.iter().filter(|core| !core.has_values) {
            core.index.for_each(&mut |record| {
                for at in core.layout.cells(record) {
                    P::each_row(&engine.clock, at, &mut |payload| {
                        let words = core.layout.named().iter();
                        let words = words.filter(|word| usize::from(word.unit) == at.unit());
                        let words = words.map(|word| word_in(payload, word.word.into()));
                        named.extend(words.filter(|&word| names_value(word)));
                    });
                }
            });
        }
        Ok((named.len(), engine.long_memory().map_or(0, |memory| memory.in_use()) as usize))
    });
    counted.unwrap()
}

/// Waits until the blocks in use are exactly those that versions in the tables name, and as many as
/// the rows name that transactions see, of which `seen` returns the number. No snapshot is open,
/// and no other transaction runs. Returns the number of blocks.
pub(super) fn settled<P: Protocol>(db: &Database<P>, mut seen: impl FnMut() -> usize) -> usize {
    let mut count = 0;
    eventually("the end of the blocks that were replaced", || {
        let (named, in_use) = blocks(db);
        count = seen();
        let counts = [count, named, in_use];
        assert!(counts.is_sorted(), "{}: {counts:?} blocks are seen, named, in use", P::NAME);
        count == in_use
    });
    count
}
