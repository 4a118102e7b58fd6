//! The layout of records: the places of the key, the cells and the payloads in a record.
//!
//! ```text
//! | key words | cell of unit 0 | words of unit 0 | cell of unit 1 | words of unit 1 | ...
//! ```
//!
//! A *unit* is the part of a record that one cell guards: one column group or, with timestamp
//! splitting off, all column groups of the record.

use crate::memory::{Block, Cache, OutOfMemory, Slab};
use crate::schema::KeyPacking;
#[cfg(any(test, feature = "experiments"))]
use crate::schema::WordRange;
use crate::schema::{Group, Key};
use crate::schema::{KeyWords, Unit, Units};
use crate::schema::{all_groups, start_of};
use crate::sync::{AtomicU64, Ordering, prefetch};
#[cfg(any(test, feature = "experiments"))]
use std::ops::Bound;
use std::ops::Range;
use std::sync::Arc;

/// A handle on a record. The record stays allocated while the session that holds the handle is
/// pinned.
///
/// # Invariants
/// * **LY1** The record was laid out by the [`Layout`] of the table named in all accesses to the
///   record. The record's block has at least as many words as that layout.
/// * **LY2** The session that holds a handle has been pinned since a time at which the record was
///   reachable from the index. Or the holder owns the record: the record is not linked yet, or no
///   other thread uses the database. Handles are kept in attempts and row handles, which end with
///   the pin.
/// * **LY3** The key words are written before the record is linked, and never again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordAt(Block);

impl RecordAt {
    /// Makes a handle on a record.
    ///
    /// # Safety
    /// LY1 and LY2 hold, for as long as the handle or a copy of it is used.
    #[inline]
    pub(crate) unsafe fn new(block: Block) -> RecordAt {
        RecordAt(block)
    }

    /// Allocates a record of a table. The caller owns the record. This function writes the record's
    /// key, but not its cells. `slab` is the table's slab, with blocks that are large enough for
    /// `layout`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn allocate(
        layout: &Layout,
        key: &[u64],
        slab: &Arc<Slab>,
        caches: &mut Vec<Option<Cache>>,
    ) -> Result<RecordAt, OutOfMemory> {
        assert!(slab.block_words() >= layout.total_words() && key.len() == layout.key_words());
        let block = Cache::allocate(caches, slab)?;
        // SAFETY: the block is large enough (LY1) and ours (LY2).
        let record = unsafe { RecordAt::new(block) };
        record.write_key(key);
        Ok(record)
    }

    #[inline]
    pub(crate) fn block(self) -> Block {
        self.0
    }

    /// Returns word `index` of the key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn key_word(self, index: usize) -> u64 {
        // SAFETY: every record begins with the key's words (LY1), and this one is allocated (LY2).
        // Relaxed: the link to the record publishes the key (LY3).
        unsafe { self.0.word(index) }.load(Ordering::Relaxed)
    }

    /// Returns whether the record has this key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_key(self, key: &[u64]) -> bool {
        key.iter().enumerate().all(|(index, &word)| self.key_word(index) == word)
    }

    /// Returns whether the first `count` words of the record's key equal the first `count` words of
    /// `key`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begins_like(self, key: &[u64], count: usize) -> bool {
        for (index, &word) in key[..count].iter().enumerate() {
            if self.key_word(index) != word {
                return false;
            }
        }
        true
    }

    /// Returns a copy of the record's key, which has `count` words.
    pub(crate) fn key_words(self, count: usize) -> KeyWords {
        let mut words = KeyWords::zeros(count);
        self.copy_key(words.as_mut_slice());
        words
    }

    /// Copies the first words of the record's key until `into` is full.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn copy_key(self, into: &mut [u64]) {
        into.iter_mut().enumerate().for_each(|(index, word)| *word = self.key_word(index));
    }

    /// Writes the key of a record that is not linked yet (LY3).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn write_key(self, key: &[u64]) {
        for (index, &word) in key.iter().enumerate() {
            // SAFETY: as in `key_word`.
            unsafe { self.0.word(index) }.store(word, Ordering::Relaxed);
        }
    }
}

/// The place of a unit in its record, packed into one word, so that a [`CellAt`] fits in two
/// registers. If the parts were stored one by one, a load of the whole word would stall.
///
/// ```text
/// | table: 16 | words: 16 | cell: 16 | words of the cell: 8 | unit: 8 |
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnitPlace(u64);

