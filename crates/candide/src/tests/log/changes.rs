//! Every change of every kind of operation is in the log: the replay of the log is the database,
//! row by row.

use super::super::indexed_rows::{Filed, Order, Parcel};
use super::super::rows::{Item, OfCount, Wide};
use super::disk::Logged;
use super::replay::Replay;
use crate::engine::Protocol;
use crate::protocols::Mvto;
use crate::schema::{Refused, RowReader, Updater};
use crate::{
    Abort, Column, Database, IndexOptions, Record, Session, Table, TableOptions, Tx, Whole,
};
use candide_log::format::commit::HEADER_WORDS;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Tables of every kind.
struct Tables<P: Protocol> {
    items: Table<Item, P>,
    parcels: Table<Parcel, P>,
    filed: Table<Filed, P>,
    packed: Table<Order, P>,
    wide: Table<Wide, P>,
    volatile: Table<Item, P>,
}

/// An updater that raises the last column of a wide row.
#[derive(Debug, Clone, Copy)]
struct Raise;

impl Updater<Wide> for Raise {
    type Target = Column<Wide, u64>;

    fn target(&self) -> Self::Target {
        Wide::LAST
    }

    fn apply(&self, last: &mut u64) -> Result<(), Refused> {
        *last += 1;
        Ok(())
    }
}

/// Triples the count, or refuses to if it would be above a hundred.
fn triple(count: &mut i64) -> Result<(), Refused> {
    *count *= 3;
    if *count > 100 { Err(Refused) } else { Ok(()) }
}

fn tables<P: Protocol>(logged: &Logged<P>) -> Tables<P> {
    let db = &logged.db;
    let parcels = db.table::<Parcel>("parcels").unwrap();
    parcels.create_index("by_code", Parcel::CODE, IndexOptions::hashed().unique()).unwrap();
    parcels.create_index("by_weight", Parcel::WEIGHT, IndexOptions::ordered()).unwrap();
    let packed = TableOptions::default().contention_aware_keys(false);
    Tables {
        items: db.table("items").unwrap(),
        parcels,
        filed: db.table("filed").unwrap(),
        packed: db.table_with("packed", packed).unwrap(),
        wide: db.table("wide").unwrap(),
        volatile: db.table_with("volatile", TableOptions::default().volatile()).unwrap(),
    }
}

