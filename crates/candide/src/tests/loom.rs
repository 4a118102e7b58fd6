//! Small scenes. They run under every interleaving and every reordering that the memory model
//! allows (`--cfg loom`).
//!
//! Each scene states its preemption bound: loom explores all executions with at most that many
//! forced switches.

use super::rows::Item;
use crate::engine::Protocol;
use crate::epoch::{Epochs, Slot};
use crate::index::{Found, TableIndex};
use crate::locks::{Lock, RASK};
use crate::protocols::{Mvcc, Mvto, Occ, Serial, TicToc, under_a_lock};
use crate::record::{CellAt, Tid};
use crate::sync::{AtomicU64, Ordering, thread};
use crate::timestamps::by_the_clock;
use crate::{Abort, Database, Policy, Record, RunOptions, Session, Table, TableOptions, Tx, Whole};
use std::cell::Cell;
use std::sync::Arc;

/// Explores `scene` with at most `preemptions` forced switches. A race in `scene` is explored
/// twice; each time, another transaction goes first in the first execution. The reason is a
/// limitation of loom: it misses that a thread's store conflicts with another thread's earlier
/// load, if the storing thread has loaded the same word in between. So one first execution does not
/// lead to all other executions.
fn explore(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let scene = Arc::new(scene);
    let same = scene.clone();
    ORDER.set(Order::Unasked);
    explore_as_it_is(preemptions, move || same());
    if ORDER.get() == Order::Second {
        ORDER.set(Order::First);
        explore_as_it_is(preemptions, move || scene());
    }
}

/// Explores `scene` without exploring races twice, which for some scenes would take hours.
pub(super) fn explore_as_it_is(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions.min(crate::sync::preemptions_max()));
    builder.max_branches = 100_000;
    // The executions are counted outside the model, so that a passing test can report their number.
    let executions = Arc::new(std::sync::Mutex::new(0));
    let counted = executions.clone();
    builder.check(move || {
        *counted.lock().unwrap() += 1;
        scene();
    });
    println!("{} executions", executions.lock().unwrap());
}

/// Returns the counts of rows at the end.
fn count<P: Protocol, const N: usize>(
    db: &Database<P>,
    table: &Table<Item, P>,
    rows: [u64; N],
) -> [i64; N] {
    let mut session = db.session().unwrap();
    rows.map(|row| session.run(|tx| table.read(tx, &row, Item::COUNT)).unwrap())
}

fn database<P: Protocol>(rows: u64) -> (Database<P>, Table<Item, P>) {
    let db = Database::<P>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    session.run(|tx| (0..rows).try_for_each(|id| table.insert(tx, Item::new(id, 0)))).unwrap();
    (db, table)
}

/// Runs one attempt of a transaction, and returns whether it committed.
pub(super) fn attempt<P: Protocol>(
    session: &mut Session<P>,
    body: impl FnMut(&crate::Tx<'_, P>) -> Result<(), Abort>,
) -> bool {
    match session.with(RunOptions::new().attempts_max(1)).run(body) {
        Ok(()) => true,
        Err(abort) => {
            assert_eq!(abort, Abort::AttemptsExhausted);
            false
        }
    }
}

/// The transaction of a race that goes first in the first execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The second transaction goes first. No race has been reached yet.
    Unasked,
    /// The second transaction goes first. A race has been reached.
    Second,
    First,
}

thread_local! {
    static ORDER: Cell<Order> = const { Cell::new(Order::Unasked) };
}

/// Runs two transactions at once, and returns whether each committed.
fn race<P: Protocol, R: Record>(
    db: &Database<P>,
    table: &Table<R, P>,
    first: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
    second: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
) -> (bool, bool) {
    if ORDER.get() == Order::First {
        let (second, first) = beside(db, table, second, first);
        return (first, second);
    }
    ORDER.set(Order::Second);
    beside(db, table, first, second)
}

/// Runs one transaction on a new thread and the other one on this thread.
fn beside<P: Protocol, R: Record>(
    db: &Database<P>,
    table: &Table<R, P>,
    mut there: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort> + Send + 'static,
    mut here: impl FnMut(&Table<R, P>, &Tx<'_, P>) -> Result<(), Abort>,
) -> (bool, bool) {
    let (mut mine, mut other, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let other = thread::spawn(move || {
        let committed = attempt(&mut other, |tx| there(&inner, tx));
        drop(other);
        committed
    });
    let here = attempt(&mut mine, |tx| here(table, tx));
    (other.join().unwrap(), here)
}

/// Plays write skew: each transaction writes the row that the other reads.
fn write_skew<P: Protocol>() {
    let (db, table) = database::<P>(2);
    race(
        &db,
        &table,
        move |table, tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.set(zero + 1))
        },
        move |table, tx| {
            let one = table.read(tx, 1, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(one + 1))
        },
    );
    let rows = count(&db, &table, [0, 1]);
    assert_ne!(rows, [1, 1], "both committed on what the other replaced");
}

/// A view that moves on to an epoch after that of a commit in progress notices the commit at the
/// row it has seen, or sees the commit's later rows as newer than the view.
#[test]
fn loom_view_moves_on_against_a_commit() {
    explore_as_it_is(3, || {
        let (db, table) = database::<Occ>(3);
        let (mut mine, mut own, mut other) =
            (db.session().unwrap(), db.session().unwrap(), db.session().unwrap());
        let advance = || db.inner.engine.epochs.advance_past(db.inner.engine.epochs.now());
        // The rows are older than the attempts.
        advance();
        let items = table.clone();
        let writer = thread::spawn(move || {
            attempt(&mut other, |tx| {
                [0, 1].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(1)))
            });
            drop(other);
        });
        let seen = Cell::new(None);
        attempt(&mut mine, |tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            attempt(&mut own, |tx| table.update(tx, 2, Item::COUNT.set(1)));
            advance();
            table.read(tx, 2, Item::COUNT)?;
            seen.set(Some((zero, table.read(tx, 1, Item::COUNT)?)));
            Ok(())
        });
        assert!(!matches!(seen.get(), Some((0, 1) | (1, 0))), "{seen:?}");
        writer.join().unwrap();
    });
}

/// Without the fence between locking and validating, both transactions would see the old row.
#[test]
fn loom_write_skew() {
    explore(5, write_skew::<Occ>);
}

#[test]
fn loom_write_skew_under_one_lock() {
    under_a_lock(|| explore(3, write_skew::<Serial>));
}

#[test]
fn loom_write_skew_in_timestamp_order() {
    explore(4, write_skew::<TicToc>);
}

#[test]
fn loom_write_skew_in_versions() {
    explore(3, write_skew::<Mvcc>);
}

#[test]
fn loom_write_skew_by_timestamps() {
    explore(3, write_skew::<Mvto>);
}

