//! TicToc: timestamps are kept in the data, and a commit takes the smallest one at which all it read is valid.
//!
//! # Guarantee
//! Serializable, in the order of commit timestamps. Not strictly: a transaction may come before one that had ended when
//! it began, if no chain of data leads from the one to the other. Not opaque: an attempt that will abort may see values of
//! different times (never a torn one) until it is told.
//!
//! # Source
//! TicToc (SIGMOD 2016), in the form of "Opportunities for Optimism" (VLDB 2020), section 2: each timestamp has a whole word.
//! Difference: absence is in timestamp order, too. A bucket carries the timestamps of all keys without a record; a record
//! inherits them when it is linked, and leaves its own behind when it is unlinked. With versions of buckets, which are in
//! commit order, an insert could slip below a transaction that has missed its key.
//!
//! # Phases
//! 1 lock the write set, checking each item's expectation - 2 choose the timestamp - 3 validate reads, extending them, and
//! nodes - 4 evaluate updaters - 5 install and release. A transaction that wrote nothing does only 2 and 3. Phase 1 ends
//! without a fence: who extends a version and who locks it meet in the exchange of one word; nodes bring their own.
//!
//! # Cell
//! ```text
//! | rts: 52 | flags: 12: LOCK INSTALL ABSENT DEAD QUEUED |   | wts: 52 | 0: 12 |       node: | nwts | nrts |
//! ```
//!
//! # Invariants
//! * **T1** LOCK and INSTALL are set together by one exchange. Words, wts and ABSENT change only between that and the
//!   release; rts and QUEUED change by the lock's owner, or by exchange in an unlocked cell.
//! * **T2** A version (a row, or its absence) is valid from wts to rts. rts never falls; whoever replaces a version commits
//!   above the rts it found as it locked.
//! * **T3** Nothing that can fail happens after phase 4.
//! * **T4** An absent cell is released QUEUED, or is in the `linked` list of the attempt that linked it. A DEAD cell stays
//!   locked for ever, so its rts is final.
//! * **T5** A node's nwts and nrts are at least the wts and rts of every record unlinked from it; nwts is at most nrts, and
//!   changes only together with the node's version. A record can be read and locked once it has inherited them.
//!
//! # Why it is serializable
//! Let c(T) be T's commit timestamp. wr: T reads what U installed, so c(T) is at least the wts, c(U). ww: T2. rw: T read x
//! and U replaced it. T saw an rts of at least c(T) on the version it read: with the version; at validation, where wts was
//! still the version's after rts was loaded; or by its own exchange. U's lock comes later in the order of that one word, so
//! c(U) > c(T). rw without a record: T raises nrts to c(T), fences, and finds the node's version unchanged; whoever links
//! raises the version, fences, and reads nrts. Either T fails, or the record's first rts is at least c(T); T5 carries it
//! through burials. So no edge falls, and only wr edges are level. A cycle would have these alone, but each of them leads
//! from a commit to one later in real time.
//!
//! # Aborts
//! `Locked`: a lock was not released in time, in phase 1 or at a read. `ReadChanged`: a version could not be extended.
//! `Phantom`: a node changed. `Existence`, `Dead`: phase 1. `Guard`, `Overflow`: phase 4, definite.
//!
//! # Costs
//! Readers write: who reads an old version beside a new one raises its rts, who misses a key its node's nrts. A burial fails
//! whoever has missed a key in its bucket.

#![forbid(unsafe_code)]

use super::{Burial, Committed, Context, Missing, Protocol, Seen, occ};
use crate::access::{Failure, WriteItem, WriteSet};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::record::{CellAt, Tid, Words};
use crate::sync::{MODELLED, Ordering, Point, Spin, full_fence, pass};
use std::panic::resume_unwind;

/// Rounds of waiting for a lock before the attempt gives up, as many as in OCC.
const LOCK_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

/// The step from one timestamp to the next: they are kept and compared with zeros in place of the flags.
const TICK: u64 = 1 << 12;

// Where the words are in a cell, whose first is like a [`Tid`], and in a node.
const RTS: usize = 0;
const WTS: usize = 1;
const NWTS: usize = 0;
const NRTS: usize = 1;

/// Optimistic concurrency control in timestamp order.
#[derive(Debug)]
pub struct TicToc;

