//! A comparison of all operations of a table with those of a map, including scans that are held
//! open, and indexes that are added and dropped.
//!
//! A script is a transaction. The map runs the script first, and returns the result that each
//! operation must show. A scan must show the rows as they were when the scan was made, despite
//! operations between its making and its last row. The tests try all sequences of up to four
//! operations, and random scripts. Unless `CANDIDE_FULL` is set, sequences have at most three
//! operations, and a fourth of the random scripts run, under half of the settings: those with an
//! even number of switches on, and under erased protocols those with an odd number.

use super::entries::assert_entries_match_rows;
use super::indexed_rows::{Filed, Parcel};
use super::properties;
use crate::engine::Protocol;
use crate::protocols::{Occ, Recorded};
use crate::schema::{ColumnKind, Free, IndexKind, Indexed, Projection, Refused, Updater};
use crate::sync::Random;
use crate::sync::size::{Sample, is_short};
use crate::{
    Abort, Column, Database, Error, Hashed, Index, IndexOptions, Ordered, Prefix, Record,
    RunOptions, Session, Table, TableOptions, Tx, Whole,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::Rev;
use std::marker::PhantomData;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Key = (u8, u16);
type Place = (u8, i8);

/// The groups, as bits. `ROW` has code, shelf and weight; `STATE` has owner, colour and count;
/// `TEXT` has the note. The indexes use the first two groups.
const ROW: u8 = 1;
const STATE: u8 = 2;
const TEXT: u8 = 4;
const INDEXED: u8 = ROW | STATE;

/// Row types with the columns of a [`Parcel`].
trait Goods: Record<Key = Key> + From<Parcel> + Into<Parcel> {
    /// The kind of the columns that an index may keep. It determines whether updates of these
    /// columns compile.
    type Kind: ColumnKind;
    const CODE: Column<Self, u32, Self::Kind>;
    const SHELF: Column<Self, u8, Self::Kind>;
    const OWNER: Column<Self, i8, Self::Kind>;
    const COLOUR: Column<Self, u8, Self::Kind>;
    const WEIGHT: Column<Self, i64>;
    const COUNT: Column<Self, i16>;
    const NOTE: Column<Self, u64>;
    /// Whether the type names its indexes.
    const NAMES_INDEXES: bool;
    /// The kind of its unique index on the code.
    type ByCode: IndexKind;

    /// Updates the code, if the type allows it.
    fn set_code<P: Protocol>(
        _: &Table<Self, P>,
        _: &Tx<'_, P>,
        _: &Key,
        _: u32,
    ) -> Option<Result<(), Abort>> {
        None
    }

    /// Returns a scan of a range of keys; `None` if the type has no such scans.
    fn range<'t, P: Protocol, Pr: Projection<Self> + 'static>(
        _: &'t Table<Self, P>,
        _: &'t Tx<'_, P>,
        _: &Source,
        _: Order,
        _: Pr,
    ) -> Option<Rows<'t, Pr::Value>> {
        None
    }

    /// Returns a scan of a range of codes; `None` if the index has no such scans.
    fn codes<'t, P: Protocol, Pr: Projection<Self> + 'static>(
        _: &'t Index<Self, u32, Self::ByCode, P>,
        _: &'t Tx<'_, P>,
        _: (Bound<u32>, Bound<u32>),
        _: Order,
        _: Pr,
    ) -> Option<Rows<'t, Pr::Value>> {
        None
    }

    /// Returns handles on the indexes. This call creates the indexes, unless the type names them.
    fn indexes<P: Protocol>(table: &Table<Self, P>) -> Result<Indexes<Self, P>, Error>;
}

impl Goods for Parcel {
    type Kind = Free;
    const CODE: Column<Self, u32> = Parcel::CODE;
    const SHELF: Column<Self, u8> = Parcel::SHELF;
    const OWNER: Column<Self, i8> = Parcel::OWNER;
    const COLOUR: Column<Self, u8> = Parcel::COLOUR;
    const WEIGHT: Column<Self, i64> = Parcel::WEIGHT;
    const COUNT: Column<Self, i16> = Parcel::COUNT;
    const NOTE: Column<Self, u64> = Parcel::NOTE;
    const NAMES_INDEXES: bool = false;
    type ByCode = Ordered;

    fn set_code<P: Protocol>(
        table: &Table<Self, P>,
        tx: &Tx<'_, P>,
        key: &Key,
        code: u32,
    ) -> Option<Result<(), Abort>> {
        Some(table.update(tx, key, (Parcel::WEIGHT.add(1), Parcel::CODE.set(code))))
    }

    fn range<'t, P: Protocol, Pr: Projection<Self> + 'static>(
        table: &'t Table<Self, P>,
        tx: &'t Tx<'_, P>,
        source: &Source,
        order: Order,
        projection: Pr,
    ) -> Option<Rows<'t, Pr::Value>> {
        match (*source, order) {
            (Source::Range(Bound::Included(lower), Bound::Excluded(upper)), Order::Forward) => {
                Some(Box::new(table.scan(tx, lower..upper, projection)))
            }
            (Source::Range(lower, upper), _) => Some(order.of(
                || table.scan(tx, (lower, upper), projection),
                || table.scan_rev(tx, (lower, upper), projection),
            )),
            (Source::District(district), _) => Some(order.of(
                || table.scan(tx, Prefix((district,)), projection),
                || table.scan_rev(tx, Prefix((district,)), projection),
            )),
            _ => None,
        }
    }

    fn codes<'t, P: Protocol, Pr: Projection<Self> + 'static>(
        index: &'t Index<Self, u32, Ordered, P>,
        tx: &'t Tx<'_, P>,
        range: (Bound<u32>, Bound<u32>),
        order: Order,
        projection: Pr,
    ) -> Option<Rows<'t, Pr::Value>> {
        let forward = || index.scan(tx, range, projection);
        Some(order.of(forward, || index.scan_rev(tx, range, projection)))
    }

    fn indexes<P: Protocol>(table: &Table<Self, P>) -> Result<Indexes<Self, P>, Error> {
        let by_place = table.create_index(
            "by_place",
            (Parcel::SHELF, Parcel::OWNER),
            IndexOptions::ordered(),
        )?;
        let by_code =
            table.create_index("by_code", Parcel::CODE, IndexOptions::ordered().unique())?;
        let by_colour = table.create_index("by_colour", Parcel::COLOUR, IndexOptions::hashed())?;
        Ok(Indexes { by_code, by_place, by_colour })
    }
}

