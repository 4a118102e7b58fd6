//! Reads of several rows, under timestamps, beside commits: all reads are of one time.

use super::super::rows::Item;
use super::{attempt, count, database, explore, race};
use crate::Tx;
use crate::protocols::Mvto;
use crate::sync::{AtomicU64, Ordering, thread};
use crate::timestamps::by_the_clock;
use std::sync::Arc;

/// A read-only transaction that commits has seen one moment: all or nothing of a concurrent commit.
#[test]
fn loom_reads_of_committed_versions_by_timestamps() {
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
                "no transaction is in conflict with the write"
            );
            drop(first);
            is_over.store(1, Ordering::Release);
            let mut second = again.session().unwrap();
            assert!(
                attempt(&mut second, |tx| both(tx, 2)),
                "no transaction is in conflict with the write"
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
        assert!(attempt(&mut other, both), "no transaction is in conflict with the write");
        drop(other);
    };
    let items = table.clone();
    let reports = move || {
        assert!(!commits || attempt(&mut mine, |tx| items.update(tx, 2, Item::COUNT.set(5))));
        let counts = mine.read_view(|tx| {
            assert_eq!(
                items.read(tx, 2, Item::COUNT)?,
                4 + i64::from(commits),
                "committed rows are visible"
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
    assert_eq!(
        count(&db, &table, [0, 1]),
        [1, 1],
        "a transaction that begins after a commit sees it"
    );
}

#[test]
fn loom_report_against_a_commit_by_the_clock() {
    for (commits, reports_here) in [(true, true), (true, false), (false, true), (false, false)] {
        by_the_clock(|| explore(2, move || report_against_a_commit(commits, reports_here)));
    }
}
