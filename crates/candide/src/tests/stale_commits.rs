//! Commits that optimistic concurrency control would have aborted, and their count.

use super::interleaving::acting;
use super::rows::Item;
use super::transactions::run;
use super::two_sessions::read_then_write;
use crate::engine::Protocol;
use crate::protocols::{Mvcc, Mvto, TicToc};
use crate::sync::Point;
use crate::{Abort, Database, RunOptions, Session, Table, Tx};

/// A database with rows 0..4, and two sessions.
struct Scene<P: Protocol> {
    table: Table<Item, P>,
    first: Session<P>,
    second: Session<P>,
}

fn scene<P: Protocol>(counts: bool) -> Scene<P> {
    let builder = Database::<P>::builder().manual_epochs(1).count_stale_commits(counts);
    let db = builder.build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    let (mut first, mut second) = (db.session().unwrap(), db.session().unwrap());
    run(&mut first, |tx| (0..4).try_for_each(|id| table.insert(tx, Item::new(id, 0))));
    // Under `tictoc`, row 0 is then known to be valid for longer than the others.
    for _ in 0..3 {
        run(&mut second, |tx| {
            table.read(tx, 0, Item::COUNT)?;
            table.update(tx, 3, Item::COUNT.add(1))
        });
    }
    Scene { table, first, second }
}

fn counts_stale_commits<P: Protocol>() -> bool {
    [TicToc::NAME, Mvcc::NAME, Mvto::NAME].contains(&P::NAME)
}

/// Reads rows 0 and 1; row 0 is written in between, by a transaction of `other`.
fn overtaken<P: Protocol>(
    tx: &Tx<'_, P>,
    table: &Table<Item, P>,
    other: &mut Session<P>,
) -> Result<(), Abort> {
    table.read(tx, 0, Item::COUNT)?;
    if tx.attempt_number() == 1 {
        run(other, |tx| table.update(tx, 0, Item::COUNT.add(1)));
    }
    table.read(tx, 1, Item::COUNT).map(drop)
}

protocol_tests!(overlapping: a_stale_read_only_commit_is_counted_with_the_option);
fn a_stale_read_only_commit_is_counted_with_the_option<P: Protocol>() {
    for (counts, read_only) in [(true, false), (true, true), (false, false), (false, true)] {
        let Scene { table, mut first, mut second, .. } = scene::<P>(counts);
        let options = if read_only { RunOptions::new().read_only() } else { RunOptions::new() };
        first.with(options).run(|tx| overtaken(tx, &table, &mut second)).unwrap();
        let expected = u64::from(counts && counts_stale_commits::<P>());
        let stats = first.stats();
        assert_eq!(stats.stale_commits, expected, "{} {counts} {read_only}", P::NAME);
        assert_eq!(stats.retries, 0, "{}", P::NAME);
        // The count is of single transactions.
        first.with(options).run(|tx| table.read(tx, 0, Item::COUNT)).unwrap();
        assert_eq!(first.stats().stale_commits, expected, "{} {counts} {read_only}", P::NAME);
    }
}

protocol_tests!(versioned: a_commit_that_read_an_old_version_is_counted_as_stale);
fn a_commit_that_read_an_old_version_is_counted_as_stale<P: Protocol>() {
    for read_only in [false, true] {
        let Scene { table, mut first, mut second, .. } = scene::<P>(true);
        let options = if read_only { RunOptions::new().read_only() } else { RunOptions::new() };
        let seen = first.with(options).run(|tx| {
            let before = table.read(tx, 0, Item::COUNT)?;
            run(&mut second, |tx| {
                table.update(tx, 0, Item::COUNT.add(1))?;
                table.update(tx, 1, Item::COUNT.add(1))
            });
            Ok((before, table.read(tx, 1, Item::COUNT)?))
        });
        assert_eq!(seen, Ok((0, 0)), "{}", P::NAME);
        assert_eq!(first.stats().stale_commits, 1, "{} {read_only}", P::NAME);
    }
}

protocol_tests!(overlapping: own_writes_and_writes_to_other_rows_are_not_counted_as_stale);
fn own_writes_and_writes_to_other_rows_are_not_counted_as_stale<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>(true);
    run(&mut first, |tx| {
        table.modify(tx, 0, Item::COUNT, |count| *count += 1)?;
        table.get(tx, 7, ())?;
        table.insert(tx, Item::new(8, 0))?;
        run(&mut second, |tx| table.update(tx, 1, Item::COUNT.add(1)));
        table.read(tx, 2, Item::COUNT).map(drop)
    });
    assert_eq!((first.stats().stale_commits, first.stats().retries), (0, 0), "{}", P::NAME);
}

protocol_tests!(overlapping: a_writer_ordered_before_the_overwriter_of_its_read_is_counted_as_stale);
fn a_writer_ordered_before_the_overwriter_of_its_read_is_counted_as_stale<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>(true);
    let inner = table.clone();
    // The first has drawn its timestamp, under `mvto`, and has locked row 1.
    let overtake = move || run(&mut second, |tx| inner.update(tx, 0, Item::COUNT.set(9)));
    acting(Point::Locked, overtake, || first.run(|tx| read_then_write(&table, tx, 0, 1))).unwrap();
    let stats = first.stats();
    let commits_earlier = [TicToc::NAME, Mvto::NAME].contains(&P::NAME);
    let expected = if commits_earlier { (1, 0) } else { (0, 1) };
    assert_eq!((stats.stale_commits, stats.retries), expected, "{}", P::NAME);
}
