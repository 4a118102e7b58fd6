//! What the program reads while objects are applied.

use super::source::{Account, Object, Source, follow};
use candide::Whole;
use candide_log_testing::SimDisk;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const ACCOUNTS: u64 = 100;

/// Returns objects that move money in so many transactions that each takes several transactions to
/// apply. Within an object the sum of all accounts is never that of its ends.
fn objects() -> Vec<Object> {
    let mut source = Source::new();
    source.with_accounts(|db, accounts| {
        db.run(|tx| {
            (0..ACCOUNTS).try_for_each(|id| accounts.insert(tx, Account::new(id, id, 0, 0)))
        })
        .unwrap();
    });
    let mut objects = source.objects();
    for _ in 0..20 {
        source.with_accounts(|db, accounts| {
            let add = |first: u64, second: Option<u64>| {
                db.run(|tx| {
                    if let Some(second) = second {
                        accounts.update(tx, second, Account::CENTS.sub(1))?;
                    }
                    accounts.update(tx, first, Account::CENTS.add(1))
                })
                .unwrap();
            };
            add(0, None);
            (1..1_000).for_each(|step| add(step % ACCOUNTS, Some((step * 7 + 1) % ACCOUNTS)));
            db.run(|tx| accounts.update(tx, 1, Account::CENTS.sub(1))).unwrap();
        });
        let blocks = source.objects();
        // All blocks of the piece are one object.
        let records: Vec<u64> = blocks
            .iter()
            .flat_map(|block| block.batch.records())
            .flat_map(|record| record.words().to_vec())
            .collect();
        let mut batches = candide_log::batches::Batches::default();
        let batch = batches.add(u64::MAX - 1, records).unwrap();
        let note = blocks.last().unwrap().note;
        objects.push(Object { tables: Vec::new(), batch, note });
    }
    objects
}

#[test]
fn readers_see_the_state_after_whole_objects_and_never_fail() {
    let objects = objects();
    let mut replica = follow(&SimDisk::new());
    let (first, rest) = objects.split_first().unwrap();
    first.apply(&mut replica);
    let db = replica.database().clone();
    let accounts = db.table::<Account>("accounts").unwrap();
    let is_over = AtomicBool::new(false);
    let sum_is_zero = |sum: i64| assert_eq!(sum, 0, "half an object is seen");
    thread::scope(|scope| {
        let (db, accounts, is_over) = (&db, &accounts, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                sum_is_zero(db.read_view(|tx| accounts.sum(tx, Account::CENTS)).unwrap());
            }
        });
        scope.spawn(move || {
            let mut session = db.session().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let sum = session.run(|tx| {
                    (0..ACCOUNTS)
                        .map(|id| accounts.read(tx, id, Account::CENTS))
                        .sum::<Result<i64, _>>()
                });
                sum_is_zero(sum.unwrap());
            }
        });
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let snapshot = db.snapshot();
                let mut sum = 0;
                let each = |_, row: Account| sum += row.cents;
                snapshot.for_each_unordered(accounts, Whole, each).unwrap();
                sum_is_zero(sum);
            }
        });
        for object in rest {
            object.apply(&mut replica);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_snapshot_of_the_program_stays_as_it_is() {
    let objects = objects();
    let mut replica = follow(&SimDisk::new());
    objects[0].apply(&mut replica);
    let db = replica.database().clone();
    let accounts = db.table::<Account>("accounts").unwrap();
    let snapshots: Vec<_> = objects[1..4]
        .iter()
        .map(|object| {
            object.apply(&mut replica);
            let cents = |id: u64| db.run(|tx| accounts.read(tx, id, Account::CENTS)).unwrap();
            (db.snapshot(), [cents(0), cents(1), cents(2)])
        })
        .collect();
    objects[4..].iter().for_each(|object| object.apply(&mut replica));
    for (snapshot, expected) in snapshots {
        let cents = |id: u64| snapshot.run(|tx| accounts.read(tx, id, Account::CENTS)).unwrap();
        assert_eq!([cents(0), cents(1), cents(2)], expected);
    }
}
