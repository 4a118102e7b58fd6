//! Rows whose keys follow from what the commit has evaluated (`access/keyed.rs`).
//!
//! The commit locks all rows whose keys are known, and evaluates what it can. Then it knows the
//! keys in the tables of the next higher rank. It finds their records, or links absent ones, and
//! locks them, by their addresses. So it goes on in the order of ranks, and PL2 holds as for other
//! rows: until the last row is locked, the commit shows no rank as passed that is not below those
//! of all rows that are still to come. Nothing has been executed by then (PL7).
//!
//! If the ranks of the tables do not fit, or a record is not as it has to be, the attempt ends in a
//! conflict, and the next one computes each key in the closure: `finds_keys_at_once`.

#![forbid(unsafe_code)]

use super::super::{Attempt, Occ};
use super::existence::check_existence;
use super::locking::lock_in_order;
use crate::access::{Failure, Intent, KeyedOp, WriteSet, steps};
use crate::engine::{Context, TableCore};
use crate::error::Abort;
use crate::index::Found;
use crate::memory::Cache;
use crate::protocols::shared::cell_lock::request_requeue;
use crate::protocols::shared::late_rows::{DIVIDED_AT_ONCE, grow_indexes, link};
use crate::record::RecordAt;
use crate::schema::Words;
use std::sync::Arc;

/// The operations of a commit on rows whose keys it computes, by the ranks of their tables.
pub(in super::super) struct Keyed {
    ops: Vec<(u16, KeyedOp)>,
    /// The tables of the database by number.
    tables: Vec<Arc<TableCore>>,
}

