//! TicToc: timestamps are kept in the data, and a commit takes the smallest one at which all it
//! read is valid.
//!
//! # Guarantee
//! Serializable, in the order of commit timestamps; read-only transactions, too. Not strictly: a
//! transaction may come before one that had ended when it began, if no chain of data leads from the
//! one to the other. Not opaque: an attempt that will abort may see values of different times
//! (never a torn one) until it is told.
//!
//! # Source
//! TicToc [YU16], in the form of "Opportunities for Optimism" [HU20], section 2.3: each timestamp
//! has a whole word. Differences: a read for update may lock early; and absence is in timestamp
//! order, too. What vouches for keys without a record, a bucket or a leaf, carries their
//! timestamps; a record inherits them when it is linked, and leaves its own behind when it is
//! unlinked. With versions of nodes, which are in commit order, an insert could slip below a
//! transaction that has missed its key (`tests/timestamps` plays it).
//!
//! # Phases
//! 1 lock the write set, checking each item's expectation - 2 choose the timestamp - 3 validate
//! reads, extending them, and nodes - 4 evaluate updaters - 5 install and release. A transaction
//! that wrote nothing does only 2 and 3. Phase 1 ends without a fence: extending a version
//! and locking it are exchanges of the same word; nodes bring their own.
//!
//! # Cell
//! ```text
//! | rts: 52 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED UNWRITTEN REQUEUE |   | wts: 52 | 0: 12 |    node: | nwts | nrts |
//! ```
//!
//! # Invariants
//! The first word locks the cell as `protocols/shared/cell_lock.rs` says, with invariants K1 to K5;
//! besides:
//! * **L1** Words, wts and ABSENT change only under INSTALL; the rts of a cell with INSTALL only by
//!   its owner, as it releases, and that of any other cell by exchange, even if it is held.
//! * **L2** A version (a row, or its absence) is valid from wts to rts. rts never falls; a
//!   commit that replaces a version has a timestamp above the rts it found as it raised INSTALL.
//! * **L3** Nothing that can fail happens after phase 4.
//! * **L4** UNWRITTEN says that the version is what the record has inherited. A DEAD cell's rts is
//!   final.
//! * **L5** A node's nwts and nrts are at least the wts and rts of every record unlinked from it,
//!   or from a node whose keys have come to it; nwts is at most nrts, and changes only together
//!   with the node's version. A record can be read and locked once it has inherited them.
//! * **L6** A tombstone is buried when all have ended that ran as the row was deleted: its burial
//!   was queued then or later, or it says REQUEUE, and is not buried before it has been queued
//!   again. (Nothing here rests on it, but histories do: a key without a record then means the same
//!   to all transactions that are running.)
//!
//! # Why it is serializable
//! Let c(T) be T's commit timestamp. wr: T reads what U installed, so c(T) is at least the wts,
//! c(U). ww: L2. rw: T read x and U replaced it. T saw an rts of at least c(T) on the version it
//! read: with the version; at validation, where wts was still the version's after rts was loaded;
//! or by its own exchange. U's INSTALL comes later in the order of that one word, so c(U) > c(T).
//! rw without a record: T raises nrts to c(T), fences, and finds the node's version unchanged; an
//! insert that links raises the version, fences, and reads nrts. Either T fails, or the record's
//! first rts is at least c(T); L5 carries it through reap_queue. So no edge falls, and only wr
//! edges are level. A cycle would have these alone, but each of them leads from a commit to one
//! later in real time.
//!
//! # Inheritance
//! A session that takes timestamps over has locked the node they are in, and passes a fence before
//! it reads them (E1).
//!
//! | when | from | to | where |
//! |---|---|---|---|
//! | a record is linked | node | record | `inherit_from_node`, called by both indexes' `link` under the node's lock |
//! | a deleted row's record is unlinked | record | node | `merge_into_node`, called by both indexes' `unlink` |
//! | the record of an insert that failed is unlinked | record | node | the same: it is an absent record like any other |
//! | a leaf is split, or a slot becomes layers | leaf | new leaves | `new_leaf_from`, `begin_layers` in `index/ordered/split.rs` |
//! | a hash table grows | bucket | its two halves | `move_bucket` in `index/hash.rs` |
//! | a leaf or a layer is removed | leaf | heir, holder, root | `inherit`, `remove_layer`, `take_over` in `index/ordered` |
//!
//! # Aborts
//! `Locked`: a lock was not released in time, in phase 1, at a read, or at a read for update.
//! `ReadChanged`: a version could not be extended. `Phantom`: a node changed. `ExistenceChanged`,
//! `RecordRemoved`: phase 1. `Guard`, `Overflow`: phase 4, definite.
//!
//! # Costs
//! Readers write: a read of an old version beside a new one raises its rts, a lookup that misses a
//! key its node's nrts. A burial fails the attempts that have missed a key in its node. Cells take
//! a word more than under OCC, reads a load more.
//!
//! [YU16]: https://doi.org/10.1145/2882903.2882935
//! [HU20]: https://doi.org/10.14778/3377369.3377373

