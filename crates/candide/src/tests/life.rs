//! Sessions, memory and databases come and go and leave nothing behind.

use super::rows::Item;
use super::{ForProtocol, for_each, for_each_concurrent};
use crate::protocol::{GlobalLock, Occ, Protocol, Serial};
use crate::{Abort, Column, Database, Error, Group, Record, RunOptions, Text};
use std::time::{Duration, Instant};

/// Waits for what the advancer does in the background.
fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct DeletedRowsComeBack;

impl ForProtocol for DeletedRowsComeBack {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        let mut session = db.session().unwrap();
        let mut reserved = 0;
        for round in 0..20u64 {
            for key in 0..1_000 {
                let key = round * 1_000 + key;
                session.run(|tx| table.insert(tx, Item::new(key, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
            }
            for key in 0..1_000 {
                session.run(|tx| table.delete(tx, &(round * 1_000 + key))).unwrap_or_else(|e: Abort| panic!("{e}"));
            }
            // The session is idle now, and does nothing about it.
            eventually("collection for an idle session", || db.memory().garbage == 0);
            if round == 1 {
                reserved = db.memory().reserved_bytes;
            }
        }
        // How far the index has grown depends on where the tombstones of the moment were.
        assert!(db.memory().reserved_bytes <= 2 * reserved, "{} after {reserved}", db.memory().reserved_bytes);
    }
}

#[test]
fn deleted_rows_are_freed_while_their_session_idles() {
    for_each(&DeletedRowsComeBack);
}

struct AbortedInsertsComeBack;

impl ForProtocol for AbortedInsertsComeBack {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        for key in 0..500 {
            let result: Result<(), Abort> = db.run(|tx| {
                table.insert(tx, Item::new(key, 0))?;
                if key % 2 == 0 { table.delete(tx, &key) } else { Err(Abort::NotFound) }
            });
            assert_eq!(result.is_ok(), key % 2 == 0);
        }
        eventually("burial of what was never inserted", || db.memory().garbage == 0);
        assert_eq!(table.for_each_quiescent(|row| panic!("{row:?}")), Ok(0));
        let mut linked = 0;
        table.core_for_tests().index.for_each(|_| linked += 1);
        assert_eq!(linked, 0);
    }
}

#[test]
fn inserts_that_never_were_leave_no_record() {
    for_each(&AbortedInsertsComeBack);
}

struct SteadyMemory;

impl ForProtocol for SteadyMemory {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("queue").unwrap();
        let mut session = db.session().unwrap();
        let mut reserved = 0;
        for key in 0..60_000u64 {
            session
                .run(|tx| {
                    table.insert(tx, Item::new(key, 0))?;
                    if key >= 100 { table.delete(tx, &(key - 100)) } else { Ok(()) }
                })
                .unwrap_or_else(|e: Abort| panic!("{e}"));
            if key % 1_000 == 0 {
                // A busy machine may not have let the advancer run.
                eventually("the bound", || db.memory().garbage < 3_000 || session.run(|_| Ok::<_, Abort>(())).is_err());
            }
            if key == 20_000 {
                reserved = db.memory().reserved_bytes;
            }
        }
        assert!(db.memory().reserved_bytes <= 2 * reserved, "{} after {reserved}", db.memory().reserved_bytes);
    }
}

#[test]
fn a_queue_has_a_flat_footprint() {
    for_each(&SteadyMemory);
}

struct PinnedByNobody;

