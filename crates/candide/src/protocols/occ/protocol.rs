//! The implementation of the contract between transactions and concurrency control.

#![forbid(unsafe_code)]

use super::commit::{commit, commit_keyed, commit_known};
use super::early::{EarlyLocks, Shared, SharedLocks, When, init_lock};
use super::phases::{commit_reads, validate_ranges};
use super::ranges::Ranges;
use super::view::{self, View};
use super::{Attempt, Occ, reading};
use crate::access::{Intent, WriteSet};
use crate::engine::{
    Absence, Committed, Context, Deferred, Due, GcOutcome, Missing, NoVersions, Properties,
    Protocol, Seen, TableCore, Unwatched, Watch,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::locks::CallWish;
use crate::log::LogTurn;
use crate::policy::Policies;
use crate::protocols::shared::cell_lock::{
    enqueue_if_absent, look_again, may_be_reaped, note_end, reap, request_requeue,
};
use crate::protocols::shared::late_rows::LateRows;
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::read_set::ReadSet;
use crate::record::{CellAt, Tid};
use crate::schema::{NumberRange, Op, Words};
use crate::stats::LockCounters;
use crate::sync::Ordering;
use crate::timestamps::Timestamps;
use std::any::Any;
use std::sync::Arc;

impl Protocol for Occ {
    const NAME: &'static str = "occ";
    const STRICT: bool = true;
    const OPAQUE: bool = true;
    const OPAQUE_BY_LOOKS: bool = true;
    const ASSUMES_BLINDLY: bool = true;
    const CELL_WORDS: usize = 1;
    const NODE_WORDS: usize = 0;
    const SINGLE_READ_COMMITS: bool = true;
    const LATE_ROWS: bool = true;
    type Versions = NoVersions;
    type InPlace = Deferred;

    fn properties(policies: &Policies) -> Properties {
        Properties { name: policies.name(), ..Properties::of::<Self>() }
    }

    fn clock(policies: &Policies, _timestamps: Timestamps, epochs: &Arc<Epochs>) -> Shared {
        Shared { epochs: epochs.clone(), locks: SharedLocks::new(policies) }
    }

    fn table_locks(clock: &Shared) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(clock.locks.clone())
    }

    fn attempt(clock: &Shared, counts: &Arc<LockCounters>) -> Attempt {
        Attempt {
            reads: ReadSet::default(),
            ranges: Ranges::default(),
            nodes: NodeSet::default(),
            early: EarlyLocks::new(clock, counts),
            view: View::new(&clock.epochs),
            last: None,
            frozen_epoch: 0,
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(context: &mut Context<'_, Occ>, attempt: &mut Attempt) {
        debug_assert!(attempt.early.is_unused(), "C2: the attempt before has ended");
        attempt.view.begin(context);
        attempt.reads.clear();
        attempt.nodes.clear();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        reading::read(context, attempt, at, copy)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_at_once(
        attempt: &mut Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        reading::read_at_once(attempt, at, copy)
    }

    fn read_for_update(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        reading::read_for_update(context, attempt, at, copy)
    }

    fn hold(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        attempt.early.hold_ahead(context, &attempt.reads, at)
    }

    #[cold]
    fn loosen(attempt: &mut Attempt, at: CellAt, range: NumberRange) -> bool {
        // A frozen unit has not been observed.
        if attempt.reads.last().is_none_or(|(last, _)| last.address() != at.address()) {
            return false;
        }
        attempt.ranges.loosen(&mut attempt.reads, at, range);
        true
    }

    fn loosened(attempt: &Attempt, each: &mut dyn FnMut(CellAt, u64)) {
        attempt.ranges.for_each(&attempt.reads, each);
    }

    fn lock_ahead(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        writes: bool,
    ) -> Result<(), Abort> {
        attempt.early.lock_ahead(context, at, writes)
    }

    fn waits_to_link(context: &mut Context<'_, Occ>, attempt: &Attempt, table: u16) -> bool {
        attempt.reads.is_empty()
            && attempt.nodes.is_empty()
            && attempt.early.waits_to_link(context, table)
    }

    fn finds_keys_late(context: &mut Context<'_, Occ>, attempt: &Attempt, table: u16) -> bool {
        attempt.reads.is_empty()
            && attempt.nodes.is_empty()
            && attempt.early.finds_keys_late(context, table)
    }

    fn assumes_blindly(context: &mut Context<'_, Occ>, at: CellAt) -> bool {
        EarlyLocks::finds_existence(context, at)
    }

    fn is_permanent(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        attempt.is_permanent(context, at)
    }

    fn end_wait(context: &mut Context<'_, Occ>, at: CellAt) {
        EarlyLocks::end_wait(context, at);
    }

    fn lock_place(context: &mut Context<'_, Occ>, attempt: &Attempt, at: CellAt) -> Option<u64> {
        attempt.early.place(context, at)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_present(_attempt: &Attempt, at: CellAt) -> bool {
        !Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn assumes(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        attempt.assumes(context, at, exists)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn stage(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        attempt.early.before_write(context, &attempt.reads, at, When::Staging)?;
        writes.stage(at, intent, op);
        Ok(())
    }

    fn revalidate(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        validate_ranges(context, attempt, writes)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn commit(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        let committed = match writes.is_empty() {
            true => commit_reads(context, attempt, writes),
            false => commit_known(context, attempt, writes, turn),
        };
        end(context, attempt, writes, committed)
    }

    #[cold]
    fn commit_late(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        if writes.keyed().next().is_some() {
            let committed = commit_keyed(context, attempt, writes, turn);
            return end(context, attempt, writes, committed);
        }
        let rows = writes.late_row_count();
        attempt.reads.reserve(rows); // C4
        attempt.view.reserve_links(rows); // C4
        let mut late = LateRows::take(context);
        let committed = match late.prepare(context, attempt, writes) {
            Ok(()) => commit(context, attempt, writes, turn, &late),
            Err(abort) => Err(abort),
        };
        late.give_back(context);
        end(context, attempt, writes, committed)
    }

    fn seen_stamp(_clock: &Shared, epochs: &Epochs, attempt: &Attempt) -> u64 {
        attempt.seen_stamp(epochs)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_set_size(attempt: &Attempt) -> usize {
        attempt.reads.len() + attempt.nodes.len()
    }

    fn abort(context: &mut Context<'_, Occ>, attempt: &mut Attempt, writes: &mut WriteSet) {
        attempt.early.after(context, &attempt.reads, writes, false);
    }

    fn watch(
        _context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched> {
        attempt.reads.watch(watch)?;
        attempt.nodes.watch(watch)
    }

    fn begin_ts_bound(clock: &Shared) -> u64 {
        clock.epochs.stamp()
    }

    fn reach(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        epoch: u64,
        _table: u16,
    ) -> Result<(), Abort> {
        if attempt.view.is_later_than(epoch) {
            return Ok(());
        }
        attempt.move_view(None).map_err(|stuck| view::conflict(context, stuck))
    }
}

/// Ends an attempt after its commit, which has succeeded or failed.
#[cfg_attr(not(debug_assertions), inline(always))]
fn end(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &WriteSet,
    committed: Result<Committed, Abort>,
) -> Result<Committed, Abort> {
    if committed.is_ok() {
        attempt.view.end();
    }
    attempt.early.after(context, &attempt.reads, writes, committed.is_ok());
    note_end();
    committed
}

impl Absence for Occ {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn absent(
        _context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        attempt.nodes.observe(missing);
        Ok(())
    }

    #[inline]
    fn init_absent_cell(_clock: &Shared, at: CellAt, flags: u64) {
        at.cell_word(0).store(Tid::INITIAL.0 | flags, Ordering::Relaxed);
        if at.cell_words() > 1 {
            init_lock(at);
        }
    }

    #[inline]
    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        if attempt.nodes.linked(node, before, after) {
            attempt.reads.push(first, Tid::INITIAL);
        } else {
            attempt.view.note_existence(first, false);
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        attempt.nodes.divided(change);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_be_reaped(_clock: &Shared, first: CellAt) -> bool {
        may_be_reaped(first)
    }

    fn keep(context: &mut Context<'_, Occ>, first: CellAt) -> Result<bool, Abort> {
        let tid = match request_requeue(first) {
            Ok(is_kept) => return Ok(is_kept),
            Err(tid) => tid,
        };
        let wish = CallWish::of(context.engine, first);
        wish.express();
        let look = || request_requeue(first).inspect_err(|_| wish.express());
        look_again(context.again(), first, tid, look)
    }

    fn enqueue_if_absent(_clock: &Shared, first: CellAt) -> bool {
        enqueue_if_absent(first)
    }

    fn reap(
        _context: &mut Context<'_, Occ>,
        _due: &mut Due,
        _table: &TableCore,
        units: &[CellAt],
        horizon: Epoch,
    ) -> GcOutcome {
        let outcome = reap(units);
        let epoch = || Tid(units[0].cell_word(0).load(Ordering::Relaxed)).epoch();
        debug_assert!(
            outcome != GcOutcome::Dead || epoch() < horizon,
            "VW3: the epoch of a deletion is below the horizon"
        );
        outcome
    }
}