impl Goods for Filed {
    type Kind = Indexed;
    const CODE: Column<Self, u32, Indexed> = Filed::CODE;
    const SHELF: Column<Self, u8, Indexed> = Filed::SHELF;
    const OWNER: Column<Self, i8, Indexed> = Filed::OWNER;
    const COLOUR: Column<Self, u8, Indexed> = Filed::COLOUR;
    const WEIGHT: Column<Self, i64> = Filed::WEIGHT;
    const COUNT: Column<Self, i16> = Filed::COUNT;
    const NOTE: Column<Self, u64> = Filed::NOTE;
    const NAMES_INDEXES: bool = true;
    type ByCode = Hashed;

    fn indexes<P: Protocol>(table: &Table<Self, P>) -> Result<Indexes<Self, P>, Error> {
        let (by_code, by_colour) = (table.index(Filed::BY_CODE), table.index(Filed::BY_COLOUR));
        Ok(Indexes { by_code, by_place: table.index(Filed::BY_PLACE), by_colour })
    }
}

struct Indexes<G: Goods, P: Protocol> {
    by_code: Index<G, u32, G::ByCode, P>,
    by_place: Index<G, Place, Ordered, P>,
    by_colour: Index<G, u8, Hashed, P>,
}

const INDEX_NAMES: [&str; 3] = ["by_code", "by_place", "by_colour"];

/// The part of a row that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Whole,
    Weight,
    Count,
    Note,
    CodeAndNote,
    Indexed,
    Nothing,
}

const LOOKS: [Look; 7] = [
    Look::Whole,
    Look::Weight,
    Look::Count,
    Look::Note,
    Look::CodeAndNote,
    Look::Indexed,
    Look::Nothing,
];

/// The values that were read.
type Seen = [i64; 7];

fn whole(row: Parcel) -> Seen {
    let Parcel { code, shelf, weight, owner, colour, count, note, .. } = row;
    [code.into(), shelf.into(), weight, owner.into(), colour.into(), count.into(), note as i64]
}

fn indexed(code: u32, shelf: u8, owner: i8, colour: u8) -> Seen {
    [code.into(), shelf.into(), owner.into(), colour.into(), 0, 0, 0]
}

fn some(first: i64, second: i64) -> Seen {
    [first, second, 0, 0, 0, 0, 0]
}

impl Look {
    fn groups(self) -> u8 {
        match self {
            Look::Whole => ROW | STATE | TEXT,
            Look::Weight | Look::Nothing => ROW,
            Look::Count => STATE,
            Look::Note => TEXT,
            Look::CodeAndNote => ROW | TEXT,
            Look::Indexed => INDEXED,
        }
    }

    fn at(self, row: &Parcel) -> Seen {
        match self {
            Look::Whole => whole(*row),
            Look::Weight => some(row.weight, 0),
            Look::Count => some(row.count.into(), 0),
            Look::Note => some(row.note as i64, 0),
            Look::CodeAndNote => some(row.code.into(), row.note as i64),
            Look::Indexed => indexed(row.code, row.shelf, row.owner, row.colour),
            Look::Nothing => some(0, 0),
        }
    }

    /// Calls `what` with the projection of this part.
    fn with<G: Goods, W: WithProjection<G>>(self, what: W) -> W::Output {
        match self {
            Look::Whole => what.with(Whole, |row| whole(row.into())),
            Look::Weight => what.with(G::WEIGHT, |weight| some(weight, 0)),
            Look::Count => what.with(G::COUNT, |count| some(count.into(), 0)),
            Look::Note => what.with(G::NOTE, |note| some(note as i64, 0)),
            Look::CodeAndNote => {
                what.with((G::CODE, G::NOTE), |(code, note)| some(code.into(), note as i64))
            }
            Look::Indexed => what.with(
                (G::CODE, (G::SHELF, G::OWNER), G::COLOUR),
                |(code, (shelf, owner), colour)| indexed(code, shelf, owner, colour),
            ),
            Look::Nothing => what.with((), |()| some(0, 0)),
        }
    }
}

/// A function that is generic over the projection.
trait WithProjection<G: Goods> {
    type Output;

    fn with<Pr: Projection<G> + 'static>(
        self,
        projection: Pr,
        see: fn(Pr::Value) -> Seen,
    ) -> Self::Output;
}

/// The source of a scan's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    All,
    Range(Bound<Key>, Bound<Key>),
    District(u8),
    Code(u32),
    Codes(Bound<u32>, Bound<u32>),
    Colour(u8),
    Place(Place),
    Places(Bound<Place>, Bound<Place>),
    Shelf(u8),
}

/// The order in which a scan's rows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Forward,
    /// By `scan_rev`.
    Reverse,
    /// From both ends: the bits say which rows are taken from the end, by turns of eight.
    BothEnds(u8),
}

/// The rows of a scan.
type Rows<'t, V> = Box<dyn Iterator<Item = Result<(Key, V), Abort>> + 't>;

impl Order {
    /// Returns the rows of one of two scans in this order.
    fn of<'t, V, I: DoubleEndedIterator<Item = Result<(Key, V), Abort>> + 't>(
        self,
        forward: impl FnOnce() -> I,
        reverse: impl FnOnce() -> Rev<I>,
    ) -> Rows<'t, V> {
        let bits = match self {
            Order::Forward => return Box::new(forward()),
            Order::Reverse => return Box::new(reverse()),
            Order::BothEnds(bits) => bits,
        };
        let (mut scan, mut turn) = (forward(), 0);
        Box::new(std::iter::from_fn(move || {
            turn += 1;
            if Order::is_back(bits, turn) { scan.next_back() } else { scan.next() }
        }))
    }

    /// Returns whether the row of this turn, counted from one, is taken from the end.
    fn is_back(bits: u8, turn: u32) -> bool {
        bits.rotate_right(turn) & 1 != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    source: Source,
    order: Order,
    look: Look,
}

/// A blind update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blind {
    Weight(i64),
    /// An addition that must not go below zero.
    Guarded(i64),
    Count(i16),
    Note(u64),
    Three(i64, u64),
    Double,
    Scale(i16, i16),
}

