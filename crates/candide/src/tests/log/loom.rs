//! Small scenes of a log, under every interleaving and every reordering that the memory model
//! allows.

use super::super::loom::{attempt, explore_as_it_is};
use super::super::rows::Item;
use super::disk::{Disk, Logged};
use crate::durable::DatabaseCuts;
use crate::engine::Protocol;
use crate::log::{Cuts, Log, Progress, Round};
use crate::protocols::{Mvcc, Mvto, Occ, TicToc};
use crate::sync::thread;
use crate::{Database, Session, Table};
use candide_log::format::commit::records;
use std::sync::Arc;

/// Makes a database with rows whose stamps are below the cut of the log.
fn logged<P: Protocol>(rows: u64) -> (Logged<P>, Table<Item, P>) {
    let logged = Logged::new(Database::<P>::builder().timestamp_splitting(false));
    let items = logged.db.table::<Item>("rows").unwrap();
    let mut session = logged.db.session().unwrap();
    assert!(attempt(&mut session, |tx| {
        (0..rows).try_for_each(|id| items.insert(tx, Item::new(id, 0)))
    }));
    drop(session);
    assert_eq!(logged.round(), Round::Written);
    (logged, items)
}

/// Returns the stamps of the records in all blocks but the first, each with the number of its
/// block.
fn stamps(disk: &Disk) -> Vec<(usize, u64)> {
    let blocks = &disk.written().blocks;
    let stamps = |number: usize| {
        records(&blocks[number].records).map(move |record| (number, record.unwrap().stamp))
    };
    (1..blocks.len()).flat_map(stamps).collect()
}

/// A commit and a concurrent round. If the commit's stamp is not above the cut, its record is in
/// the round.
fn a_round_against_a_commit<P: Protocol>() {
    let (logged, items) = logged::<P>(1);
    let mut session = logged.db.session().unwrap();
    let writer = thread::spawn(move || {
        assert!(attempt(&mut session, |tx| items.update(tx, 0, Item::COUNT.set(1))));
        drop(session);
    });
    logged.round();
    let (durable, written) = (logged.durable(), stamps(&logged.disk).len());
    writer.join().unwrap();
    logged.round();
    let stamps = stamps(&logged.disk);
    let [(number, stamp)] = stamps[..] else { panic!("one commit: {stamps:?}") };
    assert!(durable < stamp || written == 1, "stamp {stamp} comes after cut {durable}");
    assert!(stamp <= logged.disk.written().blocks[number].cut || number == 1);
}

scenes! {
    loom_a_round_against_a_commit = explore_as_it_is(3, a_round_against_a_commit::<Occ>);
    loom_a_round_against_a_commit_in_timestamp_order =
        explore_as_it_is(3, a_round_against_a_commit::<TicToc>);
    loom_a_round_against_a_commit_in_versions =
        explore_as_it_is(3, a_round_against_a_commit::<Mvcc>);
    loom_a_round_against_a_commit_by_timestamps =
        explore_as_it_is(2, a_round_against_a_commit::<Mvto>);
}

/// A transaction of a race: runs an attempt, and returns its stamp and what it has read. Returns
/// `None` if it has not committed.
type Racer<P> = fn(&mut Session<P>, &Table<Item, P>) -> Option<(u64, i64)>;

/// Reads row 0 and writes row 1.
fn copy<P: Protocol>(session: &mut Session<P>, items: &Table<Item, P>) -> Option<(u64, i64)> {
    let mut seen = 0;
    let copied = attempt(session, |tx| {
        seen = items.read(tx, 0, Item::COUNT)?;
        items.update(tx, 1, Item::COUNT.set(seen + 1))
    });
    copied.then(|| (session.rests_on(), seen))
}

/// Replaces row 0.
fn replace<P: Protocol>(session: &mut Session<P>, items: &Table<Item, P>) -> Option<(u64, i64)> {
    attempt(session, |tx| items.update(tx, 0, Item::COUNT.set(1))).then(|| (session.rests_on(), 0))
}

