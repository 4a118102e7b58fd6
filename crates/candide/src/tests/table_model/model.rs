//! The map, and the results that it demands.

use super::super::indexed_rows::Parcel;
use super::words::{Blind, Change, Look, Operation, Order, Reading, Seen, Shown, Source};
use super::{INDEXED, Key, ROW, STATE, TEXT};
use crate::{Abort, Record};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// The result that an operation must show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    This(Shown),
    OneOf([Shown; 2]),
    /// These rows in order; or, if not `in_order`, the same number of them in any order. The scan
    /// ends at the first row that cannot be read.
    Rows {
        rows: Vec<(Key, Result<Seen, Abort>)>,
        in_order: bool,
        at_most: usize,
    },
    /// The operation has no meaning here, and is left out.
    LeftOut,
}

impl Expected {
    pub(super) fn accepts(&self, shown: &Shown) -> bool {
        match (self, shown) {
            (Expected::This(this), shown) => this == shown,
            (Expected::OneOf(these), shown) => these.contains(shown),
            (Expected::Rows { rows, in_order: true, at_most }, Shown::Rows(shown)) => {
                let readable = rows.iter().take_while(|row| row.1.is_ok()).count();
                let wanted = rows.iter().take((readable + 1).min(*at_most));
                wanted.map(|&(key, seen)| Ok((key, seen?))).eq(shown.iter().copied())
            }
            (Expected::Rows { rows, in_order: false, at_most }, Shown::Rows(shown)) => {
                let mut left = rows.clone();
                let are_rows = shown.iter().all(|shown| {
                    let found =
                        left.iter().position(|&(key, seen)| seen.map(|seen| (key, seen)) == *shown);
                    found.map(|found| left.swap_remove(found)).is_some()
                });
                let refused = shown.iter().position(|shown| shown.is_err());
                let is_complete = shown.len() == rows.len().min(*at_most);
                are_rows && refused.map_or(is_complete, |refused| refused + 1 == shown.len())
            }
            (Expected::Rows { .. } | Expected::LeftOut, _) => false,
        }
    }
}

/// The settings on which the meaning of operations depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether updates of different groups fail separately.
    pub(super) split: bool,
    pub(super) indexed: bool,
    pub(super) in_order: bool,
    /// Whether ranges of keys can be scanned.
    pub(super) has_ranges: bool,
    /// Whether updates of columns that an index may keep compile.
    pub(super) names_indexes: bool,
}

/// A map with the documented semantics.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) rows: BTreeMap<Key, Parcel>,
    /// The groups whose pending update has failed, each with its outcome, in program order.
    pub(super) failed: Vec<(Key, u8, Abort)>,
    pub(super) open: Vec<Expected>,
}

/// Applies a blind update to `row`, and returns the group and outcome of its failure.
fn apply_blind(row: &mut Parcel, blind: Blind) -> Option<(u8, Abort)> {
    match blind {
        Blind::Weight(weight) => row.weight += weight,
        Blind::Guarded(weight) => {
            row.weight -= weight;
            return (row.weight < 0).then_some((ROW, Abort::Guard));
        }
        Blind::Count(count) => match row.count.checked_add(count) {
            Some(sum) => row.count = sum,
            None => return Some((STATE, Abort::Overflow)),
        },
        Blind::Note(note) => row.note = row.note.max(note),
        Blind::Three(weight, note) => (row.weight, row.note) = (row.weight + weight, note),
        Blind::Scale(factor, summand) => row.count = scaled(row.count, factor, summand),
        Blind::Double => {
            row.count = row.count.wrapping_mul(2);
            return (row.count > 1_000).then_some((STATE, Abort::Guard));
        }
    }
    None
}

/// Returns whether a range contains a key. (The map's own ranges panic in some cases in which the
/// table's ranges are empty.)
fn is_between<K: Ord>(key: K, lower: Bound<K>, upper: Bound<K>) -> bool {
    std::ops::RangeBounds::contains(&(lower, upper), &key)
}

/// Returns whether the row existed. `result` is the result of an operation that fails if the row
/// does not exist.
pub(super) fn is_present(result: Result<(), Abort>) -> Result<bool, Abort> {
    match result {
        Err(Abort::NotFound) => Ok(false),
        result => result.map(|()| true),
    }
}

