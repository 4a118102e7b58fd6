//! The hash index. The hash index finds records, lets transactions observe absent keys, and grows
//! without stopping writers.
//!
//! # Shape
//! An array of buckets, each one cache line: `| version | node words of the protocol | slots |
//! overflow |`. A slot holds the address of a record in its lower 48 bits and 16 bits of the key's
//! hash above them. So a lookup usually takes two cache misses: the bucket and the record. A full
//! bucket continues in overflow lines (seven slots and a link). An overflow line that becomes empty
//! is taken out.
//!
//! # Invariants
//! * **HI1** A linked record keeps its slot until the record is unlinked. No record moves within a
//!   bucket. So a lookup that finds its key needs no version.
//! * **HI2** Every link of a record raises the bucket's version, under the bucket's lock and after
//!   the slot is written. Let a lookup load the version first, and then find no record. The
//!   lookup's result stays right until the version changes.
//! * **HI3** A moved bucket is never changed again. The flag MOVED is set in its version word. So a
//!   reader that has observed an earlier version fails to validate, and a reader that comes later
//!   continues to the next array.
//! * **HI4** Slots are written with Release and read with Acquire. So a reader that finds a record
//!   sees the record's whole key and all cells (E4).
//! * **HI5** Bucket locks are held for a few hundred instructions. No thread waits while it holds a
//!   bucket lock.
//!
//! # Growth
//! The index keeps no count of records. An insert that finds its bucket full samples the buckets
//! around it. If these buckets are crowded, the insert adds an array of twice the size. From then
//! on every insert first moves its own bucket and a few others, and then works in the new array.
//! The insert that moves the last bucket makes the new array the current one. A transaction that
//! moves a bucket which it has observed replaces this observation by observations of the two
//! halves: see [`NodeChange`].
//!
//! Neither may be done by a commit that holds locks and links records, since both allocate. Such a
//! commit says before its first lock which keys and how many it expects to link, and the index
//! grows and moves then. What is linked under locks goes where its bucket is, in the old array or
//! in the new one: HI3 holds for either.

use super::node::{Found, LINE_WORDS, LOCK, Linked, MOVED, NodeAt, OVERFLOW, Retire};
use super::node::{NodeChange, Supplies};
use crate::memory::{Block, Cache, Memory, OutOfMemory, Slab, WordArray};
use crate::record::RecordAt;
use crate::schema::WordRange;
use crate::sync::{AtomicU64, AtomicUsize, MODELLED, Mutex, Ordering, Spin, lock, prefetch};
use std::ops::Range;
use std::sync::Arc;

const VERSION_ONE: u64 = 4;

/// The number of bits of a slot that hold the address.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// The least number of buckets. A table whose size is not given begins with this number. The number
/// is one under a model, so that the model reaches growth.
const BUCKETS_MIN: usize = if MODELLED { 1 } else { 16 };
/// The average number of records per bucket in a table of known size. With this number, three in
/// four lookups of absent keys read no overflow line.
const RECORDS_PER_BUCKET: usize = 4;
/// The number of buckets that an insert samples to judge how full the table is. The sample is so
/// large that a table half as full as the threshold does not grow by chance.
const SAMPLE_BUCKETS: usize = 32;
/// The largest number of records of one bucket that count in the sample. Because of this limit,
/// keys that share a bucket by design do not make a table grow.
const CROWD_MAX: usize = 8;
/// The number of records in the sample from which on the table grows.
const SAMPLE_RECORDS: usize = SAMPLE_BUCKETS * 9 / 2;
/// The number of buckets that an insert moves besides its own.
const MOVES_PER_INSERT: usize = 8;

/// The address of an array in which lookups no longer begin. Dropping this value frees the array,
/// so the value is kept until no thread can reach the array.
#[derive(Debug)]
struct RetiredArray(u64);

impl Drop for RetiredArray {
    fn drop(&mut self) {
        // SAFETY: one such value is made for each array that has become unreachable. It is dropped
        // when no pinned thread can reach the array any more (by the collection of garbage, or with
        // the database).
        drop(unsafe { from_address(self.0) });
    }
}

/// A cursor through the buckets of an index.
#[derive(Debug)]
pub(crate) struct BucketCursor {
    /// The address of the array that was current when the cursor was made.
    array: u64,
    /// The number of buckets visited so far. Unless `wanted` is given, this is also the index of
    /// the next bucket.
    bucket: usize,
    /// The prefix of the wanted keys, if only the bucket of that prefix is visited; `None` if all
    /// buckets are visited.
    wanted: Option<Wanted>,
    /// The records of the visited buckets that have not been returned yet.
    found: Vec<RecordAt>,
}

