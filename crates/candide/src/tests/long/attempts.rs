//! Blocks that belong to a running attempt.

use super::{Note, Scene, block};
use crate::engine::Protocol;
use crate::record::long;
use crate::{Abort, Database, Whole};

protocol_tests!(all: bytes_outlive_the_part_that_staged_them);
fn bytes_outlive_the_part_that_staged_them<P: Protocol>() {
    let scene = Scene::<P>::new(true);
    let Scene { db, notes } = &scene;
    db.run(|tx| scene.insert(tx, 1, [&block(1), b""])).unwrap();
    db.run(|tx| {
        let mut kept = Vec::new();
        for number in 2..6 {
            let undone = tx.attempt(|_| {
                scene.set_first(tx, 1, &block(number))?;
                scene.set_first(tx, 1, &block(10 * number))?;
                kept.push((number, notes.get(tx, 1, Whole)?.unwrap().first));
                scene.insert(tx, number, [&block(number), &block(number)])?;
                notes.delete(tx, 1)?;
                Err::<(), _>(Abort::Guard)
            });
            assert_eq!(undone, Err(Abort::Guard));
        }
        // What the parts have staged is not staged over: other blocks lie elsewhere.
        scene.set_first(tx, 1, &block(7))?;
        for (number, word) in kept {
            let mut bytes = Vec::new();
            long::append(word, tx, &mut bytes);
            assert_eq!(bytes, block(10 * number), "{}", P::NAME);
        }
        assert_eq!(scene.get(tx, 1)?.unwrap().0, block(7), "{}", P::NAME);
        Ok(())
    })
    .unwrap();
    assert_eq!(scene.settle(), 1, "{}", P::NAME);
    assert_eq!(db.run(|tx| scene.get(tx, 1)).unwrap().unwrap().0, block(7), "{}", P::NAME);
}

protocol_tests!(all: blocks_that_no_commit_installs_are_freed_with_their_attempt);
fn blocks_that_no_commit_installs_are_freed_with_their_attempt<P: Protocol>() {
    let scene = Scene::<P>::new(false);
    let Scene { db, notes } = &scene;
    let in_use = || db.inner.engine.long_memory().unwrap().in_use();
    db.run(|tx| scene.insert(tx, 1, [&block(1), &block(2)])).unwrap();
    let texts = [&block(3)[..], &block(4)[..]];
    assert_eq!(db.run(|tx| scene.insert(tx, 1, texts)), Err(Abort::Duplicate), "{}", P::NAME);
    assert_eq!(db.run(|tx| scene.set_first(tx, 2, &block(5))), Err(Abort::NotFound));
    assert_eq!(in_use(), 2, "{}", P::NAME);
    let ended = db.run(|tx| {
        scene.insert(tx, 2, texts)?;
        scene.set_first(tx, 1, &block(5))?;
        notes.update(tx, 1, Note::COUNT.sub(100).at_least(0))
    });
    assert_eq!((ended, in_use()), (Err(Abort::Guard), 2), "{}", P::NAME);
    db.run(|tx| {
        scene.insert(tx, 2, texts)?;
        scene.set_first(tx, 2, &block(5))?;
        notes.delete(tx, 2)?;
        scene.set_first(tx, 1, &block(6))?;
        scene.set_first(tx, 1, &block(1))
    })
    .unwrap();
    assert_eq!(scene.settle(), 2, "{}", P::NAME);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.run(|tx| -> Result<(), Abort> {
            scene.put(tx, 1, texts)?;
            std::panic::resume_unwind(Box::new("ends the attempt"))
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((scene.settle(), in_use()), (2, 2), "{}", P::NAME);
    let seen = db.run(|tx| scene.get(tx, 1)).unwrap().unwrap();
    assert_eq!((seen.0, seen.2), (block(1), block(2)), "{}", P::NAME);
}

protocol_tests!(overlapping: a_pinned_reader_keeps_the_blocks_that_it_has_found);
fn a_pinned_reader_keeps_the_blocks_that_it_has_found<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let epochs = db.inner.engine.epochs.clone();
    let scene = Scene::over(db, true);
    let db = &scene.db;
    db.run(|tx| scene.insert(tx, 1, [&block(1), b""])).unwrap();
    let mut other = db.session().unwrap();
    let mut attempts = 0;
    db.run(|tx| {
        attempts += 1;
        let note = scene.notes.get(tx, 1, Whole)?.unwrap();
        if attempts == 1 {
            for number in 2..40 {
                other.run(|tx| scene.set_first(tx, 1, &block(number))).unwrap();
                epochs.pass();
            }
            assert_eq!(scene.texts(tx, note).0, block(1), "{}", P::NAME);
        }
        Ok(())
    })
    .unwrap();
    let in_use = || db.inner.engine.long_memory().unwrap().in_use();
    for _ in 0..8 {
        epochs.pass();
        other.run(|_| Ok(())).unwrap();
    }
    assert_eq!(in_use(), 1, "{}", P::NAME);
}