/// A change of a row that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Weight(i64),
    Code(u32),
    Place(u8, i8),
    Colour(u8),
    CodeAndNote(u32, u64),
    Whole(Parcel),
}

impl Change {
    fn groups(self) -> u8 {
        match self {
            Change::Weight(_) | Change::Code(_) => ROW,
            Change::Place(..) => INDEXED,
            Change::Colour(_) => STATE,
            Change::CodeAndNote(..) => ROW | TEXT,
            Change::Whole(_) => ROW | STATE | TEXT,
        }
    }

    fn is_indexed(self) -> bool {
        !matches!(self, Change::Weight(_))
    }

    fn of(self, row: &Parcel) -> Parcel {
        let mut row = *row;
        match self {
            Change::Weight(weight) => row.weight += weight,
            Change::Code(code) => row.code = code,
            Change::Place(shelf, owner) => (row.shelf, row.owner) = (shelf, owner),
            Change::Colour(colour) => row.colour = colour,
            Change::CodeAndNote(code, note) => (row.code, row.note) = (code, note),
            Change::Whole(other) => {
                row = Parcel { district: row.district, number: row.number, ..other }
            }
        }
        row
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Get(Key, Look),
    GetForUpdate(Key, Look),
    Insert(Parcel),
    InsertIfAbsent(Parcel),
    InsertMany(Vec<Parcel>),
    Put(Parcel),
    Upsert(Parcel, Blind),
    Update(Key, Blind),
    /// A blind update of the weight and of the code. It is refused as a whole while an index keeps
    /// the code.
    UpdateCode(Key, u32),
    UpdateIfPresent(Key, Blind),
    Modify(Key, Change),
    ModifyIfPresent(Key, Change),
    /// A change of the row with this code.
    ModifyByCode(u32, Change),
    GetByCode(u32, Look),
    Delete(Key),
    DeleteIfPresent(Key),
    Clear,
    /// Makes a scan and reads some of its rows.
    Take(Reading, usize),
    /// Makes a scan that stays open during the following operations. It is read to its end after
    /// all of them.
    Open(Reading),
    /// Reads some more rows of an open scan.
    Step(usize, usize),
}

/// The result that an operation showed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    Done(Result<(), Abort>),
    Whether(Result<bool, Abort>),
    Row(Result<Option<Seen>, Abort>),
    Number(Result<usize, Abort>),
    Rows(Vec<Result<(Key, Seen), Abort>>),
}

