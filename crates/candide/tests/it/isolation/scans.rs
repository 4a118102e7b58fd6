//! Tests of the results of scans beside changes of their own transaction.

use crate::common::{
    CONFLICT, Coat, ONCE, Random, Seat, builder, database_with, ok, scene, seat, share, spawn,
};
use candide::experiments::Factor;
use candide::{Abort, IndexOptions, Prefix, Protocol, RunOptions, Table, Tx, Whole};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

// Tests of iterators after an error.

protocol_tests!(all: a_scan_returns_one_error_and_ends);
fn a_scan_returns_one_error_and_ends<P: Protocol>() {
    let (db, table) = scene::<P>();
    let other = builder::<P>().build().unwrap();
    let foreign = other.table::<Seat>("seats").unwrap();
    ok(db.run(|tx| (0..4).try_for_each(|id| table.insert(tx, seat(0, id, 0)))));
    let by_owner = table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    let foreign_index =
        foreign.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    ok(db.run(|tx| {
        let errors: Vec<_> = foreign.scan(tx, .., ()).take(5).collect();
        assert_eq!(errors, [Err(Abort::ForeignTable)]);
        let errors: Vec<_> = foreign.iter(tx, ()).take(5).collect();
        assert_eq!(errors, [Err(Abort::ForeignTable)]);
        let errors: Vec<_> = foreign_index.rows(tx, 0, ()).take(5).collect();
        assert_eq!(errors, [Err(Abort::ForeignTable)]);
        // An empty range of a foreign table is refused, too.
        let errors: Vec<_> = foreign.scan(tx, (1, 0)..(0, 0), ()).take(5).collect();
        assert_eq!(errors, [Err(Abort::ForeignTable)]);
        Ok(())
    }));
    table.drop_index("by_owner").unwrap();
    ok(db.run(|tx| {
        let errors: Vec<_> = by_owner.rows(tx, 0, ()).take(5).collect();
        assert_eq!(errors, [Err(Abort::NoIndex)]);
        Ok(())
    }));
}

protocol_tests!(overlapping: a_loop_over_a_scan_that_skips_errors_ends);
fn a_loop_over_a_scan_that_skips_errors_ends<P: Protocol>() {
    let (db, table) = scene::<P>();
    ok(db.run(|tx| (0..40).try_for_each(|id| table.insert(tx, seat(0, id, 0)))));
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    let result = first.with(ONCE()).run(|tx| {
        let mut scan = table.scan(tx, .., Seat::OWNER);
        scan.next().unwrap()?;
        second.run(|tx| {
            (0..40).try_for_each(|id| table.modify(tx, &(0, id), Seat::OWNER, |owner| *owner += 1))
        })?;
        // A loop that ignores the errors must end, too.
        let mut errors = 0;
        for row in &mut scan {
            errors += u32::from(row.is_err());
            assert!(errors < 5, "the scan goes on after a conflict");
        }
        for _ in 0..200 {
            // The read is repeated until the attempt notices that it is doomed.
            let _ = table.get(tx, &(0, 1), Seat::OWNER);
        }
        let after = table.scan(tx, .., ()).take(5).filter(Result::is_err).count();
        assert!(after <= 1);
        assert!(scan.next().is_none());
        Ok(())
    });
    assert!(result == Ok(()) || result == CONFLICT);
}

// Tests that a scan shows the rows as they were when the scan was created.

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert,
    Put,
    Add,
    Modify,
    Delete,
}

/// Applies a step to the table and to the model. Both must agree on the outcome.
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

fn a_scan_sees_the_state_at_its_creation<P: Protocol>(
    splitting: bool,
    updates: bool,
    indexed: bool,
    seed: u64,
) {
    let mut random = Random::seeded(seed);
    let mut below = move |bound: u64| random.below(bound);
    let builder = builder::<P>().timestamp_splitting(splitting);
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
                table.scan_rev(tx, .., Whole).map(|row| row.map(|row| row.1)).collect();
            rows
        }));
        assert_eq!(rows, committed.values().rev().copied().collect::<Vec<_>>());
    }
}

protocol_tests!(all: scans_of_one_transaction_see_it_as_it_was_when_each_was_made);
fn scans_of_one_transaction_see_it_as_it_was_when_each_was_made<P: Protocol>() {
    for seed in 0..share(60) {
        let bit = |number: u64| seed >> number & 1 == 1;
        a_scan_sees_the_state_at_its_creation::<P>(bit(0), bit(1), bit(2), seed);
    }
}

protocol_tests!(concurrent: scans_see_every_row_that_moves_once);
/// Tokens move between halls. Scans, forwards, backwards and by an index, must count all tokens.
fn scans_see_every_row_that_moves_once<P: Protocol>() {
    const TOKENS: u64 = 40;
    let (db, table) = database_with::<Seat, P>("seats");
    let by_owner = table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered()).unwrap();
    let by_coat =
        table.create_index("by_hash", (Seat::OWNER, Seat::PRICE), IndexOptions::hashed()).unwrap();
    ok(db.run(|tx| (0..TOKENS).try_for_each(|id| table.insert(tx, seat(id % 3, id, 7)))));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, table, stop) = (&db, &table, &stop);
            spawn(scope, move || {
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
                        // One token moves back.
                        let back = table.scan_rev(tx, (3, 0).., ()).next().transpose()?;
                        if let Some((key, ())) = back
                            && number % 2 == 0
                        {
                            table.delete(tx, &key)?;
                            table.insert(tx, seat(number % 3, key.1, 7))?;
                        }
                        Ok(())
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
                session.with(RunOptions::new().attempts_max(200)).run(|tx| {
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
                        count(&mut by_owner.rows(tx, 7, Seat::PRICE).map(|row| row.map(drop)))?,
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

protocol_tests!(concurrent: a_scan_of_a_hash_table_is_complete_while_the_table_grows);
/// A transaction scans a hash table and makes it grow more than once by its own inserts.
fn a_scan_of_a_hash_table_is_complete_while_the_table_grows<P: Protocol>() {
    let (db, table) = database_with::<Coat, P>("coats");
    let coat = |id| Coat { id, owner: 1, price: 2 };
    ok(db.run(|tx| (0..50).try_for_each(|id| table.insert(tx, coat(id)))));
    let mut session = db.session().unwrap();
    let seen = session.with(RunOptions::new().attempts_max(1)).run(|tx| {
        let mut seen = Vec::new();
        for row in table.iter(tx, Coat::ID) {
            let id = row?.1;
            seen.push(id);
            (0..40).try_for_each(|copy| table.insert(tx, coat(1_000 + id * 100 + copy)))?;
            table.delete(tx, &((id + 1) % 50))?;
            table.insert(tx, coat((id + 1) % 50))?;
        }
        seen.sort_unstable();
        Ok(seen)
    });
    assert_eq!(seen, Ok((0..50).collect()), "{}", P::NAME);
    assert_eq!(
        ok(db.run(|tx| table.iter(tx, ()).try_fold(0, |count, row| row.map(|_| count + 1)))),
        2_050
    );
}
