//! A replica that begins with a snapshot, or falls back to one.

use super::source::{Account, Source, accounts_of, follow};
use candide::{Abort, Database, LogOptions, Mvcc};
use candide_log_testing::SimDisk;
use std::sync::Arc;

#[test]
fn rows_that_differ_are_changed_and_handles_stay() {
    let mut source = Source::new();
    source.with_accounts(|db, accounts| {
        for id in 0..200 {
            db.run(|tx| accounts.put(tx, Account::new(id, id, 0, 1))).unwrap();
        }
    });
    let mut replica = follow(&SimDisk::new());
    source.whole().apply(&mut replica);
    let db = replica.database().clone();
    let accounts = db.table::<Account>("accounts").unwrap();
    assert_eq!(accounts_of(&db).len(), 200);
    // All rows get the unique numbers of others; some go, and others come.
    source.with_accounts(|db, accounts| {
        for id in 0..200 {
            db.run(|tx| accounts.delete(tx, id)).unwrap();
        }
        for id in 20..220 {
            let cents = if id % 3 == 0 { 1 } else { 2 };
            db.run(|tx| accounts.put(tx, Account::new(id, (id + 7) % 300, 0, cents))).unwrap();
        }
    });
    let whole = source.whole();
    replica.begin_snapshot(&whole.tables).unwrap();
    whole.apply_rows(&mut replica, 0..90);
    let cents = db.run(|tx| accounts.read(tx, 19, Account::CENTS));
    assert_eq!(cents, Ok(1), "the view is the one before");
    whole.apply_rows(&mut replica, 90..whole.rows.len());
    replica.end_snapshot(&whole.note).unwrap();
    assert_eq!(db.run(|tx| accounts.get(tx, 19, Account::CENTS)), Ok(None));
    let now = accounts_of(&db);
    assert_eq!(now.len(), 200);
    assert_eq!(now[&20], Account::new(20, 27, 0, 2));
    assert_eq!(replica.sum(), whole.sum());
    // Unique numbers are enforced again.
    let db = replica.promote().unwrap();
    let twice = db.run(|tx| accounts.put(tx, Account::new(250, 27, 0, 0)));
    assert_eq!(twice, Err(Abort::NotUnique));
}

#[test]
fn a_snapshot_that_is_interrupted_is_begun_again() {
    let mut source = Source::new();
    source.with_accounts(|db, accounts| {
        for id in 0..200 {
            db.run(|tx| accounts.put(tx, Account::new(id, id, 0, 1))).unwrap();
        }
    });
    let disk = SimDisk::new();
    let whole = source.whole();
    let mut replica = follow(&disk);
    whole.apply(&mut replica);
    replica.begin_snapshot(&whole.tables).unwrap();
    replica.database().sync().unwrap();
    drop(replica);
    let mut replica = follow(&disk);
    assert_eq!(replica.note(), None, "rows may be lacking");
    assert_eq!((replica.is_torn(), replica.last_note()), (true, Some(whole.note)));
    let refused = replica.apply(&whole.tables, &[], &whole.note).unwrap_err().to_string();
    assert!(refused.contains("not complete"), "{refused}");
    replica.begin_snapshot(&whole.tables).unwrap();
    // The follower begins anew without an end of the first attempt.
    whole.apply(&mut replica);
    assert_eq!(replica.note(), Some(whole.note));
    assert_eq!(replica.sum(), whole.sum());
}

#[test]
fn a_replica_without_memory_ends_and_its_readers_go_on() {
    let mut source = Source::new();
    source.with_accounts(|db, accounts| {
        db.run(|tx| accounts.put(tx, Account::new(1, 1, 0, 1))).unwrap();
    });
    let builder = Database::<Mvcc>::builder().memory_limit(8 << 20);
    let mut replica = builder.follow_on(Arc::new(SimDisk::new()), LogOptions::new()).unwrap();
    for object in source.objects() {
        object.apply(&mut replica);
    }
    let db = replica.database().clone();
    let accounts = db.table::<Account>("accounts").unwrap();
    source.with_accounts(|db, accounts| {
        for first in (0..60_000).step_by(1_000) {
            let put = |id| Account::new(id, id, 0, 1);
            db.run(|tx| (first..first + 1_000).try_for_each(|id| accounts.put(tx, put(id))))
                .unwrap();
        }
    });
    let failed = source.objects().iter().try_for_each(|object| {
        let records: Vec<_> = object.batch.records().collect();
        replica.apply(&object.tables, &records, &object.note)
    });
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("memory limit"), "{error}");
    assert_eq!(db.run(|tx| accounts.read(tx, 1, Account::CENTS)), Ok(1));
    assert!(replica.promote().is_err());
}
