//! Small scenes under every interleaving and every reordering that the memory model allows (`--cfg loom`).
//!
//! The preemption bound is stated with each; loom explores all executions with at most that many forced switches.

use super::rows::Item;
use crate::epoch::Epochs;
use crate::protocol::{Occ, Protocol};
use crate::sync::{AtomicU64, Ordering, thread};
use crate::{Abort, Database, RunOptions, Session, Table, Whole};
use candide_derive::Record;
use std::sync::Arc;

/// Explores `scene` with at most `preemptions` forced switches.
fn explore(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    // Counted outside the model: how much a passing test has seen.
    let executions = Arc::new(std::sync::Mutex::new(0));
    let counted = executions.clone();
    builder.check(move || {
        *counted.lock().unwrap() += 1;
        scene();
    });
    println!("{} executions", executions.lock().unwrap());
}

/// The counts of rows after everything.
fn count<P: Protocol, const N: usize>(db: &Database<P>, table: &Table<Item, P>, rows: [u64; N]) -> [i64; N] {
    let mut session = db.session().unwrap();
    rows.map(|row| session.run(|tx| table.read(tx, &row, Item::COUNT)).unwrap_or_else(|e: Abort| panic!("{e}")))
}

fn database<P: Protocol>(rows: u64) -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session
        .run(|tx| (0..rows).try_for_each(|id| table.insert(tx, Item::new(id, 0))))
        .unwrap_or_else(|e: Abort| panic!("{e}"));
    (db, table)
}

