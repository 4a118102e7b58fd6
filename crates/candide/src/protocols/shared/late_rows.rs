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
//! the first lock (C4). A hash index also grows, and moves buckets, before that lock: not while the
//! commit holds locks, when a bucket that turns out to be full gets a line more.

#![forbid(unsafe_code)]

use super::cell_lock::{await_unlocked, lock_one, release};
use crate::access::{WriteItem, WriteSet, steps};
use crate::engine::{Context, LateScratch, Protocol, TableCore};
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{Found, Linked, NodeAt, Place, Supplies};
use crate::locks::HeldCells;
use crate::memory::{Cache, OutOfMemory};
use crate::record::{RecordAt, Tid};
use crate::sync::Ordering;

/// The number of nodes that a link divides or moves at most, but rarely.
pub(crate) const DIVIDED_AT_ONCE: usize = 16;

/// What a commit does about late rows.
pub(crate) trait Late {
    /// Returns the tables with late rows, each with the number of these rows.
    fn tables(&self) -> impl Iterator<Item = (&TableCore, usize)>;

    /// Returns whether the commit has no late rows.
    fn is_empty(&self) -> bool;

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
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tables(&self) -> impl Iterator<Item = (&TableCore, usize)> {
        std::iter::empty()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_empty(&self) -> bool {
        true
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
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

/// The late rows of a commit, and their tables.
pub(crate) struct LateRows(LateScratch);

impl LateRows {
    /// Returns an empty list, with the session's memory for it.
    pub(crate) fn take<P: Protocol>(context: &mut Context<'_, P>) -> LateRows {
        LateRows(std::mem::take(&mut context.local.late))
    }

    /// Gives the memory back to the session. Called after the last lock is released (C4).
    pub(crate) fn give_back<P: Protocol>(mut self, context: &mut Context<'_, P>) {
        let LateScratch { rows, counts, tables } = &mut self.0;
        rows.clear();
        counts.clear();
        context.local.known_tables.give_back(std::mem::take(tables));
        context.local.late = self.0;
    }

    /// Makes everything ready that [`Late::lock`] needs. Called before the first lock (C4).
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    #[cold]
    pub(crate) fn prepare<P: Protocol>(
        &mut self,
        context: &mut Context<'_, P>,
        attempt: &mut P::Attempt,
        writes: &mut WriteSet,
    ) -> Result<(), Abort> {
        let LateScratch { rows, counts, tables } = &mut self.0;
        rows.extend(writes.late_rows());
        for row in &*rows {
            match counts.iter_mut().find(|(table, _)| *table == row.table) {
                Some((_, count)) => *count += 1,
                None => counts.push((row.table, 1)),
            }
        }
        let known = counts.iter().map(|(table, _)| usize::from(*table) + 1).max();
        *tables = context.local.known_tables.take(context.engine, known.unwrap_or(0));
        self.grow_indexes(context, attempt);
        let units =
            self.tables().map(|(table, rows)| rows * table.layout.placed_units().len()).sum();
        writes.reserve_late(units);
        let local = &mut *context.local;
        local.reap_queue.reserve(writes.items().len() + units);
        local.linked.reserve(self.0.rows.len());
        local.divided.reserve(DIVIDED_AT_ONCE);
        local.retired_parts.reserve(DIVIDED_AT_ONCE);
        local.retired.reserve(DIVIDED_AT_ONCE);
        for (table, rows) in self.tables() {
            local.prepare_to_count(table);
            for slab in [&table.records, table.index.blocks()] {
                let cache = Cache::of(&mut local.caches, slab);
                cache.make_ready(slab, rows, false).map_err(|_| Abort::MemoryLimit)?;
            }
        }
        Ok(())
    }

    /// Lets the indexes grow for the rows that are likely to be linked.
    fn grow_indexes<P: Protocol>(&self, context: &mut Context<'_, P>, attempt: &mut P::Attempt) {
        let mut grow = |table: &TableCore, grow: &mut dyn FnMut(&mut Supplies<'_>)| {
            supply(context, attempt, table, grow);
        };
        for (table, rows) in self.tables() {
            grow(table, &mut |supplies| table.index.expect_rows(rows, supplies));
        }
        for row in &self.0.rows {
            // Relaxed: a guess, which is right if no other commit changes the base meanwhile.
            let number = row.base.payload()[0].load(Ordering::Relaxed);
            let table = self.table(row.table);
            table.layout.in_kept_words(&[row.key_after(number)], |key| {
                grow(table, &mut |supplies| table.index.expect(key, supplies));
            });
        }
    }

    fn table(&self, number: u16) -> &TableCore {
        &self.0.tables[usize::from(number)]
    }
}

/// Lets the index of a table grow for this number of rows, which are likely to be linked.
pub(crate) fn grow_indexes<P: Protocol>(
    context: &mut Context<'_, P>,
    attempt: &mut P::Attempt,
    table: &TableCore,
    rows: usize,
) {
    supply(context, attempt, table, &mut |supplies| table.index.expect_rows(rows, supplies));
}

/// Calls `grow`, with which the index of a table grows.
fn supply<P: Protocol>(
    context: &mut Context<'_, P>,
    attempt: &mut P::Attempt,
    table: &TableCore,
    grow: &mut dyn FnMut(&mut Supplies<'_>),
) {
    let local = &mut *context.local;
    grow(&mut Supplies {
        caches: &mut local.caches,
        retired: &mut local.retired_parts,
        changes: &mut local.divided,
    });
    local.retire_parts(table.number);
    local.divided.iter().for_each(|change| P::divided(attempt, change));
    local.divided.clear();
}

impl Late for LateRows {
    fn tables(&self) -> impl Iterator<Item = (&TableCore, usize)> {
        self.0.counts.iter().map(|&(table, rows)| (self.table(table), rows))
    }

    fn is_empty(&self) -> bool {
        self.0.rows.is_empty()
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
        for row in &self.0.rows {
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
pub(crate) fn link<P: Protocol>(
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
            table.index.link::<false>(record, key, place, &mut supplies, inherit_from_node)
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
            Cache::of(&mut local.caches, &table.records).return_ready(record.block());
            match linked? {
                Linked::Existing(existing) => Ok(existing),
                Linked::New { .. } => unreachable!("handled above"),
            }
        }
    }
}
