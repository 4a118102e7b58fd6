//! A replica whose directory has been opened as a database of its own meanwhile.

use super::source::{Account, Source, accounts_of, follow};
use candide::replica::ChangedElsewhere;
use candide::{Database, LogOptions, Mvcc, Occ, OpenError, Record, Whole};
use candide_log_testing::{CrashOptions, SimDisk};
use std::sync::Arc;

#[derive(Record, Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    #[key]
    id: u64,
    count: u64,
}

fn open(disk: &SimDisk) -> Database<Occ> {
    Database::<Occ>::builder().open_on(Arc::new(disk.clone()), LogOptions::new()).unwrap()
}

fn source() -> Source {
    let source = Source::new();
    source.with_accounts(|db, accounts| {
        for id in 0..20 {
            db.run(|tx| accounts.put(tx, Account::new(id, id, 0, 1))).unwrap();
        }
        let items = db.table::<Item>("items").unwrap();
        db.run(|tx| items.put(tx, Item { id: 1, count: 1 })).unwrap();
    });
    source
}

/// Returns the disk of a replica of a source, perhaps within a snapshot.
fn replica_of(source: &mut Source, is_torn: bool) -> SimDisk {
    let disk = SimDisk::new();
    let mut replica = follow(&disk);
    for object in source.objects() {
        object.apply(&mut replica);
    }
    if is_torn {
        let whole = source.whole();
        replica.begin_snapshot(&whole.tables).unwrap();
        whole.apply_rows(&mut replica, 0..10);
        replica.database().sync().unwrap();
    }
    drop(replica);
    disk.at(disk.position())
}

/// A change that a program makes.
type Change = fn(&Database<Occ>);

#[test]
fn what_another_program_has_changed_is_neither_dropped_nor_mixed_with_the_stream() {
    let changes: [(Change, &str, bool); 7] = [
        (
            |db| {
                let accounts = db.table::<Account>("accounts").unwrap();
                db.run(|tx| accounts.insert(tx, Account::new(90, 90, 0, 1))).unwrap();
            },
            "rows of table \"accounts\" were changed",
            true,
        ),
        (
            |db| {
                let accounts = db.table::<Account>("accounts").unwrap();
                db.run(|tx| accounts.update(tx, 3, Account::CENTS.add(1))).unwrap();
                drop(accounts);
                db.checkpoint().unwrap();
            },
            "rows of table \"accounts\" were changed",
            true,
        ),
        (
            |db| {
                let items = db.table::<Item>("items").unwrap();
                db.run(|tx| items.delete(tx, 1)).unwrap();
            },
            "rows of table \"items\" were changed",
            true,
        ),
        (
            |db| {
                let items = db.table::<Item>("others").unwrap();
                db.run(|tx| items.insert(tx, Item { id: 1, count: 1 })).unwrap();
            },
            "table \"others\" was made",
            true,
        ),
        (
            |db| {
                let numbers = db.sequence("numbers").unwrap();
                db.run(|tx| numbers.next(tx)).unwrap();
            },
            "was made",
            true,
        ),
        (
            |db| db.rename_table("items", "others").unwrap(),
            "a table was renamed to \"others\"",
            false,
        ),
        (|db| db.drop_table("items").unwrap(), "a table was dropped", false),
    ];
    for is_torn in [false, true] {
        let disk = replica_of(&mut source(), is_torn);
        for (change, what, changes_rows) in changes {
            let disk = disk.at(disk.position());
            change(&open(&disk));
            let sum = |disk: &SimDisk| -> usize {
                let db = open(disk);
                let accounts = db.table::<Account>("accounts").unwrap();
                let all = db.run(|tx| accounts.iter(tx, Whole).collect::<Result<Vec<_>, _>>());
                all.unwrap().len()
            };
            let before = sum(&disk);
            for _ in 0..2 {
                let followed = Database::<Mvcc>::builder()
                    .follow_on(Arc::new(disk.clone()), LogOptions::new());
                if is_torn && !changes_rows {
                    // A snapshot that is not complete gives all names again.
                    assert!(followed.is_ok(), "{what}");
                    continue;
                }
                let Err(OpenError::Target(refused)) = followed else {
                    panic!("it follows: {what}")
                };
                let changed: &ChangedElsewhere = refused.downcast_ref().expect("the reason");
                assert!(changed.what.contains(what), "{changed}");
                assert!(changed.note.is_some());
            }
            assert_eq!(sum(&disk), before);
        }
    }
}

#[test]
fn a_directory_in_which_nothing_has_changed_goes_on() {
    let mut source = source();
    for is_torn in [false, true] {
        let disk = replica_of(&mut source, is_torn);
        for round in 0..3 {
            let db = open(&disk);
            let accounts = db.table::<Account>("accounts").unwrap();
            assert!(db.run(|tx| accounts.get(tx, 1, Whole)).unwrap().is_some());
            if round > 0 {
                db.run(|tx| accounts.insert(tx, Account::new(90, 90, 0, 1))).unwrap();
                db.run(|tx| accounts.delete(tx, 90)).unwrap();
            }
            drop(accounts);
            if round > 1 {
                db.checkpoint().unwrap();
            }
            drop(db);
            let mut replica = follow(&disk);
            assert_eq!(replica.note().is_none(), is_torn && round == 0);
            source.whole().apply(&mut replica);
            assert_eq!(accounts_of(replica.database()).len(), 20);
        }
        source = self::source();
    }
}

#[test]
fn tables_that_an_object_has_changed_before_a_crash_are_not_taken_for_those_of_others() {
    let mut source = source();
    let disk = SimDisk::new();
    let mut replica = follow(&disk);
    let mut apply = |source: &mut Source| {
        for object in source.objects() {
            object.apply(&mut replica);
        }
    };
    apply(&mut source);
    for round in 0..2 {
        source.with(|db| {
            db.rename_table("accounts", "former").unwrap();
            db.drop_table("items").unwrap();
            let items = db.table::<Item>("items").unwrap();
            db.run(|tx| items.put(tx, Item { id: 1, count: 2 })).unwrap();
        });
        apply(&mut source);
        source.with(|db| db.rename_table("former", "accounts").unwrap());
        source.with_accounts(|db, accounts| {
            db.run(|tx| accounts.put(tx, Account::new(50 + round, 50 + round, 0, 1))).unwrap();
        });
        apply(&mut source);
    }
    source.with(|db| {
        db.drop_table("items").unwrap();
        db.rename_table("accounts", "last").unwrap();
    });
    let whole = source.whole();
    whole.apply(&mut replica);
    replica.database().sync().unwrap();
    drop(replica);
    let options = CrashOptions {
        first: 0,
        last: disk.position(),
        exhaustive: 0,
        pieces: 1,
        samples: 1,
        seed: 7,
    };
    let mut count = 0;
    for state in disk.crash_states(&options) {
        let disk = state.disk();
        let followed = Database::<Mvcc>::builder().follow_on(Arc::new(disk), LogOptions::new());
        match followed {
            Ok(_) => count += 1,
            Err(OpenError::Target(refused)) => panic!("{refused}: {}", state.describe()),
            Err(error) => panic!("{error}: {}", state.describe()),
        }
    }
    assert!(count > 100, "{count}");
}
