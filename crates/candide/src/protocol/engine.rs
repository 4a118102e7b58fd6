//! What all transactions of a database share, and what one session keeps for itself.

#![forbid(unsafe_code)]

use super::hot::Hot;
use super::indexes::Indexes;
use super::{Properties, Protocol, ReadView, UndoEntry, Wanted, own_thread};
use crate::access::WriteSet;
use crate::epoch::{Epochs, Moment, Slot};
use crate::error::{Abort, Error};
use crate::factor::Factors;
use crate::index::{DeletedIndex, NodeAt, NodeChange, Retire, TableIndex};
use crate::memory::{Block, Cache, Memory, OutOfMemory, Slab, SlabId};
use crate::record::{CellAt, Layout, RecordAt, Show};
use crate::stats::{Tally, TallyPart};
use crate::sync::{AtomicU64, Mutant, Ordering, Parking, Point, Random, Turns, mutant, pass};
use crate::timestamps::Timestamps;
use crossbeam_utils::CachePadded;
use std::sync::{Arc, PoisonError, RwLock};

/// How a database was built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Each column group has a cell of its own.
    pub(crate) splitting: bool,
    /// Updates are blind; otherwise each observes what it updates.
    pub(crate) commit_time_updates: bool,
    /// Opaque, where the protocol leaves that open.
    pub(crate) opaque: bool,
    pub(crate) factors: Factors,
    pub(crate) memory_limit_bytes: usize,
    /// If it matters to the protocol.
    pub(crate) timestamps: Option<Timestamps>,
}

/// A table without its row type.
#[derive(Debug)]
pub struct TableCore {
    pub(crate) database: u64,
    pub(crate) number: u16,
    pub(crate) name: Box<str>,
    pub(crate) row_type: &'static str,
    pub(crate) groups: &'static [crate::record::Group],
    pub(crate) layout: Layout,
    /// Keys as text; of the entries of an index, the part that is the index's.
    pub(crate) show_key: Show,
    pub(crate) index: TableIndex,
    /// If it keeps keys in order, and the protocol puts out of the way what only snapshots see.
    pub(crate) deleted_index: Option<DeletedIndex>,
    pub(crate) records: Arc<Slab>,
    pub(crate) indexes: Indexes,
    /// Records in the index.
    pub(crate) linked: Tally,
    /// Where protocols with several versions of a unit keep them.
    pub(crate) versions: Option<Arc<Slab>>,
    /// And where those of a few words, if there is such a size: perhaps the same.
    pub(crate) short_versions: Option<Arc<Slab>>,
}

/// What all transactions of a database share.
#[derive(Debug)]
pub(crate) struct Engine<P: Protocol> {
    pub(crate) common: Common,
    pub(crate) clock: P::Clock,
}

impl<P: Protocol> std::ops::Deref for Engine<P> {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// What they share whatever the protocol.
#[derive(Debug)]
pub(crate) struct Common {
    /// Distinguishes databases of this process.
    pub(crate) id: u64,
    pub(crate) options: Options,
    pub(crate) properties: Properties,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) memory: Arc<Memory>,
    /// Padded: taking the lock writes, and the fields around it are read by every transaction.
    pub(crate) tables: CachePadded<RwLock<Vec<Arc<TableCore>>>>,
    pub(crate) token: Token,
    /// Where sessions sleep that wait for cells, or for the token.
    pub(crate) parking: Parking,
    pub(crate) turns: Box<Turns>,
    pub(crate) hot: Hot,
}

impl Common {
    pub(crate) fn table(&self, number: u16) -> Arc<TableCore> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables[usize::from(number)].clone()
    }

    /// Gives the token back if session `id` has it, and wakes the sessions that give way to it.
    /// Returns whether it had it.
    pub(crate) fn give_token_back(&self, id: u64) -> bool {
        let had_it = self.token.release(id);
        if had_it && self.parking.has_sleepers() {
            self.parking.wake(self.token.address());
        }
        had_it
    }

    pub(crate) fn memory_limit_error(&self) -> Error {
        Error::MemoryLimit { limit_bytes: self.options.memory_limit_bytes }
    }
}

