//! The words of scripts: operations, the parts that they read, and the results that they show.

use super::super::indexed_rows::Parcel;
use super::goods::Goods;
use super::{INDEXED, Key, Place, ROW, STATE, TEXT};
use crate::schema::Projection;
use crate::{Abort, Whole};
use std::iter::Rev;
use std::ops::Bound;

/// The part of a row that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Whole,
    Weight,
    Count,
    Note,
    CodeAndNote,
    Indexed,
    Nothing,
}

pub(super) const LOOKS: [Look; 7] = [
    Look::Whole,
    Look::Weight,
    Look::Count,
    Look::Note,
    Look::CodeAndNote,
    Look::Indexed,
    Look::Nothing,
];

/// The values that were read.
pub(super) type Seen = [i64; 7];

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
    pub(super) fn groups(self) -> u8 {
        match self {
            Look::Whole => ROW | STATE | TEXT,
            Look::Weight | Look::Nothing => ROW,
            Look::Count => STATE,
            Look::Note => TEXT,
            Look::CodeAndNote => ROW | TEXT,
            Look::Indexed => INDEXED,
        }
    }

    pub(super) fn at(self, row: &Parcel) -> Seen {
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

    /// Calls `what` with the projection onto the part.
    pub(super) fn with<G: Goods, W: WithProjection<G>>(self, what: W) -> W::Output {
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
pub(super) trait WithProjection<G: Goods> {
    type Output;

    fn with<Pr: Projection<G> + 'static>(
        self,
        projection: Pr,
        see: fn(Pr::Value) -> Seen,
    ) -> Self::Output;
}

/// The source of a scan's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
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
pub(super) enum Order {
    Forward,
    /// By `scan_rev`.
    Reverse,
    /// From both ends: the bits choose, in groups of eight, which rows are taken from the end.
    BothEnds(u8),
}

/// The rows of a scan.
pub(super) type Rows<'t, V> = Box<dyn Iterator<Item = Result<(Key, V), Abort>> + 't>;

impl Order {
    /// Returns the rows of one of two scans in this order.
    pub(super) fn of<'t, V, I: DoubleEndedIterator<Item = Result<(Key, V), Abort>> + 't>(
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
    pub(super) fn is_back(bits: u8, turn: u32) -> bool {
        bits.rotate_right(turn) & 1 != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) source: Source,
    pub(super) order: Order,
    pub(super) look: Look,
}

/// A blind update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blind {
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
pub(super) enum Change {
    Weight(i64),
    Code(u32),
    Place(u8, i8),
    Colour(u8),
    CodeAndNote(u32, u64),
    Whole(Parcel),
}

impl Change {
    pub(super) fn groups(self) -> u8 {
        match self {
            Change::Weight(_) | Change::Code(_) => ROW,
            Change::Place(..) => INDEXED,
            Change::Colour(_) => STATE,
            Change::CodeAndNote(..) => ROW | TEXT,
            Change::Whole(_) => ROW | STATE | TEXT,
        }
    }

    pub(super) fn is_indexed(self) -> bool {
        !matches!(self, Change::Weight(_))
    }

    pub(super) fn of(self, row: &Parcel) -> Parcel {
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
pub(super) enum Operation {
    Get(Key, Look),
    GetForUpdate(Key, Look),
    Insert(Parcel),
    InsertIfAbsent(Parcel),
    InsertMany(Vec<Parcel>),
    Put(Parcel),
    Upsert(Parcel, Blind),
    Update(Key, Blind),
    /// A blind update of the weight and of the code. The whole update is refused while an index
    /// keeps the code.
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
    /// Makes a scan that stays open during the following operations. The scan is read to its end
    /// after all these operations.
    Open(Reading),
    /// Reads some more rows of an open scan.
    Step(usize, usize),
}

/// The result that an operation showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    Done(Result<(), Abort>),
    Whether(Result<bool, Abort>),
    Row(Result<Option<Seen>, Abort>),
    Number(Result<usize, Abort>),
    Rows(Vec<Result<(Key, Seen), Abort>>),
}
