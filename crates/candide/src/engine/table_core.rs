//! Tables and their secondary indexes, without the row type.

#![forbid(unsafe_code)]

use super::index_key::{IndexKey, TooLong};
use super::name::Name;
use crate::error::Abort;
use crate::index::{DeletedIndex, TableIndex, check_width};
use crate::memory::Slab;
use crate::record::Layout;
use crate::schema::{
    FieldInfo, IndexSpec, KEY_WORDS_MAX, KeyPacking, Pinned, Place, RowType, Show, start_of,
};
use crate::stats::Tally;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, process};
use candide_log::schema::FieldSchema;
use crossbeam_utils::CachePadded;
use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;

/// A table without its row type.
#[derive(Debug)]
pub struct TableCore {
    pub(crate) owner: Owner,
    pub(crate) number: u16,
    pub(crate) log_number: LogNumber,
    /// Locked while a recovered table gets its row type, is replaced by a table of other rows, or
    /// is renamed or dropped.
    pub(crate) adoption: Mutex<()>,
    pub(crate) name: Name,
    pub(crate) row_type: &'static str,
    pub(crate) groups: &'static [crate::schema::Group],
    pub(crate) layout: Layout,
    /// Formats a key as text; for the entries of an index, only the words of the index key.
    pub(crate) show_key: ShowKey,
    /// The parts of the key, for messages; none if the row type does not describe them.
    pub(crate) key_parts: OnceLock<Box<[FieldSchema]>>,
    /// The fields of the row type, for messages, once it is known; none if it does not describe
    /// them.
    pub(crate) fields: OnceLock<&'static [FieldInfo]>,
    pub(crate) index: TableIndex,
    pub(crate) records: Arc<Slab>,
    /// Padded, because each link loads these words, which seldom change.
    pub(crate) at_links: CachePadded<AtLinks>,
    pub(crate) indexes: Indexes,
    pub(crate) restrictions: Restrictions,
    /// The number of records in the index. Sessions keep their parts when another table gets the
    /// number of this one.
    pub(crate) linked: Arc<Tally>,
    /// The slabs and the index for old versions; `None` if the protocol keeps no versions.
    pub(crate) versions: Option<VersionTable>,
    /// Whether each row is one word, which names a value (`record/value.rs`).
    pub(crate) has_values: bool,
}

/// The writes that a table refuses. If there are any, `indexes` says that writes are not plain.
#[derive(Debug, Default)]
pub(crate) struct Restrictions {
    /// Whether no row can be deleted.
    permanent: AtomicBool,
    /// The groups that cannot be changed, one bit each.
    frozen: AtomicU64,
}

impl Restrictions {
    pub(crate) fn new(is_permanent: bool, frozen: u64) -> Restrictions {
        Restrictions { permanent: AtomicBool::new(is_permanent), frozen: AtomicU64::new(frozen) }
    }

    pub(crate) fn is_permanent(&self) -> bool {
        // Relaxed: rows become permanent before a program can delete any.
        self.permanent.load(Ordering::Relaxed)
    }

    /// Returns the groups that cannot be changed, one bit each.
    pub(crate) fn frozen(&self) -> u64 {
        // Relaxed: a change of the groups waits for the transactions that may have loaded them
        // before.
        self.frozen.load(Ordering::Relaxed)
    }

    /// Refuses a change of a group in `groups` that is frozen.
    pub(crate) fn check_change(&self, groups: u64) -> Result<(), Abort> {
        if self.frozen() & groups == 0 { Ok(()) } else { Err(Abort::Frozen) }
    }
}

/// The database to which a table belongs: its identifier, or zero once the table has been dropped.
/// A transaction that must see a change was pinned after it.
#[derive(Debug)]
pub(crate) struct Owner(process::AtomicU64);

impl Owner {
    pub(crate) fn new(database: u64) -> Owner {
        Owner(process::AtomicU64::new(database))
    }

    /// Returns whether the table belongs to this database, and has not been dropped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is(&self, database: u64) -> bool {
        // Relaxed: the call that drops a table waits for all transactions that may not see that.
        self.0.load(Ordering::Relaxed) == database
    }

    /// Returns whether the table has been dropped.
    pub(crate) fn is_none(&self) -> bool {
        self.is(0)
    }

    /// Gives the table to this database, or to none.
    pub(crate) fn set(&self, database: Option<u64>) {
        self.0.store(database.unwrap_or(0), Ordering::Relaxed);
    }
}

/// The number of a table in the log, if the table is logged.
#[derive(Debug)]
pub(crate) struct LogNumber(process::AtomicU32);

