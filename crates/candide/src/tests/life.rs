//! Sessions, memory and databases end and leave nothing behind.

use super::patience::{eventually, receive};
use super::rows::Item;
use super::{ForProtocol, for_each, for_each_concurrent};
use crate::engine::{Protocol, Versions};
use crate::protocols::{Exclusion, Occ, Serial};
use crate::sync::size::share;
use crate::{
    Abort, Bytes, Column, Database, Error, Group, Hashed, IndexOptions, Record, RunOptions, Text,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

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
                session
                    .run(|tx| table.insert(tx, Item::new(key, 0)))
                    .unwrap_or_else(|e: Abort| panic!("{e}"));
            }
            for key in 0..1_000 {
                session
                    .run(|tx| table.delete(tx, &(round * 1_000 + key)))
                    .unwrap_or_else(|e: Abort| panic!("{e}"));
            }
            // The session is idle now, and does not collect.
            eventually("collection for an idle session", || db.memory().garbage == 0);
            if round == 1 {
                reserved = db.memory().reserved_bytes;
            }
        }
        // The size of the index depends on where the tombstones were when it grew.
        assert!(
            db.memory().reserved_bytes <= 2 * reserved,
            "{} after {reserved}",
            db.memory().reserved_bytes
        );
    }
}

#[test]
#[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
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
        table.core().index.for_each(&mut |_| linked += 1);
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
        for key in 0..share(60_000u64) {
            session
                .run(|tx| {
                    table.insert(tx, Item::new(key, 0))?;
                    if key >= 100 { table.delete(tx, &(key - 100)) } else { Ok(()) }
                })
                .unwrap_or_else(|e: Abort| panic!("{e}"));
            if key % 250 == 0 {
                // A busy machine may not have let the advancer run; how much garbage there is at
                // once must not depend on that.
                eventually("the bound", || {
                    db.memory().garbage < 750 || session.run(|_| Ok::<_, Abort>(())).is_err()
                });
            }
            if key == share(20_000) {
                reserved = db.memory().reserved_bytes;
            }
        }
        assert!(
            db.memory().reserved_bytes <= 2 * reserved,
            "{} after {reserved}",
            db.memory().reserved_bytes
        );
    }
}

#[test]
#[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
fn a_queue_has_a_flat_footprint() {
    for_each(&SteadyMemory);
}

struct PinnedByNobody;