#[test]
fn loom_write_skew_by_the_clock() {
    by_the_clock(|| explore(2, write_skew::<Mvto>));
}

/// Reads a row while another one replaces it.
fn read_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let new = Item { id: 0, count: 1, small: 1, flag: true, other: 1 };
    race(
        &db,
        &table,
        move |table, tx| table.put(tx, new),
        move |table, tx| {
            let row = table.read(tx, 0, Whole)?;
            assert!(row == new || row == Item::new(0, 0), "{row:?}");
            Ok(())
        },
    );
}

/// A reader sees all words of one version, though a version is being installed meanwhile.
#[test]
fn loom_read_against_install() {
    explore(5, read_against_install::<Occ>);
}

#[test]
fn loom_read_against_install_in_timestamp_order() {
    explore(4, read_against_install::<TicToc>);
}

#[test]
fn loom_read_against_install_in_versions() {
    explore(3, read_against_install::<Mvcc>);
}

#[test]
fn loom_read_against_install_by_timestamps() {
    explore(3, read_against_install::<Mvto>);
}

/// Reads columns one by one while their row is replaced.
fn columns_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let old = Item::new(0, 0);
    race(
        &db,
        &table,
        move |table, tx| table.update(tx, 0, (Item::COUNT.set(1), Item::OTHER.set(1))),
        move |table, tx| {
            let columns = table.read(tx, 0, (Item::COUNT, Item::OTHER))?;
            assert!(columns == (1, 1) || columns == (old.count, old.other), "{columns:?}");
            Ok(())
        },
    );
}

#[test]
fn loom_columns_against_install() {
    explore(4, columns_against_install::<Occ>);
}

#[test]
fn loom_columns_against_install_in_versions() {
    explore(3, columns_against_install::<Mvcc>);
}

#[test]
fn loom_columns_against_install_by_timestamps() {
    explore(3, columns_against_install::<Mvto>);
}

/// Changes columns of two rows, one row after the other, while a reader reads them by single reads
/// in the opposite order.
fn single_reads_against_installs<P: Protocol>() {
    let (db, table) = database::<P>(2);
    let old = Item::new(0, 0);
    let (mut here, mut there, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let reader = thread::spawn(move || {
        let [second, first] = [1, 0].map(|id| {
            let columns =
                inner.get_now(&mut there, &id, (Item::COUNT, Item::OTHER)).unwrap().unwrap();
            assert!(columns == (1, 1) || columns == (old.count, old.other), "{columns:?}");
            columns.0
        });
        assert!(!P::STRICT || second <= first, "what was over first is seen first");
        drop(there);
    });
    let update = (Item::COUNT.set(1), Item::OTHER.set(1));
    (0..2).for_each(|id| assert!(attempt(&mut here, |tx| table.update(tx, &id, update))));
    reader.join().unwrap();
}

#[test]
fn loom_single_reads_against_installs() {
    explore_as_it_is(3, single_reads_against_installs::<Occ>);
}

#[test]
fn loom_single_reads_against_installs_in_timestamp_order() {
    explore_as_it_is(3, single_reads_against_installs::<TicToc>);
}

#[test]
fn loom_single_reads_against_installs_in_versions() {
    explore_as_it_is(3, single_reads_against_installs::<Mvcc>);
}

/// Two rows change together while a reader reads one after the other. The reader does not validate
/// afterwards that both reads were at one moment.
#[test]
fn loom_two_rows_of_one_time_in_versions() {
    explore(3, || {
        let (db, table) = database::<Mvcc>(2);
        race(
            &db,
            &table,
            move |table, tx| {
                table.update(tx, 0, Item::COUNT.set(1))?;
                table.update(tx, 1, Item::COUNT.set(1))
            },
            move |table, tx| {
                let counts = [table.read(tx, 0, Item::COUNT)?, table.read(tx, 1, Item::COUNT)?];
                assert!(counts[0] == counts[1], "{counts:?}");
                Ok(())
            },
        );
    });
}

/// A row is replaced twice while an attempt that began before reads it: the version to which it
/// moves on is complete.
#[test]
fn loom_read_against_two_installs_in_versions() {
    explore(3, || {
        let (db, table) = database::<Mvcc>(1);
        let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
        let inner = table.clone();
        let with = |count: u8| Item {
            id: 0,
            count: count.into(),
            small: count,
            flag: true,
            other: count.into(),
        };
        let reader = thread::spawn(move || {
            attempt(&mut other, |tx| {
                let row = inner.read(tx, 0, Whole)?;
                assert!(row == Item::new(0, 0) || row == with(1) || row == with(2), "{row:?}");
                Ok(())
            });
            drop(other);
        });
        for count in 1..=2 {
            attempt(&mut mine, |tx| table.put(tx, with(count)));
        }
        reader.join().unwrap();
    });
}

/// A row that has been written since a snapshot was opened is written again, while the snapshot
/// reads its old version.
#[test]
fn loom_looking_back_against_install_in_versions() {
    explore_as_it_is(3, || {
        let (db, table) = database::<Mvcc>(1);
        let (mut here, mut there, inner) =
            (db.session().unwrap(), db.session().unwrap(), table.clone());
        let snapshot = db.snapshot();
        assert!(attempt(&mut here, |tx| table.update(tx, 0, Item::OTHER.set(1))));
        let reader = thread::spawn(move || {
            let seen = snapshot.run_in(&mut there, |tx| inner.get(tx, 0, Whole));
            assert_eq!(seen, Ok(Some(Item::new(0, 0))));
            drop((there, snapshot));
        });
        assert!(attempt(&mut here, |tx| table.update(
            tx,
            &0,
            (Item::COUNT.set(2), Item::OTHER.set(2))
        )));
        reader.join().unwrap();
    });
}

/// A row is deleted while a reader with an older view reads it. The reader sees the whole row.
#[test]
fn loom_looking_back_against_delete_in_versions() {
    explore_as_it_is(3, || {
        let (db, table) = database::<Mvcc>(1);
        let (mut here, mut there, inner) =
            (db.session().unwrap(), db.session().unwrap(), table.clone());
        let snapshot = db.snapshot();
        let reader = thread::spawn(move || {
            let seen = snapshot.run_in(&mut there, |tx| inner.get(tx, 0, Whole));
            assert_eq!(seen, Ok(Some(Item::new(0, 0))));
            drop((there, snapshot));
        });
        assert!(attempt(&mut here, |tx| table.delete(tx, 0)));
        reader.join().unwrap();
    });
}

/// Counts the versions of a row while one is being linked: all versions are counted, or all except
/// the new one.
fn counting_against_install<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (mut here, mut there, inner) =
        (db.session().unwrap(), db.session().unwrap(), table.clone());
    let mut write =
        |count| assert!(attempt(&mut here, |tx| table.update(tx, 0, Item::COUNT.set(count))));
    write(1);
    let counting = thread::spawn(move || {
        let versions = inner.versions_of(&mut there, &0).unwrap();
        drop(there);
        versions
    });
    write(2);
    let versions = counting.join().unwrap();
    assert!(matches!(versions, Some(2 | 3)), "{versions:?}");
    assert_eq!(table.versions_of(&mut here, &0), Ok(Some(3)));
}