/// The result that an operation must show.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
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
    fn accepts(&self, shown: &Shown) -> bool {
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
struct Rules {
    /// Whether updates of different groups fail separately.
    split: bool,
    indexed: bool,
    in_order: bool,
    /// Whether ranges of keys can be scanned.
    has_ranges: bool,
    /// Whether updates of columns that an index may keep compile.
    names_indexes: bool,
}

/// A map with the documented semantics.
#[derive(Debug, Clone, Default)]
struct Model {
    rows: BTreeMap<Key, Parcel>,
    /// The groups whose pending update has failed, each with its outcome, in program order.
    failed: Vec<(Key, u8, Abort)>,
    open: Vec<Expected>,
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

/// Returns whether the row existed. `result` is that of an operation that fails if the row does not
/// exist.
fn is_present(result: Result<(), Abort>) -> Result<bool, Abort> {
    match result {
        Err(Abort::NotFound) => Ok(false),
        result => result.map(|()| true),
    }
}

impl Model {
    /// Returns the error with which a read of these groups of a row fails, if it fails.
    fn failure(&self, rules: Rules, key: Key, groups: u8) -> Result<(), Abort> {
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

    fn row(&self, rules: Rules, key: Key, look: Look) -> Result<Option<Seen>, Abort> {
        let Some(row) = self.rows.get(&key) else { return Ok(None) };
        self.failure(rules, key, look.groups()).map(|()| Some(look.at(row)))
    }

    /// Inserts a row, or replaces the row of the same key, if the unique index allows it.
    fn place(&mut self, rules: Rules, row: Parcel) -> Result<(), Abort> {
        let is_taken = |other: &Parcel| other.code == row.code && other.key() != row.key();
        if rules.indexed && self.rows.values().any(is_taken) {
            return Err(Abort::NotUnique);
        }
        self.rows.insert(row.key(), row);
        Ok(())
    }

    fn insert(&mut self, rules: Rules, row: Parcel) -> Result<bool, Abort> {
        if self.rows.contains_key(&row.key()) {
            Ok(false)
        } else {
            self.place(rules, row).map(|()| true)
        }
    }

    fn update(&mut self, key: Key, blind: Blind) -> Result<(), Abort> {
        let row = self.rows.get_mut(&key).ok_or(Abort::NotFound)?;
        if let Some((group, abort)) = apply_blind(row, blind) {
            // The group's value is undefined afterwards: it cannot be read.
            self.failed.push((key, group, abort));
        }
        Ok(())
    }

    fn modify(&mut self, rules: Rules, key: Key, change: Change) -> Result<(), Abort> {
        let row = *self.rows.get(&key).ok_or(Abort::NotFound)?;
        self.failure(rules, key, change.groups())?;
        if rules.indexed && change.is_indexed() {
            self.failure(rules, key, INDEXED)?;
        }
        self.place(rules, change.of(&row))
    }

    fn delete(&mut self, rules: Rules, key: Key) -> Result<(), Abort> {
        if self.rows.contains_key(&key) && rules.indexed {
            self.failure(rules, key, INDEXED)?;
        }
        self.rows.remove(&key).map(drop).ok_or(Abort::NotFound)
    }

    /// Returns the rows of a scan that is made now.
    fn reading(&self, rules: Rules, reading: Reading, at_most: usize) -> Expected {
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

    fn apply(&mut self, rules: Rules, operation: &Operation) -> Expected {
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

/// An updater that doubles the count, and refuses to go beyond 1,000.
#[derive(Debug, Clone, Copy)]
struct Double<G>(PhantomData<fn() -> G>);

impl<G: Goods> Updater<G> for Double<G> {
    type Target = Column<G, i16>;

    fn target(&self) -> Self::Target {
        G::COUNT
    }

    fn apply(&self, count: &mut i16) -> Result<(), Refused> {
        *count = count.wrapping_mul(2);
        if *count > 1_000 { Err(Refused) } else { Ok(()) }
    }
}

/// Returns the count after [`Scale`]. The result stays small, so that the operation can be repeated
/// often.
fn scaled(count: i16, factor: i16, summand: i16) -> i16 {
    (count % 100) * factor + summand
}

/// An updater that changes the count, and never fails.
#[derive(Debug, Clone, Copy)]
struct Scale<G>(i16, i16, PhantomData<fn() -> G>);

impl<G: Goods> Updater<G> for Scale<G> {
    type Target = Column<G, i16>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        G::COUNT
    }

    fn apply(&self, count: &mut i16) -> Result<(), Refused> {
        *count = scaled(*count, self.0, self.1);
        Ok(())
    }
}

type Open<'t> = Box<dyn Iterator<Item = Result<(Key, Seen), Abort>> + 't>;

/// An open scan, and the rows it has shown.
struct Held<'t> {
    scan: Open<'t>,
    shown: Vec<Result<(Key, Seen), Abort>>,
}

/// The engine's side of a running transaction.
struct Stage<'t, G: Goods, P: Protocol> {
    table: &'t Table<G, P>,
    indexes: Option<&'t Indexes<G, P>>,
    tx: &'t Tx<'t, P>,
    open: Vec<Held<'t>>,
}

struct Get<'a, 't, G: Goods, P: Protocol> {
    stage: &'a Stage<'t, G, P>,
    key: Key,
    for_update: bool,
}

impl<G: Goods, P: Protocol> WithProjection<G> for Get<'_, '_, G, P> {
    type Output = Result<Option<Seen>, Abort>;

    fn with<Pr: Projection<G>>(self, projection: Pr, see: fn(Pr::Value) -> Seen) -> Self::Output {
        let Stage { table, tx, .. } = self.stage;
        let value = match self.for_update {
            true => table.get_for_update(tx, &self.key, projection),
            false => table.get(tx, &self.key, projection),
        };
        Ok(value?.map(see))
    }
}

struct GetByCode<'a, 't, G: Goods, P: Protocol> {
    stage: &'a Stage<'t, G, P>,
    code: u32,
}

impl<G: Goods, P: Protocol> WithProjection<G> for GetByCode<'_, '_, G, P> {
    type Output = Result<Option<Seen>, Abort>;

    fn with<Pr: Projection<G>>(self, projection: Pr, see: fn(Pr::Value) -> Seen) -> Self::Output {
        let by_code = &self.stage.indexes.expect("left out otherwise").by_code;
        let value = match by_code.read(self.stage.tx, &self.code, projection) {
            Err(Abort::NotFound) => None,
            value => Some(value?),
        };
        Ok(value.map(see))
    }
}

struct OpenScan<'a, 't, G: Goods, P: Protocol> {
    stage: &'a Stage<'t, G, P>,
    source: Source,
    order: Order,
}

impl<'t, G: Goods, P: Protocol> WithProjection<G> for OpenScan<'_, 't, G, P> {
    type Output = Open<'t>;

    fn with<Pr: Projection<G> + 'static>(
        self,
        projection: Pr,
        see: fn(Pr::Value) -> Seen,
    ) -> Open<'t> {
        let OpenScan { stage: &Stage { table, indexes, tx, .. }, source, order } = self;
        let see =
            move |row: Result<(Key, Pr::Value), Abort>| row.map(|(key, value)| (key, see(value)));
        let indexes = || indexes.expect("no others are read then");
        match source {
            Source::All => Box::new(table.iter(tx, projection).map(see)),
            Source::Code(code) => Box::new(indexes().by_code.rows(tx, code, projection).map(see)),
            Source::Codes(lower, upper) => {
                let scan = G::codes(&indexes().by_code, tx, (lower, upper), order, projection);
                Box::new(scan.expect("is ordered").map(see))
            }
            Source::Colour(colour) => {
                Box::new(indexes().by_colour.rows(tx, colour, projection).map(see))
            }
            Source::Place(place) => {
                let by_place = &indexes().by_place;
                let rows = order.of(
                    || by_place.rows(tx, place, projection),
                    || by_place.scan_rev(tx, place..=place, projection),
                );
                Box::new(rows.map(see))
            }
            Source::Places(lower, upper) => {
                let by_place = &indexes().by_place;
                let rows = order.of(
                    || by_place.scan(tx, (lower, upper), projection),
                    || by_place.scan_rev(tx, (lower, upper), projection),
                );
                Box::new(rows.map(see))
            }
            Source::Shelf(shelf) => {
                let by_place = &indexes().by_place;
                let rows = order.of(
                    || by_place.scan(tx, Prefix((shelf,)), projection),
                    || by_place.scan_rev(tx, Prefix((shelf,)), projection),
                );
                Box::new(rows.map(see))
            }
            Source::Range(..) | Source::District(_) => Box::new(
                G::range(table, tx, &source, order, projection).expect("has ranges").map(see),
            ),
        }
    }
}

