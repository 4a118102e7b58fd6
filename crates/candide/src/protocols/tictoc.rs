//! TicToc: timestamps are kept with the data, and a commit takes the smallest timestamp at which
//! all its reads are valid.
//!
//! # Guarantee
//! Serializable, in the order of commit timestamps; read-only transactions are included. Not
//! strictly: if transaction A ended before transaction B began, B may still come before A, as long
//! as no chain of data leads from A to B. Not opaque: an attempt that will abort may see values of
//! different times before it fails, but never a torn value.
//!
//! # Source
//! TicToc [YU16], in the form of "Opportunities for Optimism" [HU20], section 2.3: each timestamp
//! has a whole word. There are two differences. A read for update may lock early. The absence of
//! keys is in timestamp order, too: a node (a bucket or a leaf) has timestamps for the keys that
//! have no record. A record inherits the timestamps of its node when the record is linked. When the
//! record is unlinked, its own timestamps are merged into those of the node. Node versions alone
//! would not be enough, since they are in commit order: an insert could commit below a transaction
//! that has missed the key (`tests/timestamps` plays this case).
//!
//! # Phases
//! 1. Lock the write set, checking each item's expectation.
//! 2. Choose the timestamp.
//! 3. Validate reads, extending them, and nodes.
//! 4. Evaluate updaters, and run steps, in the order of the program. What a step sees counts as
//!    read at the timestamp, as what a guard sees.
//! 5. Install and release.
//!
//! An attempt that has written nothing runs only phases 2 and 3. Phase 1 ends without a fence,
//! because extending a version and locking its cell are exchanges of the same word. The validation
//! of nodes issues its own fence.
//!
//! *Without a phase.* Without phase 1, two transactions replace one version at one timestamp: a
//! lost update. With a timestamp of phase 2 that is above the replaced wts and not above its rts, a
//! transaction that has read the old version at that rts comes after the new one. Without the
//! extension of phase 3, another transaction commits a new version below a timestamp at which this
//! one has read the old version.
//!
//! # Cell
//! ```text
//! | rts: 52 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED REQUEUE WATCHED UNWRITTEN |   | wts: 52 | 0: 12 |    node: | nwts | nrts |
//! ```
//!
//! # Invariants
//! The first word locks the cell as `protocols/shared/cell_lock.rs` describes, with invariants CL1
//! to CL6. In addition:
//! * **TT1** The words, wts and ABSENT of a cell change only under INSTALL. The rts of a cell with
//!   INSTALL is changed only by the owner of the lock, as it releases the cell. The rts of any
//!   other cell is changed by exchange, even if the cell is held.
//! * **TT2** A version (a row, or its absence) is valid from wts to rts. rts never falls. A commit
//!   that replaces a version has a timestamp above the rts that the version had when the commit set
//!   INSTALL.
//! * **TT3** Nothing that can fail happens after phase 4.
//! * **TT4** UNWRITTEN marks a version that the record has inherited. A DEAD cell's rts is final.
//! * **TT5** A node's nwts and nrts are at least the wts and rts of every record that was unlinked
//!   from the node, or from another node whose keys the node has taken over. nwts is at most nrts,
//!   and changes only together with the node's version. A record can be read and locked only after
//!   it has inherited nwts and nrts.
//! * **TT6** A tombstone is reaped only after all transactions that ran when the row was deleted
//!   have ended (CL6). (The protocol does not depend on this invariant, but histories do: a key
//!   without a record then means the same to all running transactions.)
//!
//! # Why it is serializable
//! Let c(T) be T's commit timestamp.
//! * wr: T reads what U installed. c(T) is at least the wts of that version, which is c(U).
//! * ww: T replaces a version that U installed. By TT2, c(U) < c(T).
//! * rw: T has read x, and U replaces x. T saw an rts of at least c(T) on the version that it read:
//!   when it read the version; or at validation, where T loaded rts and then found wts unchanged;
//!   or by its own exchange. If U set INSTALL in that one word later, then c(T) < c(U) by TT2. If U
//!   had set INSTALL before T saw the rts, then U sees the same rts, which does not change under
//!   INSTALL (TT1), so c(T) < c(U) again.
//! * rw without a record: T raises nrts to c(T), issues a fence, and finds the node's version
//!   unchanged. An insert of the key raises that version, issues a fence, and loads nrts. Either T
//!   fails, or the first rts of the insert's record is at least c(T). TT5 keeps this bound when the
//!   record is unlinked.
//!
//! So the timestamp falls along no edge, and it can stay equal only along a wr edge. A cycle would
//! consist of such wr edges alone. But each wr edge leads from a commit to a commit that is later
//! in real time, so there is no cycle.
//!
//! # Stamps and cuts
//! The stamp of a commit is the epoch that it loads when it has all its locks. The version of a
//! commit is its timestamp: recovery takes the commits up to a cut, and applies them in the order
//! of timestamps.
//! * W: T reads or replaces what U wrote after U has released it (E3), so T loads its
//!   epoch after U did, and the stamp of T is no smaller.
//! * S: If U had ended when T began, then T loads the epoch after U did.
//! * R does not hold: T may come before U, although U has replaced what T read, and has ended in an
//!   earlier epoch than T's (see the example). A cut between the two contains U and not T. A reader
//!   of that prefix comes after U, and before T, and T before U: a circle. As a state to recover
//!   to, the prefix is right, since T is then as if it had never run. So nothing but recovery may
//!   read a prefix (`READABLE_CUT`).
//!
//! # Experiments
//! Three basis factors (`factor.rs`) add reasons to abort. Under each factor a commit may get a
//! larger timestamp, and is otherwise the same until it installs, so the proof holds.
//!
//! *Compressed timestamps.* [YU16], section 3.6, has both timestamps in one word, with 15 bits for
//! rts - wts. A reader that extends a version further moves wts up by the smallest multiple of 2^15
//! at which the difference fits again. An earlier reader then finds another wts, and aborts. We
//! keep the two words, and compute from them where wts would be (`moved`). An extension changes wts
//! only by multiples of 2^15, so the result depends on nothing but the first wts and the present
//! rts. And wts moves in the same exchange that raises rts, as in one word. A reader notes the
//! moved wts. Its commit timestamp is not below the noted wts, and its validation fails if the
//! version has another one. The real wts, to which the proof refers, does not move. An absence that
//! a record has inherited (UNWRITTEN) is exempt, since a node has two words.
//!
//! *Preemptive aborts.* [YU16], section 5.2. Before phase 1, a commit computes a lower bound of its
//! timestamp from the rts that its write set has at that moment. By TT2 no rts falls, so the
//! timestamp of phase 2 would not be smaller. The commit aborts if a version that is known to be
//! valid only below this bound has been replaced: validation would fail, too. The commit also
//! aborts if another commit is replacing such a version: validation would fail unless that commit
//! did. A commit that does not abort here runs all phases, and validates everything again.
//!
//! *No wait.* [YU16], section 5.1. A commit that meets a locked cell in phase 1 aborts, as if it
//! had waited without success. The proof does not depend on the time that a commit waits.
//!
//! # Example
//! T comes before U in the serial order, although U has replaced what T read, and has ended before
//! T. `occ` would abort T. The right columns show from which wts to which rts each row is valid
//! (`tests/timelines`).
//! ```text
//! T                                         U                       x valid    y valid
//! reads x                                                           3 to 3     1 to 1
//!                                           locks x
//!                                           commits at 4 (TT2)      4 to 4
//! stages a write of y
//! locks y
//! chooses 3: x's wts, above y's rts (TT2)
//! finds x, as it was read, valid at 3
//! commits at 3                                                                 3 to 3
//! ```
//! If another transaction had read y at 3 before, T would have to choose 4 (TT2). T would then find
//! another wts in x, and abort: `ReadChanged`.
//!
//! # Inheritance
//! A session that takes over a node's timestamps has locked the node, and issues a fence before it
//! loads the timestamps (E1).
//!
//! | when | from | to | where |
//! |---|---|---|---|
//! | a record is linked | node | record | `inherit_from_node`, called by both indexes' `link` under the node's lock |
//! | a deleted row's record is unlinked | record | node | `merge_into_node`, called by both indexes' `unlink` |
//! | the record of a failed insert is unlinked | record | node | `merge_into_node`, too |
//! | a leaf is split, or a slot becomes layers | leaf | new leaves | `new_leaf_from`, `begin_layers` in `index/ordered/split.rs` |
//! | a hash table grows | bucket | its two halves | `move_bucket` in `index/hash.rs` |
//! | a leaf or a layer is removed | leaf | neighbour, holder, root | `inherit`, `remove_layer`, `take_over` in `index/ordered` |
//!
//! # Aborts
//! * `Locked`: a lock was not released in time, in phase 1, at a read, or at a read for update.
//! * `ReadChanged`: a version could not be extended.
//! * `Phantom`: a node changed.
//! * `ExistenceChanged`: phase 1 fails.
//! * `RecordRemoved`: a record is dead, in phase 1 or at a read.
//! * `VersionsExhausted`: phase 2 finds no larger timestamp.
//! * `Guard`, `Overflow`: phase 4 fails. These outcomes are definite.
//!
//! # Costs
//! Readers write: a commit raises the rts of each version that it read, and the nrts of each node
//! in which it missed a key, if that timestamp is below the commit's. Unlinking a record makes
//! attempts fail that have missed a key in the record's node. A cell has one word more than under
//! OCC, and a read takes one load more.
//!
//! [YU16]: https://doi.org/10.1145/2882903.2882935
//! [HU20]: https://doi.org/10.14778/3377369.3377373

