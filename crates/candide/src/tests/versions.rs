//! Tests of properties that only `Mvcc` has.

use super::snapshots::{self, Chained};
use super::threads::spawn;
use crate::experiments::Factor;
use crate::index::Found;
use crate::protocols::{Mvcc, Mvto};
use crate::record::{CellAt, Tid};
use crate::schema::{RowReader, RowWriter};
use crate::sync::{Ordering, Point, with_hook};
use crate::{
    Abort, Column, Database, Group, Hashed, Record, RunOptions, Session, Table, Tx, Whole,
};
use std::sync::{Arc, Barrier};

/// A row with two groups, the second of which is larger.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Item {
    id: u64,
    count: i64,
    other: [u64; 2],
}

impl Item {
    const COUNT: Column<Item, i64> = Column::new(0, 0, "count");
    const FIRST: Column<Item, u64> = Column::new(1, 0, "first");

    fn new(id: u64, count: i64) -> Item {
        Item { id, count, other: [1, 2] }
    }
}

impl Record for Item {
    type Key = u64;
    type Index = Hashed;
    type Image = [u64; 3];
    const META: crate::schema::Meta =
        crate::schema::Meta::new("Item", &[Group::new("hot", 1), Group::new("cold", 2)]);

    fn key(&self) -> u64 {
        self.id
    }

    fn store(&self, row: &mut RowWriter<'_>) {
        row.words().copy_from_slice(&[self.count as u64, self.other[0], self.other[1]]);
    }

    fn load(key: &u64, row: &RowReader<'_>) -> Item {
        let words = row.words();
        Item { id: *key, count: words[0] as i64, other: [words[1], words[2]] }
    }
}

type Items = Table<Item, Mvcc>;

