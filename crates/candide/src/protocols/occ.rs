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
//! * A read for update may lock early.
//!
//! # Phases
//! 0. Read. A version that belongs to the view of the attempt is accepted. At any other version the
//!    view moves forward first (`protocols/shared/view.rs` has the rule and its proof).
//! 1. Lock the write set, checking each item's expectation. Then issue a full fence.
//! 2. Take the epoch and choose the version.
//! 3. Validate reads and nodes.
//! 4. Evaluate updaters.
//! 5. Install and release.
//!
//! An attempt that has written nothing skips phases 1 to 5, since its view is of one moment (VW5).
//! Without opacity the attempt runs phase 3, unless it has read at most one cell and observed no
//! node.
//!
//! A read for update locks a cell while the closure runs, and *holds* the cell until the attempt
//! ends. Phase 1 begins by setting INSTALL in the held cells that the attempt has written. A cell
//! that is held and not written is released when the attempt ends: at the end of `commit`,
//! successful or not, or in `abort`. Every attempt ends in one of these two functions.
//!
//! *Without a phase.* Without the fence of phase 1, two transactions of which each reads what the
//! other one writes validate before they see one another's locks: a write skew. With the epoch of
//! phase 2 loaded before the locks, a version of an epoch that has ended appears in a cell after a
//! reader of the next epoch has read the cell: the reader's view has half of a transaction. Without
//! phase 3, a transaction writes what follows from values that have been replaced: a lost update.
//! With phase 4 after the first install, a guard that does not hold leaves half of a transaction.
//!
//! # Cell
//! ```text
//! | epoch: 38 | sequence: 14 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED REQUEUE |
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
//!   the fence, and before it validates. (Cuts rest on this; the serial order does not.)
//!
//! # Why it is serializable
//! The fences of all commits are in one order. For a T that writes, let s(T) be the place of T's
//! fence in that order.
//! * wr: T reads what U installed. U installs after its fence, so s(U) < s(T).
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
//! they have read. A writer U is *earlier* than such a T in three cases: T read from U; a reader
//! that had ended before T began read from U; or U itself had ended before T began. T comes just
//! after the last writer that is earlier than T, or first if there is none. Readers at the same
//! place come in the order of their ends.
//!
//! Let V replace something that T read. Suppose that s(V) < s(U) for a writer U that is earlier
//! than T. V set INSTALL before its fence, so whatever follows U's install sees V's INSTALL or new
//! version. Without opacity, T validates after U's install in each of the three cases, and fails.
//! With opacity, T has read what it has read, or looked at it, after U's install, so T has not read
//! what V replaced (invariant VW5 of `protocols/shared/view.rs`). Hence s(U) < s(V), and T comes
//! before V.
//!
//! The order agrees with real time. Each U earlier than T issued its fence before T ended, and a
//! writer that begins after T's end issues its fence later. If a reader had ended before T began,
//! every writer earlier than that reader is also earlier than T.
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
//! may examine eight for each observation, and 65,536 more (some 50 us), before it asks for a new
//! epoch (`protocols/shared/view.rs`, Cost). A commit notes the versions that it has installed.
//!
//! A long transaction that reads what other sessions keep writing fails until it gets the
//! starvation token. Reads for update avoid such failures for the rows that the transaction will
//! write.
//!
//! [TU13]: https://doi.org/10.1145/2517349.2522713
//! [HU20]: https://doi.org/10.14778/3377369.3377373

#![forbid(unsafe_code)]

