//! Scans, ordered tables and secondary indexes under interleavings made to break them.
//!
//! As in `traps`, most need no threads: a closure runs another session's whole transaction inside
//! itself.

use super::steps::{CONFLICT, ONCE};
use super::{ForProtocol, for_each, for_each_concurrent, for_each_overlapping};
use crate::engine::Protocol;
use crate::experiments::Factor;
use crate::protocols::{Mvcc, Occ, TicToc};
use crate::sync::size::share;
use crate::sync::{AtomicBool, Ordering, Random};
use crate::{
    Abort, Database, Error, Index, IndexOptions, KeyColumn, Prefix, RunOptions, Session,
    StreamError, Table, TableOptions, Tx,
};
use candide_derive::Record;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;

/// A row with a key of two words, and three groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct Seat {
    #[key]
    hall: u64,
    #[key]
    seat: u64,
    #[group(owner)]
    owner: u64,
    #[group(price)]
    price: i64,
    #[group(price)]
    sold: bool,
}

/// A row with a key of two words and three groups, in an unordered table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
struct Coat {
    #[key]
    id: u64,
    #[group(owner)]
    owner: u64,
    #[group(price)]
    price: i64,
}

fn seat(hall: u64, seat: u64, owner: u64) -> Seat {
    Seat { hall, seat, owner, price: 0, sold: false }
}

fn scene<P: Protocol>() -> (Database<P>, Table<Seat, P>) {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Seat>("seats").unwrap();
    (db, table)
}

fn ok<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

// Iterators after an error.

struct ErrorsEndScans;

impl ForProtocol for ErrorsEndScans {
    fn run<P: Protocol>(&self) {
        let (db, table) = scene::<P>();
        let other = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let foreign = other.table::<Seat>("seats").unwrap();
        ok(db.run(|tx| (0..4).try_for_each(|id| table.insert(tx, seat(0, id, 0)))));
        let by_owner =
            table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
        let foreign_index =
            foreign.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
        ok(db.run(|tx| {
            let errors: Vec<_> = foreign.scan(tx, .., ()).take(5).collect();
            assert_eq!(errors, [Err(Abort::ForeignTable)]);
            let errors: Vec<_> = foreign.iter(tx, ()).take(5).collect();
            assert_eq!(errors, [Err(Abort::ForeignTable)]);
            let errors: Vec<_> = foreign_index.rows(tx, &0, ()).take(5).collect();
            assert_eq!(errors, [Err(Abort::ForeignTable)]);
            // An empty range of a foreign table is refused, too.
            let errors: Vec<_> = foreign.scan(tx, (1, 0)..(0, 0), ()).take(5).collect();
            assert_eq!(errors, [Err(Abort::ForeignTable)]);
            Ok(())
        }));
        table.drop_index("by_owner").unwrap();
        ok(db.run(|tx| {
            let errors: Vec<_> = by_owner.rows(tx, &0, ()).take(5).collect();
            assert_eq!(errors, [Err(Abort::NoIndex)]);
            Ok(())
        }));
    }
}

#[test]
fn a_scan_gives_one_error_and_then_nothing() {
    for_each(&ErrorsEndScans);
}

struct ConflictsEndScans;

impl ForProtocol for ConflictsEndScans {
    fn run<P: Protocol>(&self) {
        let (db, table) = scene::<P>();
        ok(db.run(|tx| (0..40).try_for_each(|id| table.insert(tx, seat(0, id, 0)))));
        let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
        let result = first.run_with(ONCE(), |tx| {
            let mut scan = table.scan(tx, .., Seat::OWNER);
            scan.next().unwrap()?;
            second.run(|tx| {
                (0..40)
                    .try_for_each(|id| table.modify(tx, &(0, id), Seat::OWNER, |owner| *owner += 1))
            })?;
            // A loop that ignores the errors must end, too.
            let mut errors = 0;
            for row in &mut scan {
                errors += u32::from(row.is_err());
                assert!(errors < 5, "the scan goes on after a conflict");
            }
            for _ in 0..200 {
                // Repeated until the attempt notices that it is doomed.
                let _ = table.get(tx, &(0, 1), Seat::OWNER);
            }
            let after = table.scan(tx, .., ()).take(5).filter(Result::is_err).count();
            assert!(after <= 1);
            assert!(scan.next().is_none());
            Ok(())
        });
        assert!(result == Ok(()) || result == CONFLICT);
    }
}

#[test]
fn a_loop_over_a_scan_that_skips_errors_ends() {
    for_each_overlapping(&ConflictsEndScans);
}

// As of creation.

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert,
    Put,
    Add,
    Modify,
    Delete,
}

/// Applies a step to the table and to the model; both must agree on the outcome.
fn step<P: Protocol>(
    tx: &Tx<'_, P>,
    table: &Table<Seat, P>,
    model: &mut BTreeMap<(u64, u64), Seat>,
    what: Step,
    key: (u64, u64),
    value: u64,
) -> Result<(), Abort> {
    let row = Seat { price: value as i64, ..seat(key.0, key.1, value) };
    match what {
        Step::Insert => {
            let inserted = table.insert_if_absent(tx, row)?;
            assert_eq!(inserted, !model.contains_key(&key));
            model.entry(key).or_insert(row);
        }
        Step::Put => {
            table.put(tx, row)?;
            model.insert(key, row);
        }
        Step::Add => {
            let present = table.update_if_present(tx, &key, Seat::PRICE.add(1))?;
            assert_eq!(present, model.contains_key(&key));
            model.entry(key).and_modify(|row| row.price += 1);
        }
        Step::Modify => {
            let present = table.modify_if_present(tx, &key, Seat::OWNER, |owner| *owner = value)?;
            assert_eq!(present.is_some(), model.contains_key(&key));
            model.entry(key).and_modify(|row| row.owner = value);
        }
        Step::Delete => {
            assert_eq!(table.delete_if_present(tx, &key)?, model.remove(&key).is_some());
        }
    }
    Ok(())
}

const STEPS: [Step; 5] = [Step::Insert, Step::Put, Step::Add, Step::Modify, Step::Delete];