#![forbid(unsafe_code)]

use crate::access::{Failure, WriteSet};
use crate::engine::{Committed, Context, Due, GcOutcome, Missing, Protocol, Seen, TableCore};
use crate::epoch::{Epoch, Epochs};
use crate::error::Abort;
use crate::factor::Factor;
use crate::index::{NodeAt, NodeChange};
use crate::protocols::shared::cell_lock::{
    self, Held, free, lock_all, look_again, release, release_cell,
};
use crate::record::{CellAt, Tid};
use crate::schema::Words;
use crate::sync::{Mutant, Ordering, Point, full_fence, mutant, pass};
use crate::timestamps::Timestamps;
use std::panic::resume_unwind;
use std::sync::Arc;

/// The step from one timestamp to the next: they are kept and compared with zeros in place of the
/// flags.
const TICK: u64 = 1 << 12;

// Where the words are in a cell, whose first is like a [`Tid`], and in a node.
const RTS: usize = 0;
const WTS: usize = 1;
const NWTS: usize = 0;
const NRTS: usize = 1;

/// Optimistic concurrency control in timestamp order, after TicToc: a transaction may commit before
/// one that has ended.
#[derive(Debug)]
pub struct TicToc;

/// What an attempt has observed.
#[derive(Debug, Default)]
pub struct Attempt {
    reads: Vec<Read>,
    nodes: Vec<NodeRead>,
    /// The largest wts and nwts among them: a commit is not below.
    floor: u64,
    held: Held,
}

/// A version, valid from `wts` to at least the number of `rts`, which is what the cell said.
#[derive(Debug)]
struct Read {
    at: CellAt,
    wts: u64,
    rts: Tid,
}

/// A node's version, and its nwts at that version.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NodeRead {
    node: NodeAt,
    version: u64,
    nwts: u64,
    table: u16,
}

impl Attempt {
    #[inline(always)]
    fn observe(&mut self, read: Read) {
        self.floor = self.floor.max(read.wts);
        self.reads.push(read);
    }

    /// Observes what a look has seen.
    #[inline(always)]
    fn see(&mut self, at: CellAt, (wts, rts): (u64, Tid)) -> Seen {
        self.observe(Read { at, wts, rts });
        Seen {
            present: !rts.has(Tid::ABSENT),
            version: if rts.has(Tid::UNWRITTEN) { 0 } else { wts },
        }
    }
}

impl Protocol for TicToc {
    const NAME: &'static str = "tictoc";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    const CELL_WORDS: usize = 2;
    const NODE_WORDS: usize = 2;
    const SINGLE_READ_COMMITS: bool = true;
    type Policy = ();
    type Clock = ();
    type Attempt = Attempt;

    fn clock(_policy: &(), _timestamps: Timestamps, _epochs: &Arc<Epochs>) {}

    fn attempt(_clock: &()) -> Attempt {
        Attempt::default()
    }

    #[inline(always)]
    fn begin(_context: &mut Context<'_, TicToc>, attempt: &mut Attempt) {
        debug_assert!(attempt.held.is_empty(), "the attempt before has ended");
        attempt.reads.clear();
        attempt.nodes.clear();
        attempt.floor = 0;
    }

    #[inline(always)]
    fn read(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = match look(at, &mut copy) {
            Ok(seen) => seen,
            Err(tid) => {
                look_again(Context { local: context.local, ..*context }, at, tid, move || {
                    look(at, &mut copy)
                })?
            }
        };
        Ok(attempt.see(at, seen))
    }

