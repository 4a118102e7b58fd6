//! The index of one table: a hash index or an ordered index.

#![forbid(unsafe_code)]

use super::hash::{BucketCursor, HashIndex};
use super::node::{Advance, Supplies};
use super::node::{Found, Linked, NodeAt, Retire};
use super::ordered::{self, Direction, OrderedIndex, Place, Start};
use crate::memory::{OutOfMemory, Slab};
use crate::record::RecordAt;
use crate::schema::WordRange;
use crate::sync::prefetch;
use std::sync::Arc;

/// Checks that a key has the number of words that its type declares. Indexes rely on this.
///
/// # Panics
/// If the number of words differs. The cause is an error in an implementation of `Key`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn check_width(key: &[u64], width: usize) {
    assert!(key.len() == width, "`Key::words` gives another number of words than `Key::WORDS`");
}

/// An index of either kind.
#[derive(Debug)]
pub(crate) enum TableIndex {
    Hash(HashIndex),
    Ordered(OrderedIndex),
}

/// A cursor through a range of keys. The variant determines the direction of the cursor, so a step
/// in one direction takes no records of a cursor in the other, and needs no further check.
#[derive(Debug)]
pub(crate) enum Cursor {
    /// Goes through buckets, in no particular order. The direction counts as forward.
    Buckets(BucketCursor),
    Forward(ordered::Cursor),
    Reverse(ordered::Cursor),
}

impl Cursor {
    /// Returns the next record if it can be returned without reading more of the index, and the
    /// cursor goes in the wanted direction. If `is_ordered`, the cursor is known to go through an
    /// ordered index.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at_hand<const FORWARD: bool>(
        cursor: &mut Option<Cursor>,
        is_ordered: bool,
    ) -> Option<RecordAt> {
        match cursor {
            Some(Cursor::Forward(cursor)) if FORWARD => cursor.at_hand(),
            Some(Cursor::Buckets(cursor)) if FORWARD && !is_ordered => cursor.at_hand(),
            Some(Cursor::Reverse(cursor)) if !FORWARD => cursor.at_hand(),
            _ => None,
        }
    }

    /// Returns the place that the cursor has reached in a hash index; zero in an ordered index.
    pub(crate) fn place(&self) -> usize {
        if let Cursor::Buckets(cursor) = self { cursor.place() } else { 0 }
    }

    /// Lets a fresh cursor begin at a [place](Cursor::place).
    pub(crate) fn begin_at(&mut self, place: usize) {
        if let Cursor::Buckets(cursor) = self {
            cursor.begin_at(place);
        }
    }

    /// Returns the cursor if it goes through its range in order.
    pub(crate) fn ordered(&self) -> Option<&ordered::Cursor> {
        match self {
            Cursor::Forward(cursor) | Cursor::Reverse(cursor) => Some(cursor),
            Cursor::Buckets(_) => None,
        }
    }

    /// Returns this fresh cursor with the other direction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reversed(self) -> Cursor {
        match self {
            Cursor::Forward(cursor) => Cursor::Reverse(cursor.reversed(Direction::Reverse)),
            Cursor::Reverse(cursor) => Cursor::Forward(cursor.reversed(Direction::Forward)),
            Cursor::Buckets(_) => self,
        }
    }

    /// Takes records as [`Cursor::at_hand`] does, as long as `wanted` returns `true`. The first
    /// record that is not wanted stays in the cursor. This function takes no records of a hash
    /// index: the caller takes them one by one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn give_while<const FORWARD: bool>(&mut self, wanted: impl FnMut(RecordAt) -> bool) {
        match self {
            Cursor::Forward(cursor) if FORWARD => cursor.give_while(wanted),
            Cursor::Reverse(cursor) if !FORWARD => cursor.give_while(wanted),
            _ => {}
        }
    }
}