fn scans_see_their_creation<P: Protocol>(splitting: bool, updates: bool, indexed: bool, seed: u64) {
    let mut random = Random::seeded(seed);
    let mut below = move |bound: u64| random.below(bound);
    let builder = Database::<P>::builder().manual_epochs(1).timestamp_splitting(splitting);
    let db = builder.commit_time_updates(updates).factors([Factor::NoBackoff]).build().unwrap();
    let table = db.table::<Seat>("seats").unwrap();
    let index = indexed
        .then(|| table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap());
    let mut committed = BTreeMap::<(u64, u64), Seat>::new();
    let halls = [1, 3, 40][below(3) as usize];
    for _ in 0..12 {
        let gives_up = below(4) == 0;
        let mut model = committed.clone();
        let result: Result<(), Abort> = db.run(|tx| {
            model = committed.clone();
            let mut open = Vec::new();
            for _ in 0..60 {
                match below(8) {
                    0 if open.len() < 4 => {
                        let rows: Vec<_> = model.values().copied().collect();
                        let scan =
                            table.scan(tx, .., (Seat::HALL, Seat::SEAT, Seat::OWNER, Seat::PRICE));
                        open.push((scan, rows.into_iter(), model.clone()));
                    }
                    1 | 2 if !open.is_empty() => {
                        let which = below(open.len() as u64) as usize;
                        let (scan, rows, _) = &mut open[which];
                        let seen = scan.next().transpose()?;
                        let expected =
                            rows.next().map(|row| (row.hall, row.seat, row.owner, row.price));
                        assert_eq!(seen.map(|(_, columns)| columns), expected);
                    }
                    3 => {
                        let which = below(1 << 20);
                        let owner = which % 5;
                        if let Some(index) = &index {
                            let mark =
                                index.rows(tx, &owner, (Seat::HALL, Seat::SEAT, Seat::PRICE));
                            let then = model.clone();
                            let key = (below(halls), below(30));
                            step(tx, &table, &mut model, STEPS[below(5) as usize], key, below(5))?;
                            let found: Result<Vec<_>, _> =
                                mark.map(|row| row.map(|row| row.1)).collect();
                            let rows = then.values().filter(|row| row.owner == owner);
                            assert_eq!(
                                found?,
                                rows.map(|row| (row.hall, row.seat, row.price)).collect::<Vec<_>>()
                            );
                        }
                    }
                    _ => {
                        let key = (below(halls), below(30));
                        step(tx, &table, &mut model, STEPS[below(5) as usize], key, below(5))?;
                    }
                }
            }
            for (scan, rows, _) in open {
                let seen: Result<Vec<_>, _> = scan.map(|row| row.map(|row| row.1)).collect();
                assert_eq!(
                    seen?,
                    rows.map(|row| (row.hall, row.seat, row.owner, row.price)).collect::<Vec<_>>()
                );
            }
            if gives_up { Err(Abort::NotFound) } else { Ok(()) }
        });
        if !gives_up {
            ok(result);
            committed = model;
        }
        let rows = ok(db.run(|tx| {
            let rows: Result<Vec<_>, _> =
                table.scan_rev(tx, .., crate::Whole).map(|row| row.map(|row| row.1)).collect();
            rows
        }));
        assert_eq!(rows, committed.values().rev().copied().collect::<Vec<_>>());
    }
}

struct ScansSeeTheirCreation;

impl ForProtocol for ScansSeeTheirCreation {
    fn run<P: Protocol>(&self) {
        for seed in 0..share(60) {
            let bit = |number: u64| seed >> number & 1 == 1;
            scans_see_their_creation::<P>(bit(0), bit(1), bit(2), seed);
        }
    }
}

#[test]
fn scans_of_one_transaction_see_it_as_it_was_when_each_was_made() {
    for_each(&ScansSeeTheirCreation);
}

// Phantoms.

/// An insert by another session into a scanned range fails the transaction that scanned it, even if
/// that has itself restructured the index meanwhile.
struct ForeignInsertsAreNoticed;

impl ForProtocol for ForeignInsertsAreNoticed {
    fn run<P: Protocol>(&self) {
        for seed in 0..share(300) {
            let mut random = Random::seeded(seed);
            let mut below = move |bound: u64| random.below(bound);
            let (db, table) = scene::<P>();
            let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
            let halls = [1, 2, 30][below(3) as usize];
            let seats = [3, 20, 400][below(3) as usize];
            let rows = below(halls * seats / 2 + 1);
            for _ in 0..rows {
                let key = (below(halls), below(seats));
                ok(second.run(|tx| table.insert_if_absent(tx, seat(key.0, key.1, 0))));
            }
            // Some of them leave tombstones, some leave nothing.
            for _ in 0..below(rows + 1) {
                let key = (below(halls), below(seats));
                ok(second.run(|tx| table.delete_if_present(tx, &key)));
                if below(3) == 0 {
                    db.inner.engine.epochs.pass();
                }
            }
            let hall = below(halls);
            let (from, to) = (below(seats), below(seats));
            let (from, to) = (from.min(to), from.max(to));
            let whole_hall = below(2) == 0;
            let reverse = below(2) == 0;
            let limit = if below(3) == 0 { below(4) as usize } else { usize::MAX };
            let (mut noticed, mut entered) = (false, None);
            let outer = first.run_with(ONCE(), |tx| {
                let scan = match (whole_hall, reverse) {
                    (true, false) => table.scan(tx, Prefix((hall,)), ()),
                    (true, true) => table.scan_rev(tx, Prefix((hall,)), ()),
                    (false, false) => table.scan(tx, (hall, from)..=(hall, to), ()),
                    (false, true) => table.scan_rev(tx, (hall, from)..=(hall, to), ()),
                };
                let (mut lowest, mut highest) = if whole_hall { (0, seats) } else { (from, to) };
                let seen: Result<Vec<_>, _> =
                    scan.take(limit).map(|row| row.map(|row| row.0.1)).collect();
                let seen = seen?;
                if seen.len() == limit {
                    // It has looked no further than the last row.
                    match (reverse, seen.last()) {
                        (_, None) => return Ok(()),
                        (false, Some(&last)) => highest = last,
                        (true, Some(&last)) => lowest = last,
                    }
                }
                let mut own = BTreeSet::new();
                for _ in 0..below(60) {
                    let key = (below(halls), below(seats));
                    if table.insert_if_absent(tx, seat(key.0, key.1, 1))? {
                        own.insert(key);
                    }
                }
                if below(2) == 0 {
                    let many = (0..below(30)).map(|number| (hall, seats + number));
                    table.insert_many(tx, many.map(|(hall, number)| seat(hall, number, 1)))?;
                }
                for key in own.iter().filter(|key| (key.0 + key.1) % 3 == 0) {
                    table.delete(tx, key)?;
                }
                let missing =
                    |number: &u64| !seen.contains(number) && !own.contains(&(hall, *number));
                let enterable: Vec<_> = (lowest..=highest).filter(missing).collect();
                if !enterable.is_empty() {
                    let key = (hall, enterable[below(enterable.len() as u64) as usize]);
                    entered = Some(key);
                    second.run(|tx| table.insert(tx, seat(key.0, key.1, 2)))?;
                }
                // Writes, so that it cannot come before what it missed.
                table.put(tx, seat(1_000, 0, 0))?;
                if let Some((hall, number)) = entered {
                    // It also reads the other's write: no order allows both.
                    noticed = table.get(tx, &(hall, number), Seat::OWNER) == Ok(Some(2));
                }
                Ok(())
            });
            if entered.is_some() {
                // In timestamp order it may come first, as long as it has not seen the other's row.
                assert!(
                    outer == CONFLICT || !noticed,
                    "seed {seed}: {entered:?} {hall} {from} {to} {whole_hall} {reverse}"
                );
                assert!(outer == CONFLICT || P::NAME != "occ", "seed {seed}");
            } else {
                assert_eq!(outer, Ok(()), "seed {seed}");
            }
        }
    }
}