impl ForProtocol for PinnedByNobody {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
        // One session idles, one dies by a panic, one with its thread, one is used while its thread
        // ends.
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
                db.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))
                    .unwrap_or_else(|e: Abort| panic!("{e}"))
            });
        });
        struct AtThreadEnd<P: Protocol>(Database<P>, crate::Table<Item, P>);
        impl<P: Protocol> Drop for AtThreadEnd<P> {
            fn drop(&mut self) {
                let Self(db, table) = self;
                db.run(|tx| table.update(tx, &1, Item::COUNT.add(1)))
                    .unwrap_or_else(|e: Abort| panic!("{e}"));
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
    // The stale session is dropped when this thread uses the next database.
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

/// A row type with the same name as another, of another module.
mod elsewhere {
    #[derive(Debug, Clone, Copy, candide_derive::Record)]
    #[record(crate = crate)]
    pub(super) struct Item {
        #[key]
        id: u64,
        count: i64,
    }
}

/// A row type of the same shape as another.
#[derive(Debug, Clone, Copy)]
struct Impostor {
    id: u64,
}

impl Record for Impostor {
    type Key = u64;
    type Index = Hashed;
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
        let alike = db.table::<elsewhere::Item>("rows").unwrap_err();
        assert_eq!(
            alike.to_string(),
            "table \"rows\" holds rows of type candide::tests::rows::Item, not candide::tests::life::elsewhere::Item; use another \
             name for candide::tests::life::elsewhere::Item"
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
    // Two sessions are allowed under another policy.
    let db = Database::<Serial>::builder().policy(Exclusion::GlobalLock).build().unwrap();
    let _sessions = (db.session().unwrap(), db.session().unwrap());
}

#[test]
fn row_types_are_checked() {
    #[derive(Clone, Copy)]
    struct WrongImage;
    impl Record for WrongImage {
        type Key = u64;
        type Index = Hashed;
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

#[test]
fn an_index_of_nothing_is_refused() {
    #[derive(candide_derive::Record, Clone, Copy)]
    #[record(crate = crate)]
    struct Nothing {
        #[key]
        id: u64,
        none: Bytes<0>,
    }
    #[derive(candide_derive::Record, Clone, Copy)]
    #[record(crate = crate)]
    struct IndexedNothing {
        #[key]
        id: u64,
        #[unique(ordered)]
        none: Bytes<0>,
    }
    let is_refused = |error: Error| {
        assert!(
            matches!(&error, Error::RowType { problem, .. } if problem.contains("0 of them")),
            "{error}"
        );
    };
    let db = Database::new();
    is_refused(db.table::<IndexedNothing>("indexed").unwrap_err());
    assert_eq!(db.memory().reserved_bytes, 0);
    let table = db.table::<Nothing>("rows").unwrap();
    is_refused(
        table.create_index("none", Nothing::NONE, IndexOptions::ordered().unique()).unwrap_err(),
    );
    is_refused(table.create_index("none", Nothing::NONE, IndexOptions::hashed()).unwrap_err());
    let row = Nothing { id: 1, none: Bytes::new([]) };
    db.run(|tx| table.insert(tx, row))
        .unwrap_or_else(|e: Abort| panic!("nothing is left of it: {e}"));
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
            let (mut rows, mut updates) = (0, 0);
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
                updates += i64::from(inserted.is_ok() && rows > 0);
                match inserted {
                    Ok::<_, Abort>(true) => rows += 1,
                    Ok(false) => break rows,
                    // Where an update makes a version, it is refused like an insert.
                    Err(Abort::MemoryLimit) if P::Versions::WORDS > 0 => break rows,
                    Err(abort) => {
                        assert_eq!((abort, rows), (Abort::NotFound, 0));
                        break rows;
                    }
                }
            };
            assert!(db.memory().reserved_bytes <= limit);
            assert_eq!(table.for_each_quiescent(|_| {}), Ok(refused as usize));
            if refused > 0 {
                // An operation that needs no memory is not refused for lack of it, by any path.
                let again = || Item::new(0, 0);
                assert_eq!(db.run(|tx| table.insert(tx, again())), Err(Abort::Duplicate));
                assert_eq!(db.run(|tx| table.insert_many(tx, [again()])), Err(Abort::Duplicate));
                assert_eq!(db.run(|tx| table.read(tx, &0, Item::COUNT)), Ok::<_, Abort>(updates));
                // Deleting makes room again, for the record and in its bucket.
                db.run(|tx| table.delete(tx, &0)).unwrap_or_else(|e: Abort| panic!("{e}"));
                eventually("room", || db.run(|tx| table.insert(tx, Item::new(0, 0))).is_ok());
            }
        }
    }
}

#[test]
#[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
fn the_memory_limit_is_an_outcome_and_costs_nothing_else() {
    for_each(&Limits);
}

#[test]
fn attempts_and_deadlines_end_retrying() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
    let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
    let mut hopeless = |options: RunOptions<'_>| {
        session.run_with(options, |tx| {
            // The deadline comes before others give way.
            std::thread::sleep(Duration::from_millis(1));
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
    assert_eq!(
        (conflict.cause, conflict.table.as_deref(), conflict.group),
        (Abort::ReadChanged, Some("rows"), Some("hot"))
    );
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
    type Index = Hashed;
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
        assert_eq!(
            db.run(|tx| table.read(tx, &Text::new(name).unwrap(), Named::VALUE)),
            Ok::<_, Abort>(value)
        );
    }
    let error = Text::<12>::new("exactly13byte").unwrap_err();
    assert_eq!(error.to_string(), "a text of 13 bytes does not fit into Text<12>");
}

/// An error type whose conversion from the engine's panics.
#[derive(Debug)]
struct Bomb;

impl From<Abort> for Bomb {
    fn from(abort: Abort) -> Bomb {
        panic!("deliberate: {abort}");
    }
}

struct TotalUpdaters;

/// An updater that adds a number, and refuses to go beyond ten, though it declares that it never
/// fails.
#[derive(Debug, Clone, Copy)]
struct Bold(i64);

impl crate::Updater<Item> for Bold {
    type Target = Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), crate::Refused> {
        *count += self.0;
        if *count > 10 { Err(crate::Refused) } else { Ok(()) }
    }
}

impl ForProtocol for TotalUpdaters {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("items").unwrap();
        let count = || db.run(|tx| table.read(tx, &1, Item::COUNT));
        assert_eq!(db.run(|tx| table.insert(tx, Item::new(1, 0))), Ok::<_, Abort>(()));
        assert_eq!(db.run(|tx| table.update_with(tx, &1, Bold(7))), Ok::<_, Abort>(()));
        let bold =
            || catch_unwind(AssertUnwindSafe(|| db.run(|tx| table.update_with(tx, &1, Bold(7)))));
        let looks = || {
            catch_unwind(AssertUnwindSafe(|| {
                db.run(|tx| {
                    table.update_with(tx, &1, Bold(7))?;
                    table.read(tx, &1, Item::COUNT).map(drop)
                })
            }))
        };
        let refusals = match P::Versions::SPARE_WORDS {
            0 => vec![bold(), looks()],
            // The failure of a deferred update is found when its caller has returned.
            _ => {
                assert!(matches!(bold(), Ok(Ok(()))));
                vec![looks()]
            }
        };
        for refused in refusals {
            let panic = refused.expect_err("it said it never would");
            assert!(
                panic
                    .downcast_ref::<&str>()
                    .is_some_and(|message| message.contains("declared total"))
            );
            assert_eq!(count(), Ok::<_, Abort>(7));
        }
    }
}