impl<'t, G: Goods, P: Protocol> Stage<'t, G, P> {
    fn scan(&self, Reading { source, order, look }: Reading) -> Open<'t> {
        look.with(OpenScan { stage: self, source, order })
    }

    fn update(&self, key: &Key, blind: Blind) -> Result<(), Abort> {
        let Stage { table, tx, .. } = *self;
        match blind {
            Blind::Weight(weight) => table.update(tx, key, G::WEIGHT.add(weight)),
            Blind::Guarded(weight) => table.update(tx, key, G::WEIGHT.sub(weight).at_least(0)),
            Blind::Count(count) => table.update(tx, key, G::COUNT.add(count)),
            Blind::Note(note) => table.update(tx, key, G::NOTE.max(note)),
            Blind::Three(weight, note) => {
                table.update(tx, key, (G::WEIGHT.add(weight), G::NOTE.set(note)))
            }
            Blind::Double => table.update_with(tx, key, Double(PhantomData)),
            Blind::Scale(factor, summand) => {
                table.update_with(tx, key, Scale(factor, summand, PhantomData))
            }
        }
    }

    fn update_if_present(&self, key: &Key, blind: Blind) -> Result<bool, Abort> {
        let Stage { table, tx, .. } = *self;
        match blind {
            Blind::Weight(weight) => table.update_if_present(tx, key, G::WEIGHT.add(weight)),
            Blind::Guarded(weight) => {
                table.update_if_present(tx, key, G::WEIGHT.sub(weight).at_least(0))
            }
            Blind::Count(count) => table.update_if_present(tx, key, G::COUNT.add(count)),
            Blind::Note(note) => table.update_if_present(tx, key, G::NOTE.max(note)),
            Blind::Three(weight, note) => {
                table.update_if_present(tx, key, (G::WEIGHT.add(weight), G::NOTE.set(note)))
            }
            Blind::Double | Blind::Scale(..) => is_present(self.update(key, blind)),
        }
    }

    fn upsert(&self, row: G, blind: Blind) -> Result<bool, Abort> {
        let Stage { table, tx, indexes, .. } = *self;
        match blind {
            Blind::Weight(weight) if indexes.is_none() => {
                table.upsert(tx, row, G::WEIGHT.add(weight))
            }
            Blind::Note(note) => tx.attempt(|tx| table.upsert(tx, row, G::NOTE.max(note))),
            Blind::Three(weight, note) if indexes.is_none() => {
                table.upsert(tx, row, (G::WEIGHT.add(weight), G::NOTE.set(note)))
            }
            Blind::Guarded(weight) if indexes.is_none() => {
                table.upsert(tx, row, G::WEIGHT.sub(weight).at_least(0))
            }
            Blind::Count(count) if indexes.is_none() => table.upsert(tx, row, G::COUNT.add(count)),
            // The insertion alone is a part, since a part ends in the failure of its updates.
            _ => {
                let inserted = tx.attempt(|tx| table.insert_if_absent(tx, row))?;
                if !inserted {
                    self.update(&row.key(), blind)?;
                }
                Ok(inserted)
            }
        }
    }

    fn modify(row: &crate::Row<'_, G, P>, change: Change) -> Result<(), Abort> {
        match change {
            Change::Weight(more) => row.modify(G::WEIGHT, |weight| *weight += more),
            Change::Code(new) => row.modify(G::CODE, |code| *code = new),
            Change::Place(shelf, owner) => {
                row.modify((G::SHELF, G::OWNER), |place| *place = (shelf, owner))
            }
            Change::Colour(new) => row.modify(G::COLOUR, |colour| *colour = new),
            Change::CodeAndNote(code, note) => {
                row.modify((G::CODE, G::NOTE), |both| *both = (code, note))
            }
            Change::Whole(_) => row.modify(Whole, |row| *row = change.of(&(*row).into()).into()),
        }
    }

    fn modify_if_present(&self, key: &Key, change: Change) -> Result<bool, Abort> {
        let Stage { table, tx, .. } = *self;
        let done = match change {
            Change::Weight(more) => {
                table.modify_if_present(tx, key, G::WEIGHT, |weight| *weight += more)
            }
            Change::Code(new) => table.modify_if_present(tx, key, G::CODE, |code| *code = new),
            Change::Place(shelf, owner) => {
                table.modify_if_present(tx, key, (G::SHELF, G::OWNER), |place| {
                    *place = (shelf, owner)
                })
            }
            Change::Colour(new) => {
                table.modify_if_present(tx, key, G::COLOUR, |colour| *colour = new)
            }
            Change::CodeAndNote(code, note) => {
                table.modify_if_present(tx, key, (G::CODE, G::NOTE), |both| *both = (code, note))
            }
            Change::Whole(_) => table
                .modify_if_present(tx, key, Whole, |row| *row = change.of(&(*row).into()).into()),
        };
        done.map(|done| done.is_some())
    }

    fn perform(&mut self, operation: &Operation) -> Shown {
        let Stage { table, tx, .. } = *self;
        match *operation {
            Operation::Get(key, look) => {
                Shown::Row(look.with(Get { stage: self, key, for_update: false }))
            }
            Operation::GetForUpdate(key, look) => {
                Shown::Row(look.with(Get { stage: self, key, for_update: true }))
            }
            // What may meet a unique key of another row is a part of its own, so that it is refused
            // at once.
            Operation::Insert(row) => Shown::Done(tx.attempt(|tx| table.insert(tx, row.into()))),
            Operation::InsertIfAbsent(row) => {
                Shown::Whether(tx.attempt(|tx| table.insert_if_absent(tx, row.into())))
            }
            Operation::InsertMany(ref rows) => Shown::Done(match self.indexes {
                None => table.insert_many(tx, rows.iter().map(|&row| G::from(row))),
                Some(_) => rows.chunks(1).try_for_each(|row| {
                    tx.attempt(|tx| table.insert_many(tx, row.iter().map(|&row| G::from(row))))
                }),
            }),
            Operation::Put(row) => Shown::Done(tx.attempt(|tx| table.put(tx, row.into()))),
            Operation::Upsert(row, blind) => Shown::Whether(self.upsert(row.into(), blind)),
            Operation::Update(key, blind) => Shown::Done(self.update(&key, blind)),
            Operation::UpdateIfPresent(key, blind) => {
                Shown::Whether(self.update_if_present(&key, blind))
            }
            Operation::UpdateCode(key, code) => {
                Shown::Done(G::set_code(table, tx, &key, code).expect("left out otherwise"))
            }
            Operation::Modify(key, change) => {
                let found = table.find(tx, &key);
                Shown::Done(found.and_then(|row| tx.attempt(|_| Self::modify(&row, change))))
            }
            Operation::ModifyIfPresent(key, change) => {
                Shown::Whether(tx.attempt(|_| self.modify_if_present(&key, change)))
            }
            Operation::ModifyByCode(code, change) => {
                let by_code = &self.indexes.expect("left out otherwise").by_code;
                let found = by_code.find(tx, &code).and_then(|row| row.ok_or(Abort::NotFound));
                Shown::Done(found.and_then(|row| tx.attempt(|_| Self::modify(&row, change))))
            }
            Operation::GetByCode(code, look) => {
                Shown::Row(look.with(GetByCode { stage: self, code }))
            }
            Operation::Delete(key) => Shown::Done(table.delete(tx, &key)),
            Operation::DeleteIfPresent(key) => Shown::Whether(table.delete_if_present(tx, &key)),
            Operation::Clear => Shown::Number(table.clear(tx)),
            Operation::Take(reading, at_most) => {
                Shown::Rows(self.scan(reading).take(at_most).collect())
            }
            Operation::Open(reading) => {
                let scan = self.scan(reading);
                self.open.push(Held { scan, shown: Vec::new() });
                Shown::Done(Ok(()))
            }
            Operation::Step(number, rows) => {
                let count = self.open.len().max(1);
                if let Some(Held { scan, shown }) = self.open.get_mut(number % count) {
                    shown.extend(scan.take(rows));
                }
                Shown::Done(Ok(()))
            }
        }
    }
}

