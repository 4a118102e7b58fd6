//! Tests of snapshots of rows that move while the snapshots are read.

use crate::common::{Item, Random, builder, ok, spawn};
use candide::{Versioned, Whole};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

protocol_tests!(versioned: a_snapshot_sees_every_row_that_moves_once);
fn a_snapshot_sees_every_row_that_moves_once<P: Versioned>() {
    /// The number of rows, the amount in each row, and the number of threads that move rows and
    /// amounts.
    const ROWS: u64 = 64;
    const EACH: i64 = 100;
    const WRITERS: u64 = 3;
    let db = builder::<P>().build().unwrap();
    let [left, right] = ["left", "right"].map(|name| db.table::<Item>(name).unwrap());
    ok(db.run(|tx| (0..ROWS).try_for_each(|id| left.insert(tx, Item::new(id, EACH)))));
    let (done, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let sums = std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            let (db, left, right, done, moved) = (&db, &left, &right, &done, &moved);
            spawn(scope, move || {
                let (mut session, mut random) = (db.session().unwrap(), Random::seeded(thread));
                while !done.load(Ordering::Relaxed) {
                    // Rows move from table to table, and amounts from row to row.
                    let (from, to) = (random.below(ROWS), random.below(ROWS));
                    ok(session.run(|tx| {
                        let (here, there) = if left.get(tx, &from, ())?.is_some() {
                            (left, right)
                        } else {
                            (right, left)
                        };
                        let row = here.read(tx, &from, Whole)?;
                        here.delete(tx, &from)?;
                        there.insert(tx, row)?;
                        let table = if left.get(tx, &to, ())?.is_some() { left } else { right };
                        table.update(tx, &to, Item::COUNT.add(1))?;
                        there.update(tx, &from, Item::COUNT.sub(1))
                    }));
                    moved.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut sums = Vec::new();
        let mut kept = std::collections::VecDeque::new();
        while moved.load(Ordering::Relaxed) < 3_000 || sums.len() < 200 {
            kept.push_back(db.snapshot());
            if kept.len() > 5 {
                kept.pop_front();
            }
            let mut calls = 0;
            for snapshot in &kept {
                sums.push(ok(snapshot.run(|tx| {
                    calls += 1;
                    let (mut rows, mut sum) = (0, 0);
                    for row in left.iter(tx, Item::COUNT).chain(right.iter(tx, Item::COUNT)) {
                        rows += 1;
                        sum += row?.1;
                    }
                    Ok((rows, sum))
                })));
            }
            assert_eq!(calls, kept.len(), "a closure was run again");
        }
        done.store(true, Ordering::Relaxed);
        sums
    });
    assert!(sums.into_iter().all(|sum| sum == (ROWS, ROWS as i64 * EACH)));
}
