//! Rows with several groups, composite keys and indexes, for tests of scans and indexes.

use candide_derive::Record;

/// A row of three groups in an ordered table. The row's key has two parts. Its type names no
/// indexes: tests create them while they run, or use none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
pub(crate) struct Parcel {
    #[key]
    pub(crate) district: u8,
    #[key]
    pub(crate) number: u16,
    pub(crate) code: u32,
    pub(crate) shelf: u8,
    pub(crate) weight: i64,
    #[group(state)]
    pub(crate) owner: i8,
    #[group(state)]
    pub(crate) colour: u8,
    #[group(state)]
    pub(crate) count: i16,
    #[group(text)]
    pub(crate) note: u64,
}

/// A parcel in an unordered table, with the indexes that its type names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate)]
#[index(name = by_place, columns(shelf, owner))]
pub(crate) struct Filed {
    #[key]
    pub(crate) district: u8,
    #[key]
    pub(crate) number: u16,
    #[unique]
    pub(crate) code: u32,
    pub(crate) shelf: u8,
    pub(crate) weight: i64,
    #[group(state)]
    pub(crate) owner: i8,
    #[group(state)]
    #[index(hash)]
    pub(crate) colour: u8,
    #[group(state)]
    pub(crate) count: i16,
    #[group(text)]
    pub(crate) note: u64,
}

impl Parcel {
    /// Returns a row. Its code differs from the codes of all other keys.
    pub(crate) fn new(district: u8, number: u16) -> Parcel {
        let code = 1_000 * u32::from(district) + u32::from(number);
        Parcel {
            district,
            number,
            code,
            shelf: 1,
            weight: 10,
            owner: 0,
            colour: 1,
            count: 0,
            note: 0,
        }
    }
}

impl From<Parcel> for Filed {
    fn from(parcel: Parcel) -> Filed {
        let Parcel { district, number, code, shelf, weight, owner, colour, count, note } = parcel;
        Filed { district, number, code, shelf, weight, owner, colour, count, note }
    }
}

impl From<Filed> for Parcel {
    fn from(filed: Filed) -> Parcel {
        let Filed { district, number, code, shelf, weight, owner, colour, count, note } = filed;
        Parcel { district, number, code, shelf, weight, owner, colour, count, note }
    }
}

/// A line of an order: each district of each warehouse has its orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
#[record(crate = crate, ordered)]
pub(crate) struct Order {
    #[key]
    pub(crate) warehouse: u16,
    #[key]
    pub(crate) district: u8,
    #[key]
    pub(crate) number: u32,
    pub(crate) lines: u64,
}
