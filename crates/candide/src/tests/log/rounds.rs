//! Rounds of the logger, one by one.

use super::super::rows::Item;
use super::super::threads::spawn;
use super::super::waiting::eventually;
use super::disk::{Block, Fault, Logged, Told};
use super::replay::Replay;
use crate::durable::DatabaseCuts;
use crate::engine::Protocol;
use crate::log::{Cuts, Level, Round};
use crate::sync::{Duration, Instant};
use crate::{Abort, Database, RunOptions, Session, Table, Tx};
use std::fmt::{self, Debug, Formatter};
use std::sync::Mutex;

/// A database with a table, and a session.
struct Scene<P: Protocol> {
    logged: Logged<P>,
    items: Table<Item, P>,
    session: Session<P>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let logged = Logged::new(Database::<P>::builder().manual_epochs(5));
        let items = logged.db.table::<Item>("items").unwrap();
        let session = logged.db.session().unwrap();
        Scene { logged, items, session }
    }

    /// Commits a row, and returns the stamp of the commit.
    fn insert(&mut self, id: u64) -> u64 {
        insert(&self.items, &mut self.session, id).expect("there is no such row");
        self.session.rests_on()
    }

    /// Returns the keys of the rows that a recovery finds now.
    fn recovered(&self) -> Vec<u64> {
        Replay::of(&self.logged).rows.into_keys().map(|(_, key)| key[0]).collect()
    }
}

fn insert<P: Protocol>(
    items: &Table<Item, P>,
    session: &mut Session<P>,
    id: u64,
) -> Result<(), Abort> {
    session.run(|tx| items.insert(tx, Item::new(id, 1)))
}

protocol_tests!(all: acknowledged_commits_are_synced);
fn acknowledged_commits_are_synced<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    for id in 0..5 {
        let stamp = scene.insert(id);
        assert!(scene.logged.durable() < stamp, "{}: durable too early", P::NAME);
        assert_eq!(scene.logged.round(), Round::Written);
        assert!(scene.logged.durable() >= stamp, "{}: durable too late", P::NAME);
        assert_eq!(scene.recovered().len() as u64, id + 1);
    }
    // While a block was being written, the commits of earlier blocks were reported as durable.
    let told = std::mem::take(&mut scene.logged.disk.written().told);
    let blocks = scene.logged.disk.written().blocks.clone();
    assert_eq!(told.len(), 5);
    for Told { durable, blocks: number } in told {
        let closed = number.checked_sub(1).map_or(0, |last| blocks[last].cut);
        assert!(durable <= closed, "{}: {durable} durable after cut {closed}", P::NAME);
    }
}

/// A source of cuts that lets a commit happen just before it takes the cut.
struct CommitFirst<P: Protocol> {
    cuts: DatabaseCuts,
    items: Table<Item, P>,
    /// The session, and the key of its next row.
    next: Mutex<(Session<P>, u64)>,
}

impl<P: Protocol> Debug for CommitFirst<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CommitFirst")
    }
}

impl<P: Protocol> Cuts for CommitFirst<P> {
    fn cut(&self) -> Option<u64> {
        let (session, id) = &mut *self.next.lock().unwrap();
        insert(&self.items, session, *id).expect("there is no such row");
        *id += 1;
        self.cuts.cut()
    }
}

protocol_tests!(all: a_commit_just_before_the_cut_is_in_the_round);
fn a_commit_just_before_the_cut_is_in_the_round<P: Protocol>() {
    let Scene { logged, items, session } = Scene::<P>::new();
    let next = Mutex::new((session, 0));
    let commits = CommitFirst { cuts: logged.cuts(), items, next };
    for round in 1..5 {
        assert_eq!(logged.log.round(&commits), Round::Written);
        let replay = Replay::of(&logged);
        assert_eq!(replay.rows.len(), round, "{}", P::NAME);
        replay.assert_is(&logged);
    }
}

/// A source of cuts that lets a commit happen just after it has taken the cut.
struct CommitAfterwards<P: Protocol>(CommitFirst<P>);

impl<P: Protocol> Debug for CommitAfterwards<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CommitAfterwards")
    }
}

impl<P: Protocol> Cuts for CommitAfterwards<P> {
    fn cut(&self) -> Option<u64> {
        let cut = self.0.cuts.cut();
        let (session, id) = &mut *self.0.next.lock().unwrap();
        insert(&self.0.items, session, *id).expect("there is no such row");
        cut
    }
}