impl UnitPlace {
    /// Returns the place of a unit whose cell of `cell_words` words begins at word `cell`, followed
    /// by a payload of `words` words.
    fn new(table: u16, words: u16, cell: u16, cell_words: u8, unit: u8) -> UnitPlace {
        let parts = [
            (table.into(), 48),
            (words.into(), 32),
            (cell.into(), 16),
            (cell_words.into(), 8),
            (unit.into(), 0),
        ];
        UnitPlace(
            parts.into_iter().fold(0u64, |word, (part, shift): (u64, u32)| word | part << shift),
        )
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn table(self) -> u16 {
        (self.0 >> 48) as u16
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn words(self) -> usize {
        usize::from((self.0 >> 32) as u16)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn cell(self) -> usize {
        usize::from((self.0 >> 16) as u16)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn cell_words(self) -> usize {
        usize::from((self.0 >> 8) as u8)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unit(self) -> usize {
        usize::from(self.0 as u8)
    }
}

/// A unit of a record. Protocols read, write and lock units.
#[derive(Debug, Clone, Copy)]
pub struct CellAt {
    record: RecordAt,
    place: UnitPlace,
}

const _: () = assert!(size_of::<CellAt>() == 16);

impl CellAt {
    pub(crate) fn record(self) -> RecordAt {
        self.record
    }

    /// Returns the table's number in its database.
    pub(crate) fn table(self) -> u16 {
        self.place.table()
    }

    /// Returns the first `N` words of the record's key. If the key is shorter than `N` words, the
    /// rest are other words of the record, or zero.
    pub(crate) fn key_prefix<const N: usize>(self) -> [u64; N] {
        // The cell comes after the key, so words before the cell are in bounds.
        let count = N.min(self.place.cell());
        std::array::from_fn(|index| if index < count { self.record.key_word(index) } else { 0 })
    }

    /// Returns a number that identifies the unit within its database while the record is allocated.
    /// Under a model, where words are larger than eight bytes, the number is not a real address.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn address(self) -> u64 {
        self.record.0.address() + self.place.cell() as u64 * 8
    }

    /// Returns the number of the unit in its record.
    pub(crate) fn unit(self) -> usize {
        self.place.unit()
    }

    /// Returns the unit's number as a [`Unit`]. `split` is whether each group of the table is a
    /// separate unit.
    pub(super) fn unit_of(self, split: bool) -> Unit {
        Unit { split, index: self.place.unit() as u8 }
    }

    /// Returns the index of the unit's first word among all words of the row. The record's key has
    /// `key_words` words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn start_in_row(self, key_words: usize) -> usize {
        // The words before the unit's cell are the key, and the other units with their cells.
        self.place.cell() - key_words - self.place.unit() * self.place.cell_words()
    }

    /// Returns whether this is the record's first unit. The index uses the first unit's cell for
    /// the state of the whole record.
    pub(crate) fn is_first(self) -> bool {
        self.place.unit() == 0
    }

    /// Returns the number of words in the cell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn cell_words(&self) -> usize {
        self.place.cell_words()
    }

    /// Returns word `index` of the cell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn cell_word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < self.place.cell_words());
        // SAFETY: the word is in bounds by LY1 (only the protocol with this cell size uses the
        // layout), and allocated by LY2.
        unsafe { self.record.0.word(self.place.cell() + index) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn payload_start(&self) -> usize {
        self.place.cell() + self.place.cell_words()
    }

    /// Returns the words of the unit's payload.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn payload(&self) -> &[AtomicU64] {
        // SAFETY: LY1 and LY2.
        unsafe { self.record.0.words(self.payload_start(), self.place.words()) }
    }

    /// Copies the unit's words in the range `words` into `block`, beginning at word `to` of
    /// `block`. The caller owns `block`, and has locked the unit, so that no other thread writes
    /// these words meanwhile.
    #[inline]
    pub(super) fn copy_words_to(&self, block: Block, to: usize, words: Range<usize>) {
        assert!(words.end <= self.place.words());
        let from = self.record.0.offset(self.payload_start() + words.start);
        // SAFETY: LY1 and LY2. `block` is long enough and belongs to the caller. Locking the unit
        // has made the last writes to the unit visible.
        unsafe { block.offset(to).copy_words(from, 0, words.len()) };
    }

    /// Returns the number of words of the unit's payload.
    pub(crate) fn payload_words(&self) -> usize {
        self.place.words()
    }

    /// Prefetches the cell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefetch_cell(&self) {
        prefetch(self.record.0.hint(self.place.cell()));
    }

    /// Prefetches the cell and the whole payload if both together have at most 16 words. Otherwise
    /// prefetches nothing. Returns whether this call has prefetched them.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefetch_small(&self) -> bool {
        /// The number of words of two cache lines. A unit of at most this size lies in at most
        /// three lines: the line of the unit's first word, the line after it, and the line of the
        /// unit's last word.
        const SMALL: usize = 16;
        let (cell, end) = (self.place.cell(), self.payload_start() + self.place.words());
        let is_small = end - cell <= SMALL;
        if is_small {
            for word in [cell, (cell + SMALL / 2).min(end - 1), end - 1] {
                prefetch(self.record.0.hint(word));
            }
        }
        is_small
    }

