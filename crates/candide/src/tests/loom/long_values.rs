//! Blocks of bytes that are replaced and freed while others read them. A block that is freed loses
//! its bytes, so a text that is followed too late is another one.

use super::{attempt, explore_as_it_is};
use crate::engine::{Protocol, Versioned};
use crate::protocols::{Mvcc, Mvto, Occ};
use crate::sync::thread;
use crate::{Abort, Database, Session, Table, Tx};
use candide_derive::Record;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Record)]
#[record(crate = crate)]
struct Letter {
    #[key]
    id: u64,
    writer: u64,
    text: String,
}

/// Returns the text of a writer, which has a block.
fn text(writer: u64) -> String {
    format!("text {writer:05}")
}

struct Scene<P: Protocol> {
    db: Database<P>,
    letters: Table<Letter, P>,
    /// What was read, in attempts that had no effect, too: a panic of theirs would be discarded.
    seen: Arc<Mutex<Vec<(u64, String)>>>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let db = Database::<P>::builder().timestamp_splitting(false).build().unwrap();
        let letters = db.table::<Letter>("letters").unwrap();
        let mut session = db.session().unwrap();
        session.run(|tx| letters.insert(tx, Letter { id: 0, writer: 1, text: text(1) })).unwrap();
        Scene { db, letters, seen: Arc::default() }
    }

    /// Replaces the text again and again. Between two commits, epochs pass, and each commit
    /// collects what is due.
    fn replace(&self, session: &mut Session<P>, writers: std::ops::RangeInclusive<u64>) {
        for writer in writers {
            let update = || (Letter::WRITER.set(writer), Letter::TEXT.set(text(writer)));
            attempt(session, |tx| self.letters.update(tx, 0, update()));
            (0..2).for_each(|_| self.db.inner.engine.epochs.pass());
        }
        attempt(session, |_| Ok(()));
    }

    fn check(&self) {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        assert!(seen.iter().all(|(writer, seen)| *seen == text(*writer)), "{seen:?}");
    }
}

fn read<P: Protocol>(
    letters: &Table<Letter, P>,
    seen: &Mutex<Vec<(u64, String)>>,
    tx: &Tx<'_, P>,
) -> Result<(), Abort> {
    let letter = letters.read(tx, 0, (Letter::WRITER, Letter::TEXT))?;
    seen.lock().unwrap().push(letter);
    Ok(())
}

/// An attempt reads the text while it is replaced, and epochs pass.
fn attempt_against_reclaim<P: Protocol>(last: u64) {
    let scene = Scene::<P>::new();
    let (mut here, mut there) = (scene.db.session().unwrap(), scene.db.session().unwrap());
    let (letters, seen) = (scene.letters.clone(), scene.seen.clone());
    let reader = thread::spawn(move || {
        attempt(&mut there, |tx| read(&letters, &seen, tx));
        drop(there);
    });
    scene.replace(&mut here, 2..=last);
    reader.join().unwrap();
    scene.check();
}

/// A snapshot from before reads the text, and is closed, while the text is replaced.
fn snapshot_against_reclaim<P: Versioned>(last: u64) {
    let scene = Scene::<P>::new();
    let (mut here, mut there) = (scene.db.session().unwrap(), scene.db.session().unwrap());
    let (letters, seen) = (scene.letters.clone(), scene.seen.clone());
    let snapshot = scene.db.snapshot();
    let reader = thread::spawn(move || {
        let read = snapshot.run_in(&mut there, |tx| read(&letters, &seen, tx));
        assert_eq!(read, Ok(()));
        drop((there, snapshot));
    });
    scene.replace(&mut here, 2..=last);
    reader.join().unwrap();
    assert_eq!(scene.seen.lock().unwrap()[0].0, 1);
    scene.check();
}

scenes! {
    /// Without timestamps the block is free as soon as the epochs have passed.
    loom_text_against_reclaim = explore_as_it_is(2, || attempt_against_reclaim::<Occ>(2));
    /// The block is in an undo record, which the attempt may have to read.
    loom_text_against_reclaim_in_versions =
        explore_as_it_is(2, || attempt_against_reclaim::<Mvcc>(2));
    /// The block is retired when its version leaves the chain, and freed later.
    loom_text_against_reclaim_by_timestamps =
        explore_as_it_is(2, || attempt_against_reclaim::<Mvto>(3));
    loom_text_of_a_snapshot_against_reclaim_in_versions =
        explore_as_it_is(2, || snapshot_against_reclaim::<Mvcc>(2));
    loom_text_of_a_snapshot_against_reclaim_by_timestamps =
        explore_as_it_is(2, || snapshot_against_reclaim::<Mvto>(3));
}