/// Without the Acquire of the cell's word, the header of the newest version might not be visible,
/// and the chain would seem to end there.
#[test]
fn loom_counting_against_install_in_versions() {
    explore_as_it_is(3, counting_against_install::<Mvcc>);
}

#[test]
fn loom_counting_against_install_by_timestamps() {
    explore_as_it_is(3, counting_against_install::<Mvto>);
}

/// A read-only transaction that commits has seen one moment: all or nothing of a concurrent commit.
#[test]
fn loom_committed_reads_by_timestamps() {
    explore(3, || {
        let (db, table) = database::<Mvto>(2);
        let seen = Arc::new(std::sync::Mutex::new([0, 0]));
        let sees = seen.clone();
        let (_, committed) = race(
            &db,
            &table,
            move |table, tx| {
                [0, 1].iter().try_for_each(|id| table.update(tx, id, Item::COUNT.set(1)))
            },
            move |table, tx| {
                let counts = [table.read(tx, 0, Item::COUNT)?, table.read(tx, 1, Item::COUNT)?];
                *sees.lock().unwrap() = counts;
                Ok(())
            },
        );
        let seen = *seen.lock().unwrap();
        assert!(!committed || seen[0] == seen[1], "{seen:?}");
    });
}

/// A transaction with the read-only option sees one moment: all or nothing of a concurrent commit,
/// and all of an earlier commit. The transaction also waits for a session that has taken over the
/// place of a closed session.
#[test]
fn loom_report_against_commits_by_timestamps() {
    explore(3, || {
        let (db, table) = database::<Mvto>(2);
        let inner = table.clone();
        let (mut mine, mut first, again) =
            (db.session().unwrap(), db.session().unwrap(), db.clone());
        let over = Arc::new(AtomicU64::new(0));
        let is_over = over.clone();
        let other = thread::spawn(move || {
            let both = |tx: &Tx<'_, Mvto>, count| {
                [0, 1].iter().try_for_each(|id| inner.update(tx, id, Item::COUNT.set(count)))
            };
            assert!(
                attempt(&mut first, |tx| both(tx, 1)),
                "no transaction reads what would stand in its way"
            );
            drop(first);
            is_over.store(1, Ordering::Release);
            let mut second = again.session().unwrap();
            assert!(
                attempt(&mut second, |tx| both(tx, 2)),
                "no transaction reads what would stand in its way"
            );
            drop(second);
        });
        let least = over.load(Ordering::Acquire) as i64;
        let counts = mine
            .read_view(|tx| Ok([table.read(tx, 0, Item::COUNT)?, table.read(tx, 1, Item::COUNT)?]));
        let counts = counts.unwrap();
        assert!(counts[0] == counts[1] && counts[0] >= least, "{counts:?} after {least}");
        other.join().unwrap();
    });
}

/// Runs a read-only transaction against a commit, with timestamps from the clock. Either session
/// may have made the time advance by an earlier commit.
fn report_against_a_commit(commits: bool, reports_here: bool) {
    let (db, table) = database::<Mvto>(3);
    let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
    // Both sessions get their places here. Later no thread searches the places under a lock, which
    // would order the threads, too.
    for session in [&mut mine, &mut other] {
        assert!(attempt(session, |tx| table.update(tx, 2, Item::COUNT.set(4))));
    }
    let before = mine.read_view(|tx| table.read(tx, 2, Item::COUNT));
    assert_eq!(before, Ok(4));
    let items = table.clone();
    let writes = move || {
        let both = |tx: &Tx<'_, Mvto>| {
            [0, 1].iter().try_for_each(|id| items.update(tx, id, Item::COUNT.set(1)))
        };
        assert!(attempt(&mut other, both), "no transaction reads what would stand in its way");
        drop(other);
    };
    let items = table.clone();
    let reports = move || {
        assert!(!commits || attempt(&mut mine, |tx| items.update(tx, 2, Item::COUNT.set(5))));
        let counts = mine.read_view(|tx| {
            assert_eq!(
                items.read(tx, 2, Item::COUNT)?,
                4 + i64::from(commits),
                "what has been committed is there"
            );
            Ok([items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?])
        });
        let counts = counts.unwrap();
        assert!(counts[0] == counts[1], "{counts:?}");
        drop(mine);
    };
    let other = if reports_here {
        let other = thread::spawn(writes);
        reports();
        other
    } else {
        let other = thread::spawn(reports);
        writes();
        other
    };
    other.join().unwrap();
    assert_eq!(count(&db, &table, [0, 1]), [1, 1], "who begins after a commit sees it");
}

#[test]
fn loom_report_against_a_commit_by_the_clock() {
    for (commits, reports_here) in [(true, true), (true, false), (false, true), (false, false)] {
        by_the_clock(|| explore(2, move || report_against_a_commit(commits, reports_here)));
    }
}

/// An updater that multiplies the count, and adds to it.
#[derive(Debug, Clone, Copy)]
struct Linear(i64, i64);

impl crate::Updater<Item> for Linear {
    type Target = crate::Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), crate::Refused> {
        *count = *count * self.0 + self.1;
        Ok(())
    }
}

/// Explores the collection of a row's deferred updates by the session that has made them, while
/// another session reads the row. After the updates, the row's count is `expected`.
fn explore_collection_beside_a_read(
    updates: fn(&mut Session<Mvto>, &Table<Item, Mvto>),
    expected: i64,
) {
    explore(2, move || {
        let (db, table) = database::<Mvto>(1);
        let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
        updates(&mut mine, &table);
        let inner = table.clone();
        let reader = thread::spawn(move || {
            attempt(&mut other, |tx| {
                assert_eq!(inner.read(tx, 0, Whole)?, Item::new(0, expected));
                Ok(())
            });
            drop(other);
        });
        for _ in 0..2 {
            (0..2).for_each(|_| db.inner.engine.epochs.pass());
            attempt(&mut mine, |_| Ok(()));
        }
        reader.join().unwrap();
        assert_eq!(count(&db, &table, [0]), [expected]);
    });
}

/// One session turns deferred updates into a row and frees the versions below them. Meanwhile
/// another session reads the row, perhaps as it was before.
#[test]
fn loom_collecting_against_read_by_timestamps() {
    let updates = |mine: &mut Session<Mvto>, table: &Table<Item, Mvto>| {
        assert!(attempt(mine, |tx| table.update(tx, 0, Item::COUNT.wrapping_add(1))));
        assert!(attempt(mine, |tx| table.update_with(tx, 0, Linear(3, -1))));
    };
    explore_collection_beside_a_read(updates, 2);
}