/// Runs two transactions, while this thread takes a cut. In the first execution the cut comes
/// first, and the first transaction next: loom misses that a store conflicts with another thread's
/// earlier load, if the storing thread has loaded the same word in between.
fn beside_a_cut<P: Protocol>(racers: [Racer<P>; 2]) -> [Option<(u64, i64)>; 2] {
    let (logged, items) = logged::<P>(2);
    let threads = racers.map(|racer| {
        let (mut session, rows) = (logged.db.session().unwrap(), items.clone());
        thread::spawn(move || {
            let end = racer(&mut session, &rows);
            drop(session);
            end
        })
    });
    logged.cuts().cut();
    threads.map(|thread| thread.join().unwrap())
}

/// A transaction copies a row that another one replaces, while the logger takes a cut. If the copy
/// is of the old row, the first transaction comes before the second one. So each cut that contains
/// the second one contains the first one.
fn a_reader_of_a_prefix<P: Protocol>(preemptions: usize) {
    let assert_in_order = |copied: Option<(u64, i64)>, replaced: Option<(u64, i64)>| {
        if let (Some((copied, 0)), Some((replaced, _))) = (copied, replaced) {
            assert!(copied <= replaced, "the commit before {replaced} has stamp {copied}");
        }
    };
    explore_as_it_is(preemptions, move || {
        let [replaced, copied] = beside_a_cut::<P>([replace, copy]);
        assert_in_order(copied, replaced);
    });
    explore_as_it_is(preemptions, move || {
        let [copied, replaced] = beside_a_cut::<P>([copy, replace]);
        assert_in_order(copied, replaced);
    });
}

scenes! {
    loom_a_reader_of_a_prefix = a_reader_of_a_prefix::<Occ>(3);
    loom_a_reader_of_a_prefix_in_versions = a_reader_of_a_prefix::<Mvcc>(2);
}

/// The log is closed while the logger makes a round. When that has returned, everything that was
/// committed is durable, and the logger writes nothing more (the disk would refuse a block).
#[test]
fn loom_closing_against_a_round() {
    explore_as_it_is(3, || {
        let (logged, items) = logged::<Occ>(1);
        let mut session = logged.db.session().unwrap();
        assert!(attempt(&mut session, |tx| items.update(tx, 0, Item::COUNT.set(1))));
        drop(session);
        let (log, cuts) = (logged.log.clone(), logged.cuts());
        let logger = thread::spawn(move || log.round(&cuts));
        let cut = logged.cuts().cut().unwrap();
        assert!(logged.log.close(cut).is_ok());
        let stamps = stamps(&logged.disk);
        let [(number, stamp)] = stamps[..] else { panic!("one commit: {stamps:?}") };
        let written = logged.disk.written();
        assert!(written.blocks[number..].iter().any(|block| stamp <= block.cut), "it is lost");
        assert_eq!((written.closed, written.synced), (true, written.blocks.len()));
        drop(written);
        assert_ne!(logger.join().unwrap(), Round::Full);
    });
}

/// The database, as a logger sees it that ends when it has written its first block.
#[derive(Debug)]
struct OneBlock(DatabaseCuts, Arc<Log>);

impl Cuts for OneBlock {
    fn cut(&self) -> Option<u64> {
        self.0.cut()
    }

    fn has_written(&self) {
        self.1.progress.stop();
    }
}

/// A logger that has nothing to do goes to sleep, while a session leaves a record for which no
/// thread waits. The logger wakes up.
#[test]
fn loom_an_idle_logger_is_woken_by_a_commit() {
    explore_as_it_is(3, || {
        let logged = Logged::new(Database::<Occ>::builder());
        let items = logged.db.table::<Item>("rows").unwrap();
        let mut session = logged.db.session().unwrap();
        let (log, cuts) = (logged.log.clone(), OneBlock(logged.cuts(), logged.log.clone()));
        let logger = thread::spawn(move || log.run(&cuts));
        assert!(attempt(&mut session, |tx| items.insert(tx, Item::new(1, 1))));
        drop(session);
        logger.join().unwrap();
        assert_eq!(logged.disk.written().blocks.len(), 1);
    });
}

/// A session waits for the logger to empty its buffer, while the logger finds that the disk is
/// full. The session continues.
#[test]
fn loom_a_session_that_waits_for_room_is_told_of_a_full_disk() {
    explore_as_it_is(3, || {
        let progress = Arc::new(Progress::default());
        let full = progress.clone();
        let logger = thread::spawn(move || full.set_full(true));
        progress.wait_until(|| progress.is_full());
        logger.join().unwrap();
    });
}
