//! Tests that memory and databases are released.

use crate::common::{Item, database_with, eventually, share, spawn};
use candide::{Abort, Database, Protocol, Table};

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: deleted_rows_are_freed_while_their_session_idles
);
fn deleted_rows_are_freed_while_their_session_idles<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("rows");
    let mut session = db.session().unwrap();
    let mut reserved = 0;
    for round in 0..20u64 {
        for key in 0..1_000 {
            let key = round * 1_000 + key;
            session.run(|tx| table.insert(tx, Item::new(key, 0))).unwrap();
        }
        for key in 0..1_000 {
            session.run(|tx| table.delete(tx, &(round * 1_000 + key))).unwrap();
        }
        // The session is idle now, so it does not collect its garbage itself.
        eventually("collection for an idle session", || db.memory().garbage == 0);
        if round == 1 {
            reserved = db.memory().reserved_bytes;
        }
    }
    // The size of the index depends on the places of the deleted rows' records when it grew.
    assert!(
        db.memory().reserved_bytes <= 2 * reserved,
        "{} after {reserved}",
        db.memory().reserved_bytes
    );
}

protocol_tests!(
    #[cfg_attr(sanitized, ignore = "it counts the memory of slabs, and there are none")]
    all: the_memory_of_a_table_used_as_queue_is_bounded
);
fn the_memory_of_a_table_used_as_queue_is_bounded<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("queue");
    let mut session = db.session().unwrap();
    let mut reserved = 0;
    for key in 0..share(60_000u64) {
        session
            .run(|tx| {
                table.insert(tx, Item::new(key, 0))?;
                if key >= 100 { table.delete(tx, &(key - 100)) } else { Ok(()) }
            })
            .unwrap();
        if key % 250 == 0 {
            // A busy machine may not have let the advancer run. The test waits here, so that the
            // amount of garbage does not depend on this.
            eventually("the bound", || {
                db.memory().garbage < 750 || session.run(|_| Ok(())).is_err()
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

protocol_tests!(concurrent: sessions_that_idle_panic_or_end_do_not_delay_reclamation);
fn sessions_that_idle_panic_or_end_do_not_delay_reclamation<P: Protocol>() {
    let (db, table) = database_with::<Item, P>("rows");
    db.run(|tx| table.insert(tx, Item::new(1, 0))).unwrap();
    // One session is idle, one is dropped by a panic, one is dropped at the end of its thread, and
    // one is used while its thread ends.
    let mut idle = db.session().unwrap();
    idle.run(|tx| table.read(tx, 1, Item::COUNT)).unwrap();
    std::thread::scope(|scope| {
        let panicking = spawn(scope, || {
            let mut session = db.session().unwrap();
            let _: Result<(), Abort> = session.run(|tx| {
                table.update(tx, 1, Item::COUNT.add(1))?;
                panic!("deliberate");
            });
        });
        assert!(panicking.join().is_err());
        spawn(scope, || db.run(|tx| table.update(tx, 1, Item::COUNT.add(1))).unwrap());
    });
    struct AtThreadEnd<P: Protocol>(Database<P>, Table<Item, P>);
    impl<P: Protocol> Drop for AtThreadEnd<P> {
        fn drop(&mut self) {
            let Self(db, table) = self;
            db.run(|tx| table.update(tx, 1, Item::COUNT.add(1))).unwrap();
        }
    }
    let (inner_db, inner_table) = (db.clone(), table.clone());
    std::thread::spawn(move || {
        thread_local! {
            static KEPT: std::cell::RefCell<Option<Box<dyn std::any::Any>>> = const { std::cell::RefCell::new(None) };
        }
        // This value is registered before the thread's list of cached sessions. The two may be
        // destroyed in either order.
        KEPT.with(|kept| *kept.borrow_mut() = Some(Box::new(AtThreadEnd(inner_db.clone(), inner_table.clone()))));
        inner_db.run(|tx| inner_table.read(tx, 1, Item::COUNT)).unwrap();
    })
    .join()
    .unwrap();
    assert_eq!(db.run(|tx| table.read(tx, 1, Item::COUNT)), Ok(2));
    db.run(|tx| table.delete(tx, 1)).unwrap();
    eventually("freeing behind idle and dead sessions", || db.memory().garbage == 0);
    drop(idle);
}

#[test]
fn a_table_or_session_keeps_its_database_alive() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    drop(db);
    session.run(|tx| table.insert(tx, Item::new(1, 1))).unwrap();
    drop(session);
    assert_eq!(table.for_each_quiescent(|row| assert_eq!(row.count, 1)), Ok(1));
}