/// One session merges a deferred update into the row. Meanwhile another session reads the row,
/// perhaps by way of the update that is being merged.
#[test]
fn loom_merging_against_read_by_timestamps() {
    let updates = |mine: &mut Session<Mvto>, table: &Table<Item, Mvto>| {
        assert!(attempt(mine, |tx| table.update(tx, 0, Item::COUNT.add(1))));
    };
    explore_collection_beside_a_read(updates, 1);
}

/// A row is deleted while another session updates it blindly.
#[test]
fn loom_delta_against_delete_by_timestamps() {
    explore(3, || {
        let (db, table) = database::<Mvto>(1);
        let found = Arc::new(std::sync::Mutex::new(false));
        let finds = found.clone();
        let (updated, deleted) = race(
            &db,
            &table,
            move |table, tx| {
                *finds.lock().unwrap() =
                    table.update_if_present(tx, 0, Item::COUNT.wrapping_add(1))?;
                Ok(())
            },
            move |table, tx| table.delete(tx, 0),
        );
        let mut session = db.session().unwrap();
        let left = session.run(|tx| table.get(tx, 0, Item::COUNT)).unwrap();
        let found = updated && *found.lock().unwrap();
        assert_eq!(left, (!deleted).then_some(i64::from(found)));
    });
}

/// An update is linked late, below a deferred update that is being read.
#[test]
fn loom_late_link_against_flattening_by_timestamps() {
    explore(2, || {
        let (db, table) = database::<Mvto>(1);
        let (mut mine, mut other) = (db.session().unwrap(), db.session().unwrap());
        let inner = table.clone();
        let late = thread::spawn(move || {
            let committed = attempt(&mut other, |tx| inner.update(tx, 0, Item::COUNT.set(10)));
            drop(other);
            committed
        });
        let added = attempt(&mut mine, |tx| table.update_with(tx, 0, Linear(1, 1)));
        let read =
            mine.with(RunOptions::new().attempts_max(1)).run(|tx| table.read(tx, 0, Item::COUNT));
        let set = late.join().unwrap();
        let last = count(&db, &table, [0])[0];
        match (set, added) {
            (true, true) => assert!(last == 10 || last == 11, "{last}"),
            _ => assert_eq!(last, if set { 10 } else { i64::from(added) }),
        }
        // The reader has read the final row, or the row from before the other update.
        let before = i64::from(added);
        assert!(
            read.is_err_and(|e: Abort| e == Abort::AttemptsExhausted)
                || read == Ok(last)
                || read == Ok(before) && last == 10
        );
    });
}

/// Runs a transaction that reads a key as absent and writes a row, against a transaction that reads
/// the row and inserts the key.
fn absent_read_against_insert<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let there = table.get(tx, 9, Item::COUNT)?.is_some();
            table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
        },
        move |table, tx| {
            let count = table.read(tx, 0, Item::COUNT)?;
            table.insert(tx, Item::new(9, count))
        },
    );
    if first && second {
        // Either the insert (of 0) came first, and then the update that saw the inserted row. Or
        // the update came first, and then the insert (of 1).
        let rows = count(&db, &table, [0, 9]);
        assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
    }
}

#[test]
fn loom_absent_read_against_insert() {
    explore(4, absent_read_against_insert::<Occ>);
}

#[test]
fn loom_absent_read_against_insert_in_timestamp_order() {
    explore(3, absent_read_against_insert::<TicToc>);
}

#[test]
fn loom_absent_read_against_insert_in_versions() {
    explore(3, absent_read_against_insert::<Mvcc>);
}

#[test]
fn loom_absent_read_against_insert_by_timestamps() {
    explore(2, absent_read_against_insert::<Mvto>);
}

#[test]
fn loom_absent_read_against_insert_by_the_clock() {
    by_the_clock(|| explore(2, absent_read_against_insert::<Mvto>));
}