/// Makes a database with rows 1 and 2, whose counts are 0.
fn database(splitting: bool) -> (Database<Mvcc>, Items) {
    let db = Database::<Mvcc>::builder()
        .timestamp_splitting(splitting)
        .factors([Factor::NoBackoff])
        .build()
        .unwrap();
    let items = db.table::<Item>("items").unwrap();
    let filled = db.run(|tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    assert_eq!(filled, Ok(()));
    (db, items)
}

/// Returns the rows' counts.
fn counts(db: &Database<Mvcc>, items: &Items) -> [Option<i64>; 2] {
    let mut session = db.session().unwrap();
    let read =
        session.run(|tx| Ok([items.get(tx, 1, Item::COUNT)?, items.get(tx, 2, Item::COUNT)?]));
    read.unwrap()
}

/// Runs a transaction: `early`, and then `late`. In the first attempt, another session's
/// transaction commits between the two. Returns the number of attempts and the result.
fn overtaken<T>(
    db: &Database<Mvcc>,
    early: impl Fn(&Tx<'_, Mvcc>) -> Result<(), Abort>,
    overtaking: impl Fn(&mut Session<Mvcc>),
    late: impl Fn(&Tx<'_, Mvcc>) -> Result<T, Abort>,
) -> (u32, T) {
    let (mut overtaken, mut other) = (db.session().unwrap(), db.session().unwrap());
    let result = overtaken.run(|tx| {
        early(tx)?;
        if tx.attempt_number() == 1 {
            overtaking(&mut other);
        }
        late(tx).map(|value| (tx.attempt_number(), value))
    });
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

/// Returns the unit of a row that holds the count.
fn count_cell(items: &Items, id: u64) -> CellAt {
    let core = items.core();
    let Found::Record(record) = core.index.find(&[id]) else { panic!("no record of {id}") };
    core.layout.first_of(record)
}

/// Makes a database with rows 1 and 2. Explicit calls move its epochs.
fn by_hand() -> (Database<Mvcc>, Items, Session<Mvcc>) {
    let db = Database::<Mvcc>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(
        session.run(|tx| (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0)))),
        Ok(())
    );
    (db, items, session)
}

/// Collects all garbage that can be freed.
fn collect(db: &Database<Mvcc>, session: &mut Session<Mvcc>) {
    for _ in 0..3 {
        db.inner.engine.epochs.pass();
        assert_eq!(session.run(|_| Ok(())), Ok(()));
    }
}

fn add(session: &mut Session<Mvcc>, items: &Items, id: u64) {
    assert_eq!(session.run(|tx| items.update(tx, &id, Item::COUNT.add(1))), Ok(()));
}

#[test]
fn a_read_only_transaction_sees_the_moment_of_its_begin_and_never_fails() {
    let (db, items) = database(true);
    let both =
        |tx: &Tx<'_, Mvcc>| Ok((items.read(tx, 1, Item::COUNT)?, items.read(tx, 2, Item::COUNT)?));
    let (attempts, seen) = overtaken(
        &db,
        |tx| both(tx).map(drop),
        |other| (0..5).for_each(|_| (1..=2).for_each(|id| add(other, &items, id))),
        both,
    );
    assert_eq!((attempts, seen), (1, (0, 0)));
    // The same, with rows that are inserted and deleted meanwhile.
    let (attempts, seen) = overtaken(
        &db,
        |tx| both(tx).map(drop),
        |other| {
            assert_eq!(other.run(|tx| items.delete(tx, 1)), Ok(()));
            assert_eq!(other.run(|tx| items.insert(tx, Item::new(3, 3))), Ok(()));
            add(other, &items, 2);
        },
        |tx| {
            items
                .iter(tx, Whole)
                .map(|row| Ok((row?.0, ())))
                .collect::<Result<std::collections::BTreeMap<_, _>, _>>()
        },
    );
    assert_eq!((attempts, seen.into_keys().collect::<Vec<_>>()), (1, vec![1, 2]));
    assert_eq!(counts(&db, &items), [None, Some(6)]);
}

#[test]
fn an_absent_key_stays_absent_for_an_older_reader() {
    let (db, items) = database(true);
    let (attempts, seen) = overtaken(
        &db,
        |tx| items.get(tx, 9, Item::COUNT).map(|found| assert_eq!(found, None)),
        |other| {
            assert_eq!(other.run(|tx| items.insert(tx, Item::new(9, 0))), Ok(()));
            add(other, &items, 1);
        },
        |tx| Ok((items.get(tx, 9, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?)),
    );
    assert_eq!((attempts, seen), (1, (None, 0)));
    // A transaction that writes after such a read does not count as a reader.
    let (attempts, ()) = overtaken(
        &db,
        |tx| items.get(tx, 10, Item::COUNT).map(drop),
        |other| assert_eq!(other.run(|tx| items.insert(tx, Item::new(10, 0))), Ok(())),
        |tx| items.update(tx, 1, Item::COUNT.add(1)),
    );
    assert_eq!(attempts, 2);
}

#[test]
fn an_attempt_that_writes_takes_a_newer_time_when_all_it_has_read_permits() {
    for staged_before in [false, true] {
        let (db, items) = database(true);
        let add_to_second =
            |tx: &Tx<'_, Mvcc>| items.modify(tx, 2, Item::COUNT, |count| *count += 1);
        let early = |tx: &Tx<'_, Mvcc>| {
            items.read(tx, 1, Item::COUNT)?;
            if staged_before { items.update(tx, 1, Item::FIRST.set(7)) } else { Ok(()) }
        };
        let (attempts, ()) = overtaken(&db, early, |other| add(other, &items, 2), add_to_second);
        assert_eq!((attempts, counts(&db, &items)), (1, [Some(0), Some(2)]));
        // Here the first attempt does not commit: the rows of its earlier reads have been replaced
        // as well.
        let both = |other: &mut Session<Mvcc>| (1..=2).for_each(|id| add(other, &items, id));
        let (attempts, ()) = overtaken(&db, early, both, add_to_second);
        assert_eq!((attempts, counts(&db, &items)), (2, [Some(1), Some(4)]));
    }
}

#[test]
fn an_attempt_takes_no_newer_time_that_breaks_an_assumption_of_its_writes() {
    let (db, items) = database(true);
    let mut seen = Vec::new();
    let seen_by = std::cell::RefCell::new(&mut seen);
    let (attempts, ()) = overtaken(
        &db,
        |tx| {
            items
                .update(tx, 1, Item::COUNT.add(1))
                .or_else(|abort| (abort == Abort::NotFound).then_some(()).ok_or(abort))
        },
        |other| {
            let swapped = other.run(|tx| {
                items.delete(tx, 1)?;
                items.update(tx, 2, Item::COUNT.set(100))
            });
            assert_eq!(swapped, Ok(()));
        },
        |tx| {
            let count = items.read(tx, 2, Item::COUNT)?;
            seen_by.borrow_mut().push((tx.attempt_number(), count));
            Ok(())
        },
    );
    // The first attempt, which has seen that row 1 exists, never sees the later row 2.
    assert_eq!((attempts, seen), (2, vec![(2, 100)]));
}

#[test]
fn a_reader_of_much_and_then_of_an_old_version_starts_over_when_it_writes() {
    let (db, items) = database(true);
    let read =
        |tx: &Tx<'_, Mvcc>| (0..100).try_for_each(|_| items.read(tx, 1, Item::COUNT).map(drop));
    let (attempts, ()) = overtaken(
        &db,
        read,
        |other| add(other, &items, 2),
        |tx| {
            let count = items.read(tx, 2, Item::COUNT)?;
            items.update(tx, 1, Item::COUNT.set(10 * count))
        },
    );
    assert_eq!((attempts, counts(&db, &items)), (2, [Some(10), Some(1)]));
}

#[test]
fn one_of_two_transactions_in_write_skew_starts_over() {
    let (db, items) = database(true);
    let (attempts, ()) = overtaken(
        &db,
        |tx| items.read(tx, 1, Item::COUNT).map(drop),
        |other| {
            let skewed = other.run(|tx| {
                items.read(tx, 2, Item::COUNT)?;
                items.update(tx, 1, Item::COUNT.set(1))
            });
            assert_eq!(skewed, Ok(()));
        },
        |tx| items.update(tx, 2, Item::COUNT.set(1)),
    );
    assert_eq!(attempts, 2);
}

#[test]
fn a_commit_stops_exactly_the_readers_that_may_have_to_see_it() {
    let (db, items) = database(true);
    let (mut writer, mut later) = (db.session().unwrap(), db.session().unwrap());
    let own = items.clone();
    let hook = move |point| {
        if point == Point::Validated {
            let once = RunOptions::new().attempts_max(1);
            let read = later.with(once).run(|tx| own.read(tx, 1, Item::COUNT).map(drop));
            assert_eq!(
                (read, later.last_conflict().unwrap().cause),
                (Err(Abort::AttemptsExhausted), Abort::Locked)
            );
            let write = later.with(once).run(|tx| own.update(tx, 1, Item::COUNT.add(1)));
            assert_eq!(
                (write, later.last_conflict().unwrap().cause),
                (Err(Abort::AttemptsExhausted), Abort::Locked)
            );
            assert_eq!(later.with(once).run(|tx| own.read(tx, 1, Item::FIRST)), Ok(1));
        }
    };
    let written = with_hook(hook, || writer.run(|tx| items.update(tx, 1, Item::COUNT.add(1))));
    assert_eq!((written, writer.stats().retries), (Ok(()), 0));
    assert_eq!(counts(&db, &items), [Some(1), Some(0)]);
}

#[test]
fn a_reader_that_moves_to_newer_versions_validates_those_in_between() {
    let (db, items) = database(true);
    assert_eq!(db.run(|tx| items.insert(tx, Item::new(3, 0))), Ok(()));
    let (mut reader, mut other) = (db.session().unwrap(), db.session().unwrap());
    let (own, mut moves) = (items.clone(), 0);
    let mut add_to = move |ids: &[u64]| {
        let added =
            other.run(|tx| ids.iter().try_for_each(|id| own.update(tx, id, Item::COUNT.add(1))));
        assert_eq!(added, Ok(()));
    };
    let mut first = db.session().unwrap();
    let seen = with_hook(
        move |point| {
            if point == Point::MovedOn {
                moves += 1;
                // The first change still lets the attempt move on. The second does not, since the
                // attempt has read the first row.
                match moves {
                    1 => add_to(&[2, 3]),
                    2 => add_to(&[1, 2, 3]),
                    _ => {}
                }
            }
        },
        || {
            reader.run(|tx| {
                let one = items.read(tx, 1, Item::COUNT)?;
                if tx.attempt_number() == 1 {
                    first.run(|tx| {
                        [2, 3].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.add(1)))
                    })?;
                }
                Ok((one, items.read(tx, 2, Item::COUNT)?, items.read(tx, 3, Item::COUNT)?))
            })
        },
    );
    assert_eq!(seen, Ok((0, 2, 2)));
}

