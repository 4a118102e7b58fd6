//! Tests that an attempt releases all second words, however it ends.

use super::super::histories::{Deliberate, breaks};
use super::super::rows::{Item, OfCount};
use super::super::transactions::{CONFLICT, ONCE, run};
use super::{Scene, assert_free, base, cell, locking, scene};
use crate::locks::Lock;
use crate::policy::{Policies, Policy};
use crate::protocols::Occ;
use crate::sync::Point;
use crate::tests::interleaving::acting;
use crate::{Abort, Table, Tx, Whole};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Uses rows in every way in which a transaction may lock them.
fn use_rows(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    table.read(tx, 0, Item::COUNT)?;
    table.read_for_update(tx, 1, Item::COUNT)?;
    table.update(tx, 2, Item::COUNT.add(1))?;
    table.modify(tx, 3, Item::COUNT, |count| *count += 1)?;
    table.read(tx, 4, Whole)?;
    table.update(tx, 4, Item::OTHER.add(1))?;
    table.delete(tx, 5)?;
    table.insert(tx, Item::new(5, 1))?;
    table.delete(tx, 6)?;
    table.insert(tx, Item::new(20, 1))?;
    table.get(tx, 30, Item::COUNT)?;
    table.iter(tx, Item::COUNT).for_each(drop)
}

/// A transaction that ends in a special way, with its name and its result; `None` if it panics.
type Ending = (
    &'static str,
    Option<Result<(), Abort>>,
    fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort>,
);

const ENDINGS: [Ending; 8] = [
    ("a commit", Some(Ok(())), use_rows),
    ("an error", Some(Err(Abort::NotFound)), |table, tx| {
        use_rows(table, tx)?;
        Err(Abort::NotFound)
    }),
    ("a guard", Some(Err(Abort::Guard)), |table, tx| {
        use_rows(table, tx)?;
        table.update(tx, 7, Item::COUNT.sub(1).at_least(0))
    }),
    ("a row that is missing", Some(Err(Abort::NotFound)), |table, tx| {
        use_rows(table, tx)?;
        table.update(tx, 31, Item::COUNT.add(1))
    }),
    ("a row that is there", Some(Err(Abort::Duplicate)), |table, tx| {
        use_rows(table, tx)?;
        table.insert(tx, Item::new(7, 0))
    }),
    ("a panic", None, |table, tx| {
        use_rows(table, tx)?;
        resume_unwind(Box::new(Deliberate))
    }),
    ("a panic of an updater", None, |table, tx| {
        use_rows(table, tx)?;
        table.update_with(tx, 7, OfCount(breaks))
    }),
    ("reads alone", Some(Ok(())), |table, tx| table.iter(tx, Item::COUNT).for_each(drop)),
];

#[test]
fn every_end_of_an_attempt_releases_all_second_words() {
    for policy in locking() {
        for (what, wanted, body) in ENDINGS {
            let when = format!("{policy}, after {what}");
            let Scene { db, table, sessions: [mut session, mut other, _] } = scene(policy);
            let ended =
                catch_unwind(AssertUnwindSafe(|| session.with(ONCE()).run(|tx| body(&table, tx))));
            match ended {
                Ok(ended) => assert_eq!(Some(ended), wanted, "{when}"),
                Err(panic) => assert!(panic.is::<Deliberate>() && wanted.is_none(), "{when}"),
            }
            assert_free(&table, &when);
            let taken = db.stats().locks.taken;
            let reads_only = what == "reads alone" && policy == Policy::Swiss;
            // Under the last policies, only a commit takes locks.
            let takes = !reads_only
                && !matches!(
                    policy,
                    Policy::Adaptive | Policy::DeferredTwoPhase | Policy::Pipelined
                );
            assert!(taken > 0 || !takes, "{when}: no lock was taken");
            run(&mut other, |tx| table.update(tx, 7, Item::COUNT.add(1)));
        }
    }
}

#[test]
fn an_attempt_that_meets_a_conflict_releases_all_second_words() {
    for policy in locking() {
        let Scene { table, sessions: [mut session, mut other, _], .. } = scene(policy);
        // The transaction of the same thread does without the lock.
        let ended = session.with(ONCE()).run(|tx| {
            table.read(tx, 7, Item::COUNT)?;
            use_rows(&table, tx)?;
            run(&mut other, |tx| table.update(tx, 7, Item::COUNT.add(1)));
            Ok(())
        });
        assert_eq!(ended, CONFLICT, "{policy}");
        assert_free(&table, policy.name());
        // The row is deleted between the closure and the lock.
        let (rows, mut killer) = (table.clone(), other);
        let delete = move || run(&mut killer, |tx| rows.delete(tx, 7));
        let ended = acting(Point::Unlocked, delete, || {
            session.with(ONCE()).run(|tx| {
                table.update(tx, 7, Item::COUNT.add(1))?;
                use_rows(&table, tx)
            })
        });
        assert_eq!(ended, CONFLICT, "{policy}");
        assert_free(&table, policy.name());
    }
}

#[test]
fn locks_in_tables_of_all_policies_are_free_after_one_transaction() {
    let db = crate::Database::<Occ>::builder()
        .policy(Policies::mixed())
        .manual_epochs(1)
        .build()
        .unwrap();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let tables = names.map(|name| db.table::<Item>(name).unwrap());
    assert_eq!(tables.each_ref().map(Table::policy), Policy::ALL);
    let mut session = db.session().unwrap();
    for table in &tables {
        run(&mut session, |tx| (0..8).try_for_each(|id| table.insert(tx, Item::new(id, 0))));
    }
    run(&mut session, |tx| tables.iter().try_for_each(|table| use_rows(table, tx)));
    tables[1..].iter().for_each(|table| assert_free(table, table.policy().name()));
}