/// An absent read races with an insert that has the smaller number, while time stands still unless
/// a thread waits for it.
#[test]
fn loom_absent_read_against_insert_in_one_tick() {
    let scene = || {
        let (db, table) = database::<Mvto>(1);
        let (mut inserting, mut missing) = (db.session().unwrap(), db.session().unwrap());
        for session in [&mut inserting, &mut missing] {
            assert!(attempt(session, |tx| table.update(tx, 0, Item::COUNT.set(0))));
        }
        let inner = table.clone();
        let inserting = thread::spawn(move || {
            let inserted = attempt(&mut inserting, |tx| {
                let count = inner.read(tx, 0, Item::COUNT)?;
                inner.insert(tx, Item::new(9, count))
            });
            drop(inserting);
            inserted
        });
        let missed = attempt(&mut missing, |tx| {
            let there = table.get(tx, 9, Item::COUNT)?.is_some();
            table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
        });
        if inserting.join().unwrap() && missed {
            let rows = count(&db, &table, [0, 9]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    };
    by_the_clock(|| explore(2, scene));
}

/// Two transactions update one row under the global lock, without other concurrency control. The
/// second update works on the result of the first.
#[test]
fn loom_two_updates_under_one_lock() {
    let scene = || {
        let (db, table) = database::<Serial>(1);
        let committed = race(
            &db,
            &table,
            move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
            move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
        );
        assert_eq!(committed, (true, true));
        assert_eq!(count(&db, &table, [0]), [2]);
    };
    under_a_lock(|| explore(3, scene));
}

/// An absent read, after a scan of every bucket, races with an insert.
#[test]
fn loom_iteration_against_insert() {
    explore(3, || {
        let (db, table) = database::<Occ>(1);
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let rows = table.iter(tx, ()).collect::<Result<Vec<_>, _>>()?.len();
                table.update(tx, 0, Item::COUNT.set(rows as i64))
            },
            move |table, tx| {
                let count = table.read(tx, 0, Item::COUNT)?;
                table.insert(tx, Item::new(9, count))
            },
        );
        if first && second {
            let rows = count(&db, &table, [0, 9]);
            assert!(rows == [2, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// An absent read, by a lookup of several keys at once, races with an insert.
#[test]
fn loom_many_lookups_against_insert() {
    explore(3, || {
        let (db, table) = database::<Occ>(1);
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let there = table.find_many(tx, &[0, 9])?[1].get(Item::COUNT)?.is_some();
                table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
            },
            move |table, tx| {
                let count = table.read(tx, 0, Item::COUNT)?;
                table.insert(tx, Item::new(9, count))
            },
        );
        if first && second {
            let rows = count(&db, &table, [0, 9]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// Makes a table of two buckets of six slots each. Returns an endless iterator over keys for each
/// bucket.
fn two_buckets() -> (Database<Occ>, Table<Item, Occ>, [impl Iterator<Item = u64>; 2]) {
    let db = Database::<Occ>::builder().timestamp_splitting(false).seed(1).build().unwrap();
    let table = db.table_with::<Item>("rows", TableOptions::default().capacity(8)).unwrap();
    let keys = [0, 1].map(|bucket| {
        let table = table.clone();
        (0..).filter(move |&key: &u64| match &table.core().index {
            TableIndex::Hash(hash) => hash.hash(&[key]) & 1 == bucket,
            TableIndex::Ordered(_) => false,
        })
    });
    (db, table, keys)
}

/// A key is inserted into a full bucket while the other bucket is not full. A lookup finds the
/// complete record in an overflow line, or finds no record.
#[test]
fn loom_lookup_against_an_overflow_line() {
    explore_as_it_is(3, || {
        let (db, table, [mut keys, _]) = two_buckets();
        let present: Vec<u64> = keys.by_ref().take(6).collect();
        let (zero, added, missing) = (present[0], keys.next().unwrap(), keys.next().unwrap());
        let mut session = db.session().unwrap();
        session
            .run(|tx| present.iter().try_for_each(|&id| table.insert(tx, Item::new(id, 0))))
            .unwrap();
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let count = table.read(tx, &zero, Item::COUNT)?;
                table.insert(tx, Item::new(added, count))
            },
            move |table, tx| {
                let there = table.get(tx, &added, Item::COUNT)?.is_some();
                assert_eq!(table.get(tx, &missing, Item::COUNT)?, None);
                table.update(tx, &zero, Item::COUNT.set(if there { 5 } else { 1 }))
            },
        );
        if first && second {
            let rows = count(&db, &table, [zero, added]);
            assert!(rows == [5, 0] || rows == [1, 1], "{rows:?}");
        }
    });
}

/// Two inserts move a table of two buckets to a larger array. Each insert moves its own bucket, and
/// the last one publishes the array. Lookups in the new array also find the records of the other
/// insert's bucket.
#[test]
fn loom_two_inserts_into_a_growing_table() {
    explore(2, || {
        let (db, table, [mut full, mut others]) = two_buckets();
        let in_full: Vec<u64> = full.by_ref().take(6).collect();
        let in_other: Vec<u64> = others.by_ref().take(3).collect();
        let added = [full.next().unwrap(), others.next().unwrap()];
        let mut session = db.session().unwrap();
        session
            .run(|tx| {
                in_full
                    .iter()
                    .chain(&in_other)
                    .try_for_each(|&id| table.insert(tx, Item::new(id, 0)))
            })
            .unwrap();
        let of_other = in_other[0];
        let add =
            move |table: &Table<Item, Occ>, tx: &crate::Tx<'_, Occ>, number: usize, there: u64| {
                table.insert(tx, Item::new(added[number], 0))?;
                assert_eq!(table.read(tx, &there, Item::COUNT)?, 0);
                Ok(())
            };
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| add(table, tx, 0, of_other),
            move |table, tx| add(table, tx, 1, in_full[0]),
        );
        for (id, is_added) in added.into_iter().zip([first, second]) {
            assert_eq!(db.run(|tx| table.get(tx, &id, Item::COUNT)), Ok(is_added.then_some(0)));
        }
    });
}

/// Removes the record of a deleted row of two groups while its key is inserted again. The insert
/// may commit or fail. A dead record must not be read as a row.
fn burial_against_insert<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let (mut gravedigger, mut other) = (db.session().unwrap(), db.session().unwrap());
    for step in 0..2 {
        let act = |tx: &crate::Tx<'_, P>| match step {
            0 => table.insert(tx, Item::new(1, 0)),
            _ => table.delete(tx, 1),
        };
        gravedigger.run(act).unwrap();
    }
    (0..3).for_each(|_| db.inner.engine.epochs.pass());
    let inner = table.clone();
    let other = thread::spawn(move || {
        let inserted =
            attempt(&mut other, |tx| inner.insert(tx, Item { other: 5, ..Item::new(1, 5) }));
        drop(other);
        inserted
    });
    // The session collects its garbage at the end of a transaction.
    attempt(&mut gravedigger, |_| Ok(()));
    let inserted = other.join().unwrap();
    let mut last = db.session().unwrap();
    let row = last.run(|tx| table.get(tx, 1, Whole)).unwrap();
    assert_eq!(row, inserted.then_some(Item { other: 5, ..Item::new(1, 5) }));
}

#[test]
fn loom_burial_against_insert() {
    explore(3, burial_against_insert::<Occ>);
}

#[test]
fn loom_burial_against_insert_by_timestamps() {
    explore(2, burial_against_insert::<Mvto>);
}

/// Puts a row in a record while another session collects garbage. The attempt finds its own row.
/// The row that was there before is deleted by the other session, before the attempt begins or
/// beside it.
fn burial_against_put<P: Protocol>(deletes_beside: bool) {
    let (db, table) = database::<P>(1);
    let (mut gravedigger, mut other) = (db.session().unwrap(), db.session().unwrap());
    if !deletes_beside {
        assert!(attempt(&mut gravedigger, |tx| table.delete(tx, 0)));
        (0..2).for_each(|_| db.inner.engine.epochs.pass());
    }
    // What the closure sees is looked at outside of it: the panic of an attempt that is going to
    // fail would be discarded.
    let found = Arc::new(std::sync::Mutex::new(Some(5)));
    let (inner, seen) = (table.clone(), found.clone());
    let other = thread::spawn(move || {
        attempt(&mut other, |tx| {
            inner.put(tx, Item::new(0, 5))?;
            // Loom switches here by itself only if the put has changed what the collector changes.
            thread::yield_now();
            *seen.lock().unwrap() = inner.get(tx, 0, Item::COUNT)?;
            Ok(())
        });
        drop(other);
    });
    // The session collects its garbage at the end of a transaction.
    if deletes_beside {
        attempt(&mut gravedigger, |tx| table.delete(tx, 0));
    } else {
        attempt(&mut gravedigger, |_| Ok(()));
    }
    (0..2).for_each(|_| db.inner.engine.epochs.pass());
    attempt(&mut gravedigger, |_| Ok(()));
    other.join().unwrap();
    assert_eq!(*found.lock().unwrap(), Some(5), "the row was put a moment before");
}

#[test]
fn loom_burial_against_put() {
    explore_as_it_is(2, || burial_against_put::<Occ>(false));
}

#[test]
fn loom_burial_against_put_in_timestamp_order() {
    explore_as_it_is(2, || burial_against_put::<TicToc>(false));
}

#[test]
fn loom_burial_against_put_by_timestamps() {
    explore_as_it_is(2, || burial_against_put::<Mvto>(false));
}

#[test]
fn loom_delete_against_put() {
    explore_as_it_is(2, || burial_against_put::<Occ>(true));
}

#[test]
fn loom_delete_against_put_in_timestamp_order() {
    explore_as_it_is(2, || burial_against_put::<TicToc>(true));
}

/// Moves a bucket to a larger array during a lookup. The lookup finds existing keys, and does not
/// miss inserted keys. `rows` rows fill the table, so that one more row makes the table grow.
fn lookup_against_growth<P: Protocol>(rows: u64) {
    let (db, table) = database::<P>(rows);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            table.insert(tx, Item::new(rows, zero))
        },
        move |table, tx| {
            assert_eq!(table.read(tx, 3, Item::COUNT)?, 0);
            let there = table.get(tx, &rows, Item::COUNT)?.is_some();
            table.update(tx, 0, Item::COUNT.set(if there { 5 } else { 1 }))
        },
    );
    if first && second {
        let counts = count(&db, &table, [0, rows]);
        assert!(counts == [5, 0] || counts == [1, 1], "{counts:?}");
    }
}

#[test]
fn loom_lookup_against_growth() {
    // Under the model a table begins with one bucket. Here the bucket has six slots.
    explore_as_it_is(4, || lookup_against_growth::<Occ>(6));
}

#[test]
fn loom_lookup_against_growth_in_timestamp_order() {
    // Two words of the bucket are timestamps, so it has four slots. Four records are not crowded,
    // so an overflow line of seven slots is added before the table grows.
    explore_as_it_is(2, || lookup_against_growth::<TicToc>(11));
}

/// A reader holds a block under its pin. Another thread unlinks the block, reads a stamp, and asks
/// whether the block is free.
#[test]
fn loom_pin_against_reclaim() {
    pin_against_reclaim(Epochs::pin);
}

#[test]
fn loom_pin_of_a_snapshot_against_reclaim() {
    pin_against_reclaim(Epochs::pin_for_memory);
}

fn pin_against_reclaim(pin: fn(&Epochs, &Slot)) {
    const LIVE: u64 = 1;
    const FREED: u64 = 2;
    explore(5, move || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(AtomicU64::new(LIVE));
        let (reader_slot, unlinker_slot) = (epochs.register(), epochs.register());
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                pin(&epochs, &reader_slot);
                if link.load(Ordering::Acquire) == 1 {
                    assert_eq!(block.load(Ordering::Relaxed), LIVE, "freed under a pin");
                }
                epochs.unpin(&reader_slot);
            })
        };
        epochs.pin(&unlinker_slot);
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        epochs.unpin(&unlinker_slot);
        for _ in 0..2 {
            epochs.pass();
            if epochs.is_free(stamp) {
                block.store(FREED, Ordering::Relaxed);
            }
        }
        reader.join().unwrap();
        epochs.pass();
        assert!(epochs.is_free(stamp), "a block that no session holds is free after a pass");
    });
}

