//! Blocks that open snapshots see.

use super::{Scene, block, text};
use crate::Whole;
use crate::tests::snapshots::Chained;
use crate::tests::waiting::eventually;

protocol_tests!(versioned: a_snapshot_keeps_the_blocks_that_it_sees);
/// The versions of the unit differ now in the word that names a block, now in another one.
fn a_snapshot_keeps_the_blocks_that_it_sees<P: Chained>() {
    let scene = Scene::<P>::new(false);
    let Scene { db, notes } = &scene;
    db.run(|tx| scene.insert(tx, 1, [&text(1), &text(2)])).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..40u64 {
        snapshots.push((db.snapshot(), db.run(|tx| scene.get(tx, 1)).unwrap()));
        for step in 0..1 + round % 3 {
            let number = 3 * round + step;
            db.run(|tx| match (round * 5 + step) % 8 {
                0 if notes.get(tx, 1, Whole)?.is_some() => notes.delete(tx, 1),
                _ if notes.get(tx, 1, Whole)?.is_none() => {
                    scene.put(tx, 1, [&text(number), &text(number + 1)])
                }
                1 | 4 => scene.set_first(tx, 1, &text(number)),
                2 => scene.set_second(tx, 1, &text(number)),
                _ => scene.count(tx, 1),
            })
            .unwrap();
        }
        for (snapshot, seen) in &snapshots {
            assert_eq!(snapshot.run(|tx| scene.get(tx, 1)), Ok(seen.clone()), "{}", P::NAME);
        }
        if round % 5 == 4 {
            snapshots.remove((round as usize * 7) % snapshots.len());
        }
    }
    while !snapshots.is_empty() {
        snapshots.remove(snapshots.len() * 5 / 7);
        db.run(|tx| match notes.get(tx, 1, Whole)? {
            Some(_) => scene.count(tx, 1),
            None => Ok(()),
        })
        .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        for (snapshot, seen) in &snapshots {
            assert_eq!(snapshot.run(|tx| scene.get(tx, 1)), Ok(seen.clone()), "{}", P::NAME);
        }
    }
    scene.settle();
}

protocol_tests!(versioned: a_snapshot_between_two_changes_of_other_columns_keeps_its_block);
/// An undo record holds all words between the first and the last that change, and pruning makes
/// larger ones of smaller ones. Copies of a row name its blocks, too.
fn a_snapshot_between_two_changes_of_other_columns_keeps_its_block<P: Chained>() {
    let scene = Scene::<P>::new(false);
    let db = &scene.db;
    db.run(|tx| scene.insert(tx, 1, [&block(1), &block(2)])).unwrap();
    db.run(|tx| scene.set_first(tx, 1, &block(3))).unwrap();
    db.run(|tx| scene.count(tx, 1)).unwrap();
    let snapshot = db.snapshot();
    db.run(|tx| scene.set_second(tx, 1, &block(4))).unwrap();
    db.run(|tx| scene.count(tx, 1)).unwrap();
    db.run(|tx| scene.set_first(tx, 1, &block(5))).unwrap();
    let wanted = Ok(Some((block(3), 2, block(2))));
    for number in 6..30 {
        db.run(|tx| scene.set_first(tx, 1, &block(number))).unwrap();
        db.run(|tx| scene.count(tx, 1)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(snapshot.run(|tx| scene.get(tx, 1)), wanted, "{}", P::NAME);
    }
    drop(snapshot);
    assert_eq!(scene.settle(), 2, "{}", P::NAME);
}

protocol_tests!(versioned: an_old_snapshot_keeps_no_younger_block);
fn an_old_snapshot_keeps_no_younger_block<P: Chained>() {
    let scene = Scene::<P>::new(true);
    let db = &scene.db;
    db.run(|tx| scene.insert(tx, 1, [&block(1), b""])).unwrap();
    let snapshot = db.snapshot();
    for number in 2..100 {
        db.run(|tx| scene.set_first(tx, 1, &block(number))).unwrap();
    }
    let in_use = || db.inner.engine.long_memory().unwrap().in_use();
    eventually("the end of the blocks between", || {
        db.run(|_| Ok(())).unwrap();
        in_use() == 2
    });
    assert_eq!(snapshot.run(|tx| scene.get(tx, 1)), Ok(Some((block(1), 1, vec![]))));
    drop(snapshot);
    assert_eq!(scene.settle(), 1, "{}", P::NAME);
}

protocol_tests!(versioned: a_block_stays_while_a_neighbour_names_it);
/// Rows that differ in the number alone name the same block. They leave the chain one by one, and
/// the block with the last of them.
fn a_block_stays_while_a_neighbour_names_it<P: Chained>() {
    for read in [false, true] {
        let scene = Scene::<P>::new(true);
        let db = &scene.db;
        db.run(|tx| scene.insert(tx, 1, [&block(1), b""])).unwrap();
        let mut snapshots = Vec::new();
        for _ in 0..6 {
            snapshots.push(db.snapshot());
            db.run(|tx| scene.count(tx, 1)).unwrap();
            if read {
                // A delta that is read becomes a row.
                db.run(|tx| scene.get(tx, 1)).unwrap();
            }
        }
        db.run(|tx| scene.set_first(tx, 1, &block(2))).unwrap();
        // The snapshots in the middle first.
        for place in [3, 1, 2, 0, 1, 0] {
            snapshots.remove(place);
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(2));
                db.run(|tx| scene.count(tx, 1)).unwrap();
            }
            for snapshot in &snapshots {
                let seen = snapshot.run(|tx| scene.get(tx, 1)).unwrap().unwrap();
                assert_eq!(seen.0, block(1), "{}", P::NAME);
            }
        }
        assert_eq!(scene.settle(), 1, "{}", P::NAME);
        assert_eq!(db.run(|tx| scene.get(tx, 1)).unwrap().unwrap().0, block(2), "{}", P::NAME);
    }
}
