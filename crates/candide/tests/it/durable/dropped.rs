//! Tables that are dropped.

use super::{insert, new_items, open, options};
use crate::common::{Item, builder, eventually};
use candide::any::{Chosen, Erased};
use candide::protocols::Exclusion;
use candide::{Abort, Database, Error, IndexOptions, LoadOptions, Mvcc, Mvto, Occ, Record, Serial};
use candide::{Table, TableOptions, TicToc, Whole};
use candide_log_testing::{CrashOptions, Fault, SimDisk};
use std::sync::Arc;

#[derive(Record, Clone, Copy, Debug, PartialEq)]
#[record(ordered)]
struct User {
    #[key]
    id: u64,
    #[unique]
    mail: u64,
    #[index]
    age: u64,
}

fn user(id: u64) -> User {
    User { id, mail: id + 100, age: id % 3 }
}

/// Crashes between two positions, with few states of each.
pub(super) fn crashes(first: usize, last: usize) -> CrashOptions {
    CrashOptions { first, last, exhaustive: 2, pieces: 2, samples: 1, ..CrashOptions::default() }
}

/// Returns every protocol, by turns with timestamp splitting and without.
pub(super) fn choices() -> impl Iterator<Item = (Chosen, bool)> {
    let protocols = [
        Chosen::of::<Occ>(Default::default()),
        Chosen::of::<TicToc>(()),
        Chosen::of::<Mvcc>(()),
        Chosen::of::<Mvto>(()),
        Chosen::of::<Serial>(Exclusion::OneSession),
        Chosen::of::<Serial>(Exclusion::GlobalLock),
    ];
    protocols.into_iter().flat_map(|chosen| [(chosen.clone(), true), (chosen, false)])
}

/// Opens a database under a protocol that is chosen at run time.
pub(super) fn open_as((chosen, splitting): &(Chosen, bool), disk: &SimDisk) -> Database<Erased> {
    let builder = Database::<Erased>::builder().policy(chosen.clone());
    let builder = builder.timestamp_splitting(*splitting);
    builder.open_on(Arc::new(disk.clone()), options()).unwrap()
}

const DROPPED: Abort = Abort::TableDropped;

fn check_refused(db: &Database<Erased>, users: &Table<User, Erased>) {
    assert_eq!(db.run(|tx| users.get(tx, 1, Whole)), Err(DROPPED));
    assert_eq!(db.run(|tx| users.insert(tx, user(9))), Err(DROPPED));
    assert_eq!(db.run(|tx| users.put(tx, user(1))), Err(DROPPED));
    assert_eq!(db.run(|tx| users.find(tx, 1).map(drop)), Err(DROPPED));
    assert_eq!(db.run(|tx| users.len(tx)), Err(DROPPED));
    assert_eq!(db.run(|tx| users.scan(tx, .., Whole).next().unwrap().map(drop)), Err(DROPPED));
    let by_mail = users.index(User::BY_MAIL);
    assert_eq!(db.run(|tx| by_mail.get(tx, 101, User::ID)), Err(DROPPED));
    let by_age = users.index(User::BY_AGE);
    assert_eq!(db.run(|tx| by_age.rows(tx, 1, Whole).next().unwrap().map(drop)), Err(DROPPED));
    let loaded = users.load([user(9)], LoadOptions::new());
    assert_eq!(loaded, Err(Error::Load { rows: 0, cause: DROPPED }));
    assert_eq!(users.for_each_quiescent(|_| ()), Err(Error::Transaction(DROPPED)));
    let index = users.create_index("by_id", User::AGE, IndexOptions::ordered());
    assert!(matches!(index, Err(Error::Transaction(DROPPED))), "{index:?}");
}

