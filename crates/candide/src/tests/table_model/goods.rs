//! Row types with the same columns, in tables of different kinds.

use super::super::indexed_rows::{Filed, Parcel};
use super::words::{Order, Rows, Source};
use super::{Key, Place};
use crate::engine::Protocol;
use crate::schema::{ColumnKind, Free, IndexKind, Indexed, Projection};
use crate::{
    Abort, Column, Error, Hashed, Index, IndexOptions, Ordered, Prefix, Record, Table, Tx,
};
use std::ops::Bound;

/// Row types with the columns of a [`Parcel`].
pub(super) trait Goods: Record<Key = Key> + Copy + From<Parcel> + Into<Parcel> {
    /// The kind of the columns that an index may keep. The kind determines whether updates of these
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
    /// The kind of the type's unique index on the code.
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

pub(super) struct Indexes<G: Goods, P: Protocol> {
    pub(super) by_code: Index<G, u32, G::ByCode, P>,
    pub(super) by_place: Index<G, Place, Ordered, P>,
    pub(super) by_colour: Index<G, u8, Hashed, P>,
}

pub(super) const INDEX_NAMES: [&str; 3] = ["by_code", "by_place", "by_colour"];