protocol_tests!(all: a_record_above_the_cut_of_its_block_is_durable_with_the_next_block);
/// The round takes the record of a commit that comes after the cut. The record is on the disk then,
/// and a recovery would drop it. The next round finds all buffers empty.
fn a_record_above_the_cut_of_its_block_is_durable_with_the_next_block<P: Protocol>() {
    let Scene { logged, items, session } = Scene::<P>::new();
    let next = Mutex::new((session, 7));
    let commits = CommitAfterwards(CommitFirst { cuts: logged.cuts(), items, next });
    assert_eq!(logged.log.round(&commits), Round::Written);
    let stamp = commits.0.next.lock().unwrap().0.rests_on();
    let Block { cut, .. } = logged.disk.written().blocks[0];
    assert!(cut < stamp && logged.durable() < stamp, "{}", P::NAME);
    assert_eq!(Replay::of(&logged).rows.len(), 0);
    assert_eq!(logged.round(), Round::Written, "{}: a block closes the cut", P::NAME);
    assert!(logged.durable() >= stamp);
    assert_eq!(Replay::of(&logged).rows.len(), 1, "{}: it was said to be durable", P::NAME);
    assert_eq!(logged.round(), Round::Empty, "{}: nothing is left", P::NAME);
    assert_eq!(logged.disk.written().confirmed, 1);
}

protocol_tests!(all: commits_delayed_by_a_full_disk_are_written_when_there_is_room);
fn commits_delayed_by_a_full_disk_are_written_when_there_is_room<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let stamps = [0, 1].map(|id| scene.insert(id));
    scene.logged.disk.fail_by(Some(Fault::Full));
    assert_eq!(scene.logged.round(), Round::Full);
    let refused = insert(&scene.items, &mut scene.session, 2);
    assert_eq!(refused, Err(Abort::DiskFull), "{}", P::NAME);
    // The refusal shows nothing about rows. So a refusal need not wait for room.
    assert_eq!(scene.session.rests_on(), 0, "{}", P::NAME);
    let read = scene.session.run(|tx| scene.items.get(tx, 1, Item::COUNT));
    assert_eq!(read, Ok(Some(1)), "{}: reads go on", P::NAME);
    assert!(scene.logged.durable() < stamps[0]);
    scene.logged.disk.fail_by(None);
    assert_eq!(scene.logged.round(), Round::Written);
    assert!(scene.logged.durable() >= stamps[1]);
    assert_eq!(scene.recovered(), [0, 1]);
    scene.insert(3);
    scene.logged.settle();
    assert_eq!(scene.recovered(), [0, 1, 3]);
}

/// The logger finds the disk full when it makes room for later blocks. No record waits, and no
/// commit may leave one.
#[test]
fn free_space_is_noticed_although_no_round_is_due() {
    let mut scene = Scene::<crate::Occ>::new();
    scene.insert(0);
    scene.logged.settle();
    let progress = &scene.logged.log.progress;
    scene.logged.disk.fail_by(Some(Fault::Full));
    scene.logged.log.prepare_for_tests();
    assert!(progress.is_full());
    assert_eq!(scene.logged.round(), Round::Empty);
    assert!(progress.is_full());
    scene.logged.disk.fail_by(None);
    assert_eq!(scene.logged.round(), Round::Empty);
    assert!(!progress.is_full(), "commits would be refused for ever");
    assert_eq!(insert(&scene.items, &mut scene.session, 1), Ok(()));
}

protocol_tests!(all: a_failed_log_writes_and_acknowledges_no_commit);
fn a_failed_log_writes_and_acknowledges_no_commit<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    scene.insert(0);
    scene.logged.settle();
    let (cold, stamp) = (scene.logged.durable(), scene.insert(1));
    scene.logged.disk.fail_by(Some(Fault::Broken));
    assert_eq!(scene.logged.round(), Round::Ended);
    assert_eq!(scene.logged.durable(), cold);
    let waited = scene.logged.log.progress.wait(stamp, Level::Durable, None);
    assert_eq!(waited, Err(Abort::LogFailed));
    let refused = insert(&scene.items, &mut scene.session, 2);
    assert_eq!(refused, Err(Abort::LogFailed), "{}", P::NAME);
    assert_eq!(scene.session.rests_on(), 0, "{}", P::NAME);
    // A caller that waits for durability does not get a result that is not durable.
    let durable = RunOptions::new().acknowledge(Level::Durable);
    let read = scene.session.with(durable).run(|tx| scene.items.get(tx, 1, Item::COUNT));
    assert_eq!(read, Err(Abort::LogFailed), "{}", P::NAME);
    assert_eq!(scene.logged.round(), Round::Ended, "{}: a failed log stays so", P::NAME);
    assert_eq!(scene.recovered(), [0], "{}", P::NAME);
}

