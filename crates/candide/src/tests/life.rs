//! Tests that sessions, memory and databases end without leaving anything behind.

use super::rows::Item;
use super::waiting::eventually;
use crate::engine::{Protocol, Versions};
use crate::schema::{RowReader, RowWriter};
use crate::{Abort, Database, Group, Hashed, Level, LogOptions, Occ, Record};
use candide_log_testing::SimDisk;
use std::sync::Arc;

protocol_tests!(all: failed_inserts_leave_no_record);
fn failed_inserts_leave_no_record<P: Protocol>() {
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

#[test]
fn a_dropped_database_is_freed_although_threads_keep_its_sessions() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item::new(1, 1))).unwrap();
    let weak = Arc::downgrade(&db.inner);
    drop((db, table));
    eventually("the drop of the database", || weak.strong_count() == 0);
    // The stale session is dropped when this thread uses the next database.
    let db = Database::new();
    db.run(|_| Ok(())).unwrap();
}

/// The logger, the advancer, and threads that end refer to the memory of a database for a moment. A
/// thread that is interrupted at that moment must not delay the end of the database.
#[test]
fn a_visit_of_the_memory_does_not_keep_the_database_open() {
    let disk = SimDisk::new();
    let options = LogOptions::new().acknowledge(Level::Memory);
    let options = options.flush_every(std::time::Duration::from_secs(3600));
    let open = || Database::<Occ>::builder().open_on(Arc::new(disk.clone()), options.clone());
    for rows in 0..3 {
        let db = open().unwrap();
        let items = db.table::<Item>("items").unwrap();
        assert_eq!(items.for_each_quiescent(|_| ()), Ok(rows as usize), "all is written");
        db.run(|tx| items.insert(tx, Item::new(rows, 5))).unwrap();
        let visit = Arc::downgrade(&db.inner).upgrade();
        drop((db, items));
        // The directory is free while the visit continues.
        assert!(open().is_ok());
        drop(visit);
    }
}

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: the_memory_limit_fails_one_transaction_and_leaves_the_database_usable
);
fn the_memory_limit_fails_one_transaction_and_leaves_the_database_usable<P: Protocol>() {
    for limit in [0, 4 << 10, 100 << 10, 300 << 10, 3 << 20] {
        let db = Database::<P>::builder().memory_limit(limit).build().unwrap();
        let Ok(table) = db.table::<Item>("rows") else {
            assert!(limit < 4 << 10);
            continue;
        };
        let (mut rows, mut updates) = (0, 0);
        let refused = loop {
            // The refusal does not affect the rest of the transaction.
            let inserted = db.run(|tx| {
                let inserted = table.insert(tx, Item::new(rows, 0));
                if rows > 0 {
                    table.update(tx, 0, Item::COUNT.add(1))?;
                }
                match inserted {
                    Err(Abort::MemoryLimit) => Ok(false),
                    other => other.map(|()| true),
                }
            });
            updates += i64::from(inserted.is_ok() && rows > 0);
            match inserted {
                Ok(true) => rows += 1,
                Ok(false) => break rows,
                // If an update makes a version, it is refused like an insert.
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
            // An operation that needs no memory is not refused for lack of memory, whatever path it
            // takes.
            let again = || Item::new(0, 0);
            assert_eq!(db.run(|tx| table.insert(tx, again())), Err(Abort::Duplicate));
            assert_eq!(db.run(|tx| table.insert_many(tx, [again()])), Err(Abort::Duplicate));
            assert_eq!(db.run(|tx| table.read(tx, 0, Item::COUNT)), Ok(updates));
            // A delete frees room for a record, and room in the record's bucket.
            db.run(|tx| table.delete(tx, 0)).unwrap();
            eventually("room", || db.run(|tx| table.insert(tx, Item::new(0, 0))).is_ok());
        }
    }
}

#[test]
fn a_key_with_the_wrong_number_of_words_is_refused() {
    #[derive(Debug, Clone, Copy)]
    struct Long;
    impl crate::schema::AsKey<Long> for Long {
        type Given = Self;

        fn into_key(self) -> Option<Self> {
            Some(self)
        }
    }
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
        const META: crate::schema::Meta =
            crate::schema::Meta::new("Wrong", &[Group::new("only", 1)]);
        fn key(&self) -> Long {
            Long
        }
        fn store(&self, _: &mut RowWriter<'_>) {}
        fn load(_: &Long, _: &RowReader<'_>) -> Wrong {
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

protocol_tests!(all: garbage_of_a_busy_session_is_bounded);
fn garbage_of_a_busy_session_is_bounded<P: Protocol>() {
    // Each transaction makes more deletes than a collection with a fixed budget would keep up with.
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    for round in 0..300u64 {
        session
            .run(|tx| (0..100).try_for_each(|key| table.put(tx, Item::new(round * 100 + key, 0))))
            .unwrap();
        session
            .run(|tx| (0..100).try_for_each(|key| table.delete(tx, &(round * 100 + key))))
            .unwrap();
        db.inner.engine.epochs.pass();
        db.inner.engine.epochs.pass();
        assert!(db.memory().garbage <= 1_000, "round {round}: {}", db.memory().garbage);
    }
}

#[test]
fn a_session_is_fast_again_after_a_large_transaction() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| (0..20_000).try_for_each(|key| table.put(tx, Item::new(key, 0)))).unwrap();
    for _ in 0..2 {
        session.run(|tx| (0..50).try_for_each(|key| table.put(tx, Item::new(key, 1)))).unwrap();
    }
    assert!(session.core_for_tests().state.borrow().writes.places_capacity_for_tests() <= 1_024);
}