#[test]
fn handles_of_a_dropped_table_are_refused_and_its_name_is_free() {
    for chosen in choices() {
        let disk = SimDisk::new();
        let db = open_as(&chosen, &disk);
        let users = db.table::<User>("users").unwrap();
        db.run(|tx| (1..5).try_for_each(|id| users.insert(tx, user(id)))).unwrap();
        db.drop_table("users").unwrap();
        check_refused(&db, &users);
        assert!(db.tables().iter().all(|table| !table.name.starts_with("users")));
        // The name is free, also for rows of another type.
        let items = db.table::<Item>("users").unwrap();
        assert_eq!(db.run(|tx| items.len(tx)), Ok(0));
        db.run(|tx| items.insert(tx, Item::new(7, 1))).unwrap();
        check_refused(&db, &users);
        db.checkpoint().unwrap();
        db.run(|tx| items.insert(tx, Item::new(8, 1))).unwrap();
        drop((db, users, items));
        let db = open_as(&chosen, &disk);
        let items = db.table::<Item>("users").unwrap();
        assert_eq!(db.run(|tx| items.len(tx)), Ok(2));
        drop(items);
        db.drop_table("users").unwrap();
        // Before a program has named the row type of a table.
        let items = db.table::<Item>("others").unwrap();
        db.run(|tx| items.insert(tx, Item::new(1, 1))).unwrap();
        drop((db, items));
        let db = open_as(&chosen, &disk);
        db.drop_table("others").unwrap();
        drop(db);
        let db = open_as(&chosen, &disk);
        let unknown = Error::NoTable { table: "others".to_owned(), tables: Vec::new() };
        assert_eq!(db.drop_table("others"), Err(unknown.clone()));
        assert_eq!(db.rename_table("others", "x"), Err(unknown));
    }
}

#[test]
fn a_table_that_cannot_be_dropped_is_as_it_was() {
    let (disk, db, items) = new_items::<Occ>();
    insert(&db, &items, 1, 10).unwrap();
    let no_table = Error::NoTable { table: "item".to_owned(), tables: vec!["items".to_owned()] };
    assert_eq!(db.drop_table("item"), Err(no_table));
    let reserved = Error::ReservedName { name: "candide.x".to_owned() };
    assert_eq!(db.drop_table("candide.x"), Err(reserved));
    let inside = db.run(|_| Ok(db.drop_table("items")));
    assert_eq!(inside, Ok(Err(Error::Transaction(Abort::Nested))));
    insert(&db, &items, 2, 20).unwrap();
    drop((db, items));
    let db = open::<Occ>(&disk).unwrap();
    assert_eq!(db.table::<Item>("items").unwrap().len_estimate(), 2);
}

#[test]
fn a_drop_that_cannot_be_written_leaves_the_table_with_later_commits() {
    for operation in 1.. {
        let (disk, db, items) = new_items::<Occ>();
        insert(&db, &items, 1, 10).unwrap();
        // Everything is durable, so the logger writes nothing.
        disk.fail(operation, Fault::Error);
        let dropped = db.drop_table("items");
        let has_failed = disk.pending_faults() == 0;
        disk.clear_faults();
        let later = insert(&db, &items, 2, 20);
        drop((db, items));
        let db = open::<Occ>(&disk).unwrap();
        let is_there = db.rename_table("items", "items").is_ok();
        let rows = db.table::<Item>("items").unwrap().len_estimate();
        match (dropped, later) {
            (Ok(()), Err(Abort::TableDropped)) => assert!(!is_there),
            (Err(Error::Files { .. }), Ok(())) => assert_eq!((is_there, rows), (true, 2)),
            // The log has failed, or the files.
            (Err(_), Err(Abort::LogFailed)) => assert_eq!((is_there, rows), (true, 1)),
            (Err(_), Err(Abort::TableDropped)) => assert_eq!(rows, u64::from(is_there)),
            other => panic!("{operation}: {other:?}"),
        }
        if !has_failed {
            assert!(operation > 4, "{operation}");
            break;
        }
    }
}