impl BucketCursor {
    /// Returns the next record of the buckets already visited; `None` if all have been returned.
    pub(crate) fn at_hand(&mut self) -> Option<RecordAt> {
        self.found.pop()
    }

    /// Returns a place that no record lies before which the cursor is still to return. The index
    /// must not grow as long as the place is used.
    pub(crate) fn place(&self) -> usize {
        self.bucket.saturating_sub(1)
    }

    /// Lets a fresh cursor through all records begin at a place.
    pub(crate) fn begin_at(&mut self, place: usize) {
        debug_assert!(self.wanted.is_none() && self.bucket == 0);
        self.bucket = place;
    }
}

/// The prefix that all keys of a lookup share, and the hash of that prefix.
#[derive(Debug)]
struct Wanted {
    prefix: Box<[u64]>,
    hash: u64,
}

/// The index of one table.
#[derive(Debug)]
pub(crate) struct HashIndex {
    /// The address of the array in which lookups begin. The address is replaced when every bucket
    /// of the previous array has been moved.
    current: AtomicU64,
    key_words: usize,
    /// The number of leading words of a key that are hashed. The number is less than `key_words` if
    /// keys with a common prefix are looked up together.
    hashed_words: usize,
    /// The number of words that the protocol keeps in each bucket.
    node_words: usize,
    seed: u64,
    memory: Arc<Memory>,
    /// The slab of the overflow lines.
    lines: Arc<Slab>,
    grows: bool,
    growing: Mutex<()>,
    /// The number of bytes of the arrays in use, for reports.
    array_bytes: AtomicUsize,
}

/// The wanted size of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// The approximate number of records that the index is built for.
    pub(crate) capacity: usize,
    /// Whether the index grows beyond `capacity`.
    pub(crate) grows: bool,
}

/// One array of buckets.
#[derive(Debug)]
pub(crate) struct Array {
    words: WordArray,
    bucket_mask: u64,
    /// The address of the array, twice as large, to which the buckets of this array are being
    /// moved; zero if this array is not being moved.
    next: AtomicU64,
    /// The number of buckets that inserts have claimed for moving.
    claimed: AtomicUsize,
    /// The number of buckets that have been moved.
    moved: AtomicUsize,
}

impl Array {
    fn new(memory: &Arc<Memory>, buckets: usize) -> Result<Box<Array>, OutOfMemory> {
        let words = buckets.checked_mul(LINE_WORDS).ok_or(OutOfMemory)?;
        Ok(Box::new(Array {
            words: WordArray::new(memory, words)?,
            bucket_mask: buckets as u64 - 1,
            next: AtomicU64::new(0),
            claimed: AtomicUsize::new(0),
            moved: AtomicUsize::new(0),
        }))
    }

    fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    fn buckets(&self) -> usize {
        self.bucket_mask as usize + 1
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bucket_index(&self, hash: u64) -> usize {
        (hash & self.bucket_mask) as usize
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bucket(&self, index: usize) -> NodeAt {
        debug_assert!(index < self.buckets());
        NodeAt(self.words.block().offset(index * LINE_WORDS))
    }
}

impl HashIndex {
    /// Returns an index for records whose keys have `key_words` words. The first `hashed_words` of
    /// these words are hashed.
    pub(crate) fn new(
        memory: &Arc<Memory>,
        lines: &Arc<Slab>,
        (key_words, hashed_words): (usize, usize),
        node_words: usize,
        Size { capacity, grows }: Size,
        seed: u64,
    ) -> Result<HashIndex, OutOfMemory> {
        let buckets = (capacity / RECORDS_PER_BUCKET).max(BUCKETS_MIN).checked_next_power_of_two();
        let array = Array::new(memory, buckets.ok_or(OutOfMemory)?)?;
        let array_bytes = AtomicUsize::new(array.bytes());
        Ok(HashIndex {
            current: AtomicU64::new(to_address(array)),
            key_words,
            hashed_words,
            node_words,
            seed,
            memory: memory.clone(),
            lines: lines.clone(),
            grows,
            growing: Mutex::new(()),
            array_bytes,
        })
    }

    /// The number of words of an overflow line.
    pub(crate) const LINE_WORDS: usize = LINE_WORDS;

    /// Returns the hash of a key: one folded multiplication per word, keyed by the table's seed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn hash(&self, key: &[u64]) -> u64 {
        let mix = |hash: u64, &word: &u64| {
            let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
            (product >> 64) as u64 ^ product as u64
        };
        // The compiler mostly knows the length of a whole key, so this is a separate case.
        if key.len() <= self.hashed_words {
            key.iter().fold(self.seed, mix)
        } else {
            key[..self.hashed_words].iter().fold(self.seed, mix)
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn current(&self) -> &Array {
        self.array_at(self.current.load(Ordering::Acquire))
            .expect("there is always a current array")
    }

    /// Returns the array at an address loaded with Acquire (E8) from `current` or from a `next`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn array_at(&self, address: u64) -> Option<&Array> {
        let array: *const Array = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: arrays are boxed, are not freed before they are retired through `Retire::Array`,
        // and are then freed only after the end of every pin that could have reached them. Callers
        // are pinned, or own the index.
        unsafe { array.as_ref() }
    }

    /// Prefetches the bucket of a hash.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        let array = self.current();
        prefetch(array.bucket(array.bucket_index(hash)).0.hint(0));
    }

    /// Returns a record from the first line of the bucket whose key probably has this hash; `None`
    /// if no slot of that line fits the hash.
    ///
    /// The code does not branch on the slots' contents. A mispredicted branch would delay the cache
    /// misses of the next key until the cache misses of this key have been served.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn likely_record(&self, hash: u64) -> Option<RecordAt> {
        let array = self.current();
        let bucket = array.bucket(array.bucket_index(hash));
        // HI3: a moved bucket may still refer to a record that has been unlinked from the next
        // array and freed.
        if bucket.version() & MOVED != 0 {
            return None;
        }
        // Separate cases, so that the usual numbers of words need no loop.
        let likely = match self.node_words {
            0 => pick(bucket, 1..OVERFLOW, hash),
            2 => pick(bucket, 3..OVERFLOW, hash),
            words => pick_among(bucket, 1 + words..OVERFLOW, hash),
        };
        record_of(likely)
    }

