//! Tests that the number of steps of an operation does not depend on the number of earlier
//! operations of the transaction.

use super::rows::Item;
use crate::engine::Protocol;
use crate::schema::{Refused, Updater};
use crate::sync::steps;
use crate::{Abort, Column, Database, Table, TableOptions};
use candide_derive::Record;
use std::cell::Cell;

thread_local! {
    static APPLIED: Cell<u64> = const { Cell::new(0) };
}

/// An updater that adds one to the count, up to a limit, and counts its calls.
#[derive(Debug, Clone, Copy)]
struct Counted(i64);

impl Updater<Item> for Counted {
    type Target = Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        APPLIED.set(APPLIED.get() + 1);
        *count += 1;
        if *count > self.0 { Err(Refused) } else { Ok(()) }
    }
}

const TURNS: i64 = 1_000;
const NO_LIMIT: Counted = Counted(i64::MAX);

/// Runs `body` on a table of one row. Returns the number of times that updaters were applied, the
/// result, and the final count.
fn applied<P: Protocol>(
    body: impl Fn(&crate::Tx<'_, P>, &Table<Item, P>) -> Result<(), Abort>,
) -> (u64, Result<(), Abort>, i64) {
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("rows").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    APPLIED.set(0);
    let result = db.run(|tx| body(tx, &items));
    let applied = APPLIED.get();
    (applied, result, db.run(|tx| items.read(tx, 1, Item::COUNT)).unwrap())
}

protocol_tests!(all: reads_between_updates_of_a_row_apply_each_update_a_bounded_number_of_times);
protocol_tests!(
    erased: reads_between_updates_apply_each_a_few_times_under_erased_protocols
        = reads_between_updates_of_a_row_apply_each_update_a_bounded_number_of_times()
);
fn reads_between_updates_of_a_row_apply_each_update_a_bounded_number_of_times<P: Protocol>() {
    let (applied, result, count) = applied::<P>(|tx, items| {
        for turn in 1..=TURNS {
            items.update_with(tx, 1, NO_LIMIT)?;
            assert_eq!(items.read(tx, 1, Item::COUNT)?, turn);
        }
        Ok(())
    });
    assert_eq!((result, count), (Ok(()), TURNS));
    assert!(applied <= 8 * TURNS as u64, "{}: {applied}", P::NAME);
}

protocol_tests!(all: scans_between_updates_of_a_row_apply_each_update_a_bounded_number_of_times);
fn scans_between_updates_of_a_row_apply_each_update_a_bounded_number_of_times<P: Protocol>() {
    let (applied, result, count) = applied::<P>(|tx, items| {
        for turn in 0..TURNS {
            // The scan sees the row before the update, and continues after it.
            let scan = items.iter(tx, Item::COUNT);
            items.update_with(tx, 1, NO_LIMIT)?;
            let counts = scan.collect::<Result<Vec<_>, _>>()?;
            assert_eq!(counts, [(1, turn)]);
            assert_eq!(items.read(tx, 1, Item::COUNT)?, turn + 1);
        }
        Ok(())
    });
    assert_eq!((result, count), (Ok(()), TURNS));
    assert!(applied <= 8 * TURNS as u64, "{}: {applied}", P::NAME);
}

protocol_tests!(all: reads_after_a_refused_update_apply_a_bounded_number_of_updates);
fn reads_after_a_refused_update_apply_a_bounded_number_of_updates<P: Protocol>() {
    let (applied, result, count) = applied::<P>(|tx, items| {
        let last = TURNS - 1;
        // The updates are staged without a read. The last one is refused: at once, or at the first
        // read.
        let staged = (0..TURNS).try_for_each(|_| items.update_with(tx, 1, Counted(last)));
        if staged.is_ok() {
            for _ in 0..TURNS {
                assert_eq!(items.read(tx, 1, Item::COUNT), Err(Abort::Guard), "{}", P::NAME);
            }
        }
        Ok(())
    });
    assert_eq!((result, count), (Err(Abort::Guard), 0));
    assert!(applied <= 8 * TURNS as u64, "{}: {applied}", P::NAME);
}

#[derive(Debug, Clone, Copy, Record)]
#[record(crate = crate, ordered)]
struct Line {
    #[key]
    at: u64,
    amount: u64,
}

protocol_tests!(all: a_scan_finds_own_changes_of_a_row_without_comparing_all);
fn a_scan_finds_own_changes_of_a_row_without_comparing_all<P: Protocol>() {
    const ROWS: u64 = 500;
    let db = Database::<P>::builder().build().unwrap();
    let lines = db.table::<Line>("lines").unwrap();
    let mut session = db.session().unwrap();
    let filled =
        session.run(|tx| (0..ROWS).try_for_each(|at| lines.insert(tx, Line { at, amount: 1 })));
    filled.unwrap();
    let before = steps();
    let changed = session.run(|tx| {
        let mut rows = 0;
        for row in lines.scan(tx, .., Line::AMOUNT) {
            // Rows ahead of the scan are changed, and some of them are deleted and inserted again.
            // New rows are inserted, too, which the scan must not return.
            let (at, amount) = row?;
            assert_eq!(amount, 1, "{}: {at}", P::NAME);
            rows += 1;
            let ahead = (at + 7) % ROWS;
            lines.update(tx, &ahead, Line::AMOUNT.add(at))?;
            lines.insert(tx, Line { at: at + ROWS, amount: 2 })?;
            if at % 3 == 0 {
                lines.delete(tx, &ahead)?;
                lines.insert(tx, Line { at: ahead, amount: 3 })?;
            }
        }
        Ok(rows)
    });
    assert_eq!(changed, Ok(ROWS), "{}", P::NAME);
    let steps = steps() - before;
    assert!(steps <= 8 * ROWS, "{}: {steps}", P::NAME);
}

protocol_tests!(all: exactly_the_rows_whose_updates_fail_return_errors);
fn exactly_the_rows_whose_updates_fail_return_errors<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    let filled = session.run(|tx| (0..4).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    filled.unwrap();
    let ended = session.run(|tx| {
        for id in [1, 2, 1] {
            items.update(tx, &id, Item::COUNT.sub(1).at_least(0))?;
        }
        items.update(tx, 3, Item::COUNT.add(i64::MAX))?;
        items.update(tx, 3, Item::COUNT.add(1))?;
        let read = [0, 1, 2, 3].map(|id| items.read(tx, &id, Item::COUNT));
        assert_eq!(
            read,
            [Ok(0), Err(Abort::Guard), Err(Abort::Guard), Err(Abort::Overflow)],
            "{}",
            P::NAME
        );
        Ok(())
    });
    assert_eq!(ended, Err(Abort::Guard));
    let after = session.run(|tx| items.read(tx, 1, Item::COUNT));
    assert_eq!(after, Ok(0));
}

protocol_tests!(all: a_row_that_is_locked_for_update_is_not_compared_with_all_others);
fn a_row_that_is_locked_for_update_is_not_compared_with_all_others<P: Protocol>() {
    const ROWS: u64 = 500;
    let db = Database::<P>::builder().build().unwrap();
    let items = db.table::<Item>("rows").unwrap();
    let mut session = db.session().unwrap();
    let filled = session.run(|tx| (0..ROWS).try_for_each(|id| items.insert(tx, Item::new(id, 0))));
    filled.unwrap();
    let before = steps();
    let updated = session.run(|tx| {
        for id in 0..ROWS {
            let count = items.read_for_update(tx, &id, Item::COUNT)?;
            assert_eq!(items.read_for_update(tx, &id, Item::COUNT)?, count);
        }
        (0..ROWS).try_for_each(|id| items.update(tx, &id, Item::COUNT.add(1)))
    });
    assert_eq!(updated, Ok(()), "{}", P::NAME);
    let steps = steps() - before;
    assert!(steps <= 4 * ROWS, "{}: {steps}", P::NAME);
}

protocol_tests!(
    all: an_insert_of_a_missed_key_goes_through_the_reads_of_its_bucket
        = an_insert_of_a_missed_key_compares_only_the_reads_of_its_node(false)
);
protocol_tests!(
    all: an_insert_of_a_missed_key_goes_through_the_reads_of_its_leaf
        = an_insert_of_a_missed_key_compares_only_the_reads_of_its_node(true)
);
fn an_insert_of_a_missed_key_compares_only_the_reads_of_its_node<P: Protocol>(is_ordered: bool) {
    const ROWS: u64 = 2_000;
    let db = Database::<P>::builder().build().unwrap();
    let options = TableOptions::default();
    let options = if is_ordered { options.ordered() } else { options };
    let items = db.table_with::<Item>("rows", options).unwrap();
    let mut session = db.session().unwrap();
    let before = steps();
    let inserted = session.run(|tx| {
        for id in 0..ROWS {
            let id = id * 7 % ROWS;
            if items.get(tx, &id, Item::COUNT)?.is_none() {
                items.insert(tx, Item::new(id, 0))?;
            }
        }
        Ok(())
    });
    assert_eq!((inserted, items.len_estimate()), (Ok(()), ROWS), "{}", P::NAME);
    let steps = steps() - before;
    assert!(steps <= 8 * ROWS, "{}: {steps}", P::NAME);
}
