//! Tables that are dropped, or replaced by tables of other rows.

use super::rows::Item;
use super::waiting::eventually;
use crate::any::{Chosen, Erased};
use crate::locks::LAST_RANK;
use crate::policy::Policy;
use crate::protocols::Exclusion;
use crate::sync::{AtomicBool, Ordering, Point, with_hook};
use crate::{
    Abort, Database, Error, IndexOptions, Level, LogOptions, Migration, Mvcc, Mvto, Occ, Record,
};
use crate::{RunOptions, Serial, TableOptions, TicToc};
use candide_log_testing::{CrashOptions, SimDisk};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A row of the earlier version, and one of the later version.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(crate = crate)]
struct Early {
    #[key]
    id: u32,
    count: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(crate = crate)]
struct Late {
    #[key]
    id: u64,
    count: u64,
    #[default = 7]
    more: u32,
}

#[test]
fn a_drop_waits_for_transactions_that_may_use_the_table() {
    let db = Database::<Occ>::builder().passing_epochs().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (is_dropped, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("a transaction", || begun.load(Ordering::Acquire));
            db.drop_table("items").unwrap();
            is_dropped.store(true, Ordering::Release);
        });
        let ended = db.run(|tx| {
            items.insert(tx, Item::new(1, 1))?;
            begun.store(true, Ordering::Release);
            eventually("the drop begins", || items.core().owner.is_none());
            // Time for a call that does not wait.
            let (epochs, begin) = (&db.inner.engine.epochs, db.inner.engine.epochs.now());
            eventually("later epochs", || epochs.now() > begin + 100);
            assert!(!is_dropped.load(Ordering::Acquire), "the transaction has not ended");
            items.get(tx, 1, ())
        });
        assert!(matches!(ended, Err(Abort::TableDropped)), "{ended:?}");
    });
    // The session of the transaction has left an absent record.
    eventually("the collection of garbage", || items.core().linked.sum() == 0);
}

#[test]
fn a_session_that_begins_to_sleep_beside_a_drop_is_woken() {
    let db = Database::<Occ>::builder().passing_epochs().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let ended = std::thread::scope(|scope| {
        let await_item = |tx: &crate::Tx<'_, Occ>| match items.get(tx, 1, ())? {
            Some(()) => Ok(()),
            None => tx.retry(),
        };
        let (begins, is_dropping) = (Arc::new(AtomicBool::new(false)), items.clone());
        let (has_begun, db) = (begins.clone(), &db);
        let sleeper = scope.spawn(move || {
            let hook = move |point| {
                // It has seen that there is no item, and comes to sleep when the drop is under way.
                if point == Point::Watching && !begins.swap(true, Ordering::Release) {
                    eventually("the drop begins", || is_dropping.core().owner.is_none());
                }
            };
            // Without a wake-up it would sleep for ever.
            let options = RunOptions::new().deadline(Instant::now() + Duration::from_secs(60));
            with_hook(hook, || db.with(options).run(await_item))
        });
        eventually("it is about to sleep", || has_begun.load(Ordering::Acquire));
        db.drop_table("items").unwrap();
        sleeper.join().unwrap()
    });
    assert_eq!(ended, Err(Abort::TableDropped));
}

/// Rows of a table with an ordered index and two others.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(crate = crate, ordered)]
struct Member {
    #[key]
    club: u32,
    #[key]
    id: u64,
    #[unique]
    mail: u64,
    #[index]
    age: u64,
}

fn member(id: u64) -> Member {
    Member { club: 3, id, mail: id + 100, age: id % 3 }
}

/// Makes, fills and drops a table this many times, with nothing beside it. Checks that each table
/// takes the number and the memory of the one before, and leaves nothing.
fn come_and_go(chosen: Chosen, times: u64) {
    let builder = Database::<Erased>::builder().policy(chosen).manual_epochs(10);
    let db = builder.build().unwrap();
    let mut taken = None;
    for round in 0..times {
        let members = db.table::<Member>("members").unwrap();
        db.run(|tx| (0..20).try_for_each(|id| members.insert(tx, member(id + round)))).unwrap();
        assert_eq!(db.run(|tx| members.len(tx)), Ok(20));
        db.drop_table("members").unwrap();
        assert_eq!(db.run(|tx| members.get(tx, (3, round), ())), Err(Abort::TableDropped));
        let health = db.memory();
        let name = db.properties().name;
        assert_eq!(health.garbage, 0, "{name}, round {round}");
        let now = (members.core().number, health.reserved_bytes);
        // The first one took what sessions keep.
        if round > 0 {
            assert_eq!(*taken.get_or_insert(now), now, "{name}, round {round}");
        }
    }
}