/// One attempt of a transaction; whether it committed.
fn attempt<P: Protocol>(session: &mut Session<P>, body: impl FnMut(&crate::Tx<'_, P>) -> Result<(), Abort>) -> bool {
    match session.run_with(RunOptions::new().attempts_max(1), body) {
        Ok(()) => true,
        Err(abort) => {
            assert_eq!(abort, Abort::AttemptsExhausted);
            false
        }
    }
}

/// Runs two transactions at once; whether each committed.
fn race<P: Protocol>(
    db: &Database<P>,
    first: impl FnMut(&crate::Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
    second: impl FnMut(&crate::Tx<'_, P>) -> Result<(), Abort>,
) -> (bool, bool) {
    let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
    let other = thread::spawn(move || {
        let committed = attempt(&mut other, first);
        drop(other);
        committed
    });
    let second = attempt(&mut mine, second);
    (other.join().unwrap(), second)
}

/// Each writes what the other reads: without the fence between locking and validating, both see the old row.
#[test]
fn loom_write_skew() {
    explore(5, || {
        let (db, table) = database::<Occ>(2);
        let inner = table.clone();
        race(
            &db,
            move |tx| {
                let zero = inner.read(tx, &0, Item::COUNT)?;
                inner.update(tx, &1, Item::COUNT.set(zero + 1))
            },
            |tx| {
                let one = table.read(tx, &1, Item::COUNT)?;
                table.update(tx, &0, Item::COUNT.set(one + 1))
            },
        );
        let rows = count(&db, &table, [0, 1]);
        assert_ne!(rows, [1, 1], "both committed on what the other replaced");
    });
}

/// A reader sees all words of one version, though it is being installed meanwhile.
#[test]
fn loom_read_against_install() {
    explore(5, || {
        let (db, table) = database::<Occ>(1);
        let inner = table.clone();
        let new = Item { id: 0, count: 1, small: 1, flag: true, other: 1 };
        race(
            &db,
            move |tx| inner.put(tx, new),
            |tx| {
                let row = table.read(tx, &0, Whole)?;
                assert!(row == new || row == Item::new(0, 0), "{row:?}");
                Ok(())
            },
        );
    });
}

/// One reads that a key is absent and writes a row; the other reads the row and inserts the key.
#[test]
fn loom_absent_read_against_insert() {
    explore(4, || {
        let (db, table) = database::<Occ>(1);
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| {
                let there = inner.get(tx, &9, Item::COUNT)?.is_some();
                inner.update(tx, &0, Item::COUNT.set(if there { 5 } else { 1 }))
            },
            |tx| {
                let count = table.read(tx, &0, Item::COUNT)?;
                table.insert(tx, Item::new(9, count))
            },
        );
        if first && second {
            // First the insert (of 0), then the update that saw it; or first the update, then the insert of 1.
            let rows = count(&db, &table, [0, 9]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// A bucket moves to a larger array while a lookup goes through it: what is there is found, what comes is not missed.
#[test]
fn loom_lookup_against_growth() {
    explore(4, || {
        // Under the model a table begins with one bucket of six slots; the seventh row makes it grow.
        let (db, table) = database::<Occ>(6);
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| {
                let zero = inner.read(tx, &0, Item::COUNT)?;
                inner.insert(tx, Item::new(6, zero))
            },
            |tx| {
                assert_eq!(table.read(tx, &3, Item::COUNT)?, 0);
                let there = table.get(tx, &6, Item::COUNT)?.is_some();
                table.update(tx, &0, Item::COUNT.set(if there { 5 } else { 1 }))
            },
        );
        if first && second {
            let rows = count(&db, &table, [0, 6]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// A reader holds what it found under its pin; an unlinker stamps it and asks when it is free.
#[test]
fn loom_pin_against_reclaim() {
    const LIVE: u64 = 1;
    const FREED: u64 = 2;
    explore(5, || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(AtomicU64::new(LIVE));
        let (reader_slot, unlinker_slot) = (epochs.register(), epochs.register());
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                epochs.pin(&reader_slot);
                if link.load(Ordering::Acquire) == 1 {
                    assert_eq!(block.load(Ordering::Relaxed), LIVE, "freed under a pin");
                }
                epochs.unpin(&reader_slot);
            })
        };
        epochs.pin(&unlinker_slot);
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        epochs.unpin(&unlinker_slot);
        for _ in 0..2 {
            epochs.pass();
            if epochs.is_free(stamp) {
                block.store(FREED, Ordering::Relaxed);
            }
        }
        reader.join().unwrap();
        epochs.pass();
        assert!(epochs.is_free(stamp), "what nobody holds is free after a pass");
    });
}

/// Two blind updates of one row: whoever locks second works on what the first has installed.
#[test]
fn loom_two_updates_of_one_row() {
    explore(4, || {
        let (db, table) = database::<Occ>(1);
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| inner.update(tx, &0, Item::COUNT.add(1)),
            |tx| table.update(tx, &0, Item::COUNT.add(1)),
        );
        assert_eq!(count(&db, &table, [0]), [i64::from(first) + i64::from(second)]);
    });
}

/// Two inserts of different keys into one bucket: neither takes the other's slot.
#[test]
fn loom_two_inserts_into_one_bucket() {
    explore(3, || {
        let (db, table) = database::<Occ>(0);
        let inner = table.clone();
        let (first, second) =
            race(&db, move |tx| inner.insert(tx, Item::new(1, 1)), |tx| table.insert(tx, Item::new(2, 2)));
        let mut session = db.session().unwrap();
        let found = session
            .run(|tx| Ok::<_, Abort>((table.get(tx, &1, Item::COUNT)?, table.get(tx, &2, Item::COUNT)?)))
            .unwrap();
        assert_eq!(found, (first.then_some(1), second.then_some(2)));
    });
}

/// As above, with the passes on a thread of their own, and memory that must not be used by two at once.
#[test]
fn loom_reader_unlinker_advancer() {
    struct Cell(loom::cell::UnsafeCell<u64>);
    // SAFETY: that no two threads use it at once is what the test is about.
    unsafe impl Sync for Cell {}
    explore(3, || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(Cell(loom::cell::UnsafeCell::new(0)));
        let (reader_slot, unlinker_slot) = (epochs.register(), epochs.register());
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                epochs.pin(&reader_slot);
                if link.load(Ordering::Acquire) == 1 {
                    // SAFETY: as above.
                    block.0.with(|block| assert_eq!(unsafe { *block }, 0, "freed under a pin"));
                }
                epochs.unpin(&reader_slot);
            })
        };
        let advancer = {
            let epochs = epochs.clone();
            thread::spawn(move || {
                epochs.pass();
                epochs.pass();
            })
        };
        epochs.pin(&unlinker_slot);
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        epochs.unpin(&unlinker_slot);
        if epochs.is_free(stamp) {
            // SAFETY: as above.
            block.0.with_mut(|block| unsafe { *block = 1 });
        }
        reader.join().unwrap();
        advancer.join().unwrap();
    });
}

/// A lookup, begun in an array, that finds its bucket moved.
#[test]
fn loom_lookup_in_a_moving_bucket() {
    explore(3, || {
        let (db, table) = database::<Occ>(6);
        let inner = table.clone();
        let mut other = db.session().unwrap();
        let other = thread::spawn(move || {
            attempt(&mut other, |tx| inner.insert(tx, Item::new(6, 0)));
        });
        let mut mine = db.session().unwrap();
        assert!(attempt(&mut mine, |tx| {
            assert_eq!(table.read(tx, &3, Item::COUNT)?, 0);
            Ok(())
        }));
        other.join().unwrap();
    });
}

/// One holds a row, reads another, and writes the first; the other reads the first and writes the second. A holder that did
/// not say, before the fence, that it commits would let both see the old row.
#[test]
fn loom_held_write_skew() {
    explore(4, || {
        let (db, table) = database::<Occ>(2);
        let inner = table.clone();
        race(
            &db,
            move |tx| {
                inner.read_for_update(tx, &0, Item::COUNT)?;
                let one = inner.read(tx, &1, Item::COUNT)?;
                inner.update(tx, &0, Item::COUNT.set(one + 1))
            },
            |tx| {
                let zero = table.read(tx, &0, Item::COUNT)?;
                table.update(tx, &1, Item::COUNT.set(zero + 1))
            },
        );
        let rows = count(&db, &table, [0, 1]);
        assert_ne!(rows, [1, 1], "both committed on what the other replaced");
    });
}

/// A row that is locked, read and written, against a blind update: no order of the two loses one.
#[test]
fn loom_held_against_a_blind_update() {
    explore(4, || {
        let (db, table) = database::<Occ>(1);
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| {
                let count = inner.read_for_update(tx, &0, Item::COUNT)?;
                inner.update(tx, &0, Item::COUNT.set(count + 1))
            },
            |tx| table.update(tx, &0, Item::COUNT.add(10)),
        );
        assert_eq!(count(&db, &table, [0]), [i64::from(first) + 10 * i64::from(second)]);
    });
}

/// Two that hold one row, one of which gives it back unwritten and writes another: whoever is second sees the first.
#[test]
fn loom_two_holders_of_one_row() {
    explore(4, || {
        let (db, table) = database::<Occ>(2);
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| {
                let count = inner.read_for_update(tx, &0, Item::COUNT)?;
                inner.update(tx, &0, Item::COUNT.set(count + 1))
            },
            |tx| {
                let count = table.read_for_update(tx, &0, Item::COUNT)?;
                table.update(tx, &1, Item::COUNT.set(count + 10))
            },
        );
        let rows = count(&db, &table, [0, 1]);
        match (first, second) {
            (true, true) => assert!(rows == [1, 10] || rows == [1, 11], "{rows:?}"),
            (first, second) => assert_eq!(rows, [i64::from(first), 10 * i64::from(second)]),
        }
    });
}