#[test]
fn an_updater_is_held_to_being_total() {
    for_each(&TotalUpdaters);
}

struct PanicsOutsideTheClosure;

impl ForProtocol for PanicsOutsideTheClosure {
    fn run<P: Protocol>(&self) {
        // The conversion of an outcome is the user's code, and may panic: by then the attempt is
        // over.
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap_or_else(|e: Abort| panic!("{e}"));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| table.update(tx, &1, Item::COUNT.sub(500).at_least(0)).map_err(|_| Bomb))
                .is_ok()
        }));
        assert!(caught.is_err());
        assert_eq!(db.run(|tx| table.update(tx, &1, Item::COUNT.add(1))), Ok::<_, Abort>(()));
        assert_eq!(db.run(|tx| table.read(tx, &1, Item::COUNT)), Ok::<_, Abort>(1));
        // A panic of an updater ends the transaction even if the closure catches everything it can.
        let caught = catch_unwind(AssertUnwindSafe(|| {
            db.run(|tx| {
                let _ = catch_unwind(AssertUnwindSafe(|| table.update_with(tx, &1, Boom)));
                table.update(tx, &1, Item::OTHER.add(1))
            })
        }));
        assert!(caught.is_err());
        assert_eq!(db.run(|tx| table.read(tx, &1, Item::OTHER)), Ok::<_, Abort>(100));
    }
}

/// An updater that always panics.
#[derive(Debug, Clone, Copy)]
struct Boom;

impl crate::Updater<Item> for Boom {
    type Target = Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, _: &mut i64) -> Result<(), crate::Refused> {
        panic!("deliberate");
    }
}

#[test]
fn a_panic_in_a_conversion_or_an_updater_spoils_no_later_transaction() {
    for_each(&PanicsOutsideTheClosure);
}

#[test]
fn a_key_with_the_wrong_number_of_words_is_refused() {
    #[derive(Debug, Clone, Copy)]
    struct Long;
    impl crate::Key for Long {
        type Words = [u64; 64];
        const WIDTHS: &'static [u32] = &[64];
        fn words(&self) -> [u64; 64] {
            [1; 64]
        }
        fn from_words(_: &[u64]) -> Long {
            Long
        }
    }
    #[derive(Debug, Clone, Copy)]
    struct Wrong;
    impl Record for Wrong {
        type Key = Long;
        type Index = Hashed;
        type Image = [u64; 1];
        const NAME: &'static str = "Wrong";
        const GROUPS: &'static [Group] = &[Group::new("only", 1)];
        fn key(&self) -> Long {
            Long
        }
        fn store(&self, _: &mut [u64]) {}
        fn load(_: &Long, _: &[u64]) -> Wrong {
            Wrong
        }
    }
    let db = Database::new();
    let table = db.table::<Wrong>("rows").unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.run(|tx| table.put(tx, Wrong)).is_ok()
    }));
    let mut session = db.session().unwrap();
    let looked = || table.versions_of(&mut session, &Long).is_ok();
    for caught in [caught, std::panic::catch_unwind(std::panic::AssertUnwindSafe(looked))] {
        let message = *caught.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(message, "`Key::words` gives another number of words than `Key::WORDS`");
    }
}

#[test]
fn a_capacity_beyond_all_memory_is_an_error() {
    let db = Database::<Occ>::builder().memory_limit(1 << 30).build().unwrap();
    for capacity in [usize::MAX, usize::MAX / 2, 1 << 40] {
        let options = crate::TableOptions::default().capacity(capacity);
        assert_eq!(
            db.table_with::<Item>("rows", options).unwrap_err(),
            Error::MemoryLimit { limit_bytes: 1 << 30 }
        );
    }
    assert_eq!(db.memory().reserved_bytes, 0);
}

struct GarbageKeepsUp;

impl ForProtocol for GarbageKeepsUp {
    fn run<P: Protocol>(&self) {
        // More deletions per transaction than a fixed budget would collect.
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        let mut session = db.session().unwrap();
        for round in 0..300u64 {
            session
                .run(|tx| {
                    (0..100).try_for_each(|key| table.put(tx, Item::new(round * 100 + key, 0)))
                })
                .unwrap_or_else(|e: Abort| panic!("{e}"));
            session
                .run(|tx| (0..100).try_for_each(|key| table.delete(tx, &(round * 100 + key))))
                .unwrap_or_else(|e: Abort| panic!("{e}"));
            db.inner.engine.epochs.pass();
            db.inner.engine.epochs.pass();
            assert!(db.memory().garbage <= 1_000, "round {round}: {}", db.memory().garbage);
        }
    }
}