/// The end of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Commit,
    Error,
    Panic,
}

/// A table beside its model.
struct Bench<G: Goods, P: Protocol> {
    db: Database<P>,
    table: Table<G, P>,
    indexes: Option<Indexes<G, P>>,
    session: Option<Session<P>>,
    rules: Rules,
    model: Model,
}

/// The settings of a bench.
#[derive(Debug, Clone, Copy)]
struct Setting {
    splitting: bool,
    commit_time_updates: bool,
    packed: bool,
    ordered: bool,
    indexed: bool,
}

impl<G: Goods, P: Protocol> Bench<G, P> {
    fn new(setting: Setting) -> Bench<G, P> {
        let db = Database::<P>::builder()
            .timestamp_splitting(setting.splitting)
            .commit_time_updates(setting.commit_time_updates)
            .manual_epochs(1)
            .build()
            .unwrap();
        let options = TableOptions::default().contention_aware_keys(!setting.packed);
        let options = if setting.ordered { options.ordered() } else { options };
        let table = db.table_with::<G>("goods", options).unwrap();
        let rules = Rules {
            split: setting.splitting && properties::<P>().cell_words > 0,
            indexed: setting.indexed,
            in_order: table.core().index.is_ordered(),
            has_ranges: !G::NAMES_INDEXES,
            names_indexes: G::NAMES_INDEXES,
        };
        let indexes = setting.indexed.then(|| G::indexes(&table).unwrap());
        let session = Some(db.session().unwrap());
        Bench { db, table, indexes, session, rules, model: Model::default() }
    }

    /// Runs a script as one transaction in the table and in the model. Compares all results.
    fn run(&mut self, script: &[Operation], ending: Ending) {
        let Bench { table, indexes, rules, model, .. } = self;
        let before = model.rows.clone();
        let mut expected: Vec<Expected> =
            script.iter().map(|operation| model.apply(*rules, operation)).collect();
        let failed = std::mem::take(&mut model.failed).first().map(|failed| failed.2);
        if failed.is_some() || ending != Ending::Commit {
            model.rows = before;
        }
        let mut shown = Vec::new();
        let session = self.session.as_mut().expect("taken only for a change of the indexes");
        // No other session exists that could cause a conflict. Only the growth of a hash index
        // changes observed nodes, once.
        let attempts_max = if rules.in_order && !rules.indexed { 1 } else { 8 };
        let result = catch_unwind(AssertUnwindSafe(|| {
            session.with(RunOptions::new().attempts_max(attempts_max)).run(|tx| {
                shown.clear();
                let mut stage = Stage { table, indexes: indexes.as_ref(), tx, open: Vec::new() };
                for (operation, expected) in script.iter().zip(&expected) {
                    let is_left_out = *expected == Expected::LeftOut;
                    shown.push(if is_left_out {
                        Shown::Done(Ok(()))
                    } else {
                        stage.perform(operation)
                    });
                }
                for Held { scan, shown: mut rows } in stage.open {
                    rows.extend(scan);
                    shown.push(Shown::Rows(rows));
                }
                match ending {
                    Ending::Commit => Ok(()),
                    Ending::Error => Err(Abort::NotFound),
                    // This call panics without a message of the panic hook.
                    Ending::Panic => resume_unwind(Box::new(())),
                }
            })
        }));
        expected.append(&mut model.open);
        let context = || format!("{} {rules:?} {script:?}", P::NAME);
        assert_eq!(shown.len(), expected.len(), "{}", context());
        for (number, (expected, shown)) in expected.iter().zip(&shown).enumerate() {
            let agree = *expected == Expected::LeftOut || expected.accepts(shown);
            assert!(agree, "operation {number} shows {shown:?}, not {expected:?}; {}", context());
        }
        match (failed, ending, result) {
            (Some(abort), _, Ok(result)) => assert_eq!(result, Err(abort), "{}", context()),
            (None, Ending::Commit, Ok(result)) => assert_eq!(result, Ok(()), "{}", context()),
            (None, Ending::Error, Ok(result)) => {
                assert_eq!(result, Err(Abort::NotFound), "{}", context())
            }
            (_, Ending::Panic, Err(_)) => {}
            (failed, ending, result) => panic!("{failed:?} {ending:?} {result:?}; {}", context()),
        }
    }

    /// Asserts that records, single reads, entries and model agree.
    fn check(&mut self) {
        let mut rows = BTreeMap::new();
        self.table
            .for_each_quiescent(|&row| assert_eq!(rows.insert(row.key(), row.into()), None))
            .unwrap();
        assert_eq!(rows, self.model.rows);
        let session = self.session.as_mut().expect("as in `run`");
        for key in
            (0..3).flat_map(|district| (0..40).step_by(3).map(move |number| (district, number)))
        {
            let row = rows.get(&key);
            let state = self.table.get_now(session, &key, (G::OWNER, G::COUNT));
            assert_eq!(state, Ok(row.map(|row| (row.owner, row.count))), "{key:?}");
            assert_eq!(
                self.table.get_now(session, &key, G::NOTE),
                Ok(row.map(|row| row.note)),
                "{key:?}"
            );
            assert_eq!(
                self.table.get_now(session, &key, Whole).map(|row| row.map(Into::into)),
                Ok(row.copied())
            );
        }
        assert_entries_match_rows(session, &self.table);
    }