impl ForProtocol for PinnedByNobody {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
        // One session idles, one dies by a panic, one with its thread, one is used while its thread ends.
        let mut idle = db.session().unwrap();
        idle.run(|tx| table.read(tx, &1, Item::COUNT)).unwrap_or_else(|e: Abort| panic!("{e}"));
        std::thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let mut session = db.session().unwrap();
                let _: Result<(), Abort> = session.run(|tx| {
                    table.update(tx, &1, Item::COUNT.add(1))?;
                    panic!("deliberate");
                });
            });
            assert!(panicking.join().is_err());
            scope.spawn(|| {
                db.run(|tx| table.update(tx, &1, Item::COUNT.add(1))).unwrap_or_else(|e: Abort| panic!("{e}"))
            });
        });
        struct AtThreadEnd<P: Protocol>(Database<P>, crate::Table<Item, P>);
        impl<P: Protocol> Drop for AtThreadEnd<P> {
            fn drop(&mut self) {
                let Self(db, table) = self;
                db.run(|tx| table.update(tx, &1, Item::COUNT.add(1))).unwrap_or_else(|e: Abort| panic!("{e}"));
            }
        }
        let (inner_db, inner_table) = (db.clone(), table.clone());
        std::thread::spawn(move || {
            thread_local! {
                static KEPT: std::cell::RefCell<Option<Box<dyn std::any::Any>>> = const { std::cell::RefCell::new(None) };
            }
            // Registered before the cached session's list, so destroyed in either order.
            KEPT.with(|kept| *kept.borrow_mut() = Some(Box::new(AtThreadEnd(inner_db.clone(), inner_table.clone()))));
            inner_db.run(|tx| inner_table.read(tx, &1, Item::COUNT)).unwrap_or_else(|e: Abort| panic!("{e}"));
        })
        .join()
        .unwrap();
        assert_eq!(db.run(|tx| table.read(tx, &1, Item::COUNT)), Ok::<_, Abort>(2));
        db.run(|tx| table.delete(tx, &1)).unwrap_or_else(|e: Abort| panic!("{e}"));
        eventually("freeing behind idle and dead sessions", || db.memory().garbage == 0);
        drop(idle);
    }
}

#[test]
fn sessions_that_idle_panic_or_end_with_their_thread_hold_nothing_back() {
    for_each_concurrent(&PinnedByNobody);
}

#[test]
fn a_dropped_database_is_freed_though_threads_keep_sessions_of_it() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 1))).unwrap_or_else(|e: Abort| panic!("{e}"));
    let weak = std::sync::Arc::downgrade(&db.inner);
    drop((db, table));
    eventually("the drop of the database", || weak.strong_count() == 0);
    // The stale session goes when this thread uses the next database.
    let db = Database::new();
    db.run(|_| Ok::<_, Abort>(())).unwrap();
}

#[test]
fn a_table_or_session_keeps_its_database_alive() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    drop(db);
    session.run(|tx| table.insert(tx, Item::new(1, 1))).unwrap_or_else(|e: Abort| panic!("{e}"));
    drop(session);
    assert_eq!(table.for_each_quiescent(|row| assert_eq!(row.count, 1)), Ok(1));
}

/// A row type with the same name and shape as another.
#[derive(Debug, Clone, Copy)]
struct Impostor {
    id: u64,
}

impl Record for Impostor {
    type Key = u64;
    type Image = [u64; 1];
    const NAME: &'static str = "Impostor";
    const GROUPS: &'static [Group] = &[Group::new("only", 1)];

    fn key(&self) -> u64 {
        self.id
    }
    fn store(&self, _words: &mut [u64]) {}
    fn load(key: &u64, _words: &[u64]) -> Impostor {
        Impostor { id: *key }
    }
}

struct Misuse;

impl ForProtocol for Misuse {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        assert!(db.table::<Item>("rows").is_ok());
        assert_eq!(
            db.table::<Impostor>("rows").unwrap_err(),
            Error::TableType { table: "rows".into(), wanted: "Impostor", existing: "Item" }
        );
        assert_eq!(db.table::<Item>("").unwrap_err(), Error::EmptyTableName);

        let other = Database::<P>::builder().build().unwrap();
        let foreign = other.table::<Item>("rows").unwrap();
        assert_eq!(db.run(|tx| foreign.insert(tx, Item::new(1, 1))), Err(Abort::ForeignTable));
        assert_eq!(db.run(|tx| foreign.find_many(tx, &[1, 2]).map(drop)), Err(Abort::ForeignTable));

