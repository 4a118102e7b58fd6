//! The commit of the policy `pipelined`. `locks/pipeline` describes chains, with their invariants.
//!
//! # Guarantee
//! That of `occ`, for tables of this policy and others in one transaction.
//!
//! # Phases
//! L. Lock the write set in the order of ranks; relax each pipelined lock as soon as it is granted.
//!    Rows whose keys follow from the results of steps come later (`keyed.rs`).
//! 1. Wait until the predecessors are done with the items that this commit has taken over. Check
//!    the expectations, and evaluate. If anything fails, the commit has no effect.
//! 2. Execute: store the words of pipelined items. Show that this is done.
//! 3. Wait until the predecessors are over. Take the turn to log, issue the fence, take the epoch
//!    and choose the version, as `occ` does.
//! 4. Publish, or leave, the version in each cell. Install the other items. Be over.
//!
//! A commit that has read is *wild*: it runs phase 3 first, validates, and then evaluates and
//! executes. So is one that replaces values outside of records, since they are noted with the
//! version; and near the last epoch, where no version may be left, each is. The others are *tame*.
//!
//! # Why it is serializable
//! The paper's three theorems, with conditions that can fail, which its tame transactions do not
//! have. The paper orders commits by their ends; here the order is that of their fences.
//!
//! *Tame commits are strictly serializable (theorem 1).* The proof of `occ` needs two facts.
//! INSTALL is in each written cell before the fence: the first member of the chain has set it
//! (PL1). And a commit whose predecessor wrote a cell has its fence later: a member's fence follows
//! the ends of its predecessors (PL3), and these follow their fences. A step reads what its
//! predecessors have executed (PL4), and all of these commit, since nothing fails after the first
//! execution (PL7): no failure spreads. Cells without chains are locked until the end, as under
//! `occ`.
//!
//! A commit whose guard does not hold, or whose step panics, executes nothing, and its successors
//! go on as if it had not been. Its place is behind its predecessors: it has evaluated under all
//! its locks, when its predecessors had executed, and has read nothing else.
//!
//! *No deadlock, and opacity (theorem 2).* `locks/pipeline` proves the former. A tame transaction
//! sees nothing before its commit. Its steps see the state at its place, even if it fails then:
//! each commit before it that writes one of its cells has executed (PL4), no later one can (PL1),
//! and what has been executed is committed (PL7).
//!
//! *Wild and tame commits together (theorem 3).* A wild commit locks as a tame one, so there is no
//! deadlock. It compares versions after its predecessors are over and after its fence. Then the TID
//! word has the version of the words (PL5): so what was read and has been replaced in a chain is
//! found, and INSTALL tells of chains in other cells. The rest is the proof of `occ`, and the views
//! of `occ` keep its reads opaque. A commit with effects on values outside of records is wild, too.
//!
//! Versions of a row rise along a chain (OC2 with PL5), and so do stamps (OC4), so recovery and
//! cuts need nothing new. A reader sees only what the last member publishes. That is the version of
//! the last member that has executed something, with its words, so views need nothing new either.
//!
#![forbid(unsafe_code)]

mod existence;
mod keyed;
mod locking;

pub(super) use keyed::Keyed;

use super::early::{self, Hold};
use super::phases::{certify, certify_ranges, install};
use super::{Attempt, Occ};
use crate::access::{Failure, WriteItem, WriteSet, steps};
use crate::engine::{Committed, Context, class_of};
use crate::epoch::EPOCH_MAX;
use crate::error::Abort;
use crate::log::LogTurn;
use crate::protocols::shared::cell_lock::{
    evaluate, fence_after_locking, release_cell, release_installed,
};
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::stats::LockCount;
use crate::sync::{Ordering, Point, pass};
use existence::{check_existence, word_of};
use std::panic::resume_unwind;

/// The number of epochs before the last one in which every commit is wild. No commit lasts as long.
const LAST_EPOCHS: u64 = 1 << 20;