impl LogNumber {
    const NONE: u32 = u32::MAX;

    pub(crate) fn new(number: Option<u16>) -> LogNumber {
        LogNumber(process::AtomicU32::new(number.map_or(LogNumber::NONE, u32::from)))
    }

    /// Returns the number; `None` if the table is not logged.
    pub(crate) fn get(&self) -> Option<u16> {
        // Relaxed: the number of a table in use does not change.
        u16::try_from(self.0.load(Ordering::Relaxed)).ok()
    }

    /// Sets the number. No transaction knows the table yet.
    pub(crate) fn set(&self, number: u16) {
        self.0.store(number.into(), Ordering::Relaxed);
    }

    /// Has the table no longer logged. No transaction is writing it.
    pub(crate) fn clear(&self) {
        self.0.store(LogNumber::NONE, Ordering::Relaxed);
    }
}

/// The words that a session loads when it links a record.
#[derive(Debug)]
pub(crate) struct AtLinks {
    /// The flags of the TID words in new records, by the table's policy.
    pub(crate) new_record_flags: AtomicU64,
    /// The number of sessions that sleep until a record is linked.
    pub(crate) watchers: AtomicU64,
}

impl AtLinks {
    pub(crate) fn new(new_record_flags: u64) -> CachePadded<AtLinks> {
        let new_record_flags = AtomicU64::new(new_record_flags);
        CachePadded::new(AtLinks { new_record_flags, watchers: AtomicU64::new(0) })
    }
}

/// The function that formats the keys of a table. A recovered table gets it when the program names
/// the table's row type.
#[derive(Debug)]
pub(crate) struct ShowKey {
    first: Show,
    later: OnceLock<Show>,
}

impl ShowKey {
    pub(crate) fn new(show: Show) -> ShowKey {
        ShowKey { first: show, later: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Show {
        self.later.get().copied().unwrap_or(self.first)
    }

    /// Replaces the function, once.
    pub(crate) fn set(&self, show: Show) {
        let _ = self.later.set(show);
    }
}

impl TableCore {
    /// Returns whether the table has columns that updates must not change.
    #[inline]
    pub(crate) fn may_refuse_changes(&self) -> bool {
        self.restrictions.frozen() != 0 || !self.indexes.is_empty()
    }

    /// Returns the index of deleted records that snapshots see; `None` if the table has none.
    #[inline]
    pub(crate) fn deleted_index(&self) -> Option<&DeletedIndex> {
        self.versions.as_ref()?.deleted_index.as_ref()
    }

    /// Returns whether sessions sleep until a record is linked. The caller is linking a record, and
    /// has locked the node by an exchange.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_watched(&self) -> bool {
        // Relaxed: the exchange of the node's version orders this load (E30).
        self.at_links.watchers.load(Ordering::Relaxed) != 0 // WT3
    }

    /// Returns the slab for versions of the given block size.
    #[inline]
    pub(crate) fn version_slab(&self, size: BlockSize) -> &Arc<Slab> {
        let versions = self.versions.as_ref().expect("made for every protocol with versions");
        match size {
            BlockSize::Short => versions.short.as_ref().expect("made where versions may be short"),
            BlockSize::Whole => &versions.whole,
        }
    }

    /// Returns the names of the parts of a key, with their values as text. `None` if the row type
    /// does not describe them, or words are missing.
    #[cold]
    pub(crate) fn named_key(&self, key: &[u64]) -> Option<Vec<(&str, String)>> {
        let parts = self.key_parts.get().filter(|parts| !parts.is_empty())?;
        let parts = parts.iter();
        parts.map(|part| Some((&part.name[..], part.of_key(key).ok()?.to_string()))).collect()
    }

    /// Returns the field that has the first bit of a number in a unit: its word there, and its bit.
    #[cold]
    pub(crate) fn column_at(&self, unit: u8, word: u16, shift: u8) -> Option<&'static FieldInfo> {
        let fields = self.fields.get()?.iter();
        fields.into_iter().find(|field| {
            field.place.is_some_and(|place| {
                let group = usize::from(place.group);
                let (its, first) = match self.layout.is_split() {
                    true => (place.group, 0),
                    false => (0, start_of(self.groups, group)),
                };
                let words = first + usize::from(place.word)..;
                let words = words.start..words.start + usize::from(place.words);
                let has_bit = place.mask << place.shift >> shift & 1 != 0;
                its == unit && words.contains(&usize::from(word)) && has_bit
            })
        })
    }