#[test]
fn garbage_of_a_busy_session_does_not_pile_up() {
    for_each(&GarbageKeepsUp);
}

#[test]
fn a_thread_that_would_wait_for_itself_is_told() {
    let db = Database::<Serial>::builder().policy(Exclusion::GlobalLock).build().unwrap();
    let (mut outer, mut inner) = (db.session().unwrap(), db.session().unwrap());
    let result: Result<(), Abort> = outer.run(|_| inner.run(|_| Ok(())));
    assert_eq!(result, Err(Abort::Nested));
    outer.run(|_| Ok::<_, Abort>(())).unwrap();
}

#[test]
fn threads_that_would_wait_for_one_another_are_told() {
    let database = || Database::<Serial>::builder().policy(Exclusion::GlobalLock).build().unwrap();
    let (one, two) = (database(), database());
    let (both, ended) = (Barrier::new(2), mpsc::channel());
    std::thread::scope(|scope| {
        for (outer, inner) in [(&one, &two), (&two, &one)] {
            let (both, send) = (&both, ended.0.clone());
            scope.spawn(move || {
                let mut met = false;
                let result = outer.run(|_| {
                    if !std::mem::replace(&mut met, true) {
                        both.wait();
                    }
                    inner.run(|_| Ok::<_, Abort>(()))
                });
                send.send(result).unwrap();
            });
        }
        let results = [(); 2].map(|()| receive("a thread", &ended.1));
        assert!(results.contains(&Err(Abort::Nested)), "one of the two: {results:?}");
        assert!(results.contains(&Ok(())), "and not the other: {results:?}");
    });
}

#[test]
fn a_deadline_passes_while_another_transaction_has_the_database_to_itself() {
    let db = Database::<Serial>::builder().policy(Exclusion::GlobalLock).build().unwrap();
    let ended = mpsc::channel();
    std::thread::scope(|scope| {
        let (db, send) = (&db, &ended.0);
        let refused = db.run(|_| {
            let send = send.clone();
            scope.spawn(move || {
                let options = RunOptions::new().deadline(Instant::now());
                send.send(db.run_with(options, |_| Ok::<_, Abort>(()))).unwrap();
            });
            Ok::<_, Abort>(receive("the deadline", &ended.1))
        });
        assert_eq!(refused, Ok(Err(Abort::DeadlinePassed)));
        // One attempt is made even after the deadline.
        assert_eq!(
            db.run_with(RunOptions::new().deadline(Instant::now()), |_| Ok::<_, Abort>(())),
            Ok(())
        );
    });
}

struct EffectsUseTheDatabase;

impl ForProtocol for EffectsUseTheDatabase {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        db.run(|tx| {
            let (db, table) = (db.clone(), table.clone());
            tx.on_commit(move || {
                db.run(|tx| table.insert(tx, Item::new(2, 2)))
                    .unwrap_or_else(|e: Abort| panic!("{e}"))
            });
            Ok::<_, Abort>(())
        })
        .unwrap();
        assert_eq!(db.run(|tx| table.read(tx, &2, Item::COUNT)), Ok::<_, Abort>(2));
    }
}

#[test]
fn an_effect_may_run_a_transaction() {
    for_each(&EffectsUseTheDatabase);
}

struct RawIterationAmongBurials;

impl ForProtocol for RawIterationAmongBurials {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Item>("rows").unwrap();
        for round in 0..200 {
            db.run(|tx| (0..50).try_for_each(|key| table.put(tx, Item::new(key, round))))
                .unwrap_or_else(|e: Abort| panic!("{e}"));
            db.run(|tx| (10..50).try_for_each(|key| table.delete(tx, &key)))
                .unwrap_or_else(|e: Abort| panic!("{e}"));
            assert_eq!(table.for_each_quiescent(|row| assert_eq!(row.count, round)), Ok(10));
        }
    }
}

#[test]
fn raw_iteration_is_not_disturbed_by_the_advancer() {
    for_each(&RawIterationAmongBurials);
}

#[test]
fn a_large_transaction_does_not_slow_the_session_for_ever() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session
        .run(|tx| (0..20_000).try_for_each(|key| table.put(tx, Item::new(key, 0))))
        .unwrap_or_else(|e: Abort| panic!("{e}"));
    for _ in 0..2 {
        session
            .run(|tx| (0..50).try_for_each(|key| table.put(tx, Item::new(key, 1))))
            .unwrap_or_else(|e: Abort| panic!("{e}"));
    }
    assert!(session.core_for_tests().state.borrow().writes.table_len_for_tests() <= 1_024);
}
