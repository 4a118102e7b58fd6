//! Multi-version concurrency control: writers add versions, readers take the one that fits their timestamp.
//!
//! # Guarantee
//! Serializable in the order of timestamps, and strictly so: an attempt draws its timestamp from one counter when it
//! begins. Not opaque: it may see a version beneath which, in the order, another one is still to come.
//!
//! # Source
//! Cicada (SIGMOD 2017), in the form of "Opportunities for Optimism" (VLDB 2020), section 2, reduced to what shows that
//! the seam carries version chains; only tests use it. Differences: one clock; a write follows the newest version, none
//! slips beneath; no deltas, no promotion, no collection. And buckets keep a timestamp for their absent keys: an insert may
//! come later than a look at the bucket and earlier in the order, where the bucket's version alone says nothing.
//!
//! # Phases
//! Staging a write allocates its version. Commit: 1 link the new versions, pending, checking each item's expectation - 2
//! raise the read timestamps of versions and nodes read - full fence - 3 check that no version to be replaced was read
//! later in the order, and that reads and nodes are still right - 4 evaluate updaters - 5 fill the new versions in and
//! settle them. A transaction that wrote nothing does 2 and 3.
//!
//! # Cell
//! ```text
//! | head | wts | rts | state | older |      the newest version; the header of the base version
//! ```
//! `wts` is a version's timestamp, `rts` at least that of each commit that read it. Each unit has a chain of its own. A
//! node keeps `wts` and `rts` of the absence of its keys.
//!
//! # Invariants
//! * **M1** The committed versions of a chain descend in `wts`; their words and `wts` never change.
//! * **M2** Only the head is ever pending or aborted; a pending head is its writer's, like a lock. So a version directly
//!   follows what was the newest committed one, for ever.
//! * **M3** Who has linked a version waits only for smaller timestamps.
//! * **M4** A base version is pending until it has its node's timestamps, which happens after its record can be found.
//! * **M5** Nothing that can fail happens after phase 4.
//!
//! # Why it is serializable
//! T, committed at `t`, must have read the versions next below `t`. Suppose it read `v`, and W, the writer of the version
//! that follows `v` (M2), commits at `w < t`. If W's fence comes before T's, T's phase 3 walks the chain after W has linked,
//! meets W's version and fails. If T's comes first, W's phase 3 sees `v.rts >= t` and fails. What T writes follows a version
//! next below `t` by M2, and its expectations and updates see that one. An absent key is a base version, or a node: either
//! T, after raising the node's `rts`, sees that the node's version has been raised, and fails; or whoever links a record
//! lets it inherit `rts >= t`, and its insert at `w` fails.
//!
//! # Aborts
//! `Locked`: a pending version was not settled in time, in phase 1 or at a read. `TimestampOrder`: a version to be replaced
//! was written or read later in the order, phases 1 and 3. `ReadChanged`, `Phantom`: phases 2 and 3. `Existence`: phase 1.
//! `MemoryLimit`: staging. `Guard`, `Overflow`: phase 4, definite: the versions they are true of count as read.
//!
//! # Costs
//! Linked versions are freed with their table, not before. Records left absent stay until an insert takes them over; so
//! nothing is ever bequeathed to a node, whose `wts` stays zero. The words beside a base version are never used. Those who
//! only read can keep a long writer from committing, and the token does not stop them.

#![forbid(unsafe_code)]

use super::{Burial, Committed, Context, Missing, Protocol, Seen};
use crate::access::{Failure, Intent, WriteItem, WriteSet};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::record::version::{self, NewVersion, Version, VersionState};
use crate::record::{CellAt, Op, Words};
use crate::sync::{AtomicU64, MODELLED, Ordering, Point, Spin, full_fence, pass};
use crossbeam_utils::CachePadded;
use std::panic::resume_unwind;

/// Rounds of waiting for a pending version: the busy ones cover a commit in progress, the yielding ones a committer that
/// lost its processor.
const PENDING_ROUNDS_MAX: u32 = if MODELLED { 2 } else { 80 };

/// The node's words: the timestamps of the absence of its keys.
const NODE_WTS: usize = 0;
const NODE_RTS: usize = 1;