#[test]
fn nobody_enters_a_range_that_was_scanned() {
    for_each_overlapping(&ForeignInsertsAreNoticed);
}

/// Scans of tokens that move between halls, forwards, backwards and by an index.
struct ScansCountWhatMoves;

impl ForProtocol for ScansCountWhatMoves {
    fn run<P: Protocol>(&self) {
        const TOKENS: u64 = 40;
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Seat>("seats").unwrap();
        let by_owner =
            table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
        let by_coat = table
            .create_index("by_hash", (Seat::OWNER, Seat::PRICE), IndexOptions::hashed())
            .unwrap();
        ok(db.run(|tx| (0..TOKENS).try_for_each(|id| table.insert(tx, seat(id % 3, id, 7)))));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (db, table, stop) = (&db, &table, &stop);
                scope.spawn(move || {
                    let mut random = Random::seeded(thread);
                    let mut session = db.session().unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        let (from, to, number) =
                            (random.below(3), random.below(6), random.below(1 << 40));
                        let moved = session.run(|tx| {
                            let found =
                                table.scan(tx, Prefix((from,)), Seat::OWNER).next().transpose()?;
                            let Some((key, _)) = found else { return Ok(()) };
                            table.delete(tx, &key)?;
                            let to = if to > 2 { 3 + number % 50 } else { to };
                            table.insert(tx, seat(to, number, 7))?;
                            // And one moves back.
                            let back = table.scan_rev(tx, (3, 0).., ()).next().transpose()?;
                            if let Some((key, ())) = back
                                && number % 2 == 0
                            {
                                table.delete(tx, &key)?;
                                table.insert(tx, seat(number % 3, key.1, 7))?;
                            }
                            Ok::<_, Abort>(())
                        });
                        match moved {
                            Ok(()) | Err(Abort::Duplicate) => {}
                            other => panic!("{other:?}"),
                        }
                    }
                });
            }
            let mut session = db.session().unwrap();
            let (mut counted, mut rounds) = (0, 0);
            while counted < share(500) && rounds < 5_000 {
                rounds += 1;
                let counts: Result<[u64; 4], Abort> =
                    session.run_with(RunOptions::new().attempts_max(200), |tx| {
                        let count = |rows: &mut dyn Iterator<Item = Result<(), Abort>>| {
                            let mut count = 0;
                            for row in rows {
                                row?;
                                count += 1;
                            }
                            Ok::<_, Abort>(count)
                        };
                        Ok([
                            count(&mut table.scan(tx, .., Seat::OWNER).map(|row| row.map(drop)))?,
                            count(&mut table.scan_rev(tx, .., ()).map(|row| row.map(drop)))?,
                            count(
                                &mut by_owner.rows(tx, &7, Seat::PRICE).map(|row| row.map(drop)),
                            )?,
                            count(&mut by_coat.rows(tx, &(7, 0), ()).map(|row| row.map(drop)))?,
                        ])
                    });
                match counts {
                    Ok(counts) => {
                        assert_eq!(counts, [TOKENS; 4]);
                        counted += 1;
                    }
                    Err(abort) => assert_eq!(abort, Abort::AttemptsExhausted),
                }
            }
            stop.store(true, Ordering::Relaxed);
            eprintln!("counted {counted} times in {rounds} rounds");
            assert!(counted > 0);
        });
    }
}

#[test]
fn scans_count_what_moves() {
    for_each_concurrent(&ScansCountWhatMoves);
}

// Iteration outside transactions.

/// An iteration whose callback changes the table.
struct IterationWithChanges;

impl ForProtocol for IterationWithChanges {
    fn run<P: Protocol>(&self) {
        for ordered in [false, true] {
            let db = Database::<P>::builder().manual_epochs(1).seed(5).build().unwrap();
            let options =
                if ordered { TableOptions::default().ordered() } else { TableOptions::default() };
            let table = db.table_with::<Coat>("coats", options).unwrap();
            let mut session = db.session().unwrap();
            let row = |id| Coat { id, owner: 1, price: 2 };
            ok(session.run(|tx| (0..14).try_for_each(|id| table.insert(tx, row(id)))));
            let (mut seen, mut next) = (Vec::new(), 100);
            let counted = table.for_each_quiescent(|row| {
                if row.id < 100 {
                    seen.push(*row);
                }
                if next < 1_500 {
                    // It leaves no row, but the table has changed.
                    let refused = session.run(|tx| {
                        (next..next + 100)
                            .try_for_each(|id| table.insert(tx, Coat { id, owner: 1, price: 2 }))?;
                        Err::<(), _>(Abort::NotFound)
                    });
                    assert_eq!(refused, Err(Abort::NotFound));
                    next += 100;
                }
            });
            assert_eq!(counted, Ok(14));
            seen.sort_unstable_by_key(|row| row.id);
            assert_eq!(seen, (0..14).map(row).collect::<Vec<_>>());
        }
    }
}