/// What an attempt has observed.
#[derive(Debug, Default)]
pub struct Attempt {
    reads: Vec<Read>,
    nodes: Vec<NodeRead>,
}

/// A version, valid from `wts` to at least `rts`.
#[derive(Debug)]
struct Read {
    at: CellAt,
    wts: u64,
    rts: u64,
}

/// A node's version, and its nwts at that version.
#[derive(Debug, Clone, Copy)]
struct NodeRead {
    node: NodeAt,
    version: u64,
    nwts: u64,
    table: u16,
}

impl Protocol for TicToc {
    const NAME: &'static str = "tictoc";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    #[cfg(test)]
    const IN_TEST_FORM: bool = true;
    const CELL_WORDS: usize = 2;
    const NODE_WORDS: usize = 2;
    type Clock = ();
    type Attempt = Attempt;

    #[inline(always)]
    fn begin(_context: &mut Context<'_, TicToc>, attempt: &mut Attempt) {
        attempt.reads.clear();
        attempt.nodes.clear();
    }

    #[inline(always)]
    fn read(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let (cell, cell_wts) = (at.cell_word(RTS), at.cell_word(WTS));
        let mut spin = Spin::default();
        loop {
            let before = Tid(cell.load(Ordering::Relaxed));
            if !before.has(Tid::INSTALL) {
                // Acquire: wts is stored after the words and under the lock, so what follows is not older (E3).
                let wts = cell_wts.load(Ordering::Acquire);
                copy(Words::Shared(at.payload()));
                pass(Point::Copied);
                // If a word came from an install in progress, its Acquire load made the lock visible; if from one that is
                // over, this Acquire makes its wts visible (E3). Otherwise all we have loaded is of one version.
                let after = Tid(cell.load(Ordering::Acquire));
                if !after.has(Tid::INSTALL) && cell_wts.load(Ordering::Relaxed) == wts {
                    attempt.reads.push(Read { at, wts, rts: after.version() });
                    let version = if after.has(Tid::UNWRITTEN) { 0 } else { wts };
                    return Ok(Seen { present: !after.has(Tid::ABSENT), version });
                }
            } else if before.has(Tid::DEAD) {
                return Err(context.conflict(Abort::Dead, at));
            }
            if !spin.wait_at_most(LOCK_ROUNDS_MAX) {
                return Err(context.conflict(Abort::Locked, at));
            }
        }
    }

    #[inline(always)]
    fn peek(_attempt: &Attempt, at: CellAt) -> bool {
        !Tid(at.cell_word(RTS).load(Ordering::Relaxed)).has(Tid::ABSENT)
    }

    fn absent(context: &mut Context<'_, TicToc>, attempt: &mut Attempt, missing: Missing<'_>) -> Result<(), Abort> {
        let Missing { table, node, version, .. } = missing;
        // After the walk: a slot it found empty was cleared after its record's wts had been left behind. Acquire pairs with
        // `bequeath`: with the nwts of a later version, the loss of this one is visible. So the two belong together.
        let nwts = node.node_word(NWTS).load(Ordering::Acquire);
        if node.version() != version {
            return Err(context.phantom(table));
        }
        attempt.nodes.push(NodeRead { node, version, nwts, table });
        Ok(())
    }

    fn revalidate(context: &mut Context<'_, TicToc>, attempt: &mut Attempt, writes: &WriteSet) -> Result<(), Abort> {
        // It will commit no lower, so what is not valid now dooms it; what is extended for nothing does no harm.
        certify(context, attempt, writes).map(drop)
    }

    #[inline]
    fn commit(
        context: &mut Context<'_, TicToc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let committed = commit(context, attempt, writes);
        pass(Point::Released);
        committed
    }