/// The right to be yielded to: at most one session has it, after having failed too often.
#[derive(Debug)]
pub(crate) struct Token(CachePadded<AtomicU64>);

impl Token {
    pub(crate) fn new() -> Token {
        Token(CachePadded::new(AtomicU64::new(0)))
    }

    /// Takes the token for session `id` (not zero) if no session has it, that one included; returns
    /// whether it did.
    pub(crate) fn try_take(&self, id: u64) -> bool {
        // Relaxed: the token carries no data; seeing it late costs its holder one more attempt.
        self.0.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Gives the token back if session `id` has it; says whether it had.
    pub(crate) fn release(&self, id: u64) -> bool {
        self.0.compare_exchange(id, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns where sessions wait that give way to its holder.
    pub(crate) fn address(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Whether a session other than `id` has it.
    #[inline]
    pub(crate) fn is_others(&self, id: u64) -> bool {
        let holder = self.0.load(Ordering::Relaxed);
        holder != 0 && holder != id
    }
}

/// What a session knows that looks at what was put aside.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    /// The session is counted among those that prune chains.
    pub(crate) is_listed: bool,
    /// So is another session.
    pub(crate) others_are: bool,
    /// All attempts that run have reached this timestamp, but for those which see what an open
    /// snapshot keeps.
    pub(crate) reached: u64,
    /// The units of chains that others were just changing, by their addresses: they are not looked
    /// through again by this collection.
    pub(crate) in_the_way: Vec<u64>,
    /// The chain that it looks through.
    pub(crate) chain: Vec<Block>,
    /// What a unit was.
    pub(crate) image: Vec<u64>,
}

/// What one session keeps for itself from attempt to attempt.
#[derive(Debug)]
pub(crate) struct Local {
    /// The session's number, not zero.
    pub(crate) id: u64,
    pub(crate) caches: Vec<Option<Cache>>,
    /// By table: the slabs of its versions, once the session has made one of them.
    version_slabs: Vec<[Option<SlabId>; 2]>,
    pub(crate) slot: Arc<Slot>,
    /// What the session's transaction is to see.
    pub(crate) read_view: ReadView,
    /// If what its attempt sees is kept like a snapshot: its time, and the moment at which it
    /// began.
    pub(crate) kept: Option<(u64, Moment)>,
    /// The timestamps of open snapshots in falling order, as of the last time this session began to
    /// collect.
    pub(crate) snapshots: Vec<u64>,
    /// By table: its part in the number of records.
    pub(crate) tallies: Vec<Option<Arc<TallyPart>>>,
    pub(crate) random: Random,
    /// Records this attempt has linked; one that is left absent is queued for burial.
    pub(crate) linked: Vec<CellAt>,
    /// First cells of absent records that this session has to bury.
    pub(crate) reap_queue: Vec<CellAt>,
    /// Units that have been written for the first time since an open snapshot, whose timestamp
    /// comes with them.
    pub(crate) parked: Vec<(u64, CellAt)>,
    pub(crate) retired: Vec<Retired>,
    /// What commits have put aside, in the order of their timestamps.
    pub(crate) undo_entries: Vec<UndoEntry>,
    pub(crate) looking: Looking,
    /// What the index has left behind in the operation at hand, until it is known of which table.
    pub(crate) retired_parts: Vec<Retire>,
    /// Nodes divided by the operation at hand.
    pub(crate) divided: Vec<NodeChange>,
    /// Where the running attempt has met a conflict; taken when it has ended.
    pub(crate) conflict: Option<ConflictNote>,
    /// This transaction has waited for the token's holder as long as it must: the holder may be
    /// waiting for it.
    pub(crate) has_yielded: bool,
    /// Whether raw iteration uses it, whose attempts are no transactions.
    pub(crate) is_raw: bool,
    /// What its attempts so far wanted to lock.
    pub(crate) wanted: Wanted,
}

impl Local {
    /// For session number `id` of database number `database`, which is pinned there.
    pub(crate) fn new(database: u64, id: u64, slot: Arc<Slot>) -> Local {
        Local {
            id,
            slot,
            kept: None,
            caches: Vec::new(),
            version_slabs: Vec::new(),
            read_view: ReadView::Current,
            snapshots: Vec::new(),
            tallies: Vec::new(),
            random: Random::seeded(database << 32 ^ id),
            linked: Vec::new(),
            reap_queue: Vec::new(),
            parked: Vec::new(),
            retired: Vec::new(),
            undo_entries: Vec::new(),
            looking: Looking::default(),
            retired_parts: Vec::new(),
            divided: Vec::new(),
            conflict: None,
            has_yielded: false,
            is_raw: false,
            wanted: Wanted::default(),
        }
    }
}

impl Local {
    /// Whether it has left something behind that its garbage has to take over.
    #[inline]
    pub(crate) fn leaves_some(&self) -> bool {
        !self.undo_entries.is_empty()
            || !self.reap_queue.is_empty()
            || !self.retired.is_empty()
            || !self.parked.is_empty()
    }

    /// Counts a record that has come into the index of a table, or gone from it.
    #[inline]
    pub(crate) fn count_linked(&mut self, table: &TableCore, up: bool) {
        match self.tallies.get(usize::from(table.number)) {
            Some(Some(part)) => part.count(up),
            _ => self.begin_tally(table).count(up),
        }
    }

    #[cold]
    fn begin_tally(&mut self, table: &TableCore) -> &TallyPart {
        let number = usize::from(table.number);
        if self.tallies.len() <= number {
            self.tallies.resize_with(number + 1, || None);
        }
        self.tallies[number].get_or_insert_with(|| table.linked.join(self.id))
    }

    /// Hands over what it has counted.
    pub(crate) fn leave_tallies(&mut self, tables: &[Arc<TableCore>]) {
        for (table, part) in tables.iter().zip(self.tallies.drain(..)) {
            if part.is_some() {
                table.linked.leave(self.id);
            }
        }
    }

    /// Queues what the index of a table has left behind, which mostly is nothing.
    #[inline]
    pub(crate) fn retire_parts(&mut self, table: u16) {
        if self.retired_parts.is_empty() {
            return;
        }
        let parts = self.retired_parts.drain(..).map(|part| Retired::Index { table, part });
        self.retired.extend(parts);
    }
}

/// How large the block of a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSize {
    /// It has a few words of a unit.
    Short = 0,
    /// It has room for all of any unit of the table.
    Whole = 1,
}

/// Memory that no new reader can reach.
#[derive(Debug)]
pub(crate) enum Retired {
    Record { table: u16, record: RecordAt },
    Version { table: u16, size: BlockSize, block: Block },
    Index { table: u16, part: Retire },
}

/// Where a conflict was, before anyone asks for names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConflictNote {
    pub(crate) cause: Abort,
    /// None if it was about no table.
    pub(crate) table: Option<u16>,
    /// The unit, if it was a row.
    pub(crate) unit: Option<u8>,
    /// The first words of the row's key.
    pub(crate) key: [u64; ConflictNote::KEY_WORDS],
    /// Whether a transaction of this very thread, another session's, was in the way.
    pub(crate) is_own_threads: bool,
}

impl ConflictNote {
    pub(crate) const KEY_WORDS: usize = 4;

