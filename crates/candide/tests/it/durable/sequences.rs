//! Sequences of databases in files.

use super::{contents, new_items, open, open_items, options};
use crate::common::{Item, builder, is_in_share, ok, share, spawn};
use candide::any::{Chosen, Erased};
use candide::protocols::Exclusion;
use candide::{
    Abort, Database, Error, Mvcc, Mvto, Occ, Pending, Protocol, Sequence, Serial, TicToc,
};
use candide_log_testing::{CrashOptions, SimDisk};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn draw<P: Protocol>(db: &Database<P>, numbers: &Sequence<P>) -> u64 {
    ok(db.run(|tx| numbers.next(tx)))
}

/// Draws numbers in one transaction, and returns the last one.
fn draw_many<P: Protocol>(db: &Database<P>, numbers: &Sequence<P>, count: u64) -> u64 {
    let mut last = 0;
    ok(db.run(|tx| {
        (0..count).try_for_each(|_| {
            last = numbers.next(tx)?;
            Ok(())
        })
    }));
    last
}

protocol_tests!(all: a_sequence_continues_after_reopening);

fn a_sequence_continues_after_reopening<P: Protocol>() {
    let disk = SimDisk::new();
    let (mut orders_last, mut bills_last) = (0, 0);
    for count in [1, 3, 700, 0, 2_000, 1] {
        let db = open::<P>(&disk).unwrap();
        let orders = db.sequence("orders").unwrap();
        let first = draw(&db, &orders);
        assert!(first > orders_last, "{}: {first} after {orders_last}", P::NAME);
        assert!(first <= orders_last + 1_025, "{}: {first} after {orders_last}", P::NAME);
        orders_last = draw_many(&db, &orders, count).max(first);
        // The other sequence is not asked for in each opening.
        if count != 3 {
            let bills = db.sequence("bills").unwrap();
            let first = draw(&db, &bills);
            assert!(first > bills_last && first < 10_000, "{}: {first}", P::NAME);
            bills_last = first;
        }
        if count == 700 {
            db.checkpoint().unwrap();
        }
    }
}

protocol_tests!(all: a_sequence_repeats_no_number_after_a_crash);

/// Each opening draws few or many numbers, in transactions of several kinds, and notes what it has
/// been told, with the position of the disk. In each state that a crash can leave, a new number
/// must be above those of all rows, and above those of which the program had been told.
fn a_sequence_repeats_no_number_after_a_crash<P: Protocol>() {
    let disk = SimDisk::new();
    let mut told: Vec<(usize, u64)> = Vec::new();
    for _ in 0..2 {
        let (db, items) = open_items::<P>(&disk);
        let numbers = db.sequence("items").unwrap();
        let mut unknown: Vec<Pending<()>> = Vec::new();
        for step in 0..12 {
            let insert = |tx: &candide::Tx<'_, P>| {
                let id = numbers.next(tx)?;
                items.insert(tx, Item::new(id, step))?;
                Ok(id)
            };
            match step % 4 {
                0 => {
                    let id = ok(db.run(insert));
                    told.push((disk.position(), id));
                }
                1 => unknown.push(db.run_logged(|tx| insert(tx).map(|_| ()))),
                2 => {
                    let last = draw_many(&db, &numbers, [2, 600, 1_100][step as usize / 4]);
                    told.push((disk.position(), last));
                }
                _ => {
                    let refused = db.run(|tx| {
                        insert(tx)?;
                        Err::<(), _>(Abort::NotFound)
                    });
                    assert_eq!(refused, Err(Abort::NotFound));
                }
            }
            if step == 8 {
                db.checkpoint().unwrap();
            }
        }
    }
    let options = CrashOptions { exhaustive: 4, pieces: 4, samples: 2, ..CrashOptions::default() };
    let mut states = 0;
    for (place, state) in disk.crash_states(&options).enumerate() {
        if !is_in_share::<P>(place) {
            continue;
        }
        let position = state.id().position;
        let (db, items) = open_items::<P>(&state.disk());
        let numbers = db.sequence("items").unwrap();
        let next = draw(&db, &numbers);
        let used = contents(&items).into_keys().next_back();
        assert!(used < Some(next), "{next} after row {used:?}: {}", state.describe());
        let known = told.iter().filter(|(at, _)| *at <= position).map(|(_, number)| *number).max();
        assert!(known < Some(next), "{next} after told {known:?}: {}", state.describe());
        states += 1;
    }
    assert!(states > share(100), "{states} states");
}