    /// Prefetches words `first..first + count` of the payload.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefetch(&self, first: usize, count: usize) {
        self.record.0.prefetch(self.payload_start() + first, count);
    }
}

/// The place of a unit in all records of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedUnit {
    place: UnitPlace,
    /// The index of the unit's first word among all words of the row.
    start: u16,
}

impl PlacedUnit {
    /// Returns the index of the unit's first word among all words of the row.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn start(self) -> usize {
        usize::from(self.start)
    }

    /// Returns the number of the unit's words.
    pub(crate) fn words(self) -> usize {
        self.place.words()
    }

    /// Returns this unit of `record`, which belongs to the same table.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn of(self, record: RecordAt) -> CellAt {
        CellAt { record, place: self.place }
    }
}

/// The units that a read observes, in any record of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedUnits {
    pub(crate) all: Units,
    /// The place of the observed unit if the read observes exactly one unit; else `None`.
    pub(crate) only: Option<PlacedUnit>,
}

/// The place of a word, in all records of a table, that may name a value outside of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) unit: u8,
    /// The index of the word in the unit's payload.
    pub(crate) word: u16,
}

/// The places of the units of a table's records.
#[derive(Debug)]
pub(crate) struct Layout {
    key_words: u16,
    /// The packing of keys into key words. `None` if records keep the words of keys unchanged.
    packing: Option<KeyPacking>,
    split: bool,
    /// A copy of the places of the first units. Reading this copy follows no pointer.
    first_units: [PlacedUnit; FIRST_UNITS],
    units: Box<[PlacedUnit]>,
    /// The words that may name values outside of the record, in ascending order.
    named: Box<[Named]>,
    total_words: usize,
}

/// The number of places in [`Layout::first_units`]. Few tables have records with more units.
const FIRST_UNITS: usize = 4;

/// Returns the key of a record. `packing` is the packing of the table's keys; `None` if they are
/// not packed.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn key_of<K: Key>(record: RecordAt, packing: Option<KeyPacking>) -> K {
    /// A key of at most this many words is read into an array on the stack.
    const FEW: usize = 4;
    match packing {
        None if K::WORDS <= FEW => {
            let mut words = [0; FEW];
            record.copy_key(&mut words[..K::WORDS]);
            K::from_words(&words[..K::WORDS])
        }
        None => {
            // Not by `key_words`, whose result is copied once more.
            let mut words = KeyWords::zeros(K::WORDS);
            record.copy_key(words.as_mut_slice());
            K::from_words(words.as_slice())
        }
        Some(packing) => {
            K::from_words(packing.unpack(record.key_words(packing.words()).as_slice()).as_slice())
        }
    }
}

/// The largest number of words of a record, cells and key included.
pub(crate) const RECORD_WORDS_MAX: usize = u16::MAX as usize;

impl Layout {
    /// Returns the layout of records with these groups.
    ///
    /// # Errors
    /// The number of words of such a record, if it exceeds [`RECORD_WORDS_MAX`].
    pub(crate) fn new(
        table: u16,
        key_words: usize,
        packing: Option<KeyPacking>,
        groups: &[Group],
        split: bool,
        cell_words: usize,
    ) -> Result<Layout, usize> {
        let key_words = packing.map_or(key_words, |packing| packing.words());
        let all = [Group::new("row", start_of(groups, groups.len()))];
        let units_wanted = if split { groups } else { &all };
        let total_words =
            key_words + units_wanted.iter().map(|unit| cell_words + unit.words).sum::<usize>();
        if total_words > RECORD_WORDS_MAX {
            return Err(total_words);
        }
        let (mut cell, mut start) = (key_words, 0);
        let place = |(number, unit): (usize, &Group)| {
            let place = UnitPlace::new(
                table,
                unit.words as u16,
                cell as u16,
                cell_words as u8,
                number as u8,
            );
            let placed = PlacedUnit { place, start: start as u16 };
            cell += cell_words + unit.words;
            start += unit.words;
            placed
        };
        let units: Box<[PlacedUnit]> = units_wanted.iter().enumerate().map(place).collect();
        let mut first_units = [units[0]; FIRST_UNITS];
        first_units.iter_mut().zip(&units).for_each(|(first, unit)| *first = *unit);
        Ok(Layout {
            key_words: key_words as u16,
            packing,
            split,
            first_units,
            units,
            named: Box::default(),
            total_words,
        })
    }