    /// Returns the unit of a column, its first word there, and its first bit.
    pub(crate) fn number_at(&self, place: Place) -> (u8, u16, u8) {
        let (unit, first) = match self.layout.is_split() {
            true => (place.group, 0),
            false => (0, start_of(self.groups, usize::from(place.group))),
        };
        (unit, first as u16 + place.word, place.shift)
    }

    /// Makes the rows permanent.
    pub(crate) fn make_permanent(&self) {
        self.restrictions.permanent.store(true, Ordering::Relaxed);
        self.indexes.note_restrictions();
    }

    /// Lets rows be deleted and changed again. No program uses the table any more.
    pub(crate) fn lift_restrictions(&self) {
        self.restrictions.permanent.store(false, Ordering::Relaxed);
        self.restrictions.frozen.store(0, Ordering::Relaxed);
    }

    /// Makes `frozen` the groups that cannot be changed. The rows are permanent.
    pub(crate) fn set_frozen(&self, frozen: u64) {
        self.restrictions.frozen.store(frozen, Ordering::Relaxed);
        self.indexes.note_restrictions();
    }

    /// Gives the table and its entries of indexes to this database, or to none.
    pub(crate) fn set_owner(&self, database: Option<u64>) {
        self.owner.set(database);
        self.indexes.all().for_each(|index| index.entries.owner.set(database));
    }

    /// Checks that the table has not been dropped.
    pub(crate) fn check_in_use(&self) -> Result<(), Abort> {
        if self.owner.is_none() { Err(Abort::TableDropped) } else { Ok(()) }
    }

    /// Checks that a key has the number of words that its type declares ([`check_width`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn check_key(&self, key: &[u64]) {
        check_width(key, self.layout.key_words());
    }
}

/// One secondary index.
pub(crate) struct IndexCore {
    pub(crate) name: Box<str>,
    pub(crate) unique: bool,
    /// Whether an ordered index was requested. If not, the entries may be ordered nevertheless.
    ordered: bool,
    /// The columns of the index key.
    pub(crate) columns: Box<[Place]>,
    pub(crate) groups: u64,
    /// The number of words of the index key.
    pub(crate) key_words: usize,
    pub(crate) key: IndexKey,
    pub(crate) origin: KeyOrigin,
    pub(crate) entries: Arc<TableCore>,
    /// The index's number among the indexes of its table.
    pub(crate) number: usize,
    /// The timestamp of the protocol since which the index has had all entries.
    pub(crate) since: AtomicU64,
    /// The timestamp of the protocol since which all entries of the index have been right.
    pub(crate) right_since: AtomicU64,
}

impl fmt::Debug for IndexCore {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexCore")
            .field("name", &self.name)
            .field("unique", &self.unique)
            .finish_non_exhaustive()
    }
}

impl IndexCore {
    /// Returns whether this is the index that `plan` plans.
    fn is_like(&self, plan: &IndexPlan) -> bool {
        self.name == plan.name
            && self.unique == plan.unique
            && self.columns == plan.columns
            && self.origin == plan.origin
            && self.key_words == plan.key_words
            && self.ordered == plan.ordered
    }
}

/// The plan of an index that has no table of entries yet.
pub(crate) struct IndexPlan {
    pub(crate) name: Box<str>,
    pub(crate) unique: bool,
    pub(crate) ordered: bool,
    pub(crate) columns: Box<[Place]>,
    pub(crate) key_words: usize,
    pub(crate) show_key: Show,
    pub(crate) key: IndexKey,
    pub(crate) origin: KeyOrigin,
}

/// The origin of an index key apart from the columns: the type of the projection, and the addresses
/// of the functions that take parts of the primary key; or the row type that declares it. Two
/// indexes with equal origins and columns have equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyOrigin {
    pub(crate) projection: TypeId,
    pub(crate) key_parts: Box<[usize]>,
}

impl IndexPlan {
    /// Returns the plan of an index that the row type `row` declares. `packing` is the packing of
    /// the table's keys; `None` if they are not packed.
    pub(crate) fn of_spec(
        spec: &IndexSpec,
        packing: Option<KeyPacking>,
        row: &RowType,
    ) -> IndexPlan {
        let IndexSpec { name, unique, ordered, columns, key_words, show_key, .. } = *spec;
        // Two types may declare indexes of the same name and columns with other keys.
        let origin = KeyOrigin { projection: row.id, key_parts: Box::default() };
        IndexPlan {
            name: name.into(),
            unique,
            ordered,
            columns: columns.into(),
            key_words,
            show_key,
            key: IndexKey::of_spec(spec, packing, row),
            origin,
        }
    }