        // Another database inside a transaction is fine; the same one is not.
        let nested: Result<(), Abort> = db.run(|tx| {
            table.put(tx, Item::new(1, 1))?;
            other.run(|tx| foreign.put(tx, Item::new(1, 1)))?;
            db.run(|tx| table.put(tx, Item::new(2, 1)))
        });
        assert_eq!(nested, Err(Abort::Nested));
        assert_eq!(db.run(|tx| table.get(tx, &1, Item::COUNT)), Ok::<_, Abort>(None));
        assert_eq!(other.run(|tx| foreign.get(tx, &1, Item::COUNT)), Ok::<_, Abort>(Some(1)));

        let running = db.run(|_| Ok::<_, Abort>(table.for_each_quiescent(|_| {})));
        assert_eq!(running, Ok(Err(Error::NotQuiescent)));
    }
}

#[test]
fn misuse_is_answered_precisely_and_changes_nothing() {
    for_each(&Misuse);
}

#[test]
fn a_serial_database_has_one_session() {
    let db = Database::<Serial>::builder().build().unwrap();
    let session = db.session().unwrap();
    assert_eq!(db.session().unwrap_err(), Error::SecondSession { protocol: "serial" });
    assert_eq!(db.run(|_| Ok::<_, Abort>(())), Err(Abort::Nested));
    drop(session);
    db.run(|_| Ok::<_, Abort>(())).unwrap();
    drop(db.session().unwrap());
    // Two sessions are no trouble elsewhere.
    let db = Database::<GlobalLock>::builder().build().unwrap();
    let _sessions = (db.session().unwrap(), db.session().unwrap());
}

#[test]
fn row_types_are_checked() {
    #[derive(Clone, Copy)]
    struct WrongImage;
    impl Record for WrongImage {
        type Key = u64;
        type Image = [u64; 3];
        const NAME: &'static str = "WrongImage";
        const GROUPS: &'static [Group] = &[Group::new("only", 2)];
        fn key(&self) -> u64 {
            0
        }
        fn store(&self, _: &mut [u64]) {}
        fn load(_: &u64, _: &[u64]) -> WrongImage {
            WrongImage
        }
    }
    let error = Database::new().table::<WrongImage>("rows").unwrap_err();
    assert_eq!(
        error.to_string(),
        "row type WrongImage cannot be stored: its image has 3 words but its groups have 2; use [u64; 2]"
    );
}

struct Limits;

impl ForProtocol for Limits {
    fn run<P: Protocol>(&self) {
        for limit in [0, 4 << 10, 100 << 10, 300 << 10, 3 << 20] {
            let db = Database::<P>::builder().memory_limit(limit).build().unwrap();
            let Ok(table) = db.table::<Item>("rows") else {
                assert!(limit < 4 << 10);
                continue;
            };
            let mut rows = 0;
            let refused = loop {
                // The rest of the transaction is unharmed by the refusal.
                let inserted = db.run(|tx| {
                    let inserted = table.insert(tx, Item::new(rows, 0));
                    if rows > 0 {
                        table.update(tx, &0, Item::COUNT.add(1))?;
                    }
                    match inserted {
                        Err(Abort::MemoryLimit) => Ok(false),
                        other => other.map(|()| true),
                    }
                });
                match inserted {
                    Ok::<_, Abort>(true) => rows += 1,
                    Ok(false) => break rows,
                    Err(abort) => {
                        assert_eq!((abort, rows), (Abort::NotFound, 0));
                        break rows;
                    }
                }
            };
            assert!(db.memory().reserved_bytes <= limit);
            assert_eq!(table.for_each_quiescent(|_| {}), Ok(refused as usize));
            if refused > 0 {
                assert_eq!(db.run(|tx| table.read(tx, &0, Item::COUNT)), Ok::<_, Abort>(refused as i64));
                // Deleting makes room again, for the record and in its bucket.
                db.run(|tx| table.delete(tx, &0)).unwrap_or_else(|e: Abort| panic!("{e}"));
                eventually("room", || db.run(|tx| table.insert(tx, Item::new(0, 0))).is_ok());
            }
        }
    }
}