use crate::access::{Failure, Intent, WriteItem, WriteSet};
use crate::engine::{
    Absence, Committed, Context, Deferred, Due, GcOutcome, Missing, NoVersions, Parts, Properties,
    Protocol, Seen, TableCore, own_thread,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::policy::Policies;
use crate::protocols::policies::{
    FLAGS, Grant, Locks, Mode, RASK, WASK, When, init_lock, learn, lock_place, with_flags,
};
use crate::protocols::shared::cell_lock::{
    Held, LOCK_ROUNDS_MAX, acquire_asking, begin_install, copy_shared, enqueue_if_absent, evaluate,
    fail, fence_after_locking, flags_of_deleted, is_locked_by_another, is_owned, keep, look_again,
    may_be_reaped, note_end, raise_install, reap, release, release_cell, says_otherwise,
};
use crate::protocols::shared::node_set::NodeSet;
use crate::protocols::shared::view::{self, Stuck, View};
use crate::record::{CellAt, Tid};
use crate::schema::{Op, Words};
use crate::sync::{MULTI_COPY_ATOMIC, Mutant, Ordering, Spin, full_fence, mutant};
use crate::timestamps::Timestamps;
use std::sync::Arc;

/// Optimistic concurrency control, the default protocol.
#[derive(Debug)]
pub struct Occ;

/// The read set and the node set of an attempt, and its locks.
#[doc(hidden)]
#[derive(Debug)]
pub struct Attempt {
    reads: Vec<(CellAt, Tid)>,
    nodes: NodeSet,
    held: Held,
    /// The locks by policy.
    locks: Locks,
    view: View,
    /// The last version that this session installed (OC2); `None` if it has installed none.
    last: Option<Tid>,
}

impl Attempt {
    /// Makes sure that `tid`, the version that a read has just found in cell `at`, belongs to the
    /// attempt's view. Moves the view forward if necessary, and fails if the view cannot move.
    #[inline(always)]
    fn keeps_to(&mut self, at: CellAt, tid: Tid) -> Result<(), Stuck> {
        if self.view.has(tid) {
            Ok(())
        } else {
            self.view.move_on(&self.reads, &self.nodes, Some((at, tid)))
        }
    }

    /// Returns the TID word of a cell, for operations that tell the transaction's closure whether
    /// the row exists and nothing else.
    #[inline(always)]
    fn ask(&self, at: CellAt) -> Tid {
        // Acquire: if the view moves forward, everything that the writer stored before it released
        // the cell must be visible (E3).
        Tid(at.cell_word(0).load(Ordering::Acquire))
    }

    /// Does the work of [`Protocol::assumes`] if the row's existence is not `exists`, or if another
    /// session is writing the row or has written it since the view's base. Waits for the writer,
    /// and moves the view forward.
    #[inline(never)]
    fn assumes_by_looks(&mut self, at: CellAt, exists: bool) -> Result<bool, Stuck> {
        let mut spin = Spin::default();
        loop {
            let tid = self.ask(at);
            if tid.has(Tid::DEAD) || !tid.has(Tid::INSTALL) && tid.has(Tid::ABSENT) == exists {
                return Ok(false);
            }
            let kept =
                if tid.has(Tid::INSTALL) { Err(Stuck::New(at)) } else { self.keeps_to(at, tid) };
            match kept {
                Ok(()) => break,
                Err(Stuck::New(_)) if spin.wait_at_most(LOCK_ROUNDS_MAX) => {}
                Err(Stuck::New(_)) => return Err(Stuck::Locked(at)),
                Err(stuck) => return Err(stuck),
            }
        }
        self.view.note_existence(at, exists);
        Ok(true)
    }

    /// Asks the policy of a cell's table for the lock for writing, if the cell says so.
    #[inline(always)]
    fn ask_to_write(
        &mut self,
        context: &mut Context<'_, Occ>,
        at: CellAt,
        when: When,
    ) -> Result<(), Abort> {
        // Relaxed: without the lock, nothing but time is lost.
        if Tid(at.cell_word(0).load(Ordering::Relaxed)).has(WASK) {
            self.ask_slowly(context, at, when)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn ask_slowly(
        &mut self,
        context: &mut Context<'_, Occ>,
        at: CellAt,
        when: When,
    ) -> Result<(), Abort> {
        // Other writers are about to wait for this attempt.
        context.yield_to_token()?;
        ask(context, (&mut self.held, &mut self.locks), at, (Mode::Write, when))?;
        // A closure that goes on with a row that has changed while the attempt waited would run in
        // vain.
        let seen = || self.reads.iter().rev().find(|(read, _)| read.address() == at.address());
        if self.locks.has_waited()
            && let Some(&(_, seen)) = seen()
            && !Tid(at.cell_word(0).load(Ordering::Relaxed)).same_version(seen)
        {
            return Err(context.conflict(Abort::ReadChanged, at));
        }
        Ok(())
    }

    /// Learns from the conflict in which the attempt ends, under policies that do so.
    #[cold]
    fn learn(&mut self, context: &mut Context<'_, Occ>, writes: &WriteSet) {
        learn(context.engine, context.local, &self.locks, &self.reads, writes);
    }

    /// Takes the locks of the write set before phase 1, under policies that wait in the order of
    /// addresses.
    #[cold]
    #[inline(never)]
    fn lock_writes(
        &mut self,
        context: &mut Context<'_, Occ>,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        context.yield_to_token()?;
        let holds_cells = self.held.has_cells();
        let Attempt { locks, reads, .. } = self;
        let locked = locks.lock_writes(context.engine, context.local, reads, writes, holds_cells);
        self.held.note_policy(self.locks.holds_any());
        locked.map_err(|(abort, at)| context.conflict(abort, at))
    }

    /// Releases all locks that the attempt, which has ended in a commit or not, still holds.
    #[cold]
    #[inline(never)]
    fn give_back(
        &mut self,
        context: &mut Context<'_, Occ>,
        writes: &WriteSet,
        has_committed: bool,
    ) {
        self.held.give_back(context, release_held);
        if has_committed && context.engine.policies.learns() {
            self.locks.note_preferences(context.engine, writes);
        }
        self.locks.release_all(context.engine, context.local, writes.items());
    }

    #[inline(always)]
    fn observe(&mut self, at: CellAt, tid: Tid) -> Seen {
        let present = !tid.has(Tid::ABSENT);
        if present || !mutant(Mutant::TombstoneUnobserved) {
            self.reads.push((at, tid));
        }
        Seen { present, version: tid.version() }
    }
}

impl Parts for Occ {
    type Policy = Policies;
    type Clock = Arc<Epochs>;
    type Attempt = Attempt;
    type SessionVersions = ();
    type Backlog = ();
}

impl Protocol for Occ {
    const NAME: &'static str = "occ";
    const STRICT: bool = true;
    const OPAQUE: bool = true;
    const OPAQUE_BY_LOOKS: bool = true;
    const CELL_WORDS: usize = 1;
    const NODE_WORDS: usize = 0;
    const SINGLE_READ_COMMITS: bool = true;
    type Versions = NoVersions;
    type InPlace = Deferred;

    fn properties(policies: &Policies) -> Properties {
        Properties { name: policies.name(), ..Properties::of::<Self>() }
    }

    fn policies(policies: &Policies) -> Option<Policies> {
        Some(policies.clone())
    }

    fn clock(_policies: &Policies, _timestamps: Timestamps, epochs: &Arc<Epochs>) -> Arc<Epochs> {
        epochs.clone()
    }

    fn attempt(epochs: &Arc<Epochs>) -> Attempt {
        Attempt {
            reads: Vec::new(),
            nodes: NodeSet::default(),
            held: Held::default(),
            locks: Locks::default(),
            view: View::new(epochs),
            last: None,
        }
    }

    #[inline(always)]
    fn begin(context: &mut Context<'_, Occ>, attempt: &mut Attempt) {
        debug_assert!(
            attempt.held.is_empty() && attempt.locks.is_unused(),
            "C2: the attempt before has ended"
        );
        attempt.view.begin(context);
        attempt.reads.clear();
        attempt.nodes.clear();
    }

    #[inline(always)]
    fn read(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let mut spin = Spin::default();
        loop {
            let tid = match look(at, INSTALL_OR_ASK, &mut copy) {
                Ok(tid) => tid,
                Err(tid) => {
                    let (copy, context) = (&mut copy, context.again());
                    let look = move || look(at, Tid::INSTALL, copy);
                    read_slowly(context, (&mut attempt.held, &mut attempt.locks), at, tid, look)?
                }
            };
            match attempt.keeps_to(at, tid) {
                Ok(()) => return Ok(attempt.observe(at, tid)),
                // The unit has changed since `look` copied it, so it is read again.
                Err(Stuck::New(_)) if spin.wait_at_most(LOCK_ROUNDS_MAX) => {}
                Err(stuck) => return Err(view::conflict(context, stuck)),
            }
        }
    }

    #[inline(always)]
    fn read_at_once(
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        let tid = look(at, INSTALL_OR_ASK, &mut copy).ok()?;
        attempt.keeps_to(at, tid).ok()?;
        Some(attempt.observe(at, tid))
    }

    fn read_for_update(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        if let Err(abort) = attempt.ask_to_write(context, at, When::Now) {
            if abort == Abort::Locked {
                attempt.held.want(context, at);
            }
            return Err(abort);
        }
        if attempt.held.has(at) || attempt.locks.is_locked_in_order(context.engine, at) {
            return Self::read(context, attempt, at, copy);
        }
        let tid = attempt.held.hold(context, at)?;
        attempt.keeps_to(at, tid).map_err(|stuck| view::conflict(context, stuck))?;
        attempt.reads.push((at, tid));
        let present = !tid.has(Tid::ABSENT);
        if present {
            copy(Words::Shared(at.payload()));
        }
        Ok(Seen { present, version: tid.version() })
    }

    fn hold(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        attempt.ask_to_write(context, at, When::Ahead)?;
        attempt.held.hold_once(context, at)
    }

    fn lock_ahead(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        writes: bool,
    ) -> Result<(), Abort> {
        let mode = if writes { Mode::Write } else { Mode::Read };
        let Attempt { held, locks, .. } = attempt;
        let grant = locks.lock_ahead(context.engine, context.local, at, mode);
        held.note_policy(locks.holds_any());
        grant.map(drop)
    }

    fn lock_place(context: &mut Context<'_, Occ>, _attempt: &Attempt, at: CellAt) -> Option<u64> {
        let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
        if tid.has(Tid::DEAD) {
            return None;
        }
        if tid.has(Tid::LOCK) && !own_thread::is_held_by_another(at, context.local.id) {
            return Some(at.address());
        }
        lock_place(context.engine, context.local, at)
    }

    #[inline(always)]
    fn is_present(_attempt: &Attempt, at: CellAt) -> bool {
        !Tid(at.cell_word(0).load(Ordering::Relaxed)).has(Tid::ABSENT)
    }

    #[inline(always)]
    fn assumes(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        at: CellAt,
        exists: bool,
    ) -> Result<bool, Abort> {
        let tid = attempt.ask(at);
        if !attempt.view.answers_for_existence() {
            return Ok(tid.has(Tid::ABSENT) != exists);
        }
        if tid.has(Tid::INSTALL) || tid.has(Tid::ABSENT) == exists || !attempt.view.has(tid) {
            return attempt
                .assumes_by_looks(at, exists)
                .map_err(|stuck| view::conflict(context, stuck));
        }
        attempt.view.note_existence(at, exists);
        Ok(true)
    }

    #[inline(always)]
    fn stage(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        attempt.ask_to_write(context, at, When::Staging)?;
        writes.stage(at, intent, op);
        Ok(())
    }

    fn revalidate(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        validate(context, attempt, writes)
    }

    #[inline(always)]
    fn commit(
        context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        let committed = match writes.is_empty() {
            true => commit_reads(context, attempt, writes),
            false => commit(context, attempt, writes, turn),
        };
        if committed.is_ok() {
            attempt.view.end();
        } else if context.engine.policies.learns() && context.local.conflict.is_some() {
            attempt.learn(context, writes);
        }
        if !attempt.held.is_empty() {
            attempt.give_back(context, writes, committed.is_ok());
        }
        note_end();
        committed
    }

    /// Returns the largest epoch of a version that the attempt has read, if it has read rows and
    /// missed none. A tombstone is removed as soon as its epoch has passed in memory, durable or
    /// not; so the absence of a row may rest on a commit of any epoch. (An operation that only
    /// assumes whether a row exists stages a write, and the commit of that has a stamp.)
    fn seen_stamp(_epochs: &Arc<Epochs>, epochs: &Epochs, attempt: &Attempt) -> u64 {
        let is_absent = |(_, tid): &(CellAt, Tid)| tid.has(Tid::ABSENT);
        let misses = !attempt.nodes.is_empty() || attempt.reads.iter().any(is_absent);
        if misses && !mutant(Mutant::AbsenceAckByTid) {
            return epochs.now();
        }
        attempt.reads.iter().map(|(_, tid)| tid.epoch()).max().unwrap_or(0)
    }

    #[inline(always)]
    fn read_set_size(attempt: &Attempt) -> usize {
        attempt.reads.len() + attempt.nodes.len()
    }

    fn abort(context: &mut Context<'_, Occ>, attempt: &mut Attempt, writes: &mut WriteSet) {
        if context.engine.policies.learns() && context.local.conflict.is_some() {
            attempt.learn(context, writes);
        }
        attempt.give_back(context, writes, false);
    }

    fn begin_ts_bound(epochs: &Arc<Epochs>) -> u64 {
        epochs.stamp()
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
        attempt
            .view
            .move_on(&attempt.reads, &attempt.nodes, None)
            .map_err(|stuck| view::conflict(context, stuck))
    }
}

impl Absence for Occ {
    #[inline(always)]
    fn absent(
        _context: &mut Context<'_, Occ>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        attempt.nodes.observe(missing);
        Ok(())
    }

    #[inline]
    fn init_absent_cell(_clock: &Arc<Epochs>, at: CellAt, flags: u64) {
        at.cell_word(0).store(Tid::INITIAL.0 | flags, Ordering::Relaxed);
        if at.cell_words() > 1 {
            init_lock(at);
        }
    }

    #[inline]
    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        if attempt.nodes.linked(node, before, after) {
            attempt.reads.push((first, Tid::INITIAL));
        } else {
            attempt.view.note_existence(first, false);
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        attempt.nodes.divided(change);
    }

    #[inline(always)]
    fn may_be_reaped(_clock: &Arc<Epochs>, first: CellAt) -> bool {
        may_be_reaped(first)
    }

    fn keep(context: &mut Context<'_, Occ>, first: CellAt) -> Result<bool, Abort> {
        keep(context, first)
    }

    fn enqueue_if_absent(_clock: &Arc<Epochs>, first: CellAt) -> bool {
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

/// The flags of a TID word with which a read cannot be done at once.
const INSTALL_OR_ASK: u64 = Tid::INSTALL | RASK;

/// Releases a cell that the attempt holds and has not written.
fn release_held(context: &mut Context<'_, Occ>, at: CellAt, tid: Tid) {
    let tid = with_flags(context.engine, at, tid);
    release_cell(context, at, tid);
}

/// Loads a cell's TID word, copies the words, and loads the TID word again. Returns the first TID
/// word; as an error, if it has a flag of `unless`, or if the copied words may not be those of its
/// version.
#[inline(always)]
fn look(at: CellAt, unless: u64, copy: &mut impl FnMut(Words<'_>)) -> Result<Tid, Tid> {
    let before = Tid(at.cell_word(0).load(Ordering::Acquire));
    if before.has(unless) {
        return Err(before);
    }
    copy_shared(at, copy);
    // Relaxed: if a copied word came from an install in progress, the Acquire load of that word
    // made the lock visible (E3).
    let after = Tid(at.cell_word(0).load(Ordering::Relaxed));
    // The cell may have been locked or released between the two loads. While the version is the
    // same, the words are the same.
    let same = before == after || !after.has(Tid::INSTALL) && after.same_version(before);
    if same { Ok(before) } else { Err(before) }
}

/// Reads a cell that could not be read at once: asks the table's policy if the TID word `tid` says
/// so, and waits for a commit to the cell that is going on. Returns what `look` then sees.
#[cold]
#[inline(never)]
fn read_slowly(
    mut context: Context<'_, Occ>,
    (held, locks): (&mut Held, &mut Locks),
    at: CellAt,
    mut tid: Tid,
    mut look: impl FnMut() -> Result<Tid, Tid>,
) -> Result<Tid, Abort> {
    if tid.has(RASK) {
        ask(&mut context, (held, locks), at, (Mode::Read, When::Now))?;
        match look() {
            Ok(seen) => return Ok(seen),
            Err(said) => tid = said,
        }
    }
    look_again(context, at, tid, look)
}

/// Asks the policy of a cell's table for a lock.
///
/// # Errors
/// The conflict, if the policy says that the attempt must abort.
fn ask(
    context: &mut Context<'_, Occ>,
    (held, locks): (&mut Held, &mut Locks),
    at: CellAt,
    (mode, when): (Mode, When),
) -> Result<Grant, Abort> {
    let grant = locks.ask(context.engine, context.local, at, (mode, when), held.has_cells());
    held.note_policy(locks.holds_any());
    grant.map_err(|abort| context.conflict(abort, at))
}

/// Commits an attempt that has written nothing. Runs phase 3, and only if the attempt is not opaque
/// and has read more than one cell or observed a node.
#[inline(always)]
fn commit_reads(
    context: &mut Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<Committed, Abort> {
    let at_one_moment =
        attempt.view.is_opaque() || attempt.reads.len() <= 1 && attempt.nodes.is_empty();
    if !at_one_moment {
        validate(context, attempt, writes)?;
    }
    Ok(Committed::NOTHING)
}

/// Commits in five phases. On return, whether the commit has succeeded or failed, only the cells
/// still in `held` are locked. If an updater panics, no cell stays locked.
fn commit(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
) -> Result<Committed, Abort> {
    attempt.view.reserve();
    // Relaxed: a row that becomes locked later is met in phase 1.
    let asks = |item: &WriteItem| Tid(item.at.cell_word(0).load(Ordering::Relaxed)).has(WASK);
    if context.engine.policies.learns() && writes.items().iter().any(asks) {
        attempt.lock_writes(context, writes)?;
    }

    // 1 lock
    take_turn_early(turn);
    let Attempt { held, locks, .. } = attempt;
    let ask = |context: &mut Context<'_, Occ>, held: &mut Held, at| {
        let lock = (Mode::Write, When::Commit);
        let grant = locks.ask(context.engine, context.local, at, lock, held.has_cells());
        held.note_policy(grant == Ok(Grant::Held));
        grant.map(drop)
    };
    acquire_asking(context, held, writes, install_held, WASK, ask)?;
    debug_assert!(writes.items().iter().all(is_owned), "OC1: INSTALL is set before the fence");
    turn.take(); // LG1, LG2
    fence_after_locking();

    // 2 epoch, 3 validate
    let version = choose_version(context, attempt, writes)
        .inspect(|_| fence_after_epoch(context))
        .and_then(|version| validate(context, attempt, writes).map(|()| version))
        .inspect_err(|_| release(context, writes.items()))?;

    // 4 evaluate
    if let Err(failure) = evaluate(writes) {
        return Err(fail_evaluation(context, attempt, writes, failure));
    }
    let stamp = stamp_of(context, version);

    // 5 install and release: nothing fails any more (OC3)
    for index in 0..writes.items().len() {
        install(context, writes, index, version);
    }
    attempt.view.meet_installed(writes.items(), version);
    attempt.last = Some(version);
    Ok(Committed { version: version.version(), stamp })
}

/// Returns the stamp of a commit that installs `version`: the epoch of the version (OC4).
#[inline(always)]
fn stamp_of(context: &Context<'_, Occ>, version: Tid) -> u64 {
    if mutant(Mutant::EpochAfterValidation) {
        return context.engine.epochs.now();
    }
    version.epoch()
}

/// Takes the turn to log before the locks, which no commit does (LG2).
#[inline(always)]
fn take_turn_early(turn: &mut LogTurn<'_>) {
    if mutant(Mutant::TurnBeforeLocks) {
        turn.take();
    }
}

/// Ends a commit whose evaluation has failed. If an updater has panicked, the attempt ends here
/// with that panic, and holds nothing any more.
#[cold]
#[inline(never)]
fn fail_evaluation(
    context: &mut Context<'_, Occ>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    failure: Failure,
) -> Abort {
    let Attempt { held, locks, .. } = attempt;
    if let Failure::Panic(_) = failure {
        release(context, writes.items());
        writes.items_mut().iter_mut().for_each(|item| item.note = 0);
        held.give_back(context, release_cell);
        locks.release_all(context.engine, context.local, writes.items());
    }
    fail(context, held, writes, failure, release_cell)
}

/// Sets INSTALL in a held cell, and returns the cell's new TID word.
fn install_held(at: CellAt, tid: Tid) -> Tid {
    // Relaxed: the fence is still to come (E1).
    raise_install(tid, |owned| at.cell_word(0).store(owned, Ordering::Relaxed))
}

/// Runs phase 2. Returns the smallest version of the current epoch that is above every version read
/// or replaced, and above the last version that the session installed (OC2, OC4).
#[inline]
fn choose_version(
    context: &Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<Tid, Abort> {
    let read = attempt
        .reads
        .iter()
        .filter(|_| !mutant(Mutant::VersionBelowRead))
        .map(|(_, tid)| tid.version());
    let replaced = writes.items().iter().filter(|_| !mutant(Mutant::VersionBelowReplaced));
    let replaced = replaced.map(|item| Tid(item.note).version());
    let floor = read.chain(replaced).fold(attempt.last.map_or(0, Tid::version), u64::max);
    loop {
        let epoch = commit_epoch(context, Tid(floor));
        context.check_stamp(epoch)?;
        debug_assert!(Tid(floor).epoch() <= epoch, "OC4: epochs of versions have begun");
        if let Some(version) = Tid(floor).next_in(epoch) {
            debug_assert!(is_above(version, attempt, writes), "OC2: above read, replaced and last");
            return Ok(version);
        }
        // The version numbers of this epoch are used up, so the next epoch is begun. The loop loads
        // the epoch again, still after the last lock, as OC4 requires.
        context.engine.epochs.advance_past(epoch);
        if context.engine.epochs.now() == epoch {
            return Err(Abort::VersionsExhausted);
        }
    }
}

/// Returns whether `version` exceeds every version that the commit read or replaces, and the last
/// version that its session installed (OC2).
fn is_above(version: Tid, attempt: &Attempt, writes: &WriteSet) -> bool {
    let is_below = |other: Tid| other.version() < version.version();
    let read = attempt.reads.iter().all(|&(_, tid)| is_below(tid));
    let replaced = writes.items().iter().all(|item| is_below(Tid(item.note)));
    (read || mutant(Mutant::VersionBelowRead))
        && (replaced || mutant(Mutant::VersionBelowReplaced))
        && attempt.last.is_none_or(is_below)
}

/// Orders the load of a commit's epoch before its validation (E29).
#[inline(always)]
fn fence_after_epoch(context: &Context<'_, Occ>) {
    if !MULTI_COPY_ATOMIC && context.local.is_logged && !mutant(Mutant::EpochUnfenced) {
        full_fence(); // E29
    }
}

/// Returns the epoch for the version of a commit that has locked its write set (OC4). The version
/// will be above `floor`.
#[inline(always)]
fn commit_epoch(context: &Context<'_, Occ>, floor: Tid) -> Epoch {
    if mutant(Mutant::EpochBeforeLock) {
        return context.local.slot.own_epoch().max(floor.epoch());
    }
    context.engine.epochs.now()
}

/// Runs phase 3. Checks that every cell has the version that was read, whether or not a policy has
/// locked it (LK1), and that no other session is committing to the cell. Checks that every node has
/// the version that was observed.
fn validate(
    context: &mut Context<'_, Occ>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<(), Abort> {
    // Most cells are unchanged, so four are compared at a time.
    let (chunks, rest) = attempt.reads.as_chunks::<4>();
    for reads in chunks {
        if reads.iter().any(says_otherwise) {
            validate_each(context, reads, writes)?;
        }
    }
    if rest.iter().any(says_otherwise) {
        validate_each(context, rest, writes)?;
    }
    attempt.nodes.validate(context)
}

/// Checks that each of these cells has the version that was read, and that no other session is
/// committing to the cell. Out of line, so that the loop over unchanged cells is short.
#[inline(never)]
fn validate_each(
    context: &mut Context<'_, Occ>,
    reads: &[(CellAt, Tid)],
    writes: &WriteSet,
) -> Result<(), Abort> {
    for &(at, seen) in reads {
        let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
        let is_own = || writes.find(at).is_some();
        if tid.0 != seen.0
            && !is_exempt(seen)
            && (!tid.same_version(seen) || is_locked_by_another(tid, is_own))
        {
            return Err(context.conflict(Abort::ReadChanged, at));
        }
    }
    Ok(())
}

/// Returns whether phase 3 skips a read because a policy was asked for the row's lock: never (LK1).
fn is_exempt(seen: Tid) -> bool {
    mutant(Mutant::LockedUnvalidated) && seen.has(RASK)
}

/// Runs phase 5 for one item: stores its words, and releases its cell with the new version.
#[inline(always)]
fn install(context: &mut Context<'_, Occ>, writes: &mut WriteSet, index: usize, version: Tid) {
    let item = &mut writes.items_mut()[index];
    let (at, was) = begin_install(item);
    let mut new = version.0 | was.0 & (Tid::QUEUED | FLAGS);
    if item.present {
        writes.install(index, at.payload());
    } else if was.has(Tid::ABSENT) {
        item.untouched = true;
        new = was.unlocked().0;
    } else {
        new |= flags_of_deleted(was);
    }
    release_cell(context, at, Tid(new));
}