    /// Returns the record with this key. If no record has this key, returns the node, and the
    /// node's version that proves the key's absence. The caller is pinned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(&self, key: &[u64], hash: u64) -> Found {
        match self.likely_record(hash) {
            Some(record) if record.has_key(key) => Found::Record(record),
            _ => self.search(key, hash),
        }
    }

    /// Returns the result of [`HashIndex::find`], but searches the whole bucket at once.
    #[inline(never)]
    pub(crate) fn search(&self, key: &[u64], hash: u64) -> Found {
        let mut array = self.current();
        let mut spin = Spin::default();
        loop {
            let node = array.bucket(array.bucket_index(hash));
            let version = node.version(); // HI2: loaded before the slots.
            if version & MOVED != 0 {
                array = self.next_of(array);
                continue;
            }
            if let Some(record) = self.find_in(node, key, hash) {
                return Found::Record(record);
            }
            if version & LOCK == 0 {
                return Found::Nothing { node, version };
            }
            spin.wait();
        }
    }

    /// Calls `each` with the records of a key's bucket; with some of those that are linked or
    /// unlinked meanwhile. The caller is pinned.
    pub(crate) fn for_each_beside(&self, key: &[u64], each: &mut dyn FnMut(RecordAt)) {
        let hash = self.hash(&key[..self.hashed_words]);
        let mut array = self.current();
        let node = loop {
            let node = array.bucket(array.bucket_index(hash));
            if node.version() & MOVED == 0 {
                break node;
            }
            array = self.next_of(array);
        };
        self.each_slot(node, |_, _, entry| {
            record_of(entry).into_iter().for_each(&mut *each);
            false
        });
    }

    fn next_of<'a>(&'a self, array: &Array) -> &'a Array {
        self.array_at(array.next.load(Ordering::Acquire))
            .expect("a bucket moves only once the next array is there")
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_in(&self, node: NodeAt, key: &[u64], hash: u64) -> Option<RecordAt> {
        let mut line = node;
        let mut first = 1 + self.node_words;
        loop {
            for slot in first..OVERFLOW {
                let entry = line.word(slot).load(Ordering::Acquire); // HI4, E4
                if entry >> ADDRESS_BITS == hash >> ADDRESS_BITS
                    && let Some(record) = record_of(entry)
                    && record.has_key(key)
                {
                    return Some(record);
                }
            }
            line = line.overflow()?;
            first = 0;
        }
    }

    /// Links `record`, unless another record with the same key is linked. The key and the cells of
    /// `record` are written already. The caller is pinned.
    ///
    /// `inherit_from_node` runs under the bucket's lock, after the version has been raised. This
    /// closure lets a protocol copy into the record what the bucket recorded about the absent key.
    ///
    /// Unless `GROWS`, the index does not grow and moves no buckets: the caller holds locks. Then a
    /// full bucket gets an overflow line, and a bucket that is to be moved is moved later.
    pub(crate) fn link<const GROWS: bool>(
        &self,
        record: RecordAt,
        key: &[u64],
        hash: u64,
        supplies: &mut Supplies<'_>,
        inherit_from_node: impl FnOnce(NodeAt),
    ) -> Result<Linked, OutOfMemory> {
        let mut array = self.current();
        let mut spin = Spin::default();
        loop {
            if GROWS && let Some(next) = self.array_at(array.next.load(Ordering::Acquire)) {
                self.help_move(array, next, array.bucket_index(hash), supplies)?;
                array = next;
                continue;
            }
            let node = array.bucket(array.bucket_index(hash));
            let Some(version) = lock_bucket(node) else {
                // The bucket has been moved, or another thread holds its lock for a moment.
                match GROWS || node.version() & MOVED == 0 {
                    true => spin.wait(),
                    false => array = self.next_of(array),
                }
                continue;
            };
            // Under the lock, the bucket is not moved: a thread that moves the bucket locks it,
            // too.
            if let Some(existing) = self.find_in(node, key, hash) {
                unlock_bucket(node, version);
                return Ok(Linked::Existing(existing));
            }
            let Some((line, slot)) = self.free_slot(node) else {
                unlock_bucket(node, version);
                self.make_room::<GROWS>(array, node, supplies.caches)?;
                continue;
            };
            let entry = record.block().address() | hash >> ADDRESS_BITS << ADDRESS_BITS;
            debug_assert_eq!(node.version(), version | LOCK, "HI2: under the bucket's lock");
            debug_assert_eq!(line.word(slot).load(Ordering::Relaxed), 0, "HI1: a slot is free");
            line.word(slot).store(entry, Ordering::Release); // HI4, E4
            let after = version + VERSION_ONE;
            unlock_bucket(node, after | LOCK); // HI2: raised; the lock is kept.
            inherit_from_node(node);
            unlock_bucket(node, after);
            return Ok(Linked::New { node, before: version, after });
        }
    }

    /// Does for the growth of the table what an insert of a key with this hash does. A refusal of
    /// memory does not matter.
    pub(crate) fn expect(&self, hash: u64, supplies: &mut Supplies<'_>) {
        let array = self.current();
        let own = array.bucket_index(hash);
        if let Some(next) = self.array_at(array.next.load(Ordering::Acquire)) {
            let _ = self.help_move(array, next, own, supplies);
            return;
        }
        let node = array.bucket(own);
        if self.grows && self.free_slot(node).is_none() && self.is_crowded(array, node) {
            self.grow(array);
        }
    }

    /// Grows the table for `rows` records that will be linked, if these are so many that
    /// [`HashIndex::expect`] would see too late that buckets become full. Moves as many buckets as
    /// that many inserts would, and no more, so that a large table which is growing is left so.
    pub(crate) fn expect_rows(&self, rows: usize, supplies: &mut Supplies<'_>) {
        let mut inserts = rows;
        loop {
            let array = self.current();
            if rows <= array.buckets() / 2 {
                return;
            }
            let Some(next) = self.array_at(array.next.load(Ordering::Acquire)) else {
                if self.grows && self.is_crowded_with(array, rows) && self.grow(array) {
                    continue;
                }
                return;
            };
            while inserts > 0 && array.claimed.load(Ordering::Relaxed) < array.buckets() {
                inserts -= 1;
                let _ = self.help_move(array, next, 0, supplies);
            }
            if std::ptr::eq(array, self.current()) {
                // Other threads are moving the last buckets, or memory was refused.
                return;
            }
        }
    }

    /// Unlinks `record`, which is dead, from its bucket. The caller is pinned, and retires the
    /// record afterwards.
    ///
    /// `merge_into_node` runs under the bucket's lock, before the slot is cleared. The version is
    /// raised only if nodes keep timestamps. Protocols in commit order do not need this: a
    /// transaction that observed the absence in the dead record fails because of the record's own
    /// cell.
    pub(crate) fn unlink(
        &self,
        record: RecordAt,
        hash: u64,
        retired: &mut Vec<Retire>,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        let mut array = self.current();
        let mut spin = Spin::default();
        let (node, version) = loop {
            let node = array.bucket(array.bucket_index(hash));
            if node.version() & MOVED != 0 {
                array = self.next_of(array);
            } else if let Some(version) = lock_bucket(node) {
                break (node, version);
            } else {
                spin.wait();
            }
        };
        debug_assert_eq!(
            node.version(),
            version | LOCK,
            "HI3: the bucket is not moved, and its lock is the caller's"
        );
        merge_into_node(node);
        let mut cleared = None;
        self.each_slot(node, |line, slot, entry| {
            let found = entry & ADDRESS == record.block().address();
            if found {
                line.word(slot).store(0, Ordering::Release);
                cleared = Some(line);
            }
            found
        });
        debug_assert!(cleared.is_some(), "HI1: only a linked record is unlinked, once");
        if let Some(line) = cleared.filter(|&line| line != node && self.is_empty_line(line)) {
            self.remove_line(node, line);
            retired.push(Retire::Block(line.0));
        }
        let raised = if self.node_words == 0 { version } else { version + VERSION_ONE };
        unlock_bucket(node, raised);
    }

    /// Calls `each` with the occupied slots of a bucket, until `each` returns `true`. Returns
    /// whether `each` has returned `true`.
    fn each_slot(&self, node: NodeAt, mut each: impl FnMut(NodeAt, usize, u64) -> bool) -> bool {
        let (mut line, mut first) = (node, 1 + self.node_words);
        loop {
            for slot in first..OVERFLOW {
                let entry = line.word(slot).load(Ordering::Acquire);
                if entry != 0 && each(line, slot, entry) {
                    return true;
                }
            }
            let Some(overflow) = line.overflow() else { return false };
            (line, first) = (overflow, 0);
        }
    }

    /// Returns a free slot of a bucket; `None` if the bucket has no free slot. The caller has
    /// locked the bucket, or no other thread can reach it yet; otherwise the result is a guess.
    fn free_slot(&self, node: NodeAt) -> Option<(NodeAt, usize)> {
        self.free_slot_from(node, 1 + self.node_words)
    }

    /// Returns a free slot of a bucket as [`HashIndex::free_slot`] does, but begins at slot `first`
    /// of `line`, which is any line of the bucket.
    fn free_slot_from(&self, mut line: NodeAt, mut first: usize) -> Option<(NodeAt, usize)> {
        loop {
            if let Some(slot) =
                (first..OVERFLOW).find(|&slot| line.word(slot).load(Ordering::Relaxed) == 0)
            {
                return Some((line, slot));
            }
            (line, first) = (line.overflow()?, 0);
        }
    }

    /// Starts to grow the table if the buckets around the full bucket `node` are crowded. Otherwise
    /// adds an overflow line to the bucket. The caller does not hold the bucket's lock.
    #[cold]
    fn make_room<const GROWS: bool>(
        &self,
        array: &Array,
        node: NodeAt,
        caches: &mut Vec<Option<Cache>>,
    ) -> Result<(), OutOfMemory> {
        if GROWS && self.grows && self.is_crowded(array, node) && self.grow(array) {
            return Ok(());
        }
        let line = self.new_line(Cache::allocate(caches, &self.lines)?);
        let mut spin = Spin::default();
        let version = loop {
            match lock_bucket(node) {
                Some(version) => break version,
                None if node.version() & MOVED != 0 => {
                    Cache::of(caches, &self.lines).return_ready(line.0);
                    return Ok(());
                }
                None => spin.wait(),
            }
        };
        self.append_line(node, line);
        unlock_bucket(node, version);
        Ok(())
    }

    fn new_line(&self, block: Block) -> NodeAt {
        let line = NodeAt(block);
        (0..LINE_WORDS).for_each(|word| line.word(word).store(0, Ordering::Relaxed));
        line
    }

    /// Appends `line` to the bucket that has the line `last`, which need not be its last one. The
    /// caller has locked the bucket, or no other thread can reach it yet.
    fn append_line(&self, mut last: NodeAt, line: NodeAt) {
        while let Some(overflow) = last.overflow() {
            last = overflow;
        }
        last.word(OVERFLOW).store(line.0.address(), Ordering::Release); // HI4
    }

    /// Returns whether an overflow line has no occupied slot.
    fn is_empty_line(&self, line: NodeAt) -> bool {
        (0..OVERFLOW).all(|slot| line.word(slot).load(Ordering::Relaxed) == 0)
    }

    /// Takes an overflow line out of a bucket that the caller has locked. The line keeps its own
    /// link, so a reader in that line still reaches all records that stay linked. As in any line,
    /// such a reader may miss a record that is linked meanwhile; but then the bucket's version has
    /// changed.
    fn remove_line(&self, node: NodeAt, line: NodeAt) {
        let mut before = node;
        while let Some(next) = before.overflow().filter(|&next| next != line) {
            before = next;
        }
        before.word(OVERFLOW).store(line.word(OVERFLOW).load(Ordering::Relaxed), Ordering::Release); // HI4
    }

    /// Returns whether the buckets from the full bucket `node` onwards are so full that the table
    /// should double.
    fn is_crowded(&self, array: &Array, node: NodeAt) -> bool {
        let (records, sample) = self.records_from(array, node);
        records * SAMPLE_BUCKETS >= SAMPLE_RECORDS * sample
    }

    /// Returns whether the buckets will be so full when `rows` more records are linked.
    fn is_crowded_with(&self, array: &Array, rows: usize) -> bool {
        let (records, sample) = self.records_from(array, array.bucket(0));
        (records * array.buckets() / sample + rows) * SAMPLE_BUCKETS
            >= SAMPLE_RECORDS * array.buckets()
    }

    /// Returns the number of records in the buckets from `node` onwards, as far as they count, and
    /// the number of these buckets.
    fn records_from(&self, array: &Array, node: NodeAt) -> (usize, usize) {
        let sample = SAMPLE_BUCKETS.min(array.buckets());
        let own = (node.0.address() - array.words.block().address()) as usize
            / size_of::<[AtomicU64; LINE_WORDS]>();
        let mut records = 0;
        for neighbour in own..own + sample {
            let node = array.bucket(neighbour & array.bucket_mask as usize);
            let mut here = 0;
            self.each_slot(node, |_, _, _| {
                here += 1;
                here == CROWD_MAX
            });
            records += here;
        }
        (records, sample)
    }

    /// Gives `array` a successor of twice the size. Returns `false` if `array` cannot have a
    /// successor now.
    fn grow(&self, array: &Array) -> bool {
        let _one_at_a_time = lock(&self.growing);
        if array.next.load(Ordering::Acquire) != 0 {
            return true;
        }
        if !std::ptr::eq(array, self.current()) {
            // `array` is still being filled from its predecessor, so it cannot grow yet.
            return false;
        }
        // If the memory limit refuses the new array, the table keeps its size.
        let Ok(next) = Array::new(&self.memory, array.buckets() * 2) else { return false };
        self.array_bytes.fetch_add(next.bytes(), Ordering::Relaxed);
        array.next.store(to_address(next), Ordering::Release); // E8
        true
    }

    /// Moves bucket `own`, and a few buckets that no insert has claimed yet.
    fn help_move(
        &self,
        array: &Array,
        next: &Array,
        own: usize,
        supplies: &mut Supplies<'_>,
    ) -> Result<(), OutOfMemory> {
        let mut moved = 0;
        let mut result = Ok(());
        let mut move_one = |bucket: usize| match self.move_bucket(array, next, bucket, supplies) {
            Ok(done) => moved += usize::from(done),
            // Buckets that were moved before the refusal still count.
            Err(refused) => result = Err(refused),
        };
        move_one(own);
        if array.claimed.load(Ordering::Relaxed) < array.buckets() {
            let first = array.claimed.fetch_add(MOVES_PER_INSERT, Ordering::Relaxed);
            (first..(first + MOVES_PER_INSERT).min(array.buckets())).for_each(move_one);
        }
        // AcqRel: all moves happen before the thread that counts the last bucket continues (E11).
        if moved > 0 && array.moved.fetch_add(moved, Ordering::AcqRel) + moved == array.buckets() {
            // The count reaches its end once, so the array is retired once.
            let moved = self.current.swap(array.next.load(Ordering::Acquire), Ordering::AcqRel); // E8
            self.array_bytes.fetch_sub(array.bytes(), Ordering::Relaxed);
            supplies.retired.push(Retire::Array(Box::new(RetiredArray(moved))));
        }
        result
    }

    /// Moves one bucket of `array` to its two halves in `next`. Returns `false` if the bucket was
    /// moved before.
    fn move_bucket(
        &self,
        array: &Array,
        next: &Array,
        index: usize,
        supplies: &mut Supplies<'_>,
    ) -> Result<bool, OutOfMemory> {
        let Supplies { caches, retired, changes } = supplies;
        let node = array.bucket(index);
        let mut spin = Spin::default();
        let version = loop {
            let Some(version) = lock_bucket(node) else {
                if node.version() & MOVED != 0 {
                    return Ok(false);
                }
                spin.wait();
                continue;
            };
            // If the bucket has overflow lines, the two halves together need at most one line more
            // than the bucket. The lines are allocated before the bucket is locked for the move.
            // The lines may exceed the memory limit, since a table that has begun to grow must be
            // able to finish.
            let lines = match self.overflow_lines(node) {
                0 => 0,
                lines => lines + 1,
            };
            if lines <= Cache::of(caches, &self.lines).ready() {
                break version;
            }
            unlock_bucket(node, version);
            Cache::of(caches, &self.lines).make_ready(&self.lines, lines, true)?;
        };
        if self.node_words > 0 {
            // A reader of an absent key raises the bucket's timestamp and then reads the version.
            // This thread locks the bucket and then copies the timestamp. With the fence, at least
            // one of the two sees what the other has written.
            crate::sync::full_fence();
        }
        let halves = [next.bucket(index), next.bucket(index + array.buckets())];
        for half in halves {
            for word in 0..self.node_words {
                let inherited = node.node_word(word).load(Ordering::Relaxed);
                half.node_word(word).store(inherited, Ordering::Relaxed);
            }
            debug_assert_eq!(half.version(), 0, "HI3: a bucket is moved once");
            half.word(0).store(version, Ordering::Relaxed);
        }
        // The places up to which the halves are filled. Because of them, the loop never searches
        // filled slots again, even if many keys share a bucket.
        let mut ends = halves.map(|half| (half, 1 + self.node_words));
        self.each_slot(node, |_, _, entry| {
            let record = record_of(entry).expect("an occupied slot");
            let key = record.key_words(self.key_words);
            let end = &mut ends[usize::from(next.bucket_index(self.hash(key.as_slice())) != index)];
            let (line, slot) = self.free_slot_from(end.0, end.1).unwrap_or_else(|| {
                let line = Cache::allocate(caches, &self.lines).expect("fetched before the lock");
                let line = self.new_line(line);
                self.append_line(end.0, line);
                (line, 0)
            });
            line.word(slot).store(entry, Ordering::Relaxed);
            *end = (line, slot + 1);
            false
        });
        let mut line = node;
        while let Some(overflow) = line.overflow() {
            retired.push(Retire::Block(overflow.0));
            line = overflow;
        }
        unlock_bucket(node, version | MOVED); // HI3: this store publishes the halves.
        let successors = halves.map(|half| (half, version));
        changes.push(NodeChange { node, before: version, successors, further: Vec::new() });
        Ok(true)
    }

    /// Returns the number of overflow lines of a bucket.
    fn overflow_lines(&self, node: NodeAt) -> usize {
        let (mut line, mut count) = (node, 0);
        while let Some(overflow) = line.overflow() {
            (line, count) = (overflow, count + 1);
        }
        count
    }

    /// Returns a cursor through all records. If both ends of `range` have the same hashed words,
    /// the cursor goes only through the records with these words.
    pub(crate) fn cursor(&self, range: &WordRange) -> BucketCursor {
        range.expect_words(self.key_words);
        debug_assert!(
            !range.is_empty(),
            "only ordered indexes are asked for the keys between two others"
        );
        let prefix = &range.lower.words()[..self.hashed_words];
        let one_bucket = prefix == &range.upper.words()[..self.hashed_words];
        let wanted = one_bucket.then(|| Wanted { prefix: prefix.into(), hash: self.hash(prefix) });
        // The array's address suffices: the cursor is used under the same pin under which it was
        // made.
        BucketCursor {
            array: self.current.load(Ordering::Acquire),
            bucket: 0,
            wanted,
            found: Vec::new(),
        } // E8
    }

    /// Returns the next record; `None` if no record is left. Reports each bucket's version to
    /// `observe` before returning any record of that bucket.
    pub(crate) fn advance(
        &self,
        cursor: &mut BucketCursor,
        observe: &mut dyn FnMut(NodeAt, u64),
    ) -> Option<RecordAt> {
        let array = self.array_at(cursor.array).expect("arrays are never at zero");
        loop {
            if let Some(record) = cursor.at_hand() {
                return Some(record);
            }
            let last = if cursor.wanted.is_some() { 1 } else { array.buckets() };
            if cursor.bucket == last {
                return None;
            }
            let index = cursor
                .wanted
                .as_ref()
                .map_or(cursor.bucket, |wanted| array.bucket_index(wanted.hash));
            cursor.bucket += 1;
            self.collect(array, index, cursor.wanted.as_ref(), &mut cursor.found, observe);
        }
    }

    /// Observes a bucket and collects its records. If the bucket has been moved, observes and
    /// collects from its halves instead.
    fn collect(
        &self,
        array: &Array,
        index: usize,
        wanted: Option<&Wanted>,
        found: &mut Vec<RecordAt>,
        observe: &mut dyn FnMut(NodeAt, u64),
    ) {
        let node = array.bucket(index);
        let mut spin = Spin::default();
        let version = loop {
            let version = node.version(); // HI2: loaded before the slots.
            if version & LOCK == 0 {
                break version;
            }
            spin.wait();
        };
        if version & MOVED != 0 {
            let next = self.next_of(array);
            for half in [index, index + array.buckets()] {
                if wanted.is_none_or(|wanted| next.bucket_index(wanted.hash) == half) {
                    self.collect(next, half, wanted, found, observe);
                }
            }
            return;
        }
        observe(node, version);
        self.each_slot(node, |_, _, entry| {
            let record = record_of(entry).expect("an occupied slot");
            let is_wanted = |wanted: &Wanted| {
                entry >> ADDRESS_BITS == wanted.hash >> ADDRESS_BITS
                    && record.has_key(&wanted.prefix)
            };
            if wanted.is_none_or(is_wanted) {
                found.push(record);
            }
            false
        });
    }

    /// Returns the number of overflow lines in use.
    #[cfg(test)]
    pub(crate) fn all_overflow_lines(&self) -> usize {
        let array = self.current();
        let buckets = (0..array.buckets()).map(|bucket| array.bucket(bucket));
        buckets
            .filter(|bucket| bucket.version() & MOVED == 0)
            .map(|bucket| self.overflow_lines(bucket))
            .sum()
    }

    /// Returns the slab of overflow lines.
    pub(crate) fn lines(&self) -> &Arc<Slab> {
        &self.lines
    }

    /// Returns the number of bytes of the bucket arrays.
    pub(crate) fn array_bytes(&self) -> usize {
        self.array_bytes.load(Ordering::Relaxed)
    }

    /// Calls `each` once with every record that is linked during the whole call, whether its row is
    /// present or absent. Also calls `each` with some of the records that are linked or unlinked
    /// during the call. The caller is pinned.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(RecordAt)) {
        let mut cursor = self.cursor(&WordRange::beginning_with(&[], self.key_words));
        while let Some(record) = self.advance(&mut cursor, &mut |_, _| {}) {
            each(record);
        }
    }
}