/// A reader passes a held row, and sees all words of one version while the holder installs the next.
#[test]
fn loom_read_against_a_holder_that_installs() {
    explore(4, || {
        let (db, table) = database::<Occ>(1);
        let inner = table.clone();
        let new = Item { id: 0, count: 1, small: 1, flag: true, other: 1 };
        race(
            &db,
            move |tx| {
                inner.read_for_update(tx, &0, Item::COUNT)?;
                inner.put(tx, new)
            },
            |tx| {
                let row = table.read(tx, &0, Whole)?;
                assert!(row == new || row == Item::new(0, 0), "{row:?}");
                Ok(())
            },
        );
    });
}

/// A small row in order, with a unique index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct Ticket {
    #[key]
    id: u64,
    #[unique(ordered)]
    seat: u64,
    price: i64,
}

/// An ordered table of tickets; ticket `id` has seat `id` and costs nothing.
fn tickets(ids: impl Iterator<Item = u64> + Clone) -> (Database<Occ>, Table<Ticket, Occ>) {
    let db = Database::<Occ>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Ticket>("tickets").unwrap();
    let mut session = db.session().unwrap();
    session
        .run(|tx| table.insert_many(tx, ids.clone().map(|id| Ticket { id, seat: id, price: 0 })))
        .unwrap_or_else(|e: Abort| panic!("{e}"));
    (db, table)
}

