//! The check, which compares the counters with the reservations and with the account.

use std::cell::RefCell;
use std::ops::Bound::Included;

use candide::{Abort, Key, Protocol, Record, Session, Table};

use super::contents::{Account, Contents, NAMES};
use super::knobs::Vacation;
use super::tables::{Agency, Customer, Reservation, Resource};
use super::task::RESOURCE_KINDS;
use crate::load::run_unmeasured;
use crate::read_back::{Rows, Way, audit, rows};
use crate::{Consistency, Failure};

/// The number of ids that a transaction removes.
const BATCH: u32 = 64;

/// The tables, by means that do not depend on the protocol.
struct Tables<'a> {
    resources: [Rows<'a, Resource>; RESOURCE_KINDS],
    customers: Rows<'a, Customer>,
    reservations: Rows<'a, Reservation>,
}

/// Compares the tables with one another and with the account, and removes every id twice.
pub(super) fn check<P: Protocol>(
    agency: &Agency<P>,
    session: Session<P>,
    knobs: &Vacation,
    account: &Account,
) -> Result<Consistency, Failure> {
    let session = &RefCell::new(session);
    let tables = Tables {
        resources: agency.resources.each_ref().map(|table| rows(table, session)),
        customers: rows(&agency.customers, session),
        reservations: rows(&agency.reservations, session),
    };
    let mut consistency = settle(&tables, knobs, account)?;
    let mut session = session.borrow_mut();
    for ((table, name), rows) in agency.resources.iter().zip(NAMES).zip(account.changes.rows) {
        let removed = remove_all(table, &mut session, knobs.relations, &|id| id)?;
        let expected = i64::from(knobs.relations) + rows;
        expect_removed(removed, name, expected, &mut consistency);
    }
    let removed = remove_all(&agency.customers, &mut session, knobs.relations, &|id| id)?;
    let expected = i64::from(knobs.relations) + account.changes.customers;
    expect_removed(removed, "customers", expected, &mut consistency);
    Ok(consistency)
}

fn settle(
    tables: &Tables<'_>,
    knobs: &Vacation,
    account: &Account,
) -> Result<Consistency, Failure> {
    audit(
        |way| tables.read(way, knobs.relations),
        |contents, way, consistency| contents.settle(way, knobs, account, consistency),
        Contents::eq,
        |contents| format!("{:?}", contents.counts()),
    )
}

impl Tables<'_> {
    fn read(&self, way: Way, relations: u32) -> Result<Contents, Failure> {
        let mut contents = Contents::default();
        let ids = || 1..=relations;
        for (kind, rows) in self.resources.iter().enumerate() {
            rows.read(way, &mut ids(), &mut |row| contents.resource(kind, row))?;
        }
        self.customers.read(way, &mut ids(), &mut |row| contents.customer(row))?;
        match way {
            Way::Iteration => {
                let mut visit = |row: &Reservation| contents.reservation(row, false);
                self.reservations.by_iteration(&mut visit)?;
            }
            Way::Transactions => {
                let (from, to) = ((0, 0, 0), (u32::MAX, u8::MAX, u32::MAX));
                let mut visit = |row: &Reservation| contents.reservation(row, true);
                self.reservations.by_scans(Included(from), Included(to), &mut visit)?;
            }
        }
        Ok(contents.done())
    }
}

/// Removes every id from `table` twice, in transactions that then roll back. Returns how many of
/// the first removals and how many of the second ones found a row.
fn remove_all<R: Record, P: Protocol>(
    table: &Table<R, P>,
    session: &mut Session<P>,
    relations: u32,
    key: &dyn Fn(u32) -> R::Key,
) -> Result<[i64; 2], Failure>
where
    R::Key: Key,
{
    let mut all = [0, 0];
    for first in (1..=relations).step_by(BATCH as usize) {
        let last = relations.min(first.saturating_add(BATCH - 1));
        let mut removed = [0, 0];
        let end = run_unmeasured(session, &mut |tx| {
            removed = [0, 0];
            for id in first..=last {
                for removed in &mut removed {
                    *removed += i64::from(table.delete_if_present(tx, key(id))?);
                }
            }
            Err(UNDO)
        });
        match end {
            Err(UNDO) => (all[0], all[1]) = (all[0] + removed[0], all[1] + removed[1]),
            other => other?,
        }
    }
    Ok(all)
}

/// The error by which a transaction of [`remove_all`] rolls back. None of its operations returns
/// it.
const UNDO: Abort = Abort::Guard;

fn expect_removed(
    [first, second]: [i64; 2],
    name: &str,
    expected: i64,
    consistency: &mut Consistency,
) {
    consistency.expect(first == expected, || {
        format!("{first} {name} could be removed where {expected} were loaded or committed")
    });
    consistency.expect(second == 0, || format!("{second} {name} could be removed twice"));
}