#[test]
fn raw_iteration_stays_right_when_the_table_is_restructured_meanwhile() {
    for_each_overlapping(&IterationWithChanges);
}

/// A writer that disturbs the export that writes to it.
struct Disturbing<F>(Vec<u8>, F);

impl<F: FnMut()> std::io::Write for Disturbing<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.1)();
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_has_every_row_once_or_is_refused() {
    let db = Database::<Occ>::builder().manual_epochs(1).seed(5).build().unwrap();
    let table = db.table::<Coat>("coats").unwrap();
    ok(db
        .run(|tx| (0..3_000).try_for_each(|id| table.insert(tx, Coat { id, owner: 1, price: 2 }))));
    let mut session = db.session().unwrap();
    let mut writes = 0;
    let mut to = Disturbing(Vec::new(), || {
        writes += 1;
        if writes % 500 == 0 && writes < 20_000 {
            let refused = session.run(|tx| {
                let ids = 10_000 * writes..10_000 * writes + 1_000;
                ids.into_iter()
                    .try_for_each(|id| table.insert(tx, Coat { id, owner: 1, price: 2 }))?;
                Err::<(), _>(Abort::NotFound)
            });
            assert_eq!(refused, Err(Abort::NotFound));
        }
    });
    match table.export(&mut to) {
        Ok(count) => {
            assert_eq!(count, 3_000);
            let copy = Database::new();
            let copied = copy.table::<Coat>("coats").unwrap();
            assert_eq!(copied.import(&mut &to.0[..]).unwrap(), 3_000);
        }
        Err(StreamError::Refused(Error::NotQuiescent)) => {}
        Err(other) => panic!("{other:?}"),
    }
    drop(to);
    assert_eq!(table.export(&mut Vec::new()).unwrap(), 3_000, "undisturbed");
}

/// Layers end while the keys of a table are listed, as for a new index.
#[test]
fn a_list_of_keys_has_all_that_were_there_all_the_time() {
    const HALLS: u64 = 60;
    let mut ended_early = 0;
    for _ in 0..150 {
        let (db, table) = scene::<Occ>();
        let (mut owner, mut lister) = (db.session().unwrap(), db.session().unwrap());
        for hall in 0..HALLS {
            ok(owner.run(|tx| table.insert_many(tx, (0..34).map(|number| seat(hall, number, 0)))));
        }
        ok(owner.run(|tx| table.insert_many(tx, (0..100).map(|number| seat(HALLS, number, 0)))));
        for hall in 0..HALLS {
            ok(owner.run(|tx| (0..34).try_for_each(|number| table.delete(tx, &(hall, number)))));
        }
        // Deleted records may be reaped from now on.
        (0..3).for_each(|_| db.inner.engine.epochs.pass());
        let begun = &std::sync::Barrier::new(2);
        let keys = std::thread::scope(|scope| {
            let epochs = db.inner.engine.epochs.clone();
            scope.spawn(move || {
                begun.wait();
                for _ in 0..8 {
                    ok(owner.run(|_| Ok(())));
                    epochs.pass();
                }
            });
            begun.wait();
            lister.linked_keys(table.core())
        });
        let stayed = keys.chunks(2).filter(|key| key[0] == HALLS).count();
        ended_early += u32::from(stayed != 100);
    }
    assert_eq!(ended_early, 0, "lists of 150 that miss keys");
}

/// A layer that is removed during a listing of keys does not end the list.
#[test]
fn a_list_of_keys_goes_on_behind_a_layer_that_ends() {
    let (db, table) = scene::<Occ>();
    let epochs = &db.inner.engine.epochs;
    let mut owner = db.session().unwrap();
    for hall in 0..3 {
        ok(owner.run(|tx| table.insert_many(tx, (0..40).map(|number| seat(hall, number, 0)))));
    }
    ok(owner.run(|tx| (0..40).try_for_each(|number| table.delete(tx, &(1, number)))));
    (0..3).for_each(|_| epochs.pass());
    // Deleted records can be reaped, but have not been.
    let slot = epochs.register();
    epochs.pin(&slot);
    let mut halls = Vec::new();
    table.core().index.for_each(&mut |record| {
        halls.push(record.key_word(0));
        if halls.ends_with(&[1]) {
            (0..4).for_each(|_| ok(owner.run(|_| Ok(()))));
        }
    });
    epochs.unpin(&slot);
    let count = |wanted: u64| halls.iter().filter(|&&hall| hall == wanted).count();
    assert_eq!([count(0), count(2)], [40, 40]);
    assert!((1..40).contains(&count(1)), "the layer has not ended meanwhile: {}", count(1));
}

/// One thread that looks for keys and inserts them: alone, so it never meets a conflict.
struct Alone;

impl ForProtocol for Alone {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let table = db.table::<Coat>("coats").unwrap();
        let coat = |id| Coat { id, owner: 1, price: 2 };
        let mut session = db.session().unwrap();
        for id in 0..5_000 {
            let inserted = session.run_with(RunOptions::new().attempts_max(1), |tx| {
                // Its own key, and some that are in other buckets.
                for other in (id..id + 1_000).step_by(97) {
                    assert_eq!(table.get(tx, &other, Coat::ID)?, None);
                }
                table.insert(tx, coat(id))
            });
            assert_eq!(inserted, Ok(()), "{}: row {id}", P::NAME);
        }
        assert_eq!(session.stats().retries, 0, "{}", P::NAME);
    }
}

#[test]
fn one_thread_alone_meets_no_conflict() {
    for_each_concurrent(&Alone);
}

/// A scan of a hash table whose own inserts make it grow more than once.
struct GrowthUnderAScan;

