//! The late rows of each base: how many there are, and which one is the newest.

#![forbid(unsafe_code)]

use super::by_address::AddressMap;
use super::item::NONE;
use super::late_row::LateRow;

/// The late rows of all bases. A row is named by its number among the users' code.
#[derive(Default)]
pub(super) struct Bases {
    /// What is known of each base, by the base's address.
    bases: AddressMap<OfBase>,
    /// The number of all rows that are not settled.
    late: usize,
}

/// The late rows of one base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfBase {
    /// The newest row, or [`NONE`].
    newest: u32,
    /// The number of rows that are not settled.
    late: u32,
}

impl OfBase {
    const NOTHING: OfBase = OfBase { newest: NONE, late: 0 };
}

impl Bases {
    pub(super) fn clear(&mut self) {
        self.bases.clear();
        self.late = 0;
    }

    fn of(&self, address: u64) -> OfBase {
        self.bases.get(&address).copied().unwrap_or(OfBase::NOTHING)
    }

    /// Returns the number of all rows that are not settled.
    pub(super) fn late(&self) -> usize {
        self.late
    }

    /// Returns the number of rows of a base that are not settled.
    pub(super) fn late_on(&self, address: u64) -> usize {
        self.of(address).late as usize
    }

    /// Returns the newest row of a base, or [`NONE`].
    pub(super) fn newest_on(&self, address: u64) -> u32 {
        self.of(address).newest
    }

    /// Notes a row, which is the newest one of its base. Returns the one before, or [`NONE`].
    pub(super) fn appended(&mut self, address: u64, number: u32) -> u32 {
        let base = self.bases.entry(address).or_insert(OfBase::NOTHING);
        base.late += 1;
        self.late += 1;
        std::mem::replace(&mut base.newest, number)
    }

    /// Notes that the newest row of its base has been undone.
    pub(super) fn undone(&mut self, row: &LateRow) {
        if let Some(base) = self.bases.get_mut(&row.base.address()) {
            base.newest = row.older;
            base.late -= u32::from(!row.is_settled);
            self.late -= usize::from(!row.is_settled);
        }
    }

    /// Notes whether a row of a base is settled now, which was not so before.
    pub(super) fn note_settled(&mut self, address: u64, is_settled: bool) {
        if let Some(base) = self.bases.get_mut(&address) {
            base.late = base.late.wrapping_add_signed(if is_settled { -1 } else { 1 });
            self.late = self.late.wrapping_add_signed(if is_settled { -1 } else { 1 });
        }
    }
}
