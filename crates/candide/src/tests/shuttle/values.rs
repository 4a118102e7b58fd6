//! A scene of random transactions of updates, whose values are judged. Some serial order of the
//! transactions that agrees with real time must explain all values that each of them has seen.
//! Histories show which transaction saw whose version. Histories do not show the contents of a
//! version that several deferred updates have made.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::Versioned;
use crate::protocols::Recorded;
use crate::schema::{Refused, Updater};
use crate::sync::Random;
use crate::{Abort, Column, RunOptions, Table, Tx};
use std::collections::BTreeMap;

/// The number of keys.
const ROWS: u64 = 2;
/// The number of transactions of each thread.
const TURNS: usize = 3;

/// An operation on one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    what: u64,
    key: u64,
    by: i64,
}

/// The number of kinds of steps that only read. Such steps have the lowest numbers.
const READS: u64 = 3;
const STEPS: u64 = 15;

/// The columns `count`, `small` and `other` of each existing row.
type Rows = BTreeMap<u64, (i64, u8, u64)>;

/// A transaction that has ended, and the values that it has seen.
#[derive(Debug)]
pub(super) struct Played {
    steps: Vec<Step>,
    /// The value that each step has seen. If a guard has refused a step, the values end there.
    seen: Vec<i64>,
    refused: bool,
    begun: u64,
    ended: u64,
}

/// The transactions that have been played, and the number of their begins and ends so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    moments: u64,
    played: Vec<Played>,
}

impl Log {
    fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }
}

impl Step {
    fn draw(random: &mut Random, kinds: u64) -> Step {
        Step { what: random.below(kinds), key: random.below(ROWS), by: 1 + random.below(3) as i64 }
    }

    fn carry_out<P: Versioned>(
        self,
        items: &Table<Item, Recorded<P>>,
        tx: &Tx<'_, Recorded<P>>,
    ) -> Result<i64, Abort> {
        let Step { what, key, by } = self;
        let number = |is: Result<bool, Abort>| is.map(i64::from);
        match what {
            0 => items.get(tx, &key, (Item::COUNT, Item::SMALL)).map(hot),
            1 => {
                items.get(tx, &key, Item::OTHER).map(|other| other.map_or(-1, |other| other as i64))
            }
            2 => items.get(tx, &key, ()).map(|row| i64::from(row.is_some())),
            3 | 4 => number(items.update_if_present(tx, &key, Item::COUNT.wrapping_add(by))),
            5 => number(items.update_if_present(
                tx,
                &key,
                (Item::COUNT.set(by), Item::SMALL.wrapping_add(1)),
            )),
            6 => number(items.update_if_present(tx, &key, Item::OTHER.wrapping_sub(by as u64))),
            7 => number(items.update_if_present(tx, &key, Item::OTHER.set(by as u64))),
            8 => items.put(tx, Item::new(key, by)).map(|()| 0),
            9 => number(items.insert_if_absent(tx, Item::new(key, by))),
            10 => number(items.delete_if_present(tx, &key)),
            11 => number(items.update_if_present(tx, &key, Item::COUNT.sub(by).at_least(0))),
            12 => number(unless_missing(items.update_with(tx, &key, Wind(by)))),
            13 => number(unless_missing(items.update_with(tx, &key, Swap))),
            _ => {
                let doubled = items.modify_if_present(tx, &key, Item::COUNT, |count| {
                    *count = (2 * *count).clamp(-99, 99);
                    *count
                });
                doubled.map(|count| count.unwrap_or(-1_000))
            }
        }
    }

    /// Does the step on `rows` and returns the value that it sees; `None` if a guard refuses the
    /// step.
    fn replay(self, rows: &mut Rows) -> Option<i64> {
        let Step { what, key, by } = self;
        let new = (by, 7, 100);
        let row = rows.get_mut(&key);
        let is_there = i64::from(row.is_some());
        match (what, row) {
            (0, row) => return Some(hot(row.map(|row| (row.0, row.1)))),
            (1, row) => return Some(row.map_or(-1, |row| row.2 as i64)),
            (2, _) => {}
            (8, _) => {
                rows.insert(key, new);
                return Some(0);
            }
            (9, None) => {
                rows.insert(key, new);
                return Some(1);
            }
            (9, Some(_)) => return Some(0),
            (10, _) => drop(rows.remove(&key)),
            (14, None) => return Some(-1_000),
            (_, None) => {}
            (3 | 4, Some(row)) => row.0 += by,
            (5, Some(row)) => *row = (by, row.1.wrapping_add(1), row.2),
            (6, Some(row)) => row.2 = row.2.wrapping_sub(by as u64),
            (7, Some(row)) => row.2 = by as u64,
            (11, Some(row)) => {
                if row.0 < by {
                    return None;
                }
                row.0 -= by;
            }
            (12, Some(row)) => row.0 = wound(row.0, by),
            (13, Some(row)) => (row.0, row.1) = swapped(row.0, row.1),
            (_, Some(row)) => {
                row.0 = (2 * row.0).clamp(-99, 99);
                return Some(row.0);
            }
        }
        Some(is_there)
    }
}