impl ForProtocol for GrowthUnderAScan {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let table = db.table::<Coat>("coats").unwrap();
        let coat = |id| Coat { id, owner: 1, price: 2 };
        ok(db.run(|tx| (0..50).try_for_each(|id| table.insert(tx, coat(id)))));
        let mut session = db.session().unwrap();
        let seen = session.run_with(RunOptions::new().attempts_max(1), |tx| {
            let mut seen = Vec::new();
            for row in table.iter(tx, Coat::ID) {
                let id = row?.1;
                seen.push(id);
                (0..40).try_for_each(|copy| table.insert(tx, coat(1_000 + id * 100 + copy)))?;
                table.delete(tx, &((id + 1) % 50))?;
                table.insert(tx, coat((id + 1) % 50))?;
            }
            seen.sort_unstable();
            Ok::<_, Abort>(seen)
        });
        assert_eq!(seen, Ok((0..50).collect()), "{}", P::NAME);
        assert_eq!(
            ok(db.run(|tx| table.iter(tx, ()).try_fold(0, |count, row| row.map(|_| count + 1)))),
            2_050
        );
    }
}

#[test]
fn a_scan_of_a_hash_table_bears_its_own_growth() {
    for_each_concurrent(&GrowthUnderAScan);
}

/// The place kept by `insert_many`, which must be checked when others, or the rows' own iterator,
/// change the node.
struct PlacesAreChecked;

impl ForProtocol for PlacesAreChecked {
    fn run<P: Protocol>(&self) {
        for seed in 0..100 {
            let mut random = Random::seeded(seed);
            let (db, table) = scene::<P>();
            let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
            let mut model = BTreeMap::new();
            for _ in 0..6 {
                let (hall, begin) = (random.below(3), random.below(60));
                let mut done = BTreeMap::new();
                let result = first.run(|tx| {
                    done.clear();
                    let mut number = begin;
                    let rows = std::iter::from_fn(|| {
                        number += random.below(3);
                        let key = (hall, number);
                        // Another session, beside what is being inserted.
                        if random.below(3) == 0 {
                            let row = seat(random.below(3), random.below(100) + 1_000, 7);
                            let there = ok(second.run(|tx| table.insert_if_absent(tx, row)));
                            if there {
                                model.insert((row.hall, row.seat), 7);
                            }
                        }
                        // And a write of its own.
                        if random.below(5) == 0 {
                            let row = seat(hall, number + 2_000, 8);
                            if table.insert_if_absent(tx, row) == Ok(true) {
                                done.insert((row.hall, row.seat), 8);
                            }
                        }
                        (number < begin + 40).then(|| seat(key.0, key.1, 9))
                    });
                    let inserted = std::cell::RefCell::new(Vec::new());
                    let rows = rows.inspect(|row| inserted.borrow_mut().push((row.hall, row.seat)));
                    match table.insert_many(tx, rows) {
                        Ok(()) => {}
                        Err(Abort::Duplicate) => drop(inserted.borrow_mut().pop()),
                        Err(abort) => return Err(abort),
                    }
                    done.extend(inserted.into_inner().into_iter().map(|key| (key, 9)));
                    Ok(())
                });
                ok(result);
                model.append(&mut done);
                let gone: Vec<_> = model.keys().copied().filter(|_| random.below(4) == 0).collect();
                for key in gone {
                    ok(second.run(|tx| table.delete(tx, &key)));
                    model.remove(&key);
                }
                db.inner.engine.epochs.pass();
                let rows: Result<Vec<_>, _> =
                    db.run(|tx| table.scan(tx, .., Seat::OWNER).collect());
                assert_eq!(
                    ok(rows),
                    model.iter().map(|(&key, &owner)| (key, owner)).collect::<Vec<_>>(),
                    "seed {seed}"
                );
            }
        }
    }
}

#[test]
fn rows_inserted_together_bear_changes_beside_them() {
    for_each_overlapping(&PlacesAreChecked);
}

// Secondary indexes.

/// Asserts that an index leads to the rows that a search finds.
fn check_index<P: Protocol>(
    session: &mut Session<P>,
    table: &Table<Seat, P>,
    index: &Index<Seat, u64, crate::Ordered, P>,
) {
    let checked = session.run_with(RunOptions::new().attempts_max(50), |tx| {
        let indexed: Result<Vec<_>, _> =
            index.scan(tx, .., crate::Whole).map(|row| row.map(|row| row.1)).collect();
        let mut rows = table
            .scan(tx, .., crate::Whole)
            .map(|row| row.map(|row| row.1))
            .collect::<Result<Vec<_>, _>>()?;
        rows.sort_by_key(|row| row.owner);
        assert_eq!(indexed?, rows);
        Ok::<_, Abort>(())
    });
    assert_eq!(checked, Ok(()), "the index cannot be read");
}