/// Multi-version concurrency control.
#[derive(Debug)]
pub struct Mvcc;

/// The last timestamp drawn.
#[derive(Debug, Default)]
pub struct Clock(CachePadded<AtomicU64>);

/// What an attempt has observed and prepared.
#[derive(Debug, Default)]
pub struct Attempt {
    ts: u64,
    /// Units, with the `wts` of the version read.
    reads: Vec<(CellAt, u64)>,
    /// Nodes, with their version and table.
    nodes: Vec<(NodeAt, u64, u16)>,
    /// The write set's versions, by its items' notes, which count from one; none where the version has been linked.
    unlinked: Vec<Option<NewVersion>>,
}

impl Protocol for Mvcc {
    const NAME: &'static str = "mvcc";
    const STRICT: bool = true;
    const OPAQUE: bool = false;
    #[cfg(test)]
    const IN_TEST_FORM: bool = true;
    #[cfg(test)]
    const RECLAIMS: bool = false;
    const CELL_WORDS: usize = version::CHAIN_WORDS;
    const NODE_WORDS: usize = 2;
    const VERSION_WORDS: usize = version::VERSION_WORDS;
    type Clock = Clock;
    type Attempt = Attempt;

    fn begin(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt) {
        // Relaxed: only the order of the counter's own changes matters, and it agrees with real time.
        attempt.ts = context.clock.0.fetch_add(1, Ordering::Relaxed) + 1;
        attempt.reads.clear();
        attempt.nodes.clear();
    }

    fn read(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        at: CellAt,
        mut copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let mut spin = Spin::default();
        loop {
            let Some((version, state)) = at.newest_below(attempt.ts) else {
                return Err(context.conflict(Abort::TimestampOrder, at));
            };
            if state != VersionState::Pending {
                let present = state == VersionState::Present;
                if present {
                    copy(Words::Shared(version.payload()));
                }
                pass(Point::Copied);
                attempt.reads.push((at, version.wts()));
                // The oldest version is what the record began with.
                let written = version.older().is_some();
                return Ok(Seen { present, version: if written { version.wts() } else { 0 } });
            }
            if !spin.wait_at_most(PENDING_ROUNDS_MAX) {
                return Err(context.conflict(Abort::Locked, at));
            }
        }
    }

    fn peek(attempt: &Attempt, at: CellAt) -> bool {
        at.newest_below(attempt.ts).is_some_and(|(version, state)| match state {
            // Whether it will count is not known yet; what is assumed now is checked when it is.
            VersionState::Pending => version.older().is_some_and(|older| older.state() == VersionState::Present),
            _ => state == VersionState::Present,
        })
    }

    fn absent(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, missing: Missing<'_>) -> Result<(), Abort> {
        // Relaxed: whoever changes it changes the node's version too, which is looked at again.
        if missing.node.node_word(NODE_WTS).load(Ordering::Relaxed) >= attempt.ts {
            return Err(context.phantom(missing.table));
        }
        attempt.nodes.push((missing.node, missing.version, missing.table));
        Ok(())
    }

    fn stage(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        let index = writes.stage(at, intent, op);
        let item = &mut writes.items_mut()[index];
        if item.note == 0 {
            attempt.unlinked.push(Some(context.new_version(at).map_err(|_| Abort::MemoryLimit)?));
            item.note = attempt.unlinked.len() as u64;
        }
        Ok(())
    }

    fn revalidate(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, _writes: &WriteSet) -> Result<(), Abort> {
        // Own versions, linked by now or not, are not below the timestamp.
        for &(at, wts) in &attempt.reads {
            if at.newest_below(attempt.ts).is_none_or(|(version, _)| version.wts() != wts) {
                return Err(context.conflict(Abort::ReadChanged, at));
            }
        }
        for &(node, version, table) in &attempt.nodes {
            if node.version() != version {
                return Err(context.phantom(table));
            }
        }
        Ok(())
    }