    /// Creates the indexes if the table has none. Drops them otherwise.
    fn toggle_indexes(&mut self) {
        // If only one session is allowed, the change of the indexes needs it.
        self.session = None;
        if let Some(indexes) = self.indexes.take() {
            INDEX_NAMES.iter().for_each(|name| self.table.drop_index(name).unwrap());
            drop(indexes);
        } else {
            let codes: BTreeSet<u32> = self.model.rows.values().map(|row| row.code).collect();
            let is_unique = codes.len() == self.model.rows.len();
            match G::indexes(&self.table) {
                Ok(indexes) => self.indexes = Some(indexes),
                Err(Error::NotUnique { .. }) => self.table.drop_index("by_place").unwrap(),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(self.indexes.is_some(), is_unique);
        }
        self.rules.indexed = self.indexes.is_some();
        self.session = Some(self.db.session().unwrap());
    }
}

fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// Draws a key from two districts. In half of the cases the key is one of a few, and otherwise from
/// a range that fills several leaves.
fn a_key(random: &mut Random) -> Key {
    let number = if random.below(2) == 0 { random.below(4) } else { random.below(40) };
    (1 + random.below(2) as u8, number as u16)
}

/// Draws a row. Usually no other row has its code.
fn a_row(random: &mut Random, (district, number): Key) -> Parcel {
    let own = Parcel::new(district, number);
    let code = if random.below(8) == 0 { random.below(20) as u32 } else { own.code };
    let (shelf, owner, colour) =
        (random.below(3) as u8, random.below(4) as i8 - 2, random.below(3) as u8);
    let (weight, count, note) =
        (random.below(20) as i64, random.below(500) as i16, random.below(100));
    Parcel { code, shelf, owner, colour, weight, count, note, ..own }
}

fn a_code(random: &mut Random) -> u32 {
    let (district, number) = a_key(random);
    if random.below(3) == 0 { random.below(20) as u32 } else { Parcel::new(district, number).code }
}

fn a_bound<K>(random: &mut Random, key: K) -> Bound<K> {
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn a_place(random: &mut Random) -> Place {
    (random.below(3) as u8, random.below(4) as i8 - 2)
}

fn a_reading(random: &mut Random, rules: Rules) -> Reading {
    let source = match random.below(if rules.indexed { 14 } else { 6 }) {
        0 => Source::All,
        1 => Source::District(random.below(4) as u8),
        2..6 => {
            let (lower, upper) = (a_key(random), a_key(random));
            // Sometimes the bounds stay in the wrong order.
            let swap = lower > upper && random.below(5) > 0;
            let (lower, upper) = if swap { (upper, lower) } else { (lower, upper) };
            Source::Range(a_bound(random, lower), a_bound(random, upper))
        }
        6 => Source::Code(a_code(random)),
        7 => Source::Colour(random.below(3) as u8),
        8 => Source::Place(a_place(random)),
        9 => Source::Shelf(random.below(4) as u8),
        10 | 11 => {
            let (lower, upper) = (a_code(random), a_code(random));
            Source::Codes(a_bound(random, lower.min(upper)), a_bound(random, lower.max(upper)))
        }
        _ => {
            let (lower, upper) = (a_place(random), a_place(random));
            let (lower, upper) = (lower.min(upper), lower.max(upper));
            Source::Places(a_bound(random, lower), a_bound(random, upper))
        }
    };
    let source = match source {
        Source::Range(..) | Source::District(_) | Source::Codes(..) if !rules.has_ranges => {
            Source::All
        }
        source => source,
    };
    let is_one_way = matches!(source, Source::All | Source::Code(_) | Source::Colour(_));
    let order = match random.below(4) {
        1 if !is_one_way => Order::Reverse,
        2 | 3 if !is_one_way => Order::BothEnds(random.below(256) as u8),
        _ => Order::Forward,
    };
    Reading { source, order, look: LOOKS[below(random, LOOKS.len())] }
}

fn a_blind_update(random: &mut Random) -> Blind {
    match random.below(18) {
        0..4 => Blind::Weight(random.below(9) as i64),
        // This guard mostly holds.
        4..6 => Blind::Guarded(random.below(3) as i64),
        6 => Blind::Guarded(15),
        7..10 => Blind::Count(random.below(9) as i16),
        10 => Blind::Count(i16::MAX - 200),
        11 | 12 => Blind::Note(random.below(200)),
        13 | 14 => Blind::Three(random.below(5) as i64, random.below(50)),
        15 | 16 => Blind::Scale(random.below(5) as i16 - 2, random.below(50) as i16),
        _ => Blind::Double,
    }
}

fn a_change(random: &mut Random) -> Change {
    match random.below(8) {
        0 => Change::Weight(1),
        1 | 2 => Change::Code(a_code(random)),
        3 => Change::Place(random.below(3) as u8, random.below(4) as i8 - 2),
        4 | 5 => Change::Colour(random.below(3) as u8),
        6 => Change::CodeAndNote(a_code(random), random.below(100)),
        _ => {
            let key = a_key(random);
            Change::Whole(a_row(random, key))
        }
    }
}

fn an_operation(random: &mut Random, rules: Rules) -> Operation {
    let key = a_key(random);
    let look = LOOKS[below(random, LOOKS.len())];
    match random.below(40) {
        0..3 => Operation::Get(key, look),
        3 | 4 => Operation::GetForUpdate(key, look),
        5..8 => Operation::Insert(a_row(random, key)),
        8 | 9 => Operation::InsertIfAbsent(a_row(random, key)),
        10..13 => {
            let count = random.below(20) as u16;
            let numbers = key.1..key.1 + count;
            Operation::InsertMany(numbers.map(|number| a_row(random, (key.0, number))).collect())
        }
        13..16 => Operation::Put(a_row(random, key)),
        16 | 17 => Operation::Upsert(a_row(random, key), a_blind_update(random)),
        18 | 19 => Operation::Update(key, a_blind_update(random)),
        20 => Operation::UpdateIfPresent(key, a_blind_update(random)),
        21 => Operation::UpdateCode(key, a_code(random)),
        22 | 23 => Operation::Modify(key, a_change(random)),
        24 => Operation::ModifyIfPresent(key, a_change(random)),
        25 => Operation::ModifyByCode(a_code(random), a_change(random)),
        26 => Operation::GetByCode(a_code(random), look),
        27..30 => Operation::Delete(key),
        30 => Operation::DeleteIfPresent(key),
        31 if random.below(8) == 0 => Operation::Clear,
        31..34 => Operation::Take(a_reading(random, rules), below(random, 12)),
        34..37 => Operation::Open(a_reading(random, rules)),
        _ => Operation::Step(below(random, 8), below(random, 10)),
    }
}

fn random_scripts<G: Goods, P: Protocol>(setting: Setting, scripts: usize, seed: u64) {
    let mut random = Random::seeded(seed);
    let mut bench = Bench::<G, P>::new(setting);
    let epochs = bench.db.inner.engine.epochs.clone();
    for number in 0..scripts {
        if !G::NAMES_INDEXES && number % 25 == 24 {
            bench.toggle_indexes();
        }
        let length = 1 + below(&mut random, 24);
        let script: Vec<_> = (0..length).map(|_| an_operation(&mut random, bench.rules)).collect();
        let ending = match random.below(8) {
            0 => Ending::Error,
            1 => Ending::Panic,
            _ => Ending::Commit,
        };
        bench.run(&script, ending);
        bench.check();
        if random.below(3) == 0 {
            // Records of deleted rows are removed, and so are nodes.
            epochs.pass();
        }
    }
}

const SCRIPTS: usize = 100;

/// Runs `run` for all settings of a row type. Unless `CANDIDE_FULL` is set, runs `run` for those
/// settings whose number of switches that are on has the parity `parity`: they have four switches
/// in each combination.
fn for_each_setting(parity: u32, run: impl Fn(Setting, u64)) {
    for number in (0..32).filter(|bits: &u64| !is_short() || bits.count_ones() % 2 == parity) {
        let bit = |bit: u64| number >> bit & 1 != 0;
        let (splitting, commit_time_updates) = (bit(0), bit(1));
        run(
            Setting {
                splitting,
                commit_time_updates,
                packed: bit(2),
                ordered: bit(3),
                indexed: bit(4),
            },
            number,
        );
    }
}

protocol_tests!(
    all: random_scripts_with_open_scans_and_indexes_mean_what_a_map_says
        = random_scripts_mean_what_a_map_says(0)
);
protocol_tests!(
    erased: random_scripts_under_erased_protocols_mean_what_a_map_says
        = random_scripts_mean_what_a_map_says(1)
);

#[test]
fn random_scripts_that_are_recorded_mean_what_a_map_says() {
    random_scripts_mean_what_a_map_says::<Recorded<Occ>>(1);
}

fn random_scripts_mean_what_a_map_says<P: Protocol>(parity: u32) {
    let scripts = if is_short() { SCRIPTS / 4 } else { SCRIPTS };
    for_each_setting(parity, |setting, seed| {
        if setting.indexed {
            random_scripts::<Filed, P>(setting, scripts, seed);
        }
        if !setting.ordered {
            // The table of this type is ordered, and its indexes are added and dropped.
            random_scripts::<Parcel, P>(setting, scripts, 100 + seed);
        }
    });
}

protocol_tests!(all: all_sequences_of_up_to_four_operations_with_a_scan_held_open);
fn all_sequences_of_up_to_four_operations_with_a_scan_held_open<P: Protocol>() {
    let setting = |splitting, commit_time_updates| Setting {
        splitting,
        commit_time_updates,
        packed: false,
        ordered: false,
        indexed: true,
    };
    let less = u32::from(is_short());
    all_short_sequences::<Parcel, P>(setting(true, true), 4 - less);
    all_short_sequences::<Parcel, P>(setting(false, true), 3 - less);
    all_short_sequences::<Parcel, P>(Setting { indexed: false, ..setting(true, false) }, 3 - less);
    all_short_sequences::<Filed, P>(setting(true, true), 3 - less);
}

/// Runs all sequences of operations on one row, from both initial states. In each sequence, scans
/// are opened at one place.
fn all_short_sequences<G: Goods, P: Protocol>(setting: Setting, longest: u32) {
    let row = Parcel::new(1, 1);
    let neighbour = Parcel::new(1, 2);
    let key = row.key();
    let operations = [
        Operation::Insert(Parcel { weight: 9, ..row }),
        Operation::Put(Parcel { code: 7, shelf: 2, note: 3, ..row }),
        Operation::Upsert(Parcel { colour: 3, ..row }, Blind::Three(1, 5)),
        // This update fails the second time.
        Operation::Update(key, Blind::Guarded(6)),
        Operation::Update(key, Blind::Count(i16::MAX / 2 + 1)),
        Operation::Update(key, Blind::Note(4)),
        Operation::Modify(key, Change::Code(8)),
        Operation::Modify(key, Change::Place(0, 1)),
        // The new code belongs to another row.
        Operation::Modify(key, Change::Whole(neighbour)),
        Operation::GetForUpdate(key, Look::Whole),
        Operation::Delete(key),
        Operation::Clear,
    ];
    let mut bench = Bench::<G, P>::new(setting);
    let open = |source, order, look| Operation::Open(Reading { source, order, look });
    let all = if G::NAMES_INDEXES {
        Source::All
    } else {
        Source::Range(Bound::Unbounded, Bound::Unbounded)
    };
    let mut scans = vec![open(all, Order::Forward, Look::Whole)];
    if setting.indexed {
        let places = Source::Places(Bound::Unbounded, Bound::Unbounded);
        scans.push(open(places, Order::Reverse, Look::Count));
        scans.push(open(places, Order::BothEnds(0b0110), Look::Whole));
        scans.push(open(Source::Code(row.code), Order::Forward, Look::Note));
    }
    let (mut script, mut sample) = (Vec::new(), Sample::one_in(10));
    for length in 1..=longest {
        for number in 0..operations.len().pow(length) {
            if length == longest && !sample.has_next() {
                continue;
            }
            for moment in 0..=length {
                for present in [false, true] {
                    let mut rest = number;
                    script.clear();
                    script.extend([Operation::Clear, Operation::Insert(neighbour)]);
                    script.extend(present.then_some(Operation::Insert(row)));
                    bench.run(&script, Ending::Commit);
                    script.clear();
                    for place in 0..length {
                        if place == moment {
                            script.extend(scans.iter().cloned());
                        }
                        script.push(operations[rest % operations.len()].clone());
                        rest /= operations.len();
                    }
                    if moment == length {
                        script.extend(scans.iter().cloned());
                    }
                    bench.run(&script, Ending::Commit);
                }
            }
            if number % 97 == 0 {
                bench.check();
                bench.db.inner.engine.epochs.pass();
            }
        }
    }
}