#[test]
fn a_table_is_dropped_while_transactions_use_it() {
    for chosen in choices() {
        let disk = SimDisk::new();
        let db = open_as(&chosen, &disk);
        if db.properties().one_session {
            continue;
        }
        let (items, others) = (db.table::<Item>("items").unwrap(), db.table::<Item>("x").unwrap());
        std::thread::scope(|scope| {
            let write = |from: u64| {
                let (db, items, others) = (&db, &items, &others);
                move || {
                    for id in from.. {
                        let written = db.run(|tx| {
                            items.insert(tx, Item::new(id, 1))?;
                            others.insert(tx, Item::new(id, 1))
                        });
                        match written {
                            Ok(()) => {}
                            Err(DROPPED) => return id - from,
                            Err(other) => panic!("{other}"),
                        }
                    }
                    unreachable!("ids do not end")
                }
            };
            let writers = [scope.spawn(write(0)), scope.spawn(write(1 << 40))];
            eventually("the others are written", || others.len_estimate() > 20);
            db.drop_table("items").unwrap();
            let written: u64 = writers.map(|writer| writer.join().unwrap()).iter().sum();
            // A commit has both rows, so what the other table has was committed before the drop.
            assert_eq!(db.run(|tx| others.len(tx)), Ok(written as usize));
        });
        let count = db.run(|tx| others.len(tx)).unwrap();
        drop((db, items, others));
        let db = open_as(&chosen, &disk);
        let others = db.table::<Item>("x").unwrap();
        assert_eq!(db.run(|tx| others.len(tx)), Ok(count));
        assert_eq!(db.tables().len(), 1);
    }
}

#[test]
fn a_snapshot_from_before_the_drop_is_refused_the_table() {
    let db = builder::<Mvcc>().build().unwrap();
    let users = db.table::<User>("users").unwrap();
    db.run(|tx| users.insert(tx, user(1))).unwrap();
    let snapshot = db.snapshot();
    db.drop_table("users").unwrap();
    let again = db.table::<User>("users").unwrap();
    assert_eq!(snapshot.run(|tx| users.get(tx, 1, Whole)), Err(DROPPED));
    assert_eq!(snapshot.run(|tx| again.get(tx, 1, Whole)), Ok(None));
    db.run(|tx| again.insert(tx, user(1))).unwrap();
    assert_eq!(snapshot.run(|tx| again.get(tx, 1, Whole)), Ok(None));
    assert_eq!(db.run(|tx| again.get(tx, 1, Whole)), Ok(Some(user(1))));
}

#[test]
fn a_session_from_before_the_drop_writes_the_next_table() {
    for chosen in choices() {
        let disk = SimDisk::new();
        let db = open_as(&chosen, &disk);
        if db.properties().one_session {
            continue;
        }
        let items = db.table::<Item>("items").unwrap();
        let mut session = db.session().unwrap();
        session.run(|tx| (0..50).try_for_each(|id| items.insert(tx, Item::new(id, 1)))).unwrap();
        session.run(|tx| (0..9).try_for_each(|id| items.delete(tx, id))).unwrap();
        for id in 9..30 {
            session.run(|tx| items.update(tx, id % 3 + 20, Item::COUNT.add(1))).unwrap();
        }
        db.drop_table("items").unwrap();
        let scratch = TableOptions::default().volatile();
        db.table_with::<Item>("scratch", scratch).unwrap();
        // The next table gets the number of the dropped one, which the session knows.
        eventually("the collection of garbage", || db.memory().garbage == 0);
        let again = db.table::<Item>("items").unwrap();
        session.run(|tx| (0..20).try_for_each(|id| again.insert(tx, Item::new(id, 1)))).unwrap();
        assert_eq!(session.run(|tx| items.len(tx)), Err(DROPPED));
        drop((session, db, items, again));
        let db = open_as(&chosen, &disk);
        let items = db.table::<Item>("items").unwrap();
        assert_eq!(db.run(|tx| items.len(tx)), Ok(20));
    }
}

