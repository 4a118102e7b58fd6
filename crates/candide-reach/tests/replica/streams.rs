//! A replica after a stream of objects.

use super::source::{Account, Source, accounts_of, follow};
use candide::{Abort, Database, Error, Mvcc, Occ, Record, Whole};
use candide_log_testing::SimDisk;

#[derive(Record, Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    #[key]
    name: u32,
    #[key]
    place: u32,
    count: u64,
}

/// Changes accounts at random: rows come, go, change in one group or in all.
fn change(db: &Database<Occ>, seed: u64, steps: u64) {
    let accounts = db.table::<Account>("accounts").unwrap();
    let mut random = seed;
    let mut next = |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for _ in 0..steps {
        let (id, other, number, cents) = (next(100), next(100), next(300), next(1000) as i64);
        let done = db.run(|tx| match next(5) {
            0 => accounts.put(tx, Account::new(id, number, next(9) as u32, cents)),
            1 => accounts.delete_if_present(tx, id).map(drop),
            2 => {
                // Two rows exchange their unique numbers.
                let (a, b) = (accounts.get(tx, id, Whole)?, accounts.get(tx, other, Whole)?);
                if let (Some(a), Some(b)) = (a, b)
                    && id != other
                {
                    accounts.put(tx, Account { number: b.number, ..a })?;
                    accounts.put(tx, Account { number: a.number, ..b })?;
                }
                Ok(())
            }
            _ => accounts.update_if_present(tx, id, Account::CENTS.add(cents)).map(drop),
        });
        assert!(matches!(done, Ok(()) | Err(Abort::NotUnique)), "{done:?}");
    }
}

#[test]
fn a_replica_has_what_the_other_database_has_after_each_object() {
    let mut source = Source::new();
    let disk = SimDisk::new();
    let mut replica = follow(&disk);
    for round in 0..6 {
        source.with(|db| change(db, round, 40 + 400 * (round % 2)));
        if round == 2 {
            source.with(|db| {
                let items = db.table::<Item>("items").unwrap();
                db.run(|tx| items.put(tx, Item { name: 1, place: 2, count: 3 })).unwrap();
            });
        }
        for object in source.objects() {
            object.apply(&mut replica);
        }
        let mut expected = Default::default();
        source.with_accounts(|db, accounts| {
            let all = (0..300).filter_map(|id| {
                db.run(|tx| accounts.get(tx, id, Whole)).unwrap().map(|row| (id, row))
            });
            expected = all.collect();
        });
        assert_eq!(accounts_of(replica.database()), expected);
    }
    let items = replica.database().table::<Item>("items").unwrap();
    let count = replica.database().run(|tx| items.read(tx, (1, 2), Item::COUNT));
    assert_eq!(count, Ok(3));
    assert_eq!(replica.sum(), source.whole().sum());
    drop((replica, items));
    let replica = follow(&disk);
    assert_eq!(replica.sum(), source.whole().sum(), "the sums are recovered");
}

#[test]
fn tables_get_other_names_and_are_dropped() {
    let mut source = Source::new();
    let mut replica = follow(&SimDisk::new());
    let apply = |source: &mut Source, replica: &mut _| {
        for object in source.objects() {
            object.apply(replica);
        }
    };
    source.with_accounts(|db, accounts| {
        db.run(|tx| accounts.insert(tx, Account::new(1, 1, 1, 10))).unwrap();
    });
    apply(&mut source, &mut replica);
    let db = replica.database().clone();
    let accounts = db.table::<Account>("accounts").unwrap();
    source.with(|db| {
        db.rename_table("accounts", "former").unwrap();
        let accounts = db.table::<Account>("accounts").unwrap();
        db.run(|tx| accounts.insert(tx, Account::new(1, 1, 1, 20))).unwrap();
    });
    apply(&mut source, &mut replica);
    assert_eq!(accounts.name(), "former");
    assert_eq!(db.run(|tx| accounts.read(tx, 1, Account::CENTS)), Ok(10));
    let new = db.table::<Account>("accounts").unwrap();
    assert_eq!(db.run(|tx| new.read(tx, 1, Account::CENTS)), Ok(20));
    source.with(|db| {
        db.drop_table("former").unwrap();
        let other = db.table::<Item>("former").unwrap();
        db.run(|tx| other.insert(tx, Item { name: 1, place: 1, count: 30 })).unwrap();
    });
    apply(&mut source, &mut replica);
    assert_eq!(db.run(|tx| accounts.get(tx, 1, Account::CENTS)), Err(Abort::TableDropped));
    let former = db.table::<Item>("former").unwrap();
    assert_eq!(db.run(|tx| former.read(tx, (1, 1), Item::COUNT)), Ok(30));
    assert_eq!(replica.sum(), source.whole().sum());
}