impl Model {
    /// Returns the error with which a read of these groups of a row fails, if it fails.
    pub(super) fn failure(&self, rules: Rules, key: Key, groups: u8) -> Result<(), Abort> {
        let of = |groups: u8| {
            self.failed.iter().find(|failed| failed.0 == key && failed.1 & groups != 0)
        };
        let failed = if rules.split {
            [ROW, STATE, TEXT].into_iter().find_map(|group| of(group & groups))
        } else {
            of(ROW | STATE | TEXT)
        };
        failed.map_or(Ok(()), |failed| Err(failed.2))
    }

    pub(super) fn row(&self, rules: Rules, key: Key, look: Look) -> Result<Option<Seen>, Abort> {
        let Some(row) = self.rows.get(&key) else { return Ok(None) };
        self.failure(rules, key, look.groups()).map(|()| Some(look.at(row)))
    }

    /// Inserts a row, or replaces the row of the same key, if the unique index allows it.
    pub(super) fn place(&mut self, rules: Rules, row: Parcel) -> Result<(), Abort> {
        let is_taken = |other: &Parcel| other.code == row.code && other.key() != row.key();
        if rules.indexed && self.rows.values().any(is_taken) {
            return Err(Abort::NotUnique);
        }
        self.rows.insert(row.key(), row);
        Ok(())
    }

    pub(super) fn insert(&mut self, rules: Rules, row: Parcel) -> Result<bool, Abort> {
        if self.rows.contains_key(&row.key()) {
            Ok(false)
        } else {
            self.place(rules, row).map(|()| true)
        }
    }

    pub(super) fn update(&mut self, key: Key, blind: Blind) -> Result<(), Abort> {
        let row = self.rows.get_mut(&key).ok_or(Abort::NotFound)?;
        if let Some((group, abort)) = apply_blind(row, blind) {
            // The group's value is undefined afterwards: it cannot be read.
            self.failed.push((key, group, abort));
        }
        Ok(())
    }

    pub(super) fn modify(&mut self, rules: Rules, key: Key, change: Change) -> Result<(), Abort> {
        let row = *self.rows.get(&key).ok_or(Abort::NotFound)?;
        self.failure(rules, key, change.groups())?;
        if rules.indexed && change.is_indexed() {
            self.failure(rules, key, INDEXED)?;
        }
        self.place(rules, change.of(&row))
    }

    pub(super) fn delete(&mut self, rules: Rules, key: Key) -> Result<(), Abort> {
        if self.rows.contains_key(&key) && rules.indexed {
            self.failure(rules, key, INDEXED)?;
        }
        self.rows.remove(&key).map(drop).ok_or(Abort::NotFound)
    }

    /// Returns the rows of a scan that is made now.
    pub(super) fn reading(&self, rules: Rules, reading: Reading, at_most: usize) -> Expected {
        let Reading { source, order, look } = reading;
        let wanted = |row: &&Parcel| match source {
            Source::All => true,
            Source::Range(lower, upper) => is_between(row.key(), lower, upper),
            Source::District(district) => row.district == district,
            Source::Code(code) => row.code == code,
            Source::Codes(lower, upper) => is_between(row.code, lower, upper),
            Source::Colour(colour) => row.colour == colour,
            Source::Place(place) => (row.shelf, row.owner) == place,
            Source::Places(lower, upper) => is_between((row.shelf, row.owner), lower, upper),
            Source::Shelf(shelf) => row.shelf == shelf,
        };
        let mut rows: Vec<&Parcel> = self.rows.values().filter(wanted).collect();
        if let Source::Place(_) | Source::Places(..) | Source::Shelf(_) = source {
            rows.sort_by_key(|row| (row.shelf, row.owner, row.key()));
        }
        if let Source::Codes(..) = source {
            rows.sort_by_key(|row| row.code);
        }
        match order {
            Order::Forward => {}
            Order::Reverse => rows.reverse(),
            Order::BothEnds(bits) => {
                let mut left = VecDeque::from(std::mem::take(&mut rows));
                while let Some(row) = match Order::is_back(bits, rows.len() as u32 + 1) {
                    true => left.pop_back(),
                    false => left.pop_front(),
                } {
                    rows.push(row);
                }
            }
        }
        let read = |row: &&Parcel| {
            let seen = self.failure(rules, row.key(), look.groups()).map(|()| look.at(row));
            (row.key(), seen)
        };
        let in_order = match source {
            Source::All => rules.in_order,
            Source::Code(_) | Source::Colour(_) => false,
            _ => true,
        };
        Expected::Rows { rows: rows.iter().map(read).collect(), in_order, at_most }
    }