#[test]
fn thousands_of_tables_come_and_go_in_the_memory_of_one() {
    come_and_go(Chosen::of::<Occ>(Default::default()), 3_000);
}

#[test]
fn tables_come_and_go_in_the_memory_of_one_under_every_protocol() {
    for chosen in [
        Chosen::of::<TicToc>(()),
        Chosen::of::<Mvcc>(()),
        Chosen::of::<Mvto>(()),
        Chosen::of::<Serial>(Exclusion::OneSession),
        Chosen::of::<Serial>(Exclusion::GlobalLock),
    ] {
        come_and_go(chosen, 30);
    }
}

#[test]
fn entries_of_indexes_of_dropped_tables_leave_their_memory_to_any_index_like_them() {
    let db = Database::<Occ>::builder().manual_epochs(10).build().unwrap();
    let others = db.table::<Item>("others").unwrap();
    let mut taken = Vec::new();
    for round in 0..20 {
        let members = db.table::<Member>("members").unwrap();
        members.create_index("made", Member::AGE, IndexOptions::ordered()).unwrap();
        members.create_index("twice", Member::AGE, IndexOptions::hashed()).unwrap();
        members.drop_index("twice").unwrap();
        db.run(|tx| (0..20).try_for_each(|id| members.insert(tx, member(id)))).unwrap();
        let made = members.core().indexes.kept().find(|index| *index.name == *"made").unwrap();
        assert_eq!(made.entries.linked.sum(), 20);
        db.drop_table("members").unwrap();
        let tables = db.inner.engine.tables.read().unwrap().len();
        taken.push((tables, db.memory().reserved_bytes));
        assert!(round < 2 || taken[round] == taken[1], "{taken:?}");
    }
    // Keys of another number of words.
    let tables = db.inner.engine.tables.read().unwrap().len();
    others.create_index("made", Item::COUNT, IndexOptions::ordered()).unwrap();
    assert_eq!(db.inner.engine.tables.read().unwrap().len(), tables + 1);
}

#[test]
fn a_table_with_the_number_of_a_dropped_one_has_its_own_rank_and_policy() {
    let db = Database::<Occ>::builder().manual_epochs(10).build().unwrap();
    let options = TableOptions::default().policy(Policy::Pipelined);
    let former = db.table_with::<Item>("items", options).unwrap();
    former.set_rank(3).unwrap();
    former.set_policy(Policy::WaitDie).unwrap();
    db.drop_table("items").unwrap();
    let next = db.table_with::<Item>("next", options).unwrap();
    assert_eq!(next.core().number, former.core().number);
    assert_eq!((next.rank(), next.policy()), (LAST_RANK, Policy::Pipelined));
    // A handle of the former table cannot change it.
    let dropped = Err(Error::Transaction(Abort::TableDropped));
    assert_eq!(former.set_rank(5), dropped);
    assert_eq!(former.set_policy(Policy::Optimistic), dropped);
    assert_eq!((next.rank(), next.policy()), (LAST_RANK, Policy::Pipelined));
}

fn open(disk: &SimDisk, migration: Migration) -> Database<Occ> {
    let builder = Database::<Occ>::builder().migration(migration);
    // The logger writes only what a call waits for.
    let options = LogOptions::new().segment_bytes(64 << 10).acknowledge(Level::Memory);
    let options = options.flush_every(Duration::from_secs(3600));
    builder.open_on(Arc::new(disk.clone()), options).unwrap()
}

#[test]
fn a_migrated_table_has_its_rows_when_it_has_its_name() {
    const ROWS: u32 = 40;
    let disk = SimDisk::new();
    let db = open(&disk, Migration::Refuse);
    let rows = db.table::<Early>("rows").unwrap();
    let row = |id| Early { id, count: id as u8 };
    db.run(|tx| (0..ROWS).try_for_each(|id| rows.insert(tx, row(id)))).unwrap();
    drop((db, rows));
    let begun = disk.position();
    let db = open(&disk, Migration::Apply);
    drop(db.table::<Late>("rows").unwrap());
    drop(db);
    let crashes = CrashOptions {
        first: begun,
        last: disk.position(),
        exhaustive: 2,
        pieces: 3,
        samples: 2,
        ..CrashOptions::default()
    };
    for state in disk.crash_states(&crashes) {
        let db = open(&state.disk(), Migration::Refuse);
        let mut found = 0;
        match db.table::<Late>("rows") {
            Ok(rows) => {
                let count = |row: &Late| {
                    let Late { id, count, more } = *row;
                    assert_eq!((count, more), (id, 7));
                    found += 1;
                };
                rows.for_each_quiescent(count).unwrap();
            }
            Err(_) => {
                let rows = db.table::<Early>("rows").unwrap();
                rows.for_each_quiescent(|_| found += 1).unwrap();
            }
        }
        assert_eq!(found, ROWS, "{}", state.describe());
    }
}