#[test]
fn the_program_cannot_write_before_the_promotion() {
    let mut source = Source::new();
    source.with_accounts(|db, accounts| {
        let numbers = db.sequence("accounts").unwrap();
        db.run(|tx| {
            assert_eq!(numbers.next(tx)?, 1);
            accounts.insert(tx, Account::new(1, 1, 1, 10))
        })
        .unwrap();
    });
    let mut replica = follow(&SimDisk::new());
    assert_eq!(replica.note(), None);
    let db = replica.database().clone();
    let refused = |error: Error, call: &str| {
        assert_eq!(error.to_string().split(" is refused").next(), Some(call), "{error}");
    };
    refused(db.table::<Account>("accounts").unwrap_err(), "a new table");
    for object in source.objects() {
        object.apply(&mut replica);
    }
    let accounts = db.table::<Account>("accounts").unwrap();
    let numbers = db.sequence("accounts").unwrap();
    let put = |cents| db.run(|tx| accounts.put(tx, Account::new(2, 2, 1, cents)));
    assert_eq!(put(1), Err(Abort::ReadOnly));
    assert_eq!(db.run(|tx| accounts.update(tx, 1, Account::CENTS.add(1))), Err(Abort::ReadOnly));
    assert_eq!(db.run(|tx| accounts.delete(tx, 1)), Err(Abort::ReadOnly));
    assert_eq!(db.run(|tx| numbers.next(tx)), Err(Abort::ReadOnly));
    refused(db.rename_table("accounts", "others").unwrap_err(), "another name of a table");
    refused(db.drop_table("accounts").unwrap_err(), "a drop of a table");
    let mut session = db.session().unwrap();
    assert_eq!(session.run(|tx| accounts.delete(tx, 1)), Err(Abort::ReadOnly));
    // The other database draws more numbers meanwhile.
    source.with(|db| {
        let numbers = db.sequence("accounts").unwrap();
        db.run(|tx| (0..3_000).try_for_each(|_| numbers.next(tx).map(drop))).unwrap();
    });
    for object in source.objects() {
        object.apply(&mut replica);
    }
    let promoted = replica.promote().unwrap();
    put(5).unwrap();
    session.run(|tx| accounts.delete(tx, 1)).unwrap();
    let number = promoted.run(|tx| numbers.next(tx)).unwrap();
    assert!(number > 3_001, "{number}");
    promoted.table::<Item>("items").unwrap();
    assert_eq!(accounts_of(&promoted).len(), 1);
}

#[test]
fn a_row_type_that_differs_is_refused_and_the_stream_goes_on() {
    #[derive(Record, Clone, Copy, Debug)]
    struct Other {
        #[key]
        id: u64,
        cents: u32,
    }
    let mut source = Source::new();
    let mut replica = follow(&SimDisk::new());
    for cents in [10, 20] {
        source.with_accounts(|db, accounts| {
            db.run(|tx| accounts.put(tx, Account::new(1, 1, 1, cents))).unwrap();
        });
        for object in source.objects() {
            object.apply(&mut replica);
        }
        let refused = replica.database().table::<Other>("accounts").unwrap_err().to_string();
        assert!(refused.contains("number"), "{refused}");
        let _: Database<Mvcc> = replica.database().clone();
    }
    assert_eq!(accounts_of(replica.database())[&1].cents, 20);
}

#[test]
fn a_directory_of_another_kind_is_refused() {
    let disk = SimDisk::new();
    let options = candide::LogOptions::new;
    let db = Database::<Mvcc>::builder().open_on(disk.clone().into_arc(), options()).unwrap();
    db.table::<Account>("accounts").unwrap();
    db.close().unwrap();
    let refused = Database::<Mvcc>::builder().follow_on(disk.into_arc(), options()).unwrap_err();
    assert!(refused.to_string().contains("does not follow"), "{refused}");
}

trait IntoArc {
    fn into_arc(self) -> std::sync::Arc<SimDisk>;
}

impl IntoArc for SimDisk {
    fn into_arc(self) -> std::sync::Arc<SimDisk> {
        std::sync::Arc::new(self)
    }
}
