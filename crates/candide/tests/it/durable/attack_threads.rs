//! Transactions of several threads on few rows, whose changes recovery must repeat in their order.

use super::{contents, new_items, open_items, options};
use crate::common::{Item, Random, builder, is_in_share, ok, properties, share, spawn};
use candide::{Abort, Pending, Protocol};
use candide_log_testing::{CrashOptions, SimDisk};
use std::sync::Arc;
use std::time::Duration;

protocol_tests!(all: changes_of_many_threads_are_repeated_in_their_order);

/// Rows are deleted and inserted again, so that records are removed from their tables meanwhile.
fn changes_of_many_threads_are_repeated_in_their_order<P: Protocol>() {
    let disk = SimDisk::new();
    let open = |splitting| {
        let builder = builder::<P>().timestamp_splitting(splitting);
        let options = options().flush_every(Duration::ZERO);
        let db = builder.open_on(Arc::new(disk.clone()), options).unwrap();
        let items = db.table::<Item>("items").unwrap();
        (db, items)
    };
    let threads = if properties::<P>().one_session { 1 } else { 4 };
    for seed in 0..share(6) {
        let (db, items) = open(seed % 3 > 0);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (db, items) = (&db, &items);
                spawn(scope, move || {
                    let mut session = (threads > 1).then(|| db.session().unwrap());
                    let mut last: Option<Pending<()>> = None;
                    for step in 0..share(300) {
                        let body = |tx: &candide::Tx<'_, P>| {
                            let random = &mut Random::seeded(seed << 32 | thread << 16 | step);
                            for _ in 0..1 + random.below(4) {
                                let (id, value) = (random.below(4), random.below(50));
                                let changed = match random.below(8) {
                                    0 | 1 => items.insert(tx, Item::new(id, value as i64)),
                                    2 | 3 => items.delete(tx, &id),
                                    4 => items.update(tx, &id, Item::OTHER.set(value)),
                                    5 => items.put(tx, Item::new(id, value as i64)),
                                    _ => items.update(tx, &id, Item::COUNT.add(value as i64)),
                                };
                                match changed {
                                    Err(Abort::NotFound | Abort::Duplicate) => {}
                                    other => other?,
                                }
                            }
                            Ok(())
                        };
                        let pending = match &mut session {
                            Some(session) => session.run_logged(body),
                            None => db.run_logged(body),
                        };
                        if step % 40 == 7 {
                            let _ = last.take().map(Pending::wait);
                        }
                        assert_eq!(pending.peek(), Ok(&()));
                        last = Some(pending);
                    }
                });
            }
            if seed % 2 == 1 {
                db.checkpoint().unwrap();
            }
        });
        assert!(db.log_failure().is_none(), "{:?}", db.log_failure());
        let before = contents(&items);
        drop((db, items));
        let (_db, items) = open(seed % 2 == 0);
        assert_eq!(contents(&items), before, "seed {seed}");
    }
}

protocol_tests!(all: every_crash_keeps_acknowledged_commits_and_a_prefix_of_each_thread);

/// Each thread inserts rows of its own, one after another, and notes the position of the disk after
/// each acknowledgement.
fn every_crash_keeps_acknowledged_commits_and_a_prefix_of_each_thread<P: Protocol>() {
    let (disk, db, items) = new_items::<P>();
    let threads = if properties::<P>().one_session { 1 } else { 3 };
    let told: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let (db, items, disk) = (&db, &items, &disk);
        let insert_some = move |thread: u64| {
            let mut session = db.session().unwrap();
            let mut told = Vec::new();
            for number in 0..8 {
                let row = Item::new(thread << 8 | number, 1);
                // Every other transaction is acknowledged by the wait of a later one that reads.
                let inserted = session.run_logged(|tx| items.insert(tx, row));
                if number % 2 == 0 {
                    inserted.wait().unwrap();
                } else {
                    assert_eq!(inserted.peek(), Ok(&()));
                    ok(session.run(|tx| items.read(tx, &row.id, Item::COUNT)));
                }
                told.push(disk.position());
            }
            told
        };
        let threads: Vec<_> =
            (0..threads).map(|thread| spawn(scope, move || insert_some(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop((db, items));
    let crashes = CrashOptions { exhaustive: 0, pieces: 2, samples: 1, ..CrashOptions::default() };
    for (place, state) in disk.crash_states(&crashes).enumerate() {
        if !is_in_share::<P>(place) {
            continue;
        }
        let position = state.id().position;
        let (_db, items) = open_items::<P>(&state.disk());
        let found = contents(&items);
        for (thread, told) in (0..).zip(&told) {
            let there: Vec<bool> = (0..told.len() as u64)
                .map(|number| found.contains_key(&(thread << 8 | number)))
                .collect();
            let told = told.iter().filter(|&&at| at <= position).count();
            assert!(there[..told].iter().all(|&there| there), "{told}: {}", state.describe());
            assert!(there.is_sorted_by(|a, b| a >= b), "{there:?}: {}", state.describe());
        }
    }
}