protocol_tests!(concurrent: threads_share_a_sequence_that_outlives_them);

fn threads_share_a_sequence_that_outlives_them<P: Protocol>() {
    let disk = SimDisk::new();
    let mut all = BTreeSet::new();
    for opening in 1..=3 {
        let options = options().flush_every(Duration::ZERO);
        let db = builder::<P>().open_on(Arc::new(disk.clone()), options).unwrap();
        let rounds = share(300);
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                spawn(scope, || {
                    // All threads ask for the sequence at once.
                    let numbers = db.sequence("orders").unwrap();
                    let draw = |_| *db.run_logged(|tx| numbers.next(tx)).peek().unwrap();
                    (0..rounds).map(draw).collect::<Vec<u64>>()
                })
            });
            all.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        });
        assert_eq!(all.len() as u64, 4 * rounds * opening, "{}", P::NAME);
    }
}

#[test]
fn a_sequence_continues_under_another_protocol() {
    let protocols = [
        Chosen::of::<Occ>(Default::default()),
        Chosen::of::<TicToc>(()),
        Chosen::of::<Mvcc>(()),
        Chosen::of::<Mvto>(()),
        Chosen::of::<Serial>(Exclusion::OneSession),
        Chosen::of::<Serial>(Exclusion::GlobalLock),
        Chosen::of::<Occ>(candide::policy::Policy::WaitDie.into()),
    ];
    let disk = SimDisk::new();
    let mut last = 0;
    for chosen in protocols.iter().chain(protocols.iter().rev()) {
        let builder = Database::<Erased>::builder().policy(chosen.clone());
        let db = builder.open_on(Arc::new(disk.clone()), options()).unwrap();
        let numbers = db.sequence("orders").unwrap();
        let first = draw(&db, &numbers);
        assert!(first > last, "{first} after {last} under {}", db.properties().name);
        last = draw_many(&db, &numbers, 10);
    }
}

#[test]
fn a_copy_has_the_limits_of_sequences() {
    let (disk, copy) = (SimDisk::new(), SimDisk::new());
    let db = open::<Occ>(&disk).unwrap();
    let numbers = db.sequence("orders").unwrap();
    let last = draw_many(&db, &numbers, 3_000);
    db.backup_to(Arc::new(copy.clone())).unwrap();
    let copied = open::<Occ>(&copy).unwrap();
    let numbers = copied.sequence("orders").unwrap();
    assert!(draw(&copied, &numbers) > last);
}

protocol_tests!(all: a_new_sequence_is_refused_within_a_transaction_and_an_existing_one_is_not);

fn a_new_sequence_is_refused_within_a_transaction_and_an_existing_one_is_not<P: Protocol>() {
    let db = open::<P>(&SimDisk::new()).unwrap();
    let known = db.sequence("known").unwrap();
    ok(db.run(|tx| {
        let refused = db.sequence("new").map(|_| ());
        assert_eq!(refused, Err(Error::Transaction(Abort::Nested)), "{}", P::NAME);
        let again = db.sequence("known").unwrap();
        assert_eq!((known.next(tx), again.next(tx)), (Ok(1), Ok(2)), "{}", P::NAME);
        Ok(())
    }));
    assert_eq!(draw(&db, &db.sequence("new").unwrap()), 1, "{}", P::NAME);
}

#[test]
fn the_table_of_limits_is_the_engines_own() {
    let (disk, db, items) = new_items::<Occ>();
    drop(db.sequence("orders").unwrap());
    assert!(format!("{db:?}").contains("tables: 1,"), "{db:?}");
    let names: Vec<String> = db.tables().into_iter().map(|table| table.name).collect();
    assert_eq!(names, ["items", "candide.sequences"]);
    let reserved = db.table::<Item>("candide.sequences").unwrap_err();
    assert_eq!(reserved, Error::ReservedName { name: "candide.sequences".to_owned() });
    drop((db, items));
    let db = open::<Occ>(&disk).unwrap();
    assert!(format!("{db:?}").contains("tables: 1,"), "{db:?}");
    assert!(db.table::<Item>("candide.sequences").is_err());
}