/// Returns whether a row was updated: `false` if the row was missing.
fn unless_missing(updated: Result<(), Abort>) -> Result<bool, Abort> {
    match updated {
        Err(Abort::NotFound) => Ok(false),
        updated => updated.map(|()| true),
    }
}

/// An updater. The new count depends on the old count, and these updates do not commute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wind(pub(super) i64);

fn wound(count: i64, by: i64) -> i64 {
    count * 5 % 31 + by
}

impl Updater<Item> for Wind {
    type Target = Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        *count = wound(*count, self.0);
        Ok(())
    }
}

/// An updater without a value, of size zero. The updater swaps two columns, as far as the narrower
/// column has room.
#[derive(Debug, Clone, Copy)]
struct Swap;

fn swapped(count: i64, small: u8) -> (i64, u8) {
    (i64::from(small), count as u8)
}

impl Updater<Item> for Swap {
    type Target = (Column<Item, i64>, Column<Item, u8>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Item::COUNT, Item::SMALL)
    }

    fn apply(&self, row: &mut (i64, u8)) -> Result<(), Refused> {
        *row = swapped(row.0, row.1);
        Ok(())
    }
}

fn hot(columns: Option<(i64, u8)>) -> i64 {
    columns.map_or(-1, |(count, small)| count * 256 + i64::from(small))
}

impl Played {
    /// Returns the rows after the transaction, if on `rows` it sees the values that it has seen;
    /// otherwise `None`.
    fn after(&self, rows: &Rows) -> Option<Rows> {
        let mut after = rows.clone();
        for (number, step) in self.steps.iter().enumerate() {
            match step.replay(&mut after) {
                Some(seen) if self.seen.get(number).is_none_or(|&was| was == seen) => {}
                Some(_) => return None,
                // The later steps of a refused transaction saw rows that never existed.
                None => return self.refused.then(|| rows.clone()),
            }
        }
        (!self.refused).then_some(after)
    }
}

/// Returns whether some serial order of the transactions in `left` agrees with real time, explains
/// all values seen, and leads from `rows` to `last`.
fn can_be_ordered(left: &mut Vec<&Played>, rows: &Rows, last: &Rows) -> bool {
    if left.is_empty() {
        return rows == last;
    }
    let first_end = left.iter().map(|played| played.ended).min().expect("some are left");
    for index in 0..left.len() {
        if left[index].begun > first_end {
            continue;
        }
        if let Some(after) = left[index].after(rows) {
            let next = left.swap_remove(index);
            if can_be_ordered(left, &after, last) {
                return true;
            }
            left.push(next);
            let end = left.len() - 1;
            left.swap(index, end);
        }
    }
    false
}

/// Updates of every kind, some of them deferred, while rows are inserted and deleted. Other
/// transactions read the present rows and older versions.
pub(super) fn values<P: Versioned>() -> Scene<P> {
    fn act<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..TURNS {
            let looks = me.random.below(6);
            let kinds = if looks < 2 { READS } else { STEPS };
            let steps: Vec<Step> =
                (0..1 + me.random.below(3)).map(|_| Step::draw(&mut me.random, kinds)).collect();
            let (mut seen, begun) = (Vec::new(), me.log().moment());
            let mut body = |tx: &Tx<'_, Recorded<P>>| {
                seen.clear();
                steps
                    .iter()
                    .try_for_each(|step| step.carry_out(&items, tx).map(|value| seen.push(value)))
            };
            let options = RunOptions::new().attempts_max(20_000);
            let result = match looks {
                0 => me.session.with(options.read_only()).run(body),
                1 => {
                    let snapshot = me.stage.db.snapshot();
                    let taken = me.log().moment();
                    me.pass();
                    let result = snapshot.run_in(&mut me.session, &mut body);
                    assert_eq!(result, Ok(()));
                    let played = Played { steps, seen, refused: false, begun, ended: taken };
                    me.log().played.push(played);
                    continue;
                }
                _ => me.session.with(options).run(body),
            };
            let refused = match result {
                Ok(()) => false,
                Err(Abort::Guard) => true,
                Err(abort) => panic!("{abort}"),
            };
            let mut log = me.log();
            let ended = log.moment();
            log.played.push(Played { steps, seen, refused, begun, ended });
            drop(log);
            if me.random.below(2) == 0 { me.pass() } else { me.advance() }
        }
    }
    fn judge<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let last: Rows = me.run(|tx| {
            let mut rows = Rows::new();
            for key in 0..ROWS {
                rows.extend(
                    items
                        .get(tx, &key, (Item::COUNT, Item::SMALL, Item::OTHER))?
                        .map(|row| (key, row)),
                );
            }
            Ok(rows)
        });
        let log = me.log();
        if log.played.iter().any(|played| played.refused) {
            me.saw("refusal");
        }
        let first = Rows::from([(0, (3, 7, 100))]);
        let mut left: Vec<&Played> = log.played.iter().collect();
        assert!(
            can_be_ordered(&mut left, &first, &last),
            "no order makes {last:?} by {:#?}",
            log.played
        );
    }
    Scene::new("values")
        .before(|me| me.fill(0..1, 3))
        .part(act)
        .part(act)
        .part(act)
        .after(judge)
        .shows("refusal")
}