    /// Returns the number of words of an entry's key, and that of its payload. `primary_words` is
    /// the number of words of the rows' primary key.
    #[inline]
    pub(crate) fn entry_words(&self, primary_words: usize) -> (usize, usize) {
        if self.unique {
            (self.key_words, primary_words)
        } else {
            (self.key_words + primary_words, 1)
        }
    }

    /// Returns whether the key of the index's entries is short enough to be stored.
    #[inline]
    pub(crate) fn fits(&self, primary_words: usize) -> bool {
        self.key_words > 0 && self.entry_words(primary_words).0 <= KEY_WORDS_MAX
    }

    pub(crate) fn with_entries(self, number: usize, entries: Arc<TableCore>) -> IndexCore {
        let IndexPlan { name, unique, ordered, columns, key_words, key, origin, .. } = self;
        let groups = columns.iter().fold(0, |groups, place| groups | 1 << place.group);
        IndexCore {
            name,
            unique,
            ordered,
            columns,
            groups,
            key_words,
            key,
            origin,
            entries,
            number,
            since: AtomicU64::new(0),
            right_since: AtomicU64::new(0),
        }
    }
}

impl IndexCore {
    /// Appends the key of a row's index entry to `key`. The words of the row's columns have been
    /// read in this pin, or staged by the attempt.
    ///
    /// # Errors
    /// [`TooLong`] if the row can have no entry. Nothing is appended then.
    pub(crate) fn entry_key<'a>(
        &self,
        primary: &[u64],
        words: &'a [u64],
        pin: Pinned<'a>,
        key: &mut Vec<u64>,
    ) -> Result<(), TooLong> {
        let begin = key.len();
        self.key.append(primary, words, pin, key)?;
        assert!(
            key.len() - begin == self.key_words,
            "an index key has as many words as its index says"
        );
        if !self.unique {
            key.extend_from_slice(primary);
        }
        Ok(())
    }
}

/// The largest number of indexes of a table. Dropped indexes count, too. But a new index that
/// equals a dropped one takes the dropped one's place.
pub(crate) const INDEXES_MAX: usize = 32;

/// The bit, among those of the indexes that writers keep, that says that the table refuses some
/// writes. So a plain write looks at one word. It is not the bit of an index.
const RESTRICTED: u64 = 1 << 63;
const _: () = assert!(INDEXES_MAX < 63);

/// The secondary indexes of a table.
///
/// An index that is added to a table with rows goes through three stages. First, all writers *keep*
/// the index. Then the index is *enforced*, if it is unique. Finally, the index can be *read*. Each
/// stage begins only when every running transaction has begun after the preceding stage did.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    slots: [OnceLock<IndexCore>; INDEXES_MAX],
    /// The slots of the indexes in the stage [`Stage::Kept`], one bit each, and [`RESTRICTED`].
    /// Written when the indexes of a table change; read by every write.
    kept: AtomicU64,
    enforced: AtomicU64,
    readable: AtomicU64,
    /// The slots of the indexes that the row type declares, if these are not the first slots in
    /// their order: before a table from files got this type, indexes of another one were begun.
    declared: OnceLock<Box<[u8]>>,
}

/// A stage of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Kept,
    Enforced,
    Readable,
}

impl Indexes {
    /// Returns no indexes. `is_restricted` is whether the table refuses some writes.
    pub(crate) fn new(is_restricted: bool) -> Indexes {
        let kept = AtomicU64::new(if is_restricted { RESTRICTED } else { 0 });
        Indexes { kept, ..Indexes::default() }
    }

    #[inline]
    fn word(&self, stage: Stage) -> &AtomicU64 {
        match stage {
            Stage::Kept => &self.kept,
            Stage::Enforced => &self.enforced,
            Stage::Readable => &self.readable,
        }
    }