thread_local! {
    /// A callback that runs once, when an index key is computed.
    static AT_KEY: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A part of an index key whose computation runs the test's callback.
const WATCHED: KeyColumn<Seat, u64> = KeyColumn::new("watched", |_| {
    if let Some(step) = AT_KEY.with(|at| at.borrow_mut().take()) {
        step();
    }
    0
});

struct ChangesDuringTheBuild;

impl ForProtocol for ChangesDuringTheBuild {
    fn run<P: Protocol>(&self) {
        for (unique, change) in
            [false, true].into_iter().flat_map(|unique| (0..4).map(move |change| (unique, change)))
        {
            let (db, table) = scene::<P>();
            ok(db.run(|tx| (0..20).try_for_each(|id| table.insert(tx, seat(0, id, id)))));
            let (mut writer, mut reader) = (db.session().unwrap(), db.session().unwrap());
            let (has_begun, begun) = mpsc::channel::<()>();
            let (may_go_on, go_on) = mpsc::channel::<()>();
            let (has_built, built) = mpsc::channel::<()>();
            let index = std::thread::scope(|scope| {
                let table = &table;
                let builder = scope.spawn(move || {
                    AT_KEY.with(|at| {
                        *at.borrow_mut() = Some(Box::new(move || {
                            has_begun.send(()).unwrap();
                            go_on.recv().unwrap();
                        }));
                    });
                    let options = IndexOptions::ordered();
                    let options = if unique { options.unique() } else { options };
                    let index = table.create_index("by_owner", (Seat::OWNER, WATCHED), options);
                    has_built.send(()).unwrap();
                    index
                });
                begun.recv().unwrap();
                // Row 10 has no entry yet; it gets one before this transaction commits.
                ok(writer.run(|tx| {
                    match change {
                        0 => drop(table.delete_if_present(tx, &(0, 10))?),
                        1 => table.modify(tx, &(0, 10), Seat::OWNER, |owner| *owner = 100)?,
                        2 => table.put(tx, seat(0, 10, 100))?,
                        _ => {
                            if table.delete_if_present(tx, &(0, 10))? {
                                table.insert(tx, seat(0, 10, 100))?;
                            }
                        }
                    }
                    if tx.attempt() == 1 {
                        may_go_on.send(()).unwrap();
                        built.recv().unwrap();
                    }
                    Ok(())
                }));
                builder.join().unwrap()
            });
            let index = index.unwrap();
            let read = reader.run_with(RunOptions::new().attempts_max(50), |tx| {
                let rows: Result<Vec<_>, _> =
                    index.scan(tx, .., Seat::OWNER).map(|row| row.map(|row| row.1)).collect();
                rows
            });
            let mut expected: Vec<_> = (0..20).filter(|&owner| owner != 10).collect();
            if change > 0 {
                expected.push(100);
            }
            assert_eq!(read, Ok(expected), "{} unique {unique} change {change}", P::NAME);
        }
    }
}

#[test]
fn a_row_changed_while_its_index_is_built_leaves_no_wrong_entry() {
    for_each_overlapping(&ChangesDuringTheBuild);
}

struct IndexOfTheKey;

impl ForProtocol for IndexOfTheKey {
    fn run<P: Protocol>(&self) {
        for splitting in [false, true] {
            let db = Database::<P>::builder()
                .manual_epochs(1)
                .timestamp_splitting(splitting)
                .build()
                .unwrap();
            let table = db.table::<Seat>("seats").unwrap();
            ok(db.run(|tx| {
                table.insert(tx, seat(1, 5, 0))?;
                table.insert(tx, seat(2, 6, 0))
            }));
            ok(db.run(|tx| table.delete(tx, &(2, 6))));
            let by_seat =
                table.create_index("by_seat", Seat::SEAT, IndexOptions::ordered()).unwrap();
            let seats = |expected: &[(u64, u64)]| {
                let found = db.run_with(RunOptions::new().attempts_max(20), |tx| {
                    let keys: Result<Vec<_>, _> =
                        by_seat.scan(tx, .., ()).map(|row| row.map(|row| row.0)).collect();
                    keys
                });
                assert_eq!(found, Ok(expected.to_vec()), "{} splitting {splitting}", P::NAME);
            };
            seats(&[(1, 5)]);
            ok(db.run(|tx| table.put(tx, seat(3, 4, 0))));
            seats(&[(3, 4), (1, 5)]);
            ok(db.run(|tx| table.insert(tx, seat(4, 9, 0))));
            seats(&[(3, 4), (1, 5), (4, 9)]);
            ok(db.run(|tx| table.put(tx, seat(4, 9, 3))));
            assert_eq!(db.run(|tx| table.delete(tx, &(8, 8))), Err(Abort::NotFound));
            ok(db.run(|tx| table.delete(tx, &(1, 5))));
            seats(&[(3, 4), (4, 9)]);
        }
    }
}

#[test]
fn an_index_may_be_made_of_the_primary_key_alone() {
    for_each(&IndexOfTheKey);
}

struct IndexMadeAgain;

impl ForProtocol for IndexMadeAgain {
    fn run<P: Protocol>(&self) {
        let (db, table) = scene::<P>();
        ok(db.run(|tx| table.insert(tx, seat(1, 5, 0))));
        table.create_index("by_part", Seat::HALL, IndexOptions::ordered()).unwrap();
        table.drop_index("by_part").unwrap();
        let by_seat = table.create_index("by_part", Seat::SEAT, IndexOptions::ordered()).unwrap();
        let found = ok(db.run(|tx| {
            Ok([by_seat.get(tx, &1, ())?.is_some(), by_seat.get(tx, &5, ())?.is_some()])
        }));
        assert_eq!(found, [false, true]);
        table.drop_index("by_part").unwrap();
        // An index that was dropped leaves room for more.
        for _ in 0..40 {
            table.create_index("by_part", Seat::SEAT, IndexOptions::ordered()).unwrap();
            table.drop_index("by_part").unwrap();
        }
    }
}

#[test]
fn an_index_made_again_has_the_key_it_is_given() {
    for_each(&IndexMadeAgain);
}

struct RefusedUpdates;

impl ForProtocol for RefusedUpdates {
    fn run<P: Protocol>(&self) {
        let (db, table) = scene::<P>();
        ok(db.run(|tx| table.insert(tx, seat(1, 5, 0))));
        table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
        ok(db.run(|tx| {
            let refused = table.update(tx, &(1, 5), (Seat::PRICE.add(1), Seat::OWNER.set(7)));
            assert_eq!(refused, Err(Abort::Indexed));
            Ok(())
        }));
        assert_eq!(ok(db.run(|tx| table.read(tx, &(1, 5), Seat::PRICE))), 0);
    }
}

#[test]
fn a_refused_update_has_no_part_that_counts() {
    for_each(&RefusedUpdates);
}

/// Indexed columns are changed by `modify` and `put`, also while an index is added.
#[test]
fn modify_is_not_refused_while_indexes_come_and_go() {
    let db = Database::new();
    let table = db.table::<Seat>("seats").unwrap();
    ok(db.run(|tx| table.insert(tx, seat(1, 5, 0))));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
                table.drop_index("by_owner").unwrap();
            }
        });
        let mut session = db.session().unwrap();
        let results: BTreeSet<_> = (0..200_000)
            .map(|_| {
                session.run(|tx| {
                    table.modify(tx, &(1, 5), (Seat::PRICE, Seat::OWNER), |row| row.1 += 1)
                })
            })
            .map(|result: Result<(), Abort>| format!("{result:?}"))
            .collect();
        stop.store(true, Ordering::Relaxed);
        changer.join().unwrap();
        assert_eq!(results, BTreeSet::from(["Ok(())".to_owned()]));
    });
}