impl Drop for HashIndex {
    fn drop(&mut self) {
        let mut address = self.current.load(Ordering::Acquire);
        while address != 0 {
            // SAFETY: `new` or `grow` made the array, and it has not been retired. The index is
            // being dropped, so no other thread uses the array.
            let array = unsafe { from_address(address) };
            address = array.next.load(Ordering::Acquire);
        }
    }
}

fn to_address(array: Box<Array>) -> u64 {
    Box::into_raw(array).expose_provenance() as u64
}

/// # Safety
/// [`to_address`] has returned the address. No other code uses the array, now or later.
unsafe fn from_address(address: u64) -> Box<Array> {
    // SAFETY: by this function's contract.
    unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(address as usize)) }
}

/// Returns the last of a line's `slots` whose record's key probably has this hash; 0 if there is
/// none. No branch depends on the slots' contents.
#[cfg_attr(not(debug_assertions), inline(always))]
fn pick(bucket: NodeAt, slots: Range<usize>, hash: u64) -> u64 {
    slots.fold(0, |likely, slot| {
        let entry = bucket.word(slot).load(Ordering::Acquire); // HI4, E4
        std::hint::select_unpredictable(
            entry >> ADDRESS_BITS == hash >> ADDRESS_BITS,
            entry,
            likely,
        )
    })
}