#[test]
fn assumptions_of_a_write_hold_at_the_newer_time_of_its_attempt() {
    let (db, items) = database(true);
    assert_eq!(db.run(|tx| items.insert(tx, Item::new(3, 0))), Ok(()));
    let (mut session, mut first, mut second) =
        (db.session().unwrap(), db.session().unwrap(), db.session().unwrap());
    let (own, mut is_first) = (items.clone(), true);
    let hook = move |point| {
        // At the new time row 1 is deleted. The row is inserted again before the attempt checks it.
        if point == Point::LookedAgain && std::mem::take(&mut is_first) {
            let back = second.run(|tx| {
                own.insert(tx, Item::new(1, 7))?;
                own.update(tx, 3, Item::COUNT.set(1))
            });
            assert_eq!(back, Ok(()));
        }
    };
    let mut seen = Vec::new();
    let done = with_hook(hook, || {
        session.run(|tx| {
            let three = items.read(tx, 3, Item::COUNT)?;
            let has_one = items.update_if_present(tx, 1, Item::COUNT.add(1))?;
            if tx.attempt_number() == 1 {
                first.run(|tx| {
                    items.delete(tx, 1)?;
                    items.update(tx, 2, Item::COUNT.set(100))
                })?;
            }
            seen.push((has_one, items.read(tx, 2, Item::COUNT)?, three));
            Ok(())
        })
    });
    assert_eq!(done, Ok(()));
    let states = [(true, 0, 0), (false, 100, 0), (true, 100, 1)];
    assert!(seen.iter().all(|state| states.contains(state)), "{seen:?}");
    assert_eq!(seen.last(), Some(&states[2]));
}

