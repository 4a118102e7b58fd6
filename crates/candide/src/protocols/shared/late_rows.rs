//! The late rows of a commit: their keys follow from units that the commit has locked
//! (`access/late_rows.rs`).
//!
//! A commit finds the keys in phase 1, when all other items are locked. A record with such a key is
//! locked like that of any other item; if there is none, the commit links an absent one and locks
//! it. Only then come the fence, the epoch or timestamp, and the validation. So all that is proved
//! of a commit which has locked its write set holds for late rows, too:
//! * **LR1** When a commit issues its fence or draws its timestamp, it has linked and locked the
//!   records of all its late rows. (Otherwise a transaction that has missed such a key could
//!   validate the unchanged node, and yet come after this commit.)
//! * **LR2** The number in a base does not change between the computation of a key and the end of
//!   the commit, since the base is an item of the commit, and locked.
//!
//! Memory for the records, for their items and for a line or leaf of the index is made ready before
//! the first lock, and the index grows before it if the rows are likely to need that (C4).

#![forbid(unsafe_code)]

use super::cell_lock::{await_unlocked, lock_one, release};
use crate::access::{LateRow, WriteItem, WriteSet, steps};
use crate::engine::{Context, Protocol, TableCore};
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{Found, Linked, NodeAt, Place, Supplies};
use crate::locks::HeldCells;
use crate::memory::{Cache, OutOfMemory};
use crate::record::{RecordAt, Tid};
use crate::sync::Ordering;
use std::sync::Arc;

/// The number of nodes that a link divides or moves at most, but rarely.
const DIVIDED_AT_ONCE: usize = 16;

/// What a commit does about late rows.
pub(crate) trait Late {
    /// Returns the tables with late rows, each with the number of these rows.
    fn tables(&self) -> impl Iterator<Item = (&TableCore, usize)>;

    /// Adds the late rows to the write set, which is locked, and locks them. After an error no item
    /// is locked. `held_of` returns the cells that the attempt holds; `version` returns the version
    /// that the commit replaces in an item, for the recorder of histories.
    fn lock<P: Protocol>(
        &self,
        context: &mut Context<'_, P>,
        attempt: &mut P::Attempt,
        writes: &mut WriteSet,
        held_of: impl Fn(&P::Attempt) -> &HeldCells,
        version: impl Fn(&WriteItem) -> u64,
    ) -> Result<(), Abort>;
}

/// The late rows of a commit that has none.
pub(crate) struct NoLateRows;

impl Late for NoLateRows {
    #[inline(always)]
    fn tables(&self) -> impl Iterator<Item = (&TableCore, usize)> {
        std::iter::empty()
    }

    #[inline(always)]
    fn lock<P: Protocol>(
        &self,
        _: &mut Context<'_, P>,
        _: &mut P::Attempt,
        _: &mut WriteSet,
        _: impl Fn(&P::Attempt) -> &HeldCells,
        _: impl Fn(&WriteItem) -> u64,
    ) -> Result<(), Abort> {
        Ok(())
    }
}

/// The late rows of a commit, in the order of the program, and their tables.
pub(crate) struct LateRows {
    rows: Vec<LateRow>,
    /// The tables, each with its number of rows.
    tables: Vec<(Arc<TableCore>, usize)>,
}

impl LateRows {
    /// Makes everything ready that [`Late::lock`] needs. Called before the first lock, and dropped
    /// after the last one is released (C4).
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    #[cold]
    pub(crate) fn prepare<P: Protocol>(
        context: &mut Context<'_, P>,
        writes: &mut WriteSet,
    ) -> Result<LateRows, Abort> {
        let rows: Vec<LateRow> = writes.late_rows().copied().collect();
        let mut tables: Vec<(Arc<TableCore>, usize)> = Vec::new();
        for row in &rows {
            match tables.iter_mut().find(|(table, _)| table.number == row.table) {
                Some((_, count)) => *count += 1,
                None => tables.push((context.engine.table(row.table), 1)),
            }
        }
        let late = LateRows { rows, tables };
        let units =
            late.tables().map(|(table, rows)| rows * table.layout.placed_units().len()).sum();
        writes.reserve_late(units);
        let local = &mut *context.local;
        local.reap_queue.reserve(writes.items().len() + units);
        local.linked.reserve(late.rows.len());
        local.divided.reserve(DIVIDED_AT_ONCE);
        local.retired_parts.reserve(DIVIDED_AT_ONCE);
        local.retired.reserve(DIVIDED_AT_ONCE);
        for (table, rows) in &late.tables {
            local.prepare_to_count(table);
            for slab in [&table.records, table.index.blocks()] {
                let cache = Cache::of(&mut local.caches, slab);
                cache.make_ready(slab, *rows, false).map_err(|_| Abort::MemoryLimit)?;
            }
        }
        for row in &late.rows {
            // Relaxed: a guess, so that most indexes grow before the commit has locked.
            let number = row.base.payload()[0].load(Ordering::Relaxed);
            let table = late.table(row.table);
            table.layout.in_kept_words(&[row.key_after(number)], |key| table.index.expect(key));
        }
        Ok(late)
    }

