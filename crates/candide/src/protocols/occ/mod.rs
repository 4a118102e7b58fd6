//! Optimistic concurrency control: read without locks, lock what is written, validate what was
//! read.
//!
//! # Guarantee
//! Serializable, and strictly so: the serial order agrees with real time. Opaque: all that an
//! attempt shows to its closure is of one moment after the attempt began, even if the attempt is
//! going to abort. A database can [turn opacity off](crate::Builder::opaque).
//!
//! # Source
//! Silo [TU13], in the form of "Opportunities for Optimism" [HU20], section 2. Differences:
//! * A row consists of atomic words. A read copies them between two loads of the version word,
//!   without fences.
//! * A blind write assumes that its row exists, or that the row is absent. The commit checks the
//!   assumption as it locks the row; the row is not read.
//! * The record of an insert is absent until the insert is committed.
//! * A read for update may lock early, and so may the policy of a table (`early.rs`).
//!
//! # Phases
//! 0. Read. A version that belongs to the view of the attempt is accepted. At any other version the
//!    view moves forward first (`view.rs` has the rule and its proof).
//! 1. Lock the write set, checking each item's expectation, and then the late rows, whose keys
//!    follow from it (`protocols/shared/late_rows.rs`). Then issue a full fence.
//! 2. Take the epoch and choose the version.
//! 3. Validate reads and nodes.
//! 4. Evaluate updaters, and run steps, in the order of the program.
//! 5. Install and release.
//!
//! Phase 0 is in `reading.rs`; the others are in `phases.rs`, called by `commit.rs`, and in another
//! order by `pipeline`, for the policy of that name. An attempt that has written nothing skips
//! phases 1 to 5, since its view is of one moment (VW5). Without opacity the attempt runs
//! phase 3, unless it has read at most one cell and observed no node.
//!
//! An attempt may have observed of a unit only that a number lies in a range. Such an observation
//! is a read of one version, until phase 3 finds another one. If the number still lies in the
//! range, that version takes the place of the one before, the fence is issued again, and phases 2
//! and 3 are repeated, up to seven times (`ranges.rs`). The last fence of a commit then counts as
//! its fence, and the commit has read the versions that are in its read set behind that fence.
//!
//! A read for update locks a cell while the closure runs, and *holds* the cell until the attempt
//! ends. Phase 1 begins by setting INSTALL in the held cells that the attempt has written. A cell
//! that is held and not written is released when the attempt ends: at the end of `commit`,
//! successful or not, or in `abort`. Every attempt ends in one of these two functions.
//!
//! *Without a phase.* Without the fence of phase 1, let each of two transactions read what the
//! other one writes: both validate before they see one another's locks, a write skew. If the epoch
//! of phase 2 were loaded before the locks, a reader of the next epoch could read a cell, and then
//! a version of the ended epoch could appear in the cell: the reader's view has half of a
//! transaction. Without phase 3, a transaction writes what follows from values that have been
//! replaced: a lost update. With phase 4 after the first install, a guard that does not hold leaves
//! half of a transaction.
//!
//! # Cell
//! ```text
//! | epoch: 38 | sequence: 14 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED REQUEUE WATCHED |
//! ```
//!
//! # Invariants
//! The cell is locked as `protocols/shared/cell_lock.rs` describes, with invariants CL1 to CL6. In
//! addition:
//! * **OC1** INSTALL is set before the fence.
//! * **OC2** The version that a commit installs exceeds every version that the commit read or
//!   replaces, and the last version that its session installed.
//! * **OC3** Nothing that can fail happens after phase 4.
//! * **OC4** A commit loads the epoch of its version after it has taken its last lock and issued
//!   the fence, and before it validates. (Cuts rest on all of this. The places of opaque readers
//!   rest on the load after the locks and the fence, VW1; the order of writers rests on none of
//!   it.)
//!
//! # Why it is serializable
//! The fences of all commits are in one order. For a T that writes, let s(T) be the place of T's
//! fence in that order.
//! * wr: T reads a version that U installed. U installs after its fence, so s(U) < s(T).
//! * ww: T locks a cell after U has released it, so s(U) < s(T).
//! * rw: T has read x, and U replaces x. Suppose that s(U) < s(T). U set INSTALL before its fence,
//!   and T validates after its own fence. So T finds INSTALL or a new version in x, and fails.
//!   Hence s(T) < s(U).
//!
//! The absence of a key is observed in a cell (of an absent record) or in a node. The node's
//! version rises before an insert can lock the record of the key. So all edges agree with s, and
//! each commit issues its fence within its call. A lock that is held early adds no edge and needs
//! no proof: what was read under the lock is validated like any other read.
//!
//! *Transactions that only read* issue no fence at their end, so their place is found from what
//! they have read. Such a T *follows* a writer U in three cases: T read from U; a reader that had
//! ended before T began read from U; or U itself had ended before T began. (If a key has no record,
//! T has read from the commit that deleted the last one, whose epoch is before T's base, VW3.) T
//! comes just after the last writer that it follows, or first if there is none. Readers at the same
//! place come in the order of their ends. So T comes after each writer that it has read from.
//!
//! Let V replace something that T read, and let T follow U. Suppose that V = U or s(V) <
//! s(U). V set INSTALL before its fence, so whatever follows U's install sees V's INSTALL or new
//! version. Without opacity, T validates after U's install in each of the three cases, and fails.
//! With opacity, T has *acquired* U in each of the three cases, so T has not read what V replaced
//! (invariant VW5 of `view.rs`). Hence s(U) < s(V) for every such U, and T comes before V. (An
//! inserter of a key replaces the absence of the key; the version of the node, which rises before
//! the inserter's fence, takes the place of INSTALL.)
//!
//! The order agrees with real time. Each U that T follows issued its fence before T ended, and a
//! writer that begins after T's end issues its fence later. If a reader had ended before T began,
//! T follows every writer that the reader follows.
//!
//! Without opacity, a transaction that has read one cell and no node needs no validation. The
//! version in the cell was current at the moment of the load, and no other observation has to agree
//! with it.
//!
//! # Stamps and cuts
//! The stamp of a commit is the epoch of its version. The logger's cut is the current epoch, which
//! the logger ends. Prefix(c) are the commits of all epochs up to c.
//! * W: T reads or replaces what U wrote after U has released it (E3), and U loaded its
//!   epoch before that. T loads its own later, so it is no smaller.
//! * S: If U had ended when T began, then T loads the epoch after U did.
//! * R: Let T come before U by an edge wr, ww or rw, and let U be in Prefix(c). Then T is, too. For
//!   wr and ww this is W. For rw, suppose that T's epoch is the later one. U had set INSTALL before
//!   it loaded its epoch, and T validates after it loaded its own (E29), so T fails. A reader T
//!   that has read only from commits of Prefix(c) counts as in Prefix(c). If T has read from a
//!   commit of a later epoch, then no V that replaces what T read is in Prefix(c). With opacity,
//!   T's view has all commits of epochs before its base and none of later epochs than its base
//!   (VW1, VW2). Without opacity, V would have loaded its epoch before a commit that T read from
//!   loaded a later one, so T's validation would find V's INSTALL or new version (E29). So all
//!   edges agree with this order: the transactions of Prefix(c) as s has them, a reader of
//!   Prefix(c), and all others as s has them.
//!
//! # Example
//! A write skew: T reads x and writes y, U reads y and writes x. (`tests/timelines` plays the
//! examples of all protocols.)
//! ```text
//! T                                   U                             version of x   of y
//! reads x, of version 1                                             1              1
//!                                     reads y, of version 1
//!                                     locks x, fences (OC1)         locked
//!                                     chooses 2 (OC2)
//!                                     validates y, of version 1
//!                                     installs x, commits           2
//! stages a write of y
//! locks y, fences (OC1)                                                            locked
//! validates x: of version 2, not 1
//! releases y, aborts: ReadChanged                                                  1
//! ```
//! If U had locked x and not yet installed it, T would have found INSTALL, since U's fence came
//! before T's.
//!
//! # Aborts
//! * `Locked`: a lock was not released in time, in phase 1, at a read, or at a read for update.
//! * `ReadChanged`, `Phantom`: the view cannot move forward, or phase 3 fails.
//! * `ExistenceChanged`: phase 1 fails, or the view cannot move forward.
//! * `RecordRemoved`: a record is dead, in phase 1 or at a read.
//! * `VersionsExhausted`: phase 2 finds no larger version, and the epoch has reached its maximum.
//! * `Guard`, `Overflow`: phase 4 fails. These outcomes are definite.
//!
//! # Costs
//! A read compares the version with the view's base. If another session has written the version
//! since the base, and this session has not met the version yet, the attempt examines all its
//! earlier observations again. Each such look costs as much as there are observations; an attempt
//! that has examined 128 so asks for a new epoch (`view.rs`, Cost). A commit notes the versions
//! that it has installed.
//!
//! A long transaction that reads what other sessions keep writing fails until it gets the
//! starvation token. Reads for update avoid such failures for the rows that the transaction will
//! write.
//!
//! [TU13]: https://doi.org/10.1145/2517349.2522713
//! [HU20]: https://doi.org/10.14778/3377369.3377373

