//! A replica whose machine loses power.

use super::source::{Account, Source, accounts_of, follow};
use candide::replica::NOTE_WORDS;
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::BTreeMap;

#[test]
fn after_each_crash_the_rows_are_those_of_the_note() {
    let mut source = Source::new();
    let disk = SimDisk::new();
    let mut replica = follow(&disk);
    let mut states = BTreeMap::new();
    for round in 0..3u64 {
        source.with_accounts(|db, accounts| {
            for id in 0..40 {
                let account = Account::new(id, id * 2 + round, 0, round as i64);
                db.run(|tx| accounts.put(tx, account)).unwrap();
                db.run(|tx| accounts.delete(tx, id)).unwrap();
                db.run(|tx| accounts.put(tx, account)).unwrap();
            }
        });
        for object in source.objects() {
            object.apply(&mut replica);
            states.insert(object.note[0], (accounts_of(replica.database()), replica.sum()));
        }
        replica.database().sync().unwrap();
    }
    drop(replica);
    let options = CrashOptions {
        first: 0,
        last: disk.position(),
        exhaustive: 0,
        pieces: 1,
        samples: 1,
        seed: 7,
    };
    let mut found = BTreeMap::new();
    for state in disk.crash_states(&options) {
        let replica = follow(&state.disk());
        let Some(note) = replica.note() else { continue };
        assert_eq!(note, [note[0]; NOTE_WORDS]);
        let (accounts, sum) = &states[&note[0]];
        assert_eq!(accounts_of(replica.database()), *accounts, "{}", state.describe());
        assert_eq!(replica.sum(), *sum, "{}", state.describe());
        *found.entry(note[0]).or_insert(0) += 1;
    }
    assert!(found.len() > 1, "{found:?}");
}

#[test]
fn an_object_whose_application_was_interrupted_is_applied_from_its_beginning() {
    let mut source = Source::new();
    source.with_accounts(|db, accounts| {
        for id in 0..2_000 {
            db.run(|tx| accounts.put(tx, Account::new(id, id, 0, 1))).unwrap();
        }
    });
    let objects = source.objects();
    let disk = SimDisk::new();
    let mut replica = follow(&disk);
    // The last record names a table that does not exist.
    let records: Vec<_> = objects.iter().flat_map(|object| object.batch.records()).collect();
    assert!(records.iter().map(|record| record.words().len()).sum::<usize>() > 3 * 4096);
    let mut records: Vec<_> = objects.iter().flat_map(|object| object.batch.records()).collect();
    let mut other = Source::new();
    other.with(|db| {
        db.table::<Account>("one").unwrap();
        let accounts = db.table::<Account>("two").unwrap();
        db.run(|tx| accounts.put(tx, Account::new(1, 1, 1, 1))).unwrap();
    });
    let others = other.objects();
    records.extend(others.iter().flat_map(|object| object.batch.records()));
    let tables = &objects[0].tables;
    let error = replica.apply(tables, &records, &[1; NOTE_WORDS]).unwrap_err();
    assert_eq!(error.to_string(), "there is no table with number 2");
    let error = replica.apply(tables, &[], &[1; NOTE_WORDS]).unwrap_err();
    assert_eq!(error.to_string(), "the replica has ended by an earlier error");
    // Some transactions have committed, and neither the program nor a recovery sees them.
    assert_ne!(replica.sum(), 0);
    let snapshot = replica.database().snapshot();
    replica.database().sync().unwrap();
    assert_eq!(replica.database().durability().unwrap().durable, snapshot.timestamp());
    drop(snapshot);
    replica.promote().unwrap_err();
    let mut replica = follow(&disk);
    assert_eq!((replica.note(), replica.sum()), (None, 0));
    for object in &objects {
        object.apply(&mut replica);
    }
    assert_eq!(replica.sum(), source.whole().sum());
}