#[test]
fn a_table_from_the_files_leaves_its_number_and_memory_to_the_next() {
    let disk = SimDisk::new();
    let row = |id| Early { id, count: 3 };
    let db = open(&disk, Migration::Refuse);
    let rows = db.table::<Early>("rows").unwrap();
    db.run(|tx| (0..9).try_for_each(|id| rows.insert(tx, row(id)))).unwrap();
    drop((db, rows));
    let db = open(&disk, Migration::Refuse);
    let rows = db.table::<Early>("rows").unwrap();
    db.run(|tx| rows.delete(tx, 1)).unwrap();
    db.drop_table("rows").unwrap();
    eventually("the collection of garbage", || db.memory().garbage == 0);
    assert_eq!(rows.len_estimate(), 0);
    let next = db.table::<Early>("next").unwrap();
    assert_eq!(next.core().number, rows.core().number);
    assert!(Arc::ptr_eq(&next.core().records, &rows.core().records));
    db.run(|tx| (20..25).try_for_each(|id| next.insert(tx, row(id)))).unwrap();
    assert_eq!(db.run(|tx| rows.get(tx, 20, ())), Err(Abort::TableDropped));
    assert_eq!((next.len_estimate(), rows.len_estimate()), (5, 0));
    drop((db, rows, next));
    let db = open(&disk, Migration::Refuse);
    assert_eq!(db.table::<Early>("next").unwrap().len_estimate(), 5);
    assert_eq!(db.table::<Early>("rows").unwrap().len_estimate(), 0);
}

/// Rows with the same fields, and other indexes.
mod indexed {
    #[derive(Debug, Clone, Copy, PartialEq, crate::Record)]
    #[record(crate = crate)]
    pub(super) struct Unique {
        #[key]
        pub(super) id: u64,
        #[index]
        pub(super) long: crate::Text<16>,
        #[unique]
        pub(super) short: u32,
    }

    #[derive(Debug, Clone, Copy, PartialEq, crate::Record)]
    #[record(crate = crate)]
    pub(super) struct Twice {
        #[key]
        pub(super) id: u64,
        #[index]
        pub(super) long: crate::Text<16>,
        #[index]
        pub(super) short: u32,
    }
}

#[test]
fn indexes_that_earlier_row_types_have_left_are_not_taken_for_those_of_later_ones() {
    use indexed::{Twice, Unique};
    let disk = SimDisk::new();
    let row = |id: u64| Twice { id, long: id.to_string().parse().unwrap(), short: 1 };
    let db = open(&disk, Migration::Refuse);
    let rows = db.table::<Twice>("rows").unwrap();
    db.run(|tx| (0..9).try_for_each(|id| rows.insert(tx, row(id)))).unwrap();
    drop((db, rows));
    let db = open(&disk, Migration::Refuse);
    // Makes one of the indexes, and fails at the other.
    let refused = db.table::<Unique>("rows").map(drop);
    assert!(matches!(refused, Err(Error::NotUnique { .. })), "{refused:?}");
    let rows = db.table::<Twice>("rows").unwrap();
    db.drop_table("rows").unwrap();
    eventually("the collection of garbage", || db.memory().garbage == 0);
    let next = db.table::<Twice>("next").unwrap();
    assert_eq!(next.core().number, rows.core().number);
    for (new, old) in next.core().indexes.kept().zip(["by_long", "by_short"]) {
        assert_eq!(&*new.name, old);
        let former = rows.core().indexes.all().filter(|index| *index.name == *new.name);
        let mut former = former.filter(|index| index.unique == new.unique);
        assert!(former.any(|index| Arc::ptr_eq(&index.entries.records, &new.entries.records)));
    }
    db.run(|tx| (0..9).try_for_each(|id| next.insert(tx, row(id)))).unwrap();
    let by_short = next.index(Twice::BY_SHORT);
    let count = |sum: usize, row: Result<(), Abort>| row.map(|()| sum + 1);
    let of_short = |tx: &crate::Tx<'_, Occ>| {
        by_short.rows(tx, 1, ()).map(|row| row.map(drop)).try_fold(0, count)
    };
    assert_eq!(db.run(of_short), Ok(9));
    let by_long = next.index(Twice::BY_LONG);
    let of_long = |tx: &crate::Tx<'_, Occ>| {
        by_long.rows(tx, "4", ()).map(|row| row.map(drop)).try_fold(0, count)
    };
    assert_eq!(db.run(of_long), Ok(1));
}