impl TableIndex {
    /// Returns whether the index keeps keys in order.
    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            TableIndex::Hash(_) => false,
            TableIndex::Ordered(_) => true,
        }
    }

    /// Returns the record with this key. If no record has this key, returns the node, and the
    /// node's version that proves the key's absence. The caller is pinned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(&self, key: &[u64]) -> Found {
        match self {
            TableIndex::Hash(hash) => hash.find(key, hash.hash(key)),
            TableIndex::Ordered(ordered) => ordered.find(key),
        }
    }

    /// Searches as [`TableIndex::find`] does. If no record is found, also stores in `place` where
    /// to link a record with this key.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find_place(&self, key: &[u64], place: &mut Place) -> Found {
        match self {
            TableIndex::Hash(hash) => hash.find(key, hash.hash(key)),
            TableIndex::Ordered(ordered) => ordered.find_place(key, place),
        }
    }

    /// Searches as [`TableIndex::find`] does, for many keys at once. The cache misses of all
    /// lookups overlap.
    ///
    /// Each key must have `width` words, as the index's keys have. A hash index compares as many
    /// words of a record as it is given, and each call of `as_ref` may return other words. So
    /// exactly the compared words are checked.
    ///
    /// # Panics
    /// Panics as [`check_width`] does.
    #[inline]
    pub(crate) fn find_many<const N: usize, W: AsRef<[u64]>>(
        &self,
        keys: &[W; N],
        width: usize,
    ) -> [Found; N] {
        match self {
            TableIndex::Hash(hash) => {
                let hashes = keys.each_ref().map(|key| {
                    let hashed = hash.hash(key.as_ref());
                    hash.prefetch_bucket(hashed);
                    hashed
                });
                let likely = hashes.map(|hashed| {
                    let record = hash.likely_record(hashed);
                    record.inspect(|record| prefetch(record.block().hint(0)))
                });
                std::array::from_fn(|number| {
                    let key = keys[number].as_ref();
                    check_width(key, width);
                    match likely[number] {
                        Some(record) if record.has_key(key) => Found::Record(record),
                        _ => hash.search(key, hashes[number]),
                    }
                })
            }
            TableIndex::Ordered(ordered) => {
                keys.iter().for_each(|key| check_width(key.as_ref(), width));
                ordered.find_many(keys)
            }
        }
    }

    /// Links `record`, unless another record with the same key is linked. The key and the cells of
    /// `record` are written already. The caller is pinned, and has called [`Place::link_near`].
    /// `place` holds that place and the start that the call returned.
    ///
    /// `inherit_from_node` runs under the node's lock, at a time when a reader of the node's
    /// version sees the lock or a new version. This closure lets a protocol copy into the record
    /// what the node recorded about the absent key.
    ///
    /// Unless `GROWS`, a hash index neither grows nor moves buckets.
    pub(crate) fn link<const GROWS: bool>(
        &self,
        record: RecordAt,
        key: &[u64],
        place: (&mut Place, Start),
        supplies: &mut Supplies<'_>,
        inherit_from_node: impl FnMut(NodeAt),
    ) -> Result<Linked, OutOfMemory> {
        match self {
            TableIndex::Hash(hash) => {
                hash.link::<GROWS>(record, key, hash.hash(key), supplies, inherit_from_node)
            }
            TableIndex::Ordered(ordered) => ordered.link(
                record,
                key,
                place,
                supplies.caches,
                supplies.changes,
                inherit_from_node,
            ),
        }
    }

    /// Lets the index grow now as it would if a record with this key were linked, which may be
    /// linked soon. The caller is pinned.
    #[cold]
    pub(crate) fn expect(&self, key: &[u64], supplies: &mut Supplies<'_>) {
        if let TableIndex::Hash(hash) = self {
            hash.expect(hash.hash(key), supplies);
        }
    }

    /// Lets the index grow now for `rows` records that may be linked soon, if these are so many
    /// that most buckets get one. The caller is pinned.
    #[cold]
    pub(crate) fn expect_rows(&self, rows: usize, supplies: &mut Supplies<'_>) {
        if let TableIndex::Hash(hash) = self {
            hash.expect_rows(rows, supplies);
        }
    }

    /// Unlinks `record`, which is dead, from the index. The caller is pinned, and retires the
    /// record afterwards.
    ///
    /// `merge_into_node` runs under the node's lock, before the record is unlinked.
    pub(crate) fn unlink(
        &self,
        record: RecordAt,
        key: &[u64],
        retired: &mut Vec<Retire>,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        match self {
            TableIndex::Hash(hash) => hash.unlink(record, hash.hash(key), retired, merge_into_node),
            TableIndex::Ordered(ordered) => ordered.unlink(record, key, retired, merge_into_node),
        }
    }

    /// Returns a cursor through all keys in `range`. In a hash index, `range` covers either all
    /// keys or the keys with the same hashed words.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn cursor(&self, range: WordRange, direction: Direction) -> Cursor {
        match self {
            TableIndex::Hash(hash) => Cursor::Buckets(hash.cursor(&range)),
            TableIndex::Ordered(ordered) => match direction {
                Direction::Forward => Cursor::Forward(ordered.cursor(range, direction)),
                Direction::Reverse => Cursor::Reverse(ordered.cursor(range, direction)),
            },
        }
    }

    /// Returns the next record. Reports each node to `observe` before returning any record of that
    /// node.
    pub(crate) fn advance(
        &self,
        cursor: &mut Cursor,
        observe: &mut impl FnMut(NodeAt, u64),
    ) -> Advance {
        match (self, cursor) {
            (TableIndex::Hash(hash), Cursor::Buckets(cursor)) => {
                hash.advance(cursor, observe).map_or(Advance::End, Advance::Next)
            }
            (TableIndex::Ordered(ordered), Cursor::Forward(cursor) | Cursor::Reverse(cursor)) => {
                ordered.advance(cursor, observe)
            }
            _ => unreachable!("a cursor is used with the index that made it"),
        }
    }

    /// Calls `each` once with every record that is linked during the whole call, whether its row is
    /// present or absent. Also calls `each` with some of the records that are linked or unlinked
    /// during the call. The caller is pinned. `each` may change the index.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(RecordAt)) {
        match self {
            TableIndex::Hash(hash) => hash.for_each(each),
            TableIndex::Ordered(ordered) => ordered.for_each(each),
        }
    }

    /// Calls `each` with records that are linked in the same node as the key, or were just before.
    /// The caller is pinned.
    pub(crate) fn for_each_beside(&self, key: &[u64], each: &mut dyn FnMut(RecordAt)) {
        match self {
            TableIndex::Hash(hash) => hash.for_each_beside(key, each),
            TableIndex::Ordered(ordered) => ordered.for_each_beside(key, each),
        }
    }

    /// Calls `record` with the records that [`TableIndex::for_each`] visits, and calls `node` with
    /// each node before any record of that node. The keys of the index have `key_words` words.
    pub(crate) fn go_through(
        &self,
        key_words: usize,
        node: &mut dyn FnMut(NodeAt),
        record: &mut dyn FnMut(RecordAt),
    ) {
        let mut cursor = self.cursor(WordRange::beginning_with(&[], key_words), Direction::Forward);
        loop {
            match self.advance(&mut cursor, &mut |at, _| node(at)) {
                Advance::Next(at) => record(at),
                Advance::End => return,
                // A layer has ended under the cursor, so no record in it is linked any more.
                Advance::Doomed => {}
            }
        }
    }

    /// Returns the slab to which the index's retired blocks return.
    pub(crate) fn blocks(&self) -> &Arc<Slab> {
        match self {
            TableIndex::Hash(hash) => hash.lines(),
            TableIndex::Ordered(ordered) => ordered.nodes(),
        }
    }

    /// Returns the number of bytes of the index that belong to this table alone.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            TableIndex::Hash(hash) => hash.array_bytes(),
            TableIndex::Ordered(ordered) => ordered.nodes().reserved_bytes(),
        }
    }
}