/// Indexes that are added and dropped while rows change; a readable index is always right.
struct IndexesComeAndGo;

impl ForProtocol for IndexesComeAndGo {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Seat>("seats").unwrap();
        ok(db.run(|tx| table.insert_many(tx, (0..300).map(|id| seat(id / 40, id % 40, id % 50)))));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (db, table, stop) = (&db, &table, &stop);
                scope.spawn(move || {
                    let mut random = Random::seeded(thread);
                    let mut session = db.session().unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        let key = (random.below(8), random.below(40));
                        let (what, owner) = (random.below(4), random.below(50));
                        ok(session.run(|tx| match what {
                            0 => table.delete_if_present(tx, &key).map(drop),
                            1 => table.insert_if_absent(tx, seat(key.0, key.1, owner)).map(drop),
                            2 => table.put(tx, seat(key.0, key.1, owner)),
                            _ => table
                                .modify_if_present(tx, &key, Seat::OWNER, |old| *old = owner)
                                .map(drop),
                        }));
                    }
                });
            }
            let mut session = db.session().unwrap();
            let mut built = 0;
            for _ in 0..share(18) {
                let index =
                    table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
                let checked = session.run_with(RunOptions::new().attempts_max(3_000), |tx| {
                    let indexed: Result<Vec<_>, _> = index.scan(tx, .., Seat::OWNER).collect();
                    let rows: Result<Vec<_>, _> = table.scan(tx, .., Seat::OWNER).collect();
                    let (indexed, mut rows) = (indexed?, rows?);
                    rows.sort_by_key(|row| row.1);
                    Ok(indexed == rows)
                });
                assert!(
                    checked == Ok(true) || checked == Err(Abort::AttemptsExhausted),
                    "{checked:?}"
                );
                built += u32::from(checked.is_ok());
                table.drop_index("by_owner").unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            eprintln!("checked {built} times");
        });
        let mut session = db.session().unwrap();
        let index = table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
        check_index(&mut session, &table, &index);
    }
}

#[test]
fn an_index_that_can_be_read_is_right_however_it_came() {
    for_each_concurrent(&IndexesComeAndGo);
}

/// Few values for many rows of a unique index, changed in every way by two threads.
struct UniqueUnderContention;

impl ForProtocol for UniqueUnderContention {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().build().unwrap();
        let table = db.table::<Seat>("seats").unwrap();
        let unique =
            table.create_index("unique", Seat::OWNER, IndexOptions::ordered().unique()).unwrap();
        let other =
            table.create_index("other", (Seat::PRICE, Seat::SEAT), IndexOptions::hashed()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (db, table, unique) = (&db, &table, &unique);
                scope.spawn(move || {
                    let mut random = Random::seeded(thread);
                    let mut session = db.session().unwrap();
                    for _ in 0..6_000 {
                        let steps: Vec<_> = (0..1 + random.below(3))
                            .map(|_| {
                                (
                                    random.below(6),
                                    (random.below(3), random.below(6)),
                                    random.below(8),
                                )
                            })
                            .collect();
                        ok(session.run(|tx| {
                            for &(what, key, owner) in &steps {
                                let row = Seat { price: owner as i64, ..seat(key.0, key.1, owner) };
                                let done = match what {
                                    0 => table.delete_if_present(tx, &key).map(drop),
                                    1 => table.insert_if_absent(tx, row).map(drop),
                                    2 => table.put(tx, row),
                                    3 => table
                                        .modify_if_present(tx, &key, Seat::OWNER, |old| {
                                            *old = owner
                                        })
                                        .map(drop),
                                    4 => {
                                        // The row that has the value gives it away, by a third
                                        // value.
                                        let holder = unique.find(tx, &owner)?.map(|row| *row.key());
                                        match (holder, table.get(tx, &key, Seat::OWNER)?) {
                                            (Some(holder), Some(mine)) if holder != key => {
                                                table.modify(tx, &holder, Seat::OWNER, |old| {
                                                    *old = 1_000 + thread
                                                })?;
                                                table.modify(tx, &key, Seat::OWNER, |old| {
                                                    *old = owner
                                                })?;
                                                table.modify(tx, &holder, Seat::OWNER, |old| {
                                                    *old = mine
                                                })
                                            }
                                            _ => Ok(()),
                                        }
                                    }
                                    _ => {
                                        // Its row is deleted, and another one takes the value.
                                        if let Some(row) = unique.find(tx, &owner)? {
                                            row.delete()?;
                                        }
                                        table.put(tx, row)
                                    }
                                };
                                match done {
                                    Ok(()) | Err(Abort::NotUnique) => {}
                                    Err(abort) => return Err(abort),
                                }
                                let holder = unique.get(tx, &owner, Seat::OWNER)?;
                                if holder.is_some_and(|holder| holder != owner) {
                                    // Never to be seen.
                                    return Err(Abort::NotFound);
                                }
                            }
                            Ok(())
                        }));
                    }
                });
            }
        });
        let mut session = db.session().unwrap();
        check_index(&mut session, &table, &unique);
        ok(session.run(|tx| {
            let rows = table
                .scan(tx, .., crate::Whole)
                .map(|row| row.map(|row| row.1))
                .collect::<Result<Vec<_>, _>>()?;
            let owners: BTreeSet<_> = rows.iter().map(|row| row.owner).collect();
            assert_eq!(owners.len(), rows.len());
            for row in &rows {
                let found: Result<Vec<_>, _> = other.rows(tx, &(row.price, row.seat), ()).collect();
                assert!(found?.contains(&((row.hall, row.seat), ())));
            }
            assert_eq!(other.core_entries(tx)?, rows.len());
            Ok(())
        }));
    }
}