/// All there is, in order.
fn all_tickets(db: &Database<Occ>, table: &Table<Ticket, Occ>) -> Vec<(u64, i64)> {
    let mut session = db.session().unwrap();
    session.run(|tx| table.scan(tx, .., Ticket::PRICE).collect::<Result<Vec<_>, Abort>>()).unwrap()
}

/// One adds up a range and writes the sum elsewhere; the other reads that and inserts into the range. Not both can have come
/// before the other.
#[test]
fn loom_scan_against_insert() {
    explore(4, || {
        let (db, table) = tickets([1, 9].into_iter());
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| {
                let rows = inner.scan(tx, 1..5, ()).collect::<Result<Vec<_>, _>>()?.len();
                inner.update(tx, &9, Ticket::PRICE.set(rows as i64))
            },
            |tx| {
                let price = table.read(tx, &9, Ticket::PRICE)?;
                table.insert(tx, Ticket { id: 3, seat: 3, price })
            },
        );
        let rows = all_tickets(&db, &table);
        match (first, second) {
            // First the scan of one row, then the insert that knows; or first the insert.
            (true, true) => assert!(rows[1..] == [(3, 1), (9, 1)] || rows[1..] == [(3, 0), (9, 2)], "{rows:?}"),
            (true, false) => assert_eq!(rows[1..], [(9, 1)]),
            (false, true) => assert_eq!(rows[1..], [(3, 0), (9, 0)]),
            (false, false) => assert_eq!(rows[1..], [(9, 0)]),
        }
    });
}

/// One adds up a range backwards and writes the sum elsewhere; the other reads that and deletes from the range.
#[test]
fn loom_scan_against_delete() {
    explore(4, || {
        let (db, table) = tickets([1, 3, 9].into_iter());
        let inner = table.clone();
        let (first, second) = race(
            &db,
            move |tx| {
                let rows = inner.scan_rev(tx, ..5, ()).collect::<Result<Vec<_>, _>>()?.len();
                inner.update(tx, &9, Ticket::PRICE.set(rows as i64))
            },
            |tx| {
                let price = table.read(tx, &9, Ticket::PRICE)?;
                table.delete(tx, &3)?;
                table.update(tx, &1, Ticket::PRICE.set(price))
            },
        );
        let rows = all_tickets(&db, &table);
        match (first, second) {
            (true, true) => assert!(rows == [(1, 2), (9, 2)] || rows == [(1, 0), (9, 1)], "{rows:?}"),
            (true, false) => assert_eq!(rows, [(1, 0), (3, 0), (9, 2)]),
            (false, true) => assert_eq!(rows, [(1, 0), (9, 0)]),
            (false, false) => assert_eq!(rows, [(1, 0), (3, 0), (9, 0)]),
        }
    });
}

/// Two rows for one seat: one of them gets it, and the index knows which.
#[test]
fn loom_two_inserts_of_one_unique_key() {
    explore(2, || {
        let (db, table) = tickets([].into_iter());
        let inner = table.clone();
        let insert = |table: &Table<Ticket, Occ>, tx: &crate::Tx<'_, Occ>, id| {
            match table.insert(tx, Ticket { id, seat: 7, price: 0 }) {
                // Somebody has been quicker; that is as good as a conflict here, and seen as such.
                Err(Abort::NotUnique) => Ok(()),
                result => result,
            }
        };
        race(&db, move |tx| insert(&inner, tx, 1), |tx| insert(&table, tx, 2));
        let rows = all_tickets(&db, &table);
        assert!(rows.len() <= 1, "{rows:?}");
        let mut session = db.session().unwrap();
        let by_seat = table.index(Ticket::BY_SEAT);
        let found = session.run(|tx| by_seat.get(tx, &7, Ticket::ID)).unwrap_or_else(|e: Abort| panic!("{e}"));
        assert_eq!(found, rows.first().map(|row| row.0));
    });
}
