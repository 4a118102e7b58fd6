//! Scans, ordered tables and secondary indexes under interleavings made to break them.
//!
//! Most need no threads: a closure runs another session's whole transaction inside itself.

use crate::engine::Protocol;
use crate::protocols::Occ;
use crate::sync::Random;
use crate::sync::size::{Sample, share};
use crate::tests::seats::{Coat, Seat, check_index, seat};
use crate::tests::transactions::{CONFLICT, ONCE};
use crate::{Abort, Database, Index, IndexOptions, Prefix, RunOptions, Table, Tx};
use std::collections::{BTreeMap, BTreeSet};

fn scene<P: Protocol>() -> (Database<P>, Table<Seat, P>) {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Seat>("seats").unwrap();
    (db, table)
}

fn ok<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

// Phantoms.

protocol_tests!(overlapping: no_insert_enters_a_range_that_was_scanned);
/// If another session inserts into a scanned range, the transaction that scanned it fails, even if
/// it has itself restructured the index meanwhile.
fn no_insert_enters_a_range_that_was_scanned<P: Protocol>() {
    let mut sample = Sample::one_in(8);
    for seed in (0..300).filter(|_| sample.has_next()) {
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
        // Some of the deleted rows leave tombstones, others leave nothing.
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
        let outer = first.with(ONCE()).run(|tx| {
            let scan: Box<dyn Iterator<Item = _>> = match (whole_hall, reverse) {
                (true, false) => Box::new(table.scan(tx, Prefix((hall,)), ())),
                (true, true) => Box::new(table.scan_rev(tx, Prefix((hall,)), ())),
                (false, false) => Box::new(table.scan(tx, (hall, from)..=(hall, to), ())),
                (false, true) => Box::new(table.scan_rev(tx, (hall, from)..=(hall, to), ())),
            };
            let (mut lowest, mut highest) = if whole_hall { (0, seats) } else { (from, to) };
            let seen: Result<Vec<_>, _> =
                scan.take(limit).map(|row| row.map(|row| row.0.1)).collect();
            let seen = seen?;
            if seen.len() == limit {
                // The scan has looked no further than the last row.
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
            let missing = |number: &u64| !seen.contains(number) && !own.contains(&(hall, *number));
            let enterable: Vec<_> = (lowest..=highest).filter(missing).collect();
            if !enterable.is_empty() {
                let key = (hall, enterable[below(enterable.len() as u64) as usize]);
                entered = Some(key);
                second.run(|tx| table.insert(tx, seat(key.0, key.1, 2)))?;
            }
            // The transaction writes, so that it cannot come before the insert that it missed.
            table.put(tx, seat(1_000, 0, 0))?;
            if let Some((hall, number)) = entered {
                // The transaction also reads the write of the other transaction: no order allows
                // both.
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

/// Layers end while the keys of a table are listed, as for a new index.
#[test]
fn a_list_of_keys_has_every_key_that_stayed() {
    const HALLS: u64 = 60;
    let mut ended_early = 0;
    let lists = share(150);
    for _ in 0..lists {
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
    assert_eq!(ended_early, 0, "lists of {lists} that miss keys");
}

/// A layer that is removed during a listing of keys does not end the list.
#[test]
fn a_list_of_keys_continues_after_a_layer_that_is_removed() {
    let (db, table) = scene::<Occ>();
    let epochs = &db.inner.engine.epochs;
    let mut owner = db.session().unwrap();
    for hall in 0..3 {
        ok(owner.run(|tx| table.insert_many(tx, (0..40).map(|number| seat(hall, number, 0)))));
    }
    ok(owner.run(|tx| (0..40).try_for_each(|number| table.delete(tx, &(1, number)))));
    (0..3).for_each(|_| epochs.pass());
    // Deleted records can be reaped, but have not been reaped.
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

protocol_tests!(concurrent: inserts_and_deletes_of_one_thread_alone_meet_no_conflict);
/// One thread looks for keys and inserts them. No other thread runs, so it never meets a conflict.
fn inserts_and_deletes_of_one_thread_alone_meet_no_conflict<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let table = db.table::<Coat>("coats").unwrap();
    let coat = |id| Coat { id, owner: 1, price: 2 };
    let mut session = db.session().unwrap();
    for id in 0..5_000 {
        let inserted = session.with(RunOptions::new().attempts_max(1)).run(|tx| {
            // The transaction reads the key that it inserts, and keys in other buckets.
            for other in (id..id + 1_000).step_by(97) {
                assert_eq!(table.get(tx, &other, Coat::ID)?, None);
            }
            table.insert(tx, coat(id))
        });
        assert_eq!(inserted, Ok(()), "{}: row {id}", P::NAME);
    }
    assert_eq!(session.stats().retries, 0, "{}", P::NAME);
}

protocol_tests!(overlapping: a_batch_insert_is_complete_beside_concurrent_changes);
/// `insert_many` keeps its place in a node, and must check the place when other sessions, or the
/// iterator of the rows, change the node.
fn a_batch_insert_is_complete_beside_concurrent_changes<P: Protocol>() {
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
                    // Another session inserts a row next to the batch.
                    if random.below(3) == 0 {
                        let row = seat(random.below(3), random.below(100) + 1_000, 7);
                        let there = ok(second.run(|tx| table.insert_if_absent(tx, row)));
                        if there {
                            model.insert((row.hall, row.seat), 7);
                        }
                    }
                    // The iterator of the rows also inserts a row in the batch's transaction.
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
            let rows: Result<Vec<_>, _> = db.run(|tx| table.scan(tx, .., Seat::OWNER).collect());
            assert_eq!(
                ok(rows),
                model.iter().map(|(&key, &owner)| (key, owner)).collect::<Vec<_>>(),
                "seed {seed}"
            );
        }
    }
}

protocol_tests!(concurrent: a_unique_index_is_one_to_one_under_contention);
/// Two threads change rows in every way; the rows compete for few values of a unique index.
fn a_unique_index_is_one_to_one_under_contention<P: Protocol>() {
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
                for _ in 0..share(6_000) {
                    let steps: Vec<_> = (0..1 + random.below(3))
                        .map(|_| {
                            (random.below(6), (random.below(3), random.below(6)), random.below(8))
                        })
                        .collect();
                    ok(session.run(|tx| {
                        for &(what, key, owner) in &steps {
                            let row = Seat { price: owner as i64, ..seat(key.0, key.1, owner) };
                            let done = tx.attempt(|tx| match what {
                                0 => table.delete_if_present(tx, &key).map(drop),
                                1 => table.insert_if_absent(tx, row).map(drop),
                                2 => table.put(tx, row),
                                3 => table
                                    .modify_if_present(tx, &key, Seat::OWNER, |old| *old = owner)
                                    .map(drop),
                                4 => {
                                    // The row that has the value exchanges it for the value of the
                                    // row `key`.
                                    let holder = unique.find(tx, &owner)?.map(|row| *row.key());
                                    match (holder, table.get(tx, &key, Seat::OWNER)?) {
                                        (Some(holder), Some(mine)) if holder != key => {
                                            table.modify(tx, &holder, Seat::OWNER, |old| {
                                                *old = mine
                                            })?;
                                            table.modify(tx, &key, Seat::OWNER, |old| *old = owner)
                                        }
                                        _ => Ok(()),
                                    }
                                }
                                _ => {
                                    // Another row takes the value, and then its row is deleted.
                                    let holder = unique.find(tx, &owner)?;
                                    table.put(tx, row)?;
                                    match holder {
                                        Some(holder) if *holder.key() != key => holder.delete(),
                                        _ => Ok(()),
                                    }
                                }
                            });
                            match done {
                                Ok(()) | Err(Abort::NotUnique) => {}
                                Err(abort) => return Err(abort),
                            }
                            let holder = unique.get(tx, &owner, Seat::OWNER)?;
                            if holder.is_some_and(|holder| holder != owner) {
                                // No serializable transaction sees this state.
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

impl<K, I, P: Protocol> Index<Seat, K, I, P> {
    /// Counts the existing entries.
    fn core_entries(&self, tx: &Tx<'_, P>) -> Result<usize, Abort> {
        let entries = self.entries_for_tests();
        let range = crate::schema::WordRange::beginning_with(&[], entries.layout.key_words());
        let mut way = crate::api::Way::new(tx, entries, range, crate::index::Direction::Forward);
        let state = &mut *tx.state.borrow_mut();
        let mut count = 0;
        while let Some(entry) = way.next::<true, P>(tx, state, entries)? {
            let at = entries.layout.at(entry, crate::schema::Unit::ROW);
            count += usize::from(state.read_at_mark(tx.engine, at, way.mark(), |_| {})?);
        }
        Ok(count)
    }
}