/// Runs two blind updates of one row. The update that locks second works on the words that the
/// first has installed.
fn two_updates_of_one_row<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
        move |table, tx| table.update(tx, 0, Item::COUNT.add(1)),
    );
    assert_eq!(count(&db, &table, [0]), [i64::from(first) + i64::from(second)]);
}

#[test]
fn loom_two_updates_of_one_row() {
    explore(4, two_updates_of_one_row::<Occ>);
}

#[test]
fn loom_two_updates_of_one_row_in_timestamp_order() {
    explore(4, two_updates_of_one_row::<TicToc>);
}

#[test]
fn loom_two_updates_of_one_row_by_timestamps() {
    explore(3, two_updates_of_one_row::<Mvto>);
}

/// Two inserts of different keys into one bucket: neither takes the other's slot.
#[test]
fn loom_two_inserts_into_one_bucket() {
    explore(3, || {
        let (db, table) = database::<Occ>(0);
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| table.insert(tx, Item::new(1, 1)),
            move |table, tx| table.insert(tx, Item::new(2, 2)),
        );
        let mut session = db.session().unwrap();
        let found = session
            .run(|tx| Ok((table.get(tx, 1, Item::COUNT)?, table.get(tx, 2, Item::COUNT)?)))
            .unwrap();
        assert_eq!(found, (first.then_some(1), second.then_some(2)));
    });
}

/// A block is not freed under a reader's pin. The passes run on a separate thread, and loom detects
/// concurrent use of the block's memory.
#[test]
fn loom_reader_unlinker_advancer() {
    struct Cell(loom::cell::UnsafeCell<u64>);
    // SAFETY: the test asserts that no two threads use the value at the same time.
    unsafe impl Sync for Cell {}
    explore(3, || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(Cell(loom::cell::UnsafeCell::new(0)));
        let (reader_slot, unlinker_slot) = (epochs.register(), epochs.register());
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                epochs.pin(&reader_slot);
                if link.load(Ordering::Acquire) == 1 {
                    // SAFETY: as above.
                    block.0.with(|block| assert_eq!(unsafe { *block }, 0, "freed under a pin"));
                }
                epochs.unpin(&reader_slot);
            })
        };
        let advancer = {
            let epochs = epochs.clone();
            thread::spawn(move || {
                epochs.pass();
                epochs.pass();
            })
        };
        epochs.pin(&unlinker_slot);
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        epochs.unpin(&unlinker_slot);
        if epochs.is_free(stamp) {
            // SAFETY: as above.
            block.0.with_mut(|block| unsafe { *block = 1 });
        }
        reader.join().unwrap();
        advancer.join().unwrap();
    });
}

/// A reader begins its second transaction at once after its first. An advancer that does not see
/// the end of the first pin sees the second pin. With that pin, the advancer also sees that the
/// first transaction is over.
#[test]
fn loom_reader_that_pins_again() {
    struct Cell(loom::cell::UnsafeCell<u64>);
    // SAFETY: the test asserts that no two threads use the value at the same time.
    unsafe impl Sync for Cell {}
    explore(4, || {
        let epochs = Epochs::manual(5);
        let link = Arc::new(AtomicU64::new(1));
        let block = Arc::new(Cell(loom::cell::UnsafeCell::new(0)));
        let slot = epochs.register();
        let reader = {
            let (epochs, link, block) = (epochs.clone(), link.clone(), block.clone());
            thread::spawn(move || {
                epochs.pin(&slot);
                if link.load(Ordering::Acquire) == 1 {
                    // SAFETY: as above.
                    block.0.with(|block| assert_eq!(unsafe { *block }, 0, "freed under a pin"));
                }
                epochs.unpin(&slot);
                epochs.pin(&slot);
                epochs.unpin(&slot);
            })
        };
        link.store(0, Ordering::Release);
        let stamp = epochs.stamp();
        (0..2).for_each(|_| epochs.pass());
        if epochs.is_free(stamp) {
            // SAFETY: as above.
            block.0.with_mut(|block| unsafe { *block = 1 });
        }
        reader.join().unwrap();
    });
}