impl Keyed {
    /// Makes everything ready for such a commit. Called before the first lock (C4).
    ///
    /// # Errors
    /// [`Abort::MemoryLimit`].
    #[cold]
    pub(in super::super) fn prepare(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<Keyed, Abort> {
        let ops: Vec<_> =
            writes.keyed().map(|op| (attempt.early.rank_of(context, op.table), op)).collect();
        let known = ops.iter().map(|(_, op)| usize::from(op.table) + 1).max().unwrap_or(0);
        let tables = context.local.known_tables.take(context.engine, known);
        let mut keyed = Keyed { ops, tables };
        keyed.ops.sort_by_key(|&(rank, _)| rank);
        match keyed.make_room(context, attempt, writes) {
            Ok(()) => Ok(keyed),
            Err(abort) => {
                keyed.give_back(context);
                Err(abort)
            }
        }
    }

    fn make_room(
        &self,
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<(), Abort> {
        let units = self.ops.iter().map(|(_, op)| op.units.count_ones() as usize).sum();
        let words = self.ops.iter().map(|(_, op)| op.words).sum();
        writes.reserve_keyed(units, words);
        attempt.view.reserve_links(self.ops.len());
        attempt.early.reserve_links(writes.items().len() + units);
        let local = &mut *context.local;
        local.reap_queue.reserve(writes.items().len() + units);
        local.linked.reserve(self.ops.len());
        local.divided.reserve(DIVIDED_AT_ONCE);
        local.retired_parts.reserve(DIVIDED_AT_ONCE);
        local.retired.reserve(DIVIDED_AT_ONCE);
        let inserts = self.ops.iter().filter(|(_, op)| op.intent == Intent::Insert);
        let mut of_tables: Vec<u16> = inserts.map(|(_, op)| op.table).collect();
        of_tables.sort_unstable();
        for of_table in of_tables.chunk_by(|one, other| one == other) {
            let (table, rows) = (&*self.tables[usize::from(of_table[0])], of_table.len());
            grow_indexes(context, attempt, table, rows);
            let local = &mut *context.local;
            local.prepare_to_count(table);
            for slab in [&table.records, table.index.blocks()] {
                let cache = Cache::of(&mut local.caches, slab);
                cache.make_ready(slab, rows, false).map_err(|_| Abort::MemoryLimit)?;
            }
        }
        Ok(())
    }

    /// Gives the list of tables back to the session.
    pub(in super::super) fn give_back(self, context: &mut Context<'_, Occ>) {
        context.local.known_tables.give_back(self.tables);
    }

    /// Returns the first rank of a table with such a row.
    pub(in super::super) fn first_rank(&self) -> u16 {
        self.ops.first().map_or(u16::MAX, |&(rank, _)| rank)
    }

    /// Returns whether the ranks of the tables are the ones with which the commit was prepared.
    /// Once the session's desk shows the attempt, no rank changes.
    pub(in super::super) fn has_ranks(
        &self,
        context: &mut Context<'_, Occ>,
        attempt: &Attempt,
    ) -> bool {
        self.ops.iter().all(|(rank, op)| attempt.early.rank_of(context, op.table) == *rank)
    }

    /// Locks the rows, and evaluates the write set, of which all other items are locked.
    pub(super) fn lock_and_evaluate(
        &self,
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<(), Failure> {
        let mut evaluated = 0;
        for of_rank in self.ops.chunk_by(|one, other| one.0 == other.0) {
            evaluate(context, attempt, writes, &mut evaluated)?;
            let first = attempt.early.links().len();
            for (_, op) in of_rank {
                self.find(context, attempt, writes, op)?;
            }
            // The ranks of the tables that are still to come are above this one.
            let next = self.ops.iter().map(|&(rank, _)| rank).find(|&rank| rank > of_rank[0].0);
            attempt.early.set_ceiling(next);
            attempt.early.add_links(context, &writes.items()[evaluated..], evaluated);
            lock_in_order(context, attempt, writes, first).map_err(|(abort, at)| {
                context.local.wanted.find_keys_at_once();
                Failure::Outcome(context.conflict(abort, at))
            })?;
        }
        match evaluate(context, attempt, writes, &mut evaluated)? {
            true => Ok(()),
            false => Err(at_once(context, writes)),
        }
    }

    /// Finds the record of a row, and adds the items of its units.
    fn find(
        &self,
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        op: &KeyedOp,
    ) -> Result<(), Failure> {
        let key = match steps::key(op.key) {
            Ok(Some(key)) => key,
            Ok(None) => {
                let steps = if op.intent == Intent::Delete { 0 } else { op.units.count_ones() };
                return (0..steps)
                    .try_for_each(|number| steps::run(op.step + number, &mut []))
                    .map_err(Failure::Outcome);
            }
            Err(Abort::NotYet) => return Err(at_once(context, writes)),
            Err(outcome) => return Err(Failure::Outcome(outcome)),
        };
        let table = &*self.tables[usize::from(op.table)];
        let found = table.layout.in_kept_words(key.as_slice(), |key| {
            match (table.index.find(key), op.intent) {
                (Found::Record(record), _) => Some(record),
                (_, Intent::Insert) => link(context, attempt, table, key).ok(),
                _ => None,
            }
        });
        let is_kept = |record: RecordAt| {
            op.intent != Intent::Insert
                || request_requeue(table.layout.first_of(record)) == Ok(true)
        };
        let Some(record) = found.filter(|&record| is_kept(record)) else {
            // The key has no record, or one that is leaving, or there is no memory for one.
            return Err(at_once(context, writes));
        };
        let units = table.layout.cells(record).enumerate();
        let units = units.filter(|(unit, _)| op.units >> unit & 1 != 0);
        for (number, (_, at)) in units.enumerate() {
            if writes.find(at).is_some() {
                return Err(at_once(context, writes));
            }
            writes.stage_keyed(op, number as u32, at);
        }
        Ok(())
    }
}

/// Evaluates what can be evaluated now, and returns whether that is everything. The items from
/// `evaluated` on are new, and locked.
fn evaluate(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    evaluated: &mut usize,
) -> Result<bool, Failure> {
    attempt.early.await_done(context);
    check_existence(context, attempt, writes).inspect_err(|_| {
        context.local.wanted.find_keys_at_once();
    })?;
    let from = std::mem::replace(evaluated, writes.items().len());
    writes.evaluate_ready(from, |item| Words::Shared(item.at.payload()))
}

/// Returns the conflict after which the next attempt computes each key in the closure.
#[cold]
pub(in super::super) fn at_once(context: &mut Context<'_, Occ>, writes: &WriteSet) -> Failure {
    context.local.wanted.find_keys_at_once();
    let at = writes.items()[0].at;
    Failure::Outcome(context.conflict(Abort::ReadChanged, at))
}