#![forbid(unsafe_code)]

use crate::access::{WriteItem, WriteSet};
use crate::engine::{
    Absence, Committed, Context, Deferred, Due, GcOutcome, Missing, NoVersions, Parts, Protocol,
    Seen, TableCore, Unwatched, Watch,
};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{NodeAt, NodeChange};
use crate::locks::HeldCells;
use crate::log::LogTurn;
use crate::protocols::shared::cell_lock::{
    self, acquire, begin_install, copy_shared, evaluate, fail, free, look_again, release,
    release_cell, release_installed,
};
use crate::protocols::shared::late_rows::{Late, LateRows, NoLateRows};
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::stats::LockCounters;
use crate::sync::{AtomicU64, Ordering, Point, full_fence, pass};
use crate::timestamps::Timestamps;
use std::sync::Arc;

/// The difference between one timestamp and the next. Timestamps are stored and compared with zeros
/// in the bits of the flags.
const TICK: u64 = 1 << 12;
/// The first difference of rts and wts that is too large for [`Factor::CompressedTimestamps`].
const LEASE: u64 = TICK << 15;

/// The flag of a version that the record has inherited from its node, and that no commit has
/// written.
const UNWRITTEN: u64 = Tid::own_flag(0);

// The places of the words in a cell and in a node. A cell's first word has the form of a [`Tid`].
const RTS: usize = 0;
const WTS: usize = 1;
const NWTS: usize = 0;
const NRTS: usize = 1;

