//! Tests of the policies by which `Occ` locks rows.

mod ahead;
mod by_chance;
mod changes;
mod endings;
mod hot_rows;
mod learning;
mod learning_edges;
mod patience;
mod pipelined;
mod ranges;
mod schedules;
mod waiting;

use super::rows::Item;
use crate::engine::Protocol;
use crate::index::Found;
use crate::locks::{Lock, LockBase, Mode, queue, queue_mode};
use crate::policy::{Policies, Policy};
use crate::protocols::Occ;
use crate::record::{CellAt, Tid};
use crate::sync::Ordering;
use crate::sync::queue_lock::{NodeId, Supply};
use crate::{Database, Session, Table};

/// Returns the policies that may lock rows.
fn with_locks() -> impl Iterator<Item = Policy> {
    Policy::ALL.into_iter().filter(|policy| policy.locks())
}

/// Returns the policies that lock rows before any conflict.
fn locking() -> impl Iterator<Item = Policy> {
    with_locks().filter(|policy| !policy.learns())
}

/// A database with rows 0..8 of one unit each, in a table with a second word in each cell; and
/// three sessions.
struct Scene {
    db: Database<Occ>,
    table: Table<Item, Occ>,
    sessions: [Session<Occ>; 3],
}

fn scene(policies: impl Into<Policies>) -> Scene {
    let builder = Database::<Occ>::builder().policy(policies).timestamp_splitting(false);
    let db = builder.manual_epochs(1).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let sessions = [(); 3].map(|()| db.session().unwrap());
    db.run(|tx| (0..8).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    Scene { db, table, sessions }
}

/// Returns the first cell of a row.
fn cell<P: Protocol>(table: &Table<Item, P>, key: u64) -> CellAt {
    let Found::Record(record) = table.core().index.find(&[key]) else { panic!("no row {key}") };
    table.core().layout.first_of(record)
}

/// Asserts that no word of the table's cells is locked.
fn assert_free<P: Protocol>(table: &Table<Item, P>, when: &str) {
    let core = table.core();
    core.index.for_each(&mut |record| {
        let key = record.key_words(1).as_slice()[0];
        for at in core.layout.cells(record) {
            assert!(at.cell_words() > 1, "{when}: the table has no room for locks");
            for word in 1..at.cell_words() {
                let lock = at.cell_word(word).load(Ordering::Relaxed);
                assert_eq!(lock, 0, "{when}: {:?} of row {key}", Lock::of(&at).word());
            }
            let tid = Tid(at.cell_word(0).load(Ordering::Relaxed));
            assert!(tid.has(Tid::DEAD) || !tid.has(Tid::LOCK), "{when}: row {key} is locked");
        }
    });
}

/// Returns the database as the policies see it.
fn base<P: Protocol>(db: &Database<P>) -> LockBase<'_> {
    let locks = db.inner.catalog.locks().expect("the protocol has policies");
    LockBase { engine: &db.inner.engine.common, locks }
}

/// A row that a session without a thread has locked. The session's transaction is old.
struct Stuck<'a> {
    scene: &'a Scene,
    key: u64,
    mode: Mode,
    desk: u16,
    /// The node, if the row has a queue lock.
    node: Option<NodeId>,
}

impl<'a> Stuck<'a> {
    fn on(scene: &'a Scene, key: u64, mode: Mode) -> Stuck<'a> {
        let base = base(&scene.db);
        let LockBase { engine, locks } = base;
        let desk = locks.desks.join(true).unwrap();
        locks.desks.desk(desk).begin(1, 1, 0);
        let at = cell(&scene.table, key);
        let mut stuck = Stuck { scene, key, mode, desk, node: None };
        if at.cell_words() > 2 {
            let node = Supply::new(desk).take(&locks.queue_nodes, engine.epochs.bound()).unwrap();
            assert!(queue(base, &at).request(node, queue_mode(mode)), "it is free");
            stuck.node = Some(node);
            return stuck;
        }
        Lock::of(&at).take(desk, mode).unwrap();
        stuck
    }
}

impl Drop for Stuck<'_> {
    fn drop(&mut self) {
        let base = base(&self.scene.db);
        let at = cell(&self.scene.table, self.key);
        match (self.node, self.mode) {
            (Some(node), _) => queue(base, &at).release(node),
            (None, Mode::Read) => drop(Lock::of(&at).release_reader()),
            (None, Mode::Write) => Lock::of(&at).pass_on(None),
        }
        base.locks.desks.desk(self.desk).set_waits_for(0);
        base.locks.desks.desk(self.desk).end();
        base.locks.desks.leave(self.desk);
    }
}