    /// Returns whether the table has no index to keep, and refuses no writes ([`Restrictions`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn writes_are_plain(&self) -> bool {
        // Relaxed: between two stages, the thread that adds the index waits for older transactions.
        // So a transaction that must see an index's bit was pinned after that bit was set.
        self.kept.load(Ordering::Relaxed) == 0
    }

    /// Returns whether the table has no index to keep.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.load(Ordering::Relaxed) & !RESTRICTED == 0
    }

    /// Notes that the table refuses some writes.
    fn note_restrictions(&self) {
        self.kept.fetch_or(RESTRICTED, Ordering::Relaxed);
    }

    /// Returns the indexes that writers keep.
    #[inline]
    pub(crate) fn kept(&self) -> impl Iterator<Item = &IndexCore> {
        let mut left = self.kept.load(Ordering::Acquire); // E18
        std::iter::from_fn(move || {
            let number = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            self.slots.get(number)?.get()
        })
    }

    /// Returns the groups in which the index keys of a row lie, one bit each. At least one bit is
    /// set, since any group shows whether the row exists.
    #[inline]
    pub(crate) fn groups(&self) -> u64 {
        match self.kept().fold(0, |groups, index| groups | index.groups) {
            0 => 1,
            groups => groups,
        }
    }

    /// Returns whether a column of any kept index overlaps `place`.
    #[inline]
    pub(crate) fn covers(&self, place: Place) -> bool {
        self.kept().any(|index| index.columns.iter().any(|column| column.overlaps(place)))
    }

    /// Returns whether an index is in the given stage. If so, the caller also sees the timestamps
    /// that were stored before the stage was set.
    #[inline]
    pub(crate) fn is_at(&self, index: &IndexCore, stage: Stage) -> bool {
        self.word(stage).load(Ordering::Acquire) & 1 << index.number != 0 // E18
    }

    /// Sets or clears a stage of an index.
    #[inline]
    pub(crate) fn set(&self, index: &IndexCore, stage: Stage, on: bool) {
        let bit = 1 << index.number;
        // Release: a reader that sees the bit also sees the slot and its timestamps (E18).
        if on {
            self.word(stage).fetch_or(bit, Ordering::Release);
        } else {
            self.word(stage).fetch_and(!bit, Ordering::Release);
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&IndexCore> {
        self.slots.get(number)?.get()
    }

    /// Returns all indexes, dropped ones included.
    pub(crate) fn all(&self) -> impl Iterator<Item = &IndexCore> {
        self.slots.iter().filter_map(OnceLock::get)
    }

    /// Returns a dropped index that matches `plan`; `None` if there is none.
    pub(crate) fn dropped_like(&self, plan: &IndexPlan) -> Option<&IndexCore> {
        self.all().find(|index| !self.is_at(index, Stage::Kept) && index.is_like(plan))
    }

    /// Returns an index that matches `plan` and can be read; `None` if there is none.
    pub(crate) fn readable_like(&self, plan: &IndexPlan) -> Option<&IndexCore> {
        self.all().find(|index| self.is_at(index, Stage::Readable) && index.is_like(plan))
    }

    /// Returns the number for the next new index; `None` if all slots are taken. The caller
    /// prevents other threads from adding an index meanwhile.
    #[inline]
    pub(crate) fn next_number(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.get().is_none())
    }

    /// Returns the slot of the index that the row type declares at this place.
    #[inline]
    pub(crate) fn declared(&self, place: usize) -> usize {
        self.declared.get().map_or(place, |slots| slots[place].into())
    }

    /// Returns whether the row type, which declares `count` indexes, declares the one in this slot.
    pub(crate) fn is_declared(&self, slot: usize, count: usize) -> bool {
        (0..count).any(|place| self.declared(place) == slot)
    }

    /// Notes the slots of the indexes that the row type declares, once.
    pub(crate) fn declare(&self, slots: &[usize]) {
        if !slots.iter().copied().eq(0..slots.len()) {
            let _ = self.declared.set(slots.iter().map(|slot| *slot as u8).collect());
        }
    }

    /// Adds an index. The index is in no stage yet.
    #[inline]
    pub(crate) fn add(&self, index: IndexCore) -> &IndexCore {
        self.slots[index.number].get_or_init(|| index)
    }
}

/// The slabs and the index for a table's old versions.
#[derive(Debug)]
pub(crate) struct VersionTable {
    pub(crate) whole: Arc<Slab>,
    /// The slab of versions with only a few words of a unit; `None` if the protocol has no such
    /// versions. This slab may be the same as `whole`.
    pub(crate) short: Option<Arc<Slab>>,
    /// The index of deleted records; `None` if keys are not ordered or the protocol keeps no such
    /// index.
    pub(crate) deleted_index: Option<DeletedIndex>,
}

impl VersionTable {
    /// Returns the number of bytes reserved for versions that are stored outside of records.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let short = self.short.iter().filter(|short| !Arc::ptr_eq(short, &self.whole));
        std::iter::once(&self.whole).chain(short).map(|slab| slab.reserved_bytes()).sum()
    }
}

/// The size of a version's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSize {
    /// The block has room for a few words of a unit.
    Short = 0,
    /// The block has room for all words of any unit of the table.
    Whole = 1,
}