    fn commit(
        context: &mut Context<'_, Mvcc>,
        attempt: &mut Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let prepared = prepare(context, attempt, writes).map_err(Failure::Outcome);
        let result = prepared.and_then(|()| evaluate(writes, attempt.ts));
        for (index, item) in writes.items().iter().enumerate() {
            let version = item.at.head();
            if attempt.unlinked[item.note as usize - 1].is_some() {
                break; // Neither this item's version nor a later one has been linked.
            } else if result.is_err() {
                version.settle(VersionState::Aborted);
            } else if item.present {
                // 5 fill in and settle
                version.copy_from(predecessor(item));
                writes.install(index, version.payload());
                version.settle(VersionState::Present);
            } else {
                version.settle(VersionState::Absent);
            }
        }
        pass(Point::Released);
        Mvcc::abort(context, attempt, writes);
        match result {
            Ok(()) => Ok(Committed { version: attempt.ts }),
            Err(Failure::Outcome(abort)) => Err(abort),
            Err(Failure::Panic(panic)) => resume_unwind(panic),
        }
    }

    fn abort(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, _writes: &mut WriteSet) {
        for version in attempt.unlinked.drain(..).flatten() {
            context.free_version(version);
        }
    }

    fn unborn(at: CellAt) {
        at.begin_chain();
    }

    fn born(node: NodeAt, at: CellAt) {
        // A commit raises a timestamp of the node and looks at its version; here it is the other way round.
        full_fence(); // E1
        let inherited = |word: usize| node.node_word(word).load(Ordering::Relaxed);
        at.base().begin(inherited(NODE_WTS), inherited(NODE_RTS));
    }

    fn linked(attempt: &mut Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        let mut vouched = false;
        for (read, version, _) in &mut attempt.nodes {
            if read.address() == node.address() && *version == before {
                *version = after;
                vouched = true;
            }
        }
        if vouched {
            // The node no longer tells us when someone else commits an insert of this key; the record does.
            attempt.reads.push((first, first.base().wts()));
        }
    }

    fn divided(attempt: &mut Attempt, change: &NodeChange) {
        change.replace(&mut attempt.nodes, |(node, version, _)| (node, version));
    }

    fn left_absent(_first: CellAt) -> bool {
        false
    }

    fn bury(_context: &mut Context<'_, Mvcc>, _units: &[CellAt], _bound: Epoch) -> Burial {
        unreachable!("no record is ever queued: absent ones wait to be taken over")
    }
}

/// The version that the own, linked one follows.
fn predecessor(item: &WriteItem) -> Version<'_> {
    item.at.head().older().expect("a linked version follows another (M2)")
}

/// Phases 1 to 3.
fn prepare(context: &mut Context<'_, Mvcc>, attempt: &mut Attempt, writes: &WriteSet) -> Result<(), Abort> {
    if !writes.is_empty() {
        context.yield_to_token()?;
    }
    pass(Point::Unlocked);
    let ts = attempt.ts;
    pass(Point::Unlocked);
    for item in writes.items() {
        let unlinked = &mut attempt.unlinked[item.note as usize - 1];
        link(item, unlinked, ts).map_err(|abort| context.conflict(abort, item.at))?;
    }
    pass(Point::Locked);
    for &(at, wts) in &attempt.reads {
        match at.newest_below(ts) {
            Some((version, _)) if version.wts() == wts => version.rts().fetch_max(ts, Ordering::Relaxed),
            _ => return Err(context.conflict(Abort::ReadChanged, at)),
        };
    }
    for (node, ..) in &attempt.nodes {
        node.node_word(NODE_RTS).fetch_max(ts, Ordering::Relaxed);
    }
    full_fence(); // E1
    for item in writes.items() {
        if predecessor(item).rts().load(Ordering::Relaxed) > ts {
            return Err(context.conflict(Abort::TimestampOrder, item.at));
        }
    }
    Mvcc::revalidate(context, attempt, writes)?;
    pass(Point::Validated);
    Ok(())
}