/// Commits an attempt that has begun its pipeline. On return nothing is locked.
#[cold]
#[inline(never)]
pub(super) fn commit(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
    keyed: Option<&Keyed>,
) -> Result<Committed, Abort> {
    context.reserve_for(writes);
    let committed = match locking::lock_in_order(context, attempt, writes, 0) {
        Ok(()) => run(context, attempt, writes, turn, keyed)
            .inspect_err(|_| attempt.early.count(LockCount::Nullified)),
        Err((abort, at)) => Err(Failure::Outcome(context.conflict(abort, at))),
    };
    if let Err(failure) = &committed {
        let is_conflict = matches!(failure, Failure::Outcome(abort) if abort.is_conflict());
        nullify(context, attempt, writes, is_conflict);
    }
    attempt.early.end_pipeline(context, writes.items());
    match committed {
        Ok(committed) => Ok(committed),
        Err(Failure::Outcome(abort)) => Err(abort),
        Err(Failure::Panic(panic)) => {
            attempt.early.after(context, &attempt.reads, writes, false);
            resume_unwind(panic)
        }
    }
}

/// Runs phases 1 to 4. After an error, nothing has been executed and all cells are locked.
fn run(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
    keyed: Option<&Keyed>,
) -> Result<Committed, Failure> {
    let wildness = wildness(context, attempt);
    if let Some(reason) = wildness {
        attempt.early.count(reason);
        if keyed.is_some() {
            return Err(keyed::at_once(context, writes));
        }
    } else {
        match keyed {
            None => {
                attempt.early.await_done(context);
                check_existence(context, attempt, writes)?;
                evaluate_at_once(writes)?;
            }
            Some(keyed) => keyed.lock_and_evaluate(context, attempt, writes)?,
        }
        pass(Point::Evaluated);
        execute(attempt, writes);
        attempt.early.note_done(context);
        pass(Point::Executed);
    }
    attempt.early.await_predecessors(context);
    note_words(attempt, writes);
    pass(Point::InOrder);
    turn.take(); // LG1, LG2
    fence_after_locking();
    let certified = certify(context, attempt, writes)
        .or_else(|conflict| certify_ranges(context, attempt, writes, conflict));
    let version = if wildness.is_some() {
        let version = certified.map_err(Failure::Outcome)?;
        check_existence(context, attempt, writes)?;
        let replaced = |item: &WriteItem| Tid(item.note).version();
        evaluate(context.local, writes, version.version(), replaced)?;
        execute(attempt, writes);
        attempt.early.note_done(context);
        version
    } else {
        // A tame commit validates nothing, and has its version before the last epoch.
        certified.expect("PL7: nothing fails after the first item is executed")
    };
    steps::correct_observed(|at| writes.find(at).map(|index| Tid(writes.items()[index].note)));
    for number in 0..attempt.early.links().len() {
        leave(context, attempt, writes, number, Some(version));
    }
    attempt.view.meet_installed(writes.items(), version);
    attempt.last = Some(version);
    Ok(Committed { version: version.version(), stamp: version.epoch() })
}