    #[inline(always)]
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
        if attempt.held.has(at) || attempt.held.hold(context, at)?.has(Tid::ABSENT) {
            return Self::read(context, attempt, at, copy);
        }
        // No other session replaces the version while this one holds it, though others may extend
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
        attempt.held.hold_once(context, at)
    }

    #[inline(always)]
    fn peek(_attempt: &Attempt, at: CellAt) -> bool {
        !Tid(at.cell_word(RTS).load(Ordering::Relaxed)).has(Tid::ABSENT)
    }

    fn absent(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        missing: Missing<'_>,
    ) -> Result<(), Abort> {
        let Missing { table, node, version, .. } = missing;
        // After the walk: a slot it found empty was cleared after its record's wts had been left
        // behind. Acquire pairs with `merge_into_node`: with the nwts of a later version, the loss
        // of this one is visible. So the two belong together.
        let nwts = node.node_word(NWTS).load(Ordering::Acquire);
        if node.version() != version {
            return Err(context.phantom(table));
        }
        if !mutant(Mutant::NodeWtsIgnored) {
            attempt.floor = attempt.floor.max(nwts);
        }
        attempt.nodes.push(NodeRead { node, version, nwts, table });
        Ok(())
    }

    fn revalidate(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        // It will commit no lower, so what is not valid now dooms it; what is extended for nothing
        // does no harm.
        certify(context, attempt, writes).map(drop)
    }

    #[inline(always)]
    fn commit(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let committed = match writes.is_empty() {
            true => commit_reads(context, attempt, writes),
            false => commit(context, attempt, writes),
        };
        if !attempt.held.is_empty() {
            release_held(context, attempt);
        }
        pass(Point::Released);
        committed
    }

    fn abort(context: &mut Context<'_, TicToc>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        if mutant(Mutant::HeldForEver) {
            attempt.held.forget();
        }
        release_held(context, attempt);
    }

    fn init_absent_cell(_clock: &(), at: CellAt) {
        // Locked until it has inherited (L5): the link comes first.
        at.cell_word(RTS).store(Tid::INITIAL.0 | Tid::LOCK | Tid::INSTALL, Ordering::Relaxed);
    }

    fn inherit_from_node(_clock: &(), node: NodeAt, at: CellAt) {
        // An absent reader raises nrts and then looks at the version; we have raised the version
        // and now look at nrts.
        full_fence(); // E1
        let inherited = [NWTS, NRTS].map(|word| node.node_word(word).load(Ordering::Relaxed));
        let [nwts, nrts] = if mutant(Mutant::InsertInheritsNothing) { [0, 0] } else { inherited };
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
            // The node no longer tells when another session commits an insert of this key; the
            // record does. It was born with the nwts of version `before` and an rts not below (L5),
            // whatever has become of it since.
            attempt.observe(Read { at: first, wts, rts: Tid(wts) });
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        if mutant(Mutant::SplitUntracked) {
            return;
        }
        // The successors have inherited, so the timestamp observed in their origin goes for them
        // too.
        change.replace(&mut attempt.nodes, |read| (&mut read.node, &mut read.version));
    }

    fn enqueue_if_absent(_clock: &(), first: CellAt) -> bool {
        cell_lock::enqueue_if_absent(first)
    }

    fn node_seen_until(_clock: &(), node: NodeAt) -> u64 {
        node.node_word(NRTS).load(Ordering::Acquire)
    }

    fn see_node_until(_clock: &(), node: NodeAt, time: u64) -> bool {
        let before = node.node_word(NRTS).fetch_max(time, Ordering::Relaxed);
        full_fence(); // E1, with `inherit_from_node` and with a takeover of the node's words
        before < time
    }

    fn seen_until(_clock: &(), at: CellAt) -> u64 {
        Tid(at.cell_word(RTS).load(Ordering::Acquire)).version()
    }

    fn reach(
        _context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        time: u64,
        _table: u16,
    ) -> Result<(), Abort> {
        // Whatever has been read so far has to be valid then, too, or the commit fails.
        if !mutant(Mutant::IndexReadEarly) {
            attempt.floor = attempt.floor.max(time);
        }
        Ok(())
    }

    fn reap(
        _context: &mut Context<'_, TicToc>,
        _due: &mut Due,
        _table: &TableCore,
        units: &[CellAt],
        _horizon: Epoch,
    ) -> GcOutcome {
        // Versions do not say when a row was deleted, but REQUEUE does (L6).
        cell_lock::reap(units, |_| false)
    }

    fn merge_into_node(_clock: &(), node: NodeAt, at: CellAt) {
        let [tid, wts] = [RTS, WTS].map(|word| Tid(at.cell_word(word).load(Ordering::Relaxed)));
        let defect = if tid.has(Tid::UNWRITTEN) {
            Mutant::AbortLeavesNothing
        } else {
            Mutant::DeleteLeavesNothing
        };
        if mutant(defect) {
            return;
        }
        let [rts, wts] = [tid, wts].map(Tid::version);
        node.node_word(NRTS).fetch_max(rts, Ordering::Relaxed);
        // Release pairs with `absent`: a reader that sees it sees the node locked, or already in a
        // new version.
        node.node_word(NWTS).fetch_max(wts, Ordering::Release);
    }
}