#[test]
fn a_key_absent_at_a_time_stays_absent_at_that_time() {
    // When the reader begins, the writer has not locked any row yet.
    let (db, items) = database(true);
    let (begins, commits, goes_on) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
    let steps = Arc::new((begins, commits, goes_on));
    let seen = std::thread::scope(|scope| {
        spawn(scope, || {
            let mut writer = db.session().unwrap();
            let own = steps.clone();
            let hook = move |point| {
                if point == Point::Unlocked {
                    own.0.wait();
                    own.1.wait();
                }
            };
            with_hook(hook, || add(&mut writer, &items, 1));
            steps.2.wait();
        });
        steps.0.wait();
        db.run(|tx| {
            let before = items.read(tx, 1, Item::COUNT)?;
            steps.1.wait();
            steps.2.wait();
            Ok((tx.attempt_number(), before, items.read(tx, 1, Item::COUNT)?))
        })
    });
    assert_eq!(seen, Ok((1, 0, 0)));
}

#[test]
fn versions_stay_as_long_as_a_reader_can_come_to_see_them() {
    versions_stay_under::<Mvcc>(0);
}

#[test]
fn versions_stay_in_chains_as_long_as_a_reader_can_come_to_see_them() {
    // Two more versions stay. These versions are older than the version that the reader sees, but
    // were replaced in the same epoch as the collected version.
    versions_stay_under::<Mvto>(2);
}

fn versions_stay_under<P: Chained>(of_the_epoch: usize) {
    use super::rows::Item;
    let (db, items, mut session) = snapshots::by_hand::<P>();
    let mut reader = db.session().unwrap();
    let seen = reader.run(|tx| {
        let before = items.read(tx, 1, Item::COUNT)?;
        for _ in 0..5 {
            snapshots::add(&mut session, &items, 1);
            snapshots::collect(&db, &mut session);
        }
        assert_eq!(snapshots::versions(&db, &items, 1), 6, "the reader began before all of them");
        Ok((before, items.read(tx, 1, Item::COUNT)?))
    });
    assert_eq!(seen, Ok((0, 0)));
    snapshots::collect(&db, &mut session);
    assert_eq!(snapshots::versions(&db, &items, 1), 1);
    // A reader that began in between keeps the version that it sees and all newer ones, but no
    // older ones.
    (0..3).for_each(|_| snapshots::add(&mut session, &items, 1));
    db.inner.engine.epochs.pass();
    let seen = reader.run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        (0..3).for_each(|_| snapshots::add(&mut session, &items, 1));
        snapshots::collect(&db, &mut session);
        assert_eq!(snapshots::versions(&db, &items, 1), 4 + of_the_epoch);
        items.read(tx, 1, Item::COUNT)
    });
    assert_eq!(seen, Ok(8));
    snapshots::collect(&db, &mut session);
    assert_eq!((snapshots::versions(&db, &items, 1), db.memory().garbage), (1, 0));
}

#[test]
fn a_deleted_row_is_buried_when_no_reader_can_come_to_see_it() {
    for splitting in [true, false] {
        let db = Database::<Mvcc>::builder()
            .manual_epochs(10)
            .timestamp_splitting(splitting)
            .build()
            .unwrap();
        let items = db.table::<Item>("items").unwrap();
        let (mut session, mut reader) = (db.session().unwrap(), db.session().unwrap());
        assert_eq!(session.run(|tx| items.insert(tx, Item::new(1, 5))), Ok(()));
        let is_linked = || matches!(items.core().index.find(&[1]), Found::Record(_));
        let seen = reader.run(|tx| {
            items.read(tx, 1, Item::COUNT)?;
            assert_eq!(session.run(|tx| items.delete(tx, 1)), Ok(()));
            collect(&db, &mut session);
            assert!(is_linked());
            items.get(tx, 1, Item::COUNT)
        });
        assert_eq!(seen, Ok(Some(5)));
        // Each round collects the due entries, and queues the rest again.
        (0..3).for_each(|_| collect(&db, &mut session));
        assert!(!is_linked());
        assert_eq!(db.memory().garbage, 0);
        assert_eq!(session.run(|tx| items.insert(tx, Item::new(1, 6))), Ok(()));
        assert_eq!(session.run(|tx| items.get(tx, 1, Item::COUNT)), Ok(Some(6)));
    }
}