/// Returns the conflict of a commit that would have to compute keys, and cannot.
#[cold]
pub(super) fn refuse_keys(
    context: &mut Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Abort {
    attempt.early.count(LockCount::UnchainedLate);
    match keyed::at_once(context, writes) {
        Failure::Outcome(abort) => abort,
        Failure::Panic(panic) => resume_unwind(panic),
    }
}

/// Returns the reason for which an attempt is wild; `None` for a tame one.
fn wildness(context: &Context<'_, Occ>, attempt: &Attempt) -> Option<LockCount> {
    let is_late = || context.engine.epochs.now() > EPOCH_MAX - LAST_EPOCHS;
    if !attempt.reads.is_empty() {
        Some(LockCount::WildReads)
    } else if !attempt.nodes.is_empty() {
        Some(LockCount::WildKeys)
    } else {
        let is_other = context.local.values.is_used() || is_late();
        is_other.then_some(LockCount::WildOthers)
    }
}

/// Ends a commit that has failed, and leaves its chains as they are. After a conflict, first
/// releases what others wait for without a chain.
fn nullify(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    is_conflict: bool,
) {
    if is_conflict {
        locking::release_alone(context, attempt, writes);
    }
    attempt.early.await_predecessors(context);
    attempt.early.note_done(context);
    if !is_conflict {
        locking::release_alone(context, attempt, writes);
    }
    for number in 0..attempt.early.links().len() {
        leave(context, attempt, writes, number, None);
    }
}

/// Evaluates a tame commit on the words that its predecessors have left.
fn evaluate_at_once(writes: &mut WriteSet) -> Result<(), Failure> {
    pass(Point::Validated);
    // The versions are known when the predecessors are over.
    writes.evaluate(|item| Words::Shared(item.at.payload()), |_| 0)
}

/// Stores the words of all pipelined items, and whether their rows exist (PL4, PL5).
fn execute(attempt: &Attempt, writes: &mut WriteSet) {
    for link in attempt.early.links().iter().filter(|link| link.hold == Hold::InChain) {
        let (cell, was) = (link.at.cell_word(0), word_of(link.at));
        pass(Point::Installing);
        let item = &mut writes.items_mut()[link.index];
        if item.present {
            writes.install(link.index, link.at.payload());
            if was.has(Tid::ABSENT) {
                // An exchange: a predecessor may be leaving its version in the word.
                cell.fetch_and(!Tid::ABSENT, Ordering::Release);
            }
        } else if was.has(Tid::ABSENT) {
            item.untouched = true;
        } else {
            let requeue = if was.has(Tid::QUEUED) { Tid::REQUEUE } else { 0 }; // CL6
            cell.fetch_or(Tid::ABSENT | requeue, Ordering::Release);
        }
    }
}

/// Notes the TID words of all pipelined items. The predecessors are over, so the words have the
/// versions of what is replaced, or was read.
fn note_words(attempt: &Attempt, writes: &mut WriteSet) {
    for link in attempt.early.links().iter().filter(|link| link.hold == Hold::InChain) {
        let word = word_of(link.at).0;
        let untouched = writes.items()[link.index].untouched;
        debug_assert!(untouched || Tid(word).has(Tid::LOCK), "PL1: the chain has locked the cell");
        writes.items_mut()[link.index].note = word;
    }
}

/// Leaves the cell of a link: publishes the version (PL5) if the attempt is the last member of the
/// chain, and otherwise leaves the version to the successor. Without a version, the attempt has
/// executed nothing.
fn leave(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    number: usize,
    version: Option<Tid>,
) {
    let link = attempt.early.links()[number];
    let version = version.filter(|_| !writes.items()[link.index].untouched);
    match (link.hold, version) {
        (Hold::Nothing, _) => {}
        (Hold::Alone, Some(version)) => install(context, writes, link.index, version),
        (Hold::Alone, None) => {
            let note = Tid(writes.items()[link.index].note);
            if note.0 != 0 {
                release_cell(context, link.at, note.unlocked());
            }
        }
        (Hold::InChain, version) => {
            if attempt.early.begin_to_close(number) {
                publish(context, attempt, link.at, version);
                attempt.early.end_chain(context, number);
            } else if let Some(version) = version {
                leave_version(context, link.at, version);
            }
        }
    }
}

/// Publishes a cell as the last member of its chain. Without a new version, the cell keeps the one
/// that its predecessors have left.
fn publish(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    at: CellAt,
    version: Option<Tid>,
) {
    let was = word_of(at);
    let kept = match version {
        None => was.unlocked(),
        Some(version) if was.has(Tid::ABSENT) => {
            Tid(version.0 | was.0 & (Tid::QUEUED | Tid::ABSENT | Tid::REQUEUE | early::FROZEN))
        }
        Some(version) => Tid(version.0 | was.0 & (Tid::QUEUED | early::FROZEN)),
    };
    let kept = attempt.early.following(context, at, kept);
    match version {
        Some(_) => release_installed(context, at, was, kept),
        None => release_cell(context, at, kept),
    }
}

/// Leaves a version in a cell that a successor has taken over, and that stays locked.
fn leave_version(context: &mut Context<'_, Occ>, at: CellAt, version: Tid) {
    let cell = at.cell_word(0);
    let mut was = word_of(at);
    loop {
        let flags = was.0 & !was.version() & !Tid::WATCHED;
        // Relaxed: the successor reads the word when this attempt is over (E31). An exchange: the
        // successor may be setting ABSENT.
        let (now, relaxed) = (version.version() | flags, Ordering::Relaxed);
        match cell.compare_exchange(was.0, now, relaxed, relaxed) {
            Ok(_) => break,
            Err(now) => was = Tid(now),
        }
    }
    if was.has(Tid::WATCHED) {
        context.local.note_changed(class_of(at.address())); // WT2
    }
}

/// Flags of the policies are not the chain's.
const _: () = assert!(early::FLAGS & (Tid::LOCK | Tid::INSTALL | Tid::ABSENT) == 0);