/// A transaction of a script.
type Play<P> = fn(&Tables<P>, &Tx<'_, P>) -> Result<(), Abort>;

/// Returns transactions that together use every kind of operation.
fn script<P: Protocol>() -> Vec<Play<P>> {
    let existing = [updates(), steps(), rows_that_come_and_go()].concat();
    [existing, indexed_rows(), undone_parts(), other_tables()].concat()
}

/// Returns transactions that update existing rows.
fn updates<P: Protocol>() -> Vec<Play<P>> {
    vec![
        |all, tx| (0..8).try_for_each(|id| all.items.insert(tx, Item::new(id, id as i64))),
        |all, tx| {
            all.items.update(tx, 0, Item::COUNT.add(5))?;
            all.items.update(tx, 1, (Item::SMALL.set(1), Item::FLAG.set(true)))?;
            all.items.update(tx, 2, Item::OTHER.set(4))?;
            all.items.update(tx, 3, Item::COUNT.wrapping_add(6))?;
            all.items.update(tx, 4, (Item::COUNT.max(9), Item::OTHER.min(3)))
        },
        // Several operations on the same words, and words of both groups.
        |all, tx| {
            all.items.update(tx, 0, Item::COUNT.add(1))?;
            all.items.update(tx, 0, Item::COUNT.add(2))?;
            all.items.update(tx, 0, Item::SMALL.set(3))?;
            all.items.update(tx, 0, (Item::COUNT.set(9), Item::OTHER.add(1)))?;
            all.items.update(tx, 0, Item::COUNT.sub(1).at_least(0))
        },
        |all, tx| all.items.update_with(tx, 0, OfCount(triple)),
        |all, tx| {
            all.items.update_with(tx, 3, OfCount(triple))?;
            all.items.update(tx, 3, Item::COUNT.add(1))?;
            all.items.update_with(tx, 3, OfCount(triple))
        },
        |all, tx| all.items.modify(tx, 4, (Item::COUNT, Item::OTHER), |it| (it.0, it.1) = (1, 2)),
        |all, tx| {
            let row = all.items.get_for_update(tx, 5, Whole)?.expect("it is there");
            all.items.put(tx, Item { count: row.count + 1, ..row })
        },
    ]
}

/// Returns transactions of steps, whose results are in the log.
fn steps<P: Protocol>() -> Vec<Play<P>> {
    vec![
        |all, tx| all.items.defer(tx, 0, Item::COUNT, (), |count, ()| *count *= 2).map(drop),
        |all, tx| {
            all.items.update(tx, 0, Item::COUNT.add(1))?;
            let count = all.items.defer(tx, 0, Item::COUNT, (), |count, ()| {
                *count += 3;
                *count
            })?;
            all.items.update(tx, 0, Item::COUNT.sub(1))?;
            let add = |other: &mut u64, count: &i64| *other += count.unsigned_abs();
            all.items.defer(tx, 1, Item::OTHER, &count, add)?;
            all.items.defer_insert(tx, 40, count.map(|&count| Item::new(40, count)))
        },
        |all, tx| {
            all.items.defer(tx, 40, Item::COUNT, (), |count, ()| *count += 1)?;
            all.items.delete(tx, 40)
        },
        |all, tx| {
            let kept = all.items.defer(tx, 2, Item::COUNT, (), |count, ()| *count += 1)?;
            let undone = tx.attempt(|tx| {
                all.items.defer(tx, 2, Item::COUNT, &kept, |count, ()| *count *= 9)?;
                Err::<(), _>(Abort::Guard)
            });
            if undone == Err(Abort::Guard) { Ok(()) } else { undone }
        },
    ]
}

/// Returns transactions whose rows replace rows, or that insert and delete.
fn rows_that_come_and_go<P: Protocol>() -> Vec<Play<P>> {
    vec![
        |all, tx| all.items.put(tx, Item::new(5, 50)),
        |all, tx| all.items.put(tx, Item::new(20, 1)),
        |all, tx| all.items.upsert(tx, Item::new(20, 7), Item::COUNT.add(1)).map(drop),
        |all, tx| all.items.upsert(tx, Item::new(21, 7), Item::COUNT.add(1)).map(drop),
        |all, tx| {
            all.items.insert(tx, Item::new(30, 1))?;
            all.items.update(tx, 30, Item::COUNT.add(1))?;
            all.items.update(tx, 30, Item::OTHER.set(8))
        },
        |all, tx| {
            all.items.insert(tx, Item::new(31, 1))?;
            all.items.delete(tx, 31)
        },
        |all, tx| {
            all.items.put(tx, Item::new(32, 1))?;
            all.items.delete(tx, 32)
        },
        |all, tx| {
            all.items.put(tx, Item::new(6, 1))?;
            all.items.delete(tx, 6)
        },
        |all, tx| all.items.delete(tx, 7),
        |all, tx| all.items.insert(tx, Item::new(7, 70)),
        |all, tx| {
            all.items.delete(tx, 7)?;
            all.items.insert(tx, Item::new(7, 71))?;
            all.items.update(tx, 7, Item::COUNT.add(1))
        },
        |all, tx| {
            all.items.update(tx, 7, Item::COUNT.add(1))?;
            all.items.delete(tx, 7)?;
            all.items.put(tx, Item::new(7, 5))?;
            all.items.delete(tx, 7)
        },
        |all, tx| all.items.insert_if_absent(tx, Item::new(7, 3)).map(drop),
        |all, tx| all.items.insert_if_absent(tx, Item::new(7, 4)).map(drop),
        |all, tx| {
            all.items.insert(tx, Item::new(33, 1))?;
            all.items.delete(tx, 33)?;
            all.items.insert(tx, Item::new(33, 2))?;
            all.items.delete(tx, 33)?;
            all.items.insert(tx, Item::new(33, 3))
        },
    ]
}

/// Returns changes of rows with indexes, whose entries are not logged.
fn indexed_rows<P: Protocol>() -> Vec<Play<P>> {
    vec![
        |all, tx| {
            (0..4).try_for_each(|number| all.parcels.insert(tx, Parcel::new(1, number)))?;
            (0..4).try_for_each(|number| all.filed.insert(tx, Parcel::new(2, number).into()))
        },
        |all, tx| {
            all.parcels.modify(tx, &(1, 0), (Parcel::CODE, Parcel::WEIGHT), |row| *row = (7, 8))?;
            all.parcels.update(tx, &(1, 1), (Parcel::OWNER.set(-1), Parcel::NOTE.set(6)))?;
            all.filed.modify(tx, &(2, 0), (Filed::COLOUR, Filed::SHELF), |row| *row = (3, 9))
        },
        |all, tx| {
            all.parcels.delete(tx, &(1, 2))?;
            all.filed.delete(tx, &(2, 2))?;
            all.parcels.insert(tx, Parcel { code: 1002, ..Parcel::new(1, 9) })
        },
        |all, tx| {
            all.filed.put(tx, Filed { weight: 3, ..Parcel::new(2, 3).into() })?;
            all.filed.modify(tx, &(2, 1), Filed::COUNT, |count| *count = -5)
        },
        // Rows that exchange their unique keys.
        |all, tx| {
            all.parcels.modify(tx, &(1, 0), Parcel::CODE, |code| *code = 1_001)?;
            all.parcels.modify(tx, &(1, 1), Parcel::CODE, |code| *code = 7)?;
            all.filed.insert(tx, Filed { code: 2_001, ..Parcel::new(2, 8).into() })?;
            all.filed.delete(tx, &(2, 1))
        },
    ]
}

/// Returns transactions with parts that are undone, after other changes of the same rows and before
/// some.
fn undone_parts<P: Protocol>() -> Vec<Play<P>> {
    vec![
        |all, tx| {
            all.items.update(tx, 1, Item::COUNT.add(1))?;
            all.items.insert(tx, Item::new(40, 1))?;
            undone(tx, |tx| {
                all.items.update(tx, 1, (Item::COUNT.add(7), Item::OTHER.set(7)))?;
                all.items.update_with(tx, 2, OfCount(triple))?;
                all.items.delete(tx, 40)?;
                all.items.delete(tx, 4)?;
                all.items.insert(tx, Item::new(41, 1))?;
                all.items.insert(tx, Item::new(42, 1))?;
                all.parcels.modify(tx, &(1, 3), Parcel::CODE, |code| *code = 77)
            })?;
            all.items.insert(tx, Item::new(42, 2))?;
            tx.attempt(|tx| all.items.update(tx, 40, Item::COUNT.add(5)))
        },
        |all, tx| undone(tx, |tx| all.items.put(tx, Item::new(43, 1))),
    ]
}

/// Returns changes of packed keys, of wide rows and of a volatile table.
fn other_tables<P: Protocol>() -> Vec<Play<P>> {
    vec![
        // Keys that the table keeps packed.
        |all, tx| {
            (0..5).try_for_each(|number| {
                all.packed.insert(tx, Order { warehouse: 300, district: 7, number, lines: 1 })
            })
        },
        |all, tx| {
            all.packed.update(tx, &(300, 7, 1), Order::LINES.add(4))?;
            all.packed.delete(tx, &(300, 7, 2))
        },
        // Few words of many, and all of them.
        |all, tx| {
            let row = |id| Wide { id, first: 1, middle: [2; 20], last: 3 };
            (0..100).try_for_each(|id| all.wide.insert(tx, row(id)))
        },
        |all, tx| {
            (0..100).step_by(3).try_for_each(|id| all.wide.update(tx, &id, Wide::LAST.set(id)))?;
            (0..100)
                .step_by(7)
                .try_for_each(|id| all.wide.modify(tx, &id, Wide::MIDDLE, |middle| middle[19] = id))
        },
        |all, tx| {
            (0..100).step_by(5).try_for_each(|id| all.wide.update_with(tx, &id, Raise))?;
            all.wide.update(tx, &5, Wide::FIRST.set(9))?;
            all.wide.update_with(tx, &5, Raise)?;
            all.wide.delete(tx, &7)?;
            all.wide.insert(tx, Wide { id: 7, first: 4, middle: [4; 20], last: 4 })?;
            all.wide.update_with(tx, &7, Raise)?;
            all.wide.put(tx, Wide { id: 300, first: 4, middle: [4; 20], last: 4 })?;
            all.wide.update_with(tx, &300, Raise)
        },
        |all, tx| {
            (0..100).step_by(2).try_for_each(|id| all.wide.delete(tx, &id))?;
            all.wide.put(tx, Wide { id: 200, first: 1, middle: [5; 20], last: 2 })
        },
        // The log contains nothing of a volatile table.
        |all, tx| {
            all.volatile.put(tx, Item::new(1, 1))?;
            all.items.update(tx, 1, Item::COUNT.add(1))
        },
        |all, tx| all.volatile.put(tx, Item::new(2, 1)),
        |_, _| Ok(()),
        |all, tx| all.items.update_if_present(tx, 99, Item::COUNT.add(1)).map(drop),
    ]
}

/// Makes changes in a part that is undone.
fn undone<P: Protocol>(
    tx: &Tx<'_, P>,
    part: impl FnOnce(&Tx<'_, P>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    match tx.attempt(|tx| part(tx).and(Err::<(), _>(Abort::Indexed))) {
        Err(Abort::Indexed) => Ok(()),
        other => other,
    }
}

/// Returns transactions that end without effect.
fn failures<P: Protocol>() -> Vec<Play<P>> {
    vec![
        |all, tx| {
            all.items.update(tx, 0, Item::OTHER.set(77))?;
            Err(Abort::Duplicate)
        },
        |all, tx| {
            all.items.update(tx, 1, Item::OTHER.set(77))?;
            all.items.update(tx, 2, Item::COUNT.sub(1_000).at_least(0))
        },
        |all, tx| {
            all.items.insert(tx, Item::new(60, 1))?;
            all.items.update(tx, 2, Item::COUNT.set(99))?;
            all.items.update_with(tx, 2, OfCount(triple))
        },
        |all, tx| {
            all.items.delete(tx, 1)?;
            all.parcels.put(tx, Parcel::new(1, 1))?;
            resume_unwind(Box::new("by a test"))
        },
        |all, tx| all.filed.insert(tx, Filed { code: 2001, ..Parcel::new(5, 5).into() }),
    ]
}

fn compare<P: Protocol>(logged: &Logged<P>, what: &str) -> usize {
    logged.settle();
    let replay = Replay::of(logged);
    let number = replay.changes;
    let compared = catch_unwind(AssertUnwindSafe(|| replay.assert_is(logged)));
    compared.unwrap_or_else(|panic| {
        eprintln!("{}: after {what}", P::NAME);
        resume_unwind(panic)
    });
    number
}

fn play<P: Protocol>(tables: &Tables<P>, session: &mut Session<P>, play: Play<P>) -> bool {
    let run = || session.run(|tx| play(tables, tx)).is_ok();
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(false)
}

protocol_tests!(all: the_replay_of_all_changes_is_the_database);
protocol_tests!(
    by_the_clock: the_replay_of_all_changes_is_the_database_by_the_clock
        = the_replay_of_all_changes_is_the_database()
);
/// Each transaction is compared as soon as it has committed. Once more, all of them are collected
/// in few blocks.
fn the_replay_of_all_changes_is_the_database<P: Protocol>() {
    for (splitting, updates, every) in
        [(true, true, 1), (false, true, 1), (true, false, 1), (true, true, 9)]
    {
        let builder = Database::<P>::builder().manual_epochs(5);
        let builder = builder.timestamp_splitting(splitting).commit_time_updates(updates);
        let logged = Logged::new(builder);
        let (tables, mut session) = (tables(&logged), logged.db.session().unwrap());
        for (number, transaction) in script::<P>().into_iter().enumerate() {
            assert!(play(&tables, &mut session, transaction), "{}: number {number}", P::NAME);
            if number % every == 0 {
                compare(&logged, &format!("number {number}"));
            }
            if number % 4 == 3 {
                logged.db.inner.engine.epochs.pass();
            }
        }
        let changes = compare(&logged, "all");
        for (number, transaction) in failures::<P>().into_iter().enumerate() {
            assert!(!play(&tables, &mut session, transaction), "{}: failure {number}", P::NAME);
            let more = compare(&logged, &format!("failure {number}"));
            assert_eq!(more, changes, "{}: failure {number} is logged", P::NAME);
        }
    }
}

protocol_tests!(all: a_row_inserted_and_deleted_by_one_transaction_is_not_logged);
fn a_row_inserted_and_deleted_by_one_transaction_is_not_logged<P: Protocol>() {
    let logged = Logged::new(Database::<P>::builder());
    let (tables, mut session) = (tables(&logged), logged.db.session().unwrap());
    let passing: [Play<P>; 3] = [
        |all, tx| {
            all.items.insert(tx, Item::new(1, 1))?;
            all.items.delete(tx, 1)
        },
        |all, tx| {
            all.items.put(tx, Item::new(1, 1))?;
            all.items.update(tx, 1, Item::COUNT.add(1))?;
            all.items.delete(tx, 1)
        },
        |all, tx| {
            all.parcels.insert(tx, Parcel::new(1, 1))?;
            all.parcels.delete(tx, &(1, 1))
        },
    ];
    for (number, transaction) in passing.into_iter().enumerate() {
        assert!(play(&tables, &mut session, transaction));
        logged.settle();
        let written = logged.disk.written().blocks.len();
        assert_eq!(written, 0, "{}: number {number} is logged", P::NAME);
    }
}

protocol_tests!(all: an_updater_logs_only_words_of_its_target);
fn an_updater_logs_only_words_of_its_target<P: Protocol>() {
    let logged = Logged::new(Database::<P>::builder());
    let (tables, mut session) = (tables(&logged), logged.db.session().unwrap());
    assert!(play(&tables, &mut session, |all, tx| {
        all.wide.insert(tx, Wide { id: 1, first: 1, middle: [2; 20], last: 3 })
    }));
    logged.settle();
    let words = || logged.disk.written().blocks.iter().map(|block| block.records.len()).sum();
    let before: usize = words();
    assert!(play(&tables, &mut session, |all, tx| all.wide.update_with(tx, 1, Raise)));
    logged.settle();
    // The head of the record, the header of the change, the key, and the word.
    assert_eq!(words() - before, HEADER_WORDS + 3, "{}", P::NAME);
}

protocol_tests!(all: entries_of_indexes_are_not_in_the_log);
fn entries_of_indexes_are_not_in_the_log<P: Protocol>() {
    let logged = Logged::new(Database::<P>::builder());
    let (tables, mut session) = (tables(&logged), logged.db.session().unwrap());
    assert!(play(&tables, &mut session, |all, tx| {
        all.parcels.insert(tx, Parcel::new(1, 1))?;
        all.filed.insert(tx, Parcel::new(1, 1).into())
    }));
    drop(session);
    // An index that is made now has an entry for the row, which no commit of the program has made.
    tables.filed.create_index("by_note", Filed::NOTE, IndexOptions::ordered()).unwrap();
    logged.settle();
    let replay = Replay::of(&logged);
    replay.assert_is(&logged);
    let keys: Vec<_> = replay.rows.keys().map(|(table, _)| *table).collect();
    let tables = [tables.parcels.core().number, tables.filed.core().number];
    assert_eq!(keys, tables, "{}: {} changes", P::NAME, replay.changes);
}

/// Operations that `Mvto` would put off are evaluated, so that the log has their results.
#[test]
fn a_deferred_update_is_logged_as_its_result() {
    let logged = Logged::new(Database::<Mvto>::builder().manual_epochs(5));
    let (tables, mut session) = (tables(&logged), logged.db.session().unwrap());
    let add: Play<Mvto> = |all, tx| all.items.update(tx, 1, Item::COUNT.wrapping_add(10));
    assert!(play(&tables, &mut session, |all, tx| all.items.insert(tx, Item::new(1, 5))));
    assert!(play(&tables, &mut session, add));
    assert!(play(&tables, &mut session, add));
    logged.settle();
    let replay = Replay::of(&logged);
    let words = replay.rows.values().next().expect("one row");
    assert_eq!(Item::load(&1, &RowReader::new(words)).count, 25);
    replay.assert_is(&logged);
}