#[test]
fn a_lookup_of_a_row_that_is_being_buried_finds_no_row() {
    let (db, items, mut session) = by_hand();
    assert_eq!(session.run(|tx| items.delete(tx, 1)), Ok(()));
    let mut reader = db.session().unwrap();
    let (own, epochs_of) = (items.clone(), db.clone());
    let looked = reader.run(|tx| {
        // The record is still linked, and found.
        let record = count_cell(&own, 1);
        (0..3).for_each(|_| collect(&epochs_of, &mut session));
        assert!(Tid(record.cell_word(0).load(Ordering::Acquire)).has(Tid::QUEUED));
        items.get(tx, 1, Item::COUNT)
    });
    assert_eq!((looked, reader.stats().retries), (Ok(None), 0));
}

protocol_tests!(versioned: memory_is_constant_under_steady_updates);
fn memory_is_constant_under_steady_updates<P: Chained>() {
    use super::rows::Item;
    /// The number of rows. One row is hot.
    const ROWS: u64 = 1_000;
    let db = Database::<P>::builder().manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    let filled = session.run(|tx| (0..ROWS).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    assert_eq!(filled, Ok(()));
    let mut round = |updates: bool| {
        for id in 0..ROWS {
            let done = session.run(|tx| {
                items.update(tx, &id, Item::COUNT.add(1))?;
                items.update(tx, &(id % 2), Item::COUNT.add(1))?;
                if updates { Ok(()) } else { Err(Abort::NotFound) }
            });
            assert_eq!(done.is_ok(), updates);
            if id % 100 == 0 {
                db.inner.engine.epochs.pass();
            }
        }
        (db.memory().reserved_bytes, db.memory().garbage)
    };
    let (bytes, garbage) = (0..4).map(|_| round(true)).last().expect("four rounds");
    for _ in 0..20 {
        let (bytes_now, garbage_now) = round(true);
        assert_eq!(bytes_now, bytes);
        assert!(garbage_now <= garbage + ROWS as usize, "{garbage_now} after {garbage}");
    }
    assert_eq!(round(false).0, bytes);
    snapshots::collect(&db, &mut session);
    snapshots::collect(&db, &mut session);
    assert_eq!(db.memory().garbage, 0);
    assert!((0..ROWS).all(|id| snapshots::versions(&db, &items, id) == 1));
}

#[test]
fn the_memory_limit_fails_a_transaction_and_loses_no_row() {
    let limit = 1 << 20;
    let db = Database::<Mvcc>::builder().memory_limit(limit).manual_epochs(10).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(session.run(|tx| items.insert(tx, Item::new(1, 0))), Ok(()));
    let mut count = 0;
    let refused = loop {
        match session.run(|tx| items.update(tx, 1, Item::COUNT.add(1))) {
            Ok(()) => count += 1,
            Err(abort) => break abort,
        }
    };
    assert_eq!(refused, Abort::MemoryLimit);
    assert!(db.memory().reserved_bytes <= limit && count > 1_000);
    assert_eq!(session.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(count));
    // After the next epoch updates succeed.
    collect(&db, &mut session);
    add(&mut session, &items, 1);
    assert_eq!(session.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(count + 1));
}

#[test]
fn two_threads_lose_no_increment() {
    for splitting in [true, false] {
        let (db, items) = database(splitting);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (db, items) = (&db, &items);
                spawn(scope, move || {
                    let mut session = db.session().unwrap();
                    for round in 0..5_000 {
                        let keys = [1 + (round + thread) % 2, 1 + round % 2];
                        let added = session.run(|tx| {
                            items.update(tx, &keys[0], Item::COUNT.add(1))?;
                            items.modify(tx, &keys[1], Item::COUNT, |count| *count += 1)
                        });
                        assert_eq!(added, Ok(()));
                    }
                });
            }
        });
        assert_eq!(counts(&db, &items).map(Option::unwrap).iter().sum::<i64>(), 20_000);
    }
}
