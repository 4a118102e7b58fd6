//! Phases of a commit, of the list in `mod.rs`, which also has the proof. `commit.rs` calls them.

#![forbid(unsafe_code)]

use super::early;
use super::{Attempt, Occ};
use crate::access::WriteSet;
use crate::engine::{Committed, Context};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::protocols::shared::cell_lock::{
    begin_install, fence_after_locking, flags_of_deleted, release_cell, release_installed,
};
use crate::protocols::shared::read_set::first_changed;
use crate::record::{CellAt, Tid};
use crate::sync::{MULTI_COPY_ATOMIC, full_fence};

/// Commits an attempt that has written nothing. Runs phase 3, and only if the attempt is not opaque
/// and has read more than one cell or observed a node.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn commit_reads(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &WriteSet,
) -> Result<Committed, Abort> {
    let at_one_moment =
        attempt.view.is_opaque() || attempt.reads.len() <= 1 && attempt.nodes.is_empty();
    if !at_one_moment {
        validate_ranges(context, attempt, writes)?;
    }
    Ok(Committed::NOTHING)
}

/// The largest number of validations of one attempt at one time: another one follows if numbers of
/// which the attempt has observed ranges have changed, and are still in these ranges.
pub(super) const VALIDATIONS_MAX: u32 = 8;

/// Runs phases 2 and 3. Returns the commit's version.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn certify(
    context: &mut Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<Tid, Abort> {
    choose_version(context, attempt, writes)
        .inspect(|_| fence_after_epoch(context))
        .and_then(|version| validate(context, attempt, writes).map(|()| version))
}

/// Runs phases 2 and 3 again, which have failed by `conflict`, as long as that is due to numbers
/// that have changed within ranges which the attempt has observed. The versions that take the place
/// of the old ones have been read after the commit's fence, so the fence is issued again: its place
/// is the commit's in the serial order.
#[cold]
#[inline(never)]
pub(super) fn certify_ranges(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &WriteSet,
    conflict: Abort,
) -> Result<Tid, Abort> {
    let is_own = |at| writes.find(at).is_some();
    let mut version = None;
    let mut again = |context: &mut Context<'_, Occ>, attempt: &Attempt| {
        fence_after_locking();
        version = Some(certify(context, attempt, writes)?);
        Ok(())
    };
    with_ranges(context, attempt, conflict, &is_own, &mut again)?;
    Ok(version.expect("a validation has succeeded"))
}

/// Runs phase 3 without phase 2, again as long as the numbers are in their ranges.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn validate_ranges(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &WriteSet,
) -> Result<(), Abort> {
    validate(context, attempt, writes).or_else(|conflict| {
        let mut again =
            |context: &mut Context<'_, Occ>, attempt: &Attempt| validate(context, attempt, writes);
        with_ranges(context, attempt, conflict, &|_| false, &mut again)
    })
}

/// A validation.
type Validation<'a> = dyn FnMut(&mut Context<'_, Occ>, &Attempt) -> Result<(), Abort> + 'a;

/// Repeats a validation that has failed by `conflict`, by calling `again`, as long as it fails
/// because of numbers that are still in the ranges which the attempt has observed.
///
/// # Errors
/// The conflict, which is about the number that has left its range, if one has.
#[cold]
#[inline(never)]
fn with_ranges(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    conflict: Abort,
    is_own: &dyn Fn(CellAt) -> bool,
    again: &mut Validation<'_>,
) -> Result<(), Abort> {
    let mut validated = Err(conflict);
    for _ in 1..VALIDATIONS_MAX {
        if validated != Err(Abort::ReadChanged) {
            break;
        }
        match attempt.ranges.refresh(&mut attempt.reads, is_own) {
            Ok(true) => validated = again(context, attempt),
            Ok(false) => break,
            Err(at) => {
                context.conflict(Abort::ReadChanged, at);
                break;
            }
        }
    }
    attempt.ranges.end_refresh(&mut attempt.reads, validated.is_ok());
    if validated.is_ok() {
        context.local.conflict = None;
    }
    validated
}

/// Runs phase 2. Returns the smallest version of the current epoch that is above every version read
/// or replaced, and above the last version that the session installed (OC2, OC4).
#[inline]
fn choose_version(
    context: &Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<Tid, Abort> {
    let read = attempt.reads.iter().map(|(_, tid)| tid.version());
    let replaced = writes.items().iter().map(|item| Tid(item.note).version());
    let floor = read.chain(replaced).fold(attempt.last.map_or(0, Tid::version), u64::max);
    loop {
        // The write set is locked (OC4).
        let epoch = context.engine.epochs.now();
        context.check_stamp(epoch)?;
        debug_assert!(Tid(floor).epoch() <= epoch, "OC4: epochs of versions have begun");
        if let Some(version) = Tid(floor).next_in(epoch) {
            debug_assert!(
                is_above(version, attempt, writes),
                "OC2: the version is above those read, those replaced and the session's last"
            );
            return Ok(version);
        }
        // The loop loads the epoch again, still after the last lock, as OC4 requires.
        leave_epoch(context, epoch)?;
    }
}

/// Begins the next epoch, since the version numbers of `epoch` are used up.
#[cold]
#[inline(never)]
fn leave_epoch(context: &Context<'_, Occ>, epoch: Epoch) -> Result<(), Abort> {
    context.engine.epochs.advance_past(epoch);
    if context.engine.epochs.now() == epoch { Err(Abort::VersionsExhausted) } else { Ok(()) }
}

/// Returns whether `version` exceeds every version that the commit read or replaces, and the last
/// version that its session installed (OC2).
fn is_above(version: Tid, attempt: &Attempt, writes: &WriteSet) -> bool {
    let is_below = |other: Tid| other.version() < version.version();
    let read = attempt.reads.iter().all(|&(_, tid)| is_below(tid));
    let replaced = writes.items().iter().all(|item| is_below(Tid(item.note)));
    read && replaced && attempt.last.is_none_or(is_below)
}

/// Orders the load of a commit's epoch before its validation (E29).
#[cfg_attr(not(debug_assertions), inline(always))]
fn fence_after_epoch(context: &Context<'_, Occ>) {
    if !MULTI_COPY_ATOMIC && context.local.is_logged {
        full_fence(); // E29
    }
}

/// Runs phase 3. Checks that every cell has the version that was read, whether or not it was locked
/// early (LK1), and that no other session is committing to the cell. Checks that every node has the
/// version that was observed.
fn validate(
    context: &mut Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<(), Abort> {
    match first_changed(&attempt.reads, |at| writes.find(at).is_some()) {
        Some(at) => Err(context.conflict(Abort::ReadChanged, at)),
        None => attempt.nodes.validate(context),
    }
}

/// Runs phase 5 for one item: stores its words, and releases its cell with the new version.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn install(
    context: &mut Context<'_, Occ>,
    writes: &mut WriteSet,
    index: usize,
    version: Tid,
) {
    let item = &mut writes.items_mut()[index];
    let (at, was) = begin_install(item);
    let mut new = version.0 | was.0 & (Tid::QUEUED | early::KEPT);
    if item.present {
        writes.install(index, at.payload());
    } else if was.has(Tid::ABSENT) {
        item.untouched = true;
        return release_cell(context, at, was.unlocked());
    } else {
        new |= flags_of_deleted(was);
    }
    release_installed(context, at, was, Tid(new));
}