impl<K, I, P: Protocol> Index<Seat, K, I, P> {
    /// Counts the existing entries.
    fn core_entries(&self, tx: &Tx<'_, P>) -> Result<usize, Abort> {
        let entries = self.entries_for_tests();
        let range = crate::schema::WordRange::beginning_with(&[], entries.layout.key_words());
        let mut way = crate::api::Way::new(tx, entries, range, crate::index::Direction::Forward);
        let state = &mut *tx.state.borrow_mut();
        let mut count = 0;
        while let Some(entry) = way.next(tx, state, entries)? {
            let at = entries.layout.at(entry, crate::schema::Unit::ROW);
            count += usize::from(state.read_at_mark(tx.engine, at, way.mark(), |_| {})?);
        }
        Ok(count)
    }
}

#[test]
fn a_unique_index_is_one_to_one_under_contention() {
    for_each_concurrent(&UniqueUnderContention);
}

/// An operation that a limit refuses in the middle, which must leave no effect.
struct LimitsRefuseWhole;

impl ForProtocol for LimitsRefuseWhole {
    fn run<P: Protocol>(&self) {
        let db = Database::<P>::builder().manual_epochs(1).memory_limit(3 << 20).build().unwrap();
        let table = db.table::<Seat>("seats").unwrap();
        let first = table.create_index("first", Seat::OWNER, IndexOptions::ordered()).unwrap();
        table.create_index("second", Seat::PRICE, IndexOptions::hashed()).unwrap();
        table
            .create_index("third", (Seat::OWNER, Seat::PRICE), IndexOptions::ordered().unique())
            .unwrap();
        let (mut refused, mut number) = (0, 0);
        while refused < 50 {
            let done = db.run(|tx| {
                let row = Seat { price: number as i64, ..seat(number % 7, number, number) };
                match table.insert(tx, row) {
                    Err(Abort::MemoryLimit) => Ok(false),
                    other => other.map(|()| true),
                }
            });
            refused += u64::from(!ok(done));
            number += 1;
        }
        let mut session = db.session().unwrap();
        check_index(&mut session, &table, &first);
        // Changing a row needs room for entries, too.
        let key = ok(session.run(|tx| Ok(table.iter(tx, ()).next().transpose()?.unwrap().0)));
        for owner in 1_000_000..1_000_050 {
            ok(session.run(|tx| match table.modify(tx, &key, Seat::OWNER, |old| *old = owner) {
                Err(Abort::MemoryLimit) => Ok(()),
                other => other,
            }));
        }
        check_index(&mut session, &table, &first);
    }
}

#[test]
fn what_a_limit_refuses_has_not_begun() {
    test_under_limits(&LimitsRefuseWhole);
}

fn test_under_limits(test: &impl ForProtocol) {
    test.run::<Occ>();
    crate::protocols::under_a_lock(|| test.run::<crate::Serial>());
    test.run::<TicToc>();
}

/// If two rows with one value are inserted while a unique index is built, either the index or a row
/// is refused.
#[test]
fn no_duplicate_slips_into_a_unique_index_that_is_being_made() {
    let db = Database::new();
    let table = db.table::<Seat>("seats").unwrap();
    ok(db.run(|tx| table.insert_many(tx, (0..200).map(|id| seat(id / 40, id % 40, id)))));
    let stop = AtomicBool::new(false);
    let (mut made, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                let mut random = Random::seeded(thread);
                let mut session = db.session().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let (number, owner) = (random.below(40), random.below(1_000));
                    let changed = session.run(|tx| {
                        table.put(tx, seat(9, number, owner))?;
                        table.delete_if_present(tx, &(9, (number + 20) % 40))?;
                        Ok(())
                    });
                    assert!(matches!(changed, Ok(()) | Err(Abort::NotUnique)), "{changed:?}");
                }
            });
        }
        let mut session = db.session().unwrap();
        for _ in 0..share(150) {
            match table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered().unique()) {
                Ok(index) => {
                    let checked = session.run_with(RunOptions::new().attempts_max(3_000), |tx| {
                        let indexed: Result<Vec<_>, _> = index.scan(tx, .., Seat::OWNER).collect();
                        let rows: Result<Vec<_>, _> = table.scan(tx, .., Seat::OWNER).collect();
                        let (indexed, mut rows) = (indexed?, rows?);
                        rows.sort_by_key(|row| row.1);
                        Ok(indexed == rows && rows.windows(2).all(|two| two[0].1 < two[1].1))
                    });
                    assert!(
                        checked == Ok(true) || checked == Err(Abort::AttemptsExhausted),
                        "{checked:?}"
                    );
                    table.drop_index("by_owner").unwrap();
                    made += 1;
                }
                Err(Error::NotUnique { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("made {made}, refused {refused}");
}

struct OldReadersOfNewIndexes;

impl ForProtocol for OldReadersOfNewIndexes {
    fn run<P: Protocol>(&self) {
        let (db, table) = scene::<P>();
        ok(db.run(|tx| (0..200).try_for_each(|id| table.insert(tx, seat(0, id, id)))));
        let mut reader = db.session().unwrap();
        let (has_begun, begun) = mpsc::channel::<()>();
        let (may_go_on, go_on) = mpsc::channel::<()>();
        let (has_built, built) = mpsc::channel();
        std::thread::scope(|scope| {
            let table = &table;
            scope.spawn(move || {
                AT_KEY.with(|at| {
                    *at.borrow_mut() = Some(Box::new(move || {
                        has_begun.send(()).unwrap();
                        go_on.recv().unwrap();
                    }));
                });
                let index =
                    table.create_index("by_owner", (Seat::OWNER, WATCHED), IndexOptions::ordered());
                has_built.send(index.unwrap()).unwrap();
            });
            begun.recv().unwrap();
            let mut index = None;
            let count = reader.run(|tx| {
                assert_eq!(table.read(tx, &(0, 3), Seat::OWNER), Ok(3));
                if index.is_none() {
                    may_go_on.send(()).unwrap();
                    index = Some(built.recv().unwrap());
                }
                let rows: Result<Vec<_>, _> = index.as_ref().unwrap().scan(tx, .., ()).collect();
                rows.map(|rows| rows.len())
            });
            assert_eq!(ok(count), 200, "{}", P::NAME);
        });
    }
}

#[test]
fn who_began_before_an_index_was_built_finds_all_rows_by_it() {
    OldReadersOfNewIndexes.run::<Occ>();
    OldReadersOfNewIndexes.run::<TicToc>();
    OldReadersOfNewIndexes.run::<Mvcc>();
}
