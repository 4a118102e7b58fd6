//! Tables and their secondary indexes, without the row type.

#![forbid(unsafe_code)]

use super::name::Name;
use crate::index::{DeletedIndex, TableIndex, check_width};
use crate::memory::Slab;
use crate::record::Layout;
use crate::schema::{IndexSpec, KEY_WORDS_MAX, KeyPacking, Place, Show};
use crate::stats::Tally;
use crate::sync::{AtomicU64, Ordering};
use candide_log::schema::FieldSchema;
use crossbeam_utils::CachePadded;
use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;

/// A table without its row type.
#[derive(Debug)]
pub struct TableCore {
    pub(crate) database: u64,
    pub(crate) number: u16,
    /// The table's number in the log; `None` if the table is not logged.
    pub(crate) log_number: Option<u16>,
    pub(crate) name: Name,
    pub(crate) row_type: &'static str,
    pub(crate) groups: &'static [crate::schema::Group],
    pub(crate) layout: Layout,
    /// Formats a key as text; for the entries of an index, only the words of the index key.
    pub(crate) show_key: ShowKey,
    /// The parts of the key, for messages; none if the row type does not describe them.
    pub(crate) key_parts: OnceLock<Box<[FieldSchema]>>,
    pub(crate) index: TableIndex,
    pub(crate) records: Arc<Slab>,
    /// Padded, because each link loads these words, which seldom change.
    pub(crate) at_links: CachePadded<AtLinks>,
    pub(crate) indexes: Indexes,
    /// The number of records in the index.
    pub(crate) linked: Tally,
    /// The slabs and the index for old versions; `None` if the protocol keeps no versions.
    pub(crate) versions: Option<VersionTable>,
    /// Whether each row is one word, which names a value (`record/value.rs`).
    pub(crate) has_values: bool,
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
    /// Returns the index of deleted records that snapshots see; `None` if the table has none.
    #[inline]
    pub(crate) fn deleted_index(&self) -> Option<&DeletedIndex> {
        self.versions.as_ref()?.deleted_index.as_ref()
    }

    /// Returns whether sessions sleep until a record is linked. The caller is linking a record, and
    /// has locked the node by an exchange.
    #[inline(always)]
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

    /// Checks that a key has the number of words that its type declares ([`check_width`]).
    #[inline(always)]
    pub(crate) fn check_key(&self, key: &[u64]) {
        check_width(key, self.layout.key_words());
    }
}

/// A function that appends the index key of a row to a vector. Further arguments are the row's
/// primary key, as the table stores it, and the row's other words.
type KeyOf = dyn Fn(&[u64], &[u64], &mut Vec<u64>) + Send + Sync;

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
    pub(crate) key_of: Box<KeyOf>,
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

/// The plan of an index that has no table of entries yet.
pub(crate) struct IndexPlan {
    pub(crate) name: Box<str>,
    pub(crate) unique: bool,
    pub(crate) ordered: bool,
    pub(crate) columns: Box<[Place]>,
    pub(crate) key_words: usize,
    pub(crate) show_key: Show,
    pub(crate) key_of: Box<KeyOf>,
    pub(crate) origin: KeyOrigin,
}

/// The origin of an index key apart from the columns: the type of the projection, and the addresses
/// of the functions that take parts of the primary key. Two indexes with equal origins and columns
/// have equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyOrigin {
    pub(crate) projection: TypeId,
    pub(crate) key_parts: Box<[usize]>,
}

impl IndexPlan {
    /// Returns the plan of an index that a row type declares. `packing` is the packing of the
    /// table's keys; `None` if they are not packed.
    pub(crate) fn of_spec(spec: &IndexSpec, packing: Option<KeyPacking>) -> IndexPlan {
        let IndexSpec { name, unique, ordered, columns, key_words, show_key, key, .. } = *spec;
        let key_of: Box<KeyOf> = match packing {
            None => Box::new(key),
            Some(packing) => Box::new(move |primary, words, index_key| {
                key(packing.unpack(primary).as_slice(), words, index_key)
            }),
        };
        // A declared index is never dropped, so its origin is never compared.
        let origin = KeyOrigin { projection: TypeId::of::<()>(), key_parts: Box::default() };
        IndexPlan {
            name: name.into(),
            unique,
            ordered,
            columns: columns.into(),
            key_words,
            show_key,
            key_of,
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
        let IndexPlan { name, unique, ordered, columns, key_words, key_of, origin, .. } = self;
        let groups = columns.iter().fold(0, |groups, place| groups | 1 << place.group);
        IndexCore {
            name,
            unique,
            ordered,
            columns,
            groups,
            key_words,
            key_of,
            origin,
            entries,
            number,
            since: AtomicU64::new(0),
            right_since: AtomicU64::new(0),
        }
    }
}

impl IndexCore {
    /// Appends the key of a row's index entry to `key`.
    pub(crate) fn entry_key(&self, primary: &[u64], words: &[u64], key: &mut Vec<u64>) {
        let begin = key.len();
        (self.key_of)(primary, words, key);
        assert!(
            key.len() - begin == self.key_words,
            "an index key has as many words as its index says"
        );
        if !self.unique {
            key.extend_from_slice(primary);
        }
    }
}

/// The largest number of indexes of a table. Dropped indexes count, too. But a new index that
/// equals a dropped one takes the dropped one's place.
pub(crate) const INDEXES_MAX: usize = 32;

/// The secondary indexes of a table.
///
/// An index that is added to a table with rows goes through three stages. First, all writers *keep*
/// the index. Then the index is *enforced*, if it is unique. Finally, the index can be *read*. Each
/// stage begins only when every running transaction has begun after the preceding stage did.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    slots: [OnceLock<IndexCore>; INDEXES_MAX],
    /// The slots of the indexes in the stage [`Stage::Kept`], one bit each. Written when the
    /// indexes of a table change; read by every write.
    kept: AtomicU64,
    enforced: AtomicU64,
    readable: AtomicU64,
}

/// A stage of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Kept,
    Enforced,
    Readable,
}

impl Indexes {
    #[inline]
    fn word(&self, stage: Stage) -> &AtomicU64 {
        match stage {
            Stage::Kept => &self.kept,
            Stage::Enforced => &self.enforced,
            Stage::Readable => &self.readable,
        }
    }

    /// Returns whether the table has no index to keep.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: between two stages, the thread that adds the index waits for older transactions.
        // So a transaction that must see an index's bit was pinned after that bit was set.
        self.kept.load(Ordering::Relaxed) == 0
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
        self.all().find(|index| {
            !self.is_at(index, Stage::Kept)
                && index.name == plan.name
                && index.unique == plan.unique
                && index.columns == plan.columns
                && index.origin == plan.origin
                && index.key_words == plan.key_words
                && index.ordered == plan.ordered
        })
    }

    /// Returns the number for the next new index; `None` if all slots are taken. The caller
    /// prevents other threads from adding an index meanwhile.
    #[inline]
    pub(crate) fn next_number(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.get().is_none())
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