/// A lookup finds that its bucket has been moved out of the array in which the lookup began.
#[test]
fn loom_lookup_in_a_moving_bucket() {
    explore(3, || {
        let (db, table) = database::<Occ>(6);
        let inner = table.clone();
        let mut other = db.session().unwrap();
        let other = thread::spawn(move || {
            attempt(&mut other, |tx| inner.insert(tx, Item::new(6, 0)));
        });
        let mut mine = db.session().unwrap();
        assert!(attempt(&mut mine, |tx| {
            assert_eq!(table.read(tx, 3, Item::COUNT)?, 0);
            Ok(())
        }));
        other.join().unwrap();
    });
}

/// Runs write skew with a holder. The first transaction holds row one, reads row two, and writes
/// row one. The second transaction reads row one and writes row two. Without INSTALL before the
/// holder's fence, both would see the old row.
fn held_write_skew<P: Protocol>() {
    let (db, table) = database::<P>(2);
    race(
        &db,
        &table,
        move |table, tx| {
            table.read_for_update(tx, 0, Item::COUNT)?;
            let one = table.read(tx, 1, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(one + 1))
        },
        move |table, tx| {
            let zero = table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.set(zero + 1))
        },
    );
    let rows = count(&db, &table, [0, 1]);
    assert_ne!(rows, [1, 1], "both committed on what the other replaced");
}

#[test]
fn loom_held_write_skew() {
    explore(4, held_write_skew::<Occ>);
}

#[test]
fn loom_held_write_skew_by_timestamps() {
    explore(2, held_write_skew::<Mvto>);
}

#[test]
fn loom_held_write_skew_in_timestamp_order() {
    explore(4, held_write_skew::<TicToc>);
}

/// Runs a read for update, followed by a write, against a blind update of the same row. Neither
/// write is lost.
fn held_against_a_blind_update<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let count = table.read_for_update(tx, 0, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(count + 1))
        },
        move |table, tx| table.update(tx, 0, Item::COUNT.add(10)),
    );
    assert_eq!(count(&db, &table, [0]), [i64::from(first) + 10 * i64::from(second)]);
}

#[test]
fn loom_held_against_a_blind_update() {
    explore(4, held_against_a_blind_update::<Occ>);
}

#[test]
fn loom_held_against_a_blind_update_in_timestamp_order() {
    explore(4, held_against_a_blind_update::<TicToc>);
}

/// Lets two sessions hold one row, one after the other. One of them releases the row without
/// writing it, and writes another row. The second holder sees the first holder's write.
fn two_holders_of_one_row<P: Protocol>() {
    let (db, table) = database::<P>(2);
    let (first, second) = race(
        &db,
        &table,
        move |table, tx| {
            let count = table.read_for_update(tx, 0, Item::COUNT)?;
            table.update(tx, 0, Item::COUNT.set(count + 1))
        },
        move |table, tx| {
            let count = table.read_for_update(tx, 0, Item::COUNT)?;
            table.update(tx, 1, Item::COUNT.set(count + 10))
        },
    );
    let rows = count(&db, &table, [0, 1]);
    match (first, second) {
        (true, true) => assert!(rows == [1, 10] || rows == [1, 11], "{rows:?}"),
        (first, second) => assert_eq!(rows, [i64::from(first), 10 * i64::from(second)]),
    }
}

#[test]
fn loom_two_holders_of_one_row() {
    explore(4, two_holders_of_one_row::<Occ>);
}

#[test]
fn loom_two_holders_of_one_row_in_timestamp_order() {
    explore(4, two_holders_of_one_row::<TicToc>);
}

/// A database with two tables whose cells have a second word, each with row 0. The first table has
/// the policy `policy`, the second one has [`Policy::NoWait`].
fn two_tables(policy: Policy) -> (Database<Occ>, [Table<Item, Occ>; 2]) {
    let db = Database::<Occ>::builder()
        .policy(Policy::NoWait)
        .timestamp_splitting(false)
        .build()
        .unwrap();
    let tables = ["one", "other"].map(|name| db.table::<Item>(name).unwrap());
    let mut session = db.session().unwrap();
    session
        .run(|tx| tables.iter().try_for_each(|table| table.insert(tx, Item::new(0, 0))))
        .unwrap();
    tables[0].set_policy(policy).unwrap();
    (db, tables)
}

/// Returns the cell of row 0.
fn cell(table: &Table<Item, Occ>) -> CellAt {
    let Found::Record(record) = table.core().index.find(&[0]) else { panic!("it is there") };
    table.core().layout.first_of(record)
}

/// Reads row 0. If the reader then holds the second word for reading, no commit installs the row.
fn read_under_the_second_word(table: &Table<Item, Occ>, tx: &Tx<'_, Occ>) -> Result<(), Abort> {
    table.read(tx, 0, Item::COUNT)?;
    let at = cell(table);
    let tid = || Tid(at.cell_word(0).load(Ordering::Acquire));
    if Lock::of(&at).word().readers() > 0 && tid().has(RASK) {
        assert!(!tid().has(Tid::INSTALL), "LK6: it is installed under a reader");
    }
    Ok(())
}

fn expect_free(table: &Table<Item, Occ>) {
    assert_eq!(cell(table).cell_word(1).load(Ordering::Relaxed), 0, "a lock is left");
}

/// A reader that holds the second word keeps a writer out until it ends.
#[test]
fn loom_reader_by_policy_against_a_writer() {
    explore(3, || {
        let (db, [table, _]) = two_tables(Policy::NoWait);
        race(
            &db,
            &table,
            |table, tx| table.update(tx, 0, Item::COUNT.set(1)),
            |table, tx| read_under_the_second_word(table, tx),
        );
        expect_free(&table);
    });
}

/// A writer waits for a reader, which ends. Whether or not the writer gives up, it leaves no trace.
#[test]
fn loom_last_reader_against_a_writer_that_waits() {
    explore(3, || {
        let (db, [table, _]) = two_tables(Policy::NoWait);
        let at = cell(&table);
        assert_eq!(Lock::of(&at).take_to_read(9), Ok(()));
        let rows = table.clone();
        let mut session = db.session().unwrap();
        let writer = thread::spawn(move || {
            attempt(&mut session, |tx| rows.update(tx, 0, Item::COUNT.set(1)));
            drop(session);
        });
        Lock::of(&at).release_reader();
        writer.join().unwrap();
        expect_free(&table);
    });
}