    /// A number for the row that it was about, if it was about one.
    pub(crate) fn row(&self) -> Option<u64> {
        let table = self.unit.and(self.table)?;
        let mix = |hash: u64, word: &u64| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        Some(self.key.iter().fold(u64::from(table), mix))
    }

    /// A conflict that was about nothing in particular.
    pub(crate) fn nowhere(cause: Abort) -> ConflictNote {
        ConflictNote {
            cause,
            table: None,
            unit: None,
            key: [0; ConflictNote::KEY_WORDS],
            is_own_threads: false,
        }
    }
}

/// The context of a protocol's function: its database and its session.
pub struct Context<'a, P: Protocol> {
    pub(crate) engine: &'a Common,
    pub(crate) clock: &'a P::Clock,
    pub(crate) local: &'a mut Local,
}

impl<'a, P: Protocol> Context<'a, P> {
    #[inline(always)]
    pub(crate) fn new(engine: &'a Engine<P>, local: &'a mut Local) -> Context<'a, P> {
        Context { engine: &engine.common, clock: &engine.clock, local }
    }

    /// Notes which row a conflict was about, and passes its cause on.
    #[cold]
    pub(crate) fn conflict(&mut self, cause: Abort, at: CellAt) -> Abort {
        let (table, unit, key) = (Some(at.table()), Some(at.unit() as u8), at.key_prefix());
        let is_own_threads =
            cause == Abort::Locked && own_thread::is_held_by_another(at, self.local.id);
        self.local.conflict = Some(ConflictNote { cause, table, unit, key, is_own_threads });
        cause
    }

    /// Has the next attempt lock a unit before it begins.
    #[cold]
    pub(crate) fn want(&mut self, at: CellAt) {
        self.local.wanted.add(self.engine, at);
    }

    /// Notes that a conflict was about an absent key of a table.
    #[cold]
    pub(crate) fn phantom(&mut self, table: u16) -> Abort {
        self.local.conflict =
            Some(ConflictNote { table: Some(table), ..ConflictNote::nowhere(Abort::Phantom) });
        Abort::Phantom
    }

    /// Refuses to start a writing commit while another session has the token (unless it has had it
    /// for too long).
    #[inline]
    pub(crate) fn yield_to_token(&self) -> Result<(), Abort> {
        let must_yield = self.engine.token.is_others(self.local.id) && !self.local.has_yielded;
        if must_yield && !mutant(Mutant::TokenIgnored) { Err(Abort::Yielded) } else { Ok(()) }
    }

    /// Makes room for what a commit may leave behind, so that nothing is allocated while locks are
    /// held.
    #[inline]
    pub(crate) fn reserve_for(&mut self, writes: &WriteSet) {
        self.local.reap_queue.reserve(writes.items().len());
    }

    /// Unlinks a record from its index; it is freed once no reader can hold it.
    pub(crate) fn unlink(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        self.take_out(record, table, merge_into_node);
        self.local.retired.push(Retired::Record { table: table.number, record });
    }

    fn take_out(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        merge_into_node: impl FnOnce(NodeAt),
    ) {
        let key = record.key_words(table.layout.key_words());
        table.index.unlink(record, key.as_slice(), &mut self.local.retired_parts, merge_into_node);
        self.local.count_linked(table, false);
        self.local.retire_parts(table.number);
    }

    /// Takes a record out of its index and puts it into the table's index of deleted records, if
    /// that has room for it and `kill` makes it dead. Says whether there is nothing more to be done
    /// about that: if it has not been made dead, it may be another time.
    pub(crate) fn detach_for_snapshots(
        &mut self,
        record: RecordAt,
        table: &TableCore,
        kill: impl FnOnce(&mut Self) -> bool,
        merge_into_node: impl FnOnce(NodeAt),
    ) -> bool {
        let Some(deleted_index) = &table.deleted_index else { return true };
        let key = record.key_words(table.layout.key_words());
        let is_late = mutant(Mutant::StowedLate);
        if !is_late && !deleted_index.enter(record, key.as_slice(), &mut self.local.caches) {
            return true;
        }
        pass(Point::Stowing);
        if !kill(self) {
            deleted_index.leave(record, key.as_slice(), &mut self.local.retired_parts);
            self.local.retire_parts(table.number);
            return false;
        }
        self.take_out(record, table, merge_into_node);
        if is_late {
            pass(Point::Stowing);
            deleted_index.enter(record, key.as_slice(), &mut self.local.caches);
        }
        true
    }

    /// Takes a record out of the index of deleted records; it is freed once no reader can hold it.
    pub(crate) fn clear_out(&mut self, record: RecordAt, table: &TableCore) {
        let deleted_index = table.deleted_index.as_ref().expect("it has been put there");
        let key = record.key_words(table.layout.key_words());
        deleted_index.leave(record, key.as_slice(), &mut self.local.retired_parts);
        self.local.retire_parts(table.number);
        self.local.retired.push(Retired::Record { table: table.number, record });
    }
}