protocol_tests!(concurrent: a_failure_ends_waits_for_changes);
fn a_failure_ends_waits_for_changes<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    scene.insert(0);
    scene.insert(1);
    let (db, mut other) = (&scene.logged.db, scene.logged.db.session().unwrap());
    std::thread::scope(|scope| {
        let items = &scene.items;
        let wait = move || {
            let deadline = RunOptions::new().deadline(Instant::now() + Duration::from_secs(20));
            let read = |tx: &Tx<'_, P>| tx.check(items.read(tx, 0, Item::COUNT)? == 2);
            [other.with(deadline).run(read), other.with(deadline).run(read)]
        };
        let waiter = spawn(scope, wait);
        eventually("the session sleeps", || db.inner.engine.watchers.count() == 1);
        scene.logged.disk.fail_by(Some(Fault::Broken));
        assert_eq!(scene.logged.round(), Round::Ended);
        // The second transaction begins after the failure.
        assert_eq!(waiter.join().unwrap(), [Err(Abort::LogFailed); 2], "{}", P::NAME);
    });
}

protocol_tests!(all: records_of_an_ended_session_are_written);
fn records_of_an_ended_session_are_written<P: Protocol>() {
    let Scene { logged, items, mut session } = Scene::<P>::new();
    insert(&items, &mut session, 1).unwrap();
    drop(session);
    logged.settle();
    Replay::of(&logged).assert_is(&logged);
    assert_eq!(Replay::of(&logged).rows.len(), 1, "{}", P::NAME);
    let mut session = logged.db.session().unwrap();
    insert(&items, &mut session, 2).unwrap();
    let cut = logged.cuts().cut().unwrap();
    logged.log.close(cut).unwrap();
    assert!(logged.disk.written().closed);
    assert_eq!(Replay::of(&logged).rows.len(), 2, "{}", P::NAME);
}

protocol_tests!(all: a_wait_for_durability_that_times_out_leaves_the_database_usable);
/// No logger runs, so a wait without a deadline would not end.
fn a_wait_for_durability_that_times_out_leaves_the_database_usable<P: Protocol>() {
    let Scene { logged, items, mut session } = Scene::<P>::new();
    let now = RunOptions::new().acknowledge(Level::Durable).deadline(Instant::now());
    let put =
        |session: &mut Session<P>, id| session.with(now).run(|tx| items.put(tx, Item::new(id, 1)));
    let get =
        |session: &mut Session<P>, id| session.with(now).run(|tx| items.get(tx, id, Item::COUNT));
    assert_eq!(put(&mut session, 1), Err(Abort::OutcomeUnknown), "{}", P::NAME);
    // The row exists, and its version is not known to be durable either.
    assert_eq!(get(&mut session, 1), Err(Abort::OutcomeUnknown), "{}", P::NAME);
    let pending = session.run_logged(|tx| items.put(tx, Item::new(2, 1)));
    let read = session.run_logged(|tx| items.read(tx, 1, Item::COUNT));
    assert_eq!(read.peek(), Ok(&1), "{}", P::NAME);
    let waited = read.wait_until(Level::Written, Instant::now());
    assert_eq!(waited, Err(Abort::OutcomeUnknown), "{}", P::NAME);
    logged.settle();
    assert_eq!(pending.wait_until(Level::Durable, Instant::now()), Ok(()), "{}", P::NAME);
    assert_eq!(put(&mut session, 3), Err(Abort::OutcomeUnknown), "{}", P::NAME);
    logged.settle();
    assert_eq!(Replay::of(&logged).rows.len(), 3, "{}: the log goes on", P::NAME);
}

/// In a database with a running logger, each call returns only when a recovery would find its
/// effects.
#[test]
fn a_call_returns_when_its_commit_is_durable() {
    let Scene { logged, items, mut session } = Scene::<crate::Occ>::new();
    let logger = logged.log.start(Box::new(logged.cuts()));
    for id in 0..20 {
        let durable = RunOptions::new().acknowledge(Level::Durable);
        let inserted = session.with(durable).run(|tx| items.insert(tx, Item::new(id, 1)));
        assert_eq!(inserted, Ok(()));
        assert_eq!(Replay::of(&logged).rows.len() as u64, id + 1);
    }
    logged.log.progress.stop();
    logger.join().unwrap();
}
