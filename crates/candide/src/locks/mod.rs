//! The locks that attempts take before phase 1 of their commits: cells that reads for update hold
//! (`held.rs`), and rows by policy, for transactions of `Occ`. This page is about locks by policy.
//!
//! # Guarantee
//! None, and none is needed (LK1): the proof of `protocols/occ/mod.rs` holds for every policy, even
//! for a policy that answers by chance.
//!
//! # Cells
//! A table has cells of two words if its policy locks ([`Policy::locks`]), or of four with queue
//! locks. The words behind the TID word are the lock, called the second word here. Two flags in the
//! TID word demand a step before the TID word is used:
//! * RASK: a reader asks the table's policy before it reads.
//! * WASK: a writer asks the table's policy as it stages a write, and takes the second word before
//!   it locks the TID word.
//!
//! A cell without these flags is read and written as under `Occ` alone.
//!
//! # Invariants
//! * **LK1** Locks are hints. Every write is installed under the lock in the TID word, which is set
//!   before the fence, and every read is validated, whatever else was locked.
//! * **LK2** The second word is changed by the rules of `word.rs`: a reader's part by that reader,
//!   the rest by the writer.
//! * **LK3** RASK and WASK are set only by an exchange of an unlocked TID word, by the owner of the
//!   TID word as it releases the word, or before the record is linked. So no writer is between its
//!   look at the flags and its lock.
//! * **LK4** RASK and WASK are cleared only by a session that holds the second word for writing. A
//!   change of the table's policy also clears them in a cell whose queue lock it has found free.
//! * **LK5** A session that has been granted the second word looks at the TID word again. If it
//!   need not ask any more, it releases the second word and continues without it.
//! * **LK6** A writer of a cell with WASK takes the second word for writing, and then locks the TID
//!   word. The writer releases the TID word first, so the next holder sees the new version.
//!
//! Serializability rests on LK1 alone; LK3 to LK6 hold usually. By them a cell is not installed
//! while a session holds its second word for reading (`tests/asking.rs` explores all interleavings
//! of a model without the exceptions below). In these exceptions a writer does not take the second
//! word. The lock is held by a transaction of the writer's own thread, which cannot continue before
//! the writer ends. Or the writer holds the starvation token, or its transaction has failed to get
//! locks too often: the lock's holder may be stuck in its closure. Or the writer is a commit whose
//! session has no desk: there is none left, or the session has only inserted so far. Or the writer
//! has locked the TID word by a read for update just before the flags were set. Or the lock is a
//! queue lock, and the row was not locked before phase 1, or the session has no node left. Also, a
//! change of a table's policy clears the flags of a cell whose queue lock seems to be free, without
//! taking the lock.
//!
//! # Stamps and cuts
//! Stamps and cuts are those of `protocols/occ/mod.rs`, and so are the proofs, which need no lock
//! by policy (LK1). A commit takes its turn to log when it has all locks, those by policy included
//! (LG2). So a session that waits for a lock does not keep the logger waiting, whatever the lock's
//! holder does.
//!
//! # Waiting
//! Every wait is bounded: by a number of rounds, or by 10 ms asleep if no circle of waits is
//! possible or the policy finds circles; under deferred-2pl by 100 ms or a second (`waiting.rs`).
//! Waits of the policy `pipelined`, in chains of commits, have no bound (`pipeline`).
//!
//! # Source
//! [HU18], section 3.2, for the adaptive lock, the use of SwissTM [DR09], and the commit that all
//! of these share; [WK16], section 5.1.1, for no-wait, dreadlock [KO08] and PCC; [RO78] for
//! wait-die. `learning.rs` has the sources of `mocc` and `hybrid`. The papers skip the validation
//! of locked rows; this engine validates them. Where dreadlock's digests spread from waiter to
//! waiter, ours name the holders only, and a waiter follows them: so the last waiter of a circle
//! finds it at once, even if the others sleep. SwissTM's writer keeps its ticket from attempt to
//! attempt here, and a request to abort names the attempt.

#![forbid(unsafe_code)]

mod cell_queue;
mod chain;
mod change;
mod desks;
mod heat;
mod held;
mod learning;
mod patience;
mod pipeline;
mod row_lock;
mod row_locks;
mod shared;
mod table_policies;
mod temperatures;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;
mod waiting;
mod word;

#[cfg(test)]
pub(crate) use cell_queue::{queue, queue_mode};
pub(crate) use chain::{CallWish, end_want, is_in_chain, want_end};
pub(crate) use change::{follow_policy, forget_frozen, note_frozen, with_flags};
#[cfg(test)]
pub(crate) use desks::class_of;
pub(crate) use held::{Early, HeldCells, wait_to_own};
pub(crate) use learning::learn;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use patience::long_patience;
pub(crate) use patience::{LOCK_ROUNDS_MAX, ROUNDS_HELD, patience};
pub(crate) use pipeline::{Hold, Link, Pipeline, following};
pub(crate) use row_locks::{Grant, RowLocks};
pub(crate) use shared::{LockBase, Locker, SessionLocks, SharedLocks};
pub(crate) use table_policies::LAST_RANK;
pub(crate) use waiting::{When, lock_place};
#[cfg(test)]
pub(crate) use word::{Lock, LockWord};
pub(crate) use word::{Mode, init_lock};

use crate::policy::{MoccOptions, Policy};
use crate::record::Tid;

/// A reader asks the table's policy first.
pub(crate) const RASK: u64 = Tid::own_flag(0);
/// A writer asks the table's policy first.
pub(crate) const WASK: u64 = Tid::own_flag(1);
/// A read is of a range: it holds as long as a number of its unit lies in the range. Set in words
/// of read sets, and never in a cell.
pub(crate) const RANGE: u64 = Tid::own_flag(4);
/// The unit may be frozen ([`TablePolicies::is_frozen`]). A hint: a cell without it is read as any
/// other.
pub(crate) const FROZEN: u64 = Tid::own_flag(2);
/// The flags of policies together.
pub(crate) const FLAGS: u64 = RASK | WASK;

/// Returns the flags with which cells in a table with this policy begin. Under the policies
/// `adaptive`, `mocc` and `hybrid`, flags come and go.
#[inline]
pub(crate) fn flags_of(policy: Policy, options: MoccOptions) -> u64 {
    match policy {
        Policy::Optimistic | Policy::Hybrid => 0,
        Policy::Swiss | Policy::Adaptive | Policy::DeferredTwoPhase | Policy::Pipelined => WASK,
        Policy::Mocc if options.threshold_of_heat() > 0 => 0,
        _ => FLAGS,
    }
}

/// Returns the number of words in a cell of a table whose first policy is this one.
pub(crate) fn cell_words(policy: Policy, options: MoccOptions) -> usize {
    match policy {
        _ if !policy.locks() => 1,
        _ if policy.learns() && options.has_queue_locks() => QUEUE_CELL_WORDS,
        _ => 2,
    }
}

/// Returns the policies that are possible in a table whose cells have this many words.
pub(crate) fn possible(cell_words: usize) -> &'static [Policy] {
    const IN_ORDER: &[Policy] =
        &[Policy::Optimistic, Policy::Pessimistic, Policy::Mocc, Policy::Hybrid];
    match cell_words {
        1 => &[Policy::Optimistic],
        QUEUE_CELL_WORDS => IN_ORDER,
        _ => &Policy::ALL,
    }
}

/// The number of words of a cell with a queue lock.
const QUEUE_CELL_WORDS: usize = 4;