#[test]
fn every_crash_leaves_the_table_with_all_rows_or_none_of_it() {
    for (turn, chosen) in choices().enumerate() {
        let disk = SimDisk::new();
        let db = open_as(&chosen, &disk);
        let (users, items) = (db.table::<User>("u").unwrap(), db.table::<Item>("i").unwrap());
        db.run(|tx| (0..3).try_for_each(|id| users.insert(tx, user(id)))).unwrap();
        let begun = disk.position();
        let moved = |tx: &candide::Tx<'_, Erased>| items.insert(tx, Item::new(1, 3));
        db.run(moved).unwrap();
        db.drop_table("u").unwrap();
        let dropped = disk.position();
        let again = db.table::<User>("u").unwrap();
        db.run(|tx| again.insert(tx, user(7))).unwrap();
        db.checkpoint().unwrap();
        let last = disk.position();
        drop((db, users, items, again));
        let crashes = crashes(begun, last);
        for state in disk.crash_states(&crashes).skip(turn).step_by(12) {
            let position = state.id().position;
            let db = open_as(&chosen, &state.disk());
            let has_table = db.rename_table("u", "u").is_ok();
            let users = db.table::<User>("u").unwrap();
            let items = db.table::<Item>("i").unwrap();
            let rows = db.run(|tx| Ok((users.len(tx)?, items.len(tx)?))).unwrap();
            let possible = match position {
                at if at >= last => &[(true, (1, 1))][..],
                at if at >= dropped => &[(false, (0, 1)), (true, (0, 1)), (true, (1, 1))],
                _ => &[(true, (3, 0)), (true, (3, 1)), (false, (0, 1))],
            };
            assert!(possible.contains(&(has_table, rows)), "{}{rows:?}", state.describe());
        }
    }
}

/// Makes, fills and drops a table this many times. Returns the memory taken after each.
fn come_and_go(db: &Database<Erased>, times: u64, awaits_collection: bool) -> Vec<usize> {
    let come_and_go = |round| {
        let users = db.table::<User>("users").unwrap();
        db.run(|tx| (0..20).try_for_each(|id| users.insert(tx, user(id + round)))).unwrap();
        assert_eq!(db.run(|tx| users.len(tx)), Ok(20));
        db.drop_table("users").unwrap();
        assert_eq!(db.run(|tx| users.get(tx, round, ())), Err(DROPPED));
        if awaits_collection {
            eventually("the collection of garbage", || db.memory().garbage == 0);
        }
        db.memory().reserved_bytes
    };
    (0..times).map(come_and_go).collect()
}

#[test]
fn later_tables_use_the_memory_of_dropped_ones() {
    for (chosen, splitting) in choices() {
        let builder = Database::<Erased>::builder().policy(chosen).timestamp_splitting(splitting);
        let db = builder.build().unwrap();
        // A session that is idle all the time knows the first of the tables.
        let mut idle = (!db.properties().one_session).then(|| db.session().unwrap());
        if let Some(idle) = &mut idle {
            let users = db.table::<User>("users").unwrap();
            idle.run(|tx| (0..9).try_for_each(|id| users.insert(tx, user(id)))).unwrap();
            db.drop_table("users").unwrap();
        }
        let bytes = come_and_go(&db, 30, true);
        // A collection may come late. Without reuse it were ten times as much.
        let (early, late) = (bytes[3], bytes[29]);
        assert!(late <= 3 * early, "{}: {bytes:?}", db.properties().name);
        if let Some(idle) = &mut idle {
            let users = db.table::<User>("users").unwrap();
            idle.run(|tx| (0..9).try_for_each(|id| users.insert(tx, user(id)))).unwrap();
            assert_eq!((users.len_estimate(), idle.run(|tx| users.len(tx))), (9, Ok(9)));
        }
    }
}

#[test]
fn hundreds_of_tables_come_and_go() {
    let db = Database::<Erased>::builder().policy(Chosen::of::<Occ>(Default::default()));
    come_and_go(&db.build().unwrap(), 300, false);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_tables_come_and_go() {
    let db = Database::<Erased>::builder().policy(Chosen::of::<Occ>(Default::default()));
    let bytes = come_and_go(&db.build().unwrap(), 100_000, false);
    let (early, late) = (bytes[999], bytes[99_999]);
    // Where the advancer collects just then, a table takes memory of its own.
    assert!(late < 4 * early, "{early} and then {late} bytes");
}