/// Optimistic concurrency control in timestamp order, after TicToc: in the serial order, a
/// transaction may come before another that has already ended.
#[derive(Debug)]
pub struct TicToc;

/// The observations and held cells of an attempt.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Attempt {
    reads: Vec<Read>,
    nodes: Vec<NodeRead>,
    /// The lower bound of the commit timestamp: the largest of the observed wts and nwts, and of
    /// the times given to `reach`.
    floor: u64,
    held: HeldCells,
}

/// A version that was read, valid from `wts` to at least the timestamp in `rts`. `rts` is the
/// cell's first word at that read.
#[derive(Debug)]
struct Read {
    at: CellAt,
    wts: u64,
    rts: Tid,
}

/// A node's version when the node was searched, and the node's nwts at that version.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NodeRead {
    node: NodeAt,
    version: u64,
    nwts: u64,
    table: u16,
}

impl Attempt {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe(&mut self, read: Read) {
        debug_assert!(read.wts <= read.rts.version(), "TT2: a version is valid from its wts");
        self.floor = self.floor.max(read.wts);
        self.reads.push(read);
    }

    /// Observes the absence of a key, which a node shows in the version that was searched.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn miss(&mut self, read: NodeRead) {
        self.floor = self.floor.max(read.nwts);
        self.nodes.push(read);
    }

    /// Observes the result of `look`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn see(&mut self, at: CellAt, (wts, rts): (u64, Tid)) -> Seen {
        self.observe(Read { at, wts, rts });
        Seen { present: !rts.has(Tid::ABSENT), version: if rts.has(UNWRITTEN) { 0 } else { wts } }
    }
}

impl Parts for TicToc {
    type Policy = ();
    type Clock = ();
    type Attempt = Attempt;
    type SessionVersions = ();
    type Backlog = ();
}

impl Protocol for TicToc {
    const NAME: &'static str = "tictoc";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    const CELL_WORDS: usize = 2;
    const NODE_WORDS: usize = 2;
    const SINGLE_READ_COMMITS: bool = true;
    const COMMITS_STALE: bool = true;
    const READABLE_CUT: bool = false;
    const LATE_ROWS: bool = true;
    type Versions = NoVersions;
    type InPlace = Deferred;

    fn clock(_policy: &(), _timestamps: Timestamps, _epochs: &Arc<Epochs>) {}