    /// Returns this layout with words that may name values outside of the record. `words` are their
    /// numbers among all words of the row outside of its key, in ascending order.
    pub(crate) fn with_named(mut self, words: &[u16]) -> Layout {
        let place = |&word: &u16| {
            let unit = self.units.partition_point(|unit| unit.start <= word) - 1;
            Named { unit: unit as u8, word: word - self.units[unit].start }
        };
        self.named = words.iter().map(place).collect();
        self
    }

    /// Returns the words that may name values outside of the record, in ascending order.
    #[inline]
    pub(crate) fn named(&self) -> &[Named] {
        &self.named
    }

    /// Returns the numbers of these words among all words of the row outside of its key.
    pub(crate) fn named_places(&self) -> impl Iterator<Item = u16> {
        self.named.iter().map(|named| self.units[usize::from(named.unit)].start + named.word)
    }

    pub(crate) fn key_words(&self) -> usize {
        usize::from(self.key_words)
    }

    /// Returns the number of words in each cell.
    pub(crate) fn cell_words(&self) -> usize {
        self.units[0].place.cell_words()
    }

    /// Returns whether each column group is a unit.
    pub(crate) fn is_split(&self) -> bool {
        self.split
    }

    /// Returns the leading words of an unpacked key, and whether the unpacked key has more words.
    /// `kept` holds the leading key words of a record.
    pub(crate) fn key_from_prefix(&self, kept: &[u64]) -> (Vec<u64>, bool) {
        let kept = &kept[..self.key_words().min(kept.len())];
        match self.packing {
            None => (kept.to_vec(), self.key_words() > kept.len()),
            Some(packing) => {
                let key = packing.unpack_prefix(kept);
                let is_longer = packing.components() > key.len();
                (key, is_longer)
            }
        }
    }

