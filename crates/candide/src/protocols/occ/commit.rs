//! The commit of an attempt that has written something.

#![forbid(unsafe_code)]

use super::early::install_held;
use super::phases::{certify, certify_ranges, install};
use super::pipeline::Keyed;
use super::{Attempt, Occ, pipeline};
use crate::access::{WriteItem, WriteSet};
use crate::engine::{Committed, Context};
use crate::error::Abort;
use crate::log::LogTurn;
use crate::protocols::shared::cell_lock::{
    acquire, evaluate, fail, fence_after_locking, is_owned, release, release_cell,
};
use crate::protocols::shared::late_rows::{Late, NoLateRows};
use crate::record::Tid;
use crate::sync::{Point, pass};

/// Commits an attempt that has no late rows. This is not generic, so that it is compiled with the
/// engine, and not with each crate that uses the engine.
#[inline(never)]
pub(super) fn commit_known(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
) -> Result<Committed, Abort> {
    commit(context, attempt, writes, turn, &NoLateRows)
}

/// Commits in five phases. On return, whether the commit has succeeded or failed, only the locks
/// that [`early`] releases afterwards are held. If an updater panics, nothing stays locked.
pub(super) fn commit(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
    late: &impl Late,
) -> Result<Committed, Abort> {
    attempt.view.reserve();
    if attempt.early.locks_before_phase_1(context, writes)
        && let Some(committed) =
            lock_before_phase_1(context, attempt, writes, turn, !late.is_empty())?
    {
        return Ok(committed);
    }

    // 1 lock
    acquire(context, &mut attempt.early, writes, install_held)?;
    debug_assert!(writes.items().iter().all(is_owned), "OC1: INSTALL is set before the fence");
    let replaced = |item: &WriteItem| Tid(item.note).version();
    late.lock(context, attempt, writes, |attempt| attempt.early.held_cells(), replaced)?; // LR1
    turn.take(); // LG1, LG2
    fence_after_locking();

    // 2 epoch, 3 validate
    let version = certify(context, attempt, writes)
        .or_else(|conflict| certify_ranges(context, attempt, writes, conflict))
        .inspect_err(|_| release(context, writes.items()))?;

    // 4 evaluate
    if let Err(failure) = evaluate(context.local, writes, version.version(), replaced) {
        return Err(fail(context, &mut attempt.early, writes, failure, release_cell));
    }
    let stamp = version.epoch(); // OC4

    // 5 install and release: nothing fails any more (OC3)
    for index in 0..writes.items().len() {
        install(context, writes, index, version);
    }
    attempt.view.meet_installed(writes.items(), version);
    attempt.last = Some(version);
    Ok(Committed { version: version.version(), stamp })
}

/// Takes locks by policy before phase 1, or commits in a pipeline.
#[cold]
#[inline(never)]
fn lock_before_phase_1(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
    has_late_rows: bool,
) -> Result<Option<Committed>, Abort> {
    if let Some(_in_chain) = attempt.early.begin_pipeline(context, writes, has_late_rows) {
        return pipeline::commit(context, attempt, writes, turn, None).map(Some);
    }
    let observed = (&*attempt.reads, &attempt.nodes);
    attempt.early.lock_writes(context, observed, writes)?;
    Ok(None)
}

/// Commits an attempt whose write set has rows whose keys the commit computes: in a pipeline, or
/// not at all.
#[cold]
#[inline(never)]
pub(super) fn commit_keyed(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
) -> Result<Committed, Abort> {
    attempt.view.reserve();
    let is_possible = attempt.reads.is_empty()
        && attempt.nodes.is_empty()
        && writes.late_row_count() == 0
        && !context.local.values.is_used();
    if !is_possible {
        return Err(pipeline::refuse_keys(context, attempt, writes));
    }
    let keyed = Keyed::prepare(context, attempt, writes)?;
    pass(Point::Prepared);
    let committed = match attempt.early.begin_pipeline(context, writes, false) {
        Some(_in_chain)
            if attempt.early.are_below(keyed.first_rank()) && keyed.has_ranks(context, attempt) =>
        {
            attempt.early.set_ceiling(Some(keyed.first_rank()));
            pipeline::commit(context, attempt, writes, turn, Some(&keyed))
        }
        Some(_in_chain) => {
            attempt.early.end_pipeline(context, writes.items());
            Err(pipeline::refuse_keys(context, attempt, writes))
        }
        None => Err(pipeline::refuse_keys(context, attempt, writes)),
    };
    keyed.give_back(context);
    committed
}