impl Retired {
    /// Frees the memory, which no reader can reach any more.
    pub(crate) fn free(self, tables: &[Arc<TableCore>], caches: &mut Vec<Option<Cache>>) {
        match self {
            Retired::Record { table, record } => {
                let slab = &tables[usize::from(table)].records;
                Cache::of(caches, slab).free(slab, record.block());
            }
            Retired::Version { table, size, block } => {
                let slab = tables[usize::from(table)].version_slab(size);
                Cache::of(caches, slab).free(slab, block);
            }
            Retired::Index { table, part: Retire::Block(block) } => {
                let slab = tables[usize::from(table)].index.blocks();
                Cache::of(caches, slab).free(slab, block);
            }
            Retired::Index { part: Retire::Array(array), .. } => drop(array),
        }
    }
}

impl TableCore {
    /// Bytes taken for versions apart from their records.
    pub(crate) fn version_bytes(&self) -> usize {
        let short = self
            .short_versions
            .iter()
            .filter(|&short| !self.versions.iter().any(|all| Arc::ptr_eq(all, short)));
        self.versions.iter().chain(short).map(|slab| slab.reserved_bytes()).sum()
    }

    /// Where versions of a size are.
    fn version_slab(&self, size: BlockSize) -> &Arc<Slab> {
        let slab = if size == BlockSize::Short {
            self.short_versions.as_ref()
        } else {
            self.versions.as_ref()
        };
        slab.expect("made for every protocol with versions of this size")
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

impl Local {
    /// The session's cache of blocks for a table's versions, once it has asked for one of this
    /// size.
    #[inline]
    fn version_cache(&mut self, table: u16, size: BlockSize) -> Option<&mut Cache> {
        let slab = self.version_slabs.get(usize::from(table))?[size as usize];
        self.caches.get_mut(slab?.0 as usize)?.as_mut()
    }
}

impl<P: Protocol> Context<'_, P> {
    /// Makes sure that [`Context::version_block`] can be called so often for a table and a size,
    /// past the memory limit if need be.
    #[inline]
    pub(crate) fn prepare_versions(
        &mut self,
        (table, size): (u16, BlockSize),
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let is_ready =
            self.local.version_cache(table, size).is_some_and(|cache| cache.ready() >= count);
        if is_ready {
            Ok(())
        } else {
            self.fetch_version_blocks((table, size), count, beyond_limit)
        }
    }

    #[cold]
    fn fetch_version_blocks(
        &mut self,
        (number, size): (u16, BlockSize),
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        self.prepare_versions_of(&self.engine.table(number), size, count, beyond_limit)
    }

    /// As [`Context::prepare_versions`], for a caller that has the table. (The collector has locked
    /// the list of tables, and may not lock it again.)
    pub(crate) fn prepare_versions_of(
        &mut self,
        table: &TableCore,
        size: BlockSize,
        count: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        let (slab, number) = (table.version_slab(size), usize::from(table.number));
        let slabs = &mut self.local.version_slabs;
        if slabs.len() <= number {
            slabs.resize(number + 1, [None; 2]);
        }
        slabs[number][size as usize] = Some(slab.id());
        Cache::of(&mut self.local.caches, slab).make_ready(slab, count, beyond_limit)
    }

    /// Frees a block that [`Context::version_block`] gave and no other session can reach.
    pub(crate) fn free_version_block(&mut self, table: &TableCore, size: BlockSize, block: Block) {
        let slab = table.version_slab(size);
        Cache::of(&mut self.local.caches, slab).free(slab, block);
    }

    /// The same when [`Context::version_block`] will be called for the `number`th time; brings so
    /// many words of that block nearer.
    #[inline]
    pub(crate) fn prepare_version(
        &mut self,
        (table, size): (u16, BlockSize),
        number: usize,
        words: usize,
        beyond_limit: bool,
    ) -> Result<(), OutOfMemory> {
        match self.local.version_cache(table, size).filter(|cache| cache.ready() >= number) {
            Some(cache) => {
                cache.prefetch_ready(number, words);
                Ok(())
            }
            None => self.fetch_version_blocks((table, size), number, beyond_limit),
        }
    }

    /// A block for a version of a table's unit, one of those made ready. Allocates nothing.
    #[inline]
    pub(crate) fn version_block(&mut self, table: u16, size: BlockSize) -> Block {
        self.local.version_cache(table, size).expect("it has been made ready").take_ready()
    }
}