    pub(super) fn apply(&mut self, rules: Rules, operation: &Operation) -> Expected {
        let done = |result| Expected::This(Shown::Done(result));
        let whether = |result| Expected::This(Shown::Whether(result));
        match *operation {
            Operation::Get(key, look) | Operation::GetForUpdate(key, look) => {
                Expected::This(Shown::Row(self.row(rules, key, look)))
            }
            Operation::Insert(row) => {
                let inserted = self.insert(rules, row);
                done(
                    inserted.and_then(|is_new| if is_new { Ok(()) } else { Err(Abort::Duplicate) }),
                )
            }
            Operation::InsertIfAbsent(row) => whether(self.insert(rules, row)),
            Operation::InsertMany(ref rows) => done(rows.iter().try_for_each(|&row| {
                if self.insert(rules, row)? { Ok(()) } else { Err(Abort::Duplicate) }
            })),
            Operation::Put(row) => {
                let is_readable = match self.rows.contains_key(&row.key()) && rules.indexed {
                    true => self.failure(rules, row.key(), INDEXED),
                    false => Ok(()),
                };
                done(is_readable.and_then(|()| self.place(rules, row)))
            }
            Operation::Upsert(row, blind) => whether(match self.insert(rules, row) {
                Ok(false) => self.update(row.key(), blind).map(|()| false),
                inserted => inserted,
            }),
            Operation::Update(key, blind) => done(self.update(key, blind)),
            Operation::UpdateIfPresent(key, blind) => whether(is_present(self.update(key, blind))),
            Operation::UpdateCode(..) if rules.names_indexes => Expected::LeftOut,
            Operation::UpdateCode(key, code) => {
                let refusals =
                    [Shown::Done(Err(Abort::Indexed)), Shown::Done(Err(Abort::NotFound))];
                match self.rows.get_mut(&key) {
                    // Which of the two errors occurs depends on whether the key has a record.
                    None if rules.indexed => Expected::OneOf(refusals),
                    None => done(Err(Abort::NotFound)),
                    Some(_) if rules.indexed => done(Err(Abort::Indexed)),
                    Some(row) => {
                        (row.weight, row.code) = (row.weight + 1, code);
                        done(Ok(()))
                    }
                }
            }
            Operation::Modify(key, change) => done(self.modify(rules, key, change)),
            Operation::ModifyIfPresent(key, change) => {
                whether(is_present(self.modify(rules, key, change)))
            }
            Operation::ModifyByCode(..) | Operation::GetByCode(..) if !rules.indexed => {
                Expected::LeftOut
            }
            Operation::ModifyByCode(code, change) => {
                let found = self.rows.values().find(|row| row.code == code).map(|row| row.key());
                done(found.ok_or(Abort::NotFound).and_then(|key| self.modify(rules, key, change)))
            }
            Operation::GetByCode(code, look) => {
                let found = self.rows.values().find(|row| row.code == code).map(|row| row.key());
                Expected::This(Shown::Row(found.map_or(Ok(None), |key| self.row(rules, key, look))))
            }
            Operation::Delete(key) => done(self.delete(rules, key)),
            Operation::DeleteIfPresent(key) => whether(is_present(self.delete(rules, key))),
            // The effect would depend on the order in which rows are deleted.
            Operation::Clear if !self.failed.is_empty() => Expected::LeftOut,
            Operation::Clear => {
                Expected::This(Shown::Number(Ok(std::mem::take(&mut self.rows).len())))
            }
            Operation::Take(reading, at_most) => self.reading(rules, reading, at_most),
            Operation::Open(reading) => {
                let expected = self.reading(rules, reading, usize::MAX);
                self.open.push(expected);
                done(Ok(()))
            }
            Operation::Step(..) => done(Ok(())),
        }
    }
}

/// Returns the count after [`Scale`]. The result stays small, so that the operation can be repeated
/// often.
pub(super) fn scaled(count: i16, factor: i16, summand: i16) -> i16 {
    (count % 100) * factor + summand
}