/// Phase 1 for one item: puts its version on top of the chain if its expectation holds.
fn link(item: &WriteItem, unlinked: &mut Option<NewVersion>, ts: u64) -> Result<(), Abort> {
    let mut spin = Spin::default();
    loop {
        let head = item.at.head();
        if head.state() != VersionState::Pending {
            let newest = head.settled();
            // Before linking: who is going to fail must not be in the way of others.
            if newest.wts() >= ts || newest.rts().load(Ordering::Relaxed) > ts {
                return Err(Abort::TimestampOrder);
            }
            if !item.accepts(newest.state() == VersionState::Present) {
                return Err(Abort::Existence);
            }
            match unlinked.take().expect("each version is linked once").link(head, ts) {
                Ok(()) => return Ok(()),
                Err(version) => *unlinked = Some(version),
            }
        } else if head.wts() > ts {
            return Err(Abort::TimestampOrder); // M3
        }
        if !spin.wait_at_most(PENDING_ROUNDS_MAX) {
            return Err(Abort::Locked);
        }
    }
}

/// Phase 4. A failure is an observation of what would have been replaced, so it has to stay true.
fn evaluate(writes: &mut WriteSet, ts: u64) -> Result<(), Failure> {
    let evaluated = writes.evaluate(|item| Words::Shared(predecessor(item).payload()));
    if evaluated.is_err() {
        for item in writes.items() {
            // Relaxed: whoever follows this version next has seen that ours, settled after this, is aborted.
            predecessor(item).rts().fetch_max(ts, Ordering::Relaxed);
        }
    }
    evaluated
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::with_hook;
    use crate::{
        Column, Database, Factor, Group, Hashed, Record, Refused, RunOptions, Session, Table, Tx, Updater, Whole,
    };
    use std::sync::Barrier;

    /// A row with two groups, the second of which is larger.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Item {
        id: u64,
        count: i64,
        other: [u64; 2],
    }

    impl Item {
        const COUNT: Column<Item, i64> = Column::new(0, 0, "count");
        const FIRST: Column<Item, u64> = Column::new(1, 0, "first");
        const SECOND: Column<Item, u64> = Column::new(1, 1, "second");

        fn new(id: u64, count: i64) -> Item {
            Item { id, count, other: [1, 2] }
        }
    }

    impl Record for Item {
        type Key = u64;
        type Index = Hashed;
        type Image = [u64; 3];
        const NAME: &'static str = "Item";
        const GROUPS: &'static [Group] = &[Group::new("hot", 1), Group::new("cold", 2)];

        fn key(&self) -> u64 {
            self.id
        }

        fn store(&self, words: &mut [u64]) {
            words.copy_from_slice(&[self.count as u64, self.other[0], self.other[1]]);
        }

        fn load(key: &u64, words: &[u64]) -> Item {
            Item { id: *key, count: words[0] as i64, other: [words[1], words[2]] }
        }
    }

    type Items = Table<Item, Mvcc>;

    /// A database with rows 1 and 2, which count 0.
    fn database(splitting: bool) -> (Database<Mvcc>, Items) {
        let db =
            Database::<Mvcc>::builder().timestamp_splitting(splitting).factors([Factor::NoBackoff]).build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let filled = db.run(|tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
        assert_eq!(filled, Ok::<_, Abort>(()));
        (db, items)
    }

    /// The rows' counts.
    fn counts(db: &Database<Mvcc>, items: &Items) -> [Option<i64>; 2] {
        let mut session = db.session().unwrap();
        let read = session.run(|tx| Ok([items.get(tx, &1, Item::COUNT)?, items.get(tx, &2, Item::COUNT)?]));
        read.unwrap_or_else(|abort: Abort| panic!("{abort}"))
    }

    /// Runs a transaction whose first attempt is overtaken by another session's, right before it goes on with `late`; gives
    /// the number of its attempts.
    fn overtaken<T>(
        db: &Database<Mvcc>,
        early: impl Fn(&Tx<'_, Mvcc>) -> Result<(), Abort>,
        overtaking: impl Fn(&mut Session<Mvcc>),
        late: impl Fn(&Tx<'_, Mvcc>) -> Result<T, Abort>,
    ) -> (u32, T) {
        let (mut overtaken, mut other) = (db.session().unwrap(), db.session().unwrap());
        let result = overtaken.run(|tx| {
            early(tx)?;
            if tx.attempt() == 1 {
                overtaking(&mut other);
            }
            late(tx).map(|value| (tx.attempt(), value))
        });
        result.unwrap_or_else(|abort| panic!("{abort}"))
    }

    /// Runs a transaction during whose first attempt one with a smaller timestamp commits; gives the number of its attempts,
    /// its result, and its last conflict.
    fn undercut(
        db: &Database<Mvcc>,
        undercutting: impl Fn(&Tx<'_, Mvcc>) -> Result<(), Abort> + Sync,
        body: impl Fn(&Tx<'_, Mvcc>) -> Result<bool, Abort>,
    ) -> (u32, bool, Option<Abort>) {
        let step = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut session = db.session().unwrap();
                let committed = session.run_with(RunOptions::new().attempts_max(1), |tx| {
                    step.wait(); // It has its timestamp.
                    step.wait(); // The other one has run.
                    undercutting(tx)
                });
                step.wait();
                assert_eq!(committed, Ok(()));
            });
            step.wait();
            let mut session = db.session().unwrap();
            let result = session.run(|tx| {
                let result = body(tx)?;
                if tx.attempt() == 1 {
                    step.wait();
                    step.wait();
                }
                Ok((tx.attempt(), result))
            });
            let (attempts, result) = result.unwrap_or_else(|abort: Abort| panic!("{abort}"));
            (attempts, result, session.last_conflict().map(|conflict| conflict.cause))
        })
    }

    #[test]
    fn who_comes_earlier_in_the_order_and_later_in_time_is_noticed() {
        let (db, items) = database(true);
        let add = |tx: &Tx<'_, Mvcc>| items.update(tx, &1, Item::COUNT.add(1));
        let read = undercut(&db, add, |tx| items.read(tx, &1, Item::COUNT).map(|count| count == 1));
        assert_eq!(read, (2, true, Some(Abort::ReadChanged)));
        let looked = undercut(
            &db,
            |tx| items.insert(tx, Item::new(9, 0)),
            |tx| items.get(tx, &9, Item::COUNT).map(|row| row.is_some()),
        );
        assert_eq!(looked, (2, true, Some(Abort::Phantom)));
        // A blind update takes what it finds, unless that is no row any more.
        assert_eq!(undercut(&db, add, |tx| add(tx).map(|()| true)), (1, true, None));
        assert_eq!(counts(&db, &items), [Some(3), Some(0)]);
        let gone = undercut(&db, |tx| items.delete(tx, &1), |tx| items.update_if_present(tx, &1, Item::COUNT.add(1)));
        assert_eq!(gone, (2, false, Some(Abort::Existence)));
    }

    #[test]
    fn rows_come_change_go_and_come_back() {
        for splitting in [true, false] {
            let (db, items) = database(splitting);
            let mut session = db.session().unwrap();
            let whole = |session: &mut Session<Mvcc>| session.run(|tx| items.get(tx, &1, Whole)).unwrap();
            let failing = |session: &mut Session<Mvcc>| -> Result<(), Abort> {
                session.run(|tx| {
                    items.update(tx, &2, Item::COUNT.add(9))?;
                    items.update(tx, &1, Item::COUNT.sub(9).at_least(0))
                })
            };
            assert_eq!(session.run(|tx| items.insert(tx, Item::new(1, 5))), Err(Abort::Duplicate));
            assert_eq!(session.run(|tx| items.update(tx, &1, (Item::COUNT.add(5), Item::SECOND.set(7)))), Ok(()));
            assert_eq!(failing(&mut session), Err(Abort::Guard));
            assert_eq!(whole(&mut session), Some(Item { id: 1, count: 5, other: [1, 7] }));
            let own = session.run(|tx| {
                items.update(tx, &1, Item::FIRST.add(1))?;
                items.modify(tx, &1, Item::FIRST, |first| std::mem::replace(first, 20))
            });
            assert_eq!(own, Ok::<_, Abort>(2));
            assert_eq!(session.run(|tx| items.delete(tx, &1)), Ok::<_, Abort>(()));
            assert_eq!(whole(&mut session), None);
            assert_eq!(session.run(|tx| items.update(tx, &1, Item::COUNT.add(1))), Err(Abort::NotFound));
            assert_eq!(session.run(|tx| items.put(tx, Item::new(1, i64::MAX))), Ok::<_, Abort>(()));
            assert_eq!(session.run(|tx| items.update(tx, &1, Item::COUNT.add(1))), Err(Abort::Overflow));
            let came_and_went = session.run(|tx| {
                items.delete(tx, &1)?;
                items.insert(tx, Item::new(1, 3))?;
                items.insert(tx, Item::new(3, 3))?;
                items.delete(tx, &3)
            });
            assert_eq!(came_and_went, Ok::<_, Abort>(()));
            assert_eq!(whole(&mut session), Some(Item::new(1, 3)));
            assert_eq!(session.run(|tx| items.get(tx, &3, Item::COUNT)), Ok::<_, Abort>(None));
            assert_eq!(session.stats().retries, 0);
        }
    }

    #[test]
    fn an_old_reader_sees_what_a_newer_writer_has_replaced() {
        let (db, items) = database(true);
        let (attempts, seen) = overtaken(
            &db,
            |tx| items.read(tx, &1, Item::COUNT).map(drop),
            |other| {
                let both = other.run(|tx| (1..=2).try_for_each(|id| items.update(tx, &id, Item::COUNT.add(1))));
                assert_eq!(both, Ok::<_, Abort>(()));
                assert_eq!(other.run(|tx| items.delete(tx, &1)), Ok::<_, Abort>(()));
            },
            |tx| Ok([items.get(tx, &1, Item::COUNT)?, items.get(tx, &2, Item::COUNT)?]),
        );
        assert_eq!((attempts, seen), (1, [Some(0), Some(0)]));
        assert_eq!(counts(&db, &items), [None, Some(1)]);
    }

    /// What the overtaken transaction reads is not what the overtaking one writes; yet one must come first.
    #[test]
    fn write_skew_is_caught_whoever_writes_first() {
        for looks_first in [false, true] {
            let (db, items) = database(true);
            let watch = |tx: &Tx<'_, Mvcc>, watched: u64, own: u64| {
                if items.read(tx, &watched, Item::COUNT)? == 0 {
                    items.update(tx, &own, Item::COUNT.set(1))?;
                }
                Ok(())
            };
            let (attempts, ()) = overtaken(
                &db,
                |tx| if looks_first { watch(tx, 2, 1) } else { Ok(()) },
                |other| assert_eq!(other.run(|tx| watch(tx, 1, 2)), Ok(())),
                |tx| watch(tx, 2, 1),
            );
            // Without a look before, the old state is as good: it reads 0, and its write comes too late.
            assert_eq!(attempts, 2);
            assert_eq!(counts(&db, &items), [Some(0), Some(1)]);
        }
    }

    #[test]
    fn an_insert_does_not_slide_beneath_a_later_look_at_the_absent_key() {
        for linked_before in [false, true] {
            let (db, items) = database(true);
            if linked_before {
                let refused: Result<(), Abort> = db.run(|tx| {
                    items.insert(tx, Item::new(9, 0))?;
                    Err(Abort::NotFound)
                });
                assert_eq!(refused, Err(Abort::NotFound));
            }
            let (attempts, ()) = overtaken(
                &db,
                |_| Ok(()),
                |other| assert_eq!(other.run(|tx| items.get(tx, &9, Item::COUNT)), Ok::<_, Abort>(None)),
                |tx| items.insert(tx, Item::new(9, 0)),
            );
            assert_eq!(attempts, 2);
        }
    }

    #[test]
    fn nothing_slides_beneath_what_a_later_update_assumed() {
        let (db, items) = database(true);
        let (attempts, ()) = overtaken(
            &db,
            |_| Ok(()),
            |other| assert_eq!(other.run(|tx| items.update(tx, &1, Item::COUNT.add(1))), Ok::<_, Abort>(())),
            |tx| items.delete(tx, &1),
        );
        assert_eq!((attempts, counts(&db, &items)), (2, [None, Some(0)]));
        // A refused update and one that panics assume something too, and leave nothing else behind.
        for panics in [false, true] {
            let (attempts, ()) = overtaken(
                &db,
                |_| Ok(()),
                |other| {
                    let refuse = || other.run(|tx| items.update_with(tx, &2, Refuse { panics }));
                    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(refuse));
                    assert_eq!(refused.ok(), (!panics).then_some(Err(Abort::Guard)));
                },
                |tx| items.update(tx, &2, Item::COUNT.add(1)),
            );
            assert_eq!(attempts, 2);
        }
        assert_eq!(counts(&db, &items), [None, Some(2)]);
    }

    #[derive(Clone, Copy)]
    struct Refuse {
        panics: bool,
    }

    impl Updater<Item> for Refuse {
        type Target = Column<Item, i64>;

        fn target(&self) -> Column<Item, i64> {
            Item::COUNT
        }

        fn apply(&self, _count: &mut i64) -> Result<(), Refused> {
            assert!(!self.panics, "deliberate");
            Err(Refused)
        }
    }

    #[test]
    fn a_pending_version_stops_who_would_have_to_see_it() {
        let (db, items) = database(true);
        let (mut writer, mut later) = (db.session().unwrap(), db.session().unwrap());
        let own = items.clone();
        let hook = move |point| {
            if point == Point::Locked {
                let once = RunOptions::new().attempts_max(1);
                let read = later.run_with(once, |tx| own.read(tx, &1, Item::COUNT).map(drop));
                assert_eq!(
                    (read, later.last_conflict().unwrap().cause),
                    (Err(Abort::AttemptsExhausted), Abort::Locked)
                );
                let write = later.run_with(once, |tx| own.update(tx, &1, Item::COUNT.add(1)));
                assert_eq!(
                    (write, later.last_conflict().unwrap().cause),
                    (Err(Abort::AttemptsExhausted), Abort::Locked)
                );
                assert_eq!(later.run_with(once, |tx| own.read(tx, &1, Item::FIRST)), Ok::<_, Abort>(1));
            }
        };
        let written = with_hook(hook, || writer.run(|tx| items.update(tx, &1, Item::COUNT.add(1))));
        assert_eq!((written, writer.stats().retries), (Ok::<_, Abort>(()), 0));
        assert_eq!(counts(&db, &items), [Some(1), Some(0)]);
    }

    #[test]
    fn versions_that_were_not_linked_come_back_and_memory_has_an_end() {
        let limit = 1 << 20;
        let db = Database::<Mvcc>::builder().memory_limit(limit).build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let mut session = db.session().unwrap();
        assert_eq!(session.run(|tx| items.insert(tx, Item::new(1, 0))), Ok::<_, Abort>(()));
        let reserved = db.memory().reserved_bytes;
        for _ in 0..20_000 {
            let given_up: Result<(), Abort> = session.run(|tx| {
                items.update(tx, &1, Item::COUNT.add(1))?;
                Err(Abort::NotFound)
            });
            assert_eq!(given_up, Err(Abort::NotFound));
        }
        assert_eq!(db.memory().reserved_bytes, reserved);
        let mut count = 0;
        let refused = loop {
            match session.run(|tx| items.update(tx, &1, Item::COUNT.add(1))) {
                Ok(()) => count += 1,
                Err(abort) => break abort,
            }
        };
        assert_eq!(refused, Abort::MemoryLimit);
        assert!(db.memory().reserved_bytes <= limit && count > 1_000);
        assert_eq!(session.run(|tx| items.read(tx, &1, Item::COUNT)), Ok::<_, Abort>(count));
    }

    #[test]
    fn two_threads_lose_no_increment() {
        for splitting in [true, false] {
            let (db, items) = database(splitting);
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    let (db, items) = (&db, &items);
                    scope.spawn(move || {
                        let mut session = db.session().unwrap();
                        for round in 0..5_000 {
                            let keys = [1 + (round + thread) % 2, 1 + round % 2];
                            let added = session.run(|tx| {
                                items.update(tx, &keys[0], Item::COUNT.add(1))?;
                                items.modify(tx, &keys[1], Item::COUNT, |count| *count += 1)
                            });
                            assert_eq!(added, Ok::<_, Abort>(()));
                        }
                    });
                }
            });
            assert_eq!(counts(&db, &items).map(Option::unwrap).iter().sum::<i64>(), 20_000);
        }
    }
}