#[test]
fn locks_on_rows_of_all_policies_are_free_after_one_transaction() {
    let Scene { db, table, sessions: [mut session, ..] } = scene(Policies::mixed_rows());
    assert_eq!(db.properties().name, "mixed");
    let more = 100..356;
    run(&mut session, |tx| more.clone().try_for_each(|id| table.insert(tx, Item::new(id, 0))));
    let policy = |key| base(&db).locks.policies.at(cell(&table, key));
    let has_none = |wanted: &Policy| more.clone().all(|key| policy(key) != *wanted);
    assert_eq!(Policy::ALL.into_iter().filter(has_none).collect::<Vec<_>>(), []);
    run(&mut session, |tx| use_rows(&table, tx));
    run(&mut session, |tx| {
        more.clone().try_for_each(|id| table.update(tx, id, Item::COUNT.add(1)))
    });
    assert_free(&table, "mixed");
    assert!(db.stats().locks.taken > 0, "some of the policies lock");
}

#[test]
fn single_reads_and_scans_take_locks_and_release_them() {
    for policy in locking() {
        let Scene { db, table, sessions: [mut session, ..] } = scene(policy);
        assert_eq!(table.get_now(&mut session, &1, Item::COUNT), Ok(Some(0)), "{policy}");
        assert_eq!(table.get_now(&mut session, &99, Item::COUNT), Ok(None), "{policy}");
        assert_free(&table, policy.name());
        let rows = run(&mut session, |tx| {
            let rows = table.iter(tx, Item::COUNT).collect::<Result<Vec<_>, _>>()?;
            let locked = (0..8).filter(|&key| Lock::of(&cell(&table, key)).word().readers() == 1);
            let reads_lock = !matches!(
                policy,
                Policy::Swiss | Policy::Adaptive | Policy::DeferredTwoPhase | Policy::Pipelined
            );
            assert_eq!(locked.count(), if reads_lock { 8 } else { 0 }, "{policy}");
            Ok(rows.len())
        });
        assert_eq!(rows, 8, "{policy}");
        assert_free(&table, policy.name());
        let locks = db.stats().locks;
        assert_eq!((locks.waited, locks.died, locks.killed), (0, 0, 0), "{policy}: {locks:?}");
    }
}

/// A transaction has found the record of a deleted row, which dies while the transaction runs. With
/// and without a lock on it, the attempt ends and leaves no lock.
#[test]
fn a_row_buried_under_a_lock_leaves_no_lock() {
    for policy in locking() {
        for looks_first in [false, true] {
            let Scene { db, table, sessions: [mut session, mut other, _] } = scene(policy);
            let epochs = &db.inner.engine.epochs;
            run(&mut other, |tx| table.delete(tx, 0));
            (0..3).for_each(|_| epochs.pass());
            let at = cell(&table, 0);
            let ended = session.with(ONCE()).run(|tx| {
                let row = table.find(tx, 0)?;
                if looks_first {
                    assert_eq!(row.get(Item::COUNT)?, None);
                    // Under the adaptive policy, that depends on chance after a write.
                    let reads_lock = !matches!(
                        policy,
                        Policy::Swiss | Policy::DeferredTwoPhase | Policy::Pipelined
                    );
                    let readers = Lock::of(&at).word().readers();
                    let as_wanted = readers == u64::from(reads_lock);
                    assert!(as_wanted || policy == Policy::Adaptive, "{policy}");
                }
                // The other session collects its garbage after its next transactions.
                for _ in 0..3 {
                    epochs.pass();
                    run(&mut other, |tx| table.update(tx, 1, Item::COUNT.add(1)));
                }
                assert!(is_dead(at), "{policy}: the record is not dead");
                let read = row.get(Item::COUNT).map(drop);
                let wrote = table.put(tx, Item::new(0, 1));
                read.and(wrote)
            });
            let when = format!("{policy}, {looks_first}");
            assert!(ended == CONFLICT || ended == Ok(()), "{when}: {ended:?}");
            assert_free(&table, &when);
            run(&mut session, |tx| table.put(tx, Item::new(0, 2)));
        }
    }
}

fn is_dead(at: crate::record::CellAt) -> bool {
    use crate::record::Tid;
    Tid(at.cell_word(0).load(crate::sync::Ordering::Relaxed)).has(Tid::DEAD)
}

/// Sessions for which there is no desk lock nothing that other sessions could not find, and commit.
#[test]
fn sessions_without_a_desk_commit() {
    for policy in locking() {
        let Scene { db, table, sessions: [mut first, mut second, _] } = scene(policy);
        let desks = &base(&db).locks.desks;
        while desks.join(true).is_some() {}
        for _ in 0..3 {
            run(&mut first, |tx| use_rows(&table, tx));
            assert_free(&table, policy.name());
            let ended = second.with(ONCE()).run(|tx| {
                table.read(tx, 0, Item::COUNT)?;
                table.update(tx, 1, Item::COUNT.add(1))?;
                Err(Abort::NotFound)
            });
            assert_eq!(ended, Err::<(), _>(Abort::NotFound), "{policy}");
            assert_free(&table, policy.name());
            run(&mut first, |tx| {
                table.delete(tx, 20)?;
                table.insert(tx, Item::new(6, 1))
            });
        }
    }
}
