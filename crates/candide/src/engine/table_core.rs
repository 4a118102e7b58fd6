//! Tables and their secondary indexes, without the row type.

#![forbid(unsafe_code)]

use crate::index::{DeletedIndex, TableIndex};
use crate::memory::Slab;
use crate::record::Layout;
use crate::schema::Show;
use crate::schema::{IndexSpec, KEY_WORDS_MAX, Place};
use crate::stats::Tally;
use crate::sync::{AtomicU64, Ordering};
use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;

/// A table without its row type.
#[derive(Debug)]
pub struct TableCore {
    pub(crate) database: u64,
    pub(crate) number: u16,
    pub(crate) name: Box<str>,
    pub(crate) row_type: &'static str,
    pub(crate) groups: &'static [crate::schema::Group],
    pub(crate) layout: Layout,
    /// Keys as text; of the entries of an index, the part that is the index's.
    pub(crate) show_key: Show,
    pub(crate) index: TableIndex,
    pub(crate) records: Arc<Slab>,
    pub(crate) indexes: Indexes,
    /// Records in the index.
    pub(crate) linked: Tally,
    /// The memory of old versions; `None` if the protocol keeps none.
    pub(crate) versions: Option<VersionTable>,
}

impl TableCore {
    /// Returns the index of deleted records that snapshots see, `None` if the protocol needs none.
    #[inline]
    pub(crate) fn deleted_index(&self) -> Option<&DeletedIndex> {
        self.versions.as_ref()?.deleted_index.as_ref()
    }

    /// Returns the slab of versions of a size.
    #[inline]
    pub(crate) fn version_slab(&self, size: BlockSize) -> &Arc<Slab> {
        let versions = self.versions.as_ref().expect("made for every protocol with versions");
        match size {
            BlockSize::Short => versions.short.as_ref().expect("made where versions may be short"),
            BlockSize::Whole => &versions.whole,
        }
    }

    /// Checks that a key has as many words as its type says: the index trusts it.
    ///
    /// # Panics
    /// If it has not, which is an error in an implementation of `Key`.
    #[inline(always)]
    pub(crate) fn check_key(&self, key: &[u64]) {
        assert!(
            key.len() == self.layout.key_words(),
            "`Key::words` gives another number of words than `Key::WORDS`"
        );
    }
}

/// Appends the index key of a row, given its primary key as the table keeps it and its other words.
type KeyOf = dyn Fn(&[u64], &[u64], &mut Vec<u64>) + Send + Sync;

/// One secondary index.
pub(crate) struct IndexCore {
    pub(crate) name: Box<str>,
    pub(crate) unique: bool,
    /// Whether an ordered index was requested. The entries may be ordered even if it was not.
    ordered: bool,
    /// The columns of the index key, and the groups they lie in.
    pub(crate) columns: Box<[Place]>,
    pub(crate) groups: u64,
    /// The number of words of the index key.
    pub(crate) key_words: usize,
    pub(crate) key_of: Box<KeyOf>,
    pub(crate) origin: KeyOrigin,
    pub(crate) entries: Arc<TableCore>,
    /// The number of the index among the indexes of its table.
    pub(crate) number: usize,
    /// The protocol's timestamp from which the index has all entries.
    pub(crate) since: AtomicU64,
    /// The protocol's timestamp from which all its entries are right.
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

/// The plan of an index, before there are entries.
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

/// The origin of an index key, besides the columns: the type of the projection, and the addresses
/// of the functions that take parts of the primary key. If these and the columns are equal, so are
/// the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyOrigin {
    pub(crate) projection: TypeId,
    pub(crate) key_parts: Box<[usize]>,
}