    fn abort(_context: &mut Context<'_, TicToc>, _attempt: &mut Attempt, _writes: &mut WriteSet) {}

    fn unborn(at: CellAt) {
        // Locked until it has inherited (T5): the link comes first.
        at.cell_word(RTS).store(Tid::UNBORN.0 | Tid::LOCK | Tid::INSTALL, Ordering::Relaxed);
    }

    fn born(node: NodeAt, at: CellAt) {
        // An absent reader raises nrts and then looks at the version; we have raised the version and now look at nrts.
        full_fence(); // E1
        let [nwts, nrts] = [NWTS, NRTS].map(|word| node.node_word(word).load(Ordering::Relaxed));
        at.cell_word(WTS).store(nwts, Ordering::Relaxed);
        at.cell_word(RTS).store(nrts | Tid::UNBORN.0 | Tid::UNWRITTEN, Ordering::Release); // E3
    }

    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        let mut birth = None;
        for read in &mut attempt.nodes {
            if read.node.address() == node.address() && read.version == before {
                read.version = after;
                birth = Some(read.nwts);
            }
        }
        if let Some(wts) = birth {
            // The node no longer tells us when someone else commits an insert of this key; the record does. It was born with
            // the nwts of version `before` and an rts not below (T5), whatever has become of it since.
            attempt.reads.push(Read { at: first, wts, rts: wts });
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        // The successors have inherited, so the timestamp observed in their origin goes for them too.
        change.replace(&mut attempt.nodes, |read| (&mut read.node, &mut read.version));
    }

    fn left_absent(first: CellAt) -> bool {
        // A locked cell is its owner's business: it installs a row, or releases the cell queued (T4). This is tried until it
        // is settled, since an exchange may fail because somebody extends the version.
        let queue = |word: u64| {
            let left = Tid(word).has(Tid::ABSENT) && !Tid(word).has(Tid::LOCK | Tid::QUEUED);
            left.then_some(word | Tid::QUEUED)
        };
        first.cell_word(RTS).fetch_update(Ordering::Relaxed, Ordering::Relaxed, queue).is_ok()
    }

    fn bury(_context: &mut Context<'_, TicToc>, units: &[CellAt], _bound: Epoch) -> Burial {
        // The flags lead the same life in OCC. There a buried version has to be behind the bound, to be below the key's next
        // one; here the next one is above the rts that the node inherits. Nobody's absence is lost: whoever has seen this
        // one is at or below that rts, or fails.
        occ::bury(units, Epoch::MAX)
    }

    fn bequeath(node: NodeAt, at: CellAt) {
        let [rts, wts] = [RTS, WTS].map(|word| Tid(at.cell_word(word).load(Ordering::Relaxed)).version());
        node.node_word(NRTS).fetch_max(rts, Ordering::Relaxed);
        // Release pairs with `absent`: whoever sees it sees the node locked, or already in a new version.
        node.node_word(NWTS).fetch_max(wts, Ordering::Release);
    }
}

/// The phases of a commit. Whatever comes of it, nothing is locked afterwards.
#[inline(always)]
fn commit(context: &mut Context<'_, TicToc>, attempt: &mut Attempt, writes: &mut WriteSet) -> Result<Committed, Abort> {
    if writes.is_empty() {
        return certify(context, attempt, writes).map(|_| Committed { version: 0 });
    }
    context.yield_to_token()?;
    context.reserve_for(writes);
    if context.engine.options.sorted_locks {
        writes.sort();
    }

    pass(Point::Unlocked);

    // 1 lock
    for index in 0..writes.items().len() {
        let item = writes.items()[index];
        let locked = lock(&item).map_err(|abort| {
            release(context, &writes.items()[..index], 0);
            context.conflict(abort, item.at)
        });
        writes.items_mut()[index].note = locked?.0;
    }
    pass(Point::Locked);

    // 2 timestamp, 3 validate
    let cts = certify(context, attempt, writes).inspect_err(|_| release(context, writes.items(), 0))?;
    pass(Point::Validated);

    // 4 evaluate
    if let Err(failure) = writes.evaluate(|item| Words::Shared(item.at.payload())) {
        // What is shown now rests on the versions we have locked: they are read at our timestamp.
        release(context, writes.items(), cts);
        match failure {
            Failure::Outcome(abort) => return Err(abort),
            Failure::Panic(panic) => resume_unwind(panic),
        }
    }

    // 5 install and release
    for (index, item) in writes.items().iter().enumerate() {
        let mut new = cts | item.note & Tid::QUEUED;
        if item.present {
            writes.install(index, item.at.payload());
        } else {
            new |= Tid::ABSENT;
        }
        item.at.cell_word(WTS).store(cts, Ordering::Release); // E3
        release_cell(context, item.at, Tid(new));
    }
    Ok(Committed { version: cts })
}

/// Phase 1 for one item: locks its cell if its expectation holds, giving what the cell was.
#[inline]
fn lock(item: &WriteItem) -> Result<Tid, Abort> {
    let cell = item.at.cell_word(RTS);
    let mut spin = Spin::default();
    loop {
        let tid = Tid(cell.load(Ordering::Relaxed));
        if tid.has(Tid::DEAD) {
            return Err(Abort::Dead);
        }
        if !tid.has(Tid::LOCK) {
            // Before locking: who is going to fail must not hold a lock that others wait for.
            if !item.accepts(!tid.has(Tid::ABSENT)) {
                return Err(Abort::Existence);
            }
            let locked = tid.0 | Tid::LOCK | Tid::INSTALL;
            // Acquire: the last owner's words are ours to see and to replace (E3).
            if cell.compare_exchange_weak(tid.0, locked, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(tid);
            }
        }
        if !spin.wait_at_most(LOCK_ROUNDS_MAX) {
            return Err(Abort::Locked);
        }
    }
}

/// Phases 2 and 3: gives the smallest timestamp at which everything read may be valid and everything locked can be replaced
/// (T2), once every version read is valid there, and every node vouches as before and will for whoever comes up to it.
#[inline]
fn certify(context: &mut Context<'_, TicToc>, attempt: &Attempt, writes: &WriteSet) -> Result<u64, Abort> {
    let versions = attempt.reads.iter().map(|read| read.wts);
    let mut cts = versions.chain(attempt.nodes.iter().map(|read| read.nwts)).max().unwrap_or(0);
    for item in writes.items() {
        cts = cts.max(Tid(item.note).version().checked_add(TICK).ok_or(Abort::VersionsExhausted)?);
    }
    if let Some(read) = attempt.reads.iter().find(|read| read.rts < cts && !extend(read, writes, cts)) {
        return Err(context.conflict(Abort::ReadChanged, read.at));
    }
    if !attempt.nodes.is_empty() {
        for read in &attempt.nodes {
            read.node.node_word(NRTS).fetch_max(cts, Ordering::Relaxed);
        }
        full_fence(); // E1, with `born` and with the moving of buckets
        if let Some(read) = attempt.nodes.iter().find(|read| read.node.version() != read.version) {
            return Err(context.phantom(read.table));
        }
    }
    Ok(cts)
}

/// Makes a version valid at `cts`; false if it has been replaced, or someone is about to.
#[inline]
fn extend(read: &Read, writes: &WriteSet, cts: u64) -> bool {
    let cell = read.at.cell_word(RTS);
    loop {
        // rts before wts, or an install in between would lend the old version the new one's rts. Acquire: an rts brings its
        // wts along (E3).
        let tid = Tid(cell.load(Ordering::Acquire));
        if read.at.cell_word(WTS).load(Ordering::Relaxed) != read.wts {
            return false;
        }
        if tid.version() >= cts {
            return true;
        }
        if tid.has(Tid::INSTALL) {
            // Locked by us; or by someone who may replace the version below `cts`, or has buried it below.
            return writes.find(read.at).is_some();
        }
        // Relaxed: the order of this one word decides whether we or a lock came first (T2).
        let extended = raised(tid, cts);
        if cell.compare_exchange_weak(tid.0, extended.0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return true;
        }
    }
}

/// The same word with an rts of at least `rts`.
fn raised(tid: Tid, rts: u64) -> Tid {
    Tid(tid.0 - tid.version() + tid.version().max(rts))
}

/// Ends the ownership of locked cells, leaving the versions as they were, but valid at `rts`.
#[cold]
fn release(context: &mut Context<'_, TicToc>, items: &[WriteItem], rts: u64) {
    for item in items {
        release_cell(context, item.at, raised(Tid(item.note), rts));
    }
}

/// Stores an unlocked cell; an absent record's first one QUEUED (T4).
#[inline]
fn release_cell(context: &mut Context<'_, TicToc>, at: CellAt, mut tid: Tid) {
    debug_assert!(!tid.has(Tid::LOCK | Tid::INSTALL));
    if tid.has(Tid::ABSENT) && at.is_first() && !tid.has(Tid::QUEUED) {
        tid.0 |= Tid::QUEUED;
        context.local.burials.push(at);
    }
    at.cell_word(RTS).store(tid.0, Ordering::Release); // E3
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::protocol::{Occ, Protocol, TicToc};
    use crate::{Abort, Column, Database, Group, Hashed, Record, Session, Table, Tx};

    #[derive(Debug, Clone, Copy)]
    struct Row {
        id: u64,
        value: i64,
        note: u64,
    }

    const VALUE: Column<Row, i64> = Column::new(0, 0, "value");
    const NOTE: Column<Row, u64> = Column::new(1, 0, "note");

    impl Record for Row {
        type Key = u64;
        type Index = Hashed;
        type Image = [u64; 2];
        const NAME: &'static str = "Row";
        const GROUPS: &'static [Group] = &[Group::new("value", 1), Group::new("note", 1)];

        fn key(&self) -> u64 {
            self.id
        }
        fn store(&self, words: &mut [u64]) {
            VALUE.put(words, &self.value);
            NOTE.put(words, &self.note);
        }
        fn load(key: &u64, words: &[u64]) -> Row {
            Row { id: *key, value: VALUE.take(words), note: NOTE.take(words) }
        }
    }

    fn row(id: u64, value: i64) -> Row {
        Row { id, value, note: 0 }
    }

    /// A database, in which time stands still, with rows 1, 2 and 3, all zero; and a session.
    fn set_up<P: Protocol>() -> (Database<P>, Table<Row, P>, Session<P>) {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let (table, mut session) = (db.table("rows").unwrap(), db.session().unwrap());
        session
            .run(|tx| (1..=3).try_for_each(|id| table.insert(tx, row(id, 0))))
            .unwrap_or_else(|e: Abort| panic!("{e}"));
        (db, table, session)
    }

    /// Makes row 1, still in its first version, valid far beyond the timestamps of the others.
    fn extend_row_1<P: Protocol>(table: &Table<Row, P>, session: &mut Session<P>) {
        for _ in 0..20 {
            session.run(|tx| table.update(tx, &3, VALUE.add(1))).unwrap_or_else(|e: Abort| panic!("{e}"));
        }
        let both = session.run(|tx| Ok((table.read(tx, &1, VALUE)?, table.read(tx, &3, VALUE)?)));
        assert_eq!(both, Ok::<_, Abort>((0, 20)));
    }

    #[test]
    fn rows_come_change_go_and_come_back() {
        let (db, table, mut session) = set_up::<TicToc>();
        for round in 0..100 {
            let id = 4 + round % 7;
            assert_eq!(session.run(|tx| table.get(tx, &id, NOTE)), Ok::<_, Abort>(None));
            assert_eq!(session.run(|tx| table.insert(tx, row(id, 1))), Ok::<_, Abort>(()));
            assert_eq!(session.run(|tx| table.insert(tx, row(id, 2))), Err(Abort::Duplicate));
            assert_eq!(session.run(|tx| table.update(tx, &id, VALUE.add(1))), Ok::<_, Abort>(()));
            assert_eq!(session.run(|tx| table.read(tx, &id, (VALUE, NOTE))), Ok::<_, Abort>((2, 0)));
            assert_eq!(session.run(|tx| table.delete(tx, &id)), Ok::<_, Abort>(()));
            assert_eq!(session.run(|tx| table.update(tx, &id, NOTE.set(1))), Err(Abort::NotFound));
            if round % 10 == 9 {
                // Tombstones are taken over until time passes; then they are buried.
                db.inner.engine.epochs.pass();
            }
        }
        assert_eq!(table.for_each_quiescent(|_| {}), Ok(3));
    }

    #[test]
    fn no_increment_is_lost() {
        let (db, table, mut session) = set_up::<TicToc>();
        std::thread::scope(|scope| {
            for blind in [true, false] {
                let (mut session, table) = (db.session().unwrap(), &table);
                scope.spawn(move || {
                    for _ in 0..5_000 {
                        let incremented: Result<(), Abort> = session.run(|tx| match blind {
                            true => table.update(tx, &1, VALUE.add(1)),
                            false => table.modify(tx, &1, VALUE, |value| *value += 1),
                        });
                        incremented.unwrap();
                    }
                });
            }
        });
        assert_eq!(session.run(|tx| table.read(tx, &1, VALUE)), Ok::<_, Abort>(10_000));
    }

    /// Attempts of a transaction that reads row 1 and writes row 2, when row 1 is overwritten in between.
    fn attempts_after_overwrite<P: Protocol>() -> Result<u32, Abort> {
        let (db, table, mut session) = set_up::<P>();
        extend_row_1(&table, &mut session);
        let mut other = db.session().unwrap();
        session.run(|tx| {
            table.read(tx, &1, VALUE)?;
            if tx.attempt() == 1 {
                other.run(|tx| table.update(tx, &1, VALUE.add(1)))?;
            }
            table.update(tx, &2, VALUE.add(1))?;
            Ok(tx.attempt())
        })
    }

    #[test]
    fn commits_before_a_transaction_that_has_ended() {
        assert_eq!(attempts_after_overwrite::<Occ>(), Ok(2));
        assert_eq!(attempts_after_overwrite::<TicToc>(), Ok(1));
    }

    type Body<'a> = &'a dyn Fn(&Table<Row, TicToc>, &Tx<'_, TicToc>) -> Result<(), Abort>;

    /// Runs `first`, which must come after row 1 is overwritten, and `second`, which must come after `first`, while a
    /// transaction has read row 1 as it was; says whether the latter may `look` at what `second` did.
    fn slips_below(prepare: &[Body<'_>], first: &[Body<'_>], second: Body<'_>, look: Body<'_>) -> bool {
        let (db, table, mut session) = set_up::<TicToc>();
        let mut other = db.session().unwrap();
        prepare.iter().for_each(|body| other.run(|tx| body(&table, tx)).unwrap());
        db.inner.engine.epochs.pass(); // Tombstones are buried after the next transaction of their session.
        extend_row_1(&table, &mut session);
        let attempts = session.run(|tx| {
            let old = table.read(tx, &1, VALUE)?;
            if tx.attempt() == 1 {
                for body in first.iter().chain([&second]) {
                    let ended = other.run(|tx| body(&table, tx));
                    assert!(matches!(ended, Ok(()) | Err(Abort::Guard)), "{ended:?}");
                }
            }
            look(&table, tx)?;
            assert_eq!(old == 0, tx.attempt() == 1);
            Ok::<_, Abort>(tx.attempt())
        });
        attempts == Ok(1)
    }

    const OVERWRITE: Body<'static> = &|table, tx| table.update(tx, &1, VALUE.add(1));
    const INSERT: Body<'static> = &|table, tx| table.insert(tx, row(9, 1));
    const LOOK: Body<'static> = &|table, tx| table.read(tx, &9, VALUE).map(drop);
    /// Misses row 9 and overwrites row 1.
    const MISS: Body<'static> = &|table, tx| {
        assert_eq!(table.get(tx, &9, VALUE)?, None);
        OVERWRITE(table, tx)
    };

    #[test]
    fn no_insert_slips_below_who_has_missed_its_key() {
        assert!(!slips_below(&[], &[MISS], INSERT, LOOK));
    }

    #[test]
    fn no_insert_slips_below_who_has_met_a_tombstone_that_was_buried_since() {
        let delete: Body<'_> = &|table, tx| table.delete(tx, &9);
        let is_buried: Body<'_> = &|table, _| {
            let mut linked = 0;
            table.core().index.for_each(|_| linked += 1);
            assert_eq!(linked, 3);
            Ok(())
        };
        assert!(!slips_below(&[INSERT, delete], &[MISS, is_buried], INSERT, LOOK));
    }

    #[test]
    fn no_insert_slips_below_one_that_was_taken_back() {
        let taken_back: Body<'_> = &|table, tx| {
            table.read(tx, &1, VALUE)?;
            INSERT(table, tx)?;
            table.delete(tx, &9)
        };
        assert!(!slips_below(&[], &[OVERWRITE, taken_back], INSERT, LOOK));
    }

    #[test]
    fn no_write_slips_below_an_outcome_that_it_would_have_changed() {
        let fail: Body<'_> = &|table, tx| {
            table.read(tx, &1, VALUE)?;
            table.update(tx, &2, VALUE.sub(1).at_least(0))
        };
        let pay: Body<'_> = &|table, tx| table.update(tx, &2, VALUE.add(1));
        assert!(!slips_below(&[], &[OVERWRITE, fail], pay, &|table, tx| table.read(tx, &2, VALUE).map(drop)));
    }
}