/// Does the work of [`pick`] for unusual numbers of slots.
#[cold]
#[inline(never)]
fn pick_among(bucket: NodeAt, slots: Range<usize>, hash: u64) -> u64 {
    pick(bucket, slots, hash)
}

/// Returns the record of a slot; `None` if the slot is empty.
#[cfg_attr(not(debug_assertions), inline(always))]
fn record_of(entry: u64) -> Option<RecordAt> {
    // SAFETY: slots hold addresses of records of the index's table. These records are laid out by
    // the table's layout (LY1). The caller of the index is pinned (LY2).
    Block::at(entry & ADDRESS).map(|block| unsafe { RecordAt::new(block) })
}

/// Unlocks a bucket and sets its version to `version`. A thread that sees this version also sees
/// all writes made under the lock (E9).
#[inline]
fn unlock_bucket(node: NodeAt, version: u64) {
    node.word(0).store(version, Ordering::Release);
}

/// Tries once to lock a bucket. The caller holds the lock for a short time only (HI5). Returns the
/// bucket's version; `None` if the bucket is locked or moved.
#[inline]
fn lock_bucket(node: NodeAt) -> Option<u64> {
    let version = node.word(0).load(Ordering::Relaxed);
    let locked = NodeAt::is_stable(version)
        // Acquire pairs with the Release of `unlock_bucket` (E9): this thread sees the slots as the
        // last holder has left them.
        && node.word(0).compare_exchange(version, version | LOCK, Ordering::Acquire, Ordering::Relaxed).is_ok();
    locked.then_some(version)
}