/// The flags of a row are set while a writer commits, which has seen none. If `asks_before`, the
/// same transaction has asked another table's policy before.
fn flags_that_are_set_against_a_writer(asks_before: bool) {
    explore_as_it_is(3, move || {
        let (db, [table, other]) = two_tables(Policy::Optimistic);
        let (rows, mut session) = (table.clone(), db.session().unwrap());
        let ask =
            |other: &Table<Item, Occ>, tx: &Tx<'_, Occ>| other.update(tx, 0, Item::COUNT.set(1));
        if !asks_before {
            // The session gets a desk, without which it would lock nothing by policy.
            attempt(&mut session, |tx| ask(&other, tx));
        }
        let writer = thread::spawn(move || {
            attempt(&mut session, |tx| {
                if asks_before {
                    ask(&other, tx)?;
                }
                rows.update(tx, 0, Item::COUNT.set(1))
            });
            drop(session);
        });
        table.set_policy(Policy::NoWait).unwrap();
        let mut session = db.session().unwrap();
        attempt(&mut session, |tx| read_under_the_second_word(&table, tx));
        writer.join().unwrap();
        expect_free(&table);
    });
}

#[test]
fn loom_flags_that_are_set_against_a_writer() {
    flags_that_are_set_against_a_writer(false);
}

#[test]
fn loom_flags_that_are_set_against_a_writer_of_two_rows() {
    flags_that_are_set_against_a_writer(true);
}

/// Reads a held row while its holder installs: all words are of one version.
fn read_against_a_holder_that_installs<P: Protocol>() {
    let (db, table) = database::<P>(1);
    let new = Item { id: 0, count: 1, small: 1, flag: true, other: 1 };
    race(
        &db,
        &table,
        move |table, tx| {
            table.read_for_update(tx, 0, Item::COUNT)?;
            table.put(tx, new)
        },
        move |table, tx| {
            let row = table.read(tx, 0, Whole)?;
            assert!(row == new || row == Item::new(0, 0), "{row:?}");
            Ok(())
        },
    );
}

#[test]
fn loom_read_against_a_holder_that_installs() {
    explore(4, read_against_a_holder_that_installs::<Occ>);
}

#[test]
fn loom_read_against_a_holder_that_installs_in_timestamp_order() {
    explore(4, read_against_a_holder_that_installs::<TicToc>);
}

/// A small row of an ordered table with a unique index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
struct Ticket {
    #[key]
    id: u64,
    #[unique(ordered)]
    seat: u64,
    price: i64,
}

/// Makes an ordered table of tickets. Ticket `id` has seat `id` and price zero. A table with an
/// index takes more than the stack that loom gives a thread.
fn tickets(
    ids: impl Iterator<Item = u64> + Clone + Send + 'static,
) -> (Database<Occ>, Table<Ticket, Occ>) {
    let builder = loom::thread::Builder::new().stack_size(1 << 18);
    builder.spawn(move || make_tickets(ids)).unwrap().join().unwrap()
}

fn make_tickets(ids: impl Iterator<Item = u64> + Clone) -> (Database<Occ>, Table<Ticket, Occ>) {
    let db = Database::<Occ>::builder().timestamp_splitting(false).build().unwrap();
    let table = db.table::<Ticket>("tickets").unwrap();
    let mut session = db.session().unwrap();
    session
        .run(|tx| table.insert_many(tx, ids.clone().map(|id| Ticket { id, seat: id, price: 0 })))
        .unwrap();
    (db, table)
}

/// Returns all tickets, in order.
fn all_tickets(db: &Database<Occ>, table: &Table<Ticket, Occ>) -> Vec<(u64, i64)> {
    let mut session = db.session().unwrap();
    session.run(|tx| table.scan(tx, .., Ticket::PRICE).collect::<Result<Vec<_>, Abort>>()).unwrap()
}

/// One transaction sums a range and writes the sum to another row. The other transaction reads that
/// sum and inserts into the range. It is impossible that each comes before the other.
#[test]
fn loom_scan_against_insert() {
    explore(4, || {
        let (db, table) = tickets([1, 9].into_iter());
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let rows = table.scan(tx, 1..5, ()).collect::<Result<Vec<_>, _>>()?.len();
                table.update(tx, 9, Ticket::PRICE.set(rows as i64))
            },
            move |table, tx| {
                let price = table.read(tx, 9, Ticket::PRICE)?;
                table.insert(tx, Ticket { id: 3, seat: 3, price })
            },
        );
        let rows = all_tickets(&db, &table);
        match (first, second) {
            // Either the scan of one row came first, and then the insert that has read the sum. Or
            // the insert came first.
            (true, true) => {
                assert!(rows[1..] == [(3, 1), (9, 1)] || rows[1..] == [(3, 0), (9, 2)], "{rows:?}")
            }
            (true, false) => assert_eq!(rows[1..], [(9, 1)]),
            (false, true) => assert_eq!(rows[1..], [(3, 0), (9, 0)]),
            (false, false) => assert_eq!(rows[1..], [(9, 0)]),
        }
    });
}

/// One transaction sums a range backwards and writes the sum to another row. The other transaction
/// reads that sum and deletes from the range.
#[test]
fn loom_scan_against_delete() {
    explore(4, || {
        let (db, table) = tickets([1, 3, 9].into_iter());
        let (first, second) = race(
            &db,
            &table,
            move |table, tx| {
                let rows = table.scan_rev(tx, ..5, ()).collect::<Result<Vec<_>, _>>()?.len();
                table.update(tx, 9, Ticket::PRICE.set(rows as i64))
            },
            move |table, tx| {
                let price = table.read(tx, 9, Ticket::PRICE)?;
                table.delete(tx, 3)?;
                table.update(tx, 1, Ticket::PRICE.set(price))
            },
        );
        let rows = all_tickets(&db, &table);
        match (first, second) {
            (true, true) => {
                assert!(rows == [(1, 2), (9, 2)] || rows == [(1, 0), (9, 1)], "{rows:?}")
            }
            (true, false) => assert_eq!(rows, [(1, 0), (3, 0), (9, 2)]),
            (false, true) => assert_eq!(rows, [(1, 0), (9, 0)]),
            (false, false) => assert_eq!(rows, [(1, 0), (3, 0), (9, 0)]),
        }
    });
}

/// Two rows are inserted for one seat. One insert commits, and the index has an entry for that row.
#[test]
fn loom_two_inserts_of_one_unique_key() {
    explore_as_it_is(2, || {
        let (db, table) = tickets([].into_iter());
        let insert = |table: &Table<Ticket, Occ>, tx: &crate::Tx<'_, Occ>, id| {
            match tx.attempt(|tx| table.insert(tx, Ticket { id, seat: 7, price: 0 })) {
                // The other insert was faster. In this test, the refusal counts as a conflict.
                Err(Abort::NotUnique) => Ok(()),
                result => result,
            }
        };
        race(
            &db,
            &table,
            move |table, tx| insert(table, tx, 1),
            move |table, tx| insert(table, tx, 2),
        );
        let rows = all_tickets(&db, &table);
        assert!(rows.len() <= 1, "{rows:?}");
        let mut session = db.session().unwrap();
        let by_seat = table.index(Ticket::BY_SEAT);
        let found = session.run(|tx| by_seat.get(tx, 7, Ticket::ID)).unwrap();
        assert_eq!(found, rows.first().map(|row| row.0));
    });
}