impl IndexPlan {
    /// Returns the plan of an index that a row type declares.
    pub(crate) fn of_spec(spec: &IndexSpec) -> IndexPlan {
        let IndexSpec { name, unique, ordered, columns, key_words, show_key, key } = *spec;
        let key_of = Box::new(move |_: &[u64], words: &[u64], index_key: &mut Vec<u64>| {
            key(words, index_key)
        });
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

    /// Returns the numbers of words of an entry's key and payload, for rows whose key has
    /// `primary_words`.
    #[inline]
    pub(crate) fn entry_words(&self, primary_words: usize) -> (usize, usize) {
        if self.unique {
            (self.key_words, primary_words)
        } else {
            (self.key_words + primary_words, 1)
        }
    }

    /// Returns whether the key of its entries is short enough to be stored.
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
    /// Appends the key of a row's entry.
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

/// The most indexes a table can have, dropped ones of other names included.
pub(crate) const INDEXES_MAX: usize = 32;

/// The secondary indexes of a table.
///
/// An index that is added to a table with rows passes three stages: all writers *keep* (maintain)
/// it; it is *enforced*, if it is unique; it can be *read*. A stage begins only after the end of
/// all transactions that began before the previous stage.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    slots: [OnceLock<IndexCore>; INDEXES_MAX],
    /// One bit for each slot. Written while the indexes of a table change, read by every write.
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

    /// Returns whether there is no index to keep.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a transaction that has to know was pinned after the bit was set, by the wait
        // between the stages.
        self.kept.load(Ordering::Relaxed) == 0
    }

    /// Returns the indexes to keep.
    #[inline]
    pub(crate) fn kept(&self) -> impl Iterator<Item = &IndexCore> {
        let mut left = self.kept.load(Ordering::Acquire); // E18
        std::iter::from_fn(move || {
            let number = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            self.slots.get(number)?.get()
        })
    }

    /// Returns the groups in which the index keys of a row lie; at least one, since any group shows
    /// whether the row exists.
    #[inline]
    pub(crate) fn groups(&self) -> u64 {
        match self.kept().fold(0, |groups, index| groups | index.groups) {
            0 => 1,
            groups => groups,
        }
    }

    /// Returns whether any index key has a part at this place.
    #[inline]
    pub(crate) fn covers(&self, place: Place) -> bool {
        self.kept().any(|index| index.columns.iter().any(|column| column.overlaps(place)))
    }

    /// Returns whether an index is in a stage. A reader that sees the stage also sees the timestamp
    /// stored before it.
    #[inline]
    pub(crate) fn is_at(&self, index: &IndexCore, stage: Stage) -> bool {
        self.word(stage).load(Ordering::Acquire) & 1 << index.number != 0 // E18
    }

    /// Sets or clears a stage of an index.
    #[inline]
    pub(crate) fn set(&self, index: &IndexCore, stage: Stage, on: bool) {
        let bit = 1 << index.number;
        // Release: a reader that sees the bit sees the slot and its timestamps (E18).
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

    /// Returns a dropped index that matches the plan.
    pub(crate) fn dropped_like(&self, plan: &IndexPlan) -> Option<&IndexCore> {
        self.slots.iter().filter_map(OnceLock::get).find(|index| {
            !self.is_at(index, Stage::Kept)
                && index.name == plan.name
                && index.unique == plan.unique
                && index.columns == plan.columns
                && index.origin == plan.origin
                && index.key_words == plan.key_words
                && index.ordered == plan.ordered
        })
    }

    /// Returns the number of the next new index; `None` if the table has the maximum of indexes.
    /// The caller holds the lock under which indexes are added.
    #[inline]
    pub(crate) fn next_number(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.get().is_none())
    }

    /// Adds an index, at no stage yet.
    #[inline]
    pub(crate) fn add(&self, index: IndexCore) -> &IndexCore {
        self.slots[index.number].get_or_init(|| index)
    }
}

/// The place of a table's old versions.
#[derive(Debug)]
pub(crate) struct VersionTable {
    pub(crate) whole: Arc<Slab>,
    /// The slab of short versions, if the protocol has them. It may be the same slab as the one
    /// above.
    pub(crate) short: Option<Arc<Slab>>,
    /// The index of deleted records, if keys are in order and it is the protocol's to have one.
    pub(crate) deleted_index: Option<DeletedIndex>,
}

impl VersionTable {
    /// Returns the bytes that are taken for versions apart from their records.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let short = self.short.iter().filter(|short| !Arc::ptr_eq(short, &self.whole));
        std::iter::once(&self.whole).chain(short).map(|slab| slab.reserved_bytes()).sum()
    }
}

/// The size of a version's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSize {
    /// It has a few words of a unit.
    Short = 0,
    /// It has room for all of any unit of the table.
    Whole = 1,
}