    fn table(&self, number: u16) -> &Arc<TableCore> {
        let table = self.tables.iter().find(|(table, _)| table.number == number);
        &table.expect("the tables of all rows are known").0
    }
}

impl Late for LateRows {
    fn tables(&self) -> impl Iterator<Item = (&TableCore, usize)> {
        self.tables.iter().map(|(table, rows)| (&**table, *rows))
    }

    #[cold]
    fn lock<P: Protocol>(
        &self,
        context: &mut Context<'_, P>,
        attempt: &mut P::Attempt,
        writes: &mut WriteSet,
        held_of: impl Fn(&P::Attempt) -> &HeldCells,
        version: impl Fn(&WriteItem) -> u64,
    ) -> Result<(), Abort> {
        let mut noted = None;
        for row in &self.rows {
            let base = &writes.items()[writes.find(row.base).expect("a base is written")];
            debug_assert!(Tid(base.note).has(Tid::INSTALL), "LR2: the base is locked");
            if noted.replace(row.base.address()) != Some(row.base.address()) {
                steps::note_observed(row.base, || version(base));
            }
            // Relaxed: the words are the last owner's, which the lock's Acquire has seen (E3).
            let number = row.base.payload()[0].load(Ordering::Relaxed);
            let table = self.table(row.table);
            let locked = table.layout.in_kept_words(&[row.key_after(number)], |key| {
                let record = match table.index.find(key) {
                    Found::Record(record) => record,
                    Found::Nothing { .. } => link(context, attempt, table, key)
                        .map_err(|OutOfMemory| (Abort::MemoryLimit, row.base))?,
                };
                table.layout.placed_units().iter().try_for_each(|&unit| {
                    let at = unit.of(record);
                    if writes.find(at).is_some() {
                        // The attempt has found this key by an earlier number in the base.
                        return Err((context.conflict(Abort::ReadChanged, row.base), at));
                    }
                    let index = writes.stage_late(row, unit, at);
                    lock_one(context, writes, index, held_of(attempt)).map_err(|abort| (abort, at))
                })
            });
            if let Err((abort, at)) = locked {
                release(context, writes.items());
                let waits = !context.engine.options.factors.has(Factor::NoWait);
                if abort == Abort::Locked && waits && held_of(attempt).owns_nothing() {
                    await_unlocked(context, at);
                }
                return Err(abort);
            }
        }
        Ok(())
    }
}

/// Links an absent record with a key that has had none. If another session has linked a record
/// meanwhile, returns that record.
fn link<P: Protocol>(
    context: &mut Context<'_, P>,
    attempt: &mut P::Attempt,
    table: &TableCore,
    key: &[u64],
) -> Result<RecordAt, OutOfMemory> {
    let Context { engine, clock, local, .. } = context;
    let record = RecordAt::allocate(&table.layout, key, &table.records, &mut local.caches)?;
    let cells = table.layout.cells(record);
    // Relaxed: a new record may have the flags of the old policy or of the new one.
    let flags = table.at_links.new_record_flags.load(Ordering::Relaxed);
    cells.clone().for_each(|at| P::init_absent_cell(clock, at, flags));
    let mut is_watched = false;
    let mut inherit_from_node = |node: NodeAt| {
        cells.clone().for_each(|at| P::inherit_from_node(clock, node, at));
        is_watched |= table.is_watched(); // WT3
    };
    let mut place = Place::default();
    let linked = match place.link_near(record, key, &mut inherit_from_node) {
        Ok(linked) => Ok(linked),
        Err(start) => {
            let mut supplies = Supplies {
                caches: &mut local.caches,
                retired: &mut local.retired_parts,
                changes: &mut local.divided,
            };
            let place = (&mut place, start);
            table.index.link(record, key, place, &mut supplies, inherit_from_node)
        }
    };
    if is_watched {
        engine.watchers.wake_for_link(table.number); // WT3
    }
    local.retire_parts(table.number);
    local.divided.iter().for_each(|change| P::divided(attempt, change));
    local.divided.clear();
    match linked {
        Ok(Linked::New { node, before, after }) => {
            let first = table.layout.first_of(record);
            P::linked(attempt, node, before, after, first);
            local.linked.push(first);
            local.count_linked(table, true);
            Ok(record)
        }
        linked => {
            Cache::of(&mut local.caches, &table.records).free(&table.records, record.block());
            match linked? {
                Linked::Existing(existing) => Ok(existing),
                Linked::New { .. } => unreachable!("handled above"),
            }
        }
    }
}