    /// Returns the packing of the table's keys, whose type is `K`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn packing<K: Key>(&self) -> Option<KeyPacking> {
        if const { KeyPacking::exists_for::<K>() } { self.packing } else { None }
    }

    /// Returns the key of a record of the table, whose keys have type `K`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn key_of<K: Key>(&self, record: RecordAt) -> K {
        key_of(record, self.packing::<K>())
    }

    /// Returns the key of a record as unpacked words.
    pub(crate) fn unpacked_key(&self, record: RecordAt) -> KeyWords {
        let kept = record.key_words(self.key_words());
        self.packing.map_or(kept, |packing| packing.unpack(kept.as_slice()))
    }

    /// Returns the number of words of an unpacked key.
    pub(crate) fn unpacked_key_words(&self) -> usize {
        self.packing.map_or(self.key_words(), |packing| packing.components())
    }

    /// Returns the packing of the table's keys; `None` if they are not packed.
    pub(crate) fn key_packing(&self) -> Option<KeyPacking> {
        self.packing
    }

    /// Returns whether the table keeps its keys packed.
    pub(crate) fn packs_keys(&self) -> bool {
        self.packing.is_some()
    }

    /// Calls `f` with a key as the table keeps it, packed or not. `key` is the unpacked key.
    pub(crate) fn in_kept_words<T>(&self, key: &[u64], f: impl FnOnce(&[u64]) -> T) -> T {
        match self.packing {
            None => f(key),
            Some(packing) => f(packing.pack(key).as_slice()),
        }
    }

    /// Returns a range of keys in the words of keys as the table keeps them, packed or not. The
    /// bounds are unpacked keys.
    #[cfg(any(test, feature = "experiments"))]
    pub(crate) fn kept_range(&self, from: Bound<&[u64]>, to: Bound<&[u64]>) -> WordRange {
        match self.packing {
            None => WordRange::between_words(from, to, self.key_words()),
            Some(packing) => {
                WordRange::between_words(from, to, packing.components()).packed(&packing)
            }
        }
    }

    /// Returns the number of words of a record.
    pub(crate) fn total_words(&self) -> usize {
        self.total_words
    }

    /// Returns all units.
    pub(crate) fn units(&self) -> Units {
        Units { split: self.split, left: u64::MAX >> (64 - self.units.len()) }
    }

    /// Returns the places of all units.
    pub(crate) fn placed_units(&self) -> &[PlacedUnit] {
        &self.units
    }

    /// Returns the units that guard the set `groups` of groups.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn units_of(&self, groups: u64) -> Units {
        Units { split: self.split, left: if self.split { groups } else { 1 } }
    }

    /// Returns the one unit that guards all groups of the set `groups`; `None` if the groups are in
    /// several units. The set is not empty.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn only_unit_of(&self, groups: u64) -> Option<PlacedUnit> {
        let is_one = !self.split || groups.is_power_of_two();
        is_one.then(|| self.placed(if self.split { groups.trailing_zeros() as usize } else { 0 }))
    }

    /// Returns the results of both [`Layout::units_of`] and [`Layout::only_unit_of`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn placed_units_of(&self, groups: u64) -> PlacedUnits {
        PlacedUnits { all: self.units_of(groups), only: self.only_unit_of(groups) }
    }

    /// Returns the units all of whose groups are in the set `frozen`, one bit each. The row has
    /// `count` groups.
    pub(crate) fn frozen_units(&self, frozen: u64, count: usize) -> u64 {
        match self.split {
            true => frozen,
            false => u64::from(frozen & all_groups(count) == all_groups(count)),
        }
    }

    /// Returns the unit that guards `group`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn unit_of(&self, group: u8) -> Unit {
        Unit { split: self.split, index: if self.split { group } else { 0 } }
    }

    /// Returns the place of unit `number`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn placed(&self, number: usize) -> PlacedUnit {
        debug_assert!(number < self.units.len());
        match self.first_units.get(number) {
            Some(&placed) => placed,
            None => self.units[number],
        }
    }

    /// Returns unit `unit` of `record`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at(&self, record: RecordAt, unit: Unit) -> CellAt {
        self.placed(unit.index()).of(record)
    }

    /// Returns the number of payload words of each unit.
    pub(crate) fn unit_words(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.units.iter().map(|unit| unit.place.words())
    }

    /// Returns all units of `record`, in the order of their numbers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn cells(
        &self,
        record: RecordAt,
    ) -> impl ExactSizeIterator<Item = CellAt> + Clone + use<'_> {
        self.units.iter().map(move |unit| unit.of(record))
    }

    /// Returns the unit of `record` that holds group 0.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn first_of(&self, record: RecordAt) -> CellAt {
        self.at(record, self.unit_of(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [Group; 3] = [Group::new("a", 2), Group::new("b", 1), Group::new("c", 4)];

    fn places(layout: &Layout) -> Vec<(usize, usize)> {
        layout.units.iter().map(|unit| (unit.place.cell(), unit.place.words())).collect()
    }

    #[test]
    fn each_group_follows_its_cell_when_split() {
        let layout = Layout::new(0, 1, None, &GROUPS, true, 2).unwrap();
        assert_eq!(places(&layout), [(1, 2), (5, 1), (8, 4)]);
        assert_eq!(layout.total_words(), 14);
        assert_eq!(layout.units_of(0b101).map(Unit::index).collect::<Vec<_>>(), [0, 2]);
        let unit = layout.unit_of(2);
        assert!(unit.holds(2) && !unit.holds(1));
        assert_eq!((unit.offset_of(&GROUPS, 2), unit.image_range(&GROUPS)), (0, (3, 4)));
        let start_of_only = |groups| layout.only_unit_of(groups).map(PlacedUnit::start);
        assert_eq!([0b1, 0b10, 0b100, 0b110].map(start_of_only), [Some(0), Some(2), Some(3), None]);
    }

    #[test]
    fn one_cell_guards_all_groups_without_splitting() {
        let layout = Layout::new(0, 3, None, &GROUPS, false, 1).unwrap();
        assert_eq!(places(&layout), [(3, 7)]);
        assert_eq!(layout.total_words(), 11);
        assert_eq!(layout.units_of(0b101).map(Unit::index).collect::<Vec<_>>(), [0]);
        let unit = layout.unit_of(2);
        assert!(unit.holds(2) && unit.holds(1));
        assert_eq!((unit.offset_of(&GROUPS, 2), unit.image_range(&GROUPS)), (3, (0, 7)));
        let start_of_only = |groups| layout.only_unit_of(groups).map(PlacedUnit::start);
        assert_eq!([0b1, 0b10, 0b110].map(start_of_only), [Some(0); 3]);
    }

    #[test]
    fn records_above_the_largest_size_are_refused() {
        let groups = [Group::new("huge", 65_533)];
        assert!(Layout::new(0, 1, None, &groups, true, 1).is_ok());
        assert_eq!(Layout::new(0, 2, None, &groups, true, 1).unwrap_err(), 65_536);
    }
}