    fn attempt(_clock: &(), _counts: &Arc<LockCounters>) -> Attempt {
        Attempt::default()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(_context: &mut Context<'_, TicToc>, attempt: &mut Attempt) {
        debug_assert!(attempt.held.is_empty(), "C2: the attempt before has ended");
        attempt.reads.clear();
        attempt.nodes.clear();
        attempt.floor = 0;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = match look(at, &mut copy) {
            Ok(seen) => seen,
            Err(tid) => look_again(context.again(), at, tid, move || look(at, &mut copy))?,
        };
        Ok(attempt.see(at, seen))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_at_once(
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Option<Seen> {
        look(at, &mut copy).ok().map(|seen| attempt.see(at, seen))
    }

    fn read_for_update(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        if attempt.held.has(at) || attempt.held.hold(context, at, || {})?.has(Tid::ABSENT) {
            return Self::read(context, attempt, at, copy);
        }
        // While this session holds the cell, other sessions may extend the version, but not replace
        // it.
        let [rts, wts] = [RTS, WTS].map(|word| at.cell_word(word).load(Ordering::Relaxed));
        attempt.observe(Read { at, wts, rts: Tid(rts) });
        copy(Words::Shared(at.payload()));
        Ok(Seen { present: true, version: wts })
    }

    fn hold(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        at: CellAt,
    ) -> Result<bool, Abort> {
        attempt.held.hold_once(context, at, || {})
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_present(_attempt: &Attempt, at: CellAt) -> bool {
        !Tid(at.cell_word(RTS).load(Ordering::Relaxed)).has(Tid::ABSENT)
    }

    fn revalidate(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        // The final commit timestamp will not be below the timestamp that `certify` chooses here.
        // So a read that cannot be made valid at the present one dooms the attempt. A needless
        // extension is harmless.
        let cts = certify(context, attempt, writes)?;
        if context.engine.options.factors.has(Factor::CompressedTimestamps) {
            // The reads have been extended to `cts`, so `is_moved` must not find that later.
            attempt.reads.iter_mut().for_each(|read| read.rts = raised(read.rts, cts));
        }
        Ok(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn commit(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        let committed = match writes.is_empty() {
            true => commit_reads(context, attempt, writes),
            false => commit_known(context, attempt, writes, turn),
        };
        cell_lock::end(context, &mut attempt.held, release_held);
        committed
    }

    #[cold]
    fn commit_late(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        turn: &mut LogTurn<'_>,
    ) -> Result<Committed, Abort> {
        attempt.reads.reserve(writes.late_row_count()); // C4
        let mut late = LateRows::take(context);
        let committed = match late.prepare(context, attempt, writes) {
            Ok(()) => commit(context, attempt, writes, turn, &late),
            Err(abort) => Err(abort),
        };
        late.give_back(context);
        cell_lock::end(context, &mut attempt.held, release_held);
        committed
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_set_size(attempt: &Attempt) -> usize {
        attempt.reads.len() + attempt.nodes.len()
    }

    fn abort(context: &mut Context<'_, TicToc>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        attempt.held.give_back(context, release_held);
    }

    fn watch(
        _context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        watch: &mut Watch<'_>,
    ) -> Result<(), Unwatched> {
        for read in &attempt.reads {
            let wts = read.at.cell_word(WTS);
            // A commit stores a larger rts, so a first word that is the same is of the same wts.
            watch.add_lockable(read.at, |_| wts.load(Ordering::Relaxed) == read.wts)?;
        }
        watch.add_nodes(attempt.nodes.iter().map(|read| (read.table, read.node, read.version)))
    }

    fn reach(
        _context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        time: u64,
        _table: u16,
    ) -> Result<(), Abort> {
        // All earlier reads have to be valid at `time`, too, or the commit fails.
        attempt.floor = attempt.floor.max(time);
        Ok(())
    }
}

impl Absence for TicToc {
    fn absent(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        let Missing { table, node, version, .. } = missing;
        // nwts is loaded after the search. If a slot was empty in the search because its record had
        // been unlinked, the record's wts had been merged before. Acquire pairs with
        // `merge_into_node`: if nwts is of a later version of the node, the check below sees that
        // the version has changed. So the loaded nwts and `version` belong together.
        let nwts = node.node_word(NWTS).load(Ordering::Acquire);
        if node.version() != version {
            return Err(context.phantom(table));
        }
        attempt.miss(NodeRead { node, version, nwts, table });
        Ok(())
    }

    fn init_absent_cell(_clock: &(), at: CellAt, _flags: u64) {
        // Locked until the record has inherited from its node (TT5), since it is linked before
        // that.
        at.cell_word(RTS).store(Tid::INITIAL.0 | Tid::LOCK | Tid::INSTALL, Ordering::Relaxed);
    }

    fn inherit_from_node(_clock: &(), node: NodeAt, at: CellAt) {
        // A transaction that has missed the key raises nrts and then loads the node's version. This
        // session has raised the version, and now loads nrts.
        full_fence(); // E1
        let [nwts, nrts] = [NWTS, NRTS].map(|word| node.node_word(word).load(Ordering::Relaxed));
        begin_in_time(at, [nwts, nrts]);
    }

    #[inline]
    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        let mut birth = None;
        for read in &mut attempt.nodes {
            if read.node.address() == node.address() && read.version == before {
                read.version = after;
                birth = Some(read.nwts);
            }
        }
        if let Some(wts) = birth {
            // From now on an insert of this key by another session changes only the record, not the
            // node. The record inherited the nwts of version `before`, and an rts that is at least
            // as large (TT5), whatever the record's cell contains now.
            attempt.observe(Read { at: first, wts, rts: Tid(wts) });
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        // The successors have inherited the nwts of the node that was divided or moved, so the nwts
        // observed in that node is valid for the successors, too.
        change.replace(&mut attempt.nodes, |read| (&mut read.node, &mut read.version));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_be_reaped(_clock: &(), first: CellAt) -> bool {
        cell_lock::may_be_reaped(first)
    }

    fn keep(context: &mut Context<'_, TicToc>, first: CellAt) -> Result<bool, Abort> {
        cell_lock::keep(context, first)
    }

    fn enqueue_if_absent(_clock: &(), first: CellAt) -> bool {
        cell_lock::enqueue_if_absent(first)
    }

    fn node_rts(_clock: &(), node: NodeAt) -> u64 {
        node.node_word(NRTS).load(Ordering::Acquire)
    }

    fn raise_node_rts(_clock: &(), node: NodeAt, time: u64) -> bool {
        let before = node.node_word(NRTS).fetch_max(time, Ordering::Relaxed);
        full_fence(); // E1, with `inherit_from_node` and with a takeover of the node's words
        before < time
    }

    fn rts(_clock: &(), at: CellAt) -> u64 {
        Tid(at.cell_word(RTS).load(Ordering::Acquire)).version()
    }

    fn reap(
        _context: &mut Context<'_, TicToc>,
        _due: &mut Due,
        _table: &TableCore,
        units: &[CellAt],
        _horizon: Epoch,
    ) -> GcOutcome {
        cell_lock::reap(units) // TT6
    }

    fn merge_into_node(_clock: &(), node: NodeAt, at: CellAt) {
        let [tid, wts] = [RTS, WTS].map(|word| Tid(at.cell_word(word).load(Ordering::Relaxed)));
        debug_assert!(tid.has(Tid::DEAD), "TT4: the rts is final");
        let [rts, wts] = [tid, wts].map(Tid::version);
        node.node_word(NRTS).fetch_max(rts, Ordering::Relaxed);
        // Release pairs with `absent`: a reader that loads this nwts then finds the node locked, or
        // already in a new version.
        node.node_word(NWTS).fetch_max(wts, Ordering::Release);
    }
}

/// Loads a cell's TID word and wts, copies the words, and loads both again. Returns the wts and the
/// rts of the words' version. If the copied words may belong to no version, returns the first TID
/// word as an error.
#[cfg_attr(not(debug_assertions), inline(always))]
fn look(at: CellAt, copy: &mut impl FnMut(Words<'_>)) -> Result<(u64, Tid), Tid> {
    let (cell, cell_wts) = (at.cell_word(RTS), at.cell_word(WTS));
    let before = Tid(cell.load(Ordering::Relaxed));
    if before.has(Tid::INSTALL) {
        return Err(before);
    }
    // Acquire: a commit stores wts after the words and under the lock, so the loads below see
    // nothing older than that commit (E3).
    let wts = cell_wts.load(Ordering::Acquire);
    copy_shared(at, copy);
    // If a copied word came from an install in progress, the Acquire load of that word made the
    // lock visible. If the word came from a finished install, this Acquire makes the wts of that
    // install visible (E3). Otherwise all loads are of one version.
    let rts = Tid(cell.load(Ordering::Acquire));
    if is_of(rts, wts, cell_wts) { Ok((wts, rts)) } else { Err(before) }
}

/// Returns whether a cell still has the version of `wts`. `rts` is the cell's TID word from the
/// second load.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_of(rts: Tid, wts: u64, cell_wts: &AtomicU64) -> bool {
    !rts.has(Tid::INSTALL) && cell_wts.load(Ordering::Relaxed) == wts
}

/// Unlocks the cell of a new record. The row is absent, with these timestamps.
pub(crate) fn begin_in_time(at: CellAt, [wts, rts]: [u64; 2]) {
    debug_assert!(wts <= rts, "TT5: nwts is at most nrts");
    at.cell_word(WTS).store(wts, Ordering::Relaxed);
    at.cell_word(RTS).store(rts | Tid::INITIAL.0 | UNWRITTEN, Ordering::Release); // E3, TT4
}

/// Commits an attempt that has written nothing: phases 2 and 3 only.
#[cfg_attr(not(debug_assertions), inline(always))]
fn commit_reads(
    context: &mut Context<'_, TicToc>,
    attempt: &mut Attempt,
    writes: &WriteSet,
) -> Result<Committed, Abort> {
    certify(context, attempt, writes)?;
    context.note_staleness(|| is_stale(attempt, writes));
    Ok(Committed::NOTHING)
}

/// Commits an attempt that has no late rows. This is not generic, so that it is compiled with the
/// engine, and not with each crate that uses the engine.
#[inline(never)]
fn commit_known(
    context: &mut Context<'_, TicToc>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
) -> Result<Committed, Abort> {
    commit(context, attempt, writes, turn, &NoLateRows)
}

/// Commits in five phases. On return, whether the commit has succeeded or failed, only the cells
/// still in `held` are locked. If an updater panics, no cell stays locked.
fn commit(
    context: &mut Context<'_, TicToc>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
    turn: &mut LogTurn<'_>,
    late: &impl Late,
) -> Result<Committed, Abort> {
    if context.engine.options.factors.has(Factor::PreemptiveAborts) {
        preempt(context, attempt, writes)?;
    }
    // 1 lock
    acquire(context, &mut attempt.held, writes, install_held)?;
    let replaced = |item: &WriteItem| item.at.cell_word(WTS).load(Ordering::Relaxed);
    late.lock(context, attempt, writes, |attempt| &attempt.held, replaced)?; // LR1

    // The stamp is an epoch in which the commit holds all its locks.
    turn.take();
    let stamp = context.engine.epochs.now();
    context.check_stamp(stamp).inspect_err(|_| release(context, writes.items()))?;

    // 2 timestamp, 3 validate
    let cts =
        certify(context, attempt, writes).inspect_err(|_| release(context, writes.items()))?;
    context.note_staleness(|| is_stale(attempt, writes));

    // 4 evaluate
    if let Err(failure) = evaluate(context.local, writes, cts, replaced) {
        // The outcome depends on the locked versions, so they count as read at `cts`.
        writes.items_mut().iter_mut().for_each(|item| item.note = raised(Tid(item.note), cts).0);
        return Err(fail(context, &mut attempt.held, writes, failure, release_held));
    }

    // 5 install and release: nothing fails any more (TT3)
    for index in 0..writes.items().len() {
        install(context, writes, index, cts);
    }
    Ok(Committed { version: cts, stamp })
}

/// Begins phase 1 for a held cell: sets INSTALL. From here on no session extends the version, so
/// this exchange returns the version's final rts (TT2).
fn install_held(at: CellAt, _was: Tid) -> Tid {
    let cell = at.cell_word(RTS);
    // Relaxed is enough, since other sessions extend the version by exchanges of the same word.
    Tid(cell.fetch_or(Tid::INSTALL, Ordering::Relaxed) | Tid::INSTALL)
}

/// Releases a held cell. The release is an exchange, since other sessions may be extending the
/// version.
fn release_held(context: &mut Context<'_, TicToc>, at: CellAt, _was: Tid) {
    let give_back = |is_handed: bool| {
        if !is_handed {
            at.cell_word(RTS).fetch_and(!Tid::LOCK, Ordering::Release); // E3
        }
    };
    free(context, at, true, give_back);
}

/// Runs phases 2 and 3. Chooses the smallest timestamp at which all reads may be valid and all
/// locked versions can be replaced (TT2), and returns it. Extends each version that was read to
/// that timestamp. Raises the nrts of each observed node to that timestamp, and validates the node.
#[inline]
fn certify(
    context: &mut Context<'_, TicToc>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<u64, Abort> {
    let limited = || context.engine.options.factors.has(Factor::CompressedTimestamps);
    if !attempt.reads.is_empty() && limited() {
        return certify_limited(context, attempt, writes);
    }
    certify_from(context, attempt, writes, attempt.floor, None)
}

/// Runs phases 2 and 3 under [`Factor::CompressedTimestamps`].
#[cold]
#[inline(never)]
fn certify_limited(
    context: &mut Context<'_, TicToc>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<u64, Abort> {
    certify_from(context, attempt, writes, moved_floor(attempt), Some(attempt))
}

/// Runs phases 2 and 3. The timestamp is at least `cts`. `limited` is the attempt if wts may move.
#[cfg_attr(not(debug_assertions), inline(always))]
fn certify_from(
    context: &mut Context<'_, TicToc>,
    attempt: &Attempt,
    writes: &WriteSet,
    mut cts: u64,
    limited: Option<&Attempt>,
) -> Result<u64, Abort> {
    for item in writes.items() {
        cts = cts.max(valid_until(item).checked_add(TICK).ok_or(Abort::VersionsExhausted)?);
    }
    debug_assert!(
        is_above_replaced(cts, writes),
        "TT2: a commit timestamp is above the rts of all replaced versions"
    );
    debug_assert!(
        attempt.reads.iter().all(|read| read.wts <= cts),
        "TT2: a commit timestamp is not below the wts of any version read"
    );
    for read in &attempt.reads {
        // The flags need no mask: their bits are below one `TICK`.
        if read.rts.0 < cts && !extend(read, writes, cts, limited) {
            return Err(context.conflict(Abort::ReadChanged, read.at));
        }
    }
    if !attempt.nodes.is_empty() {
        attempt.nodes.iter().for_each(|read| extend_node(read, cts));
        full_fence(); // E1, with `inherit_from_node` and with the moving of buckets
        if let Some(read) = attempt.nodes.iter().find(|read| has_changed(read)) {
            return Err(context.phantom(read.table));
        }
    }
    Ok(cts)
}

/// Aborts if validation is bound to fail: if a version that was read has been replaced, or another
/// commit is replacing it, and the version is not known to be valid at the lower bound of the
/// commit timestamp. Called before phase 1, when the attempt owns no cell as a writer.
///
/// # Errors
/// [`Abort::ReadChanged`].
#[cold]
#[inline(never)]
fn preempt(
    context: &mut Context<'_, TicToc>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<(), Abort> {
    let rts_of = |item: &WriteItem| Tid(item.at.cell_word(RTS).load(Ordering::Relaxed)).version();
    let after = writes.items().iter().map(|item| rts_of(item).saturating_add(TICK));
    let bound = after.fold(attempt.floor, u64::max);
    let is_lost = |read: &&Read| {
        let tid = Tid(read.at.cell_word(RTS).load(Ordering::Acquire)); // E3
        let is_replaced = read.at.cell_word(WTS).load(Ordering::Relaxed) != read.wts;
        read.rts.version() < bound && (is_replaced || tid.has(Tid::INSTALL))
    };
    match attempt.reads.iter().find(is_lost) {
        Some(read) => Err(context.conflict(Abort::ReadChanged, read.at)),
        None => Ok(()),
    }
}

/// Returns the wts that a version has under [`Factor::CompressedTimestamps`]. Extensions have
/// raised the version's rts to `rts` and moved its wts up from `wts`.
fn moved(wts: u64, rts: u64) -> u64 {
    rts - (rts - wts) % LEASE
}

/// Returns the lower bound of the commit timestamp under [`Factor::CompressedTimestamps`].
fn moved_floor(attempt: &Attempt) -> u64 {
    let written = attempt.reads.iter().filter(|read| !read.rts.has(UNWRITTEN));
    let starts = written.map(|read| moved(read.wts, read.rts.version()));
    starts.fold(attempt.floor, u64::max)
}

/// Returns whether the wts of a version has moved since the read, under
/// [`Factor::CompressedTimestamps`]. `tid` is the cell's first word. The read's attempt validates
/// its reads in order. An earlier read of the same moved wts is valid, and its validation may have
/// moved it.
fn is_moved(read: &Read, tid: Tid, attempt: &Attempt) -> bool {
    let start = moved(read.wts, read.rts.version());
    let is_same = |earlier: &Read| {
        earlier.at.address() == read.at.address()
            && moved(earlier.wts, earlier.rts.version()) == start
    };
    let mut earlier = attempt.reads.iter().take_while(|earlier| !std::ptr::eq(*earlier, read));
    !tid.has(UNWRITTEN) && moved(read.wts, tid.version()) != start && !earlier.any(is_same)
}

/// Returns whether OCC would abort the attempt: a version that it has read was replaced, or another
/// commit is about to replace one. (`certify` has found the nodes unchanged.)
#[cold]
fn is_stale(attempt: &Attempt, writes: &WriteSet) -> bool {
    attempt.reads.iter().any(|read| {
        let tid = Tid(read.at.cell_word(RTS).load(Ordering::Acquire)); // E3
        let is_replaced = read.at.cell_word(WTS).load(Ordering::Relaxed) != read.wts;
        is_replaced || tid.has(Tid::INSTALL) && writes.find(read.at).is_none()
    })
}

/// Returns the timestamp up to which the locked version of an item is valid.
#[cfg_attr(not(debug_assertions), inline(always))]
fn valid_until(item: &WriteItem) -> u64 {
    Tid(item.note).version()
}

/// Raises the rts of a node to `cts`. The caller issues a fence and validates the node's version
/// afterwards.
#[cfg_attr(not(debug_assertions), inline(always))]
fn extend_node(read: &NodeRead, cts: u64) {
    read.node.node_word(NRTS).fetch_max(cts, Ordering::Relaxed);
}

/// Returns whether a node has another version than the observed one.
#[cfg_attr(not(debug_assertions), inline(always))]
fn has_changed(read: &NodeRead) -> bool {
    read.node.version() != read.version
}

/// Returns whether `cts` is above the rts of every version that a commit replaces. The rts is the
/// version's rts when the commit set INSTALL (TT2).
fn is_above_replaced(cts: u64, writes: &WriteSet) -> bool {
    let mut found = writes.items().iter().map(|item| Tid(item.note).version());
    found.all(|rts| rts < cts)
}

/// Makes a version valid at `cts`. Returns `false` if another commit has replaced the version or is
/// about to replace it. `limited` is the read's attempt if wts may move.
#[cfg_attr(not(debug_assertions), inline(always))]
fn extend(read: &Read, writes: &WriteSet, cts: u64, limited: Option<&Attempt>) -> bool {
    let (cell, cell_wts) = (read.at.cell_word(RTS), read.at.cell_word(WTS));
    loop {
        // rts is loaded before wts. Otherwise an install between the loads would give the old
        // version the rts of the new one. Acquire: loading rts makes the wts of the same version
        // visible (E3).
        let tid = Tid(cell.load(Ordering::Acquire));
        pass(Point::Extending);
        if cell_wts.load(Ordering::Relaxed) != read.wts {
            return false;
        }
        if limited.is_some_and(|attempt| is_moved(read, tid, attempt)) {
            return false;
        }
        if tid.version() >= cts {
            return true;
        }
        if tid.has(Tid::INSTALL) {
            // If this session has locked the cell, the read is valid. If another session has locked
            // the cell, that session may replace the version at a timestamp below `cts`, or may
            // have made the record dead at such a timestamp.
            return writes.find(read.at).is_some();
        }
        // Relaxed: the order of this one word decides whether the extension or a lock came first
        // (TT2).
        let extended = raised(tid, cts);
        if cell
            .compare_exchange_weak(tid.0, extended.0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            return true;
        }
    }
}

/// Returns `tid` with its rts raised to at least `rts`.
fn raised(tid: Tid, rts: u64) -> Tid {
    Tid(tid.0 - tid.version() + tid.version().max(rts))
}

/// Runs phase 5 for one item: stores its words, and releases its cell with the new version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn install(context: &mut Context<'_, TicToc>, writes: &mut WriteSet, index: usize, cts: u64) {
    let item = &mut writes.items_mut()[index];
    let (at, was) = begin_install(item);
    let mut new = cts | was.0 & Tid::QUEUED;
    if item.present {
        writes.install(index, at.payload());
    } else if was.has(Tid::ABSENT) {
        // The transaction itself has inserted and deleted the row, so it has only seen the row's
        // absence.
        item.untouched = true;
        release_cell(context, at, raised(was.unlocked(), cts));
        return;
    } else {
        new |= cell_lock::flags_of_deleted(was);
    }
    debug_assert!(new & UNWRITTEN == 0, "TT4: the version is written");
    at.cell_word(WTS).store(cts, Ordering::Release); // E3, TT1
    release_installed(context, at, was, Tid(new));
}