#[test]
fn the_memory_limit_is_an_outcome_and_costs_nothing_else() {
    for_each(&Limits);
}

#[test]
fn attempts_and_deadlines_end_retrying() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut hopeless = |options: RunOptions| {
        session.run_with(options, |tx| {
            table.read(tx, &1, Item::COUNT)?;
            other.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))?;
            table.update(tx, &1, Item::COUNT.add(1))
        })
    };
    assert_eq!(hopeless(RunOptions::new().attempts_max(3)), Err(Abort::AttemptsExhausted));
    assert_eq!(
        hopeless(RunOptions::new().deadline(Instant::now() + Duration::from_millis(5))),
        Err(Abort::DeadlinePassed)
    );
    let conflict = session.last_conflict().unwrap();
    assert_eq!((conflict.cause, &*conflict.table, conflict.group), (Abort::ReadChanged, "rows", Some("hot")));
    assert_eq!(conflict.key, Some(vec![1]));
    let stats = session.stats();
    assert_eq!((stats.commits, stats.user_errors), (0, 0));
    assert!(stats.total_aborts() >= 4 && stats.retries >= 2);
}

#[test]
fn effects_run_once_after_the_commit() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let effects = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    session
        .run(|tx| {
            let (effects, attempt) = (effects.clone(), tx.attempt());
            tx.on_commit(move || effects.borrow_mut().push(attempt));
            let count = table.read(tx, &1, Item::COUNT)?;
            if attempt < 3 {
                other.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))?;
            }
            table.update(tx, &1, Item::OTHER.set(count as u64))
        })
        .unwrap_or_else(|e: Abort| panic!("{e}"));
    assert_eq!(*effects.borrow(), [3]);
    let failed: Result<(), Abort> = session.run(|tx| {
        tx.on_commit(|| panic!("the transaction did not commit"));
        Err(Abort::NotFound)
    });
    assert_eq!(failed, Err(Abort::NotFound));
}

/// A row whose key is text.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Named {
    name: Text<12>,
    value: u64,
}

impl Named {
    const VALUE: Column<Named, u64> = Column::new(0, 0, "value");
}

impl Record for Named {
    type Key = Text<12>;
    type Image = [u64; 1];
    const NAME: &'static str = "Named";
    const GROUPS: &'static [Group] = &[Group::new("only", 1)];

    fn key(&self) -> Text<12> {
        self.name
    }
    fn store(&self, words: &mut [u64]) {
        Self::VALUE.put(words, &self.value);
    }
    fn load(key: &Text<12>, words: &[u64]) -> Named {
        Named { name: *key, value: Self::VALUE.take(words) }
    }
}

#[test]
fn text_keys_are_found_and_never_truncated() {
    let db = Database::<Occ>::builder().build().unwrap();
    let table = db.table::<Named>("named").unwrap();
    let names = ["", "x", "x\0", "exactly12byt", "Candide"];
    db.run(|tx| {
        for (value, name) in (0..).zip(names) {
            table.insert(tx, Named { name: Text::new(name).unwrap(), value })?;
        }
        Ok::<_, Abort>(())
    })
    .unwrap();
    for (value, name) in (0..).zip(names) {
        assert_eq!(db.run(|tx| table.read(tx, &Text::new(name).unwrap(), Named::VALUE)), Ok::<_, Abort>(value));
    }
    let error = Text::<12>::new("exactly13byte").unwrap_err();
    assert_eq!(error.to_string(), "a text of 13 bytes does not fit into Text<12>");
}