/// Looks at a cell, copies the words, and looks again: the wts and the rts of their version; as an
/// error, what the cell said if they may belong to none.
#[inline(always)]
fn look(at: CellAt, copy: &mut impl FnMut(Words<'_>)) -> Result<(u64, Tid), Tid> {
    let (cell, cell_wts) = (at.cell_word(RTS), at.cell_word(WTS));
    let before = Tid(cell.load(Ordering::Relaxed));
    if before.has(Tid::INSTALL) {
        return Err(before);
    }
    // Acquire: wts is stored after the words and under the lock, so what follows is not older (E3).
    let wts = cell_wts.load(Ordering::Acquire);
    copy(Words::Shared(at.payload()));
    pass(Point::Copied);
    // If a word came from an install in progress, its Acquire load made the lock visible; if from
    // one that is over, this Acquire makes its wts visible (E3). Otherwise all we have loaded is of
    // one version.
    let rts = Tid(cell.load(Ordering::Acquire));
    let same = !rts.has(Tid::INSTALL) && cell_wts.load(Ordering::Relaxed) == wts;
    if same || mutant(Mutant::SecondLookSkipped) { Ok((wts, rts)) } else { Err(before) }
}

/// Unlocks a new record's cell, absent and with these timestamps.
pub(crate) fn begin_in_time(at: CellAt, [wts, rts]: [u64; 2]) {
    at.cell_word(WTS).store(wts, Ordering::Relaxed);
    at.cell_word(RTS).store(rts | Tid::INITIAL.0 | Tid::UNWRITTEN, Ordering::Release); // E3
}

/// Phases 2 and 3, all that there is for an attempt that has written nothing.
#[inline(always)]
fn commit_reads(
    context: &mut Context<'_, TicToc>,
    attempt: &mut Attempt,
    writes: &WriteSet,
) -> Result<Committed, Abort> {
    certify(context, attempt, writes).map(|_| Committed { version: 0 })
}

/// The phases of a commit. Whatever comes of it, nothing is locked afterwards but what is still in
/// `held`; nor is that, if an updater panics.
fn commit(
    context: &mut Context<'_, TicToc>,
    attempt: &mut Attempt,
    writes: &mut WriteSet,
) -> Result<Committed, Abort> {
    context.yield_to_token()?;
    context.reserve_for(writes);
    if context.engine.options.factors.has(Factor::SortedLocks) {
        writes.sort();
    }
    pass(Point::Unlocked);

    // 1 lock
    if !attempt.held.is_empty() {
        attempt.held.hand_over(writes, install_held);
    }
    lock_all(context, writes, &attempt.held)?;
    pass(Point::Locked);

    // 2 timestamp, 3 validate
    let cts =
        certify(context, attempt, writes).inspect_err(|_| release(context, writes.items()))?;
    pass(Point::Validated);

    // 4 evaluate
    if let Err(failure) = writes.evaluate(|item| Words::Shared(item.at.payload())) {
        // What is shown now rests on the versions we have locked: they are read at our timestamp.
        writes.items_mut().iter_mut().for_each(|item| item.note = raised(Tid(item.note), cts).0);
        release(context, writes.items());
        match failure {
            Failure::Outcome(abort) => return Err(abort),
            Failure::Panic(panic) => {
                release_held(context, attempt);
                resume_unwind(panic);
            }
        }
    }

    // 5 install and release
    for index in 0..writes.items().len() {
        install(context, writes, index, cts);
    }
    Ok(Committed { version: cts })
}

/// Beginning of phase 1 for a held cell: raises INSTALL. From here on the version is not
/// extended, so this exchange says how far it is valid (L2).
fn install_held(at: CellAt, was: Tid) -> Tid {
    let cell = at.cell_word(RTS);
    // Relaxed: extensions of the version are exchanges of the same word.
    let install = if mutant(Mutant::HeldNotInstalling) { 0 } else { Tid::INSTALL };
    let now = Tid(cell.fetch_or(install, Ordering::Relaxed) | Tid::INSTALL);
    if mutant(Mutant::HeldExtensionMissed) { Tid(was.0 | Tid::LOCK | Tid::INSTALL) } else { now }
}

/// Gives back what is still held. By exchange, since others may be extending it.
#[cold]
fn release_held(context: &Context<'_, TicToc>, attempt: &mut Attempt) {
    for (at, _) in attempt.held.drain() {
        let give_back = |is_handed: bool| {
            if !is_handed {
                at.cell_word(RTS).fetch_and(!Tid::LOCK, Ordering::Release); // E3
            }
        };
        free(context, at, true, give_back);
    }
}

/// Phases 2 and 3: gives the smallest timestamp at which everything read may be valid and
/// everything locked can be replaced (L2), once every version read is valid there, and every node
/// vouches as before, up to that timestamp.
#[inline]
fn certify(
    context: &mut Context<'_, TicToc>,
    attempt: &Attempt,
    writes: &WriteSet,
) -> Result<u64, Abort> {
    let mut cts = attempt.floor;
    for item in writes.items() {
        let version = match mutant(Mutant::CommitBelowRts) {
            true => item.at.cell_word(WTS).load(Ordering::Relaxed),
            false => Tid(item.note).version(),
        };
        cts = cts.max(version.checked_add(TICK).ok_or(Abort::VersionsExhausted)?);
    }
    for read in &attempt.reads {
        // Without its flags, whatever they are: they are below the first step.
        if read.rts.0 < cts && !extend(read, writes, cts) {
            return Err(context.conflict(Abort::ReadChanged, read.at));
        }
    }
    if !attempt.nodes.is_empty() {
        for read in attempt.nodes.iter().filter(|_| !mutant(Mutant::NodeNotExtended)) {
            read.node.node_word(NRTS).fetch_max(cts, Ordering::Relaxed);
        }
        full_fence(); // E1, with `inherit_from_node` and with the moving of buckets
        let changed = |read: &&NodeRead| {
            read.node.version() != read.version && !mutant(Mutant::NoNodeValidation)
        };
        if let Some(read) = attempt.nodes.iter().find(changed) {
            return Err(context.phantom(read.table));
        }
    }
    Ok(cts)
}

/// Makes a version valid at `cts`; false if it has been replaced, or is about to be.
#[inline]
fn extend(read: &Read, writes: &WriteSet, cts: u64) -> bool {
    let (cell, cell_wts) = (read.at.cell_word(RTS), read.at.cell_word(WTS));
    if mutant(Mutant::NoReadValidation) {
        return true;
    }
    loop {
        let early = mutant(Mutant::WtsBeforeRts).then(|| cell_wts.load(Ordering::Relaxed));
        if early.is_some() {
            pass(Point::Extending);
        }
        // rts before wts, or an install in between would lend the old version the new one's rts.
        // Acquire: an rts brings its wts along (E3).
        let tid = Tid(cell.load(Ordering::Acquire));
        if early.is_none() {
            pass(Point::Extending);
        }
        if early.unwrap_or_else(|| cell_wts.load(Ordering::Relaxed)) != read.wts {
            return false;
        }
        if tid.version() >= cts || mutant(Mutant::NotExtended) {
            return true;
        }
        if tid.has(Tid::INSTALL) && !mutant(Mutant::ExtendedUnderLock) {
            // Locked by this session; or by another one that may replace the version below `cts`,
            // or has buried it below.
            return writes.find(read.at).is_some();
        }
        // Relaxed: the order of this one word decides whether we or a lock came first (L2).
        let extended = raised(tid, cts);
        if cell
            .compare_exchange_weak(tid.0, extended.0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            return true;
        }
    }
}

/// The same word with an rts of at least `rts`.
fn raised(tid: Tid, rts: u64) -> Tid {
    Tid(tid.0 - tid.version() + tid.version().max(rts))
}

/// Phase 5 for one item: stores its words and releases its cell in the new version.
#[inline(always)]
fn install(context: &mut Context<'_, TicToc>, writes: &mut WriteSet, index: usize, cts: u64) {
    let item = &mut writes.items_mut()[index];
    let (at, was) = (item.at, Tid(item.note));
    let mut new = cts | was.0 & Tid::QUEUED;
    pass(Point::Installing);
    if item.present {
        writes.install(index, at.payload());
    } else if was.has(Tid::ABSENT) {
        // It came and went within the transaction, which has only seen that it is not there.
        item.untouched = true;
        release_cell(context, at, raised(was.unlocked(), cts));
        return;
    } else {
        // An entry of the queue that is there already is from before (L6).
        new |= Tid::ABSENT | if was.has(Tid::QUEUED) { Tid::REQUEUE } else { 0 };
    }
    at.cell_word(WTS).store(cts, Ordering::Release); // E3
    release_cell(context, at, Tid(new));
}