#![forbid(unsafe_code)]

mod commit;
mod early;
#[cfg(not(any(loom, shuttle)))]
mod met;
#[cfg(any(loom, shuttle))]
#[path = "met_modelled.rs"]
mod met;
mod phases;
mod pipeline;
mod protocol;
mod ranges;
mod reading;
#[cfg(all(test, not(any(loom, shuttle, sanitized))))]
mod tests;
mod view;

use crate::engine::Parts;
use crate::policy::Policies;
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::read_set::ReadSet;
use crate::record::Tid;
use early::{EarlyLocks, Shared};
use ranges::Ranges;
use view::View;

/// Optimistic concurrency control, the default protocol.
#[derive(Debug)]
pub struct Occ;

impl Parts for Occ {
    type Policy = Policies;
    type Clock = Shared;
    type Attempt = Attempt;
    type SessionVersions = ();
    type Backlog = ();
}

/// The read set, its ranges, and the node set of an attempt, its view, and its locks.
#[derive(Debug)]
#[doc(hidden)]
pub struct Attempt {
    reads: ReadSet<Tid>,
    ranges: Ranges,
    nodes: NodeSet,
    early: EarlyLocks,
    view: View,
    /// The last version that this session installed (OC2) or found in a frozen unit; `None` if
    /// there is none.
    last: Option<Tid>,
    /// The largest epoch of a version that the session has found in a frozen unit.
    frozen_epoch: u64,
}
